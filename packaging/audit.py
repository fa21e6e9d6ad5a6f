"""Looks for known vulnerabilities of what locks name, by pip-audit; those of accepted.txt are accepted.

usage: audit.py LOCK...
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ACCEPTED = Path(__file__).with_name("accepted.txt")
NUMBER = re.compile(r"(?:PYSEC|GHSA|CVE)-[0-9A-Za-z-]+")


def accepted(file: Path) -> list[str]:
    """The numbers of what is accepted. Ends the program where a line has none, or gives no reason."""
    found = []
    for at, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        number, _, why = line.strip().partition(" ")
        if not number or number.startswith("#"):
            continue
        if not NUMBER.fullmatch(number) or not why.strip():
            sys.exit(f"{file}:{at}: found {line!r}, expected a number (PYSEC-..., GHSA-..., CVE-...) and a reason")
        found.append(number)
    return found


def main() -> None:
    """Ends with the code of pip-audit: 1 where there is something that is not accepted, or that it cannot look up."""
    locks = sys.argv[1:]
    if not locks:
        sys.exit(__doc__)
    command = [sys.executable, "-m", "pip_audit", "--strict", "--require-hashes", "--disable-pip"]
    command += [part for lock in locks for part in ("--requirement", lock)]
    command += [part for number in accepted(ACCEPTED) for part in ("--ignore-vuln", number)]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
