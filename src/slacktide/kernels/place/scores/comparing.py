"""Scores that compare hosts with each other: delay-aware and its comparators, each in a file of its own.

Each chooses among the hosts whose ``points`` are not NOWHERE; points are those of an
instance's preferences, 0 where it has none. Delay-aware prefers the host of most
points among its final candidates, the comparators know no preferences.

They are called by address (:mod:`slacktide.kernels.builtin` names their modules): only the one that
is asked for is compiled, and none of them is part of every kernel that looks for a host. The table
``CALLED`` of each: ``score(tb, h, shape)`` tells hosts to preempt on apart (without one the default score
does), ``choose(tb, shape)`` compares hosts with room, ``near(tb, kind)`` does so without a look at all.
"""

from __future__ import annotations

from collections.abc import Callable

from slacktide.kernels.feasible import free_index, host_slots
from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.runtime.compiling import PLAIN, compiles, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


def _call_plain(address: int, *arguments: int) -> int:
    return int(PLAIN[address](*arguments))


_call: Callable[..., int]
_call_with_two: Callable[..., int]
if compiles():
    from slacktide.kernels.runtime import intrinsics

    _call, _call_with_two = intrinsics.call_with_two, intrinsics.call_with_three
else:
    _call = _call_with_two = _call_plain


@leaf
def needed(tb: State) -> bool:
    """Whether the score in force compares hosts with each other, instead of giving each a number of its own; O(1)."""
    return views.rules(tb)["placer_choose"] != 0


@kernel
def allocation_score(tb: State, h: int, shape: int) -> int:
    """Score of host ``h`` when ``views.missing(tb)`` is demand less free amounts; to compare hosts to preempt on."""
    address = views.rules(tb)["placer_score"]
    if address != 0:
        return _call_with_two(address, tb, whole(h), whole(shape))
    return free_index.allocation_score(tb, h, shape)


@kernel
def choose(tb: State, kind: int) -> int:
    """The best of the hosts whose points are not NOWHERE, or -1."""
    return _call(views.rules(tb)["placer_choose"], tb, whole(views.kinds(tb)[kind]["shape"]))


@leaf
def open_with_room(tb: State, h: int, kind: int, shape: int) -> bool:
    """Whether an instance of the kind fits on host ``h`` and may go there; leaves ``missing``; O(resources)."""
    record, host = views.kinds(tb)[kind], views.hosts(tb)[h]
    if host["down"] or not free_index.has_room(tb, h, shape):
        return False
    return views.allowed(tb)[record["term"], host["group"]] != 0 and not host_slots.has_sibling(
        tb, h, whole(record["job"])
    )


@kernel
def find_free(tb: State, kind: int) -> int:
    """Best host with room for a kind without rules and preferences, or -1."""
    near, shape = views.rules(tb)["placer_near"], whole(views.kinds(tb)[kind]["shape"])
    if near != 0 and not views.rules(tb)["naive"]:
        return _call(near, tb, whole(kind))
    for h in range(len(views.hosts(tb))):
        views.points(tb)[h] = 0 if open_with_room(tb, h, kind, shape) else NOWHERE
    views.control(tb)["operations"] += len(views.hosts(tb))
    return choose(tb, kind)
