"""What happened to the instances and hosts of a recorded session, found out by carrying it out once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from slacktide.config import Config
from slacktide.engine.core import operations, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.core.types import Controller, Outcome, Pod
from slacktide.engine.journal import replay
from slacktide.engine.journal.past import past_of, totals_of
from slacktide.kernels.tables import schema
from slacktide.model import Past
from slacktide.model.hosts import DEVICES
from slacktide.state.spec import Spec

V = TypeVar("V")
Demand = tuple[tuple[str, int], ...]
SHORTEST = 1e-3
"""Seconds; what follows sooner counts as the same instant, and nothing that completed ran less."""


@dataclass(slots=True)
class InstanceHistory:
    """One instance, from its admission on. Times are seconds since 1970; ``before`` is what it had run when the
    record began, and ``lost`` its outages by then; ``demands`` what it asked for, from when on; ``spells`` when it was
    not ready though it had been, and that counts: from when on, until when. ``told``: when its pod was told to go, for
    somebody else where it is a ``victim``."""

    controller: Controller
    admission: float
    spec: Spec | None = None
    budget: str = ""
    hosts: set[str] = field(default_factory=set)
    running: float = 0.0
    before: float = 0.0
    lost: Past = ()
    end: float = np.inf
    completed: bool = False
    told: float = np.inf
    victim: bool = False
    demands: list[tuple[float, Demand]] = field(default_factory=list)
    spells: list[tuple[float, float]] = field(default_factory=list)

    def asks(self, demand: Demand, at: float) -> None:
        """It asks for this from ``at`` on, where it is the first from its admission on."""
        demand = tuple(one for one in demand if not one[0].startswith(DEVICES))  # which says what is free, not what is
        if not self.demands:
            self.demands.append((self.admission, demand))
        elif demand != self.demands[-1][1]:
            self.demands.append((at, demand))

    def lived(self, begin: float, end: float) -> float:
        """Seconds of its life within the record."""
        return max(0.0, min(self.end, end) - max(self.admission, begin))

    @property
    def received(self) -> float:
        """Seconds that it ran within the record; all that is left where work of before was lost."""
        return self.running - self.before if self.running >= self.before else self.running


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a host had from an instant on, seconds since 1970 (-inf: when the record began), what of it pods of others
    took (all of it, where the host took no pods), and how many of these carried which mark."""

    since: float
    has: Mapping[str, int]
    taken: Mapping[str, int]
    marks: Mapping[str, int]


@dataclass(slots=True)
class HostHistory:
    """A host: its attributes as told last, what it had from when on, and when nothing could run on it."""

    attributes: Mapping[str, str]
    has: Mapping[str, int]
    taken: dict[str, int] = field(default_factory=dict)
    marks: dict[str, int] = field(default_factory=dict)
    changes: list[Amounts] = field(default_factory=list)
    closed: list[tuple[float, float]] = field(default_factory=list)

    def note(self, since: float, takes_pods: bool) -> None:
        """What it has, what others take, or their marks, may be different from now on."""
        taken = self.taken if takes_pods else self.has
        now = Amounts(since, dict(self.has), _without_zeros(taken), _without_zeros(self.marks))
        if self.changes and replace(now, since=self.changes[-1].since) == self.changes[-1]:
            return
        if self.changes and since < self.changes[-1].since + SHORTEST:
            now = replace(now, since=self.changes.pop().since)
        self.changes.append(now)


def _without_zeros(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def without_devices(said: Mapping[str, V]) -> dict[str, V]:
    """Amounts, or attributes, but for those of claims' devices, which say what is free, not what is there."""
    return {name: value for name, value in said.items() if not name.startswith(DEVICES)}


class SessionHistory:
    """What becomes of instances and hosts while ``engine`` is told what was recorded (an observer of the engine's)."""

    def __init__(self, config: Config) -> None:
        self.engine = Engine(config, observer=self)
        self.instances: list[InstanceHistory] = []
        self.of_row: dict[int, InstanceHistory] = {}
        self.hosts: dict[str, HostHistory] = {}
        self.begin = self.now = -np.inf
        self.hot: list[float] = []
        self.cold: list[float] = []
        self.recreations: list[float] = []
        """How long after a preemption the next pod came, but of batch requests; then of these."""
        self.batch_recreations: list[float] = []
        self.graces: dict[float, list[float]] = {}
        """How long preempted pods went on, by the grace period that they had."""
        self.passed_at: list[float] = []
        self.most_left: dict[str, int] = {}
        self.totals: dict[int, tuple[float, float]] = {}
        """Of controllers, by ``id``, when the record began: seconds that instances lived, and those that counted."""
        self._begun: dict[str, float] = {}
        self._told: dict[int, float] = {}  # instances whose pod was preempted, since when; once it is gone, since then
        self._leaving: dict[str, float] = {}  # pods that were preempted and are not gone, since when
        # Pods that were ready; those that are not, for a cause that counts, since when.
        self._been_ready: dict[str, float | None] = {}
        self._held: set[str] = set()  # pods whose place somebody still took when it was decided on
        self._strangers: dict[str, operations.Other] = {}
        self._closed: set[str] = set()  # hosts that take nobody, or are gone
        self._since: dict[str, float] = {}  # those of them on which nothing runs, since when

    def carry_out(self, operation: Operation) -> Outcome | None:
        """Tell the engine of an operation, and note down what it changes."""
        self._before(operation)
        outcome = replay.carry_out(self.engine, operation)
        self._after(operation, outcome)
        return outcome

    def _before(self, operation: Operation) -> None:
        match operation:
            case operations.Ready(uid, at):
                self._becomes_ready(uid, at)
            case operations.Gone(uid, at):
                self._begun.pop(uid, None)
                self._spell(uid, at, over=True)
                self._been_ready.pop(uid, None)
                self._gone(uid, at)
            case operations.OtherGone(uid):
                self._stranger_goes(uid)
            case operations.Budget(name, left):
                self.most_left[name] = max(left, self.most_left.get(name, 0))
            case operations.HostGone(name):
                self._closed.add(name)
            case operations.Run(now):
                self.passed(now)

    def _after(self, operation: Operation, outcome: Outcome | None) -> None:
        engine = self.engine
        match operation:
            case operations.Arrive(uid, at=at):
                told = self._told.pop(engine.pods[uid].row, None)
                if told is not None:
                    is_batch = engine.controllers[engine.pods[uid].key].batch
                    (self.batch_recreations if is_batch else self.recreations).append(max(0.0, at - told))
            case operations.Spared(uid):
                self._told.pop(engine.pods[uid].row, None)
                self._leaving.pop(uid, None)
            case operations.Bound(uid, at) if uid in self._held:
                self._held.remove(uid)
                self._begun[uid] = at
            case operations.Respec(uid, spec):
                pod = engine.pods[uid]
                # After the pass, whose instant is the latest known: a simulation has resizes before the pass of their
                # instant.
                at = max(engine.latest, self.now + SHORTEST)
                self._history(engine.controllers[pod.key], pod.row).asks(engine.specs[spec].demand, at)
            case operations.Doomed(uid):
                pod = engine.pods[uid]
                self._history(engine.controllers[pod.key], pod.row).told = max(engine.latest, self.now)
            case operations.Restore(key):
                self._restored(engine.controllers[key])
            case operations.Ready(uid, at):
                self._spell(uid, at, over=True)
                self._been_ready[uid] = None
            case operations.Unready(uid, at) | operations.Blame(uid, at=at):
                self._spell(uid, at)
        self._after_hosts(operation)
        for decision in outcome.decisions if outcome is not None else ():
            self._begun[decision.uid] = self.now
            self._told.update((engine.pods[victim.uid].row, self.now) for victim in decision.victims)
            self._leaving.update((victim.uid, self.now) for victim in decision.victims)
            if any(engine.pods[uid].host == decision.host for uid in self._leaving):
                self._held.add(decision.uid)

    def _after_hosts(self, operation: Operation) -> None:
        """What it changes of hosts."""
        match operation:
            case operations.Host():
                self._host(operation)
            case operations.HostGone(name):
                self._note_amounts(name)
            case operations.Other():
                self._stranger_is(operation)

    def _spell(self, uid: str, at: float, *, over: bool = False) -> None:
        """A pod that was ready may not be for a cause that counts, or again, or be no more (``over``)."""
        pod = self.engine.pods.get(uid)
        if pod is None or uid not in self._been_ready:
            return
        instance, since = self.engine.tables.tb["instances"][pod.row], self._been_ready[uid]
        counts = not over and instance["state"] == schema.PLACED and np.isinf(instance["startup"])
        if since is not None and not counts:
            self._history(self.engine.controllers[pod.key], pod.row).spells.append((since, at))
        self._been_ready[uid] = (at if since is None else since) if counts else None

    def _gone(self, uid: str, at: float) -> None:
        """How long a preempted pod went on."""
        pod, told = self.engine.pods.get(uid), self._leaving.pop(uid, None)
        self._held.discard(uid)
        if pod is None or told is None:
            return
        self.graces.setdefault(self.engine.specs[pod.spec].grace, []).append(max(0.0, at - told))
        if pod.row in self._told:
            self._told[pod.row] = at

    # -- instances -------------------------------------------------------------------------------------------------

    def _history(self, controller: Controller, row: int) -> InstanceHistory:
        """That of a row, a new one where the row is new."""
        if row not in self.of_row:
            history = InstanceHistory(controller, float(self.engine.tables.tb["admission"][row]))
            if self.begin > -np.inf:
                history.before = self._running(row, self.now)
            self.of_row[row] = history
            self.instances.append(history)
        return self.of_row[row]

    def entered(self, controller: Controller, pod: Pod) -> None:
        """An instance runs in this pod now."""
        history, spec = self._history(controller, pod.row), self.engine.specs[pod.spec]
        history.spec, history.budget = spec, pod.budget
        history.asks(spec.demand, self.engine.latest)

    def departs(self, controller: Controller, row: int, at: float, completed: bool) -> None:
        """An instance is about to be live no more."""
        history = self._history(controller, row)
        del self.of_row[row]
        self._told.pop(row, None)
        history.running = self._running(row, at)
        history.end, history.completed = at, completed

    def _restored(self, controller: Controller) -> None:
        """Instances may have come that have no pod yet."""
        engine = self.engine
        for row in controller.rows:
            history = self._history(controller, row)
            if row in engine.uid_of_row:
                pod = engine.pods[engine.uid_of_row[row]]
                history.spec, history.budget = engine.specs[pod.spec], pod.budget
                history.asks(history.spec.demand, history.admission)

    def _running(self, row: int, now: float) -> float:
        """Seconds that an instance was ready so far, without what was lost."""
        instance = self.engine.tables.tb["instances"][row]
        ready = float(instance["since"] + instance["startup"])
        here = instance["state"] in (schema.PLACED, schema.LEAVING) and now > ready
        return float(instance["running"]) + (now - ready if here else 0.0)

    def _becomes_ready(self, uid: str, at: float) -> None:
        """How long the start-up took."""
        pod = self.engine.pods.get(uid)
        if pod is not None and pod.state == types.PLACED and uid in self._begun:
            delay = max(0.0, at - self._begun.pop(uid))
            hosts = self._history(self.engine.controllers[pod.key], pod.row).hosts
            (self.hot if pod.host in hosts else self.cold).append(delay)
            hosts.add(pod.host)

    # -- hosts -----------------------------------------------------------------------------------------------------

    def _host(self, told: operations.Host) -> None:
        """When the host can be used."""
        known = self.hosts.get(told.name)
        amounts, attributes = without_devices(told.amounts), without_devices(told.attributes)
        if known is None:
            known = self.hosts[told.name] = HostHistory(attributes, amounts)
            if self.begin > -np.inf:
                known.closed.append((self.begin, self.now))
        known.has, known.attributes = amounts, attributes
        if not told.up:
            self._closed.add(told.name)
        elif told.name in self._closed:
            self._closed.remove(told.name)
            if told.name in self._since:
                known.closed.append((self._since.pop(told.name), self.now))
        self._note_amounts(told.name)

    def _stranger_is(self, told: operations.Other) -> None:
        """A pod of somebody else is on a host, or is different now."""
        before = self._strangers.get(told.uid)
        if before is not None:
            self._count_stranger(before, -1)
        self._strangers[told.uid] = told
        self._count_stranger(told, 1)
        for name in {told.host} | ({before.host} if before is not None else set()):
            self._note_amounts(name)

    def _stranger_goes(self, uid: str) -> None:
        if uid in self._strangers:
            gone = self._strangers.pop(uid)
            self._count_stranger(gone, -1)
            self._note_amounts(gone.host)

    def _count_stranger(self, told: operations.Other, by: int) -> None:
        host = self.hosts[told.host]
        for name, amount in without_devices(told.amounts).items():
            host.taken[name] = host.taken.get(name, 0) + by * amount
        for mark in set(told.marks):
            host.marks[mark] = host.marks.get(mark, 0) + by

    def _note_amounts(self, name: str) -> None:
        """After the pass, whose instant is the latest known: a simulation has them before the pass of their instant."""
        at = -np.inf if self.begin == -np.inf else max(self.engine.latest, self.now + SHORTEST)
        self.hosts[name].note(at, name not in self._closed)

    # -- time ------------------------------------------------------------------------------------------------------

    def passed(self, now: float) -> None:
        """There was a pass, or it is looked at how all stand. The record begins with the first."""
        self.now = now
        self.passed_at.append(now)
        if self.begin == -np.inf:
            self.begin = now
            for row, history in self.of_row.items():
                history.before = self._running(row, now)
                history.lost = past_of(self.engine, row, now)
            self.totals = {
                id(one): totals_of(self.engine, one, now) for one in self.engine.controllers.values() if one.rows
            }
        for name in self._closed - self._since.keys():
            h = self.engine.hosts.get(name)
            if h is None or not self.engine.tables.tb["hosts"]["count"][h]:
                self._since[name] = now

    def finish(self) -> None:
        """Bring instances that go on, and closed hosts, up to the last pass."""
        for row, history in self.of_row.items():
            history.running = self._running(row, self.now)
        for name, since in self._since.items():
            self.hosts[name].closed.append((since, np.inf))
