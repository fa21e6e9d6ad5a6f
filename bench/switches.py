"""Every switch of OptimizeSettings on the higher one-hour file: what it saves, and whether it changes anything.

    python bench/switches.py [--repeats 5] [--policy NAME ...] [--end 3600]

For the priority policy and for qos-driven with ``better`` and ``needed`` (preset published), the runs with all
switches at their defaults, and with each of them turned. Processor seconds are of the simulation alone, decision log
kept; they are medians, but a run that takes longer than ten seconds is not repeated. Decisions are compared by a hash
over the whole decision log: instants, requests, hosts and victims; what came of them stands in a line only where they
are others (of gold where it is not fulfilled). Needs the published inputs.
"""

from __future__ import annotations

import statistics
from typing import Any

from measuring import (
    ALPHA,
    HOUR,
    Outcome,
    Some,
    announce,
    each,
    millions,
    one_hour_files,
    overheads,
    parsed,
    read,
    settings,
    share,
    simulated,
    table,
)

from slacktide.model import Hosts, Workload

POLICIES: dict[str, dict[str, Any]] = {
    "priority": {"policy.name": "priority"},
    "better": {"policy.preempt_when": "better"},
    "needed": {"policy.preempt_when": "needed"},
}
TURNED: dict[str, Any] = {
    "shared_evaluations": False,
    "relaxed_randomization": 0.05,
    "equivalence_tolerance": 1.0,
    "queue_pruning": True,
}
LONG = 10.0  # seconds; longer runs are measured once
HEAD = (
    *("optimize.*", "operations M", "bound checks M", "processor s", "decisions", "preemptions"),
    *(f"{name}: mean, fulfilled" for name in ("silver", "bronze")),
)


def variants() -> dict[str, dict[str, Any]]:
    """The lines of a table by name."""
    turned = {f"`{name} = {str(value).lower()}`": {f"optimize.{name}": value} for name, value in TURNED.items()}
    return {"defaults": {}, **turned}


def measured(inputs: tuple[Workload, Hosts], values: dict[str, Any], repeats: int, end: float) -> tuple[float, Outcome]:
    """Median seconds of a run and its outcome."""
    config = settings("published", {**values, "qos.alpha": ALPHA, "simulation.end": end, **overheads()})
    seconds = []
    for _ in range(repeats):
        found = simulated(*inputs, config, decisions=True)
        seconds.append(found.seconds)
        if found.seconds > LONG:
            break
    return statistics.median(seconds), found


def main() -> None:
    """Print a table per policy."""
    arguments = parsed(__doc__, repeats=5, policy=Some(POLICIES), end=HOUR)
    inputs = read(*one_hour_files("higher"))
    measured(inputs, {}, 1, 1.0)  # nothing is left to load or compile
    announce(f", medians of {arguments.repeats} where a run takes at most {LONG:g} s:")
    for policy in arguments.policy:
        log: list[str] = []

        def row(name: str, values: dict[str, Any], policy: str = policy, log: list[str] = log) -> list[str]:
            seconds, found = measured(inputs, POLICIES[policy] | values, arguments.repeats, arguments.end)
            log.append(found.decisions)
            result = found.result
            counts = [millions(result.operations), millions(result.bound_checks), f"{seconds:.2f}"]
            got = [
                f"{share(one.availability['restart'].mean)}, {one.fulfilment['restart']:.2%}"
                for one in (found.classes["silver"], found.classes["bronze"])
            ]
            if len(log) > 1 and found.decisions == log[0]:
                return [name, *counts, "same", "", *("" for _ in got)]
            gold = found.classes["gold"].fulfilment["restart"]
            name += f" (gold fulfilled: {gold:.2%})" if gold < 1.0 else ""
            return [name, *counts, "**other**" if len(log) > 1 else "", f"{result.preemptions:,}", *got]

        print(f"{policy}\n")
        print(table(HEAD, each(variants(), row)), "\n", flush=True)


if __name__ == "__main__":
    main()
