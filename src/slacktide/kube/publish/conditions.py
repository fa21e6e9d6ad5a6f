"""Why pods wait, told where their owners look: the condition PodScheduled and the event FailedScheduling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH, ApiError, Unreachable
from slacktide.kube.client.metadata import Condition
from slacktide.kube.client.rate_limit import Limiter
from slacktide.kube.client.status_codes import SERVER_ERROR, TOO_MANY
from slacktide.kube.client.timestamps import Instant
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.rule_names import named_rule
from slacktide.kube.publish.term_context import TermContext
from slacktide.kube.resources.bodies import encode_pod_status
from slacktide.kube.resources.objects import POD, pod_reference

LOG = logging.getLogger(__name__)

AGAIN_SECONDS = 60.0
"""What the nodes lack is told again after this long, if it changed; that a pod waits for a node by now, at once."""
RETRY_SECONDS = 2.0
WRITERS = 4
LONGEST_MESSAGE = 1000


def _waits(pod: FedPod) -> bool:
    """Whether there is a reason to tell why a pod waits."""
    return pod.queue in (fed_pod.UNSCHEDULABLE, fed_pod.ACTIVE) or pod.problem == fed_pod.HELD


class Told(NamedTuple):
    """What a pod's condition was made to say, and when. ``of_nodes``: what they lack; else what is wrong with it."""

    at: float
    reason: str
    of_nodes: bool


class ConditionWriter:
    """Tells reasons in the background; a decision never waits for one."""

    def __init__(self, term: TermContext) -> None:
        self._connection, self._feed, self._recorder = term.connection, term.feed, term.recorder
        self._clock, self._leading, self._gate = term.clock, term.leading, term.gate
        self._limiter = Limiter(term.settings.event_qps, 100)
        self._due: dict[str, None] = {}
        self._told: dict[str, Told] = {}
        self._some = asyncio.Event()
        self._explainer = Explainer(term.feed.engine, named_rule)

    def report(self, pod: FedPod) -> None:
        """A pod's reason is to be told."""
        self._due[pod.uid] = None
        self._some.set()

    def forget(self, uid: str) -> None:
        """A pod waits no more."""
        self._due.pop(uid, None)
        self._told.pop(uid, None)

    def after_pass(self, waiting: Sequence[str]) -> None:
        """These waited through a pass. They are unschedulable for now; reasons are told of the new ones among them."""
        for uid in waiting:
            pod = self._feed.pods.get(uid)
            if pod is None:
                continue
            if pod.queue == fed_pod.ACTIVE:
                pod.queue = fed_pod.UNSCHEDULABLE
            told = self._told.get(uid)
            if told is None or not told.of_nodes or self._clock() - told.at > AGAIN_SECONDS:
                self.report(pod)

    async def run(self) -> None:
        """Tells until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        while True:
            await self._gate.passed()
            if not self._due:
                self._some.clear()
                await self._some.wait()
                continue
            uid = next(iter(self._due))
            del self._due[uid]
            pod = self._feed.pods.get(uid)
            if pod is None or not _waits(pod):
                continue
            reason = pod.problem or self._explainer.reason(uid, self._clock())
            told = self._told.get(uid)
            of_nodes = not pod.problem
            if told is not None and told.reason == reason:
                self._told[uid] = Told(self._clock(), reason, of_nodes)
                await asyncio.sleep(0)
                continue
            await self._limiter.take()
            if self._told.get(uid) is not told:
                continue  # another writer was faster
            if reason and self._leading() and _waits(pod) and uid in self._feed.pods:
                self._told[uid] = Told(self._clock(), reason, of_nodes)
                if not await self._tell(pod, reason[:LONGEST_MESSAGE]):
                    self._told.pop(uid, None)
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self._retry, uid)
            await asyncio.sleep(0)

    def _retry(self, uid: str) -> None:
        """A reason could not be told."""
        pod = self._feed.pods.get(uid)
        if pod is not None and uid not in self._told:
            self.report(pod)

    async def _tell(self, pod: FedPod, reason: str) -> bool:
        """Whether it was told, or nobody wants to know any more."""
        self._recorder.record(
            pod_reference(pod.pod), "FailedScheduling", reason, event_type="Warning", action="Scheduling"
        )
        condition = Condition("PodScheduled", "False", "Unschedulable", reason, Instant(self._clock()))
        current = next((one for one in pod.pod.status.conditions if one.type == "PodScheduled"), None)
        if current is not None and (current.status, current.message) == ("False", reason):
            return True
        path, body = POD.path(*pod.namespaced_name, "status"), encode_pod_status(pod.uid, condition)
        try:
            await self._connection.patch(path, body, STRATEGIC_MERGE_PATCH, permit=self._leading)
        except ApiError as error:
            LOG.debug("condition of %s/%s: %s", *pod.namespaced_name, error)
            return error.status != TOO_MANY and error.status < SERVER_ERROR
        except Unreachable as error:
            LOG.debug("condition of %s/%s: %s", *pod.namespaced_name, error)
            return False
        return True
