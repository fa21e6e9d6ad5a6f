"""``slacktide broker``."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import AS_JSON, DURATION, FILE, GROUPS, echo_json, in_a_cluster
from slacktide.cli.process import run_fast, until_signal

if TYPE_CHECKING:
    from slacktide.model import Workload
    from slacktide.submit.broker import Broker, BrokerReport
    from slacktide.submit.manifests import Submission

SAY_SECONDS = 5.0


@click.command()
@click.argument("workload", type=FILE)
@in_a_cluster("How to reach the cluster; a pod's own account if none is given.")
@click.option("--namespace", default="default", show_default=True, help="Where to; made where it is missing.")
@click.option("--name", "run", default="w", show_default=True, help="Begins all names; a label of all objects.")
@click.option(
    "--speed",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="So many of the workload's seconds pass in one: admissions, durations, start-up times, scale events.",
)
@click.option("--end", type=DURATION, metavar="DURATION", help="Stop at this time of the workload.")
@click.option("--startup", metavar="TIMES", help="A distribution of start-up times (one for each object), or a file.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the start-up times.")
@click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="RESOURCE=QUANTITY",
    help="What a demand of 1 is.  [default: cpu=1, memory=1Gi, else 1]",
)
@click.option("--config", "config_file", type=FILE, help="Settings: the classes that the workload names.")
@click.option("--scheduler-name", default="slacktide", show_default=True, help="schedulerName of all pods.")
@click.option("--group-by", type=click.Choice(GROUPS), help="job: rows of one job and class are one Deployment.")
@click.option("--create-classes", is_flag=True, help="Make ServiceClasses that are missing.")
@click.option("--delete", is_flag=True, help="Remove everything at the end, or when interrupted.")
@AS_JSON
def broker(
    workload: Path,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    run: str,
    speed: float,
    end: float | None,
    startup: str | None,
    seed: int,
    units: tuple[str, ...],
    config_file: Path | None,
    scheduler_name: str,
    group_by: str | None,
    create_classes: bool,
    delete: bool,
    as_json: bool,
) -> None:
    """Submits WORKLOAD to a cluster as Deployments and Jobs.

    It does so at the workload's own times, and names their service classes. A workload of the papers' own broker is
    read, too (docs/formats.md).

    \b
      slacktide broker w.csv --kubeconfig ~/.kube/config --create-classes
      slacktide broker w.erl --speed 10 --end 3600 --startup lognormal:2.5,0.4 --delete

    Services become Deployments, batch requests Jobs; scale events change replicas. A service with a duration is
    removed once its pods have been ready for so long; a Job's pods run for the mean duration of its instances.
    Start-up and running times are annotations, which the lab's kubelets play ('slacktide lab').
    """
    from slacktide import settings
    from slacktide.inputs import group_by_job, read_workload
    from slacktide.sim.startup import delays
    from slacktide.submit.manifests import Manner, submissions

    config = settings.load(config_file)
    requests = read_workload(workload, classes=config.classes)
    if group_by == "job":
        requests = group_by_job(requests)
    table = None if startup is None else delays(startup, "--startup")
    manner = Manner(run, scheduler_name, speed, seed=seed, delays=table, units=_units(units))
    items = submissions(requests, manner, str(workload))
    until = float("inf") if end is None else end
    report, interrupted = run_fast(
        _submit(items, requests, kubeconfig, context, namespace, run, speed, until, create_classes, delete)
    )
    if as_json:
        echo_json(asdict(report))
    else:
        click.echo(_text(report))
    if interrupted:
        raise KeyboardInterrupt


def _units(words: tuple[str, ...]) -> dict[str, str]:
    from slacktide.kube.client.quantities import nanos
    from slacktide.submit.manifests import UNITS

    found = dict(UNITS)
    for word in words:
        resource, equals, quantity = word.partition("=")
        try:
            if not equals or nanos(quantity) <= 0:
                raise ValueError
        except ValueError:
            expected = "RESOURCE=QUANTITY, such as cpu=500m"
            raise click.BadParameter(f"found {word!r}, expected {expected}", param_hint="--unit") from None
        found[resource] = quantity
    return found


async def _submit(
    items: list[Submission],
    workload: Workload,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    run: str,
    speed: float,
    until: float,
    create_classes: bool,
    delete: bool,
) -> tuple[BrokerReport, bool]:
    """The report, and whether it was interrupted."""
    from slacktide.kube.client.http import connect
    from slacktide.submit.broker import Broker

    used = {int(number) for number in workload.service_class}
    classes = [one for number, one in enumerate(workload.classes) if number in used]
    async with await connect(kubeconfig, context=context) as connection:
        made = Broker(connection, namespace, run, speed=speed, progress=_Progress())
        await made.prepare(classes, create=create_classes)
        interrupted = await until_signal(made.submit(items, until))
        if delete:
            await _clean_up(made)
        return made.report, interrupted


async def _clean_up(made: Broker) -> None:
    click.echo("removing what was submitted", err=True)
    await made.delete_all()


class _Progress:
    """A line on stderr every few seconds."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, now: float, report: BrokerReport) -> None:
        if time.monotonic() - self._said >= SAY_SECONDS:
            self._said = time.monotonic()
            click.echo(f"second {now:.0f} of the workload: {_text(report)}", err=True)


def _text(report: BrokerReport) -> str:
    done = f"{report.deployments} Deployments and {report.jobs} Jobs submitted"
    done += f", {report.scaled} scaled, {report.removed} removed"
    refused = f", {report.refused} refused by the API server" if report.refused else ""
    first = f"\nfirst refusal: {report.problems[0]}" if report.problems else ""
    return f"{done}{refused}; late by at most {report.latest:.2f} s{first}"
