"""What runs of one process share: inputs that are read once, held while a run uses them, and never written to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

Value = TypeVar("Value")


class _Held(Generic[Value]):
    """A value, or its place while it is made."""

    def __init__(self) -> None:
        self.users = 0
        self.making = Lock()
        self.made: list[Value] = []


class Shared(Generic[Value]):
    """Values by key: whoever asks for one at the same time gets the same, which only the first of them makes.

    Those in use are held, and of the others the ``kept`` that were used last: those who ask next are likely to ask
    for the same. Room for a new one is made before it is.
    """

    def __init__(self, kept: int = 1) -> None:
        self.kept = kept
        self._lock = Lock()
        self._held: OrderedDict[Hashable, _Held[Value]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def use(self, key: Hashable, make: Callable[[], Value]) -> Iterator[Value]:
        """The value of this key until the block ends; what ``make`` raises is raised, and the next one tries again."""
        with self._lock:
            if key not in self._held:
                self._forget(self.kept - 1)
                self._held[key] = _Held()
            held = self._held[key]
            held.users += 1
            self._held.move_to_end(key)
        try:
            with held.making:
                if not held.made:
                    held.made.append(make())
            yield held.made[0]
        finally:
            with self._lock:
                held.users -= 1
                if not held.made and not held.users:
                    del self._held[key]
                self._forget(self.kept)

    def _forget(self, kept: int) -> None:
        """Keep no more than so many of those that nobody uses."""
        unused = [key for key, held in self._held.items() if not held.users]
        for key in unused[: max(len(unused) - kept, 0)]:
            del self._held[key]


def read_only(value: Value) -> Value:
    """The same with all arrays in it closed to writers: a run that writes to one would change the others' inputs.

    NumPy then refuses. Kernels, which are machine code, are held to it by a test.
    """
    parts: list[Any] = [value]
    while parts:
        one = parts.pop()
        if isinstance(one, np.ndarray):
            one.flags.writeable = False
        elif is_dataclass(one):
            parts += [getattr(one, field.name) for field in fields(one)]
        elif isinstance(one, tuple) and one and (is_dataclass(one[0]) or isinstance(one[0], np.ndarray)):
            parts += one
    return value
