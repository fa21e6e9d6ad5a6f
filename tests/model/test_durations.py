"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.model.durations import parse_duration, write_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        (90, 90.0),
        (1.5, 1.5),
        ("90s", 90.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("30d", 2_592_000.0),
        ("2w", 1_209_600.0),
        ("1.5h", 5400.0),
        ("0s", 0.0),
        (" 1d ", 86_400.0),
    ],
)
def test_durations_have_units_of_fixed_length(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "1M", "1y", "-1h", "1h1h", "30m1h", "1 h", "1e9", "nan", "inf", True, None])
def test_what_is_no_duration_is_refused_with_what_would_be_right(text: object) -> None:
    with pytest.raises(ValueError, match="expected seconds, or numbers with units"):
        parse_duration(text)  # type: ignore[arg-type]


@given(st.floats(0.0, 1e9, allow_subnormal=False) | st.integers(0, 10**9).map(float))
def test_what_is_written_reads_back_the_same(seconds: float) -> None:
    assert parse_duration(write_duration(seconds)) == seconds
