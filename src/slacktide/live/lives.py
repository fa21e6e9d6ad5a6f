"""What happened to the instances and hosts of a recorded session, told by an engine that retraces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.kernels import tables
from slacktide.live import parts
from slacktide.live.engine import Engine
from slacktide.live.parts import Controller, Decision, Incarnation, Outcome
from slacktide.state.spec import Spec

Demand = tuple[tuple[str, int], ...]
SHORTEST = 1e-3
"""Seconds; what follows sooner counts as the same instant, and nothing that completed ran less."""


@dataclass(slots=True)
class Life:
    """One instance, from its admission on. Times are seconds since 1970; ``before`` is what it had run when the
    record began; ``demands`` what it asked for, from when on."""

    controller: Controller
    admission: float
    spec: Spec | None = None
    budget: str = ""
    hosts: set[str] = field(default_factory=set)
    running: float = 0.0
    before: float = 0.0
    end: float = np.inf
    completed: bool = False
    demands: list[tuple[float, Demand]] = field(default_factory=list)

    def asks(self, demand: Demand, at: float) -> None:
        """It asks for this from ``at`` on, where it is the first from its admission on."""
        if not self.demands:
            self.demands.append((self.admission, demand))
        elif demand != self.demands[-1][1]:
            self.demands.append((at, demand))

    def asked(self, begin: float) -> tuple[Demand, list[tuple[float, Demand]]]:
        """What it asked for when it came, or at ``begin`` if that was later; and what afterwards, from when on."""
        first, later = self.demands[0][1], list[tuple[float, Demand]]()
        soon = max(begin, self.admission) + SHORTEST
        for at, demand in self.demands[1:]:
            if at < soon:
                first = demand
            elif later and at < later[-1][0] + SHORTEST:
                later[-1] = later[-1][0], demand
            else:
                later.append((at, demand))
        return first, later

    def lived(self, begin: float, end: float) -> float:
        """Seconds of its life within the record."""
        return max(0.0, min(self.end, end) - max(self.admission, begin))

    @property
    def received(self) -> float:
        """Seconds that it ran within the record; all that is left where work of before was lost."""
        return self.running - self.before if self.running >= self.before else self.running


@dataclass(slots=True)
class HostLife:
    """A host: what it has as told last, what pods of others took at the most, and when nothing could run on it."""

    amounts: Mapping[str, int]
    attributes: Mapping[str, str]
    taken: dict[str, int] = field(default_factory=dict)
    closed: list[tuple[float, float]] = field(default_factory=list)


class Retracing(Engine):
    """An engine that notes down what becomes of instances and hosts."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.lives: list[Life] = []
        self.of_row: dict[int, Life] = {}
        self.host_lives: dict[str, HostLife] = {}
        self.begin = self.now = -np.inf
        self.hot: list[float] = []
        self.cold: list[float] = []
        self.recreations: list[float] = []
        self.passed_at: list[float] = []
        self.most_left: dict[str, int] = {}
        self._begun: dict[str, float] = {}
        self._told: dict[int, float] = {}  # rows whose incarnation was preempted, since when
        self._closed: set[str] = set()  # hosts that take nobody, or are gone
        self._since: dict[str, float] = {}  # those of them on which nothing runs, since when

    # -- instances -------------------------------------------------------------------------------------------------

    def _life(self, controller: Controller, row: int) -> Life:
        """That of a row, a new one where the row is new."""
        if row not in self.of_row:
            life = Life(controller, float(self.tables.tb["admission"][row]))
            if self.begin > -np.inf:
                life.before = self._running(row, self.now)
            self.of_row[row] = life
            self.lives.append(life)
        return self.of_row[row]

    def _enter(self, controller: Controller, one: Incarnation) -> None:
        super()._enter(controller, one)
        life = self._life(controller, one.row)
        life.spec, life.budget = self.specs[one.spec], one.budget
        life.asks(life.spec.demand, self.latest)

    def respec(self, uid: str, spec: int) -> None:
        """As the engine's; notes what it asks for now."""
        super().respec(uid, spec)
        one = self.incarnations[uid]
        # After the pass, whose instant is the latest known: a simulation has resizes before the pass of their instant.
        at = max(self.latest, self.now + SHORTEST)
        self._life(self.controllers[one.key], one.row).asks(self.specs[spec].demand, at)

    def restore(self, key: str, books: Mapping[str, Any] | None, pods: Sequence[Mapping[str, Any]], now: float) -> None:
        """As the engine's; instances may come with it that have no incarnation yet."""
        super().restore(key, books, pods, now)
        controller = self.controllers[key]
        for row in controller.rows:
            life = self._life(controller, row)
            if row in self.uid_of_row:
                one = self.incarnations[self.uid_of_row[row]]
                life.spec, life.budget = self.specs[one.spec], one.budget
                life.asks(life.spec.demand, life.admission)

    def _depart(self, controller: Controller, row: int, at: float, completed: bool) -> None:
        life = self._life(controller, row)
        del self.of_row[row]
        self._told.pop(row, None)
        life.running = self._running(row, at)
        life.end, life.completed = at, completed
        super()._depart(controller, row, at, completed)

    def _running(self, row: int, now: float) -> float:
        """Seconds that an instance was ready so far, without what was lost."""
        instance = self.tables.tb["instances"][row]
        ready = float(instance["since"] + instance["startup"])
        here = instance["state"] in (tables.PLACED, tables.LEAVING) and now > ready
        return float(instance["running"]) + (now - ready if here else 0.0)

    def ready(self, uid: str, at: float) -> None:
        """As the engine's; notes how long the start-up took."""
        one = self.incarnations.get(uid)
        if one is not None and one.state == parts.PLACED and uid in self._begun:
            delay = max(0.0, at - self._begun.pop(uid))
            hosts = self._life(self.controllers[one.key], one.row).hosts
            (self.hot if one.host in hosts else self.cold).append(delay)
            hosts.add(one.host)
        super().ready(uid, at)

    def _decided(self, row: int, h: int, metric: float, victims: list[tuple[int, float]]) -> Decision:
        decision = super()._decided(row, h, metric, victims)
        self._begun[decision.uid] = self.now
        self._told.update((victim, self.now) for victim, _ in victims)
        return decision

    def arrive(self, uid: str, name: str, key: str, spec: int, at: float, budget: str = "") -> None:
        """As the engine's; notes how long after a preemption the next incarnation came."""
        super().arrive(uid, name, key, spec, at, budget)
        told = self._told.pop(self.incarnations[uid].row, None)
        if told is not None:
            self.recreations.append(max(0.0, at - told))

    def spared(self, uid: str, at: float) -> None:
        """As the engine's."""
        super().spared(uid, at)
        self._told.pop(self.incarnations[uid].row, None)

    def gone(self, uid: str, at: float, completed: bool = False) -> None:
        """As the engine's."""
        self._begun.pop(uid, None)
        super().gone(uid, at, completed)

    def budget(self, name: str, left: int) -> None:
        """As the engine's; notes the most that was ever left."""
        self.most_left[name] = max(left, self.most_left.get(name, 0))
        super().budget(name, left)

    # -- hosts -----------------------------------------------------------------------------------------------------

    def host(self, name: str, amounts: Mapping[str, int], attributes: Mapping[str, str], up: bool) -> None:
        """As the engine's; notes when the host can be used."""
        super().host(name, amounts, attributes, up)
        known = self.host_lives.get(name)
        if known is None:
            known = self.host_lives[name] = HostLife(amounts, attributes)
            if self.begin > -np.inf:
                known.closed.append((self.begin, self.now))
        known.amounts, known.attributes = amounts, attributes
        if not up:
            self._closed.add(name)
        elif name in self._closed:
            self._closed.remove(name)
            if name in self._since:
                known.closed.append((self._since.pop(name), self.now))

    def host_gone(self, name: str) -> None:
        """As the engine's."""
        self._closed.add(name)
        super().host_gone(name)

    def other(self, uid: str, host: str, amounts: Mapping[str, int], marks: tuple[str, ...]) -> None:
        """As the engine's; notes how much pods of others take."""
        super().other(uid, host, amounts, marks)
        taken: dict[str, int] = {}
        for where, theirs, _ in self.others.values():
            for name, amount in theirs.items() if where == host else ():
                taken[name] = taken.get(name, 0) + amount
        life = self.host_lives[host]
        life.taken = {name: max(taken.get(name, 0), life.taken.get(name, 0)) for name in {*taken, *life.taken}}

    # -- time ------------------------------------------------------------------------------------------------------

    def run(self, now: float) -> Outcome:
        """As the engine's; the record begins with the first one."""
        self.now = now
        self.passed_at.append(now)
        if self.begin == -np.inf:
            self.begin = now
            for row, life in self.of_row.items():
                life.before = self._running(row, now)
        for name in self._closed - self._since.keys():
            h = self.hosts.get(name)
            if h is None or not self.tables.tb["hosts"]["count"][h]:
                self._since[name] = now
        return super().run(now)

    def finish(self) -> None:
        """Bring the lives of instances that go on, and of closed hosts, up to the last pass."""
        for row, life in self.of_row.items():
            life.running = self._running(row, self.now)
        for name, since in self._since.items():
            self.host_lives[name].closed.append((since, np.inf))
