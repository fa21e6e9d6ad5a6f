"""A disruption is counted until its pod's successor is ready, at whatever moment one leader dies and another comes.

Every order is played of what may happen to a workload of three pods of which one is preempted, or moved: the ledger is
written, the eviction arrives (perhaps long after the leader that sent it died), the next pod is created, the old one is
gone, the next one is bound, and is ready. The leader dies anywhere in it, and the new one lists pods anywhere later.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations

import pytest

from engine.workbench import BRONZE, GOLD, T0, settings
from slacktide.engine.core import disruptions, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.restore import restore
from slacktide.kernels.feasible import disruption_limits
from slacktide.kernels.tables import limit_records
from slacktide.model import APPROACHES, DisruptionLimits
from slacktide.state.spec import Spec

WEB, VICTIM, NEXT, UNREADY = "web", "web-a", "web-d", "web-b"
ROOM = (("cpu", 1000), ("memory", 2**20), ("pods", 1))
COOLDOWN = 5.0
STEPS = ("evicted", "created", "gone", "bound", "ready")
BEFORE = {"created": ("evicted",), "gone": ("evicted",), "bound": ("created",), "ready": ("bound",)}
ORDERS = [
    order
    for order in permutations(STEPS)
    if all(order.index(first) < order.index(step) for step, sooner in BEFORE.items() for first in sooner)
]


@dataclass
class Seen:
    """A pod as the API server has it."""

    created: float
    host: str = ""
    since: float | None = None
    ready: float | None = None
    leaving: bool = False

    def now(self, uid: str) -> dict[str, object]:
        return {
            "uid": uid, "name": uid, "spec": 1, "created": self.created, "host": self.host, "since": self.since,
            "ready": self.ready is not None, "ready_since": self.ready, "leaving": self.leaving,
        }  # fmt: skip


def engine_of(approach: str, limits: DisruptionLimits) -> Engine:
    config = settings()
    engine = Engine(replace(config, policy=replace(config.policy, name="priority")))
    for i in range(4):
        engine.host(f"node-{i}", {"cpu": 1000, "memory": 2**33, "pods": 9}, {}, True)
    for number, service in enumerate((GOLD, BRONZE)):
        engine.spec(number, Spec(ROOM, service))
    engine.controller(WEB, BRONZE, APPROACHES.index(approach), False)
    engine.limits(WEB, limits, T0)
    engine.desired(WEB, 3, T0)
    engine.controller("gold", GOLD, 0, False)
    return engine


@dataclass
class Story:
    """One order of events. ``dies``, ``listed``: after how many steps the leader dies, and the next one lists pods."""

    approach: str
    moved: bool
    crashing: bool
    order: tuple[str, ...]
    written: int
    dies: int
    listed: int
    pods: dict[str, Seen] = field(default_factory=dict)
    t: float = 30.0
    ended: float | None = None

    def play(self) -> None:
        engine = self.begin()
        books = self.write(engine)
        for step, what in enumerate(self.order):
            if step == self.dies:
                self.t += 4.0
            if step == self.listed:
                engine = self.next_leader(books)
            self.t += 1.0
            self.happens(what)
            if step < self.dies or step >= self.listed:
                self.tell(engine, what)
                self.check(engine)
            if step + 1 <= min(self.written, self.dies):
                books = self.write(engine)
        if self.listed == len(self.order):
            engine = self.next_leader(books)
        self.check_the_end(engine)

    def begin(self) -> Engine:
        """Three pods run, one of which may crash all the time; one is told to go."""
        engine = engine_of(self.approach, DisruptionLimits(cooldown=COOLDOWN))
        for i, uid in enumerate((VICTIM, UNREADY, "web-c")):
            self.pods[uid] = Seen(T0, f"node-{i}", T0, T0 + 1.0)
            engine.found(uid, uid, WEB, 1, f"node-{i}", T0)
            engine.ready(uid, T0 + 1.0)
        if self.crashing:
            self.pods[UNREADY].ready = None
            engine.unready(UNREADY, T0 + 2.0)
        if self.moved:
            engine.displace(VICTIM, T0 + self.t)
            return engine
        engine.host("node-3", {"cpu": 0, "memory": 0, "pods": 0}, {}, False)
        for name in ("node-1", "node-2"):
            engine.host(name, {"cpu": 1000, "memory": 2**33, "pods": 9}, {}, False)
        engine.arrive("gold-1", "gold-1", "gold", 0, T0 + self.t)
        engine.wake("gold-1")
        assert [victim.uid for one in engine.run(T0 + self.t).decisions for victim in one.victims] == [VICTIM]
        return engine

    def write(self, engine: Engine) -> dict[str, object]:
        return dict(json.loads(json.dumps(export(engine, WEB, T0 + self.t))))

    def next_leader(self, books: dict[str, object]) -> Engine:
        engine = engine_of(self.approach, DisruptionLimits(cooldown=COOLDOWN))
        restore(engine, WEB, books, [one.now(uid) for uid, one in self.pods.items()], T0 + self.t)
        self.check(engine)
        return engine

    def happens(self, what: str) -> None:
        at = T0 + self.t
        if what == "evicted":
            self.pods[VICTIM].leaving = True
        elif what == "created":
            self.pods[NEXT] = Seen(at)
        elif what == "gone":
            del self.pods[VICTIM]
        elif what == "bound":
            self.pods[NEXT].host, self.pods[NEXT].since = "node-3", at
        else:
            self.pods[NEXT].ready = at
            self.ended = at

    def tell(self, engine: Engine, what: str) -> None:
        """As the feed tells it; a successor whose predecessor was preempted in this term waits for its end."""
        at = T0 + self.t
        held = VICTIM in engine.pods and engine.pods[VICTIM].state == types.LEAVING
        if what == "evicted":
            engine.doomed(VICTIM)
        elif what == "gone":
            engine.gone(VICTIM, at)
            if NEXT in self.pods and NEXT not in engine.pods:
                self.comes(engine)
        elif not held:
            if NEXT not in engine.pods:
                engine.arrive(NEXT, NEXT, WEB, 1, at)
            if what == "bound":
                engine.bound_elsewhere(NEXT, "node-3", at)
            elif what == "ready":
                engine.ready(NEXT, at)

    def comes(self, engine: Engine) -> None:
        one, at = self.pods[NEXT], T0 + self.t
        engine.arrive(NEXT, NEXT, WEB, 1, at)
        if one.host:
            engine.bound_elsewhere(NEXT, one.host, at)
        if one.ready is not None:
            engine.ready(NEXT, at)

    def in_force(self, engine: Engine, now: float) -> int:
        row = engine.pods["web-c"].row
        return int(disruption_limits.limit_in_force(engine.tables.tb.state, row, now))

    def check(self, engine: Engine) -> None:
        """Nobody of the workload may be disrupted, however long it takes until the successor is ready."""
        now = T0 + self.t
        if self.ended is None:
            told = "evicted" in self.order[: self.order.index(self.next_step())]
            later = 3600.0 if told else disruptions.ARRIVES_SECONDS - 1.0
            assert self.in_force(engine, now + later) == limit_records.COOLING, self
        assert self.in_force(engine, (self.ended or now) + COOLDOWN - 0.1) == limit_records.COOLING, self

    def next_step(self) -> str:
        done = {"evicted": VICTIM not in self.pods or self.pods[VICTIM].leaving, "created": NEXT in self.pods}
        done |= {"gone": VICTIM not in self.pods, "bound": NEXT in self.pods and bool(self.pods[NEXT].host)}
        return next(step for step in self.order if not done.get(step, self.ended is not None))

    def check_the_end(self, engine: Engine) -> None:
        """Once the successor is ready, and the old pod is gone, the cooldown passes."""
        self.t += 60.0
        if self.moved or VICTIM not in self.pods:
            engine.run(T0 + self.t)
            assert self.in_force(engine, T0 + self.t + COOLDOWN) == limit_records.ALLOWED, self
        found = disruptions.suffered(engine.instances, engine.controllers[WEB])
        assert found is not None
        assert (found.recovering, found.told) == (0, ()), self


def stories(approach: str, moved: bool, crashing: bool) -> Iterator[Story]:
    for order in ORDERS:
        for dies in range(len(order) + 1):
            for listed in range(dies, len(order) + 1):
                for written in range(dies + 1):
                    yield Story(approach, moved, crashing, order, written, dies, listed)


@pytest.mark.parametrize("crashing", [False, True], ids=["", "another crashes"])
@pytest.mark.parametrize("moved", [False, True], ids=["preempted", "moved"])
@pytest.mark.parametrize("approach", ["independent", "aggregated"])
def test_a_disruption_is_counted_until_the_next_pod_is_ready(approach: str, moved: bool, crashing: bool) -> None:
    count = 0
    for story in stories(approach, moved, crashing):
        story.play()
        count += 1
    assert count > 100
