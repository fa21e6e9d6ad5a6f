"""Who asks for no less than somebody who found no host in this pass finds none either.

Of many distinct demands each would look at all hosts for itself, in each pass. But where one of a class has failed,
another one fails as well, at each host that has not changed since, if it asks for no less of anything, and may preempt
no more. So a pass keeps some failures of a class, those of the least demands, and what was found out about how long
they last (:mod:`.infeasibility_memo`) holds for the larger demand, too.

Whom a host gives up, one after the other, does not depend on the demand; that says only when it is enough. Under triage
one more may go who makes room for two (:mod:`slacktide.kernels.policies.triage`), of the lesser demand rather than of
the larger one. Where budgets or limits on disruption hold, one that goes may keep another one from going, so that more
who may go are not always more that is free: then nothing is concluded.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible import disruption_limits, pod_groups
from slacktide.kernels.policies import in_force, triage
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, Records, State


@leaf
def applies(tb: State) -> bool:
    """Whether failures say something about others by the rules in force; O(1).

    Not where failures are not exact, nor where one that goes may keep another one, or must take it along.
    """
    each_alone = len(views.budgets(tb)) == 0 and not disruption_limits.any_limits(tb) and not pod_groups.any_whole(tb)
    return views.rules(tb)["exact"] and each_alone


@leaf
def stands_at(tb: State, cls: int, q_j: float) -> float:
    """What orders by whom one may preempt: the metric; of an overloaded class all savable ones are equal; O(1)."""
    if views.classes(tb)[cls]["overloaded"] and q_j < triage.LOST:
        return triage.SAVABLE
    return q_j


@leaf
def asks_no_less(tb: State, lesser: Records, kind: Records) -> bool:
    """Whether no host is open to ``kind`` that is not open to ``lesser``, and it asks for no less; O(resources)."""
    if lesser["job"] >= 0 and lesser["job"] != kind["job"]:
        return False
    if lesser["term"] != 0 and lesser["term"] != kind["term"]:
        return False
    for r in range(views.demand(tb).shape[1]):
        if views.demand(tb)[lesser["shape"], r] > views.demand(tb)[kind["shape"], r]:
            return False
    return True


@leaf
def covers(tb: State, lesser: Records, kind: Records) -> bool:
    """As :func:`asks_no_less`, where ``kind`` also preempts nobody if ``lesser`` never does; O(resources)."""
    return (kind["never"] or not lesser["never"]) and asks_no_less(tb, lesser, kind)


@leaf
def set_of(tb: State, cls: int) -> int:
    """Where failures of a class are kept; some classes share a place, of which one has it at a time; O(1)."""
    return whole(cls % views.failures(tb).shape[0])


@leaf
def holds(tb: State, one: Records, cls: int) -> bool:
    """Whether a failure is of this class and pass, and no budget has more left since; O(1)."""
    control = views.control(tb)
    return one["batch"] == control["batch"] and one["cls"] == cls and one["loosened"] == control["loosened"]


@kernel
def known_since(tb: State, k: int, q_j: float) -> int:
    """Position in the change log up to which every host is known to be of no use to kind ``k``, or -1.

    ``q_j`` is where it stands (:func:`.in_force.standing`). What is known beyond the pass is kept at the kind, for
    :func:`.infeasibility_memo.note_failure`. O(failures that are kept * resources).
    """
    if not applies(tb):
        return -1
    kind = views.kinds(tb)[k]
    cls, several = whole(kind["cls"]), views.failures(tb)[set_of(tb, whole(kind["cls"]))]
    stands, position, found = stands_at(tb, cls, q_j), whole(-1), whole(NOBODY)
    for i in range(len(several)):
        one = several[i]
        if not holds(tb, one, cls):
            break  # nor is any after it
        newer = one["position"] > position and one["stands"] <= stands
        if newer and covers(tb, views.kinds(tb)[one["kind"]], kind):
            position, found = whole(one["position"]), whole(i)
    anew = kind["batch"] != views.control(tb)["batch"] and views.control(tb)["overloaded"] == 0
    if found >= 0 and anew:  # else no failure of it is remembered beyond the pass, or one is already
        adopt(tb, kind, several[found])
    return position


@leaf
def adopt(tb: State, kind: Records, one: Records) -> None:
    """Until when the lesser demand surely fails is kept of the larger one; O(1).

    Nothing is known where what is remembered of the lesser one is not of this failure: of other hosts, or of a larger
    metric.
    """
    lesser = views.kinds(tb)[one["kind"]]
    kind["until"] = -np.inf
    if lesser["position"] == one["position"] and in_force.on_path(tb, one["stands"], lesser["fall"]) >= lesser["key"]:
        kind["key"], kind["fall"], kind["slop"] = lesser["key"], lesser["fall"], lesser["slop"]
        kind["until"], kind["position"] = lesser["until"], lesser["position"]


@kernel
def note(tb: State, k: int, q_j: float) -> None:
    """Kind ``k`` has failed at every host, as they are now; O(failures that are kept * resources).

    It takes the place of one that says no more than it does, else a free one, else that of the one since which most has
    changed.
    """
    if not applies(tb):
        return
    control, kind = views.control(tb), views.kinds(tb)[k]
    cls, several = whole(kind["cls"]), views.failures(tb)[set_of(tb, whole(kind["cls"]))]
    stands, at, oldest = stands_at(tb, cls, q_j), whole(0), np.inf
    for i in range(len(several)):
        one = several[i]
        if not holds(tb, one, cls):
            if oldest >= 0.0:
                at = whole(i)
            break
        theirs, age = views.kinds(tb)[one["kind"]], whole(one["position"])
        if age == control["changes"] and one["stands"] <= stands and covers(tb, theirs, kind):
            return
        if stands <= one["stands"] and covers(tb, kind, theirs):
            age = whole(-1)
        if age < oldest:
            at, oldest = whole(i), float(age)
    one = several[at]
    one["kind"], one["cls"], one["stands"] = k, cls, stands
    one["position"], one["batch"], one["loosened"] = control["changes"], control["batch"], control["loosened"]
