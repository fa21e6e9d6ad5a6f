"""Groups of a live cluster's hosts, found from what changed since they were last found.

Each selector is asked once for every host, and each host that is new or changed once by every selector. Hosts that
were in one group stay alike unless one of them changed or a new selector tells them apart, so only one host of each is
compared. What comes out is equal, to the last number, to what :func:`.layout.group_hosts` finds anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slacktide.model import Term
from slacktide.model.matching import HostMasks
from slacktide.state import layout

MANY_TERMS = 32
"""So many new selectors at once (a new leader's) are cheaper to compare all at once."""


class HostGroups:
    """Which hosts satisfy which terms, and the groups that follow."""

    def __init__(self) -> None:
        self._masks = HostMasks(())
        self._rows: dict[Term, NDArray[np.bool_]] = {}

    def regroup(
        self,
        capacity: NDArray[np.int64],
        group: NDArray[np.int32],
        terms: Collection[Term],
        attributes: Sequence[Mapping[str, str]],
        changed: Collection[int],
    ) -> layout.Grouping:
        """The groups of all hosts by these terms. ``group`` is where they were; ``changed`` are hosts that have other
        attributes or amounts than then. O(changed x terms + new terms x hosts)."""
        count = len(capacity)
        known = len(self._masks) == count
        if known:
            self._change(attributes, changed)
        else:
            self._masks, self._rows = HostMasks([*attributes, *[{}] * (count - len(attributes))]), {}
        fresh = [term for term in terms if term not in self._rows]
        self._rows = {term: self._rows[term] if term in self._rows else self._masks.of(term) for term in terms}
        self._masks.forget_conditions()
        rows = list(self._rows.values())
        if not known or len(fresh) > MANY_TERMS:
            return layout.group_hosts(capacity, np.array(rows))
        code = group.astype(np.int64)
        at = np.fromiter(changed, np.int64)
        code[at] = count + np.arange(len(at))
        for term in fresh:
            _, code = np.unique(2 * code + self._rows[term], return_inverse=True)
        _, first, place = np.unique(code, return_index=True, return_inverse=True)
        return layout.group_hosts(capacity[first], np.array([row[first] for row in rows]), place)

    def _change(self, attributes: Sequence[Mapping[str, str]], changed: Collection[int]) -> None:
        for h in changed:
            self._masks.change(h, attributes[h])
            for term, row in self._rows.items():
                row[h] = term.holds(attributes[h])
