"""Promises over windows: the worst window of every length, and what came of each promise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from slacktide.drawing import Panels, Sheet, label, legend, panels, style
from slacktide.for_people import percent
from slacktide.model.durations import write_duration
from slacktide.palette import GROUND, TEXT
from slacktide.reporting.figure import Figure, Places, Rows, Scene, busy, known, limited, of_panel, where
from slacktide.reporting.gather import WINDOWS, Member, table_of, told
from slacktide.reporting.over_time import policy_handles

COLUMNS = ("class", "window", "length", "worst", "requests", "kept", "longest")
"""Of windows.parquet."""
TICKS = (1.0, 10.0, 60.0, 600.0, 3_600.0, 6 * 3_600.0, 86_400.0, 7 * 86_400.0, 30 * 86_400.0, 365 * 86_400.0)


def of_run(member: Member) -> Rows:
    """The rows of a run's windows.parquet with its place in the grid; none where no class has a window."""
    if all(one.window is None for one in member.classes):
        return []
    table = table_of(member, WINDOWS, COLUMNS)
    with told(member, WINDOWS):
        slos = {one.name: one.slo for one in member.classes}
        return [{**member.names, **row, "slo": slos[row["class"]]} for row in table.to_pylist()]


def outcome(rows: Rows, scene: Scene) -> Rows:
    """A row for each host set, class with a window, and policy, over all its runs.

    The promise and the length of its window (s, None: calendar), the worst window, the share of windows kept, mean
    over requests, the longest outage in one piece (s).
    """
    found: Rows = []
    own = [row for row in rows if row["window"] is not None and row["requests"]]
    for one in scene.hosts:
        for name in scene.classes:
            for policy in scene.policies:
                mine = where(own, hosts=one, policy=policy, **{"class": name})
                if mine:
                    found.append({"hosts": one, "class": name, "policy": policy, **_together(mine)})
    return found


def _together(mine: Rows) -> dict[str, Any]:
    requests = sum(row["requests"] for row in mine)
    return {
        "promise": mine[0]["slo"],
        "length": mine[0]["length"],
        "over": " or ".join(dict.fromkeys(row["window"] for row in mine)),
        "worst": min(row["worst"] for row in mine),
        "kept": sum(row["kept"] * row["requests"] for row in mine) / requests,
        "longest": max(row["longest"] for row in mine),
        "requests": requests,
    }


def curves(rows: Rows, scene: Scene) -> Rows:
    """hosts, class, policy, length (s), availability: the least of all runs that have windows so long."""
    found: Rows = []
    of_length = [row for row in rows if row["window"] is None]
    for one in scene.hosts:
        for name in scene.classes:
            for policy in scene.policies:
                mine = where(of_length, hosts=one, policy=policy, **{"class": name})
                runs = {(row["workload"], row["replicate"]) for row in mine}
                by_length: dict[float, list[float]] = {}
                for row in mine:
                    by_length.setdefault(row["length"], []).append(row["worst"])
                found += [
                    {"hosts": one, "class": name, "policy": policy, "length": length, "availability": min(values)}
                    for length, values in sorted(by_length.items())
                    if len(values) == len(runs)
                ]
    return found


def windows(table: Any, came_to: Rows, scene: Scene) -> Figure:
    """The worst window of every length, per class with a window, host set and policy (Hauer et al., NSDI 2020).

    ``table``: rows of :func:`curves`; ``came_to``: of :func:`outcome`.
    """
    rows = table.to_pylist()
    classes = [one for one in scene.classes if where(came_to, **{"class": one})]
    hosts, notes = limited([one for one in scene.hosts if where(came_to, hosts=one)], "host sets")
    every = known([[(name, one) for name in classes] for one in hosts], lambda place: of_panel(rows, place))
    places, idle = busy(
        every,
        lambda place: any(row["availability"] < 1.0 for row in of_panel(rows, place)),
        " on ".join,
        "There no window of any length has lost anything.",
    )

    def draw(sheet: Sheet, shown: Places[tuple[str, str]] = places) -> Any:
        with style(sheet):
            made = panels(sheet, shown, height=2.2, share=(True, True), below="length of the window")
            room = max(8, sheet.letters // (2 * made.columns) - 2)
            for axes, (name, one) in made:
                here = {"hosts": one, "class": name}
                _panel(axes, where(rows, **here), where(came_to, **here), scene)
                axes.set_title(f"{label(name, room)}, {label(one, room)}")
            for axes in made.first:
                axes.set_ylabel("worst window")
            _lengths(made, [row["length"] for row in rows], sheet)
            legend(sheet, made.figure, [*policy_handles(scene), _promised()])
            return made.figure

    return Figure(
        key="windows",
        title="Worst window of every length, by class",
        description=_text(came_to),
        reading=(
            "A point of a line says how little of its time any request of the class got in any window of the length "
            "below it. Dotted lines are the promise: its availability, and, where it is over rolling windows, their "
            "length; where they cross, a line that is above has kept it in all. Many short outages make a line that "
            "rises early, few long ones one that rises late. A window longer than a life is that life. All workloads "
            "and seeds together. After Hauer et al., Meaningful Availability (NSDI 2020)."
        ),
        draw=draw if places else None,
        table=table,
        units={"length": "s"},
        notes=(*notes, *idle),
        idle=partial(draw, shown=every) if any(map(any, every)) else None,
    )


def _promised() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)), label="promise, its window")


def _panel(axes: Any, rows: Rows, came_to: Rows, scene: Scene) -> None:
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.04)
    for one in came_to[:1]:
        axes.axhline(one["promise"], color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    for length in {row["length"] for row in came_to if row["length"] is not None}:
        axes.axvline(length, color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    for policy in scene.policies:
        mine = where(rows, policy=policy)
        if not mine:
            continue
        look = scene.policy_looks[policy]
        axes.plot(
            [row["length"] for row in mine], [row["availability"] for row in mine], color=look.colour,
            linestyle=look.dash, marker=look.marker, markersize=4.5, markeredgecolor=GROUND.light,
            markeredgewidth=0.5, zorder=3,
        )  # fmt: skip


def _lengths(made: Panels[Any], lengths: Sequence[float], sheet: Sheet) -> None:
    """The common axis of lengths: a few of them in words."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    low, high = min(lengths), max(lengths)
    ticks = [one for one in TICKS if low <= one <= high]
    ticks = ticks[:: 2 if sheet.slim and made.columns > 1 and len(ticks) > 4 else 1]
    for one, _ in made:
        one.set_xlim(low / 1.3, high * 1.3)
        one.xaxis.set_major_locator(FixedLocator(ticks))
        one.xaxis.set_minor_locator(NullLocator())
        one.xaxis.set_minor_formatter(NullFormatter())
        one.set_xticks(ticks, [write_duration(tick) for tick in ticks])


def _text(came_to: Iterable[Mapping[str, Any]]) -> str:
    said = [
        f"{row['hosts']}, {row['class']}, {row['policy']}: worst window {row['worst']:.4g} of {row['promise']:g} "
        f"promised ({row['over']}), {percent(row['kept'])} of windows kept, longest outage {row['longest']:,.4g} s"
        for row in came_to
    ]
    return "; ".join(said[:18]) + "." if said else "No request of a class with a window."
