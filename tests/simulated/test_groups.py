"""Pods that start together or not at all, and that go together or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster.labtools import pod
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import bind
from simulated.resources import BY_NAME, Json, Target
from simulated.stage import Stage, service_class, staged

CLASS = "slacktide.io/class"
SLOW, UNTIL_TOLD = 8, 3600
"""Seconds that a victim takes to be gone; of the latter the scene says when it is."""


@pytest.fixture
def place() -> Iterator[Stage]:
    low = service_class("low", 0.5, 3, marginSeconds=0.5, overheadLimit=1.0, default=True)
    with staged(
        [service_class("high", 0.99, 1), low],
        qos__alpha=2.0, policy__min_running=1.0, policy__patience=3600.0, scheduler__watchdog=1,
    ) as stage:  # fmt: skip
        yield stage


def group(place: Stage, name: str, least: int, **more: Any) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}} | more
    place.create("podgroups", {"metadata": {"name": name}, "spec": spec})


def high(name: str, of: str = "", cpu: str = "900m", **settings: Any) -> Json:
    more: Json = {"schedulingGroup": {"podGroupName": of}} if of else {}
    return pod(name, cpu=cpu, labels={CLASS: "high"}, **more, **settings)


def full(place: Stage, *graces: int, of: str = "") -> list[str]:
    """A node full with a pod that may be preempted, for each grace period; the nodes."""
    nodes = []
    more: Json = {"schedulingGroup": {"podGroupName": of}, "labels": {"of": of}} if of else {}
    for number, grace in enumerate(graces):
        nodes += place.nodes(1, prefix=f"full-{number}", labels={"number": str(number)}, cpu="1")
        selector = {"number": str(number)}
        body = pod(f"low-{number}", cpu="900m", terminationGracePeriodSeconds=grace, nodeSelector=selector, **more)
        place.create("pods", body)
    place.ready("low", len(graces))
    return nodes


def bound_of(place: Stage, *names: str) -> list[bool]:
    return [bool(place.node_of(name)) for name in names]


def evicted(place: Stage) -> set[str]:
    return {one.name for one in place.lives() if one.evicted is not None}


def nominated(place: Stage, name: str) -> str:
    return str(place.pod(name)["status"].get("nominatedNodeName", ""))


def test_a_gang_that_waits_is_told_why(place: Stage) -> None:
    place.nodes(2, cpu="1")
    for name in ("p0", "p1"):
        place.create("pods", high(name, "g"))
    place.waits("p0", r"pod group team/g \(podgroups\.scheduling\.k8s\.io\) does not exist")
    group(place, "g", 3)
    place.waits("p0", "waiting for 3 pods of pod group")
    assert "waiting for 3 pods of pod group" in str(place.explained("p1"))
    place.create("pods", high("p2", "g"))
    place.waits("p2", "needs nodes for 3 pods at once, and 2 fit")
    place.until(lambda: "at once, and 2 fit" in place.reason("p1"), "explain says so")
    place.delete("podgroups", "g")
    place.waits("p1", "does not exist")
    assert bound_of(place, "p0", "p1", "p2") == [False, False, False]


def test_victims_are_given_up_for_a_whole_gang_and_it_is_bound_as_a_whole(place: Stage) -> None:
    """Also the pod whose place is free from the beginning waits for the other's victim."""
    place.nodes(1, prefix="free", cpu="1")
    full(place, SLOW)
    group(place, "trio", 3)
    for number in range(3):
        place.create("pods", high(f"trio-{number}", "trio"))
    place.until(lambda: "at once, and 2 fit" in place.reason("trio-0"), "one has room, and one could preempt")
    assert evicted(place) == set()
    for number in range(3):
        place.delete("pods", f"trio-{number}", 0)
    group(place, "pair", 2)
    for number in range(2):
        place.create("pods", high(f"pair-{number}", "pair"))
    place.bound("pair-0")
    place.bound("pair-1")
    assert evicted(place) == {"low-0"}
    life = place.life("low-0")
    assert life.gone is not None
    assert life.told is not None
    assert life.gone - life.told == pytest.approx(SLOW, abs=HEARD_SECONDS)
    for name in ("pair-0", "pair-1"):
        bound = place.life(name).bound
        assert bound is not None
        assert life.gone < bound < life.gone + HEARD_SECONDS


def test_a_gang_of_which_a_place_is_lost_is_not_bound_by_half(place: Stage) -> None:
    closed, _ = full(place, 1, UNTIL_TOLD)
    group(place, "pair", 2)
    for number in range(2):
        place.create("pods", high(f"pair-{number}", "pair"))
    place.until(lambda: nominated(place, "pair-0") and nominated(place, "pair-1"), "both are nominated")
    place.until(lambda: place.get("pods", "low-0") is None, "the first victim is gone")
    place.cordon(closed)
    place.wait(HEARD_SECONDS)
    place.delete("pods", "low-1", 0)
    for name in ("pair-0", "pair-1"):
        place.waits(name, "at once, and 1 fit")
    assert bound_of(place, "pair-0", "pair-1") == [False, False]
    place.cordon(closed, False)
    place.bound("pair-0")
    place.bound("pair-1")


def pair_is_nominated(place: Stage, **metadata: Any) -> None:
    """Two pods of a group have places that victims leave when the scene says so."""
    full(place, UNTIL_TOLD, UNTIL_TOLD)
    group(place, "pair", 2)
    for number in range(2):
        body = high(f"pair-{number}", "pair")
        place.create("pods", {**body, "metadata": body["metadata"] | metadata})
    place.until(lambda: nominated(place, "pair-0") and nominated(place, "pair-1"), "both are nominated")
    place.until(lambda: evicted(place) == {"low-0", "low-1"}, "their victims are told to go")


def after_the_victims(place: Stage) -> list[bool]:
    """Which of the pair are bound once the victims are gone, and another pod that came after that is bound."""
    for number in range(2):
        place.delete("pods", f"low-{number}", 0)
    place.create("pods", high("fence", cpu="10m"))
    place.bound("fence")
    return bound_of(place, "pair-0", "pair-1")


def test_a_group_that_is_deleted_while_its_pods_wait_for_victims_is_not_bound(place: Stage) -> None:
    pair_is_nominated(place)
    place.delete("podgroups", "pair")
    place.wait(HEARD_SECONDS)
    assert after_the_victims(place) == [False, False]
    for name in ("pair-0", "pair-1"):
        place.waits(name, "does not exist")
        assert not nominated(place, name)
    group(place, "pair", 2)
    place.bound("pair-0")
    place.bound("pair-1")


def test_a_group_of_which_a_pod_is_being_deleted_is_not_bound(place: Stage) -> None:
    """As those of a Job, its pods have a finalizer: they stay for a while, and cannot be bound any more."""
    pair_is_nominated(place, finalizers=["example.com/waits"])
    place.delete("pods", "pair-1", 0)
    place.wait(HEARD_SECONDS)
    assert after_the_victims(place) == [False, False]
    place.waits("pair-0", "waiting for 2 pods of pod group")
    place.create("pods", high("pair-2", "pair"))
    place.bound("pair-0")
    place.bound("pair-2")


def test_a_new_leader_binds_together_what_the_old_one_nominated(place: Stage) -> None:
    full(place, 1, UNTIL_TOLD)
    group(place, "pair", 2)
    for number in range(2):
        place.create("pods", high(f"pair-{number}", "pair"))
    place.until(lambda: nominated(place, "pair-0") and nominated(place, "pair-1"), "both are nominated")
    place.until(lambda: evicted(place) == {"low-0", "low-1"}, "their victims are told to go")
    place.kill()
    assert bound_of(place, "pair-0", "pair-1") == [False, False]
    place.delete("pods", "low-1", 0)
    gone = place.now
    for name in ("pair-0", "pair-1"):
        place.bound(name)
        bound = place.life(name).bound
        assert bound is not None
        assert gone < bound < gone + HEARD_SECONDS


def test_all_of_a_group_go_or_none(place: Stage) -> None:
    """A budget lets one of them go: nobody does. Then it is gone, and both go for a pod that needs one node."""
    group(place, "g", 2, disruptionMode="PodGroup")
    full(place, 1, 1, of="g")
    budget = {"selector": {"matchLabels": {"of": "g"}}, "minAvailable": 1}
    place.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": budget})
    place.wait(2.0)
    place.create("pods", high("p"))
    place.until(lambda: "of a pod group that is preempted as a whole" in place.reason("p"), "it is told why it waits")
    place.wait(60.0)
    assert evicted(place) == set()
    place.delete("poddisruptionbudgets", "b")
    place.bound("p")
    assert evicted(place) == {"low-0", "low-1"}


def test_a_gang_has_others_go_on_all_nodes_only_if_all_of_it_can_start(place: Stage) -> None:
    group(place, "g", 2, disruptionMode="PodGroup")
    full(place, 1, 1, of="g")
    group(place, "trio", 3)
    for number in range(3):
        place.create("pods", high(f"trio-{number}", "trio"))
    place.until(lambda: "at once, and 2 fit" in place.reason("trio-0"), "two of them could preempt")
    assert evicted(place) == set()
    place.nodes(1, prefix="free", cpu="1")
    for number in range(3):
        place.bound(f"trio-{number}")
    assert evicted(place) == {"low-0", "low-1"}


def test_pods_of_kueue_say_themselves_how_many_they_are(place: Stage) -> None:
    place.nodes(2, cpu="1")
    labels = {CLASS: "high", "kueue.x-k8s.io/pod-group-name": "g"}
    for number in range(2):
        body = pod(f"p{number}", cpu="900m", labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "2"})
        place.create("pods", body)
        if number == 0:
            place.waits("p0", r"waiting for 2 pods of pod group team/g \(kueue\.x-k8s\.io\)")
    first, second = (place.life(f"p{number}") for number in range(2))
    place.bound("p0")
    place.bound("p1")
    assert first.bound == pytest.approx(second.bound, abs=HEARD_SECONDS)


def test_a_new_leader_completes_a_gang_that_was_bound_by_half(place: Stage) -> None:
    """As if the old one had been killed between two bindings."""
    place.nodes(2, cpu="1")
    group(place, "g", 3)
    place.create("pods", high("p0", "g"))
    place.waits("p0", "waiting for 3 pods of pod group")
    place.do(place.leader.kill)
    for name in ("p1", "p2"):
        place.create("pods", high(name, "g", "150m"))
    bind(place.world.store, Target(BY_NAME["pods"], place.namespace, "p1", "binding"), {"target": {"name": "node-0"}})
    place.until(lambda: place.world.leader, "another one leads")
    for name in ("p0", "p2"):
        place.bound(name)
