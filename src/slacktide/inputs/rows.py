"""Rows of workloads: taken out, put together. Rows of hosts: as many as wanted. Both over the same resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import InputError, Problem
from slacktide.model import Hosts, Requests, Workload

COLUMNS = ("ids", "admission", "duration", "demand", "service_class", "job", "anti_affinity", "term")
"""The fields of every workload that hold one entry per row."""
OPTIONAL = ("placement", "budget", "limit", "access", "resize", "lost", "grace", "unready", "label")
"""As ``COLUMNS``, where they are not ``None``."""
TABLES = (
    *("classes", "terms", "resources", "placements", "budgets", "resizings", "losses", "accesses", "spells", "labels"),
)
"""What numbers in these columns point at."""


def columns_of(workload: Workload) -> tuple[str, ...]:
    """The fields of this workload that hold one entry per row, but for ``request``."""
    return (*COLUMNS, *(name for name in OPTIONAL if getattr(workload, name) is not None))


def equal_hosts(count: int, amounts: Mapping[str, float], attributes: Mapping[str, str] | None = None) -> Hosts:
    """Hosts from ``host-1`` on with the same amounts of resources by name, and with the same attributes."""
    return Hosts(
        ids=np.arange(1, count + 1),
        names=tuple(f"host-{number}" for number in range(1, count + 1)),
        capacity=np.tile(np.array(list(amounts.values()), np.float64), (count, 1)),
        attributes=(attributes or {},) * count,
        resources=tuple(amounts),
    )


def select(workload: Workload, rows: NDArray[np.int64] | slice) -> Workload:
    """The workload of these rows, in this order.

    Of a request of several instances all rows have to be taken, or none; requests keep their order.
    Raises :class:`ValueError` for a part of one.
    """
    chosen = replace(workload, **{name: getattr(workload, name)[rows] for name in columns_of(workload)})
    if workload.requests is None or workload.request is None:
        return chosen
    request = workload.request[rows]
    taken = np.bincount(request, minlength=len(workload.requests))
    partly = (taken > 0) & (taken != np.bincount(workload.request, minlength=len(workload.requests)))
    if partly.any():
        number = workload.requests.ids[np.argmax(partly)]
        raise ValueError(f"rows: found a part of the instances of request {number}, expected all of them or none")
    kept = taken > 0
    place = (np.cumsum(kept) - 1).astype(np.int32)
    return replace(chosen, request=place[request], requests=_kept(workload.requests, kept, place))


def join(pieces: Sequence[Workload]) -> Workload:
    """One workload of the pieces' rows, one piece after the other.

    The pieces, at least one, share what ``TABLES`` lists, in order of admission: what scale events of one piece add is
    admitted before the next begins. Either all have ``requests``, ``placement``, ``budget``, ``resize`` or ``lost``, or
    none has, else :class:`ValueError` is raised.
    """
    names = columns_of(pieces[0])
    if any(columns_of(one) != names for one in pieces):
        raise ValueError(
            "pieces: found some with placements, budgets, limits, accesses, resizes or losses, expected all or none"
        )
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in pieces]) for name in names}
    numbers = [one.request for one in pieces if one.request is not None]
    parts = [one.requests for one in pieces if one.requests is not None]
    if not len(numbers) == len(parts) or len(parts) not in (0, len(pieces)):
        raise ValueError("pieces: found some with requests of several instances, expected all or none")
    if not parts:
        return replace(pieces[0], **columns)
    before = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int32)[:-1]
    columns["request"] = np.concatenate([one + start for one, start in zip(numbers, before, strict=True)])
    return replace(pieces[0], **columns, requests=_joined(parts, before))


def _kept(requests: Requests, kept: NDArray[np.bool_], place: NDArray[np.int32]) -> Requests:
    events = kept[requests.scale_request]
    return Requests(
        ids=requests.ids[kept],
        batch=requests.batch[kept],
        approach=requests.approach[kept],
        parallelism=requests.parallelism[kept],
        scale_time=requests.scale_time[events],
        scale_request=place[requests.scale_request[events]],
        scale_replicas=requests.scale_replicas[events],
    )


def _joined(parts: Sequence[Requests], before: NDArray[np.int32]) -> Requests:
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Requests.__slots__}
    columns["scale_request"] = np.concatenate(
        [part.scale_request + start for part, start in zip(parts, before, strict=True)]
    )
    order = np.argsort(columns["scale_time"], kind="stable")
    for name in ("scale_time", "scale_request", "scale_replicas"):
        columns[name] = columns[name][order]
    return Requests(**columns)


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
