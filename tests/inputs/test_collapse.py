"""Requests of several instances back to rows of a file, whole or in pieces; what no row stands for is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.readers import asked_of, csv_asked, csv_rows, rows_of
from slacktide.errors import OutputError
from slacktide.inputs import WorkloadParquetWriter, join, read_workload, write_workload
from slacktide.inputs.columns.instances import format_scale, parse_scale
from slacktide.inputs.rows import select
from slacktide.model import CONCURRENT, Workload
from support.request_files import example, read, row, same

SCALE = st.dictionaries(st.sampled_from([0.5, 3.0, 7.25, 10.0, 1 / 3 + 5]), st.integers(0, 4), max_size=3)


@st.composite
def cells_of(draw: st.DrawFn) -> dict[str, object]:
    kind = draw(st.sampled_from(["", "service", "batch"]))
    if kind == "batch":
        return {
            "kind": kind,
            "completions": draw(st.sampled_from(["", 1, 2, 5])),
            "parallelism": draw(st.sampled_from(["", 1, 2, 3, 9])),
            "approach": draw(st.sampled_from(["", "aggregated"])),
        }
    return {
        "kind": kind,
        "instances": draw(st.sampled_from(["", 1, 2, 3])),
        "approach": draw(st.sampled_from(["", "independent", "concurrent", "aggregated"])),
        "scale": format_scale(tuple(sorted(draw(SCALE).items()))),
    }


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.sampled_from([0.0, 0.25]), cells_of()), min_size=1, max_size=8))
def test_what_is_read_is_right_and_what_is_written_reads_back_equal(
    tmp_path: Path, rows: list[tuple[float, dict[str, object]]]
) -> None:
    lines = [row(7 * (number + 1) % 11, admission, **cells) for number, (admission, cells) in enumerate(rows)]
    workload = read(tmp_path, *lines)
    text = (tmp_path / "w.csv").read_text()
    assert asked_of(workload) == csv_asked(text)
    assert rows_of(workload) == csv_rows(text)
    for suffix in ("csv", "parquet"):
        write_workload(workload, tmp_path / f"again.{suffix}")
        assert same(read_workload(tmp_path / f"again.{suffix}"), workload)


@given(SCALE)
def test_every_scaling_survives_its_text(events: dict[float, int]) -> None:
    scale = tuple(sorted(events.items()))
    assert parse_scale(format_scale(scale)) == scale


def changed(workload: Workload, name: str, place: int, value: object) -> Workload:
    """The workload, or its requests, with one value of one array changed."""
    assert workload.requests is not None
    owner = workload if hasattr(workload, name) else workload.requests
    array = getattr(owner, name).copy()
    array[place] = value
    if owner is workload:
        return replace(workload, **{name: array})
    return replace(workload, requests=replace(workload.requests, **{name: array}))


@pytest.mark.parametrize(
    ("name", "place", "value", "part"),
    [
        ("duration", 5, 1.0, "request 8: its instances differ in duration"),
        ("demand", 5, 9.0, "request 8: its instances differ in demand"),
        ("service_class", 1, 0, "request 6: its instances differ in service_class"),
        ("term", -1, 0, "request 8: its instances differ in term"),
        ("ids", 2, 99, "request 6: its instances differ in ids"),
        ("ids", 0, 99, "request 2: its instances have the id 99"),
        ("admission", 3, 1.5, "request 6: its instances are not all admitted at once"),
        ("admission", -1, 1700.0, "request 8: its instances are not all admitted at once"),
        ("request", slice(0, 1), 2, "request 2: expected at least one instance"),
        ("scale_replicas", 0, 6, "request 8: its instances are not all admitted at once"),
        ("scale_replicas", 1, -1, "request 8: scale: found '600=5; 1200=-1; 1800=3'"),
        ("scale_time", 1, 600.0, "request 8: scale: found '600=5; 600=2; 1800=3'"),
        ("scale_time", 0, 5.0, "request 8: scale: found '5=5; 1200=2; 1800=3', expected seconds after"),
        ("scale_request", slice(None), 3, "request 6: scale: found .* only a service"),
        ("approach", 2, CONCURRENT, "request 5: approach: found 'concurrent', expected aggregated"),
        ("parallelism", 1, 3, "request 2: parallelism: found '3', expected nothing"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_no_row_stands_for_is_refused(
    tmp_path: Path, name: str, place: int, value: object, part: str, suffix: str
) -> None:
    workload = changed(example(tmp_path), name, place, value)
    with pytest.raises(OutputError, match=part):
        write_workload(workload, tmp_path / f"w.{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["example.csv"]


def test_ids_given_twice_and_rows_in_turns_are_refused(tmp_path: Path) -> None:
    workload = read(tmp_path, row(1, instances=2), row(2, instances=2))
    assert workload.requests is not None
    twice = replace(workload, ids=np.ones(4, np.int64), requests=replace(workload.requests, ids=np.ones(2, np.int64)))
    with pytest.raises(OutputError, match="request 1: expected an id that no other"):
        write_workload(twice, tmp_path / "x.csv")
    with pytest.raises(OutputError, match="take turns"):
        write_workload(select(workload, np.array([0, 2, 1, 3])), tmp_path / "x.csv")
    scaled = read(tmp_path, row(1, scale="5=0"), row(2, scale="5=0"))
    assert scaled.requests is not None
    turned = replace(scaled.requests, scale_request=np.array([1, 0], np.int32))
    with pytest.raises(OutputError, match="order of time, then of requests"):
        write_workload(replace(scaled, requests=turned), tmp_path / "x.csv")


def test_a_limit_that_is_none_is_written_as_none(tmp_path: Path) -> None:
    workload = changed(example(tmp_path), "parallelism", 2, 4)
    write_workload(workload, tmp_path / "w.parquet")
    again = read_workload(tmp_path / "w.parquet").requests
    assert again is not None
    assert again.parallelism.tolist() == [0, 0, 0, 0]


def test_pieces_are_written_and_joined_as_one_workload(tmp_path: Path) -> None:
    first = read(tmp_path, row(1, 0, instances=2, scale="3=3; 9.5=1"), row(2, 0.5, kind="batch", completions=2))
    second = read(tmp_path, row(3, 4), row(4, 4, scale="9=2; 10=0"))
    with WorkloadParquetWriter(tmp_path / "w.parquet") as writer:
        writer.append(first)
        writer.append(select(first, slice(0)))
        writer.append(second)
    assert writer.rows == 4
    whole = read_workload(tmp_path / "w.parquet")
    assert same(whole, join([first, second]))
    assert asked_of(whole) == [*(asked_of(first) or ()), *(asked_of(second) or ())]
    plain = read(tmp_path, row(5, 20))
    with pytest.raises(ValueError, match="all or none"):
        join([second, plain])
    with WorkloadParquetWriter(tmp_path / "x.parquet") as writer:
        writer.append(plain)
        with pytest.raises(OutputError, match="all of them with requests"):
            writer.append(second)


def test_requests_are_selected_whole(tmp_path: Path) -> None:
    workload = example(tmp_path)
    assert workload.request is not None
    chosen = select(workload, np.flatnonzero(np.isin(workload.request, [0, 3])))
    assert chosen.requests is not None
    assert chosen.ids.tolist() == [6, 6, 6, 8, 8, 8, 8, 8, 8]
    assert chosen.requests.ids.tolist() == [8, 6]
    assert chosen.requests.scale_request.tolist() == [0, 0, 0]
    assert asked_of(chosen) == [(asked_of(workload) or [])[number] for number in (0, 3)]
    assert same(select(workload, slice(None)), workload)
    pair = read(tmp_path, row(1), row(2, instances=2, scale="4=1"))
    later = select(pair, slice(1, None)).requests
    assert later is not None
    assert (later.ids.tolist(), later.scale_request.tolist()) == ([2], [0])
    nothing = select(workload, slice(0))
    assert nothing.requests is not None
    assert len(nothing) == len(nothing.requests) == len(nothing.requests.scale_time) == 0
    with pytest.raises(ValueError, match="part of the instances of request 6"):
        select(workload, slice(0, 2))
