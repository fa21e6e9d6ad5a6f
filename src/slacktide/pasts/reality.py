"""Reality: the mirror, the feed and the engine of a live scheduler on the clock of a story. It decides nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slacktide.config import Config
from slacktide.dryrun.reality import preempted_by_scheduler
from slacktide.kube import clock as clocks
from slacktide.kube.client.kinds import HasMetadata, Identity, Malformed
from slacktide.kube.client.metadata import seen_at
from slacktide.kube.client.reflector import Handler
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.housekeeping import retire_vacant
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import Lightening, PodRecord
from slacktide.kube.mirror.watches import device_subscriptions, subscriptions
from slacktide.kube.resources.objects import (
    POD,
    Deployment,
    Job,
    Namespace,
    Node,
    Pod,
    ReplicaSet,
    ServiceClass,
    StatefulSet,
)
from slacktide.kube.resources.pods import condition_of
from slacktide.kube.translate.owners import is_bound_to_its_node
from slacktide.kube.translate.service_classes import CLASS_LABEL, DEFAULT_CLASS, Classes, resource_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import ServiceClass as Promise
from slacktide.pasts.history import PastHistory
from slacktide.pasts.story import Change, Story

LOOK_SECONDS = 60.0
"""How often it is looked at what no change tells: who was not replaced, and whose time for a start is over."""
STATE = "node.kubernetes.io/"
"""How keys of taints begin that say how a node is: cordoned, not ready, unreachable, under pressure."""
UNSCHEDULED = "slacktide.io/bound-to-its-node"
"""Stands for the scheduler of pods that come back to their node whatever happens: those of DaemonSets, and static ones.
They take room, and nobody places them anywhere else."""


@dataclass(slots=True)
class Wait:
    """A pod's way to a node. ``node`` is empty where it found none; times are seconds since 1970, None also where
    nobody says them."""

    key: str
    created: float
    bound: float | None = None
    ready: float | None = None
    node: str = ""


@dataclass(slots=True)
class Owner:
    """What pods of a controller say of it: labels, PriorityClass and priority of the one that was seen first, and what
    ServiceClasses of the cluster promise it."""

    labels: dict[str, str] = field(default_factory=dict)
    priority_class: str = ""
    priority: int = 0
    preempted: int = 0
    promised: Promise | None = None


class _Witness(Changes):
    """Notes what the other scheduler did, after the feed has heard of it."""

    def __init__(self, reality: Reality) -> None:
        self._reality = reality

    def pod(self, record: PodRecord) -> None:
        self._reality.see(record)

    def pod_gone(self, record: PodRecord, succeeded: bool) -> None:  # noqa: ARG002
        self._reality.forget(record.uid)


class Reality:
    """Tell it a story; ``history`` has what became of instances and nodes then.

    ``waits``: every pod's way to a node, by UID while it is there; ``owners`` by the keys of controllers.
    """

    def __init__(self, config: Config) -> None:
        self.now = 0.0
        self.mirror = ClusterMirror(config, self.clock)
        self.history = PastHistory(config)
        self._config = config
        self.engine = self.history.engine
        self.waits: list[Wait] = []
        self.open: dict[str, Wait] = {}
        self.victims: set[str] = set()
        self.owners: dict[str, Owner] = {}
        self._handlers: dict[Any, Handler[Any]] = {
            id(kind): handler for kind, handler in (*subscriptions(self.mirror), *device_subscriptions(self.mirror))
        }
        self._closed: set[str] = set()
        self._feed: LiveFeed | None = None
        self._said: dict[str, tuple[dict[str, str], Promise | None]] = {}
        kube = config.kube
        self._theirs = Classes(kube.priority_classes or "", critical=kube.critical_namespaces or "")
        self._lighten = Lightening()
        self._look_at = 0.0
        (self._promise,) = config.classes
        found = resource_of(self._promise)
        spec = msgspec.structs.replace(found.spec, approach="aggregated", default=True)  # a workload is one request
        self.mirror.on_class_update(msgspec.structs.replace(found, spec=spec))

    @property
    def feed(self) -> LiveFeed:
        """What the engine is told by, once the story has begun."""
        assert self._feed is not None  # noqa: S101
        return self._feed

    def clock(self) -> float:
        """The instant of the story, seconds since 1970."""
        return self.now

    def tell(self, story: Story) -> None:
        """The whole story."""
        with _on(self):
            self.now = story.begin
            self._begin(story.beginning)
            for change in story.changes:
                if change.at > self.now:
                    self._until(change.at)
                self._tell(change)
            self._until(max(self.now, story.until or self.now))
            self.history.passed(self.now)
            self.history.finish()

    def _begin(self, beginning: Iterable[Change]) -> None:
        pods = deque[Change]()
        for change in beginning:
            if change.kind is POD:  # last, so that what they depend on is known
                pods.append(change)
            else:
                self._tell(change)
        while pods:
            self._tell(pods.popleft())
        self._feed = LiveFeed(self.mirror, self.engine, FeedListener(), self.clock, lambda: 0.0)
        self._feed.hosts.closed = self._closed
        take_over(self.feed, {}, lambda _decision, _leaving: None)
        self.history.passed(self.now)
        for record in self.mirror.pods.values():
            self.see(record)
        self.mirror.follow(self.feed)
        self.mirror.follow(_Witness(self))
        self._look_at = self.now + LOOK_SECONDS

    def _until(self, at: float) -> None:
        """Time goes on to ``at``."""
        while self._look_at < at:
            self.now = self._look_at
            self._look_at += max(LOOK_SECONDS, (at - self.now) / 1000.0)
            self.feed.reconsider(self.feed.blame.due(self.now, self.feed.pods.values()))
            vacant = [key for key, one in self.engine.controllers.items() if one.vacant and one.desired < 0]
            if vacant:
                retire_vacant(self.engine, self.now, self._config.kube.vacancy, vacant)
            self.history.passed(self.now)
        self.now = at

    def _tell(self, change: Change) -> None:
        handler, found = self._handlers.get(id(change.kind)), change.found
        if handler is None:
            return
        if isinstance(found, Malformed):
            handler.malformed(found)
            return
        if isinstance(found, Pod):
            found = self._lighten(self._as_ours(found))
        elif isinstance(found, Node):
            found = self._opened(found, gone=change.deleted)
        elif isinstance(found, ServiceClass):  # says what is proposed; until then all are promised the same
            if change.deleted:
                self._theirs.drop(found.metadata.name)
            else:
                self._theirs.see(found)
            return
        else:
            if isinstance(found, Namespace):
                self._theirs.namespaces[found.metadata.name] = found
            found = _without_promise(found)
        if change.deleted:
            handler.deleted(_identity(found), found)
        else:
            handler.changed(found)
        if isinstance(found, Node) and self._feed is not None and found.metadata.name in self.mirror.nodes:
            self._feed.hosts.tell(self.mirror.nodes[found.metadata.name])

    def _opened(self, node: Node, *, gone: bool) -> Node:
        """A node without the taints that come and go with its state: while it has any it is closed to all. As a
        condition that pods must meet they would hold for its whole past, and for other nodes of its kind."""
        name, spec = node.metadata.name, node.spec
        passing = [one for one in spec.taints if one.key.startswith(STATE) and one.effect != "PreferNoSchedule"]
        is_closed = not gone and bool(passing or spec.unschedulable)
        (self._closed.add if is_closed else self._closed.discard)(name)
        if not passing and not spec.unschedulable:
            return node
        taints = tuple(one for one in spec.taints if one not in passing)
        return msgspec.structs.replace(node, spec=msgspec.structs.replace(spec, taints=taints, unschedulable=False))

    def _as_ours(self, pod: Pod) -> Pod:
        """A pod that we are to place, unless nobody places it; without what it says to slacktide, which only counts for
        the proposal."""
        metadata, spec = pod.metadata, pod.spec
        self._said[metadata.uid] = metadata.labels, self._promised(pod)
        scheduler = UNSCHEDULED if is_bound_to_its_node(pod) else self._config.kube.scheduler_name
        metadata = msgspec.structs.replace(metadata, labels=_unclassed(metadata.labels), annotations={})
        if spec.scheduler_name != scheduler:
            spec = msgspec.structs.replace(spec, scheduler_name=scheduler)
        return msgspec.structs.replace(pod, metadata=metadata, spec=spec)

    def _promised(self, pod: Pod) -> Promise | None:
        """What ServiceClasses of the cluster promise a pod, if they do."""
        if not self._theirs.classes:
            return None
        try:
            return self._theirs.of(pod, batch=False).service
        except Unschedulable:
            return None

    def _since(self, pod: Pod, condition: str) -> float | None:
        """Since when a condition is true; None where it is not, or that is not said."""
        holds, said = condition_of(pod, condition)
        return seen_at(said, self.now) if holds and said is not None else None

    def forget(self, uid: str) -> None:
        """A pod is no more."""
        self.victims.discard(uid)
        self.open.pop(uid, None)
        self._said.pop(uid, None)

    def see(self, record: PodRecord) -> None:
        """A pod is new, or another than before; the feed knows it already."""
        known = self.feed.pods.get(record.uid)
        if known is None or not known.key:
            return
        owner = self.owners.get(known.key)
        spec = record.pod.spec
        if owner is None:
            labels, promised = self._said.pop(record.uid, ({}, None))
            priority = spec.priority or 0
            owner = Owner(dict(labels), spec.priority_class_name, priority, promised=promised)
            self.owners[known.key] = owner
        wait = self.open.get(record.uid)
        if wait is None:
            wait = self.open[record.uid] = Wait(known.key, record.created_at)
            self.waits.append(wait)
        if not wait.node and spec.node_name:
            wait.node, wait.bound = spec.node_name, record.bound_at or self._since(record.pod, "PodScheduled")
            if wait.bound is None and self.now > self.history.begin:  # else it was bound before
                wait.bound = self.now
        if wait.ready is None:
            wait.ready = record.ready_at or self._since(record.pod, "Ready")
        if record.uid not in self.victims and preempted_by_scheduler(record.pod):
            self.victims.add(record.uid)
            owner.preempted += 1
            self.history.preempted(record.uid)


def _unclassed(labels: dict[str, str]) -> dict[str, str]:
    if CLASS_LABEL not in labels and DEFAULT_CLASS not in labels:
        return labels
    return {name: value for name, value in labels.items() if name not in (CLASS_LABEL, DEFAULT_CLASS)}


def _without_promise(found: Any) -> Any:
    """A namespace, or a controller of pods, without what it says of their class."""
    if isinstance(found, Namespace):
        labels = _unclassed(found.metadata.labels)
        return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, labels=labels))
    if isinstance(found, Deployment | ReplicaSet | StatefulSet | Job) and found.spec.template is not None:
        return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, template=None))
    return found


def _identity(found: HasMetadata) -> Identity:
    metadata = found.metadata
    return Identity(metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)


@contextmanager
def _on(reality: Reality) -> Iterator[None]:
    """All clocks are the story's."""
    with clocks.read_from(clocks.Sources(reality.clock, reality.clock, reality.clock)):
        yield
