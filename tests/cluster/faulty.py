"""A proxy in front of a real API server that makes it misbehave as servers and networks do.

It speaks plain HTTP on loopback and passes everything on, also who asks, until told otherwise::

    async with FaultyProxy(access) as proxy:
        proxy.add(Fault(status=429, retry_after=1, method="POST", path=r"/binding$", times=3))
        proxy.add(Fault(reset=True, chance=0.05))
        proxy.cut_watches()
        proxy.stall_watches("/nodes$")

The first fault that matches a request is applied. Faults wear off after ``times`` requests.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import aiohttp
from aiohttp import web
from yarl import URL

from slacktide.kube.client.credentials import Access, Fixed

GOODBYE_SECONDS = 60.0
PASSED_ON = ("Authorization", "Content-Type", "Accept")
REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
           429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}  # fmt: skip


@dataclass(slots=True)
class Fault:
    """What goes wrong with requests whose method, path and query match, until it has happened ``times`` times.

    ``delay`` seconds are waited first. Then ``reset`` breaks the connection before, ``lose_answer`` after the server
    has carried the request out, ``halve_answer`` in the middle of the answer; ``status`` answers in the server's place.
    """

    method: str = ""
    path: str = ""
    times: float = float("inf")
    chance: float = 1.0
    delay: float = 0.0
    status: int = 0
    retry_after: int | None = None
    reset: bool = False
    lose_answer: bool = False
    halve_answer: bool = False
    watches: bool | None = None
    query: str = ""

    def matches(self, request: web.Request, watch: bool) -> bool:
        return (
            self.times > 0
            and (not self.method or self.method == request.method)
            and (self.watches is None or self.watches == watch)
            and re.search(self.path, request.path) is not None
            and re.search(self.query, request.query_string) is not None
        )


class FaultyProxy:
    """The proxy; ``url`` is where it listens, ``seen`` counts (method, status or fault), ``paths`` lists requests."""

    def __init__(self, access: Access, *, seed: int = 0, port: int = 0) -> None:
        self.url = ""
        self.seen: Counter[tuple[str, str]] = Counter()
        self.paths: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self._access = access
        self._chance = random.Random(seed)
        self._port = port
        self._watches: dict[asyncio.Task[None], web.Request] = {}
        self._expired: set[asyncio.Task[None]] = set()
        self._deaf = False
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._stalled = ""
        self._flows = asyncio.Event()

    async def __aenter__(self) -> Self:
        tls = self._access.context if self._access.context is not None else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, socket_factory=self._new_socket),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_watches()
        await self._runner.cleanup()
        await self._session.close()
        async with asyncio.timeout(GOODBYE_SECONDS):  # of watches that were cut TLS ends later
            while any(one.fileno() >= 0 for one in self._sockets):
                await asyncio.sleep(0.005)

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made

    def access(self) -> Access:
        """How a client gets to the API server through this proxy, with the same rights."""
        return Access(self.url, Fixed(self._access.credentials.header()))

    def kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig that leads through this proxy, for programs."""
        header = self._access.credentials.header() or ""
        user = {"token": header.removeprefix("Bearer ")} if header else {}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "faulty",
                    "contexts": [{"name": "faulty", "context": {"cluster": "faulty", "user": "faulty"}}],
                    "clusters": [{"name": "faulty", "cluster": {"server": self.url}}],
                    "users": [{"name": "faulty", "user": user}],
                }
            )
        )
        path.chmod(0o600)
        return path

    def add(self, fault: Fault) -> Fault:
        """Applies a fault from now on."""
        self.faults.append(fault)
        return fault

    def heal(self) -> None:
        """Takes all faults away."""
        self.faults.clear()

    def cut_watches(self) -> int:
        """Breaks the connections of all watches; returns how many."""
        return self._end_watches(lambda request: request.transport.abort() if request.transport else None)

    def expire_watches(self) -> int:
        """Ends all watches with the ERROR event of a resource version that is too old; returns how many."""
        self._expired.update(self._watches)
        return self._end_watches(lambda _: None)

    def stall_watches(self, path: str) -> None:
        """Watches whose path matches stay open and say nothing more; new ones are not even accepted."""
        self._stalled = path
        self._flows.clear()

    def let_watches_flow(self) -> None:
        """What was held back of them comes, and everything after it."""
        self._stalled = ""
        self._flows.set()

    async def _passable(self, path: str) -> None:
        while self._stalled and re.search(self._stalled, path):
            await self._flows.wait()

    async def go_down(self) -> None:
        """Stops listening and breaks every connection, until ``come_up``."""
        self._deaf = True
        await self._site.stop()
        self.cut_watches()

    async def come_up(self) -> None:
        """Listens again, at the same address."""
        self._deaf = False
        await self._listen()

    async def _listen(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await self._site.start()
        if not self._port:
            self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}"

    def _end_watches(self, how: Callable[[web.Request], None]) -> int:
        watches = list(self._watches.items())
        for task, request in watches:
            how(request)
            task.cancel()
        self._watches.clear()
        return len(watches)

    def _fault(self, request: web.Request, watch: bool) -> Fault | None:
        for fault in self.faults:
            if fault.matches(request, watch) and self._chance.random() < fault.chance:
                fault.times -= 1
                return fault
        return None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.paths.append((request.method, request.path_qs))
        watch = request.query.get("watch") in ("true", "1")
        if self._deaf:
            return self._reset(request)
        fault = self._fault(request, watch)
        if fault is not None:
            if fault.delay:
                await asyncio.sleep(fault.delay)
            if fault.reset:
                return self._reset(request)
            if fault.status:
                self.seen[request.method, str(fault.status)] += 1
                return _refusal(fault)
        if watch:
            await self._passable(request.path)
        try:
            return await self._forward(request, watch, fault)
        except aiohttp.ClientError:
            return self._reset(request)

    def _reset(self, request: web.Request) -> web.StreamResponse:
        self.seen[request.method, "reset"] += 1
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=503)  # Nobody gets this.

    async def _forward(self, request: web.Request, watch: bool, fault: Fault | None) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        headers["Accept-Encoding"] = "identity"
        url = URL(self._access.server + request.raw_path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=None)
        body = await request.read() if request.can_read_body else None
        async with self._session.request(
            request.method, url, headers=headers, data=body, timeout=timeout, allow_redirects=False
        ) as answer:
            if watch and answer.status == 200:
                return await self._pass_watch(request, answer)
            content = await answer.read()
        if fault is not None and fault.lose_answer:
            return self._reset(request)
        self.seen[request.method, str(answer.status)] += 1
        kept = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
        if fault is not None and fault.halve_answer:
            response = web.StreamResponse(status=answer.status, headers={**kept, "Content-Length": str(len(content))})
            await response.prepare(request)
            await response.write(content[: len(content) // 2])
            return self._reset(request)
        return web.Response(status=answer.status, body=content, headers=kept)

    async def _pass_watch(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        # A task of its own, which can be ended without ending the handler.
        task = asyncio.create_task(self._pump(answer, response, request.path))
        self._watches[task] = request
        try:
            await asyncio.gather(task, return_exceptions=True)
        finally:
            task.cancel()
            self._watches.pop(task, None)
        if task in self._expired:
            self._expired.discard(task)
            await response.write(json.dumps({"type": "ERROR", "object": _status(410)}).encode() + b"\n")
        return response

    async def _pump(self, answer: aiohttp.ClientResponse, response: web.StreamResponse, path: str) -> None:
        async for piece in answer.content.iter_any():
            await self._passable(path)
            await response.write(piece)


def _refusal(fault: Fault) -> web.Response:
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return web.json_response(_status(fault.status), status=fault.status, headers=headers)


def _status(code: int) -> dict[str, object]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": REASONS.get(code, ""), "message": "injected by the test's proxy"}  # fmt: skip
