"""Bodies of requests as they are written."""

from __future__ import annotations

import io
from collections.abc import Callable

import aiohttp
from aiohttp.abc import AbstractStreamWriter

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
