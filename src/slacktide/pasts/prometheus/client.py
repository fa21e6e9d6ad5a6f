"""Prometheus' HTTP API, also Thanos' and Mimir's: what is asked is answered, or it is said what to do."""

from __future__ import annotations

import asyncio
import re
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import msgspec

from slacktide.errors import InputError, Problem
from slacktide.pasts.story import Findings

TRIES = 7
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds that are waited after the first refusal and at most; each wait is twice the one before."""
LARGEST_ANSWER = 512 << 20
SHOWN = 300
WAIT_FOR = (408, 425, 429, 500, 502, 503)
"""The server, or what stands before it, cannot answer now."""
TOO_MUCH = (413, 422, 504)
"""The server cannot answer so much at once."""


class TooMuchError(Exception):
    """One question is too much for the server, or takes it too long; ``said`` is what it says to that."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class Series(msgspec.Struct):
    """A series of an answer: its labels, and its value or its values, each with its instant."""

    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = msgspec.field(default_factory=list)


class _Data(msgspec.Struct, rename="camel"):
    result: list[Series] = msgspec.field(default_factory=list)


class _Answer(msgspec.Struct, rename="camel"):
    status: str = ""
    data: msgspec.Raw = msgspec.Raw(b"{}")
    error_type: str = ""
    error: str = ""
    warnings: list[str] = msgspec.field(default_factory=list)


_answer = msgspec.json.Decoder(_Answer)
_data = msgspec.json.Decoder(_Data)
_words = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True)
class Access:
    """Where a Prometheus is, and how it lets one in. ``tenant`` is sent as X-Scope-OrgID; ``ca`` is a file with
    certificates. ``timeout`` is in seconds, of one question."""

    url: str
    token: str = ""
    user: str = ""
    password: str = ""
    tenant: str = ""
    ca: str = ""
    timeout: float = 120.0
    parallel: int = 4
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @property
    def shown(self) -> str:
        """The URL as it may be shown: without user and password."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def access(url: str, **more: Any) -> Access:
    """Where to ask. A user and a password may stand in the URL; what people copy from a browser is cut off.

    Raises :class:`InputError` where it is no URL, or both a token and a user are given.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError([
            Problem(Access(url).shown, 0, "", "", "the URL of a Prometheus, such as http://localhost:9090 or https://HOST/prometheus")
        ])  # fmt: skip
    if parts.username and not more.get("user"):
        more["user"], more["password"] = parts.username, more.get("password") or parts.password or ""
    path = re.sub(r"/(api/v1(/.*)?|graph|query|targets)?$", "", parts.path.rstrip("/"))
    found = Access(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", "")), **more)
    if found.token and found.user:
        raise InputError([Problem(found.shown, 0, "", "", "a token, or a user and a password, not both")])
    return found


class Client:
    """Asks; to be used as ``async with``. What an answer warns of is noted in ``findings`` once."""

    def __init__(self, where: Access, findings: Findings) -> None:
        self._where, self._findings = where, findings
        self._turns = asyncio.Semaphore(where.parallel)
        self._method = "POST"
        self.asked = 0
        self.shown = where.shown

    async def __aenter__(self) -> Client:
        where, headers = self._where, {}
        if where.token:
            headers["Authorization"] = f"Bearer {where.token}"
        elif where.user:
            headers["Authorization"] = f"Basic {b64encode(f'{where.user}:{where.password}'.encode()).decode()}"
        if where.tenant:
            headers["X-Scope-OrgID"] = where.tenant
        connector: aiohttp.TCPConnector | None = None
        if where.ca:
            try:
                trusted = ssl.create_default_context(cafile=where.ca)
            except (OSError, ssl.SSLError) as error:
                raise InputError([Problem(where.ca, 0, "", "", f"certificates in PEM: {error}")]) from None
            connector = aiohttp.TCPConnector(ssl=trusted)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=where.timeout, sock_connect=10.0),
            trust_env=True,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def instant(self, query: str, at: float) -> list[Series]:
        """What a query gives at an instant. Raises :class:`TooMuchError`, :class:`InputError`."""
        return self._series(await self._ask("query", {"query": query, "time": f"{at:.3f}"}))

    async def range(self, query: str, begin: float, end: float, step: float) -> list[Series]:
        """What it gives at each step. Raises :class:`TooMuchError`, :class:`InputError`."""
        times = {"start": f"{begin:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        return self._series(await self._ask("query_range", {"query": query, **times}))

    async def values(self, label: str, match: str, begin: float, end: float) -> list[str]:
        """The values that a label has. Raises :class:`TooMuchError`, :class:`InputError`."""
        asked = {"match[]": match, "start": f"{begin:.3f}", "end": f"{end:.3f}"}
        return self._texts(await self._ask(f"label/{label}/values", asked, "GET"))

    async def labels(self, match: str, begin: float, end: float) -> list[str]:
        """The labels that series have. Raises :class:`TooMuchError`, :class:`InputError`."""
        return self._texts(await self._ask("labels", {"match[]": match, "start": f"{begin:.3f}", "end": f"{end:.3f}"}))

    async def _ask(self, what: str, asked: Mapping[str, str], method: str = "") -> msgspec.Raw:
        async with self._turns:
            wait, said = FIRST_WAIT, ""
            for tries in range(TRIES):
                if tries:
                    await self._where.sleep(wait)
                    wait = min(LONGEST_WAIT, wait * 2)
                self.asked += 1
                try:
                    status, body, after = await self._send(what, asked, method or self._method)
                except TimeoutError:
                    raise TooMuchError(f"no answer within {self._where.timeout:g} s") from None
                except (aiohttp.ClientError, OSError) as error:
                    said = f"{type(error).__name__}: {error}"
                    continue
                if status == 405 and not method and self._method == "POST":
                    self._method = "GET"
                    continue
                answer = _decoded(body)
                said = self._refused(what, status, answer, body)
                if not said:
                    assert answer is not None  # noqa: S101  # else it was refused
                    self._warn(answer.warnings)
                    return answer.data
                wait = max(wait, min(LONGEST_WAIT, after))
        raise InputError([self._problem(said or "no answer", f"an answer (asked {TRIES} times): try again later")])

    async def _send(self, what: str, asked: Mapping[str, str], method: str) -> tuple[int, bytes, float]:
        url, how = f"{self._where.url}/api/v1/{what}", {"data" if method == "POST" else "params": asked}
        async with self._session.request(method, url, allow_redirects=False, **how) as response:  # type: ignore[arg-type]
            if 300 <= response.status < 400:
                to = Access(response.headers.get("Location", "?")).shown
                raise InputError([self._problem(f"sends on to {to}", "the URL of the Prometheus itself")])
            body = b""
            async for part in response.content.iter_chunked(1 << 20):
                body += part
                if len(body) > LARGEST_ANSWER:
                    raise TooMuchError(f"an answer of more than {LARGEST_ANSWER:,} bytes")
            after = response.headers.get("Retry-After", "")
            return response.status, body, float(after) if after.isdigit() else 0.0

    def _refused(self, what: str, status: int, answer: _Answer | None, body: bytes) -> str:
        """Why to ask again; empty: it is answered. Raises where asking again is of no use."""
        said = (answer.error if answer is not None else "") or body[:SHOWN].decode("utf-8", "replace").strip()
        said = f"{status}: {said}"[:SHOWN]
        if status in TOO_MUCH or (answer is not None and answer.error_type == "timeout"):
            raise TooMuchError(said)
        if status in (401, 403):
            raise InputError([
                self._problem(said, "access: --token, or --user and --password, and --tenant where there are several")
            ])  # fmt: skip
        if status in (404, 405) or (status == 200 and answer is None and body[:1] == b"<"):
            raise InputError([self._problem(said, f"the API of Prometheus at {self._where.shown}/api/v1/{what}")])
        if status in WAIT_FOR:
            return said
        if status == 400:
            raise InputError([self._problem(said, "a query that the server takes: look at --match")])
        if answer is None:
            return f"{status}: an answer that is cut short, or no JSON ({len(body):,} bytes)"
        if status != 200 or answer.status != "success":
            raise InputError([self._problem(said, "an answer")])
        return ""

    def _warn(self, warnings: list[str]) -> None:
        if warnings:
            self._findings.counts["answers that are partial"] += 1
            if self._findings.counts["answers that are partial"] == 1:
                self._findings.note(f"{self.shown}: answers are partial, so pods may be missing: {warnings[0][:SHOWN]}")

    def _series(self, raw: msgspec.Raw) -> list[Series]:
        try:
            return _data.decode(raw).result
        except msgspec.DecodeError as error:
            raise InputError([self._problem("an answer of another form", f"a vector or a matrix: {error}")]) from None

    def _texts(self, raw: msgspec.Raw) -> list[str]:
        try:
            return _words.decode(raw)
        except msgspec.DecodeError as error:
            raise InputError([self._problem("an answer of another form", f"a list of words: {error}")]) from None

    def _problem(self, value: str, expected: str) -> Problem:
        return Problem(self._where.shown, 0, "", value, expected)


def _decoded(body: bytes) -> _Answer | None:
    try:
        return _answer.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
