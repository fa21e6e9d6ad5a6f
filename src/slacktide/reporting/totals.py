"""Figures of sums: penalties and their increments, preemptions, fairness by contention class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from slacktide.drawing import Sheet, label, legend, panels, style
from slacktide.metrics.contention import LEVELS
from slacktide.palette import GROUND, MUTED, TEXT
from slacktide.reporting.figure import Figure, Places, Rows, Scene, busy, known, limited, where
from slacktide.reporting.over_time import policy_handles, short, thousands
from slacktide.reporting.promises import WIDEST

MEASURES = {
    "availability_gini": "Gini coefficient",
    "availability_min": "minimum availability",
    "fulfilment": "fulfilled now, %",
}
PERFECT = {"availability_gini": 0.0, "availability_min": 1.0, "fulfilment": 1.0}
FEW_DECADES = 200.0
"""An axis from its least to so many times as much names 2 and 5, too."""
LEVEL_LABELS = 15
"""The numbers of so many bars fit above them; those of more are turned."""


def bars(
    table: Any, scene: Scene, *, key: str, title: str, axis: str, idle: str, reading: str, description: str
) -> Figure:
    """A bar for each host set and policy; host sets where all are 0 are left out, which ``idle`` says.

    ``table``: hosts, policy, value, low, high (95 % interval or null).
    """
    rows = [row for row in table.to_pylist() if row["policy"] in scene.policies]
    hosts, notes = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    places, left = busy([hosts], lambda one: any(row["value"] for row in where(rows, hosts=one)), str, idle)
    some = [one for row in places for one in row if one]

    def draw(sheet: Sheet, shown: Sequence[str] = some) -> Any:
        with style(sheet):
            made = panels(sheet, [[shown]], height=2.9, share=(False, False), below="host set")
            ((axes, _),) = made
            _grouped(axes, rows, shown, scene, sheet)
            axes.set_ylabel(axis)
            legend(sheet, made.figure, _bar_handles(scene, {row["policy"] for row in rows}))
            return made.figure

    return Figure(
        key, title, description, reading, draw if some else None, table, notes=(*notes, *(left if some else ())),
        idle=partial(draw, shown=hosts) if hosts else None,
    )  # fmt: skip


def _grouped(axes: Any, rows: Rows, hosts: Sequence[str], scene: Scene, sheet: Sheet) -> None:
    policies = [one for one in scene.policies if where(rows, policy=one)]
    width = 0.8 / max(len(policies), 1)
    turned = len(hosts) * len(policies) > LEVEL_LABELS * sheet.letters / 110
    finite = [abs(row[name]) for row in rows for name in ("value", "high") if _known(row.get(name))]
    top = max(finite, default=0.0) or 1.0
    for group, one in enumerate(hosts):
        for number, policy in enumerate(policies):
            at = group - 0.4 + width * (number + 0.5)
            for row in where(rows, hosts=one, policy=policy):
                _bar(axes, at, width, row, scene.policy_looks[policy], turned)
    axes.axhline(0.0, color=TEXT.light, linewidth=0.8)
    axes.set_xlim(-0.6, len(hosts) - 0.4)
    axes.set_ylim(0.0, top * (1.5 if turned else 1.2))
    axes.set_xticks(range(len(hosts)), [label(one, max(6, sheet.letters // (len(hosts) + 1))) for one in hosts])
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(thousands())


def increments(table: Any, scene: Scene, *, description: str) -> Figure:
    """What the reference owes and what each other policy, joined by a line, with the increment beside (Q figure 8).

    ``table``: hosts, policy, reference and other (penalties of the compared runs together, cpu-seconds), value
    (increment, per cent; null: infinite), text.
    """
    rows = [row for row in table.to_pylist() if row["policy"] in scene.policies]
    hosts, notes = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    places, left = busy(
        [hosts], lambda one: any(row["reference"] or row["other"] for row in where(rows, hosts=one)), str,
        "There nobody owes a penalty.",
    )  # fmt: skip
    lines = [row for across in places for one in across if one for row in where(rows, hosts=one)]

    def draw(sheet: Sheet) -> Any:
        with style(sheet):
            below = "sum of penalties, cpu-seconds (logarithmic)"
            made = panels(sheet, [[lines]], height=0.5 + 0.3 * len(lines), share=(False, False), below=below)
            ((axes, _),) = made
            _joined(axes, lines, scene, sheet)
            legend(sheet, made.figure, _point_handles(scene, {scene.reference, *(row["policy"] for row in lines)}))
            return made.figure

    return Figure(
        key="increments",
        title=f"Increment of penalties under {scene.reference}: sums of all runs",
        description=description,
        reading=(
            "Each line joins what the reference owes with what the policy of the other mark owes, both summed over the "
            "runs that both have finished: the same workloads, hosts and seeds. Beside it: by how many per cent the "
            "reference's penalties exceed the policy's; below zero the reference owes less."
        ),
        draw=draw if lines else None,
        table=table,
        notes=(*notes, *(left if lines else ())),
    )


def _joined(axes: Any, lines: Rows, scene: Scene, sheet: Sheet) -> None:
    _from_least_to_most(axes, [row[name] for row in lines for name in ("reference", "other")], sheet)
    for place, row in enumerate(lines):
        owed = {scene.reference: row["reference"], row["policy"]: row["other"]}
        axes.plot(list(owed.values()), [place, place], color=MUTED.light, linewidth=1.4, zorder=1)
        for policy, value in owed.items():
            look = scene.policy_looks[policy]
            axes.plot(
                [value], [place], marker=look.marker, color=look.colour, markersize=0.8 * sheet.font,
                markeredgecolor=GROUND.light, markeredgewidth=0.5, linestyle="none",
            )  # fmt: skip
        text = "the other owes none" if row["value"] is None else row["text"] or f"{row['value']:+,.0f} %"
        axes.annotate(text, (max(owed.values()), place), xytext=(7, 0), textcoords="offset points", va="center",
                      fontsize="small")  # fmt: skip
    several = len({row["policy"] for row in lines}) > 1
    room = max(10, sheet.letters // 4)
    names = [f"{row['hosts']}, {row['policy']}" if several else row["hosts"] for row in lines]
    axes.set_yticks(range(len(lines)), [label(one, room) for one in names])
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def _from_least_to_most(axes: Any, values: Sequence[float], sheet: Sheet) -> None:
    """A logarithmic x axis of these values and no more, with room for texts to the right; 0, which it has not, stands
    beside the least of the others.
    """
    least, most = min(value for value in values if value > 0.0), max(values)
    ratio = max(most / least, 2.0)
    axes.set_xscale("symlog", linthresh=least, linscale=0.2)
    axes.set_xlim(
        -0.5 * least if min(values) == 0.0 else least / ratio**0.05, most * ratio ** (0.6 if sheet.slim else 0.2)
    )
    steps = (1, 2, 5) if ratio < FEW_DECADES else (1,)
    powers = range(math.floor(math.log10(least)), math.floor(math.log10(most)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps if least <= step * 10.0**power <= most]
    ticks = ticks[:: 2 if sheet.slim and len(ticks) > 4 else 1] or [least]
    axes.set_xticks([*([0.0] if min(values) == 0.0 else []), *ticks])
    axes.xaxis.set_major_formatter(thousands())
    axes.minorticks_off()


def _point_handles(scene: Scene, policies: set[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], linestyle="none", marker=look.marker, color=look.colour, markersize=6, label=label(name))
        for name, look in scene.policy_looks.items()
        if name in policies
    ]


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _bar(axes: Any, at: float, width: float, row: dict[str, Any], look: Any, turned: bool) -> None:
    value = row["value"]
    axes.bar(at, value, width * 0.92, facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND.light, linewidth=0)
    end = value
    if _known(row.get("low")) and _known(row.get("high")):
        axes.plot([at, at], [row["low"], row["high"]], color=TEXT.light, linewidth=1.3)
        for edge in (row["low"], row["high"]):
            axes.plot([at - width * 0.15, at + width * 0.15], [edge, edge], color=TEXT.light, linewidth=1.3)
        end = max(value, row["high"])
    _above(axes, at, max(end, 0.0), short(value), turned)


def _above(axes: Any, at: float, height: float, text: str, turned: bool) -> None:
    axes.annotate(
        text, (at, height), xytext=(0, 2.5), textcoords="offset points", ha="center", va="bottom", fontsize="small",
        rotation=90 if turned else 0,
    )  # fmt: skip


def _bar_handles(scene: Scene, policies: set[str]) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND.light, label=label(name))
        for name, look in scene.policy_looks.items()
        if name in policies
    ]


def fairness(table: Any, scene: Scene, every: str, why_not: str = "") -> Figure:
    """Gini coefficient, minimum availability and current fulfilment by contention class (Q figure 9).

    ``table``: level (of ``LEVELS``), class, policy, metric (of ``MEASURES``), mean, low, high, rows (intervals), runs.
    ``every``: the length of an interval, in words; ``why_not`` says why there is none.
    """
    told = [row for row in table.to_pylist() if row["mean"] is not None and row["level"] != "none"]
    rows = [row for row in told if row["policy"] in scene.policies]
    there = known([[(measure, kind) for kind in scene.classes] for measure in MEASURES], lambda one: _of(rows, one))
    places, idle = busy(
        there, lambda one: any(abs(row["mean"] - PERFECT[one[0]]) > 1e-9 for row in _of(rows, one)),
        lambda one: f"{MEASURES[one[0]].removesuffix(', %')} of {one[1]}",
        "There every policy is at the best that there is (Gini coefficient 0, all else 1) in all intervals.",
    )  # fmt: skip

    def draw(sheet: Sheet, shown: Places[tuple[str, str]] = places) -> Any:
        with style(sheet):
            narrower = replace(sheet, columns=min(sheet.columns, WIDEST))
            made = panels(narrower, shown, height=2.0, share=(True, False), below="contention")
            for axes, (measure, kind) in made:
                _levels(axes, _of(rows, (measure, kind)), measure, scene, scene.slos[kind])
                axes.set_title(label(kind, 20))
                axes.set_ylabel(MEASURES[measure])
            legend(sheet, made.figure, policy_handles(scene))
            return made.figure

    return Figure(
        key="fairness",
        title="Fairness, by contention class",
        description=why_not or _fairness_text(rows, scene),
        reading=(
            f"Every interval of {every} belongs to a contention class, by what the priority policy could do in it: "
            "low, all promises kept and the more important classes at 100 %; medium, the least important class misses "
            "its promise, the others are at 100 %; high, the rest. Points are means over intervals, whiskers 95 % "
            "confidence intervals (bootstrap over seeds and workloads). A low Gini coefficient means that requests of "
            "a class are treated alike; the dotted line is the promise. Intervals without contention are in the table."
        ),
        draw=draw if places else None,
        table=table,
        notes=idle if places else (),
        idle=partial(draw, shown=there) if any(map(any, there)) else None,
    )


def _of(rows: Rows, place: tuple[str, str]) -> Rows:
    """The rows of a panel: a measure of a class."""
    return where(rows, metric=place[0], **{"class": place[1]})


def _levels(axes: Any, rows: Rows, measure: str, scene: Scene, slo: float) -> None:
    factor = 100.0 if measure == "fulfilment" else 1.0
    step = 0.7 / max(len(scene.policies), 1)
    for number, policy in enumerate(scene.policies):
        look = scene.policy_looks[policy]
        for place, level in enumerate(LEVELS[1:]):
            for row in where(rows, policy=policy, level=level):
                at = place - 0.35 + step * (number + 0.5)
                if row["low"] is not None:
                    ends = [factor * row["low"], factor * row["high"]]
                    axes.plot([at, at], ends, color=look.colour, linewidth=1.6)
                axes.plot(
                    [at], [factor * row["mean"]], marker=look.marker, color=look.colour, markersize=6,
                    markeredgecolor=GROUND.light, markeredgewidth=0.5,
                )  # fmt: skip
    for place, level in enumerate(LEVELS[1:]):
        if rows and not where(rows, level=level):
            axes.text(place, 0.5, "no interval", transform=axes.get_xaxis_transform(), ha="center", va="center",
                      fontsize="small", rotation=90)  # fmt: skip
    if measure == "availability_min":
        axes.axhline(slo, color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    top = max((factor * max(row["mean"], row["high"] or 0.0) for row in rows), default=1.0)
    high = 1.08 * factor if measure != "availability_gini" else max(1.15 * top, 0.05)
    axes.set_ylim(-0.04 * high, high)
    axes.set_xlim(-0.5, 2.5)
    axes.set_xticks(range(3), LEVELS[1:])
    axes.grid(visible=False, axis="x")


def _fairness_text(rows: Rows, scene: Scene) -> str:
    if not rows:
        return "No interval had contention."
    said = []
    for level in LEVELS[1:]:
        for kind in scene.classes:
            found = where(rows, level=level, metric="availability_min", **{"class": kind})
            if found:
                values = ", ".join(f"{row['policy']} {row['mean']:.3f}" for row in found)
                said.append(f"{level} contention, {kind}: mean minimum availability {values}")
    return "; ".join(said) + "."
