"""Times of day and week in a time zone, and the instants at which they begin and end (docs/semantics.md, Hours)."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.model.written_numbers import shown

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
REGIONS = (
    "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Brazil", "Canada", "Chile", "Etc",
    "Europe", "Indian", "Mexico", "Pacific", "US",
)  # fmt: skip
OF_NO_REGION = (
    "CET", "CST6CDT", "Cuba", "EET", "EST", "EST5EDT", "Egypt", "Eire", "GB", "GB-Eire", "GMT", "GMT+0", "GMT-0",
    "GMT0", "Greenwich", "HST", "Hongkong", "Iceland", "Iran", "Israel", "Jamaica", "Japan", "Kwajalein", "Libya",
    "MET", "MST", "MST7MDT", "NZ", "NZ-CHAT", "Navajo", "PRC", "PST8PDT", "Poland", "Portugal", "ROC", "ROK",
    "Singapore", "Turkey", "UCT", "UTC", "Universal", "W-SU", "WET", "Zulu",
)  # fmt: skip
"""With which the names of all IANA time zones begin, and the names without a region."""
DAY_MINUTES = 24 * 60
ZERO = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400.0
THURSDAY = DAYS.index("Thu")
"""What day it was on 1970-01-01."""
LAST_DAY = float((date(9990, 1, 1) - ZERO.date()).days)
"""A few years before Python's dates end."""
REMEMBERED_YEARS = 2**12
"""A century of each of forty zones."""
LONGEST_ZONE = 100
"""Characters. No name has half of that, and one of hundreds of parts is looked for in as deep a recursion."""
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2})")

Interval = tuple[float, float]
"""Beginning and end, seconds since 1970-01-01T00:00:00Z; the end is not in it."""
Instants = NDArray[np.float64]
"""Seconds since 1970-01-01T00:00:00Z."""


@cache
def zone_of(name: str) -> ZoneInfo:
    """A time zone by its IANA name; raises :class:`ConfigError` where this machine knows none of that name."""
    try:
        if len(name) > LONGEST_ZONE:
            raise ValueError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"time zone: found {shown(name)}, expected a name such as 'UTC' or 'Europe/Berlin' that this machine "
            "knows; where it knows none but UTC, install the package tzdata"
        ) from error


def rfc3339(instant: float) -> str:
    """An instant, seconds since 1970-01-01T00:00:00Z, as text."""
    return (ZERO + timedelta(seconds=instant)).strftime("%Y-%m-%dT%H:%M:%SZ")


def minutes_of(text: str) -> int:
    """Minutes since midnight of ``HH:MM``, up to ``24:00``; raises :class:`ConfigError`."""
    found = _CLOCK.fullmatch(text)
    minutes = int(found[1]) * 60 + int(found[2]) if found and int(found[2]) < 60 else -1
    if not 0 <= minutes <= DAY_MINUTES:
        raise ConfigError(f"found {shown(text)}, expected a time of day from 00:00 to 24:00, such as 22:00")
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
        opens, closes = self._ends(begin, end)
        return zip(opens.tolist(), closes.tolist(), strict=True)

    def _ends(self, begin: float, end: float) -> tuple[Instants, Instants]:
        """When they begin and end, (n,) each. A simulation without an end asks for a hundred years of days."""
        days = np.arange(begin // DAY - 3, min(end, LAST_DAY * DAY) // DAY + 3)  # a zone's begin within one of UTC's
        days = days[np.isin((days + THURSDAY) % 7, [DAYS.index(day) for day in self.days])]
        zone, later = zone_of(self.time_zone), DAY_MINUTES * (self.end <= self.begin)
        opens = _first_shown(days * DAY + 60 * self.begin, zone)
        closes = _first_shown(days * DAY + 60 * (self.end + later), zone)
        meet = (closes > np.maximum(begin, opens)) & (opens < end)
        return opens[meet], closes[meet]


def _first_shown(shown: Instants, zone: ZoneInfo) -> Instants:
    """The first instants at which a zone's clock shows such times, or later as it was put forward.

    ``shown``: (n,), ascending, seconds from 1970-01-01T00:00:00 on that clock.
    """
    if not len(shown) or zone.key == "UTC":
        return shown
    since, ahead = _clock_changes(zone, _year(shown[0]) - 1, _year(shown[-1]) + 1)
    until = np.append(since[1:], np.inf)
    first = np.searchsorted(np.maximum.accumulate(until + ahead), shown, side="right")
    return np.maximum(since[first], shown - ahead[first])


def _clock_changes(zone: ZoneInfo, first: int, last: int) -> tuple[Instants, Instants]:
    """Since when a zone's clock is so many seconds ahead of UTC, from the ``first`` year to the ``last``; (n,) each."""
    years = range(max(2, first), last + 1)
    changes = [(-math.inf, _ahead(zone, datetime(years[0], 1, 1, tzinfo=UTC)))]
    changes += [change for year in years for change in _changes_of(zone, year)]
    since, ahead = np.array(changes).T
    return since, ahead


@lru_cache(REMEMBERED_YEARS)
def _changes_of(zone: ZoneInfo, year: int) -> tuple[tuple[float, float], ...]:
    """When in a year of UTC a clock is changed, and how many seconds it is ahead then; at most once a day."""
    found = []
    early = datetime(year, 1, 1, tzinfo=UTC)
    for _ in range(366 if calendar.isleap(year) else 365):
        before, after = early, early + timedelta(days=1)
        early = after
        if _ahead(zone, before) != (offset := _ahead(zone, after)):
            while after - before > timedelta(seconds=1):
                middle = before + timedelta(seconds=(after - before) // timedelta(seconds=2))
                before, after = (before, middle) if _ahead(zone, middle) == offset else (middle, after)
            found.append(((after - ZERO).total_seconds(), offset))
    return tuple(found)


def _ahead(zone: ZoneInfo, at: datetime) -> float:
    """By how many seconds a zone's clock is ahead of UTC."""
    offset = at.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101  # a ZoneInfo knows it of every instant
    return offset.total_seconds()


def _year(shown: float) -> int:
    return (ZERO + timedelta(seconds=float(shown))).year


def allowed(hours: Sequence[Hours], begin: float, end: float) -> list[Interval]:
    """The allowed intervals of several entries that meet the time from ``begin`` to ``end``, joined, in order."""
    if not hours:
        return []
    opens, closes = np.concatenate([one._ends(begin, end) for one in hours], axis=1)
    order = np.argsort(opens, kind="stable")
    opens, closes = opens[order], np.maximum.accumulate(closes[order])
    begins = np.append(True, opens[1:] > closes[:-1])[: len(opens)]  # one after all before have ended
    ends = np.append(begins[1:], True)[: len(opens)]
    return list(zip(opens[begins].tolist(), closes[ends].tolist(), strict=True))


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
