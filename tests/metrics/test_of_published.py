"""Metrics of the published one-hour sample are of the order that a plain, slow program found."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slacktide.metrics.contention import contention_levels
from slacktide.metrics.intervals import IntervalRecorder
from slacktide.metrics.paired import quadrants
from slacktide.metrics.penalties import penalties
from slacktide.results.tables import interval_rows, request_rows
from slacktide.sim import run
from support.published import END, inputs, settings

FILES = ("one-hour", "workload-higher-contention.erl", "hosts-620.erl")


def outcome(folder: Path, policy: str) -> tuple[pa.Table, pa.Table]:
    """Requests and ten-minute intervals of a run."""
    workload, hosts = inputs(*FILES)
    config = settings(name=policy)
    recorder = IntervalRecorder(workload)
    result = run(workload, hosts, config, intervals=600.0, observe=recorder)
    request_rows(workload, result.requests, "restart").write(folder / "requests.parquet")
    names = [one.name for one in workload.classes]
    interval_rows(recorder.intervals(), names).write(folder / "intervals.parquet")
    return pq.read_table(folder / "requests.parquet"), pq.read_table(folder / "intervals.parquet")


def test_priority_pays_where_the_recommended_settings_do_not(tmp_path: Path) -> None:
    classes = inputs(*FILES)[0].classes
    (priority, intervals), (ours, _) = (outcome(tmp_path, name) for name in ("priority", "qos-driven"))
    owed, none = (penalties(one, classes, "restart", END)["penalty"].to_pylist() for one in (priority, ours))
    assert 300.0 < owed[-1] < 3000.0  # the plain program: 975
    assert owed[2] > 0.99 * owed[-1]  # all of it bronze
    assert none == [0.0] * 4
    bronze = quadrants(priority, ours, classes, "restart").to_pylist()[2]
    assert bronze["only_x"] == bronze["neither"] == 0.0
    assert bronze["only_y"] == pytest.approx(0.025, abs=0.02)  # 1 - .975
    levels = contention_levels(intervals, classes)["level"].to_pylist()
    assert levels[0] == "none"  # the standing load has only just arrived
    assert "medium" in levels
