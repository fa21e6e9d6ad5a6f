"""A pass that a policy decides: it is asked once, its plan is checked, and carried out bind by bind.

The simulator and the live engine both make the passes of a user's own policy here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slacktide.errors import PluginError
from slacktide.kernels.drive import apply_plan
from slacktide.policy.api import Plan, Policy, View
from slacktide.policy.checking import check_bind, check_types


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


def carry_out(plan: Plan, view: View, grow: Callable[[int], bool], name: str = "") -> None:
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
            if name:
                check_bind(view, bind, name)
            lost = np.array([view.metric(row) for row in bind.victims])
            victims = np.array(bind.victims, np.int64)
            apply_plan.bind(state, bind.row, bind.host, victims, view.metric(bind.row), lost)
    finally:
        apply_plan.close_pass(state)
