"""What a workload has that changes no decision goes through to results; ids may be texts, admissions instants."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure

import slacktide as st
from slacktide.errors import ConfigError, InputError, InputWarning, ResultWarning
from slacktide.palette import GROUND
from support import typed_settings

BEGIN = datetime(2026, 3, 1, 12, 30)


def free_memory(capacity: Any, free: Any, demand: Any) -> float:  # noqa: ARG001
    """Packs by memory."""
    return -float(free[1])


@pytest.fixture(scope="module")
def named(cell: st.Generated) -> pl.DataFrame:
    """The cell with texts for ids, instants for admissions, and whose each request is."""
    begin = pl.lit(BEGIN) + pl.duration(microseconds=(pl.col("admission") * 1e6).cast(pl.Int64))
    return cell.workload.with_columns(
        admission=begin, team=pl.col("id").cast(pl.String).str.tail(1), id="pod-" + pl.col("id").cast(pl.String)
    )


def test_names_and_further_columns_go_through(cell: st.Generated, named: pl.DataFrame, tmp_path: Path) -> None:
    hosts, plain = cell.hosts.head(11), st.simulate(cell, cell.hosts.head(11), end="5m")
    for given in (named, named.lazy(), named.to_pandas()):
        result = st.simulate(given, hosts, end="5m")
        requests = result.requests
        assert requests["id"].str.strip_prefix("pod-").cast(pl.Int64).to_list() == plain.requests["id"].to_list()
        assert (requests["team"] == requests["id"].str.tail(1)).all()
        assert requests.drop("id", "team").equals(plain.requests.drop("id"))
        for name in ("request", "by"):
            numbers = result.events[name].str.strip_prefix("pod-").cast(pl.Int64)
            assert numbers.equals(plain.events[name]), name
        assert result.settings["simulation"]["epoch"] == "2026-03-01T12:30:00+00:00"
    loaded = st.load(result.save(tmp_path / "saved"))
    assert isinstance(loaded, st.Result)
    assert loaded.requests.equals(requests)
    assert loaded.events.equals(result.events)


def test_they_go_through_where_requests_have_several_instances() -> None:
    given = st.generate("validation-3")
    rows = given.workload.with_columns(mail=pl.lit("a@b"), id=pl.lit("s") + pl.col("id").cast(pl.String))
    result = st.simulate(rows, given.hosts, end=60, classes=given.classes)
    assert set(result.requests["mail"]) == {"a@b"}
    assert set(result.instances["request"]) == set(result.requests["id"])
    assert result.requests["id"].str.starts_with("s").all()


def test_a_paused_simulation_knows_them(cell: st.Generated, named: pl.DataFrame) -> None:
    sim = st.Simulation(named, cell.hosts, end="5m").run(until=100)
    one = sim.state.requests.filter(pl.col("state") == "running")["id"][3]
    more = {"id": "mine", "duration": 20.0, "cpu": 0.01, "memory": 0.01, "class": "gold", "team": "new"}
    result = sim.end(one).add(more).run().result()
    assert result.instances.filter(pl.col("removed").is_not_null())["id"].to_list() == [one]
    mine = result.requests.filter(pl.col("id") == "mine")
    assert mine.select("team", "admission").rows() == [("new", pytest.approx(100.0, abs=1e-5))]
    assert (result.requests.filter(pl.col("id") != "mine")["team"] != "new").all()


def test_many_runs_say_what_stays_behind(cell: st.Generated, named: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match="ids are numbers .* stay behind: team; second 0 is 2026-03-01T12:30"):
        made = st.Experiment(tmp_path / "one", named, cell.hosts, policies=["priority"], end=60).run(jobs=1)
    assert "team" not in made.requests.columns


def test_an_id_given_twice_and_a_misspelt_column_are_refused(named: pl.DataFrame, cell: st.Generated) -> None:
    with pytest.raises(InputError, match="id: found"):
        st.simulate(pl.concat([named, named.head(1)]), cell.hosts, end=60)
    with pytest.raises(InputError, match="an unknown column"):
        st.simulate(named.with_columns(memori=1.0), cell.hosts, end=60)


def test_a_function_is_a_score(cell: st.Generated, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def free_memory(capacity, free, demand):\n    return -float(free[1])\n")
    by_file = st.simulate(cell, end="5m", policy_score=f"{tmp_path / 'mine.py'}:free_memory")
    mine = st.simulate(cell, end="5m", policy_score=free_memory)
    assert mine.events.equals(by_file.events)
    assert not mine.events.equals(st.simulate(cell, end="5m").events)
    assert mine.settings["policy"]["score"].endswith("test_own_columns.free_memory")
    stepped = st.Simulation(cell, end="5m", policy_score=free_memory).run(until=60).copy().run().result()
    assert stepped.events.equals(by_file.events)
    made = st.Experiment(tmp_path / "experiment", cell, policies={"mine": {"policy_score": free_memory}}, end="1m")
    made.run(jobs=1)
    assert st.load(tmp_path / "experiment" / "runs" / made.runs["key"][0]).settings["policy"]["score"] == (  # type: ignore[union-attr]
        f"{__file__}:free_memory"
    )
    with pytest.raises(ConfigError, match=r"one at the top of a \.py file"):
        st.Experiment(tmp_path / "other", cell, policies={"mine": {"policy_score": lambda _c, _f, _d: 0.0}}, end=60)


def test_who_was_never_served_is_warned_of(cell: st.Generated, caplog: pytest.LogCaptureFixture) -> None:
    large = cell.workload.filter(pl.col("admission") < 60).with_columns(cpu=pl.lit(1000.0))
    caplog.set_level(logging.INFO, "slacktide")
    with pytest.warns(
        ResultWarning, match=rf"{len(large)} of {len(large)} were never served .* fit on no host"
    ) as told:
        st.simulate(large, cell.hosts, end="1m")
    assert told[0].filename == __file__
    assert [one.name for one in caplog.records] == ["slacktide"] * 2
    assert "policy qos-driven" in caplog.text
    sim = st.Simulation(large, cell.hosts, end="1m").run(until=30)
    sim.result()
    with pytest.warns(ResultWarning, match="were never served") as told:
        sim.run().result()
    assert told[0].filename == __file__


def test_figures_go_onto_axes_of_ones_own(cell: st.Generated) -> None:
    result = st.simulate(cell, cell.hosts.head(11), end="5m")
    figure = Figure()
    for figure_name, axes in zip(("kept", "queue", "timeline"), figure.subplots(3), strict=True):
        victim = int(result.events.filter(pl.col("event") == "preempted")["request"][0])
        assert result.plot(figure_name, ax=axes, request=victim) is figure
    kept, queue, timeline = figure.axes
    rows = result.classes.filter(pl.col("requests") > 0)
    assert [one.get_width() for one in kept.patches] == [100.0 * one for one in rows["fulfilment"]]  # type: ignore[attr-defined]
    assert queue.lines[0].get_ydata().tolist() == result.passes["queue"].to_list()  # type: ignore[union-attr]
    mine = result.events.filter(pl.col("request") == victim)
    starts = mine.filter(pl.col("event") == "placed")
    assert [one.get_x() for one in timeline.patches] == starts["time"].to_list()  # type: ignore[attr-defined]
    names = iter(starts["host"].to_list())
    assert all(one.get_text().strip() in names for one in timeline.texts), "in their order, those with room"
    assert result.plot("kept", width=85).axes
    for asked, said in (
        ({"figure": "demand", "ax": kept}, "expected kept, queue, timeline"),
        ({"figure": "availabilty"}, "one of kept, queue, timeline, .*did you mean 'availability'"),
        ({"figure": "timelime"}, "did you mean 'timeline'"),
        ({"figure": "timeline"}, "expected the id of a request of this run"),
    ):
        with pytest.raises(ConfigError, match=said):
            result.plot(**asked)


@pytest.mark.parametrize("width", [60, 150])
def test_text_lies_in_its_bar_or_beside_it(width: float, cell: st.Generated) -> None:
    """Labels of short bars were cut off at the axis, and names of hosts lay on each other."""
    result = st.simulate(cell, cell.hosts.head(4), policy="qos-driven", end="5m")
    placed = result.events.filter(pl.col("event") == "placed").group_by("request").len().sort("len", "request")
    figures = [result.plot(one, width=width, request=int(placed["request"][-1])) for one in ("kept", "timeline")]
    for figure in figures:
        figure.draw_without_rendering()
        (axes,) = figure.axes
        bars = [one.get_window_extent() for one in axes.patches]
        texts = [one.get_window_extent() for one in axes.texts]
        assert texts
        inside = [any(bar.x0 <= one.x0 and one.x1 <= bar.x1 for bar in bars if bar.overlaps(one)) for one in texts]
        beside = [all(bar.x1 - 1.0 <= one.x0 for bar in bars if bar.overlaps(one)) for one in texts]
        assert all(map(operator.or_, inside, beside))
        assert [one.get_color() == GROUND.light for one in axes.texts] == inside
    assert len(figures[0].axes[0].texts) == len(figures[0].axes[0].patches)
    assert len(figures[1].axes[0].texts) < len(figures[1].axes[0].patches)


def test_a_notebook_shows_tables(cell: st.Generated, tmp_path: Path) -> None:
    result = st.simulate(cell, end="1m")
    made = st.Experiment(tmp_path / "one", cell, policies=["priority"], end="1m").run(jobs=1)
    for one in (result, made):
        assert "<table" in one._repr_html_()
        assert repr(one).split("(")[0] in one._repr_html_()


def test_what_there_is_is_listed() -> None:
    assert set(dir(st)) == set(st.__all__)
    policies, generators, settings = st.list_policies(), st.list_generators(), st.list_settings()
    assert "qos-driven" in policies.filter(pl.col("kind") == "policies")["name"].to_list()
    assert policies.columns == ["name", "kind", "description", "source"]
    assert ("cell", "hosts", "620") in generators.select("generator", "parameter", "default").rows()
    assert settings.filter(pl.col("name") == "policy_patience")["default"].to_list() == ["60.0"]


def test_the_types_of_settings_are_those_of_the_list() -> None:
    assert typed_settings.PATH.read_text(encoding="utf-8") == typed_settings.written(), (
        "tests/support/typed_settings.py"
    )


TAKEN: dict[str, Callable[[st.Generated], dict[str, Any]]] = {
    "numpy": lambda _: {"seed": np.int64(3), "end": np.int64(60), "policy_patience": np.float32(30)},
    "timedelta": lambda _: {"seed": 3, "end": timedelta(minutes=1), "policy_patience": pd.Timedelta(30, "s")},
    "numpy timedelta": lambda _: {"seed": 3, "end": np.timedelta64(1, "m"), "policy_patience": "30s"},
}


@pytest.mark.parametrize("kind", TAKEN)
def test_types_are_no_narrower_than_what_is_taken(kind: str, cell: st.Generated) -> None:
    plain = st.simulate(cell, end=60, seed=3, policy_patience=30)
    assert st.simulate(cell.workload.lazy(), cell.hosts.lazy(), **TAKEN[kind](cell)).events.equals(plain.events)


def test_functions_of_one_name_are_told_apart(cell: st.Generated) -> None:
    """A paused simulation that plays its past again finds its own, whatever was given since."""

    def by_free(sign: float) -> Any:
        def score(capacity: Any, free: Any, demand: Any) -> float:  # noqa: ARG001
            return sign * float(free[0])

        return score

    most, least = by_free(1.0), by_free(-1.0)
    assert most.__qualname__ == least.__qualname__

    def changed(between: bool) -> pl.DataFrame:
        paused = st.Simulation(cell, end="5m", policy_score=most).run(until=60)
        if between:
            st.simulate(cell, end="1m", policy_score=least)
        return paused.resize(int(paused.state.requests["id"][0]), cpu=0.5).run().result().events

    assert changed(between=True).equals(changed(between=False))
