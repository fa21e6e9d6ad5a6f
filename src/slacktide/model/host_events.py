"""What happens to hosts in a run: failures and repairs, and changes of what they have for its instances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EVENT_KINDS = ("fail", "drain", "repair", "capacity", "others")
"""``capacity``: what the host has is other than before; ``others``: what others than the run's instances take of it."""
CAPACITY, OTHERS = EVENT_KINDS.index("capacity"), EVENT_KINDS.index("others")


@dataclass(frozen=True, slots=True)
class HostEvents:
    """Events in order of time, shape (n,): ``times`` (s), ``hosts`` (rows of the hosts) and ``kinds``.

    ``amounts``, shape (n, resources), are those of kinds ``capacity`` and ``others``; NaN: as before, or not of these
    kinds. A host begins with what the hosts file says, and others take nothing.
    """

    times: NDArray[np.float64]
    hosts: NDArray[np.int64]
    kinds: NDArray[np.int8]
    amounts: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.times)

    @property
    def of_amounts(self) -> NDArray[np.bool_]:
        """Which events change amounts, shape (n,)."""
        return self.kinds >= CAPACITY


def no_events(resources: int) -> HostEvents:
    """A run in which nothing happens to hosts."""
    return HostEvents(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros((0, resources)))
