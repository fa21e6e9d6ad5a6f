"""How rows of a job become a request: the one rule for command line, manifests and the Python API."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from slacktide import settings_file
from slacktide.errors import ConfigError
from slacktide.inputs.columns.instances import WHY_AGGREGATED
from slacktide.inputs.group import group_by_job
from slacktide.model import Workload

GroupBy = Literal["job", "none"]
Kind = Literal["service", "batch"]
Approach = Literal["independent", "concurrent", "aggregated"]
GROUPS, KINDS, APPROACHES = get_args(GroupBy), get_args(Kind), get_args(Approach)
GROUPING, CONFIGURATION = "grouping", "configuration"
"""Keys of a manifest: how rows were grouped, and settings, which every manifest has."""


def grouping_of(
    group_by: str | None,
    kind: str | None,
    approach: str | None,
    file: str | os.PathLike[str] | None,
    say: Callable[[str, str], str] = lambda name, value: f"{name}={value!r}",
) -> dict[str, str] | None:
    """How rows become requests of several instances: as is said here, else as a manifest says; None: they do not.

    ``say`` shows a name and its value in errors. Raises :class:`ConfigError`.
    """
    if group_by is None and file is not None:
        kept = _of_manifest(Path(file))
        if kept is not None:
            group_by, kind, approach = kept["by"], kind or kept["kind"], approach or kept["approach"]
    if group_by != "job":
        for name, value in (("kind", kind), ("approach", approach)):
            if value is not None:
                raise ConfigError(
                    f"{say(name, value)} is about requests made from rows: it needs {say('group_by', 'job')}. A "
                    "workload that has requests of several instances says this of each of them (docs/formats.md)"
                )
        return None
    kind = kind or KINDS[0]
    approach = approach or ("aggregated" if kind == "batch" else "independent")
    if kind == "batch" and approach != "aggregated":
        raise ConfigError(
            f"{say('approach', approach)}: expected aggregated with {say('kind', 'batch')}: {WHY_AGGREGATED}"
        )
    return {"by": group_by, "kind": kind, "approach": approach}


def grouped(workload: Workload, grouping: Mapping[str, str] | None) -> Workload:
    """The workload with its rows grouped so; raises :class:`ConfigError` as :func:`.group_by_job`."""
    if grouping is None:
        return workload
    return group_by_job(workload, approach=grouping["approach"], batch=grouping["kind"] == "batch")


def _of_manifest(manifest: Path) -> dict[str, str] | None:
    """What a manifest of results says about grouping. Raises ConfigError for what no run can have written."""
    values = settings_file.read(manifest).values
    if CONFIGURATION not in values or values.get(GROUPING) is None:
        return None
    said: Any = values[GROUPING]
    for key, allowed in (("by", GROUPS[:1]), ("kind", KINDS), ("approach", APPROACHES)):
        found = said.get(key) if isinstance(said, dict) else said
        if found not in allowed:
            raise ConfigError(f"{manifest}: {GROUPING}.{key}: found {found!r}, expected {', '.join(allowed)}")
    return dict(said)
