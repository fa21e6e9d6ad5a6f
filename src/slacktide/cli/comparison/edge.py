"""``slacktide edge``: the published testbed at the edge."""

from __future__ import annotations

import click

from slacktide.cli.comparison.edge_emulate import emulate
from slacktide.cli.comparison.edge_replay import replay
from slacktide.cli.shell.suggesting import HelpfulGroup


@click.group(cls=HelpfulGroup)
def edge() -> None:
    """Delay-aware placement on the published edge testbed."""


edge.add_command(replay)
edge.add_command(emulate)
