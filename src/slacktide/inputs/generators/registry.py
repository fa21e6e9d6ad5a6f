"""What can be generated, by name. A further generator is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping

from slacktide.inputs.generators import cell, edge, jobs, light, validation
from slacktide.inputs.generators.api import Generator
from slacktide.inputs.rows import join
from slacktide.model import Hosts, Workload

GENERATORS: dict[str, Generator] = {
    generator.name: generator
    for generator in (
        validation.VALIDATION_1,
        validation.VALIDATION_2,
        validation.VALIDATION_3,
        light.LIGHT,
        jobs.JOBS,
        cell.CELL,
        edge.EDGE,
    )
}


def generated(name: str, settings: Mapping[str, object] | None = None, seed: int = 0) -> tuple[Workload, Hosts]:
    """The whole of what a generator makes (:meth:`Generator.generate`)."""
    pieces, hosts = GENERATORS[name].generate(settings or {}, seed)
    return join(list(pieces)), hosts
