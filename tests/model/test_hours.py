"""Hours of the day and the week: instants of allowed intervals, by reading the clock of the zone every minute."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from slacktide.errors import ConfigError
from slacktide.model import Hours
from slacktide.model.hours import DAYS, allowed, both, minutes_of
from slacktide.model.window import parse_epoch

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo")
CHANGES = {
    "UTC": "2026-03-01",
    "Europe/Berlin": "2026-03-29 2026-10-25",
    "America/New_York": "2026-03-08 2026-11-01",
    "Australia/Lord_Howe": "2026-04-05 2026-10-04",  # by half an hour
    "Asia/Kathmandu": "2026-06-01",
    "America/Sao_Paulo": "2018-11-04 2019-02-17",  # at midnight
}


def by_the_clock(hours: Hours, begin: datetime, minutes: int) -> list[tuple[float, float]]:
    """The intervals as defined, each end searched minute by minute from a day before ``begin`` on."""
    zone = ZoneInfo(hours.time_zone)
    shown = [
        (at, at.astimezone(zone).replace(tzinfo=None))
        for at in (begin + timedelta(minutes=m) for m in range(-3 * 1440, minutes + 3 * 1440))
    ]

    def first(date: datetime) -> float:
        return next(at for at, local in shown if local >= date).timestamp()

    found = []
    day = begin.astimezone(zone).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
    while day < shown[-1][1] - timedelta(days=2):
        if DAYS[day.weekday()] in hours.days:
            later = timedelta(days=int(hours.end <= hours.begin))
            opens = first(day + timedelta(minutes=hours.begin))
            closes = first(day + later + timedelta(minutes=hours.end))
            if closes > max(opens, begin.timestamp()) and opens < (begin + timedelta(minutes=minutes)).timestamp():
                found.append((opens, closes))
        day += timedelta(days=1)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_intervals_are_those_that_the_clock_shows(zone: str) -> None:
    random = np.random.default_rng(ZONES.index(zone))
    for change in CHANGES[zone].split():
        for _ in range(12):
            days = tuple(random.choice(DAYS, int(random.integers(1, 8)), replace=False).tolist())
            begin, end = (int(random.choice([0, 15, 60, 90, 120, 150, 165, 180, 1380])) for _ in range(2))
            hours = Hours(days, begin, 1440 if end == begin else end, zone)
            first = datetime.fromisoformat(change).replace(tzinfo=UTC) - timedelta(hours=int(random.integers(20, 60)))
            span = int(random.integers(1, 5 * 1440))
            found = list(hours.intervals(first.timestamp(), first.timestamp() + 60.0 * span))
            assert found == by_the_clock(hours, first, span), (hours, first)


def test_a_night_that_the_clock_is_put_forward_or_back_is_an_hour_shorter_or_longer() -> None:
    night = Hours(("Sat",), minutes_of("22:00"), minutes_of("06:00"), "Europe/Berlin")
    year = night.intervals(
        parse_epoch("2026-01-01T00:00:00Z").timestamp(), parse_epoch("2027-01-01T00:00:00Z").timestamp()
    )
    lengths = [end - begin for begin, end in year]
    assert {length / 3600: lengths.count(length) for length in set(lengths)} == {8.0: 50, 7.0: 1, 9.0: 1}


def test_what_several_entries_allow_is_what_any_of_them_does() -> None:
    random = np.random.default_rng(6)
    begin, span = datetime.fromisoformat("2026-10-20").replace(tzinfo=UTC).timestamp(), 14 * 1440
    for _ in range(30):
        entries = []
        for _ in range(int(random.integers(1, 4))):
            days = tuple(random.choice(DAYS, int(random.integers(1, 8)), replace=False).tolist())
            first, last = random.choice(1440, 2, replace=False).tolist()
            entries.append(Hours(days, first, last, str(random.choice(ZONES))))
        minutes = begin + 60.0 * np.arange(span)
        found, inside = allowed(entries, begin, begin + 60.0 * span), np.zeros(span, bool)
        for opens, closes in (interval for one in entries for interval in one.intervals(begin, begin + 60.0 * span)):
            inside |= (opens <= minutes) & (minutes < closes)
        assert np.any([(opens <= minutes) & (minutes < closes) for opens, closes in found], axis=0).tolist() == list(
            inside
        )
        assert all(before[1] < after[0] for before, after in pairwise(found))
    assert allowed((), begin, begin + 60.0) == []


def test_an_end_beyond_all_dates_is_none() -> None:
    """A simulation may have no end."""
    for end in (1e300, math.inf):
        found = list(Hours(("Mon",), 0, 60).intervals(1_790_000_000.0, end))
        assert len(found) > 400_000
        assert all(closes - opens == 3600.0 for opens, closes in found)
    last = datetime(9989, 1, 1, tzinfo=UTC).timestamp()
    assert len(list(Hours(("Mon",), 0, 60, "Europe/Berlin").intervals(last, math.inf))) > 50


def test_intervals_of_several_entries_are_joined_and_met() -> None:
    week = [Hours((day,), 0, 1440) for day in DAYS]
    assert len(allowed(week, 0.0, 10 * 86400.0)) == 1
    random = np.random.default_rng(5)
    for _ in range(50):
        lists = [
            [
                (float(a), float(b))
                for a, b in np.sort(random.choice(60, 2 * int(random.integers(1, 9)), False)).reshape(-1, 2)
            ]
            for _ in range(2)
        ]
        found = both(*lists)
        inside = [all(any(a <= t < b for a, b in one) for one in lists) for t in range(60)]
        assert [any(a <= t < b for a, b in found) for t in range(60)] == inside
        assert all(before[1] <= after[0] for before, after in pairwise(found))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Hours((), 0, 1), "hours.days: found [], expected some of Mon, Tue"),
        (lambda: Hours(("Monday",), 0, 1), "hours.days: found ['Monday']"),
        (lambda: Hours(("Mon",), 60, 60), "hours.to: found '01:00', expected a time of day other than from"),
        (lambda: Hours(("Mon",), 1440, 60), "hours.from: found '24:00'"),
        (lambda: Hours(("Mon",), 0, 60, "Europe/Atlantis"), "time zone: found 'Europe/Atlantis'"),
        (lambda: minutes_of("7:00"), "found '7:00', expected a time of day from 00:00 to 24:00"),
        (lambda: minutes_of("24:01"), "found '24:01'"),
    ],
)
def test_what_is_no_time_of_the_week_is_refused(made, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError) as refused:
        made()
    assert said in str(refused.value)
