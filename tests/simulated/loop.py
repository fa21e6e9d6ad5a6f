"""An event loop without sockets and threads, whose clock jumps from one appointment to the next.

Each task belongs to an *actor*: a process of the simulated world. An actor that is frozen has no turn, while time goes
on for all others; what it missed, it does when it is thawed, as a process does after SIGSTOP and SIGCONT.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVarTuple, Unpack

from slacktide.kube.clock import Sources, read_from

Ts = TypeVarTuple("Ts")
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


class Turn(asyncio.TimerHandle):
    """What is to be called, without what asyncio notes for people who debug: a story has some 50 turns for each of its
    seconds."""

    __slots__ = ()

    def __init__(self, call: Any, args: tuple[Any, ...], context: Context | None) -> None:
        self._callback, self._args = call, args
        self._context = copy_context() if context is None else context
        self._cancelled = False

    def cancel(self) -> None:
        self._cancelled = True
        self._args = ()


class WorldLoop(asyncio.BaseEventLoop):
    """``time()`` is seconds since the world's beginning. Who has nothing to do and no appointment waits for ever: that
    ends the run with ``RuntimeError``. Of appointments at one instant the one that was made first comes first."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._turns: deque[Any] = self._ready  # type: ignore[attr-defined]
        self._appointments: list[tuple[float, int, Turn]] = []
        self._made = 0
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

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> Turn:
        turn = Turn(callback, args, context)
        self._made += 1
        heapq.heappush(self._appointments, (when, self._made, turn))
        return turn

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> Turn:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_soon(self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None) -> Turn:
        turn = Turn(callback, args, context)
        self._turns.append(turn)
        return turn

    def _run_once(self) -> None:
        turns = self._turns
        if not turns:
            self._jump()
        for _ in range(len(turns)):
            turn = turns.popleft()
            if turn._cancelled:
                continue
            context = turn._context
            if context.get(_actor, WORLD).frozen:
                self._parked.append(turn)
                continue
            self.steps += 1
            try:
                context.run(turn._callback, *turn._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:
                self.call_exception_handler({"message": f"in {turn._callback}", "exception": error})

    def _jump(self) -> None:
        appointments, turns = self._appointments, self._turns
        while appointments and appointments[0][2]._cancelled:
            heapq.heappop(appointments)
        if not appointments:
            raise RuntimeError("nobody has anything to do, ever: the world stands still")
        self._now = now = max(self._now, appointments[0][0])
        while appointments and appointments[0][0] <= now:
            turns.append(heapq.heappop(appointments)[2])

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
