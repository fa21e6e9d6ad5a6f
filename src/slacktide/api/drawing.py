"""Figures of the report, one by one."""

from __future__ import annotations

import math
from typing import Any

from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.results.experiment import Experiment

MM = 25.4
"""Millimetres of an inch."""


def figure_of(experiment: Experiment, name: str, width: float | None) -> Any:
    """One figure of an experiment's finished runs. Raises :class:`ConfigError` for a name that there is not."""
    from slacktide.report import need_libraries

    need_libraries()
    from slacktide.report.assemble import drawn_of

    found = {one.key: one for one in drawn_of(experiment).figures}
    if name not in found:
        raise ConfigError(f"plot: found {name!r}, expected {expected_name(name, list(found))}")
    if found[name].drawing is None:
        raise ConfigError(f"plot: {name}: there is nothing to draw: {found[name].description}")
    return shown(found[name].drawing, width)


def shown(drawing: Any, width: float | None) -> Any:
    """The drawing in this width (mm), as notebooks show it; text keeps its size, so a narrow one is less low."""
    if width is not None:
        now, high = drawing.get_size_inches()
        drawing.set_size_inches(width / MM, high * math.sqrt(width / MM / now))
    from slacktide.report.drawing import png

    drawing._repr_png_ = lambda: png(drawing)  # without pyplot a notebook would show its type
    return drawing
