"""The published files of Erlang terms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reference.erlang import DATA
from reference.readers import erlang_rows, rows_of
from slacktide.errors import InputError
from slacktide.inputs import DEFAULT_PRIORITIES, read_delays, read_hosts, read_workload
from slacktide.inputs.formats.erlang_exact import workload_columns
from slacktide.inputs.problems import Problems
from slacktide.model import DEFAULT_CLASSES, Constraint, ServiceClass

ROW = '{5,1,10,60,0.5,0.25,9,0,[{"Ql",">","4"},{"o/","==","0"}]}.'
published = pytest.mark.skipif(not DATA.is_dir(), reason=f"the published files are not at {DATA}")


def write(folder: Path, text: str | bytes, name: str = "workload.erl") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problem(folder: Path, text: str | bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_workload(write(folder, text))
    return caught.value


def test_a_row_means_what_its_fields_say(tmp_path: Path) -> None:
    workload = read_workload(write(tmp_path, ROW + "\n"))
    assert workload.ids.tolist() == [1]
    assert workload.admission.tolist() == [5.0]
    assert workload.duration.tolist() == [60.0]
    assert workload.demand.tolist() == [[0.5, 0.25]]
    assert workload.job.tolist() == [10]
    assert workload.terms[workload.term[0]].constraints == (Constraint("Ql", ">", "4"), Constraint("o/", "==", "0"))


@pytest.mark.parametrize(
    ("priority", "name"), [(11, "gold"), (9, "gold"), (8, "silver"), (2, "silver"), (1, "bronze"), (0, "bronze")]
)
def test_priority_decides_the_class(tmp_path: Path, priority: int, name: str) -> None:
    workload = read_workload(write(tmp_path, ROW.replace(",9,0,", f",{priority},0,")))
    assert workload.classes[workload.service_class[0]].name == name


def test_the_mapping_of_priorities_can_be_given(tmp_path: Path) -> None:
    classes = (ServiceClass("production", 0.99, 1), ServiceClass("free", 0.5, 2))
    path = write(tmp_path, ROW + "\n" + ROW.replace("{5,1,", "{5,2,").replace(",9,0,", ",8,0,"))
    workload = read_workload(path, classes=classes, priorities=((9, "production"), (0, "free")))
    assert workload.service_class.tolist() == [0, 1]


def test_a_class_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="priority"):
        read_workload(write(tmp_path, ROW), classes=DEFAULT_CLASSES[1:])


def test_rows_are_sorted_by_admission_and_equal_ones_keep_their_order(tmp_path: Path) -> None:
    rows = [ROW.replace("{5,1,", f"{{{time},{number},") for time, number in [(7, 3), (5, 9), (7, 1), (5, 2)]]
    assert read_workload(write(tmp_path, "\n".join(rows))).ids.tolist() == [9, 2, 3, 1]


def test_blanks_comments_and_escapes_are_understood(tmp_path: Path) -> None:
    text = '% a comment\r\n\r\n { 5 , 1,10,60,0.5,0.25, 9,true,[ {"a\\"b","==","ü"} ] } .\r\n'
    workload = read_workload(write(tmp_path, text))
    assert workload.anti_affinity.tolist() == [True]
    assert workload.terms[workload.term[0]].constraints == (Constraint('a"b', "==", "ü"),)


@pytest.mark.parametrize(
    ("good", "bad", "column"),
    [
        ("{5,", "{-2000000000000000,", "time"),
        ("{5,", "{nan,", "time"),
        ("{5,", "{2000000000000000,", "time"),
        (",1,10", ",1.5,10", "task"),
        (",1,10", ",-1,10", "task"),
        (",1,10", ",1,99999999999999999999", "job"),
        (",60,", ",0,", "duration"),
        (",60,", ",-60,", "duration"),
        (",60,", ",inf,", "duration"),
        (",60,", ",1.0e999,", "duration"),
        (",60,", ",,", "duration"),
        (",0.5,", ",-0.5,", "cpu"),
        (",0.5,", ",0.5x,", "cpu"),
        (",0.25,", ",1.0e16,", "ram"),
        (",9,0", ",gold,0", "priority"),
        (",9,0", ",-1,0", "priority"),
        (",9,0", ",9,2", "anti_affinity"),
        ('">"', '">="', "constraints"),
        ('"Ql"', "Ql", "constraints"),
        ('},{"o/"', '}{"o/"', "constraints"),
        ('"0"}]', '"0"},]', "constraints"),
        ("]}.", "]}", ""),
        ("]}.", "]", ""),
        (",9,0,", ",0,", ""),
    ],
)
def test_a_broken_field_is_named_with_line_and_value(tmp_path: Path, good: str, bad: str, column: str) -> None:
    second = ROW.replace("{5,1,10", "{5,2,10")
    broken = ROW.replace(good, bad, 1)
    assert broken != ROW
    error = problem(tmp_path, f"{second}\n{broken}\n")
    assert error.total == 1
    assert (error.problems[0].line, error.problems[0].column) == (2, column)
    assert error.problems[0].expected


def test_all_problems_are_counted_and_one_of_each_cause_is_told(tmp_path: Path) -> None:
    rows = [ROW.replace("{5,1,", f"{{5,{number},").replace(",60,", ",x,").replace("0.5", "-1") for number in range(40)]
    error = problem(tmp_path, "\n".join(rows))
    assert error.total == 80
    assert [(one.line, one.times) for one in error.problems] == [(1, 40), (1, 40)]
    assert str(error).count("(40 times; also lines 2, 3, 4, ...)") == 2


def test_a_number_used_twice_is_reported_where_it_comes_again(tmp_path: Path) -> None:
    error = problem(tmp_path, f"{ROW}\n{ROW}\n")
    assert [(one.line, one.column, one.value) for one in error.problems] == [(2, "task", "1")]


@pytest.mark.parametrize("text", ["", "\n\n", "% nothing\n"])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    assert problem(tmp_path, text).total == 1


def test_what_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    error = problem(tmp_path, ROW.encode() + b"\n\xff\xfe\n")
    assert error.problems[0].line == 2
    assert "UTF-8" in str(error)


@pytest.mark.parametrize(
    "name", ["missing.erl", "folder.erl", "workload.txt", "missing.parquet", "folder.csv", "x\0.csv"]
)
def test_what_is_no_input_file_is_refused(tmp_path: Path, name: str) -> None:
    for folder in ("folder.erl", "folder.csv"):
        (tmp_path / folder).mkdir()
    write(tmp_path, ROW, "workload.txt")
    for read in (read_workload, read_hosts):
        with pytest.raises(InputError):
            read(tmp_path / name)


def test_hosts_have_capacity_and_attributes(tmp_path: Path) -> None:
    path = write(
        tmp_path, '{3813386963,"Host_1",0.5,0.25,[{"Ql","3"},{"o/","0"}]}.\n{2,"Host_2",1,1,[]}.\n', "hosts.erl"
    )
    hosts = read_hosts(path)
    assert hosts.ids.tolist() == [3813386963, 2]
    assert hosts.names == ("Host_1", "Host_2")
    assert hosts.capacity.tolist() == [[0.5, 0.25], [1.0, 1.0]]
    assert hosts.attributes == ({"Ql": "3", "o/": "0"}, {})


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('{1,"a",-1,1,[]}.', "cpu"),
        ('{1,"a",1,x,[]}.', "ram"),
        ('{x,"a",1,1,[]}.', "id"),
        ('{1,"",1,1,[]}.', "name"),
        ('{1,"a",1,1,[{"k","1"},{"k","2"}]}.', "attributes"),
        ('{1,"a",1,1}.', ""),
        ('{0,"second",1,1,[]}.', "id"),
        ('{1,"first",1,1,[]}.', "name"),
    ],
)
def test_a_broken_host_is_named(tmp_path: Path, text: str, column: str) -> None:
    path = write(tmp_path, '{0,"first",1,1,[]}.\n' + text, "hosts.erl")
    with pytest.raises(InputError) as caught:
        read_hosts(path)
    assert [(one.line, one.column) for one in caught.value.problems] == [(2, column)]


def test_delays_come_from_terms_or_plain_lines(tmp_path: Path) -> None:
    assert read_delays(write(tmp_path, "{9}.\n{2.5}.\n", "hot.erl")).tolist() == [9.0, 2.5]
    assert read_delays(write(tmp_path, "9\n2.5\n", "hot.txt")).tolist() == [9.0, 2.5]
    assert read_delays(write(tmp_path, "seconds\n9\n\n", "hot.csv")).tolist() == [9.0]


@pytest.mark.parametrize(
    ("name", "text"),
    [("d.erl", "{9}.\n{-1}."), ("d.erl", "{9}.\n{x}."), ("d.erl", "{9}.\n9"), ("d.txt", "9\nnan"), ("d.csv", "9\n1,2")],
)
def test_a_broken_delay_is_named(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_delays(write(tmp_path, text, name))
    assert [one.line for one in caught.value.problems] == [2]


@pytest.mark.parametrize("name", ["d.erl", "d.txt"])
def test_no_delay_at_all_is_refused(tmp_path: Path, name: str) -> None:
    for text in ("", "\n", "seconds\n"):
        with pytest.raises(InputError):
            read_delays(write(tmp_path, text, name))


@published
@pytest.mark.parametrize(
    "name",
    ["one-hour/workload-higher-contention.erl", "one-hour/workload-lower-contention.erl", "validation1/workload.erl"],
)
def test_published_workloads_read_as_a_slow_reading_and_the_exact_path_say(name: str) -> None:
    text = (DATA / name).read_text()
    workload = read_workload(DATA / name)
    assert rows_of(workload) == erlang_rows(text)
    problems = Problems(name)
    exact = workload_columns(text, DEFAULT_CLASSES, DEFAULT_PRIORITIES, problems)
    assert problems.total == 0
    assert np.array_equal(exact.demand, workload.demand)
    assert exact.terms == workload.terms
    assert np.array_equal(exact.term, workload.term)


@published
def test_published_hosts_and_delays_have_their_totals() -> None:
    hosts = read_hosts(DATA / "one-hour" / "hosts-620.erl")
    assert len(hosts) == 620
    assert hosts.capacity.sum(axis=0).tolist() == pytest.approx([330.5, 296.6521])
    assert len(read_hosts(DATA / "validation1" / "hosts-20.erl")) == 20
    for name in ("hot", "cold"):
        lines = (DATA / "overheads" / f"{name}.erl").read_text().split()
        assert read_delays(DATA / "overheads" / f"{name}.erl").tolist() == [float(line[1:-2]) for line in lines]


def test_reading_terms_and_csv_imports_neither_pyarrow_nor_polars(tmp_path: Path) -> None:
    path = write(tmp_path, ROW)
    program = (
        "import sys; from slacktide.inputs import read_workload; "
        f"read_workload({str(path)!r}); print({{'pyarrow', 'polars', 'pandas'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
