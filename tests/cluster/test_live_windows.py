"""Promises over windows on a real control plane: what is lost counts, and counts no more when it has left the window.

Windows are a minute here. Which seconds were lost is read off the pods' own timestamps.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from cluster.kubectl import Json
from cluster.labtools import deployment, until
from cluster.running import Place, Stage, at, service_class, staged
from cluster.test_live_overload import crowd_out, make_room, web
from reference.request_windows import Account
from reference.windows import Promise
from slacktide.kube.client.timestamps import unix_seconds
from slacktide.lab import Binaries

WINDOW, SLO = 60.0, 0.5
MINUTE = {"slacktide.io/class": "minute"}
TOGETHER = {"concurrent": 0.9, "aggregated": 0.95}
"""What requests of two instances promise: when one of these is down for six seconds, the promise is broken."""
SHARP = 1.5
"""Seconds: timestamps of the API server are whole seconds."""
TOLD = 2.5
"""Seconds after which a state that time alone changes is written, at the latest."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    window = {"rolling": "1m", "budget": "whole"}
    classes = [service_class("minute", SLO, 2, window=window)]
    classes += [service_class(name, slo, 2, window=window, approach=name) for name, slo in TOGETHER.items()]
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


class Told:
    """What the pods of a request of two instances say: when which share of it counted, to the second."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name, self.slo = place, name, TOGETHER[name]
        self.lost: list[tuple[float, float]] = []  # of one of the two, from when to when

    def started(self, pod: str) -> float:
        """A pod has been lost from its creation on until it became ready; when that was."""
        created = unix_seconds(self.place.pod(pod)["metadata"]["creationTimestamp"])
        self.lost.append((created, ready_since(self.place, pod)))
        return self.lost[-1][1]

    def account(self, at: float) -> Account:
        begun = min(begin for begin, _ in self.lost)
        account = Account(Promise(self.slo, True, WINDOW), begun)
        for instant in sorted({at, *(edge for one in self.lost for edge in one if edge < at)}):
            down = sum(begin < instant <= end for begin, end in self.lost)
            account.note(instant, *((2 - down, 2) if self.name == "aggregated" else (int(not down), 1)))
        return account

    def slack(self, at: float) -> float:
        """While all that run are told to go on."""
        account = self.account(at)
        last = account.stretches[-1]
        return account.slack(last.up, 2) if self.name == "aggregated" else account.slack(0, 2)

    def lost_by(self, at: float) -> float:
        """Seconds that it lost in the window that ends then."""
        lost = at - max(self.lost[0][0], at - WINDOW)
        account, before = self.account(at), self.account(max(self.lost[0][0], at - WINDOW))
        return lost - (account.received - before.received)

    def first(self, less: float) -> float:
        """The first instant at which the slack is less than this; inf: never."""
        instants = (self.lost[0][0] + 0.25 * i for i in range(1, 2000))
        return next((at for at in instants if self.slack(at) < less), float("inf"))


def is_later(than: str, status: Json) -> bool:
    return str(status["at"]) > than


def test_a_request_of_several_is_held_to_its_window_under_whoever_leads(place: Place) -> None:
    """Of each approach one; one of its two pods loses its node, and waits."""
    told = {name: Told(place, name) for name in TOGETHER}
    for name in TOGETHER:
        place.create("deployments", deployment(name, 2, cpu="250m", labels={"slacktide.io/class": name}))
    first = {name: {pod["metadata"]["name"] for pod in place.ready(name, 2)} for name in TOGETHER}
    for name, one in told.items():
        for pod in first[name]:
            one.started(pod)
        crowd_out(place, min(first[name]))

    def new(name: str) -> str:
        """The pod that came for the one that was deleted."""
        return next(
            (pod["metadata"]["name"] for pod in place.pods(name) if pod["metadata"]["name"] not in first[name]), ""
        )

    waiting = {name: str(until(partial(new, name), "its replacement")) for name in TOGETHER}
    missed = {
        name: place.status(f"deployment-{name}", lambda status: status["state"] == "Missed", "its budget is used up")
        for name in TOGETHER
    }
    make_room(place)
    for name, pod in waiting.items():
        place.bound(pod)
        place.ready(name, 2)
        created = unix_seconds(place.pod(pod)["metadata"]["creationTimestamp"])
        told[name].started(pod)
        surely = told[name].first(-SHARP)
        assert told[name].first(SHARP) <= at(missed[name])
        assert at(missed[name]) <= surely + TOLD or surely < created  # where start-ups are slow
    before = {
        name: place.status(f"deployment-{name}", lambda one: one["running"] == 2, "both run") for name in TOGETHER
    }
    place.scheduler.kill()
    place.scheduler.restart()
    for name, one in told.items():
        written = before[name]["at"]
        after = place.status(f"deployment-{name}", partial(is_later, written), "another leader goes on")
        assert after["delivered"] == pytest.approx(1.0 - one.lost_by(at(after)) / WINDOW, abs=SHARP / WINDOW)
        if name == "concurrent":  # an aggregated one of which all run has no slack at all, or cannot miss its promise
            expected = [one.slack(at(after) + 0.25 * i) for i in range(-6, 7)]
            assert min(expected) - SHARP <= after["slackSeconds"] <= max(expected) + SHARP


def test_a_ledger_says_until_when_the_promise_holds_if_nothing_runs_from_now_on(place: Place) -> None:
    web(place, labels=MINUTE)
    status: Json = place.status("deployment-web", lambda one: one["running"] == 1, "it runs")
    assert unix_seconds(status["breaksAt"]) - at(status) == pytest.approx(status["slackSeconds"], abs=1.0)


def test_nothing_went_wrong(stage: Stage) -> None:
    stage.auditor.stop()
    assert not stage.auditor.findings()
    assert not stage.scheduler.complaints()
