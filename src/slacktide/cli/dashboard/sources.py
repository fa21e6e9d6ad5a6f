"""What ``slacktide dashboard`` shows, found out from its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slacktide.errors import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from slacktide.cli.scheduler_pages import Trust
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
    from slacktide.dashboard.simulated_tables import is_results
    from slacktide.dashboard.simulation import Simulation
    from slacktide.dashboard.timeline_routes import timeline_routes

    folder = wanted.folder
    if folder is None:
        raise NotImplementedError
    if is_results(folder):
        return Source(f"results in {folder}", timeline_routes(Simulation(folder)))
    expected = "a folder that 'slacktide simulate --out' or 'slacktide run --record' wrote"
    raise InputError([Problem(str(folder), 0, "", "", expected)])
