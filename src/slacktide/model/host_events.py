"""What happens to hosts in a run: failures and repairs, what they have for its instances, and who else is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

EVENT_KINDS = ("fail", "drain", "repair", "capacity", "others", "marks")
"""``capacity``: what the host has is other than before; ``others``: what others than the run's instances take of it;
``marks``: which marks these carry."""
CAPACITY, OTHERS, MARKS = (EVENT_KINDS.index(name) for name in ("capacity", "others", "marks"))
OF_AMOUNTS = (CAPACITY, OTHERS)

Carried = tuple[tuple[str, int], ...]
"""Marks, and how many carry each."""


@dataclass(frozen=True, slots=True)
class HostEvents:
    """Events in order of time, shape (n,): ``times`` (s), ``hosts`` (rows of the hosts) and ``kinds``.

    ``amounts``, shape (n, resources), are those of kinds ``capacity`` and ``others``; NaN: as before, or not of these
    kinds. ``marks`` are those of kind ``marks``, by event: of one that is not named as many carry it as before. A host
    begins with what the hosts file says, and there are no others.
    """

    times: NDArray[np.float64]
    hosts: NDArray[np.int64]
    kinds: NDArray[np.int8]
    amounts: NDArray[np.float64]
    marks: Mapping[int, Carried] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def of_amounts(self) -> NDArray[np.bool_]:
        """Which events change amounts, shape (n,)."""
        return np.isin(self.kinds, OF_AMOUNTS)


def no_events(resources: int) -> HostEvents:
    """A run in which nothing happens to hosts."""
    return HostEvents(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros((0, resources)))


def merged(first: HostEvents, then: HostEvents) -> HostEvents:
    """Both in order of time; at one instant ``first`` comes first."""
    times = np.concatenate([first.times, then.times])
    order = np.argsort(times, kind="stable")
    place = np.argsort(order)
    marks = {**first.marks, **{len(first) + event: carried for event, carried in then.marks.items()}}
    return HostEvents(
        times[order],
        np.concatenate([first.hosts, then.hosts])[order],
        np.concatenate([first.kinds, then.kinds])[order],
        np.concatenate([first.amounts, then.amounts])[order],
        {int(place[event]): carried for event, carried in marks.items()},
    )
