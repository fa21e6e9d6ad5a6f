"""Random clusters, each made from one whole number: small enough for the twin, varied enough for every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config, preset
from slacktide.kernels import builtin
from slacktide.model import (
    DEFAULT_CLASSES,
    NEVER_RESIZED,
    NO_CONSTRAINT,
    Constraint,
    DisruptionLimits,
    Hosts,
    Hours,
    Requests,
    Resizing,
    ServiceClass,
    Term,
    Unreadiness,
    Window,
    Workload,
)
from slacktide.model.hours import DAYS
from slacktide.model.window import EPOCH
from slacktide.model.workload import AGGREGATED, CONCURRENT, INDEPENDENT
from support.neighbourhoods import MARKS, Neighbourhood

Random = np.random.Generator
HostEvent = tuple[float, int, str] | tuple[float, int, str, dict[str, float]]
"""Time (s), host row, ``fail``, ``drain`` or ``repair``; or ``capacity`` or ``others`` and amounts by resource;
or ``marks`` and how many of others carry each."""

CLASSES = (
    DEFAULT_CLASSES,
    DEFAULT_CLASSES,
    (ServiceClass("one", 0.9, 1),),
    (ServiceClass("a", 1.0, 1, 5.0), ServiceClass("b", 0.95, 1, 20.0), ServiceClass("c", 0.5, 2, 0.0)),
    (ServiceClass("a", 0.99, 2, 10.0, 1.0), ServiceClass("b", 0.7, 1, 3.25, 0.0), ServiceClass("c", 0.3, 7, 15.0, 0.2)),
    (
        ServiceClass("a", 1.0, 1, 10.0, 0.3),
        ServiceClass("b", 1.0, 2, 10.0, 0.05),
        ServiceClass("c", 0.9, 2),
        ServiceClass("d", 1 / 3, 4, 1.5),
    ),
)

TERMS = (
    Term((Constraint("zone", "==", "a"),)),
    Term((Constraint("zone", "/=", "a"),)),
    Term((Constraint("speed", ">", "2"),)),
    Term((Constraint("speed", "<", "3"), Constraint("zone", "/=", "b"))),
    Term((Constraint("zone", "==", "nowhere"),)),
    Term((Constraint("disk", "==", "ssd"),)),
)

POLICIES_WITH_RULES = tuple(name for name, one in builtin.POLICIES.items() if not one.score)
"""Built-in policies but those that are a score. Clusters are drawn from the first three only, and stay as they are."""


@dataclass(frozen=True)
class Cluster:
    """A workload on hosts under settings; ``hot`` and ``cold`` are start-up delays, seconds."""

    seed: int
    workload: Workload
    hosts: Hosts
    config: Config
    hot: tuple[float, ...]
    cold: tuple[float, ...]
    events: tuple[HostEvent, ...] = ()
    naive: bool = False
    engine: str = "compiled"
    """``stepwise``: by plans, as a policy of one's own."""
    large: int = 100
    """Instances on hosts from which on hosts are told of a request only what matters to them."""

    def with_(self, **sections: dict[str, Any]) -> Cluster:
        """The same cluster with other settings: ``with_(policy={"patience": 0.0})``."""
        changed = {name: replace(getattr(self.config, name), **values) for name, values in sections.items()}
        return replace(self, config=replace(self.config, **changed))

    def triaged(self) -> Cluster:
        """The same cluster under triage, with bounds of which some are reached within its time."""
        random = np.random.default_rng([self.seed, 0x5EED, 17])
        return self.with_(
            policy={
                "name": self.config.policy.name if self.config.policy.name != "priority" else "qos-driven",
                "overload": "triage",
                "savable": float(_pick(random, 0.0, 5.0, 12.5, 40.0)),
                "overload_patience": float(_pick(random, 0.0, 4.0, 15.25, 120.0)),
                "recovery": float(_pick(random, 0.0, 20.0, 60.0, 3600.0)),
                "floor": float(_pick(random, 0.0, 0.0, 0.25, 0.8)),
                "queue_order": "importance",
                "victim_order": "importance",
            }
        )

    def limited(self) -> Cluster:
        """The same cluster with limits on what its classes may suffer, some of which loosen within its time."""
        random = np.random.default_rng([self.seed, 0x5EED, 19])
        zone = str(_pick(random, "UTC", "Europe/Berlin", "Asia/Kathmandu"))
        classes = tuple(replace(one, limits=_limits(random, zone)) for one in self.workload.classes)
        if all(one.limits is None for one in classes):
            classes = (replace(classes[0], limits=DisruptionLimits(1, 30.0)), *classes[1:])
        minute = int(random.integers(24 * 60))
        epoch = (
            f"2026-06-{1 + int(random.integers(14)):02}T{minute // 60:02}:{minute % 60:02}:{random.integers(60):02}Z"
        )
        limited = replace(self, workload=replace(self.workload, classes=classes))
        return limited.with_(simulation={"epoch": epoch})

    def windowed(self) -> Cluster:
        """The same cluster with promises over windows, of which some are full, or turn, within its time."""
        random = np.random.default_rng([self.seed, 0x5EED, 19])
        endless = self.config.simulation.end is None
        budgets = {"rolling": ("accrued", "accrued", "accrued", "whole"), "1d": ("whole", "whole", "accrued", "whole")}
        classes = []
        for one in self.workload.classes:
            length = float(_pick(random, 60.0, 61.7, 75.25, 120.0))
            window: Window | None = Window(rolling=length, budget=_pick(random, *budgets["rolling"]))
            if not endless and random.random() < 0.4:
                begins = f"1970-01-01T00:{int(random.integers(0, 3)):02}:{int(random.integers(60)):02}"
                window = Window(calendar="1d", start=begins, budget=_pick(random, *budgets["1d"]))
            if random.random() < 0.15:
                window = None
            classes.append(replace(one, window=window))
        changed = replace(self, workload=replace(self.workload, classes=tuple(classes)))
        work = "kept" if self.config.simulation.preempted_work == "lost" else self.config.simulation.preempted_work
        return changed.with_(
            simulation={"preempted_work": work, "epoch": _pick(random, EPOCH, "1970-01-05T00:00:20Z")},
            qos={"alpha": float(_pick(random, self.config.qos.alpha, 0.0, 3.5))},
        )

    def planned(self) -> Cluster:
        """The same cluster under a plan, most of it services without an end that it has too little room for, with
        promises over windows some of which are full, or turn, within its time."""
        random = np.random.default_rng([self.seed, 0x5EED, 31])
        workload = self.workload
        endless = np.asarray(workload.duration).copy()
        endless[random.random(len(endless)) < float(_pick(random, 0.0, 0.7, 1.0, 1.0))] = np.inf
        classes = []
        for number, one in enumerate(workload.classes):
            window: Window | None = Window(
                rolling=float(_pick(random, 60.0, 120.0, 301.5, 3600.0)), budget=_pick(random, "accrued", "whole")
            )
            if random.random() < 0.25:
                begins = f"1970-01-01T00:{int(random.integers(0, 3)):02}:{int(random.integers(60)):02}"
                window = Window(calendar="1d", start=begins, budget=_pick(random, "accrued", "whole"))
            if random.random() < 0.3:
                window = None
            slo = float(_pick(random, one.slo, 0.9, 0.8, 0.95))
            rank = one.rank if random.random() < 0.6 else 1 + number // 2
            alpha = _pick(random, None, None, 0.0, 1.5, 7.3)
            classes.append(replace(one, window=window, slo=slo, rank=rank, alpha=alpha))
        name = self.config.policy.name if self.config.policy.name != "priority" else "qos-driven"
        orders = {"queue_order": "importance", "victim_order": "importance"}
        score = str(_pick(random, "default", "default", self.config.policy.score))
        work = "kept" if self.config.simulation.preempted_work == "lost" else self.config.simulation.preempted_work
        changed = replace(workload, classes=tuple(classes), duration=endless)
        return replace(self, workload=changed).with_(
            policy={"name": name, "overload": "plan", "score": score, **orders},
            simulation={"preempted_work": work, "end": float(_pick(random, 150.0, 300.25)), "epoch": EPOCH},
            qos={"alpha": float(_pick(random, 2.0, 0.0, 3.5, 10.0))},
        )

    def prioritised(self) -> Cluster:
        """The same cluster with few ranks, within which classes have priorities."""
        random = np.random.default_rng([self.seed, 0x5EED, 23])
        classes = tuple(
            replace(one, rank=1 + int(random.random() < 0.25), priority=int(_pick(random, 0, 0, -10, 1000, 2**31 - 1)))
            for one in self.workload.classes
        )
        return replace(self, workload=replace(self.workload, classes=classes))

    def starting_apart(self) -> Cluster:
        """The same cluster with classes whose instances are expected to take different times to start."""
        random = np.random.default_rng([self.seed, 0x5EED, 29])
        classes = tuple(
            replace(one, alpha=_pick(random, None, 0.0, 1.5, 7.3, 30.0, 180.0)) for one in self.workload.classes
        )
        return replace(self, workload=replace(self.workload, classes=classes))

    def on(self, engine: str) -> Cluster:
        """The same cluster on this engine."""
        return replace(self, engine=engine)

    def naively(self) -> Cluster:
        """The same cluster, decided on without anything that saves work."""
        return replace(self, naive=True)

    def telling(self, large: int) -> Cluster:
        """The same cluster where requests of so many instances are large."""
        return replace(self, large=large)


def cluster(
    seed: int,
    largest: int = 10,
    requests: int = 40,
    several: bool = False,
    neighbours: bool = False,
    resizes: bool = False,
    amounts: bool = False,
    marks: bool = False,
    graces: bool = False,
    spells: bool = False,
) -> Cluster:
    """The cluster of this seed: up to ``largest`` hosts, about as many ``requests`` as a host can take and more.

    ``several`` puts the rows (then up to some ten more than ``requests``) into requests of several instances.
    ``neighbours`` gives them marks, rules, preferences and budgets (:mod:`neighbourhoods`), at times less demand
    and other settings of ``policy``, and leaves all else as it is. ``resizes`` lets some demand other amounts after a
    while, and gives the rest less to do. ``amounts`` has hosts whose amounts change, or what others take of them;
    ``marks`` has others with marks that rules are about. ``graces`` gives some a grace period, ``spells`` spells in
    which they are not ready.
    """
    random = np.random.default_rng([seed, 0x5EED])
    resources = ("cpu", "memory", "gpu") if random.random() < 0.2 else ("cpu", "memory")
    hosts = _hosts(random, largest, resources)
    config = _config(random, seed)
    workload = _workload(random, hosts, requests, _forever(random, config))
    events = _events(random, hosts) if random.random() < 0.3 else ()
    hot, cold = _delays(random, 4.0), _delays(random, 9.0)
    if config.simulation.end is None:  # swaps that never get beyond their start-up would go on for ever
        hot, cold = (0.0,), (0.5,)
    one = Cluster(seed, workload, hosts, config, hot, cold, events)
    if several:
        one = _several(np.random.default_rng([seed, 0x5EED, 7]), one, requests)
    if neighbours:
        drawn = Neighbourhood(np.random.default_rng([seed, 0x5EED, 11 + several]), (NO_CONSTRAINT, *TERMS))
        one = replace(one, workload=drawn.among(one.workload)).with_(policy=drawn.policy())
    if resizes:
        one = _resizing(np.random.default_rng([seed, 0x5EED, 13]), one)
    if spells:
        one = _with_spells(np.random.default_rng([seed, 0x5EED, 23]), one)
    if graces:
        one = _with_graces(np.random.default_rng([seed, 0x5EED, 19]), one)
    if marks:
        one = _with_marks(np.random.default_rng([seed, 0x5EED, 29]), one)
    return _with_amounts(np.random.default_rng([seed, 0x5EED, 17]), one) if amounts else one


def _with_spells(random: Random, one: Cluster) -> Cluster:
    """The same cluster, some of whose instances are not ready for a while; those of a request alike."""
    workload = one.workload
    spells: list[Unreadiness] = [()]
    for _ in range(int(random.integers(1, 9))):
        begins = np.unique(np.floor(random.uniform(0.0, 125.0, int(random.integers(1, 6))) * 2.0) / 2.0)
        lengths = np.floor(random.exponential(10.0, len(begins)) * 4.0) / 4.0 + 0.25
        spells.append(tuple(zip(begins.tolist(), lengths.tolist(), strict=True)))
    owner = np.arange(len(workload)) if workload.request is None else workload.request
    count = int(owner.max(initial=0)) + 1
    code = np.where(random.random(count) < float(_pick(random, 0.3, 1.0)), random.integers(1, len(spells), count), 0)
    return replace(one, workload=replace(workload, unready=code[owner].astype(np.int32), spells=tuple(spells)))


def _with_graces(random: Random, one: Cluster) -> Cluster:
    """The same cluster, some of whose instances go on for a while when they are preempted; those of a request alike."""
    workload = one.workload
    owner = np.arange(len(workload)) if workload.request is None else workload.request
    longest = float(_pick(random, 1.0, 5.0, 30.0, 200.0))
    drawn = np.floor(random.uniform(0.0, longest, int(owner.max(initial=0)) + 1) * 4.0) / 4.0
    if random.random() < 0.3:
        drawn[:] = drawn[0]
    drawn[random.random(len(drawn)) < float(_pick(random, 0.0, 0.3))] = 0.0
    one = replace(one, workload=replace(workload, grace=drawn[owner]))
    recreation = float(_pick(random, 0.0, 0.0, 2.5))
    share = str(_pick(random, "constant:1", "constant:1", "uniform:0,1", "lognormal:0.5,1"))
    return one.with_(simulation={"recreation": recreation, "grace": share})


def _with_amounts(random: Random, one: Cluster) -> Cluster:
    """The same cluster, in which hosts get more or less, and others come and go on them."""
    hosts, found = one.hosts, list[HostEvent](one.events)
    largest = hosts.capacity.max(axis=0)
    for _ in range(int(random.integers(1, 4 * len(hosts) + 3))):
        at = float(np.floor(random.uniform(0.0, 120.0) * 2.0) / 2.0) if random.random() < 0.9 else 0.0
        kind = str(_pick(random, "others", "others", "others", "capacity"))
        named = [r for r in range(len(hosts.resources)) if random.random() < 0.7] or [0]
        shares = random.choice([0.0, 0.0, 0.1, 0.3, 0.5, 1.0, 1.2], len(named)).tolist()
        told = {hosts.resources[r]: float(largest[r]) * share for r, share in zip(named, shares, strict=True)}
        found.append((at, int(random.integers(len(hosts))), kind, told))
    return replace(one, events=tuple(sorted(found, key=lambda event: event[0])))


def _with_marks(random: Random, one: Cluster) -> Cluster:
    """The same cluster, in which others with marks come and go."""
    found = list[HostEvent](one.events)
    for _ in range(int(random.integers(1, 4 * len(one.hosts) + 3))):
        at = float(np.floor(random.uniform(0.0, 120.0) * 2.0) / 2.0) if random.random() < 0.7 else 0.0
        carried = {mark: float(_pick(random, 0, 0, 1, 1, 2, 5)) for mark in MARKS if random.random() < 0.5}
        if carried:
            found.append((at, int(random.integers(len(one.hosts))), "marks", carried))
    return replace(one, events=tuple(sorted(found, key=lambda event: event[0])))


def _resizing(random: Random, one: Cluster) -> Cluster:
    """The same cluster with demands that change, some of them together with other events, and at times some that stay
    on their hosts for a while."""
    largest, workload = one.hosts.capacity.max(axis=0), one.workload
    resizings: list[Resizing] = [NEVER_RESIZED]
    for _ in range(int(random.integers(1, 9))):
        times = np.unique(np.floor(random.uniform(0.0, 125.0, int(random.integers(1, 5))) * 2.0) / 2.0)
        steps = []
        for time in times.tolist():
            named = [r for r in range(len(workload.resources)) if random.random() < 0.7] or [0]
            shares = random.choice([0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.3], len(named))
            pairs = zip(named, shares.tolist(), strict=True)
            steps.append((time, tuple((workload.resources[r], float(largest[r]) * share) for r, share in pairs)))
        resizings.append(tuple(steps))
    some = random.random(len(workload)) < float(_pick(random, 0.2, 0.5, 1.0))
    code = np.where(some, random.integers(1, len(resizings), len(workload)), 0).astype(np.int32)
    demand = workload.demand * float(_pick(random, 1.0, 0.5, 0.3))
    changed = replace(workload, resize=code, resizings=tuple(resizings), demand=demand)
    waits = {"min_running": float(_pick(random, 10.0, 40.0))} if random.random() < 0.3 else {}
    return replace(one, workload=changed).with_(policy=waits)


def _pick(random: Random, *options: Any) -> Any:
    return options[int(random.integers(len(options)))]


def _limits(random: Random, zone: str) -> DisruptionLimits | None:
    """What a class may suffer, ``None``: whatever happens."""
    if random.random() < 0.25:
        return None
    most, hours = _pick(random, None, 0, 1, 1, 1, 2, 2, 3, 5), None
    if random.random() < 0.3:
        opens = [int(random.integers(24 * 60)) for _ in range(int(random.integers(1, 5)))]
        hours = tuple(
            Hours(tuple(random.choice(DAYS, int(random.integers(3, 8)), replace=False).tolist()), begin, end, zone)
            for begin in (*opens, *(minute for minute in range(0, 24 * 60, 60) if random.random() < 0.7))
            for end in [(begin + int(_pick(random, 1, 2, 58, 600))) % (24 * 60)]
        )
    return DisruptionLimits(
        most=most,
        per=float(_pick(random, 5.0, 20.0, 33.3, 60.0, 1e4)) if most is not None else 0.0,
        cooldown=float(_pick(random, 0.0, 0.0, 3.0, 12.5, 40.0)),
        hours=hours,
        min_running=_pick(random, None, None, 0.0, 7.7, 25.0),
    )


def _hosts(random: Random, largest: int, resources: tuple[str, ...]) -> Hosts:
    count = int(_pick(random, 1, 2, 3, 4, max(1, largest // 2), largest))
    unit = float(_pick(random, 1.0, 0.125, 0.1))
    shapes = random.integers(1, 9, (int(_pick(random, 1, 1, 2, 4)), len(resources))) * unit
    capacity = shapes[random.integers(len(shapes), size=count)]
    if random.random() < 0.15:
        capacity = capacity.copy()
        capacity[random.integers(count), random.integers(len(resources))] = 0.0
    attributes: list[dict[str, str]] = []
    for _ in range(count):
        all_of_it = {"zone": _pick(random, "a", "b"), "speed": _pick(random, "1", "2.5", "3", "fast"), "disk": "ssd"}
        attributes.append({key: value for key, value in all_of_it.items() if random.random() < 0.8})
    names = tuple(f"host-{row}" for row in range(count))
    ids = random.permutation(count).astype(np.int64) + 10
    return Hosts(ids, names, np.asarray(capacity, np.float64), tuple(attributes), resources)


def _forever(random: Random, config: Config) -> float:
    """Share of requests that never complete."""
    return 0.0 if config.simulation.end is None else float(_pick(random, 0.0, 0.3, 1.0))


def _admission(random: Random, count: int) -> NDArray[np.float64]:
    span = float(_pick(random, 20.0, 60.0, 150.0))
    kind = _pick(random, "burst", "whole", "fractional", "bursts", "even")
    if kind == "burst":
        return np.zeros(count)
    if kind == "even":
        return np.floor(np.linspace(0.0, span, count))
    times = np.sort(random.uniform(0.0, span, count))
    if kind == "fractional":
        return times
    return np.floor(times) if kind == "whole" else np.floor(times / 25.0) * 25.0


def _demand(random: Random, hosts: Hosts, count: int) -> NDArray[np.float64]:
    typical = np.maximum(hosts.capacity.max(axis=0), 0.1) / float(_pick(random, 1, 2, 3, 5))
    kind = _pick(random, "equal", "few", "few", "any")
    if kind == "equal":
        demand = np.tile(typical, (count, 1))
    elif kind == "few":
        shapes = typical * random.choice([0.25, 0.5, 1.0, 1.5], (3, hosts.capacity.shape[1]))
        demand = shapes[random.integers(3, size=count)]
    else:
        demand = typical * random.uniform(0.05, 1.6, (count, hosts.capacity.shape[1]))
    odd = random.random(count)
    demand[odd < 0.04] = 0.0
    demand[odd > 0.98] = hosts.capacity.max() * 1.01
    if hosts.capacity.shape[1] > 2:
        demand[random.random(count) < 0.6, 2] = 0.0
    return np.asarray(demand)


def _durations(random: Random, count: int, forever: float) -> NDArray[np.float64]:
    kind = _pick(random, "equal", "whole", "heavy")
    if kind == "equal":
        duration = np.full(count, 40.0)
    elif kind == "whole":
        duration = random.integers(1, 90, count).astype(np.float64)
    else:
        duration = random.lognormal(3.0, 1.2, count)
    duration[random.random(count) < forever] = np.inf
    return np.asarray(duration)


def _workload(random: Random, hosts: Hosts, most: int, forever: float) -> Workload:
    count = int(random.integers(1, most + 1))
    classes = CLASSES[int(random.integers(len(CLASSES)))]
    jobs = random.integers(0, max(1, count // int(_pick(random, 2, 5))), count)
    job_is_anti_affine = random.random(count) < float(_pick(random, 0.0, 0.3, 0.8))
    constrained = random.random(count) < float(_pick(random, 0.0, 0.2, 0.6))
    return Workload(
        ids=np.arange(count, dtype=np.int64) + 100,
        admission=_admission(random, count),
        duration=_durations(random, count, forever),
        demand=_demand(random, hosts, count),
        service_class=random.integers(len(classes), size=count).astype(np.int16),
        job=jobs.astype(np.int64),
        anti_affinity=job_is_anti_affine[jobs],
        term=np.where(constrained, random.integers(1, len(TERMS) + 1, count), 0).astype(np.int32),
        resources=hosts.resources,
        classes=classes,
        terms=(NO_CONSTRAINT, *TERMS),
    )


def _config(random: Random, seed: int) -> Config:
    base = Config()
    policy = replace(
        base.policy,
        name=_pick(random, "qos-driven", "qos-driven", "qos-driven", "priority", "hybrid"),
        preempt_when=_pick(random, "needed", "better"),
        patience=_pick(random, 0.0, 7.3, 60.0),
        overload="share",
        queue_order=_pick(random, "importance", "importance", "metric"),
        victim_order=_pick(random, "importance", "importance", "metric"),
        victims=_pick(random, "same-pass", "next-pass"),
        score=_pick(random, "mean", "least-requested", "balanced"),
        cost=_pick(random, "default", "default", "slack", "fewest-victims"),
        overhead_scope=_pick(random, "same-or-more-important", "same-class", "all", "none"),
        queue_limit=_pick(random, 0, 3, 8),
    )
    qos = replace(
        base.qos,
        startup=_pick(random, "restart", "always", "never"),
        alpha=_pick(random, 10.0, 0.0, 22.37107),
        margin=_pick(random, None, None, 12.5),
    )
    end = _pick(random, None, 130.0, 200.25)
    work: Any = "kept" if end is None else _pick(random, "kept", "kept", "lost")
    simulation = replace(base.simulation, end=end, seed=seed * 7919 + 1, preempted_work=work)
    scheduler = replace(base.scheduler, watchdog=_pick(random, 10.0, 4.0, 1.7, 30.0))
    return replace(base, policy=policy, qos=qos, simulation=simulation, scheduler=scheduler)


def _delays(random: Random, mean: float) -> tuple[float, ...]:
    """Start-up delays: none, one, whole seconds, or any."""
    kind = _pick(random, "none", "one", "whole", "any")
    if kind == "none":
        return (0.0,)
    if kind == "one":
        return (mean,)
    if kind == "whole":
        return tuple(float(x) for x in random.integers(0, int(2 * mean), 7))
    return tuple(float(x) for x in random.exponential(mean, 23))


def _events(random: Random, hosts: Hosts) -> tuple[HostEvent, ...]:
    """Failures, drains and repairs in the order of time; some of hosts that are down, or up, already."""
    count = int(random.integers(1, 2 * len(hosts) + 3))
    times = np.sort(np.floor(random.uniform(0.0, 120.0, count) * 2.0) / 2.0)
    kinds: Sequence[str] = ("fail", "drain", "repair", "repair")
    return tuple((float(t), int(random.integers(len(hosts))), str(_pick(random, *kinds))) for t in times)


@dataclass
class _Draft:
    """Requests of several instances while they are thought up: ``rows`` are (admission, request, row of the model)."""

    random: Random
    single: Workload
    """What instances look like: each is a copy of one of these rows."""
    rows: list[tuple[float, int, int]] = field(default_factory=list)
    batch: list[bool] = field(default_factory=list)
    approach: list[int] = field(default_factory=list)
    parallelism: list[int] = field(default_factory=list)
    scales: list[tuple[float, int, int]] = field(default_factory=list)

    def add(self) -> None:
        """One more request: a single row, a service, or a batch request."""
        random, index = self.random, len(self.batch)
        kind = _pick(random, "single", "single", "concurrent", "concurrent", "aggregated", "independent", "batch")
        self.batch.append(kind == "batch" or (kind == "single" and random.random() < 0.2))
        approach = {"concurrent": CONCURRENT, "independent": INDEPENDENT}.get(kind, AGGREGATED)
        if kind == "single" and not self.batch[-1]:
            approach = int(random.integers(3))
        self.approach.append(approach)
        self.parallelism.append(int(random.integers(5)) if self.batch[-1] else 0)
        replicas = 1 if kind == "single" else int(random.integers(1, 9) if kind == "batch" else random.integers(2, 7))
        model = int(random.integers(len(self.single)))
        models = self._alike(model) if random.random() < 0.25 else [model]
        at = float(self.single.admission[model])
        late = not self.batch[-1] and random.random() < 0.2
        for _ in range(replicas):
            self.rows.append((at, index, int(_pick(random, *models))))
            at += float(random.integers(12)) if late else 0.0
        if not self.batch[-1] and random.random() < 0.4:
            self._scale(index, models, replicas)

    def _alike(self, model: int) -> list[int]:
        """All rows of the class of ``model``."""
        classes = self.single.service_class
        return [int(row) for row in np.flatnonzero(classes == classes[model])]

    def _scale(self, index: int, models: list[int], replicas: int) -> None:
        """Events at instants of their own, some on the grid of the other events, some before all rows are there."""
        random = self.random
        for time in np.unique(np.floor(random.uniform(0.0, 130.0, int(random.integers(1, 4))) * 2.0) / 2.0):
            wanted = int(_pick(random, 0, 1, replicas + 2, int(random.integers(7))))
            self.scales.append((float(time), index, wanted))
            for _ in range(replicas, wanted):
                self.rows.append((float(time), index, int(_pick(random, *models))))
            replicas = wanted

    def workload(self) -> Workload:
        """Rows by admission; those of one instant and one request may come apart."""
        where = self.random.permutation(len(self.rows)) if self.random.random() < 0.3 else np.arange(len(self.rows))
        rows = sorted((self.rows[place] for place in where), key=lambda row: row[0])
        models, scales = np.array([row[2] for row in rows], np.int64), sorted(self.scales)
        single = self.single
        anti_affine = set(single.job[single.anti_affinity].tolist())
        first_model = {index: model for _, index, model in reversed(rows)}
        # Instances of one request belong to one job, as its anti-affinity is about them.
        job = np.array([single.job[first_model[index]] for _, index, _ in rows], np.int64)
        return replace(
            single,
            ids=np.arange(len(rows), dtype=np.int64) + 100,
            admission=np.array([row[0] for row in rows]),
            duration=single.duration[models],
            demand=single.demand[models],
            service_class=single.service_class[models],
            job=job,
            anti_affinity=np.isin(job, list(anti_affine)),
            term=single.term[models],
            request=np.array([row[1] for row in rows], np.int32),
            requests=Requests(
                ids=np.arange(len(self.batch), dtype=np.int64) + 500,
                batch=np.array(self.batch, np.bool_),
                approach=np.array(self.approach, np.int8),
                parallelism=np.array(self.parallelism, np.int64),
                scale_time=np.array([time for time, _, _ in scales], np.float64),
                scale_request=np.array([index for _, index, _ in scales], np.int32),
                scale_replicas=np.array([wanted for _, _, wanted in scales], np.int64),
            ),
        )


def _several(random: Random, one: Cluster, most: int) -> Cluster:
    """The same cluster with its rows in requests of several instances, and settings that tell these apart."""
    draft = _Draft(random, one.workload)
    wanted = int(random.integers(max(1, most // 3), most + most // 2 + 1))
    while len(draft.rows) < wanted:
        draft.add()
    workload = draft.workload()
    # Whole requests shall find room, at times.
    workload = replace(workload, demand=workload.demand * float(_pick(random, 1.0, 1.0, 0.6)))
    policy: dict[str, Any] = {"gang": bool(random.random() < 0.4)}
    based_on = _pick(random, None, None, "recommended", "published")
    if based_on is not None:
        known = preset(based_on).policy
        policy |= {name: getattr(known, name) for name in ("preempt_when", "patience", "victims", "reprieve")}
    # Without an end, work lost again and again would go on for ever.
    work = "kept" if one.config.simulation.end is None else _pick(random, "by-kind", "by-kind", "kept", "lost")
    return replace(one, workload=workload).with_(policy=policy, simulation={"preempted_work": work})
