"""``slacktide trace admit``, ``thin``, ``window`` and ``scale``: a workload in, a workload out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    Written,
    check_file,
    given,
    tell_manifest,
    write,
)
from slacktide.for_people import count, counted

if TYPE_CHECKING:
    from slacktide.inputs.prepare import Refusals
    from slacktide.model import Workload


@click.command()
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@OUT_FILE
@click.option(
    "--limit", type=SHARE, default=1.0, show_default=True, metavar="PART",
    help="Of the hosts' capacity, each resource: 0.9 or 90%.",
)  # fmt: skip
@click.option("--first-limit", type=SHARE, metavar="PART", help="At the first instant [0.2 less than --limit].")
@CONFIG
@COLUMNS
@AS_JSON
def admit(
    workload: Path,
    hosts: Path,
    out: Path,
    limit: float,
    first_limit: float | None,
    config_file: Path | None,
    columns: str | None,
    as_json: bool,
) -> None:
    """Keeps the requests that HOSTS could carry: admits while the demand of active ones stays within a limit.

    A request is also refused when no host satisfies its constraints and is large enough.

    \b
      slacktide trace admit workload.parquet hosts.parquet --limit 0.9 --out admitted.parquet
    """
    from slacktide.inputs import prepare, read_hosts

    check_file(out)
    least = prepare.first_limit_of(limit, first_limit)
    limits = {"limit": limit, "first_limit": least}
    what = Written(out, "admit", limits, [workload, hosts], columns)
    with Parts() as progress:
        machines = read_hosts(hosts)  # first, as the smaller one, lest a mistake in it be found late
        source = given(workload, config_file, progress, "admitting requests", f"writing {out.name}", columns)
        made = prepare.AdmissionInPieces(
            source.pieces, machines, **limits, workload_file=str(workload), hosts_file=str(hosts)
        )
        write(made, what, lambda: _admission(made.admitted, made.refused), progress)
    if as_json:
        tell_manifest(what.manifest)
    else:
        _say_admission(out, made.admitted, made.refused)


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
@click.argument("workload", type=FILE)
@OUT_FILE
@click.option("--share", type=SHARE, required=True, metavar="PART", help="Of the requests, above 0 and at most 1.")
@CONFIG
@COLUMNS
@SEED
@AS_JSON
def thin(
    workload: Path, out: Path, share: float, config_file: Path | None, columns: str | None, seed: int, as_json: bool
) -> None:
    """Keeps a random part of the requests, in their order.

    \b
      slacktide trace thin workload.parquet --share 0.1 --seed 1 --out tenth.parquet
    """
    from slacktide.inputs import prepare

    check_file(out)
    what = Written(out, "thin", {"share": share, "seed": seed}, [workload], columns)
    kept, of = _changed(
        what,
        config_file,
        "drawing requests",
        lambda source: prepare.thin_pieces(source.pieces, source.requests, share, seed),
    )
    _tell(what, f"{count(kept)} of {counted(of, 'request')}", as_json)


@click.command()
@click.argument("workload", type=FILE)
@OUT_FILE
@click.option("--from", "start", type=DURATION, required=True, metavar="DURATION", help="The window's beginning.")
@click.option("--to", "end", type=ENDLESS, required=True, metavar="DURATION", help="The window's end, not part of it.")
@click.option("--drop-running", is_flag=True, help="Leave out what was admitted before the beginning.")
@CONFIG
@COLUMNS
@AS_JSON
def window(
    workload: Path,
    out: Path,
    start: float,
    end: float,
    drop_running: bool,
    config_file: Path | None,
    columns: str | None,
    as_json: bool,
) -> None:
    """Cuts a stretch of time out of a workload; its beginning becomes second 0.

    Requests that run at the beginning arrive at 0 with what is left of their duration; none is cut at the end.

    \b
      slacktide trace window workload.parquet --from 3600 --to 7200 --out hour.parquet
    """
    from slacktide.inputs import prepare

    check_file(out)
    what = Written(out, "window", {"from": start, "to": end, "drop_running": drop_running}, [workload], columns)
    kept, of = _changed(
        what,
        config_file,
        "cutting the window",
        lambda source: prepare.window_pieces(source.pieces, start, end, keep_running=not drop_running),
    )
    _tell(what, f"{count(kept)} of {counted(of, 'request')}", as_json)


@click.command()
@click.argument("workload", type=FILE)
@OUT_FILE
@click.option("--time", default=1.0, show_default=True, metavar="F", help="Multiplies admissions and durations.")
@click.option("--demand", default=1.0, show_default=True, metavar="F", help="Multiplies what everybody demands.")
@click.option("--rate", default=1.0, show_default=True, metavar="F", help="Multiplies arrivals in a second.")
@CONFIG
@COLUMNS
@AS_JSON
def scale(
    workload: Path,
    out: Path,
    time: float,
    demand: float,
    rate: float,
    config_file: Path | None,
    columns: str | None,
    as_json: bool,
) -> None:
    """Multiplies times, demands or the rate of arrival.

    \b
      slacktide trace scale workload.parquet --rate 1.5 --out denser.parquet      admissions closer together
      slacktide trace scale workload.parquet --demand 4 --out cores.parquet       everybody asks for four times
      slacktide trace scale export.csv --columns guess --out workload.parquet     a table with columns of its own
    """
    from slacktide.inputs import prepare

    check_file(out)
    factors = {"time": time, "demand": demand, "rate": rate}
    what = Written(out, "scale", factors, [workload], columns)
    made, _ = _changed(
        what,
        config_file,
        "multiplying",
        lambda source: (prepare.scale(piece, **factors) for piece in source.pieces),
        say_of=False,
    )
    _tell(what, f"{counted(made, 'request')}", as_json)


def _tell(what: Written, text: str, as_json: bool) -> None:
    """What was written, in words or as its manifest has it."""
    if as_json:
        tell_manifest(what.manifest)
    else:
        click.echo(f"{what.out}: {text}")


def _changed(
    what: Written,
    config_file: Path | None,
    step: str,
    change: Callable[[Given], Iterable[Workload]],
    *,
    say_of: bool = True,
) -> tuple[int, int]:
    """Makes a workload of the first input; how many requests it has, and of how many.

    ``say_of``: the manifest says the second number, too.
    """
    (workload,) = what.files
    with Parts() as progress:
        source = given(workload, config_file, progress, step, f"writing {what.out.name}", what.columns)
        made, of = Counted(change(source)), {"of": source.requests} if say_of else {}
        write(made, what, lambda: {"requests": made.requests} | of, progress)
    return made.requests, source.requests
