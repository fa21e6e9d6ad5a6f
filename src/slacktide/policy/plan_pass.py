"""A pass that a policy decides: it is asked once, its plan is checked, and carried out bind by bind.

The simulator and the live engine both make the passes of a user's own policy here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slacktide.errors import PluginError
from slacktide.kernels.drive import apply_plan
from slacktide.kernels.tables.schema import PLACED, WAITING
from slacktide.policy.api import Bind, Hold, Plan, Policy, View


def check_types(plan: Plan, name: str) -> None:
    """Refuse a plan whose parts are not what they should be: a user's own code is not type-checked."""
    binds: Any = plan.binds
    holds: Any = plan.holds
    if not isinstance(binds, tuple) or not isinstance(holds, tuple):
        raise PluginError(f"{name}: found a Plan of something else, expected tuples of Bind and of Hold")
    for bind in binds:
        if not isinstance(bind, Bind) or not isinstance(bind.victims, tuple):
            raise PluginError(f"{name}: found {bind!r} in Plan.binds, expected a Bind with a tuple of victims")
        if not all(map(is_whole, (bind.row, bind.host, *bind.victims))):
            raise PluginError(f"{name}: found {bind!r} in Plan.binds, expected whole numbers")
    for hold in holds:
        if not isinstance(hold, Hold) or not all(map(is_whole, _rows(hold))):
            raise PluginError(f"{name}: found {hold!r} in Plan.holds, expected a Hold of a row, or of a tuple of rows")


def is_whole(value: Any) -> bool:
    """Whether it can be a row number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _any_placed_now(view: View, bind: Bind) -> bool:
    slots = view.tables["slots"][bind.host]
    return bool(np.isin(slots["row"][slots["batch"] == view.tables.control["batch"]], bind.victims).any())


def _rows(hold: Hold) -> tuple[Any, ...]:
    return hold.row if isinstance(hold.row, tuple) else (hold.row,)


def check_bind(view: View, bind: Bind, name: str) -> None:
    """Refuse a decision that breaks the contract. Raises :class:`PluginError`."""

    def refuse(found: str, expected: str) -> None:
        raise PluginError(f"{name}: at {view.now:g} s: row {bind.row}: {found}, expected {expected}")

    tb = view.tables
    requests = tb["instances"]
    if not 0 <= bind.row < len(requests) or requests[bind.row]["state"] != WAITING:
        refuse("bound without waiting", "a row of view.waiting, bound once")
    if not 0 <= bind.host < len(view.hosts):
        refuse(f"host {bind.host}", f"0 to {len(view.hosts) - 1}")
    if len(set(bind.victims)) != len(bind.victims):
        refuse("a victim named twice", "each once")
    if bind.victims and _any_placed_now(view, bind):
        refuse("a victim placed in this very pass", "instances that ran before it")
    for v in bind.victims:
        if not 0 <= v < len(requests) or requests[v]["state"] != PLACED or requests[v]["host"] != bind.host:
            refuse(f"victim {v}", "requests that run on the chosen host")
    if bind.victims and (protected := view.spared(bind.host, bind.victims)) >= 0:
        refuse(f"victim {protected}", "victims that their budgets and the least running time give up")
    if not view.allowed(bind.row)[bind.host]:
        refuse(f"host {bind.host} not allowed", "a host of view.allowed(row)")
    room = tb["free"][bind.host].copy()
    kinds = tb["kinds"]
    for row in bind.victims:
        room += tb["granted"][row] if len(tb["granted"]) else tb["demand"][kinds[requests[row]["kind"]]["shape"]]
    if (tb["demand"][kinds[requests[bind.row]["kind"]]["shape"]] > np.maximum(room, 0)).any():
        refuse(f"host {bind.host} has no room", "enough free amounts, victims gone")


def decided(policy: Policy, view: View, name: str) -> Plan:
    """The plan of a user's own policy, called ``name`` in errors. Raises :class:`PluginError` where it has none."""
    try:
        plan = policy.decide(view, view.now)
    except Exception as problem:
        raise PluginError(f"{name}: at {view.now:g} s: {type(problem).__name__}: {problem}") from problem
    if not isinstance(plan, Plan):
        raise PluginError(f"{name}: found {type(plan).__name__}, expected a Plan")
    check_types(plan, name)
    return plan


def carry_out(plan: Plan, view: View, grow: Callable[[int], bool], name: str) -> None:
    """Carry out a plan for the view on which it was made, with the ledgers of a compiled pass.

    ``grow`` serves what a kernel stopped for and says whether to go on asking. Binds of a user's own policy
    ``name`` are checked one after the other: those before a wrong one stand. Raises :class:`PluginError`.
    """
    state = view.tables.state
    apply_plan.open_pass(state)
    try:
        for bind in plan.binds:
            while grow(int(apply_plan.lacking_capacity(state))):
                pass
            check_bind(view, bind, name)
            lost = np.array([view.metric(row) for row in bind.victims])
            victims = np.array(bind.victims, np.int64)
            apply_plan.bind(state, bind.row, bind.host, victims, view.metric(bind.row), lost)
    finally:
        apply_plan.close_pass(state)
