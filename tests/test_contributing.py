"""What CONTRIBUTING.md names is there: files, and the functions that it says are in them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import mutation
from support.repository import REPOSITORY

TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROOTS = ("src/slacktide", "tests", "")
"""Where named files lie; the last one for names from the root of the repository."""
YOURS = re.compile(r"NAME|mine\.py|file\.py")
"""In names of files that the reader is to write."""
FILES = sorted({one for one in re.findall(r"`([\w/.-]+\.(?:py|md|toml|txt|json))`", TEXT) if not YOURS.search(one)})
FOLDERS = sorted(set(re.findall(r"`([\w/]+/)`", TEXT)))
FUNCTIONS = re.findall(r"`([\w/]+\.py)`, (?:functions?|class) `(\w+)`(?:[,)]| and `(\w+)`)?", TEXT)
IN_FILES = re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.py)`", TEXT)


def paths(name: str) -> list[Path]:
    """Files that may be meant: that one, or any whose path ends so."""
    found = [REPOSITORY / root / name for root in ROOTS if (REPOSITORY / root / name).exists()]
    return found or [one for root in ROOTS[:2] for one in (REPOSITORY / root).rglob(name)]


def defined(path: Path) -> set[str]:
    """Functions, methods, classes and constants of a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def test_it_names_files_folders_and_functions() -> None:
    assert len(FILES) > 90
    assert len(FOLDERS) > 30
    assert len(FUNCTIONS) > 12


@pytest.mark.parametrize("name", FILES)
def test_named_files_are_there(name: str) -> None:
    assert paths(name)


@pytest.mark.parametrize("name", FOLDERS)
def test_named_folders_are_there(name: str) -> None:
    assert any(one.is_dir() for one in paths(name.rstrip("/")))


def test_named_functions_are_in_these_files() -> None:
    named = [(path, name) for path, *names in FUNCTIONS for name in names if name]
    named += [(path, name) for name, path in IN_FILES]
    missing = [one for one in named if not any(one[1] in defined(path) for path in paths(one[0]))]
    assert missing == []


@pytest.mark.parametrize("mutant", mutation.MUTANTS, ids=lambda one: one.rule)
def test_a_rule_that_is_broken_on_purpose_stands_where_it_is_said_to(mutant: mutation.Mutant) -> None:
    mutation.mutated(mutant, REPOSITORY)  # ends the program where the text is not there once
