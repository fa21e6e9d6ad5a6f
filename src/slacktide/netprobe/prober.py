"""Sends probes, answers those of others, and keeps what came of it; knows nothing of Kubernetes.

Round-trip time of a probe: from its sending until the kernel had the answer, less what the other side needed between
its kernel's receipt and its answer. So neither agent's waiting for a processor counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from slacktide.model.latency import Coordinate, Measured
from slacktide.netprobe.options import Options
from slacktide.netprobe.packets import DIMENSIONS, Packet, Refused, Replays, Sort, identity, opened, sealed
from slacktide.netprobe.peers import Peer
from slacktide.netprobe.sampling import Sample
from slacktide.netprobe.smoothing import Smoother
from slacktide.netprobe.sockets import is_numeric, receive, usable
from slacktide.netprobe.vivaldi import SHORTEST_RTT, Position

LOG = logging.getLogger(__name__)

AT_A_TIME = 64
"""Packets that are taken before the event loop gets its turn."""
RESOLVE_SECONDS = 300.0
LONGEST_TURNAROUND = 2**32 - 1
EXACT_SECONDS = 5e-4
"""What is done between two readings of the clock takes a tenth of this, unless the processor is somebody else's."""
ATTEMPTS = 4
FEWEST = 4
"""Probes that must be over before a peer is in the row."""


@dataclass(slots=True)
class Path:
    """What is known of the way to a peer; instants by the monotonic clock, which nobody sets."""

    peer: Peer
    smoother: Smoother
    next_at: float
    answered_at: float = float("-inf")
    address: str = ""
    port: int = 0
    resolved_at: float = float("-inf")
    looking_up: bool = False


@dataclass(slots=True)
class Asked:
    """A probe under way; not ``exact`` where we were kept from the processor just when it was sent."""

    peer: str
    nonce: bytes
    sent: float
    exact: bool = True


@dataclass
class Counts:
    """What happened: probes by result, packets dropped by reason, answers sent."""

    probes: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    answers: int = 0


class Prober:
    """Measures ``peers`` through ``made``, a bound UDP socket, for the node ``name``; ``run`` until cancelled."""

    def __init__(self, name: str, keys: tuple[bytes, ...], made: socket.socket, options: Options) -> None:
        self.name, self.options = name, options
        self.counts = Counts()
        self.position = Position.unknown(DIMENSIONS)
        self.paths: dict[str, Path] = {}
        self.peers: dict[str, Peer] = {}
        self.coordinates: dict[bytes, Coordinate] = {}
        self._known: set[bytes] = set()
        self.sample = Sample(
            options.full_mesh, options.sample, options.near, name if options.seed is None else f"{options.seed} {name}"
        )
        self._keys, self._socket = keys, made
        self._me = identity(name)
        self._chance = random.Random(f"{options.seed} {name}")
        self._epoch, self._sequence = int.from_bytes(os.urandom(8)), 0
        self._asked: dict[int, Asked] = {}
        self._replays = Replays(options.skew, time.time())
        self._changed = asyncio.Event()
        self._lookups: set[asyncio.Task[None]] = set()
        self.measured_at = float("-inf")
        """When any peer answered last, UNIX seconds; minus infinity before."""
        self.heard_at = float("-inf")
        """The same by the monotonic clock."""

    # -- whom to measure -------------------------------------------------------------------------------------------

    def set_peers(self, peers: Iterable[Peer]) -> None:
        """The other agents, as they are now; this node's own is left out."""
        self.peers = {one.name: one for one in peers if one.name != self.name}
        self._known = {identity(name) for name in self.peers}
        self.coordinates = {key: one for key, one in self.coordinates.items() if key in self._known}
        self._measure(self.sample.update(self.peers))

    def distance(self, name: str) -> float:
        """Round-trip time to a peer as coordinates have it, seconds; infinite where nothing is known of it."""
        found = self.coordinates.get(identity(name))
        return math.inf if found is None else self.position.coordinate.distance(found)

    def _measure(self, chosen: frozenset[str]) -> None:
        now = time.monotonic()
        for name in [name for name in self.paths if name not in chosen]:
            del self.paths[name]
        for name in sorted(chosen):
            peer, path = self.peers[name], self.paths.get(name)
            if path is None:
                # Spread over the interval, so that probes do not go out in bursts.
                begin = now + self._chance.uniform(0.0, self.options.interval)
                self.paths[name] = Path(peer, Smoother(), begin)
            elif path.peer != peer:
                path.peer, path.resolved_at = peer, float("-inf")
        self._changed.set()

    # -- what came of it -------------------------------------------------------------------------------------------

    def measured(self) -> dict[str, Measured]:
        """What is known of the peers that are measured; without a mean where none has answered lately."""
        now = time.monotonic()
        found = {}
        for name, path in self.paths.items():
            if len(path.smoother) < FEWEST:
                continue
            smoothed = path.smoother.smoothed()
            if now - path.answered_at > self.options.silent:
                found[name] = Measured(math.nan, math.nan, 1.0, 0)
            else:
                found[name] = Measured(smoothed.mean, smoothed.deviation, smoothed.lost, smoothed.samples)
        return found

    # -- at work ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Probe and answer until cancelled."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket.fileno(), self._readable)
        rotating = loop.create_task(self._rotate())
        try:
            while True:
                await self._probe_due()
        finally:
            for task in (rotating, *self._lookups):
                task.cancel()
            loop.remove_reader(self._socket.fileno())

    async def _rotate(self) -> None:
        while True:
            await asyncio.sleep(self.options.rotate)
            self._measure(self.sample.rotate(self.peers, self.distance))

    async def _probe_due(self) -> None:
        now = time.monotonic()
        self._give_up(now)
        wake = now + 1.0
        for path in list(self.paths.values()):
            if path.next_at <= now:
                self._probe(path)
                # A tenth of chance keeps agents from falling into step with each other or with what they measure.
                path.next_at = max(path.next_at, now - self.options.interval)
                path.next_at += self.options.interval * self._chance.uniform(0.9, 1.1)
            wake = min(wake, path.next_at)
        if self._asked:
            wake = min(wake, min(one.sent for one in self._asked.values()) + self.options.timeout)
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.001, wake - time.monotonic())):
                await self._changed.wait()

    def _give_up(self, now: float) -> None:
        for sequence in [key for key, one in self._asked.items() if now - one.sent >= self.options.timeout]:
            asked = self._asked.pop(sequence)
            self.counts.probes["lost"] += 1
            path = self.paths.get(asked.peer)
            if path is not None:
                path.smoother.lost()

    def _probe(self, path: Path) -> None:
        if time.monotonic() - path.resolved_at > RESOLVE_SECONDS:
            self._resolve(path)
        if not path.address and path.looking_up:
            return
        self._sequence += 1
        nonce = os.urandom(16)
        packet = self._packet(Sort.PROBE, identity(path.peer.name), self._epoch, self._sequence, nonce, 0)
        asked = self._asked[self._sequence] = Asked(path.peer.name, nonce, time.monotonic())
        if path.address and self._send(packet, (path.address, path.port)):
            asked.exact = time.monotonic() - asked.sent <= EXACT_SECONDS
            return
        del self._asked[self._sequence]
        self.counts.probes["unsent"] += 1
        path.smoother.lost()

    def _resolve(self, path: Path) -> None:
        """Find an address that our socket can send to; host names are looked up beside, anew now and then."""
        path.resolved_at = time.monotonic()
        if all(is_numeric(host) for host, _ in path.peer.addresses):
            self._choose(path, path.peer.addresses)
        elif not path.looking_up:
            path.looking_up = True
            task = asyncio.get_running_loop().create_task(self._look_up(path))
            self._lookups.add(task)
            task.add_done_callback(self._lookups.discard)

    async def _look_up(self, path: Path) -> None:
        loop, found = asyncio.get_running_loop(), []
        peer = path.peer
        for host, port in peer.addresses:
            try:
                answers = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            except (OSError, UnicodeError) as error:  # the latter where it cannot be a host's name
                LOG.warning("peer %s: %s cannot be looked up: %s", peer.name, host, error)
                continue
            found += [(str(one[4][0]), port) for one in answers]
        path.looking_up = False
        if path.peer is peer:
            self._choose(path, found)
        else:
            path.resolved_at = float("-inf")  # it moved meanwhile

    def _choose(self, path: Path, addresses: Sequence[tuple[str, int]]) -> None:
        """The first address of a family that our socket has."""
        for host, port in addresses:
            if address := usable(self._socket, host):
                path.address, path.port = address, port
                return
        path.address = ""
        LOG.warning("peer %s: none of its addresses can be used from here: %s", path.peer.name, path.peer.addresses)

    def _packet(self, sort: Sort, receiver: bytes, epoch: int, sequence: int, nonce: bytes, turnaround: int) -> bytes:
        position = self.position
        sent = time.time_ns() // 1000
        return sealed(
            Packet(
                sort, self._me, receiver, epoch, sequence, nonce, sent, turnaround, position.coordinate, position.error
            ),
            self._keys[0],
        )

    def _send(self, data: bytes, address: tuple[object, ...]) -> bool:
        try:
            self._socket.sendto(data, address)
        except OSError as error:  # no route, no room in the buffer
            LOG.debug("to %s: %s", address, error)
            return False
        return True

    # -- what comes in ---------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        for _ in range(AT_A_TIME):
            try:
                data, waited, source = receive(self._socket)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                LOG.debug("receiving: %s", error)
                return
            arrived = time.monotonic() - waited
            try:
                packet = opened(data, self._keys)
                if packet.receiver != self._me or packet.sender == self._me:
                    raise Refused("misdirected")
                if packet.sort is Sort.PROBE:
                    self._answer(packet, arrived, source)
                else:
                    self._answered(packet, arrived)
            except Refused as refused:
                self.counts.dropped[refused.reason] += 1

    def _answer(self, packet: Packet, arrived: float, source: tuple[object, ...]) -> None:
        why = self._replays.why_not(packet.sender, packet.epoch, packet.sequence, packet.sent / 1e6, time.time())
        if why:
            raise Refused(why)
        self._locate(packet)
        for _ in range(ATTEMPTS):
            held = time.monotonic() - arrived
            turnaround = min(round(held * 1e6), LONGEST_TURNAROUND)
            answer = self._packet(Sort.ANSWER, packet.sender, packet.epoch, packet.sequence, packet.nonce, turnaround)
            # Kept from the processor in between, we would tell too short a time.
            if time.monotonic() - arrived - held <= EXACT_SECONDS:
                break
        if self._send(answer, source):
            self.counts.answers += 1

    def _locate(self, packet: Packet) -> None:
        """Note where a peer is; strangers with the key cannot fill the memory."""
        if packet.sender in self._known:
            self.coordinates[packet.sender] = packet.coordinate

    def _answered(self, packet: Packet, arrived: float) -> None:
        asked = self._asked.get(packet.sequence)
        if (
            asked is None
            or packet.epoch != self._epoch
            or packet.nonce != asked.nonce
            or packet.sender != identity(asked.peer)
        ):
            raise Refused("unasked")
        del self._asked[packet.sequence]
        path = self.paths.get(asked.peer)
        if path is None:
            return  # the sample was changed meanwhile
        rtt = max(SHORTEST_RTT, arrived - asked.sent - packet.turnaround / 1e6)
        path.answered_at = self.heard_at = time.monotonic()
        self.measured_at = time.time()
        self._locate(packet)
        self.counts.probes["answered"] += 1
        if not asked.exact or not path.smoother.answered(rtt):
            self.counts.probes["outlier"] += 1
            return
        # The smoothed value keeps the coordinate from following every jitter.
        self.position.learn(path.smoother.smoothed().mean, packet.coordinate, packet.error, self._chance)
