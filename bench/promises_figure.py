"""The figure of promises over windows: how many are kept, against the load, under each policy and at most by any.

    python bench/promises_figure.py docs/figures/promises.svg

A panel for each window (an hour, a day, 30 days, a calendar month) and budget (accrued, whole): the share of all
promises kept by services of three classes that ask for 90 to 130 % of ten hosts (``loaded`` of bench/promises.py), over
six windows of an hour or a day, and over two months. Runs and bounds are those of bench/promises.py; they take some ten
minutes. The policies are named in :data:`LINES`; one whose settings are not known is left out. ``best limit`` is the
published policy with that of :data:`LIMITS` as overhead limit of all classes which keeps most, chosen for each point.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from measuring import announce, table
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
LEAST = 0.4
"""Share at the foot of a panel: the two more important classes are kept by all."""
LEFT, TOP, WIDTH, HEIGHT, ACROSS, DOWN = 56, 66, 190, 150, 238, 214

Shares = list[float]
"""Of promises kept, with each load."""


def known() -> dict[str, tuple[str, Policy]]:
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


def panel_of(
    window: str, budget: str, lines: dict[str, tuple[str, Policy]]
) -> tuple[dict[str, Shares], list[list[str]]]:
    """The share of promises kept by each line, and rows of a table: kept of each class with each load."""
    shares: dict[str, Shares] = {name: [] for name in lines}
    rows = []
    for many in LOADS:
        one = loaded(many, window, budget)
        for name, (_, policy) in lines.items():
            print(f"{one.name}, {name} ...", file=sys.stderr)
            found = reached(one, name, policy)
            shares[name].append(sum(found.kept) / sum(found.requests))
            kept = ", ".join(f"{kept} of {count}" for kept, count in zip(found.kept, found.requests, strict=True))
            rows.append([one.name, name, kept, f"{shares[name][-1]:.1%}", f"{found.preemptions:,}"])
    return shares, rows


def drawn(
    column: int, row: int, title: str, shares: dict[str, Shares], lines: dict[str, tuple[str, Policy]]
) -> list[str]:
    """A panel."""
    left, top = LEFT + column * ACROSS, TOP + row * DOWN

    def at(many: float, share: float) -> str:
        across = (many - LOADS[0]) / (LOADS[-1] - LOADS[0])
        return f"{left + WIDTH * across:.1f} {top + HEIGHT * (1 - share) / (1 - LEAST):.1f}"

    parts = [f'<text class="head" x="{left}" y="{top - 10}">{title}</text>']
    parts.append(f'<path class="axis" d="M{left} {top}V{top + HEIGHT}H{left + WIDTH}"/>')
    for share in (LEAST, 0.6, 0.8, 1.0):
        y = top + HEIGHT * (1 - share) / (1 - LEAST)
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{share:.0%}</text>')
    for many in LOADS[::2]:
        x = at(many, 1.0).split()[0]
        parts.append(f'<text x="{x}" y="{top + HEIGHT + 18}" text-anchor="middle">{many * 100:.0f}</text>')
    for name, (style, _) in lines.items():
        path = "L".join(at(many, share) for many, share in zip(LOADS, shares[name], strict=True))
        parts.append(f'<path class="{style}" d="M{path}"/>')
    return parts


def keys(lines: dict[str, tuple[str, Policy]]) -> list[str]:
    """What each line is, side by side."""
    parts, left = [], LEFT
    for name, (style, _) in lines.items():
        parts.append(f'<path class="{style}" d="M{left} 16h22"/><text x="{left + 28}" y="20">{name}</text>')
        left += 52 + 7 * len(name)
    return parts


def main() -> None:
    """Run all, print the tables and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("svg", type=Path)
    asked = parser.parse_args()
    announce()
    print(table(("input", "policy", "gold, silver, bronze kept", "kept", "preemptions"), []), flush=True)
    lines = known()
    parts = keys(lines)
    for row, budget in enumerate(BUDGETS):
        for column, (window, title) in enumerate(WINDOWS.items()):
            shares, rows = panel_of(window, budget, lines)
            print("\n".join("| " + " | ".join(each) + " |" for each in rows), flush=True)
            parts += drawn(column, row, f"{title}, {budget}", shares, lines)
    width, height = LEFT + len(WINDOWS) * ACROSS, TOP + len(BUDGETS) * DOWN
    parts.append(f'<text x="{LEFT}" y="{height - 12}">demand of the services, per cent of what all hosts have</text>')
    about = "Promises kept against the demand, for four windows with accrued and whole budgets, by policy and at most"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{about}">'
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    asked.svg.write_text("\n".join([head, STYLE, *parts, "</svg>", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
