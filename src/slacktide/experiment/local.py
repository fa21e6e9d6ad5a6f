"""Runs in processes of this machine. One that is killed costs the runs it was at, which are begun again.

Kernels of a library leave the interpreter's lock to others. So runs that consist of them are threads of one process,
which reads an input once for all. It is a process of its own: what ends it does not end the one who conducts. Nobody
knows which of its runs ended it, so each of these is then begun again in a process to itself. There a run is from the
beginning where it may hold the lock, or do what it likes: kernels that Numba compiles here, and code of a user's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import slacktide
from slacktide.errors import InputError, SlacktideError
from slacktide.experiment.run import Outcome, Task
from slacktide.experiment.store import Store
from slacktide.experiment.worker import WARM
from slacktide.kernels.builtin import COSTS, DEFAULT, POLICIES, SCORES
from slacktide.kernels.runtime.compiling import compiled_before
from slacktide.kernels.runtime.mode import Mode, mode

ATTEMPTS = 3
"""A run whose process was killed this often has failed: it may be the run that kills it."""
GRACE = 5.0
"""Seconds a process that answers no more may take to end by itself."""
THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "ARROW_NUM_THREADS"),
)
"""As many runs as are wanted are at work; each is to keep to one thread."""

Told = Callable[[Outcome], None]


def leaves_lock(configuration: Mapping[str, Any]) -> bool:
    """Whether runs with these settings are kernels' work, which leaves the interpreter's lock to other threads."""
    policy = configuration["policy"]
    return (
        mode() is Mode.LIBRARY
        and policy["name"] in POLICIES
        and policy["score"] in (DEFAULT, *SCORES)
        and policy["cost"] in (DEFAULT, *COSTS)
    )


class Worker:
    """A process and the runs it is at, up to ``threads``, by key."""

    def __init__(self, threads: int = 1) -> None:
        # Its own process group: Ctrl-C on a terminal is for the one who conducts.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "slacktide.experiment.worker", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(),
            process_group=0,
        )
        self.threads = threads
        self.tasks: dict[str, Task] = {}
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
        self.process.wait()  # one that was killed goes, but with much memory, or on a busy machine, not at once
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                cast(Any, stream).close()


def _environment() -> dict[str, str]:
    """That of this process, for runs of one thread and the same slacktide."""
    here = str(Path(slacktide.__file__).resolve().parents[1])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": os.pathsep.join(paths)}


def _ended(code: int) -> str:
    """How a process ended, by what :mod:`subprocess` says of it."""
    return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"


Waiting = deque[tuple[bool, Task]]
"""Runs that wait, in their order: each whether it is for a thread beside others, or for a process to itself."""


class Processes:
    """Up to ``jobs`` runs at a time, in processes that are started when there is work for them.

    ``threads``: whether runs that can are threads of one process. A context manager: at its end all are gone.
    """

    def __init__(self, jobs: int, *, threads: bool = True) -> None:
        self.jobs = jobs
        self._threads = threads and jobs > 1
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
    def at_work(self) -> dict[int, frozenset[str]]:
        """The processes that are there, by number, and the keys of the runs that each is at."""
        return {worker.process.pid: frozenset(worker.tasks) for worker in self._workers}

    def carry_out(self, tasks: Sequence[Task], told: Told, tick: Callable[[], None] = lambda: None) -> None:
        """Carry out all tasks; ``told`` hears of each outcome, in the order in which they end.

        ``tick`` is called several times a second. What ``told`` raises ends it, tasks under way included.
        """
        waiting = Waiting((self._threads and leaves_lock(task.configuration), task) for task in tasks)
        failed: dict[str, int] = {}
        self._hand_out(waiting)
        while waiting or self._under_way():
            for event, _ in self._selector.select(0.2):
                worker: Worker = event.data
                lines = worker.heard()
                if lines is None:
                    self._lost(worker, waiting, failed, told)
                    continue
                for line in lines:
                    if line == WARM:
                        worker.warming = False
                    else:
                        del worker.tasks[line["key"]]
                        told(Outcome(**line))
            self._hand_out(waiting)
            tick()

    def _under_way(self) -> int:
        return sum(len(worker.tasks) for worker in self._workers)

    def _hand_out(self, waiting: Waiting) -> None:
        """Have as many at work as are wanted; where nothing is compiled yet one process does that first."""
        if waiting and not self._workers and not compiled_before("event_loop.run"):
            worker = self._start(1)
            worker.warming = True
            worker.give(WARM)
        if any(worker.warming for worker in self._workers):
            return
        while waiting and self._under_way() < self.jobs:
            together, task = waiting.popleft()
            worker = self._worker(self.jobs if together else 1)
            worker.tasks[task.key] = task
            worker.give(task.plain())
        if waiting and all(together for together, _ in waiting):
            for worker in [one for one in self._workers if one.threads == 1 and self._threads and not one.tasks]:
                self._dismiss(worker)  # it holds an input that the threads have as well
                worker.end()

    def _worker(self, threads: int) -> Worker:
        """One of so many threads, not all of which are at work."""
        free = (one for one in self._workers if one.threads == threads and len(one.tasks) < threads)
        return next(free, None) or self._start(threads)

    def _start(self, threads: int) -> Worker:
        worker = Worker(threads)
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def _dismiss(self, worker: Worker) -> None:
        self._selector.unregister(worker.answers)
        self._workers.remove(worker)

    def _lost(self, worker: Worker, waiting: Waiting, failed: dict[str, int], told: Told) -> None:
        """A process ended by itself: its runs are the next to be begun again; one that was alone there may have failed.

        Of several, all are blameless as far as is known. Begun again each is alone, so that this happens to it once.
        """
        self._dismiss(worker)
        try:
            code: int | None = worker.process.wait(GRACE)
        except subprocess.TimeoutExpired:  # it is still there, but a policy closed its files
            code = None
        worker.end()
        if not worker.tasks:
            self._idle_losses += 1
            if self._idle_losses > ATTEMPTS * self.jobs:
                how = "they answer no more" if code is None else f"code {code}"
                raise SlacktideError(f"processes end before they have begun to work ({how}); nothing was lost")
        elif len(worker.tasks) > 1:
            waiting.extendleft((False, task) for task in reversed(worker.tasks.values()))
        else:
            ((key, task),) = worker.tasks.items()
            failed[key] = failed.get(key, 0) + 1
            if failed[key] < ATTEMPTS:
                waiting.appendleft((False, task))
                return
            how = "answered no more" if code is None else _ended(code)
            why = " (for want of memory, perhaps)" if code == -signal.SIGKILL else ""
            text = f"the process at this run {how}, {ATTEMPTS} times over{why}"
            told(Outcome(key, error=text, kind=InputError.__name__))


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def executor(store: Store, jobs: int, cluster: str | None) -> AbstractContextManager[Any]:
    """``jobs`` runs at a time here, or those of the Dask scheduler at ``cluster``."""
    if cluster is None:
        return Processes(jobs)
    from slacktide.experiment.cluster import Cluster

    return Cluster(cluster, store.folder)
