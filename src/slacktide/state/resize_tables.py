"""Resizes as the core knows them: each row's next kinds, made before the run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import request_records
from slacktide.model import Workload
from slacktide.state import layout

PER_ROW = (
    *("ids", "admission", "duration", "service_class", "job", "anti_affinity", "term", "placement", "budget"),
    *("limit", "access", "resize", "grace", "unready"),
)
"""Fields of a workload with an entry per row, besides the demand; None where nobody has any."""


def _steps(workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows, seconds and demands, shapes (k,), (k,) and (k, resources), of all changes of demand; O(changes)."""
    assert workload.resize is not None  # noqa: S101  # for the type checker
    rows = np.flatnonzero(workload.resize)
    longest = max(map(len, workload.resizings))
    count = len(workload.resizings)
    times = np.full((count, longest), np.inf)
    amounts = np.full((count, longest, len(workload.resources)), np.nan)
    for code, resizing in enumerate(workload.resizings):
        for step, (time, named) in enumerate(resizing):
            times[code, step] = time
            for name, amount in named:
                amounts[code, step, workload.resources.index(name)] = amount
    demand, codes = workload.demand[rows], workload.resize[rows]
    found: list[tuple[Any, Any, Any]] = [(rows[:0], times[:0, 0] if longest else np.zeros(0), demand[:0])]
    for place in range(longest):
        some = np.flatnonzero(np.isfinite(times[codes, place]))
        asked = amounts[codes[some], place]
        demand[some] = np.where(np.isnan(asked), demand[some], asked)
        found.append((rows[some], times[codes[some], place], demand[some]))
    row, at, wanted = (np.concatenate(part) for part in zip(*found, strict=True))
    return row, at, wanted


def with_later_demands(workload: Workload) -> Workload:
    """The workload with further rows behind its own, one for each change of demand, that demand what is demanded then;
    only kinds and what is known of their demands are made of these."""
    if workload.resize is None:
        return workload
    row, _, wanted = _steps(workload)
    every = np.concatenate([np.arange(len(workload)), row])
    given = [name for name in PER_ROW if getattr(workload, name) is not None]
    columns: dict[str, Any] = {name: getattr(workload, name)[every] for name in given}
    return replace(workload, **columns | {"demand": np.concatenate([workload.demand, wanted])})


def apart(workload: Workload, kinds: layout.Kinds) -> tuple[layout.Kinds, dict[str, NDArray[Any]]]:
    """The kinds of the workload's own rows, from those of :func:`with_later_demands`; and the arrays of resizes."""
    if workload.resize is None:
        return kinds, {}
    row, time, _ = _steps(workload)
    count = len(workload)
    events = np.zeros(len(row), request_records.RESIZE_EVENT)
    events["time"], events["row"], events["kind"] = layout.on_grid(time), row, kinds.kind[count:]
    return replace(kinds, kind=kinds.kind[:count], member=kinds.member[:count]), {
        "resizings": events[np.lexsort((events["row"], events["time"]))],
        "deferred": np.zeros(len(events), np.int64),
        "resize_of": np.full(count, -1, np.int32),
    }
