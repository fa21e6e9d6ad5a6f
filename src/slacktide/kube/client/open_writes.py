"""Writes of which it is not known whether the API server carries them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from slacktide.kube.client.payload import Permitted
from slacktide.kube.clock import monotonic_seconds

NEVER = float("-inf")


class OpenWrites:
    """Writes that only the leader may send: those under way, and those that were given up without an answer.

    The API server may carry out the latter later. Who leads next must not count on what it sees before that.
    """

    def __init__(self) -> None:
        self._under_way = 0
        self._given_up = NEVER

    @contextmanager
    def sent(self, body: object) -> Iterator[None]:
        """Around a write with such a ``body``, until its answer is there."""
        self._under_way += 1
        try:
            yield
        except BaseException:  # a cancellation, too
            if not (isinstance(body, Permitted) and body.refused):
                self._given_up = monotonic_seconds()
            raise
        finally:
            self._under_way -= 1

    def within(self, seconds: float) -> bool:
        """Whether a write is under way, or was given up at most so many seconds ago."""
        return bool(self._under_way) or monotonic_seconds() - self._given_up <= seconds
