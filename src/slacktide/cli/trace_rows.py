"""``slacktide trace admit``, ``thin``, ``window`` and ``scale``: a workload in, a workload out."""

from __future__ import annotations

from pathlib import Path

import click

from slacktide.cli.options import FILE
from slacktide.cli.preparing import CONFIG, OUT_FILE, SEED, Parts, check_file, read, read_requests, requests_of, write
from slacktide.cli.text import count


@click.command()
@click.argument("workload", type=FILE)
@click.argument("hosts", type=FILE)
@OUT_FILE
@click.option("--limit", default=1.0, show_default=True, metavar="PART", help="Of the hosts' capacity, each resource.")
@click.option("--first-limit", type=float, metavar="PART", help="At the first instant [0.2 less than --limit].")
@CONFIG
def admit(
    workload: Path, hosts: Path, out: Path, limit: float, first_limit: float | None, config_file: Path | None
) -> None:
    """Keeps the requests that HOSTS could carry: admits while the demand of active ones stays within a limit.

    A request is also refused when no host satisfies its constraints and is large enough.

    \b
      slacktide trace admit workload.parquet hosts.parquet --limit 0.9 --out admitted.parquet
    """
    from slacktide.inputs import prepare

    check_file(out)
    least = prepare.first_limit_of(limit, first_limit)
    with Parts() as progress:
        requests, machines = read(workload, hosts, config_file, progress)
        progress.tell("admitting requests")
        found = prepare.admit(requests, machines, limit=limit, first_limit=least)
        admitted = requests_of(found.workload)
        outcome = {
            "admitted": admitted,
            "no_host": found.no_host,
            "too_large": found.too_large,
            "over_limit": found.over_limit,
            "over_limit_at_first": found.at_first,
        }
        settings = {"limit": limit, "first_limit": least}
        write(found.workload, out, "admit", settings, [workload, hosts], outcome, progress)
    click.echo(f"{out}: {count(admitted)} requests admitted, {count(found.refused)} refused")
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
@click.option("--share", type=float, required=True, metavar="PART", help="Of the requests, above 0 and at most 1.")
@CONFIG
@SEED
def thin(workload: Path, out: Path, share: float, config_file: Path | None, seed: int) -> None:
    """Keeps a random part of the requests, in their order.

    \b
      slacktide trace thin workload.parquet --share 0.1 --seed 1 --out tenth.parquet
    """
    from slacktide.inputs import prepare

    check_file(out)
    with Parts() as progress:
        requests = read_requests(workload, config_file, progress)
        progress.tell("drawing requests")
        made = prepare.thin(requests, share, seed)
        outcome = {"requests": requests_of(made), "of": requests_of(requests)}
        write(made, out, "thin", {"share": share, "seed": seed}, [workload], outcome, progress)
    click.echo(f"{out}: {count(outcome['requests'])} of {count(outcome['of'])} requests")


@click.command()
@click.argument("workload", type=FILE)
@OUT_FILE
@click.option("--from", "start", type=float, required=True, metavar="SECONDS", help="The window's beginning.")
@click.option("--to", "end", type=float, required=True, metavar="SECONDS", help="The window's end, not part of it.")
@click.option("--drop-running", is_flag=True, help="Leave out what was admitted before the beginning.")
@CONFIG
def window(workload: Path, out: Path, start: float, end: float, drop_running: bool, config_file: Path | None) -> None:
    """Cuts a stretch of time out of a workload; its beginning becomes second 0.

    Requests that run at the beginning arrive at 0 with what is left of their duration; none is cut at the end.

    \b
      slacktide trace window workload.parquet --from 3600 --to 7200 --out hour.parquet
    """
    from slacktide.inputs import prepare

    check_file(out)
    with Parts() as progress:
        requests = read_requests(workload, config_file, progress)
        progress.tell("cutting the window")
        made = prepare.window(requests, start, end, keep_running=not drop_running)
        outcome = {"requests": requests_of(made), "of": requests_of(requests)}
        settings = {"from": start, "to": end, "drop_running": drop_running}
        write(made, out, "window", settings, [workload], outcome, progress)
    click.echo(f"{out}: {count(outcome['requests'])} of {count(outcome['of'])} requests")


@click.command()
@click.argument("workload", type=FILE)
@OUT_FILE
@click.option("--time", default=1.0, show_default=True, metavar="F", help="Multiplies admissions and durations.")
@click.option("--demand", default=1.0, show_default=True, metavar="F", help="Multiplies what everybody demands.")
@click.option("--rate", default=1.0, show_default=True, metavar="F", help="Multiplies arrivals in a second.")
@CONFIG
def scale(workload: Path, out: Path, time: float, demand: float, rate: float, config_file: Path | None) -> None:
    """Multiplies times, demands or the rate of arrival.

    \b
      slacktide trace scale workload.parquet --rate 1.5 --out denser.parquet      admissions closer together
      slacktide trace scale workload.parquet --demand 4 --out cores.parquet       everybody asks for four times
    """
    from slacktide.inputs import prepare

    check_file(out)
    with Parts() as progress:
        requests = read_requests(workload, config_file, progress)
        progress.tell("multiplying")
        made = prepare.scale(requests, time=time, demand=demand, rate=rate)
        outcome = {"requests": requests_of(made)}
        write(made, out, "scale", {"time": time, "demand": demand, "rate": rate}, [workload], outcome, progress)
    click.echo(f"{out}: {count(outcome['requests'])} requests")
