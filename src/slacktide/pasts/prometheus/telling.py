"""Tells what chunks of series say as changes of objects, in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from slacktide.for_people import counted
from slacktide.kube.client.kinds import Kind, Malformed
from slacktide.kube.client.metadata import rfc3339
from slacktide.kube.resources import objects
from slacktide.kube.translate.causes import BY_SCHEDULER, DISRUPTED
from slacktide.pasts.conditions import with_condition
from slacktide.pasts.prometheus import objects as made
from slacktide.pasts.prometheus.chunk import WISHES, Chunk
from slacktide.pasts.prometheus.fetch import Fetched
from slacktide.pasts.prometheus.nodes import Nodes
from slacktide.pasts.prometheus.objects import CONTROLLERS, NOBODY, Asked, Json, Key
from slacktide.pasts.story import Change, Findings

NODE, WISH, CREATED, BOUND, READY, GOING, OVER, GONE, JOB = range(9)
"""In which order things happen that happen at the same instant."""
Told = Iterator[tuple[Kind[Any], Any, bool]]
Deed = Callable[[float], Told]


@dataclass(slots=True)
class _Pod:
    """A pod that is there; ``early``: it was ready before it is known to be on its node; ``owner`` has made it, and
    ``top`` is whose it is in the end."""

    pod: objects.Pod
    owner: Key | None
    top: Key | None
    ready: bool = False
    early: bool = False
    counts: bool = True


class Teller:
    """Tells once: first :meth:`beginning`, whole, then :meth:`changes`."""

    def __init__(self, fetched: Fetched, findings: Findings) -> None:
        self._chunks, self._findings, self._plan = fetched.chunks(), findings, fetched.plan
        self._known_series = frozenset(fetched.plan.known)
        self._heap: list[tuple[float, int, int, Deed]] = []
        self._count = 0
        self._pods: dict[str, _Pod] = {}
        self._ended: dict[str, None] = {}
        """Pods that were gone in this chunk and the one before."""
        self._nodes = Nodes(fetched.plan.interval, self._known_series)
        self._owners: dict[Key, Key] = {}
        self._controllers: dict[Key, list[Json]] = {}
        """Controllers that were told of, with their conditions."""
        self._wishes: dict[Key, float] = {}
        self._counted: dict[Key, int] = {}
        """How many pods those have of which nobody says how many are wanted."""
        self._of_jobs: dict[Key, int] = {}
        """How many of their pods are there."""
        self._now = self._end = self._held_back = self._plan.begin
        self._preempted = self._owned = 0

    def beginning(self) -> Iterator[Change]:
        """What there was."""
        begin = self._plan.begin
        self._load()
        for _ in self._until(begin):
            pass
        self._now = begin
        for name in self._nodes.states:
            yield Change(begin, objects.NODE, self._nodes.states[name].built())
        for key in self._controllers:
            yield Change(begin, CONTROLLERS[key[0]], self._controller(key))
        for one in self._pods.values():
            yield Change(begin, objects.POD, one.pod)

    def changes(self) -> Iterator[Change]:
        """What came then."""
        yield from self._until(self._held_back)
        while self._load():
            yield from self._until(self._held_back)
        yield from self._until(self._end)
        self._say()

    def _load(self) -> bool:
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self._end = chunk.end
        # What a later chunk shows first may have happened a little before it began.
        self._held_back = chunk.end - 2 * self._plan.interval
        for uid in list(self._ended)[: max(0, len(self._ended) - 2 * len(chunk.gone) - 1000)]:
            del self._ended[uid]
        self._read_owners(chunk)
        self._read_pods(chunk)
        for at, update in self._nodes.read(chunk):
            self._at(at, NODE, update)
        counts = self._findings.counts
        counts["victims that kube-scheduler counted"] += round(chunk.victims)
        counts["budgets"] = max(counts["budgets"], chunk.budgets)
        for begin, end in chunk.unseen:
            self._findings.note(
                f"kube-state-metrics was not scraped from {rfc3339(begin)} to {rfc3339(end)}: what happened then is "
                "known as far as it says when"
            )
        return True

    def _at(self, at: float, rank: int, deed: Deed) -> None:
        self._count += 1
        heapq.heappush(self._heap, (at, rank, self._count, deed))

    def _until(self, at: float) -> Iterator[Change]:
        heap = self._heap
        while heap and heap[0][0] <= at:
            when, _, _, deed = heapq.heappop(heap)
            self._now = max(self._now, when)
            for kind, found, deleted in deed(when):
                if isinstance(found, Malformed):
                    self._findings.counts["objects that cannot be read"] += 1
                    self._findings.note(f"left out: {kind.kind} {found.namespace}/{found.name}: {found.problem}")
                else:
                    yield Change(self._now, kind, found, deleted)

    # -- controllers -----------------------------------------------------------------------------------------------

    def _read_owners(self, chunk: Chunk) -> None:
        for kind, rows in (("ReplicaSet", chunk.replicasets), ("Job", chunk.jobs)):
            for namespace, name, owner, owner_name in rows:
                if owner not in NOBODY:
                    self._owners[kind, namespace, name] = (owner, namespace, owner_name)
        for namespace, name, wanted in chunk.parallel:
            self._wishes["Job", namespace, name] = wanted
        for kind, namespace, name, at, value in chunk.wishes:
            self._at(at, WISH, self._wished((kind, namespace, name), value))
        for namespace, name, at, completed in chunk.jobs_over:
            self._at(at, JOB, self._job_over(("Job", namespace, name), "Complete" if completed else "Failed"))
        for namespace, name, at in chunk.jobs_gone:
            self._at(at, JOB, self._controller_gone(("Job", namespace, name)))

    def _controller(self, key: Key) -> Any:
        wanted = self._wishes.get(key, self._counted.get(key))
        spec: Json = {} if wanted is None else {"replicas": int(wanted)}
        if key[0] == "Job":
            spec = {} if wanted is None else {"parallelism": int(wanted)}
        elif key[0] == "CronJob":
            spec = {}
        return made.controller(key, self._owners.get(key), spec, self._controllers[key])

    def _ensure(self, key: Key) -> Told:
        """Tells of a controller, and of those above it, before its pods."""
        if key[0] not in CONTROLLERS or key in self._controllers:
            return
        owner = self._owners.get(key)
        if owner is not None:
            yield from self._ensure(owner)
        self._controllers[key] = []
        yield CONTROLLERS[key[0]], self._controller(key), False

    def _wished(self, key: Key, value: float | None) -> Deed:
        def deed(_: float) -> Told:
            if value is None:
                self._wishes.pop(key, None)
                yield from self._controller_gone(key)(_)
                return
            self._wishes[key] = value
            if key in self._controllers:
                yield CONTROLLERS[key[0]], self._controller(key), False
            else:
                yield from self._ensure(key)

        return deed

    def _job_over(self, key: Key, condition: str) -> Deed:
        def deed(_: float) -> Told:
            if key in self._controllers and not self._controllers[key]:
                self._controllers[key] = [{"type": condition, "status": "True"}]
                yield CONTROLLERS["Job"], self._controller(key), False

        return deed

    def _controller_gone(self, key: Key) -> Deed:
        def deed(_: float) -> Told:
            if key in self._controllers:
                found = self._controller(key)
                del self._controllers[key]
                self._owners.pop(key, None)
                self._wishes.pop(key, None)
                yield CONTROLLERS[key[0]], found, True

        return deed

    def _top(self, key: Key) -> Key:
        for _ in range(8):
            if key not in self._owners:
                break
            key = self._owners[key]
        return key

    def _recount(self, key: Key | None, by: int) -> Told:
        """Where nobody says how many pods a controller wants, it wants those that it has."""
        if key is None or key in self._wishes or key[0] not in ("Deployment", "StatefulSet", "ReplicaSet"):
            return
        if key not in self._controllers or (key[0] in WISHES and WISHES[key[0]][0] in self._known_series):
            return
        self._counted[key] = max(0, self._counted.get(key, 0) + by)
        yield CONTROLLERS[key[0]], self._controller(key), False

    # -- pods ------------------------------------------------------------------------------------------------------

    def _read_pods(self, chunk: Chunk) -> None:
        asked, placed = Asked(chunk), {uid: at for uid, _, at in chunk.bound}
        over = {uid: at for uid, _, at, _ in chunk.final}
        first = chunk.begin == self._plan.begin
        for uid, namespace, name, priority_class, *created_by, host_network in chunk.pods:
            if uid in self._pods or uid in self._ended or (first and over.get(uid, chunk.end) <= chunk.begin):
                continue
            kind, owner = chunk.owners.get(uid, created_by)
            key = None if kind in NOBODY else (kind, namespace, owner)
            if kind == "Node":
                key = (kind, "", owner)
            created = chunk.created.get(uid, placed.get(uid, chunk.begin))
            spec = asked.spec(uid, namespace, name, priority_class, host_network)
            found = made.pod(uid, namespace, name, created, asked.labels(uid), key, spec)
            self._findings.counts["pods"] += 1
            self._owned += key is not None
            self._at(created, CREATED, self._created(uid, found, key))
        for uid, node, at in chunk.bound:
            self._at(at, BOUND, self._bound(uid, node))
        stops = over | {uid: at for uid, at, _ in chunk.going}
        for uid, at, value in chunk.ready:
            # Who ends is ready no more by that, which says when more exactly than samples do.
            near = not value and abs(stops.get(uid, at) - at) <= 1.5 * self._plan.interval
            self._at(max(at, stops.get(uid, at)) if near else at, READY, self._ready(uid, bool(value)))
        preempted = set(chunk.preempted)
        for uid, at, until in chunk.going:
            self._at(at, GOING, self._going(uid, until, uid in preempted))
        for uid, phase, at, reason in chunk.final:
            self._at(at, OVER, self._over(uid, phase, reason))
        for uid, at in chunk.gone.items():
            self._at(at, GONE, self._gone(uid))

    def _created(self, uid: str, found: objects.Pod | Malformed, key: Key | None) -> Deed:
        def deed(_: float) -> Told:
            if isinstance(found, Malformed):
                yield objects.POD, found, False
                return
            if uid in self._pods or uid in self._ended:
                return
            if key is not None:
                yield from self._ensure(key)
            top = None if key is None else self._top(key)
            self._pods[uid] = _Pod(found, key, top)
            if key is not None and key[0] == "Job":
                self._of_jobs[key] = self._of_jobs.get(key, 0) + 1
            yield from self._recount(top, 1)
            yield objects.POD, found, False

        return deed

    def _change(self, uid: str, change: Callable[[objects.Pod], objects.Pod]) -> Told:
        one = self._pods[uid]
        one.pod = change(one.pod)
        yield objects.POD, one.pod, False

    def _bound(self, uid: str, node: str) -> Deed:
        def deed(at: float) -> Told:
            one = self._pods.get(uid)
            if one is None or one.pod.spec.node_name:
                return
            yield from self._change(uid, lambda pod: made.bound(pod, node, at))
            if one.early or "kube_pod_status_ready" not in self._known_series:
                one.ready = True
                yield from self._change(uid, lambda pod: made.with_readiness(pod, at, ready=True))

        return deed

    def _ready(self, uid: str, ready: bool) -> Deed:
        def deed(at: float) -> Told:
            one = self._pods.get(uid)
            if one is None or one.pod.status.phase in ("Succeeded", "Failed"):
                return
            if not one.pod.spec.node_name:
                one.early = ready
            elif one.ready != ready:
                one.ready = ready
                lost = not self._nodes.is_ready(one.pod.spec.node_name)
                yield from self._change(uid, lambda pod: made.with_readiness(pod, at, ready=ready, lost=lost))

        return deed

    def _going(self, uid: str, until: float, preempted: bool) -> Deed:
        def deed(at: float) -> Told:
            one = self._pods.get(uid)
            if one is None or one.pod.metadata.deletion_timestamp is not None:
                return
            if preempted:
                self._preempted += 1
                marked = with_condition(one.pod, DISRUPTED, at, reason=BY_SCHEDULER)
                yield from self._change(uid, lambda _: marked)
            yield from self._change(uid, lambda pod: made.told_to_go(pod, until))

        return deed

    def _over(self, uid: str, phase: str, reason: str) -> Deed:
        def deed(at: float) -> Told:
            one = self._pods.get(uid)
            if one is None or one.pod.status.phase == phase:
                return
            yield from self._change(uid, lambda pod: made.over(pod, phase, reason, at))
            yield from self._left(one)

        return deed

    def _gone(self, uid: str) -> Deed:
        def deed(_: float) -> Told:
            one = self._pods.pop(uid, None)
            self._ended[uid] = None
            if one is not None:
                yield from self._left(one)
                yield objects.POD, one.pod, True
                yield from self._left_by(one.owner)

        return deed

    def _left_by(self, key: Key | None) -> Told:
        """A Job of which nobody says when it was deleted is gone with its last pod."""
        if key not in self._of_jobs:
            return
        assert key is not None  # noqa: S101  # for the type checker: it is there
        self._of_jobs[key] -= 1
        if not self._of_jobs[key]:
            del self._of_jobs[key]
            if "kube_job_created" not in self._known_series:
                yield from self._controller_gone(key)(0.0)

    def _left(self, one: _Pod) -> Told:
        if one.counts:
            one.counts = False
            yield from self._recount(one.top, -1)

    def _say(self) -> None:
        """What was seen only by the end."""
        findings = self._findings
        victims = findings.counts["victims that kube-scheduler counted"]
        if victims > self._preempted:
            findings.note(
                f"kube-scheduler preempted {counted(victims, 'pod')}; of {self._preempted} of them kube-state-metrics "
                "says which they were: the others count as deleted by their owners"
            )
        if not self._owned and "kube_pod_owner" not in self._known_series:
            findings.note("no kube_pod_owner, and no created_by_kind: each pod is a workload of its own")
        if findings.counts["budgets"]:
            findings.note(
                f"{counted(findings.counts['budgets'], 'PodDisruptionBudget')} cannot be used: kube-state-metrics "
                "does not say for whose pods"
            )
        findings.counts["nodes"] = self._nodes.seen
