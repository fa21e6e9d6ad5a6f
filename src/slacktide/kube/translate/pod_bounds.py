"""How much pods may ask of nodes and neighbours: what they ask is looked at for all pods that it is about.

The API server bounds only the size of an object, in which thousands of terms have room, and not how many pods there
are. A pod that asks for more than this, or whose namespace does, is unschedulable, with a reason that names the bound
and what was found; one on a node carries none of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.resources.objects import Pod, PodAffinity, PodAffinityTerm
from slacktide.kube.translate.affinity_groups import TermEffect

MOST_TERMS = 100
"""Terms of pod affinity and anti-affinity, required and preferred, and topology spread constraints, all together; terms
of node affinity, all together; tolerations."""
MOST_KEYS = 100
"""Labels and requirements of one selector; namespaces of one term; labels of a node selector."""
MOST_VALUES = 10_000
"""Of all requirements of a pod's selectors together."""
MOST_PORTS = 256
"""Ports of the node that a pod takes."""
MOST_ABOUT_OTHERS = 100
"""Different terms about pods of other namespaces, of all pods of one namespace: each of the others carries them."""
MOST_SELECTED = 500_000
"""Pods of different templates that the different terms of one namespace select in it, each counted for each term."""


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


class NamespaceTerms:
    """The terms of each namespace's pods, within its bounds. ``selected`` says how many templates a term may mean."""

    def __init__(self, selected: Callable[[TermEffect], int]) -> None:
        self._selected = selected
        self._uses: dict[tuple[str, TermEffect], int] = {}
        self._reach: dict[tuple[str, TermEffect], int] = {}
        self._about_others: defaultdict[str, int] = defaultdict(int)
        self._reach_of: defaultdict[str, int] = defaultdict(int)

    def problem(self, namespace: str, effects: Sequence[TermEffect]) -> str:
        """Why another template of a namespace may not have these terms, empty where it may."""
        news = [one for one in dict.fromkeys(effects) if (namespace, one) not in self._uses]
        others = self._about_others[namespace] + sum(_is_about_others(namespace, one) for one in news)
        selected = self._reach_of[namespace] + sum(self._reach_in(namespace, one) for one in news)
        self._forget_if_empty(namespace)
        counts = (
            ("different terms of pod affinity about pods of other namespaces", others, MOST_ABOUT_OTHERS),
            ("pods selected by different terms of pod affinity and topology spread", selected, MOST_SELECTED),
        )
        beyond = (one for one in counts if news and one[1] > one[2])
        return next((f"namespace {namespace}: {what}: found {n}, expected {m} at most" for what, n, m in beyond), "")

    def enter(self, namespace: str, effects: Sequence[TermEffect]) -> None:
        """Another template has these terms."""
        for one in effects:
            key = namespace, one
            if key not in self._uses:
                self._uses[key] = 0
                self._reach[key] = self._reach_in(namespace, one)
                self._reach_of[namespace] += self._reach[key]
                self._about_others[namespace] += _is_about_others(namespace, one)
            self._uses[key] += 1
        self._forget_if_empty(namespace)

    def leave(self, namespace: str, effects: Sequence[TermEffect]) -> None:
        """A template that was entered is gone."""
        for one in effects:
            key = namespace, one
            self._uses[key] -= 1
            if not self._uses[key]:
                del self._uses[key]
                self._about_others[namespace] -= _is_about_others(namespace, one)
                self._reach_of[namespace] -= self._reach.pop(key)
        self._forget_if_empty(namespace)

    def _reach_in(self, namespace: str, effect: TermEffect) -> int:
        """How many templates of its own namespace a term may mean."""
        return 0 if _leaves(namespace, effect) else self._selected(effect)

    def _forget_if_empty(self, namespace: str) -> None:
        for counts in (self._about_others, self._reach_of):
            if not counts[namespace]:
                del counts[namespace]


def _leaves(namespace: str, effect: TermEffect) -> bool:
    """Whether a term is about pods of other namespaces."""
    return any(one.namespaces != (namespace,) or not one.namespace_selector.nothing for one in effect.group)


def _is_about_others(namespace: str, effect: TermEffect) -> bool:
    """Of the two effects of such a term the one that is its own."""
    return bool(effect.key) and _leaves(namespace, effect)
