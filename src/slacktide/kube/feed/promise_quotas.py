"""Who gets a promise where a PromiseQuota bounds it: first come, first served.

What is decided follows from the objects alone, so every leader decides the same: pods that are bound have what they
have. Of the others those come first that were created first, of workloads likewise. A pod that does not fit is passed
over, and later ones that do fit get their promise, as with a ResourceQuota.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.translate.owners import Target
from slacktide.kube.translate.pod_resources import Demands
from slacktide.kube.translate.promise_quotas import NANO, Quota
from slacktide.kube.translate.service_classes import OF_CLASS
from slacktide.kube.translate.unschedulable import Unschedulable

UNITS: Mapping[str, int] = {"cpu": NANO // 1000, "memory": NANO}
"""Nanos in a unit of a demand."""

GroupKey = tuple[str, str]


@dataclass(slots=True)
class Claim:
    """What a pod takes of a quota: nanos of ``cpu`` and ``memory`` times promise, and a place of its workload."""

    pod: FedPod
    workload: str
    workload_created: float
    amounts: dict[str, int]
    created: tuple[float, str]
    """When it came; pods of one instant in the order of their UIDs."""
    settled: bool = False
    """It had a place when this was last looked at."""


@dataclass(slots=True)
class Group:
    """A class in a namespace, with all pods that claim it, by UID."""

    claims: dict[str, Claim] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Why, of those that get no promise."""
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UNITS, 0))
    """Of all others, by resource."""
    places: dict[str, int] = field(default_factory=dict)
    """Of workloads where they are counted, from 0; some may be there no more while nobody is refused."""
    last: tuple[float, str] = (-math.inf, "")
    """None came later than this."""
    beyond: dict[str, dict[str, str]] = field(default_factory=dict)
    """Those who are refused again, with their reasons, by workload."""

    def refuse(self, claim: Claim, reason: str) -> None:
        """A pod gets no promise."""
        self.refused[claim.pod.uid] = reason
        self.beyond.setdefault(claim.workload, {})[claim.pod.uid] = reason

    def take(self, claim: Claim, sign: int = 1) -> None:
        """Add what a pod takes (or take it off)."""
        for name, amount in claim.amounts.items():
            self.sums[name] += sign * amount


class PromiseQuotas:
    """Says of pods whether a quota refuses them. ``settled`` says whether a place was decided for a pod already."""

    def __init__(self, mirror: ClusterMirror, demands: Demands, settled: Callable[[FedPod], bool]) -> None:
        self._mirror, self._demands, self._settled = mirror, demands, settled
        self._groups: dict[GroupKey, Group] = {}
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
        group = self._groups.setdefault(key, Group())
        claim = self._claim_of(pod, target)
        known = group.claims.get(pod.uid)
        if known is None or known.amounts != claim.amounts:
            self._of[pod.uid] = key
            group.claims[pod.uid] = claim
            if known is not None or claim.settled or not _decided_alone(limits, group, claim):
                changed += [one for one in self._decide(limits, group) if one != pod.uid]
        elif known.settled > claim.settled or (claim.settled and pod.uid in group.refused):
            changed += [one for one in self._decide(limits, group) if one != pod.uid]
        elif claim.settled:
            known.settled = True  # its place is among those before it, whose sum is the same
        reason = group.refused.get(pod.uid)
        return "" if reason is None else f"{OF_CLASS}{name!r}: {reason}", changed

    def release(self, uid: str) -> list[str]:
        """A pod claims nothing any more; the UIDs of those of whom something else is true now."""
        key = self._of.pop(uid, None)
        if key is None:
            return []
        group = self._groups[key]
        claim = group.claims.pop(uid)
        if not group.claims:
            del self._groups[key]
        if group.refused:
            return [one for one in self._decide(self._mirror.quotas.of(*key), group) if one != uid]
        group.take(claim, -1)
        return []

    def beyond(self, workload: str) -> tuple[str, int] | None:
        """Why pods of a workload, by its key, get no promise, and how many; None where all get it."""
        for group in self._groups.values():
            if found := group.beyond.get(workload):
                return next(iter(found.values())), len(found)
        return None

    def look_again(self, pods: Iterable[FedPod]) -> list[str]:
        """Quotas or classes changed, or this is the beginning: all claims of these pods are read anew, then decided.

        The UIDs of pods of whom something else is true now.
        """
        if not self._of and not self._mirror.quotas.namespaces():
            return []
        before: set[str] = set()
        concerned: set[GroupKey] = set()
        for pod in pods:
            key = self._of.pop(pod.uid, None)
            if key is not None:
                before |= self._groups[key].refused.keys()
                concerned.add(key)
                del self._groups[key].claims[pod.uid]
            key = self._enrol(pod) if pod.ours and not pod.record.is_final else None
            if key is not None:
                before |= self._groups[key].refused.keys()
                concerned.add(key)
        after: set[str] = set()
        for key in concerned:
            self._decide(self._mirror.quotas.of(*key), self._groups[key])
            after |= self._groups[key].refused.keys()
            if not self._groups[key].claims:
                del self._groups[key]
        return sorted(before ^ after)

    def _enrol(self, pod: FedPod) -> GroupKey | None:
        mirror, metadata = self._mirror, pod.pod.metadata
        try:
            owners = mirror.owners
            promised = mirror.classes.of(pod.pod, owners.is_batch(metadata), owners.template_of(metadata))
        except Unschedulable:
            return None
        key, target = (metadata.namespace, promised.class_name), owners.target_of(metadata)
        if target is None or not mirror.quotas.of(*key):
            return None
        pod.promised = promised
        self._of[pod.uid] = key
        self._groups.setdefault(key, Group()).claims[pod.uid] = self._claim_of(pod, target)
        return key

    def _claim_of(self, pod: FedPod, target: Target) -> Claim:
        assert pod.promised is not None  # noqa: S101  # for the type checker
        # As it is written: the nearest binary number may be a little more, and three times .1 more than .3.
        demand, slo = self._demands.of(pod.pod), Fraction(repr(pod.promised.service.slo))
        asked = {} if isinstance(demand, str) else dict(demand)
        amounts = {name: math.ceil(asked.get(name, 0) * unit * slo) for name, unit in UNITS.items()}
        watched = self._mirror.owners.watched.get(target.uid)
        created = watched.created if watched is not None else pod.pod.metadata.creation_timestamp
        workload_created = math.inf if created is None else created
        came = pod.pod.metadata.creation_timestamp or math.inf, pod.uid
        return Claim(pod, target.key, workload_created, amounts, came, self._settled(pod))

    def _decide(self, limits: list[Quota], group: Group) -> list[str]:
        """Who of a group is refused now; the UIDs of those who were not before, and of those who are no more."""
        before, group.refused, group.beyond = group.refused, {}, {}
        for claim in group.claims.values():
            claim.settled = self._settled(claim.pod)
        group.places = _workloads_in_order(group) if _counts_workloads(limits) else {}
        group.sums = dict.fromkeys(UNITS, 0)
        group.last = max((one.created for one in group.claims.values()), default=(-math.inf, ""))
        for claim in sorted(group.claims.values(), key=lambda one: (not one.settled, one.created)):
            reason = "" if claim.settled else _refusal(limits, group, claim)
            if reason:
                group.refuse(claim, reason)
            else:
                group.take(claim)
        return [uid for uid in (before | group.refused) if (uid in before) != (uid in group.refused)]


def _decided_alone(limits: list[Quota], group: Group, claim: Claim) -> bool:
    """Decide on a pod that is new and waits, where that changes nothing for others; whether it was so.

    While nobody is refused and all fit together, the order does not matter. Else the pod that came last can be decided
    on by itself, where its workload's place is known.
    """
    if group.refused:
        if claim.created < group.last or (_counts_workloads(limits) and claim.workload not in group.places):
            return False
        if reason := _refusal(limits, group, claim):
            group.refuse(claim, reason)
        else:
            group.take(claim)
    else:
        group.places.setdefault(claim.workload, len(group.places))
        if _refusal(limits, group, claim):
            return False
        group.take(claim)
    group.last = max(group.last, claim.created)
    return True


def _counts_workloads(limits: list[Quota]) -> bool:
    return any(one.workloads is not None for one in limits)


def _workloads_in_order(group: Group) -> dict[str, int]:
    """The place of each workload, from 0: first those with pods that are settled, then by when they came."""
    first: dict[str, tuple[bool, float, str]] = {}
    for claim in group.claims.values():
        place = not claim.settled, claim.workload_created, claim.workload
        first[claim.workload] = min(place, first.get(claim.workload, place))
    return {name: number for number, name in enumerate(sorted(first, key=first.__getitem__))}


def _refusal(limits: list[Quota], group: Group, claim: Claim) -> str:
    """Which quota a pod that is none of the group's sums yet does not fit in; empty where it fits in all."""
    for quota in limits:
        if quota.workloads is not None and group.places[claim.workload] >= quota.workloads:
            return quota.reason("workloads")
        for name, limit in (("cpu", quota.cpu), ("memory", quota.memory)):
            if limit is not None and group.sums[name] + claim.amounts[name] > limit:
                return quota.reason(name)
    return ""
