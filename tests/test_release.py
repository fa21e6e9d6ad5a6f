"""The notes of a release are its section of the changelog."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.repository import REPOSITORY

PROGRAM = REPOSITORY / "packaging" / "notes.py"
LOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-01

### Added
- One thing.

### Fixed
- Another thing.

## [1.1.0] - 2026-01-01
- First.
"""


def notes(version: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PROGRAM, version, path], capture_output=True, text=True, check=False)


def test_notes_end_where_the_release_before_begins(tmp_path: Path) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(LOG)
    assert notes("1.2.0", path).stdout == "### Added\n- One thing.\n\n### Fixed\n- Another thing.\n"
    assert notes("1.1.0", path).stdout == "- First.\n"


def test_a_release_without_notes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(LOG)
    answer = notes("1.3.0", path)
    assert answer.returncode == 1
    assert "no section [1.3.0], only Unreleased, 1.2.0, 1.1.0; write one before the release" in answer.stderr
    assert answer.stdout == ""
