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
