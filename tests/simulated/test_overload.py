"""Too few nodes: who is lost, and which class is overloaded, is told wherever one looks, at the instant at which it is.

The scheduler is told little: pods become late while time passes, and no event says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.labtools import pod
from simulated.crowding import crowd_out, make_room, web
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged

SAVABLE, TOLD = 3.0, 1.1
BETWEEN_EQUALS = 3600.0
HALF, WIDE = {"slacktide.io/class": "half"}, {"slacktide.io/class": "wide"}


@pytest.fixture
def place() -> Iterator[Stage]:
    """Two classes of one rank, and a scheduler under which whoever has run once is lost soon after it is late."""
    with staged(
        [service_class("half", 0.9, 2), service_class("wide", 0.95, 2)],
        qos__alpha=0, policy__savable=SAVABLE, policy__floor=1e-6, scheduler__watchdog=1,
        policy__overload="triage", policy__patience=BETWEEN_EQUALS, policy__overload_patience=BETWEEN_EQUALS,
    ) as stage:  # fmt: skip
        stage.nodes(1, cpu="1")
        yield stage


def late_in(status: Json) -> tuple[int, int]:
    return status["lost"], status["starving"]


def is_late(place: Stage, name: str, lost: int, starving: int) -> Json:
    return place.status(name, lambda status: late_in(status) == (lost, starving), f"{lost} lost, {starving} starving")


def overloaded(place: Stage) -> set[str]:
    """Classes that are so by the metric."""
    found = place.metrics("slacktide_class_overloaded")
    return {labels.split('"')[1] for labels, value in found.items() if value}


def test_who_is_lost_is_told_everywhere_until_it_has_a_place(place: Stage) -> None:
    """Nothing happens to the workload when its promise is lost: its ledger is written all the same, just then."""
    successor = crowd_out(place, web(place, labels=HALF))
    lost = is_late(place, "deployment-web", 1, 0)
    assert -SAVABLE - TOLD <= lost["slackSeconds"] < -SAVABLE
    place.until(lambda: "half" in overloaded(place), "the metric says the same", TOLD)
    late = place.metrics("slacktide_late_pods")
    assert [late[f'class="half",state="{state}"'] for state in ("lost", "starving")] == [1, 0]
    assert place.reason(successor).endswith(". lost: its class is overloaded.")
    assert "0 running, 1 waiting (1 lost)" in place.explained(successor)["text"]
    make_room(place)
    room = place.now
    place.bound(successor)
    assert place.life(successor).bound == pytest.approx(room, abs=0.1)
    is_late(place, "deployment-web", 0, 0)
    place.until(lambda: not overloaded(place), "no class is overloaded where nobody waits", TOLD)


def test_one_that_never_ran_starves_and_one_that_is_deleted_is_not_late(place: Stage) -> None:
    running = web(place, labels=WIDE)
    place.create("pods", pod("never", cpu="1", labels=HALF))
    is_late(place, "pod-never", 0, 1)
    place.until(lambda: overloaded(place) == {"half", "wide"}, "wide has the rank of half", TOLD)
    place.waits("never", r"\. starving: its class is overloaded\.$")
    place.delete("pods", "never", 0)
    place.status("pod-never", lambda status: "deletedAt" in status, "its workload was deleted")
    place.until(lambda: not overloaded(place), "nobody waits", TOLD)
    assert place.node_of(running)


def test_a_deployment_that_wants_nobody_any_more_has_nobody_who_is_lost(place: Stage) -> None:
    crowd_out(place, web(place, labels=HALF))
    is_late(place, "deployment-web", 1, 0)
    place.patch("deployments", "web", {"spec": {"replicas": 0}})
    is_late(place, "deployment-web", 0, 0)


def test_a_new_leader_finds_who_is_lost_and_who_is_not_any_more(place: Stage) -> None:
    make_room(place, "other")
    for name in [web(place, "stays", HALF), web(place, "leaves", HALF)]:
        crowd_out(place, name)
    before = [is_late(place, name, 1, 0) for name in ("deployment-stays", "deployment-leaves")]
    place.do(place.leader.kill)
    place.patch("deployments", "leaves", {"spec": {"replicas": 0}})
    place.until(lambda: not place.pods("leaves"), "its pod is gone while nobody leads")
    assert place.status("deployment-leaves", bool) == before[1], "nobody has written it"
    is_late(place, "deployment-leaves", 0, 0)
    after = place.status("deployment-stays", lambda status: status["at"] > before[0]["at"], "a new leader wrote it")
    assert late_in(after) == (1, 0)


def test_a_state_that_time_changes_is_written_when_it_does(place: Stage) -> None:
    """A pod that was late runs on: nothing happens to it, and at a known instant its promise is kept again."""
    place.create("pods", pod("slow", cpu="1", labels=HALF, annotations={"slacktide.io/startup-seconds": "1"}))
    missed = place.status("pod-slow", lambda status: status["running"] == 1, "it runs")
    assert (missed["state"], missed.get("breaksAt")) == ("Missed", None)
    gains = 1.0 / missed["promised"] - 1.0
    due = place.instant(missed["at"]) - missed["slackSeconds"] / gains
    kept = place.status("pod-slow", lambda status: status["state"] != "Missed", "its promise is kept again")
    assert due - 0.01 <= place.instant(kept["at"]) <= due + TOLD
    assert kept["breaksAt"] > kept["at"]
    if kept["state"] == "AtRisk":
        assert "margin of class half" in kept["message"]
