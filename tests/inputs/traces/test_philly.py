"""Microsoft's Philly: the log as its documentation shows it, and what it says is odd in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slacktide.errors import InputError
from slacktide.settings import load
from support.converting import convert, hosts, left_out, rows


def attempt(start: str | None, end: str | None, *sizes: int) -> dict[str, Any]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{j}" for j in range(size)]} for i, size in enumerate(sizes)]
    return {"start_time": start, "end_time": end, "detail": detail}


JOB = {
    "status": "Pass",
    "vc": "ee9e8c",
    "jobid": "application_1506638472019_14199",
    "attempts": [
        attempt("2017-10-07 01:12:09", "2017-10-07 01:13:23", 8),
        attempt("2017-10-07 01:13:30", "2017-10-09 06:53:12", 8, 8),
    ],
    "submitted_time": "2017-10-07 01:11:39",
    "user": "ce2f4c",
}
RUNNING = {**JOB, "jobid": "b", "attempts": [attempt("2017-10-07 01:20:00", None, 4)],
           "submitted_time": "2017-10-07 01:11:49"}  # fmt: skip
MACHINES = "machineId, number of GPUs, single GPU mem\nm31,8, 24GB\nm32,2, 12GB\n"


def trace(folder: Path, *jobs: Any, machines: str | None = MACHINES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cluster_job_log").write_text(json.dumps(jobs, indent=4))
    if machines is not None:
        (folder / "cluster_machine_list").write_text(machines)
    (folder / "cluster_gpu_util").write_text("time,machineId\n")  # which is none of ours
    return folder


def test_a_job_is_a_batch_request_of_its_servers_for_its_last_attempt(tmp_path: Path) -> None:
    found = convert("philly", [trace(tmp_path / "trace", JOB, RUNNING)], tmp_path / "out")
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "duration": 193182, "cpu": 0, "memory": 0, "resource:gpu": 8, "class": "silver",
         "user": "ce2f4c", "kind": "batch", "completions": 2, "parallelism": 2},
        {"id": 1, "admission": 10, "cpu": 0, "memory": 0, "resource:gpu": 4, "class": "silver", "user": "ce2f4c",
         "kind": "batch", "completions": 1, "parallelism": 1},
    ]  # fmt: skip
    assert "1 job attempted more than once: the duration is that of the last attempt" in found.notes
    assert "1 job without an end: they still ran" in found.notes
    machines = hosts(tmp_path / "out")
    assert machines.capacity.tolist() == [[0, 0, 8], [0, 0, 2]]
    assert machines.attributes == ({"gpu_memory": "24GB"}, {"gpu_memory": "12GB"})


def test_a_job_may_be_instances_of_one_gpu_with_a_share_of_the_server(tmp_path: Path) -> None:
    folder = trace(tmp_path / "trace", JOB, machines=None)
    convert("philly", [folder], tmp_path / "out", shape="gpus", cores_per_gpu=6, memory_per_gpu=50)
    (row,) = rows(tmp_path / "out")
    assert [row[name] for name in ("completions", "resource:gpu", "cpu", "memory")] == [16, 1, 6, 50]
    assert hosts(tmp_path / "out").capacity.tolist() == [[48, 400, 8]] * 2


def test_times_are_those_of_its_clock_also_where_summer_ends(tmp_path: Path) -> None:
    over = {**JOB, "attempts": [attempt("2017-11-05 00:30:00", "2017-11-05 03:30:00", 1)],
            "submitted_time": "2017-11-05 00:00:00"}  # fmt: skip
    convert("philly", [trace(tmp_path / "trace", over)], tmp_path / "out")
    assert rows(tmp_path / "out")[0]["duration"] == 4 * 3600
    assert load(tmp_path / "out" / "settings.toml").simulation.epoch == "2017-11-05T07:00:00Z"
    convert("philly", [tmp_path / "trace"], tmp_path / "utc", zone="UTC")
    assert rows(tmp_path / "utc")[0]["duration"] == 3 * 3600


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"attempts": []}, "jobs that were never scheduled"),
        ({"submitted_time": "None"}, "jobs of an unknown submission"),
        ({"submitted_time": None}, "jobs of an unknown submission"),
        ({"attempts": [attempt(None, "2017-10-07 01:12:09", 1)]}, "jobs whose last attempt has no start"),
        ({"attempts": [attempt("2017-10-07 01:12:09", "2017-10-07 01:12:09", 1)]},
         "jobs that ran for less than a second, by which the log counts"),
        ({"attempts": [attempt("2017-10-07 01:12:09", "2017-10-07 01:13:09")]}, "jobs whose last attempt names no GPU"),
        ({"jobid": JOB["jobid"]}, "rows that are there a second time"),
    ],
)  # fmt: skip
def test_what_says_too_little_is_left_out_and_counted(said: dict[str, Any], why: str, tmp_path: Path) -> None:
    folder = trace(tmp_path / "trace", JOB, {**JOB, "jobid": "other", **said})
    found = convert("philly", [folder], tmp_path / "out")
    assert (found.requests, left_out(found)) == (1, {why: 1})


def test_what_is_odd_is_counted_in_notes(tmp_path: Path) -> None:
    uneven = {**JOB, "jobid": "u", "attempts": [attempt("2017-10-07 01:12:09", "2017-10-07 02:12:09", 8, 3)]}
    lost = {**JOB, "jobid": "l", "status": "Lost"}
    found = convert("philly", [trace(tmp_path / "trace", JOB, uneven, lost)], tmp_path / "out")
    told = "1 job with more GPUs on one server than on another: each instance has as many as the largest"
    assert told in found.notes
    assert "1 job of a status that the documentation does not name" in found.notes
    row = next(row for row in rows(tmp_path / "out") if row["duration"] == 3600)
    assert (row["completions"], row["resource:gpu"]) == (2, 8)


BROKEN = {
    "an object": ('{"jobid": "a"}', r"cluster_job_log:1: found '\{\"jobid\": \"a\"\}', expected a list of jobs"),
    "cut": ('[{"jobid": "a", "attempts": []},\n', r"cluster_job_log:2: .*the file seems to be cut"),
    "cut inside": ('[\n{"jobid": "a", "attempts": []},\n{"jobid": "b", "att', r"cluster_job_log:3: found .*a JSON obj"),
    "no attempts": ('[\n{"jobid": "a"}]', r"cluster_job_log:2: attempts: found 'None', expected a job with its list"),
    "no name": ('[{"attempts": []}]', r"cluster_job_log:1: jobid: found 'None', expected a text"),
    "no servers": ('[{"jobid": "a", "attempts": [{"detail": [{"ip": 1}]}]}]', r"1: detail: found .* lists of gpus"),
    "no time": (
        '[\n{"jobid": "a", "submitted_time": "noon", "attempts": []}]',
        r"cluster_job_log:2: submitted_time: found 'noon', expected a time such as",
    ),
    "none": ("[]", "expected at least one job"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_logs_are_named_with_the_line(name: str, tmp_path: Path) -> None:
    text, message = BROKEN[name]
    path = tmp_path / "cluster_job_log"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        convert("philly", [path], tmp_path / "out")


@pytest.mark.parametrize("machines", ["machineId,gpus\nm1,8\n", MACHINES.replace("31,8", "31,eight")])
def test_broken_lists_of_machines_are_named(machines: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cluster_machine_list.*expected"):
        convert("philly", [trace(tmp_path / "trace", JOB, machines=machines)], tmp_path / "out")
