"""Unreadiness as the core knows it: spells of all rows, in order of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import log_records
from slacktide.model import Workload
from slacktide.state import layout


def arrays(workload: Workload) -> dict[str, NDArray[Any]]:
    """The array ``spells``, and what start-ups cost before them; none where nobody is ever unready. O(instances +
    spells)."""
    if workload.unready is None:
        return {}
    rows = np.flatnonzero(workload.unready).tolist()
    told = [(*spell, row) for row in rows for spell in workload.spells[int(workload.unready[row])]]
    spells = np.zeros(len(told), log_records.SPELL)
    begin, seconds, row = np.array(told).reshape(-1, 3).T
    spells["time"], spells["seconds"], spells["row"] = layout.on_grid(begin), layout.on_grid(seconds), row
    return {
        "spells": spells[np.lexsort((spells["row"], spells["time"]))],
        "startups_before": np.zeros(len(workload)),
    }
