"""Marks, tallies, rules and points (docs/semantics.md, Neighbours, preferences and budgets).

Every tally is counted anew, host by host.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reference.state import Domain, Host, Instance
from slacktide.model import Preference, Rule, Topology

TENS = {"least-requested": 2**21, "balanced": 2**20, "mean": 2**22, "packed": 2**20}
"""By score: what the most points are worth, 10, in units of 2^20 of the score's."""


def domain_of(topology: Topology, host: Host) -> Domain | None:
    """In which domain the host lies, ``None`` for in none."""
    if not topology.within.holds(host.attributes):
        return None
    if topology.key == "":
        return host.row
    if topology.key == "*":
        return "everywhere"
    return host.attributes.get(topology.key)


def carriers(mark: str, host: Host) -> list[Instance]:
    """Instances with the mark that are on the host, in start-up or past it."""
    return [k for k in host.instances if mark in k.placement.marks]


def tallies(
    mark: str, topology: Topology, hosts: Sequence[Host], without: Collection[Instance] = ()
) -> dict[Domain, int]:
    """How many carry the mark in each domain that has a host; as if those ``without`` were away."""
    known = hosts[0].known if hosts and not without else None
    if known is None:
        return count(mark, topology, hosts, without)
    if (mark, topology) not in known.tallies:
        known.tallies[mark, topology] = count(mark, topology, hosts, without)
    return known.tallies[mark, topology]


def count(mark: str, topology: Topology, hosts: Sequence[Host], without: Collection[Instance]) -> dict[Domain, int]:
    found: dict[Domain, int] = {}
    for host in hosts:
        domain = domain_of(topology, host)
        if domain is not None:
            there = [k for k in carriers(mark, host) if k not in without]
            found[domain] = found.get(domain, 0) + len(there) + host.foreign.get(mark, 0)
    return found


def holds(rule: Rule, j: Instance, host: Host, hosts: Sequence[Host], without: Collection[Instance] = ()) -> bool:
    """Whether ``j`` may come to the host, as if those ``without`` were away."""
    domain, found = domain_of(rule.topology, host), tallies(rule.mark, rule.topology, hosts, without)
    if domain is None:
        return rule.kind == "away"
    if rule.kind == "away":
        return found[domain] == 0
    carries = rule.mark in j.placement.marks
    if rule.kind == "near":
        return found[domain] >= 1 or (carries and nobody_near(rule, j, hosts, without))
    least = min(found.values()) if len(found) >= rule.min_domains else 0
    return found[domain] + int(carries) - least <= rule.skew


def nobody_near(rule: Rule, j: Instance, hosts: Sequence[Host], without: Collection[Instance]) -> bool:
    """Whether this ``near`` rule, and all others of ``j`` about its mark, find nobody in any domain."""
    kin = [rule, *(one for one in j.placement.rules if one.kind == "near" and one.mark == rule.mark)]
    return not any(count for one in kin for count in tallies(rule.mark, one.topology, hosts, without).values())


def welcomes(j: Instance, host: Host, hosts: Sequence[Host]) -> bool:
    """Whether all rules of ``j`` hold."""
    return all(holds(rule, j, host, hosts) for rule in j.placement.rules)


def draws_near(j: Instance, host: Host, hosts: Sequence[Host], without: Collection[Instance] = ()) -> bool:
    """Whether its rules hold that no preemption can mend: all but ``away``."""
    return all(holds(rule, j, host, hosts, without) for rule in j.placement.rules if rule.kind != "away")


def in_the_way(j: Instance, host: Host, hosts: Sequence[Host]) -> list[Instance] | None:
    """Who must leave the host for the ``away`` rules of ``j`` to hold; ``None`` where some of them are elsewhere."""
    found: list[Instance] = []
    for rule in j.placement.rules:
        if rule.kind == "away" and not holds(rule, j, host, hosts):
            here, domain = carriers(rule.mark, host), domain_of(rule.topology, host)
            assert domain is not None
            if tallies(rule.mark, rule.topology, hosts)[domain] > len(here):
                return None
            found += [k for k in here if k not in found]
    return found


def worth(preference: Preference, host: Host, hosts: Sequence[Host]) -> int:
    """Points of the host for one preference; where it has a mark its term is not asked."""
    if not preference.mark:
        return preference.weight if preference.term.holds(host.attributes) else 0
    domain = domain_of(preference.topology, host)
    if domain is None:
        return 0
    return preference.weight * tallies(preference.mark, preference.topology, hosts)[domain]


def points_of(j: Instance, fitting: Sequence[Host], hosts: Sequence[Host]) -> list[int]:
    """The points of each ``fitting`` host by the preferences."""
    return [sum(worth(p, host, hosts) for p in j.placement.preferences) for host in fitting]


def extras(j: Instance, fitting: Sequence[Host], hosts: Sequence[Host], score: str) -> list[int]:
    """What preferences add to the allocation score of each ``fitting`` host, in the score's units."""
    points = points_of(j, fitting, hosts)
    least, largest = min(points), max(points)
    if least == largest:
        return [0] * len(points)
    return [((own - least) * 2**20 // (largest - least)) * TENS[score] for own in points]
