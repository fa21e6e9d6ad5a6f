"""Why preemption helps on no host; reads the tables and changes nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.plans import is_given_up
from slacktide.engine.explain.feasibility import Mask, Obstacles
from slacktide.kernels.builtin import PRIORITY
from slacktide.kernels.place import preemption_obstacles as rules
from slacktide.kernels.tables.affinity_records import AWAY
from slacktide.kernels.tables.arrays import Tables

TOO_SMALL = "node(s) too full even without all pods of this scheduler"
PROTECTED = "node(s) with pods protected by a PodDisruptionBudget or a minimum running time"
CROWDED = "node(s) where affinity or spread rules fail even without all pods of this scheduler"
GUARDED = "node(s) with pods that are system-critical, not bound yet, or terminating"
GROUPED = "node(s) with pods of a pod group that is preempted as a whole, not all of which may be"
TOO_MANY = "node(s) with pods whose workload was disrupted as often as its class allows"
COOLING = "node(s) with pods whose workload was disrupted too recently (cooldown)"
CLOSED = "node(s) with pods whose workload may be disrupted at other hours only"
OVERHEAD = "node(s) with pods that reached the preemption overhead limit of their class"
PROMISE = "node(s) with pods that need to stay to keep their promise"
PRIORITY_RULES = "node(s) without enough pods of lower priority"
OWN_RULES = "node(s) without enough pods that the policy lets go for this one"
TURNS = "node(s) without enough pods that are less important, given up, or next to wait in turn"
NOT_FOR_GIVEN_UP = "node(s) without pods that may be preempted for a pod that is given up"
FOR_GOOD = "node(s) with bare pods, which only a more important pod may preempt"
BY_NOW = "node(s) where preemption has become possible since the last attempt"


LASTING = -1
"""An obstacle beside those of the rules: a pod that nobody makes again."""


@dataclass(frozen=True, slots=True)
class Residents:
    """The instances on candidate hosts, one after the other: their slots and the place of each one's host."""

    hosts: NDArray[np.intp]
    slots: Any
    at: NDArray[np.int64]


class Carriers:
    """Which kinds' instances carry the marks that counters count; each is looked up once."""

    def __init__(self, tables: Tables) -> None:
        kinds = tables["kinds"]
        self._marks = tables["marks"]
        self._first = np.where(kinds["marks"] > 0, kinds["marks_at"], 0)
        self._end = self._first + kinds["marks"]
        self._known: dict[int, NDArray[np.int64]] = {}

    def of(self, counter: int) -> NDArray[np.int64]:
        """By kind, 1 where it carries the counter's mark, else 0."""
        found = self._known.get(counter)
        if found is None:
            before = np.concatenate(([0], np.cumsum(self._marks == counter)))
            found = self._known[counter] = (before[self._end] > before[self._first]).astype(np.int64)
        return found


def classify(engine: Engine, row: int, mine: float, found: Obstacles, now: float) -> Counter[str]:
    """Candidate hosts, each once, by what keeps the waiting instance of metric ``mine`` from preempting there."""
    tb = engine.tables.tb
    kind, here = int(tb["instances"]["kind"][row]), _residents(tb, found.candidates)
    stopped_by = np.zeros(len(here.at), np.int64)
    rules.obstacles(tb.state, here.hosts, row, mine, now, stopped_by)
    # Where there are too many in a domain, only who is less important goes (search_with_rules.choose_together).
    ranks = tb["classes"]["rank"]
    less = ranks[here.slots["cls"]] > ranks[int(tb["kinds"]["cls"][kind])]
    stopped_by[found.uneven[here.hosts][here.at] & ~less & (stopped_by == rules.NOTHING)] = rules.NOT_ELIGIBLE
    bare = tb["kinds"]["bare"][tb["instances"]["kind"][here.slots["row"]]] != 0
    if tb.rules["triage"]:
        stopped_by[bare & ~less & (stopped_by == rules.NOT_ELIGIBLE)] = LASTING
    steps = (
        (TOO_SMALL, None),
        (CROWDED, None),
        (GUARDED, rules.GUARDED),
        (TOO_MANY, rules.TOO_MANY),
        (COOLING, rules.COOLING),
        (CLOSED, rules.CLOSED),
        (GROUPED, rules.GROUPED),
        (PROTECTED, rules.PROTECTED),
        (OVERHEAD, rules.OVERHEAD),
        (_not_eligible(engine, row), rules.NOT_ELIGIBLE),
        (FOR_GOOD, LASTING),
    )
    said = Counter[str]()
    left: Mask = np.ones(len(here.hosts), np.bool_)
    obstacles: list[int] = []
    carriers, present = Carriers(tb), set(stopped_by.tolist())
    for text, obstacle in steps:
        if obstacle is not None and obstacle not in present:
            continue  # nobody less may go than at the step before
        obstacles += [] if obstacle is None else [obstacle]
        may_go = ~np.isin(stopped_by, obstacles)
        enough = _has_room(tb, here, found, may_go)
        if text != TOO_SMALL:
            enough &= _keeps_rules(tb, here, kind, found, may_go, carriers)
        if stopped := int((left & ~enough).sum()):
            said[text] = stopped
        left &= enough
    if left.any():
        said[BY_NOW] = int(left.sum())
    return said


def _not_eligible(engine: Engine, row: int) -> str:
    """What the rule says of hosts on which it allows too few to be preempted for a waiting instance."""
    tb = engine.tables.tb
    if tb.rules["piece_level"]:
        return OWN_RULES
    if tb.control["mode"] == PRIORITY:
        return PRIORITY_RULES
    if not tb["classes"]["planned"][tb["kinds"]["cls"][tb["instances"]["kind"][row]]]:
        return PROMISE
    controller = engine.controllers[engine.pods[engine.uid_of_row[row]].key]
    return NOT_FOR_GIVEN_UP if is_given_up(tb, controller, row) else TURNS


def _residents(tables: Tables, candidates: Mask) -> Residents:
    hosts = np.flatnonzero(candidates)
    counts = tables["hosts"]["count"][hosts]
    width = int(counts.max(initial=0))
    taken = np.arange(width) < counts[:, None]
    return Residents(hosts, tables["slots"][hosts, :width][taken], np.repeat(np.arange(len(hosts)), counts))


def _has_room(tables: Tables, here: Residents, found: Obstacles, may_go: Mask) -> Mask:
    """On which candidates there would be room, were all gone that may go."""
    count, at = len(here.hosts), here.at[may_go]
    missing = found.missing[here.hosts]
    demand = tables["demand"][here.slots["shape"][may_go]]
    enough: Mask = np.ones(count, np.bool_)
    for r in range(missing.shape[1]):
        if (missing[:, r] > 0).any():
            enough &= missing[:, r] <= np.bincount(at, demand[:, r], count)
    return enough


def _keeps_rules(
    tables: Tables, here: Residents, kind: int, found: Obstacles, may_go: Mask, carriers: Carriers
) -> Mask:
    """On which candidates the rules that fail would hold, were all gone that may go."""
    count, at = len(here.hosts), here.at[may_go]
    enough: Mask = np.ones(count, np.bool_)
    record = tables["kinds"][kind]
    kinds = tables["instances"]["kind"][here.slots["row"][may_go]]
    for i, fails in found.mendable.items():
        concerned = fails[here.hosts]
        if not concerned.any():
            continue
        condition = tables["conditions"][int(record["conditions_at"]) + i]
        c = int(condition["counter"])
        counter = tables["counters"][c]
        domain = np.maximum(tables["domain"][int(counter["topology"])][here.hosts], 0)
        tallies = tables["tallies"][int(counter["first"]) : int(counter["first"]) + int(counter["domains"])]
        left = tallies[domain] - np.bincount(at, carriers.of(c)[kinds], count).astype(np.int64)
        if condition["rule"] == AWAY:
            holds = left == 0
        else:
            holds = left + int(condition["carried"]) - _least(tallies, domain, left, condition) <= int(
                condition["skew"]
            )
        enough &= ~concerned | holds
    return enough


def _least(tallies: NDArray[np.int64], domain: NDArray[np.int64], left: NDArray[np.int64], condition: Any) -> Any:
    """For each candidate the least tally of all domains, were so many left in its own."""
    if len(tallies) < int(condition["min_domains"]):
        return 0
    first, second = (*np.argsort(tallies, kind="stable")[:2].tolist(), -1)[:2]
    others = tallies[np.where(domain == first, second, first)] if second >= 0 else left
    return np.minimum(others, left)
