"""Pod groups that are preempted as a whole: whether one may go, and who goes with those on a host.

docs/semantics.md, 'Groups that go as a whole'. Victims on the host that is asked stand in ``taken``, those on other
hosts in ``companions``, both of all groups that were chosen.
"""

from __future__ import annotations

from slacktide.kernels.feasible import disruption_budgets, disruption_limits, host_slots, pod_groups
from slacktide.kernels.feasible.disruption_limits import ALLOWED
from slacktide.kernels.policies import in_force
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@kernel
def slot_at(tb: State, row: int) -> int:
    """The slot of an instance on its host; O(instances on that)."""
    return whole(host_slots.slot_of(tb, whole(views.instances(tb)[row]["host"]), row))


@kernel
def note_disruption(tb: State, row: int, by: int) -> None:
    """Count an instance as chosen (1), or not any more (-1), in its account and in its budget; O(1)."""
    a, b = disruption_limits.account_of(tb, row), disruption_budgets.budget_of(tb, row)
    if a >= 0:
        views.disruption_accounts(tb)[a]["tried"] += by
    if b >= 0:
        views.budgets(tb)[b]["tried"] += by


@kernel
def note_chosen(tb: State, h: int, number: int, by: int) -> None:
    """:func:`note_disruption` of all that are chosen on host ``h``, and their companions; O(chosen)."""
    for v in range(number):
        note_disruption(tb, whole(views.slots(tb)[h, views.taken(tb)[v]]["row"]), by)
    for c in range(views.control(tb)["companions"]):
        note_disruption(tb, whole(views.companions(tb)[c]), by)


@kernel
def member_may_go(tb: State, row: int, cls: int, q_j: float, now: float) -> bool:
    """Whether an instance of a group may go beside those that are noted as chosen; O(instances on its host)."""
    slot = views.slots(tb)[views.instances(tb)[row]["host"], slot_at(tb, row)]
    if slot["batch"] == views.control(tb)["batch"] or now < disruption_budgets.spared_until(tb, slot):
        return False
    a, b = disruption_limits.account_of(tb, row), disruption_budgets.budget_of(tb, row)
    if a >= 0:
        tried = whole(views.disruption_accounts(tb)[a]["tried"])
        if disruption_limits.forbidden(tb, a, tried, now) != ALLOWED:
            return False
    if b >= 0 and views.budgets(tb)[b]["tried"] >= disruption_budgets.left_of(tb, b):
        return False
    return bool(in_force.eligible(tb, slot, cls, q_j, now))


@kernel
def may_go(tb: State, h: int, g: int, number: int, cls: int, q_j: float, now: float) -> bool:
    """Whether all of group ``g`` may go for one of class ``cls``, ``number`` of others on host ``h`` chosen; O(group *
    instances on a host + chosen). Its own instances do not make it go."""
    if views.control(tb)["asking"] == g:
        return False
    note_chosen(tb, h, number, whole(1))
    first = whole(views.pod_groups(tb)[g]["first"])
    row = first
    while row >= 0 and member_may_go(tb, row, cls, q_j, now):
        note_disruption(tb, row, whole(1))
        row = whole(views.next_in_group(tb)[row])
    back = first
    while back != row:
        note_disruption(tb, back, whole(-1))
        back = whole(views.next_in_group(tb)[back])
    note_chosen(tb, h, number, whole(-1))
    return row < 0


@kernel
def is_taken(tb: State, i: int, number: int) -> bool:
    """Whether slot ``i`` is among the ``number`` chosen; O(chosen)."""
    for v in range(number):
        if views.taken(tb)[v] == i:
            return True
    return False


@kernel
def take(tb: State, h: int, g: int, number: int) -> int:
    """Choose all of group ``g`` behind the ``number`` chosen on host ``h``; how many are chosen there then;
    O(group * instances on a host)."""
    control = views.control(tb)
    row = whole(views.pod_groups(tb)[g]["first"])
    while row >= 0:
        if views.instances(tb)[row]["host"] == h:
            views.taken(tb)[number] = slot_at(tb, row)
            number += 1
        else:
            views.companions(tb)[control["companions"]] = row
            control["companions"] += 1
        row = whole(views.next_in_group(tb)[row])
    return number


@kernel
def take_if_it_may_go(tb: State, h: int, i: int, number: int, cls: int, q_j: float, now: float) -> int:
    """:func:`take` the group of the instance in slot ``i``, unless it is chosen or may not go; how many are chosen."""
    g = pod_groups.whole_of(tb, whole(views.slots(tb)[h, i]["row"]))
    if is_taken(tb, i, number) or not may_go(tb, h, g, number, cls, q_j, now):
        return number
    return whole(take(tb, h, g, number))


@kernel
def opens(tb: State, h: int, v: int) -> int:
    """The whole group of the ``v``-th victim on host ``h``, if no victim before is of it; else -1; O(v)."""
    g = pod_groups.whole_of(tb, whole(views.slots(tb)[h, views.taken(tb)[v]]["row"]))
    for before in range(v):
        if g == pod_groups.whole_of(tb, whole(views.slots(tb)[h, views.taken(tb)[before]]["row"])):
            return whole(-1)
    return g
