"""What a workload is told by events of its own: its promise is at risk, missed, and kept again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.labtools import deployment
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged

MARGIN = 5.0
"""Seconds: below it a promise is AtRisk. A fifth is promised: who ran for some seconds keeps that without a pod."""


@pytest.fixture
def place() -> Iterator[Stage]:
    with staged([service_class("fifth", 0.2, 2, marginSeconds=MARGIN)], qos__alpha=0, scheduler__watchdog=1) as stage:
        stage.nodes(1, cpu="1")
        yield stage


def told(place: Stage, reason: str, name: str = "web") -> list[Json]:
    """The events of a Deployment by their reason."""
    about = {"kind": "Deployment", "name": name}
    every = [one for one in place.world.store.every("events") if one["reason"] == reason]
    return [one for one in every if about.items() <= one["involvedObject"].items()]


def times(place: Stage, reason: str) -> int:
    return sum(one["count"] for one in told(place, reason))


def create(place: Stage, name: str = "web", cpu: str = "1") -> Json:
    labels, annotations = {"slacktide.io/class": "fifth"}, {"slacktide.io/startup-seconds": "3"}
    return place.create("deployments", deployment(name, 1, cpu=cpu, labels=labels, annotations=annotations))


def test_a_workload_is_told_when_its_promise_is_at_risk_missed_and_kept_again(place: Stage) -> None:
    """It waits for its first start, so that its promise is missed; it runs; its only pod finds no place; it runs."""
    made = create(place)
    place.until(lambda: times(place, "Missed") == 1, "nothing was delivered while it started")
    place.until(lambda: times(place, "Recovered") == 1, "it runs and has a fifth")
    (first,) = told(place, "Recovered")
    assert first["involvedObject"]["uid"] == made["metadata"]["uid"]
    assert first["type"] == "Normal"
    assert "promised 0.2 of class fifth; 1 of 1 pods ready" in first["message"]

    (name,) = place.ready("web")
    place.cordon(place.node_of(name))
    place.wait(2.0)
    place.delete("pods", name, 0)
    place.until(lambda: times(place, "AtRisk") == 1, "its slack is below the margin")
    (risk,) = told(place, "AtRisk")
    assert risk["type"] == "Warning"
    assert "if all pods stopped now" in risk["message"]
    place.until(lambda: times(place, "Missed") == 2, "its slack is used up")
    *_, missed = told(place, "Missed")
    assert missed["type"] == "Warning"
    assert missed["message"].startswith("was AtRisk; delivered 0.")
    assert "0 of 1 pods ready" in missed["message"]

    place.nodes(1, prefix="new", cpu="1")
    place.until(lambda: times(place, "Recovered") == 2, "it runs again")
    assert times(place, "Missed") == 2


def test_a_new_leader_does_not_tell_again_what_was_told(place: Stage) -> None:
    create(place)
    place.until(lambda: times(place, "Recovered") == 1, "it runs and has a fifth")
    place.status("deployment-web", lambda one: one["state"] == "Kept", "so says its ledger")
    place.kill()
    place.nodes(1, prefix="more", cpu="1")
    create(place, "later", "10m")
    place.until(lambda: told(place, "Recovered", "later"), "the new leader looks at states, and tells")
    assert times(place, "Recovered") == 1
    assert times(place, "Missed") == 1
