"""What a run of an input came to: promises kept, preemptions, the longest outage of each class."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from promises_parts.inputs import HOUR, Input
from slacktide.kernels.tables.log_records import EVENT_KINDS
from slacktide.metrics.summary import per_class
from slacktide.settings import load
from slacktide.sim import RunResult, run

WAITS, ENDS = ("admitted", "preempted", "evicted"), ("placed", "completed", "removed")
"""Events from which an instance waits, and with which it does not any more."""


@dataclass(frozen=True)
class Policy:
    """A preset, settings of it as words, and the overhead limit of all classes where it has one of its own."""

    name: str
    preset: str = "recommended"
    words: tuple[str, ...] = ()
    limit: float | None = None


@dataclass(frozen=True)
class Found:
    """``kept``, ``requests`` and ``longest`` (hours, without its start-up) of each class, in the input's order."""

    kept: list[int]
    requests: list[int]
    longest: list[float]
    preemptions: int
    services: int
    """Requests that do not end by themselves, or all where all do."""
    seconds: float
    """Of the processor."""


def measured(one: Input, policy: Policy, end: float | None = None, *, longest: bool = True) -> Found:
    """One run. ``kept`` is the fulfilment times the requests: of a promise over windows, its worst one counts."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*one.words, f"simulation.end={end or one.end}", *policy.words]
        if one.away:
            words.append(f"failures.file={_events(one, Path(folder))}")
        config = load(None, policy.preset, words)
        begun = time.process_time()
        result = run(one.workload, one.hosts, config, events=longest)
        seconds = time.process_time() - begun
    first = result.requests["row" if result.instances is None else "first"]
    codes = one.workload.service_class[first]
    classes = per_class(result.requests, codes, one.workload.classes, config.qos.startup)
    endless = int(np.isinf(one.workload.duration[first]).sum())
    return Found(
        [round(each.fulfilment[config.qos.startup] * each.requests) if each.requests else 0 for each in classes],
        [each.requests for each in classes],
        outages(one, result) if longest else [],
        result.preemptions,
        endless or len(first),
        seconds,
    )


def _events(one: Input, folder: Path) -> Path:
    """The outages of hosts as a file."""
    path = folder / "hosts-away.csv"
    lines = [(since, one.hosts.names[host], "fail") for host, since, _ in one.away]
    lines += [(until, one.hosts.names[host], "repair") for host, _, until in one.away]
    text = "".join(f"{time:g},{host},{event}\n" for time, host, event in sorted(lines))
    path.write_text("time,host,event\n" + text, encoding="utf-8")
    return path


def outages(one: Input, result: RunResult) -> list[float]:
    """The longest time in one piece that an instance of each class waited, hours."""
    if result.events is None:
        raise ValueError("events: found none, expected a run that records them: run(..., events=True)")
    kind, row, at = (result.events[name] for name in ("kind", "row", "time"))
    waits, ends = (np.isin(kind, [EVENT_KINDS.index(each) for each in kinds]) for kinds in (WAITS, ENDS))
    some = np.flatnonzero((waits | ends) & (row >= 0))
    order = some[np.lexsort((some, row[some]))]
    row, at, waits = row[order], at[order], waits[order]
    until = np.append(at[1:], 0.0)
    last = np.append(row[1:] != row[:-1], True)
    length = np.where(waits, np.where(last, result.end, until) - at, 0.0)
    most: NDArray[np.float64] = np.zeros(len(one.workload.classes))
    np.maximum.at(most, one.workload.service_class[row], length)
    return [float(value) / HOUR for value in most]
