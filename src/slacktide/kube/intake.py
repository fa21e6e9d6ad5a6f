"""Pods as they are seen, told to the engine.

Every version of every pod comes here. What the engine is told follows from the pod
and from what is known of its owner, class, volumes and neighbours; when one of these
changes, :meth:`Intake.reconsider` looks at the pod again. Nothing here waits or sends.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from slacktide.config import Config
from slacktide.kube import entries
from slacktide.kube.entries import FINAL, Entry, unread
from slacktide.kube.kinds import Identity, Malformed
from slacktide.kube.objects import Pod
from slacktide.kube.owners import Target
from slacktide.kube.refusals import Unschedulable, gated
from slacktide.kube.resizing import Resizes
from slacktide.kube.specs import Specs
from slacktide.kube.succession import Succession
from slacktide.kube.times import happened
from slacktide.kube.world import World
from slacktide.live import parts
from slacktide.live.engine import Engine
from slacktide.live.moving import has_room

LOG = logging.getLogger(__name__)


class Watcher(Protocol):
    """Who acts on what is seen. All calls are synchronous and short."""

    def work(self) -> None:
        """Something happened that may let somebody be placed."""

    def confirmed(self, uid: str) -> None:
        """A pod is seen to be bound."""

    def ended(self, uid: str) -> None:
        """A pod is no more, or is over."""

    def changed(self, key: str) -> None:
        """A controller's ledger changed."""

    def began(self, target: Target) -> None:
        """The engine knows a controller that it did not know."""

    def finished(self, key: str) -> None:
        """A controller is no more."""

    def waits(self, entry: Entry) -> None:
        """A pod cannot be scheduled whatever the hosts look like: ``entry.problem`` says why."""


class Intake:
    """Handler of the watch of pods; ``engine`` is None until this replica leads."""

    def __init__(self, config: Config, world: World, clock: Callable[[], float], watcher: Watcher) -> None:
        self.config = config
        self.world = world
        self.clock = clock
        self.watcher = watcher
        self.engine: Engine | None = None
        self.away: Callable[[], float] = lambda: 0.0
        """For how long the watch of pods was away, while it catches up."""
        self.pods: dict[str, Entry] = {}
        self.uids: dict[tuple[str, str], str] = {}
        self.orphans: dict[str, set[str]] = {}
        """Pods whose owner, by UID, is not known yet."""
        self.specs = Specs(world)
        self.succession = Succession()
        self.resizes = Resizes()
        world.intake = self

    # -- the watch -------------------------------------------------------------------------------------------------

    def replaced(self, objects: Sequence[Pod]) -> None:
        for pod in objects:
            self.changed(pod)

    def changed(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        entry = self.pods.get(uid)
        if entry is None:
            ours = pod.spec.scheduler_name == self.config.kube.scheduler_name
            entry = self.pods[uid] = Entry(pod, ours, seen=self.clock())
            self.uids[entry.place] = uid
        else:
            entry.takes(pod)
        self.resizes.see(entry, self.clock())
        self.consider(entry)

    def deleted(self, identity: Identity, last: Pod | None) -> None:
        entry = self.pods.pop(identity.uid, None)
        self.resizes.drop(identity.uid)
        if self.uids.get(identity.key) == identity.uid:
            del self.uids[identity.key]
        if entry is None:
            return
        if last is not None:
            entry.pod = last
        target = entry.target
        bare = target if target is not None and target.kind == "Pod" and target.key in self.world.targets else None
        if bare is not None:
            self.world.deleted.add(bare.key)
        self._end(entry, last is not None and last.status.phase == "Succeeded")
        if bare is not None and self.engine is not None:
            self.world.left(self.engine, bare)  # where it had ended before
        self.world.book.forget(entry.pod)
        for owner in [owner for owner, waiting in self.orphans.items() if identity.uid in waiting]:
            self.orphans[owner].discard(identity.uid)
            if not self.orphans[owner]:
                del self.orphans[owner]

    def malformed(self, problem: Malformed) -> None:
        """A pod that waits goes on waiting, with this reason; one that runs keeps what the engine knew of it."""
        LOG.warning("pod %s/%s is malformed: %s", problem.namespace, problem.name, problem.problem)
        entry = self.pods.get(problem.uid)
        if entry is None:
            if problem.scheduler != self.config.kube.scheduler_name or problem.node or not problem.uid:
                return
            entry = self.pods[problem.uid] = unread(problem, self.clock())
            self.uids[entry.place] = problem.uid
        entry.malformed = f"the pod is malformed: {problem.problem}"
        self.consider(entry)

    # -- one pod ---------------------------------------------------------------------------------------------------

    def consider(self, entry: Entry) -> None:
        """Tell the engine how a pod is now."""
        pod = entry.pod
        if pod.status.phase in FINAL:
            self._end(entry, pod.status.phase == "Succeeded")
            self.world.book.forget(pod)
            return
        if not entry.ours and not pod.spec.node_name:
            return
        if self.world.book.learn(pod, self.world.storage.exclusive(pod)):
            self.follow_book()
        if self.engine is None:
            return
        if not entry.ours:
            self._other(entry)
        elif pod.spec.node_name:
            self._bound(entry)
        else:
            self._unbound(entry)

    def reconsider(self, uids: Iterable[str]) -> None:
        """Look again at pods about which something else changed."""
        for uid in tuple(uids):
            entry = self.pods.get(uid)
            if entry is not None:
                self.consider(entry)

    def follow_book(self) -> None:
        """Pods whose placement changed through others' terms are of another spec now."""
        if self.engine is None:
            return
        for uid in self.world.book.outdated():
            entry = self.pods.get(uid)
            if entry is None:
                continue
            if entry.other:
                self._other(entry)
            elif entry.key:
                self.respec(entry)

    def _other(self, entry: Entry) -> None:
        """A pod of another scheduler on a node that the engine knows takes room there."""
        engine, node = self.engine, entry.pod.spec.node_name
        assert engine is not None  # noqa: S101  # for the type checker: consider() asks
        if node not in engine.hosts:
            entry.other = ""
            return
        demand = self.specs.demands.of(entry.pod)
        if isinstance(demand, str):
            LOG.warning("pod %s/%s of another scheduler counts as nothing: %s", *entry.place, demand)
            demand = ()
        found = (node, dict(self.world.edge.named(demand)), self._marks(entry))
        if engine.others.get(entry.uid) != found:
            engine.other(entry.uid, *found)
            self.watcher.work()
        if not entry.other:
            entry.other = node
            if not entry.ours and self.world.is_ours(node):
                self.world.warn_of(entry.pod)

    def _marks(self, entry: Entry) -> tuple[str, ...]:
        with contextlib.suppress(Unschedulable):
            return self.world.book.placement_of(entry.pod).placement.marks
        return ()

    # -- pods of ours ----------------------------------------------------------------------------------------------

    def respec(self, entry: Entry) -> None:
        """Bring the engine's spec of a pod it knows up to date; without one it sleeps, or runs on as it is."""
        engine = self.engine
        assert engine is not None  # noqa: S101
        try:
            number = self.specs.of(entry, engine)
        except Unschedulable as problem:
            if not entry.pod.spec.node_name:
                self._set_aside(entry, problem.reason)
            return
        if number == entry.spec:
            return
        if self.specs.alike(number, entry.spec):
            self.specs.unused(number, engine)
            return
        engine.respec(entry.uid, number)
        self.specs.take(entry, number, engine)
        self.watcher.work()

    def _set_aside(self, entry: Entry, reason: str) -> None:
        """A pod waits for a reason that no host can help."""
        if entry.key and self.engine is not None:
            self.engine.sleep(entry.uid)
        entry.queue = entries.UNSCHEDULABLE
        if reason != entry.problem:
            entry.problem = reason
            self.watcher.waits(entry)

    def enter(self, entry: Entry) -> str:
        """Make sure that the engine knows a pod's controller; its key, or empty where its owner is not known yet."""
        engine, metadata = self.engine, entry.pod.metadata
        assert engine is not None  # noqa: S101
        assert entry.promised is not None  # noqa: S101
        target = self.world.owners.target_of(metadata)
        if target is None:
            self.orphans.setdefault(self.world.owners.unknown_owner(metadata), set()).add(entry.uid)
            return ""
        entry.target = target
        self.world.ensure(engine, target, entry.promised, self.world.owners.is_batch(metadata))
        entry.budget = self.world.budgets.of(entry.pod)
        return target.key

    def _unbound(self, entry: Entry) -> None:
        engine = self.engine
        assert engine is not None  # noqa: S101
        if entry.pod.metadata.deletion_timestamp is not None:
            entry.queue = entries.NOWHERE  # it goes at once, or when its finalizers let it
            if entry.key:
                engine.sleep(entry.uid)
            return
        if entry.key and engine.incarnations[entry.uid].state == parts.PLACED:
            return  # its binding is on the way
        if gated(entry.pod):
            entry.queue = entries.GATED
            return
        try:
            number = self.specs.of(entry, engine)
        except Unschedulable as problem:
            self._set_aside(entry, problem.reason)
            return
        entry.problem = ""
        news = calls = True
        if not entry.key:
            key = self.enter(entry)
            if not key or self.succession.must_wait(key, entry.uid):
                self.specs.unused(number, engine)
                entry.queue = entries.BACKOFF if key else entry.queue
                entry.problem = entries.HELD if key else ""
                return
            self.specs.take(entry, number, engine)
            entry.key = key
            if entry.queue == entries.BACKOFF:
                entry.queue = entries.ACTIVE
            at = entry.came(self.clock(), self.away())
            engine.arrive(entry.uid, entry.pod.metadata.name, key, number, at, entry.budget)
            self.watcher.changed(key)
            # What takes a preempted pod's place calls for a pass only where it fits: else it waits for the next, as a
            # victim does in the simulator, or each preemption would lead to others.
            calls = not self.succession.replaces(key) or has_room(engine, number)
        elif number != entry.spec:
            engine.respec(entry.uid, number)
            self.specs.take(entry, number, engine)
        else:
            news = engine.incarnations[entry.uid].state == parts.ASLEEP  # else only its status changed
        if entry.queue != entries.BACKOFF and news:
            entry.queue = entries.ACTIVE
            engine.wake(entry.uid)
            if calls:
                self.watcher.work()

    def succeed(self, key: str, uid: str) -> None:
        """A pod that was told to go is gone, or stays after all: whoever waited to continue it comes now."""
        released = self.succession.ended(key, uid)
        if released:
            self.reconsider([released])

    def _bound(self, entry: Entry) -> None:
        engine, node = self.engine, entry.pod.spec.node_name
        assert engine is not None  # noqa: S101
        if not entry.key and not self._find(entry):
            return
        one = engine.incarnations[entry.uid]
        if one.state == parts.PLACED and one.host != node:
            if one.bound:
                LOG.error("pod %s/%s moved from node %s to %s", *entry.place, one.host, node)
                return
            engine.refused(entry.uid, self.clock())  # somebody else was faster
        if one.state in (parts.ASLEEP, parts.WAITING):
            self.world.host_for(engine, node)
            engine.bound_elsewhere(entry.uid, node, self.clock())
        elif not one.bound:
            engine.bound(entry.uid, self.clock())
        entry.queue, entry.problem = entries.NOWHERE, ""
        self.watcher.confirmed(entry.uid)
        if entry.altered:
            entry.altered = False
            self.world.follow_pod(engine, entry)
        self._follow_readiness(entry)
        if entry.pod.metadata.deletion_timestamp is not None and not entry.doomed:
            entry.doomed = True
            engine.doomed(entry.uid)

    def _find(self, entry: Entry) -> bool:
        """A pod that runs already comes to the engine; one whose promise cannot be read takes room like a stranger."""
        engine = self.engine
        assert engine is not None  # noqa: S101
        self.world.host_for(engine, entry.pod.spec.node_name)
        try:
            number = self.specs.of(entry, engine)
        except Unschedulable as problem:
            if problem.reason != entry.problem:
                LOG.warning("pod %s/%s runs without a ledger: %s", *entry.place, problem.reason)
            entry.problem = problem.reason
            self._other(entry)
            return False
        key = self.enter(entry)
        if not key:
            self.specs.unused(number, engine)
            self._other(entry)  # until its owner is known it takes room like a stranger
            return False
        if entry.other:
            engine.other_gone(entry.uid)
            entry.other = ""
        self.specs.take(entry, number, engine)
        entry.key = key
        metadata = entry.pod.metadata
        since = min(self.clock(), metadata.creation_timestamp or self.clock())
        engine.found(entry.uid, metadata.name, key, number, entry.pod.spec.node_name, since, entry.budget)
        self.watcher.changed(key)
        return True

    def _follow_readiness(self, entry: Entry) -> None:
        engine = self.engine
        assert engine is not None  # noqa: S101
        found = next((one for one in entry.pod.status.conditions if one.type == "Ready"), None)
        is_ready = found is not None and found.status == "True"
        if is_ready == engine.incarnations[entry.uid].ready:
            return
        at = happened(found.last_transition_time if found else None, self.clock(), self.away())
        if is_ready:
            engine.ready(entry.uid, at)
        else:
            engine.unready(entry.uid, at)
        self.watcher.changed(entry.key)

    def _end(self, entry: Entry, succeeded: bool) -> None:
        """A pod is over, or gone."""
        engine = self.engine
        entry.queue = entries.NOWHERE
        if engine is None:
            return
        if entry.other:
            engine.other_gone(entry.uid)
            entry.other = ""
            self.watcher.work()
        if not entry.key:
            self.watcher.ended(entry.uid)
            if entry.target is not None:
                self.succeed(entry.target.key, entry.uid)
            return
        key, entry.key = entry.key, ""
        makes_room = engine.incarnations[entry.uid].state == parts.PLACED  # a victim's room was given away before
        engine.gone(entry.uid, self.clock(), succeeded and engine.controllers[key].batch)
        self.specs.release(entry.spec, engine)
        entry.spec = -1
        self.watcher.changed(key)
        self.watcher.ended(entry.uid)
        if entry.target is not None:
            self.world.left(engine, entry.target)
        self.succeed(key, entry.uid)
        if makes_room:
            self.watcher.work()
