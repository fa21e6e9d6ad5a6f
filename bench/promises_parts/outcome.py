"""What a run of an input came to: promises kept, preemptions, the longest outage of each class."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import windowed_fluid

from promises_parts.inputs import HOUR, Input
from slacktide.kernels.drive import event_loop
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.log_records import EVENT_KINDS
from slacktide.metrics.summary import per_class
from slacktide.model import Workload
from slacktide.policy.loader import load as own_code
from slacktide.settings import load
from slacktide.sim.engine import Recorder, drive, prepare, result_of
from slacktide.state.growing_arrays import RECORDERS

PASSES = 2000
"""Between two looks at who wants to stop the program."""

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


def measured(one: Input, policy: Policy, end: float | None = None) -> Found:
    """One run. ``kept`` is the fulfilment times the requests: of a promise over windows, its worst one counts."""
    until = one.end if end is None else end
    with tempfile.TemporaryDirectory() as folder:
        config = load(None, policy.preset, [*words_of(one, until, Path(folder)), *policy.words])
        begun = time.process_time()
        tb = prepare(one.workload, one.hosts, config, own_code(config), schema.RECORD_EVENTS)
        waits = Waits(one.workload)
        drive(tb, lambda: event_loop.run(tb.state, PASSES), waits, lambda: None)
        result = result_of(tb, one.workload, waits, until)
        seconds = time.process_time() - begun
    first = result.requests["row" if result.instances is None else "first"]
    codes = one.workload.service_class[first]
    classes = per_class(result.requests, codes, one.workload.classes, config.qos.startup)
    endless = int(np.isinf(one.workload.duration[first]).sum())
    return Found(
        [round(each.fulfilment[config.qos.startup] * each.requests) if each.requests else 0 for each in classes],
        [each.requests for each in classes],
        waits.longest(until),
        result.preemptions,
        endless or len(first),
        seconds,
    )


def bounded(one: Input) -> Found:
    """The most promises that any policy keeps, and the fewest preemptions that takes: -1 where it is not known."""
    with tempfile.TemporaryDirectory() as folder:
        config = load(None, None, words_of(one, one.end, Path(folder)))
        begun = time.process_time()
        kept, turns = windowed_fluid.kept(one.workload, one.hosts, config, one.end)
    request = np.arange(len(one.workload)) if one.workload.request is None else one.workload.request
    _, first = np.unique(request, return_index=True)
    first = first[one.workload.admission[first] <= one.end]
    requests = np.bincount(one.workload.service_class[first], minlength=len(kept)).tolist()
    endless = int(np.isinf(one.workload.duration[first]).sum())
    seconds = time.process_time() - begun
    return Found(kept, requests, [], -1 if turns is None else turns, endless or len(first), seconds)


def words_of(one: Input, end: float, folder: Path) -> list[str]:
    """Settings of all runs of an input; which hosts are away is put into a file of ``folder``."""
    away = [f"failures.file={_events(one, folder)}"] if one.away else []
    return [*one.words, f"simulation.end={end}", *away]


def _events(one: Input, folder: Path) -> Path:
    """The outages of hosts as a file."""
    path = folder / "hosts-away.csv"
    lines = [(since, one.hosts.names[host], "fail") for host, since, _ in one.away]
    lines += [(until, one.hosts.names[host], "repair") for host, _, until in one.away]
    text = "".join(f"{time:g},{host},{event}\n" for time, host, event in sorted(lines))
    path.write_text("time,host,event\n" + text, encoding="utf-8")
    return path


class Waits(Recorder):
    """The longest time in one piece that an instance of each class waited, of a run's events, of which none is kept:
    some policies preempt tens of millions of times."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self._code = workload.service_class
        self._since = np.full(len(workload), np.nan)
        self._most = np.zeros(len(workload.classes))

    def drain(self, tb: Tables) -> None:
        """Look at the events in the buffers, in order of time, and empty them."""
        count = int(tb.control["events"])
        kind, row, at = (tb["events"][name][:count] for name in ("kind", "row", "time"))
        waits, ends = (np.isin(kind, [EVENT_KINDS.index(each) for each in kinds]) for kinds in (WAITS, ENDS))
        some = np.flatnonzero((waits | ends) & (row >= 0))
        order = some[np.argsort(row[some], kind="stable")]
        row, at, waits = row[order], at[order], waits[order]
        first = np.append(True, row[1:] != row[:-1])[: len(row)]
        since = np.where(first, self._since[row], np.where(np.roll(waits, 1), np.roll(at, 1), np.nan))
        np.fmax.at(self._most, self._code[row], at - since)
        last = np.append(first[1:], True)[: len(row)]
        self._since[row[last]] = np.where(waits, at, np.nan)[last]
        for name in RECORDERS:
            tb.control[name] = 0

    def longest(self, end: float) -> list[float]:
        """Hours of each class; those that still wait have waited up to ``end``, seconds."""
        np.fmax.at(self._most, self._code, end - self._since)
        return [float(value) / HOUR for value in self._most]
