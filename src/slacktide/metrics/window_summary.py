"""What a run's promises over windows came to: windows.parquet (docs/results.md)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.metrics.windows import Lives, Outages, Seconds, kept_share, kept_turns, worst_windows
from slacktide.model import ServiceClass, Workload
from slacktide.model.window import WHOLE, parse_epoch, turns
from slacktide.qos.per_request import measured_together
from slacktide.sim import EVENT_KINDS, RunResult

LENGTHS = (
    *(1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0),
    *(3_600.0 * hours for hours in (1, 2, 4, 8, 12, 24, 48, 96, 168, 336, 720, 1_440, 2_160, 4_380, 8_760)),
)
"""Seconds of the windows of the curve, up to the longest life of a class."""

Rows = list[dict[str, Any]]


def window_summary(workload: Workload, result: RunResult, config: Config) -> Rows:
    """Rows for the classes with a window, in their order; of a class first that of its own promise, then the curve.

    ``class``; ``window``, the promise as people say it, null in the curve; ``length`` of windows, seconds, null of
    calendar ones; ``worst``, the least availability of any such window of any request; and of the promise's own windows
    ``requests`` (instances of independent ones), ``kept``, the share of windows that had what was promised, and
    ``longest``, the longest time in one piece without anything, s. Null where the class has no request.

    ``result`` is of a run that recorded its outages. O(k log k) for each length, of k outages.
    """
    assert result.events is not None  # noqa: S101  # for the programmer
    found: Rows = []
    events, requests, code_of = result.events, result.requests, workload.service_class
    requests_code = code_of[requests["row" if workload.requests is None else "first"]]
    begin, end, life_of = _lives(workload, result)
    code = np.full(len(begin), -1, np.int64)
    known = life_of >= 0
    code[life_of[known]] = code_of[known]
    lost = events["kind"] == EVENT_KINDS.index("outage")
    whose = life_of[events["row"][lost]]
    told = {name: events[name][lost] for name in ("time", "qos", "received")}
    for number, one in enumerate(workload.classes):
        if one.window is None:
            continue
        mine = np.flatnonzero(code == number)
        place = np.full(len(begin) + 1, -1, np.int64)  # the last place is for who has no life, -1
        place[mine] = np.arange(len(mine))
        ours = place[whose] >= 0
        until, seconds, received = (told[name][ours] for name in ("time", "qos", "received"))
        outages = Outages.of_lives(begin[mine], end[mine], place[whose[ours]], until, seconds, received)
        worst = requests["worst_window"][requests_code == number]
        worst = worst[~np.isnan(worst)]
        found.append(_own(one, outages, worst, config))
        longest = float((outages.end - outages.begin).max(initial=0.0))
        lengths = sorted({*(length for length in LENGTHS if length < longest), longest} - {0.0})
        found += [
            {"class": one.name, "window": None, "length": length, "worst": value, **_nothing()}
            for length, value in zip(lengths, worst_windows(outages, lengths).tolist(), strict=True)
        ]
    return found


def _nothing() -> dict[str, None]:
    return {"requests": None, "kept": None, "longest": None}


def _own(one: ServiceClass, outages: Outages, worst: Seconds, config: Config) -> dict[str, Any]:
    """The row of a promise itself."""
    assert one.window is not None  # noqa: S101  # for the type checker
    if one.window.rolling is not None:
        kept = kept_share(outages, one.window.rolling, one.slo)
    else:
        last = float((outages.end - outages.shift).max(initial=0.0))
        begins = list(turns(one.window, parse_epoch(config.simulation.epoch), 0.0, last))
        kept = kept_turns(outages, begins, one.slo, whole=one.window.budget == WHOLE)
    some = len(outages.begin) > 0
    return {
        "class": one.name,
        "window": one.window.name,
        "length": one.window.rolling,
        "worst": float(worst.min()) if len(worst) else None,
        "requests": len(outages.begin),
        "kept": kept if some else None,
        "longest": outages.longest if some else None,
    }


def _lives(workload: Workload, result: RunResult) -> tuple[Seconds, Seconds, Lives]:
    """Begin and end of each life, and the life of each row of the workload, -1: none; batch requests have none.

    A request that is measured as a whole has one life, from the first admission to the last end.
    """
    lived = result.requests if result.instances is None else result.instances
    rows, ended = lived["row"], lived["completed"]
    begin = workload.admission[rows] if result.instances is None else lived["admission"]
    if result.instances is not None:
        ended = np.where(np.isnan(ended), lived["removed"], ended)
    end = np.where(np.isnan(ended), result.end, ended)
    life_of = np.full(len(workload), -1, np.int64)
    if workload.requests is None or workload.request is None:
        life_of[rows] = np.arange(len(rows))
        return begin, end, life_of
    whole, owner = measured_together(workload), workload.request
    count = len(workload.requests)
    key = np.where(whole, owner, count + np.arange(len(workload)))
    some = ~workload.requests.batch[owner[rows]]
    lives, place = np.unique(key[rows[some]], return_inverse=True)
    first, last = np.full(len(lives), np.inf), np.full(len(lives), -np.inf)
    np.minimum.at(first, place, begin[some])
    np.maximum.at(last, place, end[some])
    at = np.minimum(np.searchsorted(lives, key), max(len(lives) - 1, 0))
    if len(lives):
        life_of = np.where(lives[at] == key, at, -1)
    return first, last, life_of
