"""Tables with columns of one's own become workloads: CSV, Parquet and frames, and what is wrong in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.inputs.columns import header
from slacktide.inputs.mapped.reading import Mapped, Table
from slacktide.model import DEFAULT_CLASSES

EXPORT = """pod_uid,region,created_at,deleted_at,cpu_request_millicores,mem_request_bytes,tier,image
6f1c-aa,shop,1700000000000,1700000600000,500,1073741824,gold,x
6f1c-ab,shop,1700000060250,,250,536870912,bronze,y
6f1c-ac,bank,1700000030500,1700000090500,35,536870912,silver,\\N
"""
MAPPING = (
    "id=pod_uid, admission=created_at:ms, end=deleted_at:ms, cpu=cpu_request_millicores:m, memory=mem_request_bytes, "
    "class=tier"
)


def table(tmp_path: Path, text: str = EXPORT, columns: str = "guess") -> Table:
    file = tmp_path / "export.csv"
    file.write_text(text)
    return Table(file, columns)


def read(tmp_path: Path, text: str = EXPORT, columns: str = "guess") -> Mapped:
    return table(tmp_path, text, columns).read(DEFAULT_CLASSES)


def problems(tmp_path: Path, text: str, columns: str = MAPPING) -> str:
    with pytest.raises(InputError) as wrong:
        read(tmp_path, text, columns)
    return str(wrong.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("columns", [MAPPING, "guess"])
def test_a_table_as_a_database_exports_it(tmp_path: Path, columns: str) -> None:
    opened = table(tmp_path, columns=columns)
    assert str(opened.columns) == MAPPING  # milliseconds are guessed by their 13 digits
    found = opened.read(DEFAULT_CLASSES)
    workload = found.workload
    assert workload.ids.tolist() == [0, 2, 1]
    assert workload.admission.tolist() == [0.0, 30.5, 60.25]
    assert workload.duration.tolist() == [600.0, 60.0, np.inf]
    assert workload.demand.tolist() == [[0.5, 2.0**30], [0.035, 2.0**29], [0.25, 2.0**29]]
    assert [workload.classes[one].name for one in workload.service_class] == ["gold", "silver", "bronze"]
    assert found.epoch == "2023-11-14T22:13:20+00:00"


def test_it_says_what_it_takes_for_what_before_it_reads(tmp_path: Path) -> None:
    behind = "export.csv: these columns stay behind: region, image"
    shown = [one.replace(f"{tmp_path}/", "") for one in table(tmp_path, columns="class=tier").describe()]
    assert shown[0].startswith("columns of export.csv: id=pod_uid, admission=created_at:ms, end=deleted_at:ms")
    assert "(guessed: id, admission, end, cpu, memory" in shown[0]
    assert shown[1:] == [behind]
    plain = EXPORT.replace("deleted_at", "gone")
    assert "no column says when a request ended" in table(tmp_path, plain).describe()[-1]


def test_it_says_what_it_assumed(tmp_path: Path) -> None:
    more = EXPORT + "6f1c-ad,bank,1700000030500,1700000030500,35,536870912,silver,z\n"
    found = read(tmp_path, more)
    assert len(found.workload) == 3
    assert found.notes[:3] == (
        "second 0 is the first admission, 2023-11-14T22:13:20+00:00 (simulation.epoch)",
        "left out, as they ended when they began: 1 rows",
        "without an end, so that they never complete: 1 rows",
    )
    assert found.notes[3].startswith("ids are no numbers: rows are numbered from 0")


@pytest.mark.parametrize(
    ("first", "second", "unit"),
    [("1700000000", "1700000060.5", ""), ("1700000000000", "1700000060500", ":ms"),
     ("1700000000000000", "1700000060500000", ":us"), ("1700000000000000000", "1700000060500000000", ":ns"),
     ("2023-11-14T22:13:20Z", "2023-11-14T22:14:20.5Z", ""), ("2023-11-14 22:13:20", "2023-11-15 00:14:20.5+02", "")],
)  # fmt: skip
def test_instants_of_every_kind_are_guessed(tmp_path: Path, first: str, second: str, unit: str) -> None:
    text = f"id,created_at,cpu,memory,class\n4,{first},1,1,gold\n5,{second},1,1,gold\n"
    opened = table(tmp_path, text)
    assert opened.columns.of("admission").theirs == f"created_at{unit}"  # type: ignore[union-attr]
    found = opened.read(DEFAULT_CLASSES)
    assert found.workload.ids.tolist() == [4, 5]
    assert found.workload.admission.tolist() == pytest.approx([0.0, 60.5], abs=1e-6)
    assert found.epoch == "2023-11-14T22:13:20+00:00"


def test_times_from_a_begin_stay_as_they_are(tmp_path: Path) -> None:
    text = "id,submit,runtime_minutes,cpu,mem_mib,class\n4,100,2,500m,512,gold\n5,160,1.5,1,1024,gold\n"
    found = read(tmp_path, text)
    assert (found.epoch, found.workload.admission.tolist()) == ("", [100.0, 160.0])
    assert found.workload.duration.tolist() == [120.0, 90.0]
    assert found.workload.demand.tolist() == [[0.5, 512 * 2.0**20], [1.0, 2.0**30]]


def test_jobs_and_requests_may_be_texts(tmp_path: Path) -> None:
    text = "id,submit,cpu,memory,class,job\n0,0,1,1,gold,a\n1,0,1,1,gold,b\n2,0,1,1,gold,a\n3,0,1,1,gold,\n"
    job = read(tmp_path, text).workload.job
    assert job[0] == job[2] != job[1]
    assert len(set(job.tolist())) == 3
    numbers = text.replace(",a", ",7").replace(",b", ",9")
    assert read(tmp_path, numbers).workload.job.tolist() == [7, 9, 7, 3]


def test_further_resources_and_one_class_for_all(tmp_path: Path) -> None:
    text = "id,submit,cpu,memory,gpus\n0,0,1,1,2\n1,0,1,1,0\n"
    found = read(tmp_path, text, "resource:gpu=gpus, class='silver'").workload
    assert found.resources == ("cpu", "memory", "gpu")
    assert found.demand[:, 2].tolist() == [2.0, 0.0]
    assert {found.classes[one].name for one in found.service_class} == {"silver"}


def test_texts_of_ids_are_names_where_there_is_room_for_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header, "WORKLOAD_OPTIONAL", tuple(dict.fromkeys((*header.WORKLOAD_OPTIONAL, "name"))))
    opened = table(tmp_path)
    assert "name" in opened.names
    (batch,) = opened.batches()
    assert batch.columns["name"].to_pylist() == ["6f1c-aa", "6f1c-ab", "6f1c-ac"]
    assert list(opened._notes(""))[-1] == "ids are no numbers: rows are numbered from 0, their texts are the names"


# -- Parquet and frames ------------------------------------------------------------------------------------------------

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
COLUMNS = {
    "uid": pa.array(["a", "b", "c"]),
    "created": pa.array([BEGIN, BEGIN + timedelta(seconds=30), BEGIN + timedelta(hours=1)], pa.timestamp("ms", "UTC")),
    "lifetime": pa.array([timedelta(minutes=1), None, timedelta(seconds=2)], pa.duration("us")),
    "cores": pa.array([1, 2, None], pa.decimal128(6, 2)),
    "memory": pa.array(["1Gi", "512Mi", "1Ki"]).dictionary_encode(),
    "tier": pa.array(["gold", "gold", "silver"]).dictionary_encode(),
}


def typed() -> pa.Table:
    filled = pa.array([1, 2, 1], pa.decimal128(6, 2))
    return pa.table({**COLUMNS, "cores": filled})


def test_parquet_and_frames_bring_their_types(tmp_path: Path) -> None:
    file = tmp_path / "export.parquet"
    pq.write_table(typed(), file)
    for source in (file, typed()):
        found = Table(source, "guess").read(DEFAULT_CLASSES)
        assert found.epoch == "2026-03-01T00:00:00+00:00"
        assert found.workload.admission.tolist() == [0.0, 30.0, 3600.0]
        assert found.workload.duration.tolist() == [60.0, np.inf, 2.0]
        assert found.workload.demand.tolist() == [[1.0, 2.0**30], [2.0, 2.0**29], [1.0, 1024.0]]


def test_an_empty_amount_is_a_mistake_in_every_format(tmp_path: Path) -> None:
    with pytest.raises(InputError) as wrong:
        Table(pa.table(COLUMNS), "guess").read(DEFAULT_CLASSES)
    assert "cpu: found 'nothing'" in str(wrong.value)
    assert "2: cpu: found 'nothing'" in problems(tmp_path, EXPORT.replace(",500,", ",,"))


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "export.parquet"
    file.write_bytes(b"PAR1 not")
    with pytest.raises(InputError, match=r"export\.parquet.*a complete Parquet file"):
        Table(file, "guess")
    with pytest.raises(ConfigError, match=r"found w\.erl, expected a name ending in \.csv or \.parquet"):
        Table(tmp_path / "w.erl", "guess")
    with pytest.raises(InputError, match="nowhere"):
        Table(tmp_path / "nowhere.csv", "guess")
    with pytest.raises(ConfigError, match="found the column 'id' twice"):
        table(tmp_path, "id,id,cpu\n")


# -- what is wrong -----------------------------------------------------------------------------------------------------


def test_every_broken_cell_is_told_with_its_line_and_both_names(tmp_path: Path) -> None:
    text = (
        "uid,created,deleted,cpu,mem,tier\n"
        "a,2026-03-01T00:00:00Z,2026-02-28T00:00:00Z,1,1,gold\n"
        "b,last week,,1,1,gold\n"
        "c,2026-03-01T00:00:00Z,,one,1,gold\n"
        "d,2026-03-01T00:00:00Z,,1,1,golld\n"
        "a,2026-03-01T00:00:00Z,,1,-1,gold\n"
        "e,2026-03-01T00:00:00Z,,1,1\n"
        ",2026-03-01T00:00:00Z,,1,1,gold\n"
    )
    told = problems(tmp_path, text, "guess")
    assert "export.csv:2: end (deleted): found '2026-02-28T00:00:00Z', expected an instant after the admission" in told
    assert "export.csv:3: admission (created): found 'last week', expected seconds, an instant such as" in told
    assert "export.csv:4: cpu: found 'one', expected a number, or a quantity such as 500m or 1Gi" in told
    assert "export.csv:5: class: found 'golld'" in told
    assert "export.csv:6: memory: found '-1.0'" in told
    assert "export.csv:6: id: found 'the id of line 2 again', expected every id once" in told
    assert "export.csv:7: found '5 fields', expected 6 fields" in told
    assert "export.csv:8: id: found 'nothing', expected a text or a number" in told


def test_a_text_among_numbers_is_no_id(tmp_path: Path) -> None:
    rows = "".join(f"{number},0,1,1,gold\n" for number in range(5000))
    told = problems(tmp_path, f"id,submit,cpu,memory,class\n{rows}x,0,1,1,gold\n", "guess")
    assert "export.csv:5002: id: found 'x'" in told
