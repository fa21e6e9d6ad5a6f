"""One replica of the scheduler, as ``slacktide run`` runs it: a process that can be killed, frozen and cut off."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from simulated.api_model import ApiModel
from simulated.chance import Chance
from simulated.loop import Actor, WorldLoop, acted_by
from simulated.network import Weather, Wire
from simulated.transport import SimulatedConnection
from simulated.watching import KEEPALIVE_SECONDS
from slacktide.config import Config
from slacktide.engine.core.engine import Journal
from slacktide.engine.core.types import Decision
from slacktide.kube.leader_session import GaveWay, LeadershipLost
from slacktide.kube.scheduler import Scheduler

RESTART = (1.0, 12.0)
"""Seconds until a process that ended is started again."""


class Replica:
    """A pod of the scheduler's Deployment. It is started again when its process ends.

    ``decided`` hears of each decision, ``failed`` of what ends a process and is no ordinary end; ``shown`` gives each
    scheduler its journal.
    """

    def __init__(self, name: str, api: ApiModel, chance: Chance, weather: Weather, config: Config) -> None:
        self.name, self.config = name, config
        self._api, self._chance, self._weather = api, chance, weather
        self.starts = 0
        self.decided: Callable[[Replica, Decision], None] = lambda *_: None
        self.failed: Callable[[str], None] = lambda _: None
        self.began: Callable[[Wire], None] = lambda _: None
        self.shown: Callable[[Replica, Scheduler], Journal | None] = lambda *_: None
        self.scheduler: Scheduler | None = None
        self.wire: Wire | None = None
        self.connection: SimulatedConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = False
        self._ending = asyncio.Event()

    @property
    def identity(self) -> str:
        return f"{self.name}-{self.starts}"

    @property
    def leading(self) -> bool:
        """Whether it believes to lead."""
        return self.scheduler is not None and self.scheduler.leading()

    async def run(self) -> None:
        """Process after process, until the world ends."""
        while not self._over:
            self.starts += 1
            actor = Actor(self.identity)
            with acted_by(actor):
                self.wire = Wire(self._api, actor, self._chance, self._weather)
                self.began(self.wire)
                self._task = asyncio.create_task(self._process(actor))
            await asyncio.wait([self._task])
            self._note_end(self._task)
            await asyncio.sleep(self._chance.between(f"restarts of {self.name}", *RESTART))

    async def _process(self, actor: Actor) -> None:
        assert self.wire is not None
        yields = 0.0
        async with SimulatedConnection(self.wire, self._api.store, self._chance) as self.connection:
            while True:
                self.scheduler = scheduler = Scheduler(self.connection, self.config, actor.name, yields=yields)
                journal = self.shown(self, scheduler)
                first = scheduler.on_decision
                scheduler.on_decision = partial(self._tell, first)
                try:
                    await scheduler.run(journal)
                except BaseExceptionGroup as problems:
                    if problems.subgroup(LeadershipLost) is not None:
                        return
                    if problems.subgroup(GaveWay) is None:
                        raise
                yields = self.config.kube.lease_duration

    def _tell(self, first: Callable[[Decision], None], decision: Decision) -> None:
        first(decision)
        self.decided(self, decision)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            if (error := task.exception()) is not None and not (self.wire is not None and self.wire.dead):
                self.failed(f"{self.identity} ended: {_told(error)}")

    # -- what may happen to it -------------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL: nothing that it says from now on is heard."""
        if self._task is not None and self.wire is not None:
            self.wire.dead = True
            self.thaw()
            self._task.cancel()

    def stop(self) -> None:
        """SIGTERM: it ends by itself."""
        if self._task is not None:
            self.thaw()
            self._task.cancel()

    def freeze(self) -> None:
        """SIGSTOP."""
        if self.wire is not None:
            self.wire.actor.frozen = True

    def thaw(self) -> None:
        """SIGCONT."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WorldLoop)
        if self.wire is not None and self.wire.actor.frozen:
            loop.thaw(self.wire.actor)

    async def cut_off(self, seconds: float) -> None:
        """Nothing comes through for so long, either way."""
        wire, connection = self.wire, self.connection
        if wire is None or connection is None or wire.cut.is_set():
            return
        wire.cut_off()
        await asyncio.sleep(min(seconds, KEEPALIVE_SECONDS))
        connection.mended(seconds)
        if seconds > KEEPALIVE_SECONDS:
            await asyncio.sleep(seconds - KEEPALIVE_SECONDS)
        wire.mend()

    async def end(self) -> None:
        """The world ends."""
        self._over = True
        self.kill()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=60.0)


def _told(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_told(one) for one in error.exceptions)
    place: Any = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" ({place.tb_frame.f_code.co_filename.rpartition('/')[2]}:{place.tb_lineno})" if place else ""
    return f"{type(error).__name__}: {error}{where}"
