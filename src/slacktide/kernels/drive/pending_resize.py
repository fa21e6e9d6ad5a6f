"""Resizes that are deferred: what an instance on a host waits to demand until its host has room."""

from __future__ import annotations

from slacktide.kernels.runtime.compiling import kernel
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@kernel
def grant(tb: State, row: int) -> None:
    """From now on the instance is of the kind that it waits for, if any: it is on no host, or has the room; O(1)."""
    at = views.resize_of(tb)[row]
    if at >= 0:
        views.instances(tb)[row]["kind"] = views.resizings(tb)[at]["kind"]
        forget(tb, row)


@kernel
def forget(tb: State, row: int) -> None:
    """The instance waits for nothing, or for something else from now on; O(1)."""
    if views.resize_of(tb)[row] >= 0:
        views.resize_of(tb)[row] = -1
        views.control(tb)["open_resizes"] -= 1
