"""Full garbage collections wait for a quiet moment."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable

import pytest

from slacktide.kube import housekeeping
from slacktide.kube.housekeeping import collect_when_idle
from support import virtual_time


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.myself = self


def ring() -> weakref.ref[Ring]:
    """A ring that nobody holds any more, old enough that only a full collection finds it."""
    one = Ring()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(one)


def outcome(
    monkeypatch: pytest.MonkeyPatch, work_done: Callable[[], int], seconds: float, overdue: int = 10_000
) -> bool:
    """Whether a ring was found within so long."""
    monkeypatch.setattr(housekeeping, "OVERDUE_TICKS", overdue)

    async def run() -> bool:
        task = asyncio.create_task(collect_when_idle(work_done))
        await asyncio.sleep(0)
        found = ring()
        end = asyncio.get_running_loop().time() + seconds
        while found() is not None and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found() is None

    return virtual_time.run(run)[0]


def test_garbage_is_found_where_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(monkeypatch, lambda: 7, 60.0)


def test_nobody_is_held_up_while_there_is_work_until_it_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(1_000_000))
    assert not outcome(monkeypatch, lambda: next(numbers), 600.0)
    assert outcome(monkeypatch, lambda: next(numbers), 600.0, overdue=20)


def test_it_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    outcome(monkeypatch, lambda: 7, 20.0)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() <= frozen
