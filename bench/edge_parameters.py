"""Which parameters give every published placement of delay-aware scheduling at once (docs/edge.md).

    PYTHONPATH=src:tests python bench/edge_parameters.py check            # the set below, and how far each goes
    PYTHONPATH=src:tests python bench/edge_parameters.py write FOLDER     # the set below as files

The paper prints capacities, round-trip times and numbers of pods; everything else was found by bench/edge_search.py,
with the slow reference methods. A set counts when all methods place as published, in both scenarios, delay-aware
scheduling with each of the three alphas.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import yaml

from reference.edge.cluster import Delay, Pod
from reference.edge.files import Scenario

NODES = ("n1", "n2", "n3")
CAPACITY = {1: ((2, 4), (2, 4), (2, 4)), 2: ((2, 4), (1, 4), (1, 3))}  # vCPUs, GB
BANDWIDTH = 100.0
RTT = {  # milliseconds, tables 4 and 5: master, n1, n2, n3
    1: ((0, 200, 150, 160), (200, 0, 50, 60), (150, 50, 0, 10), (160, 60, 10, 0)),
    2: ((0, 350, 210, 200), (350, 0, 160, 150), (210, 160, 0, 10), (200, 150, 10, 0)),
}
PLACES = ("master", *NODES)
PUBLISHED: dict[tuple[int, str, str, float], tuple[int, ...] | None] = {  # scenario, method, preferred node, alpha
    (1, "least-requested", "", 0.5): None,  # 5 on n3, the others between n1 and n2
    (1, "elastic-fog", "", 0.5): (4, 3, 3),
    (1, "tsra", "", 0.5): (4, 3, 3),
    (1, "nas", "n1", 0.5): (6, 4, 0),
    (1, "nas", "n2", 0.5): (0, 6, 4),
    (1, "nas", "n3", 0.5): (0, 4, 6),
    (1, "kcss", "", 0.5): (4, 6, 0),
    (1, "delay-aware", "", 0.25): (3, 4, 3),
    (1, "delay-aware", "", 0.5): (3, 4, 3),
    (1, "delay-aware", "", 0.75): (3, 3, 4),
    (2, "least-requested", "", 0.5): (2, 2, 2),
    (2, "elastic-fog", "", 0.5): (2, 2, 2),
    (2, "tsra", "", 0.5): (4, 1, 1),
    (2, "nas", "n1", 0.5): (6, 0, 0),
    (2, "nas", "n2", 0.5): (0, 3, 3),
    (2, "nas", "n3", 0.5): (0, 3, 3),
    (2, "kcss", "", 0.5): (0, 3, 3),
    (2, "delay-aware", "", 0.25): (3, 1, 2),
    (2, "delay-aware", "", 0.5): (3, 2, 1),
    (2, "delay-aware", "", 0.75): (3, 2, 1),
}
SYSTEM = 2  # pods of the cluster itself on each node that has some, of equal size


@dataclass(frozen=True)
class Parameters:
    """CPU in vCPUs, memory in GB, times in seconds; ``s1_n2_cpu``: the cluster's own pods on n2 in scenario 1."""

    cpu: float = 0.3
    memory: float = 0.2002
    cpu_limit: float = 0.9736
    memory_limit: float = 0.2014
    data: float = 0.1002
    phi: float = 0.4292
    tolerance: float = 0.004983
    context_switch: float = 6.178e-07
    competition: float = 6.129e-06
    memory_per_cpu: float = 5.09
    s1_n1_cpu: float = 0.03325
    s1_n1_memory: float = 1.355
    s1_n2_cpu: float = 0.00717
    s1_n2_memory: float = 2.405
    s2_n1_cpu: float = 0.05188
    s2_n1_memory: float = 0.8065
    transfer: float = 0.001
    image: float = 0.617
    users_1: str = "n3 n3 n1 master n1 master master n2 n2 n1"
    users_2: str = "n2 n2 n1 n3 master n1"

    def users(self, number: int) -> list[str]:
        """Where the user of each pod logs in, in order of arrival."""
        return (self.users_1 if number == 1 else self.users_2).split()

    def own_pods(self, number: int) -> dict[str, tuple[float, float]]:
        """CPU and memory of the cluster's own pods, by node."""
        if number == 2:
            return {"n1": (self.s2_n1_cpu, self.s2_n1_memory)}
        return {"n1": (self.s1_n1_cpu, self.s1_n1_memory), "n2": (self.s1_n2_cpu, self.s1_n2_memory)}

    def delay(self) -> Delay:
        return Delay(
            phi=self.phi,
            tolerance=self.tolerance,
            context_switch=self.context_switch,
            competition=self.competition,
            transfer=self.transfer,
            memory_per_cpu=self.memory_per_cpu,
        )


BOUNDS = {  # where the paper or a node's size says so; the others are positive
    "cpu_limit": (0.3, 2.0),
    "memory_limit": (0.1, 4.0),
    "phi": (0.01, 1.0),
    "memory": (0.02, 0.3),
    "memory_per_cpu": (1.0, 10.0),
    **{f"s{name}_memory": (0.05, 3.4) for name in ("1_n1", "1_n2", "2_n1")},
    **{f"s{name}_cpu": (0.001, 0.6) for name in ("1_n1", "1_n2", "2_n1")},
    "context_switch": (1e-7, 1e-5),  # "from 100 nanoseconds to some microseconds"
    "competition": (1e-6, 1e-5),  # "a few microseconds"
}
SEARCHED = tuple(each.name for each in fields(Parameters))[1:-4]
"""CPU is .3; transfer and image are the same everywhere and decide nothing."""


def build(given: Parameters, number: int) -> Scenario:
    capacities = {
        name: {"cpu": float(cpu), "memory": float(memory), "network": BANDWIDTH}
        for name, (cpu, memory) in zip(NODES, CAPACITY[number], strict=True)
    }
    rtt = {(a, b): RTT[number][i][j] / 1000 for i, a in enumerate(PLACES) for j, b in enumerate(PLACES)}
    pods = []
    for node, (cpu, memory) in given.own_pods(number).items():
        demand = {"cpu": cpu / SYSTEM, "memory": memory / SYSTEM, "network": 0.0}
        pods += [(Pod("own", demand, application="cluster"), node)] * SYSTEM
    for row, user in enumerate(given.users(number)):
        pod = Pod(
            str(row),
            {"cpu": given.cpu, "memory": given.memory, "network": 1.0},
            {"cpu": given.cpu_limit, "memory": given.memory_limit, "network": 1.0},
            data=given.data,
            logins=((user, 1.0),),
            image="fft",
            image_seconds=given.image,
            application="users",
        )
        pods.append((pod, ""))
    return Scenario(capacities, rtt, tuple(pods), given.delay())


def misplaced(given: Parameters) -> int:
    """Pods that are elsewhere than published, over all scenarios, methods and alphas."""
    scenarios = {number: build(given, number) for number in (1, 2)}
    wrong = 0
    for (number, method, preferred, alpha), published in PUBLISHED.items():
        counts = scenarios[number].counts(method, preferred=preferred, alpha=alpha)
        wrong += abs(counts[2] - 5) if published is None else sum(map(abs, map(int.__sub__, counts, published)))
    return wrong


def is_sound(given: Parameters) -> bool:
    return (
        0 < given.phi <= 1
        and given.cpu_limit >= given.cpu
        and given.memory_limit >= given.memory
        and min(asdict(given).values()) >= 0
    )


def perturbed(given: Parameters, draw: random.Random, scale: float) -> Parameters:
    return replace(given, **{name: getattr(given, name) * math.exp(draw.gauss(0, scale)) for name in SEARCHED})


def reach(given: Parameters, name: str, up: bool) -> float:
    """The farthest value of one parameter, the others fixed, up to which every step keeps all placements."""
    value, step = getattr(given, name), 1.01 if up else 1 / 1.01
    for _ in range(200):
        other = replace(given, **{name: value * step})
        if not is_sound(other) or misplaced(other):
            return float(value)
        value *= step
    return math.inf if up else 0.0


def check(given: Parameters, samples: int) -> None:
    print(f"pods elsewhere than published: {misplaced(given)}\n")
    print("| parameter | value | from | to |\n|---|---|---|---|")
    for name in SEARCHED:
        low, high = reach(given, name, up=False), reach(given, name, up=True)
        print(f"| `{name}` | {getattr(given, name):.4g} | {low:.4g} | {high:.4g} |")
    draw = random.Random(0)
    for scale in (0.01, 0.03, 0.1):
        good = sum(misplaced(perturbed(given, draw, scale)) == 0 for _ in range(samples))
        print(
            f"\nall parameters changed at once by {scale:.0%} (standard deviation): {good / samples:.0%} still place so"
        )


def write(given: Parameters, folder: Path) -> None:
    for number in (1, 2):
        into = folder / f"scenario-{number}"
        into.mkdir(parents=True, exist_ok=True)
        (into / "hosts.csv").write_text(hosts_text(number))
        (into / "workload.csv").write_text(workload_text(given, number))
        (into / "network.yaml").write_text(network_text(given, number))
        (into / "settings.yaml").write_text(settings_text(given, number))


def hosts_text(number: int) -> str:
    rows = [
        f"{row},{name},{cpu},{memory},{BANDWIDTH:g},node={name}"
        for row, (name, (cpu, memory)) in enumerate(zip(NODES, CAPACITY[number], strict=True), 1)
    ]
    return "\n".join(["id,name,cpu,memory,resource:network,attributes", *rows, ""])


def workload_text(given: Parameters, number: int) -> str:
    amounts = "cpu,memory,resource:network,class,job,constraints,limit:cpu,limit:memory"
    rows = [f"id,admission,duration,{amounts},image,data,users"]
    for node, (cpu, memory) in given.own_pods(number).items():
        each = f"{cpu / SYSTEM:.6g},{memory / SYSTEM:.6g}"
        rows += [f"{len(rows) + i},0,,{each},0,gold,{len(rows) + i},node == {node},,,,," for i in range(SYSTEM)]
    for row, user in enumerate(given.users(number)):
        amounts = f"{given.cpu:.6g},{given.memory:.6g},1,gold,100,,{given.cpu_limit:.6g},{given.memory_limit:.6g}"
        rows.append(f"{101 + row},{row + 1},,{amounts},fft,{given.data:.6g},{user}")
    return "\n".join([*rows, ""])


def network_text(given: Parameters, number: int) -> str:
    rows = "".join(f"  - {list(row)}\n" for row in RTT[number])
    return f"places: [{', '.join(PLACES)}]\nrtt_ms:\n{rows}images:\n  fft: {{seconds: {given.image:g}}}\n"


def settings_text(given: Parameters, number: int) -> str:
    said = asdict(given.delay()) | {"grants": True, "fetching": 1}
    del said["processing"]
    head = f"# Scenario {number} of the published testbed; found by bench/edge_parameters.py (docs/edge.md).\n"
    return head + yaml.safe_dump({"policy": {"name": "delay-aware"}, "delay": said}, sort_keys=False)


def main() -> None:
    """Check the set below, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "write"))
    parser.add_argument("folder", nargs="?", default="examples/edge", type=Path)
    parser.add_argument("--samples", type=int, default=200)
    given = parser.parse_args()
    if given.what == "write":
        write(Parameters(), given.folder)
    else:
        check(Parameters(), given.samples)


if __name__ == "__main__":
    main()
