"""Promises over windows to requests of several instances in a live cluster, against what they mean.

Beside the engine stands what happened: which share of the request counted from when to when. Slack is compared with the
twin to the bit, and with the integral of that share as exactly as its roundings allow.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from engine.naive import Naive
from engine.workbench import CLASSES, T0, Chaos, approach_of, settings
from reference.request_definition import Definition, Interval, check, check_calendar
from reference.request_windows import Account, Stretch
from reference.times import on_grid
from reference.windows import MOST, Promise
from slacktide.config import Accounting
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.journal import codec
from slacktide.engine.journal.replay import carry_out
from slacktide.engine.ledger import checkpoint
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.extrapolate import accountings, carry_on
from slacktide.engine.ledger.rest import at_rest
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.model import ServiceClass, Window
from slacktide.model.causes import CLUSTER, WORKLOAD
from slacktide.model.window import parse_epoch, turns
from slacktide.state.spec import Spec

ALPHA = 10.0
DAY = 86_400.0
NOON = "2026-09-21T14:18:20"
"""A day of the calendar windows here begins so late (UTC): 300 s after T0."""
TOGETHER = ("concurrent", "aggregated")


def window_of(kind: str, budget: str, rolling: float = 240.0) -> Window:
    return Window(calendar="1d", start=NOON, budget=budget) if kind == "calendar" else Window(rolling, budget=budget)


def promise_of(service: ServiceClass) -> Promise:
    window = service.window
    assert window is not None
    if window.rolling is not None:
        return Promise(service.slo, window.budget == "whole", on_grid(window.rolling))
    begins = turns(window, parse_epoch("1970-01-01T00:00:00Z"), T0 - 2 * DAY, T0 + 30 * DAY)
    return Promise(service.slo, window.budget == "whole", turns=[on_grid(one) for one in begins])


def account_of(service: ServiceClass, begun: float, history: list[Interval]) -> Account:
    """The twin's account after all of this."""
    promise = promise_of(service)
    while promise.turns and promise.ends <= begun:
        promise.at += 1
    account = Account(promise, begun)
    for begin, end, up, live in history:
        while promise.turns and promise.ends <= end:
            account.note(promise.ends, up, live)
            account.turn()
            promise.at += 1
        if begin < end:
            account.note(end, up, live)
        else:
            told(account, up, live)
    return account


def told(account: Account, up: int, live: int) -> None:
    """Something is told, and more may be at the same instant: what was before is a stretch of its own."""
    last = account.stretches[-1]
    if (last.up, last.live) != (up, live):
        if last.begin == last.end:
            account.stretches.pop()
        account.stretches.append(Stretch(last.end, last.end, up, live, last.received(last.end)))


def kept_share(account: Account) -> float:
    """What share of the window that ends now was not lost."""
    t, promise = account.noted_to, account.promise
    begin = t - promise.rolling if promise.rolling else promise.turns[promise.at]
    lost = sum(
        (max(0.0, one.end - max(one.begin, begin)) * (one.live - one.up) / one.live for one in account.stretches),
        start=0.0,
    )
    over = t - max(begin, account.begun)
    if promise.whole:
        over = promise.rolling or promise.ends - begin
    return 1.0 - lost / over if over > 0.0 else 1.0


def compare(
    engine: Engine, service: ServiceClass, begun: float, history: list[Interval], going_on: int, live: int, name: str
) -> tuple[str, Account]:
    """Slack and share of controller ``c`` at the end of a history; which kind of slack it is."""
    account = account_of(service, begun, history)
    at = max(begun, history[-1][1] if history else begun)
    stands = slo_status(engine, name.split()[0], at)
    found = math.inf if stands.slack is None else stands.slack + ALPHA
    assert found == account.slack(going_on, max(1, live)), name
    if account.noted_to > begun:
        assert stands.delivered == pytest.approx(kept_share(account), abs=1e-7), name
    kind = "none"
    exact = len(account.stretches) <= MOST
    if history and exact and live > 0:
        of = Definition(account.promise, history)
        kind = (check_calendar if account.promise.turns else check)(found, of, going_on, live, name)
    return kind, account


# -- whatever happens, under one leader --------------------------------------------------------------------------------


def history_of(books: Naive, t: float, accounting: str) -> list[Interval]:
    """Which share counted, by the segments of all instances."""
    edges = {T0 + t}
    for one in books.lives:
        edges |= {T0 + edge for s in one.segments for edge in (s.begin, s.end) if edge is not None}
        edges |= {T0 + one.admitted} | ({T0 + one.ended} if one.ended is not None else set())
    found = []
    for begin, end in pairwise(sorted(edge for edge in edges if edge <= T0 + t)):
        at = begin - T0
        there = [one for one in books.lives if one.admitted <= at and (one.ended is None or at < one.ended)]
        up = sum(one.up_at(at, accounting) for one in there)
        found.append((begin, end, *share(books.approach, up, len(there))))
    return found


def share(approach: str, up: int, live: int) -> tuple[int, int]:
    if live == 0 or approach == "concurrent":
        return int(up == live), 1
    return up, live


@pytest.mark.parametrize("accounting", ["always", "restart", "never"])
@pytest.mark.parametrize("kind", ["rolling", "calendar"])
@pytest.mark.parametrize("budget", ["accrued", "whole"])
def test_the_slack_is_what_the_promise_means_whatever_happens(kind: str, budget: str, accounting: Accounting) -> None:
    seen = whatever_happens(kind, budget, accounting, 8)
    assert seen["broken"] >= 5, seen
    assert seen["in time"] + seen["in this"] + seen["in the next"] >= 10, seen
    assert seen["leaving"] >= 5, seen


@pytest.mark.uncompiled
@pytest.mark.parametrize("kind", ["rolling", "calendar"])
def test_nothing_of_that_is_an_overflow_or_no_number(kind: str) -> None:
    """One history, also with kernels as plain Python."""
    assert sum(whatever_happens(kind, "accrued", "restart", 1).values()) > 0


def whatever_happens(kind: str, budget: str, accounting: Accounting, seeds: int) -> Counter[str]:
    """Scaling up and down, preemption with a time of grace, victims that are spared, bindings that are refused; what
    was seen of it, once the slack was compared all along."""
    seen: Counter[str] = Counter()
    shares = (0.6, 0.3, 0.1)
    window = window_of(kind, budget)
    classes = tuple(replace(one, slo=slo, window=window) for one, slo in zip(CLASSES, shares, strict=True))
    for seed in range(seeds):
        chaos = Chaos(seed, accounting, classes)
        for step in range(120):
            if step % 40 == 39 and kind == "calendar":
                chaos.t += 30_000.0
            chaos.step()
            for key, books in chaos.bench.books.items():
                skipped = books.refusals and accounting != "always"
                if books.approach not in TOGETHER or books.batch or not books.lives or skipped:
                    continue
                t, live = max(chaos.t, chaos.bench.engine.latest - T0), books.live()
                up = sum(one.up_at(t, accounting) and one.uid not in books.leaving for one in live)
                history = history_of(books, t, accounting)
                service, begun = chaos.bench.engine.controllers[key].service, T0 + min(o.admitted for o in books.lives)
                going_on = up if books.approach == "aggregated" else 0
                name = f"{key} of seed {seed}, step {step}"
                if step % 5:
                    found = slo_status(chaos.bench.engine, key, T0 + t)
                    slack = math.inf if found.slack is None else found.slack + ALPHA
                    assert slack == account_of(service, begun, history).slack(going_on, max(1, len(live))), name
                    continue
                what, _ = compare(chaos.bench.engine, service, begun, history, going_on, len(live), name)
                seen[what] += 1
                seen["leaving"] += any(one.uid in books.leaving for one in live)
    return seen


# -- leaders that come and go ------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Instance:
    """What an instance does: ``vacant``, ``waiting``, ``starting`` or ``up``; ``cause`` says whose doing it is that it
    is not up, or would be."""

    state: str = "vacant"
    cause: int = CLUSTER
    uid: str = ""
    created: float = 0.0
    since: float | None = None
    ready_since: float | None = None

    @property
    def counts(self) -> bool:
        return self.state == "up" or self.cause != CLUSTER

    def pod(self) -> dict[str, Any]:
        """Its pod, as the next leader finds it."""
        up = self.state == "up"
        return {
            "uid": self.uid, "name": self.uid, "spec": 0, "created": self.created, "leaving": False,
            "host": "node-0" if self.since is not None else "", "since": self.since,
            "ready": up, "ready_since": self.ready_since, "cause": CLUSTER if up else self.cause,
            "cause_since": self.created,
        }  # fmt: skip


@dataclass
class Story:
    """Controller ``c`` and what happens to it, at whole seconds; ``journal`` is told all operations of each leader."""

    approach: str
    service: ServiceClass
    seed: Any
    t: int = 0
    number: int = 0
    desired: int = -1
    instances: list[Instance] = field(default_factory=list)
    vacant: list[Instance] = field(default_factory=list)
    history: list[Interval] = field(default_factory=list)
    begun: float = -1.0
    journals: list[list[Operation]] = field(default_factory=list)
    leaders: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.seed}")
        self.engine = self.new_engine()

    def new_engine(self) -> Engine:
        self.journals.append([])
        engine = Engine(settings("always", ALPHA), self.journals[-1].append)
        engine.host("node-0", {"cpu": 10**6, "memory": 2**40, "pods": 500}, {}, True)
        engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), self.service))
        engine.controller("c", self.service, approach_of(self.approach), False, at=self.now)
        engine.desired("c", self.desired, self.now)
        return engine

    @property
    def now(self) -> float:
        return T0 + self.t

    def of(self, *states: str) -> list[Instance]:
        return [one for one in self.instances if one.state in states]

    def pass_time(self, seconds: int) -> None:
        if self.begun >= 0.0:
            counted = sum(one.counts for one in self.instances)
            shared = share(self.approach, counted, len(self.instances))
            self.history.append((self.now, self.now + seconds, *shared))
        self.t += seconds

    # What happens; while nobody leads the engine is not told

    def arrive(self, told: bool = True) -> Instance:
        one = self.vacant.pop(0) if self.vacant else Instance()
        if one not in self.instances:
            self.instances.append(one)
        self.begun = self.begun if self.begun >= 0.0 else self.now
        self.number += 1
        one.uid, one.state, one.created = f"p{self.number}", "waiting", self.now
        one.since = one.ready_since = None
        if told:
            self.engine.arrive(one.uid, one.uid, "c", 0, self.now)
            self.engine.wake(one.uid)
            self.pass_time(0)
        return one

    def bind(self, one: Instance, told: bool = True) -> None:
        one.state, one.since = "starting", self.now
        if told:
            self.engine.bound_elsewhere(one.uid, "node-0", self.now)

    def place(self) -> None:
        """A pass."""
        of_uid = {one.uid: one for one in self.instances}
        for decision in self.engine.run(self.now).decisions:
            self.engine.bound(decision.uid, self.now)
            of_uid[decision.uid].state, of_uid[decision.uid].since = "starting", self.now

    def ready(self, one: Instance, told: bool = True) -> None:
        one.state, one.ready_since = "up", self.now
        if told:
            self.engine.ready(one.uid, self.now)
        else:
            one.cause = CLUSTER  # a leader that had seen it would have said so
        self.pass_time(0)

    def unready(self, one: Instance, told: bool = True) -> None:
        one.state, one.ready_since = "starting", self.now
        if told:
            self.engine.unready(one.uid, self.now)
        self.pass_time(0)

    def blame(self, one: Instance, cause: int) -> None:
        one.cause = cause
        self.engine.blame(one.uid, cause, self.now)
        self.pass_time(0)

    def gone(self, one: Instance, cause: int, told: bool = True) -> None:
        if told:
            self.engine.gone(one.uid, self.now, cause=cause)
        one.state, one.cause, one.uid = "vacant", cause, ""
        if 0 <= self.desired < len(self.instances):
            self.instances.remove(one)
        else:
            self.vacant.append(one)
        if told:
            self.pass_time(0)

    def want(self, count: int) -> None:
        self.desired = count
        self.engine.desired("c", count, self.now)
        while 0 <= count < len(self.instances) and self.vacant:
            self.instances.remove(self.vacant.pop())
        self.pass_time(0)

    def step(self, longest: int) -> None:
        rng, there = self.random, self.of("waiting", "starting", "up")
        deed = rng.choice(("arrive", "place", "bind", "ready", "ready", "unready", "blame", "gone", "want"))
        if deed == "arrive" and len(there) < 6:
            self.arrive()
        elif deed == "place":
            self.place()
        elif deed == "want":
            self.want(rng.choice((-1, 2, 3, 5)))
        elif deed == "bind" and self.of("waiting"):
            self.bind(rng.choice(self.of("waiting")))
        elif deed == "ready" and self.of("starting"):
            self.ready(rng.choice(self.of("starting")))
        elif deed == "unready" and self.of("up"):
            self.unready(rng.choice(self.of("up")))
        elif deed == "blame" and there:
            self.blame(rng.choice(there), rng.choice((CLUSTER, CLUSTER, WORKLOAD)))
        elif deed == "gone" and there:
            self.gone(rng.choice(there), rng.choice((CLUSTER, CLUSTER, WORKLOAD)))
        self.pass_time(rng.choice((0, 0, rng.randint(1, longest))))

    def lead_anew(self, longest: int) -> None:
        """Another leader begins, at once or some time after the ledger was written, of which only pods tell."""
        rng = self.random
        self.leaders += 1
        self.pass_time(2)  # timestamps of pods have a resolution of a second
        saved = json.loads(json.dumps(export(self.engine, "c", self.now)))
        for one in self.of("up"):
            one.cause = CLUSTER  # ledgers say it of those that are not
        self.pass_time(2)
        for _ in range(rng.choice((0, 1, 2))):
            told_apart = not self.of("starting")
            new, running = self.of("waiting"), [one for one in self.of("up") if one.since is not None]
            if new and rng.random() < 0.5:
                self.bind(new[0], told=False)
                self.pass_time(rng.randint(1, longest))
                self.ready(new[0], told=False)
                self.pass_time(rng.randint(1, longest))
                break
            if running and told_apart and not self.vacant:
                one = rng.choice(running)
                self.desired = -1
                self.gone(one, CLUSTER, told=False)
                self.arrive(told=False)
                self.pass_time(rng.randint(1, longest))
                break
            self.pass_time(rng.randint(0, longest))
        self.engine = self.new_engine()
        restore(self.engine, "c", saved, [one.pod() for one in self.instances if one.uid], self.now)
        for one in self.of("waiting"):
            self.engine.wake(one.uid)

    def compare(self) -> tuple[str, Account]:
        counted = sum(one.counts for one in self.instances)
        going_on = counted if self.approach == "aggregated" else 0
        name = f"c of seed {self.seed}, second {self.t}"
        return compare(self.engine, self.service, self.begun, self.history, going_on, len(self.instances), name)


@pytest.mark.parametrize(
    "approach",
    [pytest.param(one, marks=pytest.mark.slow if one == "aggregated" else ()) for one in TOGETHER],
)
@pytest.mark.parametrize("kind", ["rolling", "calendar"])
@pytest.mark.parametrize("budget", ["accrued", "whole"])
def test_the_slack_is_what_the_promise_means_under_whoever_leads(approach: str, kind: str, budget: str) -> None:
    """Causes of all kinds, scaling up and down, leaders that find a ledger of now or of some time ago."""
    seen: Counter[str] = Counter()
    for seed in range(6):
        rng = random.Random(f"{approach} {kind} {budget} {seed}")
        slo = rng.choice((0.3, 0.5, 0.75, 0.9))
        story = Story(approach, ServiceClass("any", slo, 1, window=window_of(kind, budget)), (approach, kind, seed))
        for _ in range(100):
            longest = 20_000 if kind == "calendar" and rng.random() < 0.1 else 15
            story.step(longest)
            if story.begun < 0.0:
                continue
            if rng.random() < 0.15:
                story.lead_anew(longest)
            what, account = story.compare()
            seen[what] += 1
            seen["united"] += len(account.outages()[0]) == MOST
        seen["leaders"] += story.leaders
    assert seen["leaders"] >= 15, seen
    assert seen["broken"] >= 2, seen
    assert seen["in time"] + seen["in this"] + seen["in the next"] >= 5, seen


@pytest.mark.parametrize("kind", ["rolling", "calendar"])
def test_a_record_decides_again_whatever_was_asked_meanwhile(kind: str) -> None:
    """Questions, also about instants to come before which more is told, leave no trace."""
    for seed in range(12):
        rng = random.Random(seed)
        story = Story("aggregated", ServiceClass("any", 0.75, 1, window=window_of(kind, "accrued")), seed)
        for _ in range(80):
            story.step(15)
            if rng.random() < 0.15 and story.begun >= 0.0:
                story.lead_anew(15)
            slo_status(story.engine, "c", story.now + (rng.choice((0.0, 9.0)) if kind == "rolling" else 0.0))
        again = Engine(settings("always", ALPHA))
        for one in story.journals[-1]:
            carry_out(again, codec.decode(codec.encode(one)))
        at = story.now + 1.0
        assert export(again, "c", at) == export(story.engine, "c", at)


@pytest.mark.parametrize("approach", TOGETHER)
def test_a_ledger_read_later_says_what_the_scheduler_would(approach: str) -> None:
    states, compared = Counter[str](), 0
    for seed in range(60):
        rng = random.Random(seed)
        window = window_of(rng.choice(("rolling", "calendar")), rng.choice(("accrued", "whole")))
        story = Story(approach, ServiceClass("any", 0.75, 1, window=window), seed)
        for _ in range(rng.randint(5, 60)):
            story.step(15 if window.rolling else rng.choice((15, 9_000)))
        saved = checkpoint.read(json.loads(json.dumps(export(story.engine, "c", story.now))))
        found = slo_status(story.engine, "c", story.now)
        assert "always" in accountings(saved, round(found.delivered, 6))
        for later in (0.0, 5.0, 50.0, 5_000.0, 100_000.0):
            read = carry_on(saved, "always", 0.75, found.slack, story.now + later, 10.0)
            stands = slo_status(story.engine, "c", story.now + later)
            assert read.delivered == pytest.approx(stands.delivered, abs=1e-9), (seed, later)
            assert read.state == stands.state, (seed, later)
            if read.slack is not None:
                assert read.slack == pytest.approx(stands.slack, abs=1e-5), (seed, later)
                compared += 1
            states[read.state] += 1
    assert compared > 100
    assert min(states[state] for state in ("Kept", "AtRisk", "Missed")) >= 1


@pytest.mark.parametrize("approach", TOGETHER)
@pytest.mark.parametrize("budget", ["accrued", "whole"])
def test_deleting_and_creating_anew_wins_nothing(approach: str, budget: str) -> None:
    """Time stands still in between: a budget that was used up stays so."""
    service, missed = ServiceClass("any", 0.9, 1, window=window_of("rolling", budget)), 0
    for seed in range(10):
        story = Story(approach, service, seed)
        while story.begun < 0.0 or len(story.history) < 20:
            story.step(15)
        before = slo_status(story.engine, "c", story.now)
        rest = at_rest(json.loads(json.dumps(export(story.engine, "c", story.now))))
        story.engine.controller_gone("c", story.now) if not story.engine.pods else None
        anew = story.new_engine()
        restore(anew, "c", checkpoint.moved(rest, story.now + 1_000.0), [], story.now + 1_000.0)
        after = slo_status(anew, "c", story.now + 1_000.0)
        assert after.delivered == before.delivered
        assert after.losses.cluster == before.losses.cluster
        assert (after.state == "Missed") == (before.state == "Missed")  # else nobody is at risk, as all are excused
        if before.slack is not None and before.slack < -ALPHA:
            assert after.slack == before.slack
            missed += 1
        account = account_of(service, story.begun, story.history)
        account.note(account.noted_to + 500.0, 1, 1)  # vacant by the workload's own doing
        found = slo_status(anew, "c", story.now + 1_500.0).delivered
        assert found == pytest.approx(kept_share(account), abs=1e-7)
    assert missed >= 2


@pytest.mark.uncompiled
def test_a_place_in_the_tables_is_free_when_its_controller_is_gone() -> None:
    service = ServiceClass("any", 0.9, 1, window=window_of("rolling", "accrued"))
    story = Story("aggregated", service, "gone")
    for _ in range(40):
        one = story.arrive()
        story.bind(one)
        story.ready(one)
        story.pass_time(3)
        story.gone(one, CLUSTER)
        story.pass_time(2)
    engine = story.engine
    used = int(engine.tables.tb.control["outages"])
    engine.controller_gone("c", story.now)
    engine.controller("d", service, approach_of("concurrent"), False, at=story.now)
    assert slo_status(engine, "d", story.now + 60.0).state == "Unknown"
    engine.arrive("new", "new", "d", 0, story.now + 60.0)
    begun = story.now + 60.0
    compare(engine, service, begun, [(begun, begun + 10.0, 0, 1)], 0, 1, "d")  # nothing of the one before
    assert engine.controllers["d"].q == 0
    for i in range(40):
        engine.controller(f"e{i}", service, approach_of("aggregated"), False, at=story.now)
    assert int(engine.tables.tb.control["outages"]) == used


@pytest.mark.uncompiled
@pytest.mark.parametrize("approach", TOGETHER)
def test_a_class_that_gets_a_window_or_another_one(approach: str) -> None:
    def told(slo: float, window: Window | None) -> None:
        service = replace(story.service, slo=slo, window=window)
        story.engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
        story.engine.controller("c", service, approach_of(approach), False, at=story.now)

    def slack() -> float:
        found = slo_status(story.engine, "c", story.now).slack
        assert found is not None
        return found + ALPHA

    story = Story(approach, ServiceClass("any", 0.9, 1), "class")
    one = story.arrive()
    story.pass_time(500)
    story.bind(one)
    story.ready(one)
    story.pass_time(1_000)
    story.engine.run(story.now)
    assert slo_status(story.engine, "c", story.now).state == "Missed"  # a third of its life was lost
    told(0.9, Window(rolling=600.0, budget="accrued"))
    assert slo_status(story.engine, "c", story.now).delivered == 1.0  # the window begins now
    story.pass_time(300)
    story.unready(one)
    story.pass_time(20)
    near = pytest.approx(300 / 0.9 - 320, abs=2.0**-20)
    assert slack() == near
    told(0.5, Window(rolling=600.0, budget="accrued"))
    assert slack() == 300 - 20  # of 600 s 300 are enough, and it has had these
    told(0.9, Window(rolling=600.0, budget="accrued"))
    assert slack() == near
    story.ready(one)
    story.pass_time(400)
    told(0.9, Window(rolling=600.0, budget="whole"))
    story.unready(one)
    assert slack() == pytest.approx(60 - 20, abs=2.0**-20)
    whole = replace(story.service, window=Window(rolling=600.0, budget="whole"))
    begun, going_on = T0 + 1_500.0, 0
    compare(story.engine, whole, begun, [one for one in story.history if one[0] >= begun], going_on, 1, "c")
    told(0.9, window_of("calendar", "whole"))
    story.pass_time(30)
    assert slack() == pytest.approx(0.1 * DAY - 30, abs=2.0**-20)  # another kind of window begins
    told(0.9, None)
    assert slo_status(story.engine, "c", story.now).state == "Missed"  # its life is what it was
    for table in ("request_accounts", "stretches"):
        assert not story.engine.tables.tb[table][0]["head" if table == "request_accounts" else "open"]


@pytest.mark.uncompiled
@pytest.mark.parametrize("approach", TOGETHER)
def test_a_binding_that_is_refused_was_no_start_up(approach: str) -> None:
    """Where a start-up counts as running, it had counted since the decision."""
    service = ServiceClass("any", 0.9, 1, window=window_of("rolling", "accrued"))
    engine = Engine(settings("never", ALPHA))
    engine.host("node-0", {"cpu": 10**6, "memory": 2**40, "pods": 500}, {}, True)
    engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
    engine.controller("c", service, approach_of(approach), False, at=T0)
    for uid in ("a", "b"):
        engine.arrive(uid, uid, "c", 0, T0)
    engine.bound_elsewhere("a", "node-0", T0)
    engine.wake("b")
    (decision,) = engine.run(T0 + 16.0).decisions
    engine.refused(decision.uid, T0 + 20.0)
    history = [(T0, T0 + 32.0, *share(approach, 1, 2))]
    compare(engine, service, T0, history, int(approach == "aggregated"), 2, "c")


@pytest.mark.parametrize("approach", TOGETHER)
def test_a_ledger_of_a_promise_over_a_window_stays_small(approach: str) -> None:
    service = ServiceClass("any", 0.99, 1, window=Window(rolling=30 * DAY))
    story = Story(approach, service, "small")
    ones = [story.arrive() for _ in range(40)]
    for one in ones:
        story.bind(one)
    for _ in range(200):
        for one in ones:
            story.ready(one)
        story.pass_time(60 + story.random.randrange(1000))
        for one in story.random.sample(ones, 7):
            story.unready(one)
            story.pass_time(1 + story.random.randrange(10))
        ones = ones[:]
        for one in story.of("starting"):
            story.ready(one)
        for one in ones:
            story.unready(one)
        story.pass_time(1)
    saved = export(story.engine, "c", story.now)
    assert checkpoint.read(saved).accounts is not None
    assert len(json.dumps(saved)) < 4_096


def test_ledgers_of_other_releases() -> None:
    """One over a lifetime is gone on from, and its window begins then; one over a window earlier ones leave alone."""
    story = Story("concurrent", ServiceClass("any", 0.9, 1), "before")
    one = story.arrive()
    story.bind(one)
    story.pass_time(100)
    story.ready(one)
    story.pass_time(50)
    before = export(story.engine, "c", story.now)
    assert before["version"] == checkpoint.LIFETIME_VERSION
    story.service = replace(story.service, window=Window(rolling=600.0, budget="accrued"))
    engine = story.new_engine()
    restore(engine, "c", json.loads(json.dumps(before)), [one.pod()], story.now)
    assert slo_status(engine, "c", story.now + 9.0).slack == pytest.approx(9.0 / 0.9 - 9.0 - ALPHA, abs=2.0**-20)
    windowed = export(engine, "c", story.now + 9.0)
    assert windowed["version"] == checkpoint.VERSION > checkpoint.INSTANCES_VERSION
    broken = {**windowed, "stretch": {**windowed["stretch"], "up": 3}}
    with pytest.raises(checkpoint.BrokenLedger, match=r"stretch: found .*, expected a share"):
        checkpoint.read(broken)
    with pytest.raises(checkpoint.BrokenLedger, match=r"stretch.age: found None, expected seconds"):
        checkpoint.read({**windowed, "stretch": {"known": 1.0}})
    with pytest.raises(checkpoint.BrokenLedger, match=r"stretch: found .*, expected seconds from 0 on"):
        checkpoint.read({**windowed, "stretch": {**windowed["stretch"], "age": -1.0}})
