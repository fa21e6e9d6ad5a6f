"""A pod as the API server last described it."""

from __future__ import annotations

from dataclasses import dataclass

from slacktide.kube.client.kinds import Malformed
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.client.timestamps import happened, seen_at
from slacktide.kube.resources.objects import Pod, PodSpec
from slacktide.kube.resources.pods import condition_of
from slacktide.kube.translate.causes import is_taken_for_lost
from slacktide.kube.translate.pod_resources import INFEASIBLE, pending_resize

FINAL = ("Succeeded", "Failed")
"""Phases in which a pod takes no room any more, however long it stays listed."""
DEFAULT_GRACE_SECONDS = 30.0
LATE_SECONDS = 1.5
"""A pod that waits for so long after it was seen was held up by something else than our watch."""


@dataclass(frozen=True, slots=True)
class End:
    """Whose doing it is that a pod ends (a number of :data:`slacktide.model.causes.CAUSES`), and, where that is an
    operator's, the end of the maintenance window, seconds since 1970."""

    cause: int
    until: float = 0.0


@dataclass(slots=True, eq=False)
class PodRecord:
    """One pod. ``ours``: its ``schedulerName`` is ours. ``seen``: when we first saw it, seconds since 1970."""

    pod: Pod
    ours: bool
    seen: float = 0.0
    alterations: int = 0
    """How often a version differed from the one before in what a running pod's spec follows from."""
    malformed: str = ""
    """What is wrong with its latest version; ``pod`` is then an earlier one, or says who it is and nothing else."""
    bound_at: float = 0.0
    """When we saw it bound, seconds since 1970; 0: we did not."""
    ready_at: float = 0.0
    """When we saw it become ready, last."""
    unready_at: float = 0.0
    """When we saw that it was ready no more, last."""
    stopped_at: float = 0.0
    """The same of the time before it became ready last: from then until ``ready_at`` it was not."""
    lost_at: float = 0.0
    """When we saw that it was ready no more because its node was taken for lost, last."""
    ended_at: float = 0.0
    """When we saw that it had ended; its containers say that by the second."""
    end: End | None = None
    """Whose doing it is that it ends, as it looked when a replica that stood by saw it told to go."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def namespaced_name(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.pod.metadata.namespace, self.pod.metadata.name

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.pod.status.phase in FINAL

    @property
    def created_at(self) -> float:
        """When it was created, seconds since 1970."""
        return seen_at(self.pod.metadata.creation_timestamp, self.seen)

    def update(self, pod: Pod, now: float) -> None:
        """Takes the pod's latest version, seen ``now``."""
        before, self.pod, self.malformed = self.pod, pod, ""
        if self.ours:  # others' are told anew with every version
            self.alterations += _shape(before) != _shape(pod)
            self._follow(before, now)

    def _follow(self, before: Pod, now: float) -> None:
        """Notes when what changed since ``before`` did: a new leader knows then of what came and went meanwhile."""
        if self.is_final and before.status.phase not in FINAL:
            self.ended_at = seen_at(finished_at(self.pod), now)
        if self.pod.spec.node_name and not before.spec.node_name:
            self.bound_at = seen_at(condition_of(self.pod, "PodScheduled")[1], now)
        was_ready, (is_ready, since) = condition_of(before, "Ready")[0], condition_of(self.pod, "Ready")
        if is_ready and not was_ready:
            self.ready_at, self.stopped_at = seen_at(since, now), self.unready_at
        elif was_ready and not is_ready:
            self.unready_at = seen_at(since, now)
            if is_taken_for_lost(self.pod):
                self.lost_at = self.unready_at

    def waits_since(self, now: float, away: float) -> float:
        """When it began to wait, where it enters the queue now: around its creation if only our watch came late.

        ``away``: seconds that the watch of pods was away, while it catches up.
        """
        late_by_others = now - self.seen >= LATE_SECONDS
        return now if late_by_others else happened(self.pod.metadata.creation_timestamp, now, away)


def finished_at(pod: Pod) -> float | None:
    """When the last of a pod's containers finished, seconds since 1970; None where none says so."""
    runs = [one.state.terminated for one in pod.status.container_statuses if one.state.terminated]
    return max((one.finished_at for one in runs if one.finished_at is not None), default=None)


def grace(pod: Pod | None) -> float:
    """Seconds that a pod may take to end, as far as it is known and says so."""
    seconds = None if pod is None else pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if seconds is None else float(seconds)


def unread(problem: Malformed, now: float) -> PodRecord:
    """A pod of ours that cannot be read: who it is, and nothing else."""
    metadata = Metadata(problem.name, problem.namespace, problem.uid, problem.resource_version)
    return PodRecord(Pod(metadata, PodSpec(scheduler_name=problem.scheduler)), True, seen=now)


def _shape(pod: Pod) -> tuple[object, ...]:
    """What of a running pod can change and matters to others: labels, leaving, what it takes."""
    spec, status = pod.spec, pod.status
    resized: list[object] = [
        (one.name, one.resources, one.allocated_resources)
        for one in (*status.container_statuses, *status.init_container_statuses)
        if one.resources is not None
    ]
    resized += [status.resources, status.allocated_resources, pending_resize(pod) == INFEASIBLE]
    leaving = pod.metadata.deletion_timestamp is not None
    return pod.metadata.labels, leaving, spec.containers, spec.init_containers, spec.resources, resized
