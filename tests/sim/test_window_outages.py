"""Outages of promises over windows: what a run records of them, and what it says of windows, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from slacktide.experiment.run_folder import Asked, run_into
from slacktide.metrics.windows import window_summary
from slacktide.model import Window
from slacktide.sim import EVENT_KINDS
from support.clusters import Cluster
from support.runs import core, settings_of
from support.small import BRONZE, GOLD, Request, Several, machines, small

OUTAGE = EVENT_KINDS.index("outage")
PRIORITY: dict[str, Any] = {"policy": {"name": "priority"}, "qos": {"startup": "restart"}}


def windowed(one: Cluster, window: Window) -> Cluster:
    """The same cluster; bronze, half of the time, is promised over this window."""
    classes = [replace(each, window=window if at == BRONZE else None) for at, each in enumerate(one.workload.classes)]
    return replace(one, workload=replace(one.workload, classes=tuple(classes)))


def summary(one: Cluster, folder: Path) -> list[dict[str, Any]]:
    """What the core's run says of windows; the same as a folder's file has."""
    found = core(one, folder, outages=True)
    rows = window_summary(one.workload, found, one.config)
    config = settings_of(one, folder)
    run_into(
        folder / "out", one.workload, one.hosts, config, files=[], command=["slacktide"], asked=Asked(intervals=60.0)
    )
    assert pq.read_table(folder / "out" / "windows.parquet").to_pylist() == rows
    return rows


@pytest.mark.uncompiled
def test_one_that_is_preempted_twice(tmp_path: Path) -> None:
    """Away from 20 to 30 and from 100 to 140 s of 200."""
    golden = [Request(GOLD, 20.0, 10.0), Request(GOLD, 100.0, 40.0)]
    one = windowed(small([Request(BRONZE), *golden], machines(1.0), end=200.0, **PRIORITY), Window(rolling=60.0))
    first, *curve = summary(one, tmp_path)
    # A window of 60 s has 30 lost ones from 130 s on, and again at 170: kept from 60 to 130 and from 170 to 200.
    assert first == {
        "class": "bronze",
        "window": "rolling 1m",
        "length": 60.0,
        "worst": pytest.approx(1.0 - 40.0 / 60.0),
        "requests": 1,
        "kept": pytest.approx(100.0 / 140.0),
        "longest": 40.0,
    }
    worst = {row["length"]: row["worst"] for row in curve}
    assert worst == pytest.approx(
        {1.0: 0.0, 2.0: 0.0, 5.0: 0.0, 10.0: 0.0, 20.0: 0.0, 30.0: 0.0, 60.0: 1 / 3, 120.0: 7 / 12, 200.0: 0.75}
    )


@pytest.mark.uncompiled
def test_a_request_half_of_which_is_away(tmp_path: Path) -> None:
    """Of an aggregated request one of two instances is away from 20 to 80 s; nothing is lost all at once."""
    rows = [Request(BRONZE, of=0), Request(BRONZE, of=0), Request(GOLD, 20.0, 60.0)]
    one = windowed(
        small(rows, machines(2.0), several=[Several("aggregated")], end=200.0, **PRIORITY), Window(rolling=60.0)
    )
    found = core(one, tmp_path, outages=True).events
    assert found is not None
    assert [found[name].tolist() for name in ("kind", "time", "row", "by", "host", "qos", "received")] == [
        *([OUTAGE], [80.0], [0], [-1], [-1], [30.0], [30.0])
    ]
    first, *curve = summary(one, tmp_path)
    assert (first["requests"], first["worst"], first["kept"], first["longest"]) == (1, 0.5, 1.0, 0.0)
    assert {row["length"]: row["worst"] for row in curve}[30.0] == 0.5


@pytest.mark.uncompiled
@pytest.mark.parametrize(("budget", "kept"), [("whole", 1.0), ("accrued", 0.5)])
def test_calendar_windows(budget: str, kept: float, tmp_path: Path) -> None:
    """A life from 80,000 s to 90,000 s lies in two days; of the first it loses 4,000 of 6,400 s."""
    rows = [Request(BRONZE, 80_000.0), Request(GOLD, 80_000.0, 4_000.0)]
    window = Window(calendar="1d", budget=budget)
    one = windowed(small(rows, machines(1.0), end=90_000.0, **PRIORITY), window)
    first = summary(one, tmp_path)[0]
    assert (first["length"], first["kept"], first["longest"]) == (None, kept, 4_000.0)
    assert first["worst"] == pytest.approx(1.0 - 4_000.0 / (86_400.0 if budget == "whole" else 6_400.0))


def test_as_many_outages_end_with_a_run_as_wait_in_it(tmp_path: Path) -> None:
    """More than the buffer of events holds; before, they were written beyond it."""
    many = 12_000
    one = windowed(small([Request(GOLD), *[Request(BRONZE)] * many], machines(1.0), end=50.0, **PRIORITY),
                   Window(rolling=60.0))  # fmt: skip
    found = core(one, tmp_path, events=True).events
    assert found is not None
    ended = found["kind"] == OUTAGE
    assert int(ended.sum()) == many
    assert set(found["time"][ended].tolist()) == {50.0}
    assert set(found["qos"][ended].tolist()) == {50.0}


def test_as_many_outages_are_noted_at_an_instant_as_start_ups_end(tmp_path: Path) -> None:
    """More than there is room for at first; before, they were written beyond the table, whether recorded or not."""
    many = 3_000
    rows = [Request(BRONZE, size=0.001)] * many
    one = small(rows, machines(4.0), end=50.0, cold=5.0, policy={"name": "priority"}, qos={"startup": "always"})
    one = windowed(one, Window(rolling=60.0))
    found = core(one, tmp_path, outages=True)
    assert found.events is not None
    assert found.events["time"].tolist() == [5.0] * many
    assert found.events["qos"].tolist() == [5.0] * many
    assert core(one, tmp_path).requests["worst_window"].tolist() == found.requests["worst_window"].tolist()
