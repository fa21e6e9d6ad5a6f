"""The columns about limits, users, images and data, from the cells of a file to a workload's limits and accesses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Codes, Distinct, Floats, combined, parse_float
from slacktide.inputs.problems import Problems
from slacktide.model import Access
from slacktide.model.logins import Logins, parse_logins

DATA = "a volume, 0 or more and at most 1e15"
DEADLINE = "seconds above 0 and at most 1e15; inf or empty: none"
LIMIT = "an amount, at least the demand and at most 1e15; empty: the demand"
NAME = "a name without blanks"
WORDS, AMOUNTS = ("users", "image", "preferred"), {"data": 0.0, "deadline": math.inf}
"""Columns of texts, and of numbers with what an empty cell means."""
LARGEST = 1e15


def parse_users(text: str) -> Logins:
    """Where users log in; nothing for nowhere. Raises :class:`ValueError`."""
    return parse_logins(text) if text else ()


def format_users(logins: Logins) -> str:
    """Text from which :func:`parse_users` makes the same shares."""
    if len(logins) == 1 and ":" not in logins[0][0]:
        return logins[0][0]
    return " ".join(f"{name}:{share!r}" for name, share in logins)


def parse_name(text: str) -> str:
    """A name, or nothing. Raises :class:`ValueError`."""
    if any(character.isspace() for character in text):
        raise ValueError(text)
    return text


def parse_deadline(text: str) -> float:
    """Seconds; nothing stands for none."""
    return parse_float(text) if text else math.inf


def parse_data(text: str) -> float:
    """A volume; nothing is 0."""
    return parse_float(text) if text else 0.0


def check(numbers: Mapping[str, Floats], lines: NDArray[np.int64] | None, problems: Problems) -> None:
    """Add to ``problems`` every volume and deadline out of range; ``numbers`` are columns by name."""
    data, deadline = numbers.get("data"), numbers.get("deadline")
    if data is not None:
        problems.add_rows(~((data >= 0) & (data <= LARGEST)), lines, "data", data, DATA)  # type: ignore[arg-type]
    if deadline is not None:
        wrong = ~((deadline > 0) & ((deadline <= LARGEST) | np.isinf(deadline)))
        problems.add_rows(wrong, lines, "deadline", deadline, DEADLINE)  # type: ignore[arg-type]


def limits(
    numbers: Mapping[str, Floats],
    names: tuple[str, ...],
    demand: Floats,
    lines: NDArray[np.int64] | None,
    problems: Problems,
) -> Floats | None:
    """Shape (n, resources), or ``None`` where nobody has one above its demand; adds to ``problems`` what is below it.

    ``names`` are the columns of limits by resource, those among them that the file has are in ``numbers`` (NaN: the
    demand).
    """
    if not names:
        return None
    found = demand.copy()
    for r, name in enumerate(names):
        if name in numbers:
            given = numbers[name]
            wrong = ~np.isnan(given) & ~((given >= demand[:, r]) & (given <= LARGEST))
            problems.add_rows(wrong, lines, name, given, LIMIT)  # type: ignore[arg-type]
            found[:, r] = np.where(np.isnan(given), demand[:, r], given)
    return found if (found > demand).any() else None


def accesses(
    count: int, codes: Mapping[str, Codes], numbers: Mapping[str, Floats], tables: Mapping[str, Distinct[Any]]
) -> tuple[Codes, tuple[Access, ...]] | None:
    """Each row's index among the distinct accesses; ``None`` where nobody says anything.

    ``codes`` and ``numbers`` are columns by name, as far as the file has them; ``tables`` what codes stand for.
    """
    data, deadline = (numbers.get(name, np.full(count, empty)) for name, empty in AMOUNTS.items())
    words = [codes.get(name, np.zeros(count, np.int32)) for name in WORDS]
    if not (data.any() or np.isfinite(deadline).any() or any(one.any() for one in words)):
        return None

    def made(data: float, deadline: float, *said: Any) -> Access:
        users, image, preferred = said
        return Access(data, image, users, preferred, deadline)

    return combined([data, deadline, *words], [tables[name].values for name in WORDS], made)
