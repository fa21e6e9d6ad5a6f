"""Probes and answers on the wire: one fixed form, so that an answer is never larger than its probe.

::

    offset  size  field
         0     4  "SLKP"
         4     1  version, 1
         5     1  1 probe, 2 answer
         6     2  0
         8    16  sender: the first bytes of the SHA-256 of its name
        24    16  receiver, likewise: a packet for one node is worth nothing at another
        40     8  epoch: a random number that the prober drew when it started
        48     8  sequence number of the probe, from 1, by prober and epoch
        56    16  nonce of the probe, random; the answer repeats epoch, sequence number and nonce
        72     8  the sender's wall clock when it sent, microseconds since 1970
        80     4  of an answer: microseconds between arrival of the probe and sending of the answer
        84    20  the sender's network coordinate: x, y, z, height (ms) and error, each a 32-bit float
       104    32  HMAC-SHA256 of all before it

Numbers are big-endian. The key is shared by all agents of a cluster.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections import OrderedDict
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from slacktide.model.latency import Coordinate

MAGIC, VERSION = b"SLKP", 1
FORM = struct.Struct(">4sBBxx16s16sQQ16sQI5f")
TAG_BYTES = 32
SIZE = FORM.size + TAG_BYTES
DIMENSIONS = 3
LONGEST_MS = 1e7


class Sort(IntEnum):
    """What a packet is."""

    PROBE = 1
    ANSWER = 2


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that was or will be authenticated; times in microseconds, coordinate in seconds."""

    sort: Sort
    sender: bytes
    receiver: bytes
    epoch: int
    sequence: int
    nonce: bytes
    sent: int
    turnaround: int
    coordinate: Coordinate
    error: float


class Refused(Exception):  # noqa: N818  # says what happened to a packet
    """A packet is not one of ours; ``reason`` is ``size``, ``format`` or ``forged``."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@lru_cache(2**16)
def identity(name: str) -> bytes:
    """What stands for a node's name in packets."""
    return hashlib.sha256(name.encode()).digest()[:16]


def sealed(packet: Packet, key: bytes) -> bytes:
    """The packet as bytes, with its authentication by ``key``."""
    at = [1e3 * one for one in (*packet.coordinate.point, packet.coordinate.height)]
    body = FORM.pack(
        MAGIC, VERSION, packet.sort, packet.sender, packet.receiver, packet.epoch, packet.sequence, packet.nonce,
        packet.sent, packet.turnaround, *at, packet.error,
    )  # fmt: skip
    return body + hmac.digest(key, body, "sha256")


def opened(data: bytes, keys: tuple[bytes, ...]) -> Packet:
    """The packet in ``data``, if one of ``keys`` has sealed it. Raises :class:`Refused`.

    What is cheap is looked at first: a flood of noise costs no hash.
    """
    if len(data) != SIZE:
        raise Refused("size")
    if data[:5] != MAGIC + bytes((VERSION,)) or data[5] not in (Sort.PROBE, Sort.ANSWER):
        raise Refused("format")
    body, tag = data[: FORM.size], data[FORM.size :]
    if not any(hmac.compare_digest(hmac.digest(key, body, "sha256"), tag) for key in keys):
        raise Refused("forged")
    _, _, sort, sender, receiver, epoch, sequence, nonce, sent, turnaround, *floats = FORM.unpack(body)
    if not all(math.isfinite(one) and abs(one) <= LONGEST_MS for one in floats) or min(floats[-2:]) < 0.0:
        raise Refused("format")
    point = tuple(one / 1e3 for one in floats[:DIMENSIONS])
    place = Coordinate(point, floats[DIMENSIONS] / 1e3)
    return Packet(Sort(sort), sender, receiver, epoch, sequence, nonce, sent, turnaround, place, floats[-1])


WINDOW = 1024
"""Sequence numbers before the highest one that may still come; older ones count as seen."""
MOST_PROBERS = 65_536
"""Only who has the key can make this memory grow; beyond this the longest silent prober is forgotten."""


class Replays:
    """``skew`` is how far another node's clock may be off, seconds; ``began`` when this memory began, UNIX seconds."""

    def __init__(self, skew: float, began: float) -> None:
        self.skew, self.began = skew, began
        self._seen: OrderedDict[tuple[bytes, int], tuple[float, int, int]] = OrderedDict()

    def why_not(self, sender: bytes, epoch: int, sequence: int, sent: float, now: float) -> str:
        """Empty for a probe that is new, and notes it; else ``stale`` (by its clock) or ``replayed``.

        ``sent`` and ``now`` are UNIX seconds by the sender's and by this node's clock.
        """
        self.began = min(self.began, now)  # the clock was set back; who comes from before that is still remembered
        if abs(now - sent) > self.skew or sent < self.began:
            return "stale"
        self._forget(now)
        key = sender, epoch
        _, highest, bits = self._seen.pop(key, (0.0, 0, 0))
        new = sequence > highest
        if new:
            bits = (bits << min(sequence - highest, WINDOW) | 1) & ((1 << WINDOW) - 1)
            highest = sequence
        elif highest - sequence < WINDOW:
            bit = 1 << (highest - sequence)
            new = not bits & bit
            bits |= bit
        self._seen[key] = (now, highest, bits)
        return "" if new else "replayed"

    def _forget(self, now: float) -> None:
        # Until then a recorded probe of this prober fails by its clock alone.
        while self._seen:
            key, (heard, _, _) = next(iter(self._seen.items()))
            if now - heard <= 2.0 * self.skew and len(self._seen) <= MOST_PROBERS:
                return
            del self._seen[key]
