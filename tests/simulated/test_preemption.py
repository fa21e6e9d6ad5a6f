"""Whoever has slack makes room for whoever has none: within budgets, at known instants, and never in vain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.labtools import deployment, pod
from simulated.alone import Faults
from simulated.controllers import Disruption
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import bind
from simulated.resources import BY_NAME, Json, Target
from simulated.stage import Stage, service_class, staged

CLASS, HOSTNAME = "slacktide.io/class", "kubernetes.io/hostname"
LEAST, GRACE, PATIENCE = 3.0, 10, 20.0
"""Seconds: what everybody may run before it is preempted, what some take to end, what victims may take beyond that."""
SOON = 1.1
"""Seconds: the watchdog's, who notices what time alone changes."""


@pytest.fixture
def place() -> Iterator[Stage]:
    """Everything happens between the parts of passes, too."""
    low = service_class("low", 0.5, 3, marginSeconds=0.5, overheadLimit=1.0, default=True)
    with staged(
        [service_class("high", 0.99, 1), low],
        qos__alpha=2.0, policy__min_running=LEAST, policy__patience=3600.0, scheduler__watchdog=1,
        kube__victim_patience=PATIENCE, kube__pass_budget=0,
    ) as stage:  # fmt: skip
        yield stage


def low(name: str, cpu: str = "1500m", **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: "low", **settings.pop("labels", {})}, **settings)


def high(name: str, cpu: str = "1500m", **settings: Any) -> Json:
    return pod(name, cpu=cpu, labels={CLASS: "high"}, **settings)


def evicted(place: Stage) -> list[str]:
    """Whom the scheduler evicted, in order."""
    found = [(one.evicted, one.name) for one in place.lives() if one.evicted is not None]
    return [name for _, name in sorted(found)]


def nominated(place: Stage, name: str) -> str:
    return str(place.pod(name)["status"].get("nominatedNodeName", ""))


def test_a_victim_goes_in_its_own_time_and_its_place_is_kept(place: Stage) -> None:
    """Who comes meanwhile has what is left beside it."""
    (node,) = place.nodes(1, cpu="2")
    settings: Json = {"labels": {CLASS: "low"}, "terminationGracePeriodSeconds": GRACE}
    place.create("deployments", deployment("web", 1, cpu="1500m", **settings))
    (victim,) = place.ready("web")
    place.wait(GRACE + 1.0)
    place.create("pods", high("first", "1"))
    place.until(lambda: nominated(place, "first") == node, "its place is kept")
    place.create("pods", low("small", "400m"))
    assert place.bound("small", SOON) == node  # there is room for it besides
    place.bound("first")
    gone, bound = place.life(victim).gone, place.life("first").bound
    assert gone is not None
    assert bound is not None
    assert gone - (place.life(victim).told or 0.0) == pytest.approx(GRACE, abs=HEARD_SECONDS)
    assert gone < bound < gone + HEARD_SECONDS


def test_nobody_is_preempted_before_its_least_running_time(place: Stage) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", low("young"))
    place.bound("young")
    place.create("pods", high("old"))
    place.waits("old", r"preemption: .*protected by a PodDisruptionBudget or a minimum running time")
    place.bound("old")
    life = place.life("young")
    assert life.evicted is not None
    assert life.bound is not None
    assert life.bound + LEAST <= life.evicted <= life.bound + LEAST + SOON


def test_a_budget_that_is_used_up_protects(place: Stage) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", low("guarded", labels={"app": "guarded"}))
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    place.create("poddisruptionbudgets", {"metadata": {"name": "one"}, "spec": budget})
    place.ready("guarded")
    place.wait(LEAST + 1.0)
    place.create("pods", high("needs"))
    place.waits("needs", r"preemption: .*protected by a PodDisruptionBudget or a minimum running time")
    place.wait(120.0)
    assert evicted(place) == []
    place.delete("poddisruptionbudgets", "one")
    place.bound("needs")
    assert evicted(place) == ["guarded"]


def test_one_pass_does_not_overdraw_a_budget(place: Stage) -> None:
    place.nodes(3, cpu="2")
    place.create("deployments", deployment("web", 3, cpu="1500m", labels={CLASS: "low"}))
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    place.create("poddisruptionbudgets", {"metadata": {"name": "web"}, "spec": budget})
    place.ready("web", 3)
    place.wait(LEAST + 2.0)
    for number in range(3):
        place.create("pods", high(f"high-{number}"))
    place.until(lambda: any(place.node_of(f"high-{number}") for number in range(3)), "one of them is bound")
    place.wait(120.0)
    assert len(evicted(place)) == 1
    waiting = [one for one in place.names("high") if not place.node_of(one)]
    assert len(waiting) == 2
    for name in waiting:
        place.waits(name, r"protected by a PodDisruptionBudget")


def test_pods_that_may_not_preempt(place: Stage) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", low("low"))
    place.ready("low")
    place.wait(LEAST + 1.0)
    place.create("pods", high("patient", preemptionPolicy="Never"))
    place.waits("patient", r"preemption: not eligible due to preemptionPolicy=Never")
    place.wait(60.0)
    assert evicted(place) == []
    place.delete("pods", "low")
    place.bound("patient")


def test_a_bare_pod_is_left_alone_by_its_equals(place: Stage) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", high("first"))
    place.ready("first")
    place.wait(LEAST + 1.0)
    place.create("pods", high("second"))
    place.create("pods", low("third"))
    place.waits("second", r"preemption: .*\(1 node\(s\) with bare pods")
    place.waits("third", r"preemption: ")
    place.wait(60.0)
    assert evicted(place) == []


def test_pods_of_others_and_on_other_nodes_are_no_victims(place: Stage) -> None:
    ours, closed = place.nodes(2, cpu="2")
    (theirs,) = place.nodes(1, prefix="theirs", cpu="2", managed=False)
    place.cordon(closed)
    place.create("pods", pod("stranger", cpu="700m", schedulerName="somebody-else"))
    bind(place.world.store, Target(BY_NAME["pods"], place.namespace, "stranger", "binding"), {"target": {"name": ours}})
    # One of ours that an administrator put on a node that is not: it has a ledger, and nobody preempts it.
    place.create("pods", low("outside", nodeName=theirs))
    place.wait(1.0)  # the scheduler knows of all that
    place.create("pods", low("inside", "700m"))
    place.ready("", 3)
    place.status("pod-outside", lambda one: (one["running"], one["class"]) == (1, "low"))
    place.wait(LEAST + 2.0)
    place.create("pods", high("too-wide", "1500m"))
    place.waits("too-wide", r"preemption: ")
    place.wait(60.0)
    assert evicted(place) == []
    place.delete("pods", "too-wide")
    place.create("pods", high("fits", "1200m"))
    assert place.bound("fits") == ours
    assert evicted(place) == ["inside"]


def test_a_victim_that_does_not_go_is_waited_for_in_vain(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("pods", low("stuck", terminationGracePeriodSeconds=1))
    place.ready("stuck")
    place.patch("pods", "stuck", {"metadata": {"finalizers": ["example.com/stuck"]}})
    place.wait(LEAST + 2.0)
    place.create("pods", high("hopes"))
    place.until(lambda: nominated(place, "hopes") == node, "its place is kept")
    place.until(
        lambda: any("nomination of" in one for one in place.events("FailedScheduling", "hopes")), "it is given up"
    )
    told = place.life("stuck").told
    assert told is not None
    assert told + 1.0 + PATIENCE <= place.now <= told + 1.0 + PATIENCE + SOON + HEARD_SECONDS
    place.until(lambda: not nominated(place, "hopes"), "it is nominated no more")
    place.waits("hopes", r"^0/1 nodes are available: .*\b1 Insufficient cpu\b")
    place.patch("pods", "stuck", {"metadata": {"$patch": "merge", "finalizers": None}})
    place.until(lambda: place.get("pods", "stuck") is None, "it is gone")
    assert place.bound("hopes") == node


def test_a_beneficiary_that_goes_first(place: Stage) -> None:
    place.nodes(1, cpu="2")
    place.create("pods", low("victim", terminationGracePeriodSeconds=GRACE))
    place.ready("victim")
    place.wait(LEAST + 2.0)
    place.create("pods", high("fickle"))
    place.until(lambda: evicted(place) == ["victim"], "the victim is told to go")
    place.delete("pods", "fickle", 0)
    place.create("pods", low("next", "1900m"))
    place.bound("next")  # what the first two had is free again
    assert evicted(place) == ["victim"]


def squat(place: Stage, node: str) -> None:
    """Another scheduler puts a pod on a node."""
    place.create("pods", pod("squats", cpu="1500m", schedulerName="another"))
    bind(place.world.store, Target(BY_NAME["pods"], place.namespace, "squats", "binding"), {"target": {"name": node}})


def test_a_former_leaders_nomination_for_a_place_that_is_lost_keeps_no_room(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="2")
    place.create("pods", low("victim", terminationGracePeriodSeconds=GRACE))
    place.ready("victim")
    place.wait(LEAST + 2.0)
    place.create("pods", high("hopes"))
    place.until(lambda: nominated(place, "hopes") == node and evicted(place) == ["victim"], "its place is kept")
    former = place.leader.identity
    place.do(place.leader.kill)
    place.delete("pods", "victim", 0)
    squat(place, node)
    place.until(lambda: place.world.leader and place.leader.identity != former, "somebody leads again")
    place.create("pods", low("small", "400m"))
    assert place.bound("small", SOON) == node
    place.until(lambda: not nominated(place, "hopes"), "it is nominated no more", SOON)
    place.delete("pods", "squats", 0)
    assert place.bound("hopes") == node


def test_what_somebody_else_nominated_outlives_a_leader(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="2")
    squat(place, node)
    place.create("pods", high("expected"))
    place.patch("pods", "expected", {"status": {"nominatedNodeName": node}}, sub="status")
    place.kill()
    place.create("pods", low("small", "400m"))
    place.wait(60.0)
    assert nominated(place, "expected") == node
    assert not place.node_of("small")
    place.delete("pods", "squats", 0)
    assert place.bound("expected") == place.bound("small") == node


def test_several_victims_for_one(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="2")
    for number in range(4):
        place.create("pods", low(f"small-{number}", "500m", terminationGracePeriodSeconds=number % 2 + 1))
    place.ready("small", 4)
    place.wait(LEAST + 2.0)
    place.create("pods", high("big", "1500m"))
    assert place.bound("big") == node
    assert len(evicted(place)) == 3
    assert place.life("big").bound == pytest.approx(
        max(one.gone for one in place.lives("small") if one.gone is not None), abs=HEARD_SECONDS
    )
    place.wait(SOON)
    notes = place.events("Preempted")
    assert len(notes) == 3
    said = re.compile(r"by pod team/big on node .*slack is -?[\d.]+ s, that of the preemptor")
    assert all(said.search(one) for one in notes)


def test_a_node_that_joins_serves_a_pod_whose_victim_takes_its_time(place: Stage) -> None:
    (old,) = place.nodes(1, cpu="2")
    place.create("pods", low("slow", terminationGracePeriodSeconds=3600))
    place.ready("slow")
    place.create("pods", high("asks"))
    place.until(lambda: nominated(place, "asks") == old and evicted(place) == ["slow"], "its place is kept")
    (new,) = place.nodes(1, "new", cpu="2")
    assert place.bound("asks", SOON) == new
    place.until(lambda: not nominated(place, "asks"), "its nomination is taken away")
    assert place.node_of("slow") == old
    # Its room is nobody's before it has gone.
    place.create("pods", high("next"))
    place.until(lambda: nominated(place, "next") == old, "the room that it leaves is kept")
    place.wait(60.0)
    assert not place.node_of("next")
    place.delete("pods", "slow", 0)
    assert place.bound("next", SOON) == old


def test_victims_for_room_and_for_an_even_spread_are_found_together(place: Stage) -> None:
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
    assert len(evicted(place)) == 2
    assert set(evicted(place)) < {"a", "b", "c"}


GUARDED = ["guarded"]


@pytest.mark.parametrize(
    ("budgets", "before", "gone"),
    [
        ("hard", True, []),
        ("last-resort", False, []),
        ("last-resort", True, GUARDED),
        ("best-effort", False, GUARDED),
    ],
)
def test_a_used_up_budget_protects_as_far_as_the_setting_and_the_class_say(
    budgets: str, before: bool, gone: list[str]
) -> None:
    """Who may not be evicted is deleted, and marked as disrupted before."""
    low_class = service_class("low", 0.05, 3, marginSeconds=0.5, overheadLimit=1.0)
    classes = [service_class("high", 0.999, 1, beforeBudgets=before), low_class]
    with staged(classes, qos__alpha=0.1, kube__disruption_budgets=budgets) as place:
        place.nodes(1, cpu="2")
        place.create("pods", low("guarded", labels={"app": "guarded"}))
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
        place.create("poddisruptionbudgets", {"metadata": {"name": "one"}, "spec": budget})
        place.ready("guarded")
        place.wait(10.0)
        place.create("pods", high("needs"))
        place.wait(60.0)
        assert [one.name for one in place.lives() if one.gone is not None] == gone
        assert bool(place.node_of("needs")) == bool(gone)
        assert [one.name for one in place.lives() if one.marked is not None] == gone


def test_who_is_more_important_takes_the_place_that_is_kept_for_another() -> None:
    """While the victim of both takes its time; nobody else has to go, and the other one waits again."""
    classes = [service_class("high", 0.99, 1), service_class("middle", 0.9, 2), service_class("low", 0.5, 3)]
    with staged(classes, policy__name="priority", policy__min_running=0.0, kube__pass_budget=0) as place:
        (node,) = place.nodes(1, cpu="2")
        place.create("pods", low("victim", terminationGracePeriodSeconds=60))
        place.ready("victim")
        place.create("pods", pod("second", cpu="1500m", labels={CLASS: "middle"}))
        place.until(lambda: nominated(place, "second") == node, "it has a place")
        place.create("pods", pod("near", cpu="1500m", labels={CLASS: "high", "app": "x"}, affinity=_apart("x")))
        place.create("pods", pod("equal", cpu="1500m", labels={CLASS: "middle"}))
        place.create("pods", pod("large", cpu="2500m", labels={CLASS: "high"}))
        place.wait(5.0)
        assert nominated(place, "second") == node
        place.create("pods", high("first"))
        place.until(lambda: nominated(place, "first") == node and not nominated(place, "second"), "it changes hands")
        assert place.now < (place.life("victim").told or 0.0) + 60
        assert place.bound("first") == node
        assert evicted(place) == ["victim"]
        assert [one for one in ("second", "equal", "large") if place.node_of(one)] == []
        place.until(lambda: place.events("FailedScheduling", "second"), "it is told why")
        said = place.events("FailedScheduling", "second")
        assert any("pod team/first, which is more important, takes its place" in one for one in said), said


def _apart(app: str) -> Json:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_an_eviction_that_is_refused_leads_to_the_next_best_host(place: Stage) -> None:
    """Fewer victims cost less (policy.cost): one on the best host, two on the other."""
    best, other = place.nodes(2, cpu="2")
    place.create("pods", low("best", nodeSelector={HOSTNAME: best}, labels={"app": "best"}))
    for name in ("other-0", "other-1"):
        place.create("pods", low(name, "750m", nodeSelector={HOSTNAME: other}))
    place.create("pods", high("rock", "300m", nodeSelector={HOSTNAME: best}))
    budget = {"minAvailable": 0, "selector": {"matchLabels": {"app": "best"}}}
    place.create("poddisruptionbudgets", {"metadata": {"name": "best"}, "spec": budget})
    place.ready("", 4)
    place.wait(LEAST + 2.0)
    # Until its controller has seen a change of it, the API server refuses every eviction under a budget.
    (controller,) = (one for one in place.world.controllers if isinstance(one, Disruption))
    setattr(controller, "sync", lambda _: None)  # noqa: B010 (it stands still)
    place.merge("poddisruptionbudgets", "best", {"spec": {"minAvailable": "0%"}})
    place.wait(HEARD_SECONDS)
    assert place.leader.wire is not None
    faults = Faults(place.leader.wire)
    place.create("pods", high("needs"))
    assert place.bound("needs") == other
    asked = [one.path.split("/")[-2] for one in faults.sent if one.path.endswith("/eviction")]
    assert (asked[0], sorted(asked[1:])) == ("best", ["other-0", "other-1"]), "nobody else was asked to go before"
    assert sorted(evicted(place)) == ["other-0", "other-1"]
    status = place.status("pod-best", lambda one: one["running"] == 1, "it stays")
    assert status["preemptions"] == 0
