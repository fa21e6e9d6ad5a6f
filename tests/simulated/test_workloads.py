"""What happens to Deployments: each ledger is what pods' own lives come to, worked out anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from cluster.labtools import deployment, pod
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import is_true
from simulated.resources import Json
from simulated.stage import Life, Stage, service_class, staged
from simulated.test_causes import drain

SHARP = 0.3
"""Seconds for each pod: what is heard of it takes its way, and its creation has whole seconds at a new leader's."""


@pytest.fixture
def place() -> Iterator[Stage]:
    silver = service_class("summed", 0.9, 2, approach="aggregated", counts="everything", default=True)
    with staged([silver], qos__alpha=2.0, scheduler__watchdog=15) as stage:
        yield stage


def web(replicas: int) -> Json:
    return deployment("web", replicas, labels={"slacktide.io/class": "summed"})


def counts_until(life: Life, t: float) -> float:
    """A pod that is not ready counts until it is told to go: whoever comes for it goes on with its instance."""
    if life.told is not None and not any(begin <= life.told <= end for begin, end in life.up):
        return life.told
    return t if life.gone is None else life.gone


def lifetime(lives: list[Life], desired: Callable[[float], int], t: float) -> float:
    """Lifetimes until ``t`` of as many instances as are wanted, and of pods beyond them."""
    marks = sorted({t, *(m for one in lives for m in (one.created, counts_until(one, t)) if m <= t)})
    return sum(
        max(sum(one.created <= a and counts_until(one, t) >= b for one in lives), desired(a)) * (b - a)
        for a, b in pairwise(marks)
    )


def agrees(place: Stage, running: int, desired: Callable[[float], int] | None = None) -> Json:
    """The ledger once so many run, by what became of the pods."""
    place.wait(65.0)  # by then it was written anew
    status = place.status("deployment-web", lambda one: (one["running"], one["waiting"]) == (running, 0))
    t, lives = place.instant(status["at"]), place.lives("web-")
    ran = sum(one.ready_until(t) for one in lives)
    lived = lifetime(lives, desired or (lambda _: running), t)
    assert abs(status["delivered"] * lived - ran) <= SHARP * len(lives), (status["delivered"], ran / lived)
    return status


def test_a_rolling_update_keeps_the_ledger(place: Stage) -> None:
    place.nodes(2)
    place.create("deployments", web(2))
    old = place.ready("web", 2)
    before = agrees(place, 2)
    place.patch("deployments", "web", {"spec": {"template": {"metadata": {"annotations": {"revision": "2"}}}}})
    place.until(lambda: not set(place.names("web")) & set(old), "the update is through")
    place.ready("web", 2)
    after = agrees(place, 2)
    assert after["goodSeconds"] > before["goodSeconds"]
    assert after["preemptions"] == 0


def test_scaling_up_and_down(place: Stage) -> None:
    place.nodes(2)
    place.create("deployments", web(1))
    place.ready("web", 1)
    agrees(place, 1)
    place.merge("deployments", "web", {"spec": {"replicas": 3}})
    up = place.now
    place.ready("web", 3)
    agrees(place, 3, lambda t: 3 if t >= up else 1)
    place.merge("deployments", "web", {"spec": {"replicas": 1}})
    down = place.now
    place.ready("web", 1)
    assert agrees(place, 1, lambda t: 3 if up <= t < down else 1)["preemptions"] == 0


def test_the_ledger_of_a_deleted_workload_is_kept_and_written_no_more(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", web(2))
    place.create("pods", pod("bare"))
    place.ready("", 3)
    place.status("pod-bare", lambda one: one["running"] == 1)
    place.delete("deployments", "web")
    place.delete("pods", "bare")
    place.until(lambda: not place.pods(), "the pods are gone")
    for name in ("deployment-web", "pod-bare"):
        status = place.status(name, lambda one: "deletedAt" in one, "it says that its workload was deleted")
        assert (status["state"], status["running"], status["waiting"]) == ("Unknown", 0, 0)
    place.wait(5.0)
    written = [one["metadata"]["resourceVersion"] for one in place.world.store.every("availabilities")]
    place.wait(300.0)
    assert [one["metadata"]["resourceVersion"] for one in place.world.store.every("availabilities")] == written


def test_a_node_is_drained(place: Stage) -> None:
    first, second = place.nodes(2)
    place.cordon(second)
    place.wait(HEARD_SECONDS)
    place.create("deployments", web(2))
    place.ready("web", 2)
    place.cordon(second, False)
    agrees(place, 2)
    drain(place, first)
    place.until(lambda: {place.node_of(name) for name in place.names("web")} == {second}, "they are elsewhere")
    place.ready("web", 2)
    assert agrees(place, 2)["preemptions"] == 0  # a user did it


def test_a_cordoned_node_takes_nobody_and_keeps_whom_it_has(place: Stage) -> None:
    (node,) = place.nodes(1)
    place.create("pods", pod("before"))
    place.ready("before")
    place.cordon(node)
    place.wait(HEARD_SECONDS)
    place.create("pods", pod("after"))
    place.waits("after", r"cordoned|unschedulable")
    place.wait(60.0)
    assert is_true(place.pod("before"), "Ready")
    place.cordon(node, False)
    assert place.bound("after", 1.0) == node  # at once, not when a watchdog looks


@pytest.mark.parametrize("deleted", [False, True], ids=["is not ready", "is deleted"])
def test_a_node_that(place: Stage, deleted: bool) -> None:
    """Its pods go elsewhere when the control plane has given them up, and the ledger knows for how long they ran."""
    first, second = place.nodes(2)
    place.cordon(second)
    place.wait(HEARD_SECONDS)
    place.create("deployments", web(1))
    place.ready("web", 1)
    place.cordon(second, False)
    agrees(place, 1)
    kubelets = place.world.kubelets
    (kubelets.lose if deleted else kubelets.fail)(first)
    place.until(lambda: {place.node_of(name) for name in place.names("web")} == {second}, "it is elsewhere")
    place.ready("web", 1)
    agrees(place, 1)


def test_a_pod_that_says_it_is_not_ready_does_not_count(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", web(1))
    (one,) = place.ready("web", 1)
    agrees(place, 1)
    place.probe(one, False)
    place.wait(30.0)
    place.probe(one, True)
    status = agrees(place, 1)
    assert status["lostSeconds"]["workload"] == pytest.approx(30.0, abs=SHARP + 1.0)
    assert status["preemptions"] == 0


def test_a_workload_of_the_same_name_goes_on(place: Stage) -> None:
    """What the deleted one ran and was owed stands in the ledger of the new one."""
    place.nodes(1)
    place.create("deployments", web(1))
    place.ready("web", 1)
    place.wait(60.0)
    place.delete("deployments", "web")
    last = place.status("deployment-web", lambda one: "deletedAt" in one, "its ledger says that it was deleted")
    place.until(lambda: not place.pods("web"), "its pod is gone")
    uid = place.create("deployments", web(1))["metadata"]["uid"]
    place.ready("web", 1)
    place.wait(65.0)
    status = place.status(
        "deployment-web", lambda one: (one["target"]["uid"], one["running"]) == (uid, 1), "the new one"
    )
    assert "deletedAt" not in status
    (old, new), ended, at = place.lives("web-"), place.instant(last["at"]), place.instant(status["at"])
    ran = old.ready_until(ended) + new.ready_until(at)
    lived = ended - old.created + at - new.created
    assert abs(status["delivered"] * lived - ran) <= 2 * SHARP
