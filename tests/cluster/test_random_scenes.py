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
from typing import Any

import pytest

from cluster.kube_judge import NAME, Judge
from cluster.labtools import pod, until
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain.feasibility import Looker
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
from support.scenes import Dice, Scene

Json = dict[str, Any]
SCENES = int(os.environ.get("SCENES", "25"))
FIRST = int(os.environ.get("FIRST_SCENE", "1"))
GATES = "TaintTolerationComparisonOperators=true"
OURS, NEVER = "slacktide", "never"
NOW = 2_000_000_000.0
"""Later than all that the API server says."""


class Ours:
    """What we make of a cluster's objects."""

    def __init__(self, plane: ControlPlane) -> None:
        config = load_live()
        config = replace(config, kube=replace(config.kube, all_nodes=True))
        self.mirror = mirror = ClusterMirror(config, lambda: NOW)
        spec = ServiceClassSpec(0.9, 1, default=True, namespaces=("*",))
        mirror.see_class(ServiceClass(WrittenMetadata("plain"), spec))
        for kind, see in (
            (NAMESPACE, mirror.see_namespace), (NODE, mirror.see_node),
            (PERSISTENT_VOLUME, mirror.volumes.see_volume), (PERSISTENT_VOLUME_CLAIM, mirror.volumes.see_claim),
        ):  # fmt: skip
            for body in plane.api.get(kind.path())["items"]:
                see(decoded(kind, body))
        for body in plane.api.get(POD.path())["items"]:
            if body["spec"].get("schedulerName") != NAME:
                mirror.see_pod(decoded(POD, body))
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
    running = [one for scene in scenes for one in scene.running]
    _create_pods(plane, running)
    for one in running:
        if one["metadata"].get("finalizers"):
            api.delete(f"/api/v1/namespaces/{one['metadata']['namespace']}/pods/{one['metadata']['name']}", 0)
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


def test_kube_scheduler_and_we_agree_on_every_node(plane: ControlPlane, binaries: Binaries) -> None:
    scenes = [Dice(seed).drawn() for seed in range(FIRST, FIRST + SCENES)]
    waiting = create(plane, scenes)
    judge = Judge(plane, binaries, GATES)
    try:
        theirs = judge.verdicts(waiting)
    finally:
        judge.close()
    ours, differences, counts = Ours(plane), list[str](), Counter[str]()
    nodes = {scene.name: [one["metadata"]["name"] for one in scene.nodes] for scene in scenes}
    for one in waiting:
        allowed = theirs[one["metadata"]["uid"]]
        fits, host, problem = ours.judged(one)
        where = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
        counts["pods"] += 1
        counts["nodes"] += len(nodes[one["spec"]["nodeSelector"]["example.com/scene"]])
        counts["allowed"] += len(allowed)
        counts["placed"] += bool(host)
        if fits != allowed:
            said = f"only kube-scheduler {sorted(allowed - fits)}, only we {sorted(fits - allowed)} {problem}"
            differences.append(f"{where}: {said}")
        if (host not in allowed) if host else bool(allowed):
            differences.append(f"{where}: placed on {host or 'no node'}, kube-scheduler allows {sorted(allowed)}")
    print(dict(counts))
    assert not differences, "\n".join(differences)
    assert counts["allowed"] > counts["nodes"] / 10
    assert counts["placed"] < counts["pods"] * 0.95
