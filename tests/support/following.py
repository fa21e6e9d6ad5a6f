"""A live engine that is told what happened in a simulated run, as a small kubelet and API server would."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reference.chance import startup_delay
from slacktide.engine.core.engine import Engine
from slacktide.kernels.tables import log_records
from slacktide.model import ServiceClass
from slacktide.model.workload import INDEPENDENT
from slacktide.sim import RunResult
from slacktide.state import layout
from slacktide.state.live_network import Units
from slacktide.state.request_tables import ledgers
from slacktide.state.spec import Spec
from support.clusters import Cluster
from support.runs import core

BEGINNING = 1_790_000_000.0
"""Seconds since 1970 at which simulated time 0 lies."""
SHORTEST = 0.25
"""Seconds: live, nobody is ready in the pass that places it."""

Log = list[tuple[float, int, int, float, tuple[tuple[int, float], ...]]]
"""Time, row, host, metric, and victims with theirs."""


def livable(one: Cluster) -> Cluster:
    """The cluster as a live scheduler can meet it.

    Left out, as what is known of it differs: budgets (told from outside, and late), anti-affinity within jobs (live,
    a rule), start-ups that take no time, the overhead limit and lost work where instances share a ledger (a stop costs
    its request when it has happened, in a simulated pass at once).
    """
    workload = replace(one.workload, anti_affinity=np.zeros(len(one.workload), np.bool_), budget=None, budgets=())
    end = one.config.simulation.end or 200.25
    shared = {} if workload.requests is None else {"overhead_scope": "none"}
    hot, cold = (tuple(max(SHORTEST, delay) for delay in table) for table in (one.hot, one.cold))
    return replace(one, workload=workload, hot=hot, cold=cold).with_(
        policy={"victims": "next-pass", **shared},
        qos={"startup": "always"},
        simulation={"end": end, "preempted_work": "kept"},
    )


@dataclass
class Following:
    """Drives ``engine`` through what happened in the simulated ``result`` of a cluster; decisions are its own."""

    one: Cluster
    result: RunResult
    engine: Engine

    def __post_init__(self) -> None:
        workload, hosts = self.one.workload, self.one.hosts
        self.log: Log = []
        self.starts = [0] * len(workload)
        self.was_on: set[tuple[int, str]] = set()
        self.lives = [0] * len(workload)  # incarnations that a row had
        self.ends_of_startups: list[tuple[float, int, int]] = []
        self.specs: dict[Spec, int] = {}
        self.between: Callable[[float], None] = lambda _now: None  # before each pass
        self.promised: Callable[[ServiceClass], ServiceClass] = lambda service: service  # at first
        self.unit = layout.units(hosts.capacity)
        self.demand = layout.amounts(workload.demand, self.unit).tolist()
        self.limit = None if workload.limit is None else layout.amounts(workload.limit, self.unit).tolist()
        self.capacity = layout.amounts(hosts.capacity, self.unit).tolist()
        _, owner = ledgers(workload)
        self.owner = owner.tolist() if len(owner) else [-1] * len(workload)
        self.hot, self.cold = (layout.on_grid(np.array(table)).tolist() for table in (self.one.hot, self.one.cold))

    def amounts(self, whole: list[int]) -> dict[str, int]:
        return {name: n for name, n in zip(self.one.hosts.resources, whole, strict=True) if n}

    def tell_host(self, h: int, up: bool) -> None:
        hosts = self.one.hosts
        self.engine.host(hosts.names[h], self.amounts(self.capacity[h]), hosts.attributes[h], up)

    def key_of(self, row: int) -> str:
        request = self.one.workload.request
        return f"row-{row}" if request is None else f"request-{request[row]}"

    def spec_of(self, row: int) -> Spec:
        workload = self.one.workload
        demand = tuple(sorted(self.amounts(self.demand[row]).items()))
        service = self.promised(workload.classes[workload.service_class[row]])
        spec = Spec(demand, service, workload.terms[workload.term[row]])
        if workload.placement is not None:
            spec = replace(spec, placement=workload.placements[workload.placement[row]])
        return replace(spec, **self.access_of(row)) if workload.access is not None else spec

    def access_of(self, row: int) -> dict[str, Any]:
        """What a spec says of users and limits."""
        workload = self.one.workload
        assert workload.access is not None
        limit = self.limit[row] if self.limit is not None else self.demand[row]
        return {
            "access": workload.accesses[workload.access[row]],
            "limit": tuple(sorted(self.amounts(limit).items())),
            "application": str(workload.job[row]),
        }

    def tell_network(self) -> None:
        """Where hosts are, and the images on them."""
        network, engine = self.one.hosts.network, self.engine
        live = engine.tables.network
        cpu, memory = (1.0 / self.unit[:2]).tolist()
        bandwidth = self.one.hosts.resources.index("network") if "network" in self.one.hosts.resources else 0
        live.units = Units(cpu, memory, float(1.0 / self.unit[bandwidth]))
        if network is None:
            return
        told = [(i, j, s) for i, row in enumerate(network.rtt.tolist()) for j, s in enumerate(row) if s and i <= j]
        engine.network(network.places, network.site_key, told)
        for image in network.images:
            engine.image(image.name, image.seconds, image.size)
        for name in self.one.hosts.names:
            engine.images(name, [image.name for image in network.images if name in image.present])

    def approach_of(self, row: int) -> int:
        workload = self.one.workload
        if workload.requests is None or workload.request is None or self.owner[row] < 0:
            return INDEPENDENT
        request = workload.request[row]
        alone = np.count_nonzero(workload.request == request) == 1 and not workload.requests.batch[request]
        return INDEPENDENT if alone else int(workload.requests.approach[request])

    def uid_of(self, row: int) -> str:
        return f"{row}/{self.lives[row]}"

    def arrive(self, row: int, at: float) -> None:
        """The next incarnation of a row; a new row gets the simulator's number."""
        engine, key, spec = self.engine, self.key_of(row), self.spec_of(row)
        engine.controller(key, spec.service, self.approach_of(row), False)
        number = self.specs.setdefault(spec, len(self.specs))
        if number not in engine.specs:
            engine.spec(number, spec)
        self.lives[row] += 1
        if self.lives[row] == 1:
            engine.tables.free_rows[:] = [row]
        engine.arrive(self.uid_of(row), f"row-{row}", key, number, at)
        assert engine.pods[self.uid_of(row)].row == row
        engine.wake(self.uid_of(row))

    def leave(self, row: int, at: float, completed: bool) -> None:
        """A row is no more."""
        engine, key = self.engine, self.key_of(row)
        if completed:
            engine.gone(self.uid_of(row), at, completed=True)
        elif self.approach_of(row) == INDEPENDENT:
            engine.gone(self.uid_of(row), at)
            engine.retire(key, at)
        else:
            engine.desired(key, len(engine.controllers[key].rows) - 1, at)
            engine.gone(self.uid_of(row), at)
            engine.desired(key, -1, at)

    def decide(self, now: float) -> None:
        """A pass; what it decided is carried out at once."""
        engine = self.engine
        for decision in engine.run(now).decisions:
            row = engine.pods[decision.uid].row
            h = engine.hosts[decision.host]
            victims = tuple((engine.pods[v.uid].row, v.metric) for v in decision.victims)
            self.log.append((now - BEGINNING, row, h, decision.metric, victims))
            for victim, _ in victims:
                engine.gone(self.uid_of(victim), now)
                self.arrive(victim, now)
            engine.bound(decision.uid, now)
            table = self.hot if (row, decision.host) in self.was_on else self.cold
            delay = startup_delay(self.one.config.simulation.seed, row, self.starts[row], table)
            self.starts[row] += 1
            self.was_on.add((row, decision.host))
            heapq.heappush(self.ends_of_startups, (now + delay, row, self.lives[row]))

    def become_ready(self, until: float) -> None:
        while self.ends_of_startups and self.ends_of_startups[0][0] <= until:
            at, row, life = heapq.heappop(self.ends_of_startups)
            uid = f"{row}/{life}"
            if uid in self.engine.pods:
                self.engine.ready(uid, at)

    def happened(self) -> Iterator[tuple[float, int, int, int]]:
        """Time, kind, row and host of what happened to the simulated cluster, but decisions."""
        events = self.result.events
        assert events is not None
        kinds = log_records
        ours = (kinds.ADMITTED, kinds.COMPLETED, kinds.EVICTED, kinds.HOST_DOWN, kinds.HOST_UP, kinds.DROPPED)
        for at, kind, row, h in zip(*(events[name].tolist() for name in ("time", "kind", "row", "host")), strict=True):
            if kind in ours:
                yield BEGINNING + at, kind, row, h

    def tell(self, at: float, kind: int, row: int, h: int) -> None:
        if kind == log_records.ADMITTED:
            self.arrive(row, at)
        elif kind == log_records.EVICTED:
            self.engine.gone(self.uid_of(row), at)
            self.arrive(row, at)
        elif kind in (log_records.COMPLETED, log_records.DROPPED):
            self.leave(row, at, kind == log_records.COMPLETED)
        else:
            self.tell_host(h, kind == int(log_records.HOST_UP))

    def run(self) -> Log:
        """What the engine decided at the simulator's instants."""
        for _ in range(len(self.one.workload)):
            self.engine.tables.new_row()
        for h in range(len(self.one.hosts)):
            self.tell_host(h, True)
        self.tell_network()
        assert self.result.passes is not None
        passes = [BEGINNING + at for at in self.result.passes["time"].tolist()]
        happened = list(self.happened())
        place = 0
        for now in passes:
            while place < len(happened) and happened[place][0] <= now:
                self.become_ready(happened[place][0])
                self.tell(*happened[place])
                place += 1
            self.become_ready(now)
            self.between(now)
            self.decide(now)
        return self.log


def simulated(one: Cluster, folder: Path) -> tuple[RunResult, Log]:
    """The compiled simulator's run, and its decisions with metrics."""
    result = core(one, folder, events=True)
    assert result.decisions is not None
    assert result.events is not None
    log = result.decisions
    lost = result.events["qos"][result.events["kind"] == log_records.PREEMPTED].tolist()
    victims = list(zip(log["victims"].tolist(), lost, strict=True))
    names = ("time", "row", "host", "metric", "first", "count")
    rows: Any = zip(*(log[name].tolist() for name in names), strict=True)
    return result, [(t, row, h, q, tuple(victims[first : first + count])) for t, row, h, q, first, count in rows]


def followed(one: Cluster, result: RunResult, **others: Any) -> Following:
    """An engine that followed the simulated run to its end."""
    following = Following(one, result, Engine(one.config, **others))
    following.run()
    return following
