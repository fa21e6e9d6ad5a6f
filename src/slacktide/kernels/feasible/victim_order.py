"""Where it depends on the order of victims whether they serve.

As a rule, whoever may preempt more of the instances on a host frees more. Not where one that goes keeps another one
from going, as they share a budget or a limit, nor where it takes a rule about neighbours with it that held. Then one
may fail who may preempt more, and another one find room who may preempt fewer. So that is noted (of ``control``),
and a failure in which it happened is taken for one of its metric only (:mod:`slacktide.kernels.memo`), while budgets
and limits are as they were.
"""

from __future__ import annotations

from slacktide.kernels.feasible import pod_groups
from slacktide.kernels.policies import in_force
from slacktide.kernels.runtime.compiling import leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@leaf
def loses_the_last(tb: State, h: int) -> bool:
    """Whether a larger metric may preempt the first of the same order on host ``h`` only: then it fails as well; O(1).

    So it is where all margins are alike, and nobody goes first for anything but its metric and class.
    """
    rules = views.rules(tb)
    plain = rules["one_margin"] != 0 and rules["mirrored"] != 0 and views.control(tb)["overloaded"] == 0
    return plain and views.hosts(tb)[h]["shared"] == 0 and not pod_groups.any_whole(tb)


@leaf
def note(tb: State, h: int) -> None:
    """The order of victims on host ``h`` decides whether they serve: a failure may be of this metric only; O(1)."""
    if in_force.by_metric(tb) and not loses_the_last(tb, h):
        views.control(tb)["order_mattered"] = 1


@leaf
def mark(tb: State) -> int:
    """What is kept beside a failure: 0 where it is one of larger metrics as well, else the state of budgets; O(1)."""
    control = views.control(tb)
    return control["tightened"] + 1 if control["order_mattered"] else whole(0)


@leaf
def says_the_same(tb: State, marked: int, equal: bool) -> bool:
    """Whether a failure with this :func:`mark` is one of a metric that is ``equal``, or else larger; O(1)."""
    return marked == 0 or (equal and marked == views.control(tb)["tightened"] + 1)
