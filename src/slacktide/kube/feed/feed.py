"""Changes of the mirror, turned into operations of an engine.

What the engine is told of a pod follows from the pod and from what is known of its owner, class, volumes and
neighbours; when one of these changes, :meth:`Feed.reconsider` looks at the pod again. Nothing here waits or sends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from slacktide.config import Config
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import has_room
from slacktide.kube.feed import crowds, fed_pod
from slacktide.kube.feed.blame import BlameFeed
from slacktide.kube.feed.controllers import Controllers
from slacktide.kube.feed.crowds import CatchingUp, Crowds, Lonely
from slacktide.kube.feed.fed_pod import FedPod, FeedListener
from slacktide.kube.feed.hosts import Hosts, NetworkFeed
from slacktide.kube.feed.pod_groups import PodGroups
from slacktide.kube.feed.pods_aside import PodsAside
from slacktide.kube.feed.promise_quotas import PromiseQuotas
from slacktide.kube.feed.specs import Specs
from slacktide.kube.feed.succession import Replacements, Succession
from slacktide.kube.indexes import take_out
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import PodRecord, grace
from slacktide.kube.resources.objects import Metadata, condition_of, happened, whole_seconds
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.owners import Target, controlling
from slacktide.kube.translate.service_classes import Promised
from slacktide.kube.translate.unschedulable import Unschedulable, gated, said_to_wait_for_volume
from slacktide.model.causes import CLUSTER


class Feed(Changes, ABC):
    """A follower of ``mirror`` that tells ``engine``.

    ``clock`` gives seconds since 1970; ``away`` for how many the watch of pods was away, while it catches up. The
    engine learns what the mirror has already by :func:`slacktide.kube.feed.takeover.take_over`.
    """

    def __init__(
        self,
        mirror: ClusterMirror,
        engine: Engine,
        listener: FeedListener,
        clock: Callable[[], float],
        away: Callable[[], float],
    ) -> None:
        self.mirror, self.engine, self.listener = mirror, engine, listener
        self.clock, self.away = clock, away
        self.pods = {uid: FedPod(record) for uid, record in mirror.pods.items()}
        self.orphans: dict[str, dict[str, None]] = {}
        """Pods whose owner, by UID, is not known yet, the first come first."""
        self.woken: dict[str, None] = {}
        """UIDs of pods that take part in passes since these were taken out last."""
        self.specs = Specs(mirror, engine)
        self.crowds, self.lonely = Crowds(self.specs), Lonely(self.specs, mirror.constraints)
        self.succession = Succession()
        self.blame = BlameFeed(mirror, engine, clock)
        self.replacements = Replacements(engine, self.pods, self.succession, self.blame, self._replace)
        self.controllers = Controllers(mirror, engine, listener, self.succession, clock)
        self.specs.promised_before = self.controllers.kept
        self.specs.held_back = self._held_back
        self.hosts = Hosts(mirror, engine, listener, self.specs.demands)
        self.groups = PodGroups(mirror.pod_groups, engine)
        self.promise_quotas = PromiseQuotas(
            mirror, self.specs.demands, self.specs.promised, self._settled, self._may_claim
        )
        self.specs.residents = self.hosts.residents
        self.network = NetworkFeed(mirror.network, engine, engine.config.kube.latency_stale)
        parts = self.hosts, self.specs, self.replacements
        self._put_behind = ""
        self.catching_up = CatchingUp(self._catch_up, self._caught_up, listener.behind)
        self.aside = PodsAside(mirror.barrier, engine, parts, clock, self._set_aside)

    @property
    def config(self) -> Config:
        return self.engine.config

    # -- nodes and the network -------------------------------------------------------------------------------------

    def node(self, view: NodeView, before: NodeView | None) -> None:
        self.hosts.tell(view)
        if before is None or before.ours != view.ours:
            # A node may come back under its name before its pods are gone; whoever has no ledger is known by its node.
            self.reconsider([one.uid for one in self.pods.values() if not one.key and _is_on(one, view.name)])
        if before is not None and before.attributes != view.attributes:
            for one in self.replacements.going_from(view.name):  # the watch of nodes may come later than that of pods
                successor = self.pods.get(one.successor)
                known = successor is not None and bool(successor.key)
                self.blame.look_at_end_again(one, successor if known else None)
                self.reconsider([one.uid, one.successor])
        if before is not None and before.ready != view.ready:
            self._node_turned(view)
        self._perhaps_possible()
        self.listener.work()

    def _node_turned(self, view: NodeView) -> None:
        """A node is ready, or is not any more: that says whose doing it is that pods there are not."""
        on_it = [one for one in self.pods.values() if one.key and _is_on(one, view.name)]
        self.reconsider([one.uid for one in on_it])
        if not view.ready:
            for one in on_it:
                if one.key in self.succession.held:
                    self.replacements.replace_lost(one.key)

    def _perhaps_possible(self) -> None:
        """Nodes changed: pods that none could take may be placed now."""
        numbers = self.specs.possible_now()
        if numbers:
            self.reconsider([one.uid for one in self.pods.values() if one.spec in numbers])
        self.reconsider(self.crowds.all_crowded())

    def node_gone(self, name: str) -> None:
        self.hosts.gone(name)
        self.listener.work()

    def images_listed(self, node: str, images: tuple[str, ...]) -> None:
        self.engine.images(node, images)

    def image_sizes(self, images: Iterable[str]) -> None:
        self.network.image_sizes(images)

    # -- controllers and classes -----------------------------------------------------------------------------------

    def replicas(self, target: Target, desired: int, finished: bool) -> None:
        self.controllers.want(target, desired, finished)

    def controller_state(self, target: Target, suspended: int, fails: bool) -> None:
        self.controllers.suspend(target, suspended)
        self.blame.cannot_make(target, is_so=fails)

    def owner_known(self, uid: str) -> None:
        if uid in self.orphans:
            self.reconsider(self.orphans.pop(uid))

    def controller_gone(self, target: Target) -> None:
        self.controllers.gone(target)
        if target.key not in self.engine.controllers:  # it may never have had a pod
            self.blame.finished(target.key)

    def classes(self, names: Sequence[str], namespace: str) -> None:
        concerned = [
            one
            for one in self.pods.values()
            if one.ours
            and (not namespace or one.pod.metadata.namespace == namespace)
            and (not names or one.promised is None or one.problem or one.promised.class_name in names)
        ]
        self._promises_changed(concerned)
        self.controllers.follow_templates(self.controllers.targets.values())
        for key in dict.fromkeys(one.key for one in concerned if one.key):
            self.listener.changed(key)  # its ledger says so where its class is no more
            self.controllers.class_changed(key)

    def template(self, uid: str) -> None:
        ours = [one for one in self.pods.values() if one.ours]
        self._promises_changed([one for one in ours if one.target is not None and one.target.uid == uid])
        watched = self.mirror.owners.watched.get(uid)
        if watched is not None:
            self.controllers.follow_templates([watched.target])

    def _promises_changed(self, concerned: Sequence[FedPod]) -> None:
        for one in concerned:
            self.aside.guarded(self._follow_promise, one)
        others = self.promise_quotas.look_again(concerned)
        self.reconsider({one.uid: None for one in concerned} | dict.fromkeys(others))

    def _follow_promise(self, pod: FedPod) -> None:
        if pod.key:
            self._respec(pod)
            if pod.target is not None and pod.promised is not None:
                batch = self.engine.controllers[pod.key].batch
                self.controllers.ensure(pod.target, pod.promised, batch, pod.record)

    def quotas(self, namespace: str) -> None:
        there = [one for one in self.pods.values() if one.pod.metadata.namespace == namespace]
        self.reconsider(self.promise_quotas.look_again(there))

    def _settled(self, pod: FedPod) -> bool:
        """Whether a pod has a place, in the cluster or by a decision that is on its way there."""
        if pod.pod.spec.node_name:
            return True
        return bool(pod.key) and self.engine.pods[pod.uid].state == types.PLACED

    def _may_claim(self, pod: FedPod) -> bool:
        """Whether a pod claims something of the quotas of its promise, as :meth:`number_of` and :meth:`_takes_no_part`
        have it: one that cannot be placed whatever the nodes are keeps nothing from others."""
        if not pod.ours or pod.record.is_final:
            return False
        if pod.key and self._settled(pod):
            return True  # it has its promise, and keeps it
        if pod.stands_aside or self.groups.problem_of(pod):
            return False
        try:
            self.specs.check(pod)
        except Unschedulable:
            return False
        except Exception as error:
            self.aside.failed(pod, error)
            return False
        return True

    def number_of(self, pod: FedPod) -> int:
        """The number of a pod's spec, as :meth:`Specs.of`; it must not wait for others of its group, and no quota of
        promises may refuse it.

        Raises :class:`Unschedulable` with the reason.
        """
        try:
            if problem := self.groups.problem_of(pod):
                raise Unschedulable(problem)
            number = self.specs.of(pod)
        except Unschedulable:
            self._claims_nothing(pod)
            raise
        if pod.stands_aside:  # a new leader's engine hears of it all the same
            return number
        refused, others = self.promise_quotas.claim(pod)
        if others:
            with self.specs.kept(number):
                self.reconsider(others)
        if refused:
            self.specs.unused(number)
            target = self.mirror.owners.target_of(pod.pod.metadata)
            if refused != pod.problem and target is not None and target.key in self.engine.controllers:
                self.listener.changed(target.key)  # its ledger says so
            raise Unschedulable(refused)
        return number

    def _claims_nothing(self, pod: FedPod) -> None:
        """What a pod claimed of quotas is for those who wait."""
        self.reconsider(self.promise_quotas.release(pod.uid))

    def claim_again(self, pod: FedPod) -> None:
        """A pod that runs has another size, or runs only now: that may leave less of a quota for those who wait."""
        if pod.promised is not None:
            self.reconsider(self.promise_quotas.claim(pod)[1])

    # -- pod groups ------------------------------------------------------------------------------------------------

    def pod_groups(self, source: str, namespace: str, name: str) -> None:
        self._group_changed(self.groups.changed(source, namespace, name))

    def _group_changed(self, uids: Iterable[str]) -> None:
        """These are of a group of which another number starts together, or none any more, or again."""
        concerned = tuple(uids)
        self.reconsider(concerned)
        if concerned:
            self.listener.work()  # it may start with those who wait already

    def _follow_group(self, pod: FedPod) -> None:
        group = self.groups.key_of(pod.uid)
        if pod.key and group != self.engine.pods[pod.uid].group:
            self.engine.join_group(pod.uid, group)
            self.listener.regrouped(pod.uid)

    # -- budgets ---------------------------------------------------------------------------------------------------

    def budget(self, name: str, left: int) -> None:
        self.engine.budget(name, left)
        self.listener.work()

    def budget_gone(self, name: str) -> None:
        if name in self.engine.budgets:
            self.engine.budget_gone(name)
        self.listener.work()

    def budgets_cover(self, namespace: str) -> None:
        for one in self.pods.values():
            if one.key and one.pod.metadata.namespace == namespace:
                self.aside.guarded(self._follow_budget, one)

    def _follow_budget(self, pod: FedPod) -> None:
        self._protect(pod, self.mirror.budgets.of(pod.pod))

    def _protect(self, pod: FedPod, budget: str) -> None:
        if budget != pod.budget:
            pod.budget = budget
            self.engine.protect(pod.uid, budget)
            if not budget:
                self.listener.work()

    def overdrawn(self, pod: FedPod) -> None:
        """The API server does not let a pod go, for its budget: that has nothing left, also for one that is not ready,
        until something new is heard of it."""
        if not pod.key:
            return
        self._protect(pod, self.mirror.budgets.selecting(pod.pod))
        pod.protected_as = "", False
        if pod.budget in self.engine.budgets:
            self.engine.budget(pod.budget, 0)

    # -- pods ------------------------------------------------------------------------------------------------------

    def pod(self, record: PodRecord) -> None:
        known = self.pods.get(record.uid)
        if known is None:
            known = self.pods[record.uid] = FedPod(record)
        behind, self._put_behind = self._put_behind, ""
        if behind == record.uid:  # by its terms, which the mirror has just learned
            self.catching_up.put_behind(self.mirror.constraints.effects_of(record.pod))
        self.consider(known)
        self.reconsider(self.lonely.perhaps_met())

    def pod_gone(self, record: PodRecord, succeeded: bool) -> None:
        pod = self.pods.pop(record.uid, None)
        self.woken.pop(record.uid, None)
        self.catching_up.forget(record.uid)
        if pod is not None:
            with self.aside.leaving(pod):
                self._forget(pod, succeeded)

    def _forget(self, pod: FedPod, succeeded: bool) -> None:
        target = pod.target
        self.blame.forget(pod)
        self.lonely.forget(pod.uid)
        bare = target if target is not None and target.is_pod and target.key in self.controllers.targets else None
        if bare is not None:
            self.controllers.bury(bare)
            self.controllers.deleted.add(bare.key)
        self._end(pod, succeeded)
        self._group_changed(self.groups.forget(pod.uid))
        if bare is not None:
            self.controllers.pod_left(bare)  # where it had ended before
        for owner in [owner for owner, waiting in self.orphans.items() if pod.uid in waiting]:
            take_out(self.orphans, owner, pod.uid)

    def constraints(self, uids: Sequence[str], *, by: str = "", at_once: bool = False) -> None:
        many = self.catching_up.in_turn and len(uids) > crowds.FEW and not at_once
        self._put_behind = by if many else ""
        if self._put_behind:
            self.catching_up.later(uids)
            return
        for uid in uids:
            pod = self.pods.get(uid)
            # Who waits may be put off only where the one whose terms these are is held until all were looked at.
            if pod is not None and many and pod.pod.spec.node_name:
                self.catching_up.later((uid,))
            elif pod is not None:
                self._constrain(pod)

    def _constrain(self, pod: FedPod, *, quiet: bool = False) -> None:
        """Others' terms may have changed what a pod carries; ``quiet``: that calls for no pass."""
        if pod.stranger_on:
            self.aside.guarded(self.hosts.stranger, pod)
        elif pod.key:
            self.aside.guarded(lambda one: self._respec(one, quiet=quiet), pod)

    def _catch_up(self, uid: str) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            self._constrain(pod, quiet=bool(pod.pod.spec.node_name))

    def consider(self, pod: FedPod) -> None:
        """Tell the engine how a pod is now; one that it cannot be told of is set aside."""
        self.aside.guarded(self._consider, pod)

    def _consider(self, pod: FedPod) -> None:
        others = self.groups.see(pod)
        if pod.record.is_final:
            self._end(pod, pod.pod.status.phase == "Succeeded")
        elif not pod.ours:
            if pod.pod.spec.node_name:
                self.hosts.stranger(pod)
        elif pod.pod.spec.node_name:
            self.bound(pod)
        else:
            self.unbound(pod)
        self._follow_group(pod)
        self._group_changed(uid for uid in others if uid != pod.uid)

    def _caught_up(self, uids: Iterable[str]) -> None:
        self.reconsider(uids)
        self.listener.work()

    def reconsider(self, uids: Iterable[str]) -> None:
        """Look again at pods about which something else changed."""
        for uid in tuple(uids):
            pod = self.pods.get(uid)
            if pod is not None:
                self.consider(pod)

    @abstractmethod
    def bound(self, pod: FedPod) -> None:
        """A pod of ours is on a node."""

    def unbound(self, pod: FedPod) -> None:
        """A pod of ours is on no node."""
        if self._takes_no_part(pod):
            return
        engine = self.engine
        try:
            number = self.number_of(pod)
            if overdue := self._overdue(pod):
                self.specs.unused(number)
                raise Unschedulable(overdue)
        except Unschedulable as problem:
            self._set_aside(pod, problem.reason)
            return
        pod.problem = ""
        news = calls = True
        self.blame.held_back(pod, is_so=False)
        if not pod.key:
            key = self.enter(pod)
            with self.specs.kept(number):  # whom it replaces may be the last that has it
                self.replacements.replace_lost(key)
            if pod.key:
                return  # it was held back until then, and has just been told of
            if not key or self.succession.must_wait(key, pod.uid):
                self.specs.unused(number)
                pod.queue = fed_pod.BACKOFF if key else pod.queue
                pod.problem = fed_pod.HELD if key else fed_pod.ORPHAN
                return
            calls = self._arrive(pod, key, number)
        elif number != pod.spec:
            engine.respec(pod.uid, number)
            self.specs.take(pod, number)
        else:
            news = engine.pods[pod.uid].state == types.ASLEEP  # else only its status changed
        news |= self.follow_nomination(pod)
        too_many = self.crowds.waits(pod.uid, pod.key, number)
        lonely = self.lonely.waits(pod.uid, number)
        impossible = too_many or lonely or self.specs.is_impossible(number)
        self.blame.waits(pod, impossible=impossible)
        if pod.queue != fed_pod.BACKOFF and news:
            engine.wake(pod.uid)
            if impossible:
                pod.queue = fed_pod.UNSCHEDULABLE
                self.listener.waits(pod)
            else:
                self.active(pod)
            if calls and not impossible:
                self.listener.work()

    def _takes_no_part(self, pod: FedPod) -> bool:
        """Whether a pod that is on no node is none to be placed: it is being deleted, has its place, or is gated."""
        if pod.pod.metadata.deletion_timestamp is not None:
            pod.queue = fed_pod.NOWHERE  # it goes at once, or when its finalizers let it
            if pod.key:
                self.listener.withdrawn(pod.uid, "it is being deleted")
                self.blame.held_back(pod, is_so=True)
                self.engine.sleep(pod.uid)
            if not self._settled(pod):
                pod.problem = ""  # it waits for nothing any more
                self._claims_nothing(pod)
            return True
        if pod.key and self.engine.pods[pod.uid].state == types.PLACED:
            if problem := self.groups.problem_of(pod):
                self.listener.withdrawn(pod.uid, problem)
            return True  # its binding is on the way
        if self.catching_up.holds(pod.uid, self.mirror.constraints.effects_of(pod.pod)):
            pod.queue, pod.problem = fed_pod.BACKOFF, crowds.BEHIND
            if pod.key:  # it has changed, and had its turn before
                pod.queue = fed_pod.UNSCHEDULABLE
                self.engine.sleep(pod.uid)
            return True
        if gated(pod.pod):
            pod.queue = fed_pod.GATED
            self.blame.held_back(pod, is_so=True)
            self._claims_nothing(pod)
            return True
        return False

    def _overdue(self, pod: FedPod) -> str:
        """Of a pod that had a place, and whose volumes were not there for longer than is the cluster's doing: for whom
        it waits. It needs no place until they are there."""
        pod.awaited = ""
        if not pod.needs.provision:
            return ""
        since = said_to_wait_for_volume(pod.pod) if pod.awaited_since is None else pod.awaited_since
        awaited = self.mirror.storage.awaited(pod.pod, pod.needs.provision) if since else ""
        pod.awaited_since = since if awaited else 0.0
        if self.blame.awaited(pod.awaited_since).cause == CLUSTER:
            return ""
        pod.awaited = awaited
        return f"{awaited}, since {whole_seconds(since)}"

    def follow_nomination(self, pod: FedPod, /) -> bool:
        """A pod that waits is nominated for a node by somebody else, or not any more: whether that is news."""
        node = pod.pod.status.nominated_node_name
        if node == pod.nominated:
            node = ""  # it is ours
        elif pod.unnominated:
            pod.nominated, pod.unnominated = "", False
        if node == pod.preferred:
            return False
        pod.preferred = node
        self.engine.prefer(pod.uid, node)
        return True

    def held(self) -> list[str]:
        """Pods that wait for the one that they replace, or for their owner to be seen."""
        return [uid for waiting in (*self.succession.held.values(), *self.orphans.values()) for uid in waiting]

    def why_held(self, pod: FedPod) -> str:
        """Whom such a pod waits for, by name."""
        if pod.problem == fed_pod.ORPHAN and (owner := controlling(pod.pod.metadata)) is not None:
            return f"waiting for {owner.kind} {owner.name}: {fed_pod.ORPHAN}"
        leaving = () if pod.target is None else self.succession.leaving.get(pod.target.key, ())
        names = sorted(self.pods[uid].namespaced_name[1] for uid in leaving if uid in self.pods)
        return f"{pod.problem}: {', '.join(names)}" if names else pod.problem

    def active(self, pod: FedPod) -> None:
        """A pod takes part in the next pass."""
        pod.queue, pod.refusal = fed_pod.ACTIVE, ""
        self.woken[pod.uid] = None

    def _arrive(self, pod: FedPod, key: str, number: int) -> bool:
        """The engine hears of a pod that waits; whether that calls for a pass."""
        self.specs.take(pod, number)
        pod.key = key
        if pod.queue == fed_pod.BACKOFF:
            self.active(pod)
        at = pod.record.waits_since(self.clock(), self.away())
        self.replacements.make_way(key)
        self.engine.arrive(pod.uid, pod.pod.metadata.name, key, number, at, pod.budget)
        self.blame.arrived(pod, self.replacements.predecessor(pod))
        self.listener.changed(key)
        # What takes a preempted pod's place calls for a pass only where it fits: else it waits for the next, as a
        # victim does in the simulator, or each preemption would lead to others.
        return not self.succession.replaces(key) or has_room(self.engine, number)

    def enter(self, pod: FedPod) -> str:
        """Make sure that the engine knows a pod's controller; its key, or empty where its owner is not known yet."""
        owners, metadata = self.mirror.owners, pod.pod.metadata
        assert pod.promised is not None  # noqa: S101  # for the type checker: it has a spec
        target = owners.target_of(metadata)
        if target is None:
            self.orphans.setdefault(owners.unknown_owner(metadata), {})[pod.uid] = None
            return ""
        pod.target = target
        self.controllers.ensure(target, pod.promised, owners.is_batch(metadata), pod.record)
        pod.budget = self.mirror.budgets.of(pod.pod)
        return target.key

    def _respec(self, pod: FedPod, *, quiet: bool = False) -> None:
        """Bring the engine's spec of a pod it knows up to date; without one it sleeps, or runs on as it is."""
        try:
            number = self.specs.of(pod)
        except Unschedulable as problem:
            if not pod.pod.spec.node_name:
                self._set_aside(pod, problem.reason)
            if not self._settled(pod):
                self._claims_nothing(pod)
            return
        if number == pod.spec:
            return
        if self.specs.alike(number, pod.spec):
            self.specs.unused(number)
            return
        self.engine.respec(pod.uid, number)
        self.specs.take(pod, number)
        if not quiet:
            self.listener.work()

    def _set_aside(self, pod: FedPod, reason: str) -> None:
        """A pod waits for a reason that no host can help."""
        self.blame.held_back(pod, is_so=True)
        if pod.key:
            self.engine.sleep(pod.uid)
        pod.queue = fed_pod.UNSCHEDULABLE
        if reason != pod.problem:
            pod.problem = reason
            self.listener.waits(pod)

    def follow(self, pod: FedPod) -> None:
        """A pod that runs was relabelled, resized or told to go."""
        if pod.followed != pod.record.alterations:
            pod.followed = pod.record.alterations
            self._follow_promise(pod)
            self._follow_budget(pod)
            self.claim_again(pod)

    def follow_readiness(self, pod: FedPod) -> None:
        """Tell the engine whether a pod that runs is ready."""
        is_ready, since = condition_of(pod.pod, "Ready")
        if pod.protected_as != (pod.pod.status.phase, is_ready):
            pod.protected_as = pod.pod.status.phase, is_ready
            self._follow_budget(pod)
        if not is_ready:
            if self.blame.not_ready(pod, since, self.away()):
                self.listener.changed(pod.key)
        elif not self.engine.pods[pod.uid].ready:
            self.blame.ready(pod, happened(since, self.clock(), self.away()))
            self.listener.changed(pod.key)
            if self.controllers.starts.ready(pod):
                self._follow_starts(pod)

    def _held_back(self, pod: Metadata, promised: Promised) -> Promised:
        target = self.mirror.owners.target_of(pod)
        return promised if target is None else self.controllers.starts.held_back(target.key, promised)

    def _follow_starts(self, pod: FedPod) -> None:
        """A start of a pod's workload was measured: all its pods are promised what follows, where that is another."""
        with suppress(Unschedulable):
            if pod.target is not None and self.specs.promised(pod.pod) != pod.promised:
                self.template(pod.target.uid)

    def _replace(self, pod: FedPod) -> None:
        """A pod counts no more, though it is there and takes room: another one goes on with its instance."""
        key = pod.key
        self._leave(pod, False)
        pod.replaced = True
        self.hosts.stranger(pod)
        self.succeed(key, pod.uid)

    def grace(self, uid: str) -> float:
        """Seconds that a pod may take to end, as far as it is known and says so."""
        known = self.pods.get(uid)
        return grace(None if known is None else known.pod)

    def succeed(self, key: str, uid: str) -> None:
        """A pod that was told to go is gone, or stays after all: whoever waited to continue it comes now."""
        released = self.succession.ended(key, uid)
        if released:
            self.reconsider([released])

    def _end(self, pod: FedPod, succeeded: bool) -> None:
        """A pod is over, or gone."""
        self._end_in_engine(pod, succeeded)
        self._claims_nothing(pod)

    def _end_in_engine(self, pod: FedPod, succeeded: bool) -> None:
        engine = self.engine
        pod.queue = fed_pod.NOWHERE
        if pod.stranger_on:
            self.hosts.stranger_gone(pod)
            self.listener.work()
        if not pod.key:
            self.listener.ended(pod.uid)
            if pod.target is not None:
                self.succeed(pod.target.key, pod.uid)
            return
        key = pod.key
        makes_room = engine.pods[pod.uid].state == types.PLACED  # a victim's room was given away before
        self._leave(pod, succeeded)
        if pod.target is not None:
            self.controllers.pod_left(pod.target)
        self.succeed(key, pod.uid)
        if makes_room:
            self.listener.work()

    def _leave(self, pod: FedPod, succeeded: bool) -> None:
        """The engine hears that a pod is no more."""
        engine, key = self.engine, pod.key
        cause = self.blame.goes(pod)
        pod.key = pod.preferred = ""
        engine.gone(pod.uid, self.clock(), succeeded and engine.controllers[key].batch, cause)
        self.blame.vacated(key, pod)
        self.replacements.gone(key, pod.uid)
        self.specs.release(pod.spec)
        pod.spec = -1
        self.listener.changed(key)
        self.listener.ended(pod.uid)
        self.reconsider(self.crowds.forget(pod.uid))


def _is_on(pod: FedPod, node: str) -> bool:
    return pod.pod.spec.node_name == node
