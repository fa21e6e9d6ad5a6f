"""How Kubernetes' own PodGroups stand: the condition PodGroupScheduled, as kube-scheduler 1.36 writes it.

True once as many pods as start together are bound; that stays, whatever becomes of them. False, Unschedulable, where
they took part in a pass and found no place, and where the group asks for what we do not do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.client.http import FORBIDDEN, NOT_FOUND, STRATEGIC_MERGE_PATCH, UNPROCESSABLE, ApiError, Unreachable
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.conditions import named_rule
from slacktide.kube.publish.events import SessionContext
from slacktide.kube.resources.objects import POD_GROUP, PodGroup, Reference, encode, rfc3339

LOG = logging.getLogger(__name__)

TICK_SECONDS = 1.0
AGAIN_SECONDS = 60.0
"""Why a group waits is told again after this long, if it changed; so is what was refused."""
LASTING = (FORBIDDEN, NOT_FOUND, UNPROCESSABLE)
"""Refusals that the next second changes nothing about; after others it is tried again at once."""
WRITE_SECONDS = 10.0
SCHEDULED = "PodGroupScheduled"

Name = tuple[str, str]


class Standing(NamedTuple):
    """A condition: its status, reason and message."""

    status: str
    reason: str
    message: str = ""


class Reported(NamedTuple):
    """What was told last of the group with a UID, and when; ``refused``: to no avail."""

    uid: str
    standing: Standing
    at: float
    refused: bool = False


class GroupConditionWriter:
    """Writes what changed, once a second at most; a decision never waits for it.

    ``awaits`` says whether a pod, by its UID, has a place that it waits for others to leave.
    """

    def __init__(self, session: SessionContext, awaits: Callable[[str], bool]) -> None:
        self._awaits = awaits
        self._connection, self._feed, self._recorder = session.connection, session.feed, session.recorder
        self._clock, self._leading, self._gate = session.clock, session.leading, session.gate
        self._explainer = Explainer(session.feed.engine, named_rule)
        self._reported: dict[Name, Reported] = {}
        """Of groups, by namespace and name."""
        self._warned: dict[str, None] = {}
        """UIDs of groups whose owners were told what is not done for them."""
        self._problem = ""

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self._gate.passed()
            if self._leading():
                await self._look()

    async def _look(self) -> None:
        known = self._feed.mirror.pod_groups
        self._reported = {name: told for name, told in self._reported.items() if name in known.objects}
        uids = {one.metadata.uid for one in known.objects.values()}
        self._warned = {uid: None for uid in self._warned if uid in uids}
        for name, pods, least in list(self._feed.groups.of_kubernetes()):
            found = known.objects.get(name)
            if found is None:
                continue
            if pods and self._feed.engine.groups.is_mixed(self._feed.groups.key_of(pods[0].uid)):
                self._warn(found)
            said = _condition(found)
            if said is not None and said.status == "True":
                continue
            await self._gate.passed()
            standing = self._standing(found, pods, least)
            if standing is not None and self._leading():
                await self._write(found, standing)

    def _standing(self, found: PodGroup, pods: list[FedPod], least: int) -> Standing | None:
        """How a group stands; None where there is nothing to say, or nothing new."""
        if problem := self._feed.mirror.pod_groups.problem(found.metadata.namespace, found.metadata.name):
            return Standing("False", "Unschedulable", problem)
        gang = found.spec.scheduling_policy.gang
        enough = max(1, gang.min_count if gang is not None else 1)
        if sum(bool(one.pod.spec.node_name) for one in pods) >= enough:
            return Standing("True", "Scheduled")
        if gang is not None and gang.min_count > 1 and not least:
            return None  # too few of its pods are there, as yet
        if any(self._awaits(one.uid) for one in pods):
            return Standing("False", "Unschedulable", "waiting for the pods that it preempts to terminate")
        waits = next((one for one in pods if one.key and not one.problem and one.queue == fed_pod.UNSCHEDULABLE), None)
        if waits is None:
            return None
        told = self._reported.get((found.metadata.namespace, found.metadata.name))
        is_this = told is not None and told.uid == found.metadata.uid and told.standing.status == "False"
        if told is not None and is_this and self._clock() - told.at < AGAIN_SECONDS:
            return None
        return Standing("False", "Unschedulable", self._explainer.lasting_reason(waits.uid, self._clock()))

    def _warn(self, found: PodGroup) -> None:
        metadata = found.metadata
        if metadata.uid in self._warned:
            return
        self._warned[metadata.uid] = None
        reference = Reference(POD_GROUP.api_version, "PodGroup", metadata.namespace, metadata.name, metadata.uid)
        note = (
            "spec.disruptionMode: found PodGroup, but its pods differ in importance: they are preempted one at a time"
        )
        self._recorder.record(reference, "NotSupported", note, event_type="Warning", action="Preempting")

    async def _write(self, found: PodGroup, standing: Standing) -> None:
        metadata, now = found.metadata, self._clock()
        name = metadata.namespace, metadata.name
        told = self._reported.get(name)
        same = told is not None and (told.uid, told.standing) == (metadata.uid, standing)
        if told is not None and same and told.refused and now - told.at < AGAIN_SECONDS:
            return
        if _condition(found) == standing or (told is not None and same and not told.refused):
            self._reported[name] = Reported(metadata.uid, standing, now)
            return
        path, body = POD_GROUP.path(*name, "status"), encode(_body(found, standing, now))
        try:
            await self._connection.patch(path, body, STRATEGIC_MERGE_PATCH, timeout=WRITE_SECONDS, permit=self._leading)
            self._problem = ""
            self._reported[name] = Reported(metadata.uid, standing, now)
        except ApiError as error:
            more = ": apply the manifests of this version" if error.status == FORBIDDEN else ""
            if str(error) != self._problem:
                LOG.warning("the condition of pod group %s/%s is not written: %s%s", *name, error, more)
            self._problem = str(error)
            if error.status in LASTING:
                self._reported[name] = Reported(metadata.uid, standing, now, refused=True)
        except Unreachable as error:
            LOG.debug("the condition of pod group %s/%s: %s", *name, error)


def _body(found: PodGroup, standing: Standing, now: float) -> dict[str, Any]:
    before = next((one for one in found.status.conditions if one.type == SCHEDULED), None)
    same = before is not None and before.status == standing.status
    since = before.last_transition_time if before is not None and same else None
    condition = {
        "type": SCHEDULED,
        **standing._asdict(),
        "observedGeneration": found.metadata.generation,
        "lastTransitionTime": rfc3339(now if since is None else since),
    }
    return {"metadata": {"uid": found.metadata.uid}, "status": {"conditions": [condition]}}


def _condition(found: PodGroup) -> Standing | None:
    one = next((one for one in found.status.conditions if one.type == SCHEDULED), None)
    return None if one is None else Standing(one.status, one.reason, one.message)
