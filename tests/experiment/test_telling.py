"""What is shown while many runs go on, and how the time that remains is reckoned."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from slacktide.cli.comparison.many import Telling
from slacktide.experiment.grid import Point
from slacktide.experiment.run import Outcome
from slacktide.experiment.store import Estimates, Store
from support.on_terminal import GONE, plain, terminal

POINTS = [Point("w", hosts, policy, 0) for hosts in ("N", "0.9 N") for policy in ("priority", "qos-driven")]


def test_the_time_that_remains_follows_from_runs_that_are_most_alike(tmp_path: Path) -> None:
    now = [0.0]
    telling = Telling(Store(tmp_path), 2, io.StringIO(), lambda: now[0])
    telling.begin(POINTS, done=1)
    assert telling.remaining() is None
    now[0] = 10.0
    telling.told(POINTS[0], Outcome("a", seconds=10.0))
    # Three runs are left, of which nothing is known but 10 s for one: 30 s of work, two at a time.
    assert telling.remaining() == pytest.approx(15.0)
    telling.told(POINTS[1], Outcome("b", seconds=40.0))
    assert telling.remaining() == pytest.approx((10 + 40) / 2)
    now[0] = 15.0
    assert telling.remaining() == pytest.approx(20.0)


def test_a_terminal_has_one_line_that_changes_and_others_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    screen, log = terminal(monkeypatch), io.StringIO()
    for stream in (screen, log):
        with Telling(Store(tmp_path), 1, stream, lambda: now[0]) as telling:
            telling.begin(POINTS, done=0)
            for number, point in enumerate(POINTS):
                now[0] += 1.0
                telling.told(point, Outcome(str(number), 1.0, *(["broken", "PluginError"] if number == 1 else [])))
    assert plain(screen).rstrip().endswith("100% 4 of 4 runs, 1 failed, took 4.0s")
    assert not screen.getvalue().endswith(GONE)
    assert [line for line in log.getvalue().splitlines() if "runs" in line] == [
        "slacktide: 0 of 4 runs",
        "slacktide: 4 of 4 runs, 1 failed, took 4.0s",
    ]


def test_runs_that_are_likely_to_follow_count(tmp_path: Path) -> None:
    now, log = [0.0], io.StringIO()
    later = [Point("w", hosts, "priority", 0) for hosts in ("M", "K", "L")]
    with Telling(Store(tmp_path), 1, log, lambda: now[0]) as telling:
        telling.expect(later)
        telling.begin(POINTS[:2], done=0)
        for number, point in enumerate(POINTS[:2]):
            now[0] += 10.0
            telling.told(point, Outcome(str(number), 10.0))
        assert telling.remaining() == 30.0
        telling.expect(later[2:])
        telling.begin(later[:1], done=0)
        now[0] += 10.0
        telling.told(later[0], Outcome("2", 10.0))
        assert telling.remaining() == 10.0
    assert [line for line in log.getvalue().splitlines() if "runs" in line] == [
        "slacktide: 0 of about 5 runs",
        "slacktide: 1 of about 5 runs, about 40.0s left",  # the first time that it is known
        "slacktide: 3 of about 4 runs, about 10.0s left",
        "slacktide: 3 of 3 runs, took 30.0s",  # it was not needed
    ]


def test_an_estimate_is_the_mean_of_the_runs_most_alike() -> None:
    times = [
        {"workload": "w", "hosts": "N", "policy": "p", "seconds": 1.0},
        {"workload": "w", "hosts": "M", "policy": "p", "seconds": 3.0},
        {"workload": "v", "hosts": "N", "policy": "p", "seconds": 8.0},
        {"workload": "v", "hosts": "N", "policy": "q", "seconds": 20.0},
    ]
    known = Estimates(times)
    assert known.of("w", "N", "p") == 1.0
    assert known.of("w", "L", "p") == 2.0
    assert known.of("u", "N", "p") == 4.0
    assert known.of("u", "N", "r") == 8.0
    assert Estimates().of("w", "N", "p") is None


def test_times_that_are_no_times_are_passed_over(tmp_path: Path) -> None:
    lines = ['{"seconds": NaN}', '{"seconds": -1}', '{"seconds": "3"}', '{"secon', "[]", '{"seconds": 2}', "\x00"]
    (tmp_path / "times.jsonl").write_text("\n".join(lines))
    assert Store(tmp_path).times() == [{"seconds": 2}]
    assert Estimates(Store(tmp_path).times()).of("w", "N", "p") == 2.0
    (tmp_path / "times.jsonl").write_bytes(b"\xff\xfe")
    assert Store(tmp_path).times() == []
