"""Host sets of any size from one mix of hosts, the smaller ones parts of the larger ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slacktide.model import Hosts


def in_proportion(hosts: Hosts) -> NDArray[np.int64]:
    """Rows of ``hosts``, shape (h,), in an order of which every beginning has about the mix of the whole.

    Hosts of equal capacity are a kind. The i-th (from 0) of a kind of g stands at (i + 1/2) / g; equal places go by
    the first row of the kind. Within a kind rows are in a fixed random order, as files often list hosts of one
    attribute after the other.
    """
    shuffled = np.random.default_rng(0).permutation(len(hosts))
    _, first, kind = np.unique(hosts.capacity, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)[shuffled]
    sizes = np.bincount(kind, minlength=len(first))
    by_kind = np.argsort(kind, kind="stable")
    number = np.empty(len(hosts), np.int64)
    number[by_kind] = np.arange(len(hosts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = (number + 0.5) / sizes[kind]
    return shuffled[np.lexsort((first[kind], place))]


def first(hosts: Hosts, count: int) -> Hosts:
    """``count`` (at least 1) hosts: those of :func:`in_proportion`, over and over.

    The set of a smaller count is part of that of a larger one. The second host of a name is called ``NAME*2`` and so
    on, and all are numbered from 1.
    """
    order = in_proportion(hosts)
    rows = np.resize(order, count)
    copies = np.arange(count) // len(hosts) + 1
    names = tuple(
        hosts.names[row] if copy == 1 else f"{hosts.names[row]}*{copy}"
        for row, copy in zip(rows.tolist(), copies.tolist(), strict=True)
    )
    return replace(
        hosts,
        ids=np.arange(1, count + 1),
        names=names,
        capacity=hosts.capacity[rows],
        attributes=tuple(hosts.attributes[row] for row in rows.tolist()),
    )
