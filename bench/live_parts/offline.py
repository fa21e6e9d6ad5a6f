"""What needs no cluster: a pass over many who wait, and a day of churn."""

from __future__ import annotations

import asyncio
import gc
import heapq
import itertools
import random
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from slacktide.config import Config
from slacktide.engine.core import operations, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision, Outcome
from slacktide.engine.warm_up import warm
from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.client.turns import Turns
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.observe.dashboard import PodHistory
from slacktide.kube.observe.metrics import Meter
from slacktide.kube.resources import objects
from slacktide.model import ServiceClass
from slacktide.settings import load_live
from slacktide.state.spec import Spec

HOUR = 3600.0
START = 1.8e9
HIGH, LOW = ServiceClass("high", 1.0, 1), ServiceClass("low", 0.5, 3)


def settings(policy: str) -> Config:
    """The live settings with a policy."""
    return load_live(None, None, [f"policy.name={policy}"])


def ready() -> None:
    """Compile where that is still to be done, so that no measurement contains it."""
    for policy in ("priority", "qos-driven"):
        warm(settings(policy))


def demand(cpu: int, memory: int) -> tuple[tuple[str, int], ...]:
    return (("cpu", cpu), ("memory", memory), ("pods", 1))


@dataclass(frozen=True)
class Pass:
    """Processor seconds of a pass over all that wait, and of the next, in which nothing has changed.

    ``longest`` is what the event loop waits for at a time while such a pass is left and resumed, as live, its decisions
    counted for the metrics and remembered for /explain.
    """

    first: float
    longest: float
    second: float
    placed: int
    preempted: int


def passes(policy: str, nodes: int, pods: int, *, full: bool) -> Pass:
    """``pods`` wait at once on ``nodes`` nodes of 4 cores: empty, or full of low pods that have run for an hour."""
    config = settings(policy)
    warm(config)
    engine = crowd(config, nodes, pods, full=full)
    began = time.process_time()
    outcome = engine.run(START + HOUR)
    between = time.process_time()
    engine.run(START + HOUR + 1)
    after = time.process_time()
    longest = asyncio.run(longest_stall(crowd(config, nodes, pods, full=full), config))
    preempted = sum(len(one.victims) for one in outcome.decisions)
    return Pass(between - began, longest, after - between, len(outcome.decisions), preempted)


class Pages:
    """What the live scheduler keeps for its pages, from what it has heard of an engine and its pass."""

    def __init__(self, engine: Engine) -> None:
        self._meter = Meter(lambda: engine)
        self._memory = PodHistory(lambda uid: ("bench", uid))
        for uid, pod in engine.pods.items():
            if pod.state == types.WAITING:
                self._meter(operations.Arrive(uid, pod.name, pod.key, pod.spec, START + HOUR, pod.budget))
                self._meter(operations.Wake(uid))
        self._meter(operations.Run(START + HOUR))
        self._memory(operations.Run(START + HOUR))

    def passed(self, outcome: Outcome) -> None:
        """Hear of the end of a pass."""
        self._meter.passed(outcome)

    def decided(self, decision: Decision) -> None:
        """Hear of one decision of it."""
        self._meter.decided(decision)
        self._memory.decided(decision)


def told(engine: Engine, turns: Turns, pages: Pages) -> Generator[None, None, None]:
    """A pass part by part, and then what pages hear of it."""
    outcome = yield from engine.run_in_parts(START + HOUR, turns.allowance)
    pages.passed(outcome)
    for decision in outcome.decisions:
        pages.decided(decision)
        yield


async def longest_stall(engine: Engine, config: Config) -> float:
    """Processor seconds between two turns of others at the most, in a pass during which no garbage is collected."""
    longest = before = 0.0

    async def others() -> None:
        nonlocal longest, before
        while True:
            now = time.process_time()
            longest, before = max(longest, now - (before or now)), now
            await asyncio.sleep(0)

    pages = Pages(engine)
    gc.collect()
    gc.disable()
    watching = asyncio.get_running_loop().create_task(others())
    await asyncio.sleep(0)
    turns = Turns(config.kube.pass_budget)
    await turns.through(told(engine, turns, pages))
    await asyncio.sleep(0)
    watching.cancel()
    gc.enable()
    return longest


def crowd(config: Config, nodes: int, pods: int, *, full: bool) -> Engine:
    """All that a pass finds."""
    engine = Engine(config)
    for number in range(nodes):
        engine.host(f"node-{number}", {"cpu": 4000, "memory": 2**34, "pods": 110}, {}, True)
    engine.spec(0, Spec(demand(1000, 2**27), LOW))
    engine.spec(1, Spec(demand(1000, 2**27), HIGH))
    for number in range(nodes * 4 if full else 0):
        engine.controller(f"l{number}", LOW, 0, False)
        engine.found(f"l{number}", "l", f"l{number}", 0, f"node-{number // 4}", START)
        engine.ready(f"l{number}", START)
    engine.run(START)  # all that this tells is old to the pass that is measured
    for number in range(pods):
        engine.controller(f"h{number}", HIGH, 0, False)
        engine.arrive(f"h{number}", "h", f"h{number}", 1, START + HOUR)
        engine.wake(f"h{number}")
    return engine


def resident() -> float:
    """Memory of this process now, MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Day:
    """Controllers come and go, each with a template of its own; pods as the API server's watch would tell them."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        config = settings("qos-driven")
        warm(config)
        self.now = START
        self.mirror = ClusterMirror(config, lambda: self.now)
        self.engine = Engine(config)
        self.mirror.follow(LiveFeed(self.mirror, self.engine, FeedListener(), lambda: self.now, lambda: 0.0))
        self.chance = random.Random(seed)
        self.numbers = itertools.count()
        self.pods: dict[str, dict[str, Any]] = {}
        self.of: dict[str, list[str]] = {}
        self.came = 0
        for name, slo, rank in (("high", 1.0, 1), ("low", 0.5, 3)):
            body = {"metadata": {"name": name, "uid": name}, "spec": {"slo": slo, "rank": rank}}
            self.mirror.on_class_update(_decoded(objects.SERVICE_CLASS, body))
        for number in range(nodes):
            labels = {"node-restriction.kubernetes.io/slacktide": "true", "kubernetes.io/hostname": f"node-{number}"}
            room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
            status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
            body = {"metadata": {"name": f"node-{number}", "uid": f"n{number}", "labels": labels}, "status": status}
            self.mirror.on_node_update(_decoded(objects.NODE, body))

    def hours(self, hours: int, controllers_an_hour: int, pods_each: int) -> Iterator[tuple[int, float, int]]:
        """The hour, memory at its end and pods until then."""
        due: list[tuple[float, int, str]] = []
        for number in range(hours * controllers_an_hour):
            self.now = START + number * HOUR / controllers_an_hour
            while due and due[0][0] <= self.now:
                self._end(heapq.heappop(due)[2])
            uid = self._begin(pods_each)
            heapq.heappush(due, (self.now + self.chance.expovariate(1 / 1800), number, uid))
            self._decide()
            if (number + 1) % controllers_an_hour == 0:
                yield (number + 1) // controllers_an_hour, resident(), self.came

    def _begin(self, pods: int) -> str:
        number = next(self.numbers)
        uid, name = f"rs-{number}", f"app-{number}"
        owner = {"metadata": {"name": name, "namespace": "bench", "uid": uid}, "spec": {"replicas": pods}}
        self.mirror.on_controller_update(_decoded(objects.REPLICA_SET, owner), "apps/v1", "ReplicaSet", pods)
        cpu, memory = self.chance.randint(50, 900), self.chance.randint(50, 900)
        term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        for _ in range(pods):
            self._pod(name, uid, f"{cpu}m", f"{memory}Mi", affinity if number % 4 == 0 else {})
        return uid

    def _pod(self, name: str, owner: str, cpu: str, memory: str, affinity: dict[str, Any]) -> None:
        number = next(self.numbers)
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owner, "controller": True}
        labels = {"app": name, "slacktide.io/class": self.chance.choice(("high", "low"))}
        metadata = {"name": f"{name}-{number}", "namespace": "bench", "uid": f"p{number}", "labels": labels,
                    "ownerReferences": [reference]}  # fmt: skip
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]
        spec = {"schedulerName": "slacktide", "containers": containers, "affinity": affinity}
        pod = self.pods[f"p{number}"] = {"metadata": metadata, "spec": spec, "status": {}}
        self.of.setdefault(owner, []).append(f"p{number}")
        self.came += 1
        self._tell(pod)

    def _tell(self, pod: dict[str, Any]) -> None:
        self.mirror.on_pod_update(_decoded(objects.POD, pod))

    def _decide(self) -> None:
        for decision in self.engine.run(self.now).decisions:
            for victim in decision.victims:
                self._gone(victim.uid)
            pod = self.pods[decision.uid]
            pod["spec"]["nodeName"] = decision.host
            self._tell(pod)
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            self._tell(pod)

    def _gone(self, uid: str) -> None:
        metadata = self.pods.pop(uid)["metadata"]
        owner = metadata["ownerReferences"][0]["uid"]
        self.of[owner].remove(uid)
        self.mirror.on_pod_delete(Identity("bench", metadata["name"], uid, ""), None)

    def _end(self, owner: str) -> None:
        self.mirror.on_controller_delete(owner)
        for uid in tuple(self.of[owner]):
            self._gone(uid)
        del self.of[owner]


def _decoded(kind: Any, body: dict[str, Any]) -> Any:
    found = kind.decode(msgspec.json.encode(body))
    if isinstance(found, Malformed):
        raise TypeError(found.problem)
    return found
