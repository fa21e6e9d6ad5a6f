"""Placements a second at the edge, with the delay-aware score and with the default one.

    python bench/edge_rate.py

Generated edge clusters (docs/generators.md) of 1,000 nodes at 50 sites and 12,500 at 200: from empty, with room for all
(load 0.7) for an hour, and saturated (load 1.1) for a minute and a half, in which a queue grows. Processor time of the
simulator, kernels compiled before; the median of three runs.
"""

from __future__ import annotations

import statistics
from typing import Any

from measuring import HOUR, announce, each, options, settings, simulated, table

from slacktide.inputs.generators.registry import generated
from slacktide.model import Hosts, Workload

SIZES = {1000: (50, 20_000), 12_500: (200, 250_000)}
"""By nodes: sites and requests."""
LOADS = {"filling": 0.7, "saturated": 1.1}
ENDS = {"filling": HOUR, "saturated": 90.0}
"""Simulated seconds. Beyond, time goes into ever more preemptions among ever more that wait, with either score."""
REPEATS = 3


def made(nodes: int, load: float) -> tuple[Workload, Hosts]:
    """An edge cluster."""
    sites, requests = SIZES[nodes]
    values = {"nodes": nodes, "sites": sites, "requests": requests, "load": load}
    return generated("edge", values)


def rate(workload: Workload, hosts: Hosts, end: float, values: dict[str, Any]) -> tuple[float, float, float]:
    """Placements a processor second, operations a placement, and looks at bounds a placement."""
    config = settings("recommended", {"simulation.end": end, "delay.processing": 4.0} | values)
    found = [simulated(workload, hosts, config) for _ in range(REPEATS)]
    result = found[0].result
    seconds = statistics.median(one.seconds for one in found)
    looks = (result.operations / result.placements, result.bound_checks / result.placements)
    return result.placements / seconds, *looks


def main() -> None:
    """Measure every size and load, print the table."""
    parser = options(__doc__)
    parser.add_argument("--nodes", type=int, choices=list(SIZES), action="append", help="one size only")
    parser.add_argument("--load", choices=list(LOADS), action="append", help="one load only")
    asked = parser.parse_args()
    cases = {
        f"{nodes:,} nodes, {load}": (nodes, load) for nodes in asked.nodes or SIZES for load in asked.load or LOADS
    }
    warm, hosts = made(1000, 0.1)
    aware: dict[str, Any] = {"policy.score": "delay-aware"}
    rate(warm, hosts, HOUR, aware)

    def measured(name: str, case: tuple[int, str]) -> list[str]:
        workload, hosts = made(case[0], LOADS[case[1]])
        without, with_it = (rate(workload, hosts, ENDS[case[1]], values) for values in ({}, aware))
        looks = [f"{one:,.0f}" for one in (without[1], with_it[1], without[2], with_it[2])]
        return [name, f"{without[0]:,.0f}", f"{with_it[0]:,.0f}", f"{with_it[0] / without[0]:.2f}", *looks]

    announce()
    head = ["", "default, 1/s", "delay-aware, 1/s", "ratio", "operations", "with", "bounds", "with"]
    print(table(head, each(cases, measured)))


if __name__ == "__main__":
    main()
