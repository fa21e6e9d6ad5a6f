"""CSV and Parquet: documented columns, every broken row explained, round trips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.readers import rows_of
from slacktide.errors import InputError, InputWarning, OutputError
from slacktide.inputs import (
    WorkloadParquetWriter,
    align,
    read_host_events,
    read_hosts,
    read_workload,
    write_hosts,
    write_workload,
)
from slacktide.inputs.columns.affinity_text import format_counted
from slacktide.inputs.columns.terms import format_attributes, format_term, parse_attributes, parse_term
from slacktide.inputs.rows import join, select
from slacktide.model import Constraint, Hosts, Label, ServiceClass, Term, Workload
from slacktide.model.host_events import EVENT_KINDS

HEADER = "id,admission,duration,cpu,memory,class,job,anti_affinity,constraints"
ROW = "1,0.5,60,0.5,0.25,gold,7,true,Ql > 4; wN == 2"
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)


def write(folder: Path, text: str, name: str = "workload.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def failure(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_workload(path)
    return caught.value


def columns(**changes: Any) -> dict[str, Any]:
    good: dict[str, Any] = {
        "id": [1, 2],
        "admission": [0.0, 1.0],
        "duration": [60.0, None],
        "cpu": [0.5, 0.25],
        "memory": [1, 2],
        "class": ["gold", "bronze"],
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def parquet(folder: Path, **changes: Any) -> Path:
    path = folder / "workload.parquet"
    pq.write_table(pa.table(columns(**changes)), path)
    return path


def a_workload() -> Workload:
    terms = (Term(), Term((Constraint("a b", "/=", 'x;"y"'), Constraint("o/", "==", "0"))))
    return Workload(
        ids=np.array([4, 2, 9]),
        admission=np.array([0.0, 0.1 + 0.2, 1e6]),
        duration=np.array([1.5, np.inf, 1 / 3]),
        demand=np.array([[0.1, 0.2, 0.0], [0.0, 1.0, 2.0], [5.0, 1e-9, 1.0]]),
        service_class=np.array([0, 2, 1], dtype=np.int16),
        job=np.array([4, 4, 1]),
        anti_affinity=np.array([True, True, False]),
        term=np.array([0, 1, 0], dtype=np.int32),
        resources=("cpu", "memory", "gpu"),
        terms=terms,
    )


def some_hosts() -> Hosts:
    return Hosts(
        ids=np.array([3, 1]),
        names=("first host", "b,c"),
        capacity=np.array([[1.0, 2.0, 0.0], [0.5, 0.25, 8.0]]),
        attributes=({"o/": "0", "a=b": "; "}, {}),
        resources=("cpu", "memory", "gpu"),
    )


def test_csv_columns_may_come_in_any_order_and_optional_ones_be_absent(tmp_path: Path) -> None:
    text = "class,id,memory,cpu,resource:gpu,duration,admission\nsilver,3,2,1,0.5,,4\nbronze,8,2,1,1,inf,2\n"
    workload = read_workload(write(tmp_path, text))
    assert workload.ids.tolist() == [8, 3]
    assert workload.resources == ("cpu", "memory", "gpu")
    assert workload.demand.tolist() == [[1, 2, 1], [1, 2, 0.5]]
    assert workload.duration.tolist() == [np.inf, np.inf]
    assert workload.job.tolist() == [8, 3]
    assert not workload.anti_affinity.any()
    assert not workload.terms[workload.term[0]].constraints


def test_parquet_means_the_same(tmp_path: Path) -> None:
    path = parquet(tmp_path, job=[None, 5], anti_affinity=[None, True], constraints=[None, "a < 3"])
    workload = read_workload(path)
    assert workload.duration.tolist() == [60.0, np.inf]
    assert workload.job.tolist() == [1, 5]
    assert workload.anti_affinity.tolist() == [False, True]
    assert [str(workload.terms[number]) for number in workload.term] == ["anywhere", "a < 3"]


@pytest.mark.parametrize(
    ("good", "bad", "column"),
    [
        ("1,0.5", "x,0.5", "id"),
        ("1,0.5", "1.0,0.5", "id"),
        ("1,0.5", "1_0,0.5", "id"),
        ("1,0.5", ",0.5", "id"),
        ("0.5,60", "-2e15,60", "admission"),
        ("0.5,60", "nan,60", "admission"),
        ("0.5,60", "inf,60", "admission"),
        ("0.5,60", ",60", "admission"),
        (",60,", ",0,", "duration"),
        (",60,", ",-inf,", "duration"),
        (",60,", ",1e999,", "duration"),
        (",60,", ",1e16,", "duration"),
        (",60,", ",sixty,", "duration"),
        ("0.5,0.25", "inf,0.25", "cpu"),
        ("0.5,0.25", "0.5,1_0", "memory"),
        ("0.5,0.25", "0.5,٣", "memory"),
        ("gold", "golden", "class"),
        ("gold", "", "class"),
        (",7,", ",7.5,", "job"),
        ("true", "maybe", "anti_affinity"),
        ("Ql > 4", "Ql >= 4", "constraints"),
        ("Ql > 4", "Ql 4", "constraints"),
        ("Ql > 4", "> 4", "constraints"),
        ("wN == 2", "wN == 2 3", "constraints"),
        ("wN == 2", "wN == 2,", ""),
    ],
)
def test_a_broken_csv_cell_is_named_with_line_and_column(tmp_path: Path, good: str, bad: str, column: str) -> None:
    broken = ROW.replace(good, bad, 1)
    assert broken != ROW
    error = failure(write(tmp_path, f"{HEADER}\n2{ROW[1:]}\n{broken}\n"))
    assert error.total == 1
    assert (error.problems[0].line, error.problems[0].column) == (3, column)


def test_the_nearest_right_name_is_offered(tmp_path: Path) -> None:
    assert "did you mean 'gold'" in str(failure(write(tmp_path, f"{HEADER}\n{ROW.replace('gold', 'golld')}\n")))
    error = failure(write(tmp_path, f"{HEADER.replace('admission', 'admision')}\n{ROW}\n"))
    assert error.total == 2
    assert "'admission'" in str(error)


@pytest.mark.parametrize(
    "header", [HEADER.replace("cpu", "id"), HEADER + ",anti_afinity", HEADER + ",resource:cpu", "id,class"]
)
def test_a_header_that_does_not_fit_is_refused(tmp_path: Path, header: str) -> None:
    assert failure(write(tmp_path, f"{header}\n{ROW}\n")).problems[0].line == 1


def named(classes: list[str]) -> str:
    rows = [f"{number},0,60,1,1,{name}" for number, name in enumerate(classes)]
    return "\n".join(["id,admission,duration,cpu,memory,class", *rows])


def test_a_cause_is_said_once_and_whoever_has_own_classes_is_told_where_they_stand(tmp_path: Path) -> None:
    error = failure(write(tmp_path, named(["web", "db", "db", "web"] * 75)))
    assert error.total == 300
    (line,) = str(error).splitlines()
    assert line.endswith(
        ":2: class: found 'web', expected one of gold, silver, bronze; classes of your own stand in a settings "
        "file, such as classes: [{name: mine, slo: 0.99, rank: 1}]: "
        "--config FILE, in a grid config: FILE (in Python config='FILE', or classes=[...]) "
        "(300 times; also lines 3 'db', 4, 5 'web', ...)"
    )


def test_who_has_own_classes_already_is_only_told_their_names(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_workload(write(tmp_path, named(["web", "db"])), classes=[ServiceClass("web", 0.9, 1)])
    assert str(caught.value).endswith(":3: class: found 'db', expected one of web")


def test_of_many_causes_ten_are_told_and_all_counted(tmp_path: Path) -> None:
    unknown = ",".join(f"limit:x{number}" for number in range(12))
    error = failure(write(tmp_path, f"id,admission,duration,cpu,memory,class,{unknown}\n"))
    assert (error.total, len(error.problems)) == (12, 10)
    assert str(error).endswith("... and 2 more (12 problems in all)")


def test_lines_are_counted_through_quoted_line_breaks_and_empty_lines(tmp_path: Path) -> None:
    rows = ['1,0,1,1,1,gold,1,true,"a == 1;\n b == 2"', "", "2,0,1,1,1,gold,1,true", "3,0,x,1,1,gold,1,true,"]
    error = failure(write(tmp_path, HEADER + "\n" + "\n".join(rows)))
    assert [one.line for one in error.problems] == [5, 6]


@pytest.mark.parametrize("text", ["", "\n", HEADER, HEADER + "\n", f'{HEADER}\n1,"', f"{HEADER}\n{ROW}\0"])
def test_csv_without_rows_or_cut_off_is_refused(tmp_path: Path, text: str) -> None:
    assert failure(write(tmp_path, text)).total >= 1


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"id": [1, 1]}, "id"),
        ({"id": [1, None]}, "id"),
        ({"id": [1.0, 2.0]}, "id"),
        ({"id": ["1", "2"]}, "id"),
        ({"admission": [0.0, -2e15]}, "admission"),
        ({"admission": [0.0, float("nan")]}, "admission"),
        ({"admission": [0.0, None]}, "admission"),
        ({"duration": [1.0, 0.0]}, "duration"),
        ({"duration": [1.0, float("nan")]}, "duration"),
        ({"cpu": [1.0, float("inf")]}, "cpu"),
        ({"cpu": [1.0, None]}, "cpu"),
        ({"memory": [1, 10**16]}, "memory"),
        ({"class": ["gold", "tin"]}, "class"),
        ({"class": ["gold", None]}, "class"),
        ({"class": [1, 2]}, "class"),
        ({"anti_affinity": ["yes", "no"]}, "anti_affinity"),
        ({"constraints": ["", "a ~ b"]}, "constraints"),
        ({"constraint": ["", ""]}, "constraint"),
        ({"cpu": None}, "cpu"),
    ],
)
def test_a_broken_parquet_column_is_named(tmp_path: Path, changes: dict[str, Any], column: str) -> None:
    error = failure(parquet(tmp_path, **changes))
    assert error.total == 1
    assert error.problems[0].column == column
    assert error.problems[0].line in (0, 2)


def test_many_row_groups_are_read_in_order_and_lines_counted_through(tmp_path: Path) -> None:
    count = 300_000
    table = pa.table(
        {
            "id": np.arange(count),
            "admission": np.arange(count, dtype=np.float64),
            "duration": np.full(count, 5.0),
            "cpu": np.where(np.arange(count) == 290_000, -1.0, 1.0),
            "memory": np.ones(count),
            "class": pa.array(["gold", "bronze"] * (count // 2)),
            "constraints": pa.array([f"k == {row % 1000}" for row in range(count)]),
        }
    )
    pq.write_table(table, tmp_path / "w.parquet", row_group_size=7_000)
    error = failure(tmp_path / "w.parquet")
    assert [(one.line, one.column) for one in error.problems] == [(290_001, "cpu")]
    pq.write_table(table.slice(0, 280_000), tmp_path / "w.parquet", row_group_size=7_000)
    workload = read_workload(tmp_path / "w.parquet")
    assert np.array_equal(workload.ids, np.arange(280_000))
    assert workload.terms[workload.term[279_999]].constraints == (Constraint("k", "==", "999"),)
    assert len(workload.terms) == 1001
    assert workload.service_class[:4].tolist() == [0, 2, 0, 2]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_names_go_through_and_further_columns_stay_behind_in_one_line(tmp_path: Path, suffix: str) -> None:
    table = pa.table(columns(name=["web", ""], namespace=["shop", "shop"], team=["a", "b"], **{"cost center": [7, 8]}))
    path = tmp_path / f"w.{suffix}"
    if suffix == "csv":
        pacsv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    with pytest.warns(InputWarning, match=r"w\.\w+: 2 further columns stay behind: team, cost center$"):
        found = read_workload(path)
    assert found.label is not None
    assert [found.labels[code] for code in found.label.tolist()] == [Label("shop", "", "web"), Label("shop")]
    write_workload(found, again := tmp_path / f"again.{suffix}")
    other = read_workload(again)  # all columns of which are read
    assert other.label is not None
    assert [other.labels[code] for code in other.label.tolist()] == [Label("shop", "", "web"), Label("shop")]


def test_names_may_be_numbers(tmp_path: Path) -> None:
    pq.write_table(pa.table(columns(name=[7, 8])), path := tmp_path / "w.parquet")
    found = read_workload(path)
    assert found.label is not None
    assert [found.labels[code].name for code in found.label.tolist()] == ["7", "8"]


def test_a_column_of_hosts_that_nothing_reads_stays_behind(tmp_path: Path) -> None:
    path = write(tmp_path, "id,name,cpu,memory,rack\n1,a,8,8,r1\n", "h.csv")
    with pytest.warns(InputWarning, match=r"1 further column stays behind: rack \(.* attributes"):
        assert read_hosts(path).names == ("a",)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_is_written_reads_back_equal(tmp_path: Path, suffix: str) -> None:
    workload, hosts = a_workload(), some_hosts()
    write_workload(workload, tmp_path / f"w.{suffix}")
    write_hosts(hosts, tmp_path / f"h.{suffix}")
    again = read_workload(tmp_path / f"w.{suffix}")
    assert rows_of(again) == rows_of(workload)
    assert again.resources == workload.resources
    back = read_hosts(tmp_path / f"h.{suffix}")
    assert (back.names, back.attributes, back.resources) == (hosts.names, hosts.attributes, hosts.resources)
    assert np.array_equal(back.capacity, hosts.capacity)
    assert np.array_equal(back.ids, hosts.ids)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"h.{suffix}", f"w.{suffix}"]


@given(st.lists(st.tuples(WORDS, st.sampled_from(["==", "/=", "<", ">"]), WORDS), max_size=4))
def test_every_term_survives_its_text(parts: list[tuple[str, Any, str]]) -> None:
    term = Term(tuple(Constraint(*part) for part in parts))
    assert parse_term(format_term(term)) == term


@given(st.dictionaries(WORDS, WORDS, max_size=4))
def test_all_attributes_survive_their_text(attributes: dict[str, str]) -> None:
    assert parse_attributes(format_attributes(attributes)) == attributes


def test_a_slash_belongs_to_the_key_or_to_the_operator() -> None:
    assert parse_term("o/ == 0").constraints == (Constraint("o/", "==", "0"),)
    assert parse_term("o /= 0").constraints == (Constraint("o", "/=", "0"),)
    assert parse_term("o//=0").constraints == (Constraint("o/", "/=", "0"),)


def test_pieces_written_one_by_one_read_as_one_workload(tmp_path: Path) -> None:
    workload = a_workload()
    with WorkloadParquetWriter(tmp_path / "w.parquet") as writer:
        writer.append(select(workload, slice(0, 2)))
        writer.append(select(workload, slice(2, 2)))
        writer.append(select(workload, slice(2, 3)))
    assert writer.rows == 3
    assert rows_of(read_workload(tmp_path / "w.parquet")) == rows_of(workload)
    assert rows_of(join([select(workload, slice(0, 2)), select(workload, slice(2, 3))])) == rows_of(workload)


def write_pieces(path: Path, *pieces: Workload | BaseException) -> None:
    """Write piece by piece; an exception among the pieces is raised in its turn."""
    with WorkloadParquetWriter(path) as writer:
        for piece in pieces:
            if isinstance(piece, BaseException):
                raise piece
            writer.append(piece)


def test_an_interrupted_writer_leaves_the_earlier_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "w.parquet"
    write_workload(a_workload(), path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_pieces(path, select(a_workload(), slice(0, 1)), KeyboardInterrupt())
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["w.parquet"]


def test_pieces_must_agree_and_targets_must_be_writable(tmp_path: Path) -> None:
    other = replace(a_workload(), resources=("cpu", "memory", "fpga"))
    with pytest.raises(OutputError, match="same classes"):
        write_pieces(tmp_path / "w.parquet", a_workload(), other)
    with pytest.raises(OutputError, match="at least one piece"):
        write_pieces(tmp_path / "w.parquet")
    for suffix in ("csv", "parquet"):
        with pytest.raises(OutputError):
            write_workload(a_workload(), tmp_path / "no" / f"w.{suffix}")
        with pytest.raises(OutputError):
            write_hosts(some_hosts(), tmp_path / "no" / f"h.{suffix}")
    with pytest.raises(OutputError):
        write_workload(a_workload(), tmp_path / "w.xlsx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("1,b,1,1,", "id"),
        ("2,a,1,1,", "name"),
        ("2,,1,1,", "name"),
        ("2,b,-1,1,", "cpu"),
        ("2,b,1,nan,", "memory"),
        ("2,b,1,1,k", "attributes"),
        ("2,b,1,1,k=1; k=2", "attributes"),
        ("2,b,1,1", ""),
    ],
)
def test_a_broken_host_row_is_named(tmp_path: Path, row: str, column: str) -> None:
    path = write(tmp_path, f"id,name,cpu,memory,attributes\n1,a,1,1,k=1\n{row}\n", "hosts.csv")
    with pytest.raises(InputError) as caught:
        read_hosts(path)
    assert [(one.line, one.column) for one in caught.value.problems] == [(3, column)]


def test_align_gives_both_the_same_resources() -> None:
    workload, hosts = align(a_workload(), some_hosts())
    assert workload.resources == hosts.resources == ("cpu", "memory", "gpu")
    plain = replace(a_workload(), demand=a_workload().demand[:, [1, 0]], resources=("memory", "cpu"))
    aligned, hosts = align(plain, some_hosts())
    assert aligned.resources == hosts.resources == ("cpu", "memory", "gpu")
    assert np.array_equal(aligned.demand[:, :2], a_workload().demand[:, :2])
    assert not aligned.demand[:, 2].any()


def test_align_refuses_a_resource_that_no_host_offers() -> None:
    hosts = some_hosts()
    fewer = Hosts(hosts.ids, hosts.names, hosts.capacity[:, :2], hosts.attributes)
    with pytest.raises(InputError, match="gpu") as caught:
        align(a_workload(), fewer, hosts_file="h.csv")
    assert caught.value.problems[0].file == "h.csv"


def test_host_events_are_sorted_by_time_and_found_by_name_or_id(tmp_path: Path) -> None:
    path = write(tmp_path, 'time,host,event\n7,3,repair\n5,"b,c",drain\n5,first host,fail\n', "events.csv")
    found = read_host_events(path, some_hosts())
    assert found.times.tolist() == [5.0, 5.0, 7.0]
    assert found.hosts.tolist() == [1, 0, 0]
    assert found.kinds.tolist() == [1, 0, 2]
    assert [array.dtype.name for array in (found.times, found.hosts, found.kinds)] == ["float64", "int64", "int8"]
    assert np.isnan(found.amounts).all()


def test_host_events_may_say_what_a_host_has_and_what_others_take(tmp_path: Path) -> None:
    rows = "8,1,others,gpu=1\n2,1,capacity,memory=8 cpu=0.5\n9,3,fail,\n"
    found = read_host_events(write(tmp_path, f"time,host,event,amounts\n{rows}", "events.csv"), some_hosts())
    assert [EVENT_KINDS[kind] for kind in found.kinds.tolist()] == ["capacity", "others", "fail"]
    assert some_hosts().resources == ("cpu", "memory", "gpu")
    expected = [[0.5, 8.0, np.nan], [np.nan, np.nan, 1.0], [np.nan] * 3]
    assert np.array_equal(found.amounts, expected, equal_nan=True)


@pytest.mark.parametrize(
    ("column", "row", "expected"),
    [
        ("amounts", "1,1,others,", "amounts such as 'cpu=2 memory=4', 0 or more"),
        ("amounts", "1,1,capacity,cpu=-1", "amounts such as"),
        ("amounts", "1,1,capacity,cpu=1 cpu=2", "every resource once"),
        ("amounts", "1,1,capacity,cpus=1", "resources of the hosts (cpu, memory, gpu)"),
        ("amounts", "1,1,fail,cpu=1", "nothing: amounts go with 'capacity' and 'others' only"),
        ("marks", "1,1,marks,", "how many carry a mark, such as '2 web; 0 port:8080', from 0 to 100,000,000"),
        ("marks", "1,1,marks,-1 web", "how many carry a mark"),
        ("marks", "1,1,marks,web", "how many carry a mark"),
        ("marks", "1,1,marks,1 web; 2 web", "every mark once"),
        ("marks", "1,1,fail,1 web", "nothing: marks go with 'marks' only"),
    ],
)
def test_what_does_not_go_with_its_event_is_named(tmp_path: Path, column: str, row: str, expected: str) -> None:
    path = write(tmp_path, f"time,host,event,{column}\n1,1,fail,\n{row}\n", "events.csv")
    with pytest.raises(InputError) as caught:
        read_host_events(path, some_hosts())
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (3, column)
    assert expected in problem.expected


def test_host_events_may_say_which_marks_others_carry(tmp_path: Path) -> None:
    rows = '8,1,marks,2 web; 0 port:80\n2,1,fail,\n3,3,marks,"1 ""a b"";"\n'
    found = read_host_events(write(tmp_path, f"time,host,event,marks\n{rows}", "events.csv"), some_hosts())
    assert [EVENT_KINDS[kind] for kind in found.kinds.tolist()] == ["fail", "marks", "marks"]
    assert found.marks == {1: (("a b", 1),), 2: (("web", 2), ("port:80", 0))}
    assert format_counted(found.marks[2]) == "2 web; 0 port:80"
    assert format_counted(found.marks[1]) == '1 "a b"'


def test_amounts_are_missed_where_the_file_has_no_such_column(tmp_path: Path) -> None:
    path = write(tmp_path, "time,host,event\n1,1,fail\n2,1,others\n", "events.csv")
    with pytest.raises(InputError, match="amounts") as caught:
        read_host_events(path, some_hosts())
    assert [one.line for one in caught.value.problems] == [3]


@pytest.mark.parametrize(
    ("row", "column"),
    [("x,1,fail", "time"), ("-1,1,fail", "time"), ("1,2,fail", "host"), ("1,1,explode", "event"), ("1,1", "")],
)
def test_a_broken_host_event_is_named(tmp_path: Path, row: str, column: str) -> None:
    path = write(tmp_path, f"time,host,event\n1,1,fail\n{row}\n", "events.csv")
    with pytest.raises(InputError) as caught:
        read_host_events(path, some_hosts())
    assert [(one.line, one.column) for one in caught.value.problems] == [(3, column)]


def test_long_csv_files_are_read_in_parts_that_fit_together(tmp_path: Path) -> None:
    rows = [f"{row},{row},1,1,1,gold,{row // 2},false,k == {row % 3}" for row in range(140_000)]
    workload = read_workload(write(tmp_path, "\n".join([HEADER, *rows])))
    assert np.array_equal(workload.ids, np.arange(140_000))
    assert np.array_equal(workload.job, np.arange(140_000) // 2)
    assert [str(workload.terms[number]) for number in workload.term[131_070:131_073]] == ["k == 0", "k == 1", "k == 2"]
    assert len(workload.terms) == 4
    rows[139_000] = rows[139_000].replace("gold", "tin")
    rows[139_001] = rows[139_001].replace("139001", "7", 1)
    error = failure(write(tmp_path, "\n".join([HEADER, *rows])))
    assert [(one.line, one.column) for one in error.problems] == [(139_002, "class"), (139_003, "id")]
