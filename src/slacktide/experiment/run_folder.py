"""One run and its folder (docs/results.md): what ``slacktide simulate --out`` and experiments leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from slacktide import results, settings
from slacktide.config import Config
from slacktide.inputs.formats.frames import OwnColumns
from slacktide.inputs.grouping import GROUPING
from slacktide.metrics import ClassSummary, Unserved, per_class, unserved
from slacktide.metrics.intervals import IntervalRecorder
from slacktide.metrics.windows import window_summary
from slacktide.model import Hosts, Workload, arrow
from slacktide.results import published_files, published_log, tables
from slacktide.sim import EVENT_KINDS, RunResult, run
from slacktide.sim.ignoring import considered

TABLES = ("requests", "instances", "classes", "passes", "events")
RESULT_FILES = frozenset(
    {
        *(f"{name}.parquet" for name in TABLES),
        "delays.parquet",
        *("intervals.parquet", "progress.parquet", "windows.parquet", "manifest.json"),
        *published_files.FILES,
    }
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run shall leave beside requests, instances and the manifest; ``intervals``: seconds, or None.

    ``published``: the result files of the authors' simulator, and no tables.
    """

    passes: bool = False
    events: bool = False
    intervals: float | None = None
    published: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A run with all that its folder is written from; ``recorder`` has what came of ``asked.intervals``, ``own`` what
    goes through from its workload to its tables."""

    workload: Workload
    hosts: Hosts
    config: Config
    result: RunResult
    recorder: IntervalRecorder
    asked: Asked
    grouping: Mapping[str, str] | None = None
    own: OwnColumns = field(default_factory=OwnColumns)


def finished(
    workload: Workload,
    hosts: Hosts,
    config: Config,
    asked: Asked = Asked(),
    *,
    grouping: Mapping[str, str] | None = None,
    own: object = None,
    progress: Callable[[float, int, int], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Finished:
    """Simulate, and keep what was asked for; ``own``, ``progress`` and ``announce`` as for :func:`slacktide.sim.run`.

    Raises what that raises.
    """
    if asked.published:
        published_log.check(workload, config)
    recorder = IntervalRecorder(workload)
    wanted = wanted_of(workload, config, asked, recorder)
    result = run(workload, hosts, config, own=own, progress=progress, announce=announce, **wanted)
    return Finished(workload, hosts, config, result, recorder, asked, grouping)


def wanted_of(workload: Workload, config: Config, asked: Asked, recorder: IntervalRecorder) -> dict[str, Any]:
    """What is asked of the simulator (:class:`slacktide.sim.Run`) for that."""
    return {
        "events": asked.events or asked.published or config.delay.network is not None,
        "turns": asked.published,  # whose files have a row for each
        "outages": _windowed(workload) and asked.intervals is not None,
        "passes": asked.passes or asked.published,
        "intervals": asked.intervals,
        "observe": recorder,
    }


def run_into(
    out: Path,
    workload: Workload,
    hosts: Hosts,
    config: Config,
    *,
    files: Sequence[Path],
    command: Sequence[str],
    asked: Asked = Asked(),
    grouping: Mapping[str, str] | None = None,
    progress: Callable[[float, int, int], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> RunResult:
    """:func:`finished` and :func:`write` in one step. Raises what these raise, the second before it simulates."""
    results.check_target(out, RESULT_FILES)
    done = finished(workload, hosts, config, asked, grouping=grouping, progress=progress, announce=announce)
    write(out, done, files=files, command=command)
    return done.result


def write(
    out: Path,
    done: Finished,
    *,
    files: Sequence[Path],
    command: Sequence[str],
    in_memory: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the folder ``out``, which is there whole or not at all.

    ``files`` are those that workload and hosts were read from, ``in_memory`` SHA-256 of what was not, by name, and
    ``command`` the words of the command line, all for the manifest. Raises :class:`OutputError`, and
    :class:`InputError` for a file that is no more.
    """
    config, asked, result = done.config, done.asked, done.result
    hashes = {**in_memory, **results.file_hashes([*files, *files_in(config)])}
    about = results.manifest(settings.to_mapping(config), hashes, command, totals(result))
    if done.grouping is not None:
        about[GROUPING] = dict(done.grouping)
    if asked.intervals is not None:
        about["intervals"] = asked.intervals
    with results.replaced_directory(out, RESULT_FILES) as aside:
        _write_tables(aside, done)
        if asked.intervals is not None:
            names = [one.name for one in done.workload.classes]
            tables.interval_rows(done.recorder.intervals(), names).write(aside / "intervals.parquet")
            tables.rows_of(done.recorder.progress()).write(aside / "progress.parquet")
        if asked.intervals is not None and _windowed(done.workload):
            tables.window_rows(window_summary(done.workload, result, config)).write(aside / "windows.parquet")
        (aside / "manifest.json").write_text(json.dumps(about, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _windowed(workload: Workload) -> bool:
    return any(one.window is not None for one in workload.classes)


def delays_of(workload: Workload, hosts: Hosts, config: Config, result: RunResult) -> Any:
    """What users saw, placement by placement (``metrics.delay``); None where no network was given."""
    if (config.delay.network is None and hosts.network is None) or result.events is None:
        return None
    from slacktide.inputs.formats.network_file import read_network
    from slacktide.metrics.delay import placement_delays

    if config.delay.network is not None:
        hosts = replace(hosts, network=read_network(config.delay.network, hosts))
    return placement_delays(result.events, workload, hosts, config.delay, result.end)


def rows_of(done: Finished, name: str) -> tables.Rows | None:
    """One of TABLES as it is saved; None: the run has none of this name."""
    rows = _rows_of(done, name)
    if rows is None or done.own.ids is None or name not in ("requests", "instances", "events"):
        return rows
    made = rows.columns
    return replace(rows, columns=lambda part: done.own.told(made(part)))


def _rows_of(done: Finished, name: str) -> tables.Rows | None:
    """One of TABLES; None: the run has none of this name."""
    workload, config, result = done.workload, done.config, done.result
    if name == "requests":
        return tables.request_rows(workload, result.requests, config.qos.startup)
    if name == "classes":
        return _class_rows(done)
    if name == "instances" and result.instances is not None:
        return tables.instance_rows(workload, result.instances, config.qos.startup)
    if name == "passes" and result.passes is not None:
        return tables.rows_of(result.passes)
    if name == "events" and result.events is not None and done.asked.events:
        return tables.event_rows(workload, done.hosts, result.events, EVENT_KINDS)
    return None


def table_of(done: Finished, name: str) -> Any:
    """One of TABLES as an Arrow table; None: the run has none of this name."""
    rows = rows_of(done, name)
    return None if rows is None else rows.table()


def _class_rows(done: Finished) -> tables.Rows:
    """What came of each class's promises, in the accounting of decisions."""
    never = {one.service: one.instances for one in unserved_of(done.workload, done.hosts, done.config, done.result)}
    accounting, rows = done.config.qos.startup, []
    for one in per_class_of(done.workload, done.config, done.result):
        got = {f"availability_{key}": value for key, value in asdict(one.availability[accounting]).items()}
        rows.append(
            {"class": one.name, "slo": one.slo, "requests": one.requests, **got}
            | {"fulfilment": one.fulfilment[accounting], "deficit_mean": one.deficit_mean}
            | {"preemptions": one.preemptions, "wasted_startup": one.wasted_startup}
            | {"never_served": never.get(one.name, 0)}
        )
    return tables.rows_of({name: arrow.column([one[name] for one in rows]) for name in rows[0]})


def _write_tables(aside: Path, done: Finished) -> None:
    workload, hosts, config, result = done.workload, done.hosts, done.config, done.result
    if done.asked.published:
        published_log.write(aside, workload, hosts, config, result)
        return
    for name in TABLES:
        rows = rows_of(done, name)
        if rows is not None:
            rows.write(aside / f"{name}.parquet")

    delays = delays_of(workload, hosts, config, result) if done.asked.events else None
    if delays is not None:
        tables.delay_rows(delays).write(aside / "delays.parquet")


FILES = (
    *(("startup", "hot"), ("startup", "cold"), ("simulation", "grace"), ("scheduler", "triggers")),
    ("simulation", "batch_recreation"),
    *(("failures", "file"), ("failures", "uptime"), ("failures", "downtime"), ("delay", "network")),
    *(("policy", "name"), ("policy", "score"), ("policy", "cost")),
)
"""Settings that may name files; those of ``policy`` have ``:NAME`` behind it."""


def files_in(config: Config) -> list[Path]:
    """Files that settings name: measured delays, host events, instants of passes, own policies, scores and costs."""
    found = []
    for section, key in FILES:
        text = getattr(getattr(config, section), key) or ""
        found.append(text.rpartition(":")[0] if section == "policy" else text)
    return [Path(one) for one in dict.fromkeys(found) if one and Path(one).is_file()]


def per_class_of(workload: Workload, config: Config, result: RunResult) -> list[ClassSummary]:
    """What each service class of a run was promised and got."""
    codes = workload.service_class[result.requests["row" if result.instances is None else "first"]]
    return per_class(result.requests, codes, workload.classes, config.qos.startup)


def unserved_of(workload: Workload, hosts: Hosts, config: Config, result: RunResult) -> list[Unserved]:
    """By class, instances of a run that never had a host."""
    columns = result.requests if result.instances is None else result.instances
    return unserved(columns, considered(workload, config), hosts)


def totals(result: RunResult) -> dict[str, Any]:
    """Counts that belong to the run and not to the machine it ran on."""
    return {
        "requests": len(result.requests["row"]),
        "instances": len((result.requests if result.instances is None else result.instances)["row"]),
        "completed": int(np.count_nonzero(~np.isnan(result.requests["completed"]))),
        "passes": int(result.pass_count),
        "placements": int(result.placements),
        "preemptions": int(result.preemptions),
        "resizes": int(result.resizes),
        "moves": int(result.moves),
        "deferrals": int(result.deferrals),
        "operations": int(result.operations),
        "bound_checks": int(result.bound_checks),
        "end": float(result.end),
    }
