"""Cells of text to values, one at a time; ``columns.column_batch`` has whole columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import remedy
from slacktide.model import DEFAULT_CLASSES

T = TypeVar("T")
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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


def format_float(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value)).removesuffix(".0")


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


def expected_name(text: str, names: Sequence[str]) -> str:
    """'one of …', with the nearest right name where there is one."""
    near = get_close_matches(text, names, 1)
    listed = ", ".join(islice(names, 12)) + (", ..." if len(names) > 12 else "")
    return f"one of {listed}" + (f" (did you mean {near[0]!r}?)" if near else "")


def expected_class(text: str, names: Sequence[str]) -> str:
    """The ``names`` of the classes that there are, and how to have others where nobody has named any."""
    default = [*names] == [one.name for one in DEFAULT_CLASSES] and not get_close_matches(text, names, 1)
    if not default:
        return expected_name(text, names)
    where = remedy("--config FILE, in a grid config: FILE", "config='FILE', or classes=[...]")
    such = "classes: [{name: mine, slo: 0.99, rank: 1}]"
    return f"{expected_name(text, names)}; classes of your own stand in a settings file, such as {such}: {where}"


class Distinct(Generic[T]):
    """Distinct values in order of first appearance; number 0 is what an empty cell means."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self._numbers: dict[T, int] = {parse(""): 0}
        self._of_text: dict[str, int] = {}
        self._parse = parse

    def number(self, text: str) -> int:
        """The number of what the text says; raises :class:`ValueError` where it says nothing."""
        if text not in self._of_text:
            self._of_text[text] = self._numbers.setdefault(self._parse(text), len(self._numbers))
        return self._of_text[text]

    @property
    def values(self) -> tuple[T, ...]:
        """All of them, in the order of their numbers."""
        return tuple(self._numbers)


def parse_pairs(text: str) -> tuple[tuple[float, float], ...]:
    """Numbers written as ``600=30; 1200=5``; nothing is none. Raises :class:`ValueError`."""
    parts = [part.partition("=") for part in text.split(";")] if text.strip() else []
    return tuple((parse_float(one.strip()), parse_float(other.strip())) for one, _, other in parts)


def format_pairs(pairs: Iterable[tuple[float, float]]) -> str:
    """Text from which :func:`parse_pairs` makes equal ones."""
    return "; ".join(f"{format_float(one)}={format_float(other)}" for one, other in pairs)


def row_codes(columns: Iterable[NDArray[Any]], count: int) -> Integers:
    """Numbers of ``count`` rows, equal where all columns are, in the order of what is in them."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        values, places = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(values) + places.reshape(-1), return_inverse=True)[1].reshape(-1)
    return codes


def combined(
    columns: Sequence[NDArray[Any]], values: Sequence[Sequence[Any]], make: Callable[..., T]
) -> tuple[Codes, tuple[T, ...]]:
    """What columns of one length say together: each row's index among the distinct ones, and these, made of the cells.

    The last columns hold places in ``values``, in their order; those before them hold what they say.
    """
    codes = row_codes(columns, len(columns[0]))
    _, first = np.unique(codes, return_index=True)
    cells: list[Any] = [column[first].tolist() for column in columns]
    for place, said in enumerate(reversed(values), 1):
        cells[-place] = [said[code] for code in cells[-place]]
    return codes.astype(np.int32), tuple(make(*row) for row in zip(*cells, strict=True))


def said_together(
    names: Sequence[str], codes: Mapping[str, Codes], tables: Mapping[str, Distinct[Any]], make: Callable[..., T]
) -> tuple[Codes, tuple[T, ...]] | None:
    """As :func:`combined` of columns of texts, as far as the file has them; ``None`` where nobody says anything."""
    there = [codes[name] for name in names if name in codes]
    if not any(one.any() for one in there):
        return None
    columns = [codes.get(name, np.zeros_like(there[0])) for name in names]
    return combined(columns, [tables[name].values for name in names], make)
