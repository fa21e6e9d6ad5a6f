"""What is counted for Prometheus as it happens: :class:`Meter` listens to the engine's operations."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from slacktide.engine.core.operations import OPERATIONS, Operation
from slacktide.engine.core.types import Decision, Outcome
from slacktide.engine.ledger.overview import STATES, overview
from slacktide.kube.observe.availability_metrics import bonus_owed
from slacktide.model.service_class import class_name

if TYPE_CHECKING:
    from slacktide.engine.core.engine import Engine
import asyncio

SAMPLE_SECONDS = 0.02


class LoopLag:
    """Samples the event loop's lateness. ``longest`` is in seconds, too short by :data:`SAMPLE_SECONDS` at most."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.latest = 0.0

    async def run(self) -> None:
        """Samples until cancelled."""
        while True:
            due = time.monotonic() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            self.latest = max(0.0, time.monotonic() - due)
            self.longest = max(self.longest, self.latest)


ATTEMPT_BUCKETS = tuple(0.001 * 2**i for i in range(15))
SLI_BUCKETS = tuple(0.01 * 2**i for i in range(20))
COUNT_BUCKETS = (1.0, 2.0, 4.0, 8.0, 16.0)
VICTIM_BUCKETS = (*COUNT_BUCKETS, 32.0, 64.0)
PASS_BUCKETS = tuple(0.0001 * 2**i for i in range(16))
STARTUP_BUCKETS = tuple(0.25 * 2**i for i in range(12))
MOST_ATTEMPTS = 15
"""More attempts of one pod count as ``15+``, as kube-scheduler has it."""

ADDED, FAILED, BACK = "UnschedulablePodAdd", "ScheduleAttemptFailure", "BackoffComplete"
WOKEN = "ForceActivate"


@dataclass(slots=True)
class Histogram:
    """How many observations were at most each bound (the last: more than all), and their sum."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulated counts by bound, as Prometheus wants them."""
        found, so_far = [], 0
        for bound, count in zip((*(f"{one:.6g}" for one in self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            found.append((bound, float(so_far)))
        return found


@dataclass(slots=True)
class Waiting:
    """One pod that was not bound yet: since when, its passes so far, and the pass count when it was last woken."""

    since: float
    attempts: int = 0
    woken_at: int = -1
    began: float = 0.0
    """Clock reading at the beginning of the pass that decided on it."""


class Meter:
    """A journal (:data:`slacktide.engine.core.operations.Journal`): call it with every operation.

    ``engine`` gives the engine whose operations these are, once there is one.
    """

    def __init__(self, engine: Callable[[], Engine | None], clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self._engine = engine
        self.attempts: Counter[str] = Counter()
        self.attempt_seconds = {one: Histogram(ATTEMPT_BUCKETS) for one in ("scheduled", "unschedulable", "error")}
        self.sli_seconds: dict[str, Histogram] = {}
        self.attempts_needed = Histogram(COUNT_BUCKETS)
        self.preemption_attempts = 0
        self.victims = Histogram(VICTIM_BUCKETS)
        self.preempted: Counter[str] = Counter()
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.pass_seconds = Histogram(PASS_BUCKETS)
        self.startup_seconds = Histogram(STARTUP_BUCKETS)
        self.bound_by_others = 0
        self.finished: Counter[tuple[str, str]] = Counter()
        self.owed: Counter[str] = Counter()
        self.in_flight: set[str] = set()
        self._waits: dict[str, Waiting] = {}
        self._fresh: set[str] = set()
        self._starting: dict[str, float] = {}
        self._passes = 0
        self._began = 0.0
        self._heard: dict[type[Operation], Callable[..., None]] = {
            OPERATIONS[name]: getattr(self, f"_{name}")
            for name in ("arrive", "wake", "sleep", "run", "bound", "refused", "ready", "gone",
                         "bound_elsewhere", "controller_gone")
        }  # fmt: skip

    def __call__(self, operation: Operation) -> None:
        """Hear of an operation."""
        heard = self._heard.get(type(operation))
        if heard is not None:
            heard(*astuple(operation))

    # -- operations ------------------------------------------------------------------------------------------------

    def _arrive(self, uid: str, _name: str, _key: str, _spec: int, at: float, _budget: str = "") -> None:
        self._waits[uid] = Waiting(at)

    def _wake(self, uid: str) -> None:
        wait = self._waits.get(uid)
        if wait is None or wait.woken_at >= 0:
            return
        wait.woken_at = self._passes
        self._fresh.add(uid)
        if not wait.attempts:
            self.incoming[ADDED, "active"] += 1
        else:
            self.incoming[BACK if wait.began else WOKEN, "active"] += 1

    def _sleep(self, uid: str) -> None:
        wait = self._waits.get(uid)
        if wait is not None and wait.woken_at >= 0:
            wait.attempts += self._passes - wait.woken_at
            wait.woken_at, wait.began = -1, 0.0
            self._fresh.discard(uid)

    def _run(self, _now: float) -> None:
        self._passes += 1
        self._began = self.clock()

    def passed(self, outcome: Outcome) -> None:
        """Hear of the end of a pass; :meth:`decided` is to hear of each decision before anything else happens."""
        took = self.clock() - self._began
        self.pass_seconds.observe(took)
        if outcome.waiting:
            self.attempts["unschedulable"] += outcome.waiting
            self.attempt_seconds["unschedulable"].observe(took, outcome.waiting)
        self._fresh.difference_update(one.uid for one in outcome.decisions)
        if self._fresh:
            self.incoming[FAILED, "unschedulable"] += len(self._fresh)
            self._fresh.clear()

    def decided(self, decision: Decision) -> None:
        """Hear of one decision of the last pass."""
        engine = self._engine()
        self.in_flight.add(decision.uid)
        wait = self._waits.get(decision.uid)
        if wait is not None:
            wait.attempts += self._passes - max(wait.woken_at, 0)
            wait.woken_at, wait.began = -1, self._began
        if decision.victims:
            self.preemption_attempts += 1
            self.victims.observe(len(decision.victims))
        for victim in decision.victims if engine is not None else ():
            key = engine.pods[victim.uid].key  # type: ignore[union-attr]  # asked in the line above
            self.preempted[class_name(engine.controllers[key].service.name)] += 1  # type: ignore[union-attr]

    def _bound(self, uid: str, at: float) -> None:
        self._starting[uid] = at
        if uid not in self.in_flight:
            return
        self.in_flight.discard(uid)
        self.attempts["scheduled"] += 1
        wait = self._waits.pop(uid, None)
        if wait is None:
            return
        self.attempt_seconds["scheduled"].observe(self.clock() - wait.began)
        self.attempts_needed.observe(wait.attempts)
        label = f"{MOST_ATTEMPTS}+" if wait.attempts >= MOST_ATTEMPTS else str(wait.attempts)
        if label not in self.sli_seconds:
            self.sli_seconds[label] = Histogram(SLI_BUCKETS)
        self.sli_seconds[label].observe(max(0.0, at - wait.since))

    def _bound_elsewhere(self, uid: str, _host: str, at: float) -> None:
        self.bound_by_others += uid in self._waits
        self._forget(uid)
        self._starting[uid] = at

    def _refused(self, uid: str, _at: float) -> None:
        self.in_flight.discard(uid)
        self.attempts["error"] += 1
        self.incoming[FAILED, "backoff"] += 1
        wait = self._waits.get(uid)
        if wait is not None:
            self.attempt_seconds["error"].observe(self.clock() - wait.began)

    def _ready(self, uid: str, at: float) -> None:
        bound = self._starting.pop(uid, None)
        if bound is not None:
            self.startup_seconds.observe(max(0.0, at - bound))

    def _gone(self, uid: str, _at: float, _completed: bool = False, _cause: int = 0) -> None:
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._waits.pop(uid, None)
        self._starting.pop(uid, None)
        self._fresh.discard(uid)
        self.in_flight.discard(uid)

    def _controller_gone(self, key: str, at: float) -> None:
        engine = self._engine()
        if engine is None or key not in engine.controllers:
            return
        found = overview(engine, at, (key,))
        name = class_name(found.controllers[0].service.name)
        self.finished[name, STATES[int(found.state[0])]] += 1
        self.owed[name] += float(bonus_owed(found)[0])  # type: ignore[assignment]  # a sum of shares
