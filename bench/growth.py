"""How the time of a request grows with requests and with hosts, at fixed load, beside the least that it could take.

    python bench/growth.py [--repeats 3]                             measure, print both tables
    python bench/growth.py [--repeats 3] --folder docs/figures       measure, keep growth.csv, draw growth.svg from it
    python bench/growth.py --drawn-only [--folder docs/figures]      draw growth.svg from the growth.csv that is kept

Three lines: ``light`` under the priority policy (load 0.8), the floor of it (bench/least.py), and ``cell`` under
qos-driven with the recommended settings (load 0.9, so that there is contention now and then, not a growing backlog).
Requests: hosts stay, the run lengthens. Hosts: requests stay at their number, and arrivals (``light``) or the length of
the run (``cell``) are such that the load is the same. Median processor seconds of the simulation alone.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Iterator
from math import log10
from pathlib import Path
from typing import NamedTuple

import least
from measuring import announce, options, settings, simulated, table

from slacktide import palette
from slacktide.inputs.generators.registry import generated

LIGHT, CELL, FLOOR = "light, priority", "cell, recommended", "floor of light"
LIGHT_REQUESTS = (125_000, 250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000)
LIGHT_HOSTS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
CELL_HOURS, CELL_HOSTS = (2, 4, 8, 16), (310, 620, 1240, 2480)
HEAD = (
    *("workload", "hosts", "requests", "processor s", "µs per request"),
    *("operations per request", "bound checks per request"),
)


class Point(NamedTuple):
    """A line of the table that is kept."""

    curve: str
    """Against what: 'requests' or 'hosts'."""
    workload: str
    hosts: int
    requests: int
    seconds: float
    operations: float
    bound_checks: float

    @property
    def each(self) -> float:
        """Microseconds a request."""
        return self.seconds / self.requests * 1e6


def light(curve: str, hosts: int, requests: int, repeats: int) -> Iterator[Point]:
    """The load as it is decided, and its floor."""
    workload, machines = generated("light", {"hosts": hosts, "requests": requests})
    config = settings("recommended", {"policy.name": "priority"})
    runs = [simulated(workload, machines, config) for _ in range(repeats)]
    seconds, result = statistics.median(one.seconds for one in runs), runs[0].result
    yield Point(curve, LIGHT, hosts, requests, seconds, result.operations, result.bound_checks)
    yield Point(curve, FLOOR, hosts, requests, least.measured(workload, hosts, repeats)[0], 0, 0)


def cell(curve: str, hosts: int, hours: float, requests: int, repeats: int) -> Iterator[Point]:
    """``requests`` are those that arrive, the standing load comes on top."""
    values = {"hosts": hosts, "hours": hours, "requests": requests, "load": 0.9}
    workload, machines = generated("cell", values)
    config = settings("recommended", {"simulation.end": hours * 3600.0})
    runs = [simulated(workload, machines, config) for _ in range(repeats)]
    seconds, result = statistics.median(one.seconds for one in runs), runs[0].result
    yield Point(curve, CELL, hosts, len(workload), seconds, result.operations, result.bound_checks)


def measured(scale: float, repeats: int) -> Iterator[Point]:
    """All points; ``scale`` makes requests, and hosts where they vary, fewer."""

    def fewer(count: int) -> int:
        return max(int(count * scale), 20)

    list(light("requests", 2, 10, 1)), list(cell("requests", 20, 1.0, 742, 1))  # nothing is left to load or compile
    for requests in LIGHT_REQUESTS:
        yield from light("requests", fewer(1000), fewer(requests), repeats)
    for hours in CELL_HOURS:
        yield from cell("requests", fewer(620), hours, 23_000 * hours * fewer(620) // 620, repeats)
    for hosts in LIGHT_HOSTS:
        yield from light("hosts", fewer(hosts), fewer(1_000_000), repeats)
    for hosts in CELL_HOSTS:
        yield from cell("hosts", fewer(hosts), 4 * 620 / hosts, 92_000 * fewer(hosts) // hosts, repeats)


def keep(path: Path, points: list[Point]) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([Point._fields, *points])


def kept(path: Path) -> list[Point]:
    """Read the table."""
    kinds = (str, str, int, int, float, float, float)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [Point(*(kind(cell) for kind, cell in zip(kinds, row, strict=True))) for row in rows]


STYLE = palette.style(
    {
        ".axis, .grid": palette.AXIS,
        ".light": palette.POLICIES[1],
        ".cell": palette.POLICIES[0],
        ".floor": palette.MUTED,
    },
    "text { font: 12px system-ui, sans-serif } .head { font-weight: 600 } .grid { stroke-opacity: 0.35 } "
    ".axis, .grid, .line { fill: none } .line { stroke-width: 2.5 } path.floor { stroke-dasharray: 5 4 }",
)
CLASSES = {LIGHT: "light", CELL: "cell", FLOOR: "floor"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 310, 200, 40, 56, 60


def shown(value: float) -> str:
    """A number at a tick: 10k, 1M."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def panel(left: int, curve: str, points: list[Point], low: int, high: int) -> list[str]:
    """One side of the figure; ``low`` and ``high`` are powers of ten of microseconds."""
    across = {one: float(one.hosts if curve == "hosts" else one.requests) for one in points}
    first, last = log10(min(across.values())), log10(max(across.values()))

    def place(x: float, y: float) -> tuple[float, float]:
        return left + WIDTH * (log10(x) - first) / (last - first), TOP + HEIGHT * (high - log10(y)) / (high - low)

    parts = [f'<text class="head" x="{left}" y="{TOP - 12}">µs per request against {curve}</text>']
    for power in range(low, high + 1):
        y = TOP + HEIGHT * (high - power) / (high - low)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}h{WIDTH}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    parts.append(f'<path class="axis" d="M{left} {TOP + HEIGHT}h{WIDTH}"/>')
    ticks = sorted({across[one] for one in points if one.workload == LIGHT})
    for x in ticks:
        at = place(x, 1)[0]
        parts.append(f'<path class="axis" d="M{at:.1f} {TOP + HEIGHT}v5"/>')
        parts.append(f'<text x="{at:.1f}" y="{TOP + HEIGHT + 20}" text-anchor="middle">{shown(x)}</text>')
    for name, css in CLASSES.items():
        mine = [(place(across[one], one.each), one.each) for one in points if one.workload == name]
        if not mine:
            continue
        path = "L".join(f"{x:.1f} {y:.1f}" for (x, y), _ in mine)
        parts.append(f'<path class="line {css}" d="M{path}"/>')
        parts += [f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for (x, y), _ in mine]
        for (x, y), value in (mine[0], mine[-1]):
            parts.append(f'<text class="{css}" x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{value:.3g}</text>')
    return parts


def told(points: list[Point]) -> str:
    """The figure in words."""
    words = ["Microseconds of processor time a request."]
    for curve in ("requests", "hosts"):
        for name in CLASSES:
            mine = [one for one in points if (one.curve, one.workload) == (curve, name)]
            ends = [f"{one.each:.3g} at {getattr(one, curve):,}" for one in (mine[0], mine[-1])] if mine else []
            words.append(f"Against {curve}, {name}: {' and '.join(ends)}.")
    return " ".join(words)


def drawing(points: list[Point]) -> str:
    """The figure, both axes logarithmic: linear growth of a run is level on the left, logarithmic nearly so right."""
    from math import ceil, floor

    times = [one.each for one in points]
    low, high = floor(log10(min(times))), ceil(log10(max(times) * 1.2))
    width = LEFT + 2 * WIDTH + GAP + 30
    about = told(points)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 34}" role="img"'
    parts = [f'{head} aria-label="{about}">', f"<title>{about}</title>", STYLE]
    for number, (name, css) in enumerate(CLASSES.items()):
        x = LEFT + 150 * number
        parts.append(f'<path class="line {css}" d="M{x} 14h24"/><text class="{css}" x="{x + 30}" y="18">{name}</text>')
    for left, curve in ((LEFT, "requests"), (LEFT + WIDTH + GAP, "hosts")):
        parts += panel(left, curve, [one for one in points if one.curve == curve], low, high)
    return "\n".join([*parts, "</svg>", ""])


def line(one: Point) -> list[str]:
    """Of the table that is printed."""
    counts = [f"{count / one.requests:.1f}" if count else "" for count in (one.operations, one.bound_checks)]
    return [one.workload, f"{one.hosts:,}", f"{one.requests:,}", f"{one.seconds:.2f}", f"{one.each:.2f}", *counts]


def main() -> None:
    """Print both tables, or write the one that is kept and the figure, and print what shows it."""
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of requests and hosts, to try the program (1)")
    parser.add_argument("--folder", type=Path, help="where growth.csv and growth.svg are written (nowhere)")
    parser.add_argument("--drawn-only", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    if asked.drawn_only:
        if asked.folder is None:
            parser.error("--drawn-only needs --folder")
        points = kept(asked.folder / "growth.csv")
    else:
        points = []
        for one in measured(asked.scale, asked.repeats):
            print(f"{one.workload}, {one.hosts:,} hosts, {one.requests:,} requests: {one.each:.2f} µs", file=sys.stderr)
            points.append(one)
        announce(f", medians of {asked.repeats}:")
        if asked.folder is None:
            for curve in ("requests", "hosts"):
                rows = [line(one) for one in sorted(points, key=lambda one: one.workload) if one.curve == curve]
                print(f"Against {curve}\n\n{table(HEAD, rows)}\n")
        else:
            print(f"![{told(points)}](figures/growth.svg)")
            keep(asked.folder / "growth.csv", points)
            points = kept(asked.folder / "growth.csv")
    if asked.folder is not None:
        (asked.folder / "growth.svg").write_text(drawing(points), encoding="utf-8")


if __name__ == "__main__":
    main()
