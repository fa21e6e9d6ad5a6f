"""The drawings of docs/slack.md and docs/windows.md, as SVG.

    python bench/explanations.py docs/figures

``slack.svg`` is a run of the simulator: two requests that each want the only host. ``budgets.svg`` is arithmetic: what
is left of a budget, by three kinds of promise, after the same three outages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from measuring import parsed

STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f } .head { font-weight: 600 } .axis { stroke: #8c959f }
  .first { stroke: #0b62a4 } .second { stroke: #c8501a } .third { stroke: #2e7d32 } .zero { stroke: #24292f }
  .line { fill: none; stroke-width: 2 } .bar { stroke-width: 10 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .zero { stroke: #e6edf3 }
    .first { stroke: #6cb6ff } .second { stroke: #ff9c6b } .third { stroke: #7fce85 } }
</style>"""
LEFT, WIDTH, TOP, HEIGHT = 90, 470, 60, 190
CLASSES = ({"name": "front", "slo": 0.6, "rank": 1}, {"name": "reports", "slo": 0.3, "rank": 2})
MOVES = ("placed", "preempted")
END = 3600.0
OUTAGES = ((12.0, 4.0), (27.0, 3.0), (46.0, 5.0))
"""Days from the first of a month of 30 days, and hours lost then."""
DAYS, PROMISE = 90, 0.99


class Drawing:
    """Lines over time in a frame of their units."""

    def __init__(self, about: str, across: tuple[float, float], up: tuple[float, float]) -> None:
        self.across, self.up = across, up
        label = f'role="img" aria-label="{about}"'
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 310" {label}>', STYLE]

    def x(self, value: float) -> float:
        """Horizontal place."""
        return LEFT + WIDTH * (value - self.across[0]) / (self.across[1] - self.across[0])

    def y(self, value: float) -> float:
        """Vertical place."""
        return TOP + HEIGHT * (self.up[1] - value) / (self.up[1] - self.up[0])

    def text(self, x: float, y: float, text: str, more: str = "") -> None:
        """A text at a place of the drawing."""
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" {more}>{text}</text>')

    def axes(self, across: list[float], up: list[float], below: str, beside: str) -> None:
        """Both axes with their marks, and the line at 0."""
        bottom = TOP + HEIGHT
        self.parts.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{LEFT + WIDTH}"/>')
        self.parts.append(f'<path class="zero" stroke-dasharray="4 3" d="M{LEFT} {self.y(0):.1f}H{LEFT + WIDTH}"/>')
        for value in across:
            self.text(self.x(value), bottom + 16, f"{value:g}", 'text-anchor="middle"')
        for value in up:
            self.text(LEFT - 8, self.y(value) + 4, f"{value:g}", 'text-anchor="end"')
        self.text(LEFT + WIDTH / 2, bottom + 36, below, 'text-anchor="middle"')
        self.text(10, TOP - 14, beside)

    def line(self, points: list[tuple[float, float]], style: str, name: str, at: float) -> None:
        """A line through points, with its name at its end, ``at`` a height of the drawing."""
        path = "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in points)
        self.parts.append(f'<path class="line {style}" d="M{path}"/>')
        self.parts.append(f'<path class="line {style}" d="M{LEFT + WIDTH + 8} {at - 4:.0f}h14"/>')
        self.text(LEFT + WIDTH + 28, at, name)

    def done(self) -> str:
        """The whole file."""
        return "\n".join([*self.parts, "</svg>", ""])


def events(folder: Path) -> list[dict[str, Any]]:
    """What happened in a run of two requests that each want the only host."""
    (folder / "workload.csv").write_text("id,admission,duration,cpu,memory,class\n1,0,,1,1,reports\n2,600,,1,1,front\n")
    (folder / "hosts.csv").write_text("id,name,cpu,memory\n1,host,1,1\n")
    (folder / "classes.yaml").write_text(json.dumps({"classes": CLASSES}))
    files = ["workload.csv", "hosts.csv", "--config", "classes.yaml", "--set", "policy.overload=triage"]
    words = ["-m", "slacktide", "simulate", *files, "--end", "3600", "--events", "--out", "results"]
    subprocess.run([sys.executable, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return [one for one in pq.read_table(folder / "results" / "events.parquet").to_pylist() if one["event"] in MOVES]


def curve(begun: float, slo: float, runs: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Slack over time, minutes both: what was received over the promise, less the lifetime."""
    points, received, last = [(begun / 60, 0.0)], 0.0, begun
    for start, end in runs:
        points.append((start / 60, (received / slo - (start - begun)) / 60))
        received += end - start
        last = end
        points.append((end / 60, (received / slo - (end - begun)) / 60))
    return points if last >= END else [*points, (END / 60, (received / slo - (END - begun)) / 60)]


def slack() -> str:
    """Slack of two requests on one host, and who runs."""
    drawing = Drawing("Slack of two requests over an hour, which take turns on one host", (0, 60), (-5, 37))
    with tempfile.TemporaryDirectory() as folder:
        happened = events(Path(folder))
    drawing.axes([0, 10, 20, 30, 40, 50, 60], [0, 10, 20, 30], "minutes", "slack, minutes")
    named = ((1, "reports", 0.0, "first"), (2, "front", 600.0, "second"))
    for number, (request, name, begun, style) in enumerate(named):
        starts = [one["time"] for one in happened if one["request"] == request and one["event"] == "placed"]
        ends = [one["time"] for one in happened if one["request"] == request and one["event"] == "preempted"]
        runs = list(zip(starts, [*ends, END][: len(starts)], strict=True))
        slo = next(one["slo"] for one in CLASSES if one["name"] == name)
        drawing.line(curve(begun, slo, runs), style, f"{name}, {slo:.0%}", TOP + 20 + 22 * number)
        for start, end in runs:
            place = f"M{drawing.x(start / 60):.1f} {TOP - 48 + 12 * number}H{drawing.x(end / 60):.1f}"
            drawing.parts.append(f'<path class="bar {style}" d="{place}"/>')
    drawing.text(LEFT + WIDTH + 28, TOP - 38, "who runs")
    return drawing.done()


def left(day: float, begins: float, budget: float) -> tuple[float, float]:
    """A point of what is left of a budget: hours that may be lost, less those lost since ``begins``."""
    lost = sum(min(max((day - at) * 24, 0.0), hours) for at, hours in OUTAGES if at >= begins)
    return day, budget - lost


def budgets() -> str:
    """What is left of a budget of three kinds."""
    drawing = Drawing("Hours that are left of a promise of 99 % over 90 days with three outages", (0, DAYS), (-3, 12))
    drawing.axes([0, 30, 60, 90], [0, 7.2], "days", "hours that may still be lost, of a promise of 99 %")
    days = [quarter / 8 for quarter in range(8 * DAYS + 1)]
    share = (1 - PROMISE) * 24
    kinds: tuple[tuple[str, str, Callable[[float], tuple[float, float]]], ...] = (
        ("first", "lifetime", lambda day: left(day, 0.0, share * day)),
        ("second", "rolling: 30d", lambda day: left(day, day - 30, share * 30)),
        ("third", "calendar: 1M", lambda day: left(day, day // 30 * 30, share * 30)),
    )
    for number, (style, name, at) in enumerate(kinds):
        drawing.line([at(day) for day in days], style, name, TOP + 20 + 22 * number)
    for at, hours in OUTAGES:
        drawing.text(drawing.x(at), TOP + 14, f"{hours:g} h out", 'text-anchor="middle"')
    return drawing.done()


def main() -> None:
    """Draw both."""
    folder = parsed(__doc__, "folder").folder
    for name, draw in (("slack", slack), ("budgets", budgets)):
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")
        print(f"wrote {folder / name}.svg")


if __name__ == "__main__":
    main()
