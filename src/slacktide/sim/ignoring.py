"""What a run leaves out of account of what its workload says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slacktide.config import Config
from slacktide.model import NO_CONSTRAINT, Workload


def considered(workload: Workload, config: Config) -> Workload:
    """The workload as the run sees it: with ``simulation.ignore = constraints`` anybody may run on any host that has
    room. Marks and preferences stay."""
    if config.simulation.ignore == "nothing":
        return workload
    return replace(
        workload,
        anti_affinity=np.zeros_like(workload.anti_affinity),
        term=np.zeros_like(workload.term),
        terms=(NO_CONSTRAINT,),
        placements=tuple(replace(one, rules=()) for one in workload.placements),
    )
