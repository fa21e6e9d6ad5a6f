"""Slack of requests whose promise is over a window, against its definition: the integral of a share, looked at."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from reference import windows
from reference.request_windows import Account, Piece
from reference.state import Host, Instance
from reference.times import on_grid
from reference.windows import MOST, Promise
from slacktide.config import Config, QosSettings

STEP = Fraction(1, 2**20)
Random = np.random.Generator
Interval = tuple[float, float, int, int]
"""From, to (s), how many counted of how many."""

CONFIG = Config(qos=QosSettings(startup="never", alpha=0.0))


def history_of(random: Random, most: int, live: int) -> list[Interval]:
    """What happened to a request: most of the time most of it counts."""
    at = on_grid(float(random.uniform(0.0, 50.0)))
    found: list[Interval] = []
    for _ in range(int(random.integers(1, most + 1))):
        end = at + on_grid(float(random.choice([float(random.uniform(0.0, 8.0)), float(random.integers(1, 40))])))
        of = live if random.random() < 0.8 else int(random.integers(1, 7))
        found.append((at, end, of if random.random() < 0.6 else int(random.integers(0, of + 1)), of))
        at = end
    return [one for one in found if one[0] < one[1]]


def account_of(promise: Promise, history: list[Interval]) -> Account:
    account = Account(promise, history[0][0])
    for _, end, up, live in history:
        account.note(end, up, live)
    return account


class Definition:
    """E of a history, exactly, and what a window that begins at ``t - W + v`` has too much."""

    def __init__(self, promise: Promise, history: list[Interval]) -> None:
        self.history, self.now = history, Fraction(history[-1][1])
        self.before = Fraction(1) if promise.whole else Fraction(promise.slo)
        self.length, self.good = Fraction(promise.rolling), Fraction(promise.good)

    def received(self, s: Fraction) -> Fraction:
        begun = Fraction(self.history[0][0])
        if s < begun:
            return -self.before * (begun - s)
        return sum(
            (Fraction(up, live) * max(Fraction(0), min(s, Fraction(end)) - Fraction(begin))
             for begin, end, up, live in self.history),
            start=Fraction(0),
        )  # fmt: skip

    def spare(self, v: Fraction, rho: Fraction) -> Fraction:
        s = self.now - self.length + v
        had = self.received(self.now) + rho * (s - self.now) if s > self.now else self.received(s)
        return self.received(self.now) + rho * v - had - self.good

    def corners(self) -> list[Fraction]:
        """All v between which the spare amount is a straight line, up to the whole window."""
        instants = [Fraction(self.history[0][0]), *(Fraction(end) for _, end, _, _ in self.history)]
        found = [one - (self.now - self.length) for one in instants]
        return sorted({Fraction(0), self.length, *(v for v in found if 0 < v < self.length)})


def check(account: Account, of: Definition, c: int, live: int, name: str) -> str:
    """Whether the slack is what the definition says, and of which kind it is."""
    found, rho = account.slack(c, live), Fraction(c, live)
    near = STEP * (len(of.history) + 12)  # each stretch is rounded once; and see TIE
    if found == inf:
        assert all(of.spare(v, rho) >= -near for v in of.corners()), name
        return "never"
    v = Fraction(found)
    if v < 0:
        x = of.now - of.length + v
        missing = of.received(of.now) - of.good
        assert abs(of.received(x) - missing) <= near, name
        assert of.received(x + 2 * near + Fraction(1, 1000)) > missing - near, name
        return "broken"
    corners = of.corners()
    assert all(of.spare(one, rho) >= -near for one in corners if one <= v), name
    assert abs(of.spare(v, rho)) <= near, name
    after = next((one for one in corners if one > v + near), of.length)
    if after > v + Fraction(1, 100):
        assert of.spare(after, rho) < of.spare(v, rho) + near, name
        slope = (of.spare(after, rho) - of.spare(v, rho)) / (after - v)
        assert slope < 0 or abs(of.spare(after, rho)) <= near, name
    return "at once" if v == 0 else "in time"


def test_the_slack_of_rolling_windows_is_that_of_the_definition() -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    for seed in range(1500):
        random = np.random.default_rng([seed, 23])
        slo = float(random.choice([0.3, 0.5, 2 / 3, 0.75, 0.9, 0.99]))
        promise = Promise(slo, bool(random.integers(2)), float(random.choice([60.0, 61.7, 20.0, 200.0])))
        promise.rolling = on_grid(promise.rolling)
        live = int(random.integers(1, 7))
        history = history_of(random, MOST, live)
        if not history:
            continue
        account = account_of(promise, history)
        up, of = history[-1][2:]
        c = int(random.choice([0, up, max(0, up - 1)]))
        seen[check(account, Definition(promise, history), c, of, f"seed {seed}"), c > 0] += 1
    assert min(seen[what, some] for what in ("broken", "in time") for some in (False, True)) > 50, seen
    assert seen["never", True] > 50, seen


def own(promise: Promise, history: list[Interval], t: float) -> float:
    """The slack of an instance by its own ledger, that was up where the request was."""
    one = Instance(0, promise.slo, 1, 0.0, 1.0, admission=history[0][0], since=history[0][0], promise=promise)
    one.decides_by = "never"
    host = Host(0, (1, 1))
    while promise.turns and promise.ends <= one.admission:
        promise.at += 1
    for begin, _, up, _ in history:
        while promise.turns and promise.ends <= begin:
            windows.turn(one, promise.ends, CONFIG)
            promise.at += 1
        if up and one.host is None:
            one.place(host, begin, 0.0, 0)
        elif not up and one.host is not None:
            one.remove(begin)
    while promise.turns and promise.ends <= t:
        windows.turn(one, promise.ends, CONFIG)
        promise.at += 1
    return windows.slack(one, t, CONFIG)


@pytest.mark.parametrize("calendar", [False, True], ids=["rolling", "calendar"])
@pytest.mark.parametrize("whole", [False, True], ids=["accrued", "whole"])
def test_a_request_of_one_instance_is_worth_what_its_instance_is(whole: bool, calendar: bool) -> None:
    below = 0
    for seed in range(400):
        random = np.random.default_rng([seed, 29])
        history = [(b, e, min(up, 1), 1) for b, e, up, _ in history_of(random, 12, 1)]
        if not history:
            continue
        slo = float(random.choice([0.3, 2 / 3, 0.9, 0.99]))
        turns = [0.0, *np.cumsum(np.floor(random.uniform(20.0, 90.0, 30))).tolist()] if calendar else []
        made = [Promise(slo, whole, 0.0 if calendar else 61.5, list(turns)) for _ in range(2)]
        account = Account(made[0], history[0][0])
        while turns and made[0].ends <= account.begun:
            made[0].at += 1
        for _, end, up, live in history:
            while turns and made[0].ends <= end:
                account.note(made[0].ends, up, live)
                account.turn()
                made[0].at += 1
            account.note(end, up, live)
        found, expected = account.slack(0, 1), own(made[1], history, history[-1][1])
        assert found == expected, f"seed {seed}"
        below += found < 0.0
    assert below >= 20


@pytest.mark.parametrize("whole", [False, True], ids=["accrued", "whole"])
def test_the_slack_of_calendar_windows_is_that_of_the_definition(whole: bool) -> None:
    """In this window up to its end, in the next one from its beginning."""
    seen: Counter[str] = Counter()
    for seed in range(2000):
        random = np.random.default_rng([seed, 31])
        live = int(random.integers(1, 7))
        history = history_of(random, 12, live)
        if not history:
            continue
        begun, t = history[0][0], history[-1][1]
        slo = float(random.choice([0.3, 0.5, 0.9, 0.97]))
        ends = t + on_grid(float(random.uniform(0.5, 60.0)))
        begins = float(random.choice([begun - 10.0, on_grid((begun + t) / 2.0)]))
        promise = Promise(slo, whole, turns=[begins, ends, ends + 75.0, ends + 150.0])
        account = Account(promise, begun)
        for begin, end, up, of in history:
            if begin < begins <= end:
                account.note(begins, up, of)
                account.turn()
            account.note(end, up, of)
        up, of = history[-1][2:]
        c = int(random.choice([0, up, max(0, up - 1)]))
        seen[check_calendar(account, Definition(Promise(slo, whole, 1.0), history), c, of, f"seed {seed}")] += 1
    assert min(seen[what] for what in ("broken", "in this", "in the next", "never")) >= 40, seen


def check_calendar(account: Account, of: Definition, c: int, live: int, name: str) -> str:
    promise, rho, found = account.promise, Fraction(c, live), account.slack(c, live)
    t, begins, ends = of.now, Fraction(promise.turns[0]), Fraction(promise.turns[1])
    slo, since = Fraction(promise.slo), max(begins, Fraction(account.begun))
    e, near = of.received(t) - of.received(since), STEP * (len(of.history) + 12)

    def spare(v: Fraction) -> Fraction:
        """Of the present window after ``v``, how much more it has than it needs."""
        if promise.whole:
            return (1 - slo) * (ends - begins) - (t - since - e) - (1 - rho) * v
        return e + rho * v - slo * (t - since + v)

    if found == inf:
        assert spare(ends - t) >= -near, name
        assert rho >= slo, name
        return "never"
    v = Fraction(found)
    if v < 0:
        missing = spare(Fraction(0))
        assert abs((v if promise.whole else v * slo) - missing) <= near, name
        return "broken"
    if v < ends - t:
        assert abs(spare(v)) <= near, name
        assert rho < (1 if promise.whole else slo), name
        return "in this"
    assert spare(ends - t) >= -near, name
    budget = (1 - slo) * Fraction(75) if promise.whole else Fraction(0)
    assert abs(budget - (1 - rho) * (v - (ends - t))) <= near if promise.whole else v == ends - t, name
    return "in the next"


def test_many_outages_become_fewer_and_lose_nothing() -> None:
    for seed in range(20):
        random = np.random.default_rng([seed, 37])
        history = history_of(random, 300, 4)
        promise = Promise(0.9, True, 100_000.0)
        account = account_of(promise, history)
        kept, dropped = account.outages()
        last = account.stretches[-1]
        assert len(kept) <= MOST
        assert dropped == 0.0
        assert sum(one.length for one in kept) == (last.begin - account.begun) - last.e
        pieces = account.history()
        assert all(a.s1 == b.s0 and a.e1 == b.e0 for a, b in pairwise(pieces))
        assert all(straight(one) for one in pieces[1:])


def straight(one: Piece) -> bool:
    """Whether what a piece says of its beginning, end and share is one thing."""
    return one.s1 >= one.s0 and abs(one.share * (one.s1 - one.s0) - (one.e1 - one.e0)) <= 2.0**-20


@pytest.mark.parametrize(("slo", "up", "live"), [(0.9, 9, 10), (2 / 3, 2, 3), (0.07, 7, 100), (0.58, 29, 50)])
@pytest.mark.parametrize("calendar", [False, True], ids=["rolling", "calendar"])
def test_exactly_as_many_as_were_promised_keep_a_promise_for_ever(
    slo: float, up: int, live: int, calendar: bool
) -> None:
    turns = [0.0, 700.0, 1400.0] if calendar else []
    account = Account(Promise(slo, False, 0.0 if calendar else on_grid(61.7), turns), 3.0)
    for step in range(1, 400):
        account.note(3.0 + on_grid(step * 1.37), up, live)
        assert account.slack(up, live) == inf
