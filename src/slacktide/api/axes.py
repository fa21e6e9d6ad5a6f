"""Figures of one result on one pair of axes, which may be the user's."""

from __future__ import annotations

from typing import Any

from slacktide.errors import ConfigError
from slacktide.for_people import share
from slacktide.palette import GRID, GROUND, TEXT

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
