"""Claims on devices, as the API server last described them: what waiting pods need, and how many of them fit where.

A waiting pod whose claims have no devices yet asks for one of a resource that stands for just these claims: of it a
node has as many as there are pods of the kind for which devices are free there, by the search that also gives them out.
So the core counts pods that one pass places. Pods that ask differently for the same devices are counted apart: which
of them comes too late is seen when devices are reserved (:meth:`DeviceMirror.reserve`), and it waits again.

Extended resources that device classes back are asked for in the same way: on nodes that do not have them themselves, by
a claim that is made once the pod has its place.

Pods of a group may share a claim: the first of them that is decided on has it get devices, and the others use them as
well. Until then they have to come to one node, which has room for all of them where the claim can have devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from slacktide.kube.indexes import take_out
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.device_reservations import DevicesInUse, Extended, ExtendedResources, Planned, Reservation
from slacktide.kube.mirror.device_sorts import Key, Sorts
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import DeviceClass, DeviceTaintRule, Pod, ResourceClaim, ResourceSlice
from slacktide.kube.translate.devices.allocation import CannotAllocate, allocate, allocation, devices_of
from slacktide.kube.translate.devices.claims import NO_CLAIMS, ClaimNeeds, claims_of, names_of, usable_from, wish_of
from slacktide.kube.translate.devices.pools import DeviceId, NodeDevices, Pools
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.pod_groups import membership
from slacktide.kube.translate.selectors import NODE_NAME
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Condition, Term
from slacktide.model.hosts import DEVICES

Attributes = Mapping[str, str]


class DeviceMirror:
    """A part of the mirror: ``pods`` and ``followers`` are the mirror's.

    ``look_again`` is told of a pod that waits and whose claims are others, ``view_node`` of a node on which there are
    devices for others than before (empty: on all).
    """

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        followers: Changes,
        look_again: Callable[[PodRecord], None],
        view_node: Callable[[str], None],
    ) -> None:
        self._pods, self._followers = pods, followers
        self._look_again, self._view_node = look_again, view_node
        self.unknown = ""
        """Why nothing is known of devices; empty where it is."""
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self.in_use = DevicesInUse()
        self.extended = ExtendedResources(pods)
        self._classes: dict[str, DeviceClass] = {}
        self._pools = Pools()
        self._on_node: dict[str, tuple[Attributes, NodeDevices]] = {}
        self._sorts = Sorts(self.in_use, self._classes, lambda: view_node(""))
        self._asks: dict[str, tuple[tuple[Key, ...], ClaimNeeds]] = {}
        """Of waiting pods with claims: what stands for their devices, and what they need."""
        self._claimants: dict[tuple[str, str], dict[str, None]] = {}

    # -- pods ------------------------------------------------------------------------------------------------------

    def concerns(self, pod: Pod) -> bool:
        """Whether a pod asks for devices, by claims or by extended resources that classes back."""
        return bool(pod.spec.resource_claims) or self.extended.ask_of(pod) is not None

    def on_pod_update(self, record: PodRecord) -> None:
        """A pod, new or changed, before anybody hears of it."""
        if self.extended.on_pod_update(record):
            self._view_node("")
        if not record.ours or not self.concerns(record.pod):
            return
        news = [key for key in names_of(record.pod) if record.uid not in self._claimants.setdefault(key, {})]
        for key in news:
            self._claimants[key][record.uid] = None
        if record.is_final or record.pod.spec.node_name:
            self.leave(record.uid)
        else:
            self._learn(record)
            self._tell_sharers(record.pod, news)

    def pod_is_gone(self, pod: Pod) -> None:
        """A pod is no more."""
        for key in names_of(pod):
            take_out(self._claimants, key, pod.metadata.uid)
        self.leave(pod.metadata.uid)
        self._tell_sharers(pod, names_of(pod))
        self.extended.on_pod_delete(pod.metadata.uid)

    def leave(self, uid: str) -> None:
        """A pod does not wait any more. What is being written down for it stays reserved until that is over."""
        reservation = self.in_use.reservations.get(uid)
        if reservation is not None and not reservation.writing:
            self._reservation_changed(reservation, self.in_use.release(uid))
        if uid in self._asks:
            del self._asks[uid]
            self._sorts.leave(uid)
            record = self._pods.get(uid)
            if record is not None and record.pod.spec.node_name:
                self._followers.constraints([uid])  # on a node it asks for devices no more: its claims have them

    def needs(self, pod: Pod) -> ClaimNeeds:
        """What a waiting pod's claims ask for as of now; what is wrong makes it wait, with the reason."""
        if not self.concerns(pod):
            return NO_CLAIMS
        if pod.metadata.uid in self.in_use.reservations:
            return self._asks.get(pod.metadata.uid, ((), NO_CLAIMS))[1]
        if self.unknown or pod.metadata.uid not in self._asks:
            field = "spec.resourceClaims" if pod.spec.resource_claims else "extended resources"
            return ClaimNeeds(waits=f"{field}: {self.unknown or 'the ResourceClaims have not been listed yet'}")
        keys, found = self._asks[pod.metadata.uid]
        hopeless = next((self._sorts[key].hopeless for key in keys if self._sorts[key].hopeless), "")
        return ClaimNeeds(waits=hopeless) if hopeless else found

    def look_for_hopeless(self) -> None:
        """Nodes have devices for others than before: there may be none for other sorts of pods."""
        for uid in self._sorts.look_for_hopeless():
            if (record := self._pods.get(uid)) is not None:
                self._look_again(record)

    def _learn(self, record: PodRecord) -> bool:
        """What a waiting pod needs; whether that is news. While devices are reserved for it, it is as it was."""
        uid, pod = record.uid, record.pod
        if uid in self.in_use.reservations:
            return False
        _, known = self._asks.get(uid, ((), NO_CLAIMS))
        try:
            conditions, without = self._read(pod)
            keys, found = self._needs(pod, Term(tuple(dict.fromkeys(conditions))), without)
        except Unschedulable as problem:
            keys, found = (), ClaimNeeds(waits=problem.reason)
        self._asks[uid] = keys, found
        self._sorts.leave(uid, but=keys)
        return found != known

    def _read(self, pod: Pod) -> tuple[list[Condition], list[ResourceClaim]]:
        """From where the devices can be used that a pod's claims have, or are to get for another pod of its group, and
        its claims without any."""
        conditions: list[Condition] = []
        without = []
        for claim in claims_of(pod, self.claims):
            planned = self.in_use.planned(claim.metadata.uid)
            owner = self.in_use.promised.get(claim.metadata.uid, pod.metadata.uid)
            if claim.status.allocation is not None:
                conditions += usable_from(claim, pod)
            elif planned is None or owner == pod.metadata.uid:
                without.append(claim)
            elif self._are_together(pod, owner):
                conditions += usable_from(planned.carried_out(), pod)
            else:
                raise Unschedulable(f"ResourceClaim {claim.metadata.name} is being allocated for another pod")
        return conditions, without

    def _are_together(self, pod: Pod, other: str) -> bool:
        """Whether another pod is of the same group."""
        record, own = self._pods.get(other), membership(pod)
        theirs = None if record is None else membership(record.pod)
        return own is not None and theirs is not None and own.key == theirs.key

    def _is_shared(self, claim: ResourceClaim, pod: Pod) -> bool:
        """Whether another waiting pod of the same group uses a claim."""
        key, own = (claim.metadata.namespace, claim.metadata.name), pod.metadata.uid
        users = self._claimants.get(key, {}) if membership(pod) is not None else {}
        return any(uid != own and uid in self._asks and self._are_together(pod, uid) for uid in users)

    def _tell_sharers(self, pod: Pod, keys: Iterable[tuple[str, str]]) -> None:
        """A pod uses these claims from now on, or no more: others of its group share them, or do not any more."""
        if membership(pod) is not None:
            for key in keys:
                self._claim_changed(key, besides=pod.metadata.uid)

    def _needs(self, pod: Pod, term: Term, claims: list[ResourceClaim]) -> tuple[tuple[Key, ...], ClaimNeeds]:
        """What stands for the devices of claims: of it a pod asks for one."""
        metadata, extended = pod.metadata, self.extended.ask_of(pod)
        shared = [one for one in claims if self._is_shared(one, pod)]
        own = [one for one in claims if one not in shared]
        keys = [self._sorts.enter(metadata, own, extended=extended)] if own or extended is not None else []
        keys += [self._sorts.enter(metadata, [one], one.metadata.uid) for one in shared]
        sorts = [self._sorts[key] for key in keys]
        beside = tuple(one.resource for one in sorts if one.claim and one.is_local is not False)
        liked = tuple(each for one in sorts for each in one.liked)
        return tuple(keys), ClaimNeeds(term, tuple((one.resource, 1) for one in sorts), beside, liked)

    # -- what follows ----------------------------------------------------------------------------------------------

    def amounts(self, view: NodeView) -> dict[str, int]:
        """For how many waiting pods of each sort there are devices on a node, as it says itself what it has."""
        if self.extended.on_node_update(view.name, view.amounts):
            self._sorts.forget(view.name)
        if not view.ours:
            return {}
        found = self.extended.ample(view.name)
        if self._sorts:
            given = self.extended.given(view.name)
            found.update(self._sorts.amounts(view.name, self._devices(view.attributes), given))
        return found

    def marks(self, node: str) -> dict[str, str]:
        """What a node says, by attributes, of how well claims of waiting pods would fare there."""
        return self._sorts.marks(node) if self._sorts else {}

    def _devices(self, node: Attributes) -> NodeDevices:
        name = node[NODE_NAME]
        known = self._on_node.get(name)
        if known is None or known[0] != node:
            self._sorts.forget(name)
            known = self._on_node[name] = node, self._pools.of(node)
        return known[1]

    def on_node_delete(self, name: str) -> None:
        """A node is gone."""
        self._on_node.pop(name, None)
        self.extended.on_node_delete(name)
        self._sorts.forget(name)

    def _nodes_changed(self, nodes: frozenset[str] | None, *, others: bool = False) -> None:
        """On these nodes (None: all) other devices are free, or with ``others`` other devices are to be had."""
        if others:
            self._sorts.forget_problems()
        if nodes is None:
            self._sorts.forget_all()
            if others:
                self._on_node.clear()
            self._view_node("")
        for name in sorted(nodes or ()):
            self._sorts.forget(name)
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
        if reservation.resources:
            self._view_node(reservation.host)

    # -- reservations ----------------------------------------------------------------------------------------------

    def reserve(self, pod: Pod, node: Attributes) -> str:
        """Choose devices for the claims of a pod that is to be on a node, and keep them; why that cannot be, or empty.

        Until :meth:`release`, or until the pod is bound and its claims hold them, nobody else gets them.
        """
        uid, host = pod.metadata.uid, node[NODE_NAME]
        if self.unknown or not self.concerns(pod):
            return self.unknown
        self.release(uid)  # where it was to be on another node
        try:
            conditions, without = self._read(pod)
            extended = self._extended(pod, host)
            without += [] if extended is None else [extended.claim]
            wishes = [wish_of(claim, self._classes) for claim in without]
            plain = {key: value for key, value in node.items() if not key.startswith(DEVICES)}
            found = allocate(wishes, self._devices(plain), self.in_use) if wishes else ()
        except (Unschedulable, CannotAllocate) as problem:
            return str(problem)
        if not Term(tuple(conditions)).holds(node):
            return f"the devices of its ResourceClaims are not available on node {host}"
        if found is None:
            return f"node {host} has no free devices for its ResourceClaims any more"
        keys, _ = self._asks.get(uid, ((), NO_CLAIMS))
        planned = {
            claim.metadata.uid: Planned(claim, devices, allocation(claim, given, host))
            for claim, devices, given in zip(without, devices_of(found), found, strict=True)
        }
        shared = {one.metadata.uid for one in claims_of(pod, self.claims)} & self.in_use.promised.keys()
        resources = tuple(self._sorts[key].resource for key in keys)
        reservation = Reservation(host, resources, planned, shared, extended)
        self._reservation_changed(reservation, self.in_use.reserve(uid, reservation))
        self._others_wait(without, uid)
        return ""

    def _extended(self, pod: Pod, host: str) -> Extended | None:
        """The claim that is to be made for a pod's extended resources on a node; None where none is."""
        ask, given = self.extended.ask_of(pod), self.extended.given(host)
        claim = None if ask is None else ask.claim(pod.metadata, given)
        return None if ask is None or claim is None else Extended(claim, ask.requests(given)[1])

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

    def on_claim_update(self, found: ResourceClaim) -> None:
        """A ResourceClaim, new or changed; an earlier version than the one that is known is passed over."""
        key = found.metadata.namespace, found.metadata.name
        known = self.claims.get(key)
        changed: set[DeviceId] = set()
        if known is not None and known.metadata.uid != found.metadata.uid:
            changed |= self.in_use.let_go(known.metadata.uid)
        elif known is not None and found.metadata.version < known.metadata.version:
            return
        self.claims[key] = found
        self.extended.on_claim_update(found)
        changed |= self.in_use.hold(found)
        self._claim_changed(key)
        self._devices_changed(changed)

    def on_claim_delete(self, namespace: str, name: str) -> None:
        """A ResourceClaim is gone."""
        found = self.claims.pop((namespace, name), None)
        changed: set[DeviceId] = set()
        if found is not None:
            self.extended.on_claim_delete(found)
            changed = self.in_use.let_go(found.metadata.uid)
        self._claim_changed((namespace, name))
        self._devices_changed(changed)

    def _claim_changed(self, key: tuple[str, str], besides: str = "") -> None:
        self._learn_anew(uid for uid in self._claimants.get(key, ()) if uid != besides)

    def _learn_anew(self, uids: Iterable[str]) -> None:
        for record in [self._pods[uid] for uid in uids if uid in self._asks]:
            if self._learn(record):
                self._look_again(record)

    def on_class_update(self, found: DeviceClass) -> None:
        """A DeviceClass, new or changed."""
        self._classes[found.metadata.name] = found
        self._classes_changed()

    def on_class_delete(self, name: str) -> None:
        """A DeviceClass is gone."""
        self._classes.pop(name, None)
        self._classes_changed()

    def _classes_changed(self) -> None:
        """What is asked for may be another thing, and who asks for devices may be others."""
        concerned = self.extended.see_classes(self._classes.values())
        self._learn_anew(tuple(self._asks))
        for record in concerned or ():
            if self.concerns(record.pod):
                self.on_pod_update(record)
            else:
                self.leave(record.uid)
            self._look_again(record)
        if concerned is not None:
            self._view_node("")

    def on_slice_update(self, found: ResourceSlice) -> None:
        """A ResourceSlice, new or changed."""
        self._nodes_changed(self._pools.see(found), others=True)

    def on_slice_delete(self, name: str) -> None:
        """A ResourceSlice is gone."""
        self._nodes_changed(self._pools.drop(name), others=True)

    def on_taint_rule_update(self, found: DeviceTaintRule) -> None:
        """A DeviceTaintRule, new or changed."""
        self._nodes_changed(self._pools.on_rule_update(found), others=True)

    def on_taint_rule_delete(self, name: str) -> None:
        """A DeviceTaintRule is gone."""
        self._nodes_changed(self._pools.on_rule_delete(name), others=True)

    def set_unknown(self, reason: str) -> None:
        """Nothing is known of devices any more, for this reason, or it is again (empty)."""
        if reason != self.unknown:
            self.unknown = reason
            for uid in tuple(self._asks):
                self._look_again(self._pods[uid])
