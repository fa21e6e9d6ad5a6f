"""Experiments without processes of their own, which take a second or two each to start."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from slacktide.experiment.run import Outcome, Task, attempt


class InProcess:
    """Carries out tasks here and now, by way of the words that a process would be sent."""

    jobs = 2

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None: ...

    def carry_out(self, tasks: Sequence[Task], told: Callable[[Outcome], None], tick: Callable[[], None]) -> None:
        for task in tasks:
            told(attempt(Task(**json.loads(json.dumps(task.plain())))))
            tick()


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that are not about processes."""
    monkeypatch.setattr("slacktide.experiment.local.executor", lambda *_: InProcess())
