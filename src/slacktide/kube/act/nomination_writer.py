"""For which node a pod waits is written into its status, and taken out again when the place is given up.

What is written of a pod comes in order, one request at a time, and is tried again until it is there: what stays behind
would look like a nomination by somebody else, for which room is kept, and to a new leader like a decision.

A pod's status does not say who nominated it. If it was somebody else, that one takes the nomination out, and until then
room is kept (docs/semantics.md, 'Nominations by others'). A former leader of ours never will: so of each nomination
that a new leader finds, and of which it does not keep the place, it asks who wrote it, and takes out what was ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from slacktide.kube.act.counts import ASK_AGAIN_SECONDS
from slacktide.kube.client.http import CONFLICT, NOT_FOUND, STRATEGIC_MERGE_PATCH, ApiError, Unreachable
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.objects import POD, Condition, Instant, Malformed, Part, encode_pod_status, pod_reference
from slacktide.kube.translate.unschedulable import LACKS_NODE

LOG = logging.getLogger(__name__)

LONGEST_NOMINATION_PAUSE_SECONDS = 30.0


class NominationWriter(SessionPart):
    """Writes nominations, each with whom the pod waits for; ``leading`` is asked before each request.

    ``awaited`` names who is still to leave, by the pod's UID.
    """

    def __init__(self, session: SessionContext, awaited: Callable[[str], str]) -> None:
        super().__init__(session)
        self._pods, self._awaited = session.feed.pods, awaited
        self._wanted: dict[str, tuple[str, asyncio.Event]] = {}
        """By UID: what is to be written, until it is, and whether that was tried."""
        self._at_work: set[str] = set()
        self._group: asyncio.TaskGroup | None = None

    def begin(self, group: asyncio.TaskGroup) -> None:
        """From now on it is written; what was wanted before that, too."""
        self._group = group
        for uid in tuple(self._wanted):
            self._work_on(uid)

    def show(self, pod: FedPod, node: str) -> None:
        """A pod waits for a place on a node."""
        is_said = pod.nominated == node and not pod.unnominated
        if not is_said or (pod.uid in self._wanted and self._wanted[pod.uid][0] != node):
            pod.nominated, pod.unnominated = node, False
            self._want(pod.uid, node)

    async def shown(self, pod: FedPod, node: str) -> None:
        """As :meth:`show`; returns once it was tried."""
        self.show(pod, node)
        wanted = self._wanted.get(pod.uid)
        if wanted is not None and self._group is not None:
            await wanted[1].wait()

    def clear(self, pod: FedPod) -> None:
        """A pod waits for that place no more."""
        if pod.nominated and not pod.unnominated:
            self._want(pod.uid, "")

    def forget(self, uid: str) -> None:
        """A pod is bound, or gone: what its status says of this is of no matter any more."""
        wanted = self._wanted.pop(uid, None)
        if wanted is not None:
            wanted[1].set()

    def _want(self, uid: str, node: str) -> None:
        self.forget(uid)
        self._wanted[uid] = node, asyncio.Event()
        self._work_on(uid)

    def _work_on(self, uid: str) -> None:
        if self._group is not None and uid not in self._at_work:
            self._at_work.add(uid)
            self._group.create_task(self._write(uid))

    async def _write(self, uid: str) -> None:
        pause = ASK_AGAIN_SECONDS
        while uid in self._wanted and uid in self._pods and self._leading():
            wanted = node, tried = self._wanted[uid]
            pod = self._pods[uid]
            is_over = await self._patched(pod, node)
            tried.set()
            if self._wanted.get(uid) is not wanted:
                pause = ASK_AGAIN_SECONDS
            elif is_over:
                del self._wanted[uid]
                pod.unnominated = not node
            else:
                await asyncio.sleep(pause)
                pause = min(2.0 * pause, LONGEST_NOMINATION_PAUSE_SECONDS)
        self._at_work.discard(uid)
        self.forget(uid)

    async def _patched(self, pod: FedPod, node: str) -> bool:
        """Whether it is written, or never will be."""
        said = self._awaited(pod.uid) if node else ""
        condition = Condition("PodScheduled", "False", LACKS_NODE, said, Instant(self._clock())) if said else None
        path, body = POD.path(*pod.namespaced_name, "status"), encode_pod_status(pod.uid, condition, node)
        try:
            await self._connection.patch(path, body, STRATEGIC_MERGE_PATCH, permit=self._leading)
        except ApiError as error:
            LOG.debug("nomination of %s/%s: %s", *pod.namespaced_name, error)
            return error.status != CONFLICT and not error.passes
        except Unreachable as error:
            LOG.debug("nomination of %s/%s: %s", *pod.namespaced_name, error)
            return False
        if said:
            self._feed.listener.overwritten(pod.uid)
            reference = pod_reference(pod.pod)
            self._recorder.record(reference, "FailedScheduling", said, event_type="Warning", action="Nominating")
        return True


class FormerNominations(SessionPart):
    """Asks about one after the other; ``leading`` is asked before each request."""

    def __init__(self, session: SessionContext, nominations: NominationWriter) -> None:
        super().__init__(session)
        self._nominations = nominations
        self._doubtful: deque[FedPod] = deque()

    def doubt(self, pod: FedPod) -> None:
        """Nobody keeps the place for which a pod is nominated; before :meth:`run`."""
        self._doubtful.append(pod)

    async def run(self) -> None:
        """Returns when all are known."""
        while self._doubtful and self._leading():
            pod = self._doubtful.popleft()
            if not await self._is_known(pod):
                self._doubtful.append(pod)  # of whom there is no answer does not hold up the others
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _is_known(self, pod: FedPod) -> bool:
        """Ask of one; whether there was an answer."""
        if not self._is_open(pod):
            return True
        try:
            data = await self._gate.after(self._connection.get(POD.path(*pod.namespaced_name)))
            found, managers = POD.decode(data), managers_of(data, "status", "nominatedNodeName")
        except ApiError as error:
            return error.status == NOT_FOUND
        except Unreachable:
            return False
        except msgspec.DecodeError as error:
            said = about(pod.namespaced_name)
            LOG.warning("pod %s/%s: who nominated it cannot be read: %s", *pod.namespaced_name, error, extra=said)
            return True
        if self._is_open(pod) and not isinstance(found, Malformed) and found.metadata.uid == pod.uid:
            node = found.status.nominated_node_name
            if node and not found.spec.node_name and self._connection.agent in managers:
                self._take_out(pod, node)
        return True

    def _is_open(self, pod: FedPod) -> bool:
        """Whether a pod is there, and we have not nominated it ourselves by now."""
        return self._feed.pods.get(pod.uid) is pod and not pod.nominated

    def _take_out(self, pod: FedPod, node: str) -> None:
        LOG.info(
            "pod %s/%s: a former leader nominated it for node %s, which is not kept", *pod.namespaced_name, node,
            extra=about(pod.namespaced_name, node),
        )  # fmt: skip
        pod.nominated = node
        if pod.key:
            self._feed.follow_nomination(pod)
        self._nominations.clear(pod)
        self._feed.listener.work()


class _Entry(Part, frozen=True):
    manager: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class _Metadata(Part, frozen=True):
    managed_fields: tuple[_Entry, ...] = ()


class _Object(Part, frozen=True):
    metadata: _Metadata


_decode = msgspec.json.Decoder(_Object).decode


def managers_of(data: bytes, *path: str) -> set[str]:
    """Who wrote the field at ``path`` of an encoded object. Raises ``msgspec.DecodeError``."""
    return {one.manager for one in _decode(data).metadata.managed_fields if _has(one.fields, path)}


def _has(fields: dict[str, Any], path: tuple[str, ...]) -> bool:
    for name in path:
        found = fields.get(f"f:{name}")
        if not isinstance(found, dict):
            return False
        fields = found
    return True
