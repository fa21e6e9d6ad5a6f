"""Sampling of users: groups of those that are alike, a share of each, all requests of the drawn."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.inputs import read_workload
from slacktide.inputs.prepare.sampling import sample

KINDS = 3
EACH = 20


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three kinds of users, twenty of each: one request; five equal ones; five that differ in CPU."""
    rows: list[tuple[object, ...]] = []
    for kind in range(KINDS):
        for number in range(EACH):
            for place in range(1 if kind == 0 else 5):
                cpu = 0.1 + (0.2 * place if kind == 2 else 0.0)
                rows.append((float(len(rows)), 60.0, cpu, 0.5, "gold", f"k{kind}-{number:02d}"))
    names = ["admission", "duration", "cpu", "memory", "class", "user"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_row_index("id").cast({"id": pl.Int64})
    frame.write_parquet(tmp_path / "workload.parquet")
    frame.write_csv(tmp_path / "workload.csv")
    return tmp_path / "workload.parquet"


def test_groups_are_those_of_users_that_are_alike_and_each_gives_its_share(source: Path, tmp_path: Path) -> None:
    found = sample(source, tmp_path / "out.parquet", share=0.25, groups=KINDS, seed=1)
    by_kind = found.users.with_columns(kind=pl.col("user").str.slice(0, 2))
    assert by_kind.select("kind", "group").unique().height == KINDS
    assert found.groups()["users"].to_list() == [EACH] * KINDS
    assert found.groups()["drawn"].to_list() == [5] * KINDS
    assert found.requests == 5 * (1 + 5 + 5)


def test_features_are_those_of_the_definition(source: Path, tmp_path: Path) -> None:
    users = sample(source, tmp_path / "out.parquet", groups=KINDS).users
    last = users.filter(pl.col("user") == "k2-07").row(0, named=True)
    # .1, .3, .5, .7, .9: mean .5, squares of the differences .16 .04 0 .04 .16, their mean .08.
    assert last["requests"] == 5
    assert last["cpu_variance"] == pytest.approx(0.08)
    assert last["memory_variance"] == last["duration_variance"] == 0


def test_all_requests_of_a_drawn_user_are_kept_in_order(source: Path, tmp_path: Path) -> None:
    found = sample(source, tmp_path / "out.parquet", share=0.25, groups=KINDS, seed=1)
    drawn = found.users.filter("drawn")["user"].to_list()
    expected = pl.read_parquet(source).filter(pl.col("user").is_in(drawn))
    assert pl.read_parquet(tmp_path / "out.parquet").equals(expected)
    assert read_workload(tmp_path / "out.parquet").ids.tolist() == expected["id"].to_list()


def test_equal_seeds_draw_the_same_from_csv_too(source: Path, tmp_path: Path) -> None:
    first, again, other = (
        sample(path, tmp_path / f"{number}.parquet", share=0.25, groups=KINDS, seed=seed).users
        for number, (path, seed) in enumerate([(source, 1), (source.with_suffix(".csv"), 1), (source, 2)])
    )
    assert first["drawn"].to_list() == again["drawn"].to_list() != other["drawn"].to_list()
    assert read_workload(tmp_path / "1.parquet").ids.tolist() == read_workload(tmp_path / "0.parquet").ids.tolist()


def test_settings_and_files_that_cannot_be_are_refused(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    with pytest.raises(ConfigError, match="share: found 0"):
        sample(source, out, share=0)
    with pytest.raises(ConfigError, match="at most the number of users, 60"):
        sample(source, out, groups=61)
    pl.read_parquet(source).drop("user").write_parquet(tmp_path / "nobody.parquet")
    with pytest.raises(InputError, match=r"nobody.parquet: user: expected this column; here: id, admission"):
        sample(tmp_path / "nobody.parquet", out)
    with pytest.raises(InputError, match="expected an existing file"):
        sample(tmp_path / "none.parquet", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("one,1,1", "bad.csv:3: cpu: found 'one', expected a number"),
        ("nan,1,1", "bad.csv:3: cpu: found 'nan', expected a number"),
        ("1,,1", "bad.csv:3: memory: found 'nothing', expected a number"),
        ("1,1,long", "bad.csv:3: duration: found 'long', expected a number, or nothing: endless"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path: Path, row: str, said: str) -> None:
    head = "id,user,admission,cpu,memory,duration\n"
    (tmp_path / "bad.csv").write_text(f"{head}1,a,0,1,1,1\n2,b,0,{row}\n")
    with pytest.raises(InputError) as error:
        sample(tmp_path / "bad.csv", tmp_path / "out.parquet", groups=2)
    assert str(error.value).endswith(said)


def test_endless_requests_have_no_part_in_the_variance(tmp_path: Path) -> None:
    head = "id,user,admission,cpu,memory,duration\n"
    (tmp_path / "some.csv").write_text(f"{head}1,a,0,1,1,\n2,a,0,1,1,2\n3,a,0,1,1,4\n4,b,0,1,1,inf\n")
    found = sample(tmp_path / "some.csv", tmp_path / "out.parquet", groups=2).users
    assert found["duration_variance"].to_list() == [1.0, 0.0]
