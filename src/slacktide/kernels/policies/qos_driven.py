"""The policy ``qos-driven``: whoever is furthest above its promise lends to whoever is about to miss it.

From da Silva et al., "QoS-driven scheduling in the cloud", Journal of Internet Services
and Applications 11:9 (2020); below "the paper". Its letters:

    Q_j(t)    QoS metric of instance j, seconds (equations 4 and 7; slacktide.kernels.qos)
    sigma_i   SLO of class i: the availability that it is promised
    phi_i     safety margin of class i, seconds; j is *below its margin* where Q_j < phi
    C_k(t)    preemption overhead of instance k (equation 8)

**Order of the queue** (section 3.4, algorithm 1): by increasing Q. With ``policy.queue_order``
``importance``, as the authors' simulator does it: first those below their margin, by importance
of their class, each class by increasing Q; then all others by increasing Q. (:func:`queue_tier`,
:func:`comes_before`)

**Eligibility** (section 3.3.1): instance k may be preempted for the waiting instance j where

    Q_k >= phi_k  and  Q_j < Q_k,                                               or
    Q_k <  phi_k  and  Q_j < phi_j  and  the class of j is more important,      or
    Q_k <  phi_k  and  Q_j < phi_j  and  both are equally important, Q_j < Q_k,

and, where ``policy.overhead_scope`` applies to the two, C_k is within the limit of k's class
(section 3.5.2; :func:`within_overhead`). Two settings ask for more than the paper:
``preempt_when = needed`` wants Q_j < phi_j in the first line too (:func:`can_wait`), and
``patience`` wants Q_j + patience < Q_k in the third. (:func:`eligible`) Where classes of one rank have
priorities (docs/semantics.md, 'Priority within a rank'), the larger is the more important one, and the first
line holds for no j of a smaller one. (:func:`outranked`)

**Order of victims** (section 3.3.1): by decreasing Q; of equal ones, a random one first. An
instance of a concurrent request that contributes nothing, as another one of its request waits,
goes before all others. With ``victim_order = importance`` those below their margin come last,
the least important class first. (:func:`victim_tier`, :func:`later_victim`)

**Cost of a preemption** (sections 3.3.2 and 4.1.3), of the victims V that a host needs: the tuple

    (sum of Q_k - phi_k over V with Q_k < phi_k, a place for each class, most important first,
     sum of Q_k - phi_k over all of V);

the host with the largest tuple, compared from the left (equation 9), is chosen. The paper prints
reciprocals of these sums and takes the smallest, and its last sum leaves out those below their
margin. For equal signs, and where all sums before are equal, that is the same order.
(:func:`add_cost`)
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.policies import triage
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import SCOPE_ALL, SCOPE_CLASS, SCOPE_LEVEL, Records, State

ANY_RANK = 2**62
NEVER, BY_METRIC, BY_IMPORTANCE, BETWEEN_EQUALS = range(4)
"""By which line of the rule of eligibility an instance may become a victim."""


@kernel
def queue_tier(tb: State, cls: int, q_j: float) -> int:
    """Where a class stands in the queue's order with this metric: below the margin by rank, then all others; O(1)."""
    rules = views.rules(tb)
    if not rules["by_importance"]:
        return whole(0)
    ours = views.classes(tb)[cls]
    return ours["level"] if q_j < ours["margin"] else rules["levels"]


@leaf
def comes_before(a: Records, b: Records) -> bool:
    """The order of waiting instances within a tier: by (key, row), as Q_j = key - t; O(1).

    Those that a request's ledger decides for have no key: they stand behind, by (request, row).
    """
    if a["request"] != b["request"]:
        return a["request"] < b["request"]
    if a["request"] < 0 and a["key"] != b["key"]:
        return a["key"] < b["key"]
    return a["row"] < b["row"]


@leaf
def can_wait(tb: State, cls: int, q_j: float) -> bool:
    """Whether the setting ``preempt_when = needed`` keeps j from preempting: it is not below its margin; O(1)."""
    return views.rules(tb)["needed"] and not q_j < views.classes(tb)[cls]["margin"]


@leaf
def within_overhead(tb: State, slot: Records, cls: int, now: float) -> bool:
    """Whether C_k is within its class's limit, or is none of the concern of class ``cls`` (equation 8); O(1)."""
    scope = views.rules(tb)["scope"]
    k = views.classes(tb)[slot["cls"]]
    applies = scope == SCOPE_ALL
    if scope == SCOPE_LEVEL:
        applies = k["rank"] <= views.classes(tb)[cls]["rank"]
    elif scope == SCOPE_CLASS:
        applies = slot["cls"] == cls
    return not applies or request_ledger.overhead_of(tb, slot, now) <= k["limit"]


@leaf
def outranked(j: Records, k: Records) -> bool:
    """Whether class j comes after class k of the same named rank by priority: whoever is above its margin lends to
    nobody who is so; O(1)."""
    return j["named_rank"] == k["named_rank"] and j["rank"] > k["rank"]


@leaf
def gives_way_below(j: Records, q_k: float) -> float:
    """To one of class j below its margin with a smaller metric an equal with ``q_k`` gives its place; O(1)."""
    return max(q_k - j["patience"], min(j["urgent"], q_k - j["pressing"]))


@leaf
def eligible(tb: State, slot: Records, q_k: float, cls: int, q_j: float, now: float) -> bool:
    """Whether instance k, on a host with metric ``q_k``, may be preempted for j of class ``cls``; O(1).

    Of an overloaded class, ``q_j`` is where j stands (:func:`.triage.standing`); so it is in all that follows.
    """
    k, j = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if j["overloaded"]:
        return triage.allows(tb, slot, q_k, cls, q_j, now) and within_overhead(tb, slot, cls, now)
    phi_k, phi_j = k["margin"], j["margin"]
    below = q_j < phi_j
    if q_k >= phi_k:
        if outranked(j, k):
            return False
        if not q_j < q_k or (views.rules(tb)["needed"] and not below):
            return False
    else:
        if not below or j["rank"] > k["rank"]:
            return False
        if j["rank"] == k["rank"] and not q_j < gives_way_below(j, q_k):
            return False
    return within_overhead(tb, slot, cls, now)


@leaf
def eligible_below(tb: State, slot: Records, q_k: float, cls: int, now: float) -> float:
    """Instance k, eligible for one of class ``cls``, is so for every Q_j clearly below this; O(1)."""
    k, j = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if j["overloaded"]:
        return triage.allows_below(tb, slot, q_k, cls, now)
    phi_k, phi_j = k["margin"], j["margin"]
    if q_k >= phi_k:
        return min(q_k, phi_j) if views.rules(tb)["needed"] else q_k
    if j["rank"] == k["rank"]:
        return min(gives_way_below(j, q_k), phi_j)
    return phi_j


@kernel
def line_of(tb: State, slot: Records, q_k: float, cls: int, now: float) -> int:
    """By which line of the rule k is or may become eligible for a falling Q_j, on its present side of phi_k; O(1)."""
    k, j = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if not within_overhead(tb, slot, cls, now):
        return NEVER
    if q_k >= k["margin"]:
        return NEVER if outranked(j, k) else BY_METRIC
    if j["rank"] < k["rank"]:
        return BY_IMPORTANCE
    return BETWEEN_EQUALS if j["rank"] == k["rank"] else NEVER


@leaf
def needed_level(tb: State, line: int, q_k: float, j: Records) -> float:
    """Q_j must be below this for an instance with ``q_k``, or one before it in their order, by this line; O(1)."""
    if line == BY_METRIC:
        return q_k if views.rules(tb)["one_margin"] else max(q_k, j["margin"])
    return max(q_k, j["margin"]) if line == BY_IMPORTANCE else gives_way_below(j, q_k)


@leaf
def rank_that_counts(tb: State, cls: int, q_j: float) -> int:
    """Above the margin only a larger metric makes eligible, not the rank: then a rank that all are above; O(1)."""
    j = views.classes(tb)[cls]
    return j["rank"] if q_j < j["margin"] else whole(ANY_RANK)


@leaf
def excludes(tb: State, most: float, least: int, cls: int, q_j: float) -> bool:
    """Whether nobody is eligible where no metric is above ``most`` and no rank number above ``least``; O(1)."""
    if views.classes(tb)[cls]["overloaded"]:
        return triage.excludes(tb, most, least, cls, q_j)
    return most <= q_j and least <= rank_that_counts(tb, cls, q_j)


@leaf
def none_after(tb: State, slot: Records, q_k: float, idle: bool, cls: int, q_j: float) -> bool:
    """Whether it is clear that neither k nor anybody after it in the order of victims is eligible; O(1)."""
    if views.classes(tb)[cls]["overloaded"]:
        return not idle and triage.none_after(tb, slot, q_k, cls, q_j)
    return not q_j < views.classes(tb)[cls]["margin"] and q_k <= q_j and not idle


@kernel
def victim_tier(tb: State, slot: Records, q_k: float) -> int:
    """Victims of lower tier go first: -1 idle, 0 from the margin on, else by rank, the least important first; O(1)."""
    if request_ledger.is_idle(tb, slot):
        return whole(-1)
    k = views.classes(tb)[slot["cls"]]
    if q_k >= k["margin"] or not views.rules(tb)["mirrored"]:
        return 0
    return views.rules(tb)["levels"] - k["level"]


@leaf
def later_victim(tier_a: int, q_a: float, tie_a: int, tier_b: int, q_b: float, tie_b: int, turned: bool) -> bool:
    """Whether a comes after b in the order of victims: by tier, then by decreasing metric, then by draw; O(1).

    ``turned``: in b's tier by increasing metric (:func:`.triage.turns_round`).
    """
    if tier_a != tier_b:
        return tier_a > tier_b
    if q_a != q_b:
        return (q_a < q_b) != turned
    return tie_a < tie_b


@leaf
def add_cost(out: Records, level: int, slack: float) -> None:
    """Add a victim with ``slack`` = Q_k - phi_k, of a class at place ``level``, to the tuple; O(1)."""
    out[len(out) - 1] += slack
    if slack < 0.0:
        out[level] += slack


@leaf
def no_cost(out: Records) -> None:
    """The cost of victims that all contribute nothing: less than any other; O(1)."""
    out[len(out) - 1] = np.inf
