"""Instances back to the rows of a file that stand for them; only what reading expands to the same is let through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import InputError, OutputError
from slacktide.inputs.columns.cells import Distinct
from slacktide.inputs.columns.instances import (
    BATCH,
    SERVICE,
    RequestColumns,
    Scale,
    check,
    expand,
    format_scale,
    parse_scale,
)
from slacktide.inputs.problems import Problems
from slacktide.inputs.rows import columns_of
from slacktide.model import Requests, Workload

Integers = NDArray[np.int64]


def collapse(workload: Workload, path: Path) -> tuple[Workload, RequestColumns | None]:
    """The rows of a file that reading expands to ``workload``, and what their columns of requests hold.

    The rows have no ``requests``; the columns are ``None`` where the workload has none. A parallelism that
    limits nothing, as there are no more instances than that, becomes none.
    Where the instances of a request differ and each has an id of its own, all have a row each. Raises
    :class:`OutputError` naming ``path`` and a request that no row stands for.
    """
    requests, request = workload.requests, workload.request
    if requests is None or request is None:
        return workload, None
    try:
        return _row_of_each_request(workload, requests, request, path)
    except OutputError:
        members = _members(workload, requests, request)
        if members is None:
            raise
        return replace(workload, request=None, requests=None), members


def _members(workload: Workload, requests: Requests, request: NDArray[np.int32]) -> RequestColumns | None:
    """The columns of a file with a row for each instance; None where such a file is not read as this workload."""
    sizes = np.bincount(request, minlength=len(requests))
    if len(np.unique(workload.ids)) < len(workload) or not sizes.all() or (requests.scale_replicas < 0).any():
        return None
    try:
        scale, scales = _scales(Path(), requests)
    except OutputError:
        return None
    batch = requests.batch
    columns = RequestColumns(
        kind=np.where(batch, BATCH, SERVICE).astype(np.int8)[request],
        instances=np.where(batch, 0, 1)[request],
        completions=np.where(batch, 1, 0)[request],
        parallelism=np.where(batch, np.where(requests.parallelism > 0, requests.parallelism, sizes), 0)[request],
        approach=requests.approach[request],
        scale=scale[request],
        scales=scales,
        member=requests.ids[request],
    )
    problems = Problems("")
    check(columns, workload.admission, None, problems)
    if problems.total:
        return None
    found = expand(columns, workload.ids, workload.admission)
    names = Requests.__slots__
    same = [np.array_equal(getattr(found.requests, name), getattr(requests, name)) for name in names]
    return columns if all(same) and np.array_equal(found.request, request) else None


def _row_of_each_request(
    workload: Workload, requests: Requests, request: NDArray[np.int32], path: Path
) -> tuple[Workload, RequestColumns]:
    """As :func:`collapse`, a row for each request."""
    rows = np.bincount(request, minlength=len(requests))
    if not rows.all():
        raise _refusal(path, requests, int(np.argmin(rows)), "expected at least one instance")
    first = np.argsort(request, kind="stable")[np.cumsum(rows) - rows]
    for name in columns_of(workload):
        if name != "admission":
            _check_shared(path, requests, request, name, getattr(workload, name), first)
    _check_ids(path, requests, workload.ids[first])
    columns = _columns(path, requests, request, workload.admission, first)
    problems = Problems(str(path))
    check(columns, workload.admission[first], requests.ids, problems)
    try:
        problems.raise_if_any()
    except InputError as error:
        one = error.problems[0]
        raise OutputError(
            f"{path}: request {one.line}: {one.column}: found {one.value!r}, expected {one.expected}"
        ) from error
    _check_expansion(path, workload, requests, request, columns, first)
    plain = {name: getattr(workload, name)[first] for name in columns_of(workload)}
    return replace(workload, **plain, request=None, requests=None), columns


def _refusal(path: Path, requests: Requests, number: int, why: str) -> OutputError:
    return OutputError(f"{path}: request {requests.ids[number]}: {why}")


def _check_shared(
    path: Path, requests: Requests, request: NDArray[np.int32], name: str, column: NDArray[np.generic], first: Integers
) -> None:
    """All instances of a request are alike in this column."""
    differs = np.asarray(column != column[first][request])
    differs = np.asarray(differs.any(axis=tuple(range(1, differs.ndim))))
    if differs.any():
        number = int(request[np.argmax(differs)])
        raise _refusal(
            path, requests, number, f"its instances differ in {name}; a row of a file stands for equal instances"
        )


def _check_ids(path: Path, requests: Requests, ids: Integers) -> None:
    """The rows' numbers are those of their requests, each once."""
    differs = np.asarray(ids != requests.ids)
    if differs.any():
        number = int(np.argmax(differs))
        raise _refusal(
            path, requests, number, f"its instances have the id {ids[number]}; a file has one id for request and rows"
        )
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(np.diff(ids[order]) == 0)
    if len(again):
        raise _refusal(path, requests, int(order[again[0]]), "expected an id that no other request has")


def _columns(
    path: Path, requests: Requests, request: NDArray[np.int32], admission: NDArray[np.float64], first: Integers
) -> RequestColumns:
    """What the columns must hold if the instances that are not there at first have come by scale events."""
    batch = requests.batch
    at_first = np.bincount(request[admission == admission[first][request]], minlength=len(requests))
    limited = (requests.parallelism > 0) & (requests.parallelism < at_first)
    scale, scales = _scales(path, requests)
    return RequestColumns(
        kind=np.where(batch, BATCH, SERVICE).astype(np.int8),
        instances=np.where(batch, 0, at_first),
        completions=np.where(batch, at_first, 0),
        parallelism=np.where(batch & ~limited, at_first, requests.parallelism),
        approach=requests.approach,
        scale=scale,
        scales=scales,
    )


def _scales(path: Path, requests: Requests) -> tuple[NDArray[np.int32], tuple[Scale, ...]]:
    """The scaling of each request, by its number in the list of distinct ones."""
    events: dict[int, list[tuple[float, int]]] = {}
    columns = (requests.scale_request, requests.scale_time, requests.scale_replicas)
    for number, time, replicas in zip(*(column.tolist() for column in columns), strict=True):
        events.setdefault(number, []).append((time, replicas))
    table = Distinct(parse_scale)
    scale = np.zeros(len(requests), np.int32)
    for number, found in events.items():
        text = format_scale(tuple(found))
        try:
            scale[number] = table.number(text)
        except ValueError as error:
            raise _refusal(path, requests, number, f"scale: found {text!r}, expected increasing seconds") from error
    return scale, table.values


def _check_expansion(
    path: Path,
    workload: Workload,
    requests: Requests,
    request: NDArray[np.int32],
    columns: RequestColumns,
    first: Integers,
) -> None:
    """Reading gives the same instances in the same order."""
    found = expand(columns, requests.ids, workload.admission[first])
    have = np.bincount(request, minlength=len(requests))
    wanted = np.bincount(found.request, minlength=len(requests))
    own = np.argsort(request, kind="stable")
    if np.array_equal(have, wanted):
        differs = np.flatnonzero(workload.admission[own] != found.admission)
        number = int(found.request[differs[0]]) if len(differs) else -1
    else:
        number = int(np.argmax(have != wanted))
    if number >= 0:
        raise _refusal(
            path,
            requests,
            number,
            "its instances are not all admitted at once, and no scale event accounts for the others",
        )
    differs = np.flatnonzero(found.request[np.argsort(found.admission, kind="stable")] != request)
    if len(differs):
        raise _refusal(
            path,
            requests,
            int(request[differs[0]]),
            "its instances take turns with those of a request admitted at the same instant, or rows are not in order "
            "of admission; those of a row of a file follow each other, in the order of the requests",
        )
    for name in ("scale_time", "scale_request", "scale_replicas"):
        if not np.array_equal(getattr(found.requests, name), getattr(requests, name)):
            raise OutputError(f"{path}: expected scale events in order of time, then of requests")
