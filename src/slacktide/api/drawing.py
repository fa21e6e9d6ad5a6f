"""Figures of the report, one by one, and those of one result, on axes that may be the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, SupportsFloat

from slacktide.drawing import Sheet
from slacktide.errors import ConfigError
from slacktide.for_people import share
from slacktide.inputs.columns.cells import expected_name
from slacktide.palette import GRID, GROUND, TEXT
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


BEGINS = ("placed", "moved")
FREE = 1.1
"""By how much a bar is longer than text in it, as layout may make it shorter."""
ENDS = ("preempted", "evicted", "completed", "removed")


def kept(axes: Any, result: Any) -> None:
    """The share of each class's requests that got what they were promised."""
    rows = [one for one in result.classes.iter_rows(named=True) if one["requests"]]
    names = [f"{one['class']} ({one['slo']:g})" for one in rows]
    bars = axes.barh(range(len(rows)), [100.0 * one["fulfilment"] for one in rows], height=0.6)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.set_xlim(0.0, 100.0)
    axes.set_xlabel("promises kept, %")
    for place, (bar, one) in enumerate(zip(bars, rows, strict=True)):
        said = f"{share(100.0 * one['fulfilment'], 2)}% of {one['requests']:,}"
        text = axes.text(bar.get_width() / 2.0, place, said, ha="center", va="center", color=GROUND.light)
        if not _fits(text, bar):
            text.remove()
            axes.text(bar.get_width(), place, f" {said}", va="center")


def _fits(text: Any, bar: Any) -> bool:
    return bool(FREE * text.get_window_extent().width < bar.get_window_extent().width)


def queue(axes: Any, result: Any) -> None:
    """How many wait when each pass begins."""
    passes = result.passes
    axes.step(passes["time"].to_numpy(), passes["queue"].to_numpy(), where="post")
    axes.set_xlabel("time, s")
    axes.set_ylabel("instances that wait")
    axes.set_ylim(bottom=0.0)


def timeline(axes: Any, result: Any, request: object) -> None:
    """When the instances of a request waited (thin) and when they were on hosts, by their names where there is room."""
    import polars as pl

    mine = result.events.filter(pl.col("request") == pl.lit(request))
    if mine.is_empty():
        raise ConfigError(f"plot: request: found {request!r}, expected the id of a request of this run")
    end, rows = float(result.totals["end"]), mine.partition_by("instance", maintain_order=True)
    named = []
    for place, one in enumerate(rows):
        times, on, begun = one["time"].to_list(), "", 0.0
        over = one["event"].is_in(["completed", "removed"]).any()
        axes.plot([times[0], times[-1] if over else end], [place, place], color=TEXT.light, linewidth=1.0, zorder=0.9)
        for at, event, host in [*one.select("time", "event", "host").rows(), (end, ENDS[0], None)]:
            if on and event in (*BEGINS, *ENDS):
                (bar,) = axes.barh(place, at - begun, left=begun, height=0.5, color="C0", edgecolor=GRID.light, lw=0.4)
                text = axes.text(begun, place, f" {on}", va="center", fontsize="small", color=GROUND.light)
                named.append((text, bar))
                on = ""
            if event in BEGINS:
                on, begun = host, at
    number = [one["instance"][0] for one in rows]
    axes.set_yticks(range(len(rows)), [str(request) if one is None else f"{request}.{one}" for one in number])
    axes.set_ylim(-0.8, len(rows) - 0.2)
    axes.set_xlabel("time, s")
    axes.autoscale_view()
    for text, bar in named:
        if not _fits(text, bar):
            text.remove()


FIGURES = {"kept": kept, "queue": queue, "timeline": timeline}
