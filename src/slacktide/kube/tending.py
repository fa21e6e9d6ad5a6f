"""What is looked at every second: who waits for a replacement that does not come, and owners that may be no more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from slacktide.kube.connection import ApiError, Connection, Unreachable
from slacktide.kube.counts import NOT_FOUND
from slacktide.kube.entries import HELD
from slacktide.kube.intake import Intake
from slacktide.kube.objects import AVAILABILITY
from slacktide.kube.reporting import Reporter
from slacktide.live.engine import Engine

TICK_SECONDS = 1.0
HELD_SECONDS = 5.0
"""A pod that waits longer for its predecessor to be gone is told why."""
ASK_AGAIN = 10
"""A ledger that is still there is asked for again after so many times ``kube.vacancy``."""


def retire_vacant(engine: Engine, now: float, patience: float) -> list[str]:
    """Instances that nobody has replaced for so long count no more, where their controllers' wishes are not known.

    Returns the keys of the controllers concerned. O(controllers).
    """
    since = engine.tables.tb["instances"]["since"]
    concerned = [
        key
        for key, one in engine.controllers.items()
        if one.desired < 0 and any(since[row] + patience <= now for row in one.vacant)
    ]
    for key in concerned:
        engine.retire(key, now, patience)
    return concerned


class Tender:
    """Looks after what no event tells."""

    def __init__(
        self,
        connection: Connection,
        intake: Intake,
        reporter: Reporter,
        clock: Callable[[], float],
        leading: Callable[[], bool],
    ) -> None:
        self._connection, self._intake, self._reporter = connection, intake, reporter
        self._clock, self._leading = clock, leading
        self._asked: dict[str, float] = {}
        self._told: set[str] = set()

    async def run(self) -> None:
        """Works until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            engine = self._intake.engine
            if engine is None or not self._leading():
                continue
            now = self._clock()
            for key in retire_vacant(engine, now, self._intake.config.kube.vacancy):
                self._intake.watcher.changed(key)
            self._speak_of_held(now)
            await self._ask_for_owners(engine, now)

    def _speak_of_held(self, now: float) -> None:
        held = {uid for waiting in self._intake.succession.held.values() for uid in waiting}
        self._told &= held
        for uid in held - self._told:
            entry = self._intake.pods.get(uid)
            if entry is not None and entry.problem == HELD and now - entry.seen > HELD_SECONDS:
                self._told.add(uid)
                self._reporter.report(entry)

    async def _ask_for_owners(self, engine: Engine, now: float) -> None:
        """Owners that are not watched go unseen; but with them goes their ledger, and that can be asked for."""
        world = self._intake.world
        empty = [
            key
            for key, one in engine.controllers.items()
            if not one.rows and one.desired < 0 and world.targets[key].uid not in world.owners.watched
        ]
        self._asked = {key: self._asked[key] for key in empty if key in self._asked}
        for key in empty:
            if now - self._asked.get(key, float("-inf")) < ASK_AGAIN * self._intake.config.kube.vacancy:
                continue
            self._asked[key] = now
            target = world.targets[key]
            try:
                await self._connection.get(AVAILABILITY.path(target.namespace, target.ledger))
            except ApiError as error:
                known = engine.controllers.get(key)
                if error.status == NOT_FOUND and known is not None and not known.rows:
                    world.deleted.add(key)
                    world.left(engine, target)
            except Unreachable:
                return
