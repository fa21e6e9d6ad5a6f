"""JSON taken apart without going into it, for what is nested deeper than a decoder goes.

The API server admits objects of ten thousand levels. Decoders give up after about as many as Python's own recursion
limit, also where they only skip what nobody asked for; here depth is a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


def fields(body: bytes) -> dict[str, bytes]:
    """The fields of an object, their values as they are written. Raises ``ValueError`` where it is none."""
    found: dict[str, bytes] = {}
    for part in _parts(body, ord("{")):
        name = _TOKEN.match(part)
        value = part[name.end() :].lstrip() if name is not None and name[0][:1] == b'"' else b""
        if name is None or value[:1] != b":":
            raise ValueError("found no name and colon, expected a field of an object")
        found[name[0][1:-1].decode()] = value[1:].strip()
    return found


def elements(body: bytes) -> list[bytes]:
    """The elements of a list, as they are written. Raises ``ValueError`` where it is none."""
    return list(_parts(body, ord("[")))


def _parts(body: bytes, opening: int) -> Iterator[bytes]:
    """What stands between the commas of the outermost brackets."""
    depth, begin = 0, -1
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if begin < 0:
            if first != opening or body[: token.start()].strip():
                raise ValueError(f"found {body[:20]!r}, expected {chr(opening)!r} first")
            depth, begin = 1, token.end()
        elif first in _OPENING:
            depth += 1
        elif first in _CLOSING:
            depth -= 1
            if depth == 0:
                if rest := body[begin : token.start()].strip():
                    yield rest
                return
        elif first == ord(",") and depth == 1:
            yield body[begin : token.start()].strip()
            begin = token.end()
    raise ValueError("found no end, expected as many closing brackets as opening ones")
