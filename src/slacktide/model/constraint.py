"""Placement constraints: conjunctions of ``key op value`` over host attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Operator = Literal["==", "/=", "<", ">"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)


def number(text: str) -> float | None:
    """``text`` as a number, or ``None`` where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, order=True)
class Constraint:
    """``key op value``: one requirement on a host's attributes (specification, section 1)."""

    key: str
    op: Operator
    value: str

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether a host with these attributes satisfies the constraint.

        A missing attribute fails ``==``, ``<`` and ``>`` and satisfies ``/=``.
        ``<`` and ``>`` compare numbers; where either side is none they fail.
        """
        found = attributes.get(self.key)
        if self.op == "/=":
            return found != self.value
        if found is None:
            return False
        if self.op == "==":
            return found == self.value
        left, right = number(found), number(self.value)
        if left is None or right is None:
            return False
        return left < right if self.op == "<" else left > right

    def __str__(self) -> str:
        return f"{self.key} {self.op} {self.value}"


@dataclass(frozen=True, slots=True)
class Term:
    """All constraints of a request together; a host must satisfy every one.

    Equal terms are stored once in a workload and evaluated once per host.
    """

    constraints: tuple[Constraint, ...] = ()

    def holds(self, attributes: Mapping[str, str]) -> bool:
        return all(constraint.holds(attributes) for constraint in self.constraints)

    def __str__(self) -> str:
        return " and ".join(map(str, self.constraints)) or "anywhere"


NO_CONSTRAINT = Term()
