"""A stream of bytes, taken apart into lines."""

from __future__ import annotations

import aiohttp

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
