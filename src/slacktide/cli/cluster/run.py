"""``slacktide run``: the live scheduler."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE, SETTING, in_a_cluster
from slacktide.cli.process import run_fast, until_signal
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.config import Config
    from slacktide.engine.core.engine import Journal
    from slacktide.kube.client.http import Connection
    from slacktide.kube.observe.http_server import SchedulerPages
    from slacktide.kube.scheduler import Scheduler

FORMAT = "%(asctime)s %(levelname).1s %(name)s: %(message)s"


@click.command()
@in_a_cluster("How to reach the cluster; inside a pod its own account if none is given.")
@click.option(
    "--policy", metavar="NAME", shell_complete=completing.policies, help="qos-driven (default), priority or hybrid."
)
@click.option(
    "--preset", metavar="NAME", help="Settings to start from: recommended (default), published or published-tuned."
)
@click.option("--config", "config_file", type=FILE, help="Settings from a YAML, TOML or JSON file.")
@SETTING
@click.option("--record", type=FILE, metavar="DIR", help="Write down all that comes in and what is decided.")
@click.option("--dry-run", is_flag=True, help="Decide beside another scheduler, write nothing, and report in the end.")
@click.option(
    "--startup",
    type=click.Choice(["measured", "drawn"]),
    default="measured",
    show_default=True,
    help="Start-ups of a dry run: as the cluster's pods show them, or all from startup.cold.",
)
@click.option(
    "--log",
    "log_form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines on stderr: for people, or an object each, with the pod, node and pass that it is about.",
)
@click.option("--verbose", is_flag=True, help="Say more on stderr.")
def run(
    kubeconfig: Path | None,
    context: str | None,
    policy: str | None,
    preset: str | None,
    config_file: Path | None,
    words: tuple[str, ...],
    record: Path | None,
    dry_run: bool,
    startup: str,
    log_form: str,
    verbose: bool,
) -> None:
    """Schedules pods of a cluster so that promises are kept.

    \b
      slacktide run --kubeconfig ~/.kube/config
      slacktide run --config slacktide.yaml --policy priority --set kube.qps=50
      slacktide run --dry-run --set kube.scheduler_name=default-scheduler --set kube.all_nodes=true

    Pods with schedulerName slacktide are ours, and so are nodes with the label
    node-restriction.kubernetes.io/slacktide=true; others are left alone. Settings are in the order preset, --config,
    --set, other options; 'slacktide settings' lists them.

    A dry run reports when it ends (Ctrl-C, SIGTERM), on SIGUSR1, and at /report of kube.listen.
    """
    from slacktide.settings import load_live

    _say(log_form, verbose=verbose)
    logging.getLogger("numba").setLevel(logging.WARNING)  # it says millions of lines while it compiles
    named = [] if policy is None else [f"policy.name={policy}"]
    config = load_live(config_file, preset, [*words, *named])
    if dry_run:
        if record is not None:
            raise click.UsageError("--record: a dry run acts on nothing, so that there is nothing to record")
        code = run_fast(_dry_run(config, kubeconfig, context, startup == "measured"))
    else:
        code = run_fast(_run(config, kubeconfig, context, record))
    if code:
        raise SystemExit(code)


def _say(form: str, *, verbose: bool) -> None:
    from slacktide.kube.client.log_fields import JsonFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else logging.Formatter(FORMAT))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])


def _identity() -> str:
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.getpid()}_{os.urandom(3).hex()}"


async def _run(config: Config, kubeconfig: Path | None, context: str | None, record: Path | None) -> int:
    from slacktide.engine.warm_up import warm
    from slacktide.kube.client.http import connect
    from slacktide.kube.client.pacing import PATIENCE_SECONDS
    from slacktide.kube.leader_session import GaveWay, LeadershipLost

    log = logging.getLogger(__name__)
    warm(config)  # before a lease is held: compiling takes up to a minute the first time
    kube, patience = config.kube, PATIENCE_SECONDS
    async with await connect(
        kubeconfig, context=context, qps=kube.qps, burst=kube.burst, rights_patience=patience
    ) as connection:
        yields = 0.0
        while True:
            try:
                if await _one_start(connection, config, record, yields):
                    log.info("stopped")
                return 0
            except LeadershipLost as lost:
                log.error("%s", lost)
                return 1
            except GaveWay as why:
                log.error("released the lease and starts again: %s", why)
            gc.collect()  # what the mirror and the engine held, before there are others
            yields = config.kube.lease_duration  # others come first


async def _one_start(connection: Connection, config: Config, record: Path | None, yields: float) -> bool:
    """Schedule, from nothing; whether that was interrupted. Raises ``LeadershipLost`` and ``GaveWay``."""
    from slacktide.kube.observe.http_server import SchedulerPages, told_to
    from slacktide.kube.scheduler import Scheduler

    with contextlib.ExitStack() as stack:
        scheduler = Scheduler(connection, config, _identity(), yields=yields)
        window = SchedulerPages(scheduler)
        journal: Journal = window.journal
        if record is not None:
            from slacktide.engine.journal.record import Recorder

            journal = told_to(stack.enter_context(Recorder(record, config)), journal)
        return await until_signal(_serve(scheduler, window, journal))


async def _serve(scheduler: Scheduler, window: SchedulerPages, journal: Journal) -> None:
    import asyncio

    from slacktide.kube.leader_session import GaveWay, LeadershipLost
    from slacktide.kube.observe.http_server import Server

    async with Server(scheduler, window.routes(), scheduler.connection) as server:
        window.certificate = server.certificate
        stalls = asyncio.ensure_future(window.loop_lag.run())
        try:
            await scheduler.run(journal)
        except BaseExceptionGroup as problems:
            if problems.subgroup(LeadershipLost) is not None:
                raise LeadershipLost(f"{scheduler.identity}: lost the lease") from None
            if problems.subgroup(GaveWay) is not None:
                raise GaveWay(scheduler.stale() or "a watch has stopped") from None
            raise
        finally:
            stalls.cancel()


async def _dry_run(config: Config, kubeconfig: Path | None, context: str | None, measured: bool) -> int:
    import asyncio

    import numpy as np

    from slacktide.dryrun.dry_run import DryRun, ReadOnly, Starts, reports
    from slacktide.engine.warm_up import warm
    from slacktide.kube.client.credentials import load_access
    from slacktide.kube.client.http import Connection
    from slacktide.kube.observe.http_server import Server
    from slacktide.sim.startup import delays

    table = delays(config.startup.cold, "startup.cold")
    chance = np.random.default_rng(config.simulation.seed)
    starts = Starts(lambda: float(chance.choice(table)), measured, config.simulation.seed)
    warm(config)
    access = await load_access(kubeconfig, context)
    async with (
        ReadOnly(access, qps=config.kube.qps, burst=config.kube.burst) as connection,
        Connection(access) as asking,  # of nothing but who may read the report
    ):
        watched = DryRun(connection, config, starts)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: click.echo(watched.text()))
        async with Server(watched, reports(watched), asking):
            await until_signal(watched.run())
        click.echo(watched.text())
    return 0
