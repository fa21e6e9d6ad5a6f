"""The Parquet tables say what the run said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from slacktide.errors import OutputError
from slacktide.model import AGGREGATED, CONCURRENT, Hosts, Requests, Workload
from slacktide.qos.per_request import per_request
from slacktide.results import tables
from slacktide.sim import EVENT_KINDS


def workload() -> Workload:
    count = 4
    return Workload(
        ids=np.array([70, 71, 72, 73]),
        admission=np.array([0.0, 0.0, 5.0, 9.0]),
        duration=np.full(count, np.inf),
        demand=np.ones((count, 2)),
        service_class=np.array([0, 1, 2, 2], dtype=np.int16),
        job=np.arange(count),
        anti_affinity=np.zeros(count, dtype=np.bool_),
        term=np.zeros(count, dtype=np.int32),
    )


def outcome() -> dict[str, NDArray[Any]]:
    """Three requests of the run; the one in row 1 was not part of it."""
    return {
        "row": np.array([0, 2, 3]),
        "completed": np.array([100.0, np.nan, np.nan]),
        "running": np.array([95.0, 50.0, 0.0]),
        "pending": np.array([0.0, 20.0, 0.0]),
        "startup_first": np.array([5.0, 10.0, 0.0]),
        "startup_restarts": np.array([0.0, 10.0, 0.0]),
        "wasted_startup": np.array([0.0, 2.5, 0.0]),
        "discarded": np.array([0.0, 10.0, 0.0]),
        "preemptions": np.array([0, 1, 0], dtype=np.int32),
        "starts": np.array([1, 2, 0], dtype=np.int32),
        "hosts_used": np.array([1, 2, 0], dtype=np.int32),
    }


def test_a_row_per_request_of_the_run(tmp_path: Path) -> None:
    tables.request_rows(workload(), outcome(), "always").write(tmp_path / "requests.parquet")
    rows = pq.read_table(tmp_path / "requests.parquet").to_pylist()
    assert [row["id"] for row in rows] == [70, 72, 73]
    assert [row["class"] for row in rows] == ["gold", "bronze", "bronze"]
    assert [row["completion"] for row in rows] == [100.0, None, None]
    assert [row["startup"] for row in rows] == [5.0, 20.0, 0.0]
    assert [row["availability_always"] for row in rows] == [0.95, 0.5, 1.0]
    assert [row["availability_restart"] for row in rows] == [1.0, 0.6, 1.0]
    assert [row["availability_never"] for row in rows] == [1.0, 0.7, 1.0]
    assert [row["slo_met"] for row in rows] == [False, True, True]
    assert rows[1]["wasted_startup"] == 2.5
    assert rows[1]["discarded"] == 10.0
    alone = {"kind": "service", "approach": "independent", "instances": 1}
    assert all({key: row[key] for key in alone} == alone for row in rows)


def test_a_row_says_what_was_asked_for(tmp_path: Path) -> None:
    work = workload()
    work.demand[:] = [[2.0, 1.0], [9.0, 9.0], [0.5, 3.0], [0.0, 1.0]]
    work.duration[:] = [95.0, 1.0, np.inf, 8.0]
    tables.request_rows(work, outcome(), "always").write(tmp_path / "requests.parquet")
    rows = pq.read_table(tmp_path / "requests.parquet").to_pylist()
    assert [row["duration"] for row in rows] == [95.0, None, 8.0]
    assert [row["cpu_seconds"] for row in rows] == [190.0, None, 0.0]
    assert [(row["demand_cpu"], row["demand_memory"]) for row in rows] == [(2.0, 1.0), (0.5, 3.0), (0.0, 1.0)]


def test_an_interval_without_requests_has_no_availability(tmp_path: Path) -> None:
    columns = {
        "time": np.array([600.0, 600.0]),
        "class": np.array([1, 0]),
        "active": np.array([0, 3]),
        "fulfilment": np.array([np.nan, 0.5]),
    }
    tables.interval_rows(columns, ["gold", "silver"]).write(tmp_path / "intervals.parquet")
    assert pq.read_table(tmp_path / "intervals.parquet").to_pylist() == [
        {"time": 600.0, "class": "silver", "active": 0, "fulfilment": None},
        {"time": 600.0, "class": "gold", "active": 3, "fulfilment": 0.5},
    ]


def test_whether_the_slo_was_met_follows_the_accounting_of_decisions(tmp_path: Path) -> None:
    tables.request_rows(workload(), outcome(), "restart").write(tmp_path / "requests.parquet")
    assert pq.read_table(tmp_path / "requests.parquet")["slo_met"].to_pylist() == [True, True, True]


def test_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.request_rows(workload(), outcome(), "restart").write(tmp_path / "whole.parquet")
    monkeypatch.setattr(tables, "BATCH", 2)
    tables.request_rows(workload(), outcome(), "restart").write(tmp_path / "parts.parquet")
    whole, parts = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    assert pq.ParquetFile(tmp_path / "parts.parquet").num_row_groups == 2
    assert whole.to_pylist() == parts.to_pylist()
    assert whole.schema == parts.schema


def test_a_run_without_requests_has_the_columns(tmp_path: Path) -> None:
    nothing = {name: values[:0] for name, values in outcome().items()}
    tables.request_rows(workload(), nothing, "restart").write(tmp_path / "requests.parquet")
    table = pq.read_table(tmp_path / "requests.parquet")
    assert table.num_rows == 0
    assert "availability_never" in table.column_names


def test_the_version_of_the_schema_is_in_the_file(tmp_path: Path) -> None:
    tables.rows_of({"time": np.array([1.5]), "queue": np.array([3])}).write(tmp_path / "passes.parquet")
    assert pq.read_schema(tmp_path / "passes.parquet").metadata[b"schema_version"] == b"2"
    assert pq.read_table(tmp_path / "passes.parquet").to_pylist() == [{"time": 1.5, "queue": 3}]


def test_events_name_requests_and_hosts(tmp_path: Path) -> None:
    hosts = Hosts(np.array([8, 9]), ("alpha", "beta"), np.ones((2, 2)), ({}, {}))
    columns = {
        "time": np.array([0.0, 5.0, 6.0]),
        "kind": np.array([0, 2, 5], dtype=np.int8),
        "row": np.array([0, 2, -1]),
        "host": np.array([-1, 1, 0]),
        "by": np.array([-1, 0, -1]),
        "qos": np.array([0.0, -3.5, np.nan]),
        "received": np.zeros(3),
    }
    tables.event_rows(workload(), hosts, columns, EVENT_KINDS).write(tmp_path / "events.parquet")
    found = pq.read_table(tmp_path / "events.parquet")
    assert found["received"].null_count == 3
    assert found.drop_columns(["received"]).to_pylist() == [
        {"time": 0.0, "event": "admitted", "request": 70, "instance": None, "host": None, "by": None, "qos": 0.0},
        {"time": 5.0, "event": "preempted", "request": 72, "instance": None, "host": "beta", "by": 70, "qos": -3.5},
        {
            "time": 6.0,
            "event": "host-down",
            "request": None,
            "instance": None,
            "host": "alpha",
            "by": None,
            "qos": None,
        },
    ]


def several() -> Workload:
    """Two requests of two instances each, whose rows come in turn."""
    requests = Requests(
        ids=np.array([7, 9]),
        batch=np.array([False, True]),
        approach=np.array([CONCURRENT, AGGREGATED], dtype=np.int8),
        parallelism=np.array([0, 1]),
        scale_time=np.zeros(0),
        scale_request=np.zeros(0, dtype=np.int32),
        scale_replicas=np.zeros(0, dtype=np.int64),
    )
    codes = np.array([0, 2, 0, 2], dtype=np.int16)
    request = np.array([0, 1, 0, 1], dtype=np.int32)
    return replace(workload(), service_class=codes, request=request, requests=requests)


def instances() -> dict[str, NDArray[Any]]:
    """Of :func:`several`; the second of the batch request was released when the first completed."""
    return {
        **{name: np.append(values, values[:1]) for name, values in outcome().items()},
        "row": np.array([0, 1, 2, 3]),
        "admission": np.array([0.0, 0.0, 5.0, 60.0]),
        "completed": np.array([np.nan, 60.0, np.nan, 160.0]),
        "removed": np.array([100.0, np.nan, np.nan, np.nan]),
    }


def test_a_row_per_request_of_several_instances(tmp_path: Path) -> None:
    columns = per_request(several(), instances(), np.array([[50.0, 40.0, 60.0], [0.0, 0.0, 0.0]]))
    tables.request_rows(several(), columns, "always").write(tmp_path / "requests.parquet")
    service, batch = pq.read_table(tmp_path / "requests.parquet").to_pylist()
    assert (service["id"], service["kind"], service["approach"], service["instances"]) == (
        7,
        "service",
        "concurrent",
        2,
    )
    assert (batch["id"], batch["kind"], batch["approach"], batch["instances"]) == (9, "batch", "aggregated", 2)
    assert (service["class"], batch["class"]) == ("gold", "bronze")
    assert (service["completion"], batch["completion"]) == (None, 160.0)
    assert (service["running"], batch["running"], batch["discarded"]) == (95.0, 145.0, 10.0)
    assert service["availability_always"] == 0.4
    assert batch["availability_restart"] == (50.0 + 10.0 + 95.0 + 5.0) / 200.0
    assert (service["slo_met"], batch["slo_met"]) == (False, True)
    assert (service["hosts_used"], batch["preemptions"], batch["starts"]) == (None, 1, 3)


def test_a_row_per_instance(tmp_path: Path) -> None:
    tables.instance_rows(several(), instances(), "always").write(tmp_path / "instances.parquet")
    rows = pq.read_table(tmp_path / "instances.parquet").to_pylist()
    assert [(row["request"], row["instance"], row["id"]) for row in rows] == [
        (7, 0, 70),
        (9, 0, 71),
        (7, 1, 72),
        (9, 1, 73),
    ]
    assert [(row["admission"], row["completion"], row["removed"]) for row in rows] == [
        (0.0, None, 100.0),
        (0.0, 60.0, None),
        (5.0, None, None),
        (60.0, 160.0, None),
    ]
    assert [row["availability_always"] for row in rows] == [0.95, 0.5, 1.0, 0.95]
    assert [row["slo_met"] for row in rows] == [False, True, True, True]
    assert [row["hosts_used"] for row in rows] == [1, 2, 0, 1]


def test_a_table_of_instances_needs_requests_of_several(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected requests"):
        tables.instance_rows(workload(), instances(), "always").write(tmp_path / "instances.parquet")


def test_events_number_instances_within_their_request(tmp_path: Path) -> None:
    hosts = Hosts(np.array([8]), ("alpha",), np.ones((1, 2)), ({},))
    columns = {
        "time": np.array([0.0, 5.0, 6.0]),
        "kind": np.array([2, 2, EVENT_KINDS.index("outage")], dtype=np.int8),
        "row": np.array([2, -1, 0]),
        "host": np.array([0, 0, -1]),
        "by": np.array([3, -1, -1]),
        "qos": np.array([0.0, np.inf, 4.0]),
        "received": np.array([0.0, 0.0, 2.0]),
    }
    tables.event_rows(several(), hosts, columns, EVENT_KINDS).write(tmp_path / "events.parquet")
    first, second, outage = pq.read_table(tmp_path / "events.parquet").to_pylist()
    assert (first["request"], first["instance"], first["by"]) == (7, 1, 9)
    assert (second["request"], second["instance"], second["by"]) == (None, None, None)
    assert second["qos"] == np.inf
    assert (outage["request"], outage["instance"], outage["qos"], outage["received"]) == (7, None, 4.0, 2.0)


def test_tables_have_one_schema_whatever_the_requests_are(tmp_path: Path) -> None:
    columns = per_request(several(), instances(), np.zeros((2, 3)))
    tables.request_rows(several(), columns, "always").write(tmp_path / "several.parquet")
    tables.request_rows(workload(), outcome(), "always").write(tmp_path / "single.parquet")
    assert pq.read_schema(tmp_path / "several.parquet") == pq.read_schema(tmp_path / "single.parquet")


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"passes\.parquet"):
        tables.rows_of({"time": np.array([1.5])}).write(tmp_path / "missing" / "passes.parquet")
