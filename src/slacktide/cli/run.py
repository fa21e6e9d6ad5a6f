"""``slacktide run``: the live scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE

if TYPE_CHECKING:
    from slacktide.config import Config
    from slacktide.kube.scheduler import Scheduler

FORMAT = "%(asctime)s %(levelname).1s %(name)s: %(message)s"
WARM_NODES = 2


@click.command()
@click.option("--kubeconfig", type=FILE, help="How to reach the cluster; inside a pod its own account if none is given.")
@click.option("--context", metavar="NAME", help="Of the kubeconfig; its current one if none is named.")
@click.option("--policy", metavar="NAME", help="qos-driven (default), priority or hybrid.")
@click.option("--preset", metavar="NAME", help="Settings to start from: recommended (default) or published.")
@click.option("--config", "config_file", type=FILE, help="Settings from a YAML, TOML or JSON file.")
@click.option("--set", "words", multiple=True, metavar="SECTION.KEY=VALUE", help="One setting; may be repeated.")
@click.option("--record", type=FILE, metavar="DIR", help="Write down all that comes in and what is decided.")
@click.option("--verbose", is_flag=True, help="Say more on stderr.")
def run(
    kubeconfig: Path | None,
    context: str | None,
    policy: str | None,
    preset: str | None,
    config_file: Path | None,
    words: tuple[str, ...],
    record: Path | None,
    verbose: bool,
) -> None:
    """Schedules pods of a Kubernetes cluster and keeps each workload above the availability it was promised.

    \b
      slacktide run --kubeconfig ~/.kube/config
      slacktide run --config slacktide.yaml --policy priority --set kube.qps=50

    Pods with schedulerName slacktide are ours, and so are nodes with the label slacktide.io/managed=true; others are
    left alone. Settings are in the order preset, --config, --set, other options; 'slacktide settings' lists them.
    """
    from slacktide.settings import load_live

    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, format=FORMAT)
    named = [] if policy is None else [f"policy.name={policy}"]
    config = load_live(config_file, preset, [*words, *named])
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    code = asyncio.run(_run(config, kubeconfig, context, record))
    if code:
        raise SystemExit(code)


def _identity() -> str:
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.getpid()}_{os.urandom(3).hex()}"


async def _run(config: Config, kubeconfig: Path | None, context: str | None, record: Path | None) -> int:
    from slacktide.kube.connection import connect
    from slacktide.kube.scheduler import LeadershipLost, Scheduler
    from slacktide.live.warming import warm

    warm(config)  # before a lease is held: compiling takes half a minute the first time
    async with await connect(kubeconfig, context=context, qps=config.kube.qps, burst=config.kube.burst) as connection:
        with contextlib.ExitStack() as stack:
            journal = None
            if record is not None:
                from slacktide.live.record import Recorder

                journal = stack.enter_context(Recorder(record, config))
            scheduler = Scheduler(connection, config, _identity(), journal)
            main = asyncio.ensure_future(_serve(scheduler))
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, main.cancel)
            try:
                await main
            except asyncio.CancelledError:
                with contextlib.suppress(Exception):
                    await scheduler.stop()
                logging.getLogger(__name__).info("stopped")
                return 0
            except LeadershipLost as lost:
                logging.getLogger(__name__).error("%s", lost)
                return 1
    return 0


async def _serve(scheduler: Scheduler) -> None:
    from slacktide.kube.serving import Server

    from slacktide.kube.scheduler import LeadershipLost

    async with Server(scheduler):
        try:
            await scheduler.run()
        except BaseExceptionGroup as problems:
            lost = problems.subgroup(LeadershipLost)
            if lost is not None:
                raise LeadershipLost(f"{scheduler.identity}: the lease is lost") from None
            raise
