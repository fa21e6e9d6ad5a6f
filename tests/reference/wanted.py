"""What rows demand, and from when on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from reference.amounts import Amounts
from reference.times import on_grid
from slacktide.model import Workload


class Wanted(NamedTuple):
    """What an instance demands: whole amounts, and of resource ``network`` in the workload's unit."""

    amounts: Amounts
    bandwidth: float


def resizes_of(workload: Workload, row: int, whole: Callable[[Any], Amounts]) -> list[tuple[float, Wanted]]:
    """When a row demands what; ``whole`` rounds amounts in the workload's order of resources."""
    if workload.resize is None:
        return []
    demand = dict(zip(workload.resources, workload.demand[row].tolist(), strict=True))
    found = []
    for time, amounts in workload.resizings[int(workload.resize[row])]:
        demand |= dict(amounts)
        amounts_then = whole([demand[name] for name in workload.resources])
        found.append((on_grid(time), Wanted(amounts_then, demand.get("network", 0.0))))
    return found
