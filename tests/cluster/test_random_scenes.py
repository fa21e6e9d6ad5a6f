"""Random clusters: on each node kube-scheduler and we say the same of every pod, and what can be placed we place.

kube-scheduler is the judge (:mod:`cluster.kube_judge`). Our side is all of the scheduler but the client: what the API
server lists goes into a mirror, from there to an engine, and the engine decides. ``SCENES=300`` plays so many.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from cluster.kube_judge import NAME, Judge
from cluster.labtools import pod, until
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain.feasibility import Looker
from slacktide.kube.client.kinds import HasMetadata, Kind
from slacktide.kube.feed.listener import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.custom_resources import WrittenMetadata
from slacktide.kube.resources.objects import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    Identity,
    ServiceClass,
    ServiceClassSpec,
)
from slacktide.lab import ApiError, Binaries, ControlPlane
from slacktide.settings import load_live
from support.made_objects import decoded
from support.scenes import SCENE, Dice, Scene

Json = dict[str, Any]
T = TypeVar("T", bound=HasMetadata)
SCENES = int(os.environ.get("SCENES", "25"))
FIRST = int(os.environ.get("FIRST_SCENE", "1"))
GATES = "TaintTolerationComparisonOperators=true"
GRACE_SECONDS = 86_400
OURS, NEVER = "slacktide", "never"
NOW = 2_000_000_000.0
"""Later than all that the API server says."""


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


class Ours:
    """What we make of the objects of some scenes."""

    def __init__(self, listed: Listed, scenes: list[Scene]) -> None:
        config = load_live()
        config = replace(config, kube=replace(config.kube, all_nodes=True))
        self.mirror = mirror = ClusterMirror(config, lambda: NOW)
        spec = ServiceClassSpec(0.9, 1, default=True, namespaces=("*",))
        mirror.see_class(ServiceClass(WrittenMetadata("plain"), spec))
        for _, namespace in listed.of(scenes, NAMESPACE):
            mirror.see_namespace(namespace)
        for _, node in listed.of(scenes, NODE):
            mirror.see_node(node)
        for _, volume in listed.of(scenes, PERSISTENT_VOLUME):
            mirror.volumes.see_volume(volume)
        for _, claim in listed.of(scenes, PERSISTENT_VOLUME_CLAIM):
            mirror.volumes.see_claim(claim)
        for body, one in listed.of(scenes, POD):
            if body["spec"].get("schedulerName") != NAME:
                mirror.see_pod(one)
        self.engine = Engine(config)
        self.feed = LiveFeed(mirror, self.engine, FeedListener(), lambda: NOW, lambda: 0.0)
        take_over(self.feed, {}, lambda _decision, _leaving: None)
        mirror.follow(self.feed)

    def judged(self, body: Json) -> tuple[frozenset[str], str, str]:
        """The nodes on which a pod that waits could run, on which of them it is placed, and why it cannot be at all."""
        body = json.loads(json.dumps(body))
        body["spec"]["schedulerName"] = OURS
        body["status"] = {}
        one, engine = decoded(POD, body), self.engine
        uid, metadata = one.metadata.uid, one.metadata
        self.mirror.see_pod(one)
        fed = self.feed.pods[uid]
        fits: frozenset[str] = frozenset()
        host = ""
        if fed.key:
            engine.tables.settle()
            mask = Looker(engine).look(engine.tables.kind_of(engine.specs[fed.spec])).fits
            fits = frozenset(name for name, h in engine.hosts.items() if mask[h])
            for decision in engine.run(NOW).decisions:
                assert decision.uid == uid
                host = decision.host
                engine.refused(uid, NOW)
        problem = fed.problem
        self.mirror.drop_pod(Identity(metadata.namespace, metadata.name, uid, ""), None)
        return fits, host, problem


def create(plane: ControlPlane, scenes: list[Scene]) -> list[Json]:
    """Everything of the scenes; the pods that wait, as the API server has them. These come last."""
    api = plane.api
    never = {"metadata": {"name": NEVER}, "value": 0, "preemptionPolicy": "Never"}
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", never)
    api.create_all("/api/v1/namespaces", [one for scene in scenes for one in scene.namespaces])
    api.create_all("/api/v1/nodes", [one for scene in scenes for one in scene.nodes])
    api.create_all("/api/v1/persistentvolumes", [one for scene in scenes for one in scene.volumes])
    for one in (claim for scene in scenes for claim in scene.claims):
        api.post(f"/api/v1/namespaces/{one['metadata']['namespace']}/persistentvolumeclaims", one)
    _create_pods(plane, [one for scene in scenes for one in scene.running])
    for one in (each for scene in scenes for each in scene.going):
        metadata = one["metadata"]
        api.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", GRACE_SECONDS)
    until(lambda: _is_settled(plane, scenes), "nodes and claims are as they will be")
    until(lambda: _is_known(plane, NEVER), "the API server knows the PriorityClass")
    for one in (waiting := [each for scene in scenes for each in scene.waiting]):
        one["spec"] |= {"schedulerName": NAME, "priorityClassName": NEVER}
    return _create_pods(plane, waiting)


def _is_known(plane: ControlPlane, priority_class: str) -> bool:
    try:
        plane.api.post("/api/v1/namespaces/default/pods?dryRun=All", pod("p", priorityClassName=priority_class))
    except ApiError as error:
        if "priority" not in str(error).lower():
            raise
        return False
    return True


def _create_pods(plane: ControlPlane, pods: list[Json]) -> list[Json]:
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


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    flags = {"kube-apiserver": [f"--feature-gates={GATES}"]}
    made = ControlPlane.create(tmp_path_factory.mktemp("scenes") / "plane", binaries, flags=flags)
    made.start(guarded=True)
    try:
        yield made
    finally:
        made.kill()


def difference(allowed: frozenset[str], fits: frozenset[str], host: str) -> str:
    """What kube-scheduler's nodes, ours, and where we placed the pod have not in common; empty where all is well."""
    if fits != allowed:
        return f"only kube-scheduler {sorted(allowed - fits)}, only we {sorted(fits - allowed)}"
    if (host not in allowed) if host else bool(allowed):
        return f"placed on {host or 'no node'}, kube-scheduler allows {sorted(allowed)}"
    return ""


def test_kube_scheduler_and_we_agree_on_every_node(plane: ControlPlane, binaries: Binaries) -> None:
    scenes = [Dice(seed).drawn() for seed in range(FIRST, FIRST + SCENES)]
    waiting = create(plane, scenes)
    judge = Judge(plane, binaries, GATES)
    try:
        theirs = judge.verdicts(waiting)
    finally:
        judge.close()
    listed, differences, counts = Listed(plane), list[str](), Counter[str]()
    for scene in scenes:
        ours = Ours(listed, [scene])
        for one in waiting:
            if one["spec"]["nodeSelector"][SCENE] == scene.name:
                allowed = theirs[one["metadata"]["uid"]]
                fits, host, problem = ours.judged(one)
                counts.update(pods=1, nodes=len(scene.nodes), allowed=len(allowed), placed=int(bool(host)))
                said = difference(allowed, fits, host)
                differences += (
                    [f"{one['metadata']['namespace']}/{one['metadata']['name']}: {said} {problem}"] if said else []
                )
    print(f"\n{SCENES} scenes: {dict(counts)}, {len(differences)} differences")  # noqa: T201  # what a long run came to
    assert not differences, "\n".join(differences)
    assert counts["allowed"] > counts["nodes"] / 10
    assert counts["placed"] < counts["pods"] * 0.95
