"""Both published scenarios with all methods: where each puts its pods, how long users wait, when the work is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from slacktide import settings
from slacktide.config import Config
from slacktide.edge.testbed import Run, Testbed, read_run, read_testbed
from slacktide.inputs import align
from slacktide.model import NO_ACCESS
from slacktide.sim import run

METHODS = ("least-requested", "elastic-fog", "tsra", "nas", "kcss")
"""What delay-aware placement is compared with; kube-scheduler first."""
DELAY_AWARE = "delay-aware"
ALPHAS = (0.25, 0.5, 0.75)
LOADS = ("low", "high")


@dataclass(frozen=True, slots=True)
class Column:
    """One load: mean seconds of processing and of network delay a pod, and when the last task is done."""

    processing: float
    network: float
    completion: float


@dataclass(frozen=True, slots=True)
class Line:
    """A method in a scenario.

    method  as :func:`lines_of` names it: ``delay-aware .25``, ``nas (n1)``
    pods    by placement that came about, pods on each node, and in how many of the runs
    loads   by load, means over all runs
    """

    scenario: str
    method: str
    nodes: tuple[str, ...]
    pods: dict[tuple[int, ...], int]
    loads: dict[str, Column]


def replay(folder: Path, seeds: int = 20) -> list[Line]:
    """Lines of all scenarios in ``folder`` (docs/edge.md): ``run.yaml`` and ``scenario-*``, by number.

    Ties are drawn with each of so many seeds. Raises InputError and ConfigError for files that cannot be used.
    """
    behaviour = read_run(folder / "run.yaml")
    scenarios = sorted(one for one in folder.glob("scenario-*") if one.is_dir())
    return [line for scenario in scenarios for line in lines_of(scenario, behaviour, seeds)]


def lines_of(scenario: Path, behaviour: Run, seeds: int) -> Iterator[Line]:
    """Every method in one scenario; NAS once for each node that may be preferred, and their mean as ``nas``."""
    testbed = read_testbed(scenario)
    config = settings.load(scenario / "settings.yaml")
    names = testbed.hosts.names
    for method in METHODS:
        if method != "nas":
            yield _line(testbed, method, config, behaviour, [(method, "")], seeds)
            continue
        for name in names:
            yield _line(testbed, f"nas ({name})", config, behaviour, [("nas", name)], seeds)
        yield _line(testbed, "nas", config, behaviour, [("nas", name) for name in names], seeds)
    for alpha in ALPHAS:
        mine = replace(config, delay=replace(config.delay, alpha=alpha))
        yield _line(testbed, f"{DELAY_AWARE} {alpha:g}", mine, behaviour, [(DELAY_AWARE, "")], seeds)


def place(testbed: Testbed, method: str, config: Config, *, preferred: str = "", seed: int = 0) -> dict[str, str]:
    """By the number of a pod of a user, the node on which the simulator puts it under the policy ``method``.

    Pods of the cluster itself are placed, too, and are not in the answer; so are pods that find no room.
    """
    workload, hosts = align(testbed.workload, replace(testbed.hosts, network=testbed.network))
    if preferred:
        accesses = tuple(one if one == NO_ACCESS else replace(one, preferred=preferred) for one in workload.accesses)
        workload = replace(workload, accesses=accesses)
    end = float(workload.admission.max()) + 1.0
    config = replace(
        config,
        policy=replace(config.policy, name=method),
        simulation=replace(config.simulation, seed=seed, end=end),
    )
    decisions = run(replace(workload, duration=np.full(len(workload), np.inf)), hosts, config, decisions=True).decisions
    placed = {}
    if decisions is not None:
        for row, host in zip(decisions["row"].tolist(), decisions["host"].tolist(), strict=True):
            if testbed.access(row).logins:
                placed[str(int(workload.ids[row]))] = hosts.names[host]
    return placed


def _line(testbed: Testbed, name: str, config: Config, behaviour: Run, ways: list[tuple[str, str]], seeds: int) -> Line:
    nodes = testbed.hosts.names
    placements = [
        place(testbed, method, config, preferred=preferred, seed=seed)
        for method, preferred in ways
        for seed in range(seeds)
    ]
    pods = Counter(tuple(list(one.values()).count(node) for node in nodes) for one in placements)
    loads = {}
    for load in LOADS:
        outcomes = [testbed.run(one, behaviour, load) for one in placements]
        loads[load] = Column(
            fmean(one.processing for one in outcomes),
            fmean(one.network for one in outcomes),
            fmean(one.completion for one in outcomes),
        )
    return Line(testbed.name, name, nodes, dict(pods.most_common()), loads)
