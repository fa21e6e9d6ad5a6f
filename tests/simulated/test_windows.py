"""Promises over windows: what is lost counts, and counts no more when it has left the window, whoever leads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from cluster.labtools import deployment
from reference.request_windows import Account
from reference.windows import Promise
from simulated.crowding import crowd_out, make_room, web
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged

WINDOW, SLO = 60.0, 0.5
MINUTE = {"slacktide.io/class": "minute"}
TOGETHER = {"concurrent": 0.9, "aggregated": 0.95}
"""What requests of two instances promise: when one of these is down for six seconds, the promise is broken."""
SHARP = 0.15
"""Seconds: when a pod was created the API server says in whole seconds, and scheduler and kubelet hear of what happens
some hundredths of a second later."""
WHOLE = 1.0 + SHARP
"""The same for a new leader, who reads off conditions since when pods run: they have whole seconds."""
TOLD = 1.1
"""Seconds after which a state that time alone changes is written, at the latest: the watchdog's."""


@pytest.fixture
def place() -> Iterator[Stage]:
    window = {"rolling": "1m", "budget": "whole"}
    classes = [service_class("minute", SLO, 2, window=window)]
    classes += [service_class(name, slo, 2, window=window, approach=name) for name, slo in TOGETHER.items()]
    with staged(classes, qos__alpha=0, scheduler__watchdog=1) as stage:
        stage.nodes(1, cpu="1")
        yield stage


def at(place: Stage, status: Json) -> float:
    return place.instant(status["at"])


def test_what_is_lost_counts_until_it_has_left_the_window_under_whoever_leads(place: Stage) -> None:
    first = web(place, labels=MINUTE)
    life = place.life(first)
    lost_first = life.up[0][0] - life.created
    status = place.status("deployment-web", lambda one: one["running"] == 1, "it runs")
    assert status["slackSeconds"] == pytest.approx(WINDOW * (1 - SLO) - lost_first, abs=SHARP)

    second = crowd_out(place, first)
    missed = place.status("deployment-web", lambda one: one["state"] == "Missed", "its budget is used up")
    due = life.up[0][1] + WINDOW * (1 - SLO) - lost_first
    assert due - SHARP <= at(place, missed) <= due + TOLD
    assert missed["delivered"] == pytest.approx(SLO, abs=TOLD / WINDOW)
    make_room(place)
    place.bound(second)
    place.ready("web")
    due = place.life(second).up[0][0] + WINDOW * SLO  # so many seconds of running later the outage counts no more
    before = place.status("deployment-web", lambda one: one["running"] == 1, "it runs again")
    place.kill()
    after = place.status("deployment-web", lambda one: one["at"] > before["at"], "another leader goes on")
    assert after["slackSeconds"] == pytest.approx(before["slackSeconds"], abs=SHARP)
    assert after["state"] == "Missed"

    kept = place.status("deployment-web", lambda one: one["state"] == "Kept", "the outage has left its window")
    assert due - WHOLE <= at(place, kept) <= due + TOLD
    assert kept["slackSeconds"] == pytest.approx(WINDOW * (1 - SLO), abs=SHARP)


class Told:
    """What became of the pods of a request of two instances: when which share of it counted."""

    def __init__(self, place: Stage, name: str) -> None:
        self.place, self.name, self.slo = place, name, TOGETHER[name]
        self.lost: list[tuple[float, float]] = []  # of one of the two, from when to when

    def started(self, pod: str) -> None:
        """A pod has been lost from its creation on until it became ready."""
        life = self.place.life(pod)
        self.lost.append((life.created, life.up[0][0]))

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
        begun = max(self.lost[0][0], at - WINDOW)
        account, before = self.account(at), self.account(begun)
        return at - begun - (account.received - before.received)

    def first(self, less: float) -> float:
        """The first instant at which the slack is less than this; inf: never."""
        instants = (self.lost[0][0] + 0.05 * i for i in range(1, 4000))
        return next((at for at in instants if self.slack(at) < less), float("inf"))


def test_a_request_of_several_is_held_to_its_window_under_whoever_leads(place: Stage) -> None:
    """Of each approach one; one of its two pods loses its node, and waits."""
    told = {name: Told(place, name) for name in TOGETHER}
    for name in TOGETHER:
        place.create("deployments", deployment(name, 2, cpu="250m", labels={"slacktide.io/class": name}))
    first = {name: place.ready(name, 2) for name in TOGETHER}
    waiting = {}
    for name, one in told.items():
        for pod in first[name]:
            one.started(pod)
        crowd_out(place, first[name][0])
        (waiting[name],) = set(place.names(name)) - set(first[name])
    missed = {
        name: place.status(f"deployment-{name}", lambda status: status["state"] == "Missed", "its budget is used up")
        for name in TOGETHER
    }
    make_room(place)
    for name, pod in waiting.items():
        place.bound(pod)
        place.ready(name, 2)
        told[name].started(pod)
        assert told[name].first(SHARP) <= at(place, missed[name]) <= told[name].first(-SHARP) + TOLD
    before = {
        name: place.status(f"deployment-{name}", lambda one: one["running"] == 2, "both run") for name in TOGETHER
    }
    place.kill()
    for name, one in told.items():
        is_later = partial(lambda written, status: status["at"] > written, before[name]["at"])
        after = place.status(f"deployment-{name}", is_later, "another leader goes on")
        assert after["delivered"] == pytest.approx(1.0 - one.lost_by(at(place, after)) / WINDOW, abs=WHOLE / WINDOW)
        if name == "concurrent":  # an aggregated one of which all run has no slack at all, or cannot miss its promise
            assert after["slackSeconds"] == pytest.approx(one.slack(at(place, after)), abs=WHOLE)


def test_a_ledger_says_until_when_the_promise_holds_if_nothing_runs_from_now_on(place: Stage) -> None:
    web(place, labels=MINUTE)
    status = place.status("deployment-web", lambda one: one["running"] == 1, "it runs")
    assert place.instant(status["breaksAt"]) - at(place, status) == pytest.approx(status["slackSeconds"], abs=0.01)
