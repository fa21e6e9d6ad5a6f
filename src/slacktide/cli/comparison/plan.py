"""``slacktide plan``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import (
    AS_JSON,
    COLUMNS,
    FILE,
    KEEP,
    SETTING,
    checked,
    chosen_grouping,
    echo_json,
    grouping_options,
    option_words,
    read,
)
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.config import Config
    from slacktide.experiment.goals import Goal
    from slacktide.experiment.grid import PolicyEntry
    from slacktide.experiment.planning import Plan

Words = tuple[str, ...]


@click.command()
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@click.option("--out", type=FILE, required=True, help="The plan's folder: its runs are kept there, too.")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.policies_and_presets,
    help="qos-driven, priority, hybrid, file.py:Class, or a preset; may be repeated [recommended].",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="CLASS=SHARE",
    help="Share of a class that is to reach its SLO; may be repeated [1 for every class].",
)
@click.option(
    "--penalty", type=click.FloatRange(0), metavar="BUDGET", help="Instead: penalties of at most so many cpu-seconds."
)
@click.option("--config", "config_file", type=FILE, help="Settings from a YAML, TOML or JSON file, or a manifest.json.")
@SETTING
@click.option("--hot", type=FILE, help="Measured start-up times on a host used before.")
@click.option("--cold", type=FILE, help="Measured start-up times on another host.")
@click.option(
    "--host-events", type=FILE, help="What happens to hosts (CSV: time,host,event): the hosts needed when these fail."
)
@grouping_options
@COLUMNS
@KEEP
@click.option("--end", metavar="DURATION", help="When it ends: 3600 or 1h. Needed where requests never complete.")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Each of so many seeds has to meet the goal.",
)
@click.option(
    "--within",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="HOSTS",
    help="The answer may be too large by fewer than so many.",
)
@click.option(
    "--most", type=click.IntRange(1), metavar="HOSTS", help="Test no more hosts than these [eight times HOSTS]."
)
@click.option("--curve/--no-curve", default=True, help="Also test sizes from half the answer on, for the drawing.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Runs at a time, threads or processes [all cores].")
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers do the runs.")
@AS_JSON
def plan(
    workload: Path,
    hosts: Path,
    out: Path,
    policies: Words,
    targets: Words,
    penalty: float | None,
    config_file: Path | None,
    words: Words,
    group_by: str | None,
    kind: str | None,
    approach: str | None,
    columns: str | None,
    keep: Path | None,
    seeds: int,
    within: int,
    most: int | None,
    curve: bool,
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
    **named: object,
) -> None:
    """Finds how many hosts, in the mix of HOSTS, WORKLOAD needs.

    \b
      slacktide plan w.parquet h.parquet --end 3600 --out plan
      slacktide plan w.parquet h.parquet --end 3600 --out plan --target gold=1 --target silver=0.99 --target bronze=0.9
      slacktide plan w.parquet h.parquet --end 3600 --out plan --policy priority --policy recommended --penalty 1000
      slacktide plan w.parquet h.parquet --end 3600 --out plan --host-events one-fails.csv       N - 1
      slacktide plan export.csv h.csv --columns guess --end 1d --out plan       a table with columns of its own

    Simulates several sizes at a time, each the mix of HOSTS in proportion, and leaves the curve of hosts against
    fulfilment and penalty (plan.csv, plan.parquet, plan.svg, plan.png) and the answer (plan.json). The answer is the
    smallest size tested from which on every tested size meets the goal. docs/experiments.md says more.
    """
    import sys

    from slacktide.cli.comparison.many import Telling
    from slacktide.experiment import curve as curves
    from slacktide.experiment import planning
    from slacktide.experiment import store as stores
    from slacktide.experiment.grid import FromFile
    from slacktide.experiment.local import cores, executor
    from slacktide.experiment.prepare import mapped
    from slacktide.inputs.problems import check_readable

    if jobs is not None and cluster is not None:
        raise click.UsageError("--jobs is for processes of this machine; a cluster has as many workers as you start")
    grouping = chosen_grouping(group_by, kind, approach, config_file)
    checked(columns, keep)
    entries = _policies(policies, config_file, [*words, *option_words(named)])
    config = next(iter(entries.values())).config
    goal = _goal(targets, penalty, config)
    for path in (workload, hosts):
        check_readable(path)
    own = None if columns is None else read(workload, columns, keep, config.classes)
    curves.check_drawing()
    command = ["slacktide", *sys.argv[1:]]
    try:
        with stores.opened(out) as store:
            requests = FromFile(workload.resolve())
            if own is not None:
                requests, entries = mapped(own.workload, own.epoch, entries, store.inputs)
            grid = planning.grid_of(requests, FromFile(hosts.resolve()), entries, seeds, grouping)
            with executor(store, jobs or cores(), cluster) as hands, Telling(store, hands.jobs) as telling:
                at_once = max(1, hands.jobs // (seeds * len(grid.policies)))
                question = planning.Question(grid, goal, command, at_once, within, most, curve)
                found = planning.plan(question, store, hands, telling)
            curves.write(found, store)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt("whole runs are kept: resume with the same command.") from interrupt
    if as_json:
        echo_json(planning.summary(found))
    else:
        _report(found, out)


def _policies(policies: Words, config_file: Path | None, words: Sequence[str]) -> dict[str, PolicyEntry]:
    from slacktide import settings
    from slacktide.experiment import planning

    def load(preset: str, policy: str | None) -> Config:
        last = [] if policy is None else [f"policy.name={policy}"]
        return settings.load(config_file, preset, [*words, *last])

    return planning.policies_of(policies or ("recommended",), load)


def _goal(targets: Words, penalty: float | None, config: Config) -> Goal:
    from slacktide.experiment.goals import goal_of

    found: dict[str, str] = {}
    for word in targets:
        name, equals, text = word.partition("=")
        if not equals:
            raise click.UsageError(f"--target: found {word!r}, expected CLASS=SHARE")
        if name in found:
            raise click.UsageError(f"--target {name}: given twice, expected one share for each class")
        found[name] = text
    return goal_of(found, penalty, config.classes)


def _report(found: Plan, out: Path) -> None:
    from slacktide.cli.text import table
    from slacktide.for_people import share

    rows = []
    for one in found.answers:
        at = one.bracket
        last = one.scores[at.meets if at.meets is not None else max(one.scores)]
        least = ", ".join(
            f"{name} {share(min(score.fulfilment[name] for score in last))}" for name in last[0].fulfilment
        )
        answer = f"more than {at.fails}" if at.meets is None else str(at.meets)
        scale = "-" if at.meets is None else f"{at.meets / len(found.mix):.3f}"
        owed = f"{max(score.penalty for score in last):,.0f}"
        rows.append([one.policy, answer, scale, str(at.fails), str(len(one.scores)), least, owed])
    head = ["policy", "hosts", "scale", "largest that fails", "tested", "fulfilment there", "penalty"]
    click.echo(f"Goal: {found.question.goal}.")
    if found.question.windows:
        over = ", ".join(f"{name} ({window})" for name, window in found.question.windows.items())
        click.echo(f"Promises over windows, each request judged by its worst window: {over}.")
    click.echo()
    click.echo(table(head, rows))
    for one in found.answers:
        if one.bracket.meets is None:
            click.echo(f"\n{one.policy}: not met with {found.most} hosts, the most that were tested (--most).")
        if one.exceptions:
            sizes = ", ".join(map(str, one.exceptions))
            click.echo(f"\n{one.policy}: also met with {sizes} hosts, but not with {one.bracket.fails}.")
    click.echo("\nFrom 'hosts' on every number that was tested meets the goal.")
    click.echo(f"The curve: {out / 'plan.svg'}, plan.png, plan.csv; the answer: plan.json.")
