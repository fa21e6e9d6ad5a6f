"""``slacktide simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import FILE, echo_json

if TYPE_CHECKING:
    from slacktide.config import Config
    from slacktide.model import Hosts, Workload
    from slacktide.sim import RunResult

RESULT_FILES = frozenset({"requests.parquet", "instances.parquet", "passes.parquet", "events.parquet", "manifest.json"})
GROUPING = "grouping"
"""Under this key a manifest says how rows were grouped; ``--config`` groups them so again."""
GROUPS, KINDS, APPROACHES = ("job", "none"), ("service", "batch"), ("independent", "concurrent", "aggregated")


@click.command()
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@click.option("--policy", metavar="NAME", help="qos-driven (default), priority, hybrid, or file.py:Class.")
@click.option("--preset", metavar="NAME", help="Settings to start from: recommended (default) or published.")
@click.option("--config", "config_file", type=FILE, help="Settings from a YAML, TOML or JSON file, or a manifest.json.")
@click.option("--set", "words", multiple=True, metavar="SECTION.KEY=VALUE", help="One setting; may be repeated.")
@click.option("--hot", type=FILE, help="Measured start-up times on a host used before.")
@click.option("--cold", type=FILE, help="Measured start-up times on another host.")
@click.option("--host-events", type=FILE, help="Failures, drains and repairs of hosts, CSV: time,host,event.")
@click.option("--end", metavar="SECONDS", help="Stop at this second. Needed where requests never complete.")
@click.option("--seed", metavar="N", help="Of everything drawn; equal seeds give equal results.")
@click.option("--group-by", type=click.Choice(GROUPS), help="job: rows of one job and class are one request.")
@click.option("--kind", type=click.Choice(KINDS), help="With --group-by job: what these requests are [service].")
@click.option(
    "--approach",
    type=click.Choice(APPROACHES),
    help="With --group-by job: how their availability is measured [independent; batch: aggregated].",
)
@click.option(
    "--out", type=FILE, help="Write requests.parquet, instances.parquet (where there are) and manifest.json there."
)
@click.option("--passes", is_flag=True, help="With --out: also passes.parquet, a row per scheduling pass.")
@click.option("--events", is_flag=True, help="With --out: also events.parquet, a row per event.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the table.")
def simulate(
    workload: Path,
    hosts: Path,
    config_file: Path | None,
    preset: str | None,
    words: tuple[str, ...],
    group_by: str | None,
    kind: str | None,
    approach: str | None,
    out: Path | None,
    passes: bool,
    events: bool,
    as_json: bool,
    **named: object,
) -> None:
    """Simulates WORKLOAD on HOSTS under a policy and tells per class what was promised and what was delivered.

    Files are read by their suffix: .parquet, .csv, or .erl (the published Erlang terms).

    \b
      slacktide simulate w.parquet h.parquet --end 3600                     the recommended settings
      slacktide simulate w.parquet h.parquet --policy priority              what Kubernetes would do
      slacktide simulate w.parquet h.parquet --preset published --seed 7    as in the papers
      slacktide simulate w.parquet h.parquet --set policy.patience=30 --set qos.startup=always
      slacktide simulate w.erl h.erl --hot hot.erl --cold cold.erl --end 3600 --out results --passes
      slacktide simulate w.erl h.erl --config results/manifest.json         the same run again
      slacktide simulate w.csv h.csv --policy mine.py:Mine                  a policy of your own
      slacktide simulate w.erl h.erl --group-by job --approach aggregated   a job's rows are one request

    Settings are in the order preset, --config, --set, other options; the last one wins. 'slacktide settings'
    lists them, 'slacktide --help' the exit codes.
    """
    from slacktide import settings
    from slacktide.cli.memory import give_back
    from slacktide.results.directory import check_target

    give_back()
    if (passes or events) and out is None:
        raise click.UsageError("--passes and --events write files: name a directory with --out")
    config = settings.load(config_file, preset, [*words, *_as_words(named)])
    grouping = _grouping(group_by, kind, approach, config_file)
    if out is not None:
        check_target(out, RESULT_FILES)
    requests, machines = _read(workload, hosts, config, grouping)
    result = _run(requests, machines, config, events=events, passes=passes)
    if out is not None:
        _write(out, requests, machines, config, result, [workload, hosts], grouping)
    _report(requests, machines, config, result, as_json=as_json)


OPTION_SETTINGS = {
    "policy": "policy.name",
    "hot": "startup.hot",
    "cold": "startup.cold",
    "host_events": "failures.file",
    "end": "simulation.end",
    "seed": "simulation.seed",
}


def _as_words(named: dict[str, object]) -> list[str]:
    """Options that are settings by another name."""
    return [f"{OPTION_SETTINGS[name]}={value}" for name, value in named.items() if value is not None]


def _grouping(
    group_by: str | None, kind: str | None, approach: str | None, config_file: Path | None
) -> dict[str, str] | None:
    """How rows become requests of several instances: by the options, else as a manifest says; ``None``: they do not."""
    if group_by is None and config_file is not None:
        kept = _grouping_of(config_file)
        if kept is not None:
            group_by, kind, approach = kept["by"], kind or kept["kind"], approach or kept["approach"]
    if group_by != "job":
        for name, value in (("--kind", kind), ("--approach", approach)):
            if value is not None:
                raise click.UsageError(
                    f"{name} {value} is about requests made from rows: it needs --group-by job. A workload that has "
                    "requests of several instances says this of each of them (docs/formats.md)"
                )
        return None
    kind = kind or KINDS[0]
    approach = approach or ("aggregated" if kind == "batch" else "independent")
    if kind == "batch" and approach != "aggregated":
        from slacktide.inputs.requests import WHY_AGGREGATED

        raise click.UsageError(f"--approach {approach}: expected aggregated with --kind batch: {WHY_AGGREGATED}")
    return {"by": group_by, "kind": kind, "approach": approach}


def _grouping_of(manifest: Path) -> dict[str, str] | None:
    """What a manifest of results says about grouping. Raises ConfigError for what no run can have written."""
    from slacktide import settings, settings_file
    from slacktide.errors import ConfigError

    values = settings_file.read(manifest).values
    if settings.MANIFEST_KEY not in values or values.get(GROUPING) is None:
        return None
    said = values[GROUPING]
    for key, allowed in (("by", GROUPS[:1]), ("kind", KINDS), ("approach", APPROACHES)):
        found = said.get(key) if isinstance(said, dict) else said
        if found not in allowed:
            raise ConfigError(f"{manifest}: {GROUPING}.{key}: found {found!r}, expected {', '.join(allowed)}")
    return dict(said)


def _read(workload: Path, hosts: Path, config: Config, grouping: dict[str, str] | None) -> tuple[Workload, Hosts]:
    from slacktide.inputs import align, group_by_job, read_hosts, read_workload

    requests = read_workload(workload, classes=config.classes)
    if grouping is not None:
        requests = group_by_job(requests, approach=grouping["approach"], batch=grouping["kind"] == "batch")
    return align(requests, read_hosts(hosts), workload_file=str(workload), hosts_file=str(hosts))


def _run(workload: Workload, hosts: Hosts, config: Config, *, events: bool, passes: bool) -> RunResult:
    from slacktide.cli.progress import Progress
    from slacktide.sim import run

    with Progress() as progress:
        return run(
            workload,
            hosts,
            config,
            events=events,
            passes=passes,
            progress=progress if progress.wanted else None,
            announce=lambda text: click.echo(f"slacktide: {text}", err=True),
        )


def _write(
    out: Path,
    workload: Workload,
    hosts: Hosts,
    config: Config,
    result: RunResult,
    files: Sequence[Path],
    grouping: dict[str, str] | None,
) -> None:
    import json
    import sys

    from slacktide import results, settings
    from slacktide.sim.result import EVENT_KINDS

    used = [*files, *_files_in(config)]
    about = results.manifest(
        settings.to_mapping(config), results.file_hashes(used), ["slacktide", *sys.argv[1:]], _totals(result)
    )
    if grouping is not None:
        about[GROUPING] = grouping
    with results.replaced_directory(out, RESULT_FILES) as aside:
        results.write_requests(aside / "requests.parquet", workload, result.requests, config.qos.startup)
        if result.instances is not None:
            results.write_instances(aside / "instances.parquet", workload, result.instances, config.qos.startup)
        if result.passes is not None:
            results.write_passes(aside / "passes.parquet", result.passes)
        if result.events is not None:
            results.write_events(aside / "events.parquet", workload, hosts, result.events, EVENT_KINDS)
        (aside / "manifest.json").write_text(json.dumps(about, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _files_in(config: Config) -> list[Path]:
    """Files that settings name: measured delays, host events, a user's own policy, score or cost."""
    own = [one.rpartition(":")[0] for one in (config.policy.name, config.policy.score, config.policy.cost)]
    named = [config.startup.hot, config.startup.cold, config.failures.file, *own]
    return [Path(one) for one in dict.fromkeys(named) if one and Path(one).is_file()]


def _totals(result: RunResult) -> dict[str, Any]:
    """Counts that belong to the run and not to the machine it ran on."""
    import numpy as np

    return {
        "requests": len(result.requests["row"]),
        "instances": len((result.requests if result.instances is None else result.instances)["row"]),
        "completed": int(np.count_nonzero(~np.isnan(result.requests["completed"]))),
        "passes": int(result.pass_count),
        "placements": int(result.placements),
        "preemptions": int(result.preemptions),
        "operations": int(result.operations),
        "bound_checks": int(result.bound_checks),
        "end": float(result.end),
    }


def _report(workload: Workload, hosts: Hosts, config: Config, result: RunResult, *, as_json: bool) -> None:
    from dataclasses import asdict

    from slacktide.cli import measure, outcome
    from slacktide.metrics import over_all, per_approach, per_class

    codes = workload.service_class[result.requests["row" if result.instances is None else "first"]]
    classes = per_class(result.requests, codes, workload.classes, config.qos.startup)
    everyone = over_all(result.requests)
    approaches = per_approach(result.requests, workload)
    totals = _totals(result)
    costs = {
        "compile_seconds": result.compile_seconds,
        "cpu_seconds": measure.cpu_seconds(),
        "peak_rss_mb": measure.peak_rss_mb(),
        "wall_seconds": measure.wall_seconds(),
    }
    if not as_json:
        click.echo(outcome.text(classes, everyone, config, totals, costs, len(hosts), approaches))
        return
    by_name = {one.name: {key: value for key, value in asdict(one).items() if key != "name"} for one in classes}
    availability = {accounting: asdict(one) for accounting, one in everyone.items()}
    about = {"policy": config.policy.name, "seed": config.simulation.seed, "accounting": config.qos.startup}
    listed = [asdict(one) for one in approaches]
    echo_json({**about, **totals, **costs, "availability": availability, "classes": by_name, "approaches": listed})
