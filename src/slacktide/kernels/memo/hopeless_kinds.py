"""A kind of which nobody finds a host leaves the pass, until a host changes.

Who waits has its turn by increasing metric within its class, and a failure holds in its pass for every larger metric
(:mod:`.infeasibility_memo`), but for those that :mod:`slacktide.kernels.feasible.victim_order` has marked. So after one
failure all the others of its kind fail, as long as no host changed. Their turns are left out, and where all kinds of
those that are still to come have left, the pass is over.

In an overloaded class turns go by other rules. There a kind leaves when one has failed that may preempt everybody whom
any of them may (:func:`slacktide.kernels.policies.triage.standing`).
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.policies import in_force, pieces, triage
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import RECORD_TURNS, Records, State


@kernel
def begin(tb: State) -> None:
    """A pass begins; O(1).

    Where each turn is recorded each pass tells of everybody who is held, on a cluster everybody is asked what he lacks,
    and `queue_pruning` asks who failed last. A gang has its turn together. By a user's own policy larger metrics may
    come first.
    """
    control, rules = views.control(tb), views.rules(tb)
    gangs = rules["gang"] or control["grouped"]
    spoken_of = rules["record"] & RECORD_TURNS or rules["live"] or rules["pruning"] or gangs or rules["naive"]
    out_of_turn = pieces.decide(tb) and in_force.by_metric(tb) and not control["ordered"]
    control["leaving"] = 0 if spoken_of or out_of_turn else 1
    control["left_at"] = -1


@leaf
def settle(tb: State) -> None:
    """Where a host changed since a kind left, or a budget has more left, all kinds are back; O(1)."""
    control = views.control(tb)
    if control["left_at"] != control["changes"] or control["left_loosened"] != control["loosened"]:
        control["left_at"], control["left_loosened"] = control["changes"], control["loosened"]
        control["returns"] += 1
        control["open"] = control["ahead"]


@leaf
def has_left(tb: State, kind: Records) -> bool:
    """Whether a kind is out of the pass, as things stand since :func:`settle`; O(1)."""
    return kind["left"] == views.control(tb)["returns"]


@leaf
def take_turn(tb: State, entry: Records) -> None:
    """An entry has its turn, or is passed over; O(1)."""
    control = views.control(tb)
    if not control["leaving"]:
        return
    settle(tb)
    kind = views.kinds(tb)[entry["kind"]]
    kind["ahead"] -= 1
    control["ahead"] -= 1
    if not has_left(tb, kind):
        control["open"] -= 1


@kernel
def note(tb: State, entry: Records, q_j: float) -> None:
    """An entry has found no host with metric ``q_j``, or what stands in its place: its kind may leave; O(1)."""
    control, kind = views.control(tb), views.kinds(tb)[entry["kind"]]
    if not control["leaving"] or not (entry["request"] < 0 or unwatched(tb)):
        return
    settle(tb)
    known = views.kinds(tb)[kind["alike"]]
    fresh = known["batch"] == control["batch"] and known["pass_position"] == control["changes"]
    if has_left(tb, kind) or not fresh or known["order_mattered"] or known["loosened"] != control["loosened"]:
        return
    if views.classes(tb)[kind["cls"]]["overloaded"]:
        q_j = min(q_j, triage.SAVABLE - kind["shape"])
    if in_force.on_path(tb, q_j, 1.0) >= known["pass_key"]:
        kind["left"] = control["returns"]
        control["open"] -= kind["ahead"]


@leaf
def unwatched(tb: State) -> bool:
    """Whether nothing is to be learnt of requests that fail for passes to come (:mod:`.standstill`); O(1)."""
    return views.control(tb)["still_until"] == -np.inf or not in_force.by_metric(tb)


@leaf
def passed_over(tb: State, entry: Records) -> bool:
    """Whether an entry's turn is left out, as its kind has left; O(1)."""
    if not views.control(tb)["leaving"]:
        return False
    settle(tb)
    if not has_left(tb, views.kinds(tb)[entry["kind"]]):
        return False
    take_turn(tb, entry)
    return True


@leaf
def all_left(tb: State) -> bool:
    """Whether everybody who is still to come would fail; O(1)."""
    control = views.control(tb)
    if not control["leaving"] or (control["request_heap"] > 0 and not unwatched(tb)):
        return False
    settle(tb)
    return control["open"] == whole(0)


@leaf
def only_told(tb: State, entry: Records) -> bool:
    """Whether nothing comes of an entry's turn but the event that it waits in vain, which is still to be told; O(1)."""
    if views.control(tb)["untold"] <= 0 or entry["told"] != 0 or not views.control(tb)["leaving"]:
        return False
    settle(tb)
    q = whole(entry["request"])
    in_heap = q >= 0 and views.requests(tb)[q]["heap_at"] >= 0  # its request has its turn by its metric
    return all_left(tb) or (not in_heap and has_left(tb, views.kinds(tb)[entry["kind"]]))
