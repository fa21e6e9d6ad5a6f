"""What an instance asks of its neighbours, what it would rather have, and how many of its kind may be disrupted.

Instances carry *marks*; hosts lie in *domains*, one for each value of a topology's
attribute. A rule compares how many instances with a mark run in a host's domain.
Host ports, claims that one instance at a time may use, and Kubernetes' affinity,
anti-affinity and spread all come down to marks and rules (docs/semantics.md,
'Neighbours, preferences and budgets').
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slacktide.errors import ConfigError
from slacktide.model.constraint import NO_CONSTRAINT, Term

HOST = ""
"""Topology key: every host is a domain of its own."""
CLUSTER = "*"
"""Topology key: all hosts are one domain."""

RuleKind = Literal["near", "away", "spread"]


@dataclass(frozen=True, slots=True)
class Topology:
    """Domains: hosts with the same value of attribute ``key``, of those that satisfy ``within``.

    A host without the attribute, or outside ``within``, lies in no domain.
    """

    key: str = HOST
    within: Term = NO_CONSTRAINT


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on the instances with ``mark`` that run in a host's domain.

    near    one at least; or nowhere any, and the instance itself carries the mark. A host in no domain fails.
    away    none. A host in no domain satisfies it.
    spread  their number, this instance among them if it carries the mark, exceeds the least of all domains by
            ``skew`` at most; the least is 0 where there are fewer than ``min_domains``. A host in no domain fails.
    """

    kind: RuleKind
    mark: str
    topology: Topology = Topology()  # frozen
    skew: int = 1
    min_domains: int = 1

    def __hash__(self) -> int:
        return hash((self.mark, self.kind))  # marks tell rules apart; a pod can have thousands, each hashed often


@dataclass(frozen=True, slots=True)
class Preference:
    """Points of a host: ``weight`` for each instance with ``mark`` in its domain; without a mark, where it satisfies
    ``term``. Negative weights repel."""

    weight: int
    mark: str = ""
    topology: Topology = Topology()  # frozen
    term: Term = NO_CONSTRAINT


@dataclass(frozen=True, slots=True)
class Placement:
    """All that an instance has to do with its neighbours, besides its term; equal ones are stored once."""

    marks: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    preferences: tuple[Preference, ...] = ()

    @property
    def asked(self) -> tuple[tuple[str, Topology], ...]:
        """The marks that rules and preferences are about, each with where they are counted."""
        rules = tuple((one.mark, one.topology) for one in self.rules)
        return rules + tuple((one.mark, one.topology) for one in self.preferences if one.mark)


NO_NEIGHBOURS = Placement()


@dataclass(frozen=True, slots=True)
class Budget:
    """How many instances may be disrupted (a PodDisruptionBudget): one of the two is given.

    Raises :class:`ConfigError` naming the budget, the field and the value.
    """

    name: str
    max_unavailable: int | None = None
    min_available: int | None = None

    def __post_init__(self) -> None:
        if (self.max_unavailable is None) == (self.min_available is None):
            raise ConfigError(f"budget {self.name!r}: give either max_unavailable or min_available")
        given = self.min_available if self.max_unavailable is None else self.max_unavailable
        if given is None or given < 0:
            raise ConfigError(f"budget {self.name!r}: found {given!r}, expected a whole number, 0 or more")
