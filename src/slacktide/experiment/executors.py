"""Who carries out runs: processes of this machine, or a cluster."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any

from slacktide.experiment.local import Processes
from slacktide.experiment.store import Store


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def executor(store: Store, jobs: int, cluster: str | None) -> AbstractContextManager[Any]:
    """``jobs`` runs at a time here, or those of the Dask scheduler at ``cluster``."""
    if cluster is None:
        return Processes(jobs)
    from slacktide.experiment.cluster import Cluster

    return Cluster(cluster, store.folder)
