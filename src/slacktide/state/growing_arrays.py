"""Arrays that grow: along an axis as the declaration of arrays names them, or because a kernel asked for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.tables import buffer_capacity
from slacktide.kernels.tables.arrays import ARRAYS, AXES, Presence, Tables
from slacktide.kernels.tables.schema import RECORD_OUTAGES


@cache
def along(axis: str, *presences: Presence, at: int = 0) -> tuple[str, ...]:
    """Names of arrays whose first (``at`` 0) or last (-1) axis is ``axis``; of those always there, unless told."""
    assert axis in AXES, axis  # noqa: S101  # for the programmer
    wanted = presences or (Presence.ALWAYS,)
    return tuple(name for name, one in ARRAYS.items() if one.axes[at] == axis and one.presence in wanted)


def lengthen(tb: Tables, name: str, length: int, at: int = 0) -> None:
    """Grow the first (``at`` 0) or last (-1) axis of an array to at least ``length``, new places zero."""
    old = tb[name]
    if old.shape[at] < length:
        shape = list(old.shape)
        shape[at] = length
        grown = np.zeros(shape, old.dtype)
        grown[tuple(slice(extent) for extent in old.shape)] = old
        tb.put(name, grown)


def lengthen_along(tb: Tables, axis: str, length: int, *presences: Presence, at: int = 0) -> None:
    """:func:`lengthen` all that :func:`along` names."""
    for name in along(axis, *presences, at=at):
        lengthen(tb, name, length, at)


def double(tb: Tables, axis: str) -> None:
    """Make each array along an axis twice as long as it is."""
    for name in along(axis):
        lengthen(tb, name, 2 * len(tb[name]))


def widen_hosts(tb: Tables) -> None:
    """Buffers for twice as many instances a host, and for what one host's worth of them may cause."""
    width = 2 * tb["slots"].shape[1]
    lengthen_along(tb, "slots", width, at=-1)
    lengthen_along(tb, "waiting", 4 * width)
    lengthen(tb, "victims", 4 * width)
    make_room_for_companions(tb)
    make_room_for_events(tb)


def make_room_for_events(tb: Tables) -> None:
    """When the buffer is empty, what the failure of one host or one scale event causes fits into it."""
    outages = len(tb["request_accounts"]) if tb.rules["record"] & RECORD_OUTAGES else 0
    lengthen(tb, "events", 4 * (tb["slots"].shape[1] + len(tb["leavers"]) + len(tb["excess"])) + outages)


def lengthen_leavers(tb: Tables) -> None:
    """Room for twice as many preempted instances in their grace periods, and for what happens when they go at once."""
    lengthen(tb, "leavers", 2 * len(tb["leavers"]) + tb["slots"].shape[1])
    make_room_for_events(tb)


def make_room_for_companions(tb: Tables) -> None:
    """Scratch for the victims of a choice: those on its host, and whoever must go with them from others."""
    for name in ("slack", "ranks"):
        lengthen(tb, name, tb["slots"].shape[1] + int(tb.control["whole_members"]))


def enlarge_visits(tb: Tables) -> None:
    """A hash set four times as large for the hosts that requests were started on."""
    larger = np.zeros(4 * len(tb["visits"]), np.int64)
    instance_ledger.copy_visits(tb["visits"], larger)
    tb.put("visits", larger)


GROWERS: dict[int, Callable[[Tables], None]] = {
    buffer_capacity.MORE_SLOTS: widen_hosts,
    buffer_capacity.MORE_QUEUE: lambda tb: double(tb, "waiting"),
    buffer_capacity.MORE_HEAP: lambda tb: double(tb, "ahead"),
    buffer_capacity.MORE_OUTAGES: lambda tb: lengthen(tb, "outages", 2 * len(tb["outages"]) + 64),
    buffer_capacity.MORE_VISITS: enlarge_visits,
    buffer_capacity.MORE_LEAVERS: lengthen_leavers,
    buffer_capacity.MORE_ACTS: lambda tb: lengthen_along(tb, "steps", 2 * len(tb["acts"]) + tb["slots"].shape[1]),
}
"""What to do when a kernel stops because a buffer is full."""

RECORDERS = along("recorded")
"""Buffers that kernels fill for the caller to read."""


def lengthen_recorders(tb: Tables) -> None:
    """Buffers for twice as many records: for a caller that reads them when the pass is over."""
    double(tb, "recorded")


def grow(tb: Tables, code: int, flush: Callable[[Tables], None] = lengthen_recorders) -> bool:
    """Serve what a kernel stopped for, by its code; whether there was anything, so that it must be called again.

    ``flush`` empties full recorders, or lengthens them.
    """
    if code == buffer_capacity.FLUSH:
        flush(tb)
    elif code in GROWERS:
        GROWERS[code](tb)
    return code != buffer_capacity.FINISHED
