"""Code blocks of the documentation, and running them as a reader would.

Every block says its language. ``sh`` is commands; ``console`` is commands after ``$`` with what they print; ``python``
is a program. A comment in the line above a block changes what is done with it:

- ``<!-- not run: REASON -->``;
- ``<!-- file: NAME -->``: the block is that file, for the blocks below it;
- ``<!-- needs the published inputs -->``: it is run where they are there.

What is printed is compared line by line. ``...`` in an expected line stands for any text, a line of ``...`` for any
lines. ``SLACKTIDE_REWRITE=1 pytest tests/website/test_blocks.py`` puts what was printed into the pages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.repository import REPOSITORY

PAGES = (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md")))
ON_THE_LAB = ("first-promise.md", "how-to-beside.md")
"""Pages whose commands need a cluster: tests/cluster/test_pages.py runs them, from the first block to the last."""
ELSEWHERE = ("python.md",)
"""Pages with a test of their own (tests/api/test_page.py)."""
RUN = ("sh", "console", "python")
OTHER = ("text", "csv", "yaml", "toml", "json", "erlang", "promql")
FENCE = re.compile(
    r"^(?: *<!-- *(?P<mark>[^\n]*?) *-->\n+)?(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
TOOK = re.compile(r"^\S+ s; \S+ s of processor time, \S+ [kMG]B at most$", re.MULTILINE)
"""Time and memory of a run."""
LOOKS = re.compile(r"kubectl get |slacktide (top|explain) ")
"""Commands that change nothing."""
NOT_RUN, FILE, PUBLISHED = "not run: ", "file: ", "needs the published inputs"


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    mark: str

    @property
    def is_run(self) -> bool:
        """Whether a reader would run it and nothing says that this is not done here."""
        return self.language in RUN and not self.mark.startswith((NOT_RUN, FILE))

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, one.start("language")) + 1, one["language"], one["text"], one["mark"] or "")
        for one in FENCE.finditer(text)
    ]


def steps(block: Block) -> Iterator[tuple[str, str | None]]:
    """Scripts for bash, each with what it is to print (None: whatever it prints)."""
    if block.language == "sh":
        yield block.text, None
        return
    for one in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = one.splitlines(keepends=True)
        count = next((number for number, line in enumerate(lines, 1) if not line.endswith("\\\n")), len(lines))
        yield "".join(lines[:count]), "".join(lines[count:])


def same(expected: str, printed: str) -> bool:
    """Whether this was printed; ``...`` stands for anything. Spaces at the ends of lines do not count, nor what a run
    took.
    """
    expected, printed = (TOOK.sub("(what it took)", one) for one in (expected, printed))
    pattern = "".join(
        r"(?:[^\n]*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r" *\n"
        for line in expected.rstrip("\n").splitlines()
    )
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def workplace(folder: Path) -> Path:
    """A folder to run blocks in, with what they name of a checkout."""
    for name in ("examples", "src", "bench"):
        (folder / name).symlink_to(REPOSITORY / name)
    return folder


def environment(**more: str) -> dict[str, str]:
    """With this Python's programs first, no cluster of the one who runs the tests, and tables as wide as on pages."""
    found = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"} | {"COLUMNS": "80"}
    return found | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"} | more


def ran(words: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A program in ``folder``, with nobody to ask."""
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@dataclass(frozen=True)
class Difference:
    """A command of a page that printed something else."""

    block: Block
    command: str
    expected: str
    printed: str

    def __str__(self) -> str:
        return f"{self.block}\n$ {self.command}expected:\n{self.expected}\nprinted:\n{self.printed}"

    __repr__ = __str__


class Page:
    """A page whose blocks are run one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks = blocks(path) if path.exists() else []
        self.different: list[Difference] = []
        self._program = ""

    def __str__(self) -> str:
        return self.path.name

    def run(
        self,
        block: Block,
        folder: Path,
        agree: Callable[[str, str], bool] = same,
        patience: float = 0.0,
        **more: str,
    ) -> None:
        """Run a block in ``folder``, or write the file that it is; raises AssertionError where a command fails.

        What printed something else is noted in ``different``; a command that only looks is repeated before, for so
        many seconds. ``more`` are variables of the environment.
        """
        if block.mark.startswith(FILE):
            (folder / block.mark.removeprefix(FILE)).write_text(block.text, encoding="utf-8")
        elif block.is_run and block.language == "python":
            self._program += block.text  # blocks of one page go on from each other
            done = ran([sys.executable, "-c", self._program], folder, **more)
            assert done.returncode == 0, f"{block}\n{done.stderr}"
        elif block.is_run:
            for script, expected in steps(block):
                words = ["bash", "-euo", "pipefail", "-c", script]
                done, end = ran(words, folder, **more), time.monotonic() + patience
                while LOOKS.match(script) and time.monotonic() < end and not agree(expected or "", done.stdout):
                    time.sleep(0.2)
                    done = ran(words, folder, **more)
                said = f"{done.stdout}{done.stderr}"
                assert done.returncode == 0, f"{block}: exit code {done.returncode}\n{script}\n{said}"
                if expected is not None and not agree(expected, done.stdout):
                    self.different.append(Difference(block, script, expected, done.stdout))

    def rewrite(self) -> None:
        """Put what was printed into the page."""
        text = self.path.read_text(encoding="utf-8")
        for one in self.different:
            before = f"$ {one.command}{one.expected}"
            assert text.count(before) == 1, f"{one.block}: not found once: {before}"
            text = text.replace(before, f"$ {one.command}{one.printed.rstrip()}\n")
        self.path.write_text(text, encoding="utf-8")
        self.different.clear()
