"""What one instant adds fits into the buffers, however much that is: they grow before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.kernels.tables import log_records, schema
from slacktide.model import ServiceClass, Window
from slacktide.state import cluster as building
from slacktide.state import windows
from support.runs import compare, core, decisions_of, twin
from support.small import BRONZE, GOLD, Request, machines, small


@pytest.fixture
def small_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers = building.buffers

    def smaller(requests: int, resources: int) -> dict[str, Any]:
        return buffers(requests, resources) | {"heap": np.zeros(8, log_records.INSTANCE_EVENT)}

    monkeypatch.setattr(building, "buffers", smaller)


@pytest.mark.uncompiled
@pytest.mark.usefixtures("small_heap")
def test_many_victims_of_one_decision_come_back(tmp_path: Path) -> None:
    """Each waits for its next incarnation, or goes on for its grace period."""
    rows = [*(Request(BRONZE, size=1.0) for _ in range(14)), Request(GOLD, admission=20.0, size=14.0, duration=30.0)]
    one = small(rows, machines(14.0), end=100.0, cold=2.0, hot=1.0, simulation={"recreation": 3.0})
    graces = replace(one, workload=replace(one.workload, grace=np.full(len(rows), 4.0)))
    for which, ends in ((one, 52.0), (graces, 56.0)):
        result = core(which, tmp_path)
        assert [len(victims) for *_, victims in decisions_of(result) if victims] == [14]
        assert result.requests["completed"].tolist()[-1] == ends


@pytest.mark.uncompiled
@pytest.mark.usefixtures("small_heap")
def test_a_calendar_window_of_many_begins(tmp_path: Path) -> None:
    day = ServiceClass("daily", 0.9, 2, window=Window(calendar="1d", time_zone="UTC"))
    one = small([Request(0) for _ in range(14)], machines(14.0), end=5 * 86400.0, cold=2.0)
    one = replace(one, workload=replace(one.workload, classes=(day,)))
    assert core(one, tmp_path).requests["running"].tolist() == [5 * 86400.0 - 2.0] * 14


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    buffers = building.buffers

    def smaller(requests: int, resources: int) -> dict[str, Any]:
        queues = {name: np.zeros(8, schema.ENTRY) for name in ("queue", "incoming")} | {"order": np.zeros(8, np.int64)}
        records = {"heap": np.zeros(8, log_records.INSTANCE_EVENT), "events": np.zeros(8, log_records.EVENT)}
        return buffers(requests, resources) | queues | records

    monkeypatch.setattr(building, "buffers", smaller)
    monkeypatch.setattr(windows, "FIRST_OUTAGES", 4)


@pytest.mark.uncompiled
@pytest.mark.usefixtures("small_buffers")
@pytest.mark.parametrize("recreation", [0.0, 5.0])
@pytest.mark.parametrize("window", [None, Window(rolling=3600.0)])
def test_a_host_fails_on_which_more_victims_still_go_than_it_has_places(
    recreation: float, window: Window | None, tmp_path: Path
) -> None:
    """Each class drives out the one before, whose instances go on for their grace period: then all are gone at once."""
    ranks, places = 7, 14
    classes = tuple(ServiceClass(f"c{rank}", 0.5, ranks - rank, window=window) for rank in range(ranks))
    rows = [Request(rank, admission=float(rank)) for rank in range(ranks) for _ in range(places)]
    one = small(
        rows,
        machines(float(places)),
        end=100.0,
        events=[(50.0, 0, "fail"), (60.0, 0, "repair")],
        policy={"name": "priority"},
        qos={"startup": "always"},
        simulation={"recreation": recreation},
    )
    grace = np.full(len(rows), 1e5)
    one = replace(one, workload=replace(one.workload, classes=classes, grace=grace))
    found = core(one, tmp_path, events=True, outages=True)
    assert found.preemptions == (ranks - 1) * places
    assert compare(found, twin(one)) is None
