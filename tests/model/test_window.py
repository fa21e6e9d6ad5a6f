"""Windows of a promise, and when those of a calendar begin."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.errors import ConfigError
from slacktide.model import Window
from slacktide.model.window import parse_epoch, turns

BERLIN = "Europe/Berlin"
DAY = 86_400.0


def test_budgets_are_whole_where_nothing_is_said_and_others_are_named() -> None:
    assert Window(rolling=30 * DAY).budget == "whole"
    assert Window(calendar="1M").budget == "whole"
    assert Window(rolling=30 * DAY, budget="whole").name == "rolling 30d"
    assert Window(rolling=30 * DAY, budget="accrued").name == "rolling 30d accrued"
    assert Window(calendar="1M", time_zone=BERLIN).name == "calendar 1M Europe/Berlin"
    assert Window(calendar="1M", budget="accrued").name == "calendar 1M accrued"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "either rolling (such as 30d) or calendar"),
        ({"rolling": DAY, "calendar": "1d"}, "either rolling (such as 30d) or calendar"),
        ({"rolling": 59.0}, "rolling: found 59.0, expected 1m to 400d"),
        ({"rolling": float("nan")}, "rolling: found nan"),
        ({"calendar": "0d"}, "calendar: found '0d', expected a number of d, w, M, Q or Y"),
        ({"calendar": "1m"}, "calendar: found '1m'"),
        ({"calendar": "1M", "budget": "half"}, "budget: found 'half', expected accrued or whole"),
        ({"calendar": "1M", "time_zone": "Moon/Base"}, "time_zone: found 'Moon/Base'"),
        ({"calendar": "1M", "start": "yesterday"}, "start: found 'yesterday', expected a local date and time"),
        ({"calendar": "1M", "start": "2026-01-01T00:00:00Z"}, "without a zone"),
        ({"rolling": DAY, "time_zone": BERLIN}, "belong to calendar windows"),
    ],
)
def test_what_cannot_be_is_refused_and_says_what_would_be_right(fields: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Window(**fields)  # type: ignore[arg-type]


def begins(window: Window, after: str, count: int) -> list[str]:
    zone = ZoneInfo(window.time_zone)
    found = islice(window.begins(datetime.fromisoformat(after)), count)
    return [one.astimezone(zone).strftime("%Y-%m-%d %H:%M") for one in found]


@pytest.mark.parametrize(
    ("window", "after", "expected"),
    [
        (Window(calendar="1M"), "2024-02-10T00:00:00+00:00", ["2024-02-01", "2024-03-01", "2024-04-01"]),
        (Window(calendar="1Q"), "2025-12-31T23:59:59+00:00", ["2025-10-01", "2026-01-01", "2026-04-01"]),
        (Window(calendar="1Y"), "2024-01-01T00:00:00+00:00", ["2024-01-01", "2025-01-01", "2026-01-01"]),
        (Window(calendar="1w"), "2026-11-24T12:00:00+00:00", ["2026-11-23", "2026-11-30", "2026-12-07"]),
        (Window(calendar="2w", start="2026-11-16T00:00:00"), "2026-11-24T12:00:00+00:00", ["2026-11-16", "2026-11-30"]),
        (
            Window(calendar="1M", start="2023-08-31T00:00:00"),
            "2024-01-31T00:00:00+00:00",
            ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"],
        ),
    ],
)
def test_calendar_windows_begin_where_the_calendar_says(window: Window, after: str, expected: list[str]) -> None:
    assert begins(window, after, len(expected)) == [f"{day} 00:00" for day in expected]


def test_days_are_as_long_as_they_are_where_clocks_change() -> None:
    spring = list(islice(Window(calendar="1d", time_zone=BERLIN).begins(datetime(2026, 3, 27, tzinfo=UTC)), 5))
    autumn = list(islice(Window(calendar="1d", time_zone=BERLIN).begins(datetime(2026, 10, 23, tzinfo=UTC)), 5))
    hours = [[(b - a) / timedelta(hours=1) for a, b in pairwise(days)] for days in (spring, autumn)]
    assert hours == [[24, 24, 23, 24], [24, 24, 25, 24]]


def test_a_local_time_that_is_left_out_or_there_twice_begins_one_window() -> None:
    window = Window(calendar="1d", time_zone=BERLIN, start="2026-01-01T02:30:00")
    spring = list(islice(window.begins(datetime(2026, 3, 28, 12, tzinfo=UTC)), 3))
    autumn = list(islice(window.begins(datetime(2026, 10, 24, 12, tzinfo=UTC)), 3))
    assert spring[1] == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)  # 02:30 is not there: an hour later, 03:30
    assert autumn[1] == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # the first 02:30 of two


ZONES = st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe"])


@given(
    st.builds(Window, calendar=st.sampled_from(["1d", "3d", "1w", "1M", "2M", "1Q", "1Y"]), time_zone=ZONES),
    st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)),
)
def test_windows_follow_one_another_and_the_first_holds_the_instant(window: Window, at: datetime) -> None:
    at = at.replace(tzinfo=UTC)
    first, *rest = islice(window.begins(at), 6)
    assert first <= at < rest[0]
    assert all(a < b for a, b in pairwise([first, *rest]))


def test_turns_are_seconds_from_the_epoch_and_end_with_the_second_one_beyond() -> None:
    epoch = parse_epoch("2026-03-28T12:00:00+01:00")
    assert turns(Window(calendar="1d", time_zone=BERLIN), epoch, 0.0, 2 * DAY) == [
        -DAY / 2, DAY / 2, DAY * 1.5 - 3600, DAY * 2.5 - 3600, DAY * 3.5 - 3600,
    ]  # fmt: skip


def test_an_epoch_without_an_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="found '2026-01-01', expected an instant with its offset"):
        parse_epoch("2026-01-01")
