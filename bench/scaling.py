"""How cost grows with requests and with hosts, at fixed load.

    python bench/scaling.py [--repeats 5] [--svg FOLDER]

Two generated workloads: ``light`` under the priority policy (load 0.8), and ``cell`` under qos-driven with the
recommended settings (load 0.9, so that there is contention now and then, not a growing backlog). Requests: hosts
stay, the run lengthens. Hosts: requests stay at their number, and lives (``light``) or the length of the run
(``cell``) are such that the load is the same. Median processor seconds of the simulation alone, microseconds and
operations per request.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import Point, announce, curves, settings, simulated, table

from slacktide.inputs import join
from slacktide.inputs.generators.registry import GENERATORS

HEAD = (
    "workload",
    "hosts",
    "requests",
    "processor s",
    "µs per request",
    "operations per request",
    "bound checks per request",
)
LIGHT_REQUESTS, LIGHT_HOSTS = (125_000, 250_000, 500_000, 1_000_000), (250, 1000, 4000, 16_000)
CELL_HOURS, CELL_HOSTS = (2, 4, 8, 16), (310, 620, 1240, 2480)


def light(hosts: int, requests: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Generator, its parameters, settings."""
    return "light", {"hosts": hosts, "requests": requests}, {"policy.name": "priority"}


def cell(hosts: int, hours: float, requests: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """As :func:`light`; ``requests`` are those that arrive, the standing load comes on top."""
    values = {"hosts": hosts, "hours": hours, "requests": requests, "load": 0.9}
    return "cell", values, {"simulation.end": hours * 3600.0}


def cases() -> Iterator[tuple[str, str, tuple[str, dict[str, Any], dict[str, Any]]]]:
    """Curve, workload, and what to generate and run."""
    for requests in LIGHT_REQUESTS:
        yield "requests", "light, priority", light(1000, requests)
    for hours in CELL_HOURS:
        yield "requests", "cell, recommended", cell(620, hours, 23_000 * hours)
    for hosts in LIGHT_HOSTS:
        yield "hosts", "light, priority", light(hosts, 250_000)
    for hosts in CELL_HOSTS:
        yield "hosts", "cell, recommended", cell(hosts, 4 * 620 / hosts, 92_000)


def main() -> None:
    """Print both tables and write both curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--svg", type=Path, metavar="FOLDER", help="write scaling-requests.svg, scaling-hosts.svg there"
    )
    arguments = parser.parse_args()
    rows: dict[str, list[list[str]]] = {"requests": [], "hosts": []}
    points: dict[str, dict[str, list[Point]]] = {"requests": {}, "hosts": {}}
    for curve, name, (generator, parameters, values) in cases():
        pieces, hosts = GENERATORS[generator].generate(parameters, 0)
        workload = join(list(pieces))
        config = settings("recommended", values)
        runs = [simulated(workload, hosts, config) for _ in range(arguments.repeats)]
        seconds, count = statistics.median(one.seconds for one in runs), len(workload)
        result = runs[0].result
        per_request = seconds / count * 1e6
        counts = [f"{result.operations / count:.1f}", f"{result.bound_checks / count:.1f}"]
        rows[curve].append([name, f"{len(hosts):,}", f"{count:,}", f"{seconds:.2f}", f"{per_request:.1f}", *counts])
        x = float(len(hosts)) if curve == "hosts" else float(count)
        points[curve].setdefault(name, []).append((x, per_request if curve == "hosts" else seconds))
    announce(f", medians of {arguments.repeats}:")
    for curve, lines in rows.items():
        print(f"Against {curve}\n\n{table(HEAD, lines)}\n")
    if arguments.svg is not None:
        for curve, unit in (("requests", "processor seconds"), ("hosts", "µs per request")):
            drawing = curves(f"Cost against {curve}, fixed load", curve, unit, points[curve])
            (arguments.svg / f"scaling-{curve}.svg").write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
