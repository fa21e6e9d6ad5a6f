"""``slacktide replay``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE, echo_json, prints_aside

if TYPE_CHECKING:
    from slacktide.engine.journal.replay import Report


@click.command()
@click.argument("directory", type=FILE)
@click.option("--workload", "out", type=FILE, metavar="OUT", help="Write the record as files for simulate instead.")
@click.option("--session", type=click.IntRange(1), help="Which session --workload writes.  [default: the last]")
@click.option("--json", "as_json", is_flag=True, help="The findings as one JSON object.")
def replay(directory: Path, out: Path | None, session: int | None, as_json: bool) -> None:
    """Decides again what DIRECTORY (of --record) holds, and compares.

    Exit code 0: everything was decided as recorded; 1: something was not.

    \b
      slacktide replay record
      slacktide replay record --workload yesterday
      slacktide simulate yesterday/workload.parquet yesterday/hosts.parquet --config yesterday/settings.json
    """
    from dataclasses import asdict

    from slacktide.engine.journal import replay as replaying

    if out is not None:
        _as_workload(directory, out, session, as_json)
        return
    if session is not None:
        raise click.UsageError("--session goes with --workload; without it all sessions are replayed")
    with prints_aside(as_json):
        report = replaying.replay(directory)
    if as_json:
        echo_json({**asdict(report), "versions": sorted(report.versions), "equal": report.equal})
    else:
        click.echo(_text(report))
    if not report.equal:
        raise SystemExit(1)


def _text(report: Report) -> str:
    from slacktide import __version__
    from slacktide.for_people import count

    lines = [
        f"{count(report.decisions)} decisions with {count(report.victims)} victims, in {count(report.passes)} passes "
        f"of {count(report.sessions)} sessions: "
        + ("none different" if report.equal else "equal up to the differences")
    ]
    if report.refused:
        lines.append(f"{count(report.refused)} operations were refused, now as then")
    lines += [f"{place}: the record is cut off here; all before was compared" for place in report.torn]
    lines += [f"different: {one}" for one in report.differences]
    others = sorted(report.versions - {__version__})
    if others and not report.equal:
        lines.append(f"recorded by slacktide {', '.join(others)}; this is {__version__}")
    return "\n".join(lines)


def _as_workload(directory: Path, out: Path, number: int | None, as_json: bool) -> None:
    from dataclasses import asdict

    from slacktide.engine.journal.record import sessions
    from slacktide.engine.journal.to_workload import LEFT_OUT, as_workload
    from slacktide.for_people import count, share

    known = sessions(directory)
    chosen = [one for one in known if number in (None, one.number)]
    if not chosen:
        raise click.UsageError(f"--session: found {number}, expected 1 to {known[-1].number}")
    made = as_workload(chosen[-1], out)
    if as_json:
        echo_json(asdict(made))
        return
    delivered, since = (
        ", ".join(f"{name} {share(part)}" for name, part in one.items()) for one in (made.delivered, made.availability)
    )
    click.echo(
        f"session {made.session}: {made.seconds:,.0f} s, {count(made.instances)} instances in {count(made.rows)} rows, "
        f"{count(made.hosts)} hosts, {count(made.resizes)} resizes, {count(made.delays)} start-up delays\n"
        f"delivered, as recorded: {delivered}; since admission, as a simulation says it: {since}\n{LEFT_OUT}\n"
        f"slacktide simulate {out / 'workload.parquet'} {out / 'hosts.parquet'} --config {out / 'settings.json'}"
    )
