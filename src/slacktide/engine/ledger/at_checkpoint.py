"""A controller as its checkpoint says it was: the base from which :mod:`.restore` goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slacktide.engine.core import types
from slacktide.engine.core.blame import Span
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Pod, snap
from slacktide.engine.ledger.accounts import Accounts, hold_request, install, install_request
from slacktide.engine.ledger.checkpoint import LEAVING, PLACED, VACANT, Checkpoint, hashed
from slacktide.engine.ledger.checkpoint_expand import expand
from slacktide.engine.ledger.pod_observation import PodObservation
from slacktide.engine.ledger.slo_status import SUMS, accrue, stand
from slacktide.kernels.drive import live_events
from slacktide.kernels.tables import schema as codes
from slacktide.kernels.tables.window_records import MOST_OUTAGES
from slacktide.model import INDEPENDENT
from slacktide.model.causes import CAUSES, CLUSTER, OPERATOR
from slacktide.qos.availability import ACCOUNTINGS


@dataclass(slots=True)
class MissingPod:
    """A pod that is no more, in which an instance runs, or ran: leaving in the tables. ``end``: it is known when."""

    row: int
    name: str
    preempted: bool = False
    runs: bool = False
    end: bool = False


class AtCheckpoint:
    """One controller; ``base``: the instant at which its ledger starts."""

    def __init__(self, engine: Engine, controller: types.Controller, now: float) -> None:
        self.engine, self.controller, self.now = engine, controller, now
        self.tb = engine.tables.tb
        self.blame = engine.instances.blame
        self.base = float("-inf")
        self.up: set[str] = set()  # uids ready at the base
        self.missing: dict[str, MissingPod] = {}  # by uid; of pods that vanished by a made-up one, oldest first
        self.until: dict[int, float] = {}  # of rows whose pod before was drained: the end of the maintenance window

    def begin(self, checkpoint: Checkpoint, seen: list[PodObservation]) -> None:
        """All instances that the checkpoint knows, in the pods that there are of them."""
        self.base = min(snap(checkpoint.at), self.now)
        full, spared = checkpoint, 0
        if checkpoint.approach != INDEPENDENT:
            full, spared = expand(checkpoint, seen, batch=self.controller.batch)
            hold_request(self.tb, self.controller.q)
        by_uid = {hashed(pod.uid): pod for pod in seen}
        vacant_causes = iter(checkpoint.vacant_causes)
        for i, (record, name) in enumerate(zip(full.records, full.names, strict=True)):
            row = self._row_of(record, name)
            if self.controller.approach == INDEPENDENT:
                self._go_on(row, checkpoint.accounts, i)
            cause = checkpoint.blamed.get(int(record["uid"]), CLUSTER)
            if record["state"] == VACANT:
                cause = next(vacant_causes, CLUSTER)
            self._install(row, record, name, by_uid.get(int(record["uid"])) if record["uid"] else None, cause)
            if cause == OPERATOR and checkpoint.drained:
                self.until[row] = max(checkpoint.drained, self.base)
        self._settle_sums(full, spared)
        if checkpoint.approach != INDEPENDENT:
            self.engine.tables.ensure_room_for_outages(MOST_OUTAGES)
            install_request(self.tb, self.controller.q, checkpoint.accounts, checkpoint.stretch, self.base)
        self.controller.lost = [checkpoint.lost.get(name, 0.0) for name in CAUSES]
        self.controller.excused = checkpoint.excused
        self.controller.drained = checkpoint.drained
        seconds, count = checkpoint.suspended
        self.controller.suspended_for = seconds + count * (self.now - self.base)
        self.controller.suspended = (self.controller.suspended[0], self.now)

    def _row_of(self, record: Any, name: str) -> int:
        """An instance as of the base, of which nobody knows yet what its pod does."""
        row = self.engine.instances.new_row(self.controller, self.base)
        self.tb["admission"][row] = self.base - float(record["lifetime"])
        instance = self.tb["instances"][row : row + 1]
        copied = ("running", "startup_first", "startup_restarts", "discarded", "overhead", "starts", "preemptions")
        for field in copied:
            instance[field] = record[field]
        instance["since"] = self.base - float(record["age"])
        self.controller.rows[row] = name
        return row

    def _go_on(self, row: int, saved: Accounts | None, i: int) -> None:
        """The account of an instance as it was saved; where none was, it begins now."""
        cls = int(self.tb["requests"]["cls"][self.controller.q])
        if saved is not None:
            self.engine.tables.ensure_room_for_outages(len(saved.outages_of(i)))
            install(self.tb, row, cls, saved.records[i], saved.outages_of(i), self.base)
        else:
            self.tb["accounts"]["cls"][row] = cls + 1
        live_events.enter(self.tb.state, row, self.base)

    def _install(self, row: int, record: Any, name: str, pod: PodObservation | None, cause: int) -> None:
        """The pod of an instance is ``pod``, or it vanished or has none. ``cause``: whose doing it is that it delivers
        nothing at the base, where that is known."""
        instance, since = self.tb["instances"][row : row + 1], float(self.tb["instances"]["since"][row])
        state, on_host = int(record["state"]), int(record["state"]) in (PLACED, LEAVING)
        instance["starts"] -= on_host  # until it starts
        if state == VACANT:
            self.controller.vacant.append(row)
            if cause:
                self.blame.begin(self.controller, row, cause, self.base, on_host=False)
        elif pod is None or pod.ended is not None:
            missing = MissingPod(row, name, preempted=state == LEAVING, end=pod is not None)
            self.missing[pod.uid if pod else f"row {row}"] = missing
            if on_host:
                self.begin_leaving(missing, since)
                if self._goes_on(row, record, since, cause):
                    self.up.update([pod.uid] if pod else [])
        else:
            self._install_pod(row, record, pod, since, cause, on_host=on_host and bool(pod.host))

    def _goes_on(self, row: int, record: Any, since: float, cause: int) -> bool:
        """What runs on a host was ready at the base, or excused for this cause; whether it was ready."""
        up = bool(record["startup"] < float("inf"))
        if up:
            live_events.ready(self.tb.state, row, since + float(record["startup"]))
        if not cause:
            return up
        if up and not self.controller.everything:  # the ledger of an independent instance counts it as ready
            self.blame.spans[row] = Span(cause, self.base, True)
        else:
            self.blame.begin(self.controller, row, cause, self.base, on_host=True)
        return False

    def _install_pod(
        self, row: int, record: Any, pod: PodObservation, since: float, cause: int, *, on_host: bool
    ) -> None:
        one = self.enter(row, pod)
        if not on_host:
            one.cause = cause
            if cause:
                self.blame.begin(self.controller, row, cause, self.base, on_host=False)
            return
        self.engine.instances.place(one, pod.host, since)
        self.bound(one, pod, since)
        one.cause = cause
        if self._goes_on(row, record, since, cause):
            one.ready = True
            self.up.add(pod.uid)
        if record["state"] == LEAVING:
            one.preempted = pod.leaving
            self.tb["instances"]["preemptions"][row] -= not pod.leaving

    def bound(self, one: Pod, pod: PodObservation, since: float) -> None:
        self.engine.instances.bind(one, since)
        if pod.leaving:  # there is nothing left to preempt
            self.engine.instances.guard(one)

    def enter(self, row: int, pod: PodObservation) -> Pod:
        span = self.blame.spans.get(row)
        cause = CLUSTER if span is None else span.cause
        one = Pod(pod.uid, pod.name, self.controller.key, row, pod.spec, types.ASLEEP, budget=pod.budget, cause=cause)
        self.engine.instances.enter(self.controller, one)
        return one

    def begin_leaving(self, missing: MissingPod, since: float) -> None:
        """A missing pod has been in its start-up since then; the request's sums must be up to then."""
        row, record = missing.row, self.tb["requests"][self.controller.q : self.controller.q + 1]
        instance = self.tb["instances"][row : row + 1]
        instance["starts"] += 1
        instance["state"], instance["since"], instance["startup"] = codes.LEAVING, since, float("inf")
        record["leaving_never"] += 1
        record["leaving_restart"] += instance["starts"] == 1
        missing.runs = True

    def _settle_sums(self, full: Checkpoint, spared: int) -> None:
        """The request's sums and past, so that all together is what the checkpoint says."""
        controller, past = self.controller, self.controller.past
        had = accrue(self.tb, controller.rows, len(controller.rows), self.base)
        if full.approach == INDEPENDENT:
            past.preemptions, past.starts = full.counts["preemptions"], full.counts["starts"]
        else:
            past.preemptions = full.counts["preemptions"] - spared - int(had.records["preemptions"].sum())
            past.starts = full.counts["starts"] - int(had.records["starts"].sum())
        for name in SUMS:
            present = 0.0 if full.approach == INDEPENDENT else float(had[name].sum())
            setattr(past, name, full.sums[name] - present)
        stood = stand(self.tb, (controller,), self.base).records
        record = self.tb["requests"][controller.q : controller.q + 1]
        record["total"], record["received"] = stood["lifetime"], stood["received"]
        for name in ACCOUNTINGS:
            record[f"together_{name}"] = full.together[name]
        refund = full.leaving_startup * spared / max(1, full.counts.get("leaving", 0))
        record["overhead"] = max(0.0, full.sums["overhead"] - snap(refund))
        record["since"], record["weighed"] = self.base, float("-inf")

    def end(self, missing: MissingPod, at: float, completed: bool) -> None:
        """Nobody runs in a missing pod any more."""
        self.blame.end(self.controller, missing.row, at, on_host=missing.runs)
        if missing.runs:
            lose = self.controller.batch and not completed
            self.engine.instances.end_incarnation(missing.row, at, lose, missing.preempted)
