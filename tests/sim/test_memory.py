"""A workload whose columns rest in files has the same run, and memory does not grow with what has been read."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from slacktide import metrics
from slacktide.config import preset
from slacktide.errors import InputError
from slacktide.inputs import group_by_job, read_workload
from slacktide.inputs.formats import parquet_files
from slacktide.inputs.formats import tables as tables_in
from slacktide.inputs.generators.light import MACHINE
from slacktide.inputs.rows import equal_hosts
from slacktide.metrics import over_all, per_class, summary
from slacktide.model import Window, Workload, resting
from slacktide.results import tables as tables_out
from slacktide.sim import RunResult, engine, run
from slacktide.state import layout

HOSTS = 6


def write(path: Path, count: int, *, spoilt: int | None = None, ordered: bool = True) -> Path:
    """A file of several row groups, whose edges are not those of the parts in which it is worked on."""
    rng = np.random.default_rng(5)
    admission = np.cumsum(rng.exponential(150.0 / HOSTS, count))
    table = pa.table(
        {
            "id": np.arange(count) + 1,
            "admission": admission if ordered else rng.permutation(admission),
            "duration": rng.exponential(400.0, count),
            "cpu": np.where(np.arange(count) == spoilt, -1.0, rng.integers(1, 5, count)),
            "memory": rng.integers(1, 5, count).astype(np.float64),
            "class": pa.array(rng.choice(["gold", "silver", "bronze"], count)),
            "job": rng.integers(0, count // 3, count),
            "anti_affinity": rng.random(count) < 0.2,
        }
    )
    pq.write_table(table, path, row_group_size=70)
    return path


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small workload rests, and has many parts."""
    monkeypatch.setattr(tables_in, "LEAST", 50)
    for module in (resting, layout, engine, summary, import_module("slacktide.metrics.unserved")):
        monkeypatch.setattr(module, "PART", 64)
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 48)
    monkeypatch.setattr(tables_out, "BATCH", 100)


def outcome(workload: Workload, folder: Path) -> tuple[RunResult, object, object]:
    """A run that ends before some had a host, its table, and what is told of it."""
    config = preset("recommended")
    config = replace(config, simulation=replace(config.simulation, end=float(workload.admission[-1])))
    hosts = equal_hosts(HOSTS // 2, MACHINE)
    result = run(workload, hosts, config)
    folder.mkdir()
    tables_out.request_rows(workload, result.requests, config.qos.startup).write(folder / "requests.parquet")
    if result.instances is not None:
        tables_out.instance_rows(workload, result.instances, config.qos.startup).write(folder / "instances.parquet")
    codes = workload.service_class[result.requests["row" if result.instances is None else "first"]]
    classes = per_class(result.requests, codes, workload.classes, config.qos.startup)
    tables = [pq.read_table(one).to_pylist() for one in sorted(folder.iterdir())]
    never = metrics.unserved(result.requests if result.instances is None else result.instances, workload, hosts)
    assert never
    return result, (repr(classes), repr(over_all(result.requests)), never), tables


def over_windows(workload: Workload) -> Workload:
    """The same, with promises over windows of a minute."""
    classes = tuple(replace(one, window=Window(rolling=60.0)) for one in workload.classes)
    return replace(workload, classes=classes)


@pytest.mark.parametrize("windowed", [False, True], ids=["lifetime", "windows"])
@pytest.mark.parametrize("together", [False, True], ids=["rows", "jobs"])
@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "not ordered"])
def test_a_workload_that_rests_has_the_same_run(
    together: bool, ordered: bool, windowed: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = write(tmp_path / "w.parquet", 500, ordered=ordered)

    def grouped(workload: Workload) -> Workload:
        promised = over_windows(workload) if windowed else workload
        return group_by_job(promised, approach="aggregated", batch=True) if together else promised

    result, told, tables = outcome(grouped(read_workload(path)), tmp_path / "whole")
    request.getfixturevalue("small_parts")
    workload = read_workload(path, rests=True)
    assert resting.room_beside(workload.admission) is resting.resting
    in_parts, told_in_parts, tables_in_parts = outcome(grouped(workload), tmp_path / "parts")
    assert in_parts.operations == result.operations
    assert in_parts.preemptions == result.preemptions
    for name, values in result.requests.items():
        assert values.tobytes() == in_parts.requests[name].tobytes(), name
    assert told_in_parts == told
    assert tables_in_parts == tables


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("row", [0, 47, 48, 69, 70, 499])
def test_a_broken_value_in_a_later_batch_is_named_by_its_row(row: int, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_workload(write(tmp_path / "w.parquet", 500, spoilt=row), rests=True)
    assert [(one.line, one.column, one.value) for one in caught.value.problems] == [(row + 1, "cpu", "-1.0")]


def test_codes_of_combinations_are_those_of_whole_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    columns: list[NDArray[Any]] = [
        rng.integers(-5, 5, 1000),
        rng.integers(0, 700, 1000),
        rng.integers(0, 2, 1000).astype(np.int16),
    ]
    _, first, code = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    monkeypatch.setattr(layout, "PART", 64)
    found = layout.distinct(*columns)
    assert np.array_equal(found[0], first)
    assert np.array_equal(found[1], code.reshape(-1))
    assert [one.tolist() for one in layout.distinct(columns[0][:0])] == [[], []]


def peak_of(path: Path) -> int:
    """Bytes that reading, a short run and its table have at most at once, without those of files."""
    tracemalloc.start()
    try:
        workload = read_workload(path, rests=True)
        config = preset("recommended")
        result = run(workload, equal_hosts(HOSTS * 100, MACHINE), config)
        tables_out.request_rows(workload, result.requests, config.qos.startup).write(path.with_suffix(".out"))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_what_has_been_read(tmp_path: Path) -> None:
    rows = 270_000, 540_000
    peaks = []
    for count in rows:
        table = pq.read_table(write(tmp_path / "some.parquet", 100)).slice(0, 1)
        many = {name: pa.repeat(table[name][0].as_py(), count) for name in ("duration", "cpu", "memory", "class")}
        at = np.arange(count)
        pq.write_table(pa.table({"id": at, "admission": at + 0.25, **many}), tmp_path / f"{count}.parquet")
        peaks.append(peak_of(tmp_path / f"{count}.parquet"))
    each = (peaks[1] - peaks[0]) / (rows[1] - rows[0])
    assert each < 24, f"{each:.0f} bytes a request; the arrays of one have 200"
