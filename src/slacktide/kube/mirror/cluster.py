"""The cluster as the API server last described it: pods, and all that they depend on.

Nothing here decides, waits or sends. Whoever follows the mirror hears what changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from slacktide.config import Config
from slacktide.kube.client.kinds import HasMetadata, Identity, Malformed
from slacktide.kube.mirror.barrier import Barrier, Changes, Followers
from slacktide.kube.mirror.devices import DeviceMirror
from slacktide.kube.mirror.network import NetworkMirror
from slacktide.kube.mirror.pod_record import FINAL, Departures, End, PendingResizes, PodRecord, unread
from slacktide.kube.mirror.volumes import VolumeMirror
from slacktide.kube.resources.custom_resources import PromiseQuota, ServiceClass
from slacktide.kube.resources.objects import LabelSelector, Namespace, Node, Pod, PodDisruptionBudget, Service, Template
from slacktide.kube.translate.causes import Setting, end_of
from slacktide.kube.translate.disruption_budgets import Budgets, Maintenance, Quotas
from slacktide.kube.translate.nodes import NodeView, Ownership, view_of
from slacktide.kube.translate.owners import Owners, Target, Watched, controlling
from slacktide.kube.translate.pod_constraints import ConstraintIndex
from slacktide.kube.translate.pod_groups import Groups
from slacktide.kube.translate.profiles import DefaultSpread, profiles_of
from slacktide.kube.translate.service_classes import Classes, default_of
from slacktide.model.causes import OPERATOR

LOG = logging.getLogger(__name__)


class ClusterMirror:
    """Objects as they were last seen. ``clock`` gives seconds since 1970.

    Raises :class:`ConfigError` or :class:`InputError` where settings of ``kube`` or a network file cannot be used.
    """

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        kube = config.kube
        self._clock = clock
        self._profiles = profiles_of(kube)
        self._ownership = Ownership(kube.node_label, kube.node_taint, kube.all_nodes)
        self._followers: list[Changes] = []
        self._told = Followers(self._followers)
        self.barrier = Barrier()
        self.pods: dict[str, PodRecord] = {}
        self.uids: dict[tuple[str, str], str] = {}
        """Of pods, by namespace and name."""
        self.departures = Departures(self._end_of)
        self.nodes: dict[str, NodeView] = {}
        self.owners = Owners()
        self.classes = Classes(kube.priority_classes or "", kube.startup_allowance, kube.critical_namespaces or "")
        self.budgets = Budgets(kube.disruption_budgets == "best-effort")
        self._plain_nodes: dict[str, NodeView] = {}
        """Nodes without what can be attached to them, and without devices."""
        self.volumes = VolumeMirror(self.pods, self._told, self._learn, self._tell_pod, self._view_nodes)
        self.storage, self.attachments = self.volumes.storage, self.volumes.attachments
        self.devices = DeviceMirror(self.pods, self._told, self._tell_pod, self._view_nodes)
        self.maintenance = Maintenance()
        self.quotas = Quotas()
        self.pod_groups = Groups(self._told.pod_groups)
        added = {name: profile.added for name, profile in self._profiles.items()}
        self.constraints = ConstraintIndex(added)
        self.default_spread = DefaultSpread({name: profile.spread for name, profile in self._profiles.items()})
        self.network = NetworkMirror(config, self._told)
        self.counts_daemon_sets = kube.daemon_sets == "services"
        self.resizes = PendingResizes()

    def follow(self, follower: Changes) -> None:
        """Tell ``follower`` of all changes from now on, after those who follow already."""
        self._followers.append(self.barrier.follower(follower))

    # -- pods ------------------------------------------------------------------------------------------------------

    def on_pod_update(self, pod: Pod) -> None:
        """A pod, new or changed."""
        uid = pod.metadata.uid
        record = self.pods.get(uid)
        ours = pod.spec.scheduler_name in self._profiles
        if not ours and pod.status.phase in FINAL:
            # It takes no room any more, and no ledger asks how it ended.
            self.on_pod_delete(Identity(pod.metadata.namespace, pod.metadata.name, uid, ""), pod)
            return
        if record is None:
            record = self.pods[uid] = PodRecord(pod, ours, self._clock())
            self.uids[record.namespaced_name] = uid
        else:
            stayed = record.pod.metadata.deletion_timestamp is None
            record.update(pod, self._clock())
            if stayed and pod.metadata.deletion_timestamp is not None and not self._followers:
                self.departures.told(record)
        self.volumes.on_pod_update(pod)
        self.resizes.see(record, self._clock())
        self.volumes.attach(record)
        self.devices.on_pod_update(record)
        self._tell_pod(record)

    def on_pod_delete(self, identity: Identity, last: Pod | None) -> None:
        """A pod is no more; ``last`` is how it was then, where that was seen."""
        record = self.pods.pop(identity.uid, None)
        self.resizes.drop(identity.uid)
        self.departures.forget(identity.uid)
        if self.uids.get(identity.key) == identity.uid:
            del self.uids[identity.key]
        if record is None:
            return
        self.volumes.pod_is_gone(record.pod)
        self.devices.pod_is_gone(record.pod)
        if last is not None:
            record.pod = last
            if not self._followers:
                self.departures.gone(record, self._clock())
        succeeded = last is not None and last.status.phase == "Succeeded"
        self._told.pod_gone(record, succeeded)
        self.constraints.forget(record.pod)
        self.volumes.detach(record)

    def _end_of(self, pod: Pod) -> End:
        """Whose doing it is that a pod ends, as far as it and its node say."""
        if self.owners.is_suspended(pod.metadata):
            return End(OPERATOR)
        node = self.nodes.get(pod.spec.node_name)
        is_open = node is not None and node.ready and not node.is_cordoned
        attributes = {} if node is None else node.attributes
        until = 0.0 if is_open else self.maintenance.until(attributes, self._clock())
        cause = end_of(pod, is_open=is_open, ours=False, setting=Setting(node, until > 0.0, bound=0.0))
        return End(cause, until if cause == OPERATOR else 0.0)

    def on_malformed_pod_update(self, problem: Malformed) -> None:
        """A pod that waits goes on waiting, with this reason; of one that runs, what was known stays."""
        record = self.pods.get(problem.uid)
        if record is None:
            if problem.scheduler not in self._profiles or problem.node or not problem.uid:
                return
            record = self.pods[problem.uid] = unread(problem, self._clock())
            self.uids[record.namespaced_name] = problem.uid
        record.malformed = f"the pod is malformed: {problem.problem}"
        self._tell_pod(record)

    def set_pod_aside(self, identity: Identity) -> None:
        """A pod that could be read cannot be used: what depends on it hears of it as of one that is malformed."""
        record, found = self.pods.get(identity.uid), self.barrier.of_pod(identity)
        if record is not None and found is not None:
            record.malformed = f"the pod is invalid: {found.problem}"
            self._told.pod(record)

    def _tell_pod(self, record: PodRecord) -> None:
        if not record.is_final:
            self._learn(record, by="" if record.pod.spec.node_name else record.uid)
        self._told.pod(record)
        if record.is_final:
            self.constraints.forget(record.pod)

    def _learn(self, record: PodRecord, by: str = "") -> None:
        """What a pod asks of its neighbours; others' pods have none before they are on a node."""
        pod = self.default_spread.applied(record.pod) if record.ours else record.pod
        if (record.ours or pod.spec.node_name) and self.constraints.learn(pod, self.storage.exclusive(pod)):
            self._tell_constraints(by=by)

    def _tell_constraints(self, *, by: str = "", at_once: bool = False) -> None:
        """Pods whose constraints changed through others' terms."""
        self._told.constraints(self.constraints.outdated(), by=by, at_once=at_once)

    # -- nodes -----------------------------------------------------------------------------------------------------

    def on_node_update(self, node: Node) -> None:
        """A node, new or changed."""
        view = view_of(node, self._ownership)
        self.network.on_node_update(node)
        before = self.nodes.get(view.name)
        if before is not None and before.ready_since >= view.ready_since:
            # It says no new instant of its change, or none at all: what was known, or what is seen now.
            since = before.ready_since if before.ready == view.ready else self._clock()
            view = replace(view, ready_since=since)
        if view.problem and (before is None or before.problem != view.problem):
            LOG.warning("%s", view.problem)
        self._plain_nodes[view.name] = view
        self._view_nodes(view.name)

    def _view_nodes(self, name: str) -> None:
        """What can be attached to a node, or to any where none is named, may have changed, or its free devices."""
        for one in (name,) if name else tuple(self._plain_nodes):
            self._view_node(one)
        self.devices.look_for_hopeless()

    def _view_node(self, name: str) -> None:
        """What a node is like, what can be attached to it or which devices are free may have changed."""
        plain, before = self._plain_nodes.get(name), self.nodes.get(name)
        if plain is None:
            return
        further = {**self.attachments.amounts(name), **self.devices.amounts(plain)}
        view = replace(plain, amounts={**plain.amounts, **further}) if further else plain
        if marks := self.devices.marks(name):
            view = replace(view, attributes={**view.attributes, **marks})
        if before == view:
            return
        self.nodes[name] = view
        self.departures.look_again(name)
        concerns_pods = self.constraints.on_node_update(before, view)
        if (() if before is None else before.soft_taints) != view.soft_taints:
            soft = (taint for one in self.nodes.values() for taint in one.soft_taints)
            concerns_pods |= self.constraints.see_soft_taints(soft)
        if concerns_pods:
            self._tell_constraints(at_once=True)
        self._told.node(view, before)

    def on_node_delete(self, name: str) -> None:
        """A node is gone."""
        before = self.nodes.pop(name, None)
        self._plain_nodes.pop(name, None)
        self.devices.on_node_delete(name)
        self.network.on_node_delete(name)
        if self.constraints.on_node_update(before, None):
            self._tell_constraints(at_once=True)
        self._told.node_gone(name)

    def is_ours(self, node: str) -> bool:
        """Whether a node was given to us."""
        view = self.nodes.get(node)
        return view is not None and view.ours

    # -- controllers -----------------------------------------------------------------------------------------------

    def on_controller_update(
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
        watched = Watched(target, owner, desired, finished, suspended, fails, template, metadata.creation_timestamp)
        self.owners.watched[metadata.uid] = watched
        ends = finished or suspended > 0
        top = self.owners.target_of(metadata) if ends and owner is not None else None
        if owner is None:
            self._told.replicas(target, desired, finished)
            if before is None or (before.suspended, before.fails) != (suspended, fails):
                self._told.controller_state(target, suspended, fails)
        elif top is not None:
            self._told.replicas(top, -1, ends)
        self._told.owner_known(metadata.uid)
        if before is not None and before.template != template:
            self._told.template(metadata.uid)

    def on_controller_delete(self, uid: str) -> None:
        """A controller object is gone."""
        watched = self.owners.watched.pop(uid, None)
        self.default_spread.on_controller_delete(uid)
        if watched is not None:
            self._told.controller_gone(watched.target)

    def see_selector(self, uid: str, selector: LabelSelector | None) -> None:
        """Whom a controller selects."""
        if selector is not None and self.default_spread.on_controller_update(uid, selector):
            owned = (one for one in self.pods.values() if _is_owned(one, uid))
            self._learn_anew(owned)

    def on_service_update(self, found: Service) -> None:
        """A Service, new or changed."""
        if self.default_spread.on_service_update(found):
            self._learn_namespace(found.metadata.namespace)

    def on_service_delete(self, namespace: str, name: str) -> None:
        """A Service is gone."""
        self.default_spread.on_service_delete(namespace, name)
        self._learn_namespace(namespace)

    def _learn_namespace(self, namespace: str) -> None:
        self._learn_anew(one for one in self.pods.values() if one.pod.metadata.namespace == namespace)

    def _learn_anew(self, records: Iterable[PodRecord]) -> None:
        """Pods ask for another spread than before."""
        concerned = [one for one in records if one.ours and not one.is_final]
        for one in concerned:
            self._learn(one)
        if concerned:
            self._told.constraints([one.uid for one in concerned])

    # -- classes and namespaces ------------------------------------------------------------------------------------

    def on_class_update(self, found: ServiceClass) -> None:
        """A service class, new or changed."""
        self.classes.see(found)
        self._told.classes([found.metadata.name], "")

    def on_class_delete(self, name: str) -> None:
        """A service class is gone."""
        self.classes.drop(name)
        self._told.classes([name], "")

    def on_quota_update(self, found: PromiseQuota) -> None:
        """A promise quota, new or changed."""
        if self.quotas.see(found):  # else only its status was written
            self._told.quotas(found.metadata.namespace)

    def on_quota_delete(self, namespace: str, name: str) -> None:
        """A promise quota is gone."""
        self.quotas.drop(namespace, name)
        self._told.quotas(namespace)

    def on_namespace_update(self, found: Namespace) -> None:
        """A namespace, new or changed."""
        name = found.metadata.name
        before = self.classes.namespaces.get(name)
        self.classes.namespaces[name] = found
        if self.constraints.on_namespace_update(name, found.metadata.labels):
            self._tell_constraints(at_once=True)
        if default_of(before) != default_of(found):
            self._told.classes((), name)

    def on_namespace_delete(self, name: str) -> None:
        """A namespace is gone."""
        self.classes.namespaces.pop(name, None)
        if self.constraints.on_namespace_update(name, None):
            self._tell_constraints(at_once=True)

    # -- budgets -------------------------------------------------------------------------------------------------

    def on_budget_update(self, found: PodDisruptionBudget) -> None:
        """A PodDisruptionBudget, new or changed."""
        namespace = found.metadata.namespace
        others = self.budgets.see(found)
        self._told.budget(f"{namespace}/{found.metadata.name}", self.budgets.left(found))
        if others:
            self._told.budgets_cover(namespace)

    def on_budget_delete(self, namespace: str, name: str) -> None:
        """A PodDisruptionBudget is gone."""
        self.budgets.drop(namespace, name)
        self._told.budgets_cover(namespace)
        self._told.budget_gone(f"{namespace}/{name}")


def _is_owned(record: PodRecord, uid: str) -> bool:
    owner = controlling(record.pod.metadata)
    return owner is not None and owner.uid == uid
