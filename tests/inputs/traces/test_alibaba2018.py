"""Alibaba's cluster of 2018: tables without headers, as their schema has them, and what is odd in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import ConfigError, InputError
from support.converting import convert, hosts, left_out, rows, write_csv

TASKS = [
    ["M1", 3, "j_7", "1", "Terminated", 100, 160, 50, 0.39],
    ["R2_1", 1, "j_7", "1", "Terminated", 160, 200, 100.0, 0.6],
    ["task_Nzg3ODA=", 1, "j_9", "2", "Running", 150, 0, 200, 1],
]
CONTAINERS = [
    ["c_1", "m_1", 0, "app_3", "started", 400, 800, 1.56],
    ["c_1", "m_2", 500, "app_3", "started", 800, 800, 1.56],
    ["c_2", "m_1", 20, "app_3", "started", 400, 400, 3.1],
    ["c_2", "m_1", 90, "app_3", "stopped", 400, 400, 3.1],
]
MACHINES = [
    ["m_1", 0, 12, "a", 96, 100, "USING"],
    ["m_2", 0, 13, "b", 96, 100, "USING"],
    ["m_1", 77, 12, "a", 96, 100, "IMPORT"],
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_csv(tmp_path / "trace" / "batch_task.csv", TASKS)
    write_csv(tmp_path / "trace" / "container_meta.csv.gz", CONTAINERS)
    write_csv(tmp_path / "trace" / "machine_meta.csv", MACHINES)
    return tmp_path / "trace"


def test_tasks_are_batch_requests_and_containers_services(trace: Path, tmp_path: Path) -> None:
    found = convert("alibaba2018", [trace], tmp_path / "out")
    group = 2**40 + 3
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "cpu": 8, "memory": 1.56, "job": group, "kind": "service", "class": "gold"},
        {"id": 1, "admission": 20, "duration": 70, "cpu": 4, "memory": 3.1, "job": group, "kind": "service",
         "class": "gold"},
        {"id": 2, "admission": 100, "duration": 60, "cpu": 0.5, "memory": 0.39, "job": 7, "kind": "batch",
         "completions": 3, "parallelism": 3, "class": "bronze"},
        {"id": 3, "admission": 150, "cpu": 2, "memory": 1, "job": 9, "kind": "batch", "completions": 1,
         "parallelism": 1, "class": "bronze"},
        {"id": 4, "admission": 160, "duration": 40, "cpu": 1, "memory": 0.6, "job": 7, "kind": "batch",
         "completions": 1, "parallelism": 1, "class": "bronze"},
    ]  # fmt: skip
    assert left_out(found) == {}
    assert "1 task without an end: they never complete" in found.notes
    assert "2 containers, 1 of them without a stop at the end: there for good" in found.notes
    assert "1 container whose demand changes: the largest is taken" in found.notes
    machines = hosts(tmp_path / "out")
    assert (machines.names, machines.capacity.tolist()) == (("m_1", "m_2"), [[96, 100], [96, 100]])
    assert machines.attributes == ({"domain": "12"}, {"domain": "13"})


def test_each_table_may_be_alone_and_without_machines_hosts_are_equal(tmp_path: Path) -> None:
    tasks = write_csv(tmp_path / "batch_task.csv", TASKS)
    found = convert("alibaba2018", [tasks], tmp_path / "tasks", hosts=2, host_cores=48)
    assert (found.requests, hosts(tmp_path / "tasks").capacity.tolist()) == (3, [[48, 100]] * 2)
    assert "no machine_meta: all hosts are of one size" in found.notes
    containers = write_csv(tmp_path / "container_meta.csv", CONTAINERS)
    assert convert("alibaba2018", [containers], tmp_path / "containers").requests == 2
    machines = write_csv(tmp_path / "machine_meta.csv", MACHINES)
    with pytest.raises(InputError, match=r"batch_task.csv or container_meta.csv"):
        convert("alibaba2018", [machines], tmp_path / "machines")


ODD = [
    (["M1", 1, "j_1", "1", "Waiting", 10, 0, 100, 1], "tasks that never ran"),
    (["M1", 1, "j_1", "1", "Ready", "", "", 100, 1], "tasks that never ran"),
    (["M1", "", "j_1", "1", "Terminated", 10, 20, 100, 1], "tasks of no instance"),
    (["M1", 0, "j_1", "1", "Terminated", 10, 20, 100, 1], "tasks of no instance"),
    (["M1", 1, "j_1", "1", "Failed", 10, 0, 100, 1], "tasks that are over, of which nobody knows when they ended"),
    (["M1", 1, "j_1", "1", "Terminated", 10, 5, 100, 1],
     "tasks that ended before they began, so that nobody knows how long they ran"),
    (["M1", 1, "j_1", "1", "Terminated", 10, 10, 100, 1],
     "tasks that ran for less than a second, by which the table counts"),
    (["M1", 1, "j_1", "1", "Terminated", 10, 20, "", 1], "tasks of an unknown demand (empty, -1 or 101)"),
    (["M1", 1, "j_1", "1", "Terminated", 10, 20, 100, -1], "tasks of an unknown demand (empty, -1 or 101)"),
    (["M1", 1, "j_1", "1", "Terminated", 10, 20, 100, 101], "tasks of an unknown demand (empty, -1 or 101)"),
    (["R2_1", 1, "j_7", "1", "Terminated", 160, 200, 100.0, 0.6], "rows that are there a second time (batch_task)"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "why"), ODD)
def test_what_says_too_little_is_left_out_and_counted(row: list[object], why: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "batch_task.csv", [*TASKS, row])
    found = convert("alibaba2018", [path], tmp_path / "out")
    assert (found.requests, left_out(found)) == (3, {why: 1})


def test_containers_of_an_unknown_demand_are_left_out(tmp_path: Path) -> None:
    more = [["c_3", "m_1", 5, "", "started", "", "", 2], ["c_4", "m_1", 5, "app_9", "started", 400, 400, 101],
            ["c_5", "m_1", 9, "app_9", "stopped", 400, 400, 1]]  # fmt: skip
    path = write_csv(tmp_path / "container_meta.csv", [*CONTAINERS, *more])
    found = convert("alibaba2018", [path], tmp_path / "out")
    assert left_out(found) == {
        "containers of an unknown demand (empty, -1 or 101)": 2,
        "containers that stopped when they began": 1,
    }


def test_names_of_jobs_without_numbers_are_numbered(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "batch_task.csv", [[*one[:2], f"job{one[2]}", *one[3:]] for one in TASKS])
    convert("alibaba2018", [path], tmp_path / "out")
    assert [row["job"] for row in rows(tmp_path / "out")] == [0, 1, 0]


def test_the_end_of_the_trace_is_not_the_end_of_a_task(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "batch_task.csv", TASKS)
    found = convert("alibaba2018", [path], tmp_path / "out", last="alive")
    assert [row.get("duration") for row in rows(tmp_path / "out")] == [60, None, None]
    assert found.notes[0].startswith("1 task with an end at the trace's last instant: taken for still there")


def test_jobs_are_drawn_whole_and_equal_seeds_draw_equal_ones(tmp_path: Path) -> None:
    tasks = [["M1", 2, f"j_{number // 3}", "1", "Terminated", number, number + 5, 50, 1] for number in range(300)]
    path = write_csv(tmp_path / "batch_task.csv", tasks)
    found = convert("alibaba2018", [path], tmp_path / "out", share=0.3)
    jobs = [row["job"] for row in rows(tmp_path / "out")]
    assert {jobs.count(one) for one in jobs} == {3}
    assert 15 < len(set(jobs)) < 45
    assert left_out(found) == {"tasks of jobs that were not drawn": 300 - len(jobs)}
    convert("alibaba2018", [path], tmp_path / "again", share=0.3)
    assert rows(tmp_path / "again") == rows(tmp_path / "out")


def test_the_first_seconds_may_be_taken_alone(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "batch_task.csv", TASKS)
    found = convert("alibaba2018", [path], tmp_path / "out", until=150)
    assert [row["admission"] for row in rows(tmp_path / "out")] == [100]
    assert left_out(found) == {"tasks that start later than asked for": 2}


def test_more_instances_than_a_run_takes_are_told(tmp_path: Path) -> None:
    tasks = [[*TASKS[0][:1], 60_000_000, f"j_{number}", *TASKS[0][3:]] for number in range(2)]
    paths = [write_csv(tmp_path / "batch_task.csv", tasks), write_csv(tmp_path / "machine_meta.csv", MACHINES)]
    found = convert("alibaba2018", paths, tmp_path / "out")
    assert found.notes[1].startswith("120,000,000 instances, of which a run takes 100,000,000: --set share=0.01")


def test_classes_are_those_of_tasks_and_containers(trace: Path, tmp_path: Path) -> None:
    convert("alibaba2018", [trace], tmp_path / "out", "task=gold,*=silver")
    assert [row["class"] for row in rows(tmp_path / "out")] == ["silver", "silver", "gold", "gold", "gold"]
    with pytest.raises(ConfigError, match="no rule for what it is container"):
        convert("alibaba2018", [trace], tmp_path / "no", "task=gold")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["M1", 1, "j_1", "1", "Terminated", "noon", 20, 100, 1], "batch_task.csv:4: start_time: found 'noon'"),
        (["M1", 1, "j_1", "1", "Terminated", 10, 20, "much", 1], "batch_task.csv:4: plan_cpu: found 'much'"),
        (["M1", 1, "", "1", "Terminated", 10, 20, 1, 1], "batch_task.csv:4: job_name: found 'nothing'"),
        (["M1", 1, "j_1", "1", "Terminated", 10, 20, 100], "batch_task.csv:4: found .* expected 9 cells, found 8"),
    ],
)
def test_broken_rows_are_named(row: list[object], message: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "batch_task.csv", [*TASKS, row])
    with pytest.raises(InputError, match=message):
        convert("alibaba2018", [path], tmp_path / "out")
