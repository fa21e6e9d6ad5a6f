"""Why pods wait, told where their owners look: the condition PodScheduled and the event FailedScheduling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import NamedTuple

from slacktide.engine.explain.feasibility import rule_text
from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH, ApiError, Unreachable
from slacktide.kube.client.pacing import Limiter
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.feed import Feed
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.bodies import encode_pod_status
from slacktide.kube.resources.objects import POD, Condition, Instant, Reference, pod_reference, whole_seconds
from slacktide.kube.translate.unschedulable import FAILED, LACKS_NODE, WAITING_FOR_VOLUME
from slacktide.model import Rule

LOG = logging.getLogger(__name__)

AGAIN_SECONDS = 60.0
"""What the nodes lack is told again after this long, if it changed; that a pod waits for a node by now, or may preempt
by now, at once."""
SOONEST_SECONDS = 1.0
"""What keeps it from preempting is not looked at again before that."""
AGAIN_A_SECOND = 20.0
"""So many are told again at most: where thousands wait, and the nodes change, the API server has others to serve."""
LOOK_SECONDS = 0.01
"""Each writer's pause after it has found that a reason is still the same."""
RETRY_SECONDS = 2.0
WRITERS = 4
LONGEST_MESSAGE = 1000


def _waits(pod: FedPod) -> bool:
    """Whether there is a reason to tell why a pod waits."""
    if pod.awaited or (pod.queue == fed_pod.BACKOFF and pod.refusal):
        return True
    return pod.queue in (fed_pod.UNSCHEDULABLE, fed_pod.ACTIVE) or pod.problem in (fed_pod.HELD, fed_pod.ORPHAN)


def _known(feed: Feed, pod: FedPod) -> tuple[str, str, float]:
    """Why a pod waits though it lacks no node: in words, as the condition's reason, and since when (0: now)."""
    if pod.awaited:
        return pod.awaited, WAITING_FOR_VOLUME, pod.awaited_since or 0.0
    if pod.problem in (fed_pod.HELD, fed_pod.ORPHAN):
        return feed.why_held(pod), LACKS_NODE, 0.0
    if pod.problem or not pod.refusal:
        return pod.problem, LACKS_NODE, 0.0
    return pod.refusal, FAILED, 0.0


class Reported(NamedTuple):
    """What a pod's condition was made to say, and when; without instants. ``of_nodes``: what they lack; else what is
    wrong with it. ``may_at``: from when on it may preempt, if it may not yet."""

    at: float
    reason: str
    of_nodes: bool
    may_at: float = inf


class ConditionWriter(SessionPart):
    """Tells reasons in the background; a decision never waits for one."""

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._limiter = Limiter(session.settings.event_qps, 100)
        self._due: dict[str, None] = {}
        """Whose reason is to be told at once."""
        self._old: dict[str, None] = {}
        """Those told before of what the nodes lack, which may have changed; when the next one may be told again."""
        self._next_old = 0.0
        self._reported: dict[str, Reported] = {}
        self._early: dict[str, float] = {}
        """Who was to be told before others of the same instant had their places, and when."""
        self._some = asyncio.Event()
        self._explainer = Explainer(session.feed.engine, named_rule)

    def report(self, pod: FedPod) -> None:
        """A pod's reason is to be told."""
        self._due[pod.uid] = None
        self._some.set()

    def forget(self, uid: str) -> None:
        """A pod waits no more."""
        self._due.pop(uid, None)
        self._old.pop(uid, None)
        self._reported.pop(uid, None)
        self._early.pop(uid, None)

    def overwritten(self, uid: str) -> None:
        """A pod's condition says something else by now: what it was made to say before is told again where it holds."""
        self._reported.pop(uid, None)

    def after_pass(self, waiting: Sequence[str]) -> None:
        """These waited through a pass. They are unschedulable for now; reasons are told of the new ones among them."""
        for uid in waiting:
            pod = self._feed.pods.get(uid)
            if pod is None:
                continue
            if pod.queue == fed_pod.ACTIVE:
                pod.queue = fed_pod.UNSCHEDULABLE
            told = self._reported.get(uid)
            if told is None or not told.of_nodes or self._clock() >= max(told.may_at, told.at + SOONEST_SECONDS):
                self.report(pod)  # also where the reason is of another kind by now
            elif self._clock() - told.at > AGAIN_SECONDS:
                self._old[uid] = None
                self._some.set()

    async def run(self) -> None:
        """Tells until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        while True:
            await self._gate.passed()
            uid = self._next()
            if uid is not None:
                try:
                    await self._tell_anew(uid)
                except Exception as error:  # others are told all the same
                    self._failed(uid, error)
                await asyncio.sleep(0)
            else:
                self._some.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0 / AGAIN_A_SECOND if self._old else None):
                        await self._some.wait()

    def _failed(self, uid: str, error: Exception) -> None:
        pod = self._feed.pods.get(uid)
        about = Reference(kind="Pod", uid=uid) if pod is None else pod_reference(pod.pod)
        self._feed.mirror.barrier.failed(about, error)

    def _next(self) -> str | None:
        """Whose turn it is: first those who were told nothing yet."""
        for waiting in (self._due, self._old if self._clock() >= self._next_old else {}):
            if waiting:
                uid = next(iter(waiting))
                del waiting[uid]
                return uid
        return None

    async def _tell_anew(self, uid: str) -> None:
        """Tell why a pod waits, unless that was told before."""
        pod = self._feed.pods.get(uid)
        if pod is None or not _waits(pod):
            return
        now = self._clock()
        said, kind, since = _known(self._feed, pod)
        new = Reported(now, said, of_nodes=False)
        if not said:
            found = self._explainer.explain(uid, now)
            if found is None:
                return
            if found.fits and uid not in self._reported and self._is_early(uid, now):
                return
            new, said = Reported(now, found.lasting(), True, found.may_at), found.written(now)
        told, reason = self._reported.get(uid), new.reason
        if told is not None and told.reason == reason:
            self._reported[uid] = new
            await asyncio.sleep(LOOK_SECONDS)
            return
        is_again = told is not None and told.of_nodes and new.of_nodes
        if is_again:
            self._next_old = self._clock() + 1.0 / AGAIN_A_SECOND
        await self._limiter.take()
        if self._reported.get(uid) is not told:
            return  # another writer was faster
        if self._leading() and _waits(pod) and uid in self._feed.pods:
            self._reported[uid] = new
            if since:
                said += f", since {whole_seconds(since)}"
            if not await self._tell(pod, said[:LONGEST_MESSAGE], kind, since or now):
                if is_again and told is not None:  # it has its turn again with the others, at the next look
                    self._reported[uid] = told
                else:
                    self._reported.pop(uid, None)
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self._retry, uid)

    def _is_early(self, uid: str, now: float) -> bool:
        """Whether a pod is looked at again in a moment: nodes that others are about to take look free to it, and where
        no pass follows nobody would correct that."""
        if uid not in self._early:
            self._early[uid] = now
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._retry, uid)
        return now - self._early[uid] < RETRY_SECONDS / 2

    def _retry(self, uid: str) -> None:
        """A reason could not be told."""
        pod = self._feed.pods.get(uid)
        if pod is not None and uid not in self._reported:
            self.report(pod)

    async def _tell(self, pod: FedPod, reason: str, kind: str, since: float) -> bool:
        """Whether it was told, or nobody wants to know any more."""
        self._recorder.record(
            pod_reference(pod.pod), "FailedScheduling", reason, event_type="Warning", action="Scheduling"
        )
        condition = Condition("PodScheduled", "False", kind, reason, Instant(since))
        current = next((one for one in pod.pod.status.conditions if one.type == "PodScheduled"), None)
        if current is not None and (current.status, current.message) == ("False", reason):
            return True
        path, body = POD.path(*pod.namespaced_name, "status"), encode_pod_status(pod.uid, condition)
        try:
            await self._connection.patch(path, body, STRATEGIC_MERGE_PATCH, permit=self._leading)
        except ApiError as error:
            LOG.debug("condition of %s/%s: %s", *pod.namespaced_name, error)
            return not error.passes
        except Unreachable as error:
            LOG.debug("condition of %s/%s: %s", *pod.namespaced_name, error)
            return False
        return True


READ_WRITE_ONCE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
NAMED_MARKS = {
    ("away", "port:"): "node(s) didn't have free ports for the requested pod ports",
    ("away", "claim:"): READ_WRITE_ONCE_POD,
    ("away", "avoids:"): "node(s) didn't satisfy existing pods anti-affinity rules",
    ("away", "pods:"): "node(s) didn't match pod anti-affinity rules",
    ("near", "pods:"): "node(s) didn't match pod affinity rules",
    ("spread", "counted:"): "node(s) didn't match pod topology spread constraints",
}


def named_rule(rule: Rule) -> str:
    """What kube-scheduler says where a rule about other pods fails (:mod:`.selectors` makes the marks)."""
    head = rule.mark.partition(":")[0] + ":"
    return NAMED_MARKS.get((rule.kind, head)) or rule_text(rule)
