"""Claims on devices, as the API server last described them: what waiting pods need, and how many of them fit where.

A waiting pod whose claims have no devices yet asks for one of a resource that stands for just these claims: of it a
node has as many as there are pods of the kind for which devices are free there, by the search that also gives them out.
So the core counts pods that one pass places. Pods that ask differently for the same devices are counted apart: which
of them comes too late is seen when devices are reserved (:meth:`DeviceMirror.reserve`), and it waits again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from slacktide.kube.mirror.changes import Changes
from slacktide.kube.mirror.device_reservations import DevicesInUse, Planned, Reservation
from slacktide.kube.mirror.device_sorts import Sort
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.devices.allocation import CannotAllocate, allocate, devices_of, how_many
from slacktide.kube.translate.devices.claims import wish_of
from slacktide.kube.translate.devices.pod_claims import NO_CLAIMS, ClaimNeeds, claims_of, names_of, usable_from
from slacktide.kube.translate.devices.pools import DeviceId, NodeDevices, Pools
from slacktide.kube.translate.devices.results import allocation
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.selectors import NODE_NAME
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Condition, Term
from slacktide.model.hosts import DEVICES

MOST_COUNTED = 128
"""A node has no more devices in a slice, and so rarely room for more pods with devices."""
MOST_UNUSED = 8

_encode = msgspec.msgpack.Encoder().encode
_Key = tuple[bytes, tuple[tuple[str, str], ...]]
Attributes = Mapping[str, str]


class DeviceMirror:
    """A part of the mirror: ``pods`` and ``followers`` are the mirror's.

    ``look_again`` is told of a pod that waits and whose claims are others, ``view_node`` of a node on which there are
    devices for others than before (empty: on all).
    """

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        followers: list[Changes],
        look_again: Callable[[PodRecord], None],
        view_node: Callable[[str], None],
    ) -> None:
        self._pods, self._followers = pods, followers
        self._look_again, self._view_node = look_again, view_node
        self.unknown = ""
        """Why nothing is known of devices; empty where it is."""
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self.in_use = DevicesInUse()
        self._classes: dict[str, DeviceClass] = {}
        self._pools = Pools()
        self._on_node: dict[str, tuple[Attributes, NodeDevices]] = {}
        self._sorts: dict[_Key, Sort] = {}
        self._asks: dict[str, tuple[_Key | None, ClaimNeeds]] = {}
        """Of waiting pods with claims: what stands for their devices, and what they need."""
        self._claimants: dict[tuple[str, str], dict[str, None]] = {}

    # -- pods ------------------------------------------------------------------------------------------------------

    def see_pod(self, record: PodRecord) -> None:
        """A pod, new or changed, before anybody hears of it."""
        if not record.pod.spec.resource_claims or not record.ours:
            return
        for key in names_of(record.pod):
            self._claimants.setdefault(key, {})[record.uid] = None
        if record.is_final or record.pod.spec.node_name:
            self.leave(record.uid)
        else:
            self._learn(record)

    def pod_is_gone(self, pod: Pod) -> None:
        """A pod is no more."""
        for key in names_of(pod) if pod.spec.resource_claims else ():
            users = self._claimants.get(key, {})
            users.pop(pod.metadata.uid, None)
            if not users:
                self._claimants.pop(key, None)
        self.leave(pod.metadata.uid)

    def leave(self, uid: str) -> None:
        """A pod does not wait any more. What is being written down for it stays reserved until that is over."""
        reservation = self.in_use.reservations.get(uid)
        if reservation is not None and not reservation.writing:
            self._reservation_changed(reservation, self.in_use.release(uid))
        if uid in self._asks:
            key, _ = self._asks.pop(uid)
            self._no_more(key, uid)
            record = self._pods.get(uid)
            if key is not None and record is not None and record.pod.spec.node_name:
                for one in self._followers:
                    one.constraints([uid])  # on a node it asks for devices no more: its claims have them

    def needs(self, pod: Pod) -> ClaimNeeds:
        """What a waiting pod's claims ask for as of now; what is wrong makes it wait, with the reason."""
        if not pod.spec.resource_claims:
            return NO_CLAIMS
        if pod.metadata.uid in self.in_use.reservations:
            return self._asks.get(pod.metadata.uid, (None, NO_CLAIMS))[1]
        if self.unknown or pod.metadata.uid not in self._asks:
            return ClaimNeeds(waits=f"spec.resourceClaims: {self.unknown or 'the claims are not known yet'}")
        key, found = self._asks[pod.metadata.uid]
        hopeless = self._sorts[key].hopeless if key is not None else ""
        return ClaimNeeds(waits=hopeless) if hopeless else found

    def look_for_hopeless(self) -> None:
        """Nodes have devices for others than before: there may be none for other sorts of pods."""
        for sort in [one for one in self._sorts.values() if one.problem or one.hopeless]:
            somewhere = sort.somewhere or self.in_use.anywhere(sort.resource)
            hopeless = "" if somewhere else sort.problem
            if hopeless != sort.hopeless:
                sort.hopeless = hopeless
                for record in [self._pods[uid] for uid in sorted(sort.users) if uid in self._pods]:
                    self._look_again(record)

    def _learn(self, record: PodRecord) -> bool:
        """What a waiting pod needs; whether that is news. While devices are reserved for it, it is as it was."""
        uid, pod = record.uid, record.pod
        if uid in self.in_use.reservations:
            return False
        before, known = self._asks.get(uid, (None, NO_CLAIMS))
        try:
            conditions, without = self._read(pod)
            key, demand = self._sort(uid, without)
            found = ClaimNeeds(Term(tuple(dict.fromkeys(conditions))), demand)
        except Unschedulable as problem:
            key, found = None, ClaimNeeds(waits=problem.reason)
        self._asks[uid] = key, found
        if before != key:
            self._no_more(before, uid)
        return found != known

    def _read(self, pod: Pod) -> tuple[list[Condition], list[ResourceClaim]]:
        """From where the devices can be used that a pod's claims have, and its claims without any."""
        conditions: list[Condition] = []
        without = []
        for claim in claims_of(pod, self.claims):
            if claim.status.allocation is not None:
                conditions += usable_from(claim, pod)
            elif self.in_use.promised.get(claim.metadata.uid, pod.metadata.uid) != pod.metadata.uid:
                raise Unschedulable(f"resource claim {claim.metadata.name} is being given devices for another pod")
            else:
                without.append(claim)
        return conditions, without

    def _sort(self, uid: str, claims: list[ResourceClaim]) -> tuple[_Key | None, tuple[tuple[str, int], ...]]:
        """What stands for the devices of claims: of it a pod asks for one."""
        if not claims:
            return None, ()
        wishes = tuple(wish_of(claim, self._classes) for claim in claims)
        names = tuple(dict.fromkeys(name for wish in wishes for name in wish.classes))
        asked = [(one.spec.devices.requests, one.spec.devices.constraints) for one in claims]
        key = _encode(asked), tuple((name, self._classes[name].metadata.resource_version) for name in names)
        found = self._sorts.get(key)
        if found is None:
            self._forget_unused()
            found = self._sorts[key] = Sort(self._unused("+".join(names)), wishes)
            self._view_node("")
        found.users.add(uid)
        return key, ((found.resource, 1),)

    def _unused(self, name: str) -> str:
        """A resource that nothing stands for now; names come again, as the core keeps a column for each."""
        taken = {one.resource for one in self._sorts.values()}
        wanted, number = f"{DEVICES}{name}", 1
        while wanted in taken:
            number += 1
            wanted = f"{DEVICES}{name}~{number}"
        return wanted

    def _forget_unused(self) -> None:
        """Sorts that nobody is of are kept for a while: the next pod of a template comes soon after the last one."""
        unused = [key for key, sort in self._sorts.items() if not sort.users]
        for key in unused[: max(0, len(unused) - MOST_UNUSED)]:
            del self._sorts[key]

    def _no_more(self, key: _Key | None, uid: str) -> None:
        """A pod is of this sort no more."""
        if key is not None and key in self._sorts:
            self._sorts[key].users.discard(uid)

    # -- what follows ----------------------------------------------------------------------------------------------

    def amounts(self, view: NodeView) -> dict[str, int]:
        """For how many waiting pods of each sort there are devices on a node."""
        if not self._sorts or not view.ours:
            return {}
        name, node = view.name, view.attributes
        counts = {
            one.resource: self._count(one, node) + self.in_use.on(name, one.resource) for one in self._sorts.values()
        }
        return {resource: count for resource, count in counts.items() if count}

    def _count(self, sort: Sort, node: Attributes) -> int:
        name = node[NODE_NAME]
        devices = self._devices(node)
        if name not in sort.counts:
            count = 0
            try:
                count = how_many(sort.wishes, devices, self.in_use, MOST_COUNTED, sort.effort)
            except CannotAllocate as problem:
                sort.problem = sort.problem or str(problem)
            sort.note(name, count)
        return sort.counts[name]

    def _devices(self, node: Attributes) -> NodeDevices:
        name = node[NODE_NAME]
        known = self._on_node.get(name)
        if known is None or known[0] != node:
            self._forget(name)
            known = self._on_node[name] = node, self._pools.of(node)
        return known[1]

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        self._on_node.pop(name, None)
        self._forget(name)

    def _forget(self, node: str) -> None:
        for sort in self._sorts.values():
            sort.forget(node)

    def _nodes_changed(self, nodes: frozenset[str] | None, *, others: bool = False) -> None:
        """On these nodes (None: all) other devices are free, or with ``others`` other devices are to be had."""
        if others:
            for sort in self._sorts.values():
                sort.problem = ""
        if nodes is None:
            for sort in self._sorts.values():
                sort.forget_all()
            if others:
                self._on_node.clear()
            self._view_node("")
        for name in sorted(nodes or ()):
            self._forget(name)
            if others:
                self._on_node.pop(name, None)
            self._view_node(name)

    def _devices_changed(self, devices: Iterable[DeviceId]) -> None:
        """Devices are in use, or are not any more."""
        nodes: frozenset[str] | None = frozenset()
        for driver, pool in {(one.driver, one.pool) for one in devices}:
            found = self._pools.nodes_of((driver, pool))
            nodes = None if nodes is None or found is None else nodes | found
        self._nodes_changed(nodes)

    def _reservation_changed(self, reservation: Reservation, devices: Iterable[DeviceId]) -> None:
        """It is there, or is no more: it counts on its host, also where its devices are in use as before."""
        self._devices_changed(devices)
        if reservation.resource:
            self._view_node(reservation.host)

    # -- reservations ----------------------------------------------------------------------------------------------

    def reserve(self, pod: Pod, node: Attributes) -> str:
        """Choose devices for the claims of a pod that is to be on a node, and keep them; why that cannot be, or empty.

        Until :meth:`release`, or until the pod is bound and its claims hold them, nobody else gets them.
        """
        uid, host = pod.metadata.uid, node[NODE_NAME]
        if not pod.spec.resource_claims or self.unknown:
            return self.unknown
        self.release(uid)  # where it was to be on another node
        try:
            conditions, without = self._read(pod)
            wishes = [wish_of(claim, self._classes) for claim in without]
            found = allocate(wishes, self._devices(node), self.in_use) if wishes else ()
        except (Unschedulable, CannotAllocate) as problem:
            return str(problem)
        if not Term(tuple(conditions)).holds(node):
            return f"the devices of its claims cannot be used from node {host}"
        if found is None:
            return f"node {host} has no free devices for its claims any more"
        key, _ = self._asks.get(uid, (None, NO_CLAIMS))
        planned = {
            claim.metadata.uid: Planned(claim, devices, allocation(claim, given, host))
            for claim, devices, given in zip(without, devices_of(found), found, strict=True)
        }
        resource = self._sorts[key].resource if key is not None else ""
        reservation = Reservation(host, resource, planned)
        self._reservation_changed(reservation, self.in_use.reserve(uid, reservation))
        self._others_wait(without, uid)
        return ""

    def release(self, uid: str) -> None:
        """What was reserved for a pod is not needed any more, or its claims hold it."""
        reservation = self.in_use.reservations.get(uid)
        if reservation is None:
            return
        devices = self.in_use.release(uid)
        record = self._pods.get(uid)
        if record is not None and not record.is_final and not record.pod.spec.node_name and self._learn(record):
            self._look_again(record)
        self._reservation_changed(reservation, devices)
        self._others_wait([one.claim for one in reservation.planned.values()], uid)

    def release_all(self) -> None:
        """Whoever reserved devices does not act any more."""
        for uid in tuple(self.in_use.reservations):
            self.release(uid)

    def _others_wait(self, claims: Iterable[ResourceClaim], uid: str) -> None:
        """Other pods that have the same claims wait for what comes of it."""
        for claim in claims:
            self._claim_changed((claim.metadata.namespace, claim.metadata.name), besides=uid)

    # -- claims, classes, slices -----------------------------------------------------------------------------------

    def see_claim(self, found: ResourceClaim) -> None:
        """A ResourceClaim, new or changed; an earlier version than the one that is known is passed over."""
        key = found.metadata.namespace, found.metadata.name
        known = self.claims.get(key)
        if known is not None and known.metadata.uid == found.metadata.uid and _version(found) < _version(known):
            return
        changed: set[DeviceId] = set()
        if known is not None and known.metadata.uid != found.metadata.uid:
            changed |= self.in_use.let_go(known.metadata.uid)
        self.claims[key] = found
        changed |= self.in_use.hold(found)
        self._claim_changed(key)
        self._devices_changed(changed)

    def drop_claim(self, namespace: str, name: str) -> None:
        """A ResourceClaim is gone."""
        found = self.claims.pop((namespace, name), None)
        changed = set() if found is None else self.in_use.let_go(found.metadata.uid)
        self._claim_changed((namespace, name))
        self._devices_changed(changed)

    def _claim_changed(self, key: tuple[str, str], besides: str = "") -> None:
        self._learn_anew(uid for uid in self._claimants.get(key, ()) if uid != besides)

    def _learn_anew(self, uids: Iterable[str]) -> None:
        for record in [self._pods[uid] for uid in uids if uid in self._asks]:
            if self._learn(record):
                self._look_again(record)

    def see_class(self, found: DeviceClass) -> None:
        """A DeviceClass, new or changed."""
        self._classes[found.metadata.name] = found
        self._learn_anew(tuple(self._asks))

    def drop_class(self, name: str) -> None:
        """A DeviceClass is gone."""
        self._classes.pop(name, None)
        self._learn_anew(tuple(self._asks))

    def see_slice(self, found: ResourceSlice) -> None:
        """A ResourceSlice, new or changed."""
        self._nodes_changed(self._pools.see(found), others=True)

    def drop_slice(self, name: str) -> None:
        """A ResourceSlice is gone."""
        self._nodes_changed(self._pools.drop(name), others=True)

    def see_taint_rule(self, found: DeviceTaintRule) -> None:
        """A DeviceTaintRule, new or changed."""
        self._nodes_changed(self._pools.see_rule(found), others=True)

    def drop_taint_rule(self, name: str) -> None:
        """A DeviceTaintRule is gone."""
        self._nodes_changed(self._pools.drop_rule(name), others=True)

    def set_unknown(self, reason: str) -> None:
        """Nothing is known of devices any more, for this reason, or it is again (empty)."""
        if reason != self.unknown:
            self.unknown = reason
            for uid in tuple(self._asks):
                self._look_again(self._pods[uid])


def _version(claim: ResourceClaim) -> int:
    # Of one object they may be compared, as its watch delivers them in order.
    return int(claim.metadata.resource_version or 0)
