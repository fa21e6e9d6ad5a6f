"""What stands in the way of a kind of instances on each host; reads the tables and changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.kernels.tables.affinity_records import AWAY, NEAR_BY, SPREAD
from slacktide.kernels.tables.arrays import Tables
from slacktide.model import Rule
from slacktide.model.constraint import AnyOf, Condition, Constraint, Tolerates, taints_of
from slacktide.model.hosts import ATTACHABLE, DEVICES
from slacktide.state.spec import Spec

Mask = NDArray[np.bool_]
Taints = tuple[tuple[str, str, str], ...]

LONGEST_CONDITION = 120
CORDONED = "node.kubernetes.io/unschedulable"

# What kube-scheduler has words for is said in these, so that searches and runbooks find it (its plugins' reasons);
# what it does not say follows in parentheses.
NOT_OURS = "node(s) were not ready or not managed by this scheduler"
UNSCHEDULABLE = "node(s) were unschedulable"
TAINT = "node(s) had untolerated taint"
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
VOLUMES = "node(s) exceed max volume count"


def rule_text(rule: Rule) -> str:
    """A rule in the core's own words."""
    if rule.kind == "spread":
        return f"node(s) would have more than their share of {rule.mark!r}"
    return f"node(s) had no {rule.mark!r} near" if rule.kind == "near" else f"node(s) had {rule.mark!r} near"


@dataclass(frozen=True, slots=True)
class Obstacles:
    """Hosts by what stands in the way; masks have shape (hosts,).

    counts      each host once, under the first thing that fails: the host itself, its taints, other conditions on it,
                room (under each resource of which there is too little), rules about neighbours
    nodes       how many hosts there are
    fits        nothing fails on them
    candidates  only room, neighbours to keep away from, or too many in a domain stand in the way: preemption could help
    uneven      of these, those where there are too many in a domain
    mendable    of these rules, by index among the kind's conditions, which hosts fail them
    missing     shape (hosts, resources): amounts that are missing, 0 or less where none are
    """

    counts: Counter[str]
    nodes: int
    fits: Mask
    candidates: Mask
    uneven: Mask
    mendable: Mapping[int, Mask]
    missing: NDArray[np.int64]


@dataclass
class Looker:
    """Finds obstacles. Remembers hosts' taints, which are slow to read, while their attributes are the same."""

    engine: Engine
    name_rule: Callable[[Rule], str] = rule_text
    _taints: dict[int, tuple[Mapping[str, str], Taints]] = field(default_factory=dict)

    def look(self, kind: int) -> Obstacles:
        """Obstacles of a kind now; the tables must be settled. O(hosts * (conditions + rules + resources) + rules)."""
        engine = self.engine
        tb, spec = engine.tables.tb, engine.tables.spec_of(kind)
        record = tb["kinds"][kind]
        known = np.zeros(len(tb["hosts"]), np.bool_)
        known[[h for name, h in engine.hosts.items() if name not in engine.going]] = True
        up = known & (tb["hosts"]["down"] == 0)
        counts = Counter[str]()
        if down := int((known & ~up).sum()):
            counts[NOT_OURS] = down
        open_to = up & (tb["allowed"][int(record["term"]), tb["hosts"]["group"]] != 0)
        self._count_conditions(spec, np.flatnonzero(up & ~open_to), counts)
        demand = tb["demand"][int(record["shape"])]
        missing = np.minimum(demand - tb["free"], np.where(demand > 0, np.iinfo(np.int64).max, 0))
        short = open_to & (missing > 0).any(axis=1)
        for r, name in enumerate(engine.tables.resources):
            if lacking := int((short & (missing[:, r] > 0)).sum()):
                counts[_too_little(name)] += lacking
        left, helpless, uneven, mendable = open_to & ~short, np.zeros_like(up), np.zeros_like(up), {}
        first = int(record["conditions_at"])
        conditions = tb["conditions"][first : first + int(record["conditions"])]
        # Of thousands of rules most are about pods that are nowhere: they fail on no host.
        idle = (conditions["rule"] == AWAY) & (tb["counters"]["total"][conditions["counter"]] == 0)
        for i in np.flatnonzero(~idle).tolist():
            rule, condition = spec.placement.rules[i], conditions[i]
            fails = failing(tb, record, condition)
            inside = tb["domain"][int(tb["counters"]["topology"][int(condition["counter"])])] >= 0
            if condition["rule"] == NEAR_BY:
                helpless |= fails
            else:
                mendable[i] = fails & open_to & inside
                helpless |= fails & ~inside
                uneven |= mendable[i] & (condition["rule"] == SPREAD)
            if (here := left & fails).any():
                counts[self.name_rule(rule)] += int(here.sum())
                left &= ~fails
        blocked = short | np.logical_or.reduce([*mendable.values(), np.zeros_like(up)])
        could = open_to & blocked & ~helpless
        return Obstacles(counts, int(known.sum()), left, could, uneven & could, mendable, missing)

    def _count_conditions(self, spec: Spec, failing_hosts: NDArray[np.intp], counts: Counter[str]) -> None:
        """Hosts that fail the term, by the first condition that fails, taints before others."""
        conditions = sorted(spec.term.constraints, key=lambda one: not isinstance(one, Tolerates))
        left = failing_hosts.tolist()
        for condition in conditions:
            said: dict[Hashable, str] = {}
            rest = []
            for h, values in zip(left, self._values(condition, left), strict=True):
                text = said.get(values)
                if text is None:
                    text = said[values] = self._says(condition, h)
                if text:
                    counts[text] += 1
                else:
                    rest.append(h)
            left = rest

    def _values(self, condition: Condition, hosts: list[int]) -> list[Hashable]:
        """Of each host that on which alone it depends whether the condition holds."""
        attributes = self.engine.tables.attributes
        if isinstance(condition, Tolerates):
            return [self._taints_of(h) for h in hosts]
        if isinstance(condition, Constraint):
            key = condition.key
            return [attributes[h].get(key) for h in hosts]
        keys = _keys(condition)
        return [tuple(attributes[h].get(key) for key in keys) for h in hosts]

    def _says(self, condition: Condition, h: int) -> str:
        """What to say of a condition that fails on a host; empty where it holds."""
        if condition.holds(self.engine.tables.attributes[h]):
            return ""
        if isinstance(condition, Tolerates):
            _, key, value = next(one for one in self._taints_of(h) if not condition.accepts((one,)))
            if key == CORDONED:
                return UNSCHEDULABLE
            return f"{TAINT} {{{key}: {value}}}" if value else f"{TAINT} {{{key}}}"
        text = str(condition)
        return f"{AFFINITY} ({text})" if len(text) <= LONGEST_CONDITION else AFFINITY

    def _taints_of(self, h: int) -> Taints:
        attributes = self.engine.tables.attributes[h]
        known = self._taints.get(h)
        if known is None or known[0] is not attributes:
            known = self._taints[h] = attributes, taints_of(attributes)
        return known[1]


def _too_little(resource: str) -> str:
    if resource == "pods":
        return "Too many pods"
    devices = resource.removeprefix(DEVICES)
    if devices != resource:
        return f"cannot allocate all claims (too few free devices of class {devices.partition('~')[0]})"
    driver = resource.removeprefix(ATTACHABLE)
    return f"Insufficient {resource}" if driver == resource else f"{VOLUMES} (driver {driver})"


def _keys(condition: Condition) -> tuple[str, ...]:
    """The attributes that a condition asks about."""
    if isinstance(condition, Constraint):
        return (condition.key,)
    terms = condition.terms if isinstance(condition, AnyOf) else ()
    return tuple(dict.fromkeys(key for term in terms for one in term.constraints for key in _keys(one)))


def failing(tables: Tables, kind: Any, condition: Any) -> Mask:
    """Where a rule of a kind fails as things stand, shape (hosts,) (:mod:`slacktide.kernels.feasible.affinity`)."""
    counter = tables["counters"][int(condition["counter"])]
    domain = tables["domain"][int(counter["topology"])]
    first, domains = int(counter["first"]), int(counter["domains"])
    tallies = tables["tallies"][first : first + domains]
    inside = domain >= 0
    here = np.zeros(len(domain), np.int64)
    here[inside] = tallies[domain[inside]]
    if condition["rule"] == AWAY:
        return np.asarray(here > 0, np.bool_)
    if condition["rule"] == NEAR_BY:
        alone = bool(condition["carried"]) and not _anybody(tables, kind, int(condition["mark"]))
        return np.asarray(~inside | ((here == 0) & (not alone)), np.bool_)
    least = int(tallies.min(initial=2**62)) if domains >= int(condition["min_domains"]) else 0
    return np.asarray(~inside | (here + int(condition["carried"]) - least > int(condition["skew"])), np.bool_)


def _anybody(tables: Tables, kind: Any, mark: int) -> bool:
    """Whether any near rule of a kind about a mark has a carrier in some domain (``affinity.nobody_anywhere``)."""
    mine = tables["conditions"][int(kind["conditions_at"]) : int(kind["conditions_at"] + kind["conditions"])]
    near = mine[(mine["rule"] == NEAR_BY) & (mine["mark"] == mark)]
    return bool((tables["counters"]["total"][near["counter"]] > 0).any())
