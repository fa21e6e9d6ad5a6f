"""Tells an engine whose doing it is that pods deliver nothing; the rules are those of :mod:`.translate.causes`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.objects import happened
from slacktide.kube.translate.causes import Allowances, Setting, Verdict, cause_of, end_of
from slacktide.kube.translate.owners import Target
from slacktide.model.causes import CLUSTER, OPERATOR, WORKLOAD


class BlameFeed:
    """What changes by itself, as an allowance ends or a maintenance window begins, :meth:`due` names."""

    def __init__(self, mirror: ClusterMirror, engine: Engine, clock: Callable[[], float]) -> None:
        self._mirror, self._engine, self._clock = mirror, engine, clock
        kube = engine.config.kube
        self._allowed = Allowances(kube.startup_allowance, kube.creation_allowance)
        self._until: dict[str, float] = {}
        """When a pod's cause changes by itself, by UID."""
        self._drained: dict[str, float] = {}
        """Of controllers of which pods were drained in a maintenance window that lasts, by key: until when."""
        self._held_back: dict[str, set[str]] = {}
        """Pods without an instance that nobody but their owners keep from being scheduled, by controllers' key."""
        self._cannot_make: set[str] = set()
        """Controllers that cannot make their pods, by key."""
        self._active: frozenset[str] = frozenset()

    # -- what a pod's surroundings say -----------------------------------------------------------------------------

    def setting(self, pod: FedPod) -> Setting:
        """What a pod does not say of itself."""
        node = self._mirror.nodes.get(pod.pod.spec.node_name)
        bound = pod.bound or self._clock()
        ended_by = CLUSTER if self._is_over(pod) else pod.ended_by
        covered = self._window_end(pod) > 0.0
        return Setting(node, covered, bound, pod.origin, pod.origin_until, ended_by, pod.ready)

    def _is_over(self, pod: FedPod) -> bool:
        """Whether a pod was drained in a maintenance window that is over."""
        return pod.ended_by == OPERATOR and 0.0 < pod.ended_until <= self._clock()

    def _window_end(self, pod: FedPod) -> float:
        """Until when a maintenance window is about a pod's node, which is gone, lost or takes no such pods; else 0."""
        name = pod.pod.spec.node_name
        node = self._mirror.nodes.get(name)
        if not name or (node is not None and node.ready and self._is_open(pod)):
            return 0.0
        return self._mirror.maintenance.until({} if node is None else node.attributes, self._clock())

    def _is_open(self, pod: FedPod) -> bool:
        """Whether a pod's node would take it now; so does one that we know nothing of."""
        node, engine = pod.pod.spec.node_name, self._engine
        return pod.spec < 0 or node not in engine.hosts or engine.takes(pod.spec, node)

    def goes(self, pod: FedPod) -> int:
        """Whose doing it is that a pod ends; settled when it is seen first."""
        if pod.ended_by is None:
            one = self._engine.pods.get(pod.uid)
            ours = pod.evicted or (one is not None and (one.preempted or one.state == types.LEAVING))
            until = self._window_end(pod)
            pod.ended_by = end_of(pod.pod, is_open=self._is_open(pod), ours=ours, setting=self.setting(pod))
            pod.ended_until = until if pod.ended_by == OPERATOR else 0.0
            if self._mirror.owners.is_suspended(pod.pod.metadata):
                pod.ended_by = OPERATOR
        if pod.key and pod.ended_until > max(self._clock(), self._engine.controllers[pod.key].drained):
            self._engine.drained(pod.key, pod.ended_until)
            self._drained[pod.key] = pod.ended_until
        return pod.ended_by

    # -- pods that wait --------------------------------------------------------------------------------------------

    def arrived(self, pod: FedPod, before: FedPod | None = None) -> None:
        """The engine knows a pod now: it goes on with what its instance was vacant for. Where it came for a pod that
        was told to go and is still there, that is ``before``."""
        pod.origin = self._engine.pods[pod.uid].cause
        if before is not None:
            before.successor, pod.is_successor = pod.uid, True
            pod.origin = self.goes(before)
        self._hold_operator(pod, before)

    def look_at_end_again(self, before: FedPod, successor: FedPod | None) -> None:
        """A node is another one than when a pod there was told to go: it may have been drained from it."""
        if before.ended_by != WORKLOAD:
            return  # that was known, and holds though the node is open again
        before.ended_by = None
        origin = self.goes(before)
        if successor is not None and not self._engine.pods[successor.uid].ready:
            successor.origin = origin
            self._hold_operator(successor, before)

    def _hold_operator(self, pod: FedPod, before: FedPod | None) -> None:
        """Until when an operator is who keeps a pod from its node."""
        if pod.origin == OPERATOR:
            drained = self._engine.controllers[pod.key].drained if before is None else before.ended_until
            pod.origin_until = drained or self._mirror.maintenance.latest(self._clock())

    def takes_over(self, key: str) -> None:
        """A controller was restored: what its ledger, and who stood by, say of a window in which pods were drained."""
        until = self._engine.controllers[key].drained
        if until:
            self._drained[key] = until
        if key in self._cannot_make or key in self._held_back:  # told of before the controller was
            self._tell_vacant(key)

    def bound(self, pod: FedPod) -> None:
        """A pod is bound to a node; a rollout makes some before those that they replace are told to go."""
        pod.bound = self._clock()
        controller = self._engine.controllers[pod.key]
        if pod.origin == CLUSTER and not pod.is_successor and 0 <= controller.desired < len(controller.rows):
            pod.origin = WORKLOAD

    def waits(self, pod: FedPod, *, impossible: bool) -> None:
        """A pod waits for a node: that is the cluster's doing, unless no node can ever take it, or it was drained in a
        maintenance window that goes on."""
        if impossible:
            self._tell(pod, Verdict(WORKLOAD))
        elif pod.origin == OPERATOR and pod.origin_until > self._clock():
            self._tell(pod, Verdict(OPERATOR, until=pod.origin_until))
        else:
            drained = self._engine.pods[pod.uid].cause == OPERATOR
            self._tell(pod, Verdict(CLUSTER, pod.origin_until if drained else 0.0))

    def awaited(self, since: float) -> Verdict:
        """Whose doing it is that a pod which had a place waits for its volumes since then (0: it does not): the
        cluster's for as long as making containers may take, then the workload's. Whoever names a provisioner that does
        not exist waits for ever."""
        end = since + self._allowed.creation
        return Verdict(WORKLOAD, end) if since and end <= self._clock() else Verdict(CLUSTER)

    def held_back(self, pod: FedPod, *, is_so: bool) -> None:
        """Whether a pod is kept from being scheduled by what its owner asked for; the others of its controller wait for
        it, and not for the cluster."""
        if pod.key and is_so:
            self._tell(pod, Verdict(WORKLOAD))
        if not is_so and not self._held_back:
            return
        target = pod.target or self._mirror.owners.target_of(pod.pod.metadata)
        if target is None:
            return
        known = self._held_back.setdefault(target.key, set())
        before = len(known)
        (known.add if is_so and not pod.key else known.discard)(pod.uid)
        if not known:
            del self._held_back[target.key]
        if len(known) != before:
            self._tell_vacant(target.key)

    def cannot_make(self, target: Target, *, is_so: bool) -> None:
        """Whether a controller is not allowed to make its pods: a quota, an admission policy, a missing account."""
        if is_so == (target.key in self._cannot_make):
            return
        (self._cannot_make.add if is_so else self._cannot_make.discard)(target.key)
        self._tell_vacant(target.key)

    def _tell_vacant(self, key: str) -> None:
        controller = self._engine.controllers.get(key)
        if controller is not None:
            every = len(controller.vacant) if key in self._cannot_make else 0
            count = max(every, len(self._held_back.get(key, ())))
            self._engine.blame_vacant(key, count, WORKLOAD, self._clock())

    def vacated(self, key: str, pod: FedPod) -> None:
        """An instance of a controller has no pod any more; ``pod`` was the last."""
        if self._is_over(pod):
            self._engine.blame_vacant(key, 0, OPERATOR, self._clock())
        if key in self._cannot_make or key in self._held_back:
            self._tell_vacant(key)

    def forget(self, pod: FedPod) -> None:
        """A pod is no more."""
        self._until.pop(pod.uid, None)
        self.held_back(pod, is_so=False)

    def finished(self, key: str) -> None:
        """A controller is no more."""
        self._drained.pop(key, None)
        self._cannot_make.discard(key)
        self._held_back.pop(key, None)

    # -- pods on nodes ---------------------------------------------------------------------------------------------

    def verdict(self, pod: FedPod) -> Verdict:
        """Whose doing it is that a pod on a node is not ready, as it looks now."""
        return cause_of(pod.pod, self.setting(pod), self._allowed, self._clock())

    def why_stopped(self, pod: FedPod, at: float) -> int:
        """Whose doing it was that a pod which is ready again was not, from then on."""
        if at == pod.record.lost_at:  # its node may have been back by then
            return CLUSTER
        node = self._mirror.nodes.get(pod.pod.spec.node_name)
        return WORKLOAD if node is not None and node.ready and node.ready_since < at else CLUSTER

    def ready(self, pod: FedPod, at: float) -> None:
        """A pod is ready; where it is not any more one day, that is to be found out then."""
        self._until.pop(pod.uid, None)
        self._engine.ready(pod.uid, at)
        pod.origin, pod.ready = CLUSTER, at
        if self._engine.pods[pod.uid].cause:
            self._engine.blame(pod.uid, CLUSTER, at)

    def not_ready(self, pod: FedPod, since: float | None, away: float) -> bool:
        """A pod on a node is not ready, since then by its own word; whether the engine learnt something."""
        engine, now = self._engine, self._clock()
        one = engine.pods[pod.uid]
        verdict = self.verdict(pod)
        if not one.ready:
            return self._tell(pod, verdict)
        at = happened(since, now, away)
        self._tell(pod, Verdict(verdict.cause, at, verdict.until))
        engine.unready(pod.uid, at)
        return True

    def _tell(self, pod: FedPod, verdict: Verdict) -> bool:
        """Whether that was news."""
        if verdict.until < float("inf"):
            self._until[pod.uid] = verdict.until
        one = self._engine.pods[pod.uid]
        if one.cause == verdict.cause:
            return False
        now = self._clock()
        self._engine.blame(pod.uid, verdict.cause, min(now, verdict.since) if verdict.since else now)
        return True

    # -- what changes by itself ------------------------------------------------------------------------------------

    def due(self, now: float, pods: Iterable[FedPod]) -> list[str]:
        """Pods to be looked at again: an allowance is over, or a maintenance window has begun or ended; O(pods with an
        allowance), and O(pods) where a window did."""
        for key, until in [one for one in self._drained.items() if one[1] <= now]:
            del self._drained[key]
            if key in self._engine.controllers:  # what is vacant for it is so for the cluster now
                self._engine.blame_vacant(key, 0, OPERATOR, until)
                self._engine.drained(key, 0.0)
        due = [uid for uid, until in self._until.items() if until <= now]
        for uid in due:
            del self._until[uid]
        active = self._mirror.maintenance.active(now)
        if active != self._active:
            self._active = active
            due += [one.uid for one in pods if one.key]
        return due
