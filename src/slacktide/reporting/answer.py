"""The answer on the first screen: who keeps what, at which price; one chart, a tile for each class and policy."""

from __future__ import annotations

from typing import Any

from slacktide.drawing import Sheet, label, panels, style
from slacktide.for_people import percent
from slacktide.palette import GRID, KEPT, MISSED, TEXT, Ink
from slacktide.reporting.figure import Figure, Rows, Scene, where
from slacktide.reporting.over_time import short
from slacktide.reporting.scores import outcome, table
from slacktide.reporting.verdict import compared

MOST_ROWS = 12
"""Where a split into workloads and host sets would have more, it is one into workloads, host sets, or none."""
VARYING = {"workload": "workload", "hosts": "host set"}
ALL, NOT_ALL = "\u2713", "\u2717"
PRICES = {
    "penalty, cpu-seconds": "penalty,\ncpu-seconds",
    "preemptions": "preemptions\na run",
}
PALE, FAINT, STRONG = 0.08, 0.16, 0.5
"""Opacity of a tile without misses, with the fewest and with the most: who sees no red sees that they stand out more
and more. Texts on it stay readable."""


def answer(scores: Rows, scene: Scene) -> Figure:
    """Shares of promises kept, by host set, policy and class, and the price. ``scores``: as of ``scores.of_run``.

    It is about the places that every policy has finished; where there are none, about all that was finished.
    """
    policies = [one for one in scene.policies if where(scores, policy=one)]
    rows = compared(scores, policies)[0] or scores
    found, together = _split(rows, scene, len(policies))
    headed = len({about for row in found if (about := _of(row))})

    def draw(sheet: Sheet) -> Any:
        with style(sheet):
            height = (1.2 + 0.34 * len(found) + 0.26 * headed) / sheet.tall**0.5
            ((axes, _),) = (made := panels(sheet, [[found]], height=height, share=(False, False)))
            _tiles(axes, found, scene, sheet)
            return made.figure

    return Figure(
        key="answer",
        title="Who keeps what, at which price",
        description=_said(found, scene),
        reading=(
            "Each tile is the share of a class's requests that got what they were promised; its bar is as long. "
            f"{ALL}: all of them, green; {NOT_ALL}: not all, red, the stronger the more were missed. To the right the "
            "price: means of a run. "
            + ("The verdict's shares are over all rows of a policy. " if headed else "")
            + f"All {' and '.join([*together, 'seeds'])} together."
        ),
        draw=draw if found else None,
        table=table(found),
    )


def _split(rows: Rows, scene: Scene, policies: int) -> tuple[Rows, list[str]]:
    """Rows of ``outcome`` by what varies and has room, for which each has a column; and what is not told apart."""
    places = [{"workload": one, "hosts": two} for one in scene.workloads for two in scene.hosts]
    places = [place for place in places if where(rows, **place)]
    varying = [name for name in VARYING if len({place[name] for place in places}) > 1]
    for names in [varying, *([one] for one in varying), []]:
        parts = dict.fromkeys(tuple(place[name] for name in names) for place in places)
        if len(parts) * policies <= MOST_ROWS:
            break
    found: Rows = []
    for part in parts:
        wanted = dict(zip(names, part, strict=True))
        mine = [{**row, "hosts": "", "workload": (row["workload"], row["hosts"])} for row in where(rows, **wanted)]
        for row in outcome(mine, scene, [""]):
            del row["host set"]
            found.append({**{VARYING[name]: value for name, value in wanted.items()}, **row})
    return found, [f"{VARYING[name]}s" for name in varying if name not in names]


def _of(row: dict[str, Any], room: int = 1000) -> str:
    """Which workload and host set a row is about."""
    return ", ".join(label(row[name], room) for name in VARYING.values() if name in row)


def _tiles(axes: Any, found: Rows, scene: Scene, sheet: Sheet) -> None:
    """Rows from the top: those of a host set under its name. A column for each class, then one for each price."""
    columns = len(scene.classes) + len(PRICES)
    names = max((len(label(row["policy"], sheet.letters // 4)) for row in found), default=8)
    left = -columns * names / (sheet.letters * (0.8 if sheet.slim else 0.95) - names) - 0.15
    most = {name: max(row[name] for row in found) for name in PRICES}
    place, before = 0.0, ""
    for row in found:
        about = _of(row, sheet.letters * 2 // 5)
        if about != before:
            place += 0.85
            axes.text(left, place - 0.12, about, ha="left", va="bottom", fontweight="bold")
        before = about
        look = scene.policy_looks[row["policy"]]
        axes.plot([left + 0.05] * 2, [place + 0.14, place + 0.86], color=look.colour, linewidth=0.45 * sheet.font)
        axes.text(left + 0.15, place + 0.5, label(row["policy"], sheet.letters // 4), ha="left", va="center")
        for column, name in enumerate(scene.classes):
            _share(axes, column, place, row[f"{name} kept, %"], sheet)
        for number, name in enumerate(PRICES):
            _price(axes, len(scene.classes) + 0.12 + number, place, row[name], most[name], look.colour)
        place += 1.0
    axes.set(xlim=(left, columns + 0.12), ylim=(place + 0.05, -0.1))
    room = max(9 if sheet.slim else 12, (sheet.letters - names) // columns - 1)
    below = "\npromise\n{}\nkept, %" if sheet.slim else "\npromise {},\nkept by"
    heads = [label(name, room) + below.format(percent(scene.slos[name])) for name in scene.classes]
    at = [0.48 + column for column in range(len(scene.classes))]
    at += [len(scene.classes) + 0.6 + number for number in range(len(PRICES))]
    prices = [one.replace("cpu-seconds", "cpu-s").replace("preemptions", "preempt.") if sheet.slim else one
              for one in PRICES.values()]  # fmt: skip
    axes.set_xticks(at, [*heads, *prices])
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _share(axes: Any, column: int, place: float, share: float | None, sheet: Sheet) -> None:
    if share is None:
        _tile(axes, column, place, GRID, 0.5, "no requests")
        return
    missed = 1.0 - share / 100.0
    ink, strength = (MISSED, FAINT + (STRONG - FAINT) * min(1.0, 2.0 * missed)) if missed > 0.0 else (KEPT, PALE)
    text = f"{NOT_ALL if missed > 0.0 else ALL} {percent(share / 100.0)}"
    _tile(axes, column, place, ink, strength, text.removesuffix(" %") if sheet.slim else text)
    axes.plot([column + 0.02, column + 0.02 + 0.92 * share / 100.0], [place + 0.9] * 2, color=ink.light, linewidth=1.8,
              solid_capstyle="butt")  # fmt: skip


def _tile(axes: Any, column: float, place: float, ink: Ink, strength: float, text: str) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle((column + 0.02, place + 0.06), 0.92, 0.88, facecolor=ink.light, alpha=round(strength, 2), linewidth=0)
    )
    axes.text(column + 0.48, place + 0.47, text, ha="center", va="center", color=TEXT.light)


def _price(axes: Any, column: float, place: float, value: float, most: float, colour: str) -> None:
    """A number, and under it a bar as long as it is in parts of the largest in the column."""
    axes.text(column + 0.48, place + 0.47, short(round(value, 1)), ha="center", va="center")
    axes.plot([column + 0.02, column + 0.94], [place + 0.9] * 2, color=GRID.light, linewidth=1.8, solid_capstyle="butt")
    if value > 0.0:
        end = column + 0.02 + 0.92 * value / most
        axes.plot([column + 0.02, end], [place + 0.9] * 2, color=colour, linewidth=1.8, solid_capstyle="butt")


def _said(found: Rows, scene: Scene) -> str:
    said = []
    for row in found:
        kept = [(name, row[f"{name} kept, %"]) for name in scene.classes]
        parts = ", ".join(f"{percent(share / 100.0)} of {name}" for name, share in kept if share is not None)
        said.append(
            f"{', '.join(filter(None, [_of(row), row['policy']]))}: kept {parts}; penalty "
            f"{short(row['penalty, cpu-seconds'])} cpu-seconds, {short(round(row['preemptions'], 1))} preemptions a run"
        )
    return ". ".join(said) + "." if said else "No finished run."
