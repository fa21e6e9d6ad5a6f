"""``slacktide policies``."""

from __future__ import annotations

import click

from slacktide.cli.options import echo_json


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON list on stdout.")
def policies(as_json: bool) -> None:
    """Lists the policies, allocation scores and preemption costs that can be used here.

    Packages of your own add to them by entry points (slacktide.policies, slacktide.scores, slacktide.costs);
    a file needs no registration:

    \b
      slacktide simulate WORKLOAD HOSTS --policy mine.py:Mine
      slacktide simulate WORKLOAD HOSTS --set policy.score=mine.py:packed
    """
    from slacktide.cli.text import table
    from slacktide.policy import available

    head = ("name", "kind", "description", "source")
    rows = [tuple(getattr(offer, column) for column in head) for offer in available()]
    if as_json:
        echo_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        click.echo(table(head, rows, left=len(head)))
