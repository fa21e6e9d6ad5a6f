"""Numbers for people, and the progress line."""

from __future__ import annotations

import io
import math
import os
import time

import pytest

from slacktide.cli import process
from slacktide.cli.progress import Progress
from slacktide.cli.text import table
from slacktide.for_people import count, duration, percent, share
from support.on_terminal import GONE, plain, terminal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0s"),
        (12.34, "12.3s"),
        (441, "7m21s"),
        (3600, "1h"),
        (36000, "10h"),
        (-86.04, "-86.0s"),
        (90061, "1d1h"),
        (math.inf, "-"),
    ],
)
def test_lengths_of_time(value: float, text: str) -> None:
    assert duration(value) == text


def test_a_share_is_never_rounded_up_to_all() -> None:
    assert share(0.99999) == "0.9999"
    assert share(1.0) == "1.0000"
    assert share(0.3) == "0.3000"
    assert share(math.nan) == "-"
    assert [percent(one) for one in (0.77876, 0.99995, 1.0, 0.00001)] == [
        "77.87 %",
        "99.995 %",
        "100 %",
        "< 0.01 %",
    ]


def test_large_counts_are_short() -> None:
    assert [count(23201), count(30_240_000)] == ["23,201", "30.2 M"]


def test_columns_line_up() -> None:
    assert table(("class", "n"), [("gold", "1,653"), ("b", "2")]) == "class      n\ngold   1,653\nb          2"


def test_progress_tells_rate_and_simulated_time_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    now = [0.0]
    with Progress(stream, lambda: now[0]) as progress:
        progress(10.0, 1, 100)  # too early to be shown
        assert stream.getvalue() == ""
        now[0] = 2.0
        progress(7200.0, 50, 100)
        assert "50% about 2.0s left, 50 of 100 requests, 25/s, simulated 2h" in plain(stream)
    assert stream.getvalue().endswith(GONE)


def test_progress_is_silent_where_nobody_looks() -> None:
    stream = io.StringIO()
    with Progress(stream, lambda: 100.0 * len(stream.getvalue()) + 1e6) as progress:
        progress(1.0, 1, 2)
    assert stream.getvalue() == ""


def test_wall_time_counts_from_the_start_of_the_process() -> None:
    before = time.monotonic()
    first = process.wall_seconds()
    time.sleep(0.05)
    assert 0.04 <= process.wall_seconds() - first <= time.monotonic() - before + 0.02
    # Python and the imports before this test have taken processor time, which the wall saw, too.
    assert first >= 0.5 * (process.cpu_seconds() / (os.cpu_count() or 1))


def test_peak_memory_sees_an_allocation() -> None:
    before = process.peak_rss_mb()
    block = bytearray(os.urandom(1)) * (200 << 20)
    assert len(block) == 200 << 20
    assert process.peak_rss_mb() >= min(before + 1, 200)
