"""``slacktide netprobe``: measure round-trip times between nodes, and read what was measured."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from slacktide.cli.options import FILE, echo_json, in_a_cluster
from slacktide.cli.process import run_fast, until_signal
from slacktide.cli.shell.suggesting import HelpfulGroup
from slacktide.cli.text import table
from slacktide.netprobe.options import HTTP_PORT, PORT, AgentIdentity, Options

if TYPE_CHECKING:
    from slacktide.netprobe.peers import Peer
    from slacktide.netprobe.table import Found

FORMAT = "%(asctime)s %(levelname).1s %(name)s: %(message)s"
DEFAULTS = Options()
POSITIVE = click.FloatRange(0, min_open=True)
F = TypeVar("F", bound=Callable[..., Any])


def _seconds(name: str, text: str, **kind: Any) -> Callable[[F], F]:
    default = getattr(DEFAULTS, name.replace("-", "_"))
    option = {"type": POSITIVE, "metavar": "SECONDS", "default": default, "show_default": True, "help": text, **kind}
    return click.option(f"--{name}", **option)


@click.group(cls=HelpfulGroup)
def netprobe() -> None:
    """Round-trip times between nodes, measured by agents."""


@netprobe.command("run")
@click.option("--node", metavar="NAME", help="The node that it runs on.  [default: the host name]")
@in_a_cluster("How to reach the cluster; inside a pod its own account if none is given.")
@click.option("--peer", "words", multiple=True, metavar="NAME=HOST:PORT", help="A peer; with one, no cluster is used.")
@click.option("--peers", "peers_file", type=FILE, help="A file of such, one a line; likewise.")
@click.option("--key-file", type=FILE, help="The shared key.  [default: $SLACKTIDE_NETPROBE_KEY]")
@click.option("--bind", default=f"[::]:{PORT}", show_default=True, metavar="HOST:PORT", help="Where it takes probes.")
@click.option(
    "--listen",
    default=f"127.0.0.1:{HTTP_PORT}",
    show_default=True,
    metavar="HOST:PORT",
    help="Where it serves /metrics, /livez, /readyz and /row; '' for nowhere.",
)
@click.option("--advertise", metavar="HOST:PORT", help="Where others reach it.  [default: the node's InternalIP]")
@_seconds("interval", "Between two probes of a peer.")
@_seconds("timeout", "Until a probe counts as lost.")
@_seconds("silent", "Without an answer for so long, a peer's mean is not told any more.")
@_seconds("full-mesh", "Up to so many peers all are measured.", type=click.IntRange(0, 1024), metavar="N")
@_seconds("sample", "Of more peers so many are measured.", type=click.IntRange(1, 1024), metavar="N")
@_seconds("near", "Of the sample so many are the nearest.", type=click.IntRange(0), metavar="N")
@_seconds("rotate", "After so long one of the sample is exchanged.")
@click.option("--seed", type=int, help="Of the sample and of the pauses; beside it, the node's name.")
@_seconds("skew", "How far another node's clock may be off.")
@_seconds("heartbeat", "The row is written at least so often, while something is measured.")
@_seconds("at-least-apart", "It is written at most so often.")
@_seconds("change-share", "A change of a mean is news above this share of it,", metavar="SHARE")
@_seconds("change-seconds", "and above this.")
@_seconds("stale-after", "A row without a measurement for so long is stale.")
@click.option("--verbose", is_flag=True, help="Say more on stderr.")
def run_(
    node: str | None,
    kubeconfig: Path | None,
    context: str | None,
    words: tuple[str, ...],
    peers_file: Path | None,
    key_file: Path | None,
    bind: str,
    listen: str,
    advertise: str | None,
    verbose: bool,
    **settings: Any,
) -> None:
    """The agent of one node: measures round-trip times to the agents of the others, until SIGTERM.

    \b
      slacktide netprobe run                                  in a pod of the DaemonSet
      slacktide netprobe run --node n1 --peer n2=10.0.0.2:10360 --key-file key

    On a cluster it finds its peers in their rows (NodeLatency) and writes its own.
    """
    from slacktide.netprobe.agent import host_name
    from slacktide.netprobe.peers import peers_of

    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, format=FORMAT)
    options = Options(**settings)
    if options.timeout >= options.silent or options.heartbeat >= options.stale_after:
        raise click.UsageError("--timeout must be below --silent, and --heartbeat below --stale-after")
    peers = peers_of(words, peers_file)
    alone = bool(words) or peers_file is not None
    if alone and (kubeconfig is not None or context is not None):
        raise click.UsageError("--peer, --peers: take the place of a cluster, and --kubeconfig names one")
    identity = AgentIdentity(node or host_name(), bind, listen, advertise or "", key_file)
    run_fast(_run(identity, options, peers if alone else None, kubeconfig, context))


async def _run(
    identity: AgentIdentity,
    options: Options,
    peers: tuple[Peer, ...] | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    from slacktide.kube.client.http import connect
    from slacktide.netprobe.agent import Agent
    from slacktide.netprobe.http_server import Server

    async with contextlib.AsyncExitStack() as stack:
        connection = None
        if peers is None:
            connection = await stack.enter_async_context(await connect(kubeconfig, context=context))
        agent = Agent(identity, options, peers=peers or (), connection=connection)
        stack.callback(agent.close)
        await stack.enter_async_context(Server(agent))
        try:
            if await until_signal(agent.run()):
                logging.getLogger(__name__).info("stopped")
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None


def _reading(command: F) -> F:
    """Options of the commands that read rows."""
    return in_a_cluster()(_seconds("stale-after", "A row without a measurement for so long is stale.")(command))


@netprobe.command()
@_reading
@click.option("--json", "as_json", is_flag=True, help="As JSON, with every measured peer.")
def show(kubeconfig: Path | None, context: str | None, stale_after: float, as_json: bool) -> None:
    """The rows of a cluster and how old they are."""
    import asyncio

    from slacktide.model.latency import fresh
    from slacktide.netprobe.table import HEAD, table_of

    found, now = asyncio.run(_read(kubeconfig, context, "")), time.time()
    if not as_json:
        click.echo(table(HEAD, table_of(found, now, stale_after)))
        return
    echo_json(
        {
            row.node: {
                "age_s": now - row.at,
                "stale": not fresh(row, now, stale_after),
                "error": row.error,
                "peers": {
                    name: {
                        "mean_ms": 1e3 * one.mean,
                        "deviation_ms": 1e3 * one.deviation,
                        "lost": one.lost,
                        "samples": one.samples,
                    }
                    for name, one in row.peers.items()
                },
            }
            for row in found.rows
        }
    )


@netprobe.command()
@_reading
@click.option("--out", type=FILE, required=True, help="The network file (YAML) for 'slacktide simulate --network'.")
@click.option("--site-label", metavar="KEY", default="", help="Node label that names the place; else each node is one.")
@click.option("--pessimism", type=click.FloatRange(1), default=2.0, show_default=True, metavar="FACTOR",
              help="Nodes without a fresh row are so many times the largest known time away.")  # fmt: skip
@click.option("--unknown", type=POSITIVE, default=1.0, show_default=True, metavar="SECONDS",
              help="Where no time is known at all.")  # fmt: skip
def export(
    kubeconfig: Path | None,
    context: str | None,
    stale_after: float,
    out: Path,
    site_label: str,
    pessimism: float,
    unknown: float,
) -> None:
    """Writes what the rows of a cluster say as a network file."""
    import asyncio

    from slacktide.netprobe.table import filled, network_file
    from slacktide.whole_file import write_whole

    found = asyncio.run(_read(kubeconfig, context, site_label))
    result = filled(found, time.time(), stale_after, pessimism, unknown)
    write_whole(out, network_file(result, site_label))
    if result.stale:
        click.echo(
            f"warning: {len(result.stale)} of {len(found.nodes)} nodes have no fresh row and count as"
            f" {1e3 * result.pessimistic:.1f} ms away: {', '.join(result.stale[:10])}"
            f"{', ...' if len(result.stale) > 10 else ''}",
            err=True,
        )
    click.echo(f"{len(result.names)} places in {out}", file=sys.stderr)


async def _read(kubeconfig: Path | None, context: str | None, site_label: str) -> Found:
    from slacktide.kube.client.http import connect
    from slacktide.netprobe.table import read_rows

    async with await connect(kubeconfig, context=context) as connection:
        return await read_rows(connection, site_label)
