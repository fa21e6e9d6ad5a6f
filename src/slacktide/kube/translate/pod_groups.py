"""Which pods start together, and how many of them: by four ways of saying it, one rule.

A pod is of one group at most: ``spec.schedulingGroup`` (Kubernetes 1.36), else ``spec.workloadRef`` (1.35), else the
label of scheduler-plugins' coscheduling, else that of Kueue. None of a group's pods starts before so many of them can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from slacktide.kube.resources import workloads
from slacktide.kube.resources.objects import CoschedulingGroup, Kind, Pod, PodGroup, Workload
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.written_numbers import whole_number

KUBERNETES = "podgroups.scheduling.k8s.io"
WORKLOADS = "workloads.scheduling.k8s.io"
COSCHEDULING = "podgroups.scheduling.x-k8s.io"
KUEUE = "kueue.x-k8s.io"
SOURCES: dict[str, Kind[Any]] = {
    KUBERNETES: workloads.POD_GROUP,
    WORKLOADS: workloads.WORKLOAD,
    COSCHEDULING: workloads.COSCHEDULING,
}
"""What is watched where the API server serves it."""
WHOLE = "PodGroup"
"""The disruptionMode by which a group's pods are disrupted together only."""
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
KUEUE_LABEL = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
MOST_PODS = 1_000_000
"""Of a group."""


class Membership(NamedTuple):
    """Of which group a pod is, and by which way of saying it.

    part    of a workload of Kubernetes 1.35: its group, and which replica of that
    total   of Kueue's groups: how many pods it has by this pod; -1: it does not say, or not so that it can be read
    """

    source: str
    namespace: str
    name: str
    part: tuple[str, str] = ("", "")
    total: int = 0

    @property
    def object(self) -> tuple[str, str, str]:
        """What says how many start together: source, namespace and name."""
        return self.source, self.namespace, self.name

    @property
    def key(self) -> str:
        """The group, for the engine and for people."""
        part = "".join(f"/{one}" for one in self.part if one)
        return f"{self.namespace}/{self.name}{part} ({self.source})"


def membership(pod: Pod) -> Membership | None:
    """The group of a pod; None: it is of none."""
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    group, workload = pod.spec.scheduling_group, pod.spec.workload_ref
    if group is not None:
        return Membership(KUBERNETES, namespace, group.pod_group_name or "")
    if workload is not None:
        return Membership(WORKLOADS, namespace, workload.name, (workload.pod_group, workload.pod_group_replica_key))
    if name := labels.get(COSCHEDULING_LABEL):
        return Membership(COSCHEDULING, namespace, name)
    if name := labels.get(KUEUE_LABEL):
        return Membership(KUEUE, namespace, name, total=_total(pod.metadata.annotations.get(KUEUE_TOTAL, "")))
    return None


def _total(text: str) -> int:
    try:
        return whole_number(text, 1, MOST_PODS)
    except ValueError:
        return -1


class KnownGroup(NamedTuple):
    """What the object of a group says: ``least`` of its pods start together. ``problem``: it asks for what we do not
    do."""

    least: int
    problem: str = ""


class Groups:
    """What the API server says of groups; ``tell`` hears what changed: the source, and of one group its namespace and
    name."""

    def __init__(self, tell: Callable[[str, str, str], None] = lambda _source, _namespace, _name: None) -> None:
        self._tell = tell
        self._found: dict[tuple[str, str, str], dict[str, KnownGroup]] = {}
        """By source, namespace and name, and of a workload by its groups."""
        self.objects: dict[tuple[str, str], PodGroup] = {}
        """Kubernetes' own groups, by namespace and name."""
        self._listed: set[str] = set()
        """Sources whose objects are known."""
        self._absent: set[str] = set()
        """Sources that the API server does not serve."""

    def see(self, source: str, found: PodGroup | Workload | CoschedulingGroup) -> None:
        """An object, new or changed."""
        namespace, name = found.metadata.namespace, found.metadata.name
        if isinstance(found, PodGroup):
            self._found[KUBERNETES, namespace, name] = {"": _read(found)}
            self.objects[namespace, name] = found
        elif isinstance(found, CoschedulingGroup):
            self._found[COSCHEDULING, namespace, name] = {"": KnownGroup(found.spec.min_member)}
        else:
            gangs = {one.name: one.policy.gang for one in found.spec.pod_groups}
            self._found[WORKLOADS, namespace, name] = {
                group: KnownGroup(0 if gang is None else gang.min_count) for group, gang in gangs.items()
            }
        self._tell(source, namespace, name)

    def drop(self, source: str, namespace: str, name: str) -> None:
        """An object is gone."""
        self._found.pop((source, namespace, name), None)
        if source == KUBERNETES:
            self.objects.pop((namespace, name), None)
        self._tell(source, namespace, name)

    def listed(self, source: str) -> None:
        """All objects of a source are known."""
        self._listed.add(source)
        self._absent.discard(source)
        self._tell(source, "", "")

    def absent(self, source: str) -> None:
        """The API server does not serve a source."""
        if source not in self._absent:
            self._absent.add(source)
            self._listed.discard(source)
            self._tell(source, "", "")

    def problem(self, namespace: str, name: str) -> str:
        """What one of Kubernetes' own groups asks for that we do not do, or nothing."""
        found = self._found.get((KUBERNETES, namespace, name), {}).get("")
        return "" if found is None else found.problem

    def is_whole(self, one: Membership) -> bool:
        """Whether a group's pods are to be disrupted together or not at all."""
        found = self.objects.get((one.namespace, one.name)) if one.source == KUBERNETES else None
        return found is not None and found.spec.disruption_mode == WHOLE

    def priority_of(self, pod: Pod) -> int | None:
        """The priority of a pod's group, which counts in place of its own; None where that says none."""
        group = pod.spec.scheduling_group
        found = None if group is None else self.objects.get((pod.metadata.namespace, group.pod_group_name or ""))
        return None if found is None else found.spec.priority

    def least(self, one: Membership) -> int:
        """How many pods of a group start together at the least; 0: each by itself.

        Raises :class:`Unschedulable` where that is not known, or the group asks for what we do not do.
        """
        if one.source == KUEUE:
            if one.total < 1:
                right = f"how many pods the group has, from 1 to {MOST_PODS}, as in '3'"
                raise Unschedulable(f"annotation {KUEUE_TOTAL}: expected {right}")
            return one.total
        if one.source in self._absent and one.source == COSCHEDULING:
            return 0  # in a cluster without coscheduling its label says nothing
        if one.source in self._absent:
            raise Unschedulable(f"pod group {one.key}: the API server does not serve such groups")
        if one.source not in self._listed:
            unlisted = "such groups cannot be listed: apply the manifests of this version"
            raise Unschedulable(f"pod group {one.key}: {unlisted}")
        found = self._found.get(one.object, {}).get(one.part[0])
        if found is None:
            raise Unschedulable(f"pod group {one.key} does not exist")
        if found.problem:
            raise Unschedulable(f"pod group {one.key}: {found.problem}")
        if found.least > MOST_PODS:
            raise Unschedulable(f"pod group {one.key}: found {found.least} pods, expected {MOST_PODS} at most")
        return found.least


def _read(found: PodGroup) -> KnownGroup:
    spec, gang = found.spec, found.spec.scheduling_policy.gang
    problem = ""
    if spec.scheduling_constraints is not None and spec.scheduling_constraints.topology:
        keys = ", ".join(one.key for one in spec.scheduling_constraints.topology)
        problem = f"spec.schedulingConstraints: found topology {keys}, but slacktide does not keep groups in a domain"
    if spec.resource_claims:
        names = ", ".join(one.name for one in spec.resource_claims)
        problem = f"spec.resourceClaims: found {names}, but slacktide does not allocate resources to groups"
    return KnownGroup(0 if gang is None else gang.min_count, problem)
