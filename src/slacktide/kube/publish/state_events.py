"""What is told of a workload: its Availability object, for people and for the next leader, and events about it.

Events AtRisk, Missed and Recovered are told when the state of its promise changes, GivenUp and TakenBack when plans
begin or cease to give it up; ShortLife about a class whose workloads live much shorter than its window.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.plans import GivenUp
from slacktide.engine.explain import giving_up
from slacktide.engine.ledger.overview import STATES, Overview
from slacktide.engine.ledger.slo_status import SloStatus, accrue, slo_status
from slacktide.kube.client.quantities import text_of
from slacktide.kube.resources.objects import API_VERSION, Reference, rfc3339
from slacktide.kube.translate.owners import Target, is_followed
from slacktide.model.durations import write_duration
from slacktide.model.service_class import class_name

LOG = logging.getLogger(__name__)


def identity_of(target: Target) -> dict[str, Any]:
    """Of which object of a namespace a ledger is."""
    return {"apiVersion": target.api_version, "kind": target.kind, "name": target.name, "uid": target.uid}


def reference(target: Target) -> dict[str, Any]:
    """The owner reference by which the garbage collector removes a ledger with its controller."""
    return identity_of(target) | {"controller": False, "blockOwnerDeletion": False}


def metadata_of(target: Target) -> dict[str, Any]:
    """Those of a ledger. It has an owner only where we do not hear that its workload is deleted."""
    found: dict[str, Any] = {"name": target.ledger, "namespace": target.namespace}
    return found if is_followed(target) else found | {"ownerReferences": [reference(target)]}


def breaks_at(found: SloStatus, at: float) -> float | None:
    """The earliest instant at which a kept promise can break: if all stopped at ``at``, and none came back.

    What the slack holds back for a start-up is no loss, and counts here. None where the promise cannot break, or is
    broken already.
    """
    if found.slack is None or found.state in ("Missed", "Unknown"):
        return None
    return at + max(0.0, found.slack + found.alpha)


def room_text(asks: Sequence[tuple[str, int]]) -> str:
    """What somebody asks for, as people write it; places for pods and what has no name of its own are left out."""
    said = [f"{name} {text_of(name, amount)}" for name, amount in asks if name in ("cpu", "memory") or "." in name]
    return ", ".join(said)


def given_up_text(found: GivenUp | None) -> str:
    """What the plan has to say of a workload that it gives up."""
    return "" if found is None else giving_up.sentence(found, room_text(found.asks))


def message(found: SloStatus, class_is_lost: str = "") -> str:
    """That its class is no more, or not for it, in these words; else that the plan gives it up, and why a kept promise
    is AtRisk; else nothing."""
    if class_is_lost:
        return class_is_lost
    return "; ".join(filter(None, (given_up_text(found.given_up), _at_risk(found))))


def _at_risk(found: SloStatus) -> str:
    if found.state != "AtRisk" or found.slack is None:
        return ""
    left, budget = max(0.0, found.slack + found.alpha), 1.0 - found.promised
    used = f", and {(1.0 - found.delivered) / budget:.0%} of the error budget is used" if budget > 0.0 else ""
    return (
        f"kept so far; if all pods stopped now it would break in {left:.1f} s, less than the margin of class "
        f"{found.service}{used}"
    )


def document(
    target: Target,
    books: dict[str, Any],
    found: SloStatus,
    deleted: float | None = None,
    class_is_lost: str = "",
) -> dict[str, Any]:
    """The Availability of a controller; ``deleted``: when it was; ``class_is_lost``: that its class is no more, or not
    for it, in words.

    It stays when its controller goes, for another one of that name, where we hear that it goes.
    """
    said = _document(target, books, found, class_is_lost)
    if deleted is not None:
        words = "the workload was deleted; a new one of the same namespace, kind and name continues this Availability"
        status = {"state": "Unknown", "message": words, "slackSeconds": None, "breaksAt": None, "givenUp": None}
        said["status"] |= status | {"running": 0, "waiting": 0, "deletedAt": rfc3339(deleted)}
    return said


def _given_up(found: GivenUp | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "since": rfc3339(found.since),
        "instances": found.instances,
        "promises": found.promises,
        "carried": found.carried,
        "nextPlan": rfc3339(found.next_plan),
    }


def _document(target: Target, books: dict[str, Any], found: SloStatus, class_is_lost: str) -> dict[str, Any]:
    breaks, losses = breaks_at(found, books["at"]), found.losses
    return {
        "apiVersion": API_VERSION,
        "kind": "Availability",
        "metadata": metadata_of(target),
        "status": {
            "class": found.service,
            "promised": found.promised,
            "delivered": round(found.delivered, 6),
            "deliveredAlways": round(found.delivered_always, 6),
            "deliveredRestart": round(found.delivered_restart, 6),
            "deliveredNever": round(found.delivered_never, 6),
            "slackSeconds": None if found.slack is None else round(found.slack, 3),
            "breaksAt": None if breaks is None else rfc3339(breaks),
            "state": found.state,
            "message": message(found, class_is_lost),
            "running": found.running,
            "waiting": found.waiting,
            "lost": found.lost,
            "starving": found.starving,
            "goodSeconds": round(losses.good, 3),
            "lostSeconds": {
                "cluster": round(losses.cluster, 3),
                "workload": round(losses.workload, 3),
                "operator": round(losses.operator, 3),
            },
            "givenUp": _given_up(found.given_up),
            "preemptions": found.preemptions,
            "at": rfc3339(books["at"]),
            "target": identity_of(target),
            "accumulators": books,
        },
    }


SHORT_LIFE = "ShortLife"
"""The reason of the event."""


class ShortLives:
    """Says once of each class, while this replica leads, that a workload lived less than a tenth of the window and is
    gone.

    A promise over the window says nothing of such a life: with a whole budget all of it may be lost.
    """

    def __init__(self, record: Record, engine: Engine) -> None:
        self._record, self._engine = record, engine
        self._told: set[str] = set()

    def ends(self, target: Target, at: float) -> None:
        """A workload is deleted; its ledger was settled ``at``, seconds since 1970."""
        controller = self._engine.controllers[target.key]
        window, rows, name = controller.service.window, controller.rows, class_name(controller.service.name)
        if window is None or controller.batch or name in self._told or not rows:
            return
        lived = float(accrue(self._engine.tables.tb, rows, len(rows), at)["lifetime"].max())
        # Where instances went before, those that are left may be younger than the workload.
        if controller.past.lifetime or not window.is_much_longer_than(lived):
            return
        self._told.add(name)
        note = (
            f"deleted after {write_duration(round(lived))}, less than a tenth of the window of class {name} "
            f"({window.name}); for workloads that live for so short a time use a class with a promise over "
            "their lifetime (window: lifetime); reported once per class"
        )
        LOG.warning("%s %s/%s: %s", target.kind, target.namespace, target.name, note)
        reference = Reference(target.api_version, target.kind, target.namespace, target.name, target.uid)
        self._record(reference, SHORT_LIFE, note, event_type="Normal", action="Promising")


LEAST_SECONDS = 10.0
"""A workload whose state changes again sooner is told about once, with the state that it has by then."""
MOST_A_SECOND, MOST_AT_ONCE = 20.0, 20.0
"""Changes that are told; the others wait, and are told as they stand by then."""
BAD = ("AtRisk", "Missed")
RECOVERED = "Recovered"
GIVEN_UP, TAKEN_BACK = "GivenUp", "TakenBack"


class Record(Protocol):
    """As :meth:`.events.EventRecorder.record`."""

    def __call__(self, reference: Reference, reason: str, note: str, *, event_type: str, action: str) -> None: ...


class StateEvents:
    """What was told of whom. ``compare`` is called about every second, with all controllers or some at a time.

    A state that a ledger of before said counts as told, so that a new leader repeats nothing, and tells what changed
    while nobody led. What plans say of a workload is told once it has lasted for :data:`LEAST_SECONDS`: the first ones
    follow each other quickly. ``targets`` are the workloads by the keys of their controllers.
    """

    def __init__(
        self, record: Record, engine: Engine, targets: Mapping[str, Target], clock: Callable[[], float]
    ) -> None:
        self._record, self._engine, self._targets, self._clock = record, engine, targets, clock
        self._told: dict[str, str] = {}
        self._told_at: dict[str, float] = {}
        self._due: OrderedDict[str, None] = OrderedDict()
        """Those to be told about, who waits longest first."""
        self._given_up: set[str] = set()
        """Of whom it was told last that they are given up."""
        self._differ: dict[str, float] = {}
        """Those whom plans see otherwise than was told, and since when."""
        self._plan_due: OrderedDict[str, None] = OrderedDict()
        self._allowance, self._allowed_at = MOST_AT_ONCE, clock()

    def knew(self, states: Iterable[tuple[str, str]], given_up: Iterable[str] = ()) -> None:
        """Key and state of workloads whose ledgers somebody before has written; keys of those that these give up."""
        self._told.update((key, state) for key, state in states if state in STATES)
        self._given_up.update(given_up)

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._told.pop(key, None)
        self._told_at.pop(key, None)
        self._due.pop(key, None)
        self._given_up.discard(key)
        self._differ.pop(key, None)
        self._plan_due.pop(key, None)

    def compare(self, found: Overview) -> None:
        """How controllers stand by now; O(controllers).

        Changes wait for their turn, so that the API server does not get many events at once while pods are bound.
        """
        now = self._clock()
        for one, number in zip(found.controllers, found.state.tolist(), strict=True):
            state, told = STATES[number], self._told.get(one.key, "")
            if state == told:
                self._due.pop(one.key, None)
            elif now - self._told_at.get(one.key, float("-inf")) >= LEAST_SECONDS:
                if reason_of(state, told) and one.key in self._targets:
                    self._due[one.key] = None
                else:
                    self._due.pop(one.key, None)
                    self._told[one.key] = state
        for one, is_given_up in zip(found.controllers, np.isfinite(found.given_up).tolist(), strict=True):
            self._compare_plan(one.key, is_given_up, now)
        self._tell_plans(now, found.at)
        self._tell_due(now, found.at)

    def _compare_plan(self, key: str, is_given_up: bool, now: float) -> None:
        if is_given_up == (key in self._given_up):
            self._differ.pop(key, None)
            self._plan_due.pop(key, None)
        elif now - self._differ.setdefault(key, now) >= LEAST_SECONDS and key in self._targets:
            self._plan_due[key] = None

    def _tell_due(self, now: float, at: float) -> None:
        """Tell about those whose turn it is, as they stand at ``at``. Of those who need not be told about any more only
        some are passed over at a time."""
        self._allow(now)
        for _ in range(min(len(self._due), int(MOST_AT_ONCE))):
            if self._allowance < 1.0:
                break
            key, _none = self._due.popitem(last=False)
            target = self._targets.get(key)
            if target is None or key not in self._engine.controllers:
                continue
            found, told = slo_status(self._engine, key, at), self._told.get(key, "")
            self._told[key] = found.state
            if reason := reason_of(found.state, told):
                self._allowance -= 1.0
                self._told_at[key] = now
                self._tell(target, reason, note_of(found, told))

    def _allow(self, now: float) -> None:
        self._allowance = min(MOST_AT_ONCE, self._allowance + MOST_A_SECOND * max(0.0, now - self._allowed_at))
        self._allowed_at = now

    def _tell_plans(self, now: float, at: float) -> None:
        """As :meth:`_tell_due`, of what plans say."""
        self._allow(now)
        while self._plan_due and self._allowance >= 1.0:
            key, _none = self._plan_due.popitem(last=False)
            self._differ.pop(key, None)
            target = self._targets.get(key)
            if target is None or key not in self._engine.controllers:
                continue
            found = slo_status(self._engine, key, at)
            if (found.given_up is None) == (key not in self._given_up):
                continue  # it changed again
            self._allowance -= 1.0
            self._given_up ^= {key}
            if found.given_up is not None:
                self._tell(target, GIVEN_UP, given_up_text(found.given_up))
            else:
                self._tell(target, TAKEN_BACK, f"no longer given up by the plan; {note_of(found, '')}")

    def _tell(self, target: Target, reason: str, note: str) -> None:
        reference = Reference(target.api_version, target.kind, target.namespace, target.name, target.uid)
        event_type = "Normal" if reason in (RECOVERED, TAKEN_BACK) else "Warning"
        self._record(reference, reason, note, event_type=event_type, action="Promising")


def reason_of(state: str, before: str) -> str:
    """The reason of the event that tells of a state after the state told last; empty where nothing is told."""
    if state in BAD and state != before:
        return state
    return RECOVERED if before in BAD and state == "Kept" else ""


def note_of(found: SloStatus, before: str) -> str:
    """One sentence about how a promise stands; ``before`` is the state told last, empty where none was."""
    was = f"was {before}; " if before in BAD else ""
    shares = f"delivered {found.delivered:.6f}, promised {found.promised:g} of class {found.service}"
    pods = f"{found.running} of {found.running + found.waiting} pods ready"
    why = message(found)
    return f"{was}{shares}; {pods}" + (f"; {why}" if why else "")
