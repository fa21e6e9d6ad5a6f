"""What contention within one large request costs, beside that among as many requests of one instance.

    python bench/large.py [--instances 8000] [--hosts 2000] [--repeats 5] [--settings recommended]

Two cases, each with half as many preemptions as the large request has instances, all in one pass. ``preempts``: of a
gold request that comes at 10 s half the instances find room, each of the others preempts a bronze instance.
``preempted``: gold instances that come at 10 s preempt half of a bronze request. The request is measured
independently (each instance by its own ledger, as requests of one instance are), concurrently and aggregated.
Seconds are processor seconds: of the whole run, and of the instant at which they meet (the run less one that ends
before it). Ratios are to ``independent``, within a repetition.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

import numpy as np
from measuring import Some, announce, parsed, plain, settings, table

from slacktide.inputs.rows import equal_hosts
from slacktide.model import APPROACHES, Hosts, Requests, Workload
from slacktide.sim import RunResult, run

GOLD, BRONZE = 0, 2
BEFORE, AT, AFTER = 9.0, 10.0, 12.0
"""Seconds: the end of a run before the instant, the instant, the end of a run that has it."""
CASES = ("preempts", "preempted")
HEAD = (
    "case",
    "measured",
    "seconds",
    "of the instant",
    "ratio",
    "ratio of the instant",
    "preemptions",
    "operations",
)


LINES = ("independent", "concurrent", "aggregated")
"""How the request is measured."""


def cluster(case: str, approach: str, instances: int, hosts: int) -> tuple[Workload, Hosts]:
    """A large request beside requests of one instance, on equal hosts that half of both fill."""
    half = instances // 2
    bronze, gold = (half, instances) if case == "preempts" else (instances, half)
    service_class = np.repeat(np.array([BRONZE, GOLD], np.int16), (bronze, gold))
    large = service_class == (GOLD if case == "preempts" else BRONZE)
    request = np.zeros(len(large), np.int32)
    request[~large] = np.arange(1, half + 1)
    kinds = np.zeros(half + 1, np.int8)
    kinds[0] = APPROACHES.index(approach)
    workload = plain(
        np.where(service_class == BRONZE, 0.0, AT),
        np.full(len(large), np.inf),
        np.ones(len(large)),
        service_class,
        job=request.astype(np.int64),
        request=request,
        requests=Requests(
            ids=np.arange(half + 1),
            batch=np.zeros(half + 1, np.bool_),
            approach=kinds,
            parallelism=np.zeros(half + 1, np.int64),
        ),
    )
    return workload, equal_hosts(hosts, {"cpu": instances / hosts, "memory": instances / hosts})


def once(workload: Workload, hosts: Hosts, preset: str, end: float) -> tuple[float, RunResult]:
    """Processor seconds of a run without reading and compiling, and the run."""
    config = settings(preset, {"simulation.end": end})
    begun = time.process_time()
    result = run(workload, hosts, config)
    return time.process_time() - begun, result


def rows(case: str, preset: str, arguments: argparse.Namespace) -> list[list[str]]:
    """A line for each way, measured one after the other in each repetition, so that the machine is the same."""
    inputs = {line: cluster(case, line, arguments.instances, arguments.hosts) for line in LINES}
    found: dict[str, list[tuple[float, float]]] = {line: [] for line in LINES}
    last: dict[str, RunResult] = {}
    once(*inputs[LINES[0]], preset, 1.0)  # loads the kernels
    for number in range(arguments.repeats):
        print(f"{preset}, {case}, {number + 1}/{arguments.repeats} ...", file=sys.stderr)
        for line, (workload, hosts) in inputs.items():
            before, _ = once(workload, hosts, preset, BEFORE)
            seconds, last[line] = once(workload, hosts, preset, AFTER)
            found[line].append((seconds, seconds - before))
    alone = found[LINES[0]]
    lines = []
    for line, mine in found.items():
        ratios = [
            f"{median(one[part] / other[part] for one, other in zip(mine, alone, strict=True)):.2f}" for part in (0, 1)
        ]
        cells = [case, line, *(f"{median(one[part] for one in mine):.3f}" for part in (0, 1))]
        lines.append([*cells, *ratios, f"{last[line].preemptions:,}", f"{last[line].operations:,}"])
    return lines


def main() -> None:
    """Print the table."""
    arguments = parsed(
        __doc__, instances=8000, hosts=2000, repeats=5, settings=Some(("recommended", "published"), ["recommended"])
    )
    announce(f", medians of {arguments.repeats}:")
    text = []
    for preset in arguments.settings:
        lines = [line for case in CASES for line in rows(case, preset, arguments)]
        text += [f"**{preset}**", table(HEAD, lines)]
    print("\n\n".join(text), flush=True)


if __name__ == "__main__":
    main()
