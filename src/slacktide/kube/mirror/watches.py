"""The watches that keep the mirror: what is watched, in which order, and whether it can be relied on; and whether the
API server has the custom resources without which nothing can be promised, and no ledger be kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from slacktide.kube.client.http import FORBIDDEN, NOT_FOUND, ApiError, Connection, KubeError, Unreachable
from slacktide.kube.client.reflector import WATCH_SECONDS, Handler, Reflector
from slacktide.kube.client.turns import Gate
from slacktide.kube.mirror.barrier import ObjectHandler, reference
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import Lightening
from slacktide.kube.resources import objects
from slacktide.kube.resources.objects import AVAILABILITY, SERVICE_CLASS, Identity, Kind, LabelSelector, Malformed, Pod
from slacktide.kube.resources.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    Replicated,
    ReplicationController,
)
from slacktide.kube.translate.owners import cannot_make, is_finished, suspended
from slacktide.kube.translate.pod_groups import SOURCES

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


Row = tuple[Kind[Any], Callable[[Any], None], Callable[[Identity], None]]
"""A kind, who sees an object of it, new or changed, and who hears that one is gone."""


def _handled(mirror: ClusterMirror, rows: Iterable[Row]) -> list[tuple[Kind[Any], Handler[Any]]]:
    return [(kind, ObjectHandler(kind, mirror.barrier, see, drop)) for kind, see, drop in rows]


def _named(drop: Callable[[str], None]) -> Callable[[Identity], None]:
    return lambda one: drop(one.name)


def _placed(drop: Callable[[str, str], None]) -> Callable[[Identity], None]:
    return lambda one: drop(one.namespace, one.name)


def subscriptions(mirror: ClusterMirror) -> list[tuple[Kind[Any], Handler[Any]]]:
    """What to watch, and who is told; pods come last, so that a first list of them finds what they depend on."""

    def replicas(found: Replicated) -> None:
        wanted, fails = found.spec.replicas, isinstance(found, Deployment | ReplicaSet) and cannot_make(found)
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

    def gone(identity: Identity) -> None:
        mirror.on_controller_delete(identity.uid)

    def selects(found: ReplicationController) -> None:
        mirror.see_selector(found.metadata.uid, LabelSelector(found.spec.selector))

    volumes, spread = mirror.volumes, mirror.default_spread
    found: list[Row] = []
    if spread.used:
        found.append((objects.SERVICE, mirror.on_service_update, _placed(mirror.on_service_delete)))
        found.append((objects.REPLICATION_CONTROLLER, selects, lambda one: spread.on_controller_delete(one.uid)))
    if mirror.counts_daemon_sets:
        found.append((objects.DAEMON_SET, daemon_set, gone))
    found += [
        (objects.NAMESPACE, mirror.on_namespace_update, _named(mirror.on_namespace_delete)),
        (objects.SERVICE_CLASS, mirror.on_class_update, _named(mirror.on_class_delete)),
        (objects.NODE, mirror.on_node_update, _named(mirror.on_node_delete)),
        (objects.POD_DISRUPTION_BUDGET, mirror.on_budget_update, _placed(mirror.on_budget_delete)),
        (objects.DEPLOYMENT, replicas, gone),
        (objects.REPLICA_SET, replicas, gone),
        (objects.STATEFUL_SET, replicas, gone),
        (objects.JOB, job, gone),
        (objects.CRON_JOB, cron_job, gone),
        (objects.PERSISTENT_VOLUME, volumes.on_volume_update, _named(volumes.on_volume_delete)),
        (objects.PERSISTENT_VOLUME_CLAIM, volumes.on_claim_update, _placed(volumes.on_claim_delete)),
        (objects.STORAGE_CLASS, volumes.on_class_update, _named(volumes.storage.on_class_delete)),
        (objects.CSI_DRIVER, volumes.on_driver_update, _named(volumes.on_driver_delete)),
        (objects.CSI_STORAGE_CAPACITY, volumes.on_capacity_update, _placed(volumes.on_capacity_delete)),
        (objects.CSI_NODE, volumes.on_csi_node_update, _named(volumes.on_csi_node_delete)),
        (objects.VOLUME_ATTACHMENT, volumes.on_attachment_update, _named(volumes.on_attachment_delete)),
    ]
    return [*_handled(mirror, found), (objects.POD, PodHandler(mirror))]


def device_subscriptions(mirror: ClusterMirror) -> list[tuple[Kind[Any], Handler[Any]]]:
    """What to watch of dynamic resources, and who is told; claims come last, so that they find what they ask for."""
    devices = mirror.devices
    return _handled(mirror, [
        (objects.DEVICE_CLASS, devices.on_class_update, _named(devices.on_class_delete)),
        (objects.RESOURCE_SLICE, devices.on_slice_update, _named(devices.on_slice_delete)),
        (objects.RESOURCE_CLAIM, devices.on_claim_update, _placed(devices.on_claim_delete)),
    ])  # fmt: skip


def _further(mirror: ClusterMirror) -> list[tuple[Kind[Any], Handler[Any]]]:
    """Windows and quotas, without which, as in a dry run on a cluster that has no such resources, nothing is declared,
    or bounded; rules that taint devices, which few API servers serve; round-trip times."""
    devices, network = mirror.devices, mirror.network
    return _handled(mirror, [
        (objects.MAINTENANCE_WINDOW, mirror.maintenance.see, _named(mirror.maintenance.drop)),
        (objects.PROMISE_QUOTA, mirror.on_quota_update, _placed(mirror.on_quota_delete)),
        (objects.DEVICE_TAINT_RULE, devices.on_taint_rule_update, _named(devices.on_taint_rule_delete)),
        (objects.NODE_LATENCY, network.on_row_update, network.on_row_delete),
    ])  # fmt: skip


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

        def reflector(
            kind: Kind[Any], handler: Handler[Any], absent: Callable[[], None] | None = None
        ) -> Reflector[Any]:
            lighten = _lightening() if kind is objects.POD else None
            return Reflector(
                connection, kind, handler, gate=self.gate, watch_seconds=seconds, lighten=lighten, absent=absent
            )

        self.reflectors = [reflector(kind, handler) for kind, handler in subscriptions(mirror)]
        self._windows, self._quotas, self._taint_rules, latencies = (
            reflector(kind, handler, (lambda: None) if kind is objects.DEVICE_TAINT_RULE else None)
            for kind, handler in _further(mirror)
        )
        self._latencies = [latencies] if mirror.network.watches else []  # a score asks for round-trip times
        self._device_mirror = mirror.devices
        self._devices = [reflector(kind, handler) for kind, handler in device_subscriptions(mirror)]
        self._groups = [
            reflector(kind, GroupHandler(mirror, source), partial(mirror.pod_groups.absent, source))
            for source, kind in SOURCES.items()
        ]

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


NEEDED: dict[Kind[Any], str] = {SERVICE_CLASS: "00-serviceclasses.yaml", AVAILABILITY: "01-availabilities.yaml"}
"""By kind the manifest that defines it, in ``src/slacktide/kube/manifests``."""
POLICIES = ("class", "quota", "annotations", "default-class")
"""Admission policies of ``30-admission.yaml``, each with a binding of its name, by their names behind the release's."""
LOOKS_PASSED_OVER = 120
"""After the account was not allowed to look at them: about an hour, as an API server that begins allows nobody."""
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LOOK_AGAIN_SECONDS, MISSING_SECONDS = 30.0, 1.0
"""Between two looks: while all is there, and while something is missing."""


async def installed(connection: Connection) -> None:
    """Raises :class:`KubeError` saying what is to be applied, where something is missing."""
    if missing := await Installation(connection).look():
        raise KubeError(missing)


class Installation:
    """Looks now and then; ``missing`` says what is to be applied, and is empty while nothing is.

    ``policies_missing`` counts admission policies and bindings of ``release`` that are not there: ``None`` where nobody
    knows, as where the account may not look, which it may where the chart has them.
    """

    def __init__(self, connection: Connection, release: str = "") -> None:
        self.missing = ""
        self.policies_missing: int | None = None
        self._release = release
        self._passes_over = 0
        self._connection = connection

    async def run(self) -> None:
        """Looks until cancelled; what is missing is told when it begins to be."""
        while True:
            found = await self.look()
            if found and not self.missing:
                LOG.error("%s", found)
            elif self.missing and not found:
                LOG.info("the custom resource definitions are installed now")
            self.missing = found
            if self._release and not found:
                await self.look_for_policies()
            await asyncio.sleep(MISSING_SECONDS if found else LOOK_AGAIN_SECONDS)

    async def look(self) -> str:
        """What is missing now, and what to do; nothing where the API server does not say so."""
        gone = [kind for kind in NEEDED if await self._is_missing(kind.path())]
        if not gone:
            return ""
        names = " and no ".join(f"{kind.plural}.{kind.api_version.partition('/')[0]}" for kind in gone)
        files = ", ".join(NEEDED[kind] for kind in gone)
        return (
            f"the API server has no {names}: nothing is placed until they are there; "
            f"kubectl apply -f src/slacktide/kube/manifests ({files})"
        )

    async def look_for_policies(self) -> None:
        """Counts the admission policies that are missing; where that is not allowed, not again for a while."""
        if self._passes_over:
            self._passes_over -= 1
            return
        missing = 0
        for name in POLICIES:
            for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
                try:
                    await self._connection.get(f"{ADMISSION}/{plural}/{self._release}-{name}")
                except ApiError as error:
                    if error.status == FORBIDDEN:
                        self.policies_missing, self._passes_over = None, LOOKS_PASSED_OVER
                        return
                    missing += error.status == NOT_FOUND
                except Unreachable:
                    return
        self.policies_missing = missing

    async def _is_missing(self, path: str) -> bool:
        try:
            await self._connection.get(path, query={"limit": "1"})
        except ApiError as error:
            return error.status == NOT_FOUND
        except Unreachable:
            return False  # the watches tell of that
        return False
