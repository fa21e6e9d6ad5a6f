"""Figures of the report, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slacktide.drawing import Sheet
from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.results.experiment import Experiment


def figure_of(experiment: Experiment, name: str, width: float | None) -> Any:
    """One figure of an experiment's finished runs. Raises :class:`ConfigError` for a name that there is not."""
    from slacktide.report import need_libraries

    need_libraries()
    from slacktide.report.assemble import drawn_of

    made = drawn_of(experiment)
    found = {one.key: one for one in (made.answer, *made.figures)}
    if name not in found:
        raise ConfigError(f"plot: found {name!r}, expected {expected_name(name, list(found))}")
    draw = found[name].draw
    if draw is None:
        raise ConfigError(f"plot: {name}: there is nothing to draw: {found[name].description}")
    return shown(draw, width)


def shown(draw: Callable[[Sheet], Any], width: float | None) -> Any:
    """The drawing made for this width (mm; None: the page's), as notebooks show it."""
    from slacktide.drawing import png, sheet_for

    drawing = draw(sheet_for(width))
    drawing._repr_png_ = lambda: png(drawing)  # without pyplot a notebook would show its type
    return drawing
