"""A small cluster whose pods carry timestamps of one second, and an engine that saw all of it."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field
from typing import Any

from engine.workbench import CLASSES, T0, approach_of, engine_with
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.restore import restore


@dataclass
class Pod:
    """What an API server knows of a pod; instants as offsets from T0, exact ones here."""

    uid: str
    name: str
    created: float
    host: str = ""
    since: float | None = None
    ready: bool = False
    ready_since: float | None = None
    changes: int = 0  # of readiness, in the gap
    deleted: bool = False
    ended: float | None = None

    def now(self) -> dict[str, Any]:
        """With the resolution of an API server."""
        seconds = {
            name: None if at is None else float(math.floor(T0 + at))
            for name, at in (("created", self.created), ("since", self.since), ("ready_since", self.ready_since))
        }
        ended = None if self.ended is None else float(math.floor(T0 + self.ended))
        about = {"uid": self.uid, "name": self.name, "spec": 2, "host": self.host, "ready": self.ready}
        return {**about, **seconds, "leaving": self.deleted, "ended": ended, "completed": self.ended is not None}


@dataclass
class Gap:
    """One controller of ``kind``; everything that happens is told to ``engine``, which is never down."""

    seed: int
    kind: str
    named: bool  # like a StatefulSet's: a replacement has the name of what it replaces
    t: float = 0.0
    pods: dict[str, Pod] = field(default_factory=dict)
    number: int = 0
    down: bool = False
    grows: bool = False
    up_before: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.engine = fresh(self.kind)

    def do(self, name: str, *arguments: Any) -> None:
        getattr(self.engine, name)(*arguments)

    def create(self, name: str = "") -> Pod:
        self.number += 1
        name = name or f"pod-{self.number}"
        pod = self.pods[f"uid-{self.number}"] = Pod(f"uid-{self.number}", name, self.t)
        self.do("arrive", pod.uid, pod.name, "c", 2, T0 + self.t)
        return pod

    def bind(self, pod: Pod) -> None:
        pod.host, pod.since = f"node-{self.random.randrange(3)}", self.t
        self.do("bound_elsewhere", pod.uid, pod.host, T0 + self.t)

    def set_ready(self, pod: Pod, ready: bool) -> None:
        pod.ready, pod.ready_since = ready, self.t
        pod.changes += self.down
        self.do("ready" if ready else "unready", pod.uid, T0 + self.t)

    def replace(self, pod: Pod) -> None:
        """Deleted without grace, and created again at once."""
        del self.pods[pod.uid]
        self.do("gone", pod.uid, T0 + self.t)
        new = self.create(pod.name if self.named else "")
        if self.down:
            self.replaced.add(new.uid)

    def step(self) -> None:
        rng = self.random
        self.t += rng.randint(1, 2**13) / 2**10
        living = [pod for pod in self.pods.values() if pod.ended is None]
        for pod in living:
            if not pod.host and rng.random() < 0.5:
                return self.bind(pod)
            if pod.host and not pod.ready and not pod.changes and rng.random() < 0.5:
                return self.set_ready(pod, True)
        told_apart = self.named and self.kind == "independent"
        may_create = not self.down or told_apart or self.grows
        if may_create and (len(living) < 3 or (len(living) < 9 and rng.random() < 0.2)):
            self.create()
            return None
        if not living:
            return None
        pod = rng.choice(living)
        if self.kind == "batch" and pod.ready and rng.random() < 0.3:
            pod.ended = self.t
            return self.do("gone", pod.uid, T0 + self.t, True)
        if pod.ready and not pod.changes and rng.random() < 0.3:
            return self.set_ready(pod, False)
        # In the gap each instance once, and of those whose pods vanish all are ready: sums could not tell who was. Nor
        # can replacements be told from new ones, but by their names.
        known = pod.uid in self.up_before and not pod.changes and (told_apart or not self.grows)
        if not self.down or known:
            self.replace(pod)
        return None

    def crash(self) -> dict[str, Any]:
        """The books as an API server would keep them."""
        for pod in [pod for pod in self.pods.values() if pod.ended is not None]:
            del self.pods[pod.uid]  # removed by their controller
        self.down, self.grows = True, self.random.random() < 0.3
        self.up_before = {pod.uid for pod in self.pods.values() if pod.ready}
        return json.loads(json.dumps(export(self.engine, "c", T0 + self.t)))  # type: ignore[no-any-return]

    def seen(self) -> list[dict[str, Any]]:
        pods = [pod.now() for pod in self.pods.values()]
        self.random.shuffle(pods)
        return pods

    def restored(self, books: dict[str, Any] | None, now: float | None = None) -> Engine:
        engine = fresh(self.kind)
        restore(engine, "c", books, self.seen(), T0 + (self.t if now is None else now))
        return engine


def fresh(kind: str) -> Engine:
    """Three large nodes, and a controller without instances."""
    engine = engine_with(hosts=3, cores=100)
    engine.controller("c", CLASSES[2], approach_of(kind), kind == "batch")
    return engine
