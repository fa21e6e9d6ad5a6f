"""Workloads whose rows are tasks of jobs, as requests of several instances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.columns.instances import WHY_AGGREGATED
from slacktide.model import AGGREGATED, APPROACHES, Requests, Workload


def group_by_job(workload: Workload, *, approach: str = "independent", batch: bool = False) -> Workload:
    """The rows of equal job and service class as one request each.

    Requests are in order of their first rows, and have their jobs' numbers; rows keep all they have.
    ``approach`` is one of ``APPROACHES``; ``batch`` makes batch requests, all of whose instances may be at
    work at once. Raises :class:`ConfigError` for an unknown approach, for batch requests that are not
    aggregated, and for a workload that has requests already.
    """
    if approach not in APPROACHES:
        raise ConfigError(f"approach: found {approach!r}, expected {expected_name(approach, APPROACHES)}")
    if batch and approach != APPROACHES[AGGREGATED]:
        raise ConfigError(
            f"approach: found {approach!r}, expected {APPROACHES[AGGREGATED]} for batch requests: {WHY_AGGREGATED}"
        )
    if workload.requests is not None:
        raise ConfigError("workload: found requests of several instances in it, expected rows to be grouped by job")
    job = np.unique(workload.job, return_inverse=True)[1].reshape(-1)
    pair = job * len(workload.classes) + workload.service_class
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    count = len(order)
    return replace(
        workload,
        request=number[group.reshape(-1)],
        requests=Requests(
            ids=workload.job[first[order]],
            batch=np.full(count, batch),
            approach=np.full(count, APPROACHES.index(approach), np.int8),
            parallelism=np.zeros(count, np.int64),
            scale_time=np.zeros(0),
            scale_request=np.zeros(0, np.int32),
            scale_replicas=np.zeros(0, np.int64),
        ),
    )
