"""Google's traces of 2011 and 2019, from files made to their schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.inputs import read_host_events
from slacktide.inputs.traces import events, output
from support.converting import convert, hosts, rows, workload, write_csv, write_json

S = 1_000_000  # microseconds in a second
LATER = 2**63 - 1
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL = range(6)


def task(
    time: int,
    job: int,
    index: int,
    kind: int,
    priority: int = 4,
    cpu: object = 0.5,
    apart: object = "",
    user: str = "u",
) -> list[object]:
    """A row of task_events."""
    return [time, "", job, index, "", kind, user, 2, priority, cpu, 0.25, 0.001, apart]


TASKS = [
    task(0, 10, 0, SUBMIT, 9, user="a"),
    task(0, 10, 0, SCHEDULE, 9, user="a"),  # runs to the end: endless
    task(600 * S, 11, 0, SUBMIT),
    task(601 * S, 11, 0, SCHEDULE),
    task(701 * S, 11, 0, FINISH),  # ran 100 s
    task(600 * S, 11, 1, SUBMIT, apart=1),
    task(602 * S, 11, 1, SCHEDULE, apart=1),
    task(650 * S, 11, 1, EVICT, apart=1),
    task(660 * S, 11, 1, SCHEDULE, apart=1, cpu=0.6),
    task(700 * S, 11, 1, FINISH, apart=1),  # its last run took 40 s
    task(610 * S, 12, 0, SUBMIT),
    task(620 * S, 12, 0, KILL),  # never ran
    task(630 * S, 13, 0, SUBMIT),
    task(631 * S, 13, 0, SCHEDULE),
    task(631 * S, 13, 0, FAIL),  # ran for no time
    task(640 * S, 14, 0, SCHEDULE, cpu=""),
    task(650 * S, 14, 0, FINISH, cpu=""),  # asked for nothing known
    task(645 * S, 15, 0, SUBMIT, 1),
    task(646 * S, 15, 0, SCHEDULE, 1),
    task(LATER, 15, 0, KILL, 1),  # after the end: endless
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The folder of a trace of 2011, tasks in two shards."""
    root = tmp_path / "clusterdata-2011-2"
    write_csv(root / "task_events/part-00000-of-00500.csv.gz", TASKS[:8])
    write_csv(root / "task_events/part-00001-of-00500.csv.gz", TASKS[8:])
    write_csv(
        root / "task_constraints/part-00000-of-00500.csv.gz",
        [
            [600 * S, 11, 1, 3, "Ql", 4],
            [600 * S, 11, 1, 0, "a+/=b", "x;y"],
            [600 * S, 11, 1, 1, "w", ""],
            [660 * S, 11, 1, 2, "later", 9],
        ],
    )
    write_csv(
        root / "machine_events/part-00000-of-00001.csv.gz",
        [
            [0, 5, 0, "P1", 1, 0.5],
            [0, 6, 0, "P2", 0.5, 0.25],
            [0, 8, 0, "P2", "", ""],
            [50 * S, 7, 0, "P2", 0.5, 0.75],
            [100 * S, 6, 1, "P2", "", ""],
            [200 * S, 6, 0, "P2", 0.5, 0.25],
            [300 * S, 5, 2, "P1", 0.9, 0.5],
        ],
    )
    write_csv(
        root / "machine_attributes/part-00000-of-00001.csv.gz",
        [[0, 5, "Ql", 9, 0], [100 * S, 5, "Ql", 11, 0], [0, 6, "Ql", "", 1], [0, 6, "wN", "a=b", 0]],
    )
    return root


def test_tasks_become_requests_and_say_what_is_left_out(trace: Path, tmp_path: Path) -> None:
    found = convert("google2011", [trace], tmp_path / "out")
    shared = {"memory": 0.25, "anti_affinity": False}
    assert rows(tmp_path / "out") == [
        {"id": 0, "job": 10, "admission": 0, "class": "gold", "user": "a", "cpu": 0.5} | shared,
        {"id": 1, "job": 11, "admission": 600, "duration": 100, "class": "silver", "user": "u", "cpu": 0.5} | shared,
        {"id": 2, "job": 11, "admission": 600, "duration": 40, "class": "silver", "user": "u", "cpu": 0.6}
        | shared
        | {"anti_affinity": True, "constraints": '"Ql" > "4"; "a+/=b" == "x;y"'},
        {"id": 3, "job": 15, "admission": 645, "class": "bronze", "user": "u", "cpu": 0.5} | shared,
    ]
    assert {why: count for why, count in found.dropped.items() if count} == {
        "tasks that never ran": 1,
        "tasks that ran for no time": 1,
        "tasks without a request of CPU or memory": 1,
        "constraints that an attribute is empty or has any value": 1,
        "machines without a capacity": 1,
    }
    read = workload(tmp_path / "out")
    assert [str(one) for one in read.terms[read.term[2]].constraints] == ["Ql > 4", "a+/=b == x;y"]
    assert read.duration[0] == float("inf")


def test_tasks_are_the_same_when_put_together_and_written_in_pieces(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = convert("google2011", [trace], tmp_path / "whole")
    monkeypatch.setattr(events, "BUCKET", 5)
    monkeypatch.setattr(output, "PIECE", 2)
    pieces = convert("google2011", [trace], tmp_path / "pieces")
    assert rows(tmp_path / "pieces") == rows(tmp_path / "whole")
    assert pieces == whole


def test_machines_become_hosts_that_come_and_go(trace: Path, tmp_path: Path) -> None:
    assert convert("google2011", [trace], tmp_path / "out").hosts == 3
    found = hosts(tmp_path / "out")
    assert found.names == ("5", "6", "7")
    assert found.capacity.tolist() == [[1, 0.5], [0.5, 0.25], [0.5, 0.75]]
    assert found.attributes == ({"platform": "P1", "Ql": "9"}, {"platform": "P2", "wN": "a=b"}, {"platform": "P2"})
    events = read_host_events(tmp_path / "out/host-events.csv", found)
    assert list(zip(events.times.tolist(), events.hosts.tolist(), events.kinds.tolist(), strict=True)) == [
        (0, 2, 0),
        (50, 2, 2),
        (100, 1, 0),
        (200, 1, 2),
    ]


def test_tasks_alone_will_do_and_the_map_may_be_another(trace: Path, tmp_path: Path) -> None:
    found = convert("google2011", [trace / "task_events"], tmp_path / "out", "4=gold,*=bronze")
    assert (found.requests, found.hosts) == (4, 0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["settings.toml", "workload.parquet"]
    assert [row["class"] for row in rows(tmp_path / "out")] == ["bronze", "gold", "gold", "bronze"]


def test_a_map_that_leaves_out_a_priority_is_refused(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--map: no rule for priority 4 \(2 times\)"):
        convert("google2011", [trace], tmp_path / "out", "9-=gold,0-1=bronze")


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        (0, "-5", "time: found '-5', expected a whole number, 0 or more"),
        (2, "", "job: found 'nothing', expected a whole number"),
        (5, "12", "type: found '12'"),
        (8, "high", "priority: found 'high'"),
        (9, "a lot", "cpu: found 'a lot', expected a number, 0 or more"),
        (12, "maybe", "different_machine: found 'maybe', expected true or false"),
    ],
)
def test_a_broken_cell_is_named_with_file_and_line(tmp_path: Path, column: int, cell: str, said: str) -> None:
    broken = [list(row) for row in TASKS]
    broken[7][column] = cell
    write_csv(tmp_path / "task_events/part-00000-of-00500.csv", TASKS)
    path = write_csv(tmp_path / "task_events/part-00001-of-00500.csv", broken)
    with pytest.raises(InputError) as error:
        convert("google2011", [tmp_path / "task_events"], tmp_path / "out")
    assert str(error.value).startswith(f"{path}:8: {said}")


def test_rows_that_are_cut_off_and_files_that_are_none_are_named(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "task_events.csv", [*TASKS[:3], [1, 2, 3]])
    with pytest.raises(InputError, match=r"task_events.csv:4: found '1,2,3', expected 13 cells, found 3"):
        convert("google2011", [path], tmp_path / "out")
    packed = write_csv(tmp_path / "task_events.csv.gz", TASKS)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(InputError, match="expected a complete CSV file"):
        convert("google2011", [packed], tmp_path / "out")
    with pytest.raises(InputError, match="expected a name that begins with task_events or"):
        convert("google2011", [write_csv(tmp_path / "other.csv", TASKS)], tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected a file task_events"):
        convert("google2011", [tmp_path / "empty"], tmp_path / "out")


# 2019


def event(time: object, kind: int, job: int, index: int, **more: object) -> dict[str, object]:
    """An object of instance_events, numbers as texts, as the published files have them."""
    return {
        "time": str(time),
        "type": str(kind),
        "collection_id": str(job),
        "instance_index": str(index),
        "collection_type": "0",
        "priority": "200",
        "resource_request": {"cpus": 0.02, "memory": "0.01"},
        **more,
    }


INSTANCES = [
    event(0, 0, 1, 0, constraint=[{"name": "arch", "value": 'x"1', "relation": "0"}, {"name": "k", "relation": "6"}]),
    event(5 * S, 3, 1, 0),
    event(9 * S, 6, 1, 0),
    event(7 * S, 0, 2, 0, priority="110", collection_type="1"),
    event(8 * S, 3, 2, 0, priority="110", collection_type="1"),
    event(7 * S, 0, 3, 4, priority="25"),
    event(8 * S, 3, 3, 4, priority="25"),
]
COLLECTIONS = [
    {"time": "0", "type": "0", "collection_id": "1", "user": "ann", "max_per_machine": "1"},
    {"time": "0", "type": "0", "collection_id": "3", "user": "bob"},
]
MACHINES = [
    {
        "time": "0",
        "machine_id": "77",
        "type": "1",
        "switch_id": "s1",
        "platform_id": "p",
        "capacity": {"cpus": 1.0, "memory": 0.5},
    },
    {"time": str(9 * S), "machine_id": "77", "type": "2"},
]
EXPECTED = [
    {
        "id": 0,
        "job": 1,
        "admission": 0,
        "duration": 4,
        "cpu": 0.02,
        "memory": 0.01,
        "class": "gold",
        "user": "ann",
        "anti_affinity": True,
        "constraints": '"arch" == "x\\"1"',
    },
    {
        "id": 1,
        "job": 3,
        "admission": 7,
        "cpu": 0.02,
        "memory": 0.01,
        "class": "bronze",
        "user": "bob",
        "anti_affinity": False,
    },
]


def test_published_json_becomes_requests_and_hosts(tmp_path: Path) -> None:
    write_json(tmp_path / "trace/instance_events-000000000000.json.gz", INSTANCES[:4])
    write_json(tmp_path / "trace/instance_events-000000000001.json", INSTANCES[4:])
    write_json(tmp_path / "trace/collection_events-000000000000.json.gz", COLLECTIONS)
    write_json(tmp_path / "trace/machine_events-000000000000.json.gz", MACHINES)
    write_json(
        tmp_path / "trace/machine_attributes-000000000000.json",
        [
            {"time": "0", "machine_id": "77", "name": "arch", "value": "x"},
            {"time": "0", "machine_id": "77", "name": "gone", "deleted": True},
            {"time": "5", "machine_id": "77", "name": "arch", "value": "y", "deleted": False},
        ],
    )
    found = convert("google2019", [tmp_path / "trace"], tmp_path / "out")
    assert rows(tmp_path / "out") == EXPECTED
    assert {why: count for why, count in found.dropped.items() if count} == {
        "instances of alloc sets": 1,
        "constraints with other relations than ==, /=, < and >": 1,
    }
    machines = hosts(tmp_path / "out")
    assert machines.capacity.tolist() == [[1, 0.5]]
    assert machines.attributes == ({"platform": "p", "switch": "s1", "arch": "x"},)
    assert (tmp_path / "out/host-events.csv").read_text() == "time,host,event\n9,77,fail\n"
    assert len(workload(tmp_path / "out")) == 2


@pytest.mark.parametrize("dot", [".", "_"])
def test_a_csv_export_says_the_same(tmp_path: Path, dot: str) -> None:
    names = ["time", "type", "collection_id", "instance_index", "collection_type", "priority"]
    table: list[list[object]] = [[*names, f"resource_request{dot}cpus", f"resource_request{dot}memory"]]
    table += [[*(one[name] for name in names), 0.02, 0.01] for one in INSTANCES]
    write_csv(tmp_path / "instance_events.csv.gz", table)
    convert("google2019", [tmp_path / "instance_events.csv.gz"], tmp_path / "out")
    left_out = ("user", "anti_affinity", "constraints")
    assert rows(tmp_path / "out") == [
        {key: value for key, value in row.items() if key not in left_out} for row in EXPECTED
    ]


def test_a_line_that_is_no_json_and_a_cell_that_is_no_number_are_named(tmp_path: Path) -> None:
    path = write_json(tmp_path / "instance_events.json", INSTANCES)
    path.write_text(path.read_text() + '{"time": \n')
    with pytest.raises(InputError, match=r"instance_events.json:8: found .*, expected a JSON object"):
        convert("google2019", [path], tmp_path / "out")
    write_json(path, [*INSTANCES, event(1, 0, 5, 0, resource_request={"cpus": "many"})])
    with pytest.raises(InputError, match=r"instance_events.json:8: resource_request.cpus: found 'many'"):
        convert("google2019", [path], tmp_path / "out")
