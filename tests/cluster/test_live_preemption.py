"""Whoever has slack makes room for whoever has none: by the Eviction API, within budgets, and never in vain."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.auditor import Seen, seconds
from cluster.judging import Json, is_over
from cluster.labtools import condition, deployment, pod, until
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
from cluster.test_live_workloads import settled
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries

CLASS, HOSTNAME = "slacktide.io/class", "kubernetes.io/hostname"
HIGH, LOW = 0.99, 0.5
LEAST = 3.0
"""Seconds that everybody may run before it is preempted."""
GRACE = 10
SAVED_SECONDS = 25.0
"""Of slack: so much a pod has that is moved."""
PATIENCE = 20.0
"""Seconds beyond their grace periods that victims may take: so long no kubelet needs, on however slow a machine."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    classes = [
        service_class("high", HIGH, 1),
        service_class("low", LOW, 3, marginSeconds=0.5, overheadLimit=1.0, default=True),
    ]
    yield from staged(
        binaries, tmp_path_factory.mktemp("preemption"), classes,
        qos__alpha=ledgers.ALPHA, policy__min_running=LEAST, policy__patience=BETWEEN_EQUALS, scheduler__watchdog=1,
        kube__victim_patience=PATIENCE, kube__resize_patience=4,
        kube__pass_budget=0,  # everything happens between the parts of passes, too
    )  # fmt: skip


def low(name: str, cpu: str = "1500m", **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: "low", **settings.pop("labels", {})}, **settings)


def high(name: str, cpu: str = "1500m", **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: "high"}, **settings)


def bound_at(place: Place, name: str) -> float:
    """When a pod is said to have been bound."""
    return seconds(condition(place.pod(name), "PodScheduled")["lastTransitionTime"])


def all_evicted(place: Place, count: int = 1) -> dict[str, float]:
    """Names of the pods that the scheduler evicted, and when, once so many are logged: lines may be written late."""
    return dict(until(lambda: len(found := evicted(place)) >= count and found, f"{count} evictions are logged"))


def revision_of(place: Place, name: str, when: Callable[[Seen], bool]) -> int:
    """The revision that first made a pod so."""

    def found() -> list[int]:
        about = [one for one in place.auditor.tape("pods") if one.body["metadata"]["namespace"] == place.namespace]
        return [one.revision for one in about if one.body["metadata"]["name"] == name and when(one)]

    return int(until(found, f"the auditor sees that pod {name} is so")[0])


def is_bound(one: Seen) -> bool:
    return bool(one.body["spec"].get("nodeName"))


def evicted(place: Place) -> dict[str, float]:
    """Names of the pods that the scheduler evicted, and when."""
    acts = place.auditor.evictions(place.namespace)
    return {act["objectRef"]["name"]: seconds(act["stageTimestamp"]) for act in acts}


def slacks(note: str) -> tuple[float, float]:
    """The victim's and the other's, by an event."""
    found = re.search(r"slack is (-?[\d.]+) s, that of the preemptor (-?[\d.]+) s", note)
    assert found, note
    return float(found[1]), float(found[2])


@scene
def test_a_victim_goes_in_its_own_time_and_its_place_is_kept(place: Place) -> None:
    (node,) = place.nodes(1, cpu="2")
    settings: Json = {"labels": {CLASS: "low"}, "terminationGracePeriodSeconds": GRACE}
    place.create("deployments", deployment("web", 1, cpu="1500m", **settings))
    (victim,) = place.ready("web", 1)
    name = victim["metadata"]["name"]
    time.sleep(GRACE + 1)
    place.create("pods", high("first", "1"))

    def leaving() -> Json | None:
        one = place.pod(name)
        return one if "deletionTimestamp" in one["metadata"] else None

    found = until(leaving, "the victim is told to go")
    place.create("pods", high("second", "400m"))  # fits beside the victim, takes nothing of the place that is kept
    assert condition(found, "DisruptionTarget")["reason"] == "EvictionByEvictionAPI"
    assert found["metadata"]["deletionGracePeriodSeconds"] == GRACE
    revision_of(place, "first", lambda one: one.body.get("status", {}).get("nominatedNodeName") == node)
    place.bound("second")
    place.create("pods", high("third", "500m"))  # fits only when the victim is gone, beside the first
    assert place.bound("first") == node
    place.bound("third")
    # By the order of the objects' revisions: nobody but the second was there before the victim had gone.
    gone = revision_of(place, name, lambda one: one.gone or is_over(one.body))
    came = {who: revision_of(place, who, is_bound) for who in ("first", "second", "third")}
    assert came["first"] > gone
    assert came["third"] > gone
    (beside,), ended = place.lives("second"), place.lives(name)[0].ended or 0.0
    if ended - beside.created > 3.0 + beside.late(ended):  # there was time for it
        assert came["second"] < gone
    (event,) = until(lambda: place.auditor.events(place.namespace, "Preempted", name), "its event")
    assert event["note"].startswith(f"Preempted by pod {place.namespace}/first on node {node}: its slack is ")
    assert (event["related"]["kind"], event["related"]["name"]) == ("Pod", "first")
    (old, *_) = place.lives("web")
    when = all_evicted(place)[name]
    its, other = slacks(event["note"])
    # Both are of the pass that decided it: the eviction may have waited for its turn.
    history = place.explained(name)["history"]
    (decided,) = (seconds(one["at"]) for one in history if one["what"] == "preempted")
    assert decided <= when
    late = 1.5 + old.late(when)
    slack = old.running(decided) / LOW - old.alive(decided) - ledgers.ALPHA
    ledgers.close(its, slack, late / LOW + late, "the victim's slack")
    ledgers.close(other, place.lives("first")[0].created - decided - ledgers.ALPHA, late, "the other's slack")
    status = place.status("deployment-web", lambda s: s["preemptions"] == 1 and s["waiting"] == 1, "one preemption")
    ledgers.independent(status, [place.lives("web")], LOW, 4)
    # The place is taken now; its replacement says why it waits (at first: for its predecessor to be gone), and goes
    # on with the same ledger afterwards.
    (new,) = (one["metadata"]["name"] for one in place.pods("web") if one["metadata"]["name"] != name)
    place.waits(new, r"^0/\d+ nodes are available: .*\b1 Insufficient cpu\b.*\. preemption: ")
    place.delete("pods", "first")
    place.delete("pods", "third")
    place.ready("web", 1)
    status = settled(place, "deployment-web", 1)
    ledgers.independent(status, [place.lives("web")], LOW, 6)
    assert status["preemptions"] == 1


@scene
def test_pods_that_name_no_class_go_by_their_priority_and_those_of_the_system_stay(place: Place) -> None:
    (node,) = place.nodes(1, cpu="4")
    path, group = "/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1"
    for name, value, more in (("vital", 1000, {}), ("usual", 7, {"globalDefault": True}), ("idle", -5, {}),
                              ("meek", 2000, {"preemptionPolicy": "Never"})):  # fmt: skip
        body: Json = {"apiVersion": group, "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more}
        place.api.post(path, body)
    daemons = deployment("daemon", 1, cpu="900m")
    daemons["kind"] = "DaemonSet"
    del daemons["spec"]["replicas"]
    place.create("daemonsets", daemons)
    uid = place.api.get(f"/api/v1/nodes/{node}")["metadata"]["uid"]
    static = pod("static", "900m", annotations={"kubernetes.io/config.mirror": "hash"}, nodeName=node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
    static["metadata"]["ownerReferences"] = [owner]
    place.create("pods", static)
    place.create("pods", pod("critical", "900m", priorityClassName="system-cluster-critical"))
    until(lambda: admitted(place, pod("vital", "900m", priorityClassName="vital")), "the API server knows the classes")
    place.ready("", 4)
    time.sleep(LEAST + 1.0)
    until(lambda: admitted(place, pod("usual", "900m")), "the API server knows the default")
    until(lambda: admitted(place, pod("idle", "900m", priorityClassName="idle")), "the API server knows them all")
    until(lambda: admitted(place, pod("meek", "900m", priorityClassName="meek")), "the API server knows them all")
    assert [place.pod(name)["spec"]["priority"] for name in ("usual", "idle")] == [7, -5]
    place.waits("usual", r"preemption: .*\(1 node\(s\) with bare pods")
    place.waits("meek", "preemption: not eligible due to preemptionPolicy=Never")
    assert evicted(place) == {}
    place.create("pods", high("needs", "900m"))
    place.bound("needs")
    place.create("pods", high("large", "1900m"))
    place.waits("large", r"preemption: .*\(1 node\(s\) with pods that are system-critical")
    assert list(all_evicted(place)) == ["vital"]


# -- moved for a resize; scenes play the kubelet's part of it, which KWOK does not -----------------------------------


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


def stateful(name: str, replicas: int = 1, cpu: str = "1", service: str = "low", **settings: Any) -> Json:
    """A StatefulSet whose pods are created anew with its template, but not because that changed."""
    body = deployment(name, replicas, cpu=cpu, labels={CLASS: service}, **settings)
    body["kind"] = "StatefulSet"
    body["spec"] |= {"serviceName": name, "updateStrategy": {"type": "OnDelete"}}
    return body


def sized(place: Place, name: str, cpu: str) -> None:
    """The template of a StatefulSet asks for this much from now on, as whoever resizes its pods would have it."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    place.patch("statefulsets", name, {"spec": {"template": {"spec": {"containers": [container]}}}})


def noted(place: Place, reason: str) -> list[str]:
    return [one["note"] for one in place.auditor.events(place.namespace, reason, "web-0")]


@scene
def test_a_resize_that_stays_deferred_moves_its_pod_and_keeps_its_promise(place: Place) -> None:
    (small,) = place.nodes(1, cpu="4")
    place.create("statefulsets", stateful("web"))
    place.create("pods", low("filler", "2"))
    place.ready("web")
    place.ready("filler")
    first = place.pod("web-0")["metadata"]["uid"]
    sized(place, "web", "3")
    grow(place, "web-0", "3", "Deferred")
    until(lambda: noted(place, "ResizeWaits"), "it is said why it stays")
    note = noted(place, "ResizeWaits")[0]
    assert "its resize is Deferred" in note
    assert "no other feasible node has room" in note or "below the 0.5 s" in note
    # So that it can afford to be away for a while. What it took to become ready counts against it.
    until(lambda: place.slack("statefulset-web") >= SAVED_SECONDS, "it has slack")
    (large,) = place.nodes(1, prefix="-large", cpu="4")
    until(lambda: (place.get("pods", "web-0") or {"metadata": {"uid": first}})["metadata"]["uid"] != first, "it moves")
    assert place.bound("web-0") == large
    place.ready("web")
    (note,) = until(lambda: noted(place, "ResizeMoved"), "its event")
    assert note == f"Evicted from {small}: its resize is Deferred there, and another node has room for it"
    (eviction,) = until(lambda: place.auditor.evictions(place.namespace), "its line in the audit log")
    assert eviction["objectRef"]["name"] == "web-0"
    chain = place.lives("web-0")
    assert len(chain) == 2
    again = chain[1].ready[0][0]
    status = place.status("statefulset-web", lambda one: one["running"] == 1 and at(one) >= again, "it runs again")
    ledgers.independent(status, [place.lives("web-0")], LOW, incidents=4)
    # It went because it could afford what it had lost of a second or two; whoever brings it back may take longer.
    if again - (chain[0].ended or again) < SAVED_SECONDS / 2:
        assert status["delivered"] >= LOW
        assert status["state"] == "Kept"


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
