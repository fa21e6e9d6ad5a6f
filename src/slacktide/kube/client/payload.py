"""What goes over the wire: bodies as they are written, writes whose outcome is not known, lines as they are read."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp.abc import AbstractStreamWriter

from slacktide.kube.clock import monotonic_seconds

LARGE_BODY = 2**20
"""Larger bodies, in bytes, are sent piece by piece, so that the event loop is not blocked."""


class Permitted(aiohttp.BytesPayload):
    """A request's body that is written only while ``permit`` allows it.

    A request may wait for long before its first byte is written, for a free connection or until a new one is made, and
    this process may be stopped in between. Without its body the server carries nothing out.
    """

    def __init__(self, body: bytes, permit: Callable[[], bool]) -> None:
        super().__init__(body)
        self._permit = permit
        self.refused = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if not self._permit():
            self.refused = True
            raise aiohttp.ClientConnectionError("not permitted")
        await super().write_with_length(writer, content_length)


def payload(body: bytes | None, permit: Callable[[], bool] | None) -> bytes | io.BytesIO | Permitted | None:
    """A request's body as aiohttp is to write it. Raises ``ValueError`` for a permit without a body to hold back."""
    if permit is not None:
        if body is None:
            raise ValueError("permit: found no body, expected one")
        return Permitted(body, permit)
    return io.BytesIO(body) if body is not None and len(body) > LARGE_BODY else body


NEVER = float("-inf")


class OpenWrites:
    """Writes that only the leader may send: those under way, and those that were given up without an answer.

    The API server may carry out the latter later. Who leads next must not count on what it sees before that.
    """

    def __init__(self) -> None:
        self._under_way = 0
        self._given_up = NEVER

    @contextmanager
    def sent(self, body: object) -> Iterator[None]:
        """Around a write with such a ``body``, until its answer is there."""
        self._under_way += 1
        try:
            yield
        except BaseException:  # a cancellation, too
            if not (isinstance(body, Permitted) and body.refused):
                self._given_up = monotonic_seconds()
            raise
        finally:
            self._under_way -= 1

    def within(self, seconds: float) -> bool:
        """Whether a write is under way, or was given up at most so many seconds ago."""
        return bool(self._under_way) or monotonic_seconds() - self._given_up <= seconds


LONGEST_LINE = 16 * 2**20
"""The most bytes in one line of a watch; objects in etcd have about 2 MB at most."""


class LineSplitter:
    """Takes a stream apart into lines. Raises ``aiohttp.ClientError`` for an endless one."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that are complete with this piece."""
        self._size += len(piece)
        if b"\n" not in piece:
            self._parts.append(piece)
            if self._size > LONGEST_LINE:
                raise aiohttp.ClientError(f"a line of more than {LONGEST_LINE} bytes")
            return []
        if self._parts:
            self._parts.append(piece)
            piece = b"".join(self._parts)
        lines = piece.split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        self._size = len(rest)
        return lines
