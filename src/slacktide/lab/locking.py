"""One process at a time: a lock that ends with its holder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
