"""Placement constraints: conjunctions of conditions on host attributes.

The common condition is ``key op value``. Kubernetes adds two that are no comparison of
one attribute: :class:`AnyOf` (a disjunction of terms) and :class:`Tolerates` (asks all
of a host's taints). A taint is the attribute ``taint:EFFECT:KEY`` with the taint's value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Operator = Literal["==", "/=", "<", ">", "in", "not in", "exists", "absent", "gt", "lt"]
OPERATORS: tuple[Operator, ...] = ("==", "/=", "<", ">")
"""Operators that a workload file may use; the others come from Kubernetes."""

TAINT = "taint:"
"""Attributes that begin so are taints."""
REFUSING_EFFECTS = ("NoExecute", "NoSchedule")

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")


def number(text: str) -> float | None:
    """``text`` as a number, or ``None`` where it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def integer(text: str) -> int | None:
    """``text`` as a whole number of 64 bits, or ``None`` where it is none."""
    if len(text) > 64 or not _INTEGER.fullmatch(text):
        return None
    found = int(text)
    return found if -(2**63) <= found < 2**63 else None


def decimal(text: str) -> int | None:
    """``text`` as a whole number of 64 bits where it is written the shortest way, else ``None``."""
    return integer(text) if _DECIMAL.fullmatch(text) else None


FOREIGN = "metadata.foreign"
"""Attribute of hosts that are known but were not given to us."""


def taint_attribute(effect: str, key: str) -> str:
    """Name of the attribute that stands for a taint."""
    return f"{TAINT}{effect}:{key}"


def taints_of(attributes: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """A host's taints as (effect, key, value), sorted."""
    return tuple(sorted(_taints(attributes)))


def _taints(attributes: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name, value in attributes.items():
        if name.startswith(TAINT):
            effect, _, key = name[len(TAINT) :].partition(":")
            yield effect, key, value


@dataclass(frozen=True, slots=True, order=True)
class Constraint:
    """``key op value``: one requirement on a host's attributes.

    ``in`` and ``not in`` look for the attribute among ``values``; ``exists`` and ``absent`` take neither.
    """

    key: str
    op: Operator
    value: str = ""
    values: tuple[str, ...] = ()

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether a host with these attributes satisfies the constraint.

        A missing attribute satisfies ``/=``, ``not in`` and ``absent`` and fails all others.
        ``<`` and ``>`` compare numbers, ``gt`` and ``lt`` whole numbers of 64 bits (greater, less);
        where either side is none they fail.
        """
        found = attributes.get(self.key)
        if self.op == "/=":
            return found != self.value
        if self.op == "not in":
            return found not in self.values
        if found is None or self.op == "absent":
            return found is None and self.op == "absent"
        if self.op == "==":
            return found == self.value
        if self.op == "in":
            return found in self.values
        return self.op == "exists" or self._compares(found)

    def _compares(self, found: str) -> bool:
        measure = number if self.op in ("<", ">") else integer
        left, right = measure(found), measure(self.value)
        if left is None or right is None:
            return False
        return left < right if self.op in ("<", "lt") else left > right

    def __str__(self) -> str:
        if self.op in ("in", "not in"):
            return f"{self.key} {self.op} ({', '.join(self.values)})"
        if self.op in ("exists", "absent"):
            return f"{self.key} {self.op}"
        return f"{self.key} {self.op} {self.value}"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the terms holds; without terms it never does."""

    terms: tuple[Term, ...]

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether a host with these attributes satisfies one of the terms."""
        return any(term.holds(attributes) for term in self.terms)

    def __str__(self) -> str:
        return " or ".join(f"({term})" for term in self.terms) or "nowhere"


@dataclass(frozen=True, slots=True, order=True)
class Toleration:
    """Taints that do not matter: of this key and effect (empty: any), and of this value unless ``any_value``.

    ``compares`` may be ``gt`` or ``lt``: then taints whose value is a whole number of 64 bits, greater or less than
    ``value``. Numbers with a sign + or leading zeros are none, as Kubernetes has it.
    """

    key: str = ""
    effect: str = ""
    value: str = ""
    any_value: bool = False
    compares: str = ""

    def covers(self, effect: str, key: str, value: str) -> bool:
        """Whether it tolerates the taint."""
        return (
            (not self.effect or self.effect == effect)
            and (not self.key or self.key == key)
            and (self.any_value or self._covers_value(value))
        )

    def _covers_value(self, value: str) -> bool:
        if not self.compares:
            return self.value == value
        found, limit = decimal(value), decimal(self.value)
        if found is None or limit is None:
            return False
        return found > limit if self.compares == "gt" else found < limit


@dataclass(frozen=True, slots=True)
class Tolerates:
    """Every taint of a host whose effect is among ``effects`` is covered by one of the tolerations."""

    tolerations: tuple[Toleration, ...] = ()
    effects: tuple[str, ...] = REFUSING_EFFECTS

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether a host with these attributes has no taint that refuses."""
        return self.accepts(_taints(attributes))

    def accepts(self, taints: Iterator[tuple[str, str, str]] | tuple[tuple[str, str, str], ...]) -> bool:
        """Whether none of the taints (effect, key, value) refuses."""
        return all(
            effect not in self.effects or any(one.covers(effect, key, value) for one in self.tolerations)
            for effect, key, value in taints
        )

    def __str__(self) -> str:
        return "taints tolerated"


Condition: TypeAlias = Constraint | AnyOf | Tolerates


@dataclass(frozen=True, slots=True)
class Term:
    """All conditions of a request together; a host must satisfy every one.

    Equal terms are stored once in a workload and evaluated once per host.
    """

    constraints: tuple[Condition, ...] = ()

    def holds(self, attributes: Mapping[str, str]) -> bool:
        """Whether a host with these attributes satisfies the term."""
        return all(constraint.holds(attributes) for constraint in self.constraints)

    def __str__(self) -> str:
        return " and ".join(map(str, self.constraints)) or "anywhere"


NO_CONSTRAINT = Term()
