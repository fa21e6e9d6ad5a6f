"""A copy of a cluster's tables to decide on, so that deciding changes nothing."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.tables.arrays import ARRAYS, Tables

SHARED = tuple(name for name, array in ARRAYS.items() if array.fixed)
"""Arrays that deciding never writes to."""


class Scratch:
    """Keeps the memory of the copy from one pass to the next."""

    def __init__(self) -> None:
        self._tables: Tables | None = None

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
