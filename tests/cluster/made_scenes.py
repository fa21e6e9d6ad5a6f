"""Random scenes on a real API server, and what we make of the same objects.

Our side is all of the scheduler but the client: what the API server lists goes into a mirror, from there to an engine,
and the engine decides.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cluster.kube_judge import NAME
from cluster.labtools import pod, until
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.engine.explain.feasibility import Looker
from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.client.kinds import HasMetadata, Kind
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    Identity,
    Pod,
    ServiceClass,
    ServiceClassSpec,
)
from slacktide.lab import ApiError, Binaries, ControlPlane
from slacktide.settings import load_live
from support.made_objects import decoded
from support.scenes import Scene

Json = dict[str, Any]
T = TypeVar("T", bound=HasMetadata)
GATES = "TaintTolerationComparisonOperators=true"
GRACE_SECONDS = 86_400
OURS = "slacktide"
NOW = 2_000_000_000.0
"""Later than all that the API server says."""


@contextlib.contextmanager
def control_plane(binaries: Binaries, directory: Path) -> Iterator[ControlPlane]:
    """One that takes all that scenes have in them."""
    made = ControlPlane.create(directory, binaries, flags={"kube-apiserver": [f"--feature-gates={GATES}"]})
    made.start(guarded=True)
    try:
        yield made
    finally:
        made.kill()


class Listed:
    """All objects of a cluster, as the API server lists them."""

    def __init__(self, plane: ControlPlane) -> None:
        kinds = (NAMESPACE, NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD)
        self._found = {kind.plural: plane.api.get(kind.path())["items"] for kind in kinds}

    def of(self, scenes: list[Scene], kind: Kind[T]) -> Iterator[tuple[Json, T]]:
        """Those of some scenes."""
        names = {scene.name for scene in scenes}
        for body in self._found[kind.plural]:
            metadata = body["metadata"]
            if metadata.get("namespace", metadata["name"]).partition("-")[0] in names:
                yield body, decoded(kind, body)

    def pods(self) -> dict[str, Json]:
        """All of them, by UID."""
        return {one["metadata"]["uid"]: one for one in self._found[POD.plural]}


class Ours:
    """What we make of the objects of some scenes, with these settings."""

    def __init__(self, listed: Listed, scenes: list[Scene], settings: Sequence[str] = ()) -> None:
        config = load_live(overrides=settings)
        config = replace(config, kube=replace(config.kube, all_nodes=True))
        self.mirror = mirror = ClusterMirror(config, lambda: NOW)
        spec = ServiceClassSpec(0.9, 1, default=True, namespaces=("*",))
        mirror.on_class_update(ServiceClass(Metadata("plain"), spec))
        for _, namespace in listed.of(scenes, NAMESPACE):
            mirror.on_namespace_update(namespace)
        for _, node in listed.of(scenes, NODE):
            mirror.on_node_update(node)
        for _, volume in listed.of(scenes, PERSISTENT_VOLUME):
            mirror.volumes.on_volume_update(volume)
        for _, claim in listed.of(scenes, PERSISTENT_VOLUME_CLAIM):
            mirror.volumes.on_claim_update(claim)
        for body, one in listed.of(scenes, POD):
            if body["spec"].get("schedulerName") != NAME:
                mirror.on_pod_update(one)
        self.engine = Engine(config)
        self.feed = LiveFeed(mirror, self.engine, FeedListener(), lambda: NOW, lambda: 0.0)
        take_over(self.feed, {}, lambda _decision, _leaving: None)
        mirror.follow(self.feed)

    def judged(self, body: Json) -> tuple[frozenset[str], str, str]:
        """The nodes on which a pod that waits could run, on which of them it is placed, and why it cannot be at all."""
        one, engine = self._came(body), self.engine
        fed = self.feed.pods[one.metadata.uid]
        fits: frozenset[str] = frozenset()
        host = ""
        if fed.key:
            engine.tables.settle()
            mask = Looker(engine).look(engine.tables.kind_of(engine.specs[fed.spec])).fits
            fits = frozenset(name for name, h in engine.hosts.items() if mask[h])
            for decision in engine.run(NOW).decisions:
                assert decision.uid == one.metadata.uid
                host = decision.host
                engine.refused(decision.uid, NOW)
        problem = fed.problem
        metadata = one.metadata
        self.mirror.on_pod_delete(Identity(metadata.namespace, metadata.name, metadata.uid, ""), None)
        return fits, host, problem

    def decided(self, body: Json) -> tuple[Decision | None, str]:
        """Where a pod that waits is placed and who has to leave, or why it is not. Once: nothing is taken back."""
        uid = self._came(body).metadata.uid
        fed = self.feed.pods[uid]
        if not fed.key:
            return None, fed.problem
        for decision in self.engine.run(NOW).decisions:
            assert decision.uid == uid
            return decision, ""
        return None, Explainer(self.engine).reason(uid, NOW)

    def _came(self, body: Json) -> Pod:
        body = json.loads(json.dumps(body))
        body["spec"]["schedulerName"] = OURS
        body["status"] = {}
        one = decoded(POD, body)
        self.mirror.on_pod_update(one)
        return one


def create(plane: ControlPlane, scenes: list[Scene], priorities: dict[str, Json]) -> list[Json]:
    """Everything of the scenes, after PriorityClasses with these fields; the pods that wait, as the API server has
    them. These come last."""
    api = plane.api
    for name, fields in priorities.items():
        api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}} | fields)
    api.create_all("/api/v1/namespaces", [one for scene in scenes for one in scene.namespaces])
    api.create_all("/api/v1/nodes", [one for scene in scenes for one in scene.nodes])
    api.create_all("/api/v1/persistentvolumes", [one for scene in scenes for one in scene.volumes])
    for one in (claim for scene in scenes for claim in scene.claims):
        api.post(f"/api/v1/namespaces/{one['metadata']['namespace']}/persistentvolumeclaims", one)
    for name in priorities:
        until(partial(_is_known, plane, name), f"the API server knows the PriorityClass {name}")
    create_pods(plane, [one for scene in scenes for one in scene.running])
    for one in (each for scene in scenes for each in scene.going):
        metadata = one["metadata"]
        api.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", GRACE_SECONDS)
    until(lambda: _is_settled(plane, scenes), "nodes and claims are as they will be")
    return create_pods(plane, [for_the_judge(one) for scene in scenes for one in scene.waiting])


def for_the_judge(body: Json, suffix: str = "") -> Json:
    """A pod that waits, under a name of its own, for kube-scheduler to look at."""
    metadata = body["metadata"] | {"name": body["metadata"]["name"] + suffix}
    return {"metadata": metadata, "spec": body["spec"] | {"schedulerName": NAME}}


def _is_known(plane: ControlPlane, priority_class: str) -> bool:
    try:
        plane.api.post("/api/v1/namespaces/default/pods?dryRun=All", pod("p", priorityClassName=priority_class))
    except ApiError as error:
        if "priority" not in str(error).lower():
            raise
        return False
    return True


def name_of(body: Json) -> str:
    """Of a pod, with its namespace."""
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def create_pods(plane: ControlPlane, pods: list[Json]) -> list[Json]:
    """As the API server has them, namespace by namespace."""
    spaces = dict.fromkeys(one["metadata"]["namespace"] for one in pods)
    made = []
    for space in spaces:
        mine = [one for one in pods if one["metadata"]["namespace"] == space]
        made += plane.api.create_all(f"/api/v1/namespaces/{space}/pods", mine)
    return made


def _is_settled(plane: ControlPlane, scenes: list[Scene]) -> bool:
    """Controllers have added to nodes what they add, and taken away that they are not ready; claims are bound."""
    cordoned = {one["metadata"]["name"]: one["spec"].get("unschedulable", False) for s in scenes for one in s.nodes}
    for one in plane.api.get("/api/v1/nodes")["items"]:
        keys = {taint["key"] for taint in one["spec"].get("taints", [])}
        if "node.kubernetes.io/not-ready" in keys:
            return False
        if cordoned[one["metadata"]["name"]] != ("node.kubernetes.io/unschedulable" in keys):
            return False
    claims = plane.api.get("/api/v1/persistentvolumeclaims")["items"]
    return all(one["status"].get("phase") == "Bound" for one in claims)
