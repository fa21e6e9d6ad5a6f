"""The result files of the authors' simulator made a results folder of ours, for all that reads one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slacktide import results, settings
from slacktide.config import Config
from slacktide.experiment.run_folder import RESULT_FILES
from slacktide.model import Hosts, Workload
from slacktide.results import published_files, published_log, tables
from slacktide.results.published_files import ENDED, PLACED, PREEMPTED, Happening, Told
from slacktide.results.published_log import Life, Order, Story
from slacktide.sim import EVENT_KINDS


def as_results(
    folder: Path,
    out: Path,
    workload: Workload,
    hosts: Hosts,
    config: Config,
    files: Sequence[Path],
    command: Sequence[str],
) -> dict[str, Any]:
    """Writes ``out`` as ``simulate --out --events --passes`` does, and says what the totals are.

    ``config`` is what the run had, as far as it is known. Raises :class:`InputError` for files that do not go with
    workload and hosts, :class:`ConfigError` for a workload that their simulator has not, :class:`OutputError`.
    """
    published_log.check(workload, config)
    demand = dict(zip(workload.ids.tolist(), workload.demand.tolist(), strict=True))
    capacity = dict(zip(hosts.ids.tolist(), hosts.capacity.tolist(), strict=True))
    told = published_files.read(folder, demand, capacity)
    lives = lives_of(told, workload, hosts)
    counts = {what: sum(one.what == what for one in told.happenings) for what in (PLACED, PREEMPTED)}
    totals = {
        "requests": len(lives),
        "instances": len(lives),
        "completed": sum(not np.isnan(life.completed) for life in lives),
        "passes": len(told.passes),
        "placements": counts[PLACED],
        "preemptions": counts[PREEMPTED],
        "end": told.end,
    }
    hashes = results.file_hashes([*files, *(folder / name for name in sorted(published_files.FILES))])
    about = results.manifest(settings.to_mapping(config), hashes, command, totals)
    with results.replaced_directory(out, RESULT_FILES) as aside:
        tables.request_rows(workload, columns_of(lives), config.qos.startup).write(aside / "requests.parquet")
        events = Events(told, workload, hosts, config).columns()
        tables.event_rows(workload, hosts, events, EVENT_KINDS).write(aside / "events.parquet")
        tables.rows_of(passes_of(told)).write(aside / "passes.parquet")
        (aside / "manifest.json").write_text(json.dumps(about, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return {**totals, "without_startups": told.without_startups}


def lives_of(told: Told, workload: Workload, hosts: Hosts) -> list[Life]:
    """What became of each request that was admitted by the end, in the workload's order.

    One that is over at the very end completed only if it ran as long as it asked for.
    """
    story = Story(workload, hosts)
    for one in told.happenings:
        story.carry_out(one)
        life = story.lives[one.request]
        if one.what == ENDED and completes(one, life, told, workload):
            life.completed = one.time
    for life in story.lives.values():
        if life.host is not None:
            life.leave(told.end)
        elif not life.over and life.since <= told.end:
            life.pending += told.end - life.since
    return [life for life in story.lives.values() if workload.admission[life.row] <= told.end]


def columns_of(lives: Sequence[Life]) -> dict[str, Any]:
    """The columns of a run's requests."""
    floats = ("completed", "pending", "startup_first", "startup_restarts", "wasted_startup")
    found: dict[str, Any] = {name: np.array([getattr(one, name) for one in lives], np.float64) for name in floats}
    return found | {
        "row": np.array([one.row for one in lives], np.int64),
        "running": np.array([one.useful for one in lives], np.float64),
        "discarded": np.zeros(len(lives)),
        "preemptions": np.array([one.preemptions for one in lives], np.int64),
        "starts": np.array([one.starts for one in lives], np.int64),
        "hosts_used": np.array([len(one.hosts) for one in lives], np.int32),
    }


def passes_of(told: Told) -> dict[str, Any]:
    """Passes with their queue; what they cost the files do not say."""
    placed, preempted = _by_time(told, PLACED), _by_time(told, PREEMPTED)
    times = sorted(told.passes)
    return {
        "time": np.array(times, np.float64),
        "queue": np.array([len(told.passes[time]) for time in times], np.int64),
        "placed": np.array([placed.get(time, 0) for time in times], np.int64),
        "preempted": np.array([preempted.get(time, 0) for time in times], np.int64),
    }


def _by_time(told: Told, what: str) -> Mapping[float, int]:
    found: dict[float, int] = {}
    for one in told.happenings:
        if one.what == what:
            found[one.time] = found.get(one.time, 0) + 1
    return found


class Events:
    """The events of a run, as the files tell them: admissions, what happened, and in each pass who waited on."""

    def __init__(self, told: Told, workload: Workload, hosts: Hosts, config: Config) -> None:
        self._told, self._workload = told, workload
        self._story, self._order = Story(workload, hosts), Order(workload, config)
        self._host_of = {int(number): row for row, number in enumerate(hosts.ids)}
        self._found: list[tuple[float, int, int, int, int, float]] = []
        self._in_vain: set[int] = set()

    def columns(self) -> dict[str, Any]:
        """As the simulator records them, in its order: at one instant ends, admissions, then the pass."""
        happened: dict[float, list[Happening]] = defaultdict(list)
        for one in self._told.happenings:
            happened[one.time].append(one)
        admitted: dict[float, list[int]] = defaultdict(list)
        for row, at in enumerate(self._workload.admission.tolist()):
            if at <= self._told.end:
                admitted[at].append(row)
        for time in sorted({*happened, *admitted, *self._told.passes}):
            self._instant(time, happened[time], admitted[time])
        names = ("time", "kind", "row", "host", "by", "qos")
        found = {name: np.array(values) for name, values in zip(names, zip(*self._found, strict=True), strict=True)}
        return {**found, "received": np.full(len(self._found), np.nan)}

    def _instant(self, time: float, happened: Sequence[Happening], admitted: Sequence[int]) -> None:
        for one in happened:
            if one.what == ENDED:
                self._ended(one)
        for row in admitted:
            self._add(time, "admitted", row)
        served: dict[int, list[Happening]] = {}
        waits: list[Happening] = []
        for one in happened:
            if one.what != ENDED:
                waits.append(one)
            if one.what == PLACED:
                served[one.request], waits = waits, []
        for number in self._told.passes.get(time, []):
            if number in served:
                self._served(served.pop(number))
            else:
                self._held(time, self._story.lives[number])
        for rest in served.values():  # victims that took free room in the same pass
            self._served(rest)

    def _held(self, time: float, life: Life) -> None:
        """It waits in vain; that is told once, when it begins, as the simulator does."""
        if life.row not in self._in_vain:
            self._in_vain.add(life.row)
            self._add(time, "held", life.row, qos=self._order.slack(life, time))

    def _ended(self, one: Happening) -> None:
        life = self._story.lives[one.request]
        self._story.carry_out(one)
        if completes(one, life, self._told, self._workload):
            self._add(one.time, "completed", life.row, self._host_of[one.host])

    def _served(self, group: Sequence[Happening]) -> None:
        """Those who go, and the one that is placed, the last of them."""
        by = self._story.lives[group[-1].request].row
        for one in group:
            life = self._story.lives[one.request]
            slack = self._order.slack(life, one.time)
            self._story.carry_out(one)
            self._in_vain.discard(life.row)
            whose = by if one.what == PREEMPTED else -1
            self._add(one.time, one.what, life.row, self._host_of[one.host], whose, slack)

    def _add(self, time: float, kind: str, row: int, host: int = -1, by: int = -1, qos: float = float("nan")) -> None:
        self._found.append((time, EVENT_KINDS.index(kind), row, host, by, qos))


def completes(one: Happening, life: Life, told: Told, workload: Workload) -> bool:
    """Whether who is over completed: at the very end only if it ran as long as it asked for."""
    return one.time < told.end or life.useful >= float(workload.duration[life.row]) - 1e-9
