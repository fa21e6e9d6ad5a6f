"""Pods resized in place: what a resize that waits keeps from others, and when its pod is moved.

Scenes play what a kubelet says of resizes. On a real API server: ``cluster/test_live_preemption.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.labtools import deployment, pod
from simulated.crowding import HEARD_SECONDS
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged

CLASS = "slacktide.io/class"
MARGIN, PATIENCE, SOON = 1.0, 4.0, 1.1
"""Seconds: a class's margin, what a resize may wait before its pod is moved, the watchdog's."""


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [
        service_class("half", 0.5, 2, marginSeconds=MARGIN, default=True),
        service_class("all", 1.0, 1, marginSeconds=MARGIN),
    ]
    with staged(
        classes, qos__alpha=0.1, scheduler__watchdog=1, policy__patience=3600.0, kube__resize_patience=PATIENCE
    ) as stage:
        yield stage


def kubelet_says(place: Stage, name: str, reason: str, cpu: str) -> None:
    """A pod's container has this much; a resize of it waits for this reason, or for none (\"\")."""
    given = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    told = {"name": "main", "ready": True, "resources": given, "allocatedResources": given["requests"],
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}  # fmt: skip
    pending: Json = {"type": "PodResizePending", "$patch": "delete"}
    if reason:
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    body = {"status": {"containerStatuses": [told], "conditions": [pending]}}
    place.patch("pods", name, body, sub="status")


def grow(place: Stage, name: str, cpu: str, reason: str, has: str = "1") -> None:
    """Ask for more, of which the kubelet says at once that it has not got it."""
    kubelet_says(place, name, "", has)
    asked = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    place.patch("pods", name, asked, sub="resize")
    kubelet_says(place, name, reason, has)


def stateful(name: str, replicas: int = 1, service: str = "half", **settings: Any) -> Json:
    """A StatefulSet of pods of one core, made anew with its template, but not because that changed."""
    body = deployment(name, replicas, cpu="1", labels={CLASS: service}, **settings)
    body["kind"] = "StatefulSet"
    body["spec"] |= {"serviceName": name, "updateStrategy": {"type": "OnDelete"}}
    return body


def sized(place: Stage, name: str, cpu: str) -> None:
    """The template of a StatefulSet asks for this much from now on, as whoever resizes its pods would have it."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    place.patch("statefulsets", name, {"spec": {"template": {"spec": {"containers": [container]}}}})


def half(name: str, cpu: str, **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: "half"}, **settings)


def full(place: Stage, nodes: list[str]) -> None:
    """All but a core of each of these nodes, of 3, is taken."""
    for node in nodes:
        place.create("pods", half(f"filler-{node}", "2"))
    place.ready("filler", len(nodes))


def evicted(place: Stage) -> list[str]:
    return [one.name for one in place.lives() if one.evicted is not None]


def is_told_why_it_stays(place: Stage, name: str, reason: str) -> None:
    place.until(lambda: any(reason in note for note in place.events("ResizeWaits", name)), f"{name}: {reason}")


def stays(place: Stage, *names: str) -> None:
    place.wait(60.0)
    assert evicted(place) == []
    assert all(place.node_of(name) == "node-0" for name in names)


def test_what_a_deferred_resize_waits_for_goes_to_nobody_else(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="4")
    place.create("statefulsets", stateful("web"))
    place.create("pods", half("filler", "2"))
    place.ready("", 2)
    grow(place, "web-0", "3", "Deferred")
    place.wait(HEARD_SECONDS)
    place.create("pods", half("comes", "1", preemptionPolicy="Never"))
    place.waits("comes", r"\b1 Insufficient cpu\b")  # 1 is free, but 3 + 2 are taken of 4
    place.delete("pods", "filler", 0)
    gone = place.now
    assert place.bound("comes") == node  # 3 + 1 of 4
    assert place.now - gone <= HEARD_SECONDS
    kubelet_says(place, "web-0", "", "3")
    stays(place, "web-0")


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_a_resize_that_waits_for_long_moves_its_pod_once_there_is_room_elsewhere(place: Stage, reason: str) -> None:
    """What is infeasible, as where a node pins CPUs, takes no room; what is deferred does."""
    (small,) = place.nodes(1, cpu="4")
    place.create("statefulsets", stateful("web"))
    place.create("pods", half("filler", "2"))
    place.ready("", 2)
    sized(place, "web", "3")
    grow(place, "web-0", "3", reason)
    place.wait(HEARD_SECONDS)
    begun = place.now
    place.create("pods", half("beside", "1", preemptionPolicy="Never"))
    if reason == "Deferred":
        place.waits("beside", "Insufficient cpu")
        place.delete("pods", "beside")
    else:
        assert place.bound("beside") == small
    is_told_why_it_stays(place, "web-0", f"its resize is {reason}")
    assert begun + PATIENCE - HEARD_SECONDS <= place.now <= begun + PATIENCE + SOON + 1.0
    place.wait(60.0)  # so that it can afford to be away for a while
    assert evicted(place) == []
    (large,) = place.nodes(1, prefix="large", cpu="4")
    joined = place.now
    place.until(lambda: evicted(place) == ["web-0"], "it moves")
    assert place.now - joined <= SOON + HEARD_SECONDS
    place.until(lambda: len(place.lives("web-0")) == 2 and place.node_of("web-0") == large, "it is there")
    place.ready("web")
    assert place.events("ResizeMoved", "web-0") == [
        f"Evicted from {small}: its resize is {reason} there, and another node has room for it"
    ]
    status = place.status("statefulset-web", lambda one: one["running"] == 1, "it runs again")
    assert status["state"] == "Kept"
    first, second = place.lives("web-0")
    lost = second.up[0][0] - first.up[0][1] + first.up[0][0] - first.created
    alive = place.instant(status["at"]) - first.created
    assert status["delivered"] == pytest.approx(1.0 - lost / alive, abs=0.01)


def test_pods_of_one_controller_move_one_after_the_other(place: Stage) -> None:
    full(place, place.nodes(2, cpu="3"))
    place.create("statefulsets", stateful("web", 2))
    place.ready("web", 2)
    place.wait(60.0)
    place.nodes(2, prefix="large", cpu="4")
    sized(place, "web", "3")
    for name in ("web-0", "web-1"):
        grow(place, name, "3", "Deferred")
    place.until(lambda: {place.node_of(one) for one in place.names("web")} == {"large-0", "large-1"}, "both moved")
    place.ready("web", 2)
    lives = [place.lives(name) for name in ("web-0", "web-1")]
    (_, again), (went, _) = sorted((old.evicted or 0.0, new.up[0][0]) for old, new in lives)
    assert again <= went, "the second went when the first was ready again"


def test_a_pod_that_nobody_would_create_anew_stays(place: Stage) -> None:
    full(place, place.nodes(1, cpu="3"))
    place.create("pods", half("bare", "1"))
    place.ready("bare")
    place.nodes(1, prefix="large", cpu="4")
    grow(place, "bare", "3", "Deferred")
    is_told_why_it_stays(place, "bare", "no controller creates a bare pod again")
    stays(place, "bare")


def test_a_pod_whose_volume_is_of_its_node_stays_there(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="3")
    full(place, [node])
    sizes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "of-a-node"}
    place.create("storageclasses", {"metadata": {"name": "of-a-node"}, "provisioner": "kubernetes.io/no-provisioner"})
    wanted = {**sizes, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "data"}
    made = place.create("persistentvolumeclaims", {
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": wanted,
    })  # fmt: skip
    here = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]
    place.create("persistentvolumes", {"metadata": {"name": "data"}, "spec": {
        **sizes, "capacity": {"storage": "1Gi"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}},
        "claimRef": {"namespace": place.namespace, "name": "data", "uid": made["metadata"]["uid"]},
    }})  # fmt: skip
    place.wait(1.0)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    place.create("statefulsets", stateful("web", volumes=volumes))
    place.ready("web")
    place.nodes(1, prefix="large", cpu="4")
    grow(place, "web-0", "3", "Deferred")
    is_told_why_it_stays(place, "web-0", "no other feasible node has room")
    stays(place, "web-0")


def test_a_budget_and_a_promise_without_slack_keep_a_pod_where_it_is(place: Stage) -> None:
    full(place, place.nodes(2, cpu="3"))
    place.create("statefulsets", stateful("guarded"))
    place.create("statefulsets", stateful("promised", service="all"))
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}}
    place.create("poddisruptionbudgets", {"metadata": {"name": "guard"}, "spec": budget})
    place.ready("guarded")
    place.ready("promised")
    place.nodes(1, prefix="large", cpu="8")
    for name in ("guarded", "promised"):
        sized(place, name, "3")
        grow(place, f"{name}-0", "3", "Deferred")
    is_told_why_it_stays(place, "guarded-0", "a PodDisruptionBudget")
    is_told_why_it_stays(place, "promised-0", "is below the 1 s margin of its class")
    place.wait(60.0)
    assert evicted(place) == []
    place.delete("poddisruptionbudgets", "guard")
    place.until(lambda: evicted(place) == ["guarded-0"], "it moves")
    place.bound("guarded-0")
    place.wait(60.0)
    assert evicted(place) == ["guarded-0"]
