"""Collect what is wrong with an input, so that one reading reports everything at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import SHOWN_PROBLEMS, SHOWN_ROWS, InputError, Problem, fail


class Problems:
    """The problems of one file, or of a ``frame``: all of them counted, the first few causes (by line) kept."""

    def __init__(self, file: str, *, frame: bool = False) -> None:
        self.file = file
        self.frame = frame
        self.total = 0
        self._kept: dict[tuple[str, str, str], Problem] = {}

    def add(self, line: int, column: str, value: str, expected: str) -> None:
        """One problem; ``line`` counts from 1, 0 means the whole file."""
        self.keep(Problem(self.file, line, column, value, expected, self.frame))

    def add_rows(
        self,
        wrong: NDArray[np.bool_],
        lines: NDArray[np.int64] | None,
        column: str,
        values: Sequence[object] | Mapping[int, object],
        expected: str,
    ) -> None:
        """One problem for every row marked in ``wrong``; ``lines`` gives each row's line (``None``: row number)."""
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return
        first, *further = (
            (int(row) + 1 if lines is None else int(lines[row]), f"{values[row]}")
            for row in np.flatnonzero(wrong)[: 1 + SHOWN_ROWS].tolist()
        )
        self.keep(Problem(self.file, first[0], column, first[1], expected, self.frame, count, tuple(further)))

    def raise_if_any(self) -> None:
        """Raises :class:`InputError` when anything was added."""
        if self.total:
            self._shorten()
            raise InputError([*self._kept.values()], self.total)

    def keep(self, found: Problem) -> None:
        """Of one cause there is one problem, which counts."""
        self.total += found.times
        before = self._kept.get(found.cause)
        self._kept[found.cause] = found if before is None else before.and_also(found)
        if len(self._kept) > 16 * SHOWN_PROBLEMS:
            self._shorten()

    def _shorten(self) -> None:
        # Stable: problems of one line stay in the order of its columns.
        first = sorted(self._kept.values(), key=lambda problem: problem.line)[:SHOWN_PROBLEMS]
        self._kept = {one.cause: one for one in first}


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises :class:`InputError` when it is missing, a directory, unreadable or empty.
    """
    check_readable(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise fail(path, "a readable file", value=error.strerror or str(error)) from error
    if not data.strip():
        raise fail(path, "at least one row", value="an empty file")
    return data


def read_text(path: Path) -> str:
    """The content of a UTF-8 file (a byte order mark is dropped); raises as :func:`read_bytes` does."""
    return decode(path, read_bytes(path))


def decode(path: Path, data: bytes) -> str:
    """``data`` as UTF-8; the error names the line of the first byte that is not."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fail(path, "text in UTF-8", line=line, value=f"byte 0x{data[error.start]:02x}") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise fail(path, "text without NUL characters", line=line, value="a NUL character")
    return text


def check_readable(path: Path) -> None:
    """Raises :class:`InputError` unless ``path`` is an existing file."""
    try:
        if path.is_dir():
            raise fail(path, "a file", value="a directory")
        if not path.exists():
            raise fail(path, "an existing file", value="no such file")
    except (OSError, ValueError) as error:  # a name too long, or with a NUL in it
        raise fail(str(path), "the name of a file", value=str(error)) from error
