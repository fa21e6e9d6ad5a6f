"""Windows of a promise: over which time an availability is promised, and how much of it may be lost when.

A promise without a window is over the whole life of a workload. A rolling window is the last so many seconds, at any
instant. Calendar windows follow one another: days, weeks, months, quarters or years of a time zone, as long as they
are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from slacktide.errors import ConfigError
from slacktide.model.durations import write_duration
from slacktide.model.hours import zone_of
from slacktide.model.written_numbers import shown

ACCRUED, WHOLE = "accrued", "whole"
BUDGETS = (ACCRUED, WHOLE)
PERIODS = ("1d", "1w", "1M", "1Q", "1Y")
LEAST_ROLLING, MOST_ROLLING = 60.0, 400 * 86_400.0
"""Seconds that a rolling window may have."""
SHORT = 10.0
"""A life or a run that is so many times shorter than a window is not what the window is for."""
EPOCH = "1970-01-05T00:00:00Z"
"""The second 0 of a simulation where nothing else is said: a Monday."""
_PERIOD = re.compile(r"([1-9]\d{0,2})([dwMQY])")
_MONTHS = {"M": 1, "Q": 3, "Y": 12}
_DAYS = {"d": 1, "w": 7}


@dataclass(frozen=True, slots=True)
class Window:
    """A rolling window of ``rolling`` seconds, or calendar windows of ``calendar``, such as ``1M``.

    ``budget`` says how much may be lost: ``whole``, a share of the whole window from its first second on; or
    ``accrued``, a share of as much of the window as the workload has lived. ``time_zone`` is an IANA name; ``start`` a
    local time at which one of the calendar windows begins, the first instant of the day, Monday, month, quarter or
    year where it is left out.

    Raises :class:`ConfigError` naming the field and the value.
    """

    rolling: float | None = None
    calendar: str | None = None
    budget: str = WHOLE
    time_zone: str = "UTC"
    start: str | None = None

    def __post_init__(self) -> None:
        if (self.rolling is None) == (self.calendar is None):
            raise ConfigError("window: expected either rolling (such as 30d) or calendar (such as 1M)")
        if self.rolling is not None:
            self._check_rolling(self.rolling)
        elif not _PERIOD.fullmatch(self.calendar or ""):
            _refuse("calendar", self.calendar, "a number of d, w, M, Q or Y, such as " + ", ".join(PERIODS))
        if self.budget not in BUDGETS:
            _refuse("budget", self.budget, " or ".join(BUDGETS))
        self._check_calendar()

    def _check_rolling(self, seconds: float) -> None:
        if not LEAST_ROLLING <= seconds <= MOST_ROLLING:
            least, most = write_duration(LEAST_ROLLING), write_duration(MOST_ROLLING)
            _refuse("rolling", seconds, f"{least} to {most}")
        if self.time_zone != "UTC" or self.start is not None:
            raise ConfigError("window: time_zone and start belong to calendar windows; leave them out beside rolling")

    def _check_calendar(self) -> None:
        try:
            zone_of(self.time_zone)
        except ConfigError:
            _refuse("time_zone", self.time_zone, "the name of an IANA time zone, such as Europe/Berlin")
        if self.start is not None:
            try:
                local = datetime.fromisoformat(self.start)
            except ValueError:
                local = datetime.now(UTC)
            if local.tzinfo is not None:
                _refuse("start", self.start, "a local date and time without a zone, such as 2026-01-01T00:00:00")

    @property
    def name(self) -> str:
        """As people say it: ``rolling 30d``, ``calendar 1M Europe/Berlin``, ``rolling 1h accrued``."""
        if self.rolling is not None:
            said = f"rolling {write_duration(self.rolling)}"
        else:
            said = f"calendar {self.calendar}" + ("" if self.time_zone == "UTC" else f" {self.time_zone}")
        return said if self.budget == WHOLE else f"{said} {self.budget}"

    @property
    def about(self) -> float:
        """Seconds of a window, of calendar ones about."""
        if self.rolling is not None:
            return self.rolling
        number, unit = int((self.calendar or "")[:-1]), (self.calendar or "")[-1]
        return number * 86_400.0 * {"d": 1, "w": 7, "M": 30, "Q": 91, "Y": 365}[unit]

    def is_much_longer_than(self, seconds: float) -> bool:
        """Whether so many seconds are less than a tenth of a window: a promise over it says little of them."""
        return seconds * SHORT < self.about

    @property
    def longest(self) -> float:
        """Seconds that no such window is longer than; a day has up to 25 hours."""
        if self.rolling is not None:
            return self.rolling
        number, unit = int((self.calendar or "")[:-1]), (self.calendar or "")[-1]
        return number * 86_400.0 * {"d": 1, "w": 7, "M": 31, "Q": 92, "Y": 366}[unit] + 3_600.0

    def begins(self, after: datetime) -> Iterator[datetime]:
        """The instants at which calendar windows begin, from the last one not after ``after`` on, without end."""
        number, unit = int((self.calendar or "")[:-1]), (self.calendar or "")[-1]
        zone = ZoneInfo(self.time_zone)
        anchor = datetime.fromisoformat(self.start) if self.start is not None else _usual_anchor(unit)
        step = _guess(anchor, after.astimezone(zone).replace(tzinfo=None), number, unit)
        while _instant(_moved(anchor, step * number, unit), zone) > after:
            step -= 1
        while _instant(_moved(anchor, (step + 1) * number, unit), zone) <= after:
            step += 1
        while True:
            yield _instant(_moved(anchor, step * number, unit), zone)
            step += 1


def _refuse(field: str, value: object, expected: str) -> None:
    raise ConfigError(f"window: {field}: found {shown(value)}, expected {expected}")


def _usual_anchor(unit: str) -> datetime:
    return datetime(1970, 1, 5) if unit in _DAYS else datetime(1970, 1, 1)


def _guess(anchor: datetime, local: datetime, number: int, unit: str) -> int:
    if unit in _DAYS:
        return (local - anchor).days // (_DAYS[unit] * number)
    months = (local.year - anchor.year) * 12 + local.month - anchor.month
    return months // (_MONTHS[unit] * number)


def _moved(anchor: datetime, count: int, unit: str) -> datetime:
    """The local time ``count`` units after the anchor; the last day of a month that is too short."""
    if unit in _DAYS:
        return anchor + timedelta(days=_DAYS[unit] * count)
    months = anchor.year * 12 + anchor.month - 1 + _MONTHS[unit] * count
    year, month = divmod(months, 12)
    return anchor.replace(year=year, month=month + 1, day=min(anchor.day, _days_in(year, month + 1)))


@cache
def _days_in(year: int, month: int) -> int:
    first_of_next = datetime(year + month // 12, month % 12 + 1, 1)
    return (first_of_next - datetime(year, month, 1)).days


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a local time; of one that is there twice the first, of one that is left out that after the gap."""
    return local.replace(tzinfo=zone).astimezone(UTC)


def parse_epoch(text: str) -> datetime:
    """An RFC 3339 instant. Raises ``ValueError`` that says what was found and what would be right."""
    try:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter where it lies before the year 1 in UTC, or after 9999
        pass
    raise ValueError(f"found {shown(text)}, expected an instant with its offset, such as {EPOCH}")


def turns(window: Window, epoch: datetime, since: float, until: float) -> list[float]:
    """Seconds from ``epoch`` at which calendar windows begin: that of second ``since``, and all up to the second one
    after ``until``."""
    found: list[float] = []
    beyond = 0
    for instant in window.begins(epoch + timedelta(seconds=since)):
        found.append((instant - epoch).total_seconds())
        beyond += found[-1] > until
        if beyond == 2 or instant.year >= _LAST_YEAR:
            break
    return found


_LAST_YEAR = 9000
