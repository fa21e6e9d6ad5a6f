"""Runs in processes of this machine. One that is killed costs the run it was at, which is begun again."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import slacktide
from slacktide.errors import InputError, SlacktideError
from slacktide.experiment.run import Outcome, Task
from slacktide.experiment.worker import WARM
from slacktide.kernels.runtime.compiling import compiled_before

ATTEMPTS = 3
"""A run whose process was killed this often has failed: it may be the run that kills it."""
GRACE = 5.0
"""Seconds a process may take to end."""
THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "ARROW_NUM_THREADS"),
)
"""There are as many processes as are wanted at work; each is to keep to one thread."""

Told = Callable[[Outcome], None]


class Worker:
    """A process and the run it is at."""

    def __init__(self) -> None:
        # Its own process group: Ctrl-C on a terminal is for the one who conducts.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "slacktide.experiment.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            process_group=0,
        )
        self.task: Task | None = None
        self.warming = False
        self._rest = b""

    @property
    def answers(self) -> int:
        return cast(Any, self.process.stdout).fileno()  # type: ignore[no-any-return]

    def give(self, message: Any) -> None:
        """Send a task, or ``WARM``; a process that is gone is noticed by its silence."""
        with contextlib.suppress(BrokenPipeError):
            stdin = cast(Any, self.process.stdin)
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()

    def heard(self) -> list[Any] | None:
        """Whole lines that have come, read as JSON; None when no more will."""
        got = os.read(self.answers, 1 << 16)
        if not got:
            return None
        *lines, self._rest = (self._rest + got).split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self) -> None:
        """The process is gone when this returns."""
        self.process.kill()
        self.process.wait(GRACE)
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(Any, stream).close()


def _environment() -> dict[str, str]:
    """That of this process, for one thread and the same slacktide."""
    here = str(Path(slacktide.__file__).resolve().parents[1])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": os.pathsep.join(paths)}


class Processes:
    """Up to ``jobs`` processes, started when there is work for them. A context manager: at its end they are gone."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()
        self._idle_losses = 0

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()  # all at once, then wait for each
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._selector.close()

    @property
    def pids(self) -> list[int]:
        """Of the processes that are there."""
        return [worker.process.pid for worker in self._workers]

    def carry_out(self, tasks: Sequence[Task], told: Told, tick: Callable[[], None] = lambda: None) -> None:
        """Carry out all tasks; ``told`` hears of each outcome, in the order in which they end.

        ``tick`` is called several times a second. What ``told`` raises ends it, tasks under way included.
        """
        waiting = deque(tasks)
        failed: dict[str, int] = {}
        self._start(len(waiting))
        self._hand_out(waiting)
        while waiting or any(worker.task for worker in self._workers):
            for event, _ in self._selector.select(0.2):
                worker: Worker = event.data
                lines = worker.heard()
                if lines is None:
                    self._lost(worker, waiting, failed, told)
                    continue
                for line in lines:
                    if line == WARM:
                        worker.warming = False
                        self._start(len(waiting))
                    else:
                        worker.task = None
                        told(Outcome(**line))
            self._hand_out(waiting)
            tick()

    def _start(self, wanted: int) -> None:
        """Have enough processes for so many more tasks; where nothing is compiled yet one, which does that first."""
        if any(worker.warming for worker in self._workers):
            return
        cold = not compiled_before("event_loop.run") and not self._workers
        wanted += sum(worker.task is not None for worker in self._workers)
        while len(self._workers) < min(1 if cold else self.jobs, wanted):
            worker = Worker()
            self._workers.append(worker)
            self._selector.register(worker.answers, selectors.EVENT_READ, worker)
            if cold:
                worker.warming = True
                worker.give(WARM)

    def _hand_out(self, waiting: deque[Task]) -> None:
        for worker in self._workers:
            if waiting and worker.task is None and not worker.warming:
                worker.task = waiting.popleft()
                worker.give(worker.task.plain())

    def _lost(self, worker: Worker, waiting: deque[Task], failed: dict[str, int], told: Told) -> None:
        """A process ended by itself: its run is the next to be begun again, or has failed."""
        self._selector.unregister(worker.answers)
        self._workers.remove(worker)
        worker.process.wait(GRACE)
        code = worker.process.returncode
        worker.end()
        if worker.task is None:
            self._idle_losses += 1
            if self._idle_losses > ATTEMPTS * self.jobs:
                raise SlacktideError(f"processes end before they have begun to work (code {code}); nothing was lost")
            self._start(len(waiting))
            return
        key = worker.task.key
        failed[key] = failed.get(key, 0) + 1
        if failed[key] < ATTEMPTS:
            waiting.appendleft(worker.task)
        else:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            why = " (for want of memory, perhaps)" if code == -signal.SIGKILL else ""
            text = f"the process at this run {how}, {ATTEMPTS} times over{why}"
            told(Outcome(key, error=text, kind=InputError.__name__))
        self._start(len(waiting))
