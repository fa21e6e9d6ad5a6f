"""One API server: requests with raw bytes in and out, and watches as lines.

A request does little more than aiohttp itself does, because the binding rate depends on it. Tokens are only in the
headers that are sent: no message, log or ``repr`` shows them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from slacktide.errors import ConfigError, SlacktideError
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.kinds import decode_status
from slacktide.kube.client.pacing import AGAIN_SECONDS, Limiter, MissingRights, Presence
from slacktide.kube.client.payload import LineSplitter, OpenWrites, Permitted, payload
from slacktide.kube.clock import monotonic_seconds

LOG = logging.getLogger(__name__)

OK = 200
BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 400, 401, 403, 404
CONFLICT, GONE, TOO_LARGE, MISDIRECTED, UNPROCESSABLE, TOO_MANY = 409, 410, 413, 421, 422, 429
SERVER_ERROR, UNAVAILABLE, GATEWAY_TIMEOUT = 500, 503, 504
PERMANENT = (BAD_REQUEST, TOO_LARGE, UNPROCESSABLE)
"""What is sent again as it is will be refused again."""

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

POOL = 256
"""The most connections for requests; further requests wait. Watches and urgent requests do not count."""
RETRIES = 3
LONGEST_RETRY_SECONDS = 10.0
REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
"""Requests that may be sent again: a second one has no further effect, or its preconditions refuse it."""
OVERLOADED = frozenset({TOO_MANY, UNAVAILABLE})
REFUSED = 300
RENEW_PAUSE_SECONDS = 5.0
"""Seconds between attempts to renew credentials that the server refuses, or that nobody gives us."""
SILENT_SECONDS = 660.0
"""A stream that says nothing for this long is given up, unless told otherwise."""
LIST_SILENT_SECONDS = 70.0
"""A list of which no byte comes for this long is given up, and so is a watch that is not accepted within it. The API
server itself ends a request that takes too long, by default after 60 s, and its answer says why."""
GOODBYE_SECONDS = 2.0
"""The longest time, in seconds, that a closed connection waits for the server to end TLS."""
# Silent connections are checked by the kernel: a server that vanished without a word is noticed in half a minute.
PROBES = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


TRANSPORT = (aiohttp.ClientError, OSError, TimeoutError, RuntimeError)
"""What a broken transport raises; aiohttp says RuntimeError where its session was closed under a request."""


class KubeError(SlacktideError):
    """A request to the API server failed."""


class Unreachable(KubeError):  # noqa: N818 (says what is the matter better than a word with Error)
    """No complete answer came. It is not known whether the request was carried out."""


class NotSent(Unreachable):
    """The request was not carried out: its ``permit`` did not allow any more that it be sent."""


class ApiError(KubeError):
    """The API server said no.

    ``status`` is the HTTP code, ``reason`` Kubernetes' word for it (Conflict, NotFound, AlreadyExists, Expired,
    TooManyRequests, ...), ``retry_after`` the seconds it asked to wait, if it did.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def passes(self) -> bool:
        """Whether the answer may be another in a moment: too many requests, or a failure of the API server's own."""
        return self.status == TOO_MANY or self.status >= SERVER_ERROR


async def connect(
    kubeconfig: Path | None = None,
    *,
    context: str | None = None,
    qps: float = 0.0,
    burst: int = 0,
    timeout: float = 30.0,
    rights_patience: float = 0.0,
) -> Connection:
    """A connection to the cluster of a kubeconfig, or of the pod we run in (``credentials.load_access``).

    ``qps`` and ``burst`` bound the requests a second (0: no limit), ``timeout`` is each request's in seconds, and
    ``rights_patience`` is :class:`Connection`'s.
    Raises ``ConfigError``; whether the server answers shows with the first request.
    """
    access = await load_access(kubeconfig, context)
    return Connection(access, qps=qps, burst=burst, timeout=timeout, rights_patience=rights_patience)


class Connection:
    """Requests to one API server. Make it within a running event loop; close it, or use it in ``async with``.

    ``timeout`` is each request's in seconds; of a list it bounds the wait for a connection only, and ``list_silence``
    the time without a byte. ``agent`` is the User-Agent, by which the API server names who wrote a field.
    ``rights_patience``: for so many seconds it is asked again where it knows no right to write (:mod:`.pacing`)
    """

    def __init__(
        self,
        access: Access,
        *,
        qps: float = 0.0,
        burst: int = 0,
        timeout: float = 30.0,
        list_silence: float = LIST_SILENT_SECONDS,
        agent: str = "slacktide",
        rights_patience: float = 0.0,
    ) -> None:
        self.agent = agent
        self._missing = MissingRights(rights_patience)
        self.limiter = Limiter(qps, burst)
        self._access = access
        self._extra: dict[str, Any] = {"allow_redirects": False}
        if access.server_name:
            self._extra["server_hostname"] = access.server_name
        if access.proxy:
            self._extra["proxy"] = access.proxy
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._list_timeout = aiohttp.ClientTimeout(total=None, connect=timeout, sock_read=list_silence)
        self._connect_seconds, self._begin_seconds = timeout, list_silence
        self._lists: set[asyncio.Event] = set()
        self._headers: dict[str, dict[str, str]] = {}
        self._renewing = asyncio.Lock()
        self._closing: dict[asyncio.Task[None], tuple[aiohttp.ClientSession, ...]] = {}
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._closed = False
        self._refused_at = float("-inf")
        self.presence = Presence()
        self.leader_writes = OpenWrites()
        self._open()

    def __repr__(self) -> str:
        return f"Connection({self._access.server})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    @property
    def server(self) -> str:
        """The API server's address."""
        return self._access.server

    async def close(self) -> None:
        """Ends all connections; requests under way fail with ``Unreachable``."""
        self._closed = True
        for task in self._closing:
            task.cancel()
        # A task that is cancelled may have closed only some of its sessions.
        sessions = [self._pooled, self._unpooled, *(one for old in self._closing.values() for one in old)]
        await asyncio.gather(*self._closing, *(one.close() for one in sessions), return_exceptions=True)
        # A request that was given up ends its TLS first; uvloop does not close before that.
        until = monotonic_seconds() + GOODBYE_SECONDS
        while any(one.fileno() >= 0 for one in self._sockets) and monotonic_seconds() < until:
            await asyncio.sleep(0.005)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float | aiohttp.ClientTimeout | None = None,
        urgent: bool = False,
        retries: int = RETRIES,
        permit: Callable[[], bool] | None = None,
    ) -> bytes:
        """Sends one request and returns the answer's body.

        ``path`` is sent as it is (``Kind.path`` quotes names); ``timeout`` is in seconds, for each attempt. ``urgent``
        waits neither for the rate limit nor for a free connection. A GET, PUT or DELETE answered with 429 or 503 is
        sent again up to ``retries`` times, after the time the server asked for (10 s at most), and, where there are
        any ``retries``, a write while the server may not know our rights yet. Anything else is not, so that the caller
        decides. ``permit`` is asked before each sending, and again when the ``body`` is about to be written, after
        whatever had to be waited for.
        Raises ``ApiError``, ``Unreachable``, and of the latter kind ``NotSent`` for what is not permitted any more.
        """
        asked = f"?{urlencode(query)}" if query else ""
        limits = self._limits(timeout)
        renewed = False
        while True:
            if self.limiter.qps and not urgent:
                await self.limiter.take()
            if monotonic_seconds() >= self._access.credentials.valid_until:
                await self._renew(force=False)
            session = self._unpooled if urgent else self._pooled
            headers = self._headers.get(content_type) or self._new_headers(content_type)
            if permit is not None and not permit():
                raise self._not_sent(method, path)
            url = self._url(path, asked)
            data = payload(body, permit)
            try:
                with nullcontext() if permit is None else self.leader_writes.sent(data):
                    response = await session.request(
                        method, url, data=data, headers=headers, timeout=limits, **self._extra
                    )
                    answer = await response.read()
            except TRANSPORT as error:
                if isinstance(data, Permitted) and data.refused:
                    raise self._not_sent(method, path) from None
                raise self._unreachable(method, path, error, limits) from None
            if response.status < REFUSED:
                self.presence.answered()
                self._missing.granted(method, path)
                return answer
            if response.status == UNAUTHORIZED and not renewed:
                renewed = True
                if await self._renew(force=True, refused=headers):
                    continue
            failure = _refusal(response, answer)
            pause = self._pause(method, path, failure, retries)
            if pause is None:
                raise failure
            retries -= response.status in OVERLOADED
            await asyncio.sleep(pause)

    def _pause(self, method: str, path: str, failure: ApiError, retries: int) -> float | None:
        """After how many seconds a request that was refused is sent again; None: it is not."""
        if retries <= 0:
            return None
        if failure.status in OVERLOADED and method in REPEATABLE:
            return min(failure.retry_after or 1.0, LONGEST_RETRY_SECONDS) * random.uniform(1.0, 1.2)
        # Whoever reads asks again as it is.
        waits = (
            failure.status == FORBIDDEN and method != "GET" and self._missing.may_come(method, path, failure.message)
        )
        return AGAIN_SECONDS if waits else None

    def _url(self, path: str, query: str) -> URL:
        return URL(f"{self._access.server}{path}{query}", encoded=True)

    def _limits(self, timeout: float | aiohttp.ClientTimeout | None) -> aiohttp.ClientTimeout:
        limits = self._timeout if timeout is None else timeout
        return limits if isinstance(limits, aiohttp.ClientTimeout) else aiohttp.ClientTimeout(total=limits)

    async def get(self, path: str, **options: Any) -> bytes:
        """Reads; ``request`` has the options."""
        return await self.request("GET", path, **options)

    async def get_list(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Reads a list, however long it is: it is given up only where no byte of it comes for ``list_silence``."""
        ended = asyncio.Event()
        self._lists.add(ended)
        try:
            return await self.request("GET", path, query=query, timeout=self._list_timeout)
        finally:
            self._lists.discard(ended)
            ended.set()

    async def post(self, path: str, body: bytes, **options: Any) -> bytes:
        """Creates."""
        return await self.request("POST", path, body=body, **options)

    async def put(self, path: str, body: bytes, **options: Any) -> bytes:
        """Replaces."""
        return await self.request("PUT", path, body=body, **options)

    async def patch(self, path: str, body: bytes, content_type: str = MERGE_PATCH, **options: Any) -> bytes:
        """Changes a part."""
        return await self.request("PATCH", path, body=body, content_type=content_type, **options)

    async def delete(self, path: str, body: bytes | None = None, **options: Any) -> bytes:
        """Deletes; ``body`` may hold DeleteOptions."""
        return await self.request("DELETE", path, body=body, **options)

    async def stream(
        self, path: str, query: Mapping[str, str], silence: float = SILENT_SECONDS
    ) -> AsyncGenerator[list[bytes], None]:
        """The lines of an endless answer (a watch), in lists as they arrive; ends when the server ends it.

        The first list is empty and says that the server has accepted. After ``silence`` seconds without a byte it is
        given up; so is one of which nothing at all comes for ``list_silence``.

        Close it (``contextlib.aclosing``) when leaving early. Raises ``ApiError`` and ``Unreachable``.
        """
        url = self._url(path, f"?{urlencode(query, quote_via=quote)}")
        await self.limiter.take()
        await self._renew(force=False)
        headers = self._headers.get(JSON) or self._new_headers(JSON)
        limits = aiohttp.ClientTimeout(total=None, connect=self._connect_seconds, sock_read=silence)
        try:
            async with asyncio.timeout(self._begin_seconds):
                begun = await self._unpooled.get(url, headers=headers, timeout=limits, **self._extra)
            async with begun as response:
                if response.status >= REFUSED:
                    answer = await response.read()
                    if response.status == UNAUTHORIZED:
                        await self._renew(force=True, refused=headers)
                    raise _refusal(response, answer)
                self.presence.answered()
                try:
                    yield []
                    splitter = LineSplitter()
                    async for piece in response.content.iter_any():
                        lines = splitter.feed(piece)
                        if lines:
                            yield lines
                finally:
                    _cut_off(response)
        except TRANSPORT as error:
            raise self._unreachable("GET", path, error, limits) from None

    def _open(self) -> None:
        tls = self._access.context if self._access.context is not None else True
        # Answers come uncompressed: near the API server compression costs both sides more than it saves.
        common = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": self.agent}
        self._pooled = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=POOL, ssl=tls, keepalive_timeout=60.0, socket_factory=self._new_socket
            ),
            headers=common,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=True,
        )
        self._unpooled = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=60.0, socket_factory=self._new_socket),
            headers=common,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=2**20,
        )

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in PROBES:
            if hasattr(socket, name):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._sockets.add(made)
        return made

    async def _renew(self, *, force: bool, refused: dict[str, str] | None = None) -> bool:
        """Renews the credentials where it is time to, or where the server refused those in ``refused``.

        Returns whether others than the refused ones are there now.
        """
        credentials = self._access.credentials
        if not force and monotonic_seconds() < credentials.valid_until:
            return False
        async with self._renewing:
            current = self._headers.get(JSON, {})
            if force and refused is not None and current.get("Authorization") != refused.get("Authorization"):
                return True  # Somebody else renewed them while we waited.
            now = monotonic_seconds()
            if now < (self._refused_at + RENEW_PAUSE_SECONDS if force else credentials.valid_until):
                return False  # The server also refuses the new ones, or somebody else renewed them while we waited.
            if force:
                self._refused_at = now
            before = credentials.header()
            try:
                changed = await credentials.renew(self._access.context, force=force)
            except ConfigError as error:
                LOG.warning("credentials cannot be renewed, the old ones stay in use: %s", error)
                credentials.valid_until = now + RENEW_PAUSE_SECONDS
                return False
            if changed or credentials.header() != before:
                self._headers.clear()
            if changed:
                # Connections made with the old certificate stay until their requests have ended.
                old = (self._pooled, self._unpooled)
                self._open()
                task = asyncio.create_task(_close_later(old, self._timeout.total or 0.0, tuple(self._lists)))
                self._closing[task] = old
                task.add_done_callback(self._closing.pop)
            return changed or credentials.header() != before

    def _new_headers(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type}
        authorization = self._access.credentials.header()
        if authorization is not None:
            headers["Authorization"] = authorization
        self._headers[content_type] = headers
        return headers

    def _not_sent(self, method: str, path: str) -> NotSent:
        return NotSent(f"{method} {self._access.server}{path}: not sent, as it is no longer needed")

    def _unreachable(self, method: str, path: str, error: Exception, limits: aiohttp.ClientTimeout) -> Exception:
        if isinstance(error, RuntimeError) and not self._closed:
            return error  # the session was not closed: a defect of ours
        self.presence.lost()
        # Only the text: aiohttp's errors may carry the request with its headers.
        said = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        if isinstance(error, aiohttp.SocketTimeoutError):
            said = f"no byte came for {limits.sock_read:g} s"
        return Unreachable(f"{method} {self._access.server}{path}: {said}")


def _refusal(response: aiohttp.ClientResponse, answer: bytes) -> ApiError:
    status = decode_status(answer)
    after = response.headers.get("Retry-After", "")
    wait = float(after) if after.isascii() and after.isdigit() else None
    message = status.message or answer[:200].decode("utf-8", "replace").strip() or (response.reason or "")
    return ApiError(response.status, status.reason, message, wait)


def _cut_off(response: aiohttp.ClientResponse) -> None:
    """End a watch early without the end of TLS: an event loop that ends does not wait for it."""
    transport = response.connection.transport if response.connection else None
    if transport is not None:
        transport.abort()


async def _close_later(
    sessions: tuple[aiohttp.ClientSession, ...], seconds: float, lists: tuple[asyncio.Event, ...]
) -> None:
    try:
        await asyncio.sleep(seconds)
        for ended in lists:
            await ended.wait()
    finally:
        for session in sessions:
            await session.close()
