"""Handlers of the watches besides that of pods, and the list of all watches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from slacktide.kube import objects
from slacktide.kube.classes import default_of
from slacktide.kube.connection import Connection
from slacktide.kube.intake import Intake
from slacktide.kube.kinds import HasMetadata, Identity, Kind, Malformed
from slacktide.kube.latencies import NODE_LATENCY
from slacktide.kube.objects import (
    CronJob,
    Deployment,
    Job,
    Namespace,
    Node,
    PodDisruptionBudget,
    ReplicaSet,
    StatefulSet,
)
from slacktide.kube.owners import Target, Watched, controlling, is_finished
from slacktide.kube.sharing import Sharing
from slacktide.kube.watching import Handler, Reflector
from slacktide.kube.world import World

LOG = logging.getLogger(__name__)

PROBES_SECONDS = 10.0

T = TypeVar("T", bound=HasMetadata)


class Simple(Generic[T]):
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


class Handlers:
    """What watches other than that of pods do."""

    def __init__(self, world: World, intake: Intake) -> None:
        self.world = world
        self.intake = intake

    def node(self, found: Node) -> None:
        if self.world.see_node(found):
            self.intake.watcher.work()

    def node_gone(self, identity: Identity) -> None:
        self.world.drop_node(identity.name)
        self.intake.watcher.work()

    def _watched(self, found: HasMetadata, api_version: str, kind: str, desired: int, finished: bool = False) -> None:
        """A controller, new or changed; pods that waited for it to be known are looked at again."""
        metadata = found.metadata
        target = Target(api_version, kind, metadata.namespace, metadata.name, metadata.uid)
        owner = controlling(metadata)
        self.world.owners.watched[metadata.uid] = Watched(target, owner, desired, finished)
        if owner is None:
            self.world.wish(target, desired, finished)
        elif finished:
            top = self.world.owners.target_of(metadata)
            if top is not None:
                self.world.wish(top, -1, finished)
        if metadata.uid in self.intake.orphans:
            self.intake.reconsider(self.intake.orphans.pop(metadata.uid))

    def replicas(self, found: Deployment | ReplicaSet | StatefulSet) -> None:
        wanted = found.spec.replicas
        self._watched(found, "apps/v1", type(found).__name__, 1 if wanted is None else wanted)

    def job(self, found: Job) -> None:
        self._watched(found, "batch/v1", "Job", -1, is_finished(found))

    def cron_job(self, found: CronJob) -> None:
        self._watched(found, "batch/v1", "CronJob", -1)

    def controller_gone(self, identity: Identity) -> None:
        self.world.drop_target(identity.uid)

    def service_class(self, found: objects.ServiceClass) -> None:
        self.world.classes.see(found)
        self.world.follow_classes([found.metadata.name])

    def service_class_gone(self, identity: Identity) -> None:
        self.world.classes.drop(identity.name)
        self.world.follow_classes([identity.name])

    def namespace(self, found: Namespace) -> None:
        name = found.metadata.name
        before = self.world.classes.namespaces.get(name)
        self.world.classes.namespaces[name] = found
        if self.world.book.see_namespace(name, found.metadata.labels):
            self.intake.follow_book()
        if default_of(before) != default_of(found):
            self.world.follow_classes(namespace=name)

    def namespace_gone(self, identity: Identity) -> None:
        self.world.classes.namespaces.pop(identity.name, None)
        if self.world.book.see_namespace(identity.name, None):
            self.intake.follow_book()

    def budget(self, found: PodDisruptionBudget) -> None:
        namespace = found.metadata.namespace
        others = self.world.budgets.see(found)
        engine = self.intake.engine
        if engine is not None:
            engine.budget(f"{namespace}/{found.metadata.name}", self.world.budgets.left(found))
            self.intake.watcher.work()
        if others:
            self.world.follow_budgets(namespace)

    def budget_gone(self, identity: Identity) -> None:
        self.world.budgets.drop(identity.namespace, identity.name)
        self.world.follow_budgets(identity.namespace)
        engine, name = self.intake.engine, f"{identity.namespace}/{identity.name}"
        if engine is not None and name in engine.budgets:
            engine.budget_gone(name)
        self.intake.watcher.work()

    def storage_changed(self) -> None:
        """Pods with volumes that wait may find them usable now."""
        waiting = [
            uid
            for uid, entry in self.intake.pods.items()
            if entry.ours and entry.pod.spec.volumes and not entry.pod.spec.node_name
        ]
        self.intake.reconsider(waiting)


def subscriptions(world: World, intake: Intake) -> list[tuple[Kind[Any], Handler[Any]]]:
    """What to watch, and who is told; pods come last, so that a first list of them finds what they depend on."""
    to = Handlers(world, intake)

    def told(
        kind: Kind[Any], see: Callable[[Any], None], drop: Callable[[Identity], None]
    ) -> tuple[Kind[Any], Handler[Any]]:
        return kind, Simple(kind.plural, see, drop)

    def stored(see: Callable[[Any], None]) -> Callable[[Any], None]:
        def both(found: Any) -> None:
            see(found)
            to.storage_changed()

        return both

    storage = world.storage
    return [
        told(objects.NAMESPACE, to.namespace, to.namespace_gone),
        told(objects.SERVICE_CLASS, to.service_class, to.service_class_gone),
        told(objects.NODE, to.node, to.node_gone),
        told(objects.POD_DISRUPTION_BUDGET, to.budget, to.budget_gone),
        told(objects.DEPLOYMENT, to.replicas, to.controller_gone),
        told(objects.REPLICA_SET, to.replicas, to.controller_gone),
        told(objects.STATEFUL_SET, to.replicas, to.controller_gone),
        told(objects.JOB, to.job, to.controller_gone),
        told(objects.CRON_JOB, to.cron_job, to.controller_gone),
        told(objects.PERSISTENT_VOLUME, stored(storage.see_volume), stored(lambda one: storage.drop_volume(one.name))),
        told(
            objects.PERSISTENT_VOLUME_CLAIM,
            stored(storage.see_claim),
            stored(lambda one: storage.drop_claim(one.namespace, one.name)),
        ),
        told(objects.STORAGE_CLASS, stored(storage.see_class), stored(lambda one: storage.drop_class(one.name))),
        (objects.POD, Sharing(intake)),
    ]


def probes(connection: Connection, world: World) -> list[Reflector[Any]]:
    """The watch of round-trip times, where a score asks for them; nobody waits for it."""
    if not world.edge.watches:
        return []
    handler = Simple(NODE_LATENCY.plural, world.edge.see_row, world.edge.drop_row)
    return [Reflector(connection, NODE_LATENCY, handler)]


async def wait_for_rows(watches: Iterable[Reflector[Any]]) -> None:
    """Waits until round-trip times are known, as they should be from the first pass on; where nobody can tell them for
    ten seconds, pods are placed without."""
    for one in watches:
        try:
            await asyncio.wait_for(one.synced.wait(), PROBES_SECONDS)
        except TimeoutError:
            LOG.warning("no round-trip times: %s cannot be listed: %s", one.kind.plural, one.last_error)


def reflectors(connection: Connection, world: World, intake: Intake) -> list[Reflector[Any]]:
    """All watches."""
    return [Reflector(connection, kind, handler) for kind, handler in subscriptions(world, intake)]
