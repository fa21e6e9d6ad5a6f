"""The Standard Workload Format, from files made to its definition."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from slacktide.errors import InputError
from slacktide.inputs.prepare import peak, spans
from support.converting import convert, hosts, left_out, rows, workload

HEADER = "; Version: 2.2\n; MaxNodes: 4\n; MaxProcs: 16\n;\n; Note: made up\n"
#        job submit wait run alloc cpu used  procs time  memory  st user grp app queue part prec think
LINES = """
    1      0    10  100   2    -1   -1     2   200  1048576   1   5   1   1   0   1   -1   -1
    2     30     0   60   1    -1 524288  -1   100   -1       1   6   1   2   1   1   -1   -1
    3     40     0   -1   1    -1   -1     1   100   -1       5   6   1   2   1   1   -1   -1
    4     50     5  500   4    -1   -1     3   100   -1       0   7   2   2   7   1   -1   -1
    5     60     5  500  -1    -1   -1    -1   100   -1       0   7   2   2   7   1   -1   -1
""".strip("\n")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.swf").write_text(HEADER + LINES + "\n")
    return tmp_path / "log.swf"


def processors(count: int) -> dict[str, int]:
    return {"completions": count, "parallelism": count}


def test_the_processors_of_a_job_work_at_once(log: Path, tmp_path: Path) -> None:
    convert("swf", [log], tmp_path / "out")
    read = workload(tmp_path / "out")
    found = spans(read)
    assert (found.start == read.admission).all()
    # From 50 s on: 2 of the first job, 1 of the second, 3 of the fourth.
    assert (peak(read).of("cpu"), peak(read).time[0]) == (6, 50)
    log.write_text(LINES + "\n")  # without a header: as many hosts of one processor as that
    convert("swf", [log], tmp_path / "bare")
    assert len(hosts(tmp_path / "bare")) == 6


def test_jobs_become_batch_requests_of_an_instance_per_processor(log: Path, tmp_path: Path) -> None:
    found = convert("swf", [log], tmp_path / "out")
    shared = {"cpu": 1, "kind": "batch"}
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "duration": 100, "memory": 1, "class": "gold", "user": 5} | shared | processors(2),
        {"id": 1, "admission": 30, "duration": 60, "memory": 0.5, "class": "silver", "user": 6}
        | shared
        | processors(1),
        {"id": 2, "admission": 50, "duration": 500, "memory": 0, "class": "bronze", "user": 7} | shared | processors(3),
    ]
    assert left_out(found) == {
        "jobs that did not run, or for an unknown time": 1,
        "jobs with an unknown number of processors": 1,
    }
    read = workload(tmp_path / "out")
    assert read.requests is not None
    assert read.requests.batch.all()
    assert len(read) == 6
    # Four nodes of 16 / 4 processors; the largest instance asks for 1 GiB.
    assert hosts(tmp_path / "out").capacity.tolist() == [[4, 4]] * 4


def test_a_job_may_be_one_instance_and_be_told_by_its_group(log: Path, tmp_path: Path) -> None:
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    convert("swf", [packed], tmp_path / "out", "1=silver,2=bronze", shape="one", by="group_id")
    assert [(row["cpu"], row["memory"], row["class"]) for row in rows(tmp_path / "out")] == [
        (2, 2, "silver"),
        (1, 0.5, "silver"),
        (3, 0, "bronze"),
    ]


def test_broken_lines_are_named(log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text().replace("    3     40     0   -1", "    3     soon   0   -1") + "6 70 1\n")
    with pytest.raises(InputError) as error:
        convert("swf", [log], tmp_path / "out")
    assert str(error.value).split("\n") == [
        f"{log}:8: submit_time: found 'soon', expected a number, -1 or more and at most 1e+15",
        f"{log}:11: found '6 70 1', expected 18 numbers, found 3",
    ]
    log.write_text(HEADER)
    with pytest.raises(InputError, match="expected at least one"):
        convert("swf", [log], tmp_path / "out")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "-1     2   200",
            "-1 99999999999 200",
            "requested_processors: found '99999999999', expected a whole number, -1",
        ),
        ("10  100", "10  1e16", "run_time: found '1e16', expected a number, -1 or more and at most 1e+15"),
    ],
)
def test_more_than_a_workload_holds_is_named_in_the_log(
    log: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    log.write_text(log.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as error:
        convert("swf", [log], tmp_path / "out")
    assert str(error.value).startswith(f"{log}:6: {said}")
