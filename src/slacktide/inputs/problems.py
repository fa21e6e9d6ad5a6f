"""Collect what is wrong with an input, so that one reading reports everything at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import SHOWN_PROBLEMS, InputError, Problem, fail


class Problems:
    """The problems of one file, or of a ``frame``: all of them counted, the first few (by line) kept."""

    def __init__(self, file: str, *, frame: bool = False) -> None:
        self.file = file
        self.frame = frame
        self.total = 0
        self._kept: list[Problem] = []

    def add(self, line: int, column: str, value: str, expected: str) -> None:
        """One problem; ``line`` counts from 1, 0 means the whole file."""
        self.total += 1
        self._kept.append(Problem(self.file, line, column, value, expected, self.frame))
        if len(self._kept) > 16 * SHOWN_PROBLEMS:
            self._shorten()

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
        for row in np.flatnonzero(wrong)[:SHOWN_PROBLEMS]:
            line = int(row) + 1 if lines is None else int(lines[row])
            self.add(line, column, f"{values[row]}", expected)
        self.total += max(0, count - SHOWN_PROBLEMS)

    def raise_if_any(self) -> None:
        """Raises :class:`InputError` when anything was added."""
        if self.total:
            self._shorten()
            raise InputError(self._kept, self.total)

    def _shorten(self) -> None:
        # Stable: problems of one line stay in the order of its columns.
        self._kept.sort(key=lambda problem: problem.line)
        del self._kept[SHOWN_PROBLEMS:]


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
