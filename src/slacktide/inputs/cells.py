"""Columns of text to columns of numbers, every cell that is none reported."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.problems import Problems
from slacktide.model import ServiceClass

T = TypeVar("T")
Floats = NDArray[np.float64]

# A placeholder for a cell that is no number: in range, so that it is reported once and not twice.
_GOOD_FLOAT = 1.0
_SPARE_ID = 2**62

_FLOAT = re.compile(r"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE)
_INTEGER = re.compile(r"[-+]?[0-9]{1,19}")


def parse_float(text: str) -> float:
    """``text`` as a number; unlike ``float`` it takes neither ``1_000`` nor digits of other scripts."""
    if _FLOAT.fullmatch(text) is None:
        raise ValueError(text)
    number = float(text)
    if math.isinf(number) and text.lower().lstrip("+-")[0] != "i":
        raise ValueError(text)  # 1e999 is a mistake, not a wish for infinity
    return number


def parse_duration(text: str) -> float:
    """As :func:`parse_float`; nothing stands for 'never completes'."""
    return parse_float(text) if text else float("inf")


def parse_integer(text: str) -> int:
    """``text`` as a whole number that fits 64 bits."""
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(text)
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def parse_flag(text: str) -> bool:
    """``text`` as a flag; nothing is false."""
    lowered = text.lower()
    if lowered in ("true", "1"):
        return True
    if lowered in ("false", "0", ""):
        return False
    raise ValueError(text)


def floats(
    values: Sequence[str],
    lines: Sequence[int],
    column: str,
    expected: str,
    problems: Problems,
    parse: Callable[[str], float] = parse_float,
) -> Floats:
    """The cells of one column as float64."""
    if parse in (parse_float, parse_duration) and _consists_of(values, b"0123456789.eE+-"):
        # What float() takes of these characters is what parse_float takes, but for overflow.
        try:
            plain = np.array(list(map(float, values)), dtype=np.float64)
        except ValueError:
            plain = np.array([np.inf])
        if np.isfinite(plain).all():
            return plain
    found = _cells(values, lines, column, expected, problems, parse, lambda _: _GOOD_FLOAT)
    return np.array(found, dtype=np.float64)


def integers(
    values: Sequence[str], lines: Sequence[int], column: str, expected: str, problems: Problems
) -> NDArray[np.int64]:
    """The cells of one column as int64."""
    if _consists_of(values, b"0123456789"):
        try:
            return np.array(list(map(int, values)), dtype=np.int64)
        except (ValueError, OverflowError):  # an empty cell, or more than 64 bits
            pass
    # Stand-ins differ by line, else the check for numbers given twice would report them too.
    found = _cells(values, lines, column, expected, problems, parse_integer, lambda row: _SPARE_ID + lines[row])
    return np.array(found, dtype=np.int64)


def flags(values: Sequence[str], lines: Sequence[int], column: str, problems: Problems) -> NDArray[np.bool_]:
    """The cells of one column as flags."""
    found = coded(values, lines, column, "true or false", problems, parse_flag, False)
    return np.array(found, dtype=np.bool_)


def class_indices(
    values: Sequence[str], lines: Sequence[int], column: str, classes: Sequence[ServiceClass], problems: Problems
) -> NDArray[np.int16]:
    """Each cell's index into ``classes``; unknown names are problems."""
    index = {one.name: number for number, one in enumerate(classes)}
    found = coded(values, lines, column, lambda text: expected_name(text, list(index)), problems, index.__getitem__, 0)
    return np.array(found, dtype=np.int16)


def coded(
    values: Sequence[str],
    lines: Sequence[int],
    column: str,
    expected: str | Callable[[str], str],
    problems: Problems,
    parse: Callable[[str], T],
    spare: T,
) -> list[T]:
    """Like :func:`_cells` for columns of few distinct values: each is parsed once."""
    known: dict[str, T] = {}
    broken: dict[str, str] = {}
    for text in dict.fromkeys(values):
        try:
            known[text] = parse(text)
        except (ValueError, KeyError):
            known[text] = spare
            broken[text] = expected if isinstance(expected, str) else expected(text)
    if broken:
        for row, text in enumerate(values):
            if text in broken:
                problems.add(lines[row], column, text or "nothing", broken[text])
    return [known[text] for text in values]


def expected_name(text: str, names: Sequence[str]) -> str:
    """'one of …', with the nearest right name where there is one."""
    near = get_close_matches(text, names, 1)
    listed = ", ".join(islice(names, 12)) + (", ..." if len(names) > 12 else "")
    return f"one of {listed}" + (f" (did you mean {near[0]!r}?)" if near else "")


def _consists_of(values: Sequence[str], characters: bytes) -> bool:
    return not "".join(values).encode("utf-8", "replace").translate(None, characters)


def _cells(
    values: Sequence[str],
    lines: Sequence[int],
    column: str,
    expected: str,
    problems: Problems,
    parse: Callable[[str], T],
    spare: Callable[[int], T],
) -> list[T]:
    try:
        return [parse(text) for text in values]
    except ValueError:
        pass
    found: list[T] = []
    for row, text in enumerate(values):
        try:
            found.append(parse(text))
        except ValueError:
            problems.add(lines[row], column, text or "nothing", expected)
            found.append(spare(row))
    return found
