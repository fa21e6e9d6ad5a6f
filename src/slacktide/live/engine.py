"""Decisions of a live cluster, from operations in their order; deterministic, no clock, no I/O.

Times are seconds since 1970, non-decreasing within a request (earlier ones count as
the latest known). Amounts are whole numbers: millicores, bytes, counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slacktide.errors import StateError
from slacktide.kernels import live
from slacktide.live import parts, restoring
from slacktide.live.parts import Controller, Decision, Incarnation, Outcome, Past, Victim
from slacktide.live.parts import snap as snap
from slacktide.live.passing import run_pass
from slacktide.live.surroundings import Journal as Journal
from slacktide.live.surroundings import Surroundings
from slacktide.model import ServiceClass
from slacktide.model.workload import INDEPENDENT


class Engine(Surroundings):
    """The state of a cluster and its policy.

    ``journal`` is told ``begin``, then every operation with its arguments before it is carried
    out, and after each ``run`` its outcome, under the name ``decided``.
    Raises :class:`StateError` for operations on what it does not know, and PluginError where a user's own policy,
    score or cost cannot be loaded.
    """

    # -- controllers -------------------------------------------------------------------------------------------------

    def controller(self, key: str, service: ServiceClass, approach: int, batch: bool) -> None:
        """A request, or its class now; its approach stays what it was at first."""
        self._note("controller", key, service, approach, batch)
        cls = self.tables.class_number(service)
        known = self.controllers.get(key)
        if known is None:
            q = self.tables.new_request()
            known = self.controllers[key] = Controller(key, q, service, approach, batch)
            record = self.tables.tb["requests"][q]
            record["approach"], record["batch"], record["loses"] = approach, batch, batch
        known.service = service
        self.tables.tb["requests"]["cls"][known.q] = cls

    def desired(self, key: str, count: int, at: float) -> None:
        """How many instances a request shall have (-1: not known); vacant ones in excess are no more."""
        self._note("desired", key, count, at)
        controller = self.controllers[key]
        controller.desired = count
        while 0 <= count < len(controller.rows) and controller.vacant:
            self._depart(controller, controller.vacant.pop(), self._at(controller, at), False)

    def retire(self, key: str, at: float, patience: float = 0.0) -> None:
        """Instances of a request that were vacant for so many seconds are no more: nobody replaced them."""
        self._note("retire", key, at, patience)
        controller = self.controllers[key]
        since = self.tables.tb["instances"]["since"]
        for row in [row for row in reversed(controller.vacant) if patience <= 0.0 or since[row] + patience <= at]:
            controller.vacant.remove(row)
            self._depart(controller, row, self._at(controller, at), False)

    def controller_gone(self, key: str, at: float) -> None:
        """A request without incarnations is no more."""
        self._note("controller_gone", key, at)
        controller = self.controllers[key]
        if len(controller.vacant) != len(controller.rows):
            raise StateError(f"controller {key}: found incarnations, expected none when it goes")
        while controller.vacant:
            self._depart(controller, controller.vacant.pop(), self._at(controller, at), False)
        del self.controllers[key]
        self.tables.free_requests.append(controller.q)

    # -- incarnations ----------------------------------------------------------------------------------------------

    def _at(self, controller: Controller, at: float) -> float:
        """``at`` on the grid, and no earlier than what the request's ledger knows."""
        at = max(snap(at), float(self.tables.tb["requests"]["since"][controller.q]))
        self.latest = max(self.latest, at)
        return at

    def _known(self, uid: str) -> Incarnation:
        if uid not in self.incarnations:
            raise StateError(f"incarnation {uid}: not known")
        return self.incarnations[uid]

    def arrive(self, uid: str, name: str, key: str, spec: int, at: float, budget: str = "") -> None:
        """An incarnation that nobody has placed; it is asleep until :meth:`wake`."""
        self._note("arrive", uid, name, key, spec, at, budget)
        controller = self.controllers[key]
        row = self._row_for(controller, name, self._at(controller, at))
        self._enter(controller, Incarnation(uid, name, key, row, spec, parts.ASLEEP, budget=budget))

    def found(self, uid: str, name: str, key: str, spec: int, host: str, since: float, budget: str = "") -> None:
        """An incarnation that runs on a host since then; it counts as started, not as ready."""
        self._note("found", uid, name, key, spec, host, since, budget)
        controller = self.controllers[key]
        at = self._at(controller, since)
        one = Incarnation(uid, name, key, self._row_for(controller, name, at), spec, parts.ASLEEP, budget=budget)
        self._enter(controller, one)
        self._place(one, host, at)
        one.bound = True
        self._guard(one, at)

    def _place(self, one: Incarnation, host: str, at: float) -> None:
        self.tables.settle()
        self.tables.make_room()
        live.place(self.tables.tb.state, one.row, self.hosts[host], at)
        one.host, one.state = host, parts.PLACED

    def bound_elsewhere(self, uid: str, host: str, at: float) -> None:
        """An incarnation that waits was bound to a host by somebody else."""
        self._note("bound_elsewhere", uid, host, at)
        one = self._known(uid)
        at = self._at(self.controllers[one.key], at)
        if one.bound:
            raise StateError(f"incarnation {uid}: found bound to {one.host}, expected bound nowhere")
        if one.state == parts.WAITING:
            self._to_sleep(one)
        elif one.state == parts.PLACED:
            live.forget(self.tables.tb.state, one.row, at)
            one.ready = False
        self._place(one, host, at)
        one.bound = True
        self._guard(one, at)

    def nominated(self, uid: str, host: str, at: float) -> None:
        """A place that was decided on before this engine began is kept for an incarnation, as if decided now."""
        self._note("nominated", uid, host, at)
        one = self._known(uid)
        if one.state not in (parts.ASLEEP, parts.WAITING):
            raise StateError(f"incarnation {uid}: found {parts.STATES[one.state]}, expected asleep or waiting")
        if one.state == parts.WAITING:
            self._to_sleep(one)
        self._place(one, host, self._at(self.controllers[one.key], at))
        self.tables.tb["guard"][one.row] = float("inf")

    def room(self, host: str) -> dict[str, int]:
        """What is free on a host, below 0 where more was given away than is there; nothing where it takes nobody."""
        if not self._is_up(host):
            return {}
        free = self.tables.tb["free"][self.hosts[host]].tolist()
        return dict(zip(self.tables.resources, free, strict=True))

    def is_open(self, uid: str, host: str) -> bool:
        """Whether a host takes incarnations, and its attributes and taints this one; room and neighbours apart."""
        term = self.specs[self.incarnations[uid].spec].term
        return self._is_up(host) and term.holds(self.tables.attributes[self.hosts[host]])

    def _is_up(self, host: str) -> bool:
        h = self.hosts.get(host)
        return h is not None and not self.tables.tb["hosts"]["down"][h]

    def _enter(self, controller: Controller, one: Incarnation) -> None:
        self.incarnations[one.uid] = one
        self.uid_of_row[one.row] = one.uid
        controller.rows[one.row] = one.name
        tb = self.tables.tb
        tb["instances"]["kind"][one.row] = self.tables.kind_of(self.specs[one.spec])
        tb["owner"][one.row] = controller.q
        tb["budget"][one.row] = self.budgets.get(one.budget, -1)

    def _row_for(self, controller: Controller, name: str, at: float) -> int:
        """The vacant row that an incarnation continues: its namesake's, else the longest vacant; else a new one."""
        for row in controller.vacant:
            if controller.rows[row] == name:
                controller.vacant.remove(row)
                return row
        if controller.vacant:
            return controller.vacant.popleft()
        row = self.tables.new_row()
        self.tables.tb["owner"][row] = controller.q
        live.join(self.tables.tb.state, row, at, False)
        return row

    def respec(self, uid: str, spec: int) -> None:
        """An incarnation is of another spec now (its marks, its rules)."""
        self._note("respec", uid, spec)
        one = self._known(uid)
        one.spec = spec
        kind = self.tables.kind_of(self.specs[spec])
        if one.state == parts.PLACED:
            self.tables.settle()
            live.change_kind(self.tables.tb.state, one.row, kind)
            return
        waits = one.state == parts.WAITING
        if waits:
            self._to_sleep(one)
        self.tables.tb["instances"]["kind"][one.row] = kind
        if waits:
            self._to_queue(one)

    def wake(self, uid: str) -> None:
        """An incarnation that is asleep takes part in passes."""
        self._note("wake", uid)
        one = self._known(uid)
        if one.state == parts.ASLEEP:
            self._to_queue(one)

    def sleep(self, uid: str) -> None:
        """A waiting incarnation does not take part in passes."""
        self._note("sleep", uid)
        one = self._known(uid)
        if one.state == parts.WAITING:
            self._to_sleep(one)

    def _to_queue(self, one: Incarnation) -> None:
        self.tables.make_room()
        tb = self.tables.tb
        live.enqueue(tb.state, one.row, float(tb["instances"]["since"][one.row]))
        one.state = parts.WAITING

    def _to_sleep(self, one: Incarnation) -> None:
        live.dequeue(self.tables.tb.state, one.row)
        one.state = parts.ASLEEP

    def ready(self, uid: str, at: float) -> None:
        """An incarnation on a host is ready."""
        self._note("ready", uid, at)
        one = self._known(uid)
        if one.state in (parts.PLACED, parts.LEAVING) and not one.ready:
            one.ready = True
            live.ready(self.tables.tb.state, one.row, self._at(self.controllers[one.key], at))

    def unready(self, uid: str, at: float) -> None:
        """An incarnation on a host is ready no more."""
        self._note("unready", uid, at)
        one = self._known(uid)
        if one.state in (parts.PLACED, parts.LEAVING) and one.ready:
            one.ready = False
            live.unready(self.tables.tb.state, one.row, self._at(self.controllers[one.key], at))

    def bound(self, uid: str, at: float) -> None:
        """The binding of a decision went through."""
        self._note("bound", uid, at)
        one = self._known(uid)
        one.bound = True
        self._guard(one, snap(at))

    def _guard(self, one: Incarnation, at: float) -> None:
        self.tables.tb["guard"][one.row] = at + snap(self.config.policy.min_running)

    def doomed(self, uid: str) -> None:
        """Somebody else ends an incarnation: there is no point in preempting it."""
        self._note("doomed", uid)
        self.tables.tb["guard"][self._known(uid).row] = float("inf")

    def protect(self, uid: str, budget: str) -> None:
        """An incarnation is of this budget now; empty: of none."""
        self._note("protect", uid, budget)
        one = self._known(uid)
        one.budget = budget
        self.tables.tb["budget"][one.row] = self.budgets.get(budget, -1)
        self.tables.tb.control["loosened"] += 1

    def refused(self, uid: str, at: float) -> None:
        """A decision could not be carried out; the incarnation is asleep, as if it had waited on."""
        self._note("refused", uid, at)
        one = self._known(uid)
        if one.state != parts.PLACED or one.bound:
            raise StateError(f"incarnation {uid}: found {parts.STATES[one.state]}, expected placed and not bound")
        live.forget(self.tables.tb.state, one.row, self._at(self.controllers[one.key], at))
        one.state, one.ready = parts.ASLEEP, False
        host, one.host = one.host, ""
        self._bury(host)

    def spared(self, uid: str, at: float) -> None:
        """A victim stays after all."""
        self._note("spared", uid, at)
        one = self._known(uid)
        if one.state != parts.LEAVING:
            return
        self.tables.settle()
        self.tables.make_room()
        live.put_back(self.tables.tb.state, one.row, self._at(self.controllers[one.key], at))
        one.state, one.preempted = parts.PLACED, False

    def gone(self, uid: str, at: float, completed: bool = False) -> None:
        """An incarnation has ended. Its instance is vacant until the next one comes, or no more: it completed, or the
        request has as many as it shall have."""
        self._note("gone", uid, at, completed)
        one = self._known(uid)
        controller = self.controllers[one.key]
        at = self._at(controller, at)
        if one.state == parts.WAITING:
            self._to_sleep(one)
        if one.state in (parts.PLACED, parts.LEAVING):
            lose = controller.batch and not completed
            live.gone(self.tables.tb.state, one.row, at, lose, one.preempted)
            if one.host in self.going:
                self._bury(one.host)
        del self.incarnations[uid]
        del self.uid_of_row[one.row]
        surplus = 0 <= controller.desired < len(controller.rows)
        if completed or surplus:
            row = one.row if completed else self._hand_over(controller, one.row, at)
            self._depart(controller, row, at, completed)
        else:
            controller.vacant.append(one.row)

    def _hand_over(self, controller: Controller, row: int, at: float) -> int:
        """The row that is no more, of a request with one too many: the youngest, whose incarnation continues ``row``.

        So a rolling update keeps the ledgers of independent instances, which are the rows'.
        """
        admitted = self.tables.tb["admission"]
        youngest = max(controller.rows, key=lambda other: (float(admitted[other]), other))
        if controller.approach != INDEPENDENT or youngest == row or youngest not in self.uid_of_row:
            return row
        one = self.incarnations[self.uid_of_row[youngest]]
        if one.state == parts.LEAVING:
            return row
        was, host, ready = one.state, one.host, one.ready
        if was == parts.WAITING:
            self._to_sleep(one)
        elif was == parts.PLACED:
            live.gone(self.tables.tb.state, youngest, at, False, False)
        del self.uid_of_row[youngest]
        one.row = row
        self._enter(controller, one)
        if was == parts.PLACED:
            self._place(one, host, at)
            self.tables.tb["guard"][row] = self.tables.tb["guard"][youngest]
            if ready:
                live.ready(self.tables.tb.state, row, at)
        elif was == parts.WAITING:
            self._to_queue(one)
        return youngest

    def _depart(self, controller: Controller, row: int, at: float, completed: bool) -> None:
        """A vacant row is live no more; its history goes to the request's past."""
        instance, past = self.tables.tb["instances"][row], controller.past
        self._add_past(past, instance, at - float(self.tables.tb["admission"][row]))
        live.depart(self.tables.tb.state, row, at, completed)
        del controller.rows[row]
        self.tables.free_rows.append(row)

    @staticmethod
    def _add_past(past: Past, instance: Any, lifetime: float) -> None:
        past.running += float(instance["running"])
        past.startup_first += float(instance["startup_first"])
        past.startup_restarts += float(instance["startup_restarts"])
        past.discarded += float(instance["discarded"])
        past.lifetime += lifetime
        past.preemptions += int(instance["preemptions"])
        past.starts += int(instance["starts"])

    # -- after a restart --------------------------------------------------------------------------------------------

    def restore(self, key: str, books: Mapping[str, Any] | None, pods: Sequence[Mapping[str, Any]], now: float) -> None:
        """Go on from the books of a controller (:func:`slacktide.live.books.export`), without any from its pods.

        ``pods`` are all of its pods now (:class:`slacktide.live.sightings.PodNow`). The controller must be known and
        have no instances yet, its hosts and specs too; its desired count should be told before. Pods on no host are
        asleep afterwards, the others bound. Raises :class:`StateError` where the books are broken, of another
        approach, or of a newer version; then nothing has changed.
        """
        self._note("restore", key, None if books is None else dict(books), [dict(pod) for pod in pods], now)
        journal, self.journal = self.journal, None
        try:
            restoring.restore(self, key, books, pods, now)
        finally:
            self.journal = journal

    def waiting(self) -> list[str]:
        """Incarnations that are awake and wait, in no particular order."""
        tb = self.tables.tb
        rows = [*tb["queue"]["row"][: int(tb.control["queue"])], *tb["incoming"]["row"][: int(tb.control["incoming"])]]
        return [self.uid_of_row[int(row)] for row in rows]

    # -- passes ----------------------------------------------------------------------------------------------------

    def run(self, now: float) -> Outcome:
        """One pass over all that wait and are awake, at ``now`` or, if later, at the latest instant told so far."""
        self._note("run", now)
        self.passes += 1
        made, waiting, operations, problem = run_pass(self.tables, max(snap(now), self.latest), self._own.policy)
        decisions = tuple(self._decided(*one) for one in made)
        outcome = Outcome(self.passes, decisions, waiting, operations, problem)
        self._note("decided", outcome)
        return outcome

    def _decided(self, row: int, h: int, metric: float, victims: list[tuple[int, float]]) -> Decision:
        one = self.incarnations[self.uid_of_row[row]]
        one.state, one.host, one.bound, one.ready = parts.PLACED, self.tables.names[h], False, False
        self.tables.tb["guard"][row] = float("inf")
        gone = []
        for victim, its_metric in victims:
            other = self.incarnations[self.uid_of_row[victim]]
            other.state, other.preempted = parts.LEAVING, True
            gone.append(Victim(other.uid, its_metric))
        return Decision(one.uid, one.host, metric, tuple(gone))
