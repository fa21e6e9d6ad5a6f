"""Rows that stand for requests of several instances: read, refused, grouped, described."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.readers import asked_of, csv_asked, csv_rows, rows_of
from slacktide.cli import main
from slacktide.errors import ConfigError, InputError
from slacktide.inputs import group_by_job, read_workload, write_workload
from slacktide.inputs.columns import instances as request_columns
from slacktide.inputs.columns.instances import format_scale, parse_scale
from slacktide.inputs.rows import COLUMNS
from slacktide.inputs.statistics import describe_workload, unsatisfiable
from slacktide.model import AGGREGATED, CONCURRENT, INDEPENDENT, Constraint, Hosts, Requests, Term, Workload
from support.repository import REPOSITORY
from support.request_files import EXAMPLE, NAMES, example, read, row, same


def test_a_row_becomes_its_instances_in_order_of_file_and_admission(tmp_path: Path) -> None:
    workload = example(tmp_path)
    assert workload.ids.tolist() == [2, *[6] * 3, *[8] * 3, *[5] * 4, 8, 8, 8]
    assert workload.admission.tolist() == [0, *[1] * 3, *[5] * 7, 600, 600, 1800]
    assert workload.request is not None
    assert workload.request.tolist() == [1, *[3] * 3, *[0] * 3, *[2] * 4, 0, 0, 0]
    assert workload.job.tolist() == [2, *[6] * 3, *[70] * 3, *[5] * 4, 70, 70, 70]
    assert [str(workload.terms[number]) for number in workload.term[[0, 4, 13]]] == ["anywhere", "a == 1", "a == 1"]
    requests = workload.requests
    assert requests is not None
    assert requests.ids.tolist() == [8, 2, 5, 6]
    assert requests.batch.tolist() == [False, False, True, True]
    assert requests.approach.tolist() == [CONCURRENT, INDEPENDENT, AGGREGATED, AGGREGATED]
    assert requests.parallelism.tolist() == [0, 0, 2, 0]
    assert requests.scale_time.tolist() == [600, 1200, 1800]
    assert requests.scale_request.tolist() == [0, 0, 0]
    assert requests.scale_replicas.tolist() == [5, 2, 3]
    names = Requests.__slots__
    kinds = ["int64", "bool", "int8", "int64", "float64", "int32", "int64"]
    assert [getattr(requests, name).dtype.name for name in names] == kinds
    assert (workload.request.dtype.name, workload.ids.dtype.name) == ("int32", "int64")
    assert asked_of(workload) == csv_asked(EXAMPLE)
    assert rows_of(workload) == csv_rows(EXAMPLE)


def test_scale_events_of_all_requests_are_in_order_of_time(tmp_path: Path) -> None:
    workload = read(tmp_path, row(1, scale="5=0; 9=2"), row(2, scale="3=2; 5=1"), row(3, instances=2, scale="5=2"))
    requests = workload.requests
    assert requests is not None
    assert requests.scale_time.tolist() == [3, 5, 5, 5, 9]
    assert requests.scale_request.tolist() == [1, 0, 1, 2, 0]
    assert requests.scale_replicas.tolist() == [2, 0, 1, 2, 2]
    assert workload.ids.tolist() == [1, 2, 3, 3, 2, 1, 1]


@pytest.mark.parametrize(
    "cells",
    [
        {},
        {"kind": "service"},
        {"instances": 1},
        {"approach": "independent"},
        {"kind": "service", "instances": 1, "approach": "independent", "scale": " "},
    ],
)
def test_single_instances_need_no_requests(tmp_path: Path, cells: dict[str, object]) -> None:
    workload = read(tmp_path, row(1, **cells), row(2))
    assert workload.requests is None
    assert workload.request is None
    several = read(tmp_path, row(1, **cells), row(2, instances=2))
    assert several.requests is not None
    assert len(several.requests) == 2


@pytest.mark.parametrize(
    "cells",
    [{"approach": "concurrent"}, {"approach": "aggregated"}, {"kind": "batch"}, {"scale": "7=1"}, {"instances": 2}],
)
def test_whatever_is_not_usual_makes_requests(tmp_path: Path, cells: dict[str, object]) -> None:
    assert read(tmp_path, row(1, **cells)).requests is not None


@pytest.mark.parametrize(
    ("completions", "parallelism", "limit"),
    [("", "", 0), (5, "", 1), (5, 1, 1), (5, 4, 4), (5, 5, 0), (5, 100, 0), ("", 3, 0), (1, 1, 0)],
)
def test_parallelism_is_one_as_in_kubernetes_and_none_where_it_limits_nothing(
    tmp_path: Path, completions: object, parallelism: object, limit: int
) -> None:
    workload = read(tmp_path, row(1, kind="batch", completions=completions, parallelism=parallelism))
    assert workload.requests is not None
    assert workload.requests.parallelism.tolist() == [limit]
    assert len(workload) == (completions or 1)


BROKEN = [
    ({"kind": "job"}, "kind", "service, batch"),
    ({"kind": "servise"}, "kind", "did you mean 'service'"),
    ({"kind": "servise", "completions": 3, "instances": 2, "scale": "0=3"}, "kind", "did you mean 'service'"),
    ({"instances": 0}, "instances", "from 1"),
    ({"instances": -1}, "instances", "from 1"),
    ({"instances": 100_000_001}, "instances", "100,000,000"),
    ({"kind": "batch", "completions": 0}, "completions", "from 1"),
    ({"kind": "batch", "parallelism": 0}, "parallelism", "from 1"),
    ({"kind": "batch", "instances": 2}, "instances", "completions"),
    ({"completions": 2}, "completions", "batch"),
    ({"parallelism": 2}, "parallelism", "batch"),
    ({"kind": "service", "parallelism": 1}, "parallelism", "batch"),
    ({"approach": "concurent"}, "approach", "did you mean 'concurrent'"),
    ({"kind": "batch", "approach": "concurrent"}, "approach", "one by one"),
    ({"kind": "batch", "approach": "independent"}, "approach", "one by one"),
    ({"kind": "batch", "approach": "concurent"}, "approach", "did you mean"),
    ({"kind": "batch", "scale": "600=2"}, "scale", "only a service"),
    ({"scale": "600"}, "scale", "600=5"),
    ({"scale": "600=2; 600=3"}, "scale", "increasing"),
    ({"scale": "600=2; 6e2=3"}, "scale", "increasing"),
    ({"scale": "600=2; 500=3"}, "scale", "increasing"),
    ({"scale": "600=2; 600.0000001=3"}, "scale", "increasing"),
    ({"scale": "2.5000001=1"}, "scale", "after those of the request's admission"),
    ({"scale": "600=-1"}, "scale", "from 0"),
    ({"scale": "600=1.5"}, "scale", "from 0"),
    ({"scale": "600=100000001"}, "scale", "from 0"),
    ({"scale": "nan=1"}, "scale", "seconds"),
    ({"scale": "inf=1"}, "scale", "seconds"),
    ({"scale": "1e16=1"}, "scale", "seconds"),
    ({"scale": "-5=1"}, "scale", "seconds"),
    ({"scale": "2.5=1"}, "scale", "after those of the request's admission"),
    ({"scale": "1=1; 600=2"}, "scale", "after those of the request's admission"),
]


@pytest.mark.parametrize(("cells", "column", "part"), BROKEN)
def test_a_broken_cell_is_named_with_line_column_value_and_what_is_right(
    tmp_path: Path, cells: dict[str, object], column: str, part: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, row(1), row(2, 2.5, **cells), row(3))
    assert caught.value.total == 1
    problem = caught.value.problems[0]
    assert (problem.line, problem.column) == (3, column)
    assert problem.value == (format_scale(parse_scale(cells[column])) if "after" in part else str(cells[column]))  # type: ignore[arg-type]
    assert part in problem.expected


@pytest.mark.parametrize("text", ["1.5", "x", "1_0", "99999999999999999999", "٣"])
@pytest.mark.parametrize("column", ["instances", "completions", "parallelism"])
def test_counts_are_whole_numbers(tmp_path: Path, column: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, row(1, kind="service" if column == "instances" else "batch", **{column: text}))
    assert [(one.line, one.column, one.value) for one in caught.value.problems] == [(2, column, text)]


def parquet(folder: Path, **columns: Any) -> Path:
    count = 3
    plain = {
        "id": np.arange(1, count + 1),
        "admission": [0.0, 2.5, 0.0],
        "duration": np.full(count, 60.0),
        "cpu": np.ones(count),
        "memory": np.ones(count),
        "class": ["gold"] * count,
    }
    pq.write_table(pa.table({**plain, **columns}), folder / "w.parquet")
    return folder / "w.parquet"


@pytest.mark.parametrize(("cells", "column", "part"), BROKEN)
def test_a_broken_parquet_cell_is_named(tmp_path: Path, cells: dict[str, object], column: str, part: str) -> None:
    columns = {name: pa.array([None, value, None]) for name, value in cells.items()}
    with pytest.raises(InputError) as caught:
        read_workload(parquet(tmp_path, **columns))
    assert caught.value.total == 1
    assert [(one.line, one.column) for one in caught.value.problems] == [(2, column)]
    assert part in caught.value.problems[0].expected


@pytest.mark.parametrize(
    "columns",
    [{"instances": [1.0, 2.0, 3.0]}, {"instances": ["1", "2", "3"]}, {"kind": [1, 1, 1]}, {"scale": [1.0] * 3}],
)
def test_a_parquet_column_of_another_type_is_refused(tmp_path: Path, columns: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        read_workload(parquet(tmp_path, **columns))
    assert [(one.line, one.column) for one in caught.value.problems] == [(0, *columns)]


def test_parquet_of_any_integer_width_with_nulls_means_the_same(tmp_path: Path) -> None:
    workload = read_workload(
        parquet(
            tmp_path,
            kind=pa.array([None, "batch", "service"]).dictionary_encode(),
            instances=pa.array([2, None, None], pa.int8()),
            completions=pa.array([None, 3, None], pa.uint32()),
            approach=[None, None, "aggregated"],
        )
    )
    assert workload.requests is not None
    assert workload.ids.tolist() == [1, 1, 3, 2, 2, 2]
    assert workload.requests.approach.tolist() == [INDEPENDENT, AGGREGATED, AGGREGATED]
    assert workload.requests.parallelism.tolist() == [0, 1, 0]
    assert read_workload(parquet(tmp_path, instances=pa.array([None] * 3, pa.int64()))).requests is None


def test_more_instances_than_anybody_means_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"120,000,000 instances in all.*at most 100,000,000"):
        read(tmp_path, row(1, instances=60_000_000), row(2, kind="batch", completions=60_000_000))
    jumps = "; ".join(f"{time}={100_000_000 * (time % 2)}" for time in range(1, 200))
    with pytest.raises(InputError, match=r"found '20,\d{3},000,\d{3} instances in all"):
        read(tmp_path, *(row(number, scale=jumps) for number in range(2)), row(2, instances=100_000_000))


def test_long_files_are_read_in_parts_that_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from slacktide.inputs.formats import csv_files, parquet_files

    monkeypatch.setattr(csv_files, "BATCH_ROWS", 3)
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 2)
    rows = [row(number, number % 4, scale=f"{9 + number % 3}=2; 20=0") for number in range(8)]
    rows += [row(8 + number, kind="batch", completions=1 + number) for number in range(4)]
    workload = read(tmp_path, *rows)
    text = (tmp_path / "w.csv").read_text()
    assert asked_of(workload) == csv_asked(text)
    assert rows_of(workload) == csv_rows(text)
    write_workload(workload, tmp_path / "w.parquet")
    assert same(read_workload(tmp_path / "w.parquet"), workload)


def tasks(*rows: tuple[int, int]) -> Workload:
    """Tasks of (job, class), each with figures of its own."""
    count = len(rows)
    figures = np.arange(1.0, count + 1)
    return Workload(
        ids=np.arange(100, 100 + count),
        admission=figures,
        duration=figures * 10,
        demand=np.stack([figures, figures], axis=1),
        service_class=np.array([kind for _, kind in rows], np.int16),
        job=np.array([job for job, _ in rows], np.int64),
        anti_affinity=np.zeros(count, np.bool_),
        term=np.zeros(count, np.int32),
    )


def test_tasks_of_a_job_and_class_become_one_request() -> None:
    workload = tasks((7, 0), (3, 1), (7, 0), (7, 2), (3, 1), (2**62, 0))
    grouped = group_by_job(workload, approach="concurrent")
    assert grouped.request is not None
    assert grouped.requests is not None
    assert grouped.request.tolist() == [0, 1, 0, 2, 1, 3]
    assert grouped.requests.ids.tolist() == [7, 3, 7, 2**62]
    assert set(grouped.requests.approach.tolist()) == {CONCURRENT}
    assert not grouped.requests.batch.any()
    assert all(getattr(grouped, name) is getattr(workload, name) for name in COLUMNS)
    batch = group_by_job(workload, approach="aggregated", batch=True).requests
    assert batch is not None
    assert batch.batch.all()
    assert not batch.parallelism.any()
    assert [getattr(batch, name).dtype for name in Requests.__slots__] == [
        getattr(grouped.requests, name).dtype for name in Requests.__slots__
    ]


@given(st.lists(st.tuples(st.sampled_from([-5, 0, 3, 2**63 - 1]), st.integers(0, 2)), max_size=12))
def test_grouping_agrees_with_a_dictionary(rows: list[tuple[int, int]]) -> None:
    grouped = group_by_job(tasks(*rows))
    order = list(dict.fromkeys(rows))
    assert grouped.request is not None
    assert grouped.requests is not None
    assert grouped.request.tolist() == [order.index(one) for one in rows]
    assert grouped.requests.ids.tolist() == [job for job, _ in order]


def test_grouping_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'concurrent'"):
        group_by_job(tasks((1, 0)), approach="concurent")
    for approach in ("independent", "concurrent"):
        with pytest.raises(ConfigError, match=r"aggregated for batch requests.*one by one"):
            group_by_job(tasks((1, 0)), approach=approach, batch=True)
    with pytest.raises(ConfigError, match="found requests of several instances"):
        group_by_job(example(tmp_path))


def test_statistics_tell_requests_from_instances(tmp_path: Path) -> None:
    found = describe_workload(example(tmp_path))
    json.dumps(found, allow_nan=False)
    assert (found["requests"], found["instances"], found["standing"]) == (4, 14, 1)
    assert [found["classes"][name]["requests"] for name in ("gold", "silver", "bronze")] == [1, 1, 2]
    assert [found["classes"][name]["instances"] for name in ("gold", "silver", "bronze")] == [6, 1, 7]
    kinds = [(one["kind"], one["approach"], one["requests"], one["instances"]) for one in found["kinds"]]
    assert kinds == [
        ("service", "independent", 1, 1),
        ("service", "concurrent", 1, 6),
        ("batch", "aggregated", 2, 7),
    ]
    assert [one["scale_events"] for one in found["kinds"]] == [0, 3, 0]
    assert found["kinds"][2]["size"]["max"] == 4
    assert "kinds" not in describe_workload(tasks((1, 0)))


def test_requests_that_can_never_run_are_counted_once(tmp_path: Path) -> None:
    hosts = Hosts(np.array([1]), ("a",), np.array([[0.75, 9.0]]), ({},))
    found = unsatisfiable(example(tmp_path), hosts)
    assert found.terms == ((Term((Constraint("a", "==", "1"),)), 1),)
    assert found.too_large.tolist() == [2]
    large = unsatisfiable(read(tmp_path, row(4, instances=3), row(5)), hosts)
    assert large.too_large.tolist() == [4, 5]


def test_inspect_shows_kinds_and_approaches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example(tmp_path)
    assert main(["inspect", str(tmp_path / "example.csv")]) == 0
    out = capsys.readouterr().out
    assert "4 requests of 4 jobs" in out
    assert "14 instances; of one request" in out
    assert [line.split() for line in out.splitlines() if line.startswith(("service", "batch"))] == [
        ["service", "independent", "1", "1", "1", "1", "1", "0"],
        ["service", "concurrent", "1", "6", "6", "6", "6", "3"],
        ["batch", "aggregated", "2", "7", "3.5", "3.9", "4", "0"],
    ]


def test_the_columns_are_those_of_the_page() -> None:
    page = (REPOSITORY / "docs" / "formats.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"| `{name}` |" in page
    assert f"{request_columns.MOST:,}" in page
