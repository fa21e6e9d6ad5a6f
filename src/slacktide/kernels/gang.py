"""All or nothing: the waiting instances of a concurrent request are tried together (docs/semantics.md, 'Gang').

A trial moves slots on the board and counts in the ledgers, in the order in which the
pass would, and is undone in reverse. Where it succeeded, the pass then makes the same
decisions in earnest: the board is as it was, to the host's version and tie.
"""

from __future__ import annotations

from slacktide.kernels import board, budgets, ledger, requests, views
from slacktide.kernels.compiling import kernel, whole
from slacktide.kernels.request_records import CONCURRENT
from slacktide.kernels.tables import (
    OPEN,
    Records,
    State,
)


@kernel
def goes_in_gang(tb: State, q: int) -> bool:
    """Whether the waiting instances of a request start together or not at all; O(1)."""
    if q < 0 or not views.rules(tb)["gang"]:
        return False
    request = views.requests(tb)[q]
    return request["approach"] == CONCURRENT and request["live"] > 1


@kernel
def next_member(entries: Records, q: int, at: int, count: int) -> int:
    """Place of the request's first open entry from place ``at`` on, or -1; O(entries). They stand in order of row."""
    while at < count:
        if entries[at]["request"] == q and entries[at]["done"] == OPEN:
            return at
        at += 1
    return whole(-1)


@kernel
def all_are_here(tb: State, entries: Records, q: int, count: int) -> bool:
    """Whether every waiting instance of the request is among the open entries; O(entries)."""
    number = whole(0)
    for i in range(count):
        number += entries[i]["request"] == q and entries[i]["done"] == OPEN
    return number == views.requests(tb)[q]["live"] - views.requests(tb)[q]["placed"]


@kernel
def note_act(tb: State, row: int, h: int, off: int) -> None:
    """Write down what the trial is about to do, and the host's version before it."""
    control = views.control(tb)
    act = views.acts(tb)[control["acts"]]
    act["row"], act["host"], act["off"], act["version"] = row, h, off, views.hosts(tb)[h]["version"]
    control["acts"] += 1


@kernel
def take_off(tb: State, h: int, row: int, now: float) -> None:
    """Remove an instance from the board for the time of the trial; O(instances + log hosts)."""
    at = board.place_of(tb, h, row)
    views.acted(tb)[views.control(tb)["acts"]] = views.slots(tb)[h, at]
    q = requests.owner_of(tb, row)
    if q >= 0:
        requests.bring_up_to(tb, q, now)
        act, request = views.acts(tb)[views.control(tb)["acts"]], views.requests(tb)[q]
        instance = views.instances(tb)[row]
        act["overhead"], act["received"] = request["overhead"], request["received"]
        useful = max(0.0, now - (instance["since"] + instance["startup"]))
        requests.left(tb, q, row, now)
        lost = instance["running"] + useful if ledger.loses(tb, row) else 0.0
        requests.pays(tb, q, min(instance["startup"], now - instance["since"]), lost)
    note_act(tb, row, h, whole(1))
    if budgets.is_ready(tb, row, now):
        budgets.change(tb, row, whole(0), whole(-1))
    board.remove(tb, h, row)


@kernel
def put_on(tb: State, h: int, row: int, now: float) -> None:
    """Put a waiting instance on the board for the time of the trial; O(resources + log hosts)."""
    note_act(tb, row, h, whole(0))
    views.instances(tb)[row]["host"] = h
    q = requests.owner_of(tb, row)
    requests.link(tb, q, row)
    requests.change(tb, q, whole(0), whole(0), False, False, whole(1), whole(0))
    count_if_ready(tb, row, h, whole(1))
    board.add(tb, h, row, whole(views.instances(tb)[row]["kind"]), now, now)


@kernel
def count_if_ready(tb: State, row: int, h: int, by: int) -> None:
    """In its budget, count an instance that is tried on host ``h`` and would be ready there at once; O(1)."""
    if budgets.budget_of(tb, row) >= 0 and ledger.would_be_ready(tb, row, h):
        budgets.change(tb, row, whole(0), by)


@kernel
def undo(tb: State, now: float) -> None:
    """Take back all that the trial did, the last first; O(acts * (instances + log hosts))."""
    control = views.control(tb)
    while control["acts"] > 0:
        control["acts"] -= 1
        act = views.acts(tb)[control["acts"]]
        row, h = whole(act["row"]), whole(act["host"])
        q = requests.owner_of(tb, row)
        if act["off"]:
            views.slots(tb)[h, views.hosts(tb)[h]["count"]] = views.acted(tb)[control["acts"]]
            board.occupy(tb, h)
            if budgets.is_ready(tb, row, now):
                budgets.change(tb, row, whole(0), whole(1))
            if q >= 0:
                put_back(tb, q, row, now)
                requests.gets_back(tb, q, act["overhead"], act["received"])
        else:
            requests.unlink(tb, q, row)
            requests.change(tb, q, whole(0), whole(0), False, False, whole(-1), whole(0))
            count_if_ready(tb, row, h, whole(-1))
            board.remove(tb, h, row)
            views.instances(tb)[row]["host"] = -1
        board.set_version(tb, h, whole(act["version"]))


@kernel
def put_back(tb: State, q: int, row: int, now: float) -> None:
    """Count an instance as on its host again; O(1)."""
    instance = views.instances(tb)[row]
    ready = now >= instance["since"] + instance["startup"]
    requests.link(tb, q, row)
    requests.change(tb, q, whole(1), whole(instance["starts"]), ready, True, whole(1), whole(0))
