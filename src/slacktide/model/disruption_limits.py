"""What a workload may suffer, in time: how often, how soon again, and when.

docs/semantics.md, 'Limits on disruption'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from slacktide.errors import ConfigError
from slacktide.model.hours import Hours, Interval, allowed, both

MOST_DISRUPTIONS = 64
"""The largest ``max``: so many instants are remembered of each workload."""
LONGEST = 2.0**33
"""Seconds; times are exact up to here (docs/semantics.md)."""


@dataclass(frozen=True, slots=True)
class DisruptionLimits:
    """Limits on preemptions and moves, all hard.

    ``most`` disruptions begin in any ``per`` seconds at the most, ``None``: as many as there may be; none begins
    before ``cooldown`` seconds after the last one ended (0: at once), nor at any time but ``hours`` (``None``: at all
    times). ``min_running`` takes the place of ``policy.min_running``, ``None``: it does not. Times in seconds.

    Raises :class:`ConfigError` naming the field and the value.
    """

    most: int | None = None
    per: float = 0.0
    cooldown: float = 0.0
    hours: tuple[Hours, ...] | None = None
    min_running: float | None = None
    own_hours: tuple[Hours, ...] | None = None
    """Those of one workload, which must allow a disruption too (:meth:`stricter`)."""

    def __post_init__(self) -> None:
        if self.most is not None and not 0 <= self.most <= MOST_DISRUPTIONS:
            _refuse("disruptions.max", self.most, f"a whole number from 0 to {MOST_DISRUPTIONS}")
        if self.most is not None and not 0.0 < self.per <= LONGEST:
            _refuse("disruptions.per", self.per, f"seconds above 0, at most {LONGEST:g}, or a duration such as 1h")
        for name, seconds in (("cooldown", self.cooldown), ("min_running", self.min_running or 0.0)):
            if not 0.0 <= seconds <= LONGEST:
                _refuse(name, seconds, f"seconds from 0 to {LONGEST:g}, or a duration such as 10m")
        if self.hours is not None and not self.hours:
            _refuse("hours", [], "at least one entry, or no hours: disruptions are allowed at all times then")

    @property
    def counts(self) -> bool:
        """Whether anything is asked but ``min_running``, so that workloads need an account of disruptions."""
        return self.most is not None or self.cooldown > 0.0 or not (self.hours is None and self.own_hours is None)

    def intervals(self, begin: float, end: float) -> list[Interval] | None:
        """The allowed times that meet the time from ``begin`` to ``end``, in order; ``None``: all times are."""
        found = [allowed(hours, begin, end) for hours in (self.hours, self.own_hours) if hours is not None]
        return both(*found) if len(found) == 2 else found[0] if found else None

    def stricter(self, own: DisruptionLimits) -> DisruptionLimits:
        """These limits of a class, with a workload's ``own`` where they say more.

        Its own hours must allow a disruption beside those of the class. Of all else its own take the place of those
        of the class. Raises :class:`ConfigError` where they would allow what the class does not.
        """
        most, per = self.most, self.per
        if own.most is not None:
            if most is not None and own.most * math.ceil(per / own.per) > most:  # so many in the worst ``per`` seconds
                _refuse(
                    "disruptions", f"{own.most} per {own.per:g}s", f"no more than {most} per {per:g}s, as the class"
                )
            most, per = own.most, own.per
        if 0.0 < own.cooldown < self.cooldown:
            _refuse("cooldown", own.cooldown, f"{self.cooldown:g} or more, as the class")
        if own.min_running is not None and own.min_running < (self.min_running or 0.0):
            _refuse("min_running", own.min_running, f"{self.min_running:g} or more, as the class")
        return DisruptionLimits(
            most,
            per,
            max(self.cooldown, own.cooldown),
            self.hours,
            self.min_running if own.min_running is None else own.min_running,
            self.own_hours if own.hours is None else own.hours,
        )


def _refuse(field: str, value: object, expected: str) -> None:
    raise ConfigError(f"{field}: found {value!r}, expected {expected}")
