"""How late this machine is, measured all the while a test runs: what the test allows for is no more than that.

A test that compares what two processes saw of the same thing cannot be more exact than the moments at which they got
to see it. On a machine that is busy these are late. So threads measure how late a short timer is, and how long the API
server and the scheduler take to answer the smallest of questions.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from bisect import bisect_left, bisect_right
from contextlib import suppress
from urllib.parse import urlsplit

EVERY_SECONDS = 0.1
PATIENCE_SECONDS = 60.0


class Pulse:
    """Probes until ``stop``; ``late`` says how late things were."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._begins: list[list[float]] = []
        self._ends: list[list[float]] = []
        self._probe(None)

    def attend(self, url: str, headers: dict[str, str] | None = None, trust: ssl.SSLContext | None = None) -> None:
        """Ask there, too, from now on; while nobody answers there, nothing is known and nothing counts as late."""
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or 0
        made = (
            http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
            if trust is None
            else http.client.HTTPSConnection(host, port, timeout=PATIENCE_SECONDS, context=trust)
        )
        self._probe(made, parts.path, headers or {})

    def stop(self) -> None:
        """No probes any more."""
        self._over.set()

    def late(self, begin: float, end: float) -> float:
        """Seconds by which anything may have been seen late between two instants, seconds since 1970.

        The sum of the slowest of each probe: what is told goes through all of them.
        """
        with self._lock:
            total = 0.0
            for begins, ends in zip(self._begins, self._ends, strict=True):
                # Probes of one kind come one after another, so that both lists are in order.
                first, last = bisect_left(ends, begin), bisect_right(begins, end)
                total += max((b - a for a, b in zip(begins[first:last], ends[first:last], strict=True)), default=0.0)
        return total

    def _probe(
        self, connection: http.client.HTTPConnection | None, path: str = "", headers: dict[str, str] | None = None
    ) -> None:
        begins, ends = list[float](), list[float]()
        with self._lock:
            self._begins.append(begins)
            self._ends.append(ends)

        def run() -> None:
            due = time.time() + EVERY_SECONDS
            while not self._over.wait(max(0.0, due - time.time())):
                begin, is_told = due, connection is None
                if connection is not None:
                    begin = time.time()
                    with suppress(OSError, http.client.HTTPException):
                        connection.request("GET", path, headers=headers or {})
                        connection.getresponse().read()
                        is_told = True
                    if not is_told:
                        connection.close()
                end = time.time()
                if is_told:
                    with self._lock:
                        begins.append(begin)
                        ends.append(max(begin, end))
                due = end + EVERY_SECONDS
            if connection is not None:
                connection.close()

        threading.Thread(target=run, daemon=True, name=f"pulse of {path or 'a timer'}").start()
