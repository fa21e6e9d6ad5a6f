"""What is looked at about every second: who waits for a replacement that does not come, how promises stand by now, and
owners that may be no more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import overview
from slacktide.kube.client.http import NOT_FOUND, SERVER_ERROR, TOO_MANY, ApiError, Unreachable
from slacktide.kube.feed.fed_pod import HELD, ORPHAN
from slacktide.kube.publish.availability import LedgerWriter
from slacktide.kube.publish.conditions import ConditionWriter
from slacktide.kube.publish.loss_totals import LossTotals
from slacktide.kube.publish.session_context import SessionContext
from slacktide.kube.publish.state_events import StateEvents
from slacktide.kube.resources.objects import AVAILABILITY

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


class Housekeeper:
    """Looks after what no event tells."""

    def __init__(
        self, session: SessionContext, reporter: ConditionWriter, ledger: LedgerWriter, states: StateEvents
    ) -> None:
        self._connection, self._feed, self._reporter, self._ledger = session.connection, session.feed, reporter, ledger
        self._clock, self._leading, self._gate, self._states = session.clock, session.leading, session.gate, states
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
                if error.status == TOO_MANY or error.status >= SERVER_ERROR:
                    return
                if error.status == NOT_FOUND and self._is_empty(key):
                    controllers.deleted.add(key)
                    controllers.pod_left(target)
            except Unreachable:
                return
            self._ask_at[key] = now + ASK_AGAIN * vacancy
