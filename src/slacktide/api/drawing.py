"""Figures of the report, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, SupportsFloat

from slacktide.drawing import Sheet
from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.results.experiment import Experiment

if TYPE_CHECKING:
    import polars as pl

EXTRA = "slacktide[experiments]"


def frame_of(table: Any) -> pl.DataFrame:
    """A polars frame of an Arrow table; words are text. Raises :class:`ConfigError` where polars is missing."""
    try:
        import polars as pl
    except ImportError as error:
        raise ConfigError(f"frames need polars: pip install '{EXTRA}'") from error
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)  # noqa: S101  what a table becomes
    return found.with_columns(pl.col(pl.Categorical).cast(pl.String))


LEAST, MOST = 20.0, 2000.0
"""Widths that can be drawn, mm."""


def figure_of(experiment: Experiment, name: str, width: float | None, others: Iterable[str] = ()) -> Any:
    """One figure of an experiment's finished runs. Raises :class:`ConfigError` for a name that there is not, with
    ``others``, which could have been meant."""
    from slacktide.reporting import need_libraries

    if not isinstance(name, str):
        raise ConfigError(f"plot: found {name!r}, expected the name of a figure, such as 'availability'")
    need_libraries()
    from slacktide.reporting.assemble import drawn_of

    made = drawn_of(experiment)
    found = {one.key: one for one in (made.answer, *made.figures)}
    if name not in found:
        raise ConfigError(
            f"plot: found {name!r}, expected {expected_name(name, list(dict.fromkeys([*others, *found])))}"
        )
    draw = found[name].draw or found[name].idle  # a page leaves out what nothing happens in; here it is asked for
    if draw is None:
        others = ", ".join(key for key, one in found.items() if one.draw is not None)
        raise ConfigError(
            f"plot: {name}: there is nothing to draw: {found[name].description} What is there to see: {others}"
        )
    return shown(draw, width)


def shown(draw: Callable[[Sheet], Any], width: float | None) -> Any:
    """The drawing made for this width (mm; None: the page's), as notebooks show it. Raises :class:`ConfigError`."""
    from slacktide.drawing import png, sheet_for

    drawing = draw(sheet_for(None if width is None else _checked(width)))
    drawing._repr_png_ = lambda: png(drawing)  # without pyplot a notebook would show its type
    return drawing


def onto(draw: Callable[[Any], None], width: float | None, ax: Any, *, height: float = 2.6) -> Any:
    """The figure with what is drawn on one pair of axes: the user's, or that of a figure ``height`` inches high."""
    from slacktide.drawing import style
    from slacktide.reporting import need_libraries

    need_libraries()
    if ax is not None:
        draw(ax)
        return ax.figure

    def alone(sheet: Sheet) -> Any:
        from matplotlib.figure import Figure

        with style(sheet):
            figure = Figure(figsize=(min(sheet.width, 6.0), height), layout="constrained")
            draw(figure.subplots())
            return figure

    return shown(alone, width)


def _checked(width: object) -> float:
    found = float(width) if isinstance(width, SupportsFloat) else 0.0
    if not LEAST <= found <= MOST:
        raise ConfigError(f"width: found {width!r}, expected mm, from {LEAST:g} to {MOST:g}, or None")
    return found
