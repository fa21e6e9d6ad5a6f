"""The rules of docs/semantics.md, 'Neighbours, preferences and budgets', evaluated the obvious way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slacktide.kube.translate.pod_constraints import PodConstraints
from slacktide.model.placement import CLUSTER, HOST, Placement, Preference, Rule, Topology


@dataclass
class Scene:
    """Hosts by name with their attributes, and the placements of those who run on each."""

    hosts: Mapping[str, Mapping[str, str]]
    running: Sequence[tuple[Placement, str]]

    def domain(self, topology: Topology, host: str) -> str | None:
        attributes = self.hosts[host]
        if not topology.within.holds(attributes):
            return None
        if topology.key == HOST:
            return host
        return CLUSTER if topology.key == CLUSTER else attributes.get(topology.key)

    def tallies(self, mark: str, topology: Topology) -> dict[str, int]:
        found = {domain: 0 for host in self.hosts if (domain := self.domain(topology, host)) is not None}
        for placement, host in self.running:
            domain = self.domain(topology, host)
            if domain is not None and mark in placement.marks:
                found[domain] += 1
        return found

    def passes(self, rule: Rule, placement: Placement, host: str) -> bool:
        domain = self.domain(rule.topology, host)
        if domain is None:
            return rule.kind == "away"
        tallies = self.tallies(rule.mark, rule.topology)
        itself = rule.mark in placement.marks
        if rule.kind == "near":
            kin = [one for one in placement.rules if one.kind == "near" and one.mark == rule.mark]
            anybody = any(sum(self.tallies(one.mark, one.topology).values()) for one in kin)
            return tallies[domain] >= 1 or (itself and not anybody)
        if rule.kind == "away":
            return tallies[domain] == 0
        least = min(tallies.values()) if len(tallies) >= rule.min_domains else 0
        return tallies[domain] + itself - least <= rule.skew

    def feasible(self, placed: PodConstraints, host: str) -> bool:
        return placed.term.holds(self.hosts[host]) and all(
            self.passes(rule, placed.placement, host) for rule in placed.placement.rules
        )

    def points(self, placement: Placement, host: str) -> int:
        return sum(self._worth(one, host) for one in placement.preferences)

    def _worth(self, one: Preference, host: str) -> int:
        if not one.mark:
            return one.weight if one.term.holds(self.hosts[host]) else 0
        domain = self.domain(one.topology, host)
        return 0 if domain is None else one.weight * self.tallies(one.mark, one.topology)[domain]
