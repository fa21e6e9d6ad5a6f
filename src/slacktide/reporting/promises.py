"""Figures of what requests got: availabilities, pairs of policies, deficits."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from slacktide.drawing import Sheet, arranged, label, legend, panels, style
from slacktide.for_people import percent
from slacktide.palette import BOTH, GROUND, MUTED, NEITHER, ONLY_X, ONLY_Y, TEXT
from slacktide.reporting.figure import Figure, Places, Rows, Scene, busy, known, limited, of_panel, where
from slacktide.reporting.over_time import policy_handles, short

QUADRANTS = {"both": BOTH, "only other": ONLY_Y, "only reference": ONLY_X, "neither": NEITHER}
"""Who kept the promise of a request. Places: top right, top left, bottom right, bottom left."""
Place = tuple[str, str]
"""Of a panel: a class on a host set."""
FAINTEST = 0.22
"""Opacity of a cell with one request; the fullest cell has 1."""
BY_NUMBER = (
    "A shape is as wide at a deficit as the square root of how many missed their promise by that much, in one measure "
    "all over the figure."
)
WIDEST = 4
"""So many maps side by side can still be read."""


def availabilities(table: Any, scene: Scene) -> Figure:
    """How many requests got at least an availability, per class, host set and policy (what Q figures 4 and 5 show).

    ``table``: hosts, class, policy, availability, share (of requests with at least this availability).
    """
    rows = table.to_pylist()
    hosts, notes = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    every = known([[(name, one) for name in scene.classes] for one in hosts], lambda place: of_panel(rows, place))
    places, idle = busy(
        every,
        lambda place: any(row["share"] < 1.0 for row in of_panel(rows, place)),
        " on ".join,
        "There every request got an availability of 1, under every policy.",
    )

    def draw(sheet: Sheet, shown: Places[Place] = places) -> Any:
        with style(sheet):
            below = "at least this availability"
            made = panels(sheet, shown, height=2.0, share=(True, True), below=below)
            for axes, (name, one) in made:
                _curves(axes, of_panel(rows, (name, one)), scene, scene.slos[name])
                axes.set_title(_name(name, one, sheet, made.columns))
            for axes in made.first:
                axes.set_ylabel("requests, %")
            legend(sheet, made.figure, [*policy_handles(scene), _promise()])
            return made.figure

    return Figure(
        key="availability",
        title="Final availability, by class",
        description=_kept_text(rows, scene),
        reading=(
            "A point of a line says how many per cent of a class's requests got at least the availability below it. "
            "Where a line crosses the vertical one, the promise, it gives the share of promises that were kept. "
            "Of a class with a window it is the availability of each request's worst window. "
            "A line far to the left of the corner at the top right means requests that hardly ran. All workloads and "
            "seeds together."
        ),
        draw=draw if places else None,
        table=table,
        notes=(*notes, *idle),
        idle=partial(draw, shown=every) if any(map(any, every)) else None,
    )


def _name(name: str, hosts: str, sheet: Sheet, columns: int) -> str:
    """Of such a panel, as long as there is room."""
    room = sheet.letters // (2 * columns) - 2
    return f"{label(name, max(room, 8))}, {label(hosts, max(room, 8))}"


def _promise() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)), label="promise")


def _curves(axes: Any, rows: Rows, scene: Scene, slo: float) -> None:
    axes.axvline(slo, color=TEXT.light, linewidth=1.2, linestyle=(0, (1, 1)))
    for number, policy in enumerate(scene.policies):
        mine = sorted(where(rows, policy=policy), key=lambda row: row["availability"])
        if not mine:
            continue  # a line of nothing that is not clipped has no extent, and spoils the layout
        look = scene.policy_looks[policy]
        every = max(len(mine) // 6, 1)
        axes.plot(
            [row["availability"] for row in mine], [100.0 * row["share"] for row in mine], color=look.colour,
            linestyle=look.dash, marker=look.marker, markersize=4.5, markevery=(number * every // 4, every),
            markeredgecolor=GROUND.light, markeredgewidth=0.5, clip_on=False, zorder=3,
        )  # fmt: skip
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 104.0)
    axes.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", ".25", ".5", ".75", "1"])


def _kept_text(rows: Rows, scene: Scene) -> str:
    if not rows:
        return "No finished run."
    said = []
    for one in scene.hosts:
        for name in scene.classes:
            found = []
            for policy in scene.policies:
                mine = where(rows, hosts=one, policy=policy, **{"class": name})
                low = min((row["availability"] for row in mine if row["share"] < 1.0 - 1e-12), default=None)
                if mine:
                    found.append(f"{policy} {'all at 1' if low is None else f'some below {low:.2f}'}")
            if found and any("below" in text for text in found):
                said.append(f"{one}, {name}: " + ", ".join(found))
    return "; ".join(said[:12]) + "." if said else "Every request got an availability of 1."


def pairs(table: Any, quadrants: Any, policy: str, scene: Scene, number: int) -> Figure:
    """Paired heat maps of one policy against the reference (Q figure 6).

    ``table``: hosts, class, x and y (lower edges of cells of ``size``), size, quadrant, requests; ``quadrants``:
    hosts, class, quadrant (of ``QUADRANTS``), share.
    """
    rows, parts = table.to_pylist(), quadrants.to_pylist()
    hosts, notes = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    every = known([[(name, one) for name in scene.classes] for one in hosts], lambda place: of_panel(rows, place))
    places, idle = busy(
        every,
        lambda place: len(of_panel(rows, place)) > 1 or of_panel(rows, place)[0]["quadrant"] != "both",
        " on ".join,
        "There all requests got the same under both, and what they were promised.",
    )
    most = max((row["requests"] for row in rows), default=1)

    def draw(sheet: Sheet, shown: Places[Place] = places) -> Any:
        with style(sheet):
            columns = max(map(len, arranged(shown, min(sheet.columns, WIDEST))))
            width = min(sheet.width, sheet.width * (0.13 + 0.305 * columns)) if not sheet.slim else None
            narrower = replace(sheet, columns=min(sheet.columns, WIDEST))
            made = panels(
                narrower, shown, width=width, height=2.75, share=(True, True),
                below=f"under {label(scene.reference, 22)}",
            )  # fmt: skip
            for axes, (name, one) in made:
                _cells(axes, of_panel(rows, (name, one)), rows[0]["size"], most, scene.slos[name])
                _shares(axes, of_panel(parts, (name, one)))
                axes.set_title(_name(name, one, sheet, made.columns), pad=1.7 * sheet.font)
            for axes in made.first:
                axes.set_ylabel(f"under {label(policy, 22)}")
            legend(sheet, made.figure, _quadrant_handles(policy, scene.reference, most), columns=2)
            return made.figure

    return Figure(
        key=f"pairs-{number}",
        title=f"{policy} against {scene.reference}, request by request",
        description=_quadrant_text(parts, policy, scene),
        reading=(
            "Every request is one pair: across, its availability under the one policy, up, under the other. The "
            "stronger a cell's colour, the more requests are in it (logarithmic). Above the diagonal the policy of the "
            "y axis gave more. Lines at the promise divide each map into quadrants with their share of requests: top "
            "right both kept the promise, top left only the policy of the y axis, bottom right only that of the x "
            "axis, bottom left neither. All workloads and seeds together."
        ),
        draw=draw if places else None,
        table=table,
        notes=(*notes, *idle),
        idle=partial(draw, shown=every) if any(map(any, every)) else None,
    )


def _cells(axes: Any, rows: Rows, size: float, most: int, slo: float) -> None:
    from matplotlib.patches import Rectangle

    for row in rows:
        ink = QUADRANTS[row["quadrant"]]
        strength = FAINTEST + (1.0 - FAINTEST) * (math.log(row["requests"]) / math.log(most) if most > 1 else 1.0)
        axes.add_patch(
            Rectangle((row["x"], row["y"]), size, size, facecolor=ink.light, alpha=round(strength, 2), linewidth=0)
        )
    axes.plot([0, 1], [0, 1], color=MUTED.light, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.axvline(slo, color=TEXT.light, linewidth=0.8)
    axes.axhline(slo, color=TEXT.light, linewidth=0.8)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    axes.grid(visible=False)
    ticks, names = [0.0, 0.25, 0.5, 0.75, 1.0], ["0", ".25", ".5", ".75", "1"]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)


def _shares(axes: Any, parts: Rows) -> None:
    """Each quadrant's share at its corner, the upper ones above the map; those without a request are left out."""
    places = {
        "both": (1.0, 1.01, "right", "bottom"),
        "only other": (0.0, 1.01, "left", "bottom"),
        "only reference": (0.985, 0.015, "right", "bottom"),
        "neither": (0.015, 0.015, "left", "bottom"),
    }
    for part in parts:
        x, y, across, up = places[part["quadrant"]]
        if part["share"] > 0.0:
            axes.text(
                x, y, percent(part["share"]), transform=axes.transAxes, ha=across, va=up, fontsize="small",
                fontweight="bold", bbox={"facecolor": GROUND.light, "edgecolor": "none", "pad": 1.2, "alpha": 0.85},
            )  # fmt: skip


def _quadrant_handles(policy: str, reference: str, most: int) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = {
        "both": "promise kept by both",
        "only other": f"only by {label(policy, 24)}",
        "only reference": f"only by {label(reference, 24)}",
        "neither": "by neither",
    }
    made: list[Any] = [Patch(facecolor=ink.light, label=names[name]) for name, ink in QUADRANTS.items()]
    made.append(Patch(facecolor=TEXT.light, alpha=FAINTEST, label=f"faintest: 1 request; strongest: {short(most)}"))
    return [*made, Line2D([], [], color=MUTED.light, linewidth=0.9, linestyle=(0, (4, 2)), label="equal under both")]


def _quadrant_text(parts: Rows, policy: str, scene: Scene) -> str:
    said = []
    for one in scene.hosts:
        for name in scene.classes:
            share = {part["quadrant"]: part["share"] for part in where(parts, hosts=one, **{"class": name})}
            if share:
                said.append(
                    f"{one}, {name}: kept by both {percent(share['both'])}, only by {policy} "
                    f"{percent(share['only other'])}, only by {scene.reference} {percent(share['only reference'])}, "
                    f"by neither {percent(share['neither'])}"
                )
    return "; ".join(said[:18]) + "." if said else "No pair of finished runs."


def deficits(table: Any, summary: Any, scene: Scene) -> Figure:
    """How much the requests missed that missed their promise (Q figure 7).

    ``table``: hosts, class, policy, deficit (lower edge of a bin), size, requests; ``summary``: hosts, class, policy,
    missed, share, mean.
    """
    rows, sums = table.to_pylist(), summary.to_pylist()
    most = max((row["requests"] for row in rows if row["policy"] in scene.policies), default=0)
    hosts, notes = limited([one for one in scene.hosts if where(sums, hosts=one)], "host sets")
    every = known([[(name, one) for name in scene.classes] for one in hosts], lambda place: of_panel(sums, place))
    places, idle = busy(
        every,
        lambda place: any(row["missed"] for row in of_panel(sums, place)),
        " on ".join,
        "There no promise was broken.",
    )

    def draw(sheet: Sheet, shown: Places[Place] = places) -> Any:
        with style(sheet):
            each = 0.55 + 0.42 * len(scene.policies)
            columns = 1 if sheet.slim else sheet.columns
            below = "deficit: promise - availability"
            made = panels(replace(sheet, columns=columns), shown, height=each, share=(False, True), below=below)
            for axes, (name, one) in made:
                ran = {row["policy"] for row in where(sums, hosts=one)}
                _bodies(axes, of_panel(rows, (name, one)), most, scene, scene.slos[name])
                _counts(axes, of_panel(sums, (name, one)), scene, scene.slos[name], ran)
                axes.set_title(_name(name, one, sheet, made.columns))
            for axes in made.first:
                axes.set_yticks(range(len(scene.policies)), [label(one, sheet.letters // 5) for one in scene.policies])
                axes.set_ylim(len(scene.policies) - 0.4, -0.6)
            return made.figure

    missed = [
        f"{row['hosts']}, {row['class']}, {row['policy']}: {row['missed']:,} requests ({percent(row['share'])}), "
        f"on average {row['mean']:.3f} below"
        for row in sums
        if row["missed"]
    ]
    return Figure(
        key="deficits",
        title="Deficits: by how much broken promises were missed",
        description="; ".join(missed[:18]) + "." if missed else "No promise was broken in any finished run.",
        reading=(
            f"Only requests that missed their promise; beside each shape is how many, and their share of the class. "
            f"{BY_NUMBER} The bar is the mean. Left is better. All workloads and seeds together."
        ),
        draw=draw if places else None,
        table=table,
        notes=(*notes, *idle),
        idle=partial(draw, shown=every) if any(map(any, every)) else None,
    )


def _bodies(axes: Any, rows: Rows, most: int, scene: Scene, slo: float) -> None:
    import numpy as np

    for place, policy in enumerate(scene.policies):
        mine = where(rows, policy=policy)
        if not mine:
            continue
        size, look = mine[0]["size"], scene.policy_looks[policy]
        counts = np.zeros(round(slo / size) + 1)
        for row in mine:
            counts[min(round(row["deficit"] / size), len(counts) - 1)] += row["requests"]
        half = 0.42 * np.sqrt(counts / most)
        edges = np.arange(len(counts)) * size
        axes.fill_between(
            np.append(edges, edges[-1] + size).clip(max=slo), place - np.append(half, half[-1]),
            place + np.append(half, half[-1]), step="post", facecolor=look.colour, edgecolor=look.colour,
            linewidth=0.8, hatch=look.hatch,
        )  # fmt: skip


def _counts(axes: Any, sums: Rows, scene: Scene, slo: float, ran: set[str]) -> None:
    """Beside each shape how many they are, in it their mean."""
    axes.set_xlim(0.0, slo * 1.8)
    axes.set_xticks([0.0, slo / 2, slo], ["0", f"{slo / 2:g}", f"{slo:g}"])
    axes.grid(visible=False, axis="y")
    for place, policy in enumerate(scene.policies):
        text = "no requests" if policy in ran else "not run"
        for one in where(sums, policy=policy):
            text = f"{short(one['missed'])} ({percent(one['share'])})" if one["missed"] else "none"
            if one["missed"]:
                axes.plot([one["mean"]] * 2, [place - 0.3, place + 0.3], color=TEXT.light, linewidth=1.6, zorder=4)
        axes.text(slo * 1.78, place, text, ha="right", va="center", fontsize="small")


__all__ = ["QUADRANTS", "availabilities", "deficits", "pairs", "percent"]
