"""The columns about limits, users, images and data, from the cells of a file to a workload's limits and accesses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.affinity import Codes
from slacktide.inputs.columns.cells import Distinct, Floats, parse_float
from slacktide.inputs.problems import Problems
from slacktide.model import Access
from slacktide.model.logins import EXPECTED as USERS
from slacktide.model.logins import Logins, parse_logins

DATA = "a volume, 0 or more and at most 1e15"
DEADLINE = "seconds above 0 and at most 1e15; inf or empty: none"
LIMIT = "an amount, at least the demand and at most 1e15; empty: the demand"
NAME = "a name without blanks"


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


@dataclass(slots=True)
class AccessTables:
    """What the cells of one file say."""

    users: Distinct[Logins] = field(default_factory=lambda: Distinct(parse_users))
    image: Distinct[str] = field(default_factory=lambda: Distinct(parse_name))
    preferred: Distinct[str] = field(default_factory=lambda: Distinct(parse_name))


EXPECTED = {"users": USERS, "image": NAME, "preferred": NAME}
"""By column of text, what its cells may hold."""
NUMBERS = {"data": (DATA, 0.0), "deadline": (DEADLINE, math.inf)}
"""By column of numbers, what its cells may hold, and what an empty one means."""


@dataclass(slots=True)
class AccessColumns:
    """The columns as read: numbers in ``tables`` or numbers, shape (n,); ``limit`` (n, resources), NaN: the demand.

    ``limited`` are the columns of limits that the file has.
    """

    data: Floats
    deadline: Floats
    users: Codes
    image: Codes
    preferred: Codes
    limit: Floats
    tables: AccessTables
    limited: tuple[str, ...] = ()

    @classmethod
    def empty_cells(cls, count: int, resources: int, tables: AccessTables, limited: tuple[str, ...]) -> AccessColumns:
        """``count`` rows in which nothing is given."""
        codes = {name: np.zeros(count, np.int32) for name in EXPECTED}
        limit = np.full((count, resources if limited else 0), np.nan)
        return cls(np.zeros(count), np.full(count, np.inf), **codes, limit=limit, tables=tables, limited=limited)

    def check(self, demand: Floats, lines: NDArray[np.int64] | None, problems: Problems) -> None:
        """Add to ``problems`` every number out of range."""
        largest = 1e15
        for name, wrong in (
            ("data", ~((self.data >= 0) & (self.data <= largest))),
            ("deadline", ~((self.deadline > 0) & ((self.deadline <= largest) | np.isinf(self.deadline)))),
        ):
            problems.add_rows(wrong, lines, name, getattr(self, name), NUMBERS[name][0])
        for r in range(self.limit.shape[1]):
            given = self.limit[:, r]
            wrong = ~np.isnan(given) & ~((given >= demand[:, r]) & (given <= largest))
            problems.add_rows(wrong, lines, self.limited[r], given, LIMIT)  # type: ignore[arg-type]

    def limits(self, demand: Floats) -> Floats | None:
        """Shape (n, resources), or ``None`` where nobody has one above its demand."""
        if not self.limit.shape[1]:
            return None
        found = np.where(np.isnan(self.limit), demand, self.limit)
        return found if (found > demand).any() else None

    def accesses(self) -> tuple[Codes, tuple[Access, ...]] | None:
        """Each row's index among the distinct accesses; ``None`` where nobody says anything."""
        if not (self.data.any() or np.isfinite(self.deadline).any() or any(getattr(self, n).any() for n in EXPECTED)):
            return None
        columns = (self.data, self.deadline, self.users, self.image, self.preferred)
        found, index = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        users, images, preferred = self.tables.users.values, self.tables.image.values, self.tables.preferred.values
        made = [
            Access(data, images[int(image)], users[int(user)], preferred[int(prefers)], deadline)
            for data, deadline, user, image, prefers in found.tolist()
        ]
        return index.reshape(-1).astype(np.int32), tuple(made)
