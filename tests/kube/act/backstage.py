"""A leader's session as it is, in virtual time: mirror, feed, engine and those who act; only the API server is
played, and what a watch would tell is told by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Literal, cast

import msgspec

from slacktide.config import Config
from slacktide.engine.core.engine import Engine
from slacktide.kube.act.counts import Counts
from slacktide.kube.client.http import ApiError, NotSent
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.leader_session import LeaderSession, ReplicaContext
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.publish.availability import LedgerCounts
from slacktide.kube.publish.events import EventRecorder
from slacktide.kube.resources.objects import (
    DEVICE_CLASS,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    Identity,
    ServiceClass,
    ServiceClassSpec,
)
from slacktide.kube.resources.workloads import POD_GROUP
from slacktide.kube.translate.pod_groups import KUBERNETES, SOURCES
from slacktide.settings import load_live
from support import made_objects, virtual_time

NOW = 1_790_000_000.0
Overload = Literal["triage", "plan"]
ANSWER_SECONDS = 0.02
Refusal = Callable[[str, str], Exception | None]


class Server:
    """Takes what is sent after a moment. ``refuses`` is asked with the kind of a request and a pod's name; what it
    gives is raised. ``agent`` is who wrote what was written."""

    agent = "slacktide"

    def __init__(self) -> None:
        self.bindings: dict[str, str] = {}
        self.evicted: list[str] = []
        self.deleted: list[str] = []
        self.nominated: dict[str, list[str]] = {}
        """By pod, as it was written."""
        self.pods: dict[str, dict[str, Any]] = {}
        """Pods by name."""
        self.claims: dict[str, dict[str, Any]] = {}
        """ResourceClaims by name."""
        self.asked_for: list[str] = []
        """Ledgers, by name."""
        self.ledgers_left: set[str] = set()
        """Those of them that are still there."""
        self.refuses: Refusal = lambda _kind, _name: None
        self.tells: Callable[[str, dict[str, Any]], None]
        """Hears of a pod's name and what is other about it."""

    async def _answer(self, kind: str, name: str, permit: Callable[[], bool] | None) -> None:
        await asyncio.sleep(ANSWER_SECONDS)
        if permit is not None and not permit():
            raise NotSent("not permitted any more")
        if problem := self.refuses(kind, name):
            raise problem

    async def post(self, path: str, body: bytes, *, permit: Any = None, **_: Any) -> bytes:
        name, kind = path.split("/")[-2:]
        await self._answer(kind, name, permit)
        if kind == "binding":
            self.bindings[name] = msgspec.json.decode(body)["target"]["name"]
            self.tells(name, {"spec": {"nodeName": self.bindings[name]}})
        elif kind == "eviction":
            self.evicted.append(name)
            self.tells(name, {"metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"}})
        return b"{}"

    async def delete(self, path: str, _body: bytes, *, permit: Any = None, **_: Any) -> bytes:
        name = path.rpartition("/")[2]
        await self._answer("deletion", name, permit)
        self.deleted.append(name)
        self.tells(name, {"metadata": {"deletionTimestamp": "2026-11-01T00:00:00Z"}})
        return b"{}"

    async def patch(self, path: str, body: bytes, *_: Any, permit: Any = None, **__: Any) -> bytes:
        if "/resourceclaims/" in path:
            name = path.partition("/resourceclaims/")[2].partition("/")[0]
            await self._answer("claim", name, permit)
            return self._claim(name, msgspec.json.decode(body))
        name, sub = path.split("/")[-2:]
        status = msgspec.json.decode(body).get("status", {})
        is_nomination = "/pods/" in path and sub == "status" and "nominatedNodeName" in status
        await self._answer("nomination" if is_nomination else "patch", name, permit)
        if is_nomination:
            node = status["nominatedNodeName"] or ""
            self.nominated.setdefault(name, []).append(node)
            self.tells(name, {"status": {"nominatedNodeName": node}})
        return b"{}"

    def _claim(self, name: str, news: dict[str, Any]) -> bytes:
        """A claim is changed, where it is as who changes it believes."""
        claim = self.claims[name]
        metadata, status = claim["metadata"], news.get("status", {})
        if news["metadata"].pop("resourceVersion") != metadata["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        metadata |= news["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        gone = {one["uid"] for one in status.get("reservedFor") or () if "$patch" in one}
        if gone:
            status["reservedFor"] = [one for one in claim["status"]["reservedFor"] if one["uid"] not in gone]
        claim["status"] |= {key: value for key, value in status.items() if value is not None}
        return msgspec.json.encode(claim)

    async def get(self, path: str, **_: Any) -> bytes:
        if "/resourceclaims/" in path:
            return msgspec.json.encode(self.claims[path.rpartition("/")[2]])
        if "/availabilities/" in path:
            self.asked_for.append(path.rpartition("/")[2])
            await self._answer("ledger", self.asked_for[-1], None)
            if self.asked_for[-1] in self.ledgers_left:
                return b"{}"
        name = path.rpartition("/")[2]
        if body := self.pods.get(name):
            fields: dict[str, Any] = {"f:status": {"f:nominatedNodeName": {}}}
            ours: list[Any] = (
                [{"manager": self.agent, "fieldsV1": fields}] if self.nominated.get(name, [""])[-1] else []
            )
            return msgspec.json.encode(body | {"metadata": body["metadata"] | {"managedFields": ours}})
        raise ApiError(404, "NotFound", path)


class Backstage:
    """Nodes of four cores; pods of the class high preempt those of the class low."""

    def __init__(self, policy: str = "priority", overload: Overload = "plan", **kube: Any) -> None:
        config = load_live()
        own = replace(config.policy, name=policy, min_running=0.0, overload=overload)
        self.config: Config = replace(config, policy=own, kube=replace(config.kube, **kube))
        self.server = Server()
        loop = asyncio.get_running_loop()
        self.clock: Callable[[], float] = lambda: NOW + loop.time()
        self.mirror = ClusterMirror(self.config, self.clock)
        for name, rank in (("high", 1), ("low", 3)):
            self.mirror.on_class_update(ServiceClass(Metadata(name), ServiceClassSpec(0.9, rank, namespaces=("*",))))
        for source in SOURCES:
            self.mirror.pod_groups.listed(source)
        self.session: LeaderSession
        self._bodies = self.server.pods
        self.server.tells = self._changed

    def lead(self) -> None:
        """A new leader."""
        connection = cast("Any", self.server)
        replica = ReplicaContext(
            connection, self.config, self.mirror, Watches(connection, self.mirror),
            EventRecorder(connection, "slacktide", "test"), self.clock, lambda: True, Counts(), LedgerCounts(),
            lambda _decision: None,
        )  # fmt: skip
        self.mirror._followers.clear()
        self.session = LeaderSession(replica, Engine(self.config))
        self.session.take_over({})

    @asynccontextmanager
    async def leading(self, *, telling: bool = False) -> AsyncIterator[None]:
        """While it leads; passes are the test's. ``telling``: and tells pods why they wait."""
        self.lead()
        at_work = (self.session.actor, self.session.ledger, *([self.session.reporter] if telling else ()))
        tasks = [asyncio.create_task(one.run()) for one in at_work]
        try:
            yield
            assert not [one for one in tasks if one.done()]
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def decide(self, passes: int = 1, pause: float = 1.0) -> None:
        """Passes, with a ``pause`` after each for what comes of it."""
        for _ in range(passes):
            with self.session.gate.closed():
                for _ in self.session._pass():
                    pass
            await asyncio.sleep(pause)

    def node(self, name: str, cores: int = 4, **more: Any) -> None:
        labels = {"node-restriction.kubernetes.io/slacktide": "true", "kubernetes.io/hostname": name}
        amounts = {"cpu": str(cores), "memory": "8Gi", "pods": "110"}
        self.mirror.on_node_update(made_objects.node(name, labels=labels, allocatable=amounts, **more))

    def gang(self, name: str = "g", least: int = 2, **more: Any) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}} | more
        body = {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}
        self.mirror.pod_groups.see(KUBERNETES, made_objects.decoded(POD_GROUP, body))

    def no_gang(self, name: str = "g") -> None:
        self.mirror.pod_groups.drop(KUBERNETES, "shop", name)

    def pod(self, name: str, group: str = "", node: str = "", cores: int = 4, cls: str = "high", **more: Any) -> None:
        labels = {"slacktide.io/class": cls}
        metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name, "labels": labels}
        metadata["labels"] |= more.pop("labels", {})
        metadata["annotations"] = more.pop("annotations", {})
        metadata |= {"deletionTimestamp": "2026-11-01T00:00:00Z"} if more.pop("goes", False) else {}
        if owner := more.pop("owner", ""):
            kind = {"apiVersion": "example.com/v1", "kind": "Widget", "controller": True}
            metadata["ownerReferences"] = [kind | {"name": owner, "uid": owner}]
        status = {"phase": "Running" if node else "Pending", "nominatedNodeName": more.pop("nominated", "")}
        spec: dict[str, Any] = {"schedulerName": "slacktide", "nodeName": node, "terminationGracePeriodSeconds": 600}
        spec |= {"containers": [made_objects.container(cpu=str(cores))]} | more
        spec |= {"schedulingGroup": {"podGroupName": group}} if group else {}
        self._bodies[name] = {"metadata": metadata, "spec": spec, "status": status}
        self._changed(name, {})

    def _changed(self, name: str, news: dict[str, Any]) -> None:
        if body := self._bodies.get(name):
            for part, fields in news.items():
                body[part] |= fields
            self.mirror.on_pod_update(Lightening()(made_objects.decoded(POD, body)))

    def gpus(self, node: str, *names: str) -> None:
        """A node offers devices of the class gpu."""
        self.mirror.devices.on_class_update(
            made_objects.decoded(DEVICE_CLASS, {"metadata": {"name": "gpu", "resourceVersion": "1"}, "spec": {}})
        )
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "pool": pool, "nodeName": node, "devices": [{"name": one} for one in names]}
        self.mirror.devices.on_slice_update(
            made_objects.decoded(RESOURCE_SLICE, {"metadata": {"name": node}, "spec": spec})
        )

    def claim(self, name: str) -> dict[str, Any]:
        """A claim on one GPU; what a pod's spec says to use it."""
        metadata = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1", "finalizers": []}
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]
        body = {"metadata": metadata, "spec": {"devices": {"requests": requests}}, "status": {}}
        self.server.claims[name] = body
        self.mirror.devices.on_claim_update(made_objects.decoded(RESOURCE_CLAIM, body))
        return {"resourceClaims": [{"name": name, "resourceClaimName": name}]}

    def low(self, name: str, node: str, cores: int = 4, group: str = "") -> None:
        self.pod(name, group, node, cores, "low")

    def nominate(self, name: str, node: str) -> None:
        """Somebody else nominates a pod, unless it is nominated already."""
        if not self._bodies[name]["status"].get("nominatedNodeName"):
            self._changed(name, {"status": {"nominatedNodeName": node}})

    def gone(self, *names: str) -> None:
        for name in names:
            self._bodies.pop(name, None)
            self.mirror.on_pod_delete(Identity("shop", name, name, ""), None)


def played(
    play: Callable[[Backstage], Coroutine[Any, Any, None]],
    policy: str = "priority",
    overload: Overload = "plan",
    **kube: Any,
) -> None:
    """A play on a new stage, in virtual time."""

    async def begin() -> None:
        await play(Backstage(policy, overload, **kube))

    virtual_time.run(begin)
