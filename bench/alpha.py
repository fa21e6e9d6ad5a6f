"""What it is worth to know how long starts take: promises kept where a start takes up to a minute, or three.

    python bench/alpha.py

Validation runs 1 and 2, recommended settings; start-ups are between half the time and all of it. Held back for a start
is `qos.alpha` as it comes; or the longest start, as each class's `alpha`; or the same as `qos.alpha`, by which triage
counts whoever has just come as late. Means over seeds (of generator and start-ups) and over runs of .5, 1 and 2 hours,
as who takes turns has his at one end or another; in brackets the least of all. Shown is the least important class.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from measuring import HOUR, announce, parsed
from numpy.typing import NDArray

from slacktide.config import Accounting, Config, preset
from slacktide.inputs.generators.registry import generated
from slacktide.model import Hosts, Workload
from slacktide.qos.availability import fulfilled
from slacktide.sim import run

RUNS = ("validation-1", "validation-2")
ACCOUNTINGS: tuple[Accounting, ...] = ("always", "restart")
STARTS = (60.0, 180.0)
ENDS = (0.5 * HOUR, HOUR, 2.0 * HOUR)
BEFORE, OF_CLASS, SET = "`qos.alpha` as it comes", "`alpha` of each class", "`qos.alpha` set to it"


def kept(workload: Workload, hosts: Hosts, config: Config) -> list[float]:
    """Shares of each class's promises that are kept, NaN of a class without requests; and preemptions."""
    end = config.simulation.end or HOUR
    result = run(workload, hosts, config)
    found, rows = result.requests, result.requests["row"]
    lived = np.where(np.isnan(found["completed"]), end, found["completed"]) - workload.admission[rows]
    received: NDArray[np.float64] = found["running"]
    if config.qos.startup == "restart":
        received = received + found["startup_first"]
    delivered = np.where(lived > 0.0, received / np.maximum(lived, 1e-9), 1.0)
    shares = []
    for code, service in enumerate(workload.classes):
        theirs = delivered[workload.service_class[rows] == code]
        shares.append(float(fulfilled(theirs, service.slo).mean()) if len(theirs) else float("nan"))
    return [*shares, float(result.preemptions)]


def cell(name: str, accounting: Accounting, start: float, way: str, seeds: int) -> str:
    """What the least important class keeps, the least of it, and preemptions."""
    found = []
    for seed, end in product(range(seeds), ENDS):
        workload, hosts = generated(name, {}, seed)
        own = start if way == OF_CLASS else None
        workload = replace(workload, classes=tuple(replace(service, alpha=own) for service in workload.classes))
        config: Config = preset("recommended")
        config = replace(config, policy=replace(config.policy, overload="triage"))  # lives of up to an hour
        config = replace(
            config,
            qos=replace(config.qos, alpha=start if way == SET else config.qos.alpha, startup=accounting),
            startup=replace(config.startup, hot=f"uniform:{start / 2},{start}", cold=f"uniform:{start / 2},{start}"),
            simulation=replace(config.simulation, end=end, seed=seed),
        )
        found.append(kept(workload, hosts, config))
    *means, preemptions = np.mean(found, axis=0).tolist()
    least = np.min(found, axis=0).tolist()
    last = max(code for code, mean in enumerate(means) if not np.isnan(mean))
    return f"{means[last]:.1%} ({least[last]:.1%}), {preemptions:,.0f}"


def main() -> None:
    """Print the table."""
    asked = parsed(__doc__, seeds=4)
    announce()
    ways = (BEFORE, OF_CLASS, SET)
    print(f"| run | accounting | longest start | {' | '.join(ways)} |")
    print("|---|---|---|---|---|---|")
    for name, accounting, start in product(RUNS, ACCOUNTINGS, STARTS):
        cells = " | ".join(cell(name, accounting, start, way, asked.seeds) for way in ways)
        print(f"| {name} | {accounting} | {start:g} s | {cells} |")


if __name__ == "__main__":
    main()
