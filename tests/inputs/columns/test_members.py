"""Rows that are the instances of one request (the column ``request``): read, written back, refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import InputError, OutputError
from slacktide.inputs import read_workload
from slacktide.inputs.grouping import group_by_job
from slacktide.inputs.write import write_workload
from slacktide.model import AGGREGATED, CONCURRENT, Workload
from slacktide.sim import run
from support.small import machines, small

HEAD = "id,admission,duration,cpu,memory,class,kind,instances,completions,parallelism,approach,scale,request,unready\n"
SERVICE = (
    "1,0,,1,1,silver,,,,,concurrent,90=1,7,30=5",
    "2,0,,2,1,silver,,,,,concurrent,90=1,7,",
    "3,60,,1,1,silver,,,,,concurrent,90=1,7,",
)
JOB = (
    "4,5,40,1,1,bronze,batch,,,2,,80=0,4,",  # its own id is the number of the request: the others are of it
    "5,5,60,1,1,bronze,batch,,1,2,,80=0,4,",
    "6,5,,1,1,bronze,batch,,,2,,80=0,4,",
)


def read(folder: Path, *rows: str) -> Workload:
    (folder / "w.csv").write_text(HEAD + "".join(f"{row}\n" for row in rows))
    return read_workload(folder / "w.csv")


def test_rows_that_name_a_request_are_its_instances(tmp_path: Path) -> None:
    workload = read(tmp_path, *SERVICE, *JOB, "8,6,,1,1,gold,,2,,,,,,")
    requests = workload.requests
    assert requests is not None
    assert workload.request is not None
    assert workload.ids.tolist() == [1, 2, 4, 5, 6, 8, 8, 3]
    assert requests.ids[workload.request].tolist() == [7, 7, 4, 4, 4, 8, 8, 7]
    assert requests.ids.tolist() == [7, 4, 8]
    assert requests.approach.tolist() == [CONCURRENT, AGGREGATED, 0]
    assert requests.parallelism.tolist() == [0, 2, 0]
    assert workload.duration[:6].tolist() == [np.inf, np.inf, 40.0, 60.0, np.inf, np.inf]
    assert workload.demand[:3, 0].tolist() == [1.0, 2.0, 1.0]
    told = (requests.scale_time, requests.scale_request, requests.scale_replicas)
    assert [one.tolist() for one in told] == [[80.0, 90.0], [1, 0], [0, 1]]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_they_are_written_as_they_were_read(suffix: str, tmp_path: Path) -> None:
    workload = read(tmp_path, *SERVICE, *JOB)
    write_workload(workload, tmp_path / f"again.{suffix}")
    again = read_workload(tmp_path / f"again.{suffix}")
    for name in ("ids", "admission", "duration", "demand", "service_class", "request", "unready"):
        assert np.array_equal(getattr(again, name), getattr(workload, name)), name
    assert again.spells == workload.spells
    for name in ("ids", "batch", "approach", "parallelism", "scale_time", "scale_request", "scale_replicas"):
        assert np.array_equal(getattr(again.requests, name), getattr(workload.requests, name)), name


def test_tasks_of_jobs_that_differ_are_written_and_read(tmp_path: Path) -> None:
    text = "id,admission,duration,cpu,memory,class,job\n1,0,5,1,1,gold,9\n2,0,,1,1,gold,9\n3,4,,1,1,gold,8\n"
    (tmp_path / "w.csv").write_text(text)
    workload = group_by_job(read_workload(tmp_path / "w.csv"), approach="aggregated")
    write_workload(workload, tmp_path / "again.csv")
    again = read_workload(tmp_path / "again.csv")
    assert again.requests is not None
    assert again.requests.ids.tolist() == [9, 8]
    assert np.array_equal(again.duration, workload.duration)
    with pytest.raises(OutputError, match="differ in"):  # two rows with one id cannot be told apart
        write_workload(replace(workload, ids=np.zeros(3, np.int64)), tmp_path / "again.csv")


@pytest.mark.parametrize(
    ("rows", "line", "column", "part"),
    [
        ((*SERVICE[:1], SERVICE[1].replace("silver", "gold")), 3, "class", "what the first row of its request has"),
        ((*SERVICE[:1], SERVICE[1].replace("concurrent", "")), 3, "approach", "what the first row"),
        ((*SERVICE[:1], SERVICE[1].replace("90=1", "")), 3, "scale", "what the first row"),
        ((*JOB[:1], JOB[1].replace(",2,,", ",3,,")), 3, "parallelism", "what the first row"),
        ((*SERVICE[:1], SERVICE[1].replace("silver,,,", "silver,,2,")), 3, "instances", "nothing or 1"),
        ((*JOB[:1], JOB[1].replace(",,1,2", ",,4,2")), 3, "completions", "nothing or 1"),
        ((JOB[0].replace("80=0", "80=2"),), 2, "scale", "counts that never grow"),
        ((SERVICE[0].replace(",7,", ",-7,"),), 2, "request", "a whole number from 0"),
    ],
)
def test_what_does_not_go_with_its_request_is_refused(
    rows: tuple[str, ...], line: int, column: str, part: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, *rows)
    assert [(one.line, one.column) for one in caught.value.problems] == [(line, column)]
    assert part in caught.value.problems[0].expected


def test_more_that_were_there_before_than_may_be_at_once_are_refused(tmp_path: Path) -> None:
    head = "id,admission,duration,cpu,memory,class,kind,parallelism,request,lost\n"
    rows = "1,-9,60,1,1,gold,batch,1,1,\n2,-9,60,1,1,gold,batch,1,1,\n3,0,60,1,1,gold,batch,1,1,\n"
    (tmp_path / "w.csv").write_text(head + rows)
    with pytest.raises(InputError, match="parallelism: found '1', expected as many as were there before"):
        read_workload(tmp_path / "w.csv")
    (tmp_path / "w.csv").write_text((head + rows).replace("batch,1", "batch,2"))
    assert read_workload(tmp_path / "w.csv").admission.tolist() == [-9.0, -9.0, 0.0]


def test_each_does_its_own_work_and_those_left_go_when_the_job_goes(tmp_path: Path) -> None:
    """Two at once: the third is released when the first has done its 40 s, and goes with the job at 80 s."""
    workload = read(tmp_path, *JOB)
    one = small([], machines(8.0), end=200.0)
    result = run(workload, one.hosts, one.config)
    assert result.instances is not None
    rows = result.instances
    delay = rows["startup_first"][0]
    assert rows["completed"][:2].tolist() == [45.0 + delay, 65.0 + delay]
    assert rows["admission"][2] == 45.0 + delay
    assert rows["removed"][2] == 80.0
