"""A controller as its checkpoint says it was: the base from which :mod:`.restore` goes on.

Instances are found again from sums and counts, with the help of what their pods say. The checkpoints of aggregated and
concurrent controllers do not know one instance from
another, and need not: only sums count. So whatever fits the counts is right, up to what
the pods cannot tell: which of several that vanished had been ready is taken to be the
first, and in the accounting ``restart`` who is in its first start, the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slacktide.engine.core import types
from slacktide.engine.core.blame import Span
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Pod, snap
from slacktide.engine.ledger.accounts import Accounts, hold_request, install, install_request
from slacktide.engine.ledger.checkpoint import LEAVING, PLACED, RECORD, VACANT, WAITING, Checkpoint, hashed
from slacktide.engine.ledger.pod_observation import PodObservation
from slacktide.engine.ledger.slo_status import SUMS, accrue, stand
from slacktide.kernels.drive import live_events
from slacktide.kernels.tables import schema as codes
from slacktide.kernels.tables.window_records import MOST_OUTAGES
from slacktide.model import INDEPENDENT
from slacktide.model.causes import CAUSES, CLUSTER, OPERATOR
from slacktide.qos.availability import ACCOUNTINGS

UP, STARTING, NOWHERE = range(3)
RESOLUTION = 1.0
"""Seconds, of the API server's timestamps."""


@dataclass(slots=True)
class _Guess:
    """An instance at the checkpoint's instant; ``pod`` None: it vanished. ``at_risk``: what it did (batch)."""

    pod: PodObservation | None
    stage: int
    leaving: bool = False
    restart: bool = False
    fresh: bool = False
    at_risk: float | None = None


def expand(said: Checkpoint, pods: Sequence[PodObservation], *, batch: bool) -> tuple[Checkpoint, int]:
    """The checkpoint with a record for each instance, and how many leaving ones were spared in the meantime.

    ``pods`` are all of the controller now, oldest first. ``sums`` and ``counts`` stay those of all instances.
    """
    counts = said.counts
    with_pod = counts["waiting"] + counts["starting"] + counts["up"]
    survivors = _survivors(said.at, pods)[:with_pod]
    guesses = _stages(said, survivors, with_pod - len(survivors))
    _first_starts(counts["starting"] - counts["restarting"], guesses)
    fresh = counts["fresh"]
    for guess in [one for one in guesses if one.stage == NOWHERE][:fresh]:
        guess.fresh = True
        fresh -= 1
    told = _told_to_leave(counts["leaving"], guesses)
    if batch:
        _spread_risk(said, guesses)
    records = np.zeros(len(guesses) + counts["vacant"], RECORD)
    records["state"] = VACANT
    for i, guess in enumerate(guesses):
        records[i] = _record(said, guess)
    records["starts"][len(guesses) :] = 1
    records["starts"][len(guesses) : len(guesses) + fresh] = 0
    names = tuple(guess.pod.name if guess.pod else "" for guess in guesses) + ("",) * counts["vacant"]
    return replace(said, records=records, names=names), counts["leaving"] - told


def _survivors(at: float, pods: Sequence[PodObservation]) -> list[PodObservation]:
    """Pods that were there at the checkpoint's instant, then those that may have been."""
    certain, close = [], []
    for pod in pods:
        end = float("inf") if pod.ended is None else pod.ended
        if pod.created <= at - RESOLUTION and end > at:
            certain.append(pod)
        elif pod.created <= at and end > at - RESOLUTION:
            close.append(pod)
    return certain + close


def _stages(said: Checkpoint, survivors: Sequence[PodObservation], vanished: int) -> list[_Guess]:
    """What each instance with a pod did, those that vanished last, the ready ones of them first."""
    at = said.at
    guesses: list[_Guess] = []
    lost_it: list[_Guess] = []
    close: list[_Guess] = []  # their timestamps are too coarse to tell; nor does it matter, for it lasted no second
    came_back: list[_Guess] = []  # ready now, but not since before: may have been ready before and lost it
    for pod in survivors:
        bound = bool(pod.host) and pod.since <= at
        before = bound and pod.ready_since <= at - RESOLUTION
        guess = _Guess(pod, NOWHERE if not bound else UP if before and pod.ready else STARTING)
        if bound and not before:
            (close if pod.ready_since <= at else came_back if pod.ready else lost_it).append(guess)
        guesses.append(guess)
    up = said.counts["up"] - sum(guess.stage == UP for guess in guesses)
    starting = said.counts["starting"] - sum(guess.stage == STARTING for guess in guesses)
    for guess in lost_it[: max(0, up)]:
        guess.stage = UP
        starting += 1
    up -= len(lost_it)
    for guess in guesses[::-1]:
        if up > vanished and guess.pod is not None and guess.pod.created > at - RESOLUTION:
            guesses.remove(guess)  # rather the replacement of one that was up, right after
            vanished += 1
    gone = [UP] * max(0, min(vanished, up))
    gone += [STARTING] * max(0, min(vanished - len(gone), starting))
    gone += [NOWHERE] * (vanished - len(gone))
    for guess in [guess for guess in (*close, *came_back) if guess in guesses][: max(0, up - vanished)]:
        guess.stage = UP
    return guesses + [_Guess(None, stage) for stage in gone]


def _first_starts(first: int, guesses: Sequence[_Guess]) -> None:
    for guess in guesses:
        if guess.stage == STARTING:
            guess.restart = first <= 0
            first -= 1


def _told_to_leave(number: int, guesses: Sequence[_Guess]) -> int:
    """Mark those that were leaving: pods that still are, then those that vanished. How many that were."""
    marked = 0
    for still_there in (True, False):
        for guess in guesses:
            there = guess.pod is not None and guess.pod.leaving
            if marked < number and guess.stage != NOWHERE and (there if still_there else guess.pod is None):
                guess.leaving = True
                marked += 1
    return marked


def _spread_risk(said: Checkpoint, guesses: Sequence[_Guess]) -> None:
    """Running seconds of the pods of those that vanished: what is left of all."""
    rest = said.at_risk
    for guess in guesses:
        if guess.pod is not None and guess.stage != NOWHERE:
            derived = max(0.0, said.at - guess.pod.ready_since) if guess.stage == UP and guess.pod.ready else 0.0
            guess.at_risk = said.risks.get(hashed(guess.pod.uid), derived)
            rest -= guess.at_risk
    vanished = [guess for guess in guesses if guess.pod is None and guess.stage != NOWHERE]
    for guess in vanished:
        guess.at_risk = snap(max(0.0, rest) / len(vanished))


def _record(said: Checkpoint, guess: _Guess) -> Any:
    """The instance's part of the sums, as far as its pod tells; the rest counts as past."""
    record = np.zeros(1, RECORD)[0]
    pod, at = guess.pod, said.at
    record["state"] = WAITING if guess.stage == NOWHERE else LEAVING if guess.leaving else PLACED
    record["starts"] = (not guess.fresh) if guess.stage == NOWHERE else 1 + guess.restart
    record["running"] = guess.at_risk or 0.0
    if pod is not None:
        record["uid"] = hashed(pod.uid)
        record["lifetime"] = max(0.0, at - pod.created)
    if guess.stage == NOWHERE:
        return record
    if pod is not None:
        record["age"] = max(0.0, at - pod.since)
        ready = pod.ready and pod.ready_since <= at
        record["startup"] = min(pod.ready_since - pod.since, float(record["age"])) if ready else 0.0
    elif guess.leaving:
        record["age"] = record["startup"] = snap(said.leaving_startup / max(1, said.counts["leaving"]))
    if guess.stage == STARTING:
        record["startup"] = np.inf
    elif pod is not None and guess.at_risk is not None:
        record["startup"], record["running"] = max(0.0, float(record["age"]) - guess.at_risk), 0.0
    return record


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
