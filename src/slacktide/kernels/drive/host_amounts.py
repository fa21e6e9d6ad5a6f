"""What a host of a simulated cluster has changes, what others than the run's instances take of it, or their marks.

As on a cluster (:meth:`.Growing.take_room`, :meth:`.Growing.set_host`): instances stay where they are, also where more
was given away than there is then, and nobody comes until there is room again.
"""

from __future__ import annotations

from slacktide.kernels.feasible import affinity, host_slots
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import CAPACITY, State

FULL = 2.0**40  # the whole of what a host has, in the units of its free fraction


@kernel
def change(tb: State, h: int, kind: int, at: int) -> bool:
    """Apply a row of ``host_amounts`` to host ``h``; whether anything became free; O(resources + log hosts).

    Where what the host has changes, ties between hosts stay; what others take counts as a change of its contents.
    """
    of_host, found = kind == CAPACITY, False
    for r in range(views.free(tb).shape[1]):
        more = views.host_amounts(tb)[at, r] if of_host else -views.host_amounts(tb)[at, r]
        views.free(tb)[h, r] += more
        found = found or more > 0
        if of_host:
            views.capacity(tb)[h, r] += more
    host_slots.note_release(tb, h)
    if not of_host:
        host_slots.touch(tb, h)
        return found
    for r in range(2):
        views.scale(tb)[h, r] = FULL / views.capacity(tb)[h, r] if views.capacity(tb)[h, r] > 0 else 0.0
    host_slots.set_version(tb, h, whole(views.hosts(tb)[h]["version"]))
    for k in range(len(views.kinds(tb))):
        views.kinds(tb)[k]["homeless"] = 0  # it may be large enough now, or not any more
    return found


@kernel
def change_marks(tb: State, h: int, at: int) -> bool:
    """Apply a row of ``host_marks`` to host ``h``; whether it counts for a rule or a preference; O(1)."""
    counter, by = whole(views.host_marks(tb)[at, 0]), whole(views.host_marks(tb)[at, 1])
    if counter < 0 or not affinity.count_one(tb, counter, h, by):
        return False
    host_slots.note_release(tb, h)
    return True
