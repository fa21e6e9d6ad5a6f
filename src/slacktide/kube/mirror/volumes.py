"""Claims, volumes and what drivers say of them, as the API server last described them, and the pods that use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slacktide.kube.mirror.attachments import Attachments
from slacktide.kube.mirror.changes import Changes
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
from slacktide.kube.translate.volumes import Storage, claim_name


class VolumeMirror:
    """A part of the mirror: ``pods`` and ``followers`` are the mirror's.

    ``learn`` is told of a pod whose claims are others than before, ``look_again`` of one that waits and may be placed
    now, ``view_node`` of a node to which others than before can be attached (empty: of all).
    """

    def __init__(
        self,
        pods: Mapping[str, PodRecord],
        followers: list[Changes],
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
            key = pod.metadata.namespace, claim_name(pod, volume)
            users = self._claimants.get(key, {})
            users.pop(pod.metadata.uid, None)
            if not users:
                self._claimants.pop(key, None)

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
                for one in self._followers:
                    one.constraints(sorted(uids))

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
            for one in self._followers:
                one.constraints(tuple(uids))

    def on_attachment_update(self, found: VolumeAttachment) -> None:
        """A VolumeAttachment, new or changed."""
        self._view_node(self.attachments.on_attachment_update(found))

    def on_attachment_delete(self, name: str) -> None:
        """A VolumeAttachment is gone."""
        if node := self.attachments.on_attachment_delete(name):
            self._view_node(node)
