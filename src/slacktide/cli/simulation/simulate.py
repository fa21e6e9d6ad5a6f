"""``slacktide simulate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import (
    COLUMNS,
    DURATION,
    FILE,
    KEEP,
    SETTING,
    checked,
    chosen_grouping,
    echo_json,
    grouping_options,
    option_words,
    prints_aside,
)
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.config import Config
    from slacktide.experiment.run_folder import Asked
    from slacktide.model import Hosts, Workload
    from slacktide.sim import RunResult

SHORTEST = 1e-3
"""Seconds of an interval (as ``sim.observing`` has it, which costs an import)."""


@click.command()
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@click.option(
    "--policy",
    metavar="NAME",
    shell_complete=completing.policies,
    help="qos-driven (default), priority, hybrid, one that 'slacktide policies' lists, or file.py:Class.",
)
@click.option(
    "--preset", metavar="NAME", shell_complete=completing.presets,
    help="Settings to start from: recommended (default), published or published-tuned.",
)  # fmt: skip
@click.option("--config", "config_file", type=FILE, help="Settings from a YAML, TOML or JSON file, or a manifest.json.")
@SETTING
@click.option("--hot", type=FILE, help="Measured start-up times on a host used before.")
@click.option("--cold", type=FILE, help="Measured start-up times on another host.")
@click.option(
    "--host-events",
    type=FILE,
    help="What happens to hosts: failures, what they have, who else is there. CSV: time,host,event.",
)
@click.option("--network", type=FILE, help="Where hosts and users are, round-trip times and images (YAML).")
@click.option("--ignore", metavar="WHAT", help="constraints: as if nobody had conditions on hosts or neighbours.")
@click.option("--end", metavar="DURATION", help="When it ends: 3600 or 1h. Needed where requests never complete.")
@click.option("--seed", metavar="N", help="Of everything drawn; equal seeds give equal results.")
@grouping_options
@COLUMNS
@KEEP
@click.option(
    "--out", type=FILE, help="Write requests.parquet, instances.parquet (where there are) and manifest.json there."
)
@click.option(
    "--format", "form", type=click.Choice(("parquet", "published")), default="parquet", show_default=True,
    help="Of what --out gets: our tables, or the four result files of the papers' simulator.",
)  # fmt: skip
@click.option("--passes", is_flag=True, help="With --out: also passes.parquet, a row per scheduling pass.")
@click.option("--events", is_flag=True, help="With --out: also events.parquet, a row per event.")
@click.option(
    "--intervals",
    metavar="DURATION",
    type=DURATION,
    help="With --out: also intervals.parquet and progress.parquet, rows every so often (10m is usual).",
)
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
    columns: str | None,
    keep: Path | None,
    out: Path | None,
    form: str,
    passes: bool,
    events: bool,
    intervals: float | None,
    as_json: bool,
    **named: object,
) -> None:
    """Simulates WORKLOAD on HOSTS: what was promised, what delivered.

    Files are read by their suffix: .parquet, .csv (also the papers' broker's), or .erl (the published Erlang terms).

    \b
      slacktide simulate w.parquet h.parquet --end 3600                     the recommended settings
      slacktide simulate w.parquet h.parquet --policy priority              what Kubernetes would do
      slacktide simulate w.parquet h.parquet --preset published --seed 7    as in the papers
      slacktide simulate w.parquet h.parquet --set policy.patience=30 --set qos.startup=always
      slacktide simulate w.erl h.erl --hot hot.erl --cold cold.erl --end 3600 --out results --passes
      slacktide simulate w.erl h.erl --config results/manifest.json         the same run again
      slacktide simulate w.erl h.erl --preset published --out log --format published
      slacktide simulate w.csv h.csv --policy mine.py:Mine                  a policy of your own
      slacktide simulate w.erl h.erl --group-by job --approach aggregated   a job's rows are one request
      slacktide simulate export.csv h.csv --columns "id=pod_uid, cpu=cpu_request:m, class=tier" --end 1d

    Settings are in the order preset, --config, --set, other options; the last one wins. 'slacktide settings'
    lists them, 'slacktide --help' the exit codes.
    """
    from slacktide import settings
    from slacktide.cli.process import give_back
    from slacktide.results.directory import check_target

    give_back()
    if (passes or events or intervals is not None) and out is None:
        raise click.UsageError("--passes, --events and --intervals write files: name a directory with --out")
    if form == "published" and (out is None or passes or events or intervals is not None):
        raise click.UsageError("--format published needs --out, and has no --passes, --events and --intervals of ours")
    checked(columns, keep)
    if intervals is not None and not SHORTEST <= intervals < float("inf"):
        raise click.UsageError(f"--intervals {intervals:g}: expected seconds, {SHORTEST:g} or more")
    config = settings.load(config_file, preset, [*words, *option_words(named)])
    grouping = chosen_grouping(group_by, kind, approach, config_file)
    from slacktide.experiment.run_folder import RESULT_FILES, Asked  # here, because it takes time: mistakes come first

    if out is not None:
        check_target(out, RESULT_FILES)
    if columns is None:
        requests, machines = _read(workload, hosts, config, grouping)
    else:
        requests, machines, config = _read_mapped(workload, hosts, config, grouping, columns, keep)
    asked = Asked(passes=passes, events=events, intervals=intervals, published=form == "published")
    _tell(requests)
    with prints_aside(as_json):
        result = _run(requests, machines, config, out, asked, [workload, hosts], grouping)
    _report(requests, machines, config, result, as_json=as_json)


def _read(workload: Path, hosts: Path, config: Config, grouping: dict[str, str] | None) -> tuple[Workload, Hosts]:
    from slacktide.inputs import align, read_hosts, read_workload
    from slacktide.inputs.grouping import grouped

    requests = grouped(read_workload(workload, classes=config.classes, rests=True), grouping)
    return align(requests, read_hosts(hosts), workload_file=str(workload), hosts_file=str(hosts))


def _read_mapped(
    workload: Path, hosts: Path, config: Config, grouping: dict[str, str] | None, columns: str, keep: Path | None
) -> tuple[Workload, Hosts, Config]:
    """A table with columns of its own; its first instant is that of second 0, unless settings say another one."""
    from dataclasses import replace

    from slacktide.cli import options as mapped
    from slacktide.inputs import align, read_hosts
    from slacktide.inputs.grouping import grouped
    from slacktide.model.window import EPOCH

    found = mapped.read(workload, columns, keep, config.classes, rests=True)
    if found.epoch and config.simulation.epoch == EPOCH:
        config = replace(config, simulation=replace(config.simulation, epoch=found.epoch))
    requests = grouped(found.workload, grouping)
    both = align(requests, read_hosts(hosts), workload_file=str(workload), hosts_file=str(hosts))
    return *both, config


def _tell(workload: Workload) -> None:
    """What the workload means that its file does not show."""
    if workload.lost is None and workload.requests is None:
        return
    from dataclasses import asdict

    from slacktide.cli.simulation.inspect import notes
    from slacktide.inputs.statistics import in_turn, past_of

    before = past_of(workload)
    for note in notes(None if before is None else asdict(before), in_turn(workload)):
        click.echo(f"slacktide: {note}", err=True)


def _run(
    workload: Workload,
    hosts: Hosts,
    config: Config,
    out: Path | None,
    asked: Asked,
    files: Sequence[Path],
    grouping: dict[str, str] | None,
) -> RunResult:
    import sys

    from slacktide.cli.progress import Progress
    from slacktide.experiment.run_folder import run_into
    from slacktide.sim import run

    def announce(text: str) -> None:
        click.echo(f"slacktide: {text}", err=True)

    with Progress() as progress:
        shown = progress if progress.wanted else None
        if out is None:
            events = config.delay.network is not None  # what users saw is told from them
            return run(workload, hosts, config, events=events, progress=shown, announce=announce)
        words = ["slacktide", *sys.argv[1:]]
        about: dict[str, Any] = {"files": files, "command": words, "asked": asked, "grouping": grouping}
        return run_into(out, workload, hosts, config, progress=shown, announce=announce, **about)


def _report(workload: Workload, hosts: Hosts, config: Config, result: RunResult, *, as_json: bool) -> None:
    from dataclasses import asdict

    from slacktide.cli import process
    from slacktide.cli.simulation import outcome
    from slacktide.experiment.run_folder import delays_of, per_class_of, totals, unserved_of
    from slacktide.metrics import over_all, per_approach

    classes = per_class_of(workload, config, result)
    everyone = over_all(result.requests)
    approaches = per_approach(result.requests, workload, config.qos.startup)
    counts = totals(result)
    costs = {
        "compile_seconds": result.compile_seconds,
        "cpu_seconds": process.cpu_seconds(),
        "peak_rss_mb": process.peak_rss_mb(),
        "wall_seconds": process.wall_seconds(),
    }
    never = unserved_of(workload, hosts, config, result)
    delays = delays_of(workload, hosts, config, result)
    seen = []
    if delays is not None:
        from slacktide.metrics.delay import user_delay

        seen = user_delay(delays, workload.classes).to_pylist()
    if not as_json:
        click.echo(outcome.text(classes, everyone, config, counts, costs, len(hosts), approaches))
        if never:
            click.echo(outcome.never_served(never), err=True)
        if seen:
            click.echo("\n" + outcome.delays(seen))
        return
    by_name = {one.name: {key: value for key, value in asdict(one).items() if key != "name"} for one in classes}
    availability = {accounting: asdict(one) for accounting, one in everyone.items()}
    about = {"policy": config.policy.name, "seed": config.simulation.seed, "accounting": config.qos.startup}
    listed = [asdict(one) for one in approaches]
    told: dict[str, Any] = {"delays": {one.pop("class"): one for one in seen}} if seen else {}
    told["never_served"] = {one.service: one.instances for one in never}
    told["too_large"] = {one.service: one.too_large for one in never if one.too_large}
    shown = {"availability": availability, "classes": by_name, "approaches": listed, **told}
    echo_json({**about, **counts, **costs, **shown})
