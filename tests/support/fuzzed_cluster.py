"""A cluster whose objects are drawn at random, told to the scheduler's own watches, mirror, feed and engine.

There is no server: what a list and a watch would say comes from here, as bytes. Passes decide, and what they decide
happens: pods are bound, get ready and end. Whatever is raised, logged as an error or set aside as a defect is a fault.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kube.client.http import ApiError
from slacktide.kube.client.kinds import Kind, Malformed
from slacktide.kube.client.metadata import rfc3339
from slacktide.kube.client.pacing import Presence
from slacktide.kube.feed.fed_pod import FedPod, FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.housekeeping import retire_vacant
from slacktide.kube.mirror.barrier import DEFECT, SetAside
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.publish.conditions import named_rule
from slacktide.kube.publish.state_events import document
from slacktide.kube.resources.objects import AVAILABILITY, DEPLOYMENT, NAMESPACE, NODE, POD, SERVICE_CLASS, Availability
from slacktide.kube.translate.owners import Target
from slacktide.settings import load_live
from support.drawn_objects import NAMES, SPACES, Drawer
from support.schemas import Json, called, everything

T0 = 1_790_000_000.0
CALM = "calm"
"""The namespace, the class, the node and the pod that nobody draws: it must be scheduled whatever the others are."""
STEPS = 60
SHOWN = 4_000
OURS = {"node-restriction.kubernetes.io/slacktide": "true"}
RANKS = {CALM: 1, "gold": 2, "silver": 3}
FIXED = ("schedulerName", "volumes", "resourceClaims", "schedulingGroup", "workloadRef", "hostNetwork", "hostUsers")
"""What of a pod's spec stays as it was."""
OFTEN = (POD,) * 20


class Fault(AssertionError):  # noqa: N818  # what is found, not what went wrong here
    """What no object may bring about."""


class Server:
    """Answers lists and watches of every kind by what it was told, and forgets now and then where a watch was."""

    def __init__(self) -> None:
        self.presence = Presence()
        self.objects: dict[str, dict[tuple[str, str], Json]] = {}
        self.events: dict[str, asyncio.Queue[list[bytes] | ApiError]] = {}

    def queue(self, path: str) -> asyncio.Queue[list[bytes] | ApiError]:
        return self.events.setdefault(path, asyncio.Queue())

    async def get_list(self, path: str, _query: object = None) -> bytes:
        items = list(self.objects.get(path, {}).values())
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()

    async def stream(self, path: str, _query: object, _silence: float) -> AsyncIterator[list[bytes]]:
        queue = self.queue(path)
        while True:
            said = await queue.get()
            try:
                if isinstance(said, ApiError):
                    raise said
                yield said
            finally:
                queue.task_done()


class Faults(logging.Handler):
    """Errors in the log, and where they came from."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        trace = "".join(traceback.format_exception(error)[-6:]) if error is not None else ""
        self.found.append(f"{record.getMessage()}\n{trace}")


class Heard(FeedListener):
    """What a term would hear and go on with."""

    def __init__(self) -> None:
        self.buried_ones: list[tuple[Target, Json, Any]] = []

    def buried(self, target: Target, books: Json, status: Any) -> None:
        self.buried_ones.append((target, books, status))


class FuzzedCluster:
    """One cluster by one seed; ``live`` runs it to its end and raises :class:`Fault` where something is wrong."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.drawer = Drawer(self.chance)
        self.t = 0.0
        self.server, self.faults, self.latest = Server(), Faults(), ""
        self.counted = self.decided = 0
        self.told: set[str] = set()
        self.uids: list[str] = []
        self.config = everything()
        if self.chance.random() < 0.5:
            self.config = replace(self.config, policy=load_live().policy)
        self.mirror = ClusterMirror(self.config, self.clock)
        self.watches = Watches(cast("Any", self.server), self.mirror)
        self.kinds = [one.kind for one in self.watches.every]
        self.usual: dict[Any, Callable[[str], Json]] = {
            NODE: self.node, POD: self.pod, SERVICE_CLASS: self.service_class, DEPLOYMENT: self.deployment,
        }  # fmt: skip
        self.aside: list[SetAside] = []
        self.mirror.barrier.on_set_aside = self.aside.append

    def clock(self) -> float:
        return T0 + self.t

    # -- objects ---------------------------------------------------------------------------------------------------

    def number(self) -> str:
        self.counted += 1
        return str(self.counted)

    def metadata(self, kind: Kind[Any], name: str, space: str) -> Json:
        """Names, and owners among whatever is there or was: also itself, and circles."""
        uid = f"uid-{self.number()}"
        self.uids.append(uid)
        found: Json = {"name": name, "uid": uid, "resourceVersion": self.number()}
        found |= {"namespace": space} if kind.namespaced else {}
        found["creationTimestamp"] = rfc3339(T0 - self.chance.choice((0, 5, 10**6, 10**9)))
        if self.chance.random() < 0.5:
            found["ownerReferences"] = [self.owner() for _ in range(self.chance.choice((1, 1, 2)))]
        return found

    def owner(self) -> Json:
        kind = self.drawer.text(("ReplicaSet", "Deployment", "Job", "StatefulSet", "DaemonSet", "Node", "Thing"))
        version = self.drawer.text(("apps/v1", "batch/v1", "v1", "example.com/v1"))
        uid = self.chance.choice(self.uids[-60:])
        return {
            "apiVersion": version, "kind": kind, "name": self.drawer.text(NAMES), "uid": uid,
            "controller": self.chance.random() < 0.8,
        }  # fmt: skip

    def drawn(self, kind: Kind[Any], name: str, space: str) -> Json:
        body = self.drawer.body(kind, self.metadata(kind, name, space))
        if kind in self.usual and self.chance.random() < 0.8:
            body = self.mixed(self.usual[kind](name), body)
        if kind is POD:
            body["spec"]["nodeName"] = self.chance.choice(("", "", "", *NAMES, "nowhere"))
            if body["spec"]["nodeName"]:
                body["spec"].pop("schedulingGates", None)  # the API server takes one of both
        return body

    def mixed(self, usual: Json, body: Json) -> Json:
        """An object as people write it, but for a few fields of one that is drawn: else some field or other would keep
        each of them from being used."""
        for part in ("spec", "status"):
            drawn: Json = body.get(part, {})
            some = self.chance.sample(sorted(drawn), min(len(drawn), self.chance.choice((0, 1, 1, 2, 4))))
            body[part] = usual.get(part, {}) | {name: drawn[name] for name in some}
        labels = body["metadata"]["labels"] if self.chance.random() < 0.4 else {}
        body["metadata"]["labels"] = usual["metadata"].get("labels", {}) | labels
        if self.chance.random() < 0.7:
            del body["metadata"]["annotations"]
        return body

    async def tell(self, kind: Kind[Any], what: str, body: Json) -> None:
        """A watch says it, and it has been heard."""
        metadata = body["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        there = self.server.objects.setdefault(kind.path(), {})
        if what == "DELETED":
            there.pop(key, None)
        else:
            there[key] = body
        self.told.add(called(kind))
        self.latest = f"{what} {called(kind)} {json.dumps(body)[:SHOWN]}"
        await self.say(kind, [json.dumps({"type": what, "object": body}).encode()])

    async def say(self, kind: Kind[Any], said: list[bytes] | ApiError) -> None:
        queue = self.server.queue(kind.path())
        queue.put_nowait(said)
        joined = asyncio.ensure_future(queue.join())
        await asyncio.wait([joined, *self.tasks], return_when="FIRST_COMPLETED")
        for task in self.tasks:
            if task.done():
                raise Fault(f"a watch has ended: {task.exception()!r}") from task.exception()
        self.check()

    async def changed(self, kind: Kind[Any], body: Json, **fields: Any) -> None:
        """An object as before, but for these fields."""
        body = json.loads(json.dumps(body)) | fields
        body["metadata"]["resourceVersion"] = self.number()
        await self.tell(kind, "MODIFIED", body)

    def check(self) -> None:
        if self.faults.found:
            raise Fault(f"{self.faults.found[0]}\nafter {self.latest}")
        defects = [str(one) for one in self.aside if one.reason == DEFECT]
        if defects:
            raise Fault(f"{defects[0]}\nafter {self.latest}")

    # -- what happens ----------------------------------------------------------------------------------------------

    async def live(self, steps: int) -> None:
        """So many changes, a new leader now and then, and the end."""
        logger = logging.getLogger("slacktide")
        logger.addHandler(self.faults)
        try:
            await self.begin()
            for _ in range(steps):
                await self.step()
            self.pass_time(1.0)
            self.lead()
            self.decide_only()
            await self.the_calm_are_scheduled()
        except Fault:
            raise
        except Exception as error:
            raise Fault(f"{type(error).__name__}: {error}\nafter {self.latest}") from error
        finally:
            logger.removeHandler(self.faults)
            for task in getattr(self, "tasks", ()):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*getattr(self, "tasks", ()), return_exceptions=True)

    async def begin(self) -> None:
        """First lists, of what is drawn and of what somebody needs to be placed at all; then this replica leads."""
        for kind in self.kinds:
            for name in self.chance.sample(NAMES, self.chance.randint(0, 2)):
                space = self.chance.choice(SPACES)
                key = (space if kind.namespaced else "", name)
                self.server.objects.setdefault(kind.path(), {})[key] = self.drawn(kind, name, space)
        for kind, body in self.tame():
            self.server.objects.setdefault(kind.path(), {})["", body["metadata"]["name"]] = body
        self.tasks = [asyncio.ensure_future(one.run()) for one in self.watches.every]
        for one in self.watches.every:
            waits = asyncio.ensure_future(one.synced.wait())
            await asyncio.wait([waits, *self.tasks], return_when="FIRST_COMPLETED")
            ended = [task for task in self.tasks if task.done()]
            if ended:
                raise Fault(f"a watch has ended: {ended[0].exception()!r}") from ended[0].exception()
        self.check()
        self.lead({})

    def tame(self) -> list[tuple[Kind[Any], Json]]:
        """Nodes, namespaces and classes as people write them."""
        found: list[tuple[Kind[Any], Json]]
        found = [(NAMESPACE, {"metadata": self.plain(space)}) for space in (*SPACES, CALM)]
        found += [(SERVICE_CLASS, self.service_class(name)) for name in RANKS]
        found += [(NODE, self.node(name)) for name in NAMES[:2]]
        return found

    def plain(self, name: str, **more: Any) -> Json:
        return {"name": name, "uid": f"uid-{self.number()}", "resourceVersion": self.number()} | more

    def node(self, name: str, cpu: str = "8") -> Json:
        labels = OURS | {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": name}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(T0 - 1_000.0)}
        amounts = {"cpu": cpu, "memory": f"{cpu}Gi", "pods": "20"}
        return {"metadata": self.plain(name, labels=labels), "status": {"allocatable": amounts, "conditions": [ready]}}

    def pod(self, name: str) -> Json:
        amounts = {"cpu": self.chance.choice(("1", "3")), "memory": "64Mi"}
        spec = {"schedulerName": "slacktide", "containers": [{"name": "c", "resources": {"requests": amounts}}]}
        labels = {"slacktide.io/class": self.chance.choice(("gold", "silver", "silver")), "app": name[:1]}
        return {"metadata": self.plain(name, labels=labels), "spec": spec, "status": {"phase": "Pending"}}

    def service_class(self, name: str) -> Json:
        return {"metadata": self.plain(name), "spec": {"slo": 0.9, "rank": RANKS.get(name, 9), "namespaces": ["*"]}}

    def deployment(self, name: str) -> Json:
        spec = {"replicas": 2, "template": {"metadata": {"labels": {"slacktide.io/class": "gold"}}}}
        return {"metadata": self.plain(name), "spec": spec}

    async def step(self) -> None:
        dice = self.chance.random()
        if dice < 0.75:
            await self.one_object()
        elif dice < 0.9:
            self.pass_time(self.chance.choice((0.0, 1.0, 30.0, 700.0, 100_000.0)))
            await self.decide()
        elif dice < 0.94:
            self.lead()
        else:  # the API server has forgotten where this watch was: everything is listed anew, with what it missed
            kind = self.chance.choice(self.kinds)
            there = self.server.objects.setdefault(kind.path(), {})
            for key in [key for key in there if self.chance.random() < 0.2 and key[1] not in (CALM, *SPACES)]:
                del there[key]
            await self.say(kind, ApiError(410, "Expired", "too old resource version"))
            await asyncio.sleep(0)
            self.check()

    async def one_object(self) -> None:
        """One is created, changed or deleted."""
        kind = self.chance.choice((*self.kinds, *OFTEN))
        name, space = self.chance.choice(NAMES), self.chance.choice(SPACES)
        if kind is POD:
            name = f"{name}{self.chance.randint(0, 3)}"
        there = self.server.objects.setdefault(kind.path(), {})
        before = there.get((space if kind.namespaced else "", name))
        if before is None:
            await self.tell(kind, "ADDED", self.drawn(kind, name, space))
        elif self.chance.random() < 0.3:
            body = self.drawn(kind, name, space) | {"metadata": before["metadata"]}
            await self.tell(kind, "DELETED", self.chance.choice((before, body)))
        else:
            await self.become_another(kind, before, name, space)

    async def become_another(self, kind: Kind[Any], before: Json, name: str, space: str) -> None:
        """A change, but of a pod nothing that the API server never changes."""
        after = self.drawn(kind, name, space)
        metadata = after["metadata"] | {"uid": before["metadata"]["uid"]}
        if self.chance.random() < 0.2:
            metadata["deletionTimestamp"] = rfc3339(self.clock())
        if kind is POD:
            kept = self.chance.random() < 0.6
            spec = before["spec"] if kept else after["spec"]
            node = before["spec"].get("nodeName") or spec.get("nodeName", "")
            fixed = {name: before["spec"][name] for name in FIXED if name in before["spec"]}
            after["spec"] = {name: value for name, value in spec.items() if name not in FIXED} | fixed
            after["spec"]["nodeName"] = node
            if node:
                after["spec"].pop("schedulingGates", None)
        await self.tell(kind, "MODIFIED", after | {"metadata": metadata})

    def pass_time(self, seconds: float) -> None:
        """Time goes on, and what changes by itself is told, as the housekeeper does."""
        self.latest = f"{seconds} s passed"
        self.t += seconds
        feed, now = self.feed, self.clock()
        feed.reconsider(feed.blame.due(now, feed.pods.values()))
        retire_vacant(self.engine, now, feed.config.kube.vacancy)
        feed.controllers.remembered_no_more(now)
        feed.network.refresh(now)
        while not feed.catching_up.is_over:
            feed.catching_up.one()
        self.check()

    def decide_only(self) -> Sequence[types.Decision]:
        self.latest = f"pass {self.engine.passes + 1}"
        outcome = self.engine.run(self.clock())
        assert not outcome.problem
        self.decided += len(outcome.decisions)
        explainer = Explainer(self.engine, named_rule)
        for uid in self.engine.waiting()[:5]:
            explainer.lasting_reason(uid, self.clock())
        self.audit()
        return outcome.decisions

    async def decide(self) -> None:
        """A pass, and what comes of it: victims go, pods are bound, or refused."""
        for decision in self.decide_only():
            pods = self.server.objects.get(POD.path(), {})
            by_uid = {one["metadata"]["uid"]: one for one in pods.values()}
            for victim in decision.victims:
                if victim.uid in by_uid:
                    await self.tell(POD, "DELETED", by_uid[victim.uid])
            if decision.uid not in by_uid or decision.uid not in self.engine.pods:
                continue
            if self.chance.random() < 0.1:
                self.latest = f"{decision} is refused"
                self.engine.refused(decision.uid, self.clock())
                continue
            body = by_uid[decision.uid]
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            await self.changed(POD, body, spec=body["spec"] | {"nodeName": decision.host}, status=status)

    # -- leaders ---------------------------------------------------------------------------------------------------

    def lead(self, ledgers: dict[str, Availability] | None = None) -> None:
        """A new leader, which goes on from the ledgers of the one before, and from some that are drawn."""
        if ledgers is None:
            ledgers = self.kept()
            for _ in range(self.chance.choice((0, 0, 1, 3))):
                body = self.drawn(AVAILABILITY, self.chance.choice(NAMES), self.chance.choice(SPACES))
                found = AVAILABILITY.decode(json.dumps(body).encode())
                if not isinstance(found, Malformed):
                    ledgers[self.chance.choice(self.uids)] = found
        self.latest = "a new leader"
        self.engine, self.heard = Engine(self.config), Heard()
        self.feed = LiveFeed(self.mirror, self.engine, self.heard, self.clock, lambda: 0.0)
        take_over(self.feed, ledgers, lambda _decision, _leaving: None)
        self.mirror._followers.clear()
        self.mirror.follow(self.feed)
        self.check()
        self.audit()

    def kept(self) -> dict[str, Availability]:
        """The ledgers, written and read again."""
        found: dict[str, Availability] = {}
        controllers = self.feed.controllers
        bodies = [
            document(target, controllers.books(key, self.clock()), slo_status(self.engine, key, self.clock()))
            for key, target in controllers.targets.items()
        ]
        for target, books, status in self.heard.buried_ones:
            bodies.append(document(target, books, status, deleted=books["at"]))
        for target, body in zip(
            [*controllers.targets.values(), *(one[0] for one in self.heard.buried_ones)], bodies, strict=True
        ):
            decoded = AVAILABILITY.decode(json.dumps(body).encode())
            if isinstance(decoded, Malformed):
                raise Fault(f"a ledger of our own cannot be read: {decoded.problem}")
            found[target.uid] = decoded
        return found

    # -- what must hold --------------------------------------------------------------------------------------------

    def audit(self) -> None:
        """What the engine says is free is what its hosts have, less what all that is to stay on them takes."""
        engine, tables = self.engine, self.engine.tables
        for name, h in engine.hosts.items():
            if not (room := engine.room(name)):
                continue
            taken = np.zeros(len(tables.resources), np.int64)
            for host, amounts, _ in engine.others.values():
                if host == name:
                    taken += tables.amounts(amounts)
            for pod in engine.pods.values():
                if pod.host == name and pod.state == types.PLACED:
                    taken += tables.amounts(dict(engine.specs[pod.spec].demand))
            free = dict(zip(tables.resources, (tables.tb["capacity"][h] - taken).tolist(), strict=True))
            apart = {one: (room[one], free[one]) for one in room if room[one] != free[one]}
            assert not apart, f"node {name}: free is not what is left of it: {apart}"
        assert set(engine.pods) <= set(self.feed.pods), "nobody is in the engine of whom the feed knows nothing"
        assert set(engine.hosts) <= set(self.mirror.nodes) | engine.going, "no node is kept for good that is not there"

    async def the_calm_are_scheduled(self) -> None:
        """A node as any and a pod as any, of the best class, which come last."""
        big = self.node(CALM, "100000")
        await self.tell(NODE, "ADDED", big)
        spec = {
            "schedulerName": "slacktide",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}],
        }
        metadata = self.plain(CALM, namespace=CALM, labels={"slacktide.io/class": CALM})
        body = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        await self.tell(POD, "ADDED", body)
        decided = {one.uid: one.host for one in self.decide_only()}
        if metadata["uid"] not in decided:
            pod: FedPod = self.feed.pods[metadata["uid"]]
            why = pod.problem or Explainer(self.engine, named_rule).lasting_reason(pod.uid, self.clock())
            raise Fault(f"a pod as any is not scheduled: {why}")
