"""What ``slacktide dashboard`` shows, found out from its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.errors import ConfigError, InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slacktide.cli.cluster.scheduler_pages import Trust
    from slacktide.dashboard.pages import Route


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for. ``folder``: results or a record; else a scheduler at ``address``, by ``trust``."""

    folder: Path | None
    session: int | None
    address: str | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class Source:
    """Routes that give the page its data, and what they are of, in words."""

    what: str
    routes: Mapping[str, Route]


def source(wanted: Wanted) -> Source:
    """The data of the page. Raises :class:`InputError` for a folder that holds neither results nor a record."""
    from slacktide.cli.cluster.dashboard.relay import Relay
    from slacktide.dashboard.simulated_tables import is_results
    from slacktide.dashboard.simulation import Simulation
    from slacktide.dashboard.timeline_routes import timeline_routes

    folder = wanted.folder
    if folder is None:
        address = wanted.address or lab_address(wanted.trust)
        return Source(f"scheduler at {address}", Relay(address, wanted.trust).routes())
    if is_results(folder):
        return Source(f"results in {folder}", timeline_routes(Simulation(folder)))
    if any(folder.glob("session-*.json")):
        return _recorded(folder, wanted.session)
    expected = "a folder that 'slacktide simulate --out' or 'slacktide run --record' wrote"
    raise InputError([Problem(str(folder), 0, "", "", expected)])


def _recorded(folder: Path, number: int | None) -> Source:
    import sys

    from slacktide.dashboard.recorded import Recording
    from slacktide.dashboard.timeline_routes import timeline_routes
    from slacktide.engine.journal.record import sessions

    known = {one.number: one for one in sessions(folder)}
    chosen = known.get(max(known) if number is None else number)
    if chosen is None:
        raise ConfigError(f"--session: found {number}, expected one of {', '.join(map(str, known))}")
    live = sys.stderr.isatty()

    def say(share: float) -> None:
        if live:
            click.echo(f"\r\x1b[Kslacktide: doing session {chosen.number} again, {share:.0%}", nl=False, err=True)

    recording = Recording(chosen, folder.resolve().name, say)
    if live:
        click.echo("\r\x1b[K", nl=False, err=True)
    return Source(f"record in {folder}, session {chosen.number}", timeline_routes(recording))


def lab_address(trust: Trust) -> str:
    """Where the scheduler of the lab listens whose kubeconfig is in use. Raises :class:`ConfigError` where none is."""
    import asyncio

    from slacktide.cli.cluster.explain import of_lab
    from slacktide.kube.client.credentials import load_access

    access = asyncio.run(load_access(trust.kubeconfig, trust.context))
    found = of_lab(trust.kubeconfig, access.server)
    if not found:
        raise ConfigError(
            "--address: found none, and no lab of this kubeconfig; expected the scheduler's, for example "
            "https://127.0.0.1:10359 after 'kubectl -n slacktide-system port-forward deploy/slacktide 10359'"
        )
    return found
