"""Events AtRisk, Missed and Recovered about a workload itself, told when the state of its promise changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import STATES, Overview
from slacktide.engine.ledger.slo_status import SloStatus, slo_status
from slacktide.kube.client.metadata import Reference
from slacktide.kube.publish.availability_document import message
from slacktide.kube.translate.owners import Target

LEAST_SECONDS = 10.0
"""A workload whose state changes again sooner is told about once, with the state that it has by then."""
MOST_A_SECOND, MOST_AT_ONCE = 20.0, 20.0
"""Changes that are told; the others wait, and are told as they stand by then."""
BAD = ("AtRisk", "Missed")
RECOVERED = "Recovered"


class Record(Protocol):
    """As :meth:`.events.EventRecorder.record`."""

    def __call__(self, reference: Reference, reason: str, note: str, *, event_type: str, action: str) -> None: ...


class StateEvents:
    """What was told of whom. ``compare`` is called about every second, with all controllers or some at a time.

    A state that a ledger of before said counts as told, so that a new leader repeats nothing, and tells what changed
    while nobody led. ``targets`` are the workloads by the keys of their controllers.
    """

    def __init__(
        self, record: Record, engine: Engine, targets: Mapping[str, Target], clock: Callable[[], float]
    ) -> None:
        self._record, self._engine, self._targets, self._clock = record, engine, targets, clock
        self._told: dict[str, str] = {}
        self._told_at: dict[str, float] = {}
        self._due: OrderedDict[str, None] = OrderedDict()
        """Those to be told about, who waits longest first."""
        self._allowance, self._allowed_at = MOST_AT_ONCE, clock()

    def knew(self, states: Iterable[tuple[str, str]]) -> None:
        """Key and state of workloads whose ledgers somebody before has written."""
        self._told.update((key, state) for key, state in states if state in STATES)

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._told.pop(key, None)
        self._told_at.pop(key, None)
        self._due.pop(key, None)

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
        self._tell_due(now, found.at)

    def _tell_due(self, now: float, at: float) -> None:
        """Tell about those whose turn it is, as they stand at ``at``. Of those who need not be told about any more only
        some are passed over at a time."""
        self._allowance = min(MOST_AT_ONCE, self._allowance + MOST_A_SECOND * max(0.0, now - self._allowed_at))
        self._allowed_at = now
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

    def _tell(self, target: Target, reason: str, note: str) -> None:
        reference = Reference(target.api_version, target.kind, target.namespace, target.name, target.uid)
        event_type = "Normal" if reason == RECOVERED else "Warning"
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
