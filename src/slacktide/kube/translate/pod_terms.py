"""What one pod's spec asks of nodes and neighbours, and how much it may ask.

The API server bounds only the size of an object, in which thousands of terms have room, and each is looked at for all
pods that it is about. A pod that asks for more than is bounded here is unschedulable, with a reason that names the
bound and what was found; one on a node carries none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from slacktide.kube.resources.objects import (
    LabelSelector,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    SystemSpread,
    Toleration,
    TopologySpreadConstraint,
)
from slacktide.kube.translate.nodes import ANY_ADDRESS, feature_conditions
from slacktide.kube.translate.selectors import (
    PodSelection,
    Selector,
    TermEffect,
    check_key,
    compiled,
    domains,
    grouped,
    node_conditions,
    node_term,
    selection_of,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import constraint
from slacktide.model.constraint import REFUSING_EFFECTS, Condition, Constraint, Term, Tolerates
from slacktide.model.placement import CLUSTER, Preference, Rule, Topology

MOST_ABOUT_PODS = 32
"""Terms of pod affinity and anti-affinity, required and preferred, and topology spread constraints, all together: each
pod that they select carries marks of them."""
MOST_TERMS = 100
"""Terms of node affinity, all together; tolerations."""
MOST_KEYS = 100
"""Labels and requirements of one selector; namespaces of one term; labels of a node selector."""
MOST_VALUES = 10_000
"""Of all requirements of a pod's selectors together."""
MOST_PORTS = 256
"""Ports of the node that a pod takes."""


def excess(pod: Pod, ports: Sequence[tuple[str, str, int]]) -> str:
    """Of what a pod asks for too much, how much that is, and how much may be; empty where it does not."""
    beyond = (one for one in _counts(pod, ports) if one[1] > one[2])
    return next((f"{what}: found {found}, expected {most} at most" for what, found, most in beyond), "")


def _counts(pod: Pod, ports: Sequence[tuple[str, str, int]]) -> Iterator[tuple[str, int, int]]:
    spec = pod.spec
    terms = list(_terms(pod))
    total = len(terms) + len(spec.topology_spread_constraints)
    yield "terms of pod affinity and topology spread constraints", total, MOST_ABOUT_PODS
    yield "tolerations", len(spec.tolerations), MOST_TERMS
    yield "labels of the node selector", len(spec.node_selector), MOST_KEYS
    yield "host ports", len(ports), MOST_PORTS
    selectors = [one.label_selector for one in spec.topology_spread_constraints]
    for term in terms:
        selectors += [term.label_selector, term.namespace_selector]
        yield "namespaces of a term of pod affinity", len(term.namespaces), MOST_KEYS
        keys = len(term.match_label_keys) + len(term.mismatch_label_keys)
        yield "label keys of a term of pod affinity", keys, MOST_KEYS
    values = 0
    for selector in filter(None, selectors):
        yield "requirements of a selector of pods", _keys(selector), MOST_KEYS
        values += sum(len(one.values) for one in selector.match_expressions)
    for one in spec.topology_spread_constraints:
        yield "label keys of a topology spread constraint", len(one.match_label_keys), MOST_KEYS
    yield from _of_nodes(pod)
    yield "values of selectors of pods", values, MOST_VALUES


def _of_nodes(pod: Pod) -> Iterator[tuple[str, int, int]]:
    nodes = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if nodes is None:
        return
    required = () if nodes.required is None else nodes.required.node_selector_terms
    terms = [*required, *(one.preference for one in nodes.preferred)]
    yield "terms of node affinity", len(terms), MOST_TERMS
    for term in terms:
        yield "requirements of a term of node affinity", len(term.match_expressions) + len(term.match_fields), MOST_KEYS


def _terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    found: list[PodAffinity | None] = [] if affinity is None else [affinity.pod_affinity, affinity.pod_anti_affinity]
    for one in filter(None, found):
        yield from one.required
        yield from (each.pod_affinity_term for each in one.preferred)


def _keys(selector: LabelSelector) -> int:
    return len(selector.match_labels) + len(selector.match_expressions)


EVEN = 100
"""Points against a node for each pod too many in its domain (ScheduleAnyway with a skew of 1), and for a taint
that repels: as much as the largest weight that a user can give."""
HARD_AFFINITY_WEIGHT = 1
"""What a pod's required affinity is worth to a pod that it selects: kube-scheduler's default of
``hardPodAffinityWeight``."""

READ = ("node_selector", "affinity", "tolerations", "topology_spread_constraints")
"""What is read of a pod's spec here, beside its host ports and the features that it needs. Pods that are equal in these
share one translation."""

Ports = Sequence[tuple[str, str, int]]


NOWHERE = Rule("near", "pods:nobody")
"""Of a pod that must be near somebody in domains that no node lies in; nobody carries the mark."""


@dataclass(slots=True)
class PodTerms:
    """Conditions on the node, the pod's own marks, rules and preferences, and what it has others do.

    ``problem`` says why the pod cannot be scheduled, empty where it can; the rest then holds what could be read.
    """

    conditions: tuple[Condition, ...] = ()
    tolerations: tuple[constraint.Toleration, ...] = ()
    marks: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    preferences: list[Preference] = field(default_factory=list)
    effects: list[TermEffect] = field(default_factory=list)
    problem: str = ""


def terms_of(pod: Pod, ports: Ports, exclusive: Sequence[str]) -> PodTerms:
    """What the pod asks for; never raises. ``exclusive`` are its claims that one pod at a time may use."""
    if problem := excess(pod, ports):
        return PodTerms(problem=problem)
    terms = PodTerms()

    def attempt(part: Callable[[], None]) -> None:
        try:
            part()
        except Unschedulable as error:
            terms.problem = terms.problem or error.reason

    affinity = pod.spec.affinity
    attempt(lambda: _nodes(pod, terms))
    attempt(lambda: _taints(pod, terms))
    terms.conditions = (*terms.conditions, *_tolerating(terms.tolerations), *feature_conditions(pod))
    if affinity is not None and affinity.pod_affinity is not None:
        near = affinity.pod_affinity
        attempt(lambda: _affinity(pod, near, terms))
        attempt(lambda: _preferred(pod, near, terms, 1))
    if affinity is not None and affinity.pod_anti_affinity is not None:
        away = affinity.pod_anti_affinity
        attempt(lambda: _anti_affinity(pod, away, terms))
        attempt(lambda: _preferred(pod, away, terms, -1))
    attempt(lambda: _spread(pod, terms))
    _ports(ports, terms)
    for claim in exclusive:
        mark = f"claim:{pod.metadata.namespace}/{claim}"
        terms.marks.append(mark)
        terms.rules.append(Rule("away", mark, Topology(CLUSTER)))
    return terms


def active(terms: PodTerms, is_known: Callable[[str], bool]) -> tuple[PodTerms, frozenset[str]]:
    """What of a pod's terms has an effect, and the topology keys of the rest: those that no node has as a label.

    Such a term keeps nobody away, and nobody is nearer to anybody by it; where somebody must be near, no node will do.
    So nobody is to carry its mark.
    """
    keys = {one.topology.key for one in terms.rules if one.kind != "spread"}
    keys |= {one.topology.key for one in terms.preferences if one.mark} | {one.key for one in terms.effects}
    unknown = frozenset(one for one in keys if one not in ("", CLUSTER) and not is_known(one))
    if not unknown:
        return terms, unknown
    rules = [one for one in terms.rules if one.kind == "spread" or one.topology.key not in unknown]
    if any(one.kind == "near" and one.topology.key in unknown for one in terms.rules):
        rules.append(NOWHERE)
    preferences = [one for one in terms.preferences if not one.mark or one.topology.key not in unknown]
    asked = {one.mark for one in rules} | {one.mark for one in preferences}
    effects = [one for one in terms.effects if (one.key not in unknown if one.key else one.mark in asked)]
    idle = {one.mark for one in terms.effects if one.key in unknown}
    marks = [one for one in terms.marks if one not in idle]
    return replace(terms, marks=marks, rules=rules, preferences=preferences, effects=effects), unknown


def _nodes(pod: Pod, terms: PodTerms) -> None:
    terms.conditions = tuple(Constraint(key, "==", value) for key, value in sorted(pod.spec.node_selector.items()))
    nodes = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if nodes is None:
        return
    if nodes.required is not None:
        terms.conditions = (*terms.conditions, *node_conditions(nodes.required, "required node affinity"))
    for one in nodes.preferred:
        term = node_term(one.preference, "preferred node affinity")
        if term is not None and one.weight:
            terms.preferences.append(Preference(one.weight, term=term))


def _taints(pod: Pod, terms: PodTerms) -> None:
    terms.tolerations = tuple(sorted({_toleration(one) for one in pod.spec.tolerations}))


def _toleration(one: Toleration) -> constraint.Toleration:
    where = f"toleration of {one.key or 'all taints'}"
    if one.operator not in ("", "Equal", "Exists", "Lt", "Gt"):
        raise Unschedulable(f"{where}: found operator {one.operator!r}, expected Equal, Exists, Lt or Gt")
    any_value = one.operator == "Exists"
    compares = one.operator.lower() if one.operator in ("Lt", "Gt") else ""
    return constraint.Toleration(one.key, one.effect, "" if any_value else one.value, any_value, compares)


def _tolerating(tolerations: Sequence[constraint.Toleration]) -> tuple[Condition, ...]:
    useful = tuple(one for one in tolerations if not one.effect or one.effect in REFUSING_EFFECTS)
    if any(one.any_value and not one.key and not one.effect for one in useful):
        return ()
    return (Tolerates(useful),)


def _affinity(pod: Pod, near: PodAffinity, terms: PodTerms) -> None:
    required = [(term.topology_key, selection_of(pod, term, "required pod affinity")) for term in near.required]
    if not required:
        return
    member = TermEffect("member", grouped(tuple(peers for _, peers in required)))
    terms.effects.append(member)
    terms.rules.extend(Rule("near", member.mark, domains(key)) for key in dict.fromkeys(key for key, _ in required))
    for key, peers in required:
        _draw(terms, peers, key, HARD_AFFINITY_WEIGHT)


def _anti_affinity(pod: Pod, away: PodAffinity, terms: PodTerms) -> None:
    for term in away.required:
        group = (selection_of(pod, term, "required pod anti-affinity"),)
        member, avoids = TermEffect("member", group), TermEffect("avoids", group, term.topology_key)
        terms.effects += [member, avoids]
        terms.marks.append(avoids.mark)
        terms.rules.append(Rule("away", member.mark, domains(term.topology_key)))


def _preferred(pod: Pod, affinity: PodAffinity, terms: PodTerms, sign: int) -> None:
    name = "preferred pod affinity" if sign > 0 else "preferred pod anti-affinity"
    for one in affinity.preferred:
        if one.weight:
            term = one.pod_affinity_term
            peers = selection_of(pod, term, name)
            member = TermEffect("member", (peers,))
            terms.effects.append(member)
            terms.preferences.append(Preference(sign * one.weight, member.mark, domains(term.topology_key)))
            _draw(terms, peers, term.topology_key, sign * one.weight)


def _draw(terms: PodTerms, peers: PodSelection, key: str, weight: int) -> None:
    drawn = TermEffect("drawn", (peers,), key, weight)
    terms.effects.append(drawn)
    terms.marks.append(drawn.mark)


def _spread(pod: Pod, terms: PodTerms) -> None:
    constraints = pod.spec.topology_spread_constraints
    for one in constraints:
        check_spread(one)
    for action in ("DoNotSchedule", "ScheduleAnyway"):
        among = [one for one in constraints if one.when_unsatisfiable == action]
        together = {one.topology_key for one in among if not isinstance(one, SystemSpread)}
        keys = tuple(Constraint(key, "exists") for key in sorted(together))
        for one in among:
            selector = _spread_selector(pod, one)
            counted = TermEffect("counted", (PodSelection(selector, (pod.metadata.namespace,)),))
            needed = (Constraint(one.topology_key, "exists"),) if isinstance(one, SystemSpread) else keys
            topology = Topology(one.topology_key, Term((*needed, *_included(pod, one, terms))))
            # kube-scheduler counts no pod for an empty selector; then no node has too many.
            counts = not (selector.nothing or selector.everything)
            if counts:
                terms.effects.append(counted)
            if counts and action == "DoNotSchedule":
                terms.rules.append(Rule("spread", counted.mark, topology, one.max_skew, one.min_domains or 1))
            elif counts:
                terms.preferences.append(Preference(-max(1, EVEN // one.max_skew), counted.mark, topology))
        if action == "DoNotSchedule":
            terms.conditions = (*terms.conditions, *keys)
        elif keys:
            terms.preferences.append(Preference(EVEN, term=Term(keys)))


def _spread_selector(pod: Pod, one: TopologySpreadConstraint) -> Selector:
    labels = pod.metadata.labels
    further = [(key, "In", (labels[key],)) for key in one.match_label_keys if key in labels]
    return compiled(one.label_selector, "topology spread", further)


def _included(pod: Pod, one: TopologySpreadConstraint, terms: PodTerms) -> tuple[Condition, ...]:
    """Which nodes' pods and domains count."""
    found: tuple[Condition, ...] = ()
    if one.node_affinity_policy != "Ignore":
        _nodes(pod, own := PodTerms())
        found = own.conditions
    return (*found, *_tolerating(terms.tolerations)) if one.node_taints_policy == "Honor" else found


def check_spread(one: TopologySpreadConstraint) -> None:
    """Raises :class:`Unschedulable` naming the field and the value where a constraint is malformed."""
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


def _ports(ports: Ports, terms: PodTerms) -> None:
    """A port on all addresses conflicts with every use of it; a port on one address with that one and with all."""
    for protocol, address, port in ports:
        used = f"port:{protocol}/{port}"
        on_all, on_one = f"{used}@*", f"{used}@{address}"
        if address == ANY_ADDRESS:
            terms.marks += [used, on_all]
            terms.rules.append(Rule("away", used))
        else:
            terms.marks += [used, on_one]
            terms.rules += [Rule("away", on_all), Rule("away", on_one)]
