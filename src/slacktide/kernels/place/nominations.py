"""Hosts for which somebody else nominated waiting instances (docs/semantics.md, 'Nominations by others')."""

from __future__ import annotations

from slacktide.kernels.feasible import affinity, free_index, host_slots
from slacktide.kernels.place import search_with_rules
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

HOST, KEPT = 0, 1
"""Columns of ``nominated``: the host, or -1; whether room is kept there in this pass."""


@leaf
def host_of(tb: State, row: int) -> int:
    """The host for which an instance is nominated, or -1; O(1)."""
    return whole(views.nominated(tb)[row, HOST]) if len(views.nominated(tb)) > 0 else whole(-1)


@kernel
def first_choice(tb: State, row: int) -> int:
    """The host for which an instance is nominated, where it can go there at once, or -1; O(rules + domains)."""
    h, kind = whole(host_of(tb, row)), whole(views.instances(tb)[row]["kind"])
    if h < 0 or not search_with_rules.open_to(tb, h, kind):
        return whole(-1)
    if not free_index.has_room(tb, h, whole(views.kinds(tb)[kind]["shape"])):
        return whole(-1)
    affinity.prepare(tb, kind)
    return h if affinity.rules_at(tb, kind, h) == affinity.HOLD else whole(-1)


@kernel
def keep_room(tb: State, row: int) -> None:
    """An instance found no host: those whose turn comes later leave it what it asks for where it is nominated."""
    h = whole(host_of(tb, row))
    if h < 0 or views.hosts(tb)[h]["down"] or views.nominated(tb)[row, KEPT]:
        return
    views.nominated(tb)[row, KEPT] = 1
    views.control(tb)["kept"] += 1
    give(tb, row, h, whole(-1))


@kernel
def give(tb: State, row: int, h: int, sign: int) -> None:
    """What an instance asks for is free on host ``h`` (1), or is not (-1); O(resources + log hosts)."""
    shape = whole(views.kinds(tb)[views.instances(tb)[row]["kind"]]["shape"])
    for r in range(views.free(tb).shape[1]):
        views.free(tb)[h, r] += sign * views.demand(tb)[shape, r]
    if sign > 0:
        host_slots.note_release(tb, h)
    host_slots.touch(tb, h)


@kernel
def give_back(tb: State) -> None:
    """The pass is over: no room is kept any more; O(queue) where some was."""
    control = views.control(tb)
    if control["kept"] == 0:
        return
    control["kept"] = 0
    for i in range(control["queue"]):
        row = whole(views.queue(tb)[i]["row"])
        if views.nominated(tb)[row, KEPT]:
            views.nominated(tb)[row, KEPT] = 0
            give(tb, row, whole(host_of(tb, row)), whole(1))
