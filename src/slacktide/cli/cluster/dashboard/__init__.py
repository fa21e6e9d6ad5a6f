"""``slacktide dashboard``: the page in a browser, of a running scheduler, a simulation or a record."""

from __future__ import annotations

from pathlib import Path

import click

from slacktide.cli.cluster.scheduler_pages import Trust, asking_a_scheduler
from slacktide.cli.options import FILE


@click.command()
@click.argument("folder", metavar="[DIR]", type=FILE, required=False)
@click.option("--session", type=click.IntRange(1), help="Which session of a record.  [default: the last]")
@click.option(
    "--address",
    metavar="[http://]HOST:PORT",
    help="The scheduler's kube.listen, https unless it says http.  [default: the lab's in a lab]",
)
@asking_a_scheduler
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the page, on this machine.  [default: free]")
@click.option("--grafana", is_flag=True, help="Print a dashboard for Grafana, of the scheduler's metrics, and end.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
def dashboard(
    folder: Path | None,
    session: int | None,
    address: str | None,
    trust: Trust,
    port: int,
    grafana: bool,
    opens: bool,
) -> None:
    """Shows in a browser who keeps its promise, and who waits.

    Also why a pod waits, and who made room for whom.

    \b
      slacktide dashboard                    the scheduler of the lab, or at --address
      slacktide dashboard results            of 'slacktide simulate --events --out results'
      slacktide dashboard record             of 'slacktide run --record record', with a time slider
      slacktide dashboard --grafana > slacktide.json

    The page is served on this machine only, to who has the address that is printed. It needs no other site. Of a
    cluster's scheduler: 'kubectl port-forward', then --address and --fingerprint, as for 'slacktide explain'.
    """
    import asyncio
    import contextlib

    if grafana:
        from importlib.resources import files

        file = files("slacktide.dashboard") / "grafana" / "slacktide.json"
        click.echo(file.read_text(encoding="utf-8"), nl=False)
        return
    from slacktide.cli.cluster.dashboard.serving import serve
    from slacktide.cli.cluster.dashboard.sources import Wanted, source

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(source(Wanted(folder, session, address, trust)), port, opens))
