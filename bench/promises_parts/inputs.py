"""The inputs of bench/promises.py: what runs on which hosts, and which hosts are away when."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import bound
import numpy as np
from measuring import ALPHA, plain

from slacktide.inputs.generators.registry import generated
from slacktide.inputs.prepare import host_sets
from slacktide.inputs.rows import equal_hosts
from slacktide.model import DEFAULT_CLASSES, NO_CONSTRAINT, Constraint, Hosts, ServiceClass, Term, Window, Workload
from slacktide.model.durations import parse_duration, write_duration
from slacktide.model.window import ACCRUED
from slacktide.model.workload import APPROACHES, Requests

HOUR, DAY = 3600.0, 86_400.0
STEP = 600.0
"""Seconds in which drawn inputs count time, as the program that they were first made for does."""

Row = tuple[float, float, float, str]
"""Admission and duration (inf: endless), seconds, demand, class."""
Away = tuple[int, float, float]
"""A host, and the seconds from which and until which it is away."""


@dataclass(frozen=True)
class Input:
    """What is measured; ``words`` are settings of all its runs."""

    name: str
    workload: Workload
    hosts: Hosts
    end: float
    words: tuple[str, ...] = ()
    away: tuple[Away, ...] = ()

    def promising(self, budget: str | None, limit: float | None = None) -> Input:
        """The same with another budget of all windows, and another overhead limit of all classes."""
        classes = self.workload.classes
        if budget is not None:
            windowed = [one.window and replace(one.window, budget=budget) for one in classes]
            classes = tuple(replace(one, window=own) for one, own in zip(classes, windowed, strict=True))
        if limit is not None:
            classes = tuple(replace(one, overhead_limit=limit) for one in classes)
        return replace(self, workload=replace(self.workload, classes=classes))


def window_of(text: str) -> Window | None:
    """``lifetime``; a calendar's months, such as ``1M``; or the length of a rolling window, such as ``30d``, of which
    inputs that name no budget have accrued ones: that was the default when they were first measured."""
    if text == "lifetime":
        return None
    if text[-1] in "MQY":
        return Window(calendar=text)
    return Window(rolling=parse_duration(text), budget=ACCRUED)


def machines(count: int, size: float) -> Hosts:
    """Equal hosts of so much CPU, and of memory so much that there is always enough of it."""
    return equal_hosts(count, {"cpu": size, "memory": 4.0 * size})


def alone(rows: Iterable[Row], classes: tuple[ServiceClass, ...]) -> Workload:
    """Requests of one instance each, that ask for as much memory as CPU; times in whole milliseconds, as files have."""
    ordered = sorted(rows, key=lambda row: row[0])
    admission, duration, demand, names = zip(*ordered, strict=True)
    codes = {one.name: code for code, one in enumerate(classes)}
    return plain(
        np.round(admission, 3),
        np.maximum(np.round(duration, 3), 0.001),
        np.array(demand, np.float64),
        np.array([codes[name] for name in names], np.int16),
        classes=classes,
    )


def equal(
    n: int = 21, slo: float = 0.99, window: str = "30d", end: str = "60d", budget: str = "", places: int = 20
) -> Input:
    """Services of one promise, ``n`` of them, on fewer places."""
    gold = ServiceClass("gold", slo, 1, window=window_of(window))
    rows = [(number * 0.5, np.inf, 1.0, "gold") for number in range(n)]
    name = f"{n} of {slo:g} on {places}, {window}" + (f" {budget}" if budget else "")
    return Input(name, alone(rows, (gold,)), machines(places, 1.0), parse_duration(end)).promising(budget or None)


def short(n: int = 24, slo: float = 0.9, window: str = "1h") -> Input:
    """The same over six windows, with whole budgets."""
    end = write_duration(6 * parse_duration(window))
    return equal(n, slo, window, end, "whole")


def grouped(approach: str = "aggregated", slo: float = 0.99, window: str = "30d", requests: int = 6) -> Input:
    """Deployments of four replicas each, on 20 places."""
    size, rows = 4, 4 * requests
    one = equal(rows, slo, window)
    owner = np.repeat(np.arange(requests, dtype=np.int32), size)
    about = Requests(
        ids=np.arange(requests),
        batch=np.zeros(requests, np.bool_),
        approach=np.full(requests, APPROACHES.index(approach), np.int8),
        parallelism=np.zeros(requests, np.int64),
    )
    admission = owner.astype(np.float64)  # a second apart
    workload = replace(one.workload, admission=admission, job=owner.astype(np.int64), request=owner, requests=about)
    return replace(one, name=f"{requests} x {size} {approach} of {slo:g} on 20, {window}", workload=workload)


SIZES = (1, 1, 2, 4)
ZONES = ("a", "b", "c")
MIX = {"gold": 0.999, "silver": 0.99, "bronze": 0.9}


def _mixed(window: str, *more: ServiceClass) -> tuple[ServiceClass, ...]:
    ranked = enumerate(MIX.items(), start=1)
    return (*(ServiceClass(name, slo, rank, window=window_of(window)) for rank, (name, slo) in ranked), *more)


def _fill(draw: random.Random, total: float, name: str, times: Callable[[], tuple[float, float]]) -> list[Row]:
    """Requests of :data:`SIZES` that ask for ``total`` together; ``times`` gives begin and end of one."""
    rows: list[Row] = []
    asked = 0
    while asked < total:
        size = draw.choice(SIZES)
        asked += size
        begin, end = times()
        rows.append((begin, end - begin, float(size), name))
    return rows


def mix(
    bronze: float = 270, peak: float = 0, gold: float = 100, silver: float = 150, window: str = "30d", days: int = 60
) -> Input:
    """Three classes with so much CPU each, on 60 hosts of 8; a ``peak`` of jobs of so much from 9 to 17 h each day."""
    draw, rows = random.Random(5), []
    for name, total in (("gold", gold), ("silver", silver), ("bronze", bronze)):
        rows += _fill(draw, total, name, lambda: (draw.uniform(0, HOUR), np.inf))
    for day in range(days if peak else 0):

        def shift(nine: float = day * DAY + 9 * HOUR) -> tuple[float, float]:
            begin = nine + draw.uniform(0, HOUR / 2)
            return begin, begin + draw.uniform(7, 9) * HOUR

        rows += _fill(draw, peak, "peak", shift)
    more = (ServiceClass("peak", 0.95, 2),) if peak else ()
    name = f"mix, {gold:g} + {silver:g} + {bronze:g}" + (f" + {peak:g} by day" if peak else "") + f", {window}"
    return Input(name, alone(rows, _mixed(window, *more)), machines(60, 8.0), days * DAY)


def peak(extra: float = 60, bronze: float = 200, window: str = "30d") -> Input:
    """The mix with jobs by day."""
    return mix(bronze, extra, window=window)


def failures(seed: int = 1, bronze: float = 215, window: str = "30d") -> Input:
    """A mix for which there is room, and hosts that fail once in 30 days for half an hour."""
    one = mix(bronze, window=window)
    drawn = ("failures.uptime=exponential:2592000", "failures.downtime=exponential:1800", f"simulation.seed={seed}")
    return replace(one, name=f"{one.name}, failures, seed {seed}", words=drawn)


def zone(hours: float = 6, bronze: float = 160, away: int = 20, first: int = 15, window: str = "30d") -> Input:
    """A mix for which there is room, and a zone of hosts that is away on two days, the ``first`` and the 40th."""
    one = mix(bronze, window=window)
    outages = tuple((host, day * DAY, day * DAY + hours * HOUR) for day in (first, 40) for host in range(away))
    return replace(one, name=f"{one.name}, {away} hosts away {hours:g} h", away=outages)


def pinned(
    part: float = 0.5,
    bronze: float = 230,
    hours: float = 0,
    uneven: float = 0.0,
    last: float = 0.0,
    seed: int = 0,
    window: str = "30d",
) -> Input:
    """A mix in three zones, where so large a ``part`` of the services may run in one of them only, more of these in the
    first (``uneven=1``: all), and where that one is away for so many hours on two days; or load that grows to ``last``.
    """
    one = zone(hours, bronze, window=window) if hours else mix(bronze, window=window)
    one = growth(last=last, seed=seed, window=window) if last else one
    draw, workload = np.random.default_rng(seed), one.workload
    shares = (1 - uneven) / len(ZONES) + uneven * (np.arange(len(ZONES)) == 0)
    own = draw.choice(np.arange(1, len(ZONES) + 1), len(workload), p=shares)
    term = np.where(draw.random(len(workload)) < part, own, 0).astype(np.int32)
    terms = (NO_CONSTRAINT, *(Term((Constraint("zone", "==", name),)) for name in ZONES))
    zones = tuple({"zone": ZONES[number * len(ZONES) // len(one.hosts)]} for number in range(len(one.hosts)))
    name = f"{one.name}, {part:.0%} bound to a zone" + (f", {uneven:.0%} to one" if uneven else "") + f", seed {seed}"
    return replace(
        one,
        name=name,
        workload=replace(workload, term=term, terms=terms),
        hosts=replace(one.hosts, attributes=zones),
    )


def loaded(load: float = 1.1, window: str = "30d", budget: str = "", hosts: int = 10, seed: int = 0) -> Input:
    """Services of so much of the capacity over six short windows or two of a month; classes as 2, 3 and 5.

    Those of a smaller load are among those of a larger one.
    """
    own = window_of(window)
    length = 30 * DAY if own is None else own.about
    end = length * (2 if length > DAY else 6)
    pool, rows = machines(hosts, 8.0), []
    capacity, draw = float(pool.capacity[:, 0].sum()), random.Random(seed)
    asked = dict.fromkeys(MIX, 0.0)
    while True:
        name, size = _next(asked), float(draw.choice(SIZES))
        if sum(asked.values()) + size > load * capacity:
            break
        asked[name] += size
        rows.append((draw.uniform(0, length / 720), np.inf, size, name))
    name = f"load {load:.0%}, {window} {budget}".strip()
    return Input(name, alone(rows, _mixed(window)), pool, end).promising(budget or None)


def _next(asked: dict[str, float]) -> str:
    """The class that is behind its part of 2, 3 and 5."""
    parts = dict(zip(MIX, (2, 3, 5), strict=True))
    return min(asked, key=lambda name: asked[name] / parts[name])


def growth(first: float = 0.9, last: float = 1.3, days: int = 60, window: str = "30d", seed: int = 0) -> Input:
    """Load that grows by a hundredth of the capacity a day; classes in the proportions 2, 3 and 5."""
    draw, hosts = random.Random(seed), machines(60, 8.0)
    capacity, rows = float(hosts.capacity[:, 0].sum()), []
    asked = dict.fromkeys(MIX, 0.0)
    for day in range(days):
        begin, length = (0.0, HOUR) if not day else (day * DAY, DAY)
        while sum(asked.values()) < min(first + day / 100, last) * capacity:
            name = _next(asked)
            size = float(draw.choice(SIZES))
            asked[name] += size
            rows.append((begin + draw.uniform(0, length), np.inf, size, name))
    return Input(f"growth from {first:.0%} to {last:.0%}, {window}", alone(rows, _mixed(window)), hosts, days * DAY)


def drawn(seed: int = 0, days: int = 60) -> Input:
    """A random input: hosts, classes, sizes, growth, jobs by day, outages."""
    draw = random.Random(seed)
    hosts, size = draw.choice([10, 20, 40]), draw.choice([4.0, 8.0, 16.0])
    load, sizes = draw.uniform(0.85, 1.35), draw.choice([[1], [1, 1, 2, 4], [1, 2, 2, 3]])
    known = [("gold", 0.999), ("silver", 0.99), ("tin", 0.97), ("bronze", 0.9), ("lead", 0.8)]
    chosen = sorted(draw.sample(known, draw.choice([1, 2, 3])), key=lambda one: -one[1])
    month = Window(rolling=30 * DAY, budget=ACCRUED)
    classes = tuple(
        ServiceClass(name, slo, number + 1, window=draw.choice([month, month, month, None]))
        for number, (name, slo) in enumerate(chosen)
    )
    grows, rows, asked = draw.random() < 0.3, [], 0.0
    while asked < load * hosts * size:
        name, one = draw.choice(chosen)[0], draw.choice(sizes)
        rows.append((draw.uniform(0, 30 * DAY if grows else HOUR), np.inf, float(one), name))
        asked += one
    if draw.random() < 0.5:
        rank, jobs = _jobs_by_day(draw, hosts * size, sizes, days)
        rows += jobs
        classes = (*classes, ServiceClass("peak", 0.9, rank))
    name = f"drawn {seed}: {hosts} x {size:g}, load {load:.2f}"
    away = _outages(draw, hosts, days) if draw.random() < 0.4 else ()
    return Input(name, alone(rows, classes), machines(hosts, size), days * DAY, (), away)


def _jobs_by_day(draw: random.Random, capacity: float, sizes: list[int], days: int) -> tuple[int, list[Row]]:
    """Rank and rows of jobs that come at nine each day, on some inputs not at weekends."""
    amount, hours = draw.uniform(0.05, 0.3) * capacity, draw.choice([2, 4, 8])
    rank, week = draw.choice([1, 2]), draw.random() < 0.5
    rows: list[Row] = []
    for day in range(days):
        asked = amount if week and day % 7 >= 5 else 0.0
        while asked < amount:
            size, begin = draw.choice(sizes), day * DAY + 9 * HOUR + draw.uniform(0, HOUR / 2)
            rows.append((begin, draw.uniform(0.8, 1.1) * hours * HOUR, float(size), "peak"))
            asked += size
    return rank, rows


def _outages(draw: random.Random, hosts: int, days: int) -> tuple[Away, ...]:
    """The first hosts are away on two days, for an hour to a day; where both overlap it is one outage."""
    up = np.ones((days * int(DAY / STEP), hosts), np.bool_)
    for day in draw.sample(range(3, days - 2), 2):
        begin = day * int(DAY / STEP)
        up[begin : begin + draw.choice([6, 36, 150]), : hosts // draw.choice([3, 5])] = False
    found: list[Away] = []
    for host in range(hosts):
        edges = np.flatnonzero(np.diff(np.concatenate([[True], up[:, host], [True]])))
        found += [(host, begin * STEP, until * STEP) for begin, until in edges.reshape(-1, 2).tolist()]
    return tuple(found)


def minutes(seed: int = 0, ranks: str = "1+2", load: float = 1.15) -> Input:
    """Jobs of 5 to 60 minutes with promises over their lives, too much of them from 30 to 90 minutes, on 20 hosts."""
    draw, rows, now = random.Random(seed), [], -HOUR
    mean, end = 2 * 32.5 * 60, 2.5 * HOUR  # CPU seconds of one, by mean size and life
    while now < end:
        now += draw.expovariate((load if HOUR / 2 < now < 1.5 * HOUR else 0.7) * 160 / mean)
        size, life, one = draw.choice(SIZES), draw.uniform(5, 60) * 60, draw.randrange(2)
        if now + life > 60:
            begin = max(now, 0.0)
            rows.append((begin, now + life - begin, float(size), ("nine", "half")[one]))
    first, second = map(int, ranks.split("+"))
    classes = (ServiceClass("nine", 0.9, first), ServiceClass("half", 0.5, second))
    return Input(f"minutes {seed}, ranks {ranks}, load {load:g}", alone(rows, classes), machines(20, 8.0), end)


def cell_month(
    seed: int = 0, fraction: float = 0.01, share: float = 0.9, window: str = "30d", load: float = 0.95
) -> Input:
    """A month of the generated cell on part of its hosts: 12,500 of them and 25 million requests, or a fraction."""
    hours = 696
    values = {"hosts": round(12_500 * fraction), "hours": hours, "requests": round(25e6 * fraction), "load": load}
    whole, hosts = generated("cell", {name: f"{value:g}" for name, value in values.items()}, seed)
    classes = tuple(replace(one, window=window_of(window)) for one in DEFAULT_CLASSES)
    few = host_sets(whole, hosts, [share], of="hosts", seed=seed)[share]
    name = f"cell, {hours} h, {fraction:g} of it, {share:g} N, {window}, seed {seed}"
    return Input(name, replace(whole, classes=classes), few, hours * HOUR, (f"simulation.seed={seed}",))


def hour(of: str = "higher", share: float = 0.8, seed: int = 11) -> Input:
    """An input of bench/bound.py, such as the published samples or validation-1, on part of its hosts, for an hour."""
    one = bound.case(of, [])
    words = (*one.words, f"qos.alpha={ALPHA}", f"simulation.seed={seed}")
    return Input(f"{of}, {share:g} N, seed {seed}", one.workload, bound.on_share(one, share, seed), HOUR, words)


INPUTS: dict[str, Callable[..., Input]] = {
    "equal": equal,
    "short": short,
    "grouped": grouped,
    "mix": mix,
    "peak": peak,
    "failures": failures,
    "zone": zone,
    "pinned": pinned,
    "loaded": loaded,
    "growth": growth,
    "drawn": drawn,
    "minutes": minutes,
    "cell-month": cell_month,
    "hour": hour,
}
ISSUE = (
    "equal:n=21/24,slo=.99",
    "equal:n=21,slo=.95",
    "equal:n=24/30,slo=.9",
    "equal:n=21/24/30,slo=.99,budget=whole",
    "equal:n=24/30,slo=.9,budget=whole",
    "equal:n=21,slo=.99,window=1d,end=6h,budget=whole",
    "short:n=24/26/30/40",
    "equal:n=24/30/40,slo=.9,window=lifetime,end=6h",
    "equal:n=21/24,slo=.99,window=lifetime",
    "equal:n=24,slo=.9,window=lifetime",
    "grouped:approach=aggregated/concurrent/independent",
    "mix",
    "peak:extra=60/120",
    "failures",
    "zone:hours=6/48",
)
"""What was measured when the problem was found, but for accrued and whole budgets of the mixes side by side."""


def inputs(text: str) -> Iterable[Input]:
    """The inputs that ``NAME:KEY=VALUE,...`` names; ``A/B`` are several values, ``1..5`` whole numbers from 1 to 5."""
    name, _, rest = text.partition(":")
    if name not in INPUTS:
        raise SystemExit(f"{text}: found {name!r}, expected one of {', '.join(INPUTS)}, or issue")
    make, chosen = INPUTS[name], [dict[str, Any]()]
    kinds = {key: type(one.default) for key, one in signature(make).parameters.items()}
    for word in filter(None, rest.split(",")):
        key, _, values = word.partition("=")
        if key not in kinds:
            raise SystemExit(f"{text}: found {key!r}, expected some of {', '.join(kinds)}")
        chosen = [{**one, key: value} for one in chosen for value in _values(text, kinds[key], values)]
    return (make(**one) for one in chosen)


def _values(text: str, kind: type, values: str) -> list[Any]:
    """Each value of a key."""
    first, several, last = values.partition("..")
    try:
        return list(range(int(first), int(last) + 1)) if several else [kind(one) for one in values.split("/")]
    except ValueError:
        raise SystemExit(f"{text}: found {values!r}, expected {kind.__name__}, such as 3, 3/5 or 1..5") from None
