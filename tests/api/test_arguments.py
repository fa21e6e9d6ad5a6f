"""What is given to functions of the Python API and is not what they take: an error that says what to give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import slacktide as st
from slacktide.errors import ConfigError, InputWarning

END = 60
WRONG: Any = 3
WORD: Any = "a"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"events": "x.parquet"}, "simulate: events: found 'x.parquet', expected True or False"),
        ({"passes": None}, "simulate: passes: found None, expected True or False"),
        ({"progress": "yes"}, "progress: found 'yes', expected True, False or None"),
        ({"preset": 3}, "simulate: preset: found 3, expected recommended"),
        ({"policy": 3}, "policy: found 3, expected a name, a class with decide"),
        ({"policy": "priority", "policy_name": "hybrid"}, "simulate: policy_name: found beside 'policy'"),
        ({"seed": 1, "simulation_seed": 2}, "simulate: simulation_seed: found beside 'seed'"),
        ({"simulation_end": 30}, "simulate: simulation_end: found beside 'end'"),
    ],
)
def test_simulate_says_what_it_takes(given: dict[str, Any], told: str, cell: st.Generated) -> None:
    with pytest.raises(ConfigError, match=told):
        st.simulate(cell, end=END, **given)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda _cell, _: st.generate(WRONG), "generate: found '3', expected one of"),
        (lambda _cell, _: st.generate("cell", seed=WORD), "generate: seed: found 'a', expected a whole number"),
        (lambda cell, _: cell.save(WRONG), "save: found 3, expected a path"),
        (lambda cell, _: st.simulate(cell, end=END).save(WRONG), "save: found 3, expected a path"),
        (lambda cell, _: st.Experiment(WRONG, cell), "Experiment: folder: found 3, expected a path"),
        (lambda cell, at: st.Experiment(at, cell, policy_name="hybrid"), "Experiment: policy_name: found beside"),
        (lambda cell, _: st.plan(cell, policy_name="hybrid"), "plan: policy_name: found beside 'policies'"),
        (lambda cell, _: st.plan(cell, curve=WORD), "plan: curve: found 'a', expected True or False"),
    ],
)
def test_the_others_say_it_too(call: Callable[..., Any], told: str, cell: st.Generated, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        call(cell, tmp_path / "one")


def test_a_missing_end_is_told_before_the_first_run(cell: st.Generated, tmp_path: Path) -> None:
    endless = cell.workload.with_columns(duration=pl.lit(float("inf")))
    workloads: Any = {"ends": cell.workload.with_columns(duration=pl.lit(30.0)), "endless": endless}
    with pytest.raises(ConfigError, match=r'workload endless: end: found none, .*end="1h"'):
        st.Experiment(tmp_path / "one", workloads, cell, ["priority"]).run(jobs=1)
    assert not st.Experiment(tmp_path / "one").runs["done"].any()


def test_settings_of_a_run_on_other_inputs_are_taken_with_a_warning(cell: st.Generated, tmp_path: Path) -> None:
    folder = st.simulate(cell, end=END).save(tmp_path / "first")
    again = st.simulate(cell, config=folder / "manifest.json")  # warnings are errors here
    assert again.totals == st.simulate(cell.workload, cell.hosts, config=folder / "manifest.json").totals
    other = cell.workload.head(100)
    with pytest.warns(InputWarning, match="that run had another workload: its settings are taken"):
        st.simulate(other, cell.hosts, config=folder / "manifest.json")


def test_numbers_of_numpy_and_lazy_frames_are_taken(cell: st.Generated) -> None:
    plain = st.simulate(cell, seed=3, end=END).requests
    end = np.timedelta64(END, "s")
    assert st.simulate(cell.workload.lazy(), cell.hosts.lazy(), seed=np.int64(3), end=end).requests.equals(plain)
