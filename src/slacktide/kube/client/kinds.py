"""Kinds of objects: where they live and how one, a list or a watch of them is decoded.

A list's items are decoded one by one, so that a malformed object is reported and its neighbours are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from slacktide.kube.client.metadata import Metadata, Part, decode_special, encode_special

SHOWN_CHARACTERS = 300
UNREADABLE, TOO_DEEP = "unreadable", "too-deep"
"""Why an object cannot be decoded: its form is another one than that of its kind; it is nested deeper than a decoder
goes, which is some hundred levels."""


class HasMetadata(Protocol):
    """Anything decoded from an API object."""

    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=HasMetadata)


class Identity(NamedTuple):
    """An object, and one state of it."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> tuple[str, str]:
        """What names an object among its kind: namespace and name."""
        return self[:2]


class Malformed(NamedTuple):
    """An object that does not have the form it should have, and what is wrong with it.

    ``scheduler`` and ``node`` are those of a pod, where they could be read. ``reason``: one of few words, for counts.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    problem: str
    scheduler: str = ""
    node: str = ""
    reason: str = UNREADABLE

    @property
    def identity(self) -> Identity:
        """Which object it is, as far as that could be read."""
        return Identity(*self[:4])


class ListMetadata(Part, frozen=True):
    """A list's own metadata; ``continue_`` asks for the next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class RawListing(Part, frozen=True):
    """A list whose items are still bytes (of the answer's memory, which they keep alive)."""

    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


class RawEvent(Part, frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object as bytes."""

    type: str
    object: msgspec.Raw


class _Name(Part, frozen=True):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class _Named(Part, frozen=True):
    metadata: _Name


class Status(Part, frozen=True):
    """How the API server says no."""

    code: int = 0
    reason: str = ""
    message: str = ""


class Listing(NamedTuple, Generic[T]):
    """A decoded list."""

    items: list[T]
    malformed: list[Malformed]
    resource_version: str


class WatchEvent(NamedTuple, Generic[T]):
    """A decoded line of a watch; ``object`` is a ``Status`` for ERROR and an ``Identity`` for BOOKMARK."""

    type: str
    object: T | Malformed | Status | Identity


_listing = msgspec.json.Decoder(RawListing)
_event = msgspec.json.Decoder(RawEvent)
_status = msgspec.json.Decoder(Status, strict=False)
_named = msgspec.json.Decoder(_Named)
_anything = msgspec.json.Decoder()
_list_metadata = msgspec.json.Decoder(ListMetadata)
_text = msgspec.json.Decoder(str)
_encoder = msgspec.json.Encoder(enc_hook=encode_special)


def encode(value: object) -> bytes:
    """JSON of a structure (defaults left out) or of plain Python data."""
    return _encoder.encode(value)


def split_listing(body: bytes) -> RawListing:
    """A list taken apart into items that are still bytes.

    Raises ``msgspec.DecodeError`` where the body is no list.
    """
    try:
        return _listing.decode(body)
    except RecursionError:  # of one item; its neighbours are to be had all the same
        said = shallow_fields(body)
        metadata = _list_metadata.decode(said.get("metadata", b"{}"))
        items = said.get("items", b"null")
        return RawListing(metadata, list(map(msgspec.Raw, [] if items == b"null" else shallow_elements(items))))


def split_event(line: bytes) -> RawEvent:
    """A watch's line taken apart. Raises ``msgspec.DecodeError`` where it is none."""
    try:
        return _event.decode(line)
    except RecursionError:
        said = shallow_fields(line)
        return RawEvent(_text.decode(said.get("type", b"null")), msgspec.Raw(said.get("object", b"null")))


def decode_status(body: bytes | msgspec.Raw) -> Status:
    """The ``Status`` in an answer; an empty one where the body is something else."""
    try:
        return _status.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Status()


def identity_of(body: bytes | msgspec.Raw) -> Identity | None:
    """Which object this is, without looking at the rest of it; None where that cannot be read."""
    try:
        found = _named.decode(body).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Identity(found.namespace, found.name, found.uid, found.resource_version)


def identify(body: bytes | msgspec.Raw) -> Identity:
    """Which object this is, as far as it can be read from something malformed; what cannot be read is empty."""
    return Identity(*_texts(body, "metadata", "namespace", "name", "uid", "resourceVersion"))


def _texts(body: bytes | msgspec.Raw, part: str, *keys: str) -> list[str]:
    """Texts in a part of an object; empty where there is none."""
    try:
        found = _anything.decode(body)
    except RecursionError:
        found = _shallow_part(bytes(body), part)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    fields = found.get(part) if isinstance(found, dict) else None
    values = [fields.get(key) if isinstance(fields, dict) else None for key in keys]
    return [value if isinstance(value, str) else "" for value in values]


def _shallow_part(body: bytes, part: str) -> dict[str, Any]:
    """A part of an object that is nested too deeply as a whole, where it can be read."""
    try:
        return {part: _anything.decode(shallow_fields(body).get(part, b"null"))}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


class Kind(Generic[T]):
    """A kind of object: its type here, its API version and plural there.

    ``path(namespace, name, sub)`` is where all, a namespace's or one of them live; names are quoted.
    """

    def __init__(self, type_: type[T], api_version: str, plural: str, kind: str = "", *, namespaced: bool) -> None:
        self.type = type_
        self.api_version = api_version
        self.plural = plural
        self.kind = kind or type_.__name__
        self.namespaced = namespaced
        self.root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(type_, dec_hook=decode_special)

    def __repr__(self) -> str:
        return f"Kind({self.api_version} {self.kind})"

    def path(self, namespace: str = "", name: str = "", sub: str = "") -> str:
        """The path of all objects, of a namespace's, of one of them or of its subresource ``sub``."""
        path = f"{self.root}/namespaces/{quote(namespace, safe='')}" if namespace else self.root
        path = f"{path}/{self.plural}"
        if name:
            path = f"{path}/{quote(name, safe='')}"
        return f"{path}/{sub}" if sub else path

    def decode(self, body: bytes | msgspec.Raw) -> T | Malformed:
        """One object, or what is wrong with it."""
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            scheduler, node = _texts(body, "spec", "schedulerName", "nodeName")
            reason = TOO_DEEP if isinstance(error, RecursionError) else UNREADABLE
            return Malformed(*identify(body), _short(error), scheduler, node, reason)

    def decode_list(self, body: bytes) -> Listing[T]:
        """A whole list at once. Raises ``msgspec.DecodeError`` where the body is no list."""
        raw = split_listing(body)
        items: list[T] = []
        malformed: list[Malformed] = []
        for item in raw.items or ():
            decoded = self.decode(item)
            if isinstance(decoded, Malformed):
                malformed.append(decoded)
            else:
                items.append(decoded)
        return Listing(items, malformed, raw.metadata.resource_version)

    def decode_event(self, line: bytes) -> WatchEvent[T]:
        """One line of a watch. Raises ``msgspec.DecodeError`` where it is none."""
        event = split_event(line)
        found: Any
        if event.type == "ERROR":
            found = decode_status(event.object)
        elif event.type == "BOOKMARK":
            found = identify(event.object)
        else:
            found = self.decode(event.object)
        return WatchEvent(event.type, found)


def _short(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, RecursionError):
        text = "found more levels than can be read, expected some hundred at most"
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


# -- what is nested deeper than a decoder goes: JSON taken apart without going into it. The API server admits objects of
# ten thousand levels; decoders give up after some hundred, also where they only skip. Here depth is a number.

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)
_OPENING, _CLOSING = frozenset(b"[{"), frozenset(b"]}")


def shallow_fields(body: bytes) -> dict[str, bytes]:
    """The fields of an object, their values as they are written. Raises ``msgspec.DecodeError`` where it is none."""
    found: dict[str, bytes] = {}
    for part in _parts(body, ord("{")):
        name = _TOKEN.match(part)
        value = part[name.end() :].lstrip() if name is not None and name[0][:1] == b'"' else b""
        if name is None or value[:1] != b":":
            raise msgspec.DecodeError("found no name and colon, expected a field of an object")
        found[name[0][1:-1].decode()] = value[1:].strip()
    return found


def shallow_elements(body: bytes) -> list[bytes]:
    """The elements of a list, as they are written. Raises ``msgspec.DecodeError`` where it is none."""
    return list(_parts(body, ord("[")))


def _parts(body: bytes, opening: int) -> Iterator[bytes]:
    """What stands between the commas of the outermost brackets."""
    depth, begin = 0, -1
    for token in _TOKEN.finditer(body):
        first = body[token.start()]
        if begin < 0:
            if first != opening or body[: token.start()].strip():
                raise msgspec.DecodeError(f"found {body[:20]!r}, expected {chr(opening)!r} first")
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
    raise msgspec.DecodeError("found no end, expected as many closing brackets as opening ones")
