"""Decisions of a live cluster, from operations in their order; deterministic, no clock, no I/O.

Times are seconds since 1970, non-decreasing within a controller (earlier ones count as
the latest known). Amounts are whole numbers: millicores, bytes, counts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from slacktide.config import Config
from slacktide.engine.core import disruptions, operations, types
from slacktide.engine.core.budgets import Budgets
from slacktide.engine.core.hosts import Hosts
from slacktide.engine.core.instances import Instances, Observer
from slacktide.engine.core.operations import Journal as Journal
from slacktide.engine.core.operations import Operation
from slacktide.engine.core.plans import Plans
from slacktide.engine.core.run_cycle import Allowance, Cycle, Made
from slacktide.engine.core.types import Controller, Decision, Outcome, Pod, Victim, snap
from slacktide.errors import StateError
from slacktide.kernels.drive import live_events
from slacktide.model import DisruptionLimits, ServiceClass
from slacktide.policy.loader import Loaded, load
from slacktide.state.growth import Growing
from slacktide.state.spec import Spec

TOGETHER = 100
"""So many decisions are taken from the tables at a time."""


_COMPILED: dict[Config, Loaded] = {}
"""Code of users' own by the settings that name it."""


def _loaded(config: Config) -> Loaded:
    """A user's own code is compiled once for a process, so that a new leader decides at once. A policy that is an
    object begins anew with each engine."""
    found = _COMPILED.get(config) or load(config)
    if found.keep and found.policy is None:
        _COMPILED[config] = found
    return found


class Engine:
    """The state of a cluster and its policy. Every method that changes something is one operation.

    ``journal`` is told ``Begin``, then every operation before it is carried out, and after each ``Run`` its outcome, as
    ``Decided``. ``observer`` is told what becomes of instances.
    Raises :class:`StateError` for operations on what it does not know, and PluginError where a user's own policy,
    score or cost cannot be loaded.
    """

    def __init__(self, config: Config, journal: Journal | None = None, observer: Observer | None = None) -> None:
        self.config = config
        self.journal = journal
        self._own = _loaded(config)
        self.tables = Growing(config, self._own.code)
        self._hosts, self._budgets = Hosts(self.tables), Budgets(self.tables)
        self.instances = Instances(self.tables, self._hosts, self._budgets, config.policy.min_running, observer)
        # What follows is to be read only.
        self.hosts, self.going, self.others = self._hosts.numbers, self._hosts.going, self._hosts.others
        self.budgets = self._budgets.numbers
        self.specs, self.controllers = self.instances.specs, self.instances.controllers
        self.pods, self.uid_of_row = self.instances.pods, self.instances.uid_of_row
        self.groups = self.instances.groups
        self.plans = Plans()
        self.passes = 0
        self.preferred: dict[str, str] = {}
        """Pods by UID that somebody else nominated, and for which hosts."""
        self.awaited: dict[str, float] = {}
        """Pods that a former leader may have told to go, which does not show yet, and until when it would."""
        self._deciding = False
        self._roused: list[Pod] = []
        self.note(operations.Begin())

    @property
    def latest(self) -> float:
        """The last instant that anything was told for."""
        return self.instances.latest

    @property
    def decides_by_own_policy(self) -> bool:
        """Whether a user's own policy decides, so that none of the built-in rules is asked."""
        return self._own.policy is not None

    def note(self, operation: Operation) -> None:
        """Tell the journal of an operation. Raises :class:`StateError` between two parts of a pass."""
        if self._deciding:
            raise StateError(f"{operation.method}: found pass {self.passes} under way, expected none")
        if self.journal is not None:
            self.journal(operation)
        self.tables.tb.control["told_operations"] += 1
        at = getattr(operation, "at", None) or getattr(operation, "now", None)
        if at is None:
            self.tables.ensure_capacity()
        else:
            self.tables.catch_up(float(at))  # and capacity

    def turn(self, at: float) -> None:
        """Calendar windows have begun up to ``at``, seconds since 1970."""
        self.note(operations.Turn(at))

    def pass_time(self, now: float) -> None:
        """It is ``now``, and somebody asks how promises stand: calendar windows that have begun do so, outside of a
        pass; nothing else changes."""
        if not self._deciding and self.tables.turns_by(now):
            self.turn(now)

    @contextmanager
    def as_one(self, operation: Operation) -> Iterator[None]:
        """Tell the journal of an operation instead of those that it consists of."""
        self.note(operation)
        journal, self.journal = self.journal, None
        try:
            yield
        finally:
            self.journal = journal

    # -- hosts, and what pods of others take there -----------------------------------------------------------------

    def host(self, name: str, amounts: Mapping[str, int], attributes: Mapping[str, str], up: bool) -> None:
        """A host as it is now: allocatable amounts, attributes, whether it takes pods."""
        self.note(operations.Host(name, dict(amounts), dict(attributes), up))
        self._hosts.put(name, amounts, attributes, up)

    def host_gone(self, name: str) -> None:
        """A host is no more; what is on it goes when its end is told."""
        self.note(operations.HostGone(name))
        self._hosts.close(name)

    def other(self, uid: str, host: str, amounts: Mapping[str, int], marks: tuple[str, ...]) -> None:
        """A pod of somebody else is on a host, or is different now."""
        self.note(operations.Other(uid, host, dict(amounts), marks))
        self._hosts.put_other(uid, host, amounts, marks)

    def other_gone(self, uid: str) -> None:
        """A pod of somebody else is no more."""
        self.note(operations.OtherGone(uid))
        self._hosts.remove_other(uid)

    # -- where hosts and users are ---------------------------------------------------------------------------------

    def network(self, places: tuple[str, ...], site_key: str, changes: Sequence[tuple[int, int, float]]) -> None:
        """Places by name, the attribute by which hosts are at them (empty: their names), and what changed since.

        ``changes`` are two places, by number, and the round-trip time between them, seconds; what was told between
        places that stay holds on, everything else is 0 until it is told.
        """
        self.note(operations.Network(places, site_key, list(changes)))
        self.tables.network.move(tuple(places), site_key, changes)

    def image(self, name: str, seconds: float, size: float) -> None:
        """What fetching an image takes where it is absent: seconds, or a size over a host's resource ``network``."""
        self.note(operations.Image(name, seconds, size))
        self.tables.network.image(name, seconds, size)

    def images(self, host: str, names: Sequence[str]) -> None:
        """All images that a host lists."""
        self.note(operations.Images(host, list(names)))
        self.tables.network.list_images(host, frozenset(names))

    # -- what pods are like ----------------------------------------------------------------------------------------

    def spec(self, number: int, spec: Spec) -> None:
        """Number a spec, for the operations that follow."""
        self.note(operations.Spec(number, spec))
        self.specs[number] = spec

    def spec_gone(self, number: int) -> None:
        """Nobody has this spec any more."""
        self.note(operations.SpecGone(number))
        del self.specs[number]

    def budget(self, name: str, left: int) -> None:
        """How many pods with a budget may be disrupted now."""
        self.note(operations.Budget(name, left))
        if self._budgets.put(name, left):
            self._assign(name)

    def budget_gone(self, name: str) -> None:
        """A budget is no more: its pods have none."""
        self.note(operations.BudgetGone(name))
        self._budgets.remove(name)
        self._assign(name)

    def pod_group(self, name: str, least: int, whole: bool = False) -> None:
        """None of a group's pods starts before so many of them are on hosts, or start with it. ``whole``: all of them
        that are on hosts are preempted together or not at all."""
        if not 0 <= least <= types.MOST_INSTANCES:
            most = types.MOST_INSTANCES
            raise StateError(f"pod group {name}: found {least} that start together, expected {most} at most")
        self.note(operations.PodGroup(name, least, whole))
        self.groups.put(name, least, whole)

    def pod_group_gone(self, name: str) -> None:
        """A group is no more: its pods start alone, where they are awake."""
        self.note(operations.PodGroupGone(name))
        self.groups.remove(name)

    def join_group(self, uid: str, group: str) -> None:
        """A pod is of this group from now on, which may come later; empty: of none."""
        self.note(operations.JoinGroup(uid, group))
        self.groups.join(self.instances.known(uid), group)

    def _assign(self, budget: str) -> None:
        """Pods that name a budget may have come before it."""
        for pod in self.pods.values():
            if pod.budget == budget:
                self._budgets.assign(pod.row, budget)

    # -- controllers -----------------------------------------------------------------------------------------------

    def controller(
        self, key: str, service: ServiceClass, approach: int, batch: bool, everything: bool = False, at: float = 0.0
    ) -> None:
        """A controller, or its class now; its approach stays what it was at first. ``everything``: from ``at`` on its
        promise counts also what it loses by its own or an operator's doing."""
        self.note(operations.Controller(key, service, approach, batch, everything, at))
        cls = self.tables.class_number(service)
        known = self.controllers.get(key)
        if known is None:
            q = self.tables.new_request()
            known = self.controllers[key] = Controller(key, q, service, approach, batch)
            record = self.tables.tb["requests"][q]
            record["approach"], record["batch"], record["loses"] = approach, batch, batch
            known.everything = everything
        known.service = service
        self.tables.tb["requests"]["cls"][known.q] = cls
        live_events.enter_request(self.tables.tb.state, known.q, max(snap(at), self.tables.clock))
        if known.everything != everything:
            self.instances.count_everything(known, everything, max(at, self.latest))

    def limits(self, key: str, limits: DisruptionLimits | None, at: float) -> None:
        """What a controller's instances may suffer from now on; what they have suffered still counts."""
        self.note(operations.Limits(key, limits, at))
        disruptions.limit(self.instances, self.controllers[key], limits, max(snap(at), self.latest))

    def desired(self, key: str, count: int, at: float) -> None:
        """How many instances a controller shall have (-1: not known); vacant ones in excess are no more."""
        self.note(operations.Desired(key, count, at))
        controller = self.controllers[key]
        controller.desired = count
        if 0 <= count < len(controller.rows) and controller.vacant:
            self.instances.drop_surplus(controller, self.instances.at(controller, at))

    def retire(self, key: str, at: float, patience: float = 0.0) -> None:
        """Instances that were vacant for so many seconds are no more: nobody replaced their pods."""
        self.note(operations.Retire(key, at, patience))
        controller = self.controllers[key]
        since = self.tables.tb["instances"]["since"]
        for row in [row for row in reversed(controller.vacant) if patience <= 0.0 or since[row] + patience <= at]:
            controller.vacant.remove(row)
            self.instances.depart(controller, row, self.instances.at(controller, at), False)

    def controller_gone(self, key: str, at: float) -> None:
        """A controller without pods is no more."""
        self.note(operations.ControllerGone(key, at))
        controller = self.controllers[key]
        if len(controller.vacant) != len(controller.rows):
            raise StateError(f"controller {key}: found incarnations, expected none when it goes")
        while controller.vacant:
            self.instances.depart(controller, controller.vacant.pop(), self.instances.at(controller, at), False)
        self.tables.limits.assign(controller.q, None, self.latest)
        live_events.end_request(self.tables.tb.state, controller.q)
        del self.controllers[key]
        self.tables.free_requests.append(controller.q)

    # -- pods ------------------------------------------------------------------------------------------------------

    def arrive(self, uid: str, name: str, key: str, spec: int, at: float, budget: str = "") -> None:
        """A pod that nobody has placed; it is asleep until :meth:`wake`."""
        self.note(operations.Arrive(uid, name, key, spec, at, budget))
        controller = self.controllers[key]
        row = self.instances.row_for(controller, name, self.instances.at(controller, at))
        self.instances.enter(controller, self._pod(uid, name, key, row, spec, budget))

    def found(self, uid: str, name: str, key: str, spec: int, host: str, since: float, budget: str = "") -> None:
        """A pod that runs on a host since then; it counts as started, not as ready."""
        self.note(operations.Found(uid, name, key, spec, host, since, budget))
        controller = self.controllers[key]
        at = self.instances.at(controller, since)
        row = self.instances.row_for(controller, name, at)
        pod = self._pod(uid, name, key, row, spec, budget)
        self.instances.enter(controller, pod)
        self.instances.place(pod, host, at)
        self.instances.bind(pod, at)

    def _pod(self, uid: str, name: str, key: str, row: int, spec: int, budget: str) -> Pod:
        """A pod that ends a vacancy goes on with what that was blamed on."""
        span = self.instances.blame.spans.get(row)
        return Pod(uid, name, key, row, spec, types.ASLEEP, budget=budget, cause=0 if span is None else span.cause)

    def bound_elsewhere(self, uid: str, host: str, at: float) -> None:
        """A pod that waits was bound to a host by somebody else."""
        self.note(operations.BoundElsewhere(uid, host, at))
        pod = self.instances.known(uid)
        at = self._at(pod, at)
        if pod.bound:
            raise StateError(f"incarnation {uid}: found bound to {pod.host}, expected bound nowhere")
        self.instances.unqueue(pod)
        if pod.state == types.PLACED:
            self.instances.take_off(pod, at)
        self.instances.place(pod, host, at)
        self.instances.bind(pod, at)

    def nominated(self, uid: str, host: str, at: float) -> None:
        """A host that was decided on before this engine began is kept for a pod, as if decided now."""
        self.note(operations.Nominated(uid, host, at))
        pod = self.instances.known(uid)
        if pod.state not in (types.ASLEEP, types.WAITING):
            raise StateError(f"incarnation {uid}: found {types.STATES[pod.state]}, expected asleep or waiting")
        self.instances.unqueue(pod)
        self.instances.place(pod, host, self._at(pod, at))
        self.instances.guard(pod)

    def prefer(self, uid: str, host: str) -> None:
        """Somebody else nominated a pod for a host, known or not yet (empty: for none any more): while it waits it goes
        there first, and those less important leave it that room."""
        self.note(operations.Prefer(uid, host))
        self.instances.known(uid)
        if host:
            self.preferred[uid] = host
        else:
            self.preferred.pop(uid, None)

    def _show_preferred(self, *, hide: bool = False) -> None:
        """Tell the tables for which hosts pods that wait are nominated, for the time of a pass."""
        nominated = self.tables.tb["nominated"]
        for uid, host in self.preferred.items():
            pod = self.pods[uid]
            shown = not hide and pod.state == types.WAITING
            nominated[pod.row] = self.hosts.get(host, -1) if shown else -1, 0

    def _at(self, pod: Pod, at: float) -> float:
        return self.instances.at(self.controllers[pod.key], at)

    def respec(self, uid: str, spec: int) -> None:
        """A pod is of another spec now (its marks, its rules)."""
        self.note(operations.Respec(uid, spec))
        self.instances.respec(self.instances.known(uid), spec)

    def wake(self, uid: str) -> None:
        """A pod that is asleep takes part in passes."""
        self.note(operations.Wake(uid))
        pod = self.instances.known(uid)
        if pod.state == types.ASLEEP:
            self.instances.queue(pod)

    def sleep(self, uid: str) -> None:
        """A pod that waits does not take part in passes."""
        self.note(operations.Sleep(uid))
        self.instances.unqueue(self.instances.known(uid))

    def ready(self, uid: str, at: float) -> None:
        """A pod on a host is ready."""
        self.note(operations.Ready(uid, at))
        pod = self.instances.known(uid)
        if pod.state in (types.PLACED, types.LEAVING) and not pod.ready:
            self.instances.blame.ready(self.controllers[pod.key], pod, self._at(pod, at))

    def unready(self, uid: str, at: float) -> None:
        """A pod on a host is ready no more, for the cause that it was last told to have."""
        self.note(operations.Unready(uid, at))
        pod = self.instances.known(uid)
        if pod.state in (types.PLACED, types.LEAVING) and pod.ready:
            self.instances.blame.unready(self.controllers[pod.key], pod, self._at(pod, at))

    def blame(self, uid: str, cause: int, at: float) -> None:
        """Whose doing it is, from now on, while a pod delivers nothing (a number of :data:`.causes.CAUSES`).

        At first it is the cluster's, or that of the vacancy that the pod ends. One that waits takes no part in passes
        while it is the workload's.
        """
        self.note(operations.Blame(uid, cause, at))
        pod = self.instances.known(uid)
        if pod.cause != cause:
            self.instances.reblame(pod, cause, self._at(pod, at))

    def blame_vacant(self, key: str, count: int, cause: int, at: float) -> None:
        """At least so many of a controller's vacant instances are vacant for a cause that is not the cluster's."""
        self.note(operations.BlameVacant(key, count, cause, at))
        controller = self.controllers[key]
        self.instances.blame_vacant(controller, count, cause, self.instances.at(controller, at))

    def drained(self, key: str, until: float) -> None:
        """Pods of a controller were drained in a maintenance window that lasts until then (0: none any more): the next
        leader, who finds others in their place, knows by this until when what these lose is an operator's doing.

        It is told that there is none once nobody's loss is taken to be an operator's for it: a ledger may be written
        when the window is over, and before that.
        """
        self.note(operations.Drained(key, until))
        self.controllers[key].drained = snap(until)

    def suspend(self, key: str, count: int, at: float) -> None:
        """So many instances that a controller would have are suspended by an operator (0: none any more)."""
        self.note(operations.Suspend(key, count, at))
        controller = self.controllers[key]
        at = self.instances.at(controller, at)
        controller.suspended_for = self.instances.blame.suspended(controller, at)
        controller.suspended = min(count, types.MOST_INSTANCES), at

    def bound(self, uid: str, at: float) -> None:
        """The binding of a decision went through."""
        self.note(operations.Bound(uid, at))
        self.instances.bind(self.instances.known(uid), snap(at))

    def doomed(self, uid: str) -> None:
        """Somebody else ends a pod: there is no point in preempting it."""
        self.note(operations.Doomed(uid))
        self.awaited.pop(uid, None)
        pod = self.instances.known(uid)
        self.instances.guard(pod)
        self.groups.doom(pod)

    def protect(self, uid: str, budget: str) -> None:
        """A pod is of this budget now; empty: of none."""
        self.note(operations.Protect(uid, budget))
        pod = self.instances.known(uid)
        pod.budget = budget
        self._budgets.assign(pod.row, budget)
        self.tables.tb.control["loosened"] += 1

    def refused(self, uid: str, at: float) -> None:
        """A decision could not be carried out; the pod is asleep, as if it had waited on."""
        self.note(operations.Refused(uid, at))
        pod = self.instances.known(uid)
        if pod.state != types.PLACED or pod.bound:
            raise StateError(f"incarnation {uid}: found {types.STATES[pod.state]}, expected placed and not bound")
        self.instances.take_off(pod, self._at(pod, at))
        host, pod.host = pod.host, ""
        self._hosts.forget_if_empty(host)

    def spared(self, uid: str, at: float) -> None:
        """A victim stays after all."""
        self.note(operations.Spared(uid, at))
        pod = self.instances.known(uid)
        if pod.state != types.LEAVING:
            return
        self.tables.settle()
        self.tables.ensure_capacity()
        live_events.put_back(self.tables.tb.state, pod.row, self._at(pod, at))
        pod.state, pod.preempted = types.PLACED, False

    def displace(self, uid: str, at: float) -> None:
        """A pod is about to be told to leave its host, so that its instance moves: a disruption of it begins."""
        self.note(operations.Displace(uid, at))
        pod = self.instances.known(uid)
        if pod.state == types.PLACED:
            live_events.disrupt(self.tables.tb.state, pod.row, self._at(pod, at))
            pod.told = True

    def displaced(self, uid: str, at: float, told: bool) -> None:
        """Whether a pod was told to leave after :meth:`displace`; if it was not, there was no disruption."""
        self.note(operations.Displaced(uid, at, told))
        pod = self.pods.get(uid)
        if not told and pod is not None and pod.state == types.PLACED:
            live_events.stays(self.tables.tb.state, pod.row, self._at(pod, at))
            pod.told = False

    def gone(self, uid: str, at: float, completed: bool = False, cause: int = 0) -> None:
        """A pod has ended. Its instance is vacant until the next one comes, or no more: it completed, or the
        controller has as many as it shall have. ``cause``: whose doing it is that it is vacant."""
        self.note(operations.Gone(uid, at, completed, cause))
        pod = self.instances.known(uid)
        self.preferred.pop(uid, None)
        self.instances.leave(pod, self._at(pod, at), completed, cause)

    # -- questions -------------------------------------------------------------------------------------------------

    def room(self, host: str) -> dict[str, int]:
        """What is free on a host, below 0 where more was given away than is there; nothing where it takes nobody."""
        if not self._hosts.is_up(host):
            return {}
        free = self.tables.tb["free"][self.hosts[host]].tolist()
        return dict(zip(self.tables.resources, free, strict=True))

    def is_open(self, uid: str, host: str) -> bool:
        """Whether a host takes pods, and its attributes and taints this one; room and neighbours apart."""
        return self.takes(self.pods[uid].spec, host)

    def takes(self, spec: int, host: str) -> bool:
        """As :meth:`is_open`, of pods of a spec."""
        term = self.specs[spec].term
        return self._hosts.is_up(host) and term.holds(self.tables.attributes[self.hosts[host]])

    def anybody_waits(self) -> bool:
        """Whether a pod is awake and waits; O(1)."""
        control = self.tables.tb.control
        return bool(control["queue"] + control["incoming"] > 0 or self.instances.kept_away)

    def until_crossing(self, now: float) -> float:
        """Seconds until a pass is due as somebody who waits meets its margin (docs/semantics.md, 'A pass'), as of the
        last pass; inf: nobody does. O(1)."""
        control, rules = self.tables.tb.control, self.tables.tb.rules
        at = max(float(control["crossing_at"]), float(control["crossed_at"] + rules["crossing_pause"]))
        return max(0.0, at - now)

    def is_to_plan(self, now: float) -> bool:
        """Whether some are given up, and it is time to look at that again, be there somebody who waits or not; O(1)."""
        return bool(self.plans.since) and now >= float(self.tables.tb.control["plan_at"])

    def waiting(self) -> list[str]:
        """Pods that are awake and wait, in no particular order."""
        tb = self.tables.tb
        rows: list[int] = tb["queue"]["row"][: int(tb.control["queue"])].tolist()
        rows += tb["incoming"]["row"][: int(tb.control["incoming"])].tolist()
        return [*map(self.uid_of_row.__getitem__, rows), *self.instances.aside, *self.instances.kept_away]

    def count_waiting(self) -> int:
        """How many these are; O(1)."""
        control = self.tables.tb.control
        return int(control["queue"] + control["incoming"]) + len(self.instances.aside) + len(self.instances.kept_away)

    # -- passes ----------------------------------------------------------------------------------------------------

    def run(self, now: float) -> Outcome:
        """One pass over all that wait and are awake, at ``now`` or, if later, at the latest instant told so far."""
        self.note(operations.Run(now))
        parts = self._pass(now, lambda: 0)
        while True:
            try:
                next(parts)
            except StopIteration as over:
                outcome: Outcome = over.value
                return outcome

    def run_in_parts(self, now: float, allowance: Allowance) -> Generator[None, None, Outcome]:
        """As :meth:`run`, part by part: what one decides is what the other does.

        ``allowance`` is asked before each part of the search how much work it may do, by and large. Until the end
        nothing may be told, and what is asked finds the pass half done. Closing the generator finishes the pass.
        """
        self.note(operations.Run(now))
        return self._pass(now, allowance)

    def _pass(self, now: float, allowance: Allowance) -> Generator[None, None, Outcome]:
        self.passes += 1
        now = max(snap(now), self.latest)
        self.tables.limits.refresh(now)
        self._wait_no_more(now)
        self._roused = self.instances.rouse(now)
        cycle = Cycle(self.tables, now, self._own.policy)
        self._show_preferred()
        self._deciding = True
        decisions: list[Decision] = []
        parts = self._decide(cycle, allowance, decisions)
        try:
            for _ in parts:
                yield
        except GeneratorExit:
            for _ in parts:
                pass
            self._over(cycle, decisions)
            raise
        return self._over(cycle, decisions)

    def _wait_no_more(self, now: float) -> None:
        """No eviction arrives any more that a former leader sent."""
        for uid in [uid for uid, until in self.awaited.items() if until <= now]:
            del self.awaited[uid]
            disruptions.was_not_told(self.instances, uid)

    def _decide(self, cycle: Cycle, allowance: Allowance, decisions: list[Decision]) -> Iterator[None]:
        yield from cycle.decide(allowance)
        for made in cycle.made(TOGETHER):
            decisions += [self._decided(one, cycle.now) for one in made]
            yield

    def _over(self, cycle: Cycle, decisions: list[Decision]) -> Outcome:
        outcome = Outcome(self.passes, tuple(decisions), cycle.waiting, cycle.operations, cycle.problem)
        self._show_preferred(hide=True)
        self.instances.calm(self._roused, cycle.now)
        self._deciding = False
        self.plans.see(self.tables.tb, [one.name for one in self.tables.classes], self.controllers)
        self.note(operations.Decided(outcome))
        return outcome

    def _decided(self, made: Made, now: float) -> Decision:
        row, h, metric, victims = made
        pod = self.pods[self.uid_of_row[row]]
        pod.state, pod.host, pod.bound, pod.ready = types.PLACED, self.tables.names[h], False, False
        self.instances.guard(pod)
        self.instances.starts(pod, now)
        gone, beyond = [], False
        may_go_beyond = self.specs[pod.spec].service.before_budgets
        for victim, its_metric in victims:
            other = self.pods[self.uid_of_row[victim]]
            other.state, other.preempted = types.LEAVING, True
            gone.append(Victim(other.uid, its_metric))
            beyond |= may_go_beyond and self._budgets.overdrawn(other.budget)
        return Decision(pod.uid, pod.host, metric, tuple(gone), beyond)
