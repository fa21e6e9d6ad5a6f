"""The column ``resize``: when requests demand other amounts, and of what."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import format_float, parse_float
from slacktide.inputs.columns.instances import INSTANT, LATEST
from slacktide.inputs.problems import Problems
from slacktide.model import Resizing

COLUMN = "resize"
EXPECTED = (
    "seconds: resource=amount such as '600: cpu=2 memory=4; 1200: cpu=1', seconds increasing from 0, "
    "amounts 0 or more and at most 1e15, every resource once"
)
LATE = "seconds after those of the request's admission"
_SPECIAL = frozenset(" ;:=\"'\t\n")

Amounts = tuple[tuple[str, float], ...]


def parse(text: str) -> Resizing:
    """Changes written as ``600: cpu=2 memory=4; 1200: cpu=1``; nothing is none. Raises :class:`ValueError`."""
    if not text.strip():
        return ()
    found = tuple(_parse_one(part) for part in text.split(";"))
    if not all(0 <= time <= LATEST for time, _ in found):
        raise ValueError(text)
    if any(round(later / INSTANT) <= round(earlier / INSTANT) for (earlier, _), (later, _) in pairwise(found)):
        raise ValueError(text)
    return found


def _parse_one(text: str) -> tuple[float, Amounts]:
    time, _, rest = text.partition(":")
    return parse_float(time.strip()), parse_amounts(rest)


def parse_amounts(text: str) -> Amounts:
    """Amounts written as ``cpu=2 memory=4``, one at least. Raises :class:`ValueError`."""
    amounts = tuple(_parse_amount(word) for word in text.split())
    if not amounts or len({name for name, _ in amounts}) < len(amounts):
        raise ValueError(text)
    return amounts


def _parse_amount(text: str) -> tuple[str, float]:
    name, _, amount = text.partition("=")
    number = parse_float(amount)
    if not name or _SPECIAL & set(name) or not 0 <= number <= LATEST:
        raise ValueError(text)
    return name, number


def format_resizing(resizing: Resizing) -> str:
    """Text from which :func:`parse` makes an equal one. Raises :class:`ValueError` for names that it cannot read."""
    return "; ".join(f"{format_float(time)}: {format_amounts(amounts)}" for time, amounts in resizing)


def format_amounts(amounts: Amounts) -> str:
    """Text from which :func:`parse_amounts` makes equal ones. Raises :class:`ValueError` for names it cannot read."""
    for name, _ in amounts:
        if _SPECIAL & set(name):
            raise ValueError(f"found the resource {name!r}, expected a name without blanks, quotes, ';', ':' or '='")
    return " ".join(f"{name}={format_float(amount)}" for name, amount in amounts)


def check(
    resize: NDArray[np.int32],
    resizings: Sequence[Resizing],
    resources: Sequence[str],
    admission: NDArray[np.float64],
    lines: NDArray[np.int64] | None,
    problems: Problems,
) -> None:
    """Add to ``problems`` every cell with a resource that the workload has no column of, or with a time too early."""
    texts = [format_resizing(one) for one in resizings]
    first = np.array([one[0][0] if one else np.inf for one in resizings])[resize]
    early = np.rint(first / INSTANT) <= np.rint(admission / INSTANT)
    values = [texts[code] for code in resize.tolist()] if early.any() else ()
    problems.add_rows(early, lines, COLUMN, values, LATE)
    for code, one in enumerate(resizings):
        unknown = next((name for _, amounts in one for name, _ in amounts if name not in resources), None)
        if unknown is not None:
            expected = f"resources of this file ({', '.join(resources)}), not {unknown!r}"
            problems.add_rows(resize == code, lines, COLUMN, [texts[code]] * len(resize), expected)
