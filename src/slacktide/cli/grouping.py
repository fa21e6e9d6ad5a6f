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
    if group_by is None and config_file is not None:
        kept = _grouping_of(config_file)
        if kept is not None:
            group_by, kind, approach = kept["by"], kind or kept["kind"], approach or kept["approach"]
    if group_by != "job":
        for name, value in (("--kind", kind), ("--approach", approach)):
            if value is not None:
                raise click.UsageError(
                    f"{name} {value} is about requests made from rows: it needs --group-by job. A workload that has "
                    "requests of several instances says this of each of them (docs/formats.md)"
                )
        return None
    kind = kind or KINDS[0]
    approach = approach or ("aggregated" if kind == "batch" else "independent")
    if kind == "batch" and approach != "aggregated":
        from slacktide.inputs.columns.instances import WHY_AGGREGATED

        raise click.UsageError(f"--approach {approach}: expected aggregated with --kind batch: {WHY_AGGREGATED}")
    return {"by": group_by, "kind": kind, "approach": approach}


def _grouping_of(manifest: Path) -> dict[str, str] | None:
    """What a manifest of results says about grouping. Raises ConfigError for what no run can have written."""
    from slacktide import settings, settings_file
    from slacktide.errors import ConfigError
    from slacktide.experiment.run_folder import GROUPING

    values = settings_file.read(manifest).values
    if settings.MANIFEST_KEY not in values or values.get(GROUPING) is None:
        return None
    said = values[GROUPING]
    for key, allowed in (("by", GROUPS[:1]), ("kind", KINDS), ("approach", APPROACHES)):
        found = said.get(key) if isinstance(said, dict) else said
        if found not in allowed:
            raise ConfigError(f"{manifest}: {GROUPING}.{key}: found {found!r}, expected {', '.join(allowed)}")
    return dict(said)
