"""What can be generated, by name. A further generator is one file and one line here."""

from slacktide.inputs import generate_cell, generate_edge, generate_jobs, generate_light, generate_validation
from slacktide.inputs.generator import Generator, Parameter

GENERATORS: dict[str, Generator] = {
    generator.name: generator
    for generator in (
        generate_validation.VALIDATION_1,
        generate_validation.VALIDATION_2,
        generate_validation.VALIDATION_3,
        generate_light.LIGHT,
        generate_jobs.JOBS,
        generate_cell.CELL,
        generate_edge.EDGE,
    )
}

__all__ = ["GENERATORS", "Generator", "Parameter"]
