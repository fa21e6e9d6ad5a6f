"""The column ``resize``: read, refused, written, cut and scaled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.errors import InputError, OutputError
from slacktide.inputs import read_workload, write_workload
from slacktide.inputs.columns.occasions import format_resizing
from slacktide.inputs.columns.occasions import parse_resizing as parse
from slacktide.inputs.prepare import scale
from slacktide.inputs.rows import join, select
from slacktide.model import Resizing, Workload
from support.preparing import window

HEAD = "id,admission,duration,cpu,memory,class,instances,resize\n"
RESIZES = "600: cpu=2 memory=4; 1200.5: cpu=1"


def read(folder: Path, *rows: str, head: str = HEAD) -> Workload:
    path = folder / "workload.csv"
    path.write_text(head + "".join(row + "\n" for row in rows))
    return read_workload(path)


def an_example(folder: Path) -> Workload:
    return read(folder, f"1,0,,1,1,gold,2,{RESIZES}", "2,5,,1,1,gold,,", "3,7,,1,1,gold,1,9: memory=0")


def test_a_cell_says_when_a_request_demands_how_much(tmp_path: Path) -> None:
    workload = an_example(tmp_path)
    steps: Resizing = ((600.0, (("cpu", 2.0), ("memory", 4.0))), (1200.5, (("cpu", 1.0),)))
    assert workload.resize is not None
    found = [workload.resizings[code] for code in workload.resize.tolist()]
    assert found == [steps, steps, (), ((9.0, (("memory", 0.0),)),)]


def test_a_column_without_a_word_is_none(tmp_path: Path) -> None:
    assert read(tmp_path, "1,0,,1,1,gold,,", "2,0,,1,1,gold,, ").resize is None


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("600", "seconds: resource=amount"),
        ("600:", "seconds: resource=amount"),
        ("600: cpu", "seconds: resource=amount"),
        ("600: cpu=-1", "amounts 0 or more"),
        ("600: cpu=inf", "amounts 0 or more"),
        ("600: cpu=1 cpu=2", "every resource once"),
        ("-5: cpu=1", "seconds increasing from 0"),
        ("600: cpu=1; 600: cpu=2", "seconds increasing from 0"),
        ("600: cpu=1; 500: cpu=2", "seconds increasing from 0"),
        ("3: cpu=1", "seconds after those of the request's admission"),
        ("600: gpu=1", "resources of this file (cpu, memory), not 'gpu'"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_says_nothing_is_refused_by_file_line_column_and_value(
    cell: str, expected: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"workload.{suffix}"
    if suffix == "csv":
        path.write_text(f"{HEAD}1,0,,1,1,gold,,\n2,4,,1,1,gold,,{cell}\n")
    else:
        columns = {"id": [1, 2], "admission": [0.0, 4.0], "duration": [None, 5.0], "cpu": [1.0, 1.0]}
        others = {"memory": [1.0, 1.0], "class": ["gold", "gold"], "resize": [None, cell]}
        pq.write_table(pa.table({**columns, **others}), path)
    with pytest.raises(InputError) as caught:
        read_workload(path)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == (str(path), 3 if suffix == "csv" else 2, "resize")
    assert problem.value == cell
    assert expected in problem.expected


@given(
    st.lists(
        st.tuples(
            st.integers(1, 10**9),
            st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.floats(0, 1e15), min_size=1),
        ),
        unique_by=lambda step: step[0],
    )
)
def test_what_is_written_is_read_back(steps: list[tuple[int, dict[str, float]]]) -> None:
    resizing: Resizing = tuple((at / 16.0, tuple(amounts.items())) for at, amounts in sorted(steps, key=lambda s: s[0]))
    assert parse(format_resizing(resizing)) == resizing


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_workload_written_is_read_back(suffix: str, tmp_path: Path) -> None:
    workload = an_example(tmp_path)
    write_workload(workload, tmp_path / f"again.{suffix}")
    again = read_workload(tmp_path / f"again.{suffix}")
    assert again.resizings == workload.resizings
    assert again.resize is not None
    assert workload.resize is not None
    assert again.resize.tolist() == workload.resize.tolist()


def test_instances_that_are_resized_apart_have_no_row(tmp_path: Path) -> None:
    workload = replace(an_example(tmp_path), resize=np.array([1, 0, 0, 2], np.int32))
    with pytest.raises(OutputError, match="request 1: its instances differ in resize"):
        write_workload(workload, tmp_path / "again.csv")


def test_rows_taken_out_and_joined_keep_their_resizes(tmp_path: Path) -> None:
    workload = an_example(tmp_path)
    again = join([select(workload, slice(0, 2)), select(workload, slice(2, 4))])
    assert again.resize is not None
    assert workload.resize is not None
    assert again.resize.tolist() == workload.resize.tolist()


def test_a_window_begins_with_the_demand_of_its_beginning(tmp_path: Path) -> None:
    cut = window(an_example(tmp_path), 700.0, 1500.0)
    assert cut.demand.tolist() == [[2.0, 4.0], [2.0, 4.0], [1.0, 1.0], [1.0, 0.0]]
    assert cut.resize is not None
    assert [cut.resizings[code] for code in cut.resize.tolist()] == [*[((500.5, (("cpu", 1.0),)),)] * 2, (), ()]


def test_scaling_scales_what_will_be_demanded_and_when(tmp_path: Path) -> None:
    scaled = scale(an_example(tmp_path), time=2.0, demand=0.5)
    assert scaled.resizings[1] == ((1200.0, (("cpu", 1.0), ("memory", 2.0))), (2401.0, (("cpu", 0.5),)))
