"""Which column of a table is which of ours: said, kept in a file, guessed by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import ConfigError
from slacktide.inputs.mapped.mapping import said, settled
from slacktide.inputs.mapped.values import instant, quantity

EXPORT = ["pod_uid", "region", "created_at", "deleted_at", "cpu_request_millicores", "mem_request_bytes", "tier"]
ISSUE = (
    "id=pod_uid, admission=created_at:ms, end=deleted_at:ms, cpu=cpu_request_millicores:m, memory=mem_request_bytes, "
    "class=tier"
)


def test_a_mapping_is_said_in_pairs() -> None:
    found = settled(said(ISSUE), EXPORT, "export.csv")
    assert str(found) == ISSUE
    assert (found.guessed, found.behind) == ((), ("region",))
    columns = {one.ours: (one.source, one.unit) for one in found.columns}
    assert columns["admission"] == ("created_at", "ms")
    assert columns["cpu"] == ("cpu_request_millicores", "m")
    assert columns["memory"] == ("mem_request_bytes", "")


def test_what_is_not_said_is_guessed_where_the_name_says_it() -> None:
    found = settled(said("class=tier, end=deleted_at:ms"), EXPORT, "export.csv")
    assert found.guessed == ("id", "admission", "cpu", "memory")
    assert str(found) == ISSUE.replace("created_at:ms", "created_at")  # how large its numbers are, the cells show


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["JobID", "SubmitTime_ms", "run_time_hours", "vCPUs", "RAM_GiB", "Tier"],
         "id=JobID, admission=SubmitTime_ms:ms, duration=run_time_hours:h, cpu=vCPUs, memory=RAM_GiB:Gi, class=Tier"),
        (["uid", "id", "start", "end", "duration", "cpu", "memory", "class"],
         "id=id, admission=start, end=end, cpu=cpu, memory=memory, class=class"),
        (["pod uid", "creationTimestamp", "cpu-request-m", "memory-request", "priorityClassName"],
         ("id=pod uid, admission=creationTimestamp, cpu=cpu-request-m:m, memory=memory-request, "
          "class=priorityClassName")),
    ],
)  # fmt: skip
def test_names_are_guessed_in_any_spelling(names: list[str], expected: str) -> None:
    assert str(settled(said("guess"), names, "t.csv")) == expected


def test_names_with_signs_stand_in_quotes_and_one_class_for_all_in_single_ones() -> None:
    names = ["a,b", "t:ms", "c=d", "m"]
    found = settled(said("""id="a,b", admission="t:ms":s, cpu="c=d", memory=m:Mi, class='gold'"""), names, "t.csv")
    assert [(one.source, one.unit, one.constant) for one in found.columns] == [
        ("a,b", "", False), ("t:ms", "s", False), ("c=d", "", False), ("m", "Mi", False), ("gold", "", True),
    ]  # fmt: skip
    assert settled(said(str(found)), names, "t.csv") == found


def test_what_is_kept_in_a_file_is_the_same_again(tmp_path: Path) -> None:
    names = [*EXPORT, "gpus"]
    found = settled(said({"resource:nvidia.com/gpu": "gpus", "class": "'gold'"}), names, "export.csv")
    file = tmp_path / "kept.yaml"
    file.write_text(found.kept())
    again = settled(said(file), names, "export.csv")
    assert (again.columns, again.guessed) == (found.columns, ())
    assert str(settled(said(str(file)), names, "export.csv")) == str(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id", "--columns: found 'id', expected pairs such as id=pod_uid"),
        ("id=", "--columns: found 'id=', expected pairs"),
        ("id=pod_uid class=tier", "--columns: found 'id=pod_uid class=tier', expected pairs"),
        ("uid=pod_uid", "--columns: found 'uid', expected one of id,"),
        ("id=pod_uid, id=tier", "--columns: id: named twice"),
        ("end=deleted_at, duration=tier", "found end and duration, expected one of them"),
        ("id=pod", "--columns: id: found 'pod', expected one of pod_uid,"),
        ("admission=created_at:Mi", "admission: found 'created_at:Mi', expected a unit of ns, us, ms, s, m, min, h, d"),
        ("cpu=tier:ms", "cpu: found 'tier:ms', expected a unit of n, u, m, k"),
        ("class=tier:s", "class: found 'tier:s', expected no unit behind a column of class"),
        ("memory=tier", "export.csv: class: nobody says which column, expected --columns \"class='gold' for one"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        settled(said(text), EXPORT, "export.csv")
    assert expected in str(wrong.value)


def test_what_nobody_names_is_told_with_the_columns_there_are() -> None:
    with pytest.raises(ConfigError) as wrong:
        settled(said("guess"), ["a", "b"], "t.csv")
    assert str(wrong.value) == (
        't.csv: id, admission, cpu, memory, class: nobody says which column, expected --columns "id=COLUMN" '
        "with one of a, b"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("35m", 0.035), ("1Gi", 2.0**30), ("7M", 7e6), ("1e3", 1000.0), ("2k", 2000.0), (".5", 0.5),
     ("100n", 1e-7), ("1.5Ki", 1536.0)],
)  # fmt: skip
def test_quantities_of_kubernetes(text: str, value: float) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "1 Gi", "Gi", "1g", "1KI", "0x10", "1e", "one"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # its text is the cell's
        quantity(text)


@pytest.mark.parametrize(
    "text",
    ["2023-11-14T22:13:20Z", "2023-11-14 22:13:20", "2023-11-14 22:13:20+00", "2023-11-14T23:13:20.000+01:00",
     "2023-11-14 22:13:20 UTC", "2023-11-14T22:13:20.000000000Z"],
)  # fmt: skip
def test_instants_as_databases_write_them(text: str) -> None:
    assert instant(text) == 1_700_000_000.0


@pytest.mark.parametrize("text", ["", "yesterday", "2023-13-01", "20231114", "1700000000s"])
def test_what_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        instant(text)
