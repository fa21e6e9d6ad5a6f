"""``slacktide report``."""

from __future__ import annotations

from pathlib import Path

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR", type=FILE)
@click.option("--out", type=FILE, required=True, metavar="FILE.html", help="The page to write.")
@click.option("--export", type=FILE, metavar="DIR", help="Also write every figure there, also 85 and 180 mm wide.")
@AS_JSON
def report(folders: tuple[Path, ...], out: Path, export: Path | None, as_json: bool) -> None:
    """Makes one HTML page of the experiment, or the run, in DIR.

    It has the answer, what was compared, figures and their data.

    \b
      slacktide experiment run grid.yaml --out results
      slacktide report results --out report.html
      slacktide report results --out report.html --export figures
      slacktide simulate w.csv h.csv --out run --intervals 10m
      slacktide report run --out report.html

    The page needs no network and no other file. It may be made before all runs are finished: it says what is missing.
    """
    from slacktide.cli.progress import Bar
    from slacktide.reporting import write

    if len(folders) > 1:
        raise click.UsageError(
            f"DIR: found {len(folders)} folders, expected one: runs are compared that are of one experiment (slacktide "
            "experiment run)"
        )
    with Bar() as bar:
        figures = write(folders[0], out, export, bar.tell)
    if as_json:
        echo_json({"page": str(out), "figures": figures, "export": None if export is None else str(export)})
        return
    click.echo(f"{out}: {figures} figures, {out.stat().st_size / 1e6:.1f} MB")
    if export is not None:
        click.echo(f"{export}: the figures as SVG, PNG and CSV, and 85 and 180 mm wide for papers, PDF and SVG")
