"""The watches that keep the mirror: what is watched, in which order, and whether it can be relied on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from slacktide.kube.client.http import Connection
from slacktide.kube.client.kinds import Identity, Kind, Malformed
from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.client.reflector import WATCH_SECONDS, Handler, Reflector
from slacktide.kube.client.turns import Gate
from slacktide.kube.mirror.barrier import ObjectHandler, reference
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.lightening import Lightening
from slacktide.kube.mirror.pod_groups import SOURCES
from slacktide.kube.resources import objects
from slacktide.kube.resources.node_latency import NODE_LATENCY
from slacktide.kube.resources.objects import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Pod,
    ReplicaSet,
    StatefulSet,
)
from slacktide.kube.translate.owners import cannot_make, is_finished, suspended

LOG = logging.getLogger(__name__)

ESSENTIAL: frozenset[Kind[Any]] = frozenset({
    objects.POD, objects.NODE, objects.NAMESPACE,
    objects.DEPLOYMENT, objects.REPLICA_SET, objects.STATEFUL_SET, objects.JOB,
})  # fmt: skip
"""Kinds without which nothing can be decided, as that would harm somebody: pods would get room that is taken, nodes
that are gone, neighbours whom their rules forbid (namespaces are selected by labels); and who may be preempted follows
from ledgers, which follow from controllers. Of all other kinds what was said last does for a while: classes and budgets
(the API server checks each eviction), maintenance windows (which say when they begin and end), round-trip times (rows
grow stale by themselves), CronJobs (of a new one the pods wait)."""
VOLUMES: frozenset[Kind[Any]] = frozenset({
    objects.PERSISTENT_VOLUME, objects.PERSISTENT_VOLUME_CLAIM, objects.STORAGE_CLASS,
    objects.CSI_DRIVER, objects.CSI_STORAGE_CAPACITY, objects.CSI_NODE, objects.VOLUME_ATTACHMENT,
})  # fmt: skip
"""Kinds on which only pods with claims depend: these wait while one of them is dead."""
LATENCY_SECONDS = 10.0
"""So long is waited for round-trip times."""
TELLING_SECONDS = 0.005
BELIEVED = 2
"""So many answers in a row say that a kind is not there, or not for us: one may be of a server that has just begun."""


class GroupHandler(ObjectHandler[Any]):
    """The handler of a source of pod groups, which says when all of them are known."""

    def __init__(self, mirror: ClusterMirror, source: str) -> None:
        groups = mirror.pod_groups
        self._groups, self._source = groups, source
        super().__init__(
            SOURCES[source],
            mirror.barrier,
            lambda found: groups.see(source, found),
            lambda one: groups.drop(source, one.namespace, one.name),
        )

    def replaced(self, objects: Sequence[Any]) -> None:
        super().replaced(objects)
        self._groups.listed(self._source)


class PodHandler(ObjectHandler[Pod]):
    """The handler of pods. One that cannot be used waits with that as its reason, or takes its room and nothing
    else."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror
        super().__init__(objects.POD, mirror.barrier, mirror.on_pod_update, lambda one: mirror.on_pod_delete(one, None))

    def changed(self, pod: Pod) -> None:
        metadata = pod.metadata
        identity = Identity(metadata.namespace, metadata.name, metadata.uid, "")
        if not self._pass(identity, lambda: self.see(pod)):
            with self._barrier.around(reference(self.kind, identity)):
                self._mirror.set_pod_aside(identity)

    def deleted(self, identity: Identity, last: Pod | None) -> None:
        self._pass(identity, lambda: self._mirror.on_pod_delete(identity, last))

    def malformed(self, problem: Malformed) -> None:
        super().malformed(problem)
        with self._barrier.around(reference(self.kind, problem.identity)):
            self._mirror.on_malformed_pod_update(problem)


def subscriptions(mirror: ClusterMirror) -> list[tuple[Kind[Any], Handler[Any]]]:
    """What to watch, and who is told; pods come last, so that a first list of them finds what they depend on."""

    def watched(
        kind: Kind[Any], see: Callable[[Any], None], drop: Callable[[Identity], None]
    ) -> tuple[Kind[Any], Handler[Any]]:
        return kind, ObjectHandler(kind, mirror.barrier, see, drop)

    def replicas(found: Deployment | ReplicaSet | StatefulSet) -> None:
        wanted, fails = found.spec.replicas, not isinstance(found, StatefulSet) and cannot_make(found)
        kind, wanted = type(found).__name__, 1 if wanted is None else wanted
        if mirror.default_spread.used and not isinstance(found, Deployment):
            mirror.see_selector(found.metadata.uid, found.spec.selector)
        mirror.on_controller_update(found, "apps/v1", kind, wanted, fails=fails, template=found.spec.template)

    def job(found: Job) -> None:
        finished, template = is_finished(found), found.spec.template
        mirror.on_controller_update(
            found, "batch/v1", "Job", -1, finished, suspended=suspended(found), template=template
        )

    def cron_job(found: CronJob) -> None:
        template = found.spec.job_template.spec.template
        mirror.on_controller_update(found, "batch/v1", "CronJob", -1, template=template)

    def daemon_set(found: DaemonSet) -> None:
        wanted, template = found.status.desired_number_scheduled, found.spec.template
        mirror.on_controller_update(found, "apps/v1", "DaemonSet", wanted, template=template)

    def controller_gone(identity: Identity) -> None:
        mirror.on_controller_delete(identity.uid)

    volumes = mirror.volumes
    spread = [
        watched(
            objects.SERVICE, mirror.on_service_update, lambda one: mirror.on_service_delete(one.namespace, one.name)
        ),
        watched(
            objects.REPLICATION_CONTROLLER,
            lambda one: mirror.see_selector(one.metadata.uid, LabelSelector(one.spec.selector)),
            lambda one: mirror.default_spread.on_controller_delete(one.uid),
        ),
    ]
    return [
        *(spread if mirror.default_spread.used else []),
        *([watched(objects.DAEMON_SET, daemon_set, controller_gone)] if mirror.counts_daemon_sets else []),
        watched(objects.NAMESPACE, mirror.on_namespace_update, lambda one: mirror.on_namespace_delete(one.name)),
        watched(objects.SERVICE_CLASS, mirror.on_class_update, lambda one: mirror.on_class_delete(one.name)),
        watched(objects.NODE, mirror.on_node_update, lambda one: mirror.on_node_delete(one.name)),
        watched(
            objects.POD_DISRUPTION_BUDGET,
            mirror.on_budget_update,
            lambda one: mirror.on_budget_delete(one.namespace, one.name),
        ),
        watched(objects.DEPLOYMENT, replicas, controller_gone),
        watched(objects.REPLICA_SET, replicas, controller_gone),
        watched(objects.STATEFUL_SET, replicas, controller_gone),
        watched(objects.JOB, job, controller_gone),
        watched(objects.CRON_JOB, cron_job, controller_gone),
        watched(objects.PERSISTENT_VOLUME, volumes.on_volume_update, lambda one: volumes.on_volume_delete(one.name)),
        watched(
            objects.PERSISTENT_VOLUME_CLAIM,
            volumes.on_claim_update,
            lambda one: volumes.on_claim_delete(one.namespace, one.name),
        ),
        watched(objects.STORAGE_CLASS, volumes.on_class_update, lambda one: volumes.storage.on_class_delete(one.name)),
        watched(objects.CSI_DRIVER, volumes.on_driver_update, lambda one: volumes.on_driver_delete(one.name)),
        watched(
            objects.CSI_STORAGE_CAPACITY,
            volumes.on_capacity_update,
            lambda one: volumes.on_capacity_delete(one.namespace, one.name),
        ),
        watched(objects.CSI_NODE, volumes.on_csi_node_update, lambda one: volumes.on_csi_node_delete(one.name)),
        watched(
            objects.VOLUME_ATTACHMENT, volumes.on_attachment_update, lambda one: volumes.on_attachment_delete(one.name)
        ),
        (objects.POD, PodHandler(mirror)),
    ]


def device_subscriptions(mirror: ClusterMirror) -> list[tuple[Kind[Any], Handler[Any]]]:
    """What to watch of dynamic resources, and who is told; claims come last, so that they find what they ask for."""
    devices = mirror.devices

    def watched(
        kind: Kind[Any], see: Callable[[Any], None], drop: Callable[[Identity], None]
    ) -> tuple[Kind[Any], Handler[Any]]:
        return kind, ObjectHandler(kind, mirror.barrier, see, drop)

    return [
        watched(DEVICE_CLASS, devices.on_class_update, lambda one: devices.on_class_delete(one.name)),
        watched(RESOURCE_SLICE, devices.on_slice_update, lambda one: devices.on_slice_delete(one.name)),
        watched(RESOURCE_CLAIM, devices.on_claim_update, lambda one: devices.on_claim_delete(one.namespace, one.name)),
    ]


def _taint_rules(connection: Connection, mirror: ClusterMirror, gate: Gate, seconds: float) -> Reflector[Any]:
    """Few API servers have them: they are not served unless somebody asks for it."""
    devices = mirror.devices
    handler = ObjectHandler(
        DEVICE_TAINT_RULE,
        mirror.barrier,
        devices.on_taint_rule_update,
        lambda one: devices.on_taint_rule_delete(one.name),
    )
    return Reflector(connection, DEVICE_TAINT_RULE, handler, gate=gate, watch_seconds=seconds, absent=lambda: None)


def _lightening() -> Callable[[Pod], Pod]:
    """Makes pods lighter; one with which that fails stays as it is."""
    lighten = Lightening()

    def lightened(pod: Pod) -> Pod:
        try:
            return lighten(pod)
        except Exception:
            LOG.exception("pod %s/%s: its copy is kept in full", pod.metadata.namespace, pod.metadata.name)
            return pod

    return lightened


class Watches:
    """All watches of a cluster; they tell ``mirror``, while ``gate`` is open."""

    def __init__(self, connection: Connection, mirror: ClusterMirror, seconds: float = WATCH_SECONDS) -> None:
        self.gate = Gate()
        self._storage_changed, self._storage = mirror.volumes.storage_changed, mirror.storage
        self._dead: tuple[str, ...] = ()

        def reflector(kind: Kind[Any], handler: Handler[Any]) -> Reflector[Any]:
            lighten = _lightening() if kind is objects.POD else None
            return Reflector(connection, kind, handler, gate=self.gate, watch_seconds=seconds, lighten=lighten)

        self.reflectors = [reflector(kind, handler) for kind, handler in subscriptions(mirror)]
        # Without them, as in a dry run on a cluster that has no such resources, nothing is declared, or bounded.
        barrier, maintenance = mirror.barrier, mirror.maintenance
        quotas = ObjectHandler(
            objects.PROMISE_QUOTA,
            barrier,
            mirror.on_quota_update,
            lambda one: mirror.on_quota_delete(one.namespace, one.name),
        )
        self._quotas = reflector(objects.PROMISE_QUOTA, quotas)
        windows = ObjectHandler(
            objects.MAINTENANCE_WINDOW, barrier, maintenance.see, lambda one: maintenance.drop(one.name)
        )
        self._windows = reflector(objects.MAINTENANCE_WINDOW, windows)
        self._device_mirror = mirror.devices
        self._devices = [reflector(kind, handler) for kind, handler in device_subscriptions(mirror)]
        self._taint_rules = _taint_rules(connection, mirror, self.gate, seconds)
        groups = mirror.pod_groups
        self._groups = [
            Reflector(
                *(connection, kind, GroupHandler(mirror, source)),
                gate=self.gate,
                watch_seconds=seconds,
                absent=partial(groups.absent, source),
            )
            for source, kind in SOURCES.items()
        ]
        self._latencies: list[Reflector[Any]] = []
        if mirror.network.watches:  # a score asks for round-trip times
            handler = ObjectHandler(NODE_LATENCY, barrier, mirror.network.on_row_update, mirror.network.on_row_delete)
            self._latencies.append(reflector(NODE_LATENCY, handler))

    def leave_out(self, kind: Kind[Any]) -> None:
        """Do not watch a kind; before anything runs."""
        self.reflectors = [one for one in self.reflectors if one.kind is not kind]

    @property
    def every(self) -> list[Reflector[Any]]:
        """All of them; those of ``reflectors`` must have told their first lists before anything is decided."""
        few = (self._windows, self._quotas, *self._groups, *self._devices, self._taint_rules)
        return [*self.reflectors, *few, *self._latencies]

    def by_name(self) -> dict[str, Reflector[Any]]:
        """Those of kinds that the API server serves, by their plural; of pod groups with their API group."""
        groups = {source: one for source, one in zip(SOURCES, self._groups, strict=True) if not one.is_absent}
        others = [one for one in self.every if one not in self._groups and not one.is_absent]
        return {one.kind.plural: one for one in others} | groups

    def running(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run until it is cancelled."""
        return [one.run() for one in self.every]

    async def first_lists(self) -> None:
        """Waits until every watch has told its first list.

        Without maintenance windows and quotas it goes on only where the API server says that it has none, or that they
        are not for us: else one bad moment at the start would leave promises without bounds.

        Round-trip times should be known from the first pass on. Where nobody can tell them for ten seconds, pods are
        placed without.
        """
        for one in self.reflectors:
            await one.synced.wait()
        few = ((self._windows, "maintenance windows"), (self._quotas, "promise quotas"))
        failures = [one.failures for one, _ in few]
        for (one, without), before in zip(few, failures, strict=True):
            while not one.synced.is_set() and (one.failures == before or one.refusals < BELIEVED):
                await asyncio.sleep(TELLING_SECONDS)
            if not one.synced.is_set():
                LOG.warning(
                    "%s are not used: %s cannot be listed (%s): apply the manifests of this version",
                    *(without, one.kind.plural, one.last_error),
                )
        for one in self._devices:  # an API server may be without them; pods with claims wait then
            while not one.synced.is_set() and not one.last_error:
                await asyncio.sleep(TELLING_SECONDS)
        for one in (*self._groups, self._taint_rules):  # of which the API server serves one or two as a rule, or none
            while not (one.synced.is_set() or one.is_absent or one.last_error):
                await asyncio.sleep(TELLING_SECONDS)
        self.look_for_dead()
        for one in self._latencies:
            try:
                async with asyncio.timeout(LATENCY_SECONDS):
                    await one.synced.wait()
            except TimeoutError:
                LOG.warning("round-trip times are not used: %s cannot be listed: %s", one.kind.plural, one.last_error)

    async def up_to_date(self) -> None:
        """Waits until all nodes and pods are known as they are at this instant, or later: of another leader's last
        bindings, and of a smaller node of the same name, a watch may tell only after its lease has ended."""
        asked = [one.renewed() for one in self.reflectors if one.kind in (objects.NODE, objects.POD)]
        await asyncio.gather(*asked)

    async def whole_lists(self) -> None:
        """Waits while a list is being told: half of one would show room that is taken."""
        several = (*self.reflectors, *self._devices, self._taint_rules, *self._groups)
        while any(one.telling for one in several):
            await asyncio.sleep(TELLING_SECONDS)

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list."""
        return all(one.synced.is_set() for one in self.reflectors)

    def stale(self) -> str:
        """A kind without which nothing can be decided and whose watch is dead, and why; or empty."""
        return next((_obituary(one) for one in self._essential() if one.is_dead()), "")

    def unfit(self) -> str:
        """Why this replica could not decide if it led now, or empty: also while a watch was never accepted."""
        never = (one for one in self._essential() if not one.accepted)
        return self.stale() or next((f"no watch of {one.kind.plural} yet" for one in never), "")

    def _essential(self) -> list[Reflector[Any]]:
        return [one for one in self.reflectors if one.kind in ESSENTIAL]

    def look_for_dead(self) -> None:
        """Says which watches are dead that were not before; pods with claims wait while those about claims are."""
        self._device_mirror.set_unknown(next((one for one in map(_unlisted, self._devices) if one), ""))
        dead = [one for one in self.every if one.is_dead() and one.synced.is_set()]
        names = tuple(one.kind.plural for one in dead)
        if names == self._dead:
            return
        for one in dead:
            if one.kind.plural not in self._dead:
                LOG.warning("%s", _obituary(one))
        self._dead = names
        found = next((_obituary(one) for one in dead if one.kind in VOLUMES), "")
        if found != self._storage.unknown:
            self._storage.unknown = found
            self._storage_changed()

    def away(self) -> float:
        """For how many seconds the watch of pods was away, while it catches up; else 0."""
        return self.reflectors[-1].away()  # pods come last


def _unlisted(one: Reflector[Any]) -> str:
    """Why nothing is known of a kind that an API server need not have; empty where it is."""
    if not one.synced.is_set():
        return f"{one.kind.plural} cannot be listed: {one.last_error or 'no answer yet'}"
    return _obituary(one) if one.is_dead() else ""


def _obituary(one: Reflector[Any]) -> str:
    return f"the watch of {one.kind.plural} has stopped: {one.last_error or f'nothing received for {one.age():.0f} s'}"
