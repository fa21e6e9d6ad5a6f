"""A token bucket, so that slacktide asks the API server for no more than it was allowed to."""

from __future__ import annotations

import asyncio

from slacktide.kube.clock import monotonic_seconds


class Limiter:
    """At most ``qps`` a second on average, ``burst`` at once (at least 1); ``qps`` 0 limits nothing.

    Who comes first is served first. ``take`` waits, ``try_take`` never does. Raises ``ValueError`` for a
    negative rate.
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
        wait = self._book()
        if wait > 0.0:
            try:
                await asyncio.sleep(wait)
            except asyncio.CancelledError:
                self._paid_until -= 1.0 / self.qps
                raise

    def try_take(self) -> bool:
        """Whether one more request may be sent now; if so it is counted."""
        if not self.qps:
            return True
        if self._book() <= 0.0:
            return True
        self._paid_until -= 1.0 / self.qps
        return False

    def _book(self) -> float:
        """Counts one request; seconds until it may be sent, at most 0 for now."""
        now = monotonic_seconds()
        self._paid_until = max(self._paid_until, now - self.burst / self.qps) + 1.0 / self.qps
        return self._paid_until - now
