"""The figure of promises over windows: how many are kept, against the load, under each policy and at most by any.

    python bench/promises_figure.py docs/figures/promises.svg                measure all, keep promises.csv, draw it
    python bench/promises_figure.py docs/figures/promises.svg --only plan    measure a line, the others as they are kept

A panel for each window (an hour, a day, 30 days, a calendar month) and budget (accrued, whole): the share of all
promises kept by services of three classes that ask for 90 to 130 % of ten hosts (``loaded`` of bench/promises.py), over
six windows of an hour or a day, and over two months. Runs and bounds are those of bench/promises.py; they take some ten
minutes. The policies are named in :data:`LINES`; one whose settings are not known is left out. ``best limit`` is the
published policy with that of :data:`LIMITS` as overhead limit of all classes which keeps most, chosen for each point.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from measuring import announce, options, table
from promises import BASES, BOUND
from promises_parts.inputs import Input, loaded
from promises_parts.outcome import Found, Policy, bounded, measured

from slacktide import palette
from slacktide.errors import ConfigError
from slacktide.settings import load

PLAN = "policy.overload=plan"
TODAY = "policy.overload=triage"
LIMITED = "published, best limit"
LIMITS = (0.1, 0.05, 0.01, 0.001, 0.0)
LINES = {
    BOUND: ("most", Policy(BOUND)),
    "plan": ("plan", Policy("plan", words=(PLAN,))),
    "triage": ("triage", Policy("triage", words=(TODAY,))),
    LIMITED: ("limited", BASES["published"]),
    "published": ("papers", BASES["published"]),
    "priority": ("priority", BASES["priority"]),
}
"""By what a line is called: its style, and its policy."""
_INKS = palette.policies(("recommended", "share", "published", "priority", "plan"))
STYLE = palette.style(
    {
        ".most": palette.MUTED,
        ".plan": _INKS["recommended"].ink,
        ".triage": _INKS["share"].ink,
        ".limited": _INKS["plan"].ink,
        ".papers": _INKS["published"].ink,
        ".priority": _INKS["priority"].ink,
        ".axis": palette.AXIS,
    },
    "text { font: 13px system-ui, sans-serif } .head { font-weight: 600 } "
    "path { fill: none !important; stroke-width: 2.5 } path.axis { stroke-width: 1 } "
    "path.most { stroke-dasharray: 5 4 } path.limited { stroke-dasharray: 2 3 }",
)
LOADS = (0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3)
WINDOWS = {"1h": "an hour", "1d": "a day", "30d": "30 days", "1M": "a calendar month"}
BUDGETS = ("accrued", "whole")
COLUMNS = ("window", "budget", "load", "line", "kept", "requests", "preemptions")
LEFT, TOP, WIDTH, HEIGHT, ACROSS, DOWN = 56, 66, 190, 150, 238, 214

Lines = dict[str, tuple[str, Policy]]
Row = tuple[str, ...]
"""Of :data:`COLUMNS`; kept and requests of each class, the most important first, with a space between."""


def known() -> Lines:
    """The lines whose settings there are."""
    found = {}
    for name, (style, policy) in LINES.items():
        try:
            load(None, policy.preset, policy.words)
        except ConfigError:
            print(f"{name}: left out, as its settings are not known", file=sys.stderr)
            continue
        found[name] = (style, policy)
    return found


def reached(one: Input, name: str, policy: Policy) -> Found:
    """What a line comes to on an input."""
    if name == BOUND:
        return bounded(one)
    if name != LIMITED:
        return measured(one, policy)
    return max((measured(one.promising(None, limit), policy) for limit in LIMITS), key=lambda found: sum(found.kept))


def measure(lines: Lines) -> Iterator[Row]:
    """Every point of these lines."""
    for window, budget, many in product(WINDOWS, BUDGETS, LOADS):
        one = loaded(many, window, budget)
        for name, (_, policy) in lines.items():
            print(f"{one.name}, {name} ...", file=sys.stderr)
            found = reached(one, name, policy)
            kept, requests = (" ".join(map(str, counts)) for counts in (found.kept, found.requests))
            yield (window, budget, f"{many:g}", name, kept, requests, str(found.preemptions))


def place(row: Row) -> tuple[int, int, float, int]:
    """Where a row stands in the file that keeps them."""
    return list(WINDOWS).index(row[0]), BUDGETS.index(row[1]), float(row[2]), list(LINES).index(row[3])


def share(row: Row) -> float:
    """Of all promises those that are kept."""
    return sum(map(int, row[4].split())) / sum(map(int, row[5].split()))


def panel(column: int, line: int, title: str, rows: list[Row], least: float) -> list[str]:
    """A panel of these rows, from a ``least`` share on."""
    left, top = LEFT + column * ACROSS, TOP + line * DOWN

    def x(many: float) -> float:
        return left + WIDTH * (many - LOADS[0]) / (LOADS[-1] - LOADS[0])

    def y(value: float) -> float:
        return top + HEIGHT * (1 - value) / (1 - least)

    parts = [f'<text class="head" x="{left}" y="{top - 10}">{title}</text>']
    parts.append(f'<path class="axis" d="M{left} {top}V{top + HEIGHT}H{left + WIDTH}"/>')
    for fifth in range(round(least * 5), 6):
        value = fifth / 5
        parts.append(f'<text x="{left - 8}" y="{y(value) + 4:.0f}" text-anchor="end">{value:.0%}</text>')
    foot = top + HEIGHT + 18
    parts += [f'<text x="{x(many):.0f}" y="{foot}" text-anchor="middle">{many * 100:.0f}</text>' for many in LOADS[::2]]
    for name, (style, _) in reversed(LINES.items()):  # the first is drawn last, above the others
        points = [f"{x(float(row[2])):.1f} {y(share(row)):.1f}" for row in rows if row[3] == name]
        parts += [f'<path class="{style}" d="M{"L".join(points)}"/>'] if points else []
    return parts


def keys(names: set[str]) -> list[str]:
    """What each line is, side by side."""
    parts, left = [], LEFT
    for name, (style, _) in LINES.items():
        if name in names:
            parts.append(f'<path class="{style}" d="M{left} 16h22"/><text x="{left + 28}" y="20">{name}</text>')
            left += 52 + 7 * len(name)
    return parts


def drawing(rows: list[Row]) -> str:
    """The figure."""
    parts = keys({row[3] for row in rows})
    least = int(min(share(row) for row in rows) * 5) / 5
    for (line, budget), (column, (window, title)) in product(enumerate(BUDGETS), enumerate(WINDOWS.items())):
        mine = [row for row in rows if row[:2] == (window, budget)]
        parts += panel(column, line, f"{title}, {budget}", mine, least)
    width, height = LEFT + len(WINDOWS) * ACROSS, TOP + len(BUDGETS) * DOWN
    parts.append(f'<text x="{LEFT}" y="{height - 12}">demand of the services, per cent of what all hosts have</text>')
    about = "Promises kept against the demand, for four windows with accrued and whole budgets, by policy and at most"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{about}">'
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


def main() -> None:
    """Measure, print and keep all, and write the figure."""
    parser = options(__doc__)
    parser.add_argument("svg", type=Path)
    parser.add_argument("--only", action="append", choices=list(LINES), help="measure this line; again for more")
    asked = parser.parse_args()
    announce()
    kept, rows = asked.svg.with_suffix(".csv"), []
    if asked.only:
        with kept.open(encoding="utf-8") as file:
            rows = [tuple(row) for row in csv.reader(file)][1:]
        rows = [row for row in rows if row[3] not in asked.only]
    lines = {name: line for name, line in known().items() if not asked.only or name in asked.only}
    print(table(COLUMNS, []), flush=True)
    for row in measure(lines):
        print("| " + " | ".join(row) + " |", flush=True)
        rows.append(row)
    rows.sort(key=place)
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    asked.svg.write_text(drawing(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
