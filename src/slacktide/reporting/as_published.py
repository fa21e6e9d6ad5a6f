"""Two figures as the papers draw them: deficits as violins, workload by workload, and passes by their queue.

The first is figure 7 of da Silva et al. 2020 (6.2 of Farias's thesis), the second figure 7.7 of the thesis.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.drawing import Sheet, label, legend, panels, style
from slacktide.metrics.columns import achieved, class_codes, numbers
from slacktide.palette import GROUND, TEXT
from slacktide.qos.availability import SLO_TOLERANCE
from slacktide.reporting.figure import Figure, Places, Rows, Scene, busy, known, limited, of_panel, where
from slacktide.reporting.gather import Member, check_numbers, table_of, told
from slacktide.reporting.over_time import policy_handles, short
from slacktide.reporting.promises import BY_NUMBER
from slacktide.reporting.totals import LEVEL_LABELS

PASSES = "passes.parquet"
BINS = 40
"""Of a violin, over the promise."""
ROUNDING = 1e-9
"""Of a bin: a deficit of 0.1 may be a little less."""
SHARE = 0.95
"""Of the intervals."""
POINTS = 100
"""Along each axis passes that fall on the same of so many steps are one point of the drawing."""
Place = tuple[str, str]


class Violins:
    """Deficits of the requests that missed their promise, by host set, class, workload and policy."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], list[NDArray[np.float64]]] = defaultdict(list)

    def add(self, member: Member, table: Any) -> None:
        """Those of a run; ``table`` has the classes and availabilities of its requests."""
        code, values = class_codes(table, member.classes), achieved(table, member.accounting)
        for number, one in enumerate(member.classes):
            deficit = one.slo - values[code == number]
            key = (member.run.hosts, one.name, member.run.workload, member.run.policy)
            self._found[key].append(deficit[deficit > SLO_TOLERANCE])

    def rows(self, scene: Scene) -> Rows:
        """hosts, class, workload, policy, deficit (lower edge of a bin), size, requests; and of all requests of it
        missed, mean, low, high (95 % interval of the mean; None for one request). One that missed none has a row."""
        made = []
        for (hosts, name, workload, policy), parts in self._found.items():
            values, size = np.concatenate(parts), scene.slos[name] / BINS
            place = np.minimum((values / size + ROUNDING).astype(np.int64), BINS - 1)
            mean = float(values.mean()) if len(values) else None
            low, high = interval(values)
            about = {"hosts": hosts, "class": name, "workload": workload, "policy": policy}
            sums = {"missed": len(values), "mean": mean, "low": low, "high": high}
            counts = np.bincount(place, minlength=BINS)
            made += [
                {**about, "deficit": float(size * at), "size": size, "requests": int(counts[at]), **sums}
                for at in np.flatnonzero(counts).tolist() or [0]
            ]
        return made


def interval(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The interval of Student's t for the mean; None where a single value, or none, says nothing of it."""
    if len(values) < 2:
        return None, None
    from scipy import stats

    half = float(stats.t.ppf(0.5 + SHARE / 2, len(values) - 1)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def violins(table: Any, scene: Scene) -> Figure:
    """The table of :meth:`Violins.rows` drawn."""
    rows = table.to_pylist()
    most = max((row["requests"] for row in rows if row["policy"] in scene.policies), default=0)
    hosts, notes = limited([one for one in scene.hosts if where(rows, hosts=one)], "host sets")
    every = known([[(name, one) for name in scene.classes] for one in hosts], lambda place: of_panel(rows, place))
    places, idle = busy(
        every, lambda place: any(row["missed"] for row in of_panel(rows, place)), " on ".join,
        "There no promise was broken.",
    )  # fmt: skip

    def draw(sheet: Sheet, shown: Places[Place] = places) -> Any:
        with style(sheet):
            made = panels(sheet, shown, height=2.2, share=(False, False))
            room = max(8, sheet.letters // (2 * made.columns) - 2)
            for axes, (name, one) in made:
                _violins(axes, of_panel(rows, (name, one)), most, scene, scene.slos[name], sheet, made.columns)
                axes.set_title(f"{label(name, room)}, {label(one, room)}")
            for axes in made.first:
                axes.set_ylabel("deficit")
            legend(sheet, made.figure, policy_handles(scene))
            return made.figure

    return Figure(
        key="violins",
        title="Deficits, workload by workload",
        description=_violins_text(rows),
        reading=(
            f"Only requests that missed their promise; above each shape is how many. {BY_NUMBER} The point is the "
            "mean, the whisker its 95 % confidence interval (Student's t over requests). No shape: no promise was "
            "broken. All seeds together."
        ),
        draw=draw if places else None,
        table=table,
        notes=(*notes, *idle),
        idle=partial(draw, shown=every) if any(map(any, every)) else None,
    )


def _violins(axes: Any, rows: Rows, most: int, scene: Scene, slo: float, sheet: Sheet, columns: int) -> None:
    step = 0.84 / max(len(scene.policies), 1)
    crowded = columns * len(scene.workloads) * len(scene.policies) > LEVEL_LABELS * sheet.letters / 110
    for number, workload in enumerate(scene.workloads):
        for place, policy in enumerate(scene.policies):
            mine = where(rows, workload=workload, policy=policy)
            if not mine or not mine[0]["missed"]:
                continue
            at, look = number - 0.42 + step * (place + 0.5), scene.policy_looks[policy]
            counts = np.zeros(BINS)
            for row in mine:
                counts[round(row["deficit"] / row["size"])] = row["requests"]
            first, last = np.flatnonzero(counts)[[0, -1]]
            half = np.repeat(0.46 * step * np.sqrt(counts[first : last + 1] / most), 2)
            edges = np.repeat(np.arange(first, last + 2) * slo / BINS, 2)[1:-1]
            axes.fill_betweenx(edges, at - half, at + half, facecolor=look.colour, edgecolor=look.colour,
                               linewidth=0.6, hatch=look.hatch)  # fmt: skip
            if mine[0]["low"] is not None:
                axes.plot([at, at], [mine[0]["low"], mine[0]["high"]], color=TEXT.light, linewidth=1.4, zorder=4)
            axes.plot([at], [mine[0]["mean"]], marker="o", markersize=3.5, color=TEXT.light,
                      markeredgecolor=GROUND.light, markeredgewidth=0.5, zorder=5)  # fmt: skip
            axes.annotate(short(mine[0]["missed"]), (at, edges[-1]), xytext=(0, 2), textcoords="offset points",
                          ha="center", va="bottom", fontsize="small", rotation=90 if crowded else 0)  # fmt: skip
    axes.set_xlim(-0.5, len(scene.workloads) - 0.5)
    axes.set_ylim(0.0, slo * (1.25 if crowded else 1.1))
    names = [label(one, max(sheet.letters // (4 * len(scene.workloads)), 6)) for one in scene.workloads]
    axes.set_xticks(range(len(names)), names)
    axes.grid(visible=False, axis="x")


def _violins_text(rows: Rows) -> str:
    said, seen = [], set()
    for row in rows:
        place = (row["hosts"], row["class"], row["workload"], row["policy"])
        if row["missed"] and place not in seen:
            seen.add(place)
            said.append(f"{', '.join(place)}: {row['missed']:,} requests, on average {row['mean']:.3f} below")
    return "; ".join(said[:18]) + "." if said else "No promise was broken in any finished run."


def passes_of(found: list[Member]) -> Rows:
    """policy, queue (instances that waited as a pass began), operations of the pass, passes (of such a pair), of all
    runs that kept their passes."""
    counts: dict[tuple[str, int, int], int] = defaultdict(int)
    for member in found:
        if not member.path(PASSES).is_file():
            continue
        table = table_of(member, PASSES, ("queue", "operations"))
        with told(member, PASSES):
            check_numbers(table, table.column_names)
            pairs = np.stack([numbers(table, "queue"), numbers(table, "operations")]).astype(np.int64)
        distinct, often = np.unique(pairs, axis=1, return_counts=True)
        for queue, operations, number in zip(*distinct.tolist(), often.tolist(), strict=True):
            counts[member.run.policy, queue, operations] += number
    return [
        {"policy": policy, "queue": queue, "operations": operations, "passes": number}
        for (policy, queue, operations), number in sorted(counts.items())
    ]


def passes(table: Any, scene: Scene) -> Figure:
    """Operations of each pass against the queue that it served."""
    rows = table.to_pylist()
    shown = [[one for one in scene.policies if where(rows, policy=one)]]
    most = {name: max((row[name] for row in rows), default=1) for name in ("queue", "operations")}

    def draw(sheet: Sheet) -> Any:
        with style(sheet):
            made = panels(sheet, shown, height=2.4, share=(True, True), below="instances that wait")
            for axes, policy in made:
                look = scene.policy_looks[policy]
                points = {
                    tuple(round(POINTS * row[name] / most[name]) for name in most if most[name])
                    for row in where(rows, policy=policy)
                }
                across, up = ([one[at] / POINTS * most[name] for one in sorted(points)]
                              for at, name in enumerate(most))  # fmt: skip
                axes.plot(across, up, linestyle="none", marker=look.marker, markersize=3, alpha=0.5, color=look.colour)
                axes.set_title(label(policy, 24))
            for axes in made.first:
                axes.set_ylabel("operations")
            return made.figure

    return Figure(
        key="passes",
        title="Operations of each pass, by the length of its queue",
        description=_passes_text(rows, scene),
        reading=(
            "Each point is a pass, or several of nearly the same: across, how many instances waited as it began, up, "
            "how often in it a host was checked and scored for one of them. All workloads, host sets and seeds."
        ),
        draw=draw if rows and all(most.values()) else None,
        table=table,
    )


def _passes_text(rows: Rows, scene: Scene) -> str:
    if not rows:
        return "No run kept its passes: add 'passes: true' to the grid."
    said = []
    for policy in scene.policies:
        mine = where(rows, policy=policy)
        if mine:
            count = sum(row["passes"] for row in mine)
            queue, work = (sum(row["passes"] * row[name] for row in mine) / count for name in ("queue", "operations"))
            said.append(f"{policy}: {short(count)} passes, on average {queue:.1f} wait and {work:.1f} operations")
    return "; ".join(said) + "."
