"""Whose doing it is that a pod delivers nothing, read off the pod and its node: the rules of docs/causes.md.

Nothing here has a memory or a clock. A pod can say little that helps itself: what its kubelet and the control plane
write counts, and where that leaves it open, time that has no bound is not the cluster's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slacktide.kube.resources.objects import TIMESTAMP_SECONDS, Condition, ContainerStatus, Pod
from slacktide.kube.translate.nodes import NodeView
from slacktide.model.causes import CLUSTER, OPERATOR, WORKLOAD

ALWAYS = "Always"
DISRUPTED = "DisruptionTarget"
"""The condition that the control plane sets before it removes a pod for a reason which is not the pod's."""
BY_SCHEDULER = "PreemptionByScheduler"
BY_CONTROL_PLANE = (BY_SCHEDULER, "DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet")
"""Reasons of that condition that nobody but the control plane and kubelets give. EvictionByEvictionAPI is another: a
workload may evict its own pods."""
EVICTED, NODE_PRESSURE = "Evicted", ("The node was low on resource", "The node had condition", "The node was low on")
REFUSED = ("OutOf", "NodeAffinity", "UnexpectedAdmissionError", "NodeShutdown", "Shutdown", "NodeLost", "Terminated")
"""How reasons of failed pods begin that say: not the pod's fault."""
CANNOT_START = frozenset(
    (
        "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
        "RegistryUnavailable", "SignatureValidationFailed", "CreateContainerConfigError", "CreateContainerError",
        "RunContainerError", "PostStartHookError", "CrashLoopBackOff",
    )
)  # fmt: skip
"""Reasons for which a kubelet does not start a container that the container's own spec, image or command gives."""


@dataclass(frozen=True, slots=True)
class Allowances:
    """Seconds: from the start of containers until a pod is ready, and from its binding until they have started."""

    startup: float
    creation: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cause (a number of :data:`slacktide.model.causes.CAUSES`), since when it is that one (0: since something was
    seen), and until when at most, seconds since 1970."""

    cause: int
    since: float = 0.0
    until: float = float("inf")


@dataclass(frozen=True, slots=True)
class Setting:
    """What a pod does not say of itself.

    node       its node, None where that is gone
    covered    a maintenance window is about its node now
    origin     whose doing it was that its predecessor ended
    until      an operator's holds until then, the end of a maintenance window
    ended_by   once it was told to go: whose doing that was
    bound      when we saw it bound, where it does not say itself
    ready      when we saw it become ready last; 0: never
    """

    node: NodeView | None
    covered: bool
    bound: float
    origin: int = CLUSTER
    until: float = 0.0
    ended_by: int | None = None
    ready: float = 0.0

    @property
    def healthy(self) -> bool:
        """Whether its node is there and ready."""
        return self.node is not None and self.node.ready

    @property
    def was_away(self) -> bool:
        """Whether its node has come back since the pod was ready."""
        return self.node is not None and self.node.ready_since + TIMESTAMP_SECONDS > self.ready


def cause_of(pod: Pod, setting: Setting, allowed: Allowances, now: float) -> Verdict:
    """Whose doing it is that a pod on a node is not ready."""
    if not setting.healthy:
        return Verdict(OPERATOR if setting.covered else CLUSTER)
    if setting.ended_by is not None:
        return Verdict(setting.ended_by)
    assert setting.node is not None  # noqa: S101  # for the type checker: it is healthy
    begin = max(_transition(pod, "PodScheduled") or setting.bound, setting.node.ready_since)
    if (failed := _failed_since(pod, begin)) is not None:
        return Verdict(WORKLOAD, failed)
    if setting.origin == WORKLOAD:
        return Verdict(WORKLOAD, begin)
    verdict = _startup(pod, begin, setting, allowed, now)
    if setting.origin == OPERATOR and verdict.cause == CLUSTER:
        if now < setting.until:
            return Verdict(OPERATOR, verdict.since, min(verdict.until, setting.until))
        return Verdict(CLUSTER, max(verdict.since, setting.until), verdict.until)
    return verdict


def is_taken_for_lost(pod: Pod) -> bool:
    """Whether a pod is not ready because the controller manager takes its node for lost, or did a moment ago.

    It says so after the node, which may be back by then, and the kubelet corrects it. It gives no reason and leaves
    ContainersReady as it is; a kubelet always gives one (kubernetes/pkg/controller/util/node, ``MarkPodsNotReady``;
    kubernetes/pkg/kubelet/status, ``GeneratePodReadyCondition``).
    """
    ready, containers = _condition(pod, "Ready"), _condition(pod, "ContainersReady")
    if ready is None or containers is None:
        return False
    return ready.status == "False" and not ready.reason and containers.status == "True"


def _startup(pod: Pod, begin: float, setting: Setting, allowed: Allowances, now: float) -> Verdict:
    """A pod that has not failed: in its start-up for as long as is allowed, else unready by its own doing."""
    status, sidecars = pod.status, {one.name for one in pod.spec.init_containers if one.restart_policy == ALWAYS}
    mains = [one.state.running.started_at if one.state.running else None for one in status.container_statuses]
    started = [at for at in mains if at is not None]
    if mains and len(started) == len(mains) >= len(pod.spec.containers):
        begin = max(begin, *started)
        unready = _transition(pod, "Ready")
        if max(unready, setting.ready) > begin and not (setting.was_away and is_taken_for_lost(pod)):
            return Verdict(WORKLOAD, max(begin, unready))  # it was ready meanwhile
        return _within(begin, allowed.startup, now)
    inits = status.init_container_statuses
    running = [one.state.running.started_at for one in inits if one.state.running]
    over = [one.state.terminated for one in inits if one.state.terminated]
    own = any(one.state.running and (one.name not in sidecars or not one.ready) for one in inits)
    times = [at for at in (*running, *(one.started_at for one in over)) if at is not None]
    if own and times:
        return _within(max(begin, min(times)), allowed.startup, now)
    finished = [one.finished_at for one in over if one.finished_at is not None]
    return _within(max([begin, *finished]), allowed.creation, now)


def _within(begin: float, allowance: float, now: float) -> Verdict:
    end = begin + allowance
    return Verdict(CLUSTER, begin, end) if now < end else Verdict(WORKLOAD, end)


def _failed_since(pod: Pod, begin: float) -> float | None:
    """Since when a pod fails by itself on a node that has been healthy since ``begin``; None where it does not."""
    inits = {one.name for one in pod.spec.init_containers if one.restart_policy != ALWAYS}
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ends = [at for one in statuses for at in _ends(one, one.name in inits) if at >= begin]
    if ends:
        return min(ends)
    if any(one.state.waiting is not None and one.state.waiting.reason in CANNOT_START for one in statuses):
        return 0.0
    return None


def _ends(one: ContainerStatus, is_init: bool) -> Iterable[float]:
    """When a container ended that should have run on; an init container may end well."""
    for ended in (one.state.terminated, one.last_state.terminated):
        if ended is not None and not (is_init and ended.exit_code == 0):
            yield ended.finished_at or 0.0


def _transition(pod: Pod, name: str) -> float:
    found = _condition(pod, name)
    return (found.last_transition_time if found else None) or 0.0


def _condition(pod: Pod, name: str) -> Condition | None:
    return next((one for one in pod.status.conditions if one.type == name), None)


def end_of(pod: Pod, *, is_open: bool, ours: bool, setting: Setting) -> int:
    """Whose doing it is that a pod ends, or is told to go.

    ``is_open``: its node would take it now, so that nobody keeps pods away from there; ``ours``: we told it to go.
    """
    away = OPERATOR if setting.covered else CLUSTER
    if ours:
        return CLUSTER
    if pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None:
        return away if _was_failed(pod) or not setting.healthy else WORKLOAD
    if not pod.spec.node_name:
        return WORKLOAD
    if not setting.healthy:
        return away
    marked = next((one for one in pod.status.conditions if one.type == DISRUPTED and one.status == "True"), None)
    if marked is None:
        return WORKLOAD
    return away if marked.reason in BY_CONTROL_PLANE or not is_open else WORKLOAD


def _was_failed(pod: Pod) -> bool:
    """Whether a pod failed for a reason that is its node's."""
    status = pod.status
    if status.reason == EVICTED:
        return status.message.startswith(NODE_PRESSURE) and "exceeds" not in status.message
    return status.reason.startswith(REFUSED) or any(
        one.type == DISRUPTED and one.status == "True" and one.reason in BY_CONTROL_PLANE
        for one in pod.status.conditions
    )
