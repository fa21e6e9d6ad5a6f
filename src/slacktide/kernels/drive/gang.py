"""All or nothing: the waiting instances of a concurrent request are tried together (docs/semantics.md, 'Gang').

A trial moves instances between hosts and counts in the ledgers, in the order in which the
pass would, and is undone in reverse. Where it succeeded, the pass then makes the same
decisions in earnest: all hosts are as they were, to their versions and ties.
"""

from __future__ import annotations

from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.feasible import disruption_budgets, disruption_limits, host_slots
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.request_records import CONCURRENT
from slacktide.kernels.tables.schema import OPEN, Records, State


@kernel
def goes_in_gang(tb: State, q: int) -> bool:
    """Whether the waiting instances of a request start together or not at all; O(1)."""
    if q < 0 or not views.rules(tb)["gang"]:
        return False
    request = views.requests(tb)[q]
    return request["approach"] == CONCURRENT and request["live"] > 1


@kernel
def next_member(entries: Records, q: int, at: int, count: int) -> int:
    """Position of the request's first open entry from ``at`` on, or -1; O(entries). They stand in order of row."""
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
    """Take an instance off its host for the time of the trial; O(instances + log hosts)."""
    at = host_slots.slot_of(tb, h, row)
    views.acted(tb)[views.control(tb)["acts"]] = views.slots(tb)[h, at]
    q = request_ledger.owner_of(tb, row)
    if q >= 0:
        request_ledger.bring_up_to(tb, q, now)
        act, request = views.acts(tb)[views.control(tb)["acts"]], views.requests(tb)[q]
        instance = views.instances(tb)[row]
        act["overhead"], act["received"] = request["overhead"], request["received"]
        useful = max(0.0, now - (instance["since"] + instance["startup"]))
        request_ledger.left(tb, q, row, now)
        lost = instance["running"] + useful if instance_ledger.loses(tb, row) else 0.0
        request_ledger.pays(tb, q, min(instance["startup"], now - instance["since"]), lost)
    note_act(tb, row, h, whole(1))
    if disruption_budgets.is_ready(tb, row, now):
        disruption_budgets.change(tb, row, whole(0), whole(-1))
    disruption_limits.try_one(tb, row, whole(1))
    host_slots.remove(tb, h, row)


@kernel
def put_on(tb: State, h: int, row: int, now: float) -> None:
    """Put a waiting instance on a host for the time of the trial; O(resources + log hosts)."""
    note_act(tb, row, h, whole(0))
    views.instances(tb)[row]["host"] = h
    q = request_ledger.owner_of(tb, row)
    request_ledger.link(tb, q, row)
    request_ledger.change(tb, q, whole(0), whole(0), False, False, whole(1), whole(0))
    count_if_ready(tb, row, h, whole(1))
    host_slots.add(tb, h, row, whole(views.instances(tb)[row]["kind"]), now, now)


@kernel
def count_if_ready(tb: State, row: int, h: int, by: int) -> None:
    """In its budget, count an instance that is tried on host ``h`` and would be ready there at once; O(1)."""
    if disruption_budgets.budget_of(tb, row) >= 0 and instance_ledger.would_be_ready(tb, row, h):
        disruption_budgets.change(tb, row, whole(0), by)


@kernel
def undo(tb: State, now: float) -> None:
    """Take back all that the trial did, the last first; O(acts * (instances + log hosts))."""
    control = views.control(tb)
    while control["acts"] > 0:
        control["acts"] -= 1
        act = views.acts(tb)[control["acts"]]
        row, h = whole(act["row"]), whole(act["host"])
        q = request_ledger.owner_of(tb, row)
        if act["off"]:
            views.slots(tb)[h, views.hosts(tb)[h]["count"]] = views.acted(tb)[control["acts"]]
            host_slots.occupy(tb, h)
            if disruption_budgets.is_ready(tb, row, now):
                disruption_budgets.change(tb, row, whole(0), whole(1))
            disruption_limits.try_one(tb, row, whole(-1))
            if q >= 0:
                put_back(tb, q, row, now)
                request_ledger.gets_back(tb, q, act["overhead"], act["received"])
        else:
            request_ledger.unlink(tb, q, row)
            request_ledger.change(tb, q, whole(0), whole(0), False, False, whole(-1), whole(0))
            count_if_ready(tb, row, h, whole(-1))
            host_slots.remove(tb, h, row)
            views.instances(tb)[row]["host"] = -1
        host_slots.set_version(tb, h, whole(act["version"]))


@kernel
def put_back(tb: State, q: int, row: int, now: float) -> None:
    """Count an instance as on its host again; O(1)."""
    instance = views.instances(tb)[row]
    ready = now >= instance["since"] + instance["startup"]
    request_ledger.link(tb, q, row)
    request_ledger.change(tb, q, whole(1), whole(instance["starts"]), ready, True, whole(1), whole(0))
