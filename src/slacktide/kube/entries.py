"""What the scheduler remembers of a pod."""

from __future__ import annotations

from dataclasses import dataclass

from slacktide.kube.classes import Promised
from slacktide.kube.demand import INFEASIBLE, pending_resize
from slacktide.kube.kinds import Malformed
from slacktide.kube.metadata import Metadata
from slacktide.kube.objects import Pod, PodSpec
from slacktide.kube.owners import Target
from slacktide.kube.storage import NO_NEEDS, Needs
from slacktide.kube.times import happened

NOWHERE, GATED, ACTIVE, BACKOFF, UNSCHEDULABLE = "", "gated", "active", "backoff", "unschedulable"
"""Where a pod waits: by these names users of kube-scheduler know its queues."""
FINAL = ("Succeeded", "Failed")
"""Phases in which a pod takes no room any more, however long it stays listed."""
DEFAULT_GRACE_SECONDS = 30.0
LATE_SECONDS = 1.5
"""A pod that waits for so long after it was seen was held up by something else than our watch."""
HELD = "it takes the place of a pod that was told to go and is not gone yet"


@dataclass(slots=True, eq=False)
class Entry:
    """One pod. ``key`` is its controller's in the engine, empty while the engine does not know the pod."""

    pod: Pod
    ours: bool
    key: str = ""
    spec: int = -1
    other: str = ""
    """Node on which the engine counts it as somebody else's."""
    target: Target | None = None
    promised: Promised | None = None
    needs: Needs = NO_NEEDS
    budget: str = ""
    queue: str = NOWHERE
    problem: str = ""
    """Why it cannot be scheduled whatever the hosts look like."""
    seen: float = 0.0
    """When we first saw it."""
    failures: int = 0
    doomed: bool = False
    altered: bool = False
    """Whether its spec has to be worked out again, though it runs."""
    malformed: str = ""
    """What is wrong with its latest version; ``pod`` is then an earlier one, or says who it is and nothing else."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def place(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.pod.metadata.namespace, self.pod.metadata.name

    def takes(self, pod: Pod) -> None:
        """Its latest version; whether what a running pod's spec follows from is another than before."""
        before, self.pod, self.malformed = self.pod, pod, ""
        if self.ours:  # others' are told anew with every version
            self.altered |= _shape(before) != _shape(pod)

    def came(self, now: float, away: float) -> float:
        """When it began to wait, where it enters the queue now: around its creation if only our watch came late."""
        late_by_others = now - self.seen >= LATE_SECONDS
        return now if late_by_others else happened(self.pod.metadata.creation_timestamp, now, away)


def grace(entry: Entry | None) -> float:
    """Seconds that a pod may take to end, as far as it is known and says so."""
    seconds = None if entry is None else entry.pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE_SECONDS if seconds is None else float(seconds)


def unread(problem: Malformed, now: float) -> Entry:
    """A pod of ours that cannot be read: who it is, and nothing else."""
    metadata = Metadata(problem.name, problem.namespace, problem.uid, problem.resource_version)
    return Entry(Pod(metadata, PodSpec(scheduler_name=problem.scheduler)), True, seen=now)


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
