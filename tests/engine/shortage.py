"""Equal Deployments of one pod each that ask for more places than there are, on an engine, second by second."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from engine.workbench import T0
from slacktide.config import Config
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Journal
from slacktide.engine.core.types import Decision
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.overview import STATES, overview
from slacktide.engine.ledger.restore import restore
from slacktide.model import ServiceClass, Window
from slacktide.state.spec import Spec

MINUTES = ServiceClass("gold", 0.9, 2, window=Window(rolling=120.0))
URGENT = ServiceClass("urgent", 0.9, 1, window=Window(rolling=120.0))
DEMAND = (("cpu", 1000), ("memory", 2**30), ("pods", 1))
STARTUP = 2.0


def live_settings(overload: Literal["plan", "triage"] = "plan") -> Config:
    """Where a start is expected to take as long as it does."""
    config = Config()
    policy = replace(config.policy, overload=overload)
    return replace(config, qos=replace(config.qos, alpha=STARTUP), policy=policy)


class Shortage:
    """``services`` compete for ``places``; those in ``bare`` (by number) are pods that nobody makes again."""

    def __init__(
        self,
        services: int = 9,
        places: int = 8,
        service: ServiceClass = MINUTES,
        bare: Sequence[int] = (),
        journal: Journal | None = None,
        overload: Literal["plan", "triage"] = "plan",
    ) -> None:
        self.config, self.service, self.bare = live_settings(overload), service, set(bare)
        self.hosts = [f"node-{i}" for i in range(places)]
        self.keys = [f"Deployment/shop/s{i}/uid-{i}" for i in range(services)]
        self.now, self.number = T0, 0
        self.starting: dict[str, float] = {}
        self.created: dict[str, float] = {}
        self.decisions: list[Decision] = []
        self.lost: list[str] = []
        """Keys of bare pods that were preempted."""
        self.displaced: set[str] = set()
        """Keys of all that were."""
        self.engine = self.new_engine(journal)
        for key in self.keys:
            self.make(key)

    def new_engine(self, journal: Journal | None = None) -> Engine:
        engine = Engine(self.config, journal)
        for name in self.hosts:
            self._host(name, engine)
        for number in range(2):
            engine.spec(number, Spec(DEMAND, self.service, bare=bool(number)))
        engine.spec(2, Spec(DEMAND, URGENT))
        for key in self.keys:
            engine.controller(key, self.service, 0, False, at=self.now)
            engine.desired(key, 1, self.now)
        return engine

    def add_host(self, name: str) -> None:
        self.hosts.append(name)
        self._host(name, self.engine)

    def _host(self, name: str, engine: Engine) -> None:
        engine.host(name, {"cpu": 1000, "memory": 2**33, "pods": 10}, {}, True)

    def make(self, key: str) -> None:
        self.number += 1
        uid = f"p{self.number}"
        self.created[uid] = self.now
        self.engine.arrive(uid, uid, key, int(self.keys.index(key) in self.bare), self.now)
        self.engine.wake(uid)

    def make_urgent(self) -> None:
        """A more important service comes."""
        key, self.number = f"Deployment/shop/urgent-{self.number}/uid", self.number + 1
        self.engine.controller(key, URGENT, 0, False, at=self.now)
        self.engine.arrive(f"p{self.number}", f"p{self.number}", key, 2, self.now)
        self.engine.wake(f"p{self.number}")

    def run(self, seconds: float) -> None:
        """Time goes on by whole seconds; with each there is a pass, and pods become ready that have started."""
        for _ in range(int(seconds)):
            self.now += 1.0
            for uid in [uid for uid, at in self.starting.items() if at <= self.now]:
                del self.starting[uid]
                if uid in self.engine.pods:
                    self.engine.ready(uid, self.now)
            for decision in self.engine.run(self.now).decisions:
                self.carry_out(decision)

    def carry_out(self, decision: Decision) -> None:
        self.decisions.append(decision)
        for victim in decision.victims:
            key = self.engine.pods[victim.uid].key
            self.displaced.add(key)
            self.engine.gone(victim.uid, self.now)
            if self.keys.index(key) in self.bare:
                self.engine.desired(key, 0, self.now)
                self.lost.append(key)
            else:
                self.make(key)
        self.engine.bound(decision.uid, self.now)
        self.starting[decision.uid] = self.now + STARTUP

    def states(self) -> list[str]:
        """How each promise stands, in the order of the keys."""
        return [STATES[one] for one in overview(self.engine, self.now, self.keys).state.tolist()]

    def given_up(self) -> list[str]:
        return sorted(self.engine.plans.since)

    def waiting(self) -> list[str]:
        """Keys of those whose pods wait."""
        return sorted(self.engine.pods[uid].key for uid in self.engine.waiting())

    def lead_anew(self, away: float, journal: Journal | None = None) -> None:
        """Another engine goes on from the ledgers, as nothing changed for so many seconds."""
        old, at = self.engine, self.now
        books = {key: json.loads(json.dumps(export(old, key, at))) for key in self.keys}
        seen = {key: [self._pod(one) for one in old.pods.values() if one.key == key] for key in self.keys}
        self.now += away
        self.engine = self.new_engine(journal)
        for key in self.keys:
            restore(self.engine, key, books[key], seen[key], self.now)
        for one in list(self.engine.pods.values()):
            if one.state == types.ASLEEP:
                self.engine.wake(one.uid)

    def _pod(self, one: types.Pod) -> dict[str, Any]:
        instance = self.engine.tables.tb["instances"][one.row]
        since = float(instance["since"]) if one.bound else None
        ready = since + float(instance["startup"]) if since is not None and one.ready else since
        return {
            "uid": one.uid, "name": one.name, "spec": one.spec, "created": self.created[one.uid],
            "host": one.host if one.bound else "", "since": since, "ready": one.ready, "ready_since": ready,
            "leaving": False,
        }  # fmt: skip
