"""Gives freed memory back, so that the peak is what a run needs at once."""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc's malloc.h
LARGE = 1 << 20


def give_back() -> None:
    """Let the C library map arrays of a megabyte and more by themselves, and unmap them when they are freed.

    By default glibc raises that limit to 32 MB as it goes and keeps what lies below:
    70 MB more at a million requests. Does nothing with another C library.
    """
    try:
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)
    except (OSError, AttributeError):
        return
