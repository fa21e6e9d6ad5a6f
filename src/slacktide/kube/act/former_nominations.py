"""Nominations that a former leader wrote, of places that nobody keeps any more.

A pod's status does not say who nominated it. If it was somebody else, that one takes the nomination out, and until then
room is kept (docs/semantics.md, 'Nominations by others'). A former leader of ours never will: so of each nomination
that a new leader finds, and of which it does not keep the place, it asks who wrote it, and takes out what was ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import msgspec

from slacktide.kube.act.counts import ASK_AGAIN_SECONDS
from slacktide.kube.act.nomination_writer import NominationWriter
from slacktide.kube.client.http import NOT_FOUND, ApiError, Unreachable
from slacktide.kube.client.kinds import Malformed
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.session_context import SessionContext
from slacktide.kube.resources.field_managers import managers_of
from slacktide.kube.resources.objects import POD

LOG = logging.getLogger(__name__)


class FormerNominations:
    """Asks about one after the other; ``leading`` is asked before each request."""

    def __init__(self, session: SessionContext, nominations: NominationWriter) -> None:
        self._connection, self._leading, self._gate = session.connection, session.leading, session.gate
        self._feed, self._nominations = session.feed, nominations
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
