"""A cluster of any size in an engine of its own, watched as a scheduler is; pods come, go and are preempted."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable

from slacktide import settings
from slacktide.dashboard.hub import Hub
from slacktide.dashboard.live import Elsewhere, Live
from slacktide.dashboard.view import Head
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Decided, Operation
from slacktide.engine.explain.reasons import Explainer
from slacktide.model import ServiceClass
from slacktide.state.spec import Spec

CLASSES = (ServiceClass("gold", 0.999, 1), ServiceClass("silver", 0.95, 2), ServiceClass("bronze", 0.5, 3))
PER_WORKLOAD = 10
CORES = 11
"""Of a node, in whole CPUs; a pod takes one, so that a node has room for one more than ten."""


class MadeCluster:
    """``nodes`` nodes and ``pods`` pods of one core each, in workloads of ten; all of them run at first."""

    def __init__(self, nodes: int, pods: int, seed: int = 0) -> None:
        self._chance = random.Random(seed)
        self.live = Live(self)
        self.hub = Hub(self.live, lambda: "")
        self.engine = Engine(settings.load(), self._heard)
        self._explainer = Explainer(self.engine)
        self._began = time.time()
        self._count = 0
        self._surged: set[str] = set()
        self.running: list[str] = []
        for n in range(nodes):
            self.engine.host(f"node-{n}", {"cpu": CORES, "pods": 110}, {}, True)
        for number, service in enumerate(CLASSES):
            self.engine.spec(number, Spec((("cpu", 1), ("pods", 1)), service))
        for p in range(pods):
            self._place(p, f"node-{p % nodes}")

    def _heard(self, operation: Operation) -> None:
        self.live.heard(operation)
        if isinstance(operation, Decided):
            for one in operation.outcome.decisions:
                self.live.decided(one)

    def _key(self, number: int) -> str:
        key = f"Deployment/ns-{number % 20}/app-{number}/uid-{number}"
        if key not in self.engine.controllers:
            self.engine.controller(key, CLASSES[number % 3], 2 * (number % 2), False, at=self.clock())
        return key

    def _place(self, p: int, host: str) -> None:
        number = p // PER_WORKLOAD
        uid = f"pod-{p}"
        self.engine.found(uid, f"app-{number}-{p:05d}", self._key(number), number % 3, host, self.clock() - 100.0)
        self.engine.ready(uid, self.clock() - 90.0)
        self.running.append(uid)

    def churn(self, many: int) -> None:
        """So many pods go, their successors come, and a pass places whom it can; bursts of gold preempt bronze."""
        now = self.clock()
        for _ in range(many):
            at = self._chance.randrange(len(self.running))
            self.running[at], self.running[-1] = self.running[-1], self.running[at]
            self._replace(self.running.pop(), now)
        outcome = self.engine.run(now)
        for decision in outcome.decisions:
            for victim in decision.victims:
                if victim.uid in self.engine.pods:
                    self.running = [one for one in self.running if one != victim.uid]
                    self._replace(victim.uid, now)
            self.engine.bound(decision.uid, now)
            self.engine.ready(decision.uid, now)
            self.running.append(decision.uid)

    def _replace(self, uid: str, now: float) -> None:
        pod = self.engine.pods[uid]
        key, spec = pod.key, pod.spec
        self.engine.gone(uid, now)
        if uid in self._surged:
            return
        self._count += 1
        new = f"new-{self._count}"
        self.engine.arrive(new, f"{key.split('/')[2]}-n{self._count:05d}", key, spec, now)
        self.engine.wake(new)

    def surge(self, many: int) -> None:
        """So many gold pods come, and those of the surge before go: as many pods are there as ever."""
        now = self.clock()
        for uid in self._surged & self.engine.pods.keys():
            self.engine.gone(uid, now)
        self.running = [one for one in self.running if one not in self._surged]
        self._surged.clear()
        for _ in range(many):
            self._count += 1
            uid = f"new-{self._count}"
            self._surged.add(uid)
            self.engine.arrive(uid, f"surge-{self._count:05d}", self._key(30_000 * 3), 0, now)
            self.engine.wake(uid)

    # -- slacktide.dashboard.live.Watched --------------------------------------------------------------------------

    def clock(self) -> float:
        return time.time()

    async def between_passes(self) -> None:
        await asyncio.sleep(0)

    def reason(self, uid: str) -> str:
        return self._explainer.reason(uid, self.clock())

    def elsewhere(self) -> Iterable[Elsewhere]:
        return ()

    def sentences(self) -> list[str]:
        return []

    def head(self) -> Head:
        return Head("scheduler", "a made cluster", "qos-driven", "epoch")
