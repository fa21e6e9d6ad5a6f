"""Looks through the built site for what a browser would fetch from elsewhere: ``python website/check.py build/site``.

Links that a reader follows are not meant. Exit code 1 where something is found.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

TAG = re.compile(
    r"<(?!a\b)(\w+)\b[^>]*?\b(?:src|srcset|href|data|poster)=[\"']?((?:https?:)?//[^\"'\s>]+)", re.IGNORECASE
)
STYLE = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)
NOT_FETCHED = re.compile(r"<link\b[^>]*\brel=[\"']?(?:canonical|alternate|license|author)\b[^>]*>", re.IGNORECASE)


def fetched_from_elsewhere(site: Path) -> list[str]:
    """What pages and style sheets would load from another address, each with its file."""
    found = []
    for page in sorted(site.rglob("*.html")):
        text = NOT_FETCHED.sub("", page.read_text(encoding="utf-8"))
        found += [f"{page}: <{tag}> {address}" for tag, address in TAG.findall(text)]
        found += [f"{page}: {address}" for style in re.findall(r"<style.*?</style>", text, re.DOTALL | re.IGNORECASE)
                  for address in STYLE.findall(style)]  # fmt: skip
    for sheet in sorted(site.rglob("*.css")):
        found += [f"{sheet}: {address}" for address in STYLE.findall(sheet.read_text(encoding="utf-8"))]
    return found


if __name__ == "__main__":
    elsewhere = fetched_from_elsewhere(Path(sys.argv[1]))
    print("\n".join(elsewhere), end="\n" if elsewhere else "", file=sys.stderr)
    sys.exit(bool(elsewhere))
