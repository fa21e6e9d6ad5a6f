"""``slacktide validate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json

if TYPE_CHECKING:
    from slacktide.config import Accounting
    from slacktide.reporting.validation import Sample, Tested


@click.command()
@click.argument("measured", type=FILE)
@click.argument("simulated", type=FILE)
@click.option(
    "--accounting", type=click.Choice(["always", "restart", "never"]), default="always", show_default=True,
    help="Which start-ups count against a promise.",
)  # fmt: skip
@click.option("--at", type=float, metavar="SECONDS", help="When a record is looked at, since 1970.  [default: its end]")
@AS_JSON
def validate(measured: Path, simulated: Path, accounting: Accounting, at: float | None, as_json: bool) -> None:
    """Says whether SIMULATED comes out as MEASURED.

    Availabilities are compared class by class, and their difference is tested. Each is a folder of 'simulate --out',
    or a record of 'run --record'.

    \b
      slacktide replay record --workload past
      slacktide simulate past/workload.parquet past/hosts.parquet --config past/settings.json --out again
      slacktide validate record again
    """
    from dataclasses import asdict

    from slacktide.reporting import validation

    first, second = (validation.read(one, accounting, at) for one in (measured, simulated))
    found = validation.compare(first, second)
    if not found:
        names = " and of ".join(", ".join(one.availability) or "none" for one in (first, second))
        raise click.UsageError(f"no class is in both: found requests of {names}; expected two samples of one workload")
    if as_json:
        classes = {name: {**asdict(one), "differ": one.differ} for name, one in found.items()}
        echo_json({"classes": classes, "preemptions": [first.preemptions, second.preemptions]})
        return
    click.echo(_text(found, first, second))


def _text(found: dict[str, Tested], first: Sample, second: Sample) -> str:
    from slacktide.cli.text import table
    from slacktide.for_people import count

    head = ["class", "requests", "mean", "simulated", "difference", "deviation", "simulated", "least", "simulated",
            "t test", "rank test"]  # fmt: skip
    rows = [
        [
            name,
            " and ".join(dict.fromkeys(count(one) for one in tested.counts)),
            *(f"{one:.4f}" for one in tested.means),
            _difference(tested),
            *(f"{one:.4f}" for one in (*tested.deviations, *tested.least)),
            "-" if tested.t is None else f"p {tested.t:.3f}, {tested.t_test}",
            "-" if tested.ranks is None else f"p {tested.ranks:.3f}",
        ]
        for name, tested in found.items()
    ]
    lines = [table(head, rows), "", f"preemptions: {count(first.preemptions)}, simulated {count(second.preemptions)}"]
    return "\n".join([*lines, *(f"{name}: {_said(tested)}" for name, tested in found.items())])


def _difference(tested: Tested) -> str:
    if tested.interval is None:
        return f"{tested.difference:+.4f}"
    low, high = tested.interval
    return f"{tested.difference:+.4f} ({low:+.4f} to {high:+.4f})"


def _said(tested: Tested) -> str:
    if tested.t is None:
        return "nothing to test: " + ("the means differ" if tested.differ else "all values are equal")
    outcome = "the samples differ" if tested.differ else "no difference is shown"
    by = "t test" if tested.normal else "rank test, as availabilities are not normally distributed"
    return f"{outcome} ({by}, 5 %)"
