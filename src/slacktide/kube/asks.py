"""What one pod asks of nodes and neighbours, read from its spec alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from slacktide.kube.demand import ANY_ADDRESS
from slacktide.kube.objects import Pod, PodAffinity, Toleration, TopologySpreadConstraint
from slacktide.kube.peers import Interest, Peers, check_key, domains, grouped, peers_of
from slacktide.kube.refusals import Unschedulable
from slacktide.kube.selectors import Selector, compiled, node_conditions, node_term
from slacktide.model import constraint
from slacktide.model.constraint import FOREIGN, REFUSING_EFFECTS, Condition, Constraint, Term, Tolerates
from slacktide.model.placement import CLUSTER, Preference, Rule, Topology

OURS = Constraint(FOREIGN, "absent")
"""A domain without nodes of ours holds up no spread."""
EVEN = 100
"""Points against a node for each pod too many in its domain (ScheduleAnyway with a skew of 1), and for a taint
that repels: as much as the heaviest preference of a user's."""

Ports = Sequence[tuple[str, str, int]]


@dataclass(slots=True)
class Asks:
    """Conditions on the node, the pod's own marks, rules and preferences, and what it has others do.

    ``problem`` says why the pod cannot be scheduled, empty where it can; the rest then holds what could be read.
    """

    conditions: tuple[Condition, ...] = ()
    tolerations: tuple[constraint.Toleration, ...] = ()
    marks: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    preferences: list[Preference] = field(default_factory=list)
    interests: list[Interest] = field(default_factory=list)
    problem: str = ""


def asks_of(pod: Pod, ports: Ports, exclusive: Sequence[str], hard_affinity_weight: int) -> Asks:
    """What the pod asks for; never raises. ``exclusive`` are its claims that one pod at a time may use."""
    asks = Asks()

    def attempt(part: Callable[[], None]) -> None:
        try:
            part()
        except Unschedulable as error:
            asks.problem = asks.problem or error.reason

    affinity = pod.spec.affinity
    attempt(lambda: _nodes(pod, asks))
    attempt(lambda: _taints(pod, asks))
    asks.conditions = (*asks.conditions, *_tolerating(asks.tolerations))
    if affinity is not None and affinity.pod_affinity is not None:
        near = affinity.pod_affinity
        attempt(lambda: _affinity(pod, near, asks, hard_affinity_weight))
        attempt(lambda: _preferred(pod, near, asks, 1))
    if affinity is not None and affinity.pod_anti_affinity is not None:
        away = affinity.pod_anti_affinity
        attempt(lambda: _anti_affinity(pod, away, asks))
        attempt(lambda: _preferred(pod, away, asks, -1))
    attempt(lambda: _spread(pod, asks))
    _ports(ports, asks)
    for claim in exclusive:
        mark = f"claim:{pod.metadata.namespace}/{claim}"
        asks.marks.append(mark)
        asks.rules.append(Rule("away", mark, Topology(CLUSTER)))
    return asks


def _nodes(pod: Pod, asks: Asks) -> None:
    asks.conditions = tuple(Constraint(key, "==", value) for key, value in sorted(pod.spec.node_selector.items()))
    nodes = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if nodes is None:
        return
    if nodes.required is not None:
        asks.conditions = (*asks.conditions, *node_conditions(nodes.required, "required node affinity"))
    for one in nodes.preferred:
        term = node_term(one.preference, "preferred node affinity")
        if term is not None and one.weight:
            asks.preferences.append(Preference(one.weight, term=term))


def _taints(pod: Pod, asks: Asks) -> None:
    asks.tolerations = tuple(sorted({_toleration(one) for one in pod.spec.tolerations}))


def _toleration(one: Toleration) -> constraint.Toleration:
    if one.operator not in ("", "Equal", "Exists"):
        raise Unschedulable(
            f"toleration of {one.key or 'all taints'}: found operator {one.operator!r}, expected Equal or Exists"
        )
    any_value = one.operator == "Exists"
    return constraint.Toleration(one.key, one.effect, "" if any_value else one.value, any_value)


def _tolerating(tolerations: Sequence[constraint.Toleration]) -> tuple[Condition, ...]:
    useful = tuple(one for one in tolerations if not one.effect or one.effect in REFUSING_EFFECTS)
    if any(one.any_value and not one.key and not one.effect for one in useful):
        return ()
    return (Tolerates(useful),)


def _affinity(pod: Pod, near: PodAffinity, asks: Asks, hard_affinity_weight: int) -> None:
    terms = [(term.topology_key, peers_of(pod, term, "required pod affinity")) for term in near.required]
    if not terms:
        return
    member = Interest("member", grouped(tuple(peers for _, peers in terms)))
    asks.interests.append(member)
    asks.rules.extend(Rule("near", member.mark, domains(key)) for key in dict.fromkeys(key for key, _ in terms))
    if hard_affinity_weight:
        for key, peers in terms:
            _draw(asks, peers, key, hard_affinity_weight)


def _anti_affinity(pod: Pod, away: PodAffinity, asks: Asks) -> None:
    for term in away.required:
        group = (peers_of(pod, term, "required pod anti-affinity"),)
        member, avoids = Interest("member", group), Interest("avoids", group, term.topology_key)
        asks.interests += [member, avoids]
        asks.marks.append(avoids.mark)
        asks.rules.append(Rule("away", member.mark, domains(term.topology_key)))


def _preferred(pod: Pod, affinity: PodAffinity, asks: Asks, sign: int) -> None:
    name = "preferred pod affinity" if sign > 0 else "preferred pod anti-affinity"
    for one in affinity.preferred:
        if one.weight:
            term = one.pod_affinity_term
            peers = peers_of(pod, term, name)
            member = Interest("member", (peers,))
            asks.interests.append(member)
            asks.preferences.append(Preference(sign * one.weight, member.mark, domains(term.topology_key)))
            _draw(asks, peers, term.topology_key, sign * one.weight)


def _draw(asks: Asks, peers: Peers, key: str, weight: int) -> None:
    drawn = Interest("drawn", (peers,), key, weight)
    asks.interests.append(drawn)
    asks.marks.append(drawn.mark)


def _spread(pod: Pod, asks: Asks) -> None:
    constraints = pod.spec.topology_spread_constraints
    for one in constraints:
        _check_spread(one)
    for action in ("DoNotSchedule", "ScheduleAnyway"):
        among = [one for one in constraints if one.when_unsatisfiable == action]
        keys = tuple(Constraint(key, "exists") for key in sorted({one.topology_key for one in among}))
        ours = (OURS,) if action == "DoNotSchedule" else ()
        for one in among:
            selector = _spread_selector(pod, one)
            counted = Interest("counted", (Peers(selector, (pod.metadata.namespace,)),))
            topology = Topology(one.topology_key, Term((*ours, *keys, *_included(pod, one, asks))))
            # kube-scheduler counts nobody for an empty selector; then no node has too many.
            counts = not (selector.nothing or selector.everything)
            if counts:
                asks.interests.append(counted)
            if counts and action == "DoNotSchedule":
                asks.rules.append(Rule("spread", counted.mark, topology, one.max_skew, one.min_domains or 1))
            elif counts:
                asks.preferences.append(Preference(-max(1, EVEN // one.max_skew), counted.mark, topology))
        if action == "DoNotSchedule":
            asks.conditions = (*asks.conditions, *keys)
        elif keys:
            asks.preferences.append(Preference(EVEN, term=Term(keys)))


def _spread_selector(pod: Pod, one: TopologySpreadConstraint) -> Selector:
    labels = pod.metadata.labels
    further = [(key, "In", (labels[key],)) for key in one.match_label_keys if key in labels]
    return compiled(one.label_selector, "topology spread", further)


def _included(pod: Pod, one: TopologySpreadConstraint, asks: Asks) -> tuple[Condition, ...]:
    """Which nodes' pods and domains count."""
    found: tuple[Condition, ...] = ()
    if one.node_affinity_policy != "Ignore":
        _nodes(pod, own := Asks())
        found = own.conditions
    return (*found, *_tolerating(asks.tolerations)) if one.node_taints_policy == "Honor" else found


def _check_spread(one: TopologySpreadConstraint) -> None:
    check_key(one.topology_key, "topology spread")
    where = f"topology spread over {one.topology_key}"
    wrong = (
        ("whenUnsatisfiable", one.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway")),
        ("nodeAffinityPolicy", one.node_affinity_policy, ("", "Honor", "Ignore")),
        ("nodeTaintsPolicy", one.node_taints_policy, ("", "Honor", "Ignore")),
    )
    for name, found, allowed in wrong:
        if found not in allowed:
            expected = " or ".join(filter(None, allowed))
            raise Unschedulable(f"{where}: {name}: found {found!r}, expected {expected}")
    for name, number in (("maxSkew", one.max_skew), ("minDomains", one.min_domains)):
        if number is not None and number < 1:
            raise Unschedulable(f"{where}: {name}: found {number}, expected 1 or more")


def _ports(ports: Ports, asks: Asks) -> None:
    """A port on all addresses stands against every use of it, a port on one address against that one and all."""
    for protocol, address, port in ports:
        used = f"port:{protocol}/{port}"
        on_all, on_one = f"{used}@*", f"{used}@{address}"
        if address == ANY_ADDRESS:
            asks.marks += [used, on_all]
            asks.rules.append(Rule("away", used))
        else:
            asks.marks += [used, on_one]
            asks.rules += [Rule("away", on_all), Rule("away", on_one)]
