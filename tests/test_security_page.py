"""The page about security names tests that there are."""

from __future__ import annotations

import re

import pytest

from support.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
TESTS = REPOSITORY / "tests"


def named() -> list[tuple[str, str]]:
    """File and name of each test; one without a file is in the file that was named last."""
    found, last = [], ""
    for file, name in re.findall(r"`([\w/]*(?:\.py)?)::(test_\w+)`", PAGE):
        last = file or last
        found.append((last, name))
    return found


def test_many_are_named() -> None:
    assert len(named()) > 60


@pytest.mark.parametrize(("file", "name"), named())
def test_it_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")
