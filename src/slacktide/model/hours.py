"""Times of day and week in a time zone, and the instants at which they begin and end (docs/semantics.md, Hours)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slacktide.errors import ConfigError

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY_MINUTES = 24 * 60
ZERO = datetime(1970, 1, 1, tzinfo=UTC)
REMEMBERED_INSTANTS = 2**16
"""Ninety years of days, from and to: classes and workloads mostly ask for the same hours."""
_CLOCK = re.compile(r"(\d\d):(\d\d)")

Interval = tuple[float, float]
"""Beginning and end, seconds since 1970-01-01T00:00:00Z; the end is not in it."""


@cache
def zone_of(name: str) -> ZoneInfo:
    """A time zone by its IANA name; raises :class:`ConfigError` where this machine knows none of that name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"time zone: found {name!r}, expected a name such as 'UTC' or 'Europe/Berlin' that this machine knows; "
            "where it knows none but UTC, install the package tzdata"
        ) from error


def rfc3339(instant: float) -> str:
    """An instant, seconds since 1970-01-01T00:00:00Z, as text."""
    return (ZERO + timedelta(seconds=instant)).strftime("%Y-%m-%dT%H:%M:%SZ")


def minutes_of(text: str) -> int:
    """Minutes since midnight of ``HH:MM``, up to ``24:00``; raises :class:`ConfigError`."""
    found = _CLOCK.fullmatch(text)
    minutes = int(found[1]) * 60 + int(found[2]) if found and int(found[2]) < 60 else -1
    if not 0 <= minutes <= DAY_MINUTES:
        raise ConfigError(f"found {text!r}, expected a time of day from 00:00 to 24:00, such as 22:00")
    return minutes


def clock(minutes: int) -> str:
    """``HH:MM``."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


@dataclass(frozen=True, slots=True)
class Hours:
    """On these ``days`` from ``begin`` to ``end``, minutes since midnight; to the next day where that is not later.

    Raises :class:`ConfigError` naming the field and the value.
    """

    days: tuple[str, ...]
    begin: int
    end: int
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        if not self.days or any(day not in DAYS for day in self.days):
            raise ConfigError(f"hours.days: found {list(self.days)}, expected some of {', '.join(DAYS)}")
        if not 0 <= self.begin < DAY_MINUTES:
            raise ConfigError(f"hours.from: found {clock(self.begin)!r}, expected a time of day before 24:00")
        if not 0 <= self.end <= DAY_MINUTES or self.end == self.begin:
            raise ConfigError(
                f"hours.to: found {clock(self.end)!r}, expected a time of day other than from; a whole day is from "
                "00:00 to 24:00"
            )
        zone_of(self.time_zone)

    def intervals(self, begin: float, end: float) -> Iterator[Interval]:
        """Those that meet the time from ``begin`` to ``end``, in their order; they may overlap around clock changes."""
        zone = zone_of(self.time_zone)
        day = (ZERO + timedelta(seconds=begin)).astimezone(zone).date() - timedelta(days=2)
        while True:
            opens = _first_shown(day, self.begin, zone)
            if opens >= end:
                return
            if DAYS[day.weekday()] in self.days:
                closes = _first_shown(day, self.end + DAY_MINUTES * (self.end <= self.begin), zone)
                if closes > max(begin, opens):
                    yield opens, closes
            if day >= date.max - timedelta(days=3):
                return
            day += timedelta(days=1)


@lru_cache(REMEMBERED_INSTANTS)
def _first_shown(day: date, minutes: int, zone: ZoneInfo) -> float:
    """The first instant at which a zone's clock shows so many minutes of a date, or later as it was put forward."""
    days, minutes = divmod(minutes, DAY_MINUTES)
    shown = datetime(day.year, day.month, day.day) + timedelta(days=days, minutes=minutes)
    if zone.key == "UTC":  # no clock is put forward there, and a simulation without an end asks for a hundred years
        return (shown - ZERO.replace(tzinfo=None)).total_seconds()
    before = shown.replace(tzinfo=zone)  # of two instants that show it the earlier one
    instant = before.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == shown:
        return (instant - ZERO).total_seconds()
    late, early = instant, instant - timedelta(days=1)  # the clock was put forward between these two
    offset = early.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = early + timedelta(seconds=(late - early) // timedelta(seconds=2))
        if middle.astimezone(zone).utcoffset() == offset:
            early = middle
        else:
            late = middle
    return (late - ZERO).total_seconds()


def allowed(hours: Sequence[Hours], begin: float, end: float) -> list[Interval]:
    """The allowed intervals of several entries that meet the time from ``begin`` to ``end``, joined, in order."""
    joined: list[Interval] = []
    for opens, closes in sorted(interval for one in hours for interval in one.intervals(begin, end)):
        if joined and opens <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], closes)
        else:
            joined.append((opens, closes))
    return joined


def both(some: Sequence[Interval], others: Sequence[Interval]) -> list[Interval]:
    """What lies in an interval of either list; both are in order and joined; O(n)."""
    found: list[Interval] = []
    i = j = 0
    while i < len(some) and j < len(others):
        opens, closes = max(some[i][0], others[j][0]), min(some[i][1], others[j][1])
        if opens < closes:
            found.append((opens, closes))
        if some[i][1] <= others[j][1]:
            i += 1
        else:
            j += 1
    return found
