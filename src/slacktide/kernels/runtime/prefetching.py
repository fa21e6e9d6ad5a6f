"""Having records on their way to the processor before they are needed; nothing where kernels are plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from slacktide.kernels.runtime.compiling import compiles


def _nothing(array: Any, at: int) -> None:
    """Memory of an interpreter is not worth it."""


prefetch: Callable[[Any, int], Any] = _nothing
"""The record at this place of an array of one axis is read later."""
if compiles():
    from slacktide.kernels.runtime import intrinsics

    prefetch = cast(Any, intrinsics.prefetch)
