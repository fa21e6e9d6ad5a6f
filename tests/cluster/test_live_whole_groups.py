"""PodGroups that are preempted as a whole or not at all, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cluster import ledgers
from cluster.labtools import pod, until
from cluster.running import BETWEEN_EQUALS, Cast, Place, Stage, nothing_wrong, prepared, scene, service_class, staged
from cluster.test_live_groups import KUBERNETES, group, high
from cluster.test_live_preemption import budget_says, evicted
from slacktide.lab import Binaries


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("whole")
    gates = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
    plane = prepared(binaries, directory, gates=gates, apis=f"{KUBERNETES}=true")
    low = service_class("low", 0.5, 3, marginSeconds=0.5, overheadLimit=1.0, default=True)
    settings = {"qos__alpha": ledgers.ALPHA, "policy__min_running": 1.0, "policy__patience": BETWEEN_EQUALS}
    yield from staged(
        binaries, directory, [service_class("high", 0.99, 1), low], plane, scheduler__watchdog=1, **settings
    )


def low(name: str, number: int, of: str) -> dict[str, object]:
    selector = {"number": str(number)}
    settings: dict[str, Any] = {"nodeSelector": selector, "terminationGracePeriodSeconds": 1, "labels": {"of": of}}
    return pod(name, cpu="900m", schedulingGroup={"podGroupName": of}, **settings)


def full(place: Place, of: str, count: int = 2) -> None:
    """So many nodes, each full of a pod of a group that goes as a whole."""
    group(place, of, count, disruptionMode="PodGroup")
    for number in range(count):
        place.nodes(1, prefix=f"-{number}", labels={"number": str(number)}, cpu="1")
    for number in range(count):
        place.create("pods", low(f"low-{number}", number, of))
    place.ready("low", count)


@scene
def test_all_of_a_group_go_or_none(place: Place) -> None:
    """A budget lets one of them go: nobody does. Then it is gone, and both go for a pod that needs one node."""
    full(place, "g")
    budget = {"selector": {"matchLabels": {"of": "g"}}, "minAvailable": 1}
    place.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": budget})
    until(lambda: budget_says(place, "b", "disruptionsAllowed") == 1, "the budget lets one go")
    place.create("pods", high("p"))
    until(lambda: "of a pod group that is preempted as a whole" in place.reason("p"), "it is told why it waits")
    assert evicted(place) == {}
    place.delete("poddisruptionbudgets", "b")
    place.bound("p")
    assert set(evicted(place)) == {"low-0", "low-1"}


@scene
def test_a_gang_has_others_go_on_all_nodes_only_if_all_of_it_can_start(place: Place) -> None:
    full(place, "g")
    group(place, "trio", 3)
    for number in range(3):
        place.create("pods", high(f"trio-{number}", "trio"))
    until(lambda: "at once, and 2 fit" in place.reason("trio-0"), "two of them could preempt")
    assert evicted(place) == {}
    place.nodes(1, prefix="-free", cpu="1")
    for number in range(3):
        place.bound(f"trio-{number}")
    assert set(evicted(place)) == {"low-0", "low-1"}


def test_nobody_did_what_must_not_be_done(cast: Cast) -> None:
    nothing_wrong(cast)
