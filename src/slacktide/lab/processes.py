"""Processes that outlive the one that started them, and are told from others that got their number later."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from slacktide.lab.errors import LabError


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Holds the lock file ``path``; calls ``waiting`` once if another process has it.

    Raises:
        LabError: without file locks (Windows), or if the file cannot be made.
    """
    try:
        import fcntl
    except ImportError:
        raise LabError("the lab needs Linux or macOS") from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


POLL_SECONDS = 0.02
LOG_LINES = 15

_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}
"""Those of this process, so that they are noticed when they end, whatever object knew of them."""


def born(pid: int) -> str | None:
    """What tells process ``pid`` from an earlier or later one of that number; None if there is none.

    A process that has ended and only waits to be noticed by its parent counts as none.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None if Path("/proc/self/stat").exists() else _born_by_ps(pid)
    except ProcessLookupError:
        return None
    fields = text.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{fields[19]}"


def _born_by_ps(pid: int) -> str | None:
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = done.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C is passed over meanwhile, so that programs are ended in order also where it is pressed twice."""
    if threading.current_thread() is not threading.main_thread():  # others get none, and may not say so
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(slots=True)
class Component:
    """One program of a lab: its command, its log, and the process that runs it, if any."""

    name: str
    command: Sequence[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict)
    pid: int = 0
    born: str = ""

    @property
    def running(self) -> bool:
        """Whether exactly the process that was started still runs."""
        if self.pid and born(self.pid) == self.born:
            return True
        child = _CHILDREN.pop(self.pid, None)
        if child is not None:
            child.wait()  # it has ended: this only takes its number off the system's list
        return False

    def start(self) -> None:
        """Starts the program; its output is added to its log.

        Raises:
            LabError: if it runs already or cannot be executed.
        """
        if self.running:
            raise LabError(f"{self.name} runs already (process {self.pid})")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ETCD_")}
        try:
            with self.log.open("ab") as log:
                child = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment | self.environment,
                    # A Ctrl-C is for whoever started the lab; the lab itself is ended in order.
                    start_new_session=True,
                )
        except OSError as error:
            raise LabError(f"{self.command[0]}: cannot be started: {error.strerror}") from error
        self.pid = child.pid
        _CHILDREN[child.pid] = child
        self.born = born(self.pid) or ""

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal, if the process still runs."""
        if self.running:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait(self, seconds: float) -> bool:
        """Waits until the process has ended; False if it still runs after ``seconds``."""
        end = time.monotonic() + seconds
        while self.running:
            if time.monotonic() > end:
                return False
            time.sleep(POLL_SECONDS)
        return True

    def stop(self, seconds: float = 20) -> None:
        """Ends the process: asks it to, after ``seconds`` kills it, and returns when it is gone."""
        self.signal(signal.SIGTERM)
        if not self.wait(seconds):
            self.kill()

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self.signal(signal.SIGKILL)
        if not self.wait(30):
            raise LabError(f"{self.name} (process {self.pid}) did not end 30 s after SIGKILL")

    def log_tail(self) -> str:
        """The last lines of the log."""
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        except OSError:
            return ""
