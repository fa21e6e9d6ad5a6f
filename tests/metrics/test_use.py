"""Waste, use of capacity, work of the scheduler and demand, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.metrics.demand import demand_at
from slacktide.metrics.use import utilisation, waste, work
from support.run_tables import BRONZE, GOLD
from support.small import BRONZE as LOW
from support.small import GOLD as HIGH
from support.small import Request, workload


def test_waste_by_hand() -> None:
    run = pa.table(
        {
            "class": ["bronze", "bronze"],
            "running": [60.0, 0.0],
            "startup": [20.0, 10.0],
            "discarded": [10.0, 0.0],
            "wasted_startup": [5.0, 10.0],
            "preemptions": [1, 1],
            "starts": [2, 1],
        }
    )
    gold, bronze, everyone = waste(run, (GOLD, BRONZE)).to_pylist()
    assert gold["waste"] is None
    assert bronze["waste"] == (5.0 + 10.0 + 10.0) / (60.0 + 30.0 + 10.0)
    assert {name: bronze[name] for name in ("requests", "starts", "preemptions")} == {
        "requests": 2,
        "starts": 3,
        "preemptions": 2,
    }
    assert (bronze["running"], bronze["startup"], bronze["wasted_startup"], bronze["discarded"]) == (60, 30, 15, 10)
    assert everyone == bronze | {"class": "all"}


PROGRESS = pa.table(
    {
        "time": [600.0, 1200.0],
        "queue": [0, 9],
        "longest_queue": [4, 9],
        "passes": [10, 25],
        "operations": [100, 180],
        "placements": [7, 7],
        "preemptions": [0, 2],
        "capacity_cpu": [8.0, 0.0],
        "capacity_memory": [4.0, 4.0],
    }
)


def test_use_of_capacity_by_hand() -> None:
    table = pa.table(
        {
            "time": [600.0, 600.0, 1200.0, 1200.0],
            "class": ["gold", "bronze"] * 2,
            "allocated_cpu": [4.0, 2.0, 0.0, 0.0],
            "demanded_cpu": [4.0, 8.0, 4.0, 8.0],
            "allocated_memory": [1.0, 1.0, 1.0, 3.0],
            "demanded_memory": [1.0, 1.0, 1.0, 3.0],
        }
    )
    rows = utilisation(table, PROGRESS).to_pylist()
    assert [(row["time"], row["resource"], row["utilisation"], row["pressure"]) for row in rows] == [
        (600.0, "cpu", 0.75, 1.5),
        (1200.0, "cpu", None, None),
        (600.0, "memory", 0.5, 0.5),
        (1200.0, "memory", 1.0, 1.0),
    ]
    with pytest.raises(ValueError, match="one run"):
        utilisation(table, PROGRESS.slice(1))


def test_what_the_scheduler_did_within_each_interval() -> None:
    assert work(PROGRESS).to_pylist() == [
        {"time": 600.0, "queue": 4, "passes": 10, "operations": 100, "placements": 7, "preemptions": 0},
        {"time": 1200.0, "queue": 9, "passes": 15, "operations": 80, "placements": 0, "preemptions": 2},
    ]


def test_demand_by_hand() -> None:
    # Gold of 2 from 0 to 10, bronze of 1 from 5 for ever, bronze of 4 from 10 to 12.
    rows = [Request(HIGH, 0.0, 10.0, 2.0), Request(LOW, 5.0), Request(LOW, 10.0, 2.0, 4.0)]
    found = demand_at(workload(rows), [12.0, 0.0, 5.0, 9.75, 10.0]).to_pylist()
    at = {(row["time"], row["class"]): (row["instances"], row["demand_cpu"], row["demand_memory"]) for row in found}
    assert [at[time, "gold"] for time in (0.0, 5.0, 9.75, 10.0, 12.0)] == [(1, 2.0, 2.0)] * 3 + [(0, 0.0, 0.0)] * 2
    assert [at[time, "bronze"][:2] for time in (0.0, 5.0, 9.75, 10.0, 12.0)] == [
        *((0, 0.0), (1, 1.0), (1, 1.0), (2, 5.0), (1, 1.0))
    ]
    assert [row["time"] for row in found[::3]] == [0.0, 5.0, 9.75, 10.0, 12.0]


instances = st.lists(
    st.tuples(st.sampled_from([HIGH, LOW]), st.integers(0, 20), st.integers(1, 9), st.integers(1, 5)), max_size=30
)


@given(instances, st.lists(st.integers(-1, 30), max_size=8))
def test_demand_is_what_counting_says(rows: list[tuple[int, int, int, int]], times: list[int]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    work_ = workload([Request(kind, float(at), float(length), float(size)) for kind, at, length, size in rows])
    for row in demand_at(work_, np.array(times, np.float64)).to_pylist():
        kind = [one.name for one in work_.classes].index(row["class"])
        there = [size for k, at, length, size in rows if k == kind and at <= row["time"] < at + length]
        assert (row["instances"], row["demand_cpu"]) == (len(there), sum(there))
