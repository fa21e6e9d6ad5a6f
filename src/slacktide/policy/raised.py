"""Where a user's own code went wrong, in words: file and line of theirs, not of ours."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path

import slacktide

OURS = str(Path(slacktide.__file__).parent)
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Where libraries are, which a user's code may call; packages of policies are there, too."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FILE = re.compile(r'^File "(?P<file>[^"]+)", line (?P<line>\d+):', re.MULTILINE)
_WRITES = re.compile(r"setitem\(readonly array")
_STAGE = re.compile(r"^(Failed in nopython mode pipeline|$)")


def told(problem: BaseException) -> str:
    """``mine.py:12: KeyError: 'x'``: what was raised, and the last line of a user's own that led there."""
    frames = [one for one in traceback.extract_tb(problem.__traceback__) if not one.filename.startswith((OURS, "<"))]
    own = [one for one in frames if not one.filename.startswith(INSTALLED)] or frames
    said = f"{type(problem).__name__}: {problem}"
    return f"{_short(own[-1].filename)}:{own[-1].lineno}: {said}" if own else said


def not_compiled(problem: Exception) -> str:
    """The same of what Numba says, which names the stage at which it failed first."""
    text = _COLOUR.sub("", str(problem))
    why = next((line for line in text.splitlines() if not _STAGE.match(line)), text.strip())
    places = (found for found in _FILE.finditer(text) if not found["file"].endswith("own_code.py"))
    place = next((f"{_short(found['file'])}:{found['line']}: " for found in places), "")
    if _WRITES.search(text):
        why = "found an array that is written to, expected only 'out' to be; change a copy"
    return f"{place}{why.strip()}"


def _short(file: str) -> str:
    """Relative to the current directory where it is below it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
