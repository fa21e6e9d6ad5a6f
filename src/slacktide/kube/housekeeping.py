"""What is looked after about every second: who waits for a replacement that does not come, how promises stand by now,
seconds by class, owners that may be no more; and garbage, at moments when nobody waits for it."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import LOSSES, Overview, overview
from slacktide.kube.client.http import NOT_FOUND, ApiError, Unreachable
from slacktide.kube.feed.fed_pod import HELD, ORPHAN
from slacktide.kube.publish.availability import LedgerWriter
from slacktide.kube.publish.conditions import ConditionWriter
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.publish.state_events import StateEvents
from slacktide.kube.resources.objects import AVAILABILITY
from slacktide.model.service_class import class_name

TICK_SECONDS = 1.0
LOOKED_AT_A_SECOND = 5_000
"""Controllers are looked at no faster: it takes some 10 µs each. Of more, each has its turn less often."""
TOGETHER = 100
"""So many controllers are looked at without a pause: a millisecond, by which all else that goes on may be late."""
HELD_SECONDS = 5.0
"""A pod that waits longer for its predecessor to be gone, or for its owner, is told why."""
ASK_AGAIN = 10
"""A ledger that is still there is asked for again after so many times ``kube.vacancy``; where the API server has no
answer, after one."""


def retire_vacant(engine: Engine, now: float, patience: float, keys: Iterable[str] | None = None) -> list[str]:
    """Instances that nobody has replaced for so long count no more, where their controllers' wishes are not known.

    Returns the keys of the controllers concerned, of all or of ``keys``. O(controllers).
    """
    since = engine.tables.tb["instances"]["since"]
    asked = [(key, engine.controllers[key]) for key in (engine.controllers if keys is None else keys)]
    concerned = [
        key
        for key, one in asked
        if one.vacant and one.desired < 0 and any(since[row] + patience <= now for row in one.vacant)
    ]
    for key in concerned:
        engine.retire(key, now, patience)
    return concerned


class Housekeeper(SessionPart):
    """Looks after what no event tells."""

    def __init__(
        self, session: SessionContext, reporter: ConditionWriter, ledger: LedgerWriter, states: StateEvents
    ) -> None:
        super().__init__(session)
        self._reporter, self._ledger, self._states = reporter, ledger, states
        self.losses = LossTotals()
        self._ask_at: dict[str, float] = {}
        self._told: set[str] = set()

    async def run(self) -> None:
        """Works until cancelled."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            await asyncio.sleep(max(0.0, began + TICK_SECONDS - loop.time()))
            began = loop.time()
            await self._gate.passed()
            if not self._leading():
                continue
            self._feed.reconsider(self._feed.blame.due(self._clock(), self._feed.pods.values()))
            empty = await self._look_at_all()
            now = self._clock()
            self._speak_of_held(now)
            await self._ask_for_owners(empty, now)
            for target in self._feed.controllers.remembered_no_more(now):
                await self._ledger.forget(target)

    async def _look_at_all(self) -> list[str]:
        """Look how all controllers stand by now, some at a time and with pauses, so that nobody waits for long; returns
        those without an instance whose owners nobody watches."""
        engine, empty = self._feed.engine, list[str]()
        keys = list(engine.controllers)
        for first in range(0, len(keys), TOGETHER):
            await asyncio.sleep(TOGETHER / LOOKED_AT_A_SECOND if first else 0)
            await self._gate.passed()
            if not self._leading():
                return []
            known = [key for key in keys[first : first + TOGETHER] if key in engine.controllers]
            for key in retire_vacant(engine, self._clock(), self._feed.config.kube.vacancy, known):
                self._feed.listener.changed(key)
            self._compare(known)
            empty += [key for key in known if self._is_empty(key)]
        return empty

    def _compare(self, keys: Sequence[str]) -> None:
        found = overview(self._feed.engine, self._clock(), keys)
        self._ledger.compare(found)
        self.losses.see(found)
        self._states.compare(found)

    def _is_empty(self, key: str) -> bool:
        """Whether a controller has no instance, and only its ledger tells whether its owner is still there."""
        one, target = self._feed.engine.controllers.get(key), self._feed.controllers.targets.get(key)
        if one is None or target is None:
            return False
        return not one.rows and one.desired < 0 and target.uid not in self._feed.mirror.owners.watched

    def _speak_of_held(self, now: float) -> None:
        held = self._feed.held()
        self._told.intersection_update(held)
        for uid in held:
            if uid in self._told:
                continue
            pod = self._feed.pods.get(uid)
            if pod is not None and pod.problem in (HELD, ORPHAN) and now - pod.record.seen > HELD_SECONDS:
                self._told.add(uid)
                self._reporter.report(pod)

    async def _ask_for_owners(self, empty: Sequence[str], now: float) -> None:
        """Owners that are not watched go unseen; but with them goes their ledger, and that can be asked for."""
        controllers, vacancy = self._feed.controllers, self._feed.config.kube.vacancy
        self._ask_at = {key: self._ask_at[key] for key in empty if key in self._ask_at}
        for key in empty:
            if now < self._ask_at.get(key, now) or not self._is_empty(key):  # by now
                continue
            self._ask_at[key] = now + vacancy
            target = controllers.targets[key]
            try:
                await self._gate.after(self._connection.get(AVAILABILITY.path(target.namespace, target.ledger)))
            except ApiError as error:
                if error.passes:
                    return
                if error.status == NOT_FOUND and self._is_empty(key):
                    controllers.deleted.add(key)
                    controllers.pod_left(target)
            except Unreachable:
                return
            self._ask_at[key] = now + ASK_AGAIN * vacancy


class LossTotals:
    """Seconds since this replica leads: ``good`` by class, ``lost`` by class and cause."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.lost: Counter[tuple[str, str]] = Counter()
        self._last: dict[str, list[float]] = {}
        """What each controller had at the latest look."""

    def see(self, found: Overview) -> None:
        """How controllers stand now; what those had that are seen for the first time was before. O(controllers)."""
        for one, losses in zip(found.controllers, found.losses.tolist(), strict=True):
            name, last = class_name(one.service.name), self._last.get(one.key, losses)
            self._last[one.key] = losses
            for what, now, before in zip(LOSSES, losses, last, strict=True):
                gained = max(0.0, now - before)
                if what == "good":
                    self.good[name] += gained
                else:
                    self.lost[name, what] += gained

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._last.pop(key, None)


YOUNG, MIDDLE, NEVER = 5_000, 80, 1_000_000
"""New objects until a collection of these, such collections until one of the last ones' survivors, and so on."""
COLLECTION_TICK_SECONDS = 5.0
OVERDUE_TICKS = 120
ALL_AFTER = 80
"""So many collections after one of all objects comes the next one of all."""


async def collect_when_idle(work_done: Callable[[], int]) -> None:
    """Takes garbage collection over until cancelled; ``work_done`` counts up with all that must not be held up."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, MIDDLE, NEVER)
    try:
        _collect(everything=True)
        done, ticks, count = work_done(), 0, 0
        while True:
            await asyncio.sleep(COLLECTION_TICK_SECONDS)
            ticks += 1
            last, done = done, work_done()
            due = gc.get_count()[2] > 0 or gc.get_count()[1] > 0
            if ticks >= OVERDUE_TICKS or (due and done == last):
                ticks, count = 0, count + 1
                _collect(everything=count % ALL_AFTER == 0)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def _collect(everything: bool) -> None:
    if everything:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
