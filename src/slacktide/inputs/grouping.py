"""How rows of a job become a request: the one rule for command line, manifests and the Python API."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from slacktide import settings_file
from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.columns.instances import WHY_AGGREGATED
from slacktide.model import AGGREGATED, APPROACHES, Requests, Workload

GroupBy = Literal["job", "none"]
Kind = Literal["service", "batch"]
Approach = Literal["independent", "concurrent", "aggregated"]
GROUPS, KINDS = get_args(GroupBy), get_args(Kind)
GROUPING, CONFIGURATION = "grouping", "configuration"
"""Keys of a manifest: how rows were grouped, and settings, which every manifest has."""


def group_by_job(workload: Workload, *, approach: str = "independent", batch: bool = False) -> Workload:
    """The rows of equal job and service class as one request each.

    Requests are in order of their first rows, and have their jobs' numbers; rows keep all they have.
    ``approach`` is one of ``APPROACHES``; ``batch`` makes batch requests, all of whose instances may be at
    work at once. Raises :class:`ConfigError` for an unknown approach, for batch requests that are not
    aggregated, and for a workload that has requests already.
    """
    if approach not in APPROACHES:
        raise ConfigError(f"approach: found {approach!r}, expected {expected_name(approach, APPROACHES)}")
    if batch and approach != APPROACHES[AGGREGATED]:
        raise ConfigError(
            f"approach: found {approach!r}, expected {APPROACHES[AGGREGATED]} for batch requests: {WHY_AGGREGATED}"
        )
    if workload.requests is not None:
        raise ConfigError("workload: found requests of several instances in it, expected rows to be grouped by job")
    job = np.unique(workload.job, return_inverse=True)[1].reshape(-1)
    pair = job * len(workload.classes) + workload.service_class
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    count = len(order)
    return replace(
        workload,
        request=number[group.reshape(-1)],
        requests=Requests(
            ids=workload.job[first[order]],
            batch=np.full(count, batch),
            approach=np.full(count, APPROACHES.index(approach), np.int8),
            parallelism=np.zeros(count, np.int64),
        ),
    )


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
    if group_by not in (None, *GROUPS):
        raise ConfigError(f"group_by: found {group_by!r}, expected {expected_name(str(group_by), GROUPS)}")
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
