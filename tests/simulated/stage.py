"""A simulated cluster for scenes, driven from outside: a scene acts, and lets time pass until something is so.

Nothing fails by itself, and what kubelets and controllers take is known to the hundredth of a second; so a scene can
ask for exact instants. Words are those of scenes on a real control plane (``cluster/running.py``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from unittest.mock import Mock

from aiohttp import web

from simulated.agents import is_active
from simulated.api_model import Request
from simulated.loop import EPOCH, WORLD, WorldLoop, acted_by
from simulated.network import Weather
from simulated.pod_model import condition, is_true, seconds_of
from simulated.replica import Replica
from simulated.resources import BY_NAME, Json
from simulated.store import Change
from simulated.world import NAMESPACE, Complaints, World, set_apart
from slacktide.kube.client.http import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from slacktide.kube.observe.http_server import SchedulerPages
from slacktide.kube.scheduler import Scheduler
from slacktide.lab.nodes import ZONES, node
from slacktide.settings import load_live

T = TypeVar("T")
OWNERS = frozenset({"deployments", "replicasets", "statefulsets", "jobs", "cronjobs"})
"""Kinds with a template of pods."""
LOOK_SECONDS = 0.01
CLOSELY_SECONDS = 10.0
PATIENCE_SECONDS = 1200.0
"""What is not so by then is never so: waits end with what they wait for."""
PACE_SECONDS = 0.01
"""What controllers and kubelets take to begin."""
START_SECONDS = 1.0
"""What a pod takes to be ready where its annotations say nothing. To end it takes its grace."""


@dataclass
class Life:
    """When what became of a pod, in the world's seconds; ``up``: from when to when it was ready."""

    name: str
    uid: str
    created: float
    bound: float | None = None
    node: str = ""
    up: list[tuple[float, float]] = field(default_factory=list)
    evicted: float | None = None
    marked: float | None = None
    """When it was said to be disrupted, by an eviction or before a deletion."""
    told: float | None = None
    """When it was told to go, by whomever."""
    gone: float | None = None

    def ready_until(self, now: float) -> float:
        """Seconds for which it was ready."""
        return sum(min(end, now) - begin for begin, end in self.up if begin < now)


class Lives:
    """What became of every pod."""

    def __init__(self, world: World) -> None:
        self.by_uid: dict[str, Life] = {}
        self._world = world
        world.store.followers.append(self.see)

    def see(self, change: Change) -> None:
        if change.resource.plural != "pods":
            return
        body, now = change.body, self._world.loop.time()
        metadata = body["metadata"]
        life = self.by_uid.setdefault(metadata["uid"], Life(metadata["name"], metadata["uid"], now))
        if body["spec"].get("nodeName") and life.bound is None:
            life.bound, life.node = now, body["spec"]["nodeName"]
        if metadata.get("deletionTimestamp") and life.told is None:
            life.told = now
        evicted = condition(body, "DisruptionTarget")
        if evicted is not None and evicted["status"] == "True" and life.marked is None:
            life.marked = now
        if evicted is not None and evicted.get("reason") == "EvictionByEvictionAPI" and life.evicted is None:
            life.evicted = now
        if change.type == "DELETED":
            life.gone = now
        is_up = is_true(body, "Ready") and change.type != "DELETED"
        was_up = bool(life.up) and life.up[-1][1] == float("inf")
        if is_up and not was_up:
            life.up.append((now, float("inf")))
        elif was_up and not is_up:
            life.up[-1] = life.up[-1][0], now


class Stage:
    """The world, and short words for what scenes do in it. Times are seconds since the world's beginning."""

    def __init__(self, world: World, loop: WorldLoop) -> None:
        self.world, self.loop, self.namespace = world, loop, NAMESPACE
        self.lives_of = Lives(world)
        self.pages: dict[Replica, SchedulerPages] = {}
        for one in world.replicas:
            one.shown = self._shown

    def _shown(self, replica: Replica, scheduler: Scheduler) -> Any:
        self.pages[replica] = pages = SchedulerPages(scheduler)
        return pages.journal

    # -- time ------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        return self.loop.time()

    @staticmethod
    def instant(told: str) -> float:
        """A timestamp in the world's seconds."""
        return seconds_of(told) - EPOCH

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def until(self, is_so: Callable[[], T], what: object = "", seconds: float = PATIENCE_SECONDS) -> T:
        """The first true answer; looks every hundredth of a second at first, then ten times a second."""
        begun = self.now
        while not (found := is_so()):
            assert self.now < begun + seconds, f"not within {seconds:g} s: {what or is_so}"
            self.wait(LOOK_SECONDS if self.now < begun + CLOSELY_SECONDS else 10 * LOOK_SECONDS)
        return found

    def do(self, act: Callable[[], T]) -> T:
        """What needs a loop that runs."""

        async def acts() -> T:
            return act()

        return self.loop.run_until_complete(acts())

    def start(self) -> None:
        """The replicas begin, and one leads."""
        self.do(self.world.start)
        self.until(lambda: self.world.leader, "somebody leads")

    # -- objects ---------------------------------------------------------------------------------------------------

    def path(self, kind: str, name: str = "") -> str:
        resource = BY_NAME[kind]
        root = f"/apis/{resource.version}" if resource.group else f"/api/{resource.version}"
        space = f"/namespaces/{self.namespace}" if resource.namespaced else ""
        return f"{root}{space}/{kind}{f'/{name}' if name else ''}"

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Json:
        """What the API server answers a user."""
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.world.api.answer(Request(method, path, {}, data, content_type))
        assert answer.ok, (method, path, answer)
        return dict(json.loads(answer.body))

    def create(self, kind: str, body: Json) -> Json:
        """Create an object whose pods are the scheduler's."""
        template = body if kind == "pods" else body["spec"].get("template", {}) if kind in OWNERS else {}
        spec = template.get("spec")
        if spec is not None and "containers" in spec:
            spec.setdefault("schedulerName", "slacktide")
        return self.world.make(kind, body, self.namespace if BY_NAME[kind].namespaced else "")

    def patch(self, kind: str, name: str, body: Json, sub: str = "", content_type: str = STRATEGIC_MERGE_PATCH) -> None:
        self.send("PATCH", self.path(kind, name) + (f"/{sub}" if sub else ""), body, content_type)

    def merge(self, kind: str, name: str, body: Json) -> None:
        self.patch(kind, name, body, content_type=MERGE_PATCH)

    def delete(self, kind: str, name: str, grace_seconds: int | None = None) -> None:
        options = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self.send("DELETE", self.path(kind, name), options)

    def get(self, kind: str, name: str) -> Json | None:
        return self.world.store.get(kind, self.namespace if BY_NAME[kind].namespaced else "", name)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def nodes(self, count: int, prefix: str = "node", labels: Json | None = None, **settings: Any) -> list[str]:
        """New nodes, zones in turn."""
        names = [f"{prefix}-{number}" for number in range(count)]
        for number, name in enumerate(names):
            body = node(name, zone=ZONES[number % len(ZONES)], labels=labels, **settings)
            made = self.world.make("nodes", {"metadata": body["metadata"], "spec": body["spec"]})
            self.world.store.write(
                BY_NAME["nodes"], {**made, "metadata": dict(made["metadata"]), "status": body["status"]}
            )
        return names

    def cordon(self, name: str, wanted: bool = True) -> None:
        self.patch("nodes", name, {"spec": {"unschedulable": wanted or None}})

    # -- pods ------------------------------------------------------------------------------------------------------

    def pod(self, name: str) -> Json:
        found = self.get("pods", name)
        assert found is not None, f"no pod {name}"
        return found

    def pods(self, prefix: str = "") -> list[Json]:
        """Those that are there, the oldest first."""
        return [one for one in self.world.store.every("pods") if one["metadata"]["name"].startswith(prefix)]

    def names(self, prefix: str = "") -> list[str]:
        """Of those that are not on their way out."""
        return [one["metadata"]["name"] for one in self.pods(prefix) if is_active(one)]

    def life(self, name: str) -> Life:
        """Of the latest pod of that name."""
        return next(one for one in reversed(self.lives_of.by_uid.values()) if one.name == name)

    def lives(self, prefix: str = "") -> list[Life]:
        return [one for one in self.lives_of.by_uid.values() if one.name.startswith(prefix)]

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def bound(self, name: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until a pod is on a node; its name."""
        return self.until(lambda: self.get("pods", name) and self.node_of(name), f"{name} is bound", seconds)  # type: ignore[return-value]

    def ready(self, prefix: str = "", count: int = 1) -> list[str]:
        """Wait until so many pods, and no others of that prefix, are ready; their names."""

        def found() -> list[str] | None:
            here = [one for one in self.pods(prefix) if is_active(one)]
            up = [one["metadata"]["name"] for one in here if is_true(one, "Ready")]
            return up if len(up) == len(here) == count else None

        return self.until(found, f"{count} pods {prefix}* are ready") or []

    def probe(self, name: str, ready: bool) -> None:
        """A pod's probe fails from now on, or succeeds again."""
        kubelets, key, body = self.world.kubelets, (self.namespace, name), self.pod(name)
        (kubelets.sick.discard if ready else kubelets.sick.add)(key)
        kubelets.say(body := json.loads(json.dumps(body)), ready=ready)
        self.world.store.write(BY_NAME["pods"], body)

    def waits(self, name: str, text: str) -> Json:
        """Wait until a pod's condition says why it waits, and an event says the same."""

        def says() -> Json | None:
            found = condition(self.pod(name), "PodScheduled") or {}
            fits = found.get("status") == "False" and found.get("reason") == "Unschedulable"
            return found if fits and re.search(text, found.get("message", "")) else None

        try:
            found = self.until(says, f"{name} waits because of {text!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {condition(self.pod(name), 'PodScheduled')}") from None
        assert found is not None
        self.until(
            lambda: any(re.search(text, one) for one in self.events("FailedScheduling", name)), "an event says so"
        )
        return found

    def events(self, reason: str, about: str = "") -> list[str]:
        """Messages of events."""
        every = self.world.store.every("events")
        return [one["message"] for one in every
                if one["reason"] == reason and about in ("", one["involvedObject"]["name"])]  # fmt: skip

    # -- ledgers ---------------------------------------------------------------------------------------------------

    def ledger(self, name: str) -> Json | None:
        """A controller's Availability, such as ``deployment-web``."""
        return self.get("availabilities", name)

    def status(self, name: str, when: Callable[[Json], Any], what: str = "", seconds: float = PATIENCE_SECONDS) -> Json:
        """Wait until a ledger's status is so."""

        def found() -> Json | None:
            one = self.ledger(name)
            return one["status"] if one is not None and "status" in one and when(one["status"]) else None

        try:
            status = self.until(found, f"ledger {name}: {what}", seconds)
        except AssertionError as error:
            says = {
                key: value
                for key, value in (self.ledger(name) or {}).get("status", {}).items()
                if key != "accumulators"
            }
            raise AssertionError(f"{error}; it says {says}") from None
        assert status is not None
        return status

    # -- the scheduler ---------------------------------------------------------------------------------------------

    @property
    def leader(self) -> Replica:
        found = self.world.leader
        assert found is not None, "nobody leads"
        return found

    def kill(self) -> None:
        """The leader is killed; the next one, or itself anew, leads in the end."""
        gone = self.leader.identity
        self.do(self.leader.kill)
        self.until(lambda: (now := self.world.leader) is not None and now.identity != gone, "somebody leads again")

    def asked(self, path: str, replica: Replica | None = None, **query: str) -> tuple[int, str]:
        """What a replica's HTTP server would answer, the leader's where none is named: status and text."""
        leader = replica or self.leader
        scheduler, pages = leader.scheduler, self.pages[leader]
        assert scheduler is not None
        assert leader.wire is not None
        actor = leader.wire.actor

        async def ask() -> web.StreamResponse:
            with acted_by(actor):
                return await pages.routes()[path](Mock(query=query, headers={}))

        answer: Any = self.loop.run_until_complete(ask())
        return answer.status, answer.text if isinstance(answer.body, bytes | None) else ""

    def explained(self, name: str) -> Json:
        """What the scheduler answers about a pod; empty where it has not heard of it."""
        status, text = self.asked("/explain", namespace=self.namespace, name=name)
        return {} if status == 404 else dict(json.loads(text))

    def reason(self, name: str) -> str:
        """Why a pod waits, as the scheduler knows at this moment."""
        return str(self.explained(name).get("reason", ""))

    def metrics(self, family: str) -> dict[str, float]:
        """A family's values by what is in braces."""
        found = re.findall(rf"^{family}(?:{{(.*)}})? (\S+)$", self.asked("/metrics")[1], re.MULTILINE)
        return {labels: float(value) for labels, value in found}


def service_class(name: str, slo: float, rank: int, **spec: Any) -> Json:
    spec = {"slo": slo, "rank": rank, "namespaces": ["*"], **spec}
    return {"metadata": {"name": name}, "spec": spec}


@contextmanager
def staged(classes: Sequence[Json], *, seed: int = 1, replicas: int = 1, **settings: Any) -> Iterator[Stage]:
    """A stage whose scheduler leads; ``settings`` as ``kube__lease_duration=3``. In the end nothing may have been
    wrong."""
    words = [
        f"{key.replace('__', '.')}={str(one).lower() if isinstance(one, bool) else one}"
        for key, one in settings.items()
    ]
    weather = Weather()
    weather.clear()

    async def made() -> World:
        world = World(seed, weather, load_live(None, None, words), replicas, classes)
        world.kubelets.probes, world.kubelets.grace = (START_SECONDS, START_SECONDS), (1.0, 1.0)
        for one in (world.kubelets, *world.controllers):
            one.pace = (PACE_SECONDS, PACE_SECONDS)
        return world

    with set_apart(seed), asyncio.Runner(loop_factory=WorldLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, WorldLoop)
        with acted_by(WORLD, loop):
            world = loop.run_until_complete(made())
            handler = Complaints(world.invariants.finding)
            logging.getLogger("slacktide").addHandler(handler)
            try:
                stage = Stage(world, loop)
                stage.start()
                yield stage
            finally:
                loop.run_until_complete(world.end())
                logging.getLogger("slacktide").removeHandler(handler)
    assert world.invariants.findings == [], world.invariants.findings
