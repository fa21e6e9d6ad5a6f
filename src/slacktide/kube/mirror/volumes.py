"""Claims, volumes and what drivers say of them, as the API server last described them, and the pods that use them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from slacktide.kube.indexes import one_less, take_out
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from slacktide.kube.translate.volumes import Handle, Storage, claim_name
from slacktide.model.hosts import ATTACHABLE

UNLIMITED = 2**31
"""What a node has of a driver that says no limit for it: more than anybody attaches."""

Amounts = tuple[tuple[str, int], ...]


def resource_of(driver: str) -> str:
    """The resource that a driver's volumes are, as Kubernetes once named it."""
    return f"{ATTACHABLE}{driver}"


class Attachments:
    """Limits of nodes, and who uses which volumes on them, kept by events."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._limits: dict[str, dict[str, int]] = {}
        self._limited: dict[str, int] = {}
        """Drivers that say a limit, and for how many nodes."""
        self._attached: dict[str, VolumeAttachment] = {}
        self._on_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._of_volume: dict[str, dict[str, str]] = {}
        """Nodes to which a volume is attached, by attachment."""
        self._used: dict[str, tuple[str, frozenset[Handle]]] = {}
        self._users: dict[str, dict[Handle, set[str]]] = {}

    # -- what is seen: each says whether limits or uses are others than before ----------------------------------------

    def on_node_update(self, found: CSINode) -> bool:
        """What drivers say of a node; whether the drivers that say any limit are others than before."""
        limits = {
            one.name: max(0, one.allocatable.count)
            for one in found.spec.drivers or ()
            if one.allocatable is not None and one.allocatable.count is not None
        }
        return self._limit(found.metadata.name, limits)

    def on_node_delete(self, name: str) -> bool:
        """Drivers say nothing of a node any more; as :meth:`on_node_update`."""
        return self._limit(name, {})

    def on_attachment_update(self, found: VolumeAttachment) -> str:
        """A volume is attached; the node that it concerns."""
        self.on_attachment_delete(found.metadata.name)
        self._attached[found.metadata.name] = found
        self._on_node.setdefault(found.spec.node_name, {})[found.metadata.name] = found
        self._of_volume.setdefault(_volume_of(found), {})[found.metadata.name] = found.spec.node_name
        return found.spec.node_name

    def on_attachment_delete(self, name: str) -> str:
        """A volume is attached no more; the node that it concerned, empty where none did."""
        found = self._attached.pop(name, None)
        if found is None:
            return ""
        node = found.spec.node_name
        take_out(self._on_node, node, name)
        take_out(self._of_volume, _volume_of(found), name)
        return node

    def nodes_of(self, volume: str) -> tuple[str, ...]:
        """The nodes to which a volume is attached."""
        return tuple(self._of_volume.get(volume, {}).values())

    def on_pod_update(self, pod: Pod) -> set[str]:
        """A pod is on a node, or its claims are others than before: the uids whose pods ask for something else now,
        among them its own where it used other volumes."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        handles = self._storage.handles(pod) if pod.spec.volumes else frozenset[Handle]()
        before = self._used.get(uid)
        if (before or ("", frozenset())) == (node if handles else "", handles):
            return set()
        concerned = self.on_pod_delete(uid)
        if handles:
            self._used[uid] = node, handles
            users = self._users.setdefault(node, {})
            for handle in handles:
                others = users.setdefault(handle, set())
                if len(others) == 1:
                    concerned |= others
                others.add(uid)
        return concerned | {uid}

    def on_pod_delete(self, uid: str) -> set[str]:
        """A pod is on no node any more: the uids of others whose pods ask for something else now."""
        node, handles = self._used.pop(uid, ("", frozenset[Handle]()))
        concerned: set[str] = set()
        for handle in handles:
            users = self._users[node][handle]
            users.discard(uid)
            if len(users) == 1:
                concerned |= users
            elif not users:
                del self._users[node][handle]
        if handles and not self._users[node]:
            del self._users[node]
        return concerned

    # -- what follows -------------------------------------------------------------------------------------------------

    @property
    def limited(self) -> bool:
        """Whether any driver says a limit."""
        return bool(self._limited)

    def node_of(self, uid: str) -> str:
        """The node on which a pod uses volumes; empty where on none."""
        return self._used.get(uid, ("", None))[0]

    def demand(self, pod: Pod) -> Amounts:
        """What a pod asks for: its volumes, on a node those that it uses alone; sorted by resource."""
        if not self._limited or not pod.spec.volumes:
            return ()
        node, handles = self._used.get(pod.metadata.uid, ("", frozenset[Handle]()))
        if node:
            users = self._users[node]
            return self._counted(handle for handle in handles if len(users[handle]) == 1)
        return self.demand_elsewhere(pod)

    def demand_elsewhere(self, pod: Pod) -> Amounts:
        """What a pod would ask for on a node where nobody has its volumes; sorted by resource."""
        return self._counted(self._storage.handles(pod)) if self._limited and pod.spec.volumes else ()

    def amounts(self, node: str) -> Mapping[str, int]:
        """What pods of a node can take of each driver that says a limit for any node."""
        if not self._limited:
            return {}
        users, limits = self._users.get(node, {}), self._limits.get(node, {})
        leftover = set()
        for one in self._on_node.get(node, {}).values():
            volume = self._storage.volume(_volume_of(one))
            if volume is not None and volume.spec.csi is not None and one.spec.attacher:
                handle = one.spec.attacher, volume.spec.csi.volume_handle
                if handle not in users:
                    leftover.add(handle)
        shared = dict(self._counted(handle for handle, uids in users.items() if len(uids) > 1))
        alone = dict(self._counted(handle for handle, uids in users.items() if len(uids) == 1))
        still = dict(self._counted(leftover))
        found = {}
        for driver in sorted(self._limited):
            name = resource_of(driver)
            least, most = alone.get(name, 0), limits.get(driver, UNLIMITED) - shared.get(name, 0)
            # What is about to be detached takes no more than is left: a node that is full of volumes, also of those
            # that nobody uses any more, still takes pods without volumes.
            found[name] = most - min(still.get(name, 0), max(0, most - least))
        return found

    def _counted(self, handles: Iterable[Handle]) -> Amounts:
        counts: dict[str, int] = {}
        for driver, _ in handles:
            if driver in self._limited:
                name = resource_of(driver)
                counts[name] = counts.get(name, 0) + 1
        return tuple(sorted(counts.items()))

    def _limit(self, node: str, limits: dict[str, int]) -> bool:
        known = set(self._limited)
        for driver in self._limits.pop(node, {}):
            one_less(self._limited, driver)
        if limits:
            self._limits[node] = limits
        for driver in limits:
            self._limited[driver] = self._limited.get(driver, 0) + 1
        return known != set(self._limited)


def _volume_of(found: VolumeAttachment) -> str:
    return found.spec.source.persistent_volume_name or ""


class VolumeMirror:
    """A part of the mirror: ``pods`` and ``followers`` are the mirror's.

    ``learn`` is told of a pod whose claims are others than before, ``look_again`` of one that waits and may be placed
    now, ``view_node`` of a node to which others than before can be attached (empty: of all).
    """

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        followers: Changes,
        learn: Callable[[PodRecord], None],
        look_again: Callable[[PodRecord], None],
        view_node: Callable[[str], None],
    ) -> None:
        self._pods, self._followers = pods, followers
        self._learn, self._look_again, self._view_node = learn, look_again, view_node
        self.storage = Storage()
        self.attachments = Attachments(self.storage)
        self._claimants: dict[tuple[str, str], dict[str, None]] = {}
        """Pods by the namespaces and names of their claims."""

    # -- pods ------------------------------------------------------------------------------------------------------

    def on_pod_update(self, pod: Pod) -> None:
        """A pod has these claims; it may have been malformed when it was first seen."""
        for volume in pod.spec.volumes:
            if name := claim_name(pod, volume):
                self._claimants.setdefault((pod.metadata.namespace, name), {})[pod.metadata.uid] = None

    def pod_is_gone(self, pod: Pod) -> None:
        """A pod is no more."""
        for volume in pod.spec.volumes:
            take_out(self._claimants, (pod.metadata.namespace, claim_name(pod, volume)), pod.metadata.uid)

    def attach(self, record: PodRecord) -> None:
        """A pod on a node uses its volumes there, until it has ended."""
        if record.is_final:
            self.detach(record)
        elif record.pod.spec.node_name:
            self._uses_changed(record.pod.spec.node_name, self.attachments.on_pod_update(record.pod))

    def detach(self, record: PodRecord) -> None:
        """A pod uses no volumes any more."""
        node = self.attachments.node_of(record.uid)
        if node:
            self._uses_changed(node, self.attachments.on_pod_delete(record.uid))

    def _uses_changed(self, node: str, uids: set[str]) -> None:
        if self.attachments.limited:
            self._view_node(node)
            if uids:
                self._followers.constraints(sorted(uids))

    # -- claims and volumes ----------------------------------------------------------------------------------------

    def on_claim_update(self, found: PersistentVolumeClaim) -> None:
        """A PersistentVolumeClaim, new or changed."""
        self.storage.on_claim_update(found)
        self._claim_changed(found.metadata.namespace, found.metadata.name)
        self.storage_changed()

    def on_claim_delete(self, namespace: str, name: str) -> None:
        """A PersistentVolumeClaim is gone."""
        self.storage.on_claim_delete(namespace, name)
        self._claim_changed(namespace, name)

    def on_volume_update(self, found: PersistentVolume) -> None:
        """A PersistentVolume, new or changed."""
        self.storage.on_volume_update(found)
        self._volume_changed(found)
        self.storage_changed()

    def on_volume_delete(self, name: str) -> None:
        """A PersistentVolume is gone."""
        found = self.storage.volume(name)
        self.storage.on_volume_delete(name)
        if found is not None:
            self._volume_changed(found)

    def _volume_changed(self, volume: PersistentVolume) -> None:
        for node in self.attachments.nodes_of(volume.metadata.name):
            self._view_node(node)
        if volume.spec.claim_ref is not None:
            self._claim_changed(volume.spec.claim_ref.namespace, volume.spec.claim_ref.name)

    def _claim_changed(self, namespace: str, name: str) -> None:
        """Whether only one pod at a time may use a claim, and which volume is behind it, concerns all pods that have
        it, also those that run."""
        for uid in self._claimants.get((namespace, name), ()):
            record = self._pods[uid]
            if not record.is_final:
                self._learn(record)
                self.attach(record)

    def storage_changed(self) -> None:
        """Pods with volumes that wait may find them usable now."""
        waiting = dict.fromkeys(uid for uids in self._claimants.values() for uid in uids)
        for record in [self._pods[uid] for uid in waiting]:
            if record.ours and not record.pod.spec.node_name:
                self._look_again(record)

    def on_class_update(self, found: StorageClass) -> None:
        """A storage class, new or changed."""
        self.storage.on_class_update(found)
        self.storage_changed()

    # -- what drivers say ------------------------------------------------------------------------------------------

    def on_driver_update(self, found: CSIDriver) -> None:
        """A CSIDriver, new or changed."""
        self.storage.capacities.on_driver_update(found)
        self._capacities_changed()

    def on_driver_delete(self, name: str) -> None:
        """A CSIDriver is gone."""
        self.storage.capacities.on_driver_delete(name)
        self._capacities_changed()

    def on_capacity_update(self, found: CSIStorageCapacity) -> None:
        """A CSIStorageCapacity, new or changed."""
        if self.storage.capacities.see(found):
            self._capacities_changed()

    def on_capacity_delete(self, namespace: str, name: str) -> None:
        """A CSIStorageCapacity is gone."""
        self.storage.capacities.drop(namespace, name)
        self._capacities_changed()

    def _capacities_changed(self) -> None:
        self.storage.reconsider()
        self.storage_changed()

    def on_csi_node_update(self, found: CSINode) -> None:
        """A CSINode, new or changed."""
        self._limits_changed(found.metadata.name, others=self.attachments.on_node_update(found))

    def on_csi_node_delete(self, name: str) -> None:
        """A CSINode is gone."""
        self._limits_changed(name, others=self.attachments.on_node_delete(name))

    def _limits_changed(self, node: str, *, others: bool) -> None:
        """A node's limits are others; ``others``: drivers have limits that had none, or the other way round. Then all
        nodes have other amounts, and all pods with claims ask for others."""
        self._view_node("" if others else node)
        if others:
            uids = dict.fromkeys(uid for uids in self._claimants.values() for uid in uids)
            self._followers.constraints(tuple(uids))

    def on_attachment_update(self, found: VolumeAttachment) -> None:
        """A VolumeAttachment, new or changed."""
        self._view_node(self.attachments.on_attachment_update(found))

    def on_attachment_delete(self, name: str) -> None:
        """A VolumeAttachment is gone."""
        if node := self.attachments.on_attachment_delete(name):
            self._view_node(node)
