"""One run and its folder (docs/results.md): what ``slacktide simulate --out`` and experiments leave behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slacktide import results, settings
from slacktide.config import Config
from slacktide.metrics.intervals import IntervalRecorder
from slacktide.metrics.window_summary import window_summary
from slacktide.model import Hosts, Workload
from slacktide.sim import EVENT_KINDS, RunResult, run

RESULT_FILES = frozenset(
    {
        *("requests.parquet", "instances.parquet", "passes.parquet", "events.parquet"),
        "delays.parquet",
        *("intervals.parquet", "progress.parquet", "windows.parquet", "manifest.json"),
    }
)
GROUPING = "grouping"
"""Under this key a manifest says how rows were grouped; ``--config`` groups them so again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run shall leave beside requests, instances and the manifest; ``intervals``: seconds, or None."""

    passes: bool = False
    events: bool = False
    intervals: float | None = None


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
    """Simulate and write the folder ``out``, which is there whole or not at all.

    ``files`` are those that ``workload`` and ``hosts`` were read from and ``command`` the words of the command
    line, both for the manifest; ``grouping`` says how rows were made requests, where they were; ``progress`` and
    ``announce`` as for :func:`slacktide.sim.run`. Raises what that raises, and :class:`OutputError`.
    """
    results.check_target(out, RESULT_FILES)
    recorder = IntervalRecorder(workload)
    windowed = any(one.window is not None for one in workload.classes)
    result = run(
        workload,
        hosts,
        config,
        events=asked.events or config.delay.network is not None,
        outages=windowed and asked.intervals is not None,
        passes=asked.passes,
        progress=progress,
        announce=announce,
        intervals=asked.intervals,
        observe=recorder,
    )
    used = [*files, *files_in(config)]
    about = results.manifest(settings.to_mapping(config), results.file_hashes(used), command, totals(result))
    if grouping is not None:
        about[GROUPING] = dict(grouping)
    if asked.intervals is not None:
        about["intervals"] = asked.intervals
    with results.replaced_directory(out, RESULT_FILES) as aside:
        _write_tables(aside, workload, hosts, config, result, asked)
        if asked.intervals is not None:
            names = [one.name for one in workload.classes]
            results.write_intervals(aside / "intervals.parquet", recorder.intervals(), names)
            results.write_progress(aside / "progress.parquet", recorder.progress())
        if asked.intervals is not None and windowed:
            results.write_windows(aside / "windows.parquet", window_summary(workload, result, config))
        (aside / "manifest.json").write_text(json.dumps(about, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return result


def delays_of(workload: Workload, hosts: Hosts, config: Config, result: RunResult) -> Any:
    """What users saw, placement by placement (``metrics.delay``); None where no network was given."""
    if config.delay.network is None or result.events is None:
        return None
    from slacktide.inputs.formats.network_file import read_network
    from slacktide.metrics.delay import placement_delays

    there = replace(hosts, network=read_network(config.delay.network, hosts))
    return placement_delays(result.events, workload, there, config.delay, result.end)


def _write_tables(
    aside: Path, workload: Workload, hosts: Hosts, config: Config, result: RunResult, asked: Asked
) -> None:
    results.write_requests(aside / "requests.parquet", workload, result.requests, config.qos.startup)
    if result.instances is not None:
        results.write_instances(aside / "instances.parquet", workload, result.instances, config.qos.startup)
    if result.passes is not None:
        results.write_passes(aside / "passes.parquet", result.passes)
    if result.events is not None and asked.events:
        results.write_events(aside / "events.parquet", workload, hosts, result.events, EVENT_KINDS)

    delays = delays_of(workload, hosts, config, result) if asked.events else None
    if delays is not None:
        results.write_delays(aside / "delays.parquet", delays)


def files_in(config: Config) -> list[Path]:
    """Files that settings name: measured delays, host events, instants of passes, own policies, scores and costs."""
    own = [one.rpartition(":")[0] for one in (config.policy.name, config.policy.score, config.policy.cost)]
    named = [
        *(config.startup.hot, config.startup.cold, config.scheduler.triggers),
        *(config.failures.file, config.failures.uptime, config.failures.downtime, config.delay.network),
        *own,
    ]
    return [Path(one) for one in dict.fromkeys(named) if one and Path(one).is_file()]


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
