"""``slacktide experiment``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json, key_values
from slacktide.cli.shell.suggesting import HelpfulGroup
from slacktide.cli.text import Tone, kept_text, paint, table
from slacktide.for_people import count

if TYPE_CHECKING:
    from slacktide.experiment.conduct import Listed
    from slacktide.experiment.grid import Grid, Point
    from slacktide.experiment.run import Outcome
    from slacktide.experiment.store import Store

SHOWN = 10
"""Of many failures this many are shown."""


@click.group(cls=HelpfulGroup)
def experiment() -> None:
    """Many runs: workloads, hosts, policies and seeds of one file."""


@experiment.command()
@click.argument("grid", type=FILE)
@click.option(
    "--out", type=FILE, required=True, help="The experiment's folder; what is in it already is not run again."
)
@click.option("--set", "words", multiple=True, metavar="NAME=VALUE", help="A variable of the grid; may be repeated.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Runs at a time, threads or processes [all cores].")
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler (tcp://HOST:PORT) whose workers do the runs.")
@click.option("--dry-run", is_flag=True, help="List the runs, which are done, and about how long the rest takes.")
@AS_JSON
def run(
    grid: Path,
    out: Path,
    words: tuple[str, ...],
    jobs: int | None,
    cluster: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Does the runs of GRID that have no results in --out yet.

    \b
      slacktide experiment run grid.yaml --out results --dry-run
      slacktide experiment run grid.yaml --out results
      slacktide experiment run grid.yaml --out results --set data=~/traces --jobs 8
      slacktide experiment run grid.yaml --out results --cluster tcp://scheduler:8786

    Interrupt it whenever you like: the same command goes on with what is missing. A change of the grid, of an input
    or of slacktide runs what it concerns. Failed runs are reported at the end and tried again the next time.
    docs/experiments.md describes the file.
    """
    from slacktide.cli.process import give_back
    from slacktide.experiment import conduct
    from slacktide.experiment import grid as grids
    from slacktide.experiment import store as stores
    from slacktide.experiment.local import cores

    give_back()
    if cluster is not None and jobs is not None:
        raise click.UsageError("--jobs is for runs on this machine; a cluster has as many workers as you start")
    asked = grids.read(grid, key_values(words, "NAME=VALUE", "data=~/traces"))
    runs = conduct.listed(asked)
    stores.check_folder(out)
    if dry_run:
        _list(stores.Store(out.absolute()), asked, runs, jobs or cores(), as_json)
        return
    try:
        with stores.opened(out) as store:
            import sys

            text = grid.read_text(encoding="utf-8")
            conduct.describe(store, asked, runs, ["slacktide", *sys.argv[1:]], text)
            failures = carry_out(asked, runs, store, jobs or cores(), cluster)
        tell(out, as_json=as_json)
        _end(out, runs, failures, as_json)
    except KeyboardInterrupt as interrupt:
        kept = stores.Store(out.absolute())
        done = len({one.key for one in runs if kept.has(one.key)})
        raise KeyboardInterrupt(f"{done} runs are done and whole: resume with the same command.") from interrupt


@experiment.command()
@click.argument("folder", metavar="DIR", type=FILE)
@click.option("--failed", is_flag=True, help="Only runs that failed, with their errors in full.")
@AS_JSON
def status(folder: Path, failed: bool, as_json: bool) -> None:
    """Lists the runs of an experiment's folder: done, failed or to come."""
    from slacktide.results import experiment as folders

    found = folders.read(folder)
    if as_json:
        shown = [one for one in found.runs if one.error is not None or not failed]
        names = ("workload", "hosts", "policy", "seed", "key", "error")
        told = [{name: getattr(one, name) for name in names} for one in shown]
        states = [_state(one.folder is not None, one.error) for one in shown]
        echo_json([{**one, "state": state} for one, state in zip(told, states, strict=True)])
        return
    if failed:
        for one in found.runs:
            if one.error is not None:
                click.echo(f"{one} (failures/{one.key}.json):\n{one.error}\n")
        return
    rows = [
        [one.workload, one.hosts, one.policy, str(one.seed), *_of_state(one.folder is not None, one.error, one.key)]
        for one in found.runs
    ]
    click.echo(table(["workload", "hosts", "policy", "seed", "state", "key"], rows, left=3))
    bad = sum(one.error is not None for one in found.runs)
    click.echo(f"\n{len(found.done)} of {len(found.runs)} runs are done, {bad} failed.")


def _of_state(done: bool, error: str | None, key: str) -> tuple[str, str]:
    state = _state(done, error)
    tones: dict[str, Tone] = {"done": "good", "failed": "bad"}
    return paint(state, tones.get(state)), key[:12]


def _state(done: bool, error: str | None) -> str:
    return "done" if done else "failed" if error is not None else "to come"


def carry_out(
    grid: Grid, runs: Sequence[Listed], store: Store, jobs: int, cluster: str | None
) -> list[tuple[Point, Outcome]]:
    """Do what is missing, with a line of progress on stderr; what failed."""
    from slacktide.cli.comparison.many import Telling
    from slacktide.experiment import conduct
    from slacktide.experiment.local import executor
    from slacktide.experiment.store import Expected

    guess = Expected(store, grid).of
    with executor(store, jobs, cluster) as hands, Telling(store, hands.jobs, guess=guess) as telling:
        return conduct.conduct(grid, runs, store, hands, telling)


def _list(store: Store, grid: Grid, runs: Sequence[Listed], jobs: int, as_json: bool) -> None:
    """The dry run."""
    from slacktide.experiment.store import Expected
    from slacktide.for_people import duration

    expected = Expected(store, grid)
    rows, left, to_come, unknown = [], 0.0, set(), 0
    for one in runs:
        point, done = one.point, store.has(one.key)
        takes = None if done or one.key in to_come else expected.of(point)
        if not done and one.key not in to_come:
            to_come.add(one.key)
            left, unknown = left + (takes or 0.0), unknown + (takes is None)
        about = "-" if takes is None else duration(takes)
        state = "done" if done else "to come"
        rows.append([point.workload, point.hosts, point.policy, str(point.seed), state, about, one.key[:12]])
    head = ["workload", "hosts", "policy", "seed", "state", "takes", "key"]
    if as_json:
        echo_json({"runs": [dict(zip(head, row, strict=True)) for row in rows], "seconds_left": left / jobs})
        return
    click.echo(table(head, rows, left=3))
    total = f", about {duration(left / jobs)} with {jobs} at a time" if unknown < len(to_come) else ""
    click.echo(f"\n{len(runs)} runs; {len(to_come)} to come{total}.")
    if unknown:
        click.echo(f"How long {unknown} of them take is not known before their workload is prepared.")
    elif to_come and not expected.known:
        click.echo("No run has ended here yet: the times are guesses from the numbers of requests.")


def _end(out: Path, runs: Sequence[Listed], failures: Sequence[tuple[Point, Outcome]], as_json: bool) -> None:
    """Say how it went. Raises :class:`RunsError` where runs failed."""
    from slacktide.errors import RunsError

    count = len({one.key for one in runs})
    if not failures:
        done = "the run is" if count == 1 else f"all {count} runs are"
        said = f"{out}: {done} done. Next: slacktide report {out} --out report.html"
        click.echo(said, err=as_json)
        return
    others = ", the others are done" if len(failures) < count else ""
    lines = [f"{len(failures)} of {count} runs failed{others}. Their errors are in {out / 'failures'}:"]
    for point, outcome in failures[:SHOWN]:
        lines.append(f"  {point.workload} / {point.hosts} / {point.policy} / seed {point.seed}: {outcome.error}")
    if len(failures) > SHOWN:
        lines.append(f"  ... and {len(failures) - SHOWN} more ('slacktide experiment status {out} --failed')")
    raise RunsError("\n".join(lines))


def tell(folder: Path, *, as_json: bool) -> None:
    """A row for each host set and policy of the finished runs of ``folder``, from their manifests; of none, nothing."""
    rows, classes = outcome(folder)
    if as_json:
        echo_json(rows)
        return
    if not rows:
        return
    head = ["hosts", "policy", "runs", *(f"{name} kept" for name in classes), "preempted", "operations"]
    cells = [
        [
            one["hosts"],
            one["policy"],
            str(one["runs"]),
            *(kept_text(one["kept"][name]) if name in one["kept"] else "-" for name in classes),
            count(one["preemptions"]),
            count(one["operations"]),
        ]
        for one in rows
    ]
    click.echo("Promises kept (of all requests of a class); the rest are means of a run:\n")
    click.echo(f"{table(head, cells, left=2)}\n")


def outcome(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows (hosts, policy, runs, kept by class, preemptions, operations) and the classes, most important first.

    Raises :class:`InputError` for a folder that is no experiment.
    """
    from slacktide.metrics.columns import codes
    from slacktide.model import arrow
    from slacktide.results import experiment as folders

    sums: dict[tuple[str, str], dict[str, Any]] = {}
    classes: dict[str, None] = {}
    for run in folders.read(folder).done:
        manifest = run.manifest()
        one = sums.setdefault((run.hosts, run.policy), {"runs": 0, "preemptions": 0, "operations": 0, "classes": {}})
        one["runs"] += 1
        for name in ("preemptions", "operations"):
            one[name] += manifest["totals"][name]
        names = [entry["name"] for entry in manifest["configuration"]["classes"]]
        classes |= dict.fromkeys(names)
        requests = run.requests()
        code, met = codes(requests, names), arrow.as_numpy(requests["slo_met"])
        for number, name in enumerate(names):
            mine = met[code == number]
            if len(mine):
                tally = one["classes"].setdefault(name, [0, 0])
                tally[0] += int(mine.sum())
                tally[1] += len(mine)
    rows = [
        {
            "hosts": hosts,
            "policy": policy,
            "runs": one["runs"],
            "kept": {name: kept / all_ for name, (kept, all_) in one["classes"].items()},
            "preemptions": one["preemptions"] / one["runs"],
            "operations": one["operations"] / one["runs"],
        }
        for (hosts, policy), one in sums.items()
    ]
    return rows, [name for name in classes if any(name in row["kept"] for row in rows)]
