"""What published traces have that a simple reading gets wrong: docs/traces.md lists it, reader by reader."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from slacktide.errors import InputError
from slacktide.inputs import read_workload
from slacktide.inputs.prepare.sampling import sample
from slacktide.settings import load
from support.converting import convert, hosts, left_out, rows, write_csv, write_json

S = 1_000_000  # microseconds in a second
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL = range(6)
OF_2019 = {SUBMIT: 0, SCHEDULE: 3, EVICT: 4, FAIL: 5, FINISH: 6, KILL: 7}


def google(name: str, folder: Path, events: Sequence[tuple[float, int]], task: int = 0) -> Path:
    """The events (second, kind) of one task, in the format of 2011 or 2019."""
    if name == "google2011":
        table = [[int(at * S), "", 1, task, "", kind, "u", 2, 4, 0.5, 0.25, 0.001, ""] for at, kind in events]
        return write_csv(folder / "task_events.csv", table)
    request = {"cpus": 0.5, "memory": 0.25}
    objects = [
        {"time": str(int(at * S)), "type": OF_2019[kind], "collection_id": 1, "priority": 200}
        | {"instance_index": task, "resource_request": request}
        for at, kind in events
    ]
    return write_json(folder / "instance_events.json", objects)


VERSIONS = ["google2011", "google2019"]


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize(
    ("events", "duration", "notes"),
    [
        (
            [(610, SUBMIT), (620, SCHEDULE), (630, EVICT), (630, SUBMIT), (930, KILL)],
            10,
            ["1 task ended once more, while waiting to run again: the duration is that of the run before"],
        ),
        (
            [(620, SCHEDULE), (630, EVICT), (630, SCHEDULE)],  # file order decides: it runs on
            None,
            ["1 task ran more than once: the duration is that of the last run"],
        ),
        (
            [(700, FINISH), (640, SCHEDULE), (630, EVICT), (620, SCHEDULE)],  # files need not be in order of time
            60,
            ["1 task ran more than once: the duration is that of the last run"],
        ),
        ([(620, SCHEDULE), (620, SCHEDULE), (630, FINISH), (630, FINISH)], 10, []),  # a row twice changes nothing
        ([(615, KILL), (620, SCHEDULE)], None, []),  # an end before the run is none of it
    ],
)
def test_a_run_lasts_from_its_schedule_to_the_first_end_after_it(
    name: str, events: list[tuple[float, int]], duration: float | None, notes: list[str], tmp_path: Path
) -> None:
    found = convert(name, [google(name, tmp_path / "trace", events)], tmp_path / "out")
    (row,) = rows(tmp_path / "out")
    assert row.get("duration") == duration
    assert [note for note in found.notes if "task " in note] == notes


HEADER = "; MaxNodes: 4\n; MaxProcs: 16\n"


def line(
    number: int,
    submit: float,
    run: float,
    processors: int,
    status: int = 1,
    user: int = 5,
    *,
    wait: float = 0,
    queue: int = 0,
    allocated: int | None = None,
) -> str:
    """A job of a log in the Standard Workload Format."""
    got = processors if allocated is None else allocated
    return f"{number} {submit} {wait} {run} {got} -1 1024 {processors} 99 -1 {status} {user} 1 1 {queue} 1 -1 -1\n"


def swf(folder: Path, *lines: str, header: str = HEADER) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "log.swf").write_text(header + "".join(lines))
    return folder / "log.swf"


def test_parts_of_a_job_that_was_checkpointed_are_no_jobs(tmp_path: Path) -> None:
    job = [line(1, 10, 300, 2, 1), line(1, 10, 100, 2, 2), line(1, -1, 150, 2, 2), line(1, -1, 50, 2, 3)]
    alone = [line(2, 20, 60, 2, 2), line(2, -1, 60, 2, 4)]
    found = convert("swf", [swf(tmp_path, *job, *alone, line(3, 30, 5, 1, 0))], tmp_path / "out")
    assert [(row["admission"], row["duration"]) for row in rows(tmp_path / "out")] == [(10, 300), (30, 5)]
    assert left_out(found) == {
        "lines of parts of jobs that were checkpointed": 3,
        "lines of parts of jobs for which no line sums them up": 2,
    }
    path = swf(tmp_path, line(1, 10, 300, 2, 1), line(2, -1, 60, 2, 1))
    with pytest.raises(InputError, match=r"log.swf:4: submit_time: found '-1', expected a number, 0 or more"):
        convert("swf", [path], tmp_path / "other")


def vm(name: str, created: int, deleted: int, group: str = "s1") -> list[object]:
    """A row of vmtable.csv."""
    return [name, group, "d1", created, deleted, 99.1, 4.2, 50.0, "Interactive", 2, 4]


POD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,T4\n"


def openb(folder: Path, *pods: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    (folder / "pods.csv").write_text(POD + "".join(pods))
    (folder / "nodes.csv").write_text(NODES)
    return [folder / "pods.csv", folder / "nodes.csv"]


def pod(name: str, created: int, deleted: object, scheduled: int, phase: str = "Succeeded") -> str:
    return f"{name},1000,1024,0,0,,LS,{phase},{created},{deleted},{scheduled}\n"


def packing(folder: Path, *vms: Sequence[object], types: Sequence[Sequence[object]] = ()) -> Path:
    """A database with these VMs (vmId, tenantId, vmTypeId, priority, starttime, endtime)."""
    folder.mkdir(exist_ok=True)
    connection = sqlite3.connect(folder / "trace.sqlite")
    amounts = "core REAL, memory REAL, hdd REAL, ssd REAL, nic REAL"
    connection.execute(f"CREATE TABLE vmType (id INTEGER, vmTypeId INTEGER, machineId INTEGER, {amounts})")
    names = "tenantId INTEGER, vmTypeId INTEGER, priority INTEGER"
    connection.execute(f"CREATE TABLE vm (vmId INTEGER, {names}, starttime REAL, endtime REAL)")
    rows = [(1, 100, 16, 0.5, 0.25, None, 0.1, 0.2), *types]
    connection.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", vms)
    connection.commit()
    connection.close()
    return folder / "trace.sqlite"


def repeating(name: str, folder: Path) -> list[Path]:
    """A trace of two lives of one thing, the first of which stands there twice, and of a third, which ends last."""
    if name == "swf":
        return [swf(folder, line(1, 0, 60, 1), line(1, 0, 60, 1), line(1, 100, 60, 1), line(2, 0, 600, 1))]
    if name == "azure-vm":
        return [write_csv(folder / "vmtable.csv", [vm("a", 0, 60), vm("a", 0, 60), vm("a", 100, 160), vm("b", 0, 600)])]
    if name == "openb":
        return openb(folder, pod("a", 0, 60, 0), pod("a", 0, 60, 0), pod("a", 100, 160, 100), pod("b", 0, 600, 0))
    day = 86_400
    lives = [(0, 60), (0, 60), (100, 160)]
    return [packing(folder, *((1, 7, 100, 0, begin / day, end / day) for begin, end in lives), (2, 7, 100, 0, 0, None))]


@pytest.mark.parametrize(
    ("name", "noun"), [("swf", "job number"), ("azure-vm", "VM"), ("openb", "pod"), ("azure-packing", "VM")]
)
def test_a_row_that_is_there_twice_is_one_request(name: str, noun: str, tmp_path: Path) -> None:
    settings = {"capacity": "all"} if name == "openb" else {}
    found = convert(name, repeating(name, tmp_path / "trace"), tmp_path / "out", **settings)
    lives = [(row["admission"], row.get("duration")) for row in rows(tmp_path / "out")]
    assert sorted(lives, key=str)[0] == (0, 60)
    assert len(lives) == 3
    assert found.dropped["rows that are there a second time"] == 1
    assert f"1 {noun} with several rows that differ: each row is a request" in found.notes


def test_a_type_with_two_sizes_on_one_machine_is_refused(tmp_path: Path) -> None:
    same = packing(tmp_path / "same", (1, 7, 100, 0, 0, 1), types=[(2, 100, 16, 0.5, 0.25, None, 0.1, 0.2)])
    assert convert("azure-packing", [same], tmp_path / "out").requests == 1
    other = packing(tmp_path / "other", (1, 7, 100, 0, 0, 1), types=[(2, 100, 16, 0.25, 0.25, None, 0.1, 0.2)])
    with pytest.raises(InputError, match=r"vmType:2: vmTypeId: found '100', expected one row for a type and a machine"):
        convert("azure-packing", [other], tmp_path / "out")


def test_processors_that_do_not_divide_are_still_there(tmp_path: Path) -> None:
    found = convert(
        "swf", [swf(tmp_path, line(1, 0, 60, 8), header="; MaxNodes: 3\n; MaxProcs: 8\n")], tmp_path / "out"
    )
    assert hosts(tmp_path / "out").capacity[:, 0].tolist() == [3, 3, 2]
    assert "8 processors on 3 hosts: 2 of them have one more than the others" in found.notes
    few = swf(tmp_path, line(1, 0, 60, 2), header="; MaxNodes: 6\n; MaxProcs: 4\n")
    found = convert("swf", [few], tmp_path / "few")
    assert hosts(tmp_path / "few").capacity[:, 0].tolist() == [1, 1, 1, 1]
    assert "MaxNodes is 6, more than MaxProcs: 4 hosts have a processor each" in found.notes
    own = convert("swf", [swf(tmp_path, line(1, 0, 60, 8))], tmp_path / "own", host_cores=2.5, hosts=3)
    assert hosts(tmp_path / "own").capacity[:, 0].tolist() == [2.5] * 3
    assert not [note for note in own.notes if "processor" in note]


@pytest.mark.parametrize(
    ("name", "settings"),
    [("swf", {"shape": "one", "host_cores": 0.5}), ("azure-vm", {"host_cores": 1}), ("azure-packing", {"hosts": 3}),
     ("google2011", {}), ("google2019", {}), ("broker", {"host_cpu": 0.25})],
)  # fmt: skip
def test_requests_larger_than_every_host_are_counted(name: str, settings: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    if name.startswith("google"):
        source = google(name, folder, [(1, SCHEDULE)]).parent
        machine = [0, 5, 0, "P1", 0.4, 0.5]
        write_csv(folder / "machine_events.csv", [machine]) if name == "google2011" else write_json(
            folder / "machine_events.json", [{"machine_id": 5, "type": 1, "capacity": {"cpus": 0.4, "memory": 0.5}}]
        )
    elif name == "azure-packing":
        source = packing(folder, (1, 7, 101, 0, 0, 1), types=[(2, 101, 16, 1.5, 0.25, None, 0.1, 0.2)])
    elif name == "broker":
        source = write_csv(folder / "w.csv", [[0, 1, 1, "u", 0, 9, 60, 0.5, 0.5, "prod", 1]])
    else:
        source = swf(folder, line(1, 0, 60, 1)) if name == "swf" else write_csv(folder / "vmtable.csv", [vm("a", 0, 9)])
    found = convert(name, [source], tmp_path / "out", **settings)
    assert "1 request larger than every host: they find no place" in found.notes


def test_an_unknown_user_is_nobody(tmp_path: Path) -> None:
    jobs = [line(number, number, 60, 1, user=-1) for number in range(1, 41)]
    jobs += [line(41, 50, 60, 1, user=0), line(42, 51, 60, 1, user=3, queue=-1)]
    found = convert("swf", [swf(tmp_path, *jobs)], tmp_path / "out")
    assert [row.get("user") for row in rows(tmp_path / "out")] == [None] * 41 + [3]
    assert "41 jobs of unknown user: they have none" in found.notes
    assert "1 job of unknown queue: their class is what --map says of -1" in found.notes
    drawn = sample(tmp_path / "out/workload.parquet", tmp_path / "half.parquet", share=0.5, groups=1)
    assert (drawn.users["user"].to_list(), drawn.nameless, drawn.requests) == ([3], (41, 20), 21)
    assert len(read_workload(tmp_path / "half.parquet")) == 21
    convert("swf", [swf(tmp_path, *jobs[:40])], tmp_path / "nobody")
    drawn = sample(tmp_path / "nobody/workload.parquet", tmp_path / "fourth.parquet", share=0.25)
    assert (drawn.users.height, drawn.requests) == (0, 10)


@pytest.mark.parametrize("name", ["azure-vm", "azure-packing", "openb", "swf"])
def test_the_end_of_the_trace_is_not_the_end_of_a_life(name: str, tmp_path: Path) -> None:
    folder, noun = tmp_path / "trace", {"openb": "pod", "swf": "job"}.get(name, "VM")
    if name == "azure-vm":
        sources = [write_csv(folder / "vmtable.csv", [vm("a", 0, 60), vm("b", 0, 600), vm("c", 100, 600)])]
    elif name == "azure-packing":
        sources = [packing(folder, (1, 7, 100, 0, 0, 1), (2, 7, 100, 0, 0, 2), (3, 7, 100, 0, 1, 2))]
    elif name == "openb":
        sources = openb(folder, pod("a", 0, 60, 0), pod("b", 0, 600, 0), pod("c", 100, 600, 200, "Running"))
    else:
        sources = [swf(folder, line(1, 0, 60, 1), line(2, 0, 600, 1), line(3, 100, 400, 1, wait=100))]
    settings = {"capacity": "all"} if name == "openb" else {}
    for last, endless in (("alive", 2), ("ended", 0)):
        found = convert(name, sources, tmp_path / last, last=last, **settings)
        assert sum("duration" not in row for row in rows(tmp_path / last)) == endless
        said = [note for note in found.notes if note.startswith(f"2 {noun}s with an end at the trace's last instant")]
        assert len(said) == 1
        assert ("still there, without an end" in said[0]) == (last == "alive")


def test_the_start_of_a_log_becomes_the_epoch(tmp_path: Path) -> None:
    header = HEADER + "; UnixStartTime: 1000000000\n; TimeZoneString: Europe/Berlin\n"
    found = convert("swf", [swf(tmp_path, line(1, 0, 60, 1), header=header)], tmp_path / "out")
    assert load(tmp_path / "out/settings.toml").simulation.epoch == "2001-09-09T01:46:40Z"
    assert any(note.startswith("second 0 was 2001-09-09T01:46:40Z") for note in found.notes)
    assert "the log says TimeZoneString: Europe/Berlin" in found.notes
    convert("google2011", [google("google2011", tmp_path / "google", [(600, SCHEDULE)])], tmp_path / "of-google")
    began = datetime.fromisoformat(load(tmp_path / "of-google/settings.toml").simulation.epoch) + timedelta(seconds=600)
    assert began == datetime(2011, 5, 1, 19, tzinfo=timezone(timedelta(hours=-4)))  # as its page says


UNTIMED = "nobody knows when second 0 was: hours and calendars of classes see simulation.epoch"


@pytest.mark.parametrize("name", ["google2019", "openb", "azure-packing", "azure-vm", "swf", "broker"])
def test_a_trace_that_does_not_say_when_it_began_is_said(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    if name == "google2019":
        sources = [google(name, folder, [(1, SCHEDULE)])]
    elif name == "broker":
        sources = [write_csv(folder / "w.csv", [[0, 1, 1, "u", 0, 9, 60, 0.5, 0.5, "prod", 1]])]
    else:
        sources = repeating(name, folder)
    settings = {"capacity": "all"} if name == "openb" else {}
    assert UNTIMED in convert(name, sources, tmp_path / "out", **settings).notes
    assert not (tmp_path / "out/settings.toml").exists()


@pytest.mark.parametrize("name", VERSIONS)
def test_an_empty_shard_stops_nothing(name: str, tmp_path: Path) -> None:
    folder = google(name, tmp_path / "trace", [(1, SCHEDULE)]).parent
    events = "task_events" if name == "google2011" else "instance_events"
    (folder / f"{events}-1.csv").write_bytes(b"")
    (folder / f"{events}-2.csv.gz").write_bytes(gzip.compress(b""))
    (folder / "machine_events.csv").write_bytes(b"")
    found = convert(name, [folder], tmp_path / "out")
    assert (found.requests, found.hosts) == (1, 0)
    assert "the files of machine_events have no rows" in found.notes
    (tmp_path / f"none/{events}").mkdir(parents=True)
    (tmp_path / f"none/{events}/a.csv").write_bytes(b"")
    with pytest.raises(InputError, match="expected at least one row"):
        convert(name, [tmp_path / "none"], tmp_path / "other")


def test_a_run_time_of_0_is_less_than_half_a_second(tmp_path: Path) -> None:
    lines = [line(1, 0, 0, 1), line(2, 1, 0, 1, status=5), line(3, 2, -1, 1), line(4, 3, 7, 1)]
    found = convert("swf", [swf(tmp_path, *lines)], tmp_path / "out")
    assert [row["duration"] for row in rows(tmp_path / "out")] == [0.25, 7]
    assert left_out(found) == {"jobs that did not run, or for an unknown time": 2}
    assert "1 job of run time 0, less than half a second: 0.25 s are taken" in found.notes


def test_a_request_of_the_broker_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    row = [0, 1, 1, "u", 0, 9, 60, 0.5, 0.5, "prod", 1]
    with pytest.raises(InputError, match=r"w.csv:2: task: found '1'"):
        convert("broker", [write_csv(tmp_path / "w.csv", [row, row])], tmp_path / "out")
