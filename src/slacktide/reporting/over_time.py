"""Figures with time on the x axis: demand against capacity, queue, operations."""

from __future__ import annotations

from functools import partial
from typing import Any

from slacktide.drawing import Sheet, label, legend, panels, style
from slacktide.errors import remedy
from slacktide.palette import GROUND, TEXT
from slacktide.reporting.figure import Figure, Places, Rows, Scene, busy, known, limited, where

HOUR, DAY = 3600.0, 86400.0


def clock(longest: float) -> tuple[float, str]:
    """How many seconds a unit of the time axis has, and its name: minutes up to three hours, then hours, then days."""
    if longest <= 3 * HOUR:
        return 60.0, "min"
    return (HOUR, "h") if longest <= 3 * DAY else (DAY, "days")


def demand(table: Any, capacity: Any, scene: Scene) -> Figure:
    """Demand over time by class against capacity (Q figures 1 and 2).

    ``table``: workload, resource, time (s), class, demand; ``capacity``: workload, hosts, resource, capacity.
    """
    rows, limits = table.to_pylist(), capacity.to_pylist()
    resources = list(dict.fromkeys(row["resource"] for row in rows))
    drawn, notes = limited([one for one in scene.workloads if where(rows, workload=one)], "workloads")
    title = "Demand over time by class, against capacity"

    def draw(sheet: Sheet) -> Any:
        with style(sheet):
            scale, unit = clock(max(row["time"] for row in rows))
            places = [[(workload, resource) for resource in resources] for workload in drawn]
            made = panels(sheet, places, height=2.7, share=(True, False), below=f"time, {unit}")
            for axes, (workload, resource) in made:
                mine = where(rows, workload=workload, resource=resource)
                _stacked(axes, mine, where(limits, workload=workload, resource=resource), scene, scale)
                axes.set_title(label(f"{workload}: {resource}", sheet.letters // made.columns - 6))
            for axes in made.first:
                axes.set_ylabel("hosts' unit")
            legend(sheet, made.figure, _class_handles(scene))
            return made.figure

    return Figure(
        key="demand",
        title=title,
        description=_peaks(rows, limits, scene),
        reading=(
            "Coloured areas are what requests that are active ask for, stacked by class, most important at the bottom; "
            "dashed lines are the capacity of each host set. Where the areas rise above a line somebody has to wait."
        ),
        draw=draw if rows else None,
        table=table,
        units={"time": "s", "demand": "hosts' unit"},
        notes=notes,
    )


def _stacked(axes: Any, rows: Rows, limits: Rows, scene: Scene, scale: float) -> None:
    import numpy as np

    times = sorted({row["time"] for row in rows})
    at = {time: index for index, time in enumerate(times)}
    below = np.zeros(len(times))
    for name in scene.classes:
        level = np.zeros(len(times))
        for row in where(rows, **{"class": name}):
            level[at[row["time"]]] += row["demand"]
        look = scene.class_looks[name]
        axes.fill_between(
            np.array(times) / scale, below, below + level, step="pre" if len(times) > 1 else None,
            facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND.light, linewidth=0.5,
        )  # fmt: skip
        below = below + level
    axes.set_ylim(0.0, 1.15 * max([float(below.max(initial=0.0)), *(one["capacity"] for one in limits)]) or 1.0)
    axes.set_xlim(times[0] / scale, times[-1] / scale if len(times) > 1 else times[0] / scale + 1.0)
    _limits(axes, limits)


def _limits(axes: Any, limits: Rows) -> None:
    """A dashed line and its name for each capacity; names keep their distance, those of equal ones share a line."""
    gap, place = 0.085 * axes.get_ylim()[1], float("-inf")
    heights = sorted({one["capacity"] for one in limits})
    for height in heights:
        axes.axhline(height, color=TEXT.light, linestyle=(0, (4, 2)), linewidth=1.1)
        place = max(height, place + gap)
        names = ", ".join(label(one["hosts"], 16) for one in limits if one["capacity"] == height)
        axes.annotate(
            names, (1.0, place), xycoords=("axes fraction", "data"), xytext=(-3, 1), textcoords="offset points",
            ha="right", va="bottom", fontsize="small",
            bbox={"facecolor": GROUND.light, "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
        )  # fmt: skip


def _class_handles(scene: Scene) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    patches: list[Any] = [
        Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND.light, label=label(name))
        for name, look in scene.class_looks.items()
    ]
    return [*patches, Line2D([], [], color=TEXT.light, linestyle=(0, (4, 2)), linewidth=1.1, label="capacity")]


def _peaks(rows: Rows, limits: Rows, scene: Scene) -> str:
    """Of each workload and resource the highest demand, in parts of the largest capacity."""
    if not rows:
        return "No run tells the demand over time."
    said = []
    for workload in scene.workloads:
        for resource in dict.fromkeys(row["resource"] for row in rows):
            total: dict[float, float] = {}
            for row in where(rows, workload=workload, resource=resource):
                total[row["time"]] = total.get(row["time"], 0.0) + row["demand"]
            most = max((one["capacity"] for one in where(limits, workload=workload, resource=resource)), default=0.0)
            if total and most > 0.0:
                said.append(
                    f"{workload}: {resource} at most {max(total.values()) / most:.0%} of the largest host set".replace(
                        "%", " %"
                    )
                )
    return "; ".join(said[:8]) + "." if said else "Demand over time; the capacity is not known."


def lines(table: Any, column: str, scene: Scene, *, key: str, title: str, axis: str, reading: str) -> Figure:
    """A column of ``table`` (workload, hosts, policy, time in s, ``column``) over time, a line for each policy.

    Small multiples: a row of panels for each workload, a column for each host set.
    """
    rows = [row for row in table.to_pylist() if row[column] is not None and row["policy"] in scene.policies]
    drawn, notes = limited([one for one in scene.workloads if where(rows, workload=one)], "workloads")
    hosts, more = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    every = known([[(workload, one) for one in hosts] for workload in drawn], lambda place: _at(rows, place))
    places, idle = busy(
        every,
        lambda place: any(row[column] for row in _at(rows, place)),
        " on ".join,
        f"There are no {axis} at any time.",
    )
    scale, unit = clock(max((row["time"] for row in rows), default=0.0))

    def draw(sheet: Sheet, shown: Places[tuple[str, str]] = places) -> Any:
        with style(sheet):
            made = panels(sheet, shown, height=2.2, share=(True, "row"), below=f"time, {unit}")
            room = max(10, sheet.letters * 2 // (3 * made.columns))
            for line in made.rows:
                top = max(row[column] for _, place in line for row in _at(rows, place))
                for axes, place in line:
                    _policies(axes, _at(rows, place), column, scene, scale)
                    axes.set_ylim(0.0, 1.08 * top or 1.0)
                    axes.set_title(_panel_name(*place, room))
            for axes in made.first:
                axes.set_ylabel(axis)
            legend(sheet, made.figure, policy_handles(scene, marks=False))
            return made.figure

    return Figure(
        key=key,
        title=title,
        description=_highest(rows, column, axis, scene),
        reading=reading,
        draw=draw if places else None,
        table=table,
        units={"time": "s"},
        notes=(*notes, *more, *idle),
        idle=partial(draw, shown=every) if any(map(any, every)) else None,
    )


def _at(rows: Rows, place: tuple[str, str]) -> Rows:
    """The rows of a panel: a workload on a host set."""
    return where(rows, workload=place[0], hosts=place[1])


def _panel_name(workload: str, hosts: str, room: int) -> str:
    both = f"{workload}, {hosts}"
    return label(both, room) if len(both) <= room else f"{label(workload, room)}\n{label(hosts, room)}"


def _policies(axes: Any, rows: Rows, column: str, scene: Scene, scale: float) -> None:
    """A step for each interval, as wide as it is: a number is of all of its interval. The first policies lie below and
    are wider, so that equal ones are both seen.
    """
    shown = [policy for policy in scene.policies if where(rows, policy=policy)]
    for number, policy in enumerate(shown):
        mine = sorted(where(rows, policy=policy), key=lambda row: row["time"])
        look = scene.policy_looks[policy]
        times = [row["time"] / scale for row in mine]
        begin = max(0.0, 2 * times[0] - times[1]) if len(times) > 1 else 0.0
        values = [row[column] for row in mine]
        axes.plot(
            [begin, *times], [values[0], *values], color=look.colour, linestyle=look.dash if number else "-",
            drawstyle="steps-pre", linewidth=1.6 if number else 3.2, alpha=1.0 if number else 0.55,
        )  # fmt: skip
    axes.set_xlim(left=0.0)
    axes.yaxis.set_major_formatter(thousands())


def thousands() -> Any:
    """Short numbers at an axis."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: short(value))


def short(value: float) -> str:
    """A number for an axis or a label of a bar: ``950``, ``23.2 k``, ``1.3 M``."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= size:
            part = value / (1e3 if letter == " k" else size)
            return f"{part:.3g}{letter}" if abs(part) < 1000 else f"{part:,.0f}{letter}"
    if value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def policy_handles(scene: Scene, *, marks: bool = True) -> list[Any]:
    """Legend of policies: colour, dash and, with ``marks``, marker; without, as :func:`_policies` draws them."""
    from matplotlib.lines import Line2D

    found = []
    for number, (name, look) in enumerate(scene.policy_looks.items()):
        wide = not marks and not number
        dash: Any = "-" if wide else look.dash
        found.append(
            Line2D([], [], color=look.colour, linestyle=dash, marker=look.marker if marks else None, markersize=5,
                   label=label(name), markeredgecolor=GROUND.light, markeredgewidth=0.5,
                   linewidth=3.2 if wide else 1.8 if marks else 1.6, alpha=0.55 if wide else 1.0)
        )  # fmt: skip
    return found


def _highest(rows: Rows, column: str, axis: str, scene: Scene) -> str:
    if not rows:
        return f"No run tells it: runs need intervals ({remedy('--intervals 10m', 'intervals=600')})."
    said = []
    scale, unit = clock(max(row["time"] for row in rows))
    for policy in scene.policies:
        best = max(where(rows, policy=policy), key=lambda row: row[column], default=None)
        if best is not None:
            place = f"{best['workload']}, {best['hosts']}, at {best['time'] / scale:.4g} {unit}"
            said.append(f"{policy} {short(best[column])} ({place})")
    return f"Most {axis} by policy: " + "; ".join(said) + "."
