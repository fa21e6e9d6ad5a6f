"""Loads on which a scheduler may fall off a cliff: how their cost grows with their size.

    python bench/cliffs.py [--case NAME ...] [--policy NAME ...] [--repeats 3] [--scale 1]

Each case is a cluster that is full, and an instant or a while that is measured, without what leads there. Times are
processor time of the kernels, the shortest of all repetitions (what others do makes a run longer, never shorter).
They are divided by the instances that preempt, or by passes. Operations and bound checks are exact counts, of the
largest size. The last column is the exponent of growth from the smallest size to the largest: 1 is linear in the size,
0 constant.

preempting        500 gold instances come at once, of so many demands; each must preempt, and can on each host
large request     all instances of one request preempt in one pass; each can on each host
waiting           so many instances of three demands wait and fit nowhere; 200 passes after events that help none
spared            as waiting, with few who wait, on so many hosts, and policy.min_running
hopeless          as spared, without policy.min_running
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from large import GOLD, cluster
from measuring import plain, settings
from sized_cases import Point, exponent, measure, tell

from slacktide.config import Config
from slacktide.inputs.rows import equal_hosts
from slacktide.kernels.drive import event_loop, scheduling_pass
from slacktide.kernels.tables.buffer_capacity import OVER, PASS_DUE
from slacktide.model import Hosts, Workload
from slacktide.policy.loader import load as own_code
from slacktide.sim.engine import prepare
from slacktide.state.growing_arrays import grow

SILVER, BRONZE = 1, 2
PASSES = 200
"""Events of a while."""
WAITING_DEMANDS = (1.5, 2.0, 3.0)
"""Cores that those ask for who fit nowhere."""
HEAD = ("case", "settings", "sizes", "µs per instance or pass", "operations", "bound checks", "exponent")
POLICIES: dict[str, dict[str, Any]] = {
    "priority": {"policy.name": "priority"},
    "recommended": {},
}


class Load(NamedTuple):
    """One size of a case."""

    workload: Workload
    hosts: Hosts
    before: float
    """Seconds: what is measured begins with the first pass after it."""
    after: float
    """Seconds: the end."""
    units: int
    """What costs are divided by."""


class Case(NamedTuple):
    """A load in several sizes."""

    made: Callable[[int], Load]
    sizes: tuple[int, ...]
    values: dict[str, Any]
    """Settings beside those of the policy."""


def machines(count: int, cores: float) -> Hosts:
    """Equal hosts."""
    return equal_hosts(count, {"cpu": cores, "memory": cores})


def preempting(demands: int, count: int = 500) -> Callable[[int], Load]:
    """``count`` gold instances of so many demands, on hosts of four bronze ones."""

    def made(hosts: int) -> Load:
        wanted = 1.0 - (np.arange(count) % demands) / (2.0 * demands)
        full = 4 * hosts
        workload = plain(
            np.repeat([0.0, 100.0], (full, count)),
            np.full(full + count, np.inf),
            np.concatenate([np.ones(full), wanted]),
            np.repeat(np.array([BRONZE, GOLD], np.int16), (full, count)),
        )
        return Load(workload, machines(hosts, 4.0), 99.0, 101.0, count)

    return made


def large(instances: int) -> Load:
    """Half of the instances of a gold request preempt."""
    return Load(*cluster("preempts", "aggregated", instances, instances // 4), 9.0, 12.0, instances // 2)


def standing(hosts: int, waiting: int, passes: int = PASSES) -> Load:
    """Gold instances fill all hosts; now and then a small one completes, of which nobody who waits has anything.

    One small one is on each of the first hosts; hosts are so large that it fits beside four others.
    """
    passes = min(passes, hosts)
    small = np.where(np.arange(hosts) < passes, 1000.0 + 2.0 * np.arange(hosts), np.inf)
    asked = np.array(WAITING_DEMANDS)[np.arange(waiting) % len(WAITING_DEMANDS)]
    workload = plain(
        np.repeat([0.0, 1.0, 2.0], (4 * hosts, hosts, waiting)),
        np.concatenate([np.full(4 * hosts, np.inf), small, np.full(waiting, np.inf)]),
        np.concatenate([np.ones(4 * hosts), np.full(hosts, 0.25), asked]),
        np.repeat(np.array([GOLD, GOLD, BRONZE], np.int16), (4 * hosts, hosts, waiting)),
    )
    return Load(workload, machines(hosts, 4.25), 999.0, 1000.0 + 2.0 * passes, passes)


CASES = {
    **{f"preempting, {n}": Case(preempting(n), (1250, 5000, 20000), {}) for n in (1, 16, 500)},
    "large request": Case(large, (2000, 8000, 32000), {}),
    "waiting": Case(lambda n: standing(PASSES, n), (500, 4000, 32000), {}),
    "spared": Case(lambda n: standing(n, 9), (500, 4000, 32000), {"policy.min_running": 30.0}),
    "hopeless": Case(lambda n: standing(n, 9), (500, 4000, 32000), {}),
}


class Found(NamedTuple):
    """What a run spent from the instant on that is measured."""

    seconds: float
    operations: int
    bound_checks: int


def once(load: Load, config: Config) -> Found:
    """Processor seconds and counts from the first pass after ``load.before`` on, without what leads there."""
    config = replace(config, simulation=replace(config.simulation, end=load.after))
    tb = prepare(load.workload, load.hosts, config, own_code(config), 0)
    control = tb.control
    while True:
        code = int(event_loop.advance(tb.state))
        if code == PASS_DUE and control["now"] > load.before:
            break
        while code == PASS_DUE and grow(tb, int(scheduling_pass.run_pass(tb.state)), forget):
            pass
        if code == OVER:
            sys.exit(f"{load.before} s: no pass comes after it")
        if code != PASS_DUE:
            grow(tb, code, forget)
    less = int(control["operations"]), int(control["bounds"])
    begun = time.process_time()
    while grow(tb, int(scheduling_pass.run_pass(tb.state)), forget):
        pass
    while (code := int(event_loop.run(tb.state, 1 << 30))) != OVER:
        grow(tb, code, forget)
    seconds = time.process_time() - begun
    return Found(seconds, int(control["operations"]) - less[0], int(control["bounds"]) - less[1])


def forget(_: object) -> None:
    """Nobody reads what was recorded."""


def measured(name: str, policy: str, repeats: int, scale: float) -> Iterator[list[str]]:
    """The line of a case under a policy."""
    case, points, micros = CASES[name], [], []
    config = settings("recommended", {**POLICIES[policy], **case.values})
    for full in case.sizes:
        size = max(int(full * scale), 8)
        tell(name, policy, f"{size:,}")
        load = case.made(size)
        runs = [once(load, config) for _ in range(repeats)]
        points.append(Point(size, min(one.seconds for one in runs)))
        micros.append(f"{points[-1].spent / load.units * 1e6:.2f}")
    sizes = "; ".join(f"{int(one.size):,}" for one in points)
    yield [
        *(name, policy, sizes, "; ".join(micros)),
        *(f"{runs[0].operations:,}", f"{runs[0].bound_checks:,}", exponent(points[0], points[-1])),
    ]


def tiny() -> None:
    """A run of no length."""
    once(preempting(1)(8), settings("recommended", {}))


def main() -> None:
    """Print the table."""
    measure(__doc__, HEAD, tuple(CASES), tuple(POLICIES), measured, tiny)


if __name__ == "__main__":
    main()
