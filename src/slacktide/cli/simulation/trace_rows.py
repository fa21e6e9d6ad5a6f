"""``slacktide trace admit``, ``thin``, ``window`` and ``scale``: a workload in, a workload out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import AS_JSON, COLUMNS, DURATION, ENDLESS, FILE, SHARE
from slacktide.cli.simulation.preparing import (
    CONFIG,
    OUT_FILE,
    SEED,
    Counted,
    Given,
    Parts,
    check_file,
    given,
    tell_manifest,
    write,
)
from slacktide.for_people import count, counted

if TYPE_CHECKING:
    from slacktide.inputs.prepare import Refusals
    from slacktide.model import Workload


@dataclass(frozen=True, slots=True)
class Asked:
    """What all of them are given; ``columns`` say what those of the workload are, where it has some of its own."""

    workload: Path
    out: Path
    config_file: Path | None
    columns: str | None
    as_json: bool

    def given(self, progress: Parts, step: str) -> Given:
        """The workload, of which ``step`` is done next; first of all, whether its outcome can be written."""
        check_file(self.out)
        return given(self.workload, self.config_file, progress, step, f"writing {self.out.name}", self.columns)

    def change(
        self, command: str, settings: Mapping[str, Any], step: str, change: Callable[[Given], Iterable[Workload]]
    ) -> None:
        """Writes what ``change`` makes of the workload, and says of how many requests how many are left."""
        with Parts() as progress:
            source = self.given(progress, step)
            made = Counted(change(source))
            manifest = write(
                made, self.out, command, settings, [self.workload],
                lambda: {"requests": made.requests, "of": source.requests}, progress,
            )  # fmt: skip
        if self.as_json:
            tell_manifest(manifest)
        else:
            of = "" if made.requests == source.requests else f"{count(made.requests)} of "
            click.echo(f"{self.out}: {of}{counted(source.requests, 'request')}")


def _asked(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments and options of them all, as :class:`Asked`."""

    @click.argument("workload", type=FILE)
    @OUT_FILE
    @CONFIG
    @COLUMNS
    @AS_JSON
    @wraps(command)
    def called(
        workload: Path, out: Path, config_file: Path | None, columns: str | None, as_json: bool, **others: Any
    ) -> None:
        command(Asked(workload, out, config_file, columns, as_json), **others)

    return called


@click.command()
@_asked
@click.argument("hosts", type=FILE)
@click.option(
    "--limit", type=SHARE, default=1.0, show_default=True, metavar="PART",
    help="Of the hosts' capacity, each resource: 0.9 or 90%.",
)  # fmt: skip
@click.option("--first-limit", type=SHARE, metavar="PART", help="At the first instant [0.2 less than --limit].")
def admit(asked: Asked, hosts: Path, limit: float, first_limit: float | None) -> None:
    """Keeps the requests that HOSTS could carry: admits while the demand of active ones stays within a limit.

    A request is also refused when no host satisfies its constraints and is large enough.

    \b
      slacktide trace admit workload.parquet hosts.parquet --limit 0.9 --out admitted.parquet
    """
    from slacktide.inputs import prepare, read_hosts

    limits = {"limit": limit, "first_limit": prepare.first_limit_of(limit, first_limit)}
    with Parts() as progress:
        machines = read_hosts(hosts)  # before the workload, lest a mistake in what is smaller be found late
        source = asked.given(progress, "admitting requests")
        made = prepare.AdmissionInPieces(
            source.pieces, machines, **limits, workload_file=str(asked.workload), hosts_file=str(hosts)
        )
        files = [asked.workload, hosts]
        manifest = write(
            made, asked.out, "admit", limits, files, lambda: _admission(made.admitted, made.refused), progress
        )
    if asked.as_json:
        tell_manifest(manifest)
    else:
        _say_admission(asked.out, made.admitted, made.refused)


def _admission(admitted: int, found: Refusals) -> dict[str, Any]:
    return {
        "admitted": admitted,
        "no_host": found.no_host,
        "too_large": found.too_large,
        "over_limit": found.over_limit,
        "over_limit_at_first": found.at_first,
    }


def _say_admission(out: Path, admitted: int, found: Refusals) -> None:
    click.echo(f"{out}: {counted(admitted, 'request')} admitted, {count(found.refused)} refused")
    reasons = {
        "no host satisfies their constraints": found.no_host,
        "larger than every host that does": found.too_large,
        **{f"over the limit of {name}": number for name, number in found.over_limit.items()},
    }
    for why, number in reasons.items():
        if number:
            click.echo(f"refused: {count(number)}, {why}")
    if found.at_first:
        click.echo(f"of these over the limit at the first instant: {count(found.at_first)}")


@click.command()
@_asked
@click.option("--share", type=SHARE, required=True, metavar="PART", help="Of the requests, above 0 and at most 1.")
@SEED
def thin(asked: Asked, share: float, seed: int) -> None:
    """Keeps a random part of the requests, in their order.

    \b
      slacktide trace thin workload.parquet --share 0.1 --seed 1 --out tenth.parquet
    """
    from slacktide.inputs import prepare

    asked.change(
        "thin", {"share": share, "seed": seed}, "drawing requests",
        lambda source: prepare.thin_pieces(source.pieces, source.requests, share, seed),
    )  # fmt: skip


@click.command()
@_asked
@click.option("--from", "start", type=DURATION, required=True, metavar="DURATION", help="The window's beginning.")
@click.option("--to", "end", type=ENDLESS, required=True, metavar="DURATION", help="The window's end, not part of it.")
@click.option("--drop-running", is_flag=True, help="Leave out what was admitted before the beginning.")
def window(asked: Asked, start: float, end: float, drop_running: bool) -> None:
    """Cuts a stretch of time out of a workload; its beginning becomes second 0.

    Requests that run at the beginning arrive at 0 with what is left of their duration; none is cut at the end.

    \b
      slacktide trace window workload.parquet --from 3600 --to 7200 --out hour.parquet
    """
    from slacktide.inputs import prepare

    asked.change(
        "window", {"from": start, "to": end, "drop_running": drop_running}, "cutting the window",
        lambda source: prepare.window_pieces(source.pieces, start, end, keep_running=not drop_running),
    )  # fmt: skip


@click.command()
@_asked
@click.option("--time", default=1.0, show_default=True, metavar="F", help="Multiplies admissions and durations.")
@click.option("--demand", default=1.0, show_default=True, metavar="F", help="Multiplies what everybody demands.")
@click.option("--rate", default=1.0, show_default=True, metavar="F", help="Multiplies arrivals in a second.")
def scale(asked: Asked, time: float, demand: float, rate: float) -> None:
    """Multiplies times, demands or the rate of arrival.

    \b
      slacktide trace scale workload.parquet --rate 1.5 --out denser.parquet      admissions closer together
      slacktide trace scale workload.parquet --demand 4 --out cores.parquet       everybody asks for four times
      slacktide trace scale export.csv --columns guess --out workload.parquet     a table with columns of its own
    """
    from slacktide.inputs import prepare

    factors = {"time": time, "demand": demand, "rate": rate}
    asked.change(
        "scale", factors, "multiplying", lambda source: (prepare.scale(piece, **factors) for piece in source.pieces)
    )
