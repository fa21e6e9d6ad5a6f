"""The policy ``priority``: strictly by importance, as the default scheduler of Kubernetes decides.

The reference of da Silva et al., "QoS-driven scheduling in the cloud", Journal of Internet
Services and Applications 11:9 (2020), section 4.1.2. No rule of it asks what was delivered.

**Order of the queue**: the most important class first, of one class the earliest admitted.
(:func:`comes_before`)

**Eligibility**: k may be preempted for j where the class of j is strictly more important.
(:func:`eligible`)

**Order of victims**: the least important class first, of one class the latest admitted; of
equal ones, a random one. (:func:`later_victim`)

**Cost of a preemption**: the number of victims of the most important class, then of the next;
the host with the fewest is chosen. (:func:`add_cost`)

With ``policy.equals = kube-scheduler`` the order of equals is the real one's, of version 1.36. Those of one class that
wait take turns by backoff (:mod:`slacktide.kernels.queue.backoff`), of those that run the last started is the first
victim, and of hosts with as many victims that one is chosen where the first started of the most important ones started
last. (:func:`add_start`)
"""

from __future__ import annotations

from slacktide.kernels.runtime.compiling import kernel, leaf
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State


@leaf
def comes_before(tb: State, a: Records, b: Records) -> bool:
    """The order of waiting instances: by (rank, where backoff puts it, admission, row); O(1)."""
    rank_a = views.classes(tb)[views.kinds(tb)[a["kind"]]["cls"]]["rank"]
    rank_b = views.classes(tb)[views.kinds(tb)[b["kind"]]["cls"]]["rank"]
    if rank_a != rank_b:
        return rank_a < rank_b
    if a["first"] != b["first"]:
        return a["first"] < b["first"]
    if a["second"] != b["second"]:
        return a["second"] < b["second"]
    if a["admitted"] != b["admitted"]:
        return a["admitted"] < b["admitted"]
    return a["row"] < b["row"]


@leaf
def can_wait(tb: State) -> bool:
    """Whether nobody may preempt anybody, as all classes are equally important; O(1)."""
    return views.rules(tb)["levels"] == 1


@leaf
def eligible(tb: State, slot: Records, cls: int) -> bool:
    """Whether the instance on a host may be preempted for one of class ``cls``; O(1)."""
    return views.classes(tb)[slot["cls"]]["rank"] > views.classes(tb)[cls]["rank"]


@kernel
def later_victim(a: Records, b: Records, classes: Records, as_kube: int) -> bool:
    """Whether a comes after b in the order of victims; O(1)."""
    rank_a, rank_b = classes[a["cls"]]["rank"], classes[b["cls"]]["rank"]
    if rank_a != rank_b:
        return rank_a < rank_b
    if as_kube and a["put_at"] != b["put_at"]:
        return a["put_at"] < b["put_at"]
    if a["admitted"] != b["admitted"]:
        return a["admitted"] < b["admitted"]
    return a["tie"] < b["tie"]


@leaf
def add_cost(out: Records, level: int) -> None:
    """Count a victim of a class at place ``level``; larger is better; O(1)."""
    out[level] -= 1.0


@leaf
def add_start(out: Records, level: int, put_at: float) -> None:
    """Note, behind all classes, when the first started of the most important victims started, before this one of a
    class at place ``level`` is counted; O(level)."""
    for m in range(level):
        if out[m] != 0.0:
            return
    last = len(out) - 1
    out[last] = put_at if out[level] == 0.0 else min(out[last], put_at)
