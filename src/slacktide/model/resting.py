"""Arrays that rest in files: what nobody looks at takes no memory (docs/benchmarks.md).

Such an array is an ordinary one to all who use it. Its memory is that of a file without a name, in the folder for
temporary files. Where :func:`let_go` is called, the system may have its pages back; whoever looks at one later gets it
from the file. It is gone with the array, however the process ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST = 1 << 18
"""Rows from which on it is worth it: fewer take some 40 MB."""
PART = 1 << 16
"""Rows to work on before letting them go."""

Room = Callable[[Any, Any], NDArray[Any]]
"""Makes an array of zeros of a shape and a type."""


def ordinary(shape: Any, dtype: Any) -> NDArray[Any]:
    """An array in memory."""
    return np.zeros(shape, dtype)


def resting(shape: Any, dtype: Any, advice: int | None = None) -> NDArray[Any]:
    """An array of zeros in a file; in memory where the system offers no such file, or has no room for it.

    ``advice`` is one of the constants of :mod:`mmap`, on how it will be looked at.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size == 0 or not hasattr(os, "posix_fallocate") or not hasattr(mmap, "MADV_DONTNEED"):
        return ordinary(shape, dtype)
    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a disk that is full is found out here, not by a signal
            pages = mmap.mmap(file.fileno(), size)
            if advice is not None:
                pages.madvise(advice)
    except OSError:
        return ordinary(shape, dtype)
    return np.frombuffer(pages, dtype).reshape(shape)


def room_beside(*arrays: NDArray[Any], room: Room = resting) -> Room:
    """``room`` where one of ``arrays`` rests, else :func:`ordinary`."""
    return room if any(_pages(array) is not None for array in arrays) else ordinary


def scattered(shape: Any, dtype: Any) -> NDArray[Any]:
    """:func:`resting`, for rows that are looked at here and there: what is around one of them is not mapped with it.

    Else nearly all of a table counts as memory of the process while the system has memory to spare, though few of its
    rows are in use.
    """
    return resting(shape, dtype, getattr(mmap, "MADV_RANDOM", None))


def let_go(*arrays: NDArray[Any] | None) -> None:
    """The system may have the memory of those that rest, and of all that they are views of, until they are used."""
    for array in arrays:
        pages = None if array is None else _pages(array)
        if pages is not None:
            pages.madvise(mmap.MADV_DONTNEED)


def _pages(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    found = getattr(base, "obj", base)
    return found if isinstance(found, mmap.mmap) else None
