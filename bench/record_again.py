"""A record of an hour, simulated again as it was: how far class means and preemptions are from those recorded.

    PYTHONPATH=src python bench/record_again.py                         an hour on 20 hosts, some seconds a seed
    PYTHONPATH=src python bench/record_again.py --hosts 50 --seeds 1 2 3 --keep FOLDER
    PYTHONPATH=src python bench/record_again.py --what-if policy.name=priority

With ``--what-if`` the record is simulated with other settings, and compared with the same cluster run with them: the
same controllers come at the same instants and want the same, and the same becomes of nodes and pods of others.

The scheduler's engine and its recorder are those of ``slacktide run --record``. The cluster around it is made up, on a
clock of its own: kubelets that start pods (delays that were never seen before are drawn for each), victims that take
part of their grace periods, controllers that replace pods after a while, jobs that complete, pods of others that come
and go, a node whose allocatable amounts change, one that is closed with its pods on it, one that is lost. What it does
not have is in no figure here: an API server that refuses, and places that are looked for again while victims go.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from slacktide import settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import PLACED
from slacktide.engine.journal.record import Recorder, sessions
from slacktide.engine.journal.to_workload import Made, as_workload
from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.rows import align
from slacktide.model import APPROACHES, DEFAULT_CLASSES
from slacktide.model.request_events import lost_in
from slacktide.sim import run
from slacktide.state.spec import Spec

BEGINNING = 1_790_000_000.0
GI = 2**30
KINDS = ("independent", "independent", "concurrent", "aggregated", "batch")
CLUSTER, WORKLOAD = 0, 1
"""Whose doing a loss is."""


@dataclass
class Kept:
    """A pod: ``leaves`` is when its grace period is over."""

    uid: str
    key: str
    spec: int
    host: str = ""
    bound: bool = False
    leaves: float = 0.0
    victims: set[str] = field(default_factory=set)
    left: float = np.inf
    """Seconds of work that are left."""
    since: float = np.inf


class Cluster:
    """Hosts, controllers, kubelets and others; what happens is told to ``engine``."""

    def __init__(self, engine: Engine, options: argparse.Namespace, seed: int, draw: int = 0) -> None:
        self.engine, self.options = engine, options
        self.random = np.random.default_rng([seed, draw])
        self.comings = np.random.default_rng([seed, 1 << 20])
        """Of what comes, and of what it wants: whatever is decided, this is the same."""
        self.events = np.random.default_rng([seed, 2 << 20])
        """Of what becomes of nodes, pods of others and probes, likewise."""
        self.now = BEGINNING
        self.ahead: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = count()
        self.pods: dict[str, Kept] = {}
        self.ran_on: set[tuple[str, str]] = set()
        self.wanted: dict[str, int] = {}
        self.others: dict[str, str] = {}
        self.shapes: list[Spec] = []
        self.amounts: dict[str, dict[str, int]] = {}
        self.preempted = 0
        self.last_pass = self.now

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.ahead, (self.now + max(0.0, seconds), next(self.numbers), what))

    def drawn(self, mean: float, random: np.random.Generator | None = None) -> float:
        return float((random or self.random).exponential(mean))

    # -- what is there ---------------------------------------------------------------------------------------------

    def begin(self) -> None:
        options = self.options
        for number in range(options.hosts):
            name = f"node-{number}"
            self.amounts[name] = {"cpu": 8000, "memory": 16 * GI, "pods": 110}
            self.engine.host(name, self.amounts[name], {"zone": "ab"[number % 2]}, True)
            self.stranger(name, 200, forever=True)
        for service in DEFAULT_CLASSES:
            for cpu in (250, 500, 1000, 2000):
                for grace in (5.0, 30.0) if options.grace else (0.0,):
                    spec = Spec((("cpu", cpu), ("memory", cpu * 2**20), ("pods", 1)), service, grace=grace)
                    self.engine.spec(len(self.shapes), spec)
                    self.shapes.append(spec)
        mean = float(np.mean([dict(one.demand)["cpu"] for one in self.shapes]))
        at_once = options.load * 8000 * options.hosts / mean
        for _ in range(int(at_once / options.replicas)):
            self.later(self.comings.uniform(0.0, 60.0), self.deploy)
        self.every(options.life / (at_once / options.replicas), self.deploy, self.comings)
        if options.others:
            seconds = 120.0 / options.hosts
            self.every(seconds, lambda: self.stranger(f"node-{self.events.integers(options.hosts)}", 0), self.events)
        if options.unready:
            self.every(options.unready, self.unready, self.events)
        if options.nodes:
            hour = options.seconds
            self.later(0.20 * hour, lambda: self.resize_node("node-0", 4000))
            self.later(0.60 * hour, lambda: self.resize_node("node-0", 8000))
            self.later(0.30 * hour, lambda: self.engine.host("node-1", self.amounts["node-1"], {"zone": "b"}, False))
            self.later(0.50 * hour, lambda: self.engine.host("node-1", self.amounts["node-1"], {"zone": "b"}, True))
            self.later(0.40 * hour, lambda: self.lose("node-2"))

    def every(self, seconds: float, what: Callable[[], None], random: np.random.Generator) -> None:
        def again() -> None:
            what()
            self.later(self.drawn(seconds, random), again)

        self.later(self.drawn(seconds, random), again)

    def resize_node(self, name: str, cpu: int) -> None:
        self.amounts[name] = {**self.amounts[name], "cpu": cpu}
        self.engine.host(name, self.amounts[name], {"zone": "a"}, True)

    def lose(self, name: str) -> None:
        self.engine.host(name, self.amounts[name], {"zone": "a"}, False)
        for pod in [one for one in self.pods.values() if one.host == name]:
            self.gone(pod, cause=CLUSTER)
        self.later(600.0, lambda: self.engine.host(name, self.amounts[name], {"zone": "a"}, True))

    def stranger(self, host: str, cpu: int, *, forever: bool = False) -> None:
        uid = f"other-{next(self.numbers)}"
        cpu = cpu or int(self.events.choice((250, 500, 1000)))
        self.engine.other(uid, host, {"cpu": cpu, "memory": cpu * 2**20, "pods": 1}, ())
        if not forever:
            self.later(self.drawn(360.0, self.events), lambda: self.engine.other_gone(uid))

    # -- controllers -----------------------------------------------------------------------------------------------

    def deploy(self) -> None:
        """A Deployment or a Job, until it is deleted or its pods complete."""
        key, spec = f"d{next(self.numbers)}", int(self.comings.integers(len(self.shapes)))
        replicas = 1 + int(self.comings.integers(2 * self.options.replicas - 1))
        kind = str(self.comings.choice(self.options.kinds))
        batch = kind == "batch"
        approach = APPROACHES.index("aggregated" if batch else kind)
        self.engine.controller(key, self.shapes[spec].service, approach, batch, False, self.now)
        self.wanted[key] = replicas
        self.engine.desired(key, replicas, self.now)
        for _ in range(replicas):
            self.arrive(key, spec, self.drawn(self.options.life, self.comings) if batch else np.inf)
        if not batch:
            self.later(self.drawn(self.options.life, self.comings), lambda: self.delete(key))

    def delete(self, key: str) -> None:
        self.wanted[key] = 0
        self.engine.desired(key, 0, self.now)
        for pod in [one for one in self.pods.values() if one.key == key]:
            self.gone(pod, cause=WORKLOAD)

    def arrive(self, key: str, spec: int, left: float) -> None:
        uid = f"p{next(self.numbers)}"
        self.pods[uid] = Kept(uid, key, spec, left=left)
        self.engine.arrive(uid, "", key, spec, self.now)
        self.engine.wake(uid)

    # -- pods ------------------------------------------------------------------------------------------------------

    def gone(self, pod: Kept, cause: int, *, completed: bool = False) -> None:
        if self.pods.pop(pod.uid, None) is None:
            return
        if completed:
            self.wanted[pod.key] -= 1
        self.engine.gone(pod.uid, self.now, completed, cause)
        for other in [one for one in self.pods.values() if pod.uid in one.victims]:
            other.victims.discard(pod.uid)
            self.bind(other)
        mine = sum(one.key == pod.key for one in self.pods.values())
        if not completed and mine < self.wanted[pod.key]:
            self.later(0.2 + self.drawn(0.3), lambda: self.replace(pod.key, pod.spec, pod.left))

    def replace(self, key: str, spec: int, left: float) -> None:
        if sum(one.key == key for one in self.pods.values()) < self.wanted[key]:
            self.arrive(key, spec, left)

    def bind(self, pod: Kept) -> None:
        """Its victims are gone, and it has room beside those that still go."""
        if pod.bound or pod.victims or not pod.host or not self.has_room(pod):
            return
        pod.bound = True
        self.engine.bound(pod.uid, self.now)
        hot = (pod.key, pod.host) in self.ran_on
        self.ran_on.add((pod.key, pod.host))
        delay = float(self.random.lognormal(np.log(2.0 if hot else 6.0), 0.4))
        self.later(delay, lambda: self.ready(pod))

    def has_room(self, pod: Kept) -> bool:
        going = sum(
            dict(self.shapes[one.spec].demand)["cpu"]
            for one in self.pods.values()
            if one.host == pod.host and one.leaves
        )
        free = self.engine.room(pod.host).get("cpu", 0) if pod.host in self.engine.hosts else 0
        return not going or free >= going

    def ready(self, pod: Kept) -> None:
        if pod.uid not in self.pods:
            return
        self.engine.ready(pod.uid, self.now)
        pod.since = self.now
        if pod.left < np.inf:
            self.later(pod.left, lambda: self.gone(pod, CLUSTER, completed=True))

    def unready(self) -> None:
        """One that runs fails its probe for a while, by its own doing, or as its node does not answer."""
        ready = [uid for uid in self.pods if self.engine.pods[uid].ready and self.engine.pods[uid].state == PLACED]
        if not ready:
            return
        pod = self.pods[str(self.random.choice(ready))]
        self.engine.blame(pod.uid, int(self.random.choice((CLUSTER, WORKLOAD))), self.now)
        self.engine.unready(pod.uid, self.now)
        self.later(self.drawn(20.0), lambda: self.ready_again(pod.uid))

    def ready_again(self, uid: str) -> None:
        if uid in self.pods:
            self.engine.ready(uid, self.now)

    # -- passes ----------------------------------------------------------------------------------------------------

    def decide(self) -> None:
        self.last_pass = self.now
        for decision in self.engine.run(self.now).decisions:
            pod = self.pods[decision.uid]
            pod.host, pod.bound = decision.host, False
            pod.victims = {victim.uid for victim in decision.victims}
            self.preempted += len(pod.victims)
            for uid in sorted(pod.victims):
                victim = self.pods[uid]
                grace = self.shapes[victim.spec].grace
                victim.leaves = self.now + grace * (1.0 if self.random.random() < 0.5 else self.random.random())
                self.later(victim.leaves - self.now, partial(self.gone, victim, CLUSTER))
            self.bind(pod)
        for pod in list(self.pods.values()):
            if pod.host and not pod.bound:
                self.bind(pod)

    def play(self, seconds: float) -> None:
        """What is due happens, then a pass, where somebody waits."""
        self.engine.run(self.now)
        end = BEGINNING + seconds
        while self.ahead and self.ahead[0][0] < end:
            at = self.ahead[0][0]
            if self.engine.anybody_waits() and self.last_pass + self.engine.config.scheduler.watchdog < at:
                self.now = self.last_pass + self.engine.config.scheduler.watchdog
                self.decide()
                continue
            self.now = at
            while self.ahead and self.ahead[0][0] <= at:
                heapq.heappop(self.ahead)[2]()
            if self.engine.anybody_waits():
                self.decide()
        self.now = end
        self.engine.run(end)


def simulated(out: Path, *words: str) -> tuple[dict[str, float], int]:
    """By class the share of its instances' time in which they ran, and how many were preempted."""
    config = settings.load(out / "settings.json", overrides=words)
    workload = read_workload(out / "workload.parquet", classes=config.classes)
    workload, hosts = align(workload, read_hosts(out / "hosts.parquet"))
    result = run(workload, hosts, config)
    rows = result.requests if result.instances is None else result.instances
    admission = rows["admission"] if "admission" in rows else workload.admission[rows["row"]]
    until = np.where(np.isnan(rows["completed"]), result.end, rows["completed"])
    if "removed" in rows:
        until = np.where(np.isnan(rows["removed"]), until, rows["removed"])
    cls = workload.service_class[rows["row"]]
    ran, lived = rows["running"], until - np.maximum(admission, 0.0)
    if workload.lost is not None:
        before = np.array([lost_in(past) for past in workload.losses])[workload.lost[rows["row"]]]
        ran = ran - np.where(admission < 0.0, -admission - before, 0.0)
    shares = {
        service.name: float(ran[cls == c].sum() / lived[cls == c].sum())
        for c, service in enumerate(workload.classes)
        if (cls == c).any()
    }
    return shares, result.preemptions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--load", type=float, default=1.1, help="demand of CPU over what there is")
    parser.add_argument("--life", type=float, default=900.0, help="mean seconds of a Deployment, or of a Job's work")
    parser.add_argument("--replicas", type=int, default=2, help="mean number of pods of each")
    parser.add_argument("--unready", type=float, default=60.0, help="mean seconds between pods that fail their probe")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--draws", type=int, default=5, help="simulations of each record, each draws start-ups anew")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=sorted(set(KINDS)), help="approaches, and Jobs")
    for name in ("grace", "others", "nodes"):
        parser.add_argument(f"--no-{name}", dest=name, action="store_false")
    parser.add_argument("--set", dest="words", action="append", default=[], help="a setting of the scheduler")
    parser.add_argument(
        "--what-if",
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="simulate with this other setting, and compare with the cluster when it is run with it: the same comes",
    )
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    compare = other_settings if options.what_if else as_it_was
    heads = {
        as_it_was: ["recorded", "simulated", "difference", "sd", "at recorded passes", "difference", "sd"],
        other_settings: ["recorded", "run with the other settings", "sd", "simulated with them", "difference", "sd"],
    }[compare]
    print(f"| seed | class | {' | '.join(heads)} |")
    print("|---" * (len(heads) + 2) + "|")
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            for name, values in compare(options, seed, (options.keep or Path(folder)) / str(seed)).items():
                print(f"| {seed} | {name} | {' | '.join(values)} |", flush=True)
            print(f"seed {seed}: {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    return 0


def recorded(options: argparse.Namespace, words: list[str], seed: int, draw: int, folder: Path) -> tuple[Made, int]:
    """A record of the cluster under settings, as a workload, and how many pods were preempted."""
    config = settings.load_live(overrides=words)
    with Recorder(folder / "record", config) as recorder:
        cluster = Cluster(Engine(config, journal=recorder), options, seed, draw)
        cluster.begin()
        cluster.play(options.seconds)
    return as_workload(sessions(folder / "record")[0], folder / "out"), cluster.preempted


def as_it_was(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, list[str]]:
    """Cells of a row for each class: as recorded, and as simulated, with passes by events and at those recorded."""
    made, preempted = recorded(options, options.words, seed, 0, folder)
    cells = {name: [f"{share:.4f}"] for name, share in made.delivered.items()}
    cells["preemptions"] = [f"{preempted:,}"]
    for words in ((), (f"scheduler.triggers={folder / 'out/triggers.csv'}",)):
        shares, number = simulations(options, folder, words)
        add_differences(cells, made.delivered, preempted, shares, number)
    return cells


def other_settings(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, list[str]]:
    """Cells of a row for each class: as recorded, as run with the other settings (the mean of runs that differ in the
    delays drawn), and the record as simulated with them."""
    made, preempted = recorded(options, options.words, seed, 0, folder)
    words = [*options.words, *options.what_if]
    runs = [recorded(options, words, seed, 1 + draw, folder / f"other-{draw}") for draw in range(options.draws)]
    really = {name: np.array([one.delivered[name] for one, _ in runs]) for name in made.delivered}
    went = np.array([number for _, number in runs])
    cells = {
        name: [f"{made.delivered[name]:.4f}", f"{found.mean():.4f}", f"{found.std():.4f}"]
        for name, found in really.items()
    }
    spread = 100 * went.std() / max(1.0, went.mean())
    cells["preemptions"] = [f"{preempted:,}", f"{went.mean():,.0f}", f"{spread:.1f} %"]
    shares, number = simulations(options, folder, tuple(options.what_if))
    expected = {name: float(found.mean()) for name, found in really.items()}
    add_differences(cells, expected, float(went.mean()), shares, number)
    return cells


def simulations(
    options: argparse.Namespace, folder: Path, words: tuple[str, ...]
) -> tuple[list[dict[str, float]], list[int]]:
    """By class what was delivered, and how many were preempted, in each simulation of the record in ``folder``."""
    runs = [simulated(folder / "out", *words, f"simulation.seed={draw}") for draw in range(options.draws)]
    return [shares for shares, _ in runs], [number for _, number in runs]


def add_differences(
    cells: dict[str, list[str]],
    expected: dict[str, float],
    preempted: float,
    shares: list[dict[str, float]],
    numbers: list[int],
) -> None:
    """Cells of simulations: their mean, how far it is from what was expected, and their standard deviation."""
    for name, share in expected.items():
        found = np.array([one[name] for one in shares])
        cells[name] += [f"{found.mean():.4f}", f"{found.mean() - share:+.4f}", f"{found.std():.4f}"]
    over = np.array(numbers) / max(1.0, preempted) - 1.0
    cells["preemptions"] += [f"{np.mean(numbers):,.0f}", f"{100 * over.mean():+.1f} %", f"{100 * over.std():.1f} %"]


if __name__ == "__main__":
    sys.exit(main())
