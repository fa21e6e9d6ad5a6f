"""A small blocking client for the API server, for the lab's own needs and for tests."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from slacktide.kube.lab.errors import ApiError, LabError

CONCURRENT = 64
BUSY_TRIES, BUSY_SECONDS = 20, 0.5
"""A server that is too busy, as it is for a moment with a kind that was just defined, is asked again so often."""
CLOSED = (
    http.client.RemoteDisconnected,
    ConnectionResetError,
    BrokenPipeError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)
"""How a kept connection shows that the server closed it meanwhile."""

APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON = "application/json"


class Api:
    """Requests to one API server with one token; the server's certificate is verified against ``ca_file``.

    Safe to use from several threads, each of which gets a connection of its own; they are closed by ``close``,
    or when nobody holds the client any more.
    """

    def __init__(self, url: str, token: str, ca_file: Path, timeout_seconds: float = 60) -> None:
        self._url, self._ca_file = url, ca_file
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._token = token
        self._trust = ssl.create_default_context(cafile=str(ca_file))
        self._timeout = timeout_seconds
        self._own = threading.local()
        self._connections: set[http.client.HTTPSConnection] = set()
        self.close = weakref.finalize(self, _close_all, self._connections)

    def get(self, path: str) -> Any:
        """The decoded answer to a GET."""
        return self.request("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """Creates an object, or asks a subresource (``.../eviction``, ``.../token``) for something."""
        return self.request("POST", path, body)

    def put(self, path: str, body: Any) -> Any:
        """Replaces an object."""
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Any, kind: str = MERGE) -> Any:
        """Changes an object; ``kind`` is the patch's content type."""
        return self.request("PATCH", path, body, kind)

    def delete(self, path: str, grace_seconds: int | None = None) -> Any:
        """Deletes an object, or all of a collection."""
        body = None if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        return self.request("DELETE", path, body)

    def request(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> Any:
        """Sends one request, again while the server is too busy (429); returns the decoded answer.

        An eviction is sent once: its 429 says that a disruption budget forbids it.

        Raises:
            ApiError: with the server's status and reason, if it refuses.
            LabError: if it cannot be reached.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Accept": JSON}
        if data is not None:
            headers["Content-Type"] = content_type
        try:
            status, answer = self._exchange(method, path, data, headers)
            for _ in range(0 if path.endswith("/eviction") else BUSY_TRIES):
                if status != HTTPStatus.TOO_MANY_REQUESTS:
                    break
                time.sleep(BUSY_SECONDS)
                status, answer = self._exchange(method, path, data, headers)
        except (OSError, http.client.HTTPException) as error:
            self._close()
            why = str(error) or type(error).__name__
            raise LabError(f"{method} {path}: {self._url} does not answer: {why}") from error
        if status >= 400:
            raise ApiError(status, f"{method} {path}: {status} {_message(answer)}")
        return json.loads(answer) if answer[:1] in (b"{", b"[") else answer.decode(errors="replace")

    def create_all(self, path: str, objects: Sequence[Any], concurrent: int = CONCURRENT) -> list[Any]:
        """Creates objects, ``concurrent`` at a time; returns what the server made of them, in their order."""
        other = Api(self._url, self._token, self._ca_file, self._timeout)  # its connections end with its threads
        with ThreadPoolExecutor(concurrent) as threads:
            answers = list(threads.map(lambda one: other.post(path, one), objects))
        other.close()
        return answers

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        kept: http.client.HTTPSConnection | None = getattr(self._own, "connection", None)
        if kept is not None:
            try:
                return _answer(kept, method, path, data, headers)
            except CLOSED:
                self._close()  # the server closed it while nobody used it; a fresh one will tell
        fresh = http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._trust)
        self._own.connection = fresh
        self._connections.add(fresh)
        return _answer(fresh, method, path, data, headers)

    def _close(self) -> None:
        kept: http.client.HTTPSConnection | None = getattr(self._own, "connection", None)
        if kept is not None:
            self._connections.discard(kept)
            kept.close()
            self._own.connection = None


def _close_all(connections: set[http.client.HTTPSConnection]) -> None:
    while connections:
        connections.pop().close()


def _answer(
    connection: http.client.HTTPSConnection, method: str, path: str, data: bytes | None, headers: dict[str, str]
) -> tuple[int, bytes]:
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    return response.status, response.read()


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace").strip()
