"""Why pods wait, told where their owners look: the condition PodScheduled and the event FailedScheduling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from slacktide.config import KubeSettings
from slacktide.kube import entries
from slacktide.kube.bodies import encode_pod_status
from slacktide.kube.connection import STRATEGIC_MERGE_PATCH, ApiError, Connection, Unreachable
from slacktide.kube.counts import SERVER_ERROR, TOO_MANY
from slacktide.kube.entries import Entry
from slacktide.kube.explaining import named_rule
from slacktide.kube.intake import Intake
from slacktide.kube.limits import Limiter
from slacktide.kube.metadata import Condition
from slacktide.kube.objects import POD, pod_reference
from slacktide.kube.recorder import Recorder
from slacktide.kube.times import Instant
from slacktide.live.engine import Engine
from slacktide.live.explaining import Explainer

LOG = logging.getLogger(__name__)

AGAIN_SECONDS = 60.0
"""What the nodes lack is told again after this long, if it changed; that a pod waits for a node by now, at once."""
RETRY_SECONDS = 2.0
WRITERS = 4
LONGEST_MESSAGE = 1000


def _waits(entry: Entry) -> bool:
    """Whether there is a reason to tell why a pod waits."""
    return entry.queue in (entries.UNSCHEDULABLE, entries.ACTIVE) or entry.problem == entries.HELD


class Told(NamedTuple):
    """What a pod's condition was made to say, and when. ``of_nodes``: what they lack; else what is wrong with it."""

    at: float
    reason: str
    of_nodes: bool


class Reporter:
    """Tells reasons in the background; a decision never waits for one."""

    def __init__(
        self,
        connection: Connection,
        settings: KubeSettings,
        intake: Intake,
        recorder: Recorder,
        clock: Callable[[], float],
        leading: Callable[[], bool],
    ) -> None:
        self._connection, self._intake, self._recorder = connection, intake, recorder
        self._clock, self._leading = clock, leading
        self._limiter = Limiter(settings.event_qps, 100)
        self._due: dict[str, None] = {}
        self._told: dict[str, Told] = {}
        self._some = asyncio.Event()
        self.explainer: Explainer | None = None

    def report(self, entry: Entry) -> None:
        """A pod's reason is to be told."""
        self._due[entry.uid] = None
        self._some.set()

    def forget(self, uid: str) -> None:
        """A pod waits no more."""
        self._due.pop(uid, None)
        self._told.pop(uid, None)

    def after_pass(self, engine: Engine) -> None:
        """Those who waited through a pass are unschedulable for now; reasons are told of the new ones among them."""
        for uid in engine.waiting():
            entry = self._intake.pods.get(uid)
            if entry is None:
                continue
            if entry.queue == entries.ACTIVE:
                entry.queue = entries.UNSCHEDULABLE
            told = self._told.get(uid)
            if told is None or not told.of_nodes or self._clock() - told.at > AGAIN_SECONDS:
                self.report(entry)

    async def run(self) -> None:
        """Tells until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        while True:
            if not self._due:
                self._some.clear()
                await self._some.wait()
                continue
            uid = next(iter(self._due))
            del self._due[uid]
            entry = self._intake.pods.get(uid)
            if entry is None or not _waits(entry):
                continue
            reason = entry.problem or self._explain(uid)
            told = self._told.get(uid)
            of_nodes = not entry.problem
            if told is not None and told.reason == reason:
                self._told[uid] = Told(self._clock(), reason, of_nodes)
                await asyncio.sleep(0)
                continue
            await self._limiter.take()
            if self._told.get(uid) is not told:
                continue  # another writer was faster
            if reason and self._leading() and _waits(entry) and uid in self._intake.pods:
                self._told[uid] = Told(self._clock(), reason, of_nodes)
                if not await self._tell(entry, reason[:LONGEST_MESSAGE]):
                    self._told.pop(uid, None)
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self._retry, uid)
            await asyncio.sleep(0)

    def _retry(self, uid: str) -> None:
        """A reason could not be told."""
        entry = self._intake.pods.get(uid)
        if entry is not None and uid not in self._told:
            self.report(entry)

    def _explain(self, uid: str) -> str:
        engine = self._intake.engine
        if engine is None:
            return ""
        if self.explainer is None or self.explainer.engine is not engine:
            self.explainer = Explainer(engine, named_rule)
        return self.explainer.reason(uid, self._clock())

    async def _tell(self, entry: Entry, reason: str) -> bool:
        """Whether it was told, or nobody wants to know any more."""
        self._recorder.record(pod_reference(entry.pod), "FailedScheduling", reason, kind="Warning", action="Scheduling")
        condition = Condition("PodScheduled", "False", "Unschedulable", reason, Instant(self._clock()))
        current = next((one for one in entry.pod.status.conditions if one.type == "PodScheduled"), None)
        if current is not None and (current.status, current.message) == ("False", reason):
            return True
        path, body = POD.path(*entry.place, "status"), encode_pod_status(entry.uid, condition)
        try:
            await self._connection.patch(path, body, STRATEGIC_MERGE_PATCH, permit=self._leading)
        except ApiError as error:
            LOG.debug("condition of %s/%s: %s", *entry.place, error)
            return error.status != TOO_MANY and error.status < SERVER_ERROR
        except Unreachable as error:
            LOG.debug("condition of %s/%s: %s", *entry.place, error)
            return False
        return True
