"""Demands that change: in place where that fits, else on another host, else later (docs/semantics.md, 'Resizes')."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels import among, board, budgets, gang, grants, ledger, neighbours, requests, search, views, wishes
from slacktide.kernels.compiling import entry, kernel, whole
from slacktide.kernels.log_records import DEFERRED, MOVED, RESIZED
from slacktide.kernels.room import FINISHED, lacking
from slacktide.kernels.tables import DONE, NOBODY, PLACED, REMOVED, WAITING, State


@kernel
def resize_due(tb: State, now: float) -> bool:
    """Let the resizes come that are due; whether there were any; O(queue) for one that waits, else O(log hosts)."""
    control = views.control(tb)
    found = False
    while control["resized"] < len(views.resizings(tb)) and views.resizings(tb)[control["resized"]]["time"] <= now:
        place = whole(control["resized"])
        control["resized"] += 1
        found = True
        come(tb, place)
        if lacking(tb) != FINISHED:
            break
    return found


@kernel
def come(tb: State, place: int) -> None:
    """A resize has come: it holds at once for who is on no host or asks for no more of anything, else it is tried."""
    event = views.resizings(tb)[place]
    row, kind = whole(event["row"]), whole(event["kind"])
    instance = views.instances(tb)[row]
    if instance["state"] == DONE or instance["state"] == REMOVED:
        return
    control = views.control(tb)
    if instance["state"] != PLACED:
        instance["kind"] = kind
        if instance["state"] == WAITING:
            ask_anew(tb, row, kind)
        control["resizes"] += 1
        ledger.record(tb, RESIZED, row, NOBODY, NOBODY, np.nan)
        return
    wishes.forget(tb, row)
    views.wish(tb)[row] = place
    control["open_resizes"] += 1
    if asks_for_no_more(tb, row, kind):
        fit_in(tb, row)
        return
    views.deferred(tb)[control["deferred"]] = place
    control["deferred"] += 1


@kernel
def ask_anew(tb: State, row: int, kind: int) -> None:
    """A waiting instance is of another kind; O(queue)."""
    control = views.control(tb)
    for i in range(control["queue"]):
        if views.queue(tb)[i]["row"] == row:
            views.queue(tb)[i]["kind"] = kind
            return
    for i in range(control["incoming"]):
        if views.incoming(tb)[i]["row"] == row:
            views.incoming(tb)[i]["kind"] = kind
            return


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
    """Whether the host of an instance has room for what it wants beyond what it has (paper 6.2); O(resources)."""
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
    wishes.grant(tb, row)
    shape = shape_of(tb, whole(instance["kind"]))
    views.slots(tb)[h, board.place_of(tb, h, row)]["shape"] = shape
    for r in range(views.demand(tb).shape[1]):
        views.free(tb)[h, r] += grants.taken(tb, row, had, whole(r))
    if len(views.granted(tb)) > 0:
        grants.take(tb, row, h, shape)
    for r in range(views.demand(tb).shape[1]):
        views.free(tb)[h, r] -= grants.taken(tb, row, shape, whole(r))
    board.note_release(tb, h)
    board.touch(tb, h)
    views.control(tb)["resizes"] += 1
    ledger.record(tb, RESIZED, row, h, NOBODY, np.nan)


@kernel
def may_move(tb: State, row: int, now: float) -> bool:
    """Whether budget and least running time let an instance leave its host; O(instances on it)."""
    h = whole(views.instances(tb)[row]["host"])
    return not budgets.spared(tb, h, board.place_of(tb, h, row), whole(0), now)


@kernel
def another_host(tb: State, row: int, kind: int, now: float) -> int:
    """The best host with room for an instance if it were off its own, which has none, or -1; as a search for room."""
    gang.take_off(tb, whole(views.instances(tb)[row]["host"]), row, now)
    host = whole(among.find_free(tb, kind) if neighbours.involved(tb, kind) else search.find_free(tb, kind))
    gang.undo(tb, now)
    return host


@kernel
def move(tb: State, row: int, h: int, now: float) -> None:
    """Take an instance off its host and start it on host ``h`` with what it wants; no preemption; O(log)."""
    instance = views.instances(tb)[row]
    q = requests.owner_of(tb, row)
    discarded = instance["discarded"]
    ledger.settle(tb, row, now, ledger.loses(tb, row))
    ledger.leave_host(tb, row, now)
    if q >= 0:
        requests.pays(tb, q, 0.0, instance["discarded"] - discarded)
    ledger.start(tb, row, h, now)
    views.control(tb)["moves"] += 1
    ledger.record(tb, MOVED, row, h, NOBODY, np.nan)


@kernel
def attempt(tb: State, place: int, now: float) -> None:
    """Try what an instance on a host wants: in place, else by moving it; else it is deferred; O(a search for room)."""
    event = views.resizings(tb)[place]
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
        ledger.record(tb, DEFERRED, row, whole(views.instances(tb)[row]["host"]), NOBODY, np.nan)


@kernel
def retry(tb: State, now: float) -> int:
    """Try all that wait for room, in the order in which they came; what must grow, or FINISHED."""
    control = views.control(tb)
    while control["retried"] < control["deferred"]:
        code = lacking(tb)
        if code != FINISHED:
            return code
        place = whole(views.deferred(tb)[control["retried"]])
        if views.wish(tb)[views.resizings(tb)[place]["row"]] == place:
            attempt(tb, place, now)
            control["last_pass"] = now
        control["retried"] += 1
    kept = 0
    for i in range(control["deferred"]):
        place = whole(views.deferred(tb)[i])
        if views.wish(tb)[views.resizings(tb)[place]["row"]] == place:
            views.deferred(tb)[kept] = place
            kept += 1
    control["deferred"] = kept
    control["retried"] = 0
    return FINISHED


@entry
def welcoming_elsewhere(tb: State, row: int, mask: NDArray[np.bool_]) -> None:
    """Clear the places of ``mask``, shape (hosts,), where the rules of an instance on a host would not hold if it were
    off that, and its own host's; O(hosts * rules)."""
    instance = views.instances(tb)[row]
    kind, own = whole(instance["kind"]), whole(instance["host"])
    mask[own] = False
    if views.kinds(tb)[kind]["conditions"] == 0:
        return
    neighbours.count(tb, kind, own, whole(-1))
    neighbours.prepare(tb, kind)
    for h in range(len(mask)):
        if mask[h] and neighbours.asks(tb, kind, h) != neighbours.HOLD:
            mask[h] = False
    neighbours.count(tb, kind, own, whole(1))
