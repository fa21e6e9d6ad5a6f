"""Which hosts satisfy which terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from slacktide.model.constraint import Constraint, Term
from slacktide.model.hosts import Hosts


def matching_hosts(terms: Sequence[Term], hosts: Hosts) -> NDArray[np.bool_]:
    """Shape (len(terms), len(hosts)): whether the host's attributes satisfy the term.

    Each distinct constraint is asked once for every distinct value of its key.
    """
    found = np.ones((len(terms), len(hosts)), dtype=np.bool_)
    codes: dict[str, tuple[list[str | None], NDArray[np.int64]]] = {}
    masks: dict[Constraint, NDArray[np.bool_]] = {}
    for row, term in enumerate(terms):
        for constraint in term.constraints:
            if constraint not in masks:
                if constraint.key not in codes:
                    codes[constraint.key] = _codes(constraint.key, hosts)
                values, places = codes[constraint.key]
                holds = [constraint.holds({} if value is None else {constraint.key: value}) for value in values]
                masks[constraint] = np.array(holds, dtype=np.bool_)[places]
            found[row] &= masks[constraint]
    return found


def _codes(key: str, hosts: Hosts) -> tuple[list[str | None], NDArray[np.int64]]:
    numbers: dict[str | None, int] = {}
    places = [numbers.setdefault(one.get(key), len(numbers)) for one in hosts.attributes]
    return list(numbers), np.array(places, dtype=np.int64)
