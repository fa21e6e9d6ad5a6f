"""What the auditor asks about neighbours and budgets: it counts who is where, by the text of the rules alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from slacktide.model import Placement, Rule, Term
from support.clusters import Cluster

Satisfied = Callable[[Term, dict[str, str]], bool]


def constraints_of(cluster: Cluster, row: int) -> Placement | None:
    index = cluster.workload.placement
    return None if index is None else cluster.workload.placements[int(index[row])]


def places(cluster: Cluster, rule: Rule, satisfied: Satisfied) -> dict[int, str]:
    """By host: the name of its domain; hosts in none are left out."""
    key, found = rule.topology.key, {}
    for host, attributes in enumerate(cluster.hosts.attributes):
        if not satisfied(rule.topology.within, dict(attributes)):
            continue
        if key in ("", "*"):
            found[host] = "all" if key else f"host {host}"
        elif key in attributes:
            found[host] = attributes[key]
    return found


def broken_rules(
    cluster: Cluster,
    row: int,
    host: int,
    where: Mapping[int, int],
    satisfied: Satisfied,
    kinds: Sequence[str] = ("near", "away", "spread"),
) -> list[Rule]:
    """Those of the row's rules that do not hold on the host, ``where`` being who is on which host without it."""
    mine = constraints_of(cluster, row)
    if mine is None:
        return []
    return [
        rule for rule in mine.rules if rule.kind in kinds and not _good(cluster, rule, mine, host, where, satisfied)
    ]


def _good(
    cluster: Cluster, rule: Rule, mine: Placement, host: int, where: Mapping[int, int], satisfied: Satisfied
) -> bool:
    domain = places(cluster, rule, satisfied)
    others, is_one = _others(cluster, rule, where, domain), rule.mark in mine.marks
    if host not in domain:
        return rule.kind == "away"
    here = others[domain[host]]
    if rule.kind == "near":
        kin = [one for one in mine.rules if one.kind == "near" and one.mark == rule.mark]
        everywhere = [_others(cluster, one, where, places(cluster, one, satisfied)) for one in kin]
        return here > 0 or (is_one and not any(any(found.values()) for found in everywhere))
    if rule.kind == "away":
        return here == 0
    fewest = 0 if len(others) < rule.min_domains else min(others.values())
    return here + (1 if is_one else 0) <= fewest + rule.skew


def _others(cluster: Cluster, rule: Rule, where: Mapping[int, int], domain: Mapping[int, str]) -> Counter[str]:
    """How many carry the rule's mark in each domain."""
    others = Counter(dict.fromkeys(domain.values(), 0))
    for row, place in where.items():
        its = constraints_of(cluster, row)
        if its is not None and rule.mark in its.marks and place in domain:
            others[domain[place]] += 1
    return others


def overdrawn(
    cluster: Cluster, victims: Iterable[int], live: Iterable[int], may_be_ready: Callable[[int], bool]
) -> str:
    """What is wrong with giving up these victims at once, given who is there and who may be past its start-up."""
    index = cluster.workload.budget
    if index is None:
        return ""
    for number, taken in Counter(int(index[row]) for row in victims).items():
        if number < 0:
            continue
        budget = cluster.workload.budgets[number]
        all_of_them = [row for row in live if index[row] == number]
        ready = sum(map(may_be_ready, all_of_them))
        if budget.min_available is not None:
            spare = ready - budget.min_available
        else:
            spare = (budget.max_unavailable or 0) - (len(all_of_them) - ready)
        if taken > spare:
            return f"{taken} of {budget}, which has {ready} of {len(all_of_them)}"
    return ""
