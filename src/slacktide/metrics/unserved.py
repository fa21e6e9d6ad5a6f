"""Who never had a host in a run, and whether any host could have taken it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.model import Hosts, Workload
from slacktide.model.matching import matching_hosts
from slacktide.model.resting import PART, let_go


@dataclass(frozen=True, slots=True)
class Unserved:
    """Of one class: ``instances`` that never had a host, and how many of these fit on none, be it ``empty``."""

    service: str
    instances: int
    too_large: int


def unserved(columns: Mapping[str, NDArray[Any]], workload: Workload, hosts: Hosts) -> list[Unserved]:
    """By class, those that never had a host, of classes that have any; O(them and the hosts for each distinct demand).

    ``columns`` are those of the instances of a run, shape (n,): ``row`` in the workload, ``starts``, and ``removed``
    (s, NaN: not) where the workload has requests of several instances. Who was removed does not count.
    """
    rows = _never_served(columns)
    if not len(rows):
        return []
    fits = _fits(workload, hosts, rows)
    found = []
    for code, one in enumerate(workload.classes):
        mine = workload.service_class[rows] == code
        if mine.any():
            found.append(Unserved(one.name, int(mine.sum()), int((mine & ~fits).sum())))
    return found


def _never_served(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Rows in the workload of those that never had a host and were not removed, part by part."""
    found = []
    for at in range(0, len(columns["row"]), PART):
        part = slice(at, at + PART)
        never = columns["starts"][part] == 0
        if "removed" in columns:
            never &= np.isnan(columns["removed"][part])
        found.append(columns["row"][part][never])
        let_go(*columns.values())
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _fits(workload: Workload, hosts: Hosts, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether any host, empty, satisfies the term of a row and has room for what it demands at first."""
    asked = np.column_stack([workload.demand[rows], workload.term[rows]])
    kinds, of = np.unique(asked, axis=0, return_inverse=True)
    allowed = matching_hosts(workload.terms, hosts)
    able = [bool(((hosts.capacity >= kind[:-1]).all(axis=1) & allowed[int(kind[-1])]).any()) for kind in kinds]
    return np.array(able)[of.reshape(-1)]
