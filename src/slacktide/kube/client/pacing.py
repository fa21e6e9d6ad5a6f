"""When a request may be sent, or sent again: how many a second, with which rights, and once the API server answers."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

from slacktide.kube.clock import monotonic_seconds

LOG = logging.getLogger(__name__)


class Limiter:
    """At most ``qps`` a second on average, ``burst`` at once (at least 1); ``qps`` 0 limits nothing.

    Who comes first is served first. Raises ``ValueError`` for a negative rate.
    """

    def __init__(self, qps: float, burst: int = 0) -> None:
        if not 0 <= qps < float("inf"):
            raise ValueError(f"qps: found {qps!r}, expected a number of at least 0 (0: no limit)")
        self.qps = qps
        self.burst = max(burst, 1)
        # When the bucket had, or will have, no debts: one number instead of tokens and their age.
        self._paid_until = float("-inf")

    async def take(self) -> None:
        """Waits until one more request may be sent. If it is cancelled while it waits, its turn is given back."""
        if not self.qps:
            return
        now = monotonic_seconds()
        self._paid_until = max(self._paid_until, now - self.burst / self.qps) + 1.0 / self.qps
        if (wait := self._paid_until - now) > 0.0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._paid_until -= 1.0 / self.qps
                raise


PATIENCE_SECONDS = 30.0
"""After so long without a right it is missing in earnest."""
AGAIN_SECONDS = 0.5
_BY_AUTHORIZER = re.compile(r'User "[^"]*" cannot ')
"""So an authorizer says that a right is missing. Quotas, admission policies and namespaces that end say else."""

Right = tuple[str, ...]


def lacks_right(message: str) -> bool:
    """Whether an answer 403 with this message says that who asked has no right to ask."""
    return _BY_AUTHORIZER.search(message) is not None


def right_of(method: str, path: str) -> Right:
    """What a request asks to do: its method, and the path but for the namespace and the name in it."""
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return (method, *group, *rest[:1], *rest[2:])


class MissingRights:
    """Rights that were refused and not granted since; one that has been missing for ``patience`` seconds is not waited
    for, until it is granted."""

    def __init__(self, patience: float, clock: Callable[[], float] = monotonic_seconds) -> None:
        self.since: dict[Right, float] = {}
        """Since when each is missing, by the steady ``clock``."""
        self._patience, self._clock = patience, clock

    def may_come(self, method: str, path: str, message: str) -> bool:
        """Whether a request that was answered 403, with this message, is to be sent again."""
        if not self._patience or not lacks_right(message):
            return False
        now, right = self._clock(), right_of(method, path)
        if right not in self.since:
            LOG.warning("%s; retrying for %g s, as the API server may just have started", message, self._patience)
        return now - self.since.setdefault(right, now) < self._patience

    def granted(self, method: str, path: str) -> None:
        """A request was carried out."""
        if self.since:
            self.since.pop(right_of(method, path), None)


class Presence:
    """What one connection knows of its server. All its users share what one of them finds out."""

    def __init__(self) -> None:
        self._away = False
        self._back = asyncio.Event()

    def lost(self) -> None:
        """A request got no answer."""
        self._away = True

    def answered(self) -> None:
        """A request was answered as it should be."""
        if self._away:
            self._away = False
            self._back.set()
            self._back = asyncio.Event()

    async def back(self, seconds: float) -> bool:
        """Wait for so many seconds, or until the server, which was away, answers somebody; whether it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._back.wait()
        except TimeoutError:
            return False
        return True
