"""What a user's program sees: ``mypy --strict`` checks this file (make lint), and it runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import assert_type

import matplotlib.figure
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import slacktide as st
from slacktide.policy import Plan, View


class Nothing:
    def decide(self, view: View, now: float) -> Plan:  # noqa: ARG002
        return Plan()


def test_a_typed_program(cell: st.Generated, tmp_path: Path) -> None:
    assert_type(cell.workload, pl.DataFrame)
    frame: pd.DataFrame = cell.workload.to_pandas()
    table: pa.Table = cell.hosts.to_arrow()
    result = st.simulate(frame, table, end="5m", policy_patience=30)
    assert_type(result, st.Result)
    assert_type(result.requests, pl.DataFrame)
    assert_type(result.classes, pl.DataFrame)
    assert_type(result.events, pl.DataFrame)
    assert_type(result.passes, pl.DataFrame)
    assert_type(result.save(tmp_path / "run"), Path)
    nobody = st.simulate(cell, policy=Nothing, end=60)
    assert nobody.totals["placements"] == 0


def drawn_and_compared(result: st.Result, cell: st.Generated, folder: Path) -> None:
    """Is only checked: other tests draw and compare."""
    assert_type(result.plot("queue", width=85.0), matplotlib.figure.Figure)
    assert_type(st.plot({"one": result}), matplotlib.figure.Figure)
    experiment = st.Experiment(folder, cell, policies={"mine": "priority"}, end=60)
    assert_type(experiment.run(jobs=1), st.Experiment)
    assert_type(experiment.classes, pl.DataFrame)
    assert_type(st.report(experiment, folder / "report.html"), Path)
    assert_type(st.plan(cell, end="1h", target={"gold": 1}).hosts, dict[str, int | None])


def no_narrower_than_what_is_taken(lazy: pl.LazyFrame, eager: pl.DataFrame, table: pa.Table, folder: Path) -> None:
    """Is only checked, as is what follows: other tests give the same."""

    def score(capacity: np.ndarray, free: np.ndarray, demand: np.ndarray) -> float:  # noqa: ARG001
        return float(free[0])

    st.simulate(lazy, table, seed=np.int64(3), end=np.int64(60), policy_patience=np.float32(3), policy_score=score)
    st.simulate(eager, lazy, end=timedelta(1), policy_savable=pd.Timedelta(3, "s"), simulation_ignore="constraints")
    sim = st.Simulation(lazy, eager, policy_victims="same-pass").run(until=np.timedelta64(3, "s"))
    assert_type(sim.add(lazy).add({"id": 3, "duration": None}).resize(np.int64(3), cpu=np.float64(1)), st.Simulation)
    assert_type(sim.state.queue, pl.DataFrame)
    made = st.Experiment(folder, lazy, eager, seeds=[np.int64(1)], sweep={"policy_patience": np.array([1.0])})
    assert_type(made.run(jobs=np.int64(2)).compare("a", "b"), st.Comparison)
    assert_type(st.load(folder), st.Result | st.Experiment | st.CapacityPlan)
    st.plan(lazy, eager, target={"gold": np.float64(0.9)}, within=np.int64(2), classes=[{"name": "web"}])


def a_misspelt_setting(eager: pl.DataFrame) -> None:
    st.simulate(eager, eager, policy_patienc=3)  # type: ignore[call-arg]
    st.simulate(eager, eager, policy_victims="all")  # type: ignore[arg-type]
