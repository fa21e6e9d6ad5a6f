"""What all acts share: counts, the pause before a question is asked again, and whether another scheduler acts, too."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

LOG = logging.getLogger(__name__)

ASK_AGAIN_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0


@dataclass
class Counts:
    """What was done, for the metrics."""

    bound: int = 0
    refused: int = 0
    evicted: int = 0
    spared: int = 0
    given_up: int = 0
    retried: int = 0
    evictions_refused: int = 0
    moved: int = 0


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
