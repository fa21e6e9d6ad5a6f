"""The figure of docs/overload.md: promises kept against hosts, under each policy and at most by any, as an SVG.

    python bench/overload.py docs/figures/overload.svg [--input higher] [--seed 11]

A panel for each class but the most important one, which every policy keeps. Runs and bounds are those of
bench/bound.py; with the published inputs they take about ten minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import bound
import fluid
from measuring import HOUR, announce, parsed

from slacktide import palette

LENGTH = 60.0
"""Seconds of an interval of the bound."""
SHARES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
LINES = {"bound": "most", "recommended": "triage", "share": "share", "published": "papers", "priority": "priority"}
"""Policy (or the bound), and its style."""
_INKS = palette.policies(("recommended", "share", "published", "priority"))
STYLE = palette.style(
    {
        ".most": palette.MUTED,
        ".triage": _INKS["recommended"].ink,
        ".share": _INKS["share"].ink,
        ".papers": _INKS["published"].ink,
        ".priority": _INKS["priority"].ink,
        ".silver": palette.CLASSES[1],
        ".bronze": palette.CLASSES[2],
        ".axis": palette.AXIS,
    },
    "text { font: 13px system-ui, sans-serif } .head { font-weight: 600 } "
    "path { fill: none !important; stroke-width: 2.5 } path.axis { stroke-width: 1 } "
    "path.most { stroke-dasharray: 5 4 }",
)
LEFT, TOP, WIDTH, HEIGHT, GAP = 56, 62, 260, 200, 74

Kept = dict[str, list[list[float]]]
"""By line and share of the hosts: the share of promises kept in each class."""


def measured(name: str, seed: int) -> tuple[tuple[str, ...], Kept]:
    """Names of the classes, and what each line keeps."""
    one = bound.case(name, [])
    sizes = [fluid.members(one.workload, HOUR, code) for code in range(len(one.workload.classes))]
    found: Kept = {line: [] for line in LINES}
    for share in SHARES:
        hosts = bound.on_share(one, share, seed)
        for line, points in found.items():
            print(f"{name}, {share:g} of the hosts, {line} ...", file=sys.stderr)
            config = bound.configuration(one, line, seed, HOUR)
            if line == "bound":
                kept = fluid.kept(one.workload, hosts, config, HOUR, LENGTH)
            else:
                run = bound.Line()
                bound.ran(one, hosts, config, run, HOUR)
                (kept,) = run.kept
            points.append([got / size for got, size in zip(kept, sizes, strict=True)])
    return tuple(each.name for each in one.workload.classes), found


def panel(
    left: int, title: str, lines: dict[str, list[float]], xs: tuple[float, ...] = SHARES, unit: str = " N"
) -> list[str]:
    """Axes, and a curve over ``xs`` for each style in ``lines``, values from 0 to 1."""

    def at(x: float, kept: float) -> str:
        return f"{left + WIDTH * (xs[0] - x) / (xs[0] - xs[-1]):.1f} {TOP + HEIGHT * (1 - kept):.1f}"

    parts = [f'<text class="head" x="{left}" y="{TOP - 14}">{title}</text>']
    parts.append(f'<path class="axis" d="M{left} {TOP}V{TOP + HEIGHT}H{left + WIDTH}"/>')
    for quarter in range(5):
        y = TOP + HEIGHT * (4 - quarter) / 4
        parts.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{quarter * 25} %</text>')
    for value in xs[::2]:
        x = at(value, 0.0).split()[0]
        parts.append(f'<text x="{x}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{value:g}{unit}</text>')
    for css, points in lines.items():
        path = "L".join(at(value, kept) for value, kept in zip(xs, points, strict=True))
        parts.append(f'<path class="{css}" d="M{path}"/>')
    return parts


def keys(lines: Mapping[str, str], left: int = LEFT) -> list[str]:
    """What each line is, side by side, from its style by its name."""
    parts = []
    for line, css in lines.items():
        parts.append(f'<path class="{css}" d="M{left} 16h22"/>')
        parts.append(f'<text class="key {css}" x="{left + 27}" y="20">{line}</text>')
        left += 54 + 8 * len(line)
    return parts


def drawing(classes: tuple[str, ...], kept: Kept) -> str:
    """The figure."""
    shown = classes[1:]
    about = "Promises kept against the number of hosts, by policy, and the most that any policy could keep"
    parts = keys(LINES)
    for number, name in enumerate(shown):
        points = {LINES[line]: [each[number + 1] for each in found] for line, found in kept.items()}
        parts += panel(LEFT + number * (WIDTH + GAP), f"{name}: promises kept", points)
    return framed(len(shown), about, parts)


def framed(panels: int, about: str, parts: list[str]) -> str:
    """The whole of an SVG with so many panels; ``about`` is for those who cannot see it."""
    width = LEFT + panels * (WIDTH + GAP)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 300" role="img" aria-label="{about}">'
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


def main() -> None:
    """Run all and write the file."""
    asked = parsed(__doc__, "svg", input="higher", seed=11)
    announce()
    classes, kept = measured(asked.input, asked.seed)
    for line, found in kept.items():
        for share, each in zip(SHARES, found, strict=True):
            print(f"{line:12} {share:4g} N ", ", ".join(f"{one:.2%}" for one in each))
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    asked.svg.write_text(drawing(classes, kept), encoding="utf-8")


if __name__ == "__main__":
    main()
