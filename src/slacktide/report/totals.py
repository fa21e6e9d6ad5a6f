"""Figures of sums: penalties and their increments, preemptions, fairness by contention class."""

from __future__ import annotations

import math
from typing import Any

from slacktide.metrics.contention import LEVELS
from slacktide.palette import GROUND, TEXT
from slacktide.report.drawing import label, legend, nothing, panels, style
from slacktide.report.figure import Figure, Rows, Scene, limited, where
from slacktide.report.over_time import policy_handles, short
from slacktide.report.promises import WIDEST

MEASURES = {
    "availability_gini": "Gini coefficient",
    "availability_min": "minimum availability",
    "fulfilment": "fulfilled now, %",
}
LEVEL_LABELS = 15
"""The numbers of so many bars fit above them; those of more are turned."""


def bars(
    table: Any,
    scene: Scene,
    *,
    key: str,
    title: str,
    axis: str,
    reading: str,
    description: str,
    steep: float = math.inf,
) -> Figure:
    """A bar for each host set and policy.

    ``table``: hosts, policy, value, low, high (95 % interval or null). Where a value exceeds ``steep`` the axis is
    logarithmic from 100 on.
    """
    rows = [row for row in table.to_pylist() if row["policy"] in scene.policies]
    hosts, notes = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    drawing = None
    if rows:
        with style():
            made = panels(1, 1, height=2.9, share=(False, False))
            _grouped(made.axes[0][0], rows, hosts, scene, steep)
            made.axes[0][0].set_ylabel(axis)
            made.axes[0][0].set_xlabel("host set")
            legend(made.figure, _bar_handles(scene, {row["policy"] for row in rows}))
            drawing = made.figure
    return Figure(key, title, description, reading, drawing, table, notes=notes)


def _grouped(axes: Any, rows: Rows, hosts: tuple[str, ...], scene: Scene, steep: float) -> None:
    policies = [one for one in scene.policies if where(rows, policy=one)]
    width = 0.8 / max(len(policies), 1)
    turned = len(hosts) * len(policies) > LEVEL_LABELS
    finite = [abs(row[name]) for row in rows for name in ("value", "high") if _known(row.get(name))]
    top = max(finite, default=0.0) or 1.0
    low = min([0.0, *(row["value"] for row in rows if _known(row["value"]))])
    for group, one in enumerate(hosts):
        for number, policy in enumerate(policies):
            at = group - 0.4 + width * (number + 0.5)
            for row in where(rows, hosts=one, policy=policy):
                _bar(axes, at, width, row, scene.policy_looks[policy], turned)
    axes.axhline(0.0, color=TEXT.light, linewidth=0.8)
    axes.set_xlim(-0.6, len(hosts) - 0.4)
    if top > steep:
        axes.set_yscale("symlog", linthresh=100.0)
        axes.set_ylim(-10.0 + low * 3.0 if low else 0.0, top * 5.0)
    else:
        axes.set_ylim(low * 1.2, top * (1.5 if turned else 1.2))
    axes.set_xticks(range(len(hosts)), [label(one, 22) for one in hosts])
    axes.grid(visible=False, axis="x")
    from matplotlib.ticker import FuncFormatter

    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _bar(axes: Any, at: float, width: float, row: dict[str, Any], look: Any, turned: bool) -> None:
    value = row["value"]
    if not _known(value):
        _above(axes, at, 0.0, row.get("text") or "none", turned)
        return
    axes.bar(at, value, width * 0.92, facecolor=look.colour, hatch=look.hatch, edgecolor=GROUND.light, linewidth=0)
    end = value
    if _known(row.get("low")) and _known(row.get("high")):
        axes.plot([at, at], [row["low"], row["high"]], color=TEXT.light, linewidth=1.3)
        for edge in (row["low"], row["high"]):
            axes.plot([at - width * 0.15, at + width * 0.15], [edge, edge], color=TEXT.light, linewidth=1.3)
        end = max(value, row["high"])
    _above(axes, at, max(end, 0.0), row.get("text") or short(value), turned)


def _above(axes: Any, at: float, height: float, text: str, turned: bool) -> None:
    axes.annotate(
        text, (at, height), xytext=(0, 2.5), textcoords="offset points", ha="center", va="bottom", fontsize=8,
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
    known = [row for row in table.to_pylist() if row["mean"] is not None and row["level"] != "none"]
    rows = [row for row in known if row["policy"] in scene.policies]
    drawing = None
    if rows:
        with style():
            drawing = _by_class(rows, scene)
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
        drawing=drawing,
        table=table,
    )


def _by_class(rows: Rows, scene: Scene) -> Any:
    """Classes beside each other and measures below each other; of more classes than fit, the other way round."""
    beside = len(scene.classes) <= WIDEST
    across, down = (scene.classes, tuple(MEASURES)) if beside else (tuple(MEASURES), scene.classes)
    made = panels(len(down), len(across), height=2.0, share=(True, False))
    for line, first in zip(made.axes, down, strict=True):
        for axes, second in zip(line, across, strict=True):
            measure, kind = (first, second) if beside else (second, first)
            _levels(axes, where(rows, metric=measure, **{"class": kind}), measure, scene, scene.slos[kind])
            if not beside or line is made.axes[0]:
                axes.set_title(label(kind, 20))
            if not beside or axes is line[0]:
                axes.set_ylabel(MEASURES[measure])
    for axes in made.axes[-1]:
        axes.set_xlabel("contention")
    legend(made.figure, policy_handles(scene))
    return made.figure


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
                      fontsize=8, rotation=90)  # fmt: skip
    if measure == "availability_min":
        axes.axhline(slo, color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    top = max((factor * max(row["mean"], row["high"] or 0.0) for row in rows), default=1.0)
    high = 1.08 * factor if measure != "availability_gini" else max(1.15 * top, 0.05)
    axes.set_ylim(-0.04 * high, high)
    axes.set_xlim(-0.5, 2.5)
    axes.set_xticks(range(3), LEVELS[1:])
    axes.grid(visible=False, axis="x")
    if not rows:
        nothing(axes, "no requests")


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
