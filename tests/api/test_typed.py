"""What a user's program sees: ``mypy --strict`` checks this file (make lint), and it runs."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import matplotlib.figure
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
