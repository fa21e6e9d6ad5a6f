"""The pages whose commands need a cluster do what they show, on a lab of their own.

Names of pods, times, and what follows from times differ from run to run; everything else is as the page shows it, once
what was asked for has happened: commands that only look are repeated until then.
"""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from slacktide.lab import ControlPlane
from support import blocks
from support.blocks import Page
from support.repository import REPOSITORY

CHANGING = (
    (re.compile(r"\b([a-z]+)-[0-9a-f]{8,10}-[0-9a-z]{5}\b"), r"\1-POD"),
    (re.compile(r"\bnode-\d\b"), "NODE"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|<no value>"), "INSTANT"),
    (re.compile(r"\b\d\d:\d\d:\d\d\b"), "TIME"),
    (re.compile(r"(?:-?\d[\ddhms.]* of slack|unlimited slack)"), "SLACK"),
    (re.compile(r"(?<![\w.-])(\d+(\.\d+)?(d|h|m|s|ms))+\b"), "AGE"),
    (re.compile(r"\b\d+(\.\d+)? s\b|\b\d+:\d\d\b"), "SECONDS"),
    (re.compile(r"-?\b\d+\.\d+\b"), "NUMBER"),
)
"""What differs between runs, and what is compared in its place. (A promise is a number, too: it stands in the page's
own classes.yaml.)"""


def masked(text: str) -> Counter[str]:
    """The lines of an output, without what differs between runs; pods are listed by their names, so in any order."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        for changing, word in CHANGING:
            line = changing.sub(word, line)  # noqa: PLW2901
        found[" ".join(line.split())] += 1
    return found


def alike(expected: str, printed: str) -> bool:
    """Whether an output is as a page shows it; where the page has a line of ``...`` there may be more."""
    wanted, found = masked(expected), masked(printed)
    return wanted <= found if (more := wanted.pop("...", 0)) and more else wanted == found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield blocks.workplace(tmp_path)
    if not (tmp_path / "my-lab" / "lab.json").exists():
        return  # the page was run to its end
    if (tmp_path / "dry-run.pid").exists():
        with suppress(ProcessLookupError):
            os.kill(int((tmp_path / "dry-run.pid").read_text()), signal.SIGTERM)
    ControlPlane.attach(tmp_path / "my-lab").kill()


@pytest.mark.usefixtures("binaries")
@pytest.mark.parametrize("name", blocks.ON_THE_LAB)
def test_a_page_does_what_it_shows(name: str, folder: Path) -> None:
    page = Page(REPOSITORY / "docs" / name)
    rewrites = os.environ.get("SLACKTIDE_REWRITE") == "1"
    for block in page.blocks:
        page.run(
            block, folder, alike, patience=15.0 if rewrites else 120.0, KUBECONFIG=str(folder / "my-lab" / "kubeconfig")
        )
    if rewrites:
        page.rewrite()
    assert not page.different, "\n".join(map(str, page.different))
    assert sum(one.is_run for one in page.blocks) > 5
