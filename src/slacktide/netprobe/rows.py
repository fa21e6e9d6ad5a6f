"""The rows of a cluster as an agent keeps them: whom to measure, where, and who has fallen silent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from slacktide.kube.client.addresses import split_address
from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.resources.custom_resources import NodeLatency
from slacktide.netprobe.peers import Peer

LOG = logging.getLogger(__name__)


class Rows:
    """Handler of the watch of NodeLatencies; ``changed_peers`` is called when an agent came, went or moved.

    ``own`` is the row of ``node`` as the cluster has it, ``own_is_gone`` says that it was deleted, ``at`` has the
    instant of each row's latest measurement, UNIX seconds; of a row without one the instant at which it was first
    seen, so that a new node is given time.
    """

    def __init__(self, node: str, changed_peers: Callable[[list[Peer]], None], stale_after: float) -> None:
        self.node = node
        self.own: NodeLatency | None = None
        self.own_is_gone = False
        self.at: dict[str, float] = {}
        self._changed_peers, self._stale_after = changed_peers, stale_after
        self._peers: dict[str, Peer] = {}
        self._warned: set[str] = set()
        self._measured: set[str] = set()

    def replaced(self, objects: Sequence[NodeLatency]) -> None:
        for one in objects:
            self._note(one)
        self._changed_peers(list(self._peers.values()))

    def changed(self, found: NodeLatency) -> None:
        if self._note(found):
            self._changed_peers(list(self._peers.values()))

    def deleted(self, identity: Identity, last: NodeLatency | None) -> None:  # noqa: ARG002  # a handler's
        self.at.pop(identity.name, None)
        self._warned.discard(identity.name)
        self._measured.discard(identity.name)
        if identity.name == self.node:
            self.own, self.own_is_gone = None, True
        if self._peers.pop(identity.name, None) is not None:
            self._changed_peers(list(self._peers.values()))

    def malformed(self, problem: Malformed) -> None:
        LOG.warning("nodelatency %s is malformed: %s", problem.name, problem.problem)

    def ages(self, now: float | None = None) -> dict[str, float]:
        """Seconds since each node's latest measurement, or until it, where one's clock is ahead of ours."""
        now = time.time() if now is None else now
        return {name: abs(now - at) for name, at in self.at.items()}

    def warn(self, watched: Sequence[str]) -> None:
        """Say once of each of ``watched`` that its row has grown stale, and that it is fresh again."""
        ages = self.ages()
        for name in watched:
            stale = ages.get(name, 0.0) > self._stale_after
            if stale and name not in self._warned:
                self._warned.add(name)
                LOG.warning("the row of node %s is stale: nothing was measured for %.0f s", name, ages[name])
            elif not stale and name in self._warned:
                self._warned.discard(name)
                LOG.info("the row of node %s is fresh again", name)

    def _note(self, found: NodeLatency) -> bool:
        """Whether where its agent can be reached has changed."""
        name, status = found.metadata.name, found.status
        if status.at is not None:
            self.at[name] = float(status.at)
            self._measured.add(name)
        elif name not in self.at or name in self._measured:
            self.at[name] = time.time()
            self._measured.discard(name)
        if name == self.node:
            self.own = found
        addresses = []
        for text in status.addresses:
            try:
                addresses.append(split_address(text))
            except ValueError as error:
                LOG.warning("nodelatency %s: status.addresses: %s", name, error)
        peer = Peer(name, tuple(addresses))
        if self._peers.get(name) == peer:
            return False
        if addresses:
            self._peers[name] = peer
        else:
            self._peers.pop(name, None)
        return True
