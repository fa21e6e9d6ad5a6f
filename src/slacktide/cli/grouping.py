"""Rows of a job as one request: options of commands that read a workload, and what a manifest says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

GROUPS, KINDS, APPROACHES = ("job", "none"), ("service", "batch"), ("independent", "concurrent", "aggregated")


def grouping_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--group-by``, ``--kind`` and ``--approach``."""
    options = [
        click.option("--group-by", type=click.Choice(GROUPS), help="job: rows of one job and class are one request."),
        click.option(
            "--kind", type=click.Choice(KINDS), help="With --group-by job: what these requests are [service]."
        ),
        click.option(
            "--approach",
            type=click.Choice(APPROACHES),
            help="With --group-by job: how their availability is measured [independent; batch: aggregated].",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def chosen_grouping(
    group_by: str | None, kind: str | None, approach: str | None, config_file: Path | None
) -> dict[str, str] | None:
    """How rows become requests of several instances: by the options, else as a manifest says; ``None``: they do not."""
    from slacktide.inputs.grouping import grouping_of

    return grouping_of(group_by, kind, approach, config_file, lambda name, value: f"--{name.replace('_', '-')} {value}")
