"""What users wait for against what was promised them, at the edge: every score, with and without preemption.

    python bench/edge_cluster.py docs/figures/edge-cluster.svg
    python bench/edge_cluster.py figure.svg --nodes 100 --sites 10 --requests 2000 --seeds 1

Generated edge clusters (docs/generators.md), an hour, the mean over seeds; a Markdown table, and the figure: mean delay
(docs/metrics.md) against the share of requests that got what they were promised.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

from edge_figure import drawing
from measuring import HOUR, announce, options, settings, table

from slacktide.inputs.generators.registry import generated
from slacktide.metrics import per_class
from slacktide.metrics.delay import placement_delays, user_delay
from slacktide.model import Hosts, Workload
from slacktide.sim import run

TO_ALL = {"delay.processing": 4.0}
"""CPU-seconds for a Gbit that users send: 6 ms for the median exchange."""
COMPARATORS = ("elastic-fog", "tsra", "nas", "kcss")
WITHOUT = "qos-driven, balanced"
WITH = "qos-driven, delay-aware"

Row = dict[str, float]


def grid() -> dict[str, dict[str, Any]]:
    """Settings by the name of a row."""
    aware: dict[str, Any] = {"policy.score": "delay-aware"}
    rows: dict[str, dict[str, Any]] = {
        "priority, least-requested": {"policy.name": "priority", "policy.score": "least-requested"},
        WITHOUT: {},
        "qos-driven, least-requested": {"policy.score": "least-requested"},
        WITH: aware,
        "... alpha .25": aware | {"delay.alpha": 0.25},
        "... alpha .75": aware | {"delay.alpha": 0.75},
        "... tolerance 0": aware | {"delay.tolerance": 0.0},
        "... tolerance 5 ms": aware | {"delay.tolerance": 0.005},
        "... competition 3 us": aware | {"delay.competition": 3e-6},
        "... images at full weight": aware | {"delay.fetching": 1.0},
        "hybrid, delay-aware": aware | {"policy.name": "hybrid"},
        "priority, delay-aware": aware | {"policy.name": "priority"},
        "delay-aware alone": aware | {"policy.name": "delay-aware"},
        "least-requested alone": {"policy.name": "least-requested"},
    }
    for name in COMPARATORS:
        rows[f"qos-driven, {name}"] = {"policy.score": name}
        rows[f"{name} alone"] = {"policy.name": name}
    return rows


def measured(workload: Workload, hosts: Hosts, values: dict[str, Any]) -> Row:
    """One run: shares of requests, milliseconds, counts."""
    config = settings("recommended", {"simulation.end": HOUR} | TO_ALL | values)
    begun = time.process_time()
    result = run(workload, hosts, config, events=True)
    seconds = time.process_time() - begun
    if result.events is None:
        raise SystemExit("the run recorded no events")
    found = per_class(result.requests, workload.service_class[result.requests["row"]], workload.classes, "restart")
    delays = placement_delays(result.events, workload, hosts, config.delay, result.end)
    seen = user_delay(delays, workload.classes).to_pylist()[-1]
    kept = sum(one.fulfilment["restart"] * one.requests for one in found) / sum(one.requests for one in found)
    return {
        **{one.name: one.fulfilment["restart"] for one in found},
        "all": kept,
        **{name: 1000.0 * seen[name] for name in ("mean", "p95", "p99", "network", "processing", "image")},
        "preemptions": float(result.preemptions),
        "seconds": seconds,
    }


def warm_up() -> None:
    """Compile what is not compiled yet, so that no row's processor time contains it."""
    measured(*generated("edge", {"nodes": 20, "sites": 2, "requests": 400}), {"policy.score": "delay-aware"})


def words(name: str, row: Row) -> list[str]:
    """A row of the table."""
    shares = [f"{row[one]:.1%}" for one in ("gold", "silver", "bronze")]
    delays = [f"{row[one]:.1f}" for one in ("mean", "p95", "p99", "network", "processing", "image")]
    return [name, *shares, *delays, f"{row['preemptions']:,.0f}", f"{row['seconds']:.2f}"]


def main() -> None:
    """Run the grid, print the table, write the figure."""
    parser = options(__doc__)
    parser.add_argument("svg", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--sites", type=int, default=50)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name holds this word")
    asked = parser.parse_args()
    found: dict[str, list[Row]] = {}
    warm_up()
    for seed in range(asked.seeds):
        values = {name: getattr(asked, name) for name in ("nodes", "sites", "requests", "load")}
        workload, hosts = generated("edge", values, seed)
        for name, chosen in grid().items():
            if asked.only in name:
                row = measured(workload, hosts, chosen)
                found.setdefault(name, []).append(row)
                print(f"seed {seed}: {' | '.join(words(name, row))}", file=sys.stderr)
    rows = {name: {key: statistics.fmean(one[key] for one in some) for key in some[0]} for name, some in found.items()}
    announce(f": {asked.nodes} nodes at {asked.sites} sites, load {asked.load}, mean of {asked.seeds} seeds")
    head = ["", "gold", "silver", "bronze", "mean ms", "p95", "p99", "network", "processing", "image"]
    numbered = {f"{number} {name}": row for number, (name, row) in enumerate(rows.items(), 1)}
    print(table([*head, "preemptions", "processor s"], [words(name, row) for name, row in numbered.items()]))
    if WITH in rows and WITHOUT in rows:
        saved = [1.0 - a["mean"] / b["mean"] for a, b in zip(found[WITH], found[WITHOUT], strict=True)]
        print(f"\n{WITH} against {WITHOUT}: {', '.join(f'{one:.1%}' for one in saved)} less mean delay")
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    asked.svg.write_text(drawing(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
