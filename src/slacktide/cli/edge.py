"""``slacktide edge``: the published testbed at the edge."""

from __future__ import annotations

import click

from slacktide.cli.edge_emulate import emulate
from slacktide.cli.edge_replay import replay


@click.group()
def edge() -> None:
    """Delay-aware placement and its comparators on the published testbed."""


edge.add_command(replay)
edge.add_command(emulate)
