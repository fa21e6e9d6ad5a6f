"""The result files of the authors' simulator made a results folder of ours, for all that reads one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slacktide import results, settings
from slacktide.config import Config
from slacktide.experiment.run_folder import RESULT_FILES
from slacktide.model import Hosts, Workload
from slacktide.results import published_files, published_log, tables
from slacktide.results.published_files import ENDED, PLACED, PREEMPTED, Told
from slacktide.results.published_log import Life, Story
from slacktide.sim import EVENT_KINDS

KINDS = {PLACED: "placed", PREEMPTED: "preempted", ENDED: "completed"}
ADMITTED = EVENT_KINDS.index("admitted")


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
    counts = {what: sum(one.what == what for one in told.happenings) for what in KINDS}
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
        tables.event_rows(workload, hosts, events_of(told, workload, hosts), EVENT_KINDS).write(
            aside / "events.parquet"
        )
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
        if one.what == ENDED and (one.time < told.end or life.useful >= float(workload.duration[life.row]) - 1e-9):
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


def events_of(told: Told, workload: Workload, hosts: Hosts) -> dict[str, Any]:
    """Admissions and what happened, as the events of a run."""
    row_of = {int(number): row for row, number in enumerate(workload.ids)}
    host_of = {int(number): row for row, number in enumerate(hosts.ids)}
    rows = [(float(at), ADMITTED, row, -1, -1) for row, at in enumerate(workload.admission) if at <= told.end]
    served: list[int] = []  # positions of preemptions that wait for the placement that they serve
    found = []
    for one in told.happenings:
        found.append([one.time, EVENT_KINDS.index(KINDS[one.what]), row_of[one.request], host_of[one.host], -1])
        if one.what == PREEMPTED:
            served.append(len(found) - 1)
        elif one.what == PLACED:
            for place in served:
                found[place][4] = row_of[one.request]
            served = []
    merged = sorted([*rows, *map(tuple, found)], key=lambda event: event[0])  # stable: admissions first
    time, kind, row, host, by = (np.array(list(column)) for column in zip(*merged, strict=True))
    none = np.full(len(merged), np.nan)
    return {"time": time.astype(np.float64), "kind": kind.astype(np.int64), "row": row, "host": host, "by": by,
            "qos": none, "received": none}  # fmt: skip
