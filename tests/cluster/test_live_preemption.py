"""Whoever has slack makes room for whoever has none: by the Eviction API, within budgets, and never in vain."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
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
from slacktide.lab import Binaries

CLASS, HOSTNAME = "slacktide.io/class", "kubernetes.io/hostname"
HIGH, LOW = 0.99, 0.5
LEAST = 3.0
"""Seconds that everybody may run before it is preempted."""
TRIES = 5
GRACE = 10
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
        kube__victim_patience=PATIENCE, kube__pass_budget=0,  # everything happens between the parts of passes, too
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


def budget_says(place: Place, name: str, what: str) -> int:
    """A number of a budget's status; -1 until its controller has looked at it."""
    found = (place.get("poddisruptionbudgets", name) or {}).get("status") or {}
    return int(found.get(what, -1)) if found.get("observedGeneration") else -1


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
def test_nobody_is_preempted_before_its_least_running_time(place: Place) -> None:
    place.nodes(1, cpu="2")
    said = r"preemption: .*protected by a PodDisruptionBudget or a minimum running time"
    for attempt in range(TRIES):
        young, old = f"young-{attempt}", f"old-{attempt}"
        place.create("pods", low(young))
        place.bound(young)
        place.create("pods", high(old))
        place.bound(old)
        gone = all_evicted(place, attempt + 1)[young]
        (began,) = place.lives(young)
        # It was bound within the second that its condition names.
        assert began.scheduled is not None
        assert gone - began.scheduled >= LEAST - 0.1
        # An event is written after its pod was told: one of seconds before has been written when this one is there.
        until(lambda old=old: place.auditor.events(place.namespace, "Scheduled", old), f"{old} has its event")  # type: ignore[misc]
        # Where the machine kept the scheduler from looking in time, there was nothing to wait for: once more.
        notes = [one["note"] for one in place.auditor.events(place.namespace, "FailedScheduling", old)]
        if any(re.search(said, note) for note in notes):
            break
        place.delete("pods", old, 0)
        until(lambda old=old: place.get("pods", old) is None, "its place is free")  # type: ignore[misc]
    else:
        pytest.fail(f"nobody was told of a least running time, {TRIES} times over")


@scene
def test_a_budget_that_is_used_up_protects(place: Place) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", low("guarded", labels={"app": "guarded"}))
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    place.api.post(place.kinds_path("poddisruptionbudgets"), {"metadata": {"name": "one"}, "spec": budget})
    place.ready("guarded")
    until(lambda: budget_says(place, "one", "expectedPods") == 1, "the budget counts it")
    begun = time.time()
    time.sleep(LEAST + 1)
    place.create("pods", high("needs"))
    place.waits("needs", r"preemption: .*protected by a PodDisruptionBudget or a minimum running time")
    time.sleep(3)
    if place.auditor.late(begun, time.time()) < LEAST:  # it had heard of the budget
        assert [act["objectRef"] for act in place.auditor.evictions(place.namespace, 429)] == []  # so it need not ask
    assert evicted(place) == {}
    place.delete("poddisruptionbudgets", "one")
    place.bound("needs")
    assert list(all_evicted(place)) == ["guarded"]


@scene
def test_one_pass_does_not_overdraw_a_budget(place: Place) -> None:
    place.nodes(3, cpu="2")
    place.create("deployments", deployment("web", 3, cpu="1500m", labels={CLASS: "low"}))
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    place.api.post(place.kinds_path("poddisruptionbudgets"), {"metadata": {"name": "web"}, "spec": budget})
    place.ready("web", 3)
    until(lambda: budget_says(place, "web", "disruptionsAllowed") == 1, "one disruption is allowed")
    time.sleep(LEAST + 2)
    bodies = [high(f"high-{i}", schedulerName="slacktide", nodeSelector={"scene": place.name}) for i in range(3)]
    place.api.create_all(place.kinds_path("pods"), bodies)
    until(lambda: any(one["spec"].get("nodeName") for one in place.pods("high")), "one of them is bound")
    time.sleep(4)
    assert len(all_evicted(place)) == 1
    assert place.auditor.evictions(place.namespace, 429) == []
    waiting = [one["metadata"]["name"] for one in place.pods("high") if not one["spec"].get("nodeName")]
    assert len(waiting) == 2
    for name in waiting:
        place.waits(name, r"protected by a PodDisruptionBudget")


@scene
def test_pods_that_may_not_preempt(place: Place) -> None:
    place.nodes(1, cpu="2")
    priority = {"metadata": {"name": "patient"}, "value": 1000, "preemptionPolicy": "Never"}
    place.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", priority)
    place.create("pods", low("low"))
    place.ready("low")
    time.sleep(LEAST + 1)
    until(lambda: admitted(place, high("patient", priorityClassName="patient")), "the priority class is known")
    assert place.pod("patient")["spec"]["preemptionPolicy"] == "Never"
    place.waits("patient", r"preemption: not eligible due to preemptionPolicy=Never")
    time.sleep(2.5)
    assert evicted(place) == {}
    place.delete("pods", "low")
    place.bound("patient")


@scene
def test_a_bare_pod_is_left_alone_by_its_equals(place: Place) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", high("first"))
    place.ready("first")
    time.sleep(LEAST + 1)
    place.create("pods", high("second"))
    place.create("pods", low("third"))
    place.waits("second", r"preemption: .*\(1 node\(s\) with bare pods")
    place.waits("third", r"preemption: ")
    time.sleep(2)
    assert evicted(place) == {}


@scene
def test_pods_of_others_and_on_other_nodes_are_no_victims(place: Place) -> None:
    ours, _ = place.nodes(2, cpu="2")
    (theirs,) = place.nodes(1, prefix="-theirs", cpu="2", managed=False)
    place.kubectl.ok("cordon", f"{place.name}-1")
    place.heard()
    stranger = pod("stranger", cpu="700m", schedulerName="somebody-else")
    place.create("pods", stranger)
    bind(place.api, place.namespace, "stranger", ours)
    # One of ours that an administrator put on a node that is not: it has a ledger, and nobody preempts it.
    place.api.post(place.kinds_path("pods"), low("outside", nodeName=theirs, schedulerName="slacktide"))
    place.create("pods", low("inside", "700m"))
    place.ready("", 3)
    assert settled(place, "pod-outside", 1)["class"] == "low"
    time.sleep(LEAST + 2)
    place.create("pods", high("too-wide", "1500m"))
    place.waits("too-wide", r"preemption: ")
    time.sleep(2)
    assert evicted(place) == {}
    place.delete("pods", "too-wide")
    place.create("pods", high("fits", "1200m"))
    assert place.bound("fits") == ours
    assert list(all_evicted(place)) == ["inside"]
    until(lambda: {one["metadata"]["name"] for one in place.pods()} == {"stranger", "outside", "fits"}, "one is gone")


@scene
def test_a_victim_that_does_not_go_is_waited_for_in_vain(place: Place) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("pods", low("stuck"))
    place.ready("stuck")
    # Nobody plays a kubelet for a pod in this phase, so it will not end.
    place.api.patch(f"{place.kinds_path('pods')}/stuck/status", {"status": {"phase": "Unknown"}}, STRATEGIC)
    time.sleep(LEAST + 2)
    place.create("pods", high("hopes"))
    # For some seconds only.
    revision_of(place, "hopes", lambda one: one.body.get("status", {}).get("nominatedNodeName") == node)

    def given_up() -> list[str]:
        notes = [one["note"] for one in place.auditor.events(place.namespace, "FailedScheduling", "hopes")]
        return [note for note in notes if "nomination of" in note]

    notes = until(given_up, "an event says that the place was given up")
    assert node in notes[0]
    until(lambda: not place.pod("hopes")["status"].get("nominatedNodeName"), "it is nominated no more")
    place.waits("hopes", r"^0/\d+ nodes are available: .*\b1 Insufficient cpu\b")
    assert place.node_of("hopes") == ""  # the victim is still there
    place.delete("pods", "stuck", 0)
    assert place.bound("hopes") == node


@scene
def test_a_beneficiary_that_goes_first(place: Place) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", low("victim", terminationGracePeriodSeconds=GRACE))
    place.ready("victim")
    time.sleep(LEAST + 2)
    place.create("pods", high("fickle"))
    revision_of(place, "victim", lambda one: "deletionTimestamp" in one.body["metadata"])
    place.delete("pods", "fickle", 0)  # before the victim has gone
    place.create("pods", low("next", "1900m"))
    place.bound("next")  # what the first two had is free again
    assert list(all_evicted(place)) == ["victim"]


@scene
def test_several_victims_for_one(place: Place) -> None:
    (node,) = place.nodes(1, cpu="2")
    for i in range(4):
        place.create("pods", low(f"small-{i}", "500m", terminationGracePeriodSeconds=i % 2 + 1))
    place.ready("small", 4)
    time.sleep(LEAST + 2)
    place.create("pods", high("big", "1500m"))
    assert place.bound("big") == node
    assert len(all_evicted(place, 3)) == 3
    until(lambda: len(place.pods("small")) == 1, "one of them is left")

    def told() -> list[str]:
        return [one["note"] for one in place.auditor.events(place.namespace, "Preempted")]

    until(lambda: len(told()) >= 3, "each has its event")
    notes = told()
    assert len(notes) == 3
    assert all(f"by pod {place.namespace}/big on node {node}: " in note for note in notes)


@scene
def test_a_node_that_joins_serves_a_pod_whose_victim_takes_its_time(place: Place) -> None:
    (old,) = place.nodes(1, cpu="2")
    place.create("pods", low("slow", terminationGracePeriodSeconds=3600))
    place.ready("slow")
    place.create("pods", high("asks"))
    until(lambda: place.pod("asks")["status"].get("nominatedNodeName") == old, "its place is kept")
    until(lambda: "deletionTimestamp" in place.pod("slow")["metadata"], "the victim is told to go")
    (new,) = place.nodes(1, "new", cpu="2")
    assert place.bound("asks") == new
    until(lambda: not place.pod("asks")["status"].get("nominatedNodeName"), "its nomination is taken away")
    assert place.node_of("slow") == old
    # Its room is nobody's before it has gone.
    place.create("pods", high("next"))
    until(lambda: place.pod("next")["status"].get("nominatedNodeName") == old, "the room that it leaves is kept")
    assert not place.node_of("next")
    place.delete("pods", "slow", 0)
    assert place.bound("next") == old


@scene
def test_victims_for_room_and_for_an_even_spread_are_found_together(place: Place) -> None:
    first, second = place.nodes(2, cpu="10")
    for name, cpu, node in (("full", "9", first), ("a", "3", second), ("b", "3", second), ("c", "3", second)):
        one = high if name == "full" else low
        body = one(name, cpu, nodeSelector={HOSTNAME: node})
        body["metadata"]["labels"]["app"] = "even"
        place.create("pods", body)
    place.ready("", 4)
    spread = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": "even"}}
    body = high("new", "3", topologySpreadConstraints=[spread])
    body["metadata"]["labels"]["app"] = "even"
    place.create("pods", body)
    assert place.bound("new") == second
    gone = all_evicted(place, 2)
    assert len(gone) == 2
    assert set(gone) < {"a", "b", "c"}


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


def test_an_eviction_that_is_refused_leads_to_the_next_best_host(cast: Cast) -> None:
    cast.over()  # the controllers that everybody needs stop for a moment
    place = Place(cast.stage, "refused")
    best, other = place.nodes(2, cpu="2")
    # Fewer victims cost less (policy.cost): one on the best host, two on the other. Where both have as many, a draw
    # decides, and slack does not count.
    place.create("pods", low("best", nodeSelector={HOSTNAME: best}, labels={"app": "best"}))
    for name in ("other-0", "other-1"):
        place.create("pods", low(name, "750m", nodeSelector={HOSTNAME: other}))
    place.create("pods", high("rock", "300m", nodeSelector={HOSTNAME: best}))
    place.ready("", 4)
    # A pod that could do with the places of both on the best host, of whom it may preempt only one, is told whether
    # that one is protected: so it is known what the scheduler has heard of the budget.
    place.create("pods", high("asks", "1900m", nodeSelector={HOSTNAME: best}))
    free, protected = "1 node(s) with bare pods", "1 node(s) with pods protected by"
    until(lambda: free in place.reason("asks"), "its least running time is over")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "best"}}}
    place.api.post(place.kinds_path("poddisruptionbudgets"), {"metadata": {"name": "best"}, "spec": spec})
    until(lambda: protected in place.reason("asks"), "the budget protects it")
    place.api.patch(f"{place.kinds_path('poddisruptionbudgets')}/best", {"spec": {"minAvailable": 0}})
    until(lambda: free in place.reason("asks"), "the budget lets it go")
    place.delete("pods", "asks", 0)
    managers = cast.stage.plane.components["kube-controller-manager"]
    managers.signal(signal.SIGSTOP)
    try:
        until(lambda: "T (stopped)" in Path(f"/proc/{managers.pid}/status").read_text(), "its controller stands still")
        # Until its controller has seen the change, the API server refuses every eviction under this budget.
        place.api.patch(f"{place.kinds_path('poddisruptionbudgets')}/best", {"spec": {"minAvailable": "0%"}})
        place.create("pods", high("needs"))
        assert place.bound("needs") == other
    finally:
        managers.signal(signal.SIGCONT)
    gone = all_evicted(place, 2)
    assert sorted(gone) == ["other-0", "other-1"]
    refused = until(lambda: place.auditor.evictions(place.namespace, 429), "the refusal is logged")
    assert [act["objectRef"]["name"] for act in refused] == ["best"]
    assert seconds(refused[0]["stageTimestamp"]) < min(gone.values())  # nobody else was asked to go before
    assert condition(place.pod("best"), "Ready")["status"] == "True"
    since = seconds(refused[0]["stageTimestamp"]) - 0.1

    def stays(status: Json) -> bool:
        return bool(at(status) >= since and status["preemptions"] == 0 and status["running"] == 1)

    status = place.status("pod-best", stays, "it stays")
    ledgers.independent(status, [place.lives("best")], LOW, 2)


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
