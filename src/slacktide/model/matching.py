"""Which hosts satisfy which terms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from slacktide.model.constraint import AnyOf, Condition, Constraint, Term, taints_of
from slacktide.model.hosts import Hosts

_T = TypeVar("_T", bound=Hashable)


def matches(term: Term, attributes: Mapping[str, str]) -> bool:
    """Whether one host with these attributes satisfies the term."""
    return term.holds(attributes)


def matching_hosts(terms: Sequence[Term], hosts: Hosts) -> NDArray[np.bool_]:
    """Shape (len(terms), len(hosts)): whether the host's attributes satisfy the term.

    Each distinct constraint is asked once for every distinct value of its key, and
    tolerations once for every distinct set of taints.
    """
    found = np.ones((len(terms), len(hosts)), dtype=np.bool_)
    masks = _Masks(hosts)
    for row, term in enumerate(terms):
        masks.narrow(term, found[row])
    return found


class _Masks:
    """What each condition says of every host, asked for once."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._codes: dict[str, tuple[list[str | None], NDArray[np.int64]]] = {}
        self._taints: tuple[list[tuple[tuple[str, str, str], ...]], NDArray[np.int64]] | None = None
        self._masks: dict[Condition, NDArray[np.bool_]] = {}

    def narrow(self, term: Term, into: NDArray[np.bool_]) -> None:
        """Clears the places of ``into`` whose hosts fail the term."""
        for condition in term.constraints:
            mask = self._masks.get(condition)
            if mask is None:
                mask = self._masks[condition] = self._mask(condition)
            into &= mask

    def _mask(self, condition: Condition) -> NDArray[np.bool_]:
        if isinstance(condition, Constraint):
            if condition.key not in self._codes:
                key = condition.key
                self._codes[key] = _numbered(self._hosts, lambda one: one.get(key))
            values, places = self._codes[condition.key]
            return np.array(_holds(condition, values), dtype=np.bool_)[places]
        if isinstance(condition, AnyOf):
            some = np.zeros(len(self._hosts), dtype=np.bool_)
            for term in condition.terms:
                one = np.ones(len(self._hosts), dtype=np.bool_)
                self.narrow(term, one)
                some |= one
            return some
        if self._taints is None:
            self._taints = _numbered(self._hosts, taints_of)
        taints, places = self._taints
        return np.array([condition.accepts(one) for one in taints], dtype=np.bool_)[places]


def _holds(constraint: Constraint, values: Sequence[str | None]) -> list[bool]:
    if constraint.op in ("in", "not in"):  # both may be long
        among = frozenset(constraint.values)
        return [(value in among) == (constraint.op == "in") for value in values]
    return [constraint.holds({} if value is None else {constraint.key: value}) for value in values]


def _numbered(hosts: Hosts, look: Callable[[Mapping[str, str]], _T]) -> tuple[list[_T], NDArray[np.int64]]:
    numbers: dict[_T, int] = {}
    places = [numbers.setdefault(look(one), len(numbers)) for one in hosts.attributes]
    return list(numbers), np.array(places, dtype=np.int64)
