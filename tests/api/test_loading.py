"""``st.load``: what was saved, with the same frames."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import slacktide as st
from slacktide.cli import main
from slacktide.errors import InputError

TABLES = ("requests", "instances", "classes", "events", "passes")


def the_same(mine: st.Result, theirs: st.Result) -> None:
    for name in TABLES:
        assert hasattr(mine, name) == hasattr(theirs, name), name
        if hasattr(theirs, name):
            assert getattr(mine, name).equals(getattr(theirs, name)), name
            assert getattr(mine, name).schema == getattr(theirs, name).schema, name
    assert (mine.totals, mine.settings, mine.policy) == (theirs.totals, theirs.settings, theirs.policy)
    assert repr(mine) == repr(theirs)


@pytest.mark.parametrize("asked", [{}, {"events": False, "passes": False}], ids=["all", "little"])
def test_a_result_is_as_it_was(asked: dict[str, bool], cell: st.Generated, tmp_path: Path) -> None:
    for given in (cell, st.generate("validation-3")):
        made = st.simulate(given, end="5m", intervals="1m", events=asked.get("events", True), passes=not asked)
        found = st.load(made.save(tmp_path / "one"))
        assert isinstance(found, st.Result)
        the_same(found, made)
        again = st.load(found.save(tmp_path / "two"))
        assert isinstance(again, st.Result)
        the_same(again, made)
        both = st.plot({"made": made, "loaded": found}, "availability", width=85)
        assert both.axes
    assert sorted(one.name for one in (tmp_path / "two").iterdir()) == sorted(
        one.name for one in (tmp_path / "one").iterdir()
    )


def test_a_run_of_the_command_line_is_loaded(folder: Path, tmp_path: Path) -> None:
    inputs = [str(folder / name) for name in ("workload.parquet", "hosts.parquet")]
    assert main(["simulate", *inputs, "--end", "300", "--events", "--passes", "--out", str(tmp_path / "run")]) == 0
    found = st.load(tmp_path / "run")
    assert isinstance(found, st.Result)
    made = st.simulate(inputs[0], inputs[1], end=300, intervals=None)
    for name in ("requests", "classes", "events"):
        assert getattr(found, name).equals(getattr(made, name)), name


def test_an_experiment_is_as_it_was(cell: st.Generated, tmp_path: Path) -> None:
    made = st.Experiment(tmp_path / "experiment", cell, policies=["priority"], end="2m").run(jobs=1)
    found = st.load(tmp_path / "experiment")
    assert isinstance(found, st.Experiment)
    assert found.classes.equals(made.classes)
    assert found.requests.equals(made.requests)


def test_a_plan_is_as_it_was(tmp_path: Path) -> None:
    given = st.generate("light", hosts=6, requests=40, load=0.5)
    made = st.plan(given, target={"gold": 0.9}, end="20m", jobs=1, within=2, folder=tmp_path / "plan")
    found = st.load(tmp_path / "plan")
    assert isinstance(found, st.CapacityPlan)
    assert found.curve.equals(made.curve)
    assert found.curve.schema == made.curve.schema
    assert (found.hosts, repr(found)) == (made.hosts, repr(made))
    assert isinstance(found.curve, pl.DataFrame)
    assert len(found.plot(width=100).axes) == len(made.plot(width=100).axes)


def test_what_is_none_of_them_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder of results, of an experiment or of a plan"):
        st.load(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InputError, match=r"plan\.json: .*'slacktide plan --out' writes"):
        st.load(tmp_path)
