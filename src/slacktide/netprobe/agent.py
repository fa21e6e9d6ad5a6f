"""One node's agent: a prober, and on a cluster the rows of the others and a publisher of its own."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import random
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from slacktide.errors import ConfigError
from slacktide.kube.client.addresses import join_address, split_address
from slacktide.kube.client.http import Connection, KubeError
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.custom_resources import NODE_LATENCY, NodeLatency
from slacktide.model.latency import Row
from slacktide.netprobe.options import AgentIdentity, Options
from slacktide.netprobe.peers import Peer
from slacktide.netprobe.prober import Prober
from slacktide.netprobe.publisher import OwnNode, Publisher
from slacktide.netprobe.rows import Rows
from slacktide.netprobe.sockets import open_socket, usable
from slacktide.netprobe.vivaldi import WORST

VARIABLE = "SLACKTIDE_NETPROBE_KEY"
SHORTEST = 32
MOST = 4
EXPECTED = (
    f"1 to {MOST} keys, one a line, of at least {SHORTEST} characters each, such as openssl rand -base64 32 gives"
)


def read_keys(path: Path | None) -> tuple[bytes, ...]:
    """Keys from a file, or without one from ``SLACKTIDE_NETPROBE_KEY``; the first one seals, all of them open.

    Two lines let a key be changed without a gap. Raises :class:`ConfigError`, which never shows a key.
    """
    if path is None:
        where, text = VARIABLE, os.environ.get(VARIABLE, "")
        if not text.strip():
            raise ConfigError(f"--key-file: found nothing, and {VARIABLE} is not set; expected {EXPECTED}")
    else:
        where = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigError(f"{where}: cannot be read: {said}; expected {EXPECTED}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST:
        raise ConfigError(f"{where}: found {len(lines)} keys, expected {EXPECTED}")
    for number, line in enumerate(lines, 1):
        if len(line) < SHORTEST:
            raise ConfigError(f"{where}:{number}: found a key of {len(line)} characters, expected {EXPECTED}")
    return tuple(
        hashlib.sha256(b"slacktide netprobe 1\0" + line.encode("utf-8", "surrogateescape")).digest() for line in lines
    )


LOG = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between looks at whether the row is to be written."""
LONGEST_PAUSE_SECONDS = 60.0
SHORTEST_PAUSE_SECONDS = 1.0


class Agent:
    """Measures from where it runs to ``peers``, or with a ``connection`` to the agents of its cluster.

    Raises :class:`ConfigError` for what cannot be bound, listened to or read.
    """

    def __init__(
        self,
        identity: AgentIdentity,
        options: Options,
        *,
        peers: Sequence[Peer] = (),
        connection: Connection | None = None,
    ) -> None:
        self.identity, self.options = identity, options
        host, port = _address("--bind", identity.bind)
        if identity.advertise:
            _address("--advertise", identity.advertise)
        keys = read_keys(identity.key_file)
        self._socket = open_socket(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.prober = Prober(identity.node, keys, self._socket, options)
        self.publisher: Publisher | None = None
        self.rows: Rows | None = None
        self.addresses: tuple[str, ...] = (identity.advertise,) if identity.advertise else ()
        self._reflector: Reflector[NodeLatency] | None = None
        self._began = time.monotonic()
        if connection is None:
            self.prober.set_peers(peers)
        else:
            self.publisher = Publisher(connection, identity.node, options)
            self.rows = Rows(identity.node, self.prober.set_peers, options.stale_after)
            self._reflector = Reflector(connection, NODE_LATENCY, self.rows)

    def row(self) -> Row:
        """What is known now."""
        prober = self.prober
        located = prober.position.error < WORST
        coordinate = prober.position.coordinate if located else None
        return Row(self.identity.node, prober.measured_at, prober.measured(), coordinate, prober.position.error)

    def age(self) -> float:
        """Seconds since the latest measurement, or since the start."""
        return time.monotonic() - max(self.prober.heard_at, self._began)

    def not_ready(self) -> str:
        """Why this agent is of no use yet; empty where it is."""
        if self._reflector is not None and not self._reflector.synced.is_set():
            return "the rows of the other nodes are not known yet"
        if self.rows is not None and self.rows.own is None:
            return "the row is not written yet"
        return ""

    def _settled(self) -> bool:
        """Whether the first round of measuring is over, so that the row is worth more than that of an agent before."""
        measured = len(self.prober.measured()) == len(self.prober.paths) > 0
        return measured or time.monotonic() - self._began > self.options.silent

    async def run(self) -> None:
        """Measure and publish until cancelled; ``http_server.Server`` tells of it meanwhile."""
        LOG.info("node %s takes probes on %s", self.identity.node, join_address(*self._socket.getsockname()[:2]))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.prober.run())
                if self._reflector is not None:
                    group.create_task(self._reflector.run())
                    group.create_task(self._publish())
        finally:
            self.close()

    def close(self) -> None:
        """Give back the address that it takes probes on; also for an agent that never ran."""
        self._socket.close()

    async def _publish(self) -> None:
        """Write the row when that is due; a failure is tried again after a growing pause."""
        publisher, rows, reflector = self.publisher, self.rows, self._reflector
        if publisher is None or rows is None or reflector is None:
            return
        await reflector.synced.wait()
        if rows.own is not None:
            publisher.carry_on(rows.own)
        pause, said = SHORTEST_PAUSE_SECONDS, ""
        while True:
            wait = LOOK_SECONDS
            try:
                if rows.own_is_gone:
                    rows.own_is_gone = False
                    publisher.begin_anew()
                await self._publish_once(publisher)
                pause, said = SHORTEST_PAUSE_SECONDS, ""
            except KubeError as error:
                if str(error) != said:
                    said = str(error)
                    LOG.warning("the row of node %s is not written: %s", self.identity.node, error)
                wait = pause * random.uniform(0.5, 1.0)
                pause = min(2.0 * pause, LONGEST_PAUSE_SECONDS)
            rows.warn([self.identity.node, *self.prober.paths])
            await asyncio.sleep(wait)

    async def _publish_once(self, publisher: Publisher) -> None:
        if not self.addresses:
            self.addresses = self._of_node(await publisher.own_node())
        row, now = self.row() if self._settled() else None, time.monotonic()
        if why := publisher.due(row, self.addresses, now):
            await publisher.write(row, self.addresses, now)
            LOG.debug("row written: %s", why)

    def _of_node(self, node: OwnNode) -> tuple[str, ...]:
        """The node's own addresses that our socket serves."""
        found = []
        for kind in ("InternalIP", "ExternalIP"):
            found += [one.address for one in node.status.addresses if one.type == kind]
            with contextlib.suppress(OSError):
                found = [one for one in found if usable(self._socket, one)]
            if found:
                break
        if not found:
            raise KubeError(
                f"node {self.identity.node}: no InternalIP that can be used; --advertise HOST:PORT names one"
            )
        return tuple(join_address(one, self.port) for one in found)


def _address(option: str, text: str) -> tuple[str, int]:
    try:
        return split_address(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None


def host_name() -> str:
    """What a node calls itself, where nobody says its name."""
    return socket.gethostname().lower()
