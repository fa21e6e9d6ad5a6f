"""Who gets a promise where a PromiseQuota bounds it: first come, first served.

What is decided follows from the objects alone, so every leader decides the same: pods that are bound have what they
have. Of the others those come first that were created first, of workloads likewise. A pod that does not fit is passed
over, and later ones that do fit get their promise, as with a ResourceQuota. Who could not be placed whatever the nodes
are (gated, being deleted, without a volume) claims nothing until that is over.

A change costs what it changes: O(log n) for itself and for each pod that it gives a promise or takes one from, among n
pods of one class in one namespace (:mod:`.quota_group`). Quotas and classes that change cost O(n).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from slacktide.kube.client.quantities import NANO
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.quota_group import Claim, Group, QueuePosition
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.nodes import Demands
from slacktide.kube.translate.owners import Target
from slacktide.kube.translate.service_classes import OF_CLASS, Promised
from slacktide.kube.translate.unschedulable import Unschedulable

UNITS: Mapping[str, int] = {"cpu": NANO // 1000, "memory": NANO}
"""Nanos in a unit of a demand."""
SHARE = 8
"""Where more than one of so many claims is read anew, all are decided on anew: that is faster."""

GroupKey = tuple[str, str]


class PromiseQuotas:
    """Says of pods whether a quota refuses them. ``settled`` says whether a place was decided for a pod already,
    ``promised`` what it is promised, or raises :class:`Unschedulable`; ``may_claim`` whether it claims anything."""

    def __init__(
        self,
        mirror: ClusterMirror,
        demands: Demands,
        promised: Callable[[Pod], Promised],
        settled: Callable[[FedPod], bool],
        may_claim: Callable[[FedPod], bool],
    ) -> None:
        self._mirror, self._demands, self._promised, self._settled = mirror, demands, promised, settled
        self._may_claim = may_claim
        self.groups: dict[GroupKey, Group] = {}
        """By namespace and class; those without claims may be missing."""
        self.touched: dict[GroupKey, None] = {}
        """Groups in which something may be other than before; whoever publishes that takes them out."""
        self._of: dict[str, GroupKey] = {}
        """Groups of pods that claim something, by UID."""

    def claim(self, pod: FedPod) -> tuple[str, list[str]]:
        """Why a pod whose promise is known gets none, or nothing; and of which others that changed by it."""
        assert pod.promised is not None  # noqa: S101  # for the type checker
        namespace, name = pod.pod.metadata.namespace, pod.promised.class_name
        key, limits = (namespace, name), self._mirror.quotas.of(namespace, name)
        changed = self.release(pod.uid) if self._of.get(pod.uid, key) != key or not limits else []
        target = self._mirror.owners.target_of(pod.pod.metadata) if limits else None
        if target is None:  # a pod whose owner is not known yet comes again
            return "", changed
        group, claim = self._group(key), self._claim_of(pod, target)
        known = group.claims.get(pod.uid)
        if known is None or not known.asks_for_the_same(claim):
            if known is not None:
                group.leave(pod.uid)
            self._of[pod.uid] = key
            group.join(claim)
            changed += self._decide(key)
        elif known.settled != claim.settled:
            group.settle(pod.uid, claim.settled)
            changed += self._decide(key)
        reason = group.reason(pod.uid)
        return f"{OF_CLASS}{name!r}: {reason}" if reason else "", [one for one in changed if one != pod.uid]

    def release(self, uid: str) -> list[str]:
        """A pod claims nothing any more; the UIDs of those of whom something else is true now."""
        key = self._of.pop(uid, None)
        if key is None:
            return []
        self.groups[key].leave(uid)
        return [one for one in self._decide(key) if one != uid]

    def beyond(self, workload: str) -> tuple[str, int] | None:
        """Why pods of a workload, by its key, get no promise, and how many; None where all get it."""
        found = (group.beyond(workload) for group in self.groups.values())
        return next((one for one in found if one is not None), None)

    def look_again(self, pods: Iterable[FedPod]) -> list[str]:
        """Quotas or classes changed, or this is the beginning: all claims of these pods are read anew, then decided.

        The UIDs of pods of whom something else is true now.
        """
        if not self._of and not self._mirror.quotas.namespaces():
            return []
        left: dict[GroupKey, list[str]] = {}
        joined: dict[GroupKey, list[Claim]] = {}
        for pod in pods:
            if (key := self._of.pop(pod.uid, None)) is not None:
                left.setdefault(key, []).append(pod.uid)
            claim = self._claimed_by(pod)
            if claim is not None:
                joined.setdefault(self._of[pod.uid], []).append(claim)
        changed: dict[str, None] = {}
        for key in left | joined:
            for uid in self._exchange(key, left.get(key, []), joined.get(key, [])):
                changed[uid] = None
        return sorted(changed)

    def _exchange(self, key: GroupKey, left: list[str], joined: list[Claim]) -> list[str]:
        """Some claims of a group go and others come; the UIDs of pods of whom something else is true now."""
        limits = self._mirror.quotas.of(*key)
        group = self.groups.setdefault(key, Group(limits, self._settled))
        if limits == group.limits and SHARE * (len(left) + len(joined)) < len(group.claims):
            for uid in left:
                group.leave(uid)
            for claim in joined:
                group.join(claim)
            return self._decide(key)
        gone = set(left)
        claims = [one for uid, one in group.claims.items() if uid not in gone]
        changed = group.rebuild([*claims, *joined], limits)
        self._close(key)
        return changed

    def _group(self, key: GroupKey) -> Group:
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = Group(self._mirror.quotas.of(*key), self._settled)
        return found

    def _decide(self, key: GroupKey) -> list[str]:
        changed = self.groups[key].decide()
        self._close(key)
        return changed

    def _close(self, key: GroupKey) -> None:
        self.touched[key] = None
        if not self.groups[key].claims:
            del self.groups[key]

    def _claimed_by(self, pod: FedPod) -> Claim | None:
        """What a pod claims, where it claims anything; then it is noted by what."""
        mirror, metadata = self._mirror, pod.pod.metadata
        if not self._may_claim(pod):
            return None
        promised = pod.promised if pod.key else None  # what runs has what it was promised
        with contextlib.suppress(Unschedulable):
            promised = self._promised(pod.pod)
        if promised is None:
            return None
        key, target = (metadata.namespace, promised.class_name), mirror.owners.target_of(metadata)
        if target is None or not mirror.quotas.of(*key):
            return None
        pod.promised = promised
        self._of[pod.uid] = key
        return self._claim_of(pod, target)

    def _claim_of(self, pod: FedPod, target: Target) -> Claim:
        assert pod.promised is not None  # noqa: S101  # for the type checker
        # As it is written: the nearest binary number may be a little more, and three times .1 more than .3.
        demand, slo = self._demands.of(pod.pod), Fraction(repr(pod.promised.service.slo))
        asked = {} if isinstance(demand, str) else dict(demand)
        cpu, memory = (math.ceil(asked.get(name, 0) * unit * slo) for name, unit in UNITS.items())
        watched = self._mirror.owners.watched.get(target.uid)
        created = watched.created if watched is not None else pod.pod.metadata.creation_timestamp
        workload_created = math.inf if created is None else created
        came = QueuePosition(pod.pod.metadata.creation_timestamp or math.inf, pod.uid)
        return Claim(pod, target.key, workload_created, (cpu, memory), came, self._settled(pod))
