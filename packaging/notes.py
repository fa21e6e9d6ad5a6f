"""Prints the notes of a release: its section of CHANGELOG.md, without the heading.

usage: notes.py VERSION [CHANGELOG.md]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def section(changelog: str, version: str) -> str | None:
    """What stands under ``## [version]``, or None where there is no such heading."""
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.DOTALL | re.MULTILINE)
    return found[1].strip() + "\n" if found else None


def main() -> None:
    """Print them, or say which releases there are."""
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: notes.py VERSION [CHANGELOG.md]")
    path = Path(sys.argv[2] if len(sys.argv) == 3 else "CHANGELOG.md")
    text = path.read_text(encoding="utf-8")
    notes = section(text, sys.argv[1])
    if notes is None:
        known = ", ".join(re.findall(r"^## \[(.*?)\]", text, re.MULTILINE))
        sys.exit(f"{path}: has no section [{sys.argv[1]}], only {known}; write one before the release")
    sys.stdout.write(notes)


if __name__ == "__main__":
    main()
