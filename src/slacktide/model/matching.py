"""Which hosts satisfy which terms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

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
    masks = HostMasks(hosts.attributes)
    for row, term in enumerate(terms):
        masks.narrow(term, found[row])
    return found


class HostMasks:
    """What terms say of hosts, each condition asked for once. Hosts may change, their number does not."""

    def __init__(self, attributes: Sequence[Mapping[str, str]]) -> None:
        self._attributes = list(attributes)
        self._values: dict[str, _Numbered[str | None]] = {}
        self._taints: _Numbered[tuple[tuple[str, str, str], ...]] | None = None
        self._masks: dict[Condition, NDArray[np.bool_]] = {}

    def __len__(self) -> int:
        return len(self._attributes)

    def change(self, host: int, attributes: Mapping[str, str]) -> None:
        """A host has other attributes now."""
        self._attributes[host] = attributes
        self._masks.clear()
        for key, values in self._values.items():
            values.change(host, attributes.get(key))
        if self._taints is not None:
            self._taints.change(host, taints_of(attributes))

    def of(self, term: Term) -> NDArray[np.bool_]:
        """Which hosts satisfy the term, shape (hosts,)."""
        found = np.ones(len(self), dtype=np.bool_)
        self.narrow(term, found)
        return found

    def narrow(self, term: Term, into: NDArray[np.bool_]) -> None:
        """Clears the places of ``into`` whose hosts fail the term."""
        for condition in term.constraints:
            mask = self._masks.get(condition)
            if mask is None:
                mask = self._masks[condition] = self._mask(condition)
            into &= mask

    def forget_conditions(self) -> None:
        """Keep no answers to single conditions."""
        self._masks.clear()

    def _mask(self, condition: Condition) -> NDArray[np.bool_]:
        if isinstance(condition, Constraint):
            key = condition.key
            if key not in self._values:
                self._values[key] = _Numbered(one.get(key) for one in self._attributes)
            values = self._values[key]
            return np.array(_holds(condition, list(values.numbers)), dtype=np.bool_)[values.places]
        if isinstance(condition, AnyOf):
            some = np.zeros(len(self), dtype=np.bool_)
            for term in condition.terms:
                some |= self.of(term)
            return some
        if self._taints is None:
            self._taints = _Numbered(map(taints_of, self._attributes))
        taints = self._taints
        return np.array([condition.accepts(one) for one in taints.numbers], dtype=np.bool_)[taints.places]


def _holds(constraint: Constraint, values: Sequence[str | None]) -> list[bool]:
    if constraint.op in ("in", "not in"):  # both may be long
        among = frozenset(constraint.values)
        return [(value in among) == (constraint.op == "in") for value in values]
    return [constraint.holds({} if value is None else {constraint.key: value}) for value in values]


class _Numbered(Generic[_T]):
    """Distinct values in order of appearance, and which of them each host has."""

    def __init__(self, values: Iterable[_T]) -> None:
        self.numbers: dict[_T, int] = {}
        self.places = np.array([self.numbers.setdefault(one, len(self.numbers)) for one in values], dtype=np.int64)

    def change(self, host: int, value: _T) -> None:
        """A host has another value; those that no host has any more are forgotten now and then."""
        self.places[host] = self.numbers.setdefault(value, len(self.numbers))
        if len(self.numbers) > 2 * len(self.places) + 64:
            known = list(self.numbers)
            used, self.places = np.unique(self.places, return_inverse=True)
            self.numbers = {known[number]: place for place, number in enumerate(used.tolist())}
