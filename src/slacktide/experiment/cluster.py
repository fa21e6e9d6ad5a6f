"""Runs on a Dask cluster. Its workers see the experiment's folder under the same path and have the same slacktide."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from slacktide.errors import ConfigError, InputError, OutputError, SlacktideError
from slacktide.experiment import keys
from slacktide.experiment.run import Outcome, Task, attempt
from slacktide.experiment.store import PROBE

PATIENCE = 10.0
"""Seconds in which a scheduler answers."""
INTERVAL = 0.1
"""Seconds between two looks at what has ended."""
ENDED = frozenset({"finished", "error", "cancelled"})
"""What Dask calls futures that have ended; "lost" are those that ended on a worker that has gone since."""


def distributed() -> ModuleType:
    """The library. Raises :class:`ConfigError` where it is not installed."""
    try:
        import distributed
    except ImportError as error:
        raise ConfigError(f"--cluster needs pip install 'slacktide[experiments]' ({error})") from error
    return distributed


def _attempt(plain: dict[str, Any]) -> dict[str, Any]:
    """On a worker: the outcome of a task, in words."""
    return asdict(attempt(Task(**plain)))


def _sees(path: str) -> dict[str, Any]:
    """On a worker: its slacktide, and whether it sees a file of ours and may write beside it."""
    return {"code": keys.code(), "sees": Path(path).is_file() and os.access(Path(path).parent, os.W_OK)}


class Cluster:
    """The cluster whose scheduler is at ``address``; a context manager, at its end nothing of ours is left there."""

    def __init__(self, address: str, folder: Path) -> None:
        self._library: Any = distributed()
        try:
            self._client = self._library.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ConfigError(
                f"--cluster: found {address!r}, expected the address of a Dask scheduler that answers ({error})"
            ) from error
        try:
            self._check(folder)
        except BaseException:
            self._client.close(timeout=PATIENCE)
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(TimeoutError):
            self._client.close(timeout=PATIENCE)

    @property
    def jobs(self) -> int:
        """Runs at a time: the workers' threads."""
        return max(int(sum(self._client.nthreads().values())), 1)

    def carry_out(self, tasks: Sequence[Task], told: Callable[[Outcome], None], tick: Callable[[], None]) -> None:
        """As :meth:`slacktide.experiment.local.Processes.carry_out`.

        A worker that goes takes its run with it, which the scheduler then gives to another; one that has cost several
        workers has failed.
        """
        futures = {
            self._client.submit(
                _attempt, task.plain(), key=f"slacktide-{uuid.uuid4().hex[:8]}-{task.key}", pure=False
            ): task.key
            for task in tasks
        }
        try:
            for future, status in self._ended(futures, tick):
                told(self._outcome(future, status, futures[future]))
        except BaseException:
            with contextlib.suppress(Exception):  # what is raised already says more
                self._client.cancel(list(futures), force=True)
            raise

    def _ended(self, futures: dict[Any, str], tick: Callable[[], None]) -> Iterator[tuple[Any, str]]:
        """Futures as they end, each with its status.

        The status is looked at once: of a run that ended on a worker that then goes, the result is lost, and the
        scheduler has it done again.
        """
        left = set(futures)
        while left:
            time.sleep(INTERVAL)
            if self._client.status not in ("running", "connecting"):
                raise SlacktideError("the Dask scheduler went away: resume when it is back, whole runs are kept")
            for future, status in [(one, one.status) for one in left]:
                if status in ENDED:
                    left.remove(future)
                    yield future, status
            tick()

    def _outcome(self, future: Any, status: str, key: str) -> Outcome:
        if status == "finished":
            return Outcome(**future.result())  # waits until it is done again, if it has been lost meanwhile
        if status == "cancelled":
            raise SlacktideError("the Dask cluster cancelled our runs: resume when it is back, whole runs are kept")
        error = future.exception()
        kind = InputError.__name__
        return Outcome(key, error=f"on the cluster: {type(error).__name__}: {error}", kind=kind)

    def _check(self, folder: Path) -> None:
        """Workers are there, run the same code and see the folder. Raises :class:`ConfigError`."""
        probe = folder / f"{PROBE}{uuid.uuid4().hex}"
        try:
            probe.write_text("")
            found = self._client.run(_sees, str(probe))
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror or error}") from error
        except Exception as error:  # whatever a worker of another kind makes of it
            raise ConfigError(
                f"--cluster: expected workers with the same Python, slacktide and Dask as this program; one could not "
                f"do what it was asked ({type(error).__name__}: {error})"
            ) from error
        finally:
            probe.unlink(missing_ok=True)
        if not found:
            raise ConfigError("--cluster: the scheduler has no workers: start some with 'dask worker ADDRESS'")
        for address, one in found.items():
            if not one["sees"]:
                raise ConfigError(f"--cluster: worker {address} does not see {folder}: put it on a shared file system")
            if one["code"] != keys.code():
                raise ConfigError(
                    f"--cluster: worker {address} has another slacktide, NumPy or Numba than this program"
                )
