"""Pods resized in place, on a real control plane; scenes play the kubelet's part of it, which KWOK does not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster import ledgers
from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, deployment, pod, until
from cluster.running import (
    BETWEEN_EQUALS,
    Cast,
    Place,
    Stage,
    admitted,
    at,
    nothing_wrong,
    scene,
    service_class,
    staged,
)
from cluster.test_live_placement import claim, storage_class, volume
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries

CLASS = "slacktide.io/class"
HALF, MARGIN = 0.5, 1.0
PATIENCE = 4.0
"""Seconds that a resize may wait before its pod is moved."""
SAVED_SECONDS = 25.0


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    classes = [
        service_class("half", HALF, 2, marginSeconds=MARGIN, default=True),
        service_class("all", 1.0, 1, marginSeconds=MARGIN),
    ]
    yield from staged(
        binaries, tmp_path_factory.mktemp("resizes"), classes,
        qos__alpha=ledgers.ALPHA, scheduler__watchdog=1, policy__patience=BETWEEN_EQUALS,
        kube__resize_patience=PATIENCE,
    )  # fmt: skip


# -- the kubelet's part ------------------------------------------------------------------------------------------------


def kubelet_says(place: Place, name: str, reason: str, cpu: str) -> None:
    """A pod's container has this much; a resize of it waits for this reason, or for none (\"\")."""
    status = place.pod(name)["status"]
    given = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    told = {**status["containerStatuses"][0], "resources": given, "allocatedResources": given["requests"]}
    pending: Json = {"type": "PodResizePending", "$patch": "delete"}
    if reason:
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    body = {"status": {"containerStatuses": [told], "conditions": [pending]}}
    place.api.patch(f"{place.kinds_path('pods')}/{name}/status", body, STRATEGIC)


def resize(place: Place, name: str, cpu: str) -> None:
    """Ask for another size through the subresource, as `kubectl patch --subresource resize` does."""
    body = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}
    place.api.patch(f"{place.kinds_path('pods')}/{name}/resize", body, STRATEGIC)


def grow(place: Place, name: str, cpu: str, reason: str, has: str = "1") -> None:
    """Ask for more, of which the kubelet says at once that it has not got it."""
    kubelet_says(place, name, "", has)
    resize(place, name, cpu)
    kubelet_says(place, name, reason, has)


def stateful(name: str, replicas: int = 1, cpu: str = "1", service: str = "half", **settings: Any) -> Json:
    """A StatefulSet whose pods are created anew with its template, but not because that changed."""
    body = deployment(name, replicas, cpu=cpu, labels={CLASS: service}, **settings)
    body["kind"] = "StatefulSet"
    body["spec"] |= {"serviceName": name, "updateStrategy": {"type": "OnDelete"}}
    return body


def sized(place: Place, name: str, cpu: str) -> None:
    """The template of a StatefulSet asks for this much from now on, as whoever resizes its pods would have it."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    place.patch("statefulsets", name, {"spec": {"template": {"spec": {"containers": [container]}}}})


def of(service: str, name: str, cpu: str, **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: service}, **settings)


def full(place: Place, nodes: list[str]) -> None:
    """All but a core of each of these nodes, of 3, is taken."""
    for node in nodes:
        place.create("pods", of("half", f"filler-{node}", "2"))
    place.ready("filler", len(nodes))


def is_told(place: Place, name: str, reason: str) -> bool:
    return any(reason in note for note in told(place, "ResizeWaits", name))


def told(place: Place, reason: str, name: str) -> list[str]:
    return [one["note"] for one in place.auditor.events(place.namespace, reason, name)]


def uid_of(place: Place, name: str) -> str:
    return str(place.pod(name)["metadata"]["uid"])


# -- scenes ------------------------------------------------------------------------------------------------------------


@scene
def test_what_a_deferred_resize_waits_for_goes_to_nobody_else(place: Place) -> None:
    (node,) = place.nodes(1, cpu="4")
    place.create("statefulsets", stateful("web"))
    place.create("pods", of("half", "filler", "2"))
    place.ready("web")
    place.ready("filler")
    meek = {"metadata": {"name": "meek"}, "value": 7, "preemptionPolicy": "Never"}
    place.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", meek)
    grow(place, "web-0", "3", "Deferred")  # heard of before the next pod, as all changes of pods
    until(lambda: admitted(place, of("half", "comes", "1", priorityClassName="meek")), "the priority class is known")
    place.waits("comes", r"\b1 Insufficient cpu\b")  # 1 is free, but 3 + 2 are taken of 4
    place.delete("pods", "filler", 0)
    assert place.bound("comes") == node  # 3 + 1 of 4
    kubelet_says(place, "web-0", "", "3")
    time.sleep(PATIENCE + 2)
    assert place.node_of("web-0") == node
    assert not place.auditor.evictions(place.namespace)


@scene
def test_a_resize_that_stays_deferred_moves_its_pod_and_keeps_its_promise(place: Place) -> None:
    (small,) = place.nodes(1, cpu="4")
    place.create("statefulsets", stateful("web"))
    place.create("pods", of("half", "filler", "2"))
    place.ready("web")
    place.ready("filler")
    first = uid_of(place, "web-0")
    sized(place, "web", "3")
    grow(place, "web-0", "3", "Deferred")
    until(lambda: told(place, "ResizeWaits", "web-0"), "it is said why it stays")
    note = told(place, "ResizeWaits", "web-0")[0]
    assert "its resize is Deferred" in note
    assert "no other feasible node has room" in note or "below the 1 s" in note
    # So that it can afford to be away for a while. What it took to become ready counts against it.
    until(lambda: place.slack("statefulset-web") >= SAVED_SECONDS, "it has slack")
    (large,) = place.nodes(1, prefix="-large", cpu="4")
    until(lambda: (place.get("pods", "web-0") or {"metadata": {"uid": first}})["metadata"]["uid"] != first, "it moves")
    assert place.bound("web-0") == large
    place.ready("web")
    (note,) = until(lambda: told(place, "ResizeMoved", "web-0"), "its event")
    assert note == f"Evicted from {small}: its resize is Deferred there, and another node has room for it"
    (eviction,) = until(lambda: place.auditor.evictions(place.namespace), "its line in the audit log")
    assert eviction["objectRef"]["name"] == "web-0"
    chain = place.lives("web-0")
    assert len(chain) == 2
    again = chain[1].ready[0][0]
    status = place.status("statefulset-web", lambda one: one["running"] == 1 and at(one) >= again, "it runs again")
    ledgers.independent(status, [place.lives("web-0")], HALF, incidents=4)
    # It went because it could afford what it had lost of a second or two; whoever brings it back may take longer.
    if again - (chain[0].ended or again) < SAVED_SECONDS / 2:
        assert status["delivered"] >= HALF
        assert status["state"] == "Kept"


@scene
def test_what_is_infeasible_takes_no_room_and_moves_its_pod_to_a_node_that_is_large_enough(place: Place) -> None:
    (small,) = place.nodes(1, cpu="3")
    place.create("statefulsets", stateful("web"))
    place.ready("web")
    first = uid_of(place, "web-0")
    sized(place, "web", "3")
    grow(place, "web-0", "3", "Infeasible")  # as where a node pins CPUs
    place.create("pods", of("half", "beside", "2"))
    assert place.bound("beside") == small
    (large,) = place.nodes(1, prefix="-large", cpu="4")
    until(lambda: (place.get("pods", "web-0") or {"metadata": {"uid": first}})["metadata"]["uid"] != first, "it moves")
    assert place.bound("web-0") == large


@scene
def test_pods_of_one_controller_move_one_after_the_other(place: Place) -> None:
    full(place, place.nodes(2, cpu="3"))
    place.create("statefulsets", stateful("web", 2))
    place.ready("web", 2)
    place.nodes(2, prefix="-large", cpu="4")
    sized(place, "web", "3")
    for name in ("web-0", "web-1"):
        grow(place, name, "3", "Deferred")

    def on_large() -> int:
        return sum("-large" in one["spec"].get("nodeName", "") for one in place.pods("web"))

    until(lambda: on_large() == 2, "both moved", HANG_SECONDS + 60)
    place.ready("web", 2)
    zero, one = (sorted(place.lives(name), key=lambda life: life.created) for name in ("web-0", "web-1"))
    gaps = sorted((old.ended or 0.0, new.ready[0][0]) for old, new in (zero, one))
    assert gaps[0][1] <= gaps[1][0] + ledgers.INCIDENT_SECONDS, "the second went when the first was ready again"


@scene
def test_a_pod_that_nobody_would_create_anew_stays(place: Place) -> None:
    (node,) = place.nodes(1, cpu="3")
    full(place, [node])
    place.create("pods", of("half", "bare", "1"))
    place.ready("bare")
    place.nodes(1, prefix="-large", cpu="4")
    grow(place, "bare", "3", "Deferred")
    until(lambda: told(place, "ResizeWaits", "bare"), "it is said why it stays")
    assert "no controller creates a bare pod again" in told(place, "ResizeWaits", "bare")[0]
    time.sleep(PATIENCE)
    assert place.node_of("bare") == node


@scene
def test_a_pod_whose_volume_is_of_its_node_stays_there(place: Place) -> None:
    (node,) = place.nodes(1, cpu="3")
    full(place, [node])
    place.api.post("/apis/storage.k8s.io/v1/storageclasses", storage_class("of-a-node", "kubernetes.io/no-provisioner"))
    place.create("persistentvolumeclaims", claim("data", "of-a-node"))
    reference = {"kind": "PersistentVolumeClaim", "namespace": place.namespace, "name": "data", "apiVersion": "v1"}
    place.api.post("/api/v1/persistentvolumes", volume("data", "of-a-node", node, claimRef=reference))
    place.create(
        "statefulsets", stateful("web", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    )
    place.ready("web")
    place.nodes(1, prefix="-large", cpu="4")
    grow(place, "web-0", "3", "Deferred")
    until(partial(is_told, place, "web-0", "no other feasible node has room"), "it is said why it stays")
    time.sleep(PATIENCE)
    assert place.node_of("web-0") == node
    assert not place.auditor.evictions(place.namespace)


@scene
def test_a_budget_and_a_promise_without_slack_keep_a_pod_where_it_is(place: Place) -> None:
    full(place, place.nodes(2, cpu="3"))
    place.create("statefulsets", stateful("guarded"))
    place.create("statefulsets", stateful("promised", service="all"))
    selector = {"matchLabels": {"app": "guarded"}}
    budget = {"metadata": {"name": "guard"}, "spec": {"maxUnavailable": 0, "selector": selector}}
    place.api.post(f"{place.kinds_path('poddisruptionbudgets')}", budget)
    place.ready("guarded")
    place.ready("promised")
    place.nodes(1, prefix="-large", cpu="8")
    for name in ("guarded", "promised"):
        sized(place, name, "3")
        grow(place, f"{name}-0", "3", "Deferred")
    reasons = {"guarded-0": "a PodDisruptionBudget", "promised-0": "is below the 1 s margin of its class"}
    for name, reason in reasons.items():
        until(partial(is_told, place, name, reason), reason)
    time.sleep(PATIENCE)
    assert not place.auditor.evictions(place.namespace)
    path = f"{place.kinds_path('poddisruptionbudgets')}/guard"
    place.api.patch(path, {"spec": {"maxUnavailable": 1}}, STRATEGIC)
    until(lambda: [1 for one in place.pods("guarded") if "-large" in one["spec"].get("nodeName", "")], "it moves")
    assert "-large" not in place.node_of("promised-0")


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
