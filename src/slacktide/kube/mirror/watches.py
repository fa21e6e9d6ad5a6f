"""The watches that keep the mirror: what is watched, in which order, and whether it can be relied on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from slacktide.kube.client.gate import Gate
from slacktide.kube.client.http import Connection
from slacktide.kube.client.kinds import HasMetadata, Identity, Kind, Malformed
from slacktide.kube.client.reflector import Handler, Reflector
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.interning import TemplateInterning
from slacktide.kube.resources import objects
from slacktide.kube.resources.node_latency import NODE_LATENCY
from slacktide.kube.resources.objects import CronJob, Deployment, Job, Pod, ReplicaSet, StatefulSet
from slacktide.kube.translate.owners import cannot_make, is_finished, suspended

LOG = logging.getLogger(__name__)

STALE_SECONDS = 690.0
"""Watches that show no sign of life for so long are dead: who decides on what they said last decides on the past."""
LATENCY_SECONDS = 10.0
"""So long is waited for round-trip times."""
TELLING_SECONDS = 0.005

T = TypeVar("T", bound=HasMetadata)


class FunctionHandler(Generic[T]):
    """A handler of two functions: one sees an object, new or changed, the other hears that one is gone."""

    def __init__(self, name: str, see: Callable[[T], None], drop: Callable[[Identity], None]) -> None:
        self._name, self._see, self._drop = name, see, drop

    def replaced(self, objects: Sequence[T]) -> None:
        for found in objects:
            self._see(found)

    def changed(self, found: T) -> None:
        self._see(found)

    def deleted(self, identity: Identity, last: T | None) -> None:  # noqa: ARG002
        self._drop(identity)

    def malformed(self, problem: Malformed) -> None:
        LOG.warning("%s %s is malformed: %s", self._name, problem.name, problem.problem)


class PodHandler:
    """The handler of pods."""

    def __init__(self, mirror: ClusterMirror) -> None:
        self._mirror = mirror

    def replaced(self, objects: Sequence[Pod]) -> None:
        for pod in objects:
            self._mirror.see_pod(pod)

    def changed(self, pod: Pod) -> None:
        self._mirror.see_pod(pod)

    def deleted(self, identity: Identity, last: Pod | None) -> None:
        self._mirror.drop_pod(identity, last)

    def malformed(self, problem: Malformed) -> None:
        self._mirror.see_malformed_pod(problem)


def subscriptions(mirror: ClusterMirror) -> list[tuple[Kind[Any], Handler[Any]]]:
    """What to watch, and who is told; pods come last, so that a first list of them finds what they depend on."""

    def told(
        kind: Kind[Any], see: Callable[[Any], None], drop: Callable[[Identity], None]
    ) -> tuple[Kind[Any], Handler[Any]]:
        return kind, FunctionHandler(kind.plural, see, drop)

    def replicas(found: Deployment | ReplicaSet | StatefulSet) -> None:
        wanted, fails = found.spec.replicas, not isinstance(found, StatefulSet) and cannot_make(found)
        kind, wanted = type(found).__name__, 1 if wanted is None else wanted
        if mirror.default_spread.used and not isinstance(found, Deployment):
            mirror.see_selector(found)
        mirror.see_controller(found, "apps/v1", kind, wanted, fails=fails, template=found.spec.template)

    def job(found: Job) -> None:
        finished, template = is_finished(found), found.spec.template
        mirror.see_controller(found, "batch/v1", "Job", -1, finished, suspended=suspended(found), template=template)

    def cron_job(found: CronJob) -> None:
        template = found.spec.job_template.spec.template
        mirror.see_controller(found, "batch/v1", "CronJob", -1, template=template)

    def controller_gone(identity: Identity) -> None:
        mirror.drop_controller(identity.uid)

    volumes = mirror.volumes
    services = told(objects.SERVICE, mirror.see_service, lambda one: mirror.drop_service(one.namespace, one.name))
    return [
        *([services] if mirror.default_spread.used else []),
        told(objects.NAMESPACE, mirror.see_namespace, lambda one: mirror.drop_namespace(one.name)),
        told(objects.SERVICE_CLASS, mirror.see_class, lambda one: mirror.drop_class(one.name)),
        told(objects.NODE, mirror.see_node, lambda one: mirror.drop_node(one.name)),
        told(objects.POD_DISRUPTION_BUDGET, mirror.see_budget, lambda one: mirror.drop_budget(one.namespace, one.name)),
        told(objects.DEPLOYMENT, replicas, controller_gone),
        told(objects.REPLICA_SET, replicas, controller_gone),
        told(objects.STATEFUL_SET, replicas, controller_gone),
        told(objects.JOB, job, controller_gone),
        told(objects.CRON_JOB, cron_job, controller_gone),
        told(objects.PERSISTENT_VOLUME, volumes.see_volume, lambda one: volumes.drop_volume(one.name)),
        told(
            objects.PERSISTENT_VOLUME_CLAIM,
            volumes.see_claim,
            lambda one: volumes.drop_claim(one.namespace, one.name),
        ),
        told(objects.STORAGE_CLASS, volumes.see_class, lambda one: volumes.storage.drop_class(one.name)),
        told(objects.CSI_DRIVER, volumes.see_driver, lambda one: volumes.drop_driver(one.name)),
        told(
            objects.CSI_STORAGE_CAPACITY,
            volumes.see_capacity,
            lambda one: volumes.drop_capacity(one.namespace, one.name),
        ),
        told(objects.CSI_NODE, volumes.see_csi_node, lambda one: volumes.drop_csi_node(one.name)),
        told(objects.VOLUME_ATTACHMENT, volumes.see_attachment, lambda one: volumes.drop_attachment(one.name)),
        (objects.POD, TemplateInterning(PodHandler(mirror))),
    ]


class Watches:
    """All watches of a cluster; they tell ``mirror``, while ``gate`` is open."""

    def __init__(self, connection: Connection, mirror: ClusterMirror) -> None:
        self.gate = Gate()
        self.reflectors = [
            Reflector(connection, kind, handler, gate=self.gate) for kind, handler in subscriptions(mirror)
        ]
        # A cluster with the manifests of a release before does not know them: then nothing is declared.
        windows = FunctionHandler(
            objects.MAINTENANCE_WINDOW.plural, mirror.maintenance.see, lambda one: mirror.maintenance.drop(one.name)
        )
        self._windows = Reflector(connection, objects.MAINTENANCE_WINDOW, windows, gate=self.gate)
        self._latencies: list[Reflector[Any]] = []
        if mirror.network.watches:  # a score asks for round-trip times
            handler = FunctionHandler(NODE_LATENCY.plural, mirror.network.see_row, mirror.network.drop_row)
            self._latencies.append(Reflector(connection, NODE_LATENCY, handler, gate=self.gate))

    def leave_out(self, kind: Kind[Any]) -> None:
        """Do not watch a kind; before anything runs."""
        self.reflectors = [one for one in self.reflectors if one.kind is not kind]

    def running(self) -> list[Coroutine[Any, Any, None]]:
        """What is to run until it is cancelled."""
        return [one.run() for one in (*self.reflectors, self._windows, *self._latencies)]

    async def first_lists(self) -> None:
        """Waits until every watch has told its first list.

        Round-trip times should be known from the first pass on. Where nobody can tell them for ten seconds, pods are
        placed without.
        """
        for one in self.reflectors:
            await one.synced.wait()
        while not self._windows.synced.is_set() and not self._windows.last_error:
            await asyncio.sleep(TELLING_SECONDS)
        if not self._windows.synced.is_set():
            LOG.warning(
                "no maintenance windows: %s cannot be listed (%s): apply the manifests of this version",
                self._windows.kind.plural, self._windows.last_error,
            )  # fmt: skip
        for one in self._latencies:
            try:
                async with asyncio.timeout(LATENCY_SECONDS):
                    await one.synced.wait()
            except TimeoutError:
                LOG.warning("no round-trip times: %s cannot be listed: %s", one.kind.plural, one.last_error)

    async def whole_lists(self) -> None:
        """Waits while a list is being told: half of one would show room that is taken."""
        while any(one.telling for one in self.reflectors):
            await asyncio.sleep(TELLING_SECONDS)

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list."""
        return all(one.synced.is_set() for one in self.reflectors)

    def stale(self) -> str:
        """The kind whose watch is dead, or empty."""
        return next((one.kind.plural for one in self.reflectors if one.age() > STALE_SECONDS), "")

    def away(self) -> float:
        """For how many seconds the watch of pods was away, while it catches up; else 0."""
        return self.reflectors[-1].away()  # pods come last
