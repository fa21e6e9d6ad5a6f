"""``slacktide trace``: published traces and large workloads made into those of an experiment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from slacktide.cli.options import AS_JSON, COLUMNS, FILE, SHARE, key_values
from slacktide.cli.shell import completing
from slacktide.cli.shell.suggesting import HelpfulGroup
from slacktide.cli.simulation import trace_rows
from slacktide.cli.simulation.preparing import (
    CONFIG,
    SEED,
    Parts,
    about,
    given,
    needs,
    numbers,
    tell_manifest,
)

if TYPE_CHECKING:
    from slacktide.inputs.prepare import Peak
    from slacktide.inputs.traces import Converted
    from slacktide.model import Hosts, Workload


@click.group(cls=HelpfulGroup)
def trace() -> None:
    """Prepares workloads and hosts, also from published traces.

    It converts, samples, cuts and thins, and draws host sets.

    \b
      slacktide trace convert                                                   lists the formats
      slacktide trace convert openb pods.csv nodes.csv --out openb
      slacktide trace sample month/workload.parquet --share 0.1 --out sample
      slacktide trace window sample/workload.parquet --from 0 --to 3600 --out hour.parquet
      slacktide trace hosts hour.parquet month/hosts.parquet --out sets         sets of N, .9 N and .8 N
      slacktide trace admit hour.parquet sets/hosts-1.0.parquet --out admitted.parquet

    docs/traces.md describes formats and commands.
    """


for command in (trace_rows.admit, trace_rows.thin, trace_rows.window, trace_rows.scale):
    trace.add_command(command)


@trace.command()
@click.argument("name", required=False, metavar="[FORMAT]", shell_complete=completing.formats)
@click.argument("sources", nargs=-1, type=FILE, metavar="[SOURCE]...")
@click.option("--out", type=FILE, help="The directory to write workload.parquet and hosts.parquet into.")
@click.option("--map", "mapping", metavar="RULES", help="Priorities to classes: 9-=gold,2-8=silver,*=bronze.")
@click.option(
    "--set", "words", multiple=True, metavar="KEY=VALUE", shell_complete=completing.format_parameters,
    help="A parameter; may be repeated.",
)  # fmt: skip
@CONFIG
@SEED
@AS_JSON
def convert(
    name: str | None,
    sources: tuple[Path, ...],
    out: Path | None,
    mapping: str | None,
    words: tuple[str, ...],
    config_file: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    """Makes a published trace a workload and hosts. Without FORMAT: lists the formats and their parameters.

    SOURCE are files, or folders that hold them.

    \b
      slacktide trace convert google2011 clusterdata-2011-2 --out google
      slacktide trace convert openb pods.csv nodes.csv --out openb --set capacity=0.9
      slacktide trace convert broker workload-broker.csv --set hosts=20 --out broker
      slacktide trace convert swf log.swf.gz --map "0=gold,1-3=silver,*=bronze" --out log
    """
    needs("polars")
    from slacktide.inputs.traces import TRACES

    if name is None:
        click.echo("\n\n".join(map(_described, TRACES.values())))
        return
    if name not in TRACES:
        from slacktide.inputs.columns.cells import expected_name

        raise click.UsageError(f"FORMAT: found {name!r}, expected {expected_name(name, list(TRACES))}")
    if not sources:
        raise click.UsageError(f"SOURCE is missing: name the files or folders of {TRACES[name].summary}")
    if out is None:
        raise click.UsageError("--out is missing: name the directory to write into")
    _convert(name, sources, out, mapping, key_values(words), config_file, seed, as_json)


def _described(one: Any) -> str:
    lines = [f"{one.name}: {one.summary}", f"    --map {one.mapping}  ({one.priority})"]
    lines += [f"    {each.name}={each.default}  {each.help}" for each in one.parameters]
    return "\n".join(lines)


def _convert(
    name: str,
    sources: tuple[Path, ...],
    out: Path,
    mapping: str | None,
    settings: dict[str, str],
    config_file: Path | None,
    seed: int,
    as_json: bool,
) -> None:
    from slacktide import settings as settings_of
    from slacktide.for_people import count, counted
    from slacktide.inputs.traces import TRACES, ClassMap, convert
    from slacktide.inputs.traces.output import FILES
    from slacktide.results import file_hashes
    from slacktide.results.directory import check_target, replaced_directory

    known = [one.name for one in settings_of.load(config_file).classes]
    classes = ClassMap.parse(mapping or TRACES[name].mapping, known)
    check_target(out, FILES)
    with replaced_directory(out, FILES) as aside, Parts() as progress:
        found: Converted = convert(
            name, sources, aside, classes=classes, settings=settings, seed=seed, tell=progress.tell
        )
        said = {"format": name, "map": str(classes), "parameters": settings, "seed": seed}
        outcome: dict[str, Any] = {"requests": found.requests, "hosts": found.hosts, "dropped": dict(found.dropped)}
        outcome["notes"] = list(found.notes)
        about(aside / "manifest.json", "convert", said, file_hashes(found.files), outcome)
    if as_json:
        tell_manifest(out / "manifest.json")
        return
    hosts = f", {counted(found.hosts, 'host')} in hosts.parquet" if found.hosts else ""
    click.echo(f"{out}: {counted(found.requests, 'request')} in workload.parquet{hosts}")
    for why, number in found.dropped.items():
        if number:
            click.echo(f"left out: {count(number)} {why}")
    for note in found.notes:
        click.echo(note)


@trace.command()
@click.argument("folder", type=FILE)
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@click.option("--out", type=FILE, required=True, help="The directory to write the tables of a run into.")
@click.option("--policy", default="qos-driven", show_default=True, help="Under which it was run; the manifest says it.")
@CONFIG
@AS_JSON
def results(
    folder: Path, workload: Path, hosts: Path, out: Path, policy: str, config_file: Path | None, as_json: bool
) -> None:
    """Makes result files of the papers' simulator results of ours, which other commands read.

    FOLDER holds the four files (allocation, preemption, termination, waiting queue), the authors' or those of
    'simulate --format published'; WORKLOAD and HOSTS are what was run.

    \b
      slacktide trace results published-simulator-qos workload.erl hosts-20.erl --out theirs
      slacktide simulate workload.erl hosts-20.erl --preset published --end 3599 --out ours
      slacktide validate theirs ours --accounting restart
      slacktide dashboard theirs
    """
    import sys

    from slacktide import settings as settings_of
    from slacktide.experiment.published_results import as_results
    from slacktide.for_people import counted
    from slacktide.inputs import align, read_hosts, read_workload

    config = settings_of.load(config_file, "published", [f"policy.name={policy}"])
    requests, machines = align(
        read_workload(workload, classes=config.classes), read_hosts(hosts),
        workload_file=str(workload), hosts_file=str(hosts),
    )  # fmt: skip
    found = as_results(folder, out, requests, machines, config, [workload, hosts], ["slacktide", *sys.argv[1:]])
    if as_json:
        tell_manifest(out / "manifest.json")
        return
    told = f"{counted(found['requests'], 'request')}, {counted(found['placements'], 'placement')}, "
    click.echo(
        f"{out}: {told}{counted(found['preemptions'], 'preemption')} in {counted(found['passes'], 'pass', 'passes')}"
    )
    if found["without_startups"]:
        click.echo("the files do not say how long starts took: 0 s is taken")


@trace.command()
@click.argument("workload", type=FILE)
@click.option("--out", type=FILE, required=True, help="The directory to write workload.parquet and users.parquet into.")
@click.option("--share", type=SHARE, default=0.1, show_default=True, metavar="PART", help="Of the users of each group.")
@click.option("--groups", default=6, show_default=True, metavar="N", help="Groups of users that are alike (k-means).")
@SEED
@AS_JSON
def sample(workload: Path, out: Path, share: float, groups: int, seed: int, as_json: bool) -> None:
    """Keeps all requests of some users, drawn from each group of users that are alike.

    WORKLOAD (.parquet or .csv) needs the column user, which 'trace convert' writes. Groups are made by k-means on the
    number of a user's requests and the variances of their CPU, memory and duration.

    \b
      slacktide trace sample month/workload.parquet --share 0.1 --groups 6 --seed 1 --out sample
    """
    needs("polars", "sklearn")
    from slacktide.cli.text import table
    from slacktide.for_people import count, counted
    from slacktide.inputs.prepare.sampling import sample as draw
    from slacktide.results import file_hashes
    from slacktide.results.directory import check_target, replaced_directory

    files = frozenset({"workload.parquet", "users.parquet", "manifest.json"})
    check_target(out, files)
    with replaced_directory(out, files) as aside, Parts() as progress:
        progress.tell("grouping users")
        found = draw(workload, aside / "workload.parquet", share=share, groups=groups, seed=seed)
        progress.tell("writing")
        found.users.write_parquet(aside / "users.parquet")
        users = found.users.height
        drawn = int(found.users["drawn"].sum())
        nameless, of_nobody = found.nameless
        outcome = {"users": users, "drawn": drawn, "requests": found.requests, "without user": nameless}
        said = {"share": share, "groups": groups, "seed": seed}
        about(aside / "manifest.json", "sample", said, file_hashes([workload]), outcome)
    if as_json:
        tell_manifest(out / "manifest.json")
        return
    click.echo(f"{out}: {counted(found.requests, 'request')} of {count(drawn)} of {counted(users, 'user')}")
    if nameless:
        click.echo(
            f"among them {count(of_nobody)} of the {count(nameless)} requests of no known user, drawn one by one"
        )
    click.echo("")
    listed = found.groups().select("group", "users", "drawn", "all_requests", "drawn_requests").iter_rows()
    rows = [[str(row[0]), *map(count, row[1:])] for row in listed]
    click.echo(table(("group", "users", "drawn", "requests", "of drawn users"), rows))


@trace.command()
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@click.option("--out", type=FILE, required=True, help="The directory to write hosts-1.0.parquet and the others into.")
@click.option("--capacities", default="1,0.9,0.8", show_default=True, metavar="PARTS", help="In parts of N.")
@click.option(
    "--of",
    type=click.Choice(("peak", "hosts")),
    default="peak",
    show_default=True,
    help="What N is: the peak demand of WORKLOAD, or what HOSTS have together.",
)
@click.option("--replace", "repeat", is_flag=True, help="Where all HOSTS do not reach N, draw from them again.")
@CONFIG
@COLUMNS
@SEED
@AS_JSON
def hosts(
    workload: Path,
    hosts: Path,
    out: Path,
    capacities: str,
    of: Literal["peak", "hosts"],
    repeat: bool,
    config_file: Path | None,
    columns: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Draws host sets of capacity N, 0.9 N and 0.8 N from HOSTS; N is the peak demand of WORKLOAD.

    N is of the binding resource, the one that HOSTS have least of compared with what WORKLOAD demands at once if
    nobody waits. Hosts are drawn without replacement until they have N; of them random ones are removed until the
    others have at most 0.9 N, and so on.

    \b
      slacktide trace hosts workload.parquet hosts.parquet --out sets
      slacktide trace hosts workload.parquet hosts.parquet --capacities 1.1,1,0.7 --seed 3 --out sets
      slacktide trace hosts workload.erl hosts.erl --of hosts --out sets      parts of the hosts there are
    """
    from slacktide.cli.text import table
    from slacktide.for_people import count
    from slacktide.inputs import read_hosts, write_hosts
    from slacktide.inputs.prepare import binding_resource, host_sets
    from slacktide.results import file_hashes
    from slacktide.results.directory import check_target, replaced_directory

    parts = numbers("--capacities", capacities)
    files = frozenset({*(f"hosts-{part}.parquet" for part in parts), "manifest.json", *_earlier_sets(out)})
    check_target(out, files)
    with replaced_directory(out, files) as aside, Parts() as progress:
        population = read_hosts(hosts)  # first, as the smaller one, lest a mistake in it be found late
        needed, population = _peak(workload, hosts, population, config_file, progress, columns)
        binding = binding_resource(needed, population, file=str(hosts))
        sets = host_sets(needed, population, parts, of=of, seed=seed, repeat=repeat, file=str(hosts))
        reached = {
            str(part): dict(zip(found.resources, found.capacity.sum(axis=0).tolist(), strict=True))
            for part, found in sets.items()
        }
        peaks = dict(zip(needed.resources, needed.amount.tolist(), strict=True))
        progress.tell("writing")
        for part, found in sets.items():
            write_hosts(found, aside / f"hosts-{part}.parquet")
        outcome = {"binding": binding, "peak": peaks, "capacity": reached}
        said = {"capacities": list(sets), "of": of, "replace": repeat, "seed": seed}
        about(aside / "manifest.json", "hosts", said, file_hashes([workload, hosts]), outcome)
    if as_json:
        tell_manifest(out / "manifest.json")
        return
    place = needed.resources.index(binding)
    amount, second = needed.amount[place], needed.time[place]
    click.echo(f"The peak is {amount:g} {binding}, demanded at second {second:g}; in parts of each resource's peak:\n")
    rows = [
        [
            f"hosts-{part}.parquet",
            count(len(found)),
            *(f"{reached[str(part)][name] / peaks[name]:.3f}" if peaks[name] else "-" for name in found.resources),
        ]
        for part, found in sets.items()
    ]
    click.echo(table(("file", "hosts", *needed.resources), rows))


def _peak(
    workload: Path, hosts: Path, population: Hosts, config_file: Path | None, progress: Parts, columns: str | None
) -> tuple[Peak, Hosts]:
    """The peak of the workload, and the machines of ``hosts``, with the same resources."""
    from slacktide.inputs import align
    from slacktide.inputs.prepare import peak_of_pieces

    source = given(workload, config_file, progress, "looking for the peak", "looking for the peak", columns)
    machines = population

    def together() -> Iterator[Workload]:
        nonlocal machines
        for piece in source.pieces:
            requests, machines = align(piece, population, workload_file=str(workload), hosts_file=str(hosts))
            yield requests

    return peak_of_pieces(together()), machines


def _earlier_sets(out: Path) -> set[str]:
    """The host sets, of whatever capacities, that this command left in ``out`` before."""
    try:
        said = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        return (
            {f"hosts-{part}.parquet" for part in said["settings"]["capacities"]} if said["trace"] == "hosts" else set()
        )
    except (OSError, ValueError, KeyError, TypeError):
        return set()
