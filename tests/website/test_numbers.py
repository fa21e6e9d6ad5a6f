"""Numbers in the pages are those that programs print: tables between marks, and texts that name such a table.

``<!-- numbers of NAME: 7,850; 0.9137 -->`` below a paragraph or table says that these stand in it and in the table
between the marks of NAME. ``<!-- printed by bench/NAME.py ARGUMENTS: 7,850; 0.9137 -->`` says that they stand in it and
in what this program prints. Tables that take long are measured by ``make benchmarks`` only.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference.erlang import DATA
from support.benches import loaded
from support.blocks import PAGES
from support.repository import REPOSITORY

BENCH = REPOSITORY / "bench"
CLAIM = re.compile(r"<!-- (?:numbers of|printed by) ([^:]+): (.+) -->")
CHEAP = {
    "grouped": "pages.py grouped",
    "jobs": "pages.py jobs",
    "cell": "cell_statistics.py",
    "openb": "pages.py openb",
    "validation-3": "validation3.py --measured",
    "intervals": "intervals.py --lines '1 x 30, of this workload' '5 x 5' '1 x 5, of this workload' '2 x 5'",
    "alpha": "alpha.py",
    "options-validation1": "options.py --input validation1 --lines priority recommended",
    "options-higher": "options.py --input higher --lines priority recommended",
}
"""Of the tables that are the same on every machine, what a test can afford: all of it, or some lines."""


def tables() -> dict[str, str]:
    """What stands between the marks of each name, in whichever page."""
    mark = re.compile(r"<!-- ([\w-]+): begin -->\n(.*?)<!-- \1: end -->", re.DOTALL)
    return {name: text for page in PAGES for name, text in mark.findall(page.read_text(encoding="utf-8"))}


def exact(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Of the tables that are the same on every machine, whether they need the published inputs."""
    monkeypatch.syspath_prepend(str(BENCH))
    return {one.name: one.published for one in loaded("tables").TABLES if one.exact}


def rows(text: str) -> list[str]:
    """The lines of a table."""
    return [line.rstrip() for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]


@functools.cache
def output(words: str) -> str:
    """What a program of bench/ prints."""
    command = [sys.executable, *shlex.split(words)]
    environment = os.environ | {"SLACKTIDE_DATA": str(DATA)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", CHEAP)
def test_a_table_has_what_its_program_prints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if exact(monkeypatch)[name] and not DATA.is_dir():
        pytest.skip(f"the published files are not at {DATA}; SLACKTIDE_DATA names their folder")
    printed, shown = rows(output(f"bench/{CHEAP[name]}")), rows(tables()[name])
    assert len(printed) > 2
    assert [one for one in printed if one not in shown] == []


def test_every_exact_table_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(CHEAP) == set(exact(monkeypatch))


def claims(page: str) -> Iterator[tuple[str, str, list[str]]]:
    """Of each comment the paragraph above, its table and its numbers. (Comments may follow one another.)"""
    above, ended = "", False
    for line in page.splitlines():
        if found := CLAIM.fullmatch(line):
            yield above, found[1], found[2].split("; ")
        elif line and not line.startswith("<!--"):
            above, ended = (line if ended else f"{above}\n{line}"), False
        elif not line:
            ended = True


def missing(page: str, found: dict[str, str]) -> list[str]:
    """What a text says of a table, or of what a program prints, that is not in it, or not in the text."""
    wrong = []
    for above, source, texts in claims(page):
        for text in texts:
            number = re.compile(rf"(?<![\d.,]){re.escape(text)}(?!\d|[.,]\d)")
            if source in found and not number.search(found[source].replace("%", " %" if " %" in text else "%")):
                wrong.append(f"{text}: not in {source}")
            if not number.search(above):
                wrong.append(f"{text}: not in the paragraph above the comment that names it")
    return wrong


COMMANDS = sorted(
    {
        source
        for page in PAGES
        for _, source, _ in claims(page.read_text(encoding="utf-8"))
        if " " in source or "/" in source
    }
)


@pytest.mark.parametrize("words", COMMANDS)
def test_numbers_in_pages_are_those_that_a_program_prints(words: str) -> None:
    if not DATA.is_dir():
        pytest.skip(f"the published files are not at {DATA}; SLACKTIDE_DATA names their folder")
    printed = {words: output(words)}
    assert [one for page in PAGES for one in missing(page.read_text(encoding="utf-8"), printed)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_in_texts_are_those_of_their_table(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(list(claims(text))) == len(re.findall(r"(?<!`)<!-- (?:numbers of|printed by) ", text)), (
        "a comment that is not in a line of its own"
    )
    there = tables()
    assert {source for _, source, _ in claims(text)} <= {*there, *COMMANDS}
    assert missing(text, there) == []


def test_a_number_that_differs_is_told() -> None:
    found = {"t": "| priority | 7,850 | 0.9137 |\n"}
    page = "It takes 7,850 preemptions, mean 0.9137.\n<!-- numbers of t: 7,850; 0.9137 -->\n"
    assert missing(page, found) == []
    assert missing(page, {"t": "| priority | 7,851 | 0.9137 |\n"}) == ["7,850: not in t"]
    assert missing(page, {"t": "| priority | 17,850 | 0.91371 |\n"}) != []
    assert "not in the paragraph" in missing(page.replace("mean 0.9137", "mean 0.914"), found)[0]
