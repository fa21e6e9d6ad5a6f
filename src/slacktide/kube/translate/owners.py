"""The topmost owner of a pod, which has the ledger; what pods' priorities say, and which pods belong to the system."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from slacktide.kube.resources.objects import Deployment, Job, Metadata, OwnerReference, Pod, ReplicaSet, Template

KNOWN = {"ReplicaSet": "apps", "Deployment": "apps", "StatefulSet": "apps", "Job": "batch", "CronJob": "batch"}
"""Kinds of controllers that are watched, by the API group they must be of."""
PLAIN = {**KNOWN, "DaemonSet": "apps", "Pod": "", "ReplicationController": "", "Node": ""}
"""Kubernetes' own kinds that have pods: their ledgers are called after the kind alone."""
LONGEST_NAME = 253
"""Characters of an object's name."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HASHED = re.compile("-[0-9a-f]{16}$")
"""So end names with a hash: who is called so is hashed as well, and has no other one's ledger."""
FINISHED = ("Complete", "Failed", "SuccessCriteriaMet")


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a ledger belongs to."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """Names it for the engine; another object of the same name is another request."""
        return f"{self.kind}/{self.namespace}/{self.name}/{self.uid}"

    @property
    def group(self) -> str:
        """Its API group; empty of the core's."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod without an owner."""
        return (self.api_version, self.kind) == ("v1", "Pod")

    @property
    def full_kind(self) -> str:
        """Its kind as no other object's: with the group where that is not Kubernetes' own, and so has a dot."""
        return f"{self.kind}.{self.group}" if "." in self.group else self.kind

    @property
    def ledger(self) -> str:
        """Name of its Availability, which no other object of the namespace has. Whatever a pod says of its owner, it is
        a name that the API server takes."""
        return _ledger_name(self.group, self.kind, self.full_kind, self.name)


@lru_cache(maxsize=4096)
def _ledger_name(group: str, kind: str, full_kind: str, name: str) -> str:
    plain = f"{full_kind.lower()}-{name}"
    ours = "." in group or PLAIN.get(kind) == group  # of others there may be one of the same kind in each group
    if ours and len(plain) > LONGEST_NAME and _NAME.fullmatch(plain):
        return _shortened(plain)
    if ours and _NAME.fullmatch(plain) and not _HASHED.search(plain):
        return plain
    digest = blake2b("\0".join((group, kind, name)).encode(), digest_size=8).hexdigest()
    shown = re.sub("[^a-z0-9]+", "-", plain[:LONGEST_NAME].lower())[: LONGEST_NAME - 1 - len(digest)].strip("-")
    return f"{shown}-{digest}" if shown else f"x-{digest}"


def _shortened(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    digest = blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{name[: LONGEST_NAME - 1 - len(digest)].rstrip('-.')}-{digest}"


@dataclass(slots=True)
class Watched:
    """A controller as far as its pods' ledgers need it: its owner, and how many instances it wants (-1: not known)."""

    target: Target
    owner: OwnerReference | None
    desired: int = -1
    finished: bool = False
    suspended: int = 0
    """How many instances an operator keeps from being made (Jobs)."""
    fails: bool = False
    """It is not allowed to make its pods."""
    template: Template | None = None
    """What its pods are made from."""
    created: float | None = None


def controlling(metadata: Metadata) -> OwnerReference | None:
    """The owner that manages an object, as it is called here."""
    found = next((one for one in metadata.owner_references if one.controller), None)
    return None if found is None else bounded(found)


def bounded(owner: OwnerReference) -> OwnerReference:
    """A reference whose parts are as long as those of objects can be. The API server takes names of a MiB there, which
    would be in each key, ledger and metric; no two of them become one."""
    parts = owner.api_version, owner.kind, owner.name, owner.uid
    if max(map(len, parts)) <= LONGEST_NAME:
        return owner
    api_version, kind, name, uid = map(_shortened, parts)
    return OwnerReference(api_version, kind, name, uid, owner.controller)


def is_known(owner: OwnerReference) -> bool:
    """Whether an owner is of a kind that is watched."""
    return KNOWN.get(owner.kind) == owner.api_version.partition("/")[0]


def is_finished(job: Job) -> bool:
    """Whether a Job makes no more pods."""
    return any(one.type in FINISHED and one.status == "True" for one in job.status.conditions)


def is_followed(target: Target) -> bool:
    """Whether we hear when an object is deleted: it is of a kind that is watched."""
    return target.is_pod or KNOWN.get(target.kind) == target.group


def suspended(job: Job) -> int:
    """How many instances of a Job are suspended."""
    wanted = 1 if job.spec.parallelism is None else job.spec.parallelism
    completions = job.spec.completions
    return (wanted if completions is None else min(wanted, completions)) if job.spec.suspend else 0


def cannot_make(found: Deployment | ReplicaSet) -> bool:
    """Whether a controller says that it was not allowed to make its pods."""
    return any(one.type == "ReplicaFailure" and one.status == "True" for one in found.status.conditions)


class Owners:
    """Controllers by UID, kept by events."""

    def __init__(self) -> None:
        self.watched: dict[str, Watched] = {}

    def _known(self, owner: OwnerReference | None, namespace: str) -> Watched | None:
        """An owner, as far as it is known, of an object in a namespace. References name no namespace, and one to an
        object elsewhere is none: else whoever knows a UID would have the promise of that workload."""
        found = None if owner is None else self.watched.get(owner.uid)
        return found if found is not None and found.target.namespace == namespace else None

    def target_of(self, pod: Metadata) -> Target | None:
        """The topmost owner of a pod, itself where it has none; None while an owner on the way is not known yet."""
        target = Target("v1", "Pod", pod.namespace, pod.name, pod.uid)
        owner = controlling(pod)
        for _ in range(8):  # owners form no ring, but malformed objects may say so
            if owner is None:
                return target
            found = self._known(owner, pod.namespace)
            if found is None:
                if is_known(owner):
                    return None
                return Target(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)
            target, owner = found.target, found.owner
        return target

    def unknown_owner(self, pod: Metadata) -> str:
        """UID of the owner on the way to a pod's topmost one that is not known yet; empty where all are."""
        owner = controlling(pod)
        for _ in range(8):
            found = self._known(owner, pod.namespace)
            if owner is None or found is None:
                return "" if owner is None else owner.uid
            owner = found.owner
        return ""

    def is_batch(self, pod: Metadata) -> bool:
        """Whether a pod is a Job's."""
        owner = controlling(pod)
        return owner is not None and owner.kind == "Job" and is_known(owner)

    def template_of(self, pod: Metadata) -> Template | None:
        """What the topmost owner of a pod that is known makes its pods from; None where none is."""
        owner, found = controlling(pod), None
        for _ in range(8):
            watched = self._known(owner, pod.namespace)
            if watched is None:
                return found
            found, owner = watched.template, watched.owner
        return found

    def is_suspended(self, pod: Metadata) -> bool:
        """Whether a pod is of a Job that is suspended."""
        watched = self._known(controlling(pod), pod.namespace)
        return watched is not None and watched.suspended > 0


DAEMON_SET = "DaemonSet"
BOUND_TO_NODES = (DAEMON_SET, "Node")
"""Owners of pods that every node has; such a pod returns to the node that it left. A static pod's is its Node."""
CRITICAL = 2_000_000_000
"""Priorities from here on are those of system-cluster-critical and system-node-critical: users may not have them."""
CRITICAL_CLASSES = {"system-cluster-critical": CRITICAL, "system-node-critical": CRITICAL + 1000}
"""The priorities that every API server gives to the PriorityClasses that it makes itself."""


def is_bound_to_its_node(pod: Pod) -> bool:
    """Whether a pod is a static one, or a DaemonSet's: whoever sends it away has it back there."""
    owner = controlling(pod.metadata)
    return owner is not None and owner.kind in BOUND_TO_NODES


def is_of_the_system(pod: Pod, services: bool = False) -> bool:
    """Whether a pod is bound to its node, or is critical for the cluster or its node; ``services``: those of DaemonSets
    count as bound no more than others."""
    owner = controlling(pod.metadata)
    serves = services and owner is not None and owner.kind == DAEMON_SET
    return (is_bound_to_its_node(pod) and not serves) or priority_of(pod) >= CRITICAL


def priority_of(pod: Pod) -> int:
    """A pod's priority. The API server sets it from the pod's PriorityClass, or from the cluster's ``globalDefault``;
    without either it is 0."""
    return pod.spec.priority or 0
