"""Puts what a program printed where a page of docs/ keeps it: between ``<!-- NAME: begin -->`` and ``end``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def command() -> str:
    """The command line of this program, without where its tables are written to."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if not skip and word != "--into" and not word.startswith("--into="):
            words.append(word)
        skip = word == "--into"
    return shlex.join(["python", f"bench/{Path(sys.argv[0]).name}", *words])


def show(name: str, text: str, page: Path | None) -> None:
    """Print ``text`` (Markdown), and put it into ``page`` where that is named; stops where the page has no place."""
    print(text, flush=True)
    if page is not None:
        put(name, text, page)


def put(name: str, text: str, page: Path) -> None:
    """Replace what stands between the marks; stops where the page has none."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(f"{page}: expected {begin.strip()} and {end}")
    page.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")
