"""A pass that a policy decides: it is asked once, its plan is checked, and carried out bind by bind.

The simulator and the live engine both make the passes of a user's own policy here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slacktide.errors import PluginError
from slacktide.kernels.drive import apply_plan
from slacktide.kernels.tables.schema import PLACED, WAITING
from slacktide.policy.api import Bind, Hold, Plan, Policy, View
from slacktide.policy.raised import told

NEIGHBOURS = "near, away or spread"


def checked(answer: Any, name: str) -> Plan:
    """What a policy answered, as a plan with tuples: lists are taken as well, also one of nothing but binds.

    Raises :class:`PluginError` for anything else: a user's own code is not type-checked.
    """
    if isinstance(answer, list | tuple):
        answer = Plan(binds=tuple(answer))
    if not isinstance(answer, Plan):
        raise PluginError(f"{name}: found {type(answer).__name__}, expected a Plan, or a list of Bind")
    binds: Any = answer.binds
    holds: Any = answer.holds
    if not isinstance(binds, list | tuple) or not isinstance(holds, list | tuple):
        raise PluginError(f"{name}: found a Plan of something else, expected lists or tuples of Bind and of Hold")
    return Plan(tuple(_bind(one, name) for one in binds), tuple(_hold(one, name) for one in holds))


def _bind(bind: Any, name: str) -> Bind:
    if not isinstance(bind, Bind) or not isinstance(bind.victims, list | tuple):
        raise PluginError(f"{name}: found {bind!r} in Plan.binds, expected a Bind with a list or tuple of victims")
    if not all(map(is_whole, (bind.row, bind.host, *bind.victims))):
        raise PluginError(f"{name}: found {bind!r} in Plan.binds, expected whole numbers")
    return replace(bind, victims=tuple(bind.victims))


def _hold(hold: Any, name: str) -> Hold:
    rows: Any = hold.row if isinstance(hold, Hold) else None
    several = isinstance(rows, list | tuple)
    if not isinstance(hold, Hold) or not all(map(is_whole, rows if several else (rows,))):
        raise PluginError(f"{name}: found {hold!r} in Plan.holds, expected a Hold of a row, or of a tuple of rows")
    return replace(hold, row=tuple(rows)) if several else hold


def is_whole(value: Any) -> bool:
    """Whether it can be a row number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _why_not(view: View, row: int, host: int) -> str:
    """Why an instance may not be on a host, as far as it is about who is there already: in words."""
    tb = view.tables
    kind = tb["kinds"][tb["instances"]["kind"][row]]
    if tb["hosts"]["down"][host]:
        return "it is down"
    if not view.masks.of_term(tb, int(kind["term"]))[host]:
        return "its attributes do not satisfy the constraints"
    there = view.running(host)
    siblings = np.intersect1d(view.masks.of_job(tb, int(kind["job"])), there) if kind["job"] >= 0 else there[:0]
    if len(siblings):
        return f"{_said(view, host, siblings)} of the same job, which row {row} must not be beside"
    now = [int(one) for one in there if _placed_now(view, host, int(one))]
    placed = f" with row {', '.join(map(str, now))} on it, placed by this plan" if now else ""
    return f"the rules of row {row} about its neighbours ({NEIGHBOURS}) do not hold there{placed}"


def _said(view: View, host: int, rows: Any) -> str:
    row = int(rows[0])
    return f"row {row}{', placed by this plan,' if _placed_now(view, host, row) else ''} is there,"


def _placed_now(view: View, host: int, row: int) -> bool:
    slots = view.tables["slots"][host]
    return bool(((slots["row"] == row) & (slots["batch"] == view.tables.control["batch"])).any())


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
    if any(_placed_now(view, bind.host, row) for row in bind.victims):
        refuse("a victim placed in this very pass", "instances that ran before it")
    for v in bind.victims:
        if not 0 <= v < len(requests) or requests[v]["state"] != PLACED or requests[v]["host"] != bind.host:
            refuse(f"victim {v}", "requests that run on the chosen host")
    if bind.victims and (protected := view.spared(bind.host, bind.victims)) >= 0:
        refuse(f"victim {protected}", "victims that their budgets and the least running time give up")
    if not view.allowed(bind.row)[bind.host]:
        refuse(
            f"host {bind.host} not allowed: {_why_not(view, bind.row, bind.host)}",
            "a host of view.allowed(row), which says how it was before this plan",
        )
    room = tb["free"][bind.host].copy()
    kinds = tb["kinds"]
    for row in bind.victims:
        room += tb["granted"][row] if len(tb["granted"]) else tb["demand"][kinds[requests[row]["kind"]]["shape"]]
    if (tb["demand"][kinds[requests[bind.row]["kind"]]["shape"]] > np.maximum(room, 0)).any():
        refuse(f"host {bind.host} has no room", "enough free amounts, victims gone")


def decided(policy: Policy, view: View, name: str) -> Plan:
    """The plan of a user's own policy, called ``name`` in errors. Raises :class:`PluginError` where it has none."""
    try:
        answer = policy.decide(view, view.now)
    except Exception as problem:
        raise PluginError(f"{name}: at {view.now:g} s: {told(problem)}") from problem
    return checked(answer, name)


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
