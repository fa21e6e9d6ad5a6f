"""The figure of bench/edge_cluster.py: each setting in a line of its own, delay and promises kept beside each other."""

from __future__ import annotations

from typing import Any

from slacktide.drawing import PAGE, alone, style, svg
from slacktide.palette import GRID, KEPT, MISSED, MUTED, POLICIES, TEXT

ORANGE, BLUE = POLICIES[0], POLICIES[1]
GROUPS = (
    ("delay-aware inside a policy with promises", BLUE),
    ("other scores inside a policy with promises", ORANGE),
    ("methods alone, without preemption", MUTED),
)
ABOUT = "Mean delay of users, and the share of requests that missed what they were promised, for each setting"


def group_of(name: str) -> int:
    """Which of ``GROUPS`` a row belongs to."""
    return 2 if "alone" in name else 0 if name.startswith("...") or "delay-aware" in name else 1


def drawing(rows: dict[str, dict[str, float]]) -> str:
    """Two panels with common rows: delays and promises missed; in each group the least delay comes first."""
    from matplotlib.figure import Figure

    numbers = {name: number for number, name in enumerate(rows, 1)}
    ordered = [
        sorted((one for one in rows if group_of(one) == group), key=lambda one: rows[one]["mean"])
        for group in range(len(GROUPS))
    ]
    with style(PAGE):
        figure: Any = Figure(figsize=(PAGE.width, 0.8 + 0.23 * (len(rows) + 2 * len(GROUPS))), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        ticks, names, place = [], [], 0.0
        for (title, ink), some in zip(GROUPS, ordered, strict=True):
            if not some:
                continue
            left.text(0.0, place, title, fontweight="bold", color=ink.light, va="center", transform=_beside(left))
            for name in some:
                place += 1.0
                row = rows[name]
                ticks.append(place)
                names.append(f"{numbers[name]}  {name}")
                left.plot([0.0, row["mean"]], [place] * 2, color=GRID.light, linewidth=1.2, zorder=1)
                left.plot([row["mean"]], [place], "o", color=ink.light, markersize=6)
                left.annotate(f"{row['mean']:.1f}", (row["mean"], place), xytext=(6, 0), textcoords="offset points",
                              va="center", fontsize="small")  # fmt: skip
                missed = 100.0 * (1.0 - row["all"])
                right.plot([0.0, missed], [place] * 2, color=GRID.light, linewidth=1.2, zorder=1)
                right.plot([missed], [place], "o", color=(MISSED if missed else KEPT).light, markersize=6,
                           clip_on=False)  # fmt: skip
                right.annotate(f"{missed:.2g}" if missed else "none", (missed, place), xytext=(6, 0),
                               textcoords="offset points", va="center", fontsize="small")  # fmt: skip
            place += 1.6
        left.set_yticks(ticks, names)
        left.set_ylim(place - 0.6, -0.9)
        left.set_xlim(0.0, 1.12 * max(row["mean"] for row in rows.values()))
        right.set_xlim(0.0, 1.15 * max(0.01, *(100.0 * (1.0 - row["all"]) for row in rows.values())))
        left.set_xlabel("mean delay of users, ms (less is better)")
        right.set_xlabel("promises missed, % of requests (less is better)")
        for one in (left, right):
            one.grid(visible=False, axis="y")
            one.tick_params(left=False)
            one.spines["left"].set_color(TEXT.light)
        return alone(svg(figure, "edge-cluster", ABOUT, ABOUT), modes=True)


def _beside(axes: Any) -> Any:
    """Across in parts of the axes, up in data."""
    return axes.get_yaxis_transform()
