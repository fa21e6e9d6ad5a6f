"""Frames give the decisions that files of the same data give, to the bit; what is broken in them is named as well."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import slacktide as st
from decision_hashes import of_run
from slacktide.api.result import Made
from slacktide.errors import InputError, InputWarning

HALF_AN_HOUR = 1800


def hashes(result: st.Result) -> Any:
    """Of all that was decided, counted and delivered."""
    assert isinstance(result._source, Made)
    return of_run(result._source._done.result)


def as_stream(frame: pl.DataFrame) -> Any:
    """A table of which nothing is known but Arrow's C stream, as of DuckDB and others."""

    class Unknown:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return frame.__arrow_c_stream__(requested_schema)

    return Unknown()


def as_old_pandas(frame: pl.DataFrame) -> Any:
    """As pandas has it after reading a CSV: texts are objects, and nobody knows which whole numbers were meant."""
    found = frame.to_pandas()
    return found.astype({name: object for name in found.columns if found[name].dtype == "str"})


def in_chunks(frame: pl.DataFrame) -> Any:
    table = frame.to_arrow()
    half = len(table) // 2
    return pa.concat_tables([table.slice(0, half), table.slice(half)])


def as_decimals(frame: pl.DataFrame) -> Any:
    """As a data base has what is written with a point."""
    return frame.with_columns(pl.col("id").cast(pl.Decimal(20, 0)))


HOLDERS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "categorical": lambda frame: frame.with_columns(pl.col(pl.String).cast(pl.Categorical)),
    "narrow numbers": lambda frame: frame.with_columns(pl.col("id").cast(pl.UInt32)),
    "pandas": lambda frame: frame.to_pandas(),
    "pandas with objects": as_old_pandas,
    "pandas with an index": lambda frame: frame.to_pandas().sample(frac=1.0, random_state=1).sort_values("id"),
    "pandas whose index is a column": lambda frame: frame.to_pandas().set_index("id"),
    "decimals": as_decimals,
    "arrow": in_chunks,
    "stream": as_stream,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_frames_decide_as_files_do(holder: str, cell: st.Generated, folder: Path) -> None:
    by_files = st.simulate(folder / "workload.parquet", folder / "hosts.parquet", end=HALF_AN_HOUR)
    assert by_files.totals["preemptions"] > 50
    hold = HOLDERS[holder]
    by_frames = st.simulate(hold(cell.workload), hold(cell.hosts), end=HALF_AN_HOUR)
    assert hashes(by_frames) == hashes(by_files)
    assert by_frames.requests.equals(by_files.requests)


def test_csv_parquet_and_what_was_generated_decide_alike(cell: st.Generated, folder: Path, tmp_path: Path) -> None:
    by_files = st.simulate(folder / "workload.parquet", folder / "hosts.parquet", end=HALF_AN_HOUR)
    cell.workload.write_csv(tmp_path / "w.csv")
    pa.csv.write_csv(cell.hosts.to_arrow(), tmp_path / "h.csv")
    assert hashes(st.simulate(tmp_path / "w.csv", tmp_path / "h.csv", end=HALF_AN_HOUR)) == hashes(by_files)
    assert hashes(st.simulate(cell, end="30m")) == hashes(by_files)
    assert hashes(st.simulate(cell.workload, str(folder / "hosts.parquet"), end="30m")) == hashes(by_files)


@pytest.mark.parametrize(
    ("name", "parameters", "settings"),
    [
        ("validation-3", {"approach": "concurrent"}, {}),
        ("jobs", {}, {}),
        ("edge", {"nodes": 40, "sites": 4}, {"policy_score": "delay-aware"}),
    ],
)
def test_requests_of_several_instances_and_users_decide_alike(
    name: str, parameters: dict[str, Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    made = st.generate(name, seed=3, **parameters)
    folder = made.save(tmp_path / "made")
    own: dict[str, Any] = {"config": folder / "settings.yaml"} if (folder / "settings.yaml").exists() else {}
    if (folder / "network.yaml").exists():
        settings = {**settings, "delay_network": folder / "network.yaml"}
    by_files = st.simulate(folder / "workload.parquet", folder / "hosts.parquet", end=600, **own, **settings)
    by_frames = st.simulate(made.workload.to_pandas(), made.hosts.to_pandas(), end=600, **own, **settings)
    assert hashes(by_frames) == hashes(by_files)
    assert hashes(st.simulate(made, end=600, **settings)) == hashes(by_files)
    if hasattr(by_files, "instances"):
        assert len(by_files.instances) > len(by_files.requests)


W = {"id": [1, 2, 3], "admission": [0.0, 1.0, 2.0], "duration": [5.0, 5.0, 5.0], "cpu": [0.1] * 3, "memory": [0.1] * 3}
H = pl.DataFrame({"id": [1], "name": ["a"], "cpu": [1.0], "memory": [1.0]})
CLASSES = {"class": ["gold", "bronze", "gold"]}


def workload(**changed: Any) -> pl.DataFrame:
    return pl.DataFrame({**W, **CLASSES, **changed})


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (
            workload(duration=[5.0, -1.0, 5.0]),
            "workload, row 1: duration: found '-1.0', expected seconds above 0 and at most 1e15; inf or empty: never",
        ),
        (
            workload(**{"class": ["gold", "bronze", "glod"]}).to_pandas(),
            "workload, row 2: class: found 'glod', expected one of gold, silver, bronze (did you mean 'gold'?)",
        ),
        (workload(id=[1, 2, 2]).to_arrow(), "workload, row 2: id: found '2', expected a whole number from 0, given"),
        (
            workload(admission=[0.0, None, 2.0]),
            "workload, row 1: admission: found 'nothing', expected seconds from -1e15",
        ),
        (workload(cpu=["a", "b", "c"]), "workload: cpu: found 'a column of large_string', expected numbers (double)"),
        (workload(job=[1.5, 2.0, 3.0]), "workload: job: found 'a column of double', expected whole numbers (int64)"),
        (workload(job=["1", "2", "3"]), "workload: job: found 'a column of large_string', expected whole numbers"),
        (workload().rename({"duration": "durations"}), "workload: durations: found 'an unknown column', expected 'dur"),
        (workload().drop("memory"), "workload: memory: expected this column"),
        (workload().clear(), "workload: found 'no rows', expected at least one request"),
        (pd.DataFrame({"id": [1, "a"]}), "workload: found "),
        (
            workload(**{"class": [Decimal("1.5")] * 3}).to_arrow(),
            "workload: class: found 'a column of decimal128(",
        ),
        (
            pd.DataFrame({**W, **CLASSES}).set_index(["id", pd.Index([4, 5, 6], name="id")]),
            "workload: found 'id twice in the index', expected an index whose names differ",
        ),
    ],
)
def test_what_is_broken_is_named_with_row_column_and_value(frame: Any, told: str) -> None:
    with pytest.raises(InputError) as error:
        st.simulate(frame, H, end=10)
    assert told in str(error.value)


def test_hosts_are_named_too_and_every_problem_is_told_at_once() -> None:
    hosts = pl.DataFrame({"id": [1, 1], "name": ["a", "a"], "cpu": [1.0, -1.0], "memory": [1.0, 1.0]})
    with pytest.raises(InputError) as error:
        st.simulate(workload(), hosts, end=10)
    assert error.value.total >= 3
    assert "hosts, row 1: cpu: found '-1.0'" in str(error.value)
    with pytest.raises(InputError, match=r"(workload|hosts): gpu"):
        st.simulate(workload(**{"resource:gpu": [1.0, 0.0, 0.0]}), H, end=10)


def test_empty_cells_and_missing_optional_columns_are_as_in_files(tmp_path: Path) -> None:
    frame = workload(duration=[5.0, None, 5.0], job=[7.0, None, 7.0], constraints=[None, None, None])
    frame.with_columns(pl.col("job").cast(pl.Int64)).write_csv(tmp_path / "w.csv")
    by_file = st.simulate(tmp_path / "w.csv", H, end=60)
    assert hashes(st.simulate(frame, H, end=60)) == hashes(by_file)
    with pytest.warns(InputWarning, match=r"duration: NaN in 1 row \(the first: 1\), taken as: never completes"):
        assert hashes(st.simulate(frame.to_pandas(), H, end=60)) == hashes(by_file)


def test_lengths_of_time_are_seconds() -> None:
    plain = pd.DataFrame({**W, **CLASSES, "admission": [0.0, 1.5, 2.0], "duration": [5.0, None, 0.25]})
    lengths = plain.assign(**{name: pd.to_timedelta(plain[name], unit="s") for name in ("admission", "duration")})
    with pytest.warns(InputWarning, match="write inf where that is meant"):
        expected = hashes(st.simulate(plain, H, end=60))
    assert hashes(st.simulate(lengths, H, end=60)) == expected
    assert hashes(st.simulate(pl.from_pandas(lengths), H, end=60)) == expected
    with pytest.raises(InputError, match=r"cpu: found 'a column of duration\[.s\]', expected numbers"):
        st.simulate(plain.assign(cpu=lengths["admission"]), H, end=60)
