"""What a pod takes of a node and what a node has, as kube-scheduler 1.36 computes it; nodes as the core sees them:
amounts, attributes, features of their kubelets, and domains that they form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from slacktide.kube.client.quantities import amount, nanos, quantity
from slacktide.kube.indexes import take_out
from slacktide.kube.resources.objects import Container, ContainerStatus, Node, Pod
from slacktide.kube.translate.selectors import NODE_NAME, any_of, one_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import FOREIGN, Condition, Constraint, Term, taint_attribute

PODS = "pods"
RESIZE_PENDING, INFEASIBLE = "PodResizePending", "Infeasible"
ANY_ADDRESS = "0.0.0.0"  # a host port without an address; no socket of ours

_POD_LEVEL = ("cpu", "memory")
MOST_KNOWN = 10_000
"""So many demands are remembered; before one more, all are forgotten."""
_HUGE_PAGES = "hugepages-"


def requests(pod: Pod) -> dict[str, int]:
    """Effective requests by resource: millicores of ``cpu``, whole units of all others, ``pods`` 1; none is 0.

    The larger of what the containers with all sidecars need and what initialisation needs at its worst (each init
    container beside the sidecars started before it), for each resource; a pod's own ``resources`` take the place of
    that where given; overhead is added. While a container is resized, the largest of asked for, allocated and in
    force counts. Raises :class:`Unschedulable` naming the container, the resource and the value.
    """
    return _effective(pod, pending_resize(pod) == INFEASIBLE)


def wanted(pod: Pod) -> dict[str, int]:
    """As :func:`requests`, as if no resize were infeasible: what the pod would take on a node that can give it."""
    return _effective(pod, infeasible=False)


def pending_resize(pod: Pod) -> str:
    """Why the kubelet does not carry out a pod's resize (Deferred, Infeasible); empty where none waits."""
    return next((one.reason for one in pod.status.conditions if one.type == RESIZE_PENDING), "")


def _effective(pod: Pod, infeasible: bool) -> dict[str, int]:
    spec = pod.spec
    statuses = {one.name: one for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    running: dict[str, int] = {}
    for container in spec.containers:
        _add(running, _container(container, statuses.get(container.name), infeasible))
    starting: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            own = _container(container, statuses.get(container.name), infeasible)
            _add(running, own)
            _add(sidecars, own)
            _raise(starting, sidecars)
        else:
            own = dict(_container(container, None, infeasible))
            _add(own, sidecars)
            _raise(starting, own)
    _raise(running, starting)
    if spec.resources is not None:
        asked = _parsed("spec.resources", spec.resources.requests)
        if pod.status.resources is not None:
            asked = {} if infeasible else asked
            _raise(asked, _parsed("status.resources", pod.status.resources.requests))
            _raise(asked, _parsed("status.allocatedResources", pod.status.allocated_resources))
        running.update({name: nano for name, nano in asked.items() if _pod_level(name)})
    _add(running, _parsed("spec.overhead", spec.overhead))
    found = {name: amount(name, nano) for name, nano in running.items() if nano}
    found[PODS] = 1
    return found


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """The node's ports a pod takes, as (protocol, address, port), sorted; no address is 0.0.0.0, which is all.

    Of init containers only sidecars count: the others' ports are free again before the pod runs.
    """
    spec = pod.spec
    found: set[tuple[str, str, int]] = set()
    for container in (*spec.containers, *(one for one in spec.init_containers if one.restart_policy == "Always")):
        for port in container.ports:
            if port.host_port > 0:
                found.add((port.protocol or "TCP", port.host_ip or ANY_ADDRESS, port.host_port))
    return tuple(sorted(found)) if found else ()


def allocatable(node: Node) -> dict[str, int]:
    """What pods can take of a node, by resource, in the units of :func:`requests`; ``pods`` is 0 where not given.

    Raises :class:`ValueError` naming the resource and the value.
    """
    found = {PODS: 0}
    for name, text in node.status.allocatable.items():
        try:
            found[name] = quantity(name, text)
        except ValueError as error:
            raise ValueError(f"status.allocatable[{name}]: {error}") from None
    return found


def _pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _container(container: Container, status: ContainerStatus | None, infeasible: bool) -> Mapping[str, int]:
    where = f"container {container.name}"
    asked = _parsed(where, container.resources.requests) if container.resources is not None else {}
    if status is None or status.resources is None:
        return asked
    found = {} if infeasible else dict(asked)
    _raise(found, _parsed(where, status.resources.requests))
    _raise(found, _parsed(where, status.allocated_resources))
    return found


def _parsed(where: str, quantities: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for name, text in quantities.items():
        try:
            found[name] = nanos(text)
        except ValueError as error:
            raise Unschedulable(f"{where}: request for {name}: {error}") from None
    return found


def _add(total: dict[str, int], further: Mapping[str, int]) -> None:
    for name, nano in further.items():
        total[name] = total.get(name, 0) + nano


def _raise(least: dict[str, int], further: Mapping[str, int]) -> None:
    for name, nano in further.items():
        if nano > least.get(name, -1):
            least[name] = nano


class Demands:
    """Effective requests of pods, worked out once for all pods alike."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[tuple[str, int], ...] | str] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, pod: Pod) -> tuple[tuple[str, int], ...] | str:
        """What a pod takes, sorted by resource, or why that cannot be read."""
        status = pod.status
        if status.container_statuses or status.init_container_statuses or status.resources is not None:
            # These may say more.
            return self._count(pod)
        spec = pod.spec
        key = self._encode((spec.containers, spec.init_containers, spec.overhead, spec.resources))
        found = self._known.get(key)
        if found is None:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._count(pod)
        return found

    @staticmethod
    def _count(pod: Pod) -> tuple[tuple[str, int], ...] | str:
        try:
            return tuple(sorted(requests(pod).items()))
        except Unschedulable as problem:
            return problem.reason


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

    amounts      what pods can take, by resource, in the units of :mod:`slacktide.kube.translate.nodes`
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
                take_out(self._shared, key, value)
            yield label

    def condition(self, key: str) -> Condition:
        """The nodes whose pods count for a spread over the values of a label."""
        values = self._shared.get(key)
        return any_of((Term((OURS,)), Term((one_of(key, values),)))) if values else OURS
