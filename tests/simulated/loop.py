"""An event loop without sockets and threads, whose clock jumps from one appointment to the next.

Each task belongs to an *actor*: a process of the simulated world. An actor that is frozen has no turn, while time goes
on for all others; what it missed, it does when it is thawed, as a process does after SIGSTOP and SIGCONT.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from slacktide.kube.clock import Sources, read_from

EPOCH = 1_767_225_600.0
"""The first second of 2026: where the wall clock of each world begins."""


class Actor:
    """A process. ``stepped`` is how far its wall clock was moved; ``frozen``: it has no turn."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stepped = 0.0
        self.frozen = False

    def __repr__(self) -> str:
        return f"Actor({self.name})"


WORLD = Actor("world")
"""Everything that no process of ours does: never frozen."""
_actor: ContextVar[Actor] = ContextVar("actor", default=WORLD)


def acting() -> Actor:
    """Who has its turn."""
    return _actor.get()


class WorldLoop(asyncio.BaseEventLoop):
    """``time()`` is seconds since the world's beginning. Who has nothing to do and no appointment waits for ever: that
    ends the run with ``RuntimeError``."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._turns: deque[Any] = self._ready  # type: ignore[attr-defined]
        self._appointments: list[Any] = self._scheduled  # type: ignore[attr-defined]
        self._parked: list[Any] = []
        self.steps = 0

    def time(self) -> float:
        return self._now

    def thaw(self, actor: Actor) -> None:
        """Give back what had its turn while the actor was frozen, in order."""
        actor.frozen = False
        kept = [one for one in self._parked if one._context.get(_actor, WORLD).frozen]
        self._turns.extend(one for one in self._parked if not one._context.get(_actor, WORLD).frozen)
        self._parked = kept

    def _run_once(self) -> None:
        if not self._turns:
            self._jump()
        for _ in range(len(self._turns)):
            handle = self._turns.popleft()
            if handle._cancelled:
                continue
            if handle._context.get(_actor, WORLD).frozen:
                self._parked.append(handle)
                continue
            self.steps += 1
            handle._run()

    def _jump(self) -> None:
        while self._appointments and self._appointments[0]._cancelled:
            heapq.heappop(self._appointments)._scheduled = False
        if not self._appointments:
            raise RuntimeError("nobody has anything to do, ever: the world stands still")
        self._now = max(self._now, self._appointments[0]._when)
        while self._appointments and self._appointments[0]._when <= self._now:
            handle = heapq.heappop(self._appointments)
            handle._scheduled = False
            self._turns.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled appointments are dropped when their time has come."""

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody else is there to wake it."""


@contextmanager
def acted_by(actor: Actor, loop: asyncio.AbstractEventLoop | None = None) -> Iterator[None]:
    """What begins in here is done by that process, and reads its clocks; ``loop`` where it does not run just now."""
    loop = loop or asyncio.get_running_loop()
    sources = Sources(
        wall=lambda: EPOCH + loop.time() + actor.stepped, steady=loop.time, monotonic=loop.time, work=loop.time
    )
    token = _actor.set(actor)
    try:
        with read_from(sources):
            yield
    finally:
        _actor.reset(token)
