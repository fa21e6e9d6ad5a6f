"""How much one pod may ask of nodes and neighbours: what it asks is looked at for all pods that it is about.

The API server bounds only the size of an object, in which thousands of terms have room. A pod that asks for more than
this is unschedulable, with a reason that names the bound and what was found; one on a node carries none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.resources.objects import Pod, PodAffinity, PodAffinityTerm

MOST_TERMS = 100
"""Terms of pod affinity and anti-affinity, required and preferred, and topology spread constraints, all together; terms
of node affinity, all together; tolerations."""
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
    yield "terms of pod affinity and topology spread constraints", total, MOST_TERMS
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
