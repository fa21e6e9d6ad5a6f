"""Which pods start together, and how many of them: by four ways of saying it, one rule.

A pod is of one group at most: ``spec.schedulingGroup`` (Kubernetes 1.36), else ``spec.workloadRef`` (1.35), else the
label of scheduler-plugins' coscheduling, else that of Kueue. None of a group's pods starts before so many of them can.
"""

from __future__ import annotations

from typing import NamedTuple

from slacktide.kube.resources.objects import Pod
from slacktide.kube.resources.pod_groups import CoschedulingGroup, PodGroup, Workload
from slacktide.kube.translate.unschedulable import Unschedulable

KUBERNETES = "podgroups.scheduling.k8s.io"
WORKLOADS = "workloads.scheduling.k8s.io"
COSCHEDULING = "podgroups.scheduling.x-k8s.io"
KUEUE = "kueue.x-k8s.io"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
KUEUE_LABEL = "kueue.x-k8s.io/pod-group-name"
KUEUE_TOTAL = "kueue.x-k8s.io/pod-group-total-count"
WHOLE = "PodGroup"
"""A disruption mode: a group is disrupted as a whole, or not at all."""


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
        total = pod.metadata.annotations.get(KUEUE_TOTAL, "")
        return Membership(KUEUE, namespace, name, total=int(total) if total.isdecimal() else -1)
    return None


class KnownGroup(NamedTuple):
    """What the object of a group says. ``least`` of its pods start together; ``problem``: it asks for what we do not
    do; ``whole``: it is to be disrupted as a whole."""

    least: int
    problem: str = ""
    whole: bool = False


class Groups:
    """What the API server says of groups."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str, str], KnownGroup] = {}
        """By source, namespace, name and the group of a workload."""
        self.listed: set[str] = set()
        """Sources whose objects are known."""
        self.absent: set[str] = set()
        """Sources that the API server does not serve."""

    def see(self, found: PodGroup | Workload | CoschedulingGroup) -> None:
        """An object, new or changed."""
        namespace, name = found.metadata.namespace, found.metadata.name
        if isinstance(found, PodGroup):
            self._found[KUBERNETES, namespace, name, ""] = _read(found)
        elif isinstance(found, CoschedulingGroup):
            self._found[COSCHEDULING, namespace, name, ""] = KnownGroup(found.spec.min_member)
        else:
            self.drop(WORKLOADS, namespace, name)
            for one in found.spec.pod_groups:
                gang = one.policy.gang
                self._found[WORKLOADS, namespace, name, one.name] = KnownGroup(0 if gang is None else gang.min_count)

    def drop(self, source: str, namespace: str, name: str) -> None:
        """An object is gone."""
        for key in [key for key in self._found if key[:3] == (source, namespace, name)]:
            del self._found[key]

    def least(self, one: Membership) -> int:
        """How many pods of a group start together at the least; 0: each by itself.

        Raises :class:`Unschedulable` where that is not known, or the group asks for what we do not do.
        """
        if one.source == KUEUE:
            if one.total < 1:
                raise Unschedulable(f"annotation {KUEUE_TOTAL}: expected how many pods the group has, as in '3'")
            return one.total
        if one.source in self.absent and one.source == COSCHEDULING:
            return 0  # in a cluster without coscheduling its label says nothing
        if one.source in self.absent:
            raise Unschedulable(f"pod group {one.key}: the API server does not serve such groups")
        if one.source not in self.listed:
            unlisted = "such groups cannot be listed: apply the manifests of this version"
            raise Unschedulable(f"pod group {one.key}: {unlisted}")
        found = self._of(one)
        if found is None:
            raise Unschedulable(f"pod group {one.key} does not exist")
        if found.problem:
            raise Unschedulable(f"pod group {one.key}: {found.problem}")
        return found.least

    def is_whole(self, pod: Pod) -> bool:
        """Whether a pod is of a group that is disrupted as a whole or not at all."""
        one = membership(pod)
        found = None if one is None else self._of(one)
        return found is not None and found.whole

    def _of(self, one: Membership) -> KnownGroup | None:
        return self._found.get((one.source, one.namespace, one.name, one.part[0]))


def _read(found: PodGroup) -> KnownGroup:
    spec, gang = found.spec, found.spec.scheduling_policy.gang
    problem = ""
    if spec.scheduling_constraints is not None and spec.scheduling_constraints.topology:
        keys = ", ".join(one.key for one in spec.scheduling_constraints.topology)
        problem = f"spec.schedulingConstraints: found topology {keys}, but slacktide does not keep groups in a domain"
    if spec.resource_claims:
        names = ", ".join(one.name for one in spec.resource_claims)
        problem = f"spec.resourceClaims: found {names}, but slacktide does not allocate resources to groups"
    return KnownGroup(0 if gang is None else gang.min_count, problem, spec.disruption_mode == WHOLE)
