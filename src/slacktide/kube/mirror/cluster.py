"""The cluster as the API server last described it: pods, and all that they depend on.

Nothing here decides, waits or sends. Whoever follows the mirror hears what changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from slacktide.config import Config
from slacktide.kube.client.kinds import HasMetadata, Identity, Malformed
from slacktide.kube.mirror.attachments import Attachments
from slacktide.kube.mirror.changes import Changes
from slacktide.kube.mirror.network import NetworkMirror
from slacktide.kube.mirror.pending_resizes import PendingResizes
from slacktide.kube.mirror.pod_record import PodRecord, unread
from slacktide.kube.resources.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ServiceClass,
    VolumeAttachment,
)
from slacktide.kube.resources.workloads import Template
from slacktide.kube.translate.disruption_budgets import Budgets
from slacktide.kube.translate.maintenance import Maintenance
from slacktide.kube.translate.nodes import NodeView, Ownership, view_of
from slacktide.kube.translate.owners import Owners, Target, Watched, controlling
from slacktide.kube.translate.pod_constraints import ConstraintIndex
from slacktide.kube.translate.service_classes import Classes, default_of
from slacktide.kube.translate.volumes import Storage, claim_name

LOG = logging.getLogger(__name__)


class ClusterMirror:
    """Objects as they were last seen. ``clock`` gives seconds since 1970.

    Raises :class:`ConfigError` or :class:`InputError` where settings of ``kube`` or a network file cannot be used.
    """

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        kube = config.kube
        self._clock = clock
        self._scheduler_name = kube.scheduler_name
        self._ownership = Ownership(kube.node_label, kube.node_taint, kube.all_nodes)
        self._followers: list[Changes] = []
        self.pods: dict[str, PodRecord] = {}
        self.uids: dict[tuple[str, str], str] = {}
        """Of pods, by namespace and name."""
        self.nodes: dict[str, NodeView] = {}
        self.owners = Owners()
        self.classes = Classes(kube.priority_classes or "")
        self.budgets = Budgets(kube.disruption_budgets == "best-effort")
        self.storage = Storage()
        self.attachments = Attachments(self.storage)
        self._plain_nodes: dict[str, NodeView] = {}
        """Nodes without what can be attached to them."""
        self._claimants: dict[tuple[str, str], dict[str, None]] = {}
        """Pods by the namespaces and names of their claims."""
        self.maintenance = Maintenance()
        self.constraints = ConstraintIndex(kube.hard_pod_affinity_weight, kube.added_affinity or "")
        self.network = NetworkMirror(config, self._followers)
        self.resizes = PendingResizes()

    def follow(self, follower: Changes) -> None:
        """Tell ``follower`` of all changes from now on, after those who follow already."""
        self._followers.append(follower)

    # -- pods ------------------------------------------------------------------------------------------------------

    def see_pod(self, pod: Pod) -> None:
        """A pod, new or changed."""
        uid = pod.metadata.uid
        record = self.pods.get(uid)
        if record is None:
            record = self.pods[uid] = PodRecord(pod, pod.spec.scheduler_name == self._scheduler_name, self._clock())
            self.uids[record.namespaced_name] = uid
            for volume in pod.spec.volumes:
                if name := claim_name(pod, volume):
                    self._claimants.setdefault((pod.metadata.namespace, name), {})[uid] = None
        else:
            record.update(pod)
        self.resizes.see(record, self._clock())
        self._attach(record)
        self._tell_pod(record)

    def drop_pod(self, identity: Identity, last: Pod | None) -> None:
        """A pod is no more; ``last`` is how it was then, where that was seen."""
        record = self.pods.pop(identity.uid, None)
        self.resizes.drop(identity.uid)
        if self.uids.get(identity.key) == identity.uid:
            del self.uids[identity.key]
        if record is None:
            return
        self._forget_claims(record.pod)
        if last is not None:
            record.pod = last
        succeeded = last is not None and last.status.phase == "Succeeded"
        for one in self._followers:
            one.pod_gone(record, succeeded)
        self.constraints.forget(record.pod)
        self._detach(record)

    def see_malformed_pod(self, problem: Malformed) -> None:
        """A pod that waits goes on waiting, with this reason; of one that runs, what was known stays."""
        LOG.warning("pod %s/%s is malformed: %s", problem.namespace, problem.name, problem.problem)
        record = self.pods.get(problem.uid)
        if record is None:
            if problem.scheduler != self._scheduler_name or problem.node or not problem.uid:
                return
            record = self.pods[problem.uid] = unread(problem, self._clock())
            self.uids[record.namespaced_name] = problem.uid
        record.malformed = f"the pod is malformed: {problem.problem}"
        self._tell_pod(record)

    def _tell_pod(self, record: PodRecord) -> None:
        if not record.is_final:
            self._learn(record)
        for one in self._followers:
            one.pod(record)
        if record.is_final:
            self.constraints.forget(record.pod)

    def _learn(self, record: PodRecord) -> None:
        """What a pod asks of its neighbours; others' pods have none before they are on a node."""
        pod = record.pod
        if (record.ours or pod.spec.node_name) and self.constraints.learn(pod, self.storage.exclusive(pod)):
            self._tell_constraints()

    def _tell_constraints(self) -> None:
        """Pods whose constraints changed through others' terms."""
        uids = self.constraints.outdated()
        for one in self._followers:
            one.constraints(uids)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def see_node(self, node: Node) -> None:
        """A node, new or changed."""
        view = view_of(node, self._ownership)
        self.network.see_node(node)
        before = self.nodes.get(view.name)
        if before is not None and before.ready_since >= view.ready_since:
            # It says no new instant of its change, or none at all: what was known, or what is seen now.
            since = before.ready_since if before.ready == view.ready else self._clock()
            view = replace(view, ready_since=since)
        if view.problem and (before is None or before.problem != view.problem):
            LOG.warning("%s", view.problem)
        self._plain_nodes[view.name] = view
        self._view_node(view.name)

    def _view_node(self, name: str) -> None:
        """What a node is like, or what can be attached to it, may have changed."""
        plain, before = self._plain_nodes.get(name), self.nodes.get(name)
        if plain is None:
            return
        attachable = self.attachments.amounts(name)
        view = replace(plain, amounts={**plain.amounts, **attachable}) if attachable else plain
        if before == view:
            return
        self.nodes[name] = view
        concerns_pods = self.constraints.see_node(before, view)
        if (() if before is None else before.soft_taints) != view.soft_taints:
            soft = (taint for one in self.nodes.values() for taint in one.soft_taints)
            concerns_pods |= self.constraints.see_soft_taints(soft)
        if concerns_pods:
            self._tell_constraints()
        for one in self._followers:
            one.node(view, before)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        before = self.nodes.pop(name, None)
        self._plain_nodes.pop(name, None)
        self.network.drop_node(name)
        if self.constraints.see_node(before, None):
            self._tell_constraints()
        for one in self._followers:
            one.node_gone(name)

    def is_ours(self, node: str) -> bool:
        """Whether a node was given to us."""
        view = self.nodes.get(node)
        return view is not None and view.ours

    # -- controllers -----------------------------------------------------------------------------------------------

    def see_controller(
        self,
        found: HasMetadata,
        api_version: str,
        kind: str,
        desired: int,
        finished: bool = False,
        *,
        suspended: int = 0,
        fails: bool = False,
        template: Template | None = None,
    ) -> None:
        """A controller, new or changed; it wants ``desired`` pods (-1: not known).

        ``suspended``: so many of its instances are; ``fails``: it is not allowed to make its pods; ``template``: what
        it makes them from.
        """
        metadata = found.metadata
        target = Target(api_version, kind, metadata.namespace, metadata.name, metadata.uid)
        owner = controlling(metadata)
        before = self.owners.watched.get(metadata.uid)
        desired = 0 if suspended else desired
        watched = Watched(target, owner, desired, finished, suspended, fails, template)
        self.owners.watched[metadata.uid] = watched
        ends = finished or suspended > 0
        top = self.owners.target_of(metadata) if ends and owner is not None else None
        for one in self._followers:
            if owner is None:
                one.replicas(target, desired, finished)
                if before is None or (before.suspended, before.fails) != (suspended, fails):
                    one.controller_state(target, suspended, fails)
            elif top is not None:
                one.replicas(top, -1, ends)
            one.owner_known(metadata.uid)
            if before is not None and before.template != template:
                one.template(metadata.uid)

    def drop_controller(self, uid: str) -> None:
        """A controller object is gone."""
        watched = self.owners.watched.pop(uid, None)
        if watched is not None:
            for one in self._followers:
                one.controller_gone(watched.target)

    # -- classes and namespaces ------------------------------------------------------------------------------------

    def see_class(self, found: ServiceClass) -> None:
        """A service class, new or changed."""
        self.classes.see(found)
        self._tell_classes([found.metadata.name])

    def drop_class(self, name: str) -> None:
        """A service class is gone."""
        self.classes.drop(name)
        self._tell_classes([name])

    def see_namespace(self, found: Namespace) -> None:
        """A namespace, new or changed."""
        name = found.metadata.name
        before = self.classes.namespaces.get(name)
        self.classes.namespaces[name] = found
        if self.constraints.see_namespace(name, found.metadata.labels):
            self._tell_constraints()
        if default_of(before) != default_of(found):
            self._tell_classes(namespace=name)

    def drop_namespace(self, name: str) -> None:
        """A namespace is gone."""
        self.classes.namespaces.pop(name, None)
        if self.constraints.see_namespace(name, None):
            self._tell_constraints()

    def _tell_classes(self, names: Sequence[str] = (), namespace: str = "") -> None:
        for one in self._followers:
            one.classes(names, namespace)

    # -- budgets and storage ---------------------------------------------------------------------------------------

    def see_budget(self, found: PodDisruptionBudget) -> None:
        """A PodDisruptionBudget, new or changed."""
        namespace = found.metadata.namespace
        others = self.budgets.see(found)
        for one in self._followers:
            one.budget(f"{namespace}/{found.metadata.name}", self.budgets.left(found))
            if others:
                one.budgets_cover(namespace)

    def drop_budget(self, namespace: str, name: str) -> None:
        """A PodDisruptionBudget is gone."""
        self.budgets.drop(namespace, name)
        for one in self._followers:
            one.budgets_cover(namespace)
            one.budget_gone(f"{namespace}/{name}")

    def see_claim(self, found: PersistentVolumeClaim) -> None:
        """A PersistentVolumeClaim, new or changed."""
        self.storage.see_claim(found)
        self._claim_changed(found.metadata.namespace, found.metadata.name)
        self.storage_changed()

    def drop_claim(self, namespace: str, name: str) -> None:
        """A PersistentVolumeClaim is gone."""
        self.storage.drop_claim(namespace, name)
        self._claim_changed(namespace, name)

    def see_volume(self, found: PersistentVolume) -> None:
        """A PersistentVolume, new or changed."""
        self.storage.see_volume(found)
        self._volume_changed(found)
        self.storage_changed()

    def drop_volume(self, name: str) -> None:
        """A PersistentVolume is gone."""
        found = self.storage.volume(name)
        self.storage.drop_volume(name)
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
            record = self.pods[uid]
            if not record.is_final:
                self._learn(record)
                self._attach(record)

    def _forget_claims(self, pod: Pod) -> None:
        for volume in pod.spec.volumes:
            key = pod.metadata.namespace, claim_name(pod, volume)
            users = self._claimants.get(key, {})
            users.pop(pod.metadata.uid, None)
            if not users:
                self._claimants.pop(key, None)

    def storage_changed(self) -> None:
        """Pods with volumes that wait may find them usable now."""
        waiting = dict.fromkeys(uid for uids in self._claimants.values() for uid in uids)
        for record in [self.pods[uid] for uid in waiting]:
            if record.ours and not record.pod.spec.node_name:
                self._tell_pod(record)

    # -- what drivers say ------------------------------------------------------------------------------------------

    def see_driver(self, found: CSIDriver) -> None:
        """A CSIDriver, new or changed."""
        self.storage.capacities.see_driver(found)
        self._capacities_changed()

    def drop_driver(self, name: str) -> None:
        """A CSIDriver is gone."""
        self.storage.capacities.drop_driver(name)
        self._capacities_changed()

    def see_capacity(self, found: CSIStorageCapacity) -> None:
        """A CSIStorageCapacity, new or changed."""
        if self.storage.capacities.see(found):
            self._capacities_changed()

    def drop_capacity(self, namespace: str, name: str) -> None:
        """A CSIStorageCapacity is gone."""
        self.storage.capacities.drop(namespace, name)
        self._capacities_changed()

    def _capacities_changed(self) -> None:
        self.storage.reconsider()
        self.storage_changed()

    def see_csi_node(self, found: CSINode) -> None:
        """A CSINode, new or changed."""
        self._limits_changed(found.metadata.name, others=self.attachments.see_node(found))

    def drop_csi_node(self, name: str) -> None:
        """A CSINode is gone."""
        self._limits_changed(name, others=self.attachments.drop_node(name))

    def _limits_changed(self, node: str, *, others: bool) -> None:
        """A node's limits are others; ``others``: drivers have limits that had none, or the other way round. Then all
        nodes have other amounts, and all pods with claims ask for others."""
        for name in tuple(self._plain_nodes) if others else (node,):
            self._view_node(name)
        if others:
            uids = dict.fromkeys(uid for uids in self._claimants.values() for uid in uids)
            for one in self._followers:
                one.constraints(tuple(uids))

    def see_attachment(self, found: VolumeAttachment) -> None:
        """A VolumeAttachment, new or changed."""
        self._view_node(self.attachments.see_attachment(found))

    def drop_attachment(self, name: str) -> None:
        """A VolumeAttachment is gone."""
        self._view_node(self.attachments.drop_attachment(name))

    def _attach(self, record: PodRecord) -> None:
        """A pod on a node uses its volumes there."""
        if record.is_final:
            self._detach(record)
        elif record.pod.spec.node_name:
            self._uses_changed(record.pod.spec.node_name, self.attachments.see_pod(record.pod))

    def _detach(self, record: PodRecord) -> None:
        """A pod uses no volumes any more."""
        node = self.attachments.node_of(record.uid)
        if node:
            self._uses_changed(node, self.attachments.drop_pod(record.uid))

    def _uses_changed(self, node: str, uids: set[str]) -> None:
        if self.attachments.limited:
            self._view_node(node)
            if uids:
                for one in self._followers:
                    one.constraints(sorted(uids))
