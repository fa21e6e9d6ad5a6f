"""``slacktide verdict``."""

from __future__ import annotations

from pathlib import Path

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json


@click.command()
@click.argument("folder", type=FILE, metavar="DIR")
@click.option("--seeds", type=click.IntRange(1, 100), default=3, show_default=True, help="Draws of start-up times.")
@AS_JSON
def verdict(folder: Path, seeds: int, as_json: bool) -> None:
    """Says what became of promises in a past, and under slacktide.

    First the past of DIR is simulated under kube-scheduler's rules and compared with what happened: if it does not come
    out as it was, the page says so first. DIR is what 'slacktide past' wrote; promises.yaml in it says who is promised
    what. Writes DIR/verdict.html.

    Exit code 0: the simulation comes out as it was, and slacktide keeps as many promises or more; 1: not so.

    \b
      slacktide past audit /var/log/kubernetes/audit --out week
      slacktide verdict week
    """
    if not judge(folder, seeds=seeds, as_json=as_json):
        raise SystemExit(1)


def judge(folder: Path, *, seeds: int = 3, as_json: bool = False) -> bool:
    """Judge the past, write the page, say what came out; whether it speaks for slacktide."""
    from slacktide.verdict.cluster_past import read
    from slacktide.verdict.judging import as_mapping, judged
    from slacktide.verdict.page import PAGE, write

    found = judged(read(folder), seeds=seeds, say=lambda text: click.echo(text, err=True))
    write(found, folder / PAGE)
    if as_json:
        echo_json({**as_mapping(found), "page": str(folder / PAGE)})
    else:
        click.echo("\n".join([*found.sentences(), str(folder / PAGE)]))
    return found.believed is not False and found.better
