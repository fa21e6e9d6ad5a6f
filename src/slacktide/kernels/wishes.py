"""What an instance on a host would rather demand, while its host has no room for that."""

from __future__ import annotations

from slacktide.kernels import views
from slacktide.kernels.compiling import kernel
from slacktide.kernels.tables import State


@kernel
def grant(tb: State, row: int) -> None:
    """From now on the instance is of the kind that it waits for, if any: it is on no host, or has the room; O(1)."""
    place = views.wish(tb)[row]
    if place >= 0:
        views.instances(tb)[row]["kind"] = views.resizings(tb)[place]["kind"]
        forget(tb, row)


@kernel
def forget(tb: State, row: int) -> None:
    """The instance waits for nothing, or for something else from now on; O(1)."""
    if views.wish(tb)[row] >= 0:
        views.wish(tb)[row] = -1
        views.control(tb)["open_resizes"] -= 1
