"""Demands that change: in place where that fits, else on another host, else later (docs/semantics.md, 'Resizes')."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive import gang, instance_ledger, pending_resize
from slacktide.kernels.feasible import affinity, disruption_budgets, disruption_limits, grants, host_slots
from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.place import search_free, search_with_rules
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.queue import waiting_queue
from slacktide.kernels.runtime.compiling import entry, kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.buffer_capacity import FINISHED, lacking
from slacktide.kernels.tables.log_records import DEFERRED, MOVED, RESIZED
from slacktide.kernels.tables.schema import DONE, NOBODY, PLACED, REMOVED, WAITING, State


@kernel
def resize_due(tb: State, now: float) -> bool:
    """Let the resizes come that are due; whether there were any; O(queue) for one that waits, else O(log hosts)."""
    control = views.control(tb)
    found = False
    while control["resized"] < len(views.resizings(tb)) and views.resizings(tb)[control["resized"]]["time"] <= now:
        at = whole(control["resized"])
        control["resized"] += 1
        found = True
        come(tb, at)
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def come(tb: State, at: int) -> None:
    """A resize has come: it holds at once for who is on no host or asks for no more of anything, else it is tried."""
    event = views.resizings(tb)[at]
    row, kind = whole(event["row"]), whole(event["kind"])
    instance = views.instances(tb)[row]
    if instance["state"] == DONE or instance["state"] == REMOVED:
        return
    control = views.control(tb)
    if instance["state"] != PLACED:
        instance["kind"] = kind
        if instance["state"] == WAITING:
            waiting_queue.change_kind(tb, row, kind)
        control["resizes"] += 1
        instance_ledger.record(tb, RESIZED, row, NOBODY, NOBODY, np.nan)
        return
    pending_resize.forget(tb, row)
    views.resize_of(tb)[row] = at
    control["open_resizes"] += 1
    if asks_for_no_more(tb, row, kind):
        fit_in(tb, row)
        return
    views.deferred(tb)[control["deferred"]] = at
    control["deferred"] += 1


@kernel
def shape_of(tb: State, kind: int) -> int:
    """The demand of a kind; O(1)."""
    return whole(views.kinds(tb)[kind]["shape"])


@kernel
def asks_for_no_more(tb: State, row: int, kind: int) -> bool:
    """Whether instances of a kind demand at most what the instance has, of every resource; O(resources)."""
    had, wanted = shape_of(tb, whole(views.instances(tb)[row]["kind"])), shape_of(tb, kind)
    for r in range(views.demand(tb).shape[1]):
        if views.demand(tb)[wanted, r] > views.demand(tb)[had, r]:
            return False
    return True


@kernel
def fits_in(tb: State, row: int, kind: int) -> bool:
    """Whether the host of an instance has room for what it wants beyond what it has; O(resources)."""
    instance = views.instances(tb)[row]
    had, wanted = shape_of(tb, whole(instance["kind"])), shape_of(tb, kind)
    for r in range(views.demand(tb).shape[1]):
        room = views.free(tb)[instance["host"], r] + grants.taken(tb, row, had, whole(r))
        if views.demand(tb)[wanted, r] > room:
            return False
    return True


@kernel
def fit_in(tb: State, row: int) -> None:
    """Resize an instance on its host; O(instances on it + log hosts)."""
    instance = views.instances(tb)[row]
    h = whole(instance["host"])
    had = shape_of(tb, whole(instance["kind"]))
    pending_resize.grant(tb, row)
    shape = shape_of(tb, whole(instance["kind"]))
    views.slots(tb)[h, host_slots.slot_of(tb, h, row)]["shape"] = shape
    for r in range(views.demand(tb).shape[1]):
        views.free(tb)[h, r] += grants.taken(tb, row, had, whole(r))
    if len(views.granted(tb)) > 0:
        grants.take(tb, row, h, shape)
    for r in range(views.demand(tb).shape[1]):
        views.free(tb)[h, r] -= grants.taken(tb, row, shape, whole(r))
    host_slots.note_release(tb, h)
    host_slots.touch(tb, h)
    views.control(tb)["resizes"] += 1
    instance_ledger.record(tb, RESIZED, row, h, NOBODY, np.nan)


@kernel
def may_move(tb: State, row: int, now: float) -> bool:
    """Whether budget, limits and least running time let an instance leave its host; O(instances on it)."""
    h = whole(views.instances(tb)[row]["host"])
    return not disruption_budgets.spared(tb, h, host_slots.slot_of(tb, h, row), whole(0), now)


@kernel
def another_host(tb: State, row: int, kind: int, now: float) -> int:
    """The best host with room for an instance if it were off its own, which has none, or -1; as a search for room."""
    gang.take_off(tb, whole(views.instances(tb)[row]["host"]), row, now)
    views.control(tb)["seeking"] = views.kinds(tb)[kind]["cls"]
    host = whole(
        search_with_rules.find_free(tb, kind) if affinity.involved(tb, kind) else search_free.find_free(tb, kind)
    )
    gang.undo(tb, now)
    return host


@kernel
def move(tb: State, row: int, h: int, now: float) -> None:
    """Take an instance off its host and start it on host ``h`` with what it wants; no preemption; O(log)."""
    instance = views.instances(tb)[row]
    q = request_ledger.owner_of(tb, row)
    discarded = instance["discarded"]
    disruption_limits.begin(tb, row, now)
    instance_ledger.settle(tb, row, now, instance_ledger.loses(tb, row))
    instance_ledger.leave_host(tb, row, now)
    if q >= 0:
        request_ledger.pays(tb, q, 0.0, instance["discarded"] - discarded)
    instance_ledger.start(tb, row, h, now)
    views.control(tb)["moves"] += 1
    instance_ledger.record(tb, MOVED, row, h, NOBODY, np.nan)


@kernel
def attempt(tb: State, at: int, now: float) -> None:
    """Try what an instance on a host wants: in place, else by moving it; else it is deferred; O(a search for room)."""
    event = views.resizings(tb)[at]
    row, kind = whole(event["row"]), whole(event["kind"])
    if fits_in(tb, row, kind):
        fit_in(tb, row)
        return
    host = whole(-1)
    if may_move(tb, row, now):
        host = whole(another_host(tb, row, kind, now))
    if host >= 0:
        move(tb, row, host, now)
    elif not event["told"]:
        event["told"] = 1
        views.control(tb)["deferrals"] += 1
        instance_ledger.record(tb, DEFERRED, row, whole(views.instances(tb)[row]["host"]), NOBODY, np.nan)


@kernel
def retry(tb: State, now: float) -> int:
    """Try all that wait for room, in the order in which they came; what must grow, or FINISHED."""
    control = views.control(tb)
    while control["retried"] < control["deferred"]:
        code = lacking(tb)
        if code != FINISHED:
            return code
        at = whole(views.deferred(tb)[control["retried"]])
        if views.resize_of(tb)[views.resizings(tb)[at]["row"]] == at:
            attempt(tb, at, now)
            control["last_pass"] = now
        control["retried"] += 1
    kept = 0
    for i in range(control["deferred"]):
        at = whole(views.deferred(tb)[i])
        if views.resize_of(tb)[views.resizings(tb)[at]["row"]] == at:
            views.deferred(tb)[kept] = at
            kept += 1
    control["deferred"] = kept
    control["retried"] = 0
    return FINISHED


@kernel
def keep_welcoming(tb: State, row: int, mask: NDArray[np.bool_]) -> None:
    """Clear the elements of ``mask``, shape (hosts,), where the rules of an instance, which is counted nowhere, do not
    hold, and its own host's; O(hosts * rules)."""
    kind = whole(views.instances(tb)[row]["kind"])
    mask[views.instances(tb)[row]["host"]] = False
    if views.kinds(tb)[kind]["conditions"] == 0:
        return
    affinity.prepare(tb, kind)
    for h in range(len(mask)):
        if mask[h] and affinity.rules_at(tb, kind, h) != affinity.HOLD:
            mask[h] = False


@entry
def welcoming_elsewhere(tb: State, row: int, mask: NDArray[np.bool_]) -> None:
    """Clear the elements of ``mask``, shape (hosts,), where the rules of an instance on a host would not hold if it
    were off that, and its own host's; O(hosts * rules)."""
    kind, own = whole(views.instances(tb)[row]["kind"]), whole(views.instances(tb)[row]["host"])
    affinity.count(tb, kind, own, whole(-1))
    keep_welcoming(tb, row, mask)
    affinity.count(tb, kind, own, whole(1))


@entry
def best_of(tb: State, row: int, mask: NDArray[np.bool_]) -> int:
    """The best host of ``mask``, shape (hosts,), all of which could take an instance that is on another; -1: none.

    By its preferences, as they were if it were off its own host, and the allocation score; O(hosts * preferences).
    """
    kind, own = whole(views.instances(tb)[row]["kind"]), whole(views.instances(tb)[row]["host"])
    affinity.count(tb, kind, own, whole(-1))
    least, largest = whole(2**62), whole(-(2**62))
    for h in range(len(mask)):
        views.points(tb)[h] = NOWHERE
        if mask[h]:
            points = affinity.points_of(tb, kind, h)
            least, largest = min(least, points), max(largest, points)
            views.points(tb)[h] = points
    affinity.count(tb, kind, own, whole(1))
    if comparing.needed(tb):
        return whole(comparing.choose(tb, kind))
    return whole(search_with_rules.best_score(tb, kind, least, largest))
