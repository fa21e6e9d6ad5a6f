"""Promises over windows on a real control plane: what is lost counts, and counts no more when it has left the window.

Windows are a minute here. Which seconds were lost is read off the pods' own timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.kubectl import Json
from cluster.running import Place, Stage, at, service_class, staged
from cluster.test_live_overload import crowd_out, make_room, web
from slacktide.kube.client.timestamps import unix_seconds
from slacktide.lab import Binaries

WINDOW, SLO = 60.0, 0.5
MINUTE = {"slacktide.io/class": "minute"}
SHARP = 1.5
"""Seconds: timestamps of the API server are whole seconds."""
TOLD = 2.5
"""Seconds after which a state that time alone changes is written, at the latest."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    window = {"rolling": "1m", "budget": "whole"}
    classes = [service_class("minute", SLO, 2, window=window)]
    yield from staged(binaries, tmp_path_factory.mktemp("windows"), classes, qos__alpha=0, scheduler__watchdog=1)


@pytest.fixture
def place(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Place]:
    found = Place(stage, request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-"))
    found.nodes(1, cpu="1")
    yield found
    found.api.delete(f"/api/v1/namespaces/{found.namespace}")


def ready_since(place: Place, name: str) -> float:
    conditions = {one["type"]: one for one in place.pod(name)["status"]["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    return unix_seconds(conditions["Ready"]["lastTransitionTime"])


def test_what_is_lost_counts_until_it_has_left_the_window_under_whoever_leads(place: Place) -> None:
    first = web(place, labels=MINUTE)
    created = unix_seconds(place.pod(first)["metadata"]["creationTimestamp"])
    lost_first = ready_since(place, first) - created
    status = place.status("deployment-web", lambda one: one["running"] == 1, "it runs")
    assert status["slackSeconds"] == pytest.approx(WINDOW * (1 - SLO) - lost_first, abs=SHARP)

    second = crowd_out(place, first)
    missed = place.status("deployment-web", lambda one: one["state"] == "Missed", "its budget is used up")
    assert missed["delivered"] == pytest.approx(SLO, abs=SHARP / WINDOW)
    make_room(place)
    place.bound(second)
    place.ready("web")
    since = ready_since(place, second)
    due = since + WINDOW * SLO  # so many seconds of running later the outage counts no more
    before = place.status("deployment-web", lambda one: one["running"] == 1, "it runs again")
    place.scheduler.kill()
    place.scheduler.restart()
    after = place.status("deployment-web", lambda one: one["at"] > before["at"], "another leader goes on")
    assert after["slackSeconds"] == pytest.approx(before["slackSeconds"], abs=SHARP)
    assert after["state"] == "Missed"

    kept = place.status("deployment-web", lambda one: one["state"] == "Kept", "the outage has left its window")
    assert due - SHARP <= at(kept) <= due + TOLD
    assert kept["slackSeconds"] == pytest.approx(WINDOW * (1 - SLO), abs=SHARP)


def test_a_ledger_says_until_when_the_promise_holds_if_nothing_runs_from_now_on(place: Place) -> None:
    web(place, labels=MINUTE)
    status: Json = place.status("deployment-web", lambda one: one["running"] == 1, "it runs")
    assert unix_seconds(status["breaksAt"]) - at(status) == pytest.approx(status["slackSeconds"], abs=1.0)


def test_nothing_went_wrong(stage: Stage) -> None:
    stage.auditor.stop()
    assert not stage.auditor.findings()
    assert not stage.scheduler.complaints()
