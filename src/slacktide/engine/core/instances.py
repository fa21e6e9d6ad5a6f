"""The instances of a live cluster's controllers, and the pods that they run in one after the other.

An instance is what a promise is kept to: a row of the tables. It goes on while its pods come and go; without a pod it
is *vacant*, which counts as waiting.
"""

from __future__ import annotations

from typing import Any, Protocol

from slacktide.engine.core import types
from slacktide.engine.core.blame import Blame
from slacktide.engine.core.budgets import Budgets
from slacktide.engine.core.hosts import Hosts
from slacktide.engine.core.pod_groups import PodGroups
from slacktide.engine.core.types import Controller, Past, Pod, snap
from slacktide.errors import StateError
from slacktide.kernels.drive import live_events
from slacktide.model.causes import CLUSTER, OPERATOR
from slacktide.model.workload import INDEPENDENT
from slacktide.state.growth import Growing
from slacktide.state.live_limits import recovering
from slacktide.state.spec import Spec

TIMESTAMP_SECONDS = 1.0
"""When a pod was created is known in whole seconds."""


class Observer(Protocol):
    """Who is told what becomes of instances."""

    def entered(self, controller: Controller, pod: Pod) -> None:
        """An instance runs in this pod now."""

    def departs(self, controller: Controller, row: int, at: float, completed: bool) -> None:
        """An instance is about to be live no more."""


class Instances:
    """Controllers by key, pods by uid, specs by number; ``latest`` is the last instant that anything was told for."""

    def __init__(
        self, tables: Growing, hosts: Hosts, budgets: Budgets, min_running: float, observer: Observer | None
    ) -> None:
        self.tables, self.hosts, self.budgets = tables, hosts, budgets
        self.controllers: dict[str, Controller] = {}
        self.pods: dict[str, Pod] = {}
        self.uid_of_row: dict[int, str] = {}
        self.specs: dict[int, Spec] = {}
        self.groups = PodGroups(tables)
        self.latest = 0.0
        self.blame = Blame(tables)
        self.aside: dict[str, None] = {}
        """Pods that wait and are excused for their workload's doing: they are in no queue of the tables."""
        self.kept_away: dict[str, None] = {}
        """The same for an operator's doing, who keeps them from their nodes."""
        self._min_running = snap(min_running)
        self._observer = observer

    def at(self, controller: Controller, at: float) -> float:
        """``at`` on the grid, and no earlier than what the controller's ledger knows."""
        at = max(snap(at), float(self.tables.tb["requests"]["since"][controller.q]))
        self.latest = max(self.latest, at)
        return at

    def known(self, uid: str) -> Pod:
        """The pod; raises :class:`StateError` where there is none."""
        if uid not in self.pods:
            raise StateError(f"incarnation {uid}: not known")
        return self.pods[uid]

    # -- an instance and its pod -----------------------------------------------------------------------------------

    def row_for(self, controller: Controller, name: str, at: float) -> int:
        """The vacant instance that a pod continues: its namesake's, else the longest vacant; else a new one."""
        for row in controller.vacant:
            if controller.rows[row] == name:
                controller.vacant.remove(row)
                return row
        return controller.vacant.popleft() if controller.vacant else self.new_row(controller, at)

    def new_row(self, controller: Controller, at: float) -> int:
        """A new instance, vacant."""
        row = self.tables.new_row()
        self.tables.tb["owner"][row] = controller.q
        self.tables.tb["disruption_account"][row] = controller.account
        live_events.join(self.tables.tb.state, row, at, False)
        return row

    def enter(self, controller: Controller, pod: Pod) -> None:
        """The instance ``pod.row`` runs in this pod from now on."""
        self.pods[pod.uid] = pod
        self.uid_of_row[pod.row] = pod.uid
        controller.rows[pod.row] = pod.name
        tb = self.tables.tb
        tb["instances"]["kind"][pod.row] = self.tables.kind_of(self.specs[pod.spec])
        tb["owner"][pod.row] = controller.q
        live_events.enter(tb.state, pod.row, float(tb["instances"]["since"][pod.row]))
        self.budgets.assign(pod.row, pod.budget)
        tb["pod_group"][pod.row], tb["next_in_group"][pod.row] = self.groups.numbers.get(pod.group, -1), -1
        if self._observer is not None:
            self._observer.entered(controller, pod)

    def rename(self, uid: str, new_uid: str, name: str) -> Pod:
        """A pod goes on under another name; no operation of the record, for it happens in a dry run only."""
        pod = self.pods[new_uid] = self.pods.pop(uid)
        pod.uid, pod.name = new_uid, name
        self.uid_of_row[pod.row] = new_uid
        self.controllers[pod.key].rows[pod.row] = name
        self.groups.rename(pod, uid)
        return pod

    def place(self, pod: Pod, host: str, at: float) -> None:
        """A pod that does not wait in the queue is on a host."""
        controller = self.controllers[pod.key]
        self.blame.end(controller, pod.row, at, on_host=False)
        self.tables.settle()
        self.tables.ensure_capacity()
        live_events.place(self.tables.tb.state, pod.row, self.hosts.numbers[host], at)
        pod.host, pod.state = host, types.PLACED
        self.starts(pod, at)

    def starts(self, pod: Pod, at: float) -> None:
        """A pod was put on a host just now: its start-up is excused, where what it does not deliver is."""
        if pod.cause and not pod.ready and pod.row not in self.blame.spans:
            self.blame.begin(self.controllers[pod.key], pod.row, pod.cause, at, on_host=True)

    def take_off(self, pod: Pod, at: float) -> None:
        """A pod was not bound after all: it is asleep, as if it had waited on."""
        controller = self.controllers[pod.key]
        self.blame.end(controller, pod.row, at, on_host=True)
        live_events.forget(self.tables.tb.state, pod.row, at)
        pod.state, pod.ready = types.ASLEEP, False
        if pod.cause:
            self.blame.begin(controller, pod.row, pod.cause, at, on_host=False)

    def bind(self, pod: Pod, at: float) -> None:
        """A pod is known to run where it was placed: its least running time begins, where anybody may preempt it."""
        pod.bound = True
        if self.specs[pod.spec].spared:
            self.guard(pod)
            return
        limits = self.controllers[pod.key].limits
        least = self._min_running if limits is None or limits.min_running is None else snap(limits.min_running)
        live_events.spare(self.tables.tb.state, pod.row, at + least)

    def guard(self, pod: Pod) -> None:
        """There is no point in preempting a pod."""
        live_events.spare(self.tables.tb.state, pod.row, float("inf"))

    def queue(self, pod: Pod) -> None:
        """A pod that is asleep waits in the queue; aside, where it is excused."""
        if self.blame.is_excused(pod.row):
            (self.kept_away if pod.cause == OPERATOR else self.aside)[pod.uid] = None
            pod.state = types.WAITING
            return
        self.tables.ensure_capacity()
        tb = self.tables.tb
        live_events.enqueue(tb.state, pod.row, float(tb["instances"]["since"][pod.row]))
        pod.state = types.WAITING

    def unqueue(self, pod: Pod) -> None:
        """A pod that waits in the queue, or not, is asleep."""
        if pod.state == types.WAITING:
            if pod.uid in self.aside:
                del self.aside[pod.uid]
            elif pod.uid in self.kept_away:
                del self.kept_away[pod.uid]
            else:
                live_events.dequeue(self.tables.tb.state, pod.row)
            pod.state = types.ASLEEP

    def reblame(self, pod: Pod, cause: int, at: float) -> None:
        """What a pod does not deliver has another cause from now on."""
        waits = pod.state == types.WAITING
        self.unqueue(pod)
        self.blame.change(self.controllers[pod.key], pod, cause, at)
        if waits:
            self.queue(pod)

    def count_everything(self, controller: Controller, everything: bool, at: float) -> None:
        """A controller's promise counts every loss from now on, or only the cluster's."""
        at = self.at(controller, at)
        excused = [(row, self.blame.spans[row]) for row in controller.rows if row in self.blame.spans]
        pods = {row: self.pods[uid] for row, _ in excused if (uid := self.uid_of_row.get(row)) is not None}
        waiting = [pod for pod in pods.values() if pod.state == types.WAITING]
        for pod in waiting:
            self.unqueue(pod)
        on_hosts = {row for row, pod in pods.items() if pod.state in (types.PLACED, types.LEAVING)}
        for row, _ in excused:
            self.blame.end(controller, row, at, on_host=row in on_hosts)
        controller.everything = everything
        for row, span in excused:
            self.blame.begin(controller, row, span.cause, at, on_host=row in on_hosts)
        for pod in waiting:
            self.queue(pod)

    def rouse(self, now: float) -> list[Pod]:
        """Pods that wait for a node, and that an operator keeps from theirs, take part in a pass: until it is over
        they wait as any other."""
        roused = [self.pods[uid] for uid in self.kept_away]
        for pod in roused:
            controller = self.controllers[pod.key]
            self.unqueue(pod)
            self.blame.end(controller, pod.row, self.at(controller, now), on_host=False)
            self.queue(pod)
        return roused

    def calm(self, roused: list[Pod], now: float) -> None:
        """A pass is over: those of them that still wait are excused again."""
        for pod in roused:
            if pod.state == types.WAITING:
                controller = self.controllers[pod.key]
                self.unqueue(pod)
                at = self.at(controller, now)
                self.blame.begin(controller, pod.row, pod.cause, at, on_host=False)
                self.queue(pod)

    def respec(self, pod: Pod, spec: int) -> None:
        """A pod is of another spec."""
        before, pod.spec = self.specs[pod.spec], spec
        if pod.bound and before.spared != self.specs[spec].spared:
            self.bind(pod, self.latest)
        kind = self.tables.kind_of(self.specs[spec])
        if pod.state == types.PLACED:
            self.tables.settle()
            live_events.change_kind(self.tables.tb.state, pod.row, kind)
            return
        waits = pod.state == types.WAITING
        self.unqueue(pod)
        self.tables.tb["instances"]["kind"][pod.row] = kind
        live_events.enter(self.tables.tb.state, pod.row, float(self.tables.tb.control["now"]))
        if waits:
            self.queue(pod)

    # -- an instance without its pod -------------------------------------------------------------------------------

    def leave(self, pod: Pod, at: float, completed: bool, cause: int) -> None:
        """A pod has ended: its instance is vacant, or no more, where it completed or there are enough without it.
        ``cause``: whose doing that was; work that is lost by another's than the cluster's is not charged."""
        controller = self.controllers[pod.key]
        self.unqueue(pod)
        on_host = pod.state in (types.PLACED, types.LEAVING)
        self.blame.end(controller, pod.row, at, on_host=on_host)
        if on_host:
            lose = controller.batch and not completed and (cause == CLUSTER or controller.everything)
            self.end_incarnation(pod.row, at, lose, pod.preempted)
            self.hosts.forget_if_empty(pod.host)
        pod.state = types.ASLEEP
        self.groups.part(pod)
        del self.pods[pod.uid]
        del self.uid_of_row[pod.row]
        if completed:
            self.depart(controller, pod.row, at, True)
        else:
            self.vacate(controller, pod.row, at, cause)

    def end_incarnation(self, row: int, at: float, lose: bool, preempted: bool) -> None:
        """What an instance ran in has ended, and what it did is lost, or not. Time that was forgiven was no work."""
        live_events.gone(self.tables.tb.state, row, at, lose, preempted)
        if lose and row in self.blame.forgiven:
            live_events.give_back(self.tables.tb.state, row, self.blame.forgiven[row])

    def vacate(self, controller: Controller, row: int, at: float, cause: int) -> None:
        """An instance has no pod any more: it is vacant, or one is no more where the controller has too many."""
        if 0 <= controller.desired < len(controller.rows):
            departs = self._hand_over(controller, row, at)
            self._recovers_elsewhere(controller, departs, row)
            self.depart(controller, departs, at, False)
        else:
            controller.vacant.append(row)
            if cause:
                self.blame.begin(controller, row, cause, at, on_host=False)

    def blame_vacant(self, controller: Controller, count: int, cause: int, at: float) -> None:
        """At least so many of a controller's vacant instances, the longest vacant first, are vacant for this cause;
        of the others those that were so for it before are not any more."""
        spans = self.blame.spans
        excused = [row for row in controller.vacant if row in spans]
        for row in [row for row in controller.vacant if row not in spans][: max(0, count - len(excused))]:
            self.blame.begin(controller, row, cause, at, on_host=False)
        theirs = [row for row in excused if spans[row].cause == cause]
        for row in theirs[::-1][: max(0, len(excused) - count)]:
            self.blame.end(controller, row, at, on_host=False)

    def drop_surplus(self, controller: Controller, at: float) -> None:
        """Vacant instances beyond the desired number are no more."""
        while 0 <= controller.desired < len(controller.rows) and controller.vacant:
            self.depart(controller, controller.vacant.pop(), at, False)

    def _hand_over(self, controller: Controller, row: int, at: float) -> int:
        """Which instance is no more, where there is one too many: the youngest, whose pod continues ``row``.

        So a rolling update keeps the ledgers of independent instances.
        """
        admitted = self.tables.tb["admission"]
        youngest = max(controller.rows, key=lambda other: (float(admitted[other]), other))
        if controller.approach != INDEPENDENT or youngest == row or youngest not in self.uid_of_row:
            return row
        pod = self.pods[self.uid_of_row[youngest]]
        if pod.state == types.LEAVING:
            return row
        was, host, ready = pod.state, pod.host, pod.ready
        self.unqueue(pod)
        self.blame.end(controller, youngest, at, on_host=was == types.PLACED)
        if was == types.PLACED:
            live_events.gone(self.tables.tb.state, youngest, at, False, False)
        del self.uid_of_row[youngest]
        pod.row = row
        self.enter(controller, pod)
        if was == types.PLACED:
            self.place(pod, host, at)
            live_events.spare(self.tables.tb.state, row, float(self.tables.tb["guard"][youngest]))
            if ready:
                live_events.ready(self.tables.tb.state, row, at)
            return youngest
        if pod.cause:
            self.blame.begin(controller, row, pod.cause, at, on_host=False)
        if was == types.WAITING:
            self.queue(pod)
        return youngest

    def _recovers_elsewhere(self, controller: Controller, departs: int, row: int) -> None:
        """An instance goes because there is one too many: if a disruption of it has not ended, it goes on in the one
        that came in its place, in ``row`` or else the youngest that came since, if that is not ready."""
        at, admitted = self.tables.tb["disrupted_at"], self.tables.tb["admission"]
        if not recovering(self.tables.tb, [departs]):
            return
        others = [other for other in controller.rows if other != departs and at[other] == float("-inf")]
        since = float(at[departs]) - TIMESTAMP_SECONDS
        others = [other for other in others if (other == row or admitted[other] >= since) and not self._is_up(other)]
        if others:
            heir = row if row in others else max(others, key=lambda other: (float(admitted[other]), other))
            at[heir], at[departs] = at[departs], float("-inf")

    def _is_up(self, row: int) -> bool:
        pod = self.pods.get(self.uid_of_row.get(row, ""))
        return pod is not None and pod.ready

    def depart(self, controller: Controller, row: int, at: float, completed: bool) -> None:
        """A vacant instance is live no more; its history goes to the controller's past."""
        self.blame.end(controller, row, at, on_host=False)
        self.blame.forgiven.pop(row, None)
        if self._observer is not None:
            self._observer.departs(controller, row, at, completed)
        tb = self.tables.tb
        _add(controller.past, tb["instances"][row], at - float(tb["admission"][row]))
        live_events.depart(tb.state, row, at, completed)
        del controller.rows[row]
        self.tables.free_rows.append(row)


def _add(past: Past, instance: Any, lifetime: float) -> None:
    past.running += float(instance["running"])
    past.startup_first += float(instance["startup_first"])
    past.startup_restarts += float(instance["startup_restarts"])
    past.discarded += float(instance["discarded"])
    past.lifetime += lifetime
    past.preemptions += int(instance["preemptions"])
    past.starts += int(instance["starts"])
