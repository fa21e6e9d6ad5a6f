"""All or nothing: waiting instances that are tried together (docs/semantics.md, 'Gang' and 'Pod groups').

A gang is a number: 2 q, the waiting instances of concurrent request q, which start all together; or 2 g + 1, those of
pod group g, of which so many must start that it has its least number on hosts.

A trial moves instances between hosts and counts in the ledgers, in the order in which the pass would, and is undone in
reverse. Where it succeeded, the pass then makes the same decisions in earnest: all hosts are as they were, to their
versions and ties.
"""

from __future__ import annotations

from slacktide.kernels.drive import instance_ledger, leavers
from slacktide.kernels.feasible import disruption_budgets, disruption_limits, host_slots
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.request_records import CONCURRENT
from slacktide.kernels.tables.schema import NOBODY, OPEN, Records, State


@leaf
def group_of(tb: State, row: int) -> int:
    """The pod group of an instance, or -1; O(1)."""
    return whole(views.pod_group(tb)[row]) if len(views.pod_groups(tb)) > 0 else whole(-1)


@kernel
def of(tb: State, entry: Records) -> int:
    """The gang in which a waiting instance has its turn, or NOBODY: it has it alone; O(1).

    Whose pod group has its least number on hosts starts alone.
    """
    g = group_of(tb, whole(entry["row"]))
    if g >= 0 and views.pod_groups(tb)[g]["least"] > 0:
        group = views.pod_groups(tb)[g]
        return whole(2 * g + 1) if group["placed"] < group["least"] else whole(NOBODY)
    q = whole(entry["request"])
    return whole(2 * q) if goes_in_gang(tb, q) else whole(NOBODY)


@leaf
def request_of(gang: int) -> int:
    """The request whose waiting instances are the gang, or -1: it is a pod group; O(1)."""
    return whole(-1) if gang & 1 else whole(gang >> 1)


@kernel
def belongs(tb: State, entry: Records, gang: int) -> bool:
    """Whether a waiting instance is one of the gang that has not had its turn; O(1)."""
    if entry["done"] != OPEN:
        return False
    if gang & 1:
        return group_of(tb, whole(entry["row"])) == gang >> 1
    return entry["request"] == gang >> 1


@kernel
def somebody_waits(tb: State, entries: Records, count: int) -> bool:
    """Whether an instance of a pod group waits; O(entries), O(1) where there are no groups."""
    if len(views.pod_groups(tb)) == 0:
        return False
    for i in range(count):
        if group_of(tb, whole(entries[i]["row"])) >= 0:
            return True
    return False


@kernel
def missing(tb: State, gang: int) -> int:
    """How many more of the gang must be on hosts; O(1)."""
    if gang & 1:
        group = views.pod_groups(tb)[gang >> 1]
        return group["least"] - group["placed"]
    request = views.requests(tb)[gang >> 1]
    return request["live"] - request["placed"]


@leaf
def holds(tb: State, gang: int) -> bool:
    """Whether a trial that found enough hosts stands: it must not have preempted the pod group's own; O(1)."""
    return not gang & 1 or missing(tb, gang) <= 0


@kernel
def note_found(tb: State, gang: int) -> None:
    """Remember of a pod group how many a trial that is not undone yet brought to hosts, with those there; O(1)."""
    if gang & 1:
        group = views.pod_groups(tb)[gang >> 1]
        group["found"] = group["placed"]


@kernel
def goes_in_gang(tb: State, q: int) -> bool:
    """Whether the waiting instances of a request start together or not at all; O(1)."""
    if q < 0 or not views.rules(tb)["gang"]:
        return False
    request = views.requests(tb)[q]
    return request["approach"] == CONCURRENT and request["live"] > 1


@kernel
def next_member(tb: State, entries: Records, gang: int, at: int, count: int) -> int:
    """Position of the gang's first open entry from ``at`` on, or -1; O(entries). Of a request in order of row."""
    while at < count:
        if belongs(tb, entries[at], gang):
            return at
        at += 1
    return whole(-1)


@kernel
def number_here(tb: State, entries: Records, gang: int, count: int) -> int:
    """How many of the gang are among the open entries; O(entries)."""
    number = whole(0)
    for i in range(count):
        number += belongs(tb, entries[i], gang)
    return number


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
        if leavers.lingers(tb, row):
            instance_ledger.go_on_leaving(tb, row, now, whole(1))
        else:
            lost = instance["running"] + useful if instance_ledger.loses(tb, row) else 0.0
            request_ledger.pays(tb, q, min(instance["startup"], now - instance["since"]), lost)
    note_act(tb, row, h, whole(1))
    spend(tb, row, whole(1))
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
    count_in_request(tb, q, row, whole(1))
    count_if_ready(tb, row, h, whole(1))
    host_slots.add(tb, h, row, whole(views.instances(tb)[row]["kind"]), now, now)


@kernel
def spend(tb: State, row: int, by: int) -> None:
    """One disruption less (1), or more again (-1), is left in the budget of an instance in a live cluster; O(1).

    What is left of such a budget is told from outside: so in earnest it is spent when the instance is told to leave.
    """
    b = disruption_budgets.budget_of(tb, row)
    if b < 0 or not views.rules(tb)["live"]:
        return
    control = views.control(tb)
    views.budgets(tb)[b]["amount"] -= by
    if by > 0:
        control["tightened"] = control["looks"] + 1
    else:
        control["loosened"] += 1


@kernel
def count_in_request(tb: State, q: int, row: int, by: int) -> None:
    """In its request, count an instance that is tried (1), or not any more (-1); O(1).

    Of a concurrent request all of whose instances are tried, who runs decides nothing until the last of them. Others
    are tried in a live cluster only, for a pod group: there it counts as when it starts in earnest.
    """
    starts = whole(views.instances(tb)[row]["starts"]) + 1
    of_group = group_of(tb, row) >= 0
    request_ledger.change(tb, q, by if of_group else whole(0), starts, False, of_group, by, whole(0))


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
            spend(tb, row, whole(-1))
            if q >= 0:
                if leavers.lingers(tb, row):
                    instance_ledger.go_on_leaving(tb, row, now, whole(-1))
                put_back(tb, q, row, now)
                request_ledger.gets_back(tb, q, act["overhead"], act["received"])
        else:
            request_ledger.unlink(tb, q, row)
            count_in_request(tb, q, row, whole(-1))
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
