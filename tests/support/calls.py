"""How much work something is, counted in calls: the same on every machine, however busy.

How long things take belongs into benchmarks. That they do not take a hundred times as much work is for tests.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

KERNELS = "/slacktide/kernels/"
"""Calls from there are not counted: where kernels are not compiled they are Python's as well."""


def calls_of(action: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C, until ``action`` returns."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event in ("call", "c_call") and KERNELS not in frame.f_code.co_filename:
            count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
