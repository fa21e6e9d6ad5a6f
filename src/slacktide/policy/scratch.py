"""A copy of a cluster's tables to decide on, so that deciding changes nothing."""

from __future__ import annotations

import numpy as np

from slacktide.kernels import room
from slacktide.kernels.tables import ARRAYS, Tables
from slacktide.state import cluster

SHARED = (
    "admission",
    "duration",
    "hot",
    "cold",
    "happenings",
    "triggers",
    "demand",
    "capacity",
    "scale",
    "allowed",
    "groups",
    "member",
    "owner",
    "scalings",
    "resizings",
    "domain",
    "marks",
    "likings",
    "budget",
    "guard",
    "limit",
    "asks",
    "logins",
    "images",
    "place",
    "place_hosts",
    "rtt",
    "gamma",
)
"""Arrays that deciding never writes to."""


class Scratch:
    """Keeps the memory of the copy from one pass to the next."""

    def __init__(self) -> None:
        self._tables: Tables | None = None

    @property
    def tables(self) -> Tables:
        if self._tables is None:
            raise ValueError("nothing copied yet")
        return self._tables

    def copy_of(self, tables: Tables) -> Tables:
        """A copy that may be written to; valid until the next call. O(size of the tables)."""
        if self._tables is None:
            arrays = {name: tables[name] if name in SHARED else tables[name].copy() for name in ARRAYS}
            self._tables = Tables(tables.rules.copy(), tables.control.copy(), arrays)
            return self._tables
        mine = self._tables
        for name in ARRAYS:
            if name in SHARED:
                continue
            if mine[name].shape == tables[name].shape:
                np.copyto(mine[name], tables[name])
            else:
                mine.put(name, tables[name].copy())
        mine.adopt(tables)
        return mine

    def grow(self, code: int) -> bool:
        """Serve what the pass stopped for; whether it must go on."""
        tb = self.tables
        if code == room.FINISHED:
            return False
        if code in cluster.GROWERS:
            cluster.GROWERS[code](tb)
        else:
            for name in ("events", "decisions", "victims", "passes"):
                cluster.lengthen(tb, name, 2 * len(tb[name]))
        return True
