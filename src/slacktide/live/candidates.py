"""Why preemption helps on no host; reads the tables and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import PRIORITY, SCOPE_ALL, SCOPE_CLASS, SCOPE_LEVEL, Tables
from slacktide.live.obstacles import Mask, Obstacles
from slacktide.live.overview import Floats, earned, entitled, weigh

if TYPE_CHECKING:
    from slacktide.live.engine import Engine

TOO_SMALL = "had too little room even without pods of ours"
PROTECTED = "were protected by disruption budgets or by a least running time"
OVERHEAD = "were preempted too often already"
PROMISE = "kept their promise only if left alone"
PRIORITY_RULES = "run nothing of lower priority that would suffice"
BY_NOW = "could be preempted by now"


@dataclass(frozen=True, slots=True)
class Residents:
    """The instances on candidate hosts, one after the other: their slots and the place of each one's host."""

    hosts: NDArray[np.intp]
    slots: Any
    at: NDArray[np.int64]


def classify(engine: Engine, kind: int, mine: float, found: Obstacles, now: float) -> Counter[str]:
    """Candidate hosts, each once, by what keeps an instance of ``kind`` with metric ``mine`` from preempting there."""
    tb = engine.tables.tb
    here = _residents(tb, found.candidates)
    may_go: Mask = np.ones(len(here.at), np.bool_)
    said = Counter[str]()
    left: Mask = np.ones(len(here.hosts), np.bool_)
    by_rank = tb.control["mode"] == PRIORITY
    steps: tuple[tuple[str, Callable[[], Mask]], ...] = (
        (TOO_SMALL, lambda: may_go),
        (PROTECTED, lambda: _unprotected(tb, here, now)),
        (OVERHEAD, lambda: may_go if by_rank else _within_overhead(tb, here, kind, now)),
        (PRIORITY_RULES if by_rank else PROMISE, lambda: _eligible(tb, here, kind, mine, now)),
    )
    for text, allowed in steps:
        if not left.any():
            break
        may_go = may_go & allowed()
        enough = _enough(tb, here, kind, found, may_go)
        if stopped := int((left & ~enough).sum()):
            said[text] = stopped
        left &= enough
    if left.any():
        said[BY_NOW] = int(left.sum())
    return said


def _residents(tables: Tables, candidates: Mask) -> Residents:
    hosts = np.flatnonzero(candidates)
    counts = tables["hosts"]["count"][hosts]
    width = int(counts.max(initial=0))
    taken = np.arange(width) < counts[:, None]
    return Residents(hosts, tables["slots"][hosts, :width][taken], np.repeat(np.arange(len(hosts)), counts))


def _enough(tables: Tables, here: Residents, kind: int, found: Obstacles, may_go: Mask) -> Mask:
    """On which candidates room and rules would do, were all gone that may go."""
    count, at = len(here.hosts), here.at[may_go]
    missing = found.missing[here.hosts]
    demand = tables["demand"][here.slots["shape"][may_go]]
    enough: Mask = np.ones(count, np.bool_)
    for r in range(missing.shape[1]):
        if (missing[:, r] > 0).any():
            enough &= missing[:, r] <= np.bincount(at, demand[:, r], count)
    record = tables["kinds"][kind]
    kinds = tables["instances"]["kind"][here.slots["row"][may_go]]
    for i, fails in found.away.items():
        concerned = fails[here.hosts]
        if not concerned.any():
            continue
        c = int(tables["conditions"][int(record["conditions_at"]) + i]["counter"])
        counter = tables["counters"][c]
        domain = tables["domain"][int(counter["topology"])][here.hosts]
        tally = tables["tallies"][int(counter["first"]) + np.maximum(domain, 0)]
        carrying = np.bincount(at, _carries(tables, c)[kinds], count)
        enough &= ~concerned | (carrying == tally)
    return enough


def _carries(tables: Tables, counter: int) -> NDArray[np.int64]:
    """By kind whether its instances carry the counter's mark."""
    kinds, marks = tables["kinds"], tables["marks"]
    found = np.zeros(len(kinds), np.int64)
    places = np.flatnonzero(marks == counter)
    for k in np.flatnonzero(kinds["marks"] > 0).tolist():
        first = int(kinds["marks_at"][k])
        found[k] = bool(((places >= first) & (places < first + int(kinds["marks"][k]))).any())
    return found


def _unprotected(tables: Tables, here: Residents, now: float) -> Mask:
    rows = here.slots["row"]
    free: Mask = now >= here.slots["since"] + float(tables.rules["min_running"])
    if len(tables["guard"]):
        free &= now >= tables["guard"][rows]
    if len(tables["budget"]) and len(tables["budgets"]):
        budget = tables["budget"][rows]
        having = free & (budget >= 0)
        group = here.at[having] * len(tables["budgets"]) + budget[having]
        allowed = np.maximum(tables["budgets"]["amount"], 0)[budget[having]]
        free[having] = _number_within(group) < allowed
    return free


def _number_within(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each place its number among those of its group, from 0."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[begins, len(ordered)])
    numbers = np.empty(len(group), np.int64)
    numbers[order] = np.arange(len(group)) - np.repeat(begins, sizes)
    return numbers


def _within_overhead(tables: Tables, here: Residents, kind: int, now: float) -> Mask:
    """Whom the overhead limit lets go (:func:`slacktide.kernels.victims.within_overhead`)."""
    slots, scope = here.slots, int(tables.rules["scope"])
    theirs, ours = tables["classes"][slots["cls"]], tables["classes"][int(tables["kinds"]["cls"][kind])]
    applies: Mask = np.full(len(slots), scope == SCOPE_ALL)
    if scope == SCOPE_LEVEL:
        applies = theirs["rank"] <= ours["rank"]
    elif scope == SCOPE_CLASS:
        applies = slots["cls"] == int(tables["kinds"]["cls"][kind])
    alone = slots["request"] < 0
    cost = slots["overhead"].copy()
    ran = slots["e"] + np.maximum(now - slots["on"], 0.0)
    shared = slots["request"][~alone]
    cost[~alone], ran[~alone] = tables["requests"]["overhead"][shared], earned(tables, shared, now)
    share = np.divide(cost, ran + cost, out=np.zeros(len(slots)), where=cost > 0.0)
    return np.asarray(~applies | (share <= theirs["limit"]), np.bool_)


def _eligible(tables: Tables, here: Residents, kind: int, mine: float, now: float) -> Mask:
    """Whom metric and rank let go (:func:`slacktide.kernels.victims.eligible`)."""
    slots, rules = here.slots, tables.rules
    theirs, ours = tables["classes"][slots["cls"]], tables["classes"][int(tables["kinds"]["cls"][kind])]
    if tables.control["mode"] == PRIORITY:
        return np.asarray(theirs["rank"] > ours["rank"], np.bool_)
    q = _metric(tables, slots, now)
    below = mine < ours["margin"]
    well = (q > mine) & (below or not rules["needed"])
    same = ours["rank"] == theirs["rank"]
    worse = bool(below) & (ours["rank"] <= theirs["rank"]) & (~same | (mine + float(rules["patience"]) < q))
    return np.asarray(np.where(q >= theirs["margin"], well, worse), np.bool_)


def _metric(tables: Tables, slots: Any, now: float) -> Floats:
    """Q of instances on hosts, seconds (:func:`slacktide.kernels.requests.metric_of`)."""
    slo = tables["classes"]["slo"][slots["cls"]]
    since_on = np.maximum(now - slots["on"], 0.0)
    e = slots["e"] + since_on
    p = slots["p"] + (np.minimum(now, slots["on"]) - slots["since"])
    own: Floats = entitled(e, slo) - (e + p) - float(tables.rules["alpha"])
    shared = slots["request"] >= 0
    if not shared.any():
        return own
    q = slots["request"][shared]
    instances = tables["instances"][slots["row"][shared]]
    worked = np.maximum(now - (instances["since"] + instances["startup"]), 0.0)
    unearned = np.where(tables["requests"]["loses"][q] != 0, worked, 0.0)
    own[shared] = weigh(tables, q, now, (now >= slots["on"][shared]).astype(np.int64), unearned)
    return own
