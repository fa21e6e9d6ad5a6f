"""What can be generated, by name. A further generator is one file and one line here."""

from slacktide.inputs.generators import cell, edge, jobs, light, validation
from slacktide.inputs.generators.api import Generator, Parameter

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

__all__ = ["GENERATORS", "Generator", "Parameter"]
