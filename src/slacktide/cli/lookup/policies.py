"""``slacktide policies``."""

from __future__ import annotations

import click

from slacktide.cli.options import echo_json


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON list on stdout.")
def policies(as_json: bool) -> None:
    """Lists policies, allocation scores and preemption costs.

    Packages of your own add to them by entry points (slacktide.policies, slacktide.scores, slacktide.costs);
    a file needs no registration:

    \b
      slacktide simulate WORKLOAD HOSTS --policy mine.py:Mine
      slacktide simulate WORKLOAD HOSTS --set policy.score=mine.py:packed
    """
    from slacktide.cli.text import paint, table
    from slacktide.policy import available

    head = ("name", "kind", "description", "source")
    rows = [tuple(getattr(offer, column) for column in head) for offer in available()]
    if as_json:
        echo_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        groups: dict[str, list[tuple[str, str, str]]] = {}
        for name, kind, description, source in rows:
            groups.setdefault(kind, []).append((name, description, source))
        parts = [
            f"{paint(kind, 'head')}\n{table(('name', 'what', 'source'), some, left=3)}" for kind, some in groups.items()
        ]
        click.echo("\n\n".join(parts))
