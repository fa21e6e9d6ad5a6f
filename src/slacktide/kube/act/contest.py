"""Another scheduler that places our pods, such as a second release with the same schedulerName.

Both decide on the same pods. Each evicts for them, and one of the two places what the other has made room for. So for a
while after such bindings nobody is evicted: room that is free is taken by whoever is first.
"""

from __future__ import annotations

import logging
from collections import deque

LOG = logging.getLogger(__name__)

FEW = 2
"""One alone may be a person's."""
QUIET_SECONDS = 60.0
CONTESTED = "somebody else binds pods of this scheduler's name, so it evicts nobody for a minute"


class Contest:
    """When pods that waited here were bound by somebody else, seconds since 1970."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=FEW)
        self._told = False

    def see(self, now: float) -> None:
        """One more."""
        self._told &= self.lasts(now)
        self._seen.append(now)
        if not self._told and self.lasts(now):
            self._told = True
            LOG.warning(
                "%d pods that waited here were bound by somebody else within %.0f s: a second release with this "
                "schedulerName? Until that ends nobody is evicted; see helm list -A and kubectl get leases -A, and "
                "give one of the two another name", FEW, QUIET_SECONDS,
            )  # fmt: skip

    def lasts(self, now: float) -> bool:
        """Whether several were, lately."""
        return len(self._seen) == FEW and now < self._seen[0] + QUIET_SECONDS
