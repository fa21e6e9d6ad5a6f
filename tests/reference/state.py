"""Instances and hosts as the twin sees them: plain objects that know what happened to them so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from reference import chance, metric, past, windows
from reference.amounts import Amounts, minus, plus, scale, whole
from reference.budgets import Guarded, guard
from reference.groups import Whole
from reference.limits import Account
from reference.metric import ACCOUNTINGS, Ledger
from reference.requests import Request
from reference.times import on_grid
from reference.wanted import Wanted, resizes_of
from slacktide.config import Accounting, Config
from slacktide.model import (
    NO_ACCESS,
    NO_CONSTRAINT,
    NO_NEIGHBOURS,
    Access,
    Hosts,
    Placement,
    ServiceClass,
    Term,
    Topology,
    Unreadiness,
    Workload,
)

Domain = str | int
"""The value of an attribute; a host's row where each host is a domain of its own."""


class Known:
    """What was asked for at the instant of a pass, which asks again and again; forgotten when anything happens.

    Metrics, what hosts have free, in which order they would give up their instances, and how many carry a mark.
    """

    def __init__(self) -> None:
        self.metrics: dict[Instance, float] = {}
        self.free: dict[Host, Amounts] = {}
        self.orders: dict[Host, list[Instance]] = {}
        self.tallies: dict[tuple[str, Topology], dict[Domain, int]] = {}

    def forget(self) -> None:
        self.metrics.clear()
        self.free.clear()
        self.orders.clear()
        self.tallies.clear()

    def forget_of(self, host: Host, *instances: Instance) -> None:
        """Where each is a request of its own, nobody else is concerned."""
        self.free.pop(host, None)
        self.orders.pop(host, None)
        self.tallies.clear()
        for one in instances:
            self.metrics.pop(one, None)


def order(promised: ServiceClass) -> int:
    """The order of importance of a class: its rank, then its priority, the larger first."""
    return promised.rank * 2**40 - promised.priority


@dataclass(eq=False)
class Instance:
    """One row. ``since`` is when it began to wait or was placed; ``host`` is ``None`` while it waits."""

    row: int
    sigma: float
    rank: int
    """Smaller is more important; where classes have priorities, of :func:`order`."""
    margin: float
    limit: float
    alpha: float
    """Seconds that a start is expected to take."""
    service_class: int = 0
    named_rank: int = 0
    """The rank of its class as it is named; 0: of no class."""
    demand: Amounts = (0, 0)
    admission: float = 0.0
    duration: float = float("inf")
    job: int = 0
    anti_affinity: bool = False
    term: Term = NO_CONSTRAINT
    placement: Placement = NO_NEIGHBOURS
    budget: Guarded | None = None
    group: Whole | None = None
    """With whom it is preempted, or nobody is."""
    account: Account | None = None
    """Where its disruptions count."""
    tries: int = 0
    """Turns in vain, which count as kube-scheduler only; so do the next three."""
    again: float = 0.0
    """The second at which it is done backing off."""
    backs_off: float = 0.0
    """That, in a pass in which it still does."""
    number: int = 0
    """Of two that are alike the smaller has its turn first; 0: it has none yet."""
    min_running: float = 0.0
    """Seconds on a host before which it is no victim."""
    grace: float = 0.0
    """Seconds that it may take to end once it is told to."""
    access: Access = NO_ACCESS
    most: Amounts | None = None
    """Most that it may be granted; ``None``: its demand."""
    bandwidth: float = 0.0
    """Demand of resource ``network`` in the workload's unit."""
    taken: Amounts | None = None
    """What it takes of its host where that is not its demand."""
    since: float = 0.0
    host: Host | None = None
    startup: float = 0.0
    starts: int = 0
    placed_as: int = 0
    """The number of its start on this host; that it was not ready for a while there counts as another one."""
    progress: float = 0.0
    spent: float = 0.0
    """Start-up seconds of the incarnations preempted so far."""
    lost: float = 0.0
    """Useful running seconds that were lost with their incarnations."""
    request: Request | None = None
    """``None`` stands for a request alone."""
    admitted: bool = False
    gone: float | None = None
    """When it completed or was removed."""
    resizes: list[tuple[float, Wanted]] = field(default_factory=list)
    """When it demands what from then on."""
    spells: Unreadiness = ()
    """When it is not ready, from when on and for how long."""
    wanted: Wanted | None = None
    """What it would demand on a host that has no room for it yet."""
    placed_in_pass: int = -1
    placed_at: float = 0.0
    """When it was put on its host, however often it was not ready there since."""
    startups_before: float = 0.0
    """Seconds of start-up of its present incarnation before the last time that it was not ready."""
    been_on: set[int] = field(default_factory=set)
    ledgers: dict[Accounting, Ledger] = field(default_factory=lambda: {name: Ledger() for name in ACCOUNTINGS})
    leaving: bool = False
    """It was preempted, and goes on where it was until its grace period is over; no host counts it any more."""
    leaves_at: float = 0.0
    shift: float = 0.0
    """By which its metric is moved while the plan gives it up, where its own ledger decides; likewise below."""
    patience: float | None = None
    """By which an equal must have more slack to give it its place; ``None``: the settings say."""
    urgent: float = -inf
    """While its metric is below this, an equal gives it that has so much more as ``pressing`` says."""
    pressing: float = 0.0
    planned_for: bool = False
    """The plan says who of its rank is served: none of them counts as late."""
    known: Known | None = None
    """Only within a pass."""
    decides_by: Accounting = "restart"
    promise: windows.Promise | None = None
    """Its window; ``None``: its whole life, or the request's ledger decides."""
    pieces: list[tuple[float, float, float]] = field(default_factory=list)
    """Of a promise over a window: what it had received (s), how much it lost then, until when."""
    base: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Running and pending seconds, and those of start-ups spent, as the calendar window began."""
    short: float = 0.0
    """The largest share of a calendar window that was lost."""

    def ledger_at(self, t: float, accounting: Accounting) -> Ledger:
        """``(e', p')`` at ``t``."""
        ledger = self.ledgers[accounting]
        if self.gone is not None:
            return ledger
        if self.host is None:
            return Ledger(ledger.e, ledger.p + (t - self.since))
        pending = metric.startup_is_pending(accounting, self.starts)
        return metric.running_ledger(ledger, self.since, self.startup, pending, t)

    def key(self, config: Config) -> float:
        """Order among waiting instances."""
        if self.promise is not None:
            return self.since + windows.slack(self, self.since, config) - self.alpha
        return metric.waiting_key(self.ledgers[config.qos.startup], self.since, self.sigma, self.alpha)

    def metric_at(self, t: float, config: Config) -> float:
        """Q at ``t``, in the accounting that decisions use: its own, or its request's."""
        if self.known is None:
            return self.work_out_metric(t, config)
        if self not in self.known.metrics:
            self.known.metrics[self] = self.work_out_metric(t, config)
        return self.known.metrics[self]

    def work_out_metric(self, t: float, config: Config) -> float:
        if self.request is not None and self.request.decides:
            return self.request.metric_of(self, t, config) + self.request.shift
        if self.promise is not None:
            return windows.slack(self, t, config) - self.alpha + self.shift
        if self.host is None:
            return self.key(config) - t + self.shift
        return metric.running_metric(self.ledger_at(t, config.qos.startup), self.sigma, self.alpha) + self.shift

    def overhead_at(self, t: float, config: Config) -> float:
        """Preemption overhead C at ``t``: its own, or its request's."""
        if self.request is not None and self.request.decides:
            return self.request.overhead_at(t, config)
        if self.promise is not None:
            return metric.overhead(self.spent - self.base[2], windows.overhead_e(self, t, config))
        return metric.overhead(self.spent, self.ledger_at(t, config.qos.startup).e)

    def progress_at(self, t: float) -> float:
        """Useful running seconds at ``t``."""
        if self.host is None:
            return self.progress
        return self.progress + self.incarnation_at(t)

    def incarnation_at(self, t: float) -> float:
        """Useful running seconds of the present incarnation; it must be on a host."""
        return max(0.0, t - self.ready())

    def ready(self) -> float:
        """When its present start-up ends."""
        return self.since + self.startup

    def up_from(self, accounting: Accounting) -> float:
        """From when on its present incarnation counts as running."""
        return self.ready() if metric.startup_is_pending(accounting, self.starts) else self.since

    def is_up(self, t: float, accounting: Accounting) -> bool:
        return self.host is not None and t >= self.up_from(accounting)

    def takes(self) -> Amounts:
        """What its host has less while it is there."""
        return self.demand if self.taken is None else self.taken

    def is_idle(self) -> bool:
        """On a host, while its concurrent request waits for another instance."""
        if self.host is None or self.request is None or self.request.approach != "concurrent":
            return False
        return bool(self.request.away())

    def lifetime(self, t: float) -> float:
        """Seconds since its admission, or between that and its completion or removal."""
        return (t if self.gone is None else self.gone) - self.admission

    def completion(self) -> float:
        """When it completes if nobody disturbs it."""
        return self.since + self.startup + (self.duration - self.progress)

    def startup_elapsed(self, t: float) -> float:
        """Seconds of the current start-up that have passed."""
        return min(self.startup, t - self.since)

    def settle(self, t: float) -> None:
        """Write the time since the last change of state into the ledgers; a change of state must follow."""
        if self.promise is not None:
            self.lose(t)
        self.ledgers = {name: self.ledger_at(t, name) for name in ACCOUNTINGS}
        self.progress = self.progress_at(t)

    def lose(self, t: float) -> None:
        """Note what was lost since the last change of state, in the accounting that decisions use."""
        before, after = self.ledgers[self.decides_by], self.ledger_at(t, self.decides_by)
        if after.p > before.p:
            until = t if self.host is None else min(t, self.ready())
            self.pieces.append((before.e, after.p - before.p, until))

    def place(self, host: Host, t: float, startup: float, pass_number: int) -> None:
        """From waiting to ``host``."""
        self.settle(t)
        self.host, self.since, self.startup, self.placed_in_pass = host, t, startup, pass_number
        self.placed_at, self.startups_before = t, 0.0
        self.starts += 1
        self.placed_as = self.starts
        self.been_on.add(host.row)
        host.instances.append(self)
        host.changes += 1

    def remove(self, t: float) -> None:
        """From its host to nowhere: waiting again, or completed."""
        assert self.host is not None
        self.settle(t)
        self.host.instances.remove(self)
        self.host.changes += 1
        self.host, self.since = None, t

    def lose_work(self) -> None:
        """What it had run (``progress``) moves from running to discarded time, which counts like pending."""
        self.ledgers = {n: Ledger(kept.e - self.progress, kept.p + self.progress) for n, kept in self.ledgers.items()}
        self.lost += self.progress
        self.progress = 0.0

    def tie(self, seed: int) -> int:
        return chance.victim_tie(seed, self.row, self.placed_as)


@dataclass(eq=False)
class Host:
    """One host and what is on it, in order of placement."""

    row: int
    capacity: Amounts
    attributes: Mapping[str, str] = field(default_factory=dict)
    going: list[tuple[float, Amounts, int]] = field(default_factory=list)
    """Until when preempted ones still take what of it."""
    others: Amounts = ()
    """What others than the run's instances take of it; nothing: of no resource."""
    foreign: dict[str, int] = field(default_factory=dict)
    """How many of these carry a mark."""
    up: bool = True
    scarce: bool = False
    """It is of a pool for which somebody is planned."""
    changes: int = 0
    instances: list[Instance] = field(default_factory=list)
    known: Known | None = None
    """Only within a pass."""

    def free(self) -> Amounts:
        if self.known is None:
            return self.work_out_free()
        if self not in self.known.free:
            self.known.free[self] = self.work_out_free()
        return self.known.free[self]

    def work_out_free(self) -> Amounts:
        left = minus(self.capacity, self.others) if self.others else self.capacity
        for instance in self.instances:
            left = minus(left, instance.takes())
        return left

    def free_without(self, victims: list[Instance]) -> Amounts:
        left = self.free()
        for victim in victims:
            left = plus(left, victim.takes())
        return left

    def free_for(self, instance: Instance, victims: Sequence[Instance] = ()) -> Amounts:
        """What is free once the victims are gone; where more was given away than there is of what it does not demand,
        nothing is free until they are."""
        left = tuple(n if wanted else max(n, 0) for n, wanted in zip(self.free(), instance.demand, strict=True))
        for victim in victims:
            left = plus(left, victim.takes())
        return left

    def admits(self, instance: Instance) -> bool:
        """Up, term and anti-affinity; capacity is another question."""
        if not self.up or not instance.term.holds(self.attributes):
            return False
        return not (instance.anti_affinity and any(other.job == instance.job for other in self.instances))

    def tie(self, seed: int) -> int:
        return chance.host_tie(seed, self.row, self.changes)


def overhead_limit(promised: ServiceClass, config: Config) -> float:
    """The class's own limit, else the settings', else what may be lost; and what is added."""
    limit = promised.overhead_limit
    if limit is None:
        limit = config.policy.overhead_limit
    if limit is None:
        limit = 1.0 - promised.slo
    return min(1.0, max(0.0, limit + config.policy.added_overhead))


def build(
    workload: Workload, hosts: Hosts, config: Config, later: Sequence[Mapping[str, float]] = ()
) -> tuple[list[Instance], list[Host], Callable[[Mapping[str, float]], tuple[int | None, ...]]]:
    """All instances, waiting from their admission, and all hosts, empty; amounts as whole numbers.

    ``later`` are capacities that hosts will have. The third makes amounts by resource whole, ``None`` where none is
    given.
    """
    factors = [
        scale([*(float(c) for c in hosts.capacity[:, r]), *(one.get(name, 0.0) for one in later)])
        for r, name in enumerate(hosts.resources)
    ]

    def amounts_of(named: Mapping[str, float]) -> tuple[int | None, ...]:
        pairs = zip(hosts.resources, factors, strict=True)
        return tuple(whole(named[name], f) if name in named else None for name, f in pairs)

    def amounts(values: object, names: tuple[str, ...]) -> Amounts:
        by_name = dict(zip(names, values, strict=True))  # type: ignore[call-overload]
        return tuple(whole(by_name.get(name, 0.0), f) for name, f in zip(hosts.resources, factors, strict=True))

    promises = [windows.promise_of(one, config) for one in workload.classes]
    instances = []
    for row in range(len(workload)):
        index = int(workload.service_class[row])
        promised = workload.classes[index]
        instances.append(
            Instance(
                row=row,
                sigma=promised.slo,
                rank=order(promised),
                named_rank=promised.rank,
                margin=on_grid(promised.margin if config.qos.margin is None else config.qos.margin),
                limit=overhead_limit(promised, config),
                alpha=on_grid(config.qos.alpha if promised.alpha is None else promised.alpha),
                service_class=index,
                demand=amounts(workload.demand[row], workload.resources),
                admission=on_grid(workload.admission[row]),
                duration=on_grid(workload.duration[row]),
                job=int(workload.job[row]),
                anti_affinity=bool(workload.anti_affinity[row]),
                term=workload.terms[int(workload.term[row])],
                placement=NO_NEIGHBOURS
                if workload.placement is None
                else workload.placements[int(workload.placement[row])],
                access=NO_ACCESS if workload.access is None else workload.accesses[int(workload.access[row])],
                most=None if workload.limit is None else amounts(workload.limit[row], workload.resources),
                bandwidth=dict(zip(workload.resources, workload.demand[row].tolist(), strict=True)).get("network", 0.0),
                since=on_grid(workload.admission[row]),
                promise=promises[index],
                decides_by=config.qos.startup,
                grace=0.0 if workload.grace is None else on_grid(workload.grace[row]),
                spells=() if workload.unready is None else workload.spells[int(workload.unready[row])],
                resizes=resizes_of(workload, row, lambda demand: amounts(demand, workload.resources)),
            )
        )
    for one in instances:
        past.begin(one, workload)
    places = [
        Host(row, amounts(hosts.capacity[row], hosts.resources), hosts.attributes[row]) for row in range(len(hosts))
    ]
    guard(workload, instances)
    for place in places:
        place.others = tuple(0 for _ in hosts.resources)
    return instances, places, amounts_of
