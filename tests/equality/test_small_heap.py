"""What instances have ahead of them fits into its buffer, however much one instant adds: it grows before that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.kernels.tables import log_records
from slacktide.model import ServiceClass, Window
from slacktide.state import cluster as building
from support.runs import core, decisions_of
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
