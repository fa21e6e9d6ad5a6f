"""Reading piece by piece: which files can be, and that the pieces are what is read whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slacktide.errors import InputError
from slacktide.inputs import join, pieces, read_workload, write_workload
from slacktide.inputs.formats import csv_files, parquet_files
from slacktide.inputs.pieces import NotInPiecesError, in_pieces
from slacktide.model import DEFAULT_CLASSES, Workload

HEADER = "id,admission,duration,cpu,memory,class"
ROWS = ("1,0,,1,2,gold", "2,0,5,1,2,silver", "3,1.5,5,1,2,bronze", "5,1.5,7,0.1,2,gold", "9,4,7,0.1,2,gold")


@pytest.fixture(autouse=True)
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "SMALL_ROWS", 0)
    monkeypatch.setattr(pieces, "SMALL_BYTES", 0)
    monkeypatch.setattr(pieces, "MOST_IDS", 100)
    monkeypatch.setattr(parquet_files, "BATCH_ROWS", 2)
    monkeypatch.setattr(csv_files, "BATCH_ROWS", 2)


def text_file(folder: Path, rows: tuple[str, ...] = ROWS, more: str = "") -> Path:
    path = folder / "workload.csv"
    path.write_text("\n".join([HEADER + more, *rows]) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> list[Workload]:
    return list(in_pieces(path, DEFAULT_CLASSES).read())


def same(found: list[Workload], whole: Workload) -> None:
    made = join(found)
    for name in ("ids", "admission", "duration", "demand", "service_class", "job", "anti_affinity", "term"):
        column, expected = getattr(made, name), getattr(whole, name)
        assert column.dtype == expected.dtype
        assert np.array_equal(column, expected), name
    assert (made.terms, made.resources, made.classes) == (whole.terms, whole.resources, whole.classes)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "a == 1", "b > 2", "a==1"])), min_size=1, max_size=9),
    st.integers(1, 5),
    st.booleans(),
)
def test_pieces_are_what_is_read_whole(
    tmp_path: Path, drawn: list[tuple[int, str]], batch: int, shuffled: bool
) -> None:
    numbers = range(len(drawn), 0, -1) if shuffled else range(len(drawn))
    lines = [
        f"{number},{second},9,1,2,gold,{term}"
        for number, (second, term) in zip(numbers, sorted(drawn, key=lambda one: one[0]), strict=True)
    ]
    path = text_file(tmp_path, tuple(lines), ",constraints")
    whole = read_workload(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files, "BATCH_ROWS", batch)
        patch.setattr(csv_files, "BATCH_ROWS", batch)
        same(read(path), whole)
        write_workload(whole, tmp_path / "workload.parquet")
        same(read(tmp_path / "workload.parquet"), read_workload(tmp_path / "workload.parquet"))


def test_columns_that_say_nothing_unusual_do_not_matter(tmp_path: Path) -> None:
    more = ",kind,instances,approach,scale,resize,marks,budget,users,deadline,limit:cpu,user"
    path = text_file(tmp_path, tuple(row + ",service,1,independent,,,,,,inf,,ann" for row in ROWS), more)
    same(read(path), read_workload(path))


@pytest.mark.parametrize(
    ("more", "cell"),
    [
        (",instances", "2"),
        (",kind", "batch"),
        (",scale", "9=2"),
        (",resize", "9: cpu=2"),
        (",marks", "web"),
        (",budget", "web max-unavailable 1"),
        (",users", "n1"),
        (",deadline", "4"),
        (",limit:cpu", "5"),
    ],
)
def test_what_rows_have_to_do_with_each_other_is_read_whole(tmp_path: Path, more: str, cell: str) -> None:
    path = text_file(tmp_path, (*(row + "," for row in ROWS[:-1]), ROWS[-1] + "," + cell), more)
    with pytest.raises(NotInPiecesError, match="several instances, or columns about"):
        in_pieces(path, DEFAULT_CLASSES)


@pytest.mark.parametrize("place", range(1, 5))
def test_rows_out_of_order_are_said(tmp_path: Path, place: int) -> None:
    rows = list(ROWS)
    rows.insert(place, "7,5,9,1,2,gold")
    with pytest.raises(NotInPiecesError, match="not in order of admission; sort it once"):
        in_pieces(text_file(tmp_path, tuple(rows)), DEFAULT_CLASSES)


def test_large_ids_must_increase_and_small_ones_only_differ(tmp_path: Path) -> None:
    large = tuple(f"{number + 1000},{second},9,1,2,gold" for second, number in enumerate((3, 4, 9)))
    same(read(text_file(tmp_path, large)), read_workload(tmp_path / "workload.csv"))
    for ids in ((1003, 1009, 1004), (99, 3, 1000), (1000, 3, 2)):
        rows = tuple(f"{number},{second},9,1,2,gold" for second, number in enumerate(ids))
        with pytest.raises(NotInPiecesError, match="ids do not increase"):
            in_pieces(text_file(tmp_path, rows), DEFAULT_CLASSES)
    rows = tuple(f"{number},{second},9,1,2,gold" for second, number in enumerate((99, 3, 50)))
    same(read(text_file(tmp_path, rows)), read_workload(tmp_path / "workload.csv"))


@pytest.mark.parametrize(
    "content",
    [
        "\n".join([HEADER, *ROWS, "3,6,1,1,1,gold"]),  # an id again, in another piece
        "\n".join([HEADER, *ROWS, "7,6,1,1,1,golld"]),
        "\n".join([HEADER, *ROWS, "7,6,1,1"]),
        "\n".join([HEADER, *ROWS, '7,6,1,1,1,"gold']),
        "\n".join([HEADER, "7,6,1,1", "8,6,1,1"]),
        HEADER,
        "id,admission",
        "",
    ],
)
def test_what_is_broken_is_left_to_the_reading_of_the_whole(tmp_path: Path, content: str) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(content)
    with pytest.raises(NotInPiecesError, match=r"^$"):
        in_pieces(path, DEFAULT_CLASSES)
    with pytest.raises(InputError):
        read_workload(path)


@pytest.mark.parametrize("letters", [b"\xff", b"\0"])
def test_what_is_no_text_is_left_to_the_reading_of_the_whole(tmp_path: Path, letters: bytes) -> None:
    path = text_file(tmp_path)
    path.write_bytes(path.read_bytes() + b"7,6,1,1,1,gold" + letters)
    with pytest.raises(NotInPiecesError, match=r"^$"):
        in_pieces(path, DEFAULT_CLASSES)


@pytest.mark.parametrize("name", ["workload.erl", "nowhere.csv", "nowhere.parquet", "", "workload.txt"])
def test_other_files_are_left_to_the_reading_of_the_whole(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotInPiecesError, match=r"^$"):
        in_pieces(tmp_path / name, DEFAULT_CLASSES)


def test_small_files_are_read_whole_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "SMALL_ROWS", len(ROWS))
    monkeypatch.setattr(pieces, "SMALL_BYTES", 10_000)
    path = text_file(tmp_path)
    write_workload(read_workload(path), tmp_path / "workload.parquet")
    for one in (path, tmp_path / "workload.parquet"):
        with pytest.raises(NotInPiecesError, match=r"^$"):
            in_pieces(one, DEFAULT_CLASSES)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:-1],
        (*ROWS, "10,5,7,0.1,2,gold"),
        (*ROWS[:-1], "9,1,7,0.1,2,gold"),
        (*ROWS[:-1], "9,4,0,0.1,2,gold"),
        (*ROWS[:2], "4,4,9,0.1,2,gold", "5,3,9,0.1,2,gold", "9,4,9,0.1,2,gold"),
    ],
)
def test_a_file_that_changes_between_both_readings_is_refused(tmp_path: Path, rows: tuple[str, ...]) -> None:
    found = in_pieces(text_file(tmp_path), DEFAULT_CLASSES)
    text_file(tmp_path, rows)
    with pytest.raises(InputError):
        list(found.read())


def test_both_readings_tell_how_far_they_are(tmp_path: Path) -> None:
    path = text_file(tmp_path)
    write_workload(read_workload(path), path.with_suffix(".parquet"))
    looked: list[float] = []
    told: list[float] = []
    list(in_pieces(path.with_suffix(".parquet"), DEFAULT_CLASSES, looked.append).read(told.append))
    assert looked == told == [0.4, 0.8, 1.0]
