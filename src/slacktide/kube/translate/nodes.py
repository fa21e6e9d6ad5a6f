"""Nodes as the core sees them: amounts, attributes, features of their kubelets, and domains that they form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from slacktide.kube.resources.objects import Node, Pod
from slacktide.kube.translate.pod_resources import allocatable
from slacktide.kube.translate.selectors import NODE_NAME, any_of, one_of
from slacktide.model.constraint import FOREIGN, Condition, Constraint, Term, taint_attribute

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PASSING = (
    "node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/",
)  # fmt: skip
"""How keys of taints begin that come and go."""
PREFER_NO_SCHEDULE = "PreferNoSchedule"


@dataclass(frozen=True, slots=True)
class Ownership:
    """Which nodes are ours: with a label (``key=value``, or ``key`` for any value) or a taint of that key, or all.

    An empty label or taint is asked of no node.
    """

    label: str = "node-restriction.kubernetes.io/slacktide=true"
    taint: str = ""
    all_nodes: bool = False

    def covers(self, node: Node) -> bool:
        """Whether the node was given to us."""
        if self.all_nodes or _has(node, self.label):
            return True
        return bool(self.taint) and any(taint.key == self.taint for taint in node.spec.taints)


def _has(node: Node, label: str) -> bool:
    key, equals, value = label.partition("=")
    found = node.metadata.labels.get(key) if key else None
    return found is not None and (not equals or found == value)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node in the core's terms.

    amounts      what pods can take, by resource, in the units of :mod:`slacktide.kube.translate.pod_resources`
    attributes   labels; ``metadata.name``; each taint as ``taint:EFFECT:KEY``; each declared feature;
                 ``metadata.foreign`` where not ours
    soft_taints  (key, value) of taints that only repel (PreferNoSchedule)
    ready        its condition Ready is True
    ready_since  when that condition last changed, seconds since 1970; 0 where it does not say
    problem      why its amounts cannot be read (it then has none); empty where they can
    """

    name: str
    amounts: Mapping[str, int]
    attributes: Mapping[str, str]
    soft_taints: tuple[tuple[str, str], ...]
    ready: bool
    ours: bool
    problem: str = ""
    ready_since: float = 0.0

    @property
    def is_cordoned(self) -> bool:
        """Whether it takes no new pods by its operator's word."""
        return taint_attribute("NoSchedule", UNSCHEDULABLE) in self.attributes


def lasting(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Attributes without the taints that come and go: a node's state, a cordon, an autoscaler's mark."""
    return {key: value for key, value in attributes.items() if not _passes(key)}


def _passes(attribute: str) -> bool:
    prefix, _, rest = attribute.partition(":")
    return prefix == "taint" and rest.partition(":")[2].startswith(PASSING)


def view_of(node: Node, ownership: Ownership) -> NodeView:
    """The node in the core's terms. A cordoned node carries the taint that kube-scheduler takes it to have."""
    attributes = dict(node.metadata.labels)
    attributes[NODE_NAME] = node.metadata.name
    attributes |= declared(node.status.declared_features or ())
    for taint in node.spec.taints:
        attributes[taint_attribute(taint.effect, taint.key)] = taint.value
    if node.spec.unschedulable:
        attributes.setdefault(taint_attribute("NoSchedule", UNSCHEDULABLE), "")
    ours = ownership.covers(node)
    found = next((one for one in node.status.conditions if one.type == "Ready"), None)
    if not ours:
        attributes[FOREIGN] = "true"
    amounts: Mapping[str, int] = {}
    problem = ""
    try:
        amounts = allocatable(node)
    except ValueError as error:
        problem = f"node {node.metadata.name}: {error}"
    return NodeView(
        name=node.metadata.name,
        amounts=amounts,
        attributes=attributes,
        soft_taints=tuple(
            sorted({(one.key, one.value) for one in node.spec.taints if one.effect == PREFER_NO_SCHEDULE})
        ),
        ready=found is not None and found.status == "True",
        ours=ours,
        problem=problem,
        ready_since=0.0 if found is None else found.last_transition_time or 0.0,
    )


RESTARTS_ALL = "RestartAllContainers"
DECLARED = "status.declaredFeatures:"
"""Attributes of hosts that begin so are declared features."""


def declared(features: Iterable[str]) -> dict[str, str]:
    """A node's features as attributes."""
    return {f"{DECLARED}{name}": "true" for name in features}


def needed_features(pod: Pod) -> tuple[str, ...]:
    """The features without which a node cannot run the pod as it is meant."""
    return tuple(_needed(pod))


def feature_conditions(pod: Pod) -> tuple[Condition, ...]:
    """The nodes that declare what the pod needs."""
    return tuple(Constraint(f"{DECLARED}{name}", "exists") for name in needed_features(pod))


def _needed(pod: Pod) -> Iterator[str]:
    spec = pod.spec
    rules = (rule for one in (*spec.containers, *spec.init_containers) for rule in one.restart_policy_rules)
    if any(rule.action == RESTARTS_ALL for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"


OURS = Constraint(FOREIGN, "absent")


class SharedDomains:
    """How many nodes have which label, ours and others, kept by events."""

    def __init__(self) -> None:
        self._ours: Counter[tuple[str, str]] = Counter()
        self._others: Counter[tuple[str, str]] = Counter()
        self._keys: Counter[str] = Counter()
        self._shared: dict[str, set[str]] = {}

    def knows(self, key: str) -> bool:
        """Whether a node of ours has a label with this key."""
        return key in self._keys

    def see(self, before: NodeView | None, now: NodeView | None) -> set[str]:
        """A node is new, another than before, or gone: the keys of labels whose shared domains are others now."""
        if before is not None and now is not None and (before.attributes, before.ours) == (now.attributes, now.ours):
            return set()
        touched: set[tuple[str, str]] = set()
        for view, sign in ((before, -1), (now, 1)):
            if view is not None and view.ours:
                self._keys.update(dict.fromkeys(view.attributes, sign))
        for key in () if before is None else before.attributes:
            if not self._keys[key]:
                del self._keys[key]
        for view, sign in ((before, -1), (now, 1)):
            if view is not None:
                counts = self._ours if view.ours else self._others
                for label in view.attributes.items():
                    counts[label] += sign
                    touched.add(label)
        return {key for key, _ in self._changed(touched)}

    def _changed(self, touched: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
        for label in touched:
            key, value = label
            is_shared = self._ours[label] > 0 and self._others[label] > 0
            for counts in (self._ours, self._others):
                if not counts[label]:
                    del counts[label]
            known = self._shared.get(key, set())
            if is_shared == (value in known):
                continue
            if is_shared:
                self._shared.setdefault(key, set()).add(value)
            else:
                known.discard(value)
                if not known:
                    del self._shared[key]
            yield label

    def condition(self, key: str) -> Condition:
        """The nodes whose pods count for a spread over the values of a label."""
        values = self._shared.get(key)
        return any_of((Term((OURS,)), Term((one_of(key, values),)))) if values else OURS
