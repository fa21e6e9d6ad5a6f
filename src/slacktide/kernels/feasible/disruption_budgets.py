"""How many instances of a budget may be disrupted, and who is spared for other reasons.

docs/semantics.md, 'Neighbours, preferences and budgets'. Where a run has no budgets, no limits on
disruption, no least running time and no guards, nothing here costs more than a comparison.
"""

from __future__ import annotations

from slacktide.kernels.feasible import disruption_limits, pod_groups, victim_order
from slacktide.kernels.feasible.disruption_limits import ALLOWED
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.affinity_records import GIVEN, UNAVAILABLE
from slacktide.kernels.tables.schema import BEYOND_BUDGETS, BEYOND_LIMITS, Records, State


@leaf
def budget_of(tb: State, row: int) -> int:
    """The budget of an instance, or -1; O(1)."""
    if len(views.budget(tb)) == 0:
        return whole(-1)
    return whole(views.budget(tb)[row])


@leaf
def left_of(tb: State, b: int) -> int:
    """How many instances of budget ``b`` may still be disrupted; O(1)."""
    record = views.budgets(tb)[b]
    if record["bounds"] == GIVEN:
        return record["amount"]
    needed = record["amount"]
    if record["bounds"] == UNAVAILABLE:
        needed = record["expected"] - record["amount"]
    return max(whole(0), record["healthy"] - needed)


@leaf
def spared_until(tb: State, slot: Records) -> float:
    """Until when an instance on a host is no victim for the time that it has run; O(1).

    All that spares somebody by the clock alone belongs here: hosts are looked at again when it ends (:mod:`.sparing`).
    """
    until = slot["put_at"] + views.classes(tb)[slot["cls"]]["min_running"]
    return max(until, views.guard(tb)[slot["row"]]) if len(views.guard(tb)) > 0 else until


@leaf
def beyond_for(tb: State, slot: Records) -> int:
    """What does not protect the instance on a host from the one that has its turn, at last resort; O(1)."""
    control = views.control(tb)
    if control["beyond"] == 0 or views.classes(tb)[slot["cls"]]["rank"] <= control["beyond_rank"]:
        return whole(0)
    return control["beyond"]


@leaf
def any_protection(tb: State) -> bool:
    """Whether there are budgets or limits at all; O(1)."""
    return len(views.budgets(tb)) > 0 or disruption_limits.any_limits(tb)


@kernel
def spared(tb: State, h: int, i: int, number: int, now: float) -> bool:
    """Whether the instance in slot ``i`` of host ``h`` is no victim by itself, ``number`` of others chosen; O(1),
    O(chosen) where it has a budget or limits. Of whole groups :func:`.companions.may_go` tells."""
    slot = views.slots(tb)[h, i]
    if now < spared_until(tb, slot) or pod_groups.in_company(tb, whole(slot["row"])):
        return True
    beyond = whole(beyond_for(tb, slot))
    limited = disruption_limits.any_limits(tb) and not beyond & BEYOND_LIMITS
    if limited and disruption_limits.protects(tb, h, i, number, now) != ALLOWED:
        return True
    b = budget_of(tb, whole(slot["row"]))
    if b < 0 or beyond & BEYOND_BUDGETS:
        return False
    used = whole(1)
    for v in range(number):
        used += budget_of(tb, whole(views.slots(tb)[h, views.taken(tb)[v]]["row"])) == b
    for c in range(views.control(tb)["companions"] if number > 0 else 0):
        used += budget_of(tb, whole(views.companions(tb)[c])) == b
    return used > left_of(tb, b)


@kernel
def keeps(tb: State, h: int, i: int, number: int, now: float) -> bool:
    """As :func:`spared`, of one who may be preempted; noted where only those chosen before it keep it from going
    (:mod:`.victim_order`)."""
    if not spared(tb, h, i, number, now):
        return False
    if number > 0 and not spared(tb, h, i, whole(0), now):
        victim_order.note(tb, h)
    return True


@kernel
def change(tb: State, row: int, expected: int, healthy: int) -> None:
    """Change the counts of an instance's budget, if it has one; O(1).

    What was found with more left is looked at again, as is what failed with less.
    """
    b = budget_of(tb, row)
    if b < 0:
        return
    record, control = views.budgets(tb)[b], views.control(tb)
    before = left_of(tb, b)
    record["expected"] += expected
    record["healthy"] += healthy
    after = left_of(tb, b)
    if after < before:
        control["tightened"] = control["looks"] + 1
    elif after > before:
        control["loosened"] += 1


@leaf
def is_ready(tb: State, row: int, now: float) -> bool:
    """Whether an instance that is on a host is past its start-up; O(1)."""
    instance = views.instances(tb)[row]
    return now >= instance["since"] + instance["startup"]
