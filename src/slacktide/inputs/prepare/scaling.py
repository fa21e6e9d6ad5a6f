"""Longer, larger, denser: a workload with its times, its demands or its rate of arrival multiplied."""

from __future__ import annotations

from dataclasses import replace

from slacktide.errors import ConfigError
from slacktide.inputs.columns.unreadiness import distinct
from slacktide.model import Resizing, Workload


def scale(workload: Workload, *, time: float = 1.0, demand: float = 1.0, rate: float = 1.0) -> Workload:
    """A workload with factors above 0 applied.

    ``time``    all times, admissions, durations, scale events, changes of demand, deadlines, grace periods, spells of
                unreadiness: 2 makes everything take twice as long
    ``demand``  what each instance asks of every resource, at first and later, and its limits
    ``rate``    arrivals in a second: 2 admits twice as fast, admissions, scale events, changes of demand and begins
                of spells being divided by it, while durations stay, so that twice as many are active. Times are counted
                from 0.

    Raises :class:`ConfigError` for another factor.
    """
    for name, factor in (("time", time), ("demand", demand), ("rate", rate)):
        if not 0 < factor <= 1e6:
            raise ConfigError(f"{name}: found {factor:g}, expected a factor above 0 and at most 1e6")
    requests = workload.requests
    return replace(
        workload,
        admission=workload.admission * (time / rate),
        duration=workload.duration * time,
        demand=workload.demand * demand,
        limit=None if workload.limit is None else workload.limit * demand,
        accesses=tuple(replace(one, deadline=one.deadline * time) for one in workload.accesses),
        requests=None if requests is None else replace(requests, scale_time=requests.scale_time * (time / rate)),
        resizings=tuple(_scaled(one, time / rate, demand) for one in workload.resizings),
        grace=None if workload.grace is None else workload.grace * time,
        spells=tuple(
            distinct(tuple((at * (time / rate), lasts * time) for at, lasts in one)) for one in workload.spells
        ),
        losses=tuple(
            tuple((end * (time / rate), lost * (time / rate)) for end, lost in one) for one in workload.losses
        ),
    )


def _scaled(resizing: Resizing, time: float, demand: float) -> Resizing:
    return tuple((at * time, tuple((name, n * demand) for name, n in amounts)) for at, amounts in resizing)
