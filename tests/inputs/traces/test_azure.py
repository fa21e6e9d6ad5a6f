"""Azure's traces: the packing database and the VM tables, from files made to their schemas."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from slacktide.errors import ConfigError, InputError
from support.converting import convert, hosts, left_out, rows, workload, write_csv

DAY = 86_400.0
TYPES = [
    (1, 100, 16, 0.5, 0.25, None, 0.1, 0.2),
    (2, 101, 16, 0.125, 0.125, 0.0, 0.05, 0.1),
    (3, 100, 17, 0.25, 0.2, None, 0.1, 0.2),
    (4, 102, 17, 0.5, 0.2, None, 0.1, 0.2),
]
VMS: list[Sequence[object]] = [
    (1, 7, 100, 0, -3.5, 2.0),  # runs when the trace begins: two days are left
    (2, 7, 101, 1, 0.5, None),  # never ends
    (3, 8, 100, 0, 1.0, 1.25),
    (4, 8, 102, 1, 1.0, 2.0),  # machines of type 16 do not offer it
    (5, 8, 100, 1, -9.0, -1.0),  # over before
    (6, 8, 100, 1, 3.0, 3.0),
]


def database(path: Path, vms: Sequence[Sequence[object]] = tuple(VMS)) -> Path:
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE vmType (id INTEGER, vmTypeId INTEGER, machineId INTEGER, core REAL, memory REAL, hdd REAL, "
        "ssd REAL, nic REAL)"
    )
    connection.execute(
        "CREATE TABLE vm (vmId INTEGER, tenantId INTEGER, vmTypeId INTEGER, priority INTEGER, starttime REAL, "
        "endtime REAL)"
    )
    connection.executemany("INSERT INTO vmType VALUES (?, ?, ?, ?, ?, ?, ?, ?)", TYPES)
    connection.executemany("INSERT INTO vm VALUES (?, ?, ?, ?, ?, ?)", vms)
    connection.commit()
    connection.close()
    return path


def test_requests_take_shares_of_the_machine_that_offers_most_of_their_types(tmp_path: Path) -> None:
    found = convert("azure-packing", [database(tmp_path / "trace.sqlite")], tmp_path / "out")
    large = {"cpu": 0.5, "memory": 0.25, "resource:hdd": 0.0, "resource:ssd": 0.1, "resource:nic": 0.2}
    small = {"cpu": 0.125, "memory": 0.125, "resource:hdd": 0.0, "resource:ssd": 0.05, "resource:nic": 0.1}
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "duration": 2 * DAY, "class": "gold", "job": 7, "user": 7} | large,
        {"id": 1, "admission": DAY / 2, "class": "bronze", "job": 7, "user": 7} | small,
        {"id": 2, "admission": DAY, "duration": DAY / 4, "class": "gold", "job": 8, "user": 8} | large,
    ]
    assert list(found.dropped.values()) == [0, 1, 1, 1]
    # At most .5 + .125 + .5 of the cores of a machine are taken at once: two machines.
    machines = hosts(tmp_path / "out")
    assert machines.capacity.tolist() == [[1, 1, 1, 1, 1]] * 2
    assert machines.attributes[0] == {"machine": "16"}
    assert workload(tmp_path / "out").resources == ("cpu", "memory", "hdd", "ssd", "nic")


def test_the_machine_may_be_named(tmp_path: Path) -> None:
    path = database(tmp_path / "trace.sqlite")
    found = convert("azure-packing", [path], tmp_path / "out", machine="17", hosts=5)
    assert (found.requests, found.hosts) == (3, 5)
    assert sorted(row["cpu"] for row in rows(tmp_path / "out")) == [0.25, 0.25, 0.5]
    with pytest.raises(ConfigError, match=r"machine: found '99', expected one of 16, 17"):
        convert("azure-packing", [path], tmp_path / "other", machine="99")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((9, 7, "x", 0, 1.0, 2.0), "vm:7: vmTypeId: found 'x', expected a whole number"),
        ((9, 7, 100, 0, None, 2.0), "vm:7: starttime: found 'nothing', expected days"),
        ((9, 7, 100, 0, 1.0, "soon"), "vm:7: endtime: found 'soon', expected days"),
        ((9, 7, 100, 0, float("inf"), None), "vm:7: starttime: found 'inf', expected days"),
        ((9, 7, 100, 0, 1e12, None), "vm:7: starttime: found '1000000000000.0', expected days"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, row: tuple[object, ...], said: str) -> None:
    path = database(tmp_path / "trace.sqlite", [*VMS, row])
    with pytest.raises(InputError, match=said):
        convert("azure-packing", [path], tmp_path / "out")


def test_what_is_no_such_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("not a database, whatever its name says" * 40)
    with pytest.raises(InputError, match="expected an SQLite database with the tables vm and vmType"):
        convert("azure-packing", [tmp_path / "text.sqlite"], tmp_path / "out")
    with pytest.raises(InputError, match="expected an existing file"):
        convert("azure-packing", [tmp_path / "none.sqlite"], tmp_path / "out")


def vm(
    name: str, group: str, deployment: str, created: object, deleted: object, category: str, cores: str, memory: str
) -> list[object]:
    """A row of vmtable.csv."""
    return [name, group, deployment, created, deleted, 99.1, 4.2, 50.0, category, cores, memory]


TABLE = [
    vm("v1", "s1", "d2", 0, 2591700, "Delay-insensitive", "4", "8"),  # there at the end: endless
    vm("v2", "s1", "d1", 300, 900, "Interactive", ">24", ">64"),
    vm("v3", "s2", "d2", 300, 600, "Unknown", "2", "1.75"),
    vm("v4", "s2", "d2", 600, 600, "Unknown", "2", "4"),
]


def test_a_table_of_vms_becomes_requests(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "vmtable.csv.gz", TABLE)
    found = convert("azure-vm", [path], tmp_path / "out", cores_above=30)
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "cpu": 4, "memory": 8, "class": "bronze", "job": 1, "user": "s1"},
        {"id": 1, "admission": 300, "duration": 600, "cpu": 30, "memory": 128, "class": "gold", "job": 0, "user": "s1"},
        {
            "id": 2,
            "admission": 300,
            "duration": 300,
            "cpu": 2,
            "memory": 1.75,
            "class": "silver",
            "job": 1,
            "user": "s2",
        },
    ]
    assert left_out(found) == {"machines that lasted less than the five minutes by which the table counts": 1}
    assert hosts(tmp_path / "out").capacity.tolist() == [[64, 512]]
    convert("azure-vm", [path], tmp_path / "other", last="ended")
    assert workload(tmp_path / "other").duration[0] == 2591700


@pytest.mark.parametrize(
    ("place", "cell", "said"),
    [
        (3, "noon", "vm_created: found 'noon', expected a whole number, 0 or more"),
        (9, "many", "vm_core_count: found 'many', expected a number such as 4, or an open bucket such as >24"),
        (10, "", "vm_memory: found 'nothing'"),
        (8, "", "vm_category: found 'nothing', expected a word"),
    ],
)
def test_a_broken_cell_of_a_table_is_named(tmp_path: Path, place: int, cell: str, said: str) -> None:
    broken = [list(row) for row in TABLE]
    broken[2][place] = cell
    path = write_csv(tmp_path / "vmtable.csv", broken)
    with pytest.raises(InputError) as error:
        convert("azure-vm", [path], tmp_path / "out")
    assert str(error.value).startswith(f"{path}:3: {said}")


@pytest.mark.parametrize("name", ["vmtable.csv", "vmtable.csv.gz"])
def test_a_table_that_is_no_text_is_refused_in_one_message(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    broken = b"v1,s1,d1\n\xf9,\xf9\n"  # too short as well: of such rows the CSV reader says nothing readable
    path.write_bytes(gzip.compress(broken) if name.endswith(".gz") else broken)
    with pytest.raises(InputError, match=r"vmtable\.csv(\.gz)?:2: found .*xf9.*, expected text in UTF-8"):
        convert("azure-vm", [path], tmp_path / "out")
    assert "Traceback" not in capfd.readouterr().err
