"""Published traces as workloads and hosts: a file for each format (docs/traces.md describes them), and all of them.

These modules need Polars, which comes with ``slacktide[experiments]``; nothing but ``slacktide trace`` imports them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from slacktide.inputs.generators.api import settled
from slacktide.inputs.traces import (
    alibaba2018,
    alibaba_spot,
    azure_functions,
    azure_packing,
    azure_vm,
    broker,
    google2011,
    google2019,
    helios,
    openb,
    philly,
    swf,
)
from slacktide.inputs.traces.api import ClassMap, Converted, Job, Tell, Trace

__all__ = ["TRACES", "ClassMap", "Converted", "Job", "Trace", "convert"]

TRACES: dict[str, Trace] = {
    one.TRACE.name: one.TRACE
    for one in (
        *(google2011, google2019, openb, alibaba2018, alibaba_spot, philly, helios),
        *(azure_packing, azure_vm, azure_functions, swf, broker),
    )
}
"""Readers by name."""


def convert(
    name: str,
    sources: Sequence[Path],
    folder: Path,
    *,
    classes: ClassMap,
    settings: Mapping[str, object],
    seed: int = 0,
    tell: Tell = lambda _what, _part: None,
) -> Converted:
    """Reads a trace and writes workload.parquet and hosts.parquet into an empty folder.

    ``settings`` holds the parameters that are not to keep their defaults. Raises :class:`ConfigError` for an unknown
    format or parameter and for a map that leaves out a class of the trace, :class:`InputError` with file, line, field
    and value for what is broken.
    """
    trace = TRACES[name]
    values = settled(name, trace.parameters, settings)
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=folder) as scratch:
        job = Job(tuple(sources), folder, Path(scratch), classes, values, seed, tell)
        return trace.read(job)
