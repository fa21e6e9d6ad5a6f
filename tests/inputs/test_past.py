"""The column ``lost``: requests that were there before the run begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import InputError
from slacktide.inputs import read_workload, write_workload
from slacktide.inputs.activity import spans
from slacktide.inputs.columns.occasions import format_past
from slacktide.inputs.columns.occasions import parse_past as parse
from slacktide.inputs.prepare.changes import scale
from slacktide.inputs.statistics import Before, demand_over_time, describe_workload, past_of
from slacktide.model import Hosts, Workload
from support.clusters import cluster
from support.pasts import with_past
from support.preparing import window

HEAD = "id,admission,duration,cpu,memory,class,lost,kind,completions,parallelism\n"
BROKEN = {
    "1,-10,,1,1,gold,-5,,,": "lost: found '-5', expected end=seconds",
    "1,-10,,1,1,gold,5=1,,,": "lost: found '5=1', expected end=seconds",
    "1,-10,,1,1,gold,-5=0,,,": "lost: found '-5=0', expected end=seconds",
    "1,-10,,1,1,gold,-5=1; -4=2,,,": "lost: found '-5=1; -4=2', expected end=seconds",
    "1,-10,,1,1,gold,-5=6,,,": "lost: found '-5=6', expected outages since the request's admission",
    "1,0,,1,1,gold,-5=1,,,": "lost: found '-5=1', expected nothing: this request is admitted when the run has begun",
    "1,-10,9,1,1,gold,-5=1,,,": "duration: found '9.0', expected seconds above those that it ran before",
    "1,-10,99,1,1,gold,,batch,4,2": "admission: found '-10.0', expected seconds from 0 on: of a batch request",
    "1,-inf,,1,1,gold,,,,": "admission: found '-inf', expected",
}


def written(path: Path, *rows: str) -> Path:
    path.write_text(HEAD + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("row", BROKEN)
def test_what_cannot_be_is_refused_by_name(row: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_workload(written(tmp_path / "w.csv", row))
    assert BROKEN[row] in str(refused.value)


@pytest.mark.parametrize("suffix", [".csv", ".erl"])
def test_without_the_column_those_who_were_there_before_lost_nothing(suffix: str, tmp_path: Path) -> None:
    csv = "id,admission,duration,cpu,memory,class\n1,-7200,,1,1,gold\n2,-60,3600,1,1,gold\n3,5,60,1,1,gold\n"
    erl = "{-7200,1,1,9e9,1,1,9,0,[]}.\n{-60,2,2,3600,1,1,9,0,[]}.\n{5,3,3,60,1,1,9,0,[]}.\n"
    (path := tmp_path / f"w{suffix}").write_text(csv if suffix == ".csv" else erl.replace("9e9", "9.0e9"))
    found = read_workload(path)
    assert found.admission.tolist() == [-7200, -60, 5]
    assert found.lost is not None
    assert {found.losses[code] for code in found.lost.tolist()} == {()}
    assert past_of(found) == Before(2, 7200.0, 0.0)


def test_what_is_said_of_a_workload_begins_with_the_run(tmp_path: Path) -> None:
    found = read_workload(
        written(tmp_path / "w.csv", "1,-9e5,,1,1,gold,0=90,,,", "2,-5,,1,1,gold,,,,", "3,60,9,1,1,gold,,,,")
    )
    about = describe_workload(found)
    assert (about["standing"], about["before"]) == (2, {"requests": 2, "oldest": 9e5, "lost": 90.0})
    over_time = demand_over_time(found, Hosts(np.arange(1), ("a",), np.full((1, 2), 8.0), ({},)), 2)
    assert over_time["start"].tolist() == [0, 30]
    assert over_time["cpu:all"].tolist() == [2, 2]
    late = read_workload(written(tmp_path / "w.csv", "1,-50,80,1,1,gold,0=20,,,", "2,-5,,1,1,gold,,,,"))
    assert spans(late).end.tolist() == [50, np.inf]  # it ran for 30 s, so that 50 are left
    assert past_of(replace(found, lost=None)) is None


def test_a_column_in_which_nobody_was_there_before_is_left_out(tmp_path: Path) -> None:
    found = read_workload(written(tmp_path / "w.csv", "1,0,,1,1,gold,,,,"))
    assert found.lost is None


def same(one: Workload, other: Workload) -> bool:
    assert one.lost is not None
    assert other.lost is not None
    pasts = [one.losses[n] for n in one.lost], [other.losses[n] for n in other.lost]
    return pasts[0] == pasts[1] and np.array_equal(one.admission, other.admission)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_gives_back_what_was_written(suffix: str, tmp_path: Path) -> None:
    outages, batch = "1,-60,,1,1,gold,-50=5; -9=1.5,,,", "2,-30,99,1,1,silver,,batch,3,3"
    rows = outages, batch, "3,-9,,1,1,gold,0=9,,,", "4,1,,1,1,gold,,,,"
    one = read_workload(written(tmp_path / "w.csv", *rows))
    assert len(one) == 6
    write_workload(one, path := tmp_path / f"again{suffix}")
    assert same(read_workload(path), one)
    for seed in range(5):
        one = with_past(cluster(seed, requests=30), seed).workload
        write_workload(one, path := tmp_path / f"{seed}{suffix}")
        assert same(read_workload(path, classes=one.classes), one)


def test_texts_give_equal_pasts() -> None:
    past = ((-7200.5, 120.25), (-60.0, 1.0), (0.0, 60.0))
    assert parse(format_past(past)) == past
    assert parse("") == ()


def test_preparing_keeps_or_drops_the_past() -> None:
    one = with_past(cluster(3, requests=30), 3).workload
    slower = scale(one, time=2.0)
    assert slower.losses[1:] == tuple(tuple((2 * end, 2 * lost) for end, lost in past) for past in one.losses[1:])
    assert slower.admission[0] == 2 * one.admission[0]
    cut = window(replace(one, duration=np.full(len(one), np.inf)), 1.0, 60.0)
    assert cut.lost is None
    assert (cut.admission >= 0.0).all()
