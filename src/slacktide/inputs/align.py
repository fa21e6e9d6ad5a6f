"""Workload and hosts over the same resources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import InputError, Problem
from slacktide.model import Hosts, Workload

FIRST = ("cpu", "memory")


def align(
    workload: Workload, hosts: Hosts, *, workload_file: str = "workload", hosts_file: str = "hosts"
) -> tuple[Workload, Hosts]:
    """Both with the same ``resources``: cpu, memory, then the hosts' others in their order.

    Of a resource that the workload does not mention every request demands 0.
    Raises :class:`InputError` for a resource that the hosts do not have, naming the files.
    """
    problems = [
        Problem(file, 0, resource, "", f"this resource: {other} has it; here: {', '.join(having)}")
        for file, having, other, needed in (
            (hosts_file, hosts.resources, workload_file, workload.resources),
            (hosts_file, hosts.resources, "every host", FIRST),
        )
        for resource in needed
        if resource not in having
    ]
    if problems:
        raise InputError(problems)
    resources = (*FIRST, *(name for name in hosts.resources if name not in FIRST))
    demand = _arranged(workload.demand, workload.resources, resources)
    limit = None if workload.limit is None else _arranged(workload.limit, workload.resources, resources)
    return (
        replace(workload, demand=demand, limit=limit, resources=resources),
        replace(hosts, capacity=_arranged(hosts.capacity, hosts.resources, resources), resources=resources),
    )


def _arranged(amounts: NDArray[np.float64], having: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.float64]:
    if having == wanted:
        return amounts
    columns = [
        amounts[:, having.index(name)] if name in having else np.zeros(len(amounts), dtype=np.float64)
        for name in wanted
    ]
    return np.stack(columns, axis=1)
