"""Slack of requests whose promise is over a window, against its definition: the integral of a share, looked at."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from reference import windows
from reference.request_definition import Definition, Interval, check, check_calendar
from reference.request_windows import Account, Piece
from reference.state import Host, Instance
from reference.times import on_grid
from reference.windows import MOST, Promise
from slacktide.config import Config, QosSettings

Random = np.random.Generator
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
        seen[check(account.slack(c, of), Definition(promise, history), c, of, f"seed {seed}"), c > 0] += 1
    assert min(seen[what, some] for what in ("broken", "in time") for some in (False, True)) > 50, seen
    assert seen["never", True] > 50, seen


def own(promise: Promise, history: list[Interval], t: float) -> float:
    """The slack of an instance by its own ledger, that was up where the request was."""
    one = Instance(0, promise.slo, 1, 0.0, 1.0, 0.0, admission=history[0][0], since=history[0][0], promise=promise)
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
        seen[check_calendar(account.slack(c, of), Definition(promise, history), c, of, f"seed {seed}")] += 1
    assert min(seen[what] for what in ("broken", "in this", "in the next", "never")) >= 40, seen


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
