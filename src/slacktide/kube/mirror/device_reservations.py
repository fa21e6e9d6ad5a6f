"""Which devices are in use: those that claims hold, and those that we are about to give.

And extended resources that device classes back: which they are, which pods ask for them, which nodes have them
themselves, and the claims that schedulers made for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from slacktide.kube.indexes import one_less, take_out
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import AllocationResult, DeviceClass, Pod, ResourceClaim
from slacktide.kube.translate.devices.claims import (
    AMPLE,
    FINALIZER,
    ExtendedAsk,
    RequestMapping,
    asked_by,
    backed_by,
    made_for,
)
from slacktide.kube.translate.devices.pools import DeviceId


@dataclass(frozen=True, slots=True)
class Planned:
    """What a claim is to get."""

    claim: ResourceClaim
    devices: tuple[DeviceId, ...]
    allocation: dict[str, Any]

    def is_in(self, result: AllocationResult) -> bool:
        """Whether these are the devices that a claim has."""
        has = {DeviceId(one.driver, one.pool, one.device) for one in result.devices.results if not one.admin_access}
        return has == set(self.devices)

    def carried_out(self) -> ResourceClaim:
        """The claim as it will be."""
        result = msgspec.convert(self.allocation, AllocationResult)
        return msgspec.structs.replace(self.claim, status=msgspec.structs.replace(self.claim.status, allocation=result))


class Extended(NamedTuple):
    """A claim that is to be made for the extended resources of a pod, and which of its containers it serves."""

    claim: ResourceClaim
    mappings: tuple[RequestMapping, ...]


@dataclass(slots=True)
class Reservation:
    """Devices for the claims of a pod that is to be on ``host``.

    resources  of which the pod asks for one each while it waits (none: its claims are allocated)
    planned   by the claims' UIDs
    shared    UIDs of claims that are to get devices for another pod of its group, and which it uses as well
    extended  what is to be made for its extended resources, and is planned as others are
    made      the claim that was made for these, once it was
    writing   it is being written down: until that is over the devices are in use, whatever happens to the pod
    """

    host: str
    resources: tuple[str, ...] = ()
    planned: dict[str, Planned] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    extended: Extended | None = None
    made: ResourceClaim | None = None
    writing: bool = False


class DevicesInUse:
    """Devices by who has them, kept by events. A device that is had with admin access is not in use by that.

    What changes something says which devices are free because of it that were in use, or the other way round: those
    that were reserved for a claim and that it holds now are in use as before.
    """

    def __init__(self) -> None:
        self._count: Counter[DeviceId] = Counter()
        self._held: dict[str, tuple[DeviceId, ...]] = {}
        """By the UIDs of claims."""
        self.reservations: dict[str, Reservation] = {}
        """By the UIDs of pods."""
        self._on: Counter[tuple[str, str]] = Counter()
        self._anywhere: Counter[str] = Counter()
        self.promised: dict[str, str] = {}
        """Of claims that get devices: the UID of the pod for which."""

    def __contains__(self, device: object) -> bool:
        return device in self._count

    def hold(self, claim: ResourceClaim) -> set[DeviceId]:
        """A claim as it is now."""
        result = claim.status.allocation
        results = () if result is None else result.devices.results
        devices = tuple(DeviceId(one.driver, one.pool, one.device) for one in results if not one.admin_access)
        before = self._held.get(claim.metadata.uid, ())
        if devices == before:
            return set()
        free = self.let_go(claim.metadata.uid)
        if devices:
            self._held[claim.metadata.uid] = devices
        return free ^ self._add(devices)

    def let_go(self, uid: str) -> set[DeviceId]:
        """A claim is gone, or holds nothing any more."""
        return self._subtract(self._held.pop(uid, ()))

    def reserve(self, pod: str, reservation: Reservation) -> set[DeviceId]:
        """Devices are about to be given for a pod."""
        self.reservations[pod] = reservation
        for resource in reservation.resources:
            self._on[reservation.host, resource] += 1
            self._anywhere[resource] += 1
        self.promised.update(dict.fromkeys(reservation.planned, pod))
        return self._add(one for planned in reservation.planned.values() for one in planned.devices)

    def release(self, pod: str) -> set[DeviceId]:
        """They are not, or the claims hold them by now. What others share is theirs from now on."""
        found = self.reservations.pop(pod, None)
        if found is None:
            return set()
        for resource in found.resources:
            one_less(self._on, (found.host, resource))
            one_less(self._anywhere, resource)
        free: set[DeviceId] = set()
        for uid, planned in found.planned.items():
            del self.promised[uid]
            free_for = (pod for pod, one in self.reservations.items() if uid in one.shared and uid not in self._held)
            heir = next(free_for, None)
            if heir is None:
                free |= self._subtract(planned.devices)
            else:
                self.promised[uid] = heir
                self.reservations[heir].planned[uid] = planned
                self.reservations[heir].shared.discard(uid)
        return free

    def planned(self, claim: str) -> Planned | None:
        """What a claim is to get, for whichever pod."""
        pod = self.promised.get(claim)
        return None if pod is None else self.reservations[pod].planned[claim]

    def on(self, host: str, resource: str) -> int:
        """For how many pods that ask for a resource devices are reserved on a host."""
        return self._on[host, resource]

    def anywhere(self, resource: str) -> int:
        """The same, on all hosts."""
        return self._anywhere[resource]

    def _add(self, devices: Iterable[DeviceId]) -> set[DeviceId]:
        found = set()
        for one in devices:
            self._count[one] += 1
            if self._count[one] == 1:
                found.add(one)
        return found

    def _subtract(self, devices: Iterable[DeviceId]) -> set[DeviceId]:
        found = set()
        for one in devices:
            one_less(self._count, one)
            if one not in self._count:
                found.add(one)
        return found


NOTHING: frozenset[str] = frozenset()


class ExtendedResources:
    """A part of the mirror of devices; ``pods`` are the mirror's."""

    def __init__(self, pods: Mapping[str, PodRecord]) -> None:
        self._pods = pods
        self._backed: dict[str, str] = {}
        self._asks: dict[str, ExtendedAsk] = {}
        """Of pods of ours that have not ended, waiting or not."""
        self._asked: set[str] = set()
        """Resources that pods have ever asked for; nodes are told anew for each, so none is forgotten with its pod."""
        self._given: dict[str, frozenset[str]] = {}
        """Resources that classes back and nodes have themselves, by node."""
        self._claims: dict[str, dict[tuple[str, str], ResourceClaim]] = {}
        """By the pods for which they were made."""

    def ask_of(self, pod: Pod) -> ExtendedAsk | None:
        """What a pod asks for of such resources; None where nothing, or where it is not ours."""
        return self._asks.get(pod.metadata.uid)

    def on_pod_update(self, record: PodRecord) -> bool:
        """A pod, new or changed; whether it is the first that asks for a resource."""
        ask = asked_by(record.pod, self._backed) if self._backed and record.ours and not record.is_final else None
        if ask is None:
            self.on_pod_delete(record.uid)
            return False
        self._asks[record.uid] = ask
        is_first = not ask.resources <= self._asked
        self._asked |= ask.resources
        return is_first

    def on_pod_delete(self, uid: str) -> None:
        """A pod is gone."""
        self._asks.pop(uid, None)

    def see_classes(self, classes: Iterable[DeviceClass]) -> list[PodRecord] | None:
        """Classes, of which one is new, changed or gone: pods that ask for something else because of that; None where
        the same resources are backed as before."""
        backed = backed_by(classes)
        if backed == self._backed:
            return None
        self._backed, found = backed, []
        self._asked &= backed.keys()
        for record in self._pods.values():
            before = self._asks.get(record.uid)
            self.on_pod_update(record)
            if self._asks.get(record.uid) != before:
                found.append(record)
        return found

    # -- nodes -----------------------------------------------------------------------------------------------------

    def on_node_update(self, name: str, amounts: Mapping[str, int]) -> bool:
        """What a node has; whether it has other resources itself than before, of those that classes back."""
        given = frozenset(one for one in self._backed if amounts.get(one, 0) > 0) if self._backed else NOTHING
        is_news = given != self._given.get(name, NOTHING)
        self._given[name] = given
        return is_news

    def on_node_delete(self, name: str) -> None:
        """A node is gone."""
        self._given.pop(name, None)

    def given(self, node: str) -> frozenset[str]:
        """Resources that classes back and a node has itself."""
        return self._given.get(node, NOTHING)

    def ample(self, node: str) -> dict[str, int]:
        """Resources that a node does not have and gives by claims: of them nobody is refused anything there, as only
        free devices count."""
        return dict.fromkeys(sorted(self._asked - self.given(node)), AMPLE) if self._asked else {}

    # -- claims ----------------------------------------------------------------------------------------------------

    def on_claim_update(self, claim: ResourceClaim) -> None:
        """A claim, new or changed."""
        if uid := made_for(claim):
            self._claims.setdefault(uid, {})[claim.metadata.namespace, claim.metadata.name] = claim

    def on_claim_delete(self, claim: ResourceClaim) -> None:
        """A claim is gone."""
        take_out(self._claims, made_for(claim), (claim.metadata.namespace, claim.metadata.name))

    def claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """Claims that were made for a pod's extended resources, by us or others, and that do not go yet.

        Who writes a claim in another namespace may name any pod as its owner: that means nothing.
        """
        found = self._claims.get(pod.metadata.uid, {})
        return [one for (namespace, _), one in found.items() if namespace == pod.metadata.namespace and _stays(one)]


def _stays(claim: ResourceClaim) -> bool:
    return claim.metadata.deletion_timestamp is None or FINALIZER in claim.metadata.finalizers
