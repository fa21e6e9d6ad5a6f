"""Gives freed memory back, so that the peak is what a run needs at once."""

from __future__ import annotations

import ctypes
import os

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h
LARGE = 1 << 18


def give_back() -> None:
    """Let the C library map arrays of 256 kB and more by themselves, and unmap them when they are freed.

    By default glibc raises that limit to 32 MB as it goes and keeps what lies below: 70 MB more at a million
    requests. Such is a column of a batch that is read or written. Does nothing with another C library. Arrow takes
    its memory from there, too, if it is not imported yet: its own allocator keeps as much as the file had bytes.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    try:
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)
    except (OSError, AttributeError):
        return
