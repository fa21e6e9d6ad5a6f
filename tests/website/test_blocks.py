"""Every code block of the README and of docs/ says its language, and is run, or says why it is not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from reference.erlang import DATA
from support import blocks
from support.blocks import Block, Page
from support.repository import REPOSITORY

PAGES = [Page(path) for path in blocks.PAGES]
OTHERS = blocks.ON_THE_LAB + blocks.ELSEWHERE
FIRST = ("README.md",)
"""What everybody reads first; all other pages are left to `make thorough`."""
HERE = [page for page in PAGES if page.path.name not in OTHERS and any(one.is_run for one in page.blocks)]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_block_says_its_language(page: Page) -> None:
    assert [str(one) for one in page.blocks if one.language not in blocks.RUN + blocks.OTHER] == []
    fences = re.findall(r"^ *```", page.path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(fences) == 2 * len(page.blocks), "a block that is not seen"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_block_that_is_not_run_says_why(page: Page) -> None:
    for one in page.blocks:
        if one.mark.startswith(blocks.NOT_RUN):
            reason = one.mark.removeprefix(blocks.NOT_RUN)
            assert len(reason.split()) > 3, f"{one}: {reason}"
            for name in re.findall(r"(?:tests|bench)/[\w/]+(?:\.py)?|[\w-]+\.md", reason):
                assert (REPOSITORY / name).exists() or (REPOSITORY / "docs" / name).exists(), f"{one}: {name}"


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page.path.name in FIRST else pytest.mark.slow) for page in HERE], ids=str
)
def test_the_blocks_of_a_page_run_one_after_the_other(page: Page, tmp_path: Path) -> None:
    blocks.workplace(tmp_path)
    published = DATA.is_dir()
    if published:
        for one in DATA.glob("*/*"):
            (tmp_path / one.name).symlink_to(one)
    for block in page.blocks:
        if block.mark != blocks.PUBLISHED or published:
            page.run(block, tmp_path, SLACKTIDE_DATA=str(DATA))
    if os.environ.get("SLACKTIDE_REWRITE") == "1":
        page.rewrite()
    assert not page.different, "\n".join(map(str, page.different))


def block(language: str, text: str, mark: str = "") -> Block:
    return Block(Path("page.md"), 1, language, text, mark)


def test_what_is_expected_may_leave_out_texts_and_lines() -> None:
    assert blocks.same("a\n...\nd 1...\n", "a\nb\nc\nd 1 e\n")
    assert blocks.same("a\n", "a  \n")
    assert not blocks.same("a\n...\nd\n", "a\nb\nd\ne\n")
    assert not blocks.same("a...c\n", "a\nc\n")


def test_what_a_run_took_may_differ() -> None:
    took = "1:00:00\n{} s; {} s of processor time, {} MB at most\n"
    assert blocks.same(took.format("0.86", "0.69", 98), took.format("3.36", "0.63", 101))
    assert not blocks.same(took.format("0.86", "0.69", 98), took.format("3.36", "0.63", 101).replace("1:00", "2:00"))


def test_a_command_that_fails_or_prints_something_else_is_told(tmp_path: Path) -> None:
    page = Page(tmp_path / "page.md")
    with pytest.raises(AssertionError, match="exit code 3"):
        page.run(block("sh", "true\n(exit 3)\necho after\n"), tmp_path)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        page.run(block("python", "1 / 0\n"), tmp_path)
    page.run(block("console", "$ echo one\none\n$ echo two \\\n  three\ntwo 3\n"), tmp_path)
    assert [(one.expected, one.printed) for one in page.different] == [("two 3\n", "two three\n")]


def test_files_and_programs_of_a_page_are_there_for_what_follows(tmp_path: Path) -> None:
    page = Page(tmp_path / "page.md")
    page.run(block("csv", "a,b\n", "file: given.csv"), tmp_path)
    page.run(block("sh", "exit 1\n", "not run: it would fail"), tmp_path)
    page.run(block("python", "text = open('given.csv').read()\n"), tmp_path)
    page.run(block("python", "assert text == 'a,b\\n'\n"), tmp_path)


def test_outputs_are_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Page\n\n```console\n$ echo one\nzero\n$ echo two\ntwo\n```\n", encoding="utf-8")
    page = Page(path)
    for one in page.blocks:
        page.run(one, tmp_path)
    page.rewrite()
    assert path.read_text(encoding="utf-8") == "# Page\n\n```console\n$ echo one\none\n$ echo two\ntwo\n```\n"
    assert page.different == []
