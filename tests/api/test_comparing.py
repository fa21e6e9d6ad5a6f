"""Sweeps, workloads drawn anew for each seed, and whether what is different between runs may be chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from scipy import stats

import slacktide as st
from slacktide.api.comparing import chance
from slacktide.cli import main
from slacktide.errors import ConfigError

SWEEP: dict[str, list[Any]] = {"policy_patience": [15, 60.0], "policy_victims": ["same-pass", "next-pass"]}


def drawn(seed: int) -> st.Generated:
    return st.generate("cell", hosts=6, requests=250, seed=seed % 7)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> st.Experiment:
    policies: dict[str, Any] = {"qos": "qos-driven", "tuned": {"preset": "published", "policy_savable": 2.0}}
    folder = tmp_path_factory.mktemp("swept") / "experiment"
    made = st.Experiment(folder, drawn, policies=policies, sweep=SWEEP, seeds=3, end="3m", qos_startup="always")
    return made.run(jobs=1)


def test_what_is_swept_are_columns(swept: st.Experiment) -> None:
    for frame in (swept.runs, swept.classes, swept.requests):
        assert frame.columns[-2:] == list(SWEEP)
        assert frame.select(*SWEEP).unique().height == 4
    assert len(swept.runs) == 2 * 4 * 3
    assert sorted(swept.runs["policy"].unique())[0] == "qos, policy.patience=15, policy.victims=next-pass"
    loaded = st.load(swept.folder)
    assert isinstance(loaded, st.Experiment)
    assert loaded.classes.equals(swept.classes)
    for row in swept.runs.iter_rows(named=True):
        one = st.load(swept.folder / "runs" / row["key"])
        assert isinstance(one, st.Result)
        settings = one.settings["policy"]
        assert (settings["patience"], settings["victims"]) == (row["policy_patience"], row["policy_victims"])
        assert (settings["savable"] == 2.0) == row["policy"].startswith("tuned")


def test_each_seed_has_its_own_workload(swept: st.Experiment) -> None:
    policy = "qos, policy.patience=60.0, policy.victims=same-pass"
    hosts = None
    for row in swept.runs.filter(pl.col("policy") == policy).iter_rows(named=True):
        made = drawn(row["seed"])
        hosts = made.hosts if hosts is None else hosts
        alone = st.simulate(
            made, hosts, "qos-driven", "3m", row["seed"], policy_patience=60, policy_victims="same-pass",
            qos_startup="always",
        )  # fmt: skip
        mine = swept.requests.filter((pl.col("policy") == policy) & (pl.col("seed") == row["seed"]))
        assert mine.select(alone.requests.columns).equals(alone.requests)
    assert swept.requests.group_by("seed").len()["len"].n_unique() == 3


def test_a_grid_file_sweeps_as_well(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "grid.yaml").write_text(
        f"workloads: {{cell: {folder / 'workload.parquet'}}}\nhosts: {{all: {folder / 'hosts.parquet'}}}\n"
        "policies: {mine: {policy: qos-driven}}\nend: 60\nsweep: {policy.patience: [10, 20]}\n"
    )
    words = ["experiment", "run", str(tmp_path / "grid.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(words) == 0
    found = st.load(tmp_path / "out")
    assert isinstance(found, st.Experiment)
    assert found.runs["policy_patience"].to_list() == [10.0, 20.0]


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ({"policy_patienc": [1]}, "did you mean 'policy_patience'"),
        ({"policy_patience": "12"}, "expected a list of values"),
        ({"policy_patience": [1, 1]}, "expected different values"),
        ({"policy_patience": []}, "at least one"),
        ({"policy_patience": ["x"]}, "policy.patience"),
        ({"simulation_seed": [1, 2]}, "not of the whole grid"),
        ({"classes": [1]}, "found classes"),
    ],
)
def test_a_wrong_sweep_is_refused(sweep: Any, said: str, cell: st.Generated, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said.replace(".", r"\.")):
        st.Experiment(tmp_path / "one", cell, sweep=sweep, end=60).run(jobs=1)


def test_policies_of_an_experiment_are_compared_in_pairs(swept: st.Experiment) -> None:
    names = [f"{one}, policy.patience=60.0, policy.victims=same-pass" for one in ("qos", "tuned")]
    found = swept.compare(*names)
    assert found.frame["class"].unique(maintain_order=True).to_list() == ["gold", "silver", "bronze", "all"]
    assert set(found.frame["pairs"]) == {3}
    rows = swept.classes.filter(pl.col("class") == "bronze").sort("seed")
    mine, theirs = (rows.filter(pl.col("policy") == name)["fulfilment"] for name in names)
    one = found.frame.row(by_predicate=(pl.col("class") == "bronze") & (pl.col("measure") == "fulfilment"), named=True)
    assert one["difference"] == pytest.approx(float((theirs - mine).mean()))  # type: ignore[arg-type]
    assert min(theirs - mine) <= one["low"] <= one["difference"] <= one["high"] <= max(theirs - mine)
    with pytest.raises(ConfigError, match=r"finished runs: 'qos, policy[^']*', 'qos, "):
        swept.compare("qos", names[1])


def test_results_are_compared_request_by_request(cell: st.Generated) -> None:
    hosts = cell.hosts.head(11)
    mine, theirs = (st.simulate(cell, hosts, one, 600, events=False) for one in ("qos-driven", "priority"))
    found = st.compare(mine, theirs)
    every = found.frame.filter((pl.col("class") == "all") & (pl.col("measure") == "availability")).row(0, named=True)
    both = mine.requests.join(theirs.requests, on="id")
    differences = (both["availability_restart_right"] - both["availability_restart"]).to_numpy()
    assert every["pairs"] == len(mine.requests) == len(differences)
    assert every["difference"] == pytest.approx(differences.mean())
    known = stats.bootstrap((differences,), np.mean, method="percentile", n_resamples=1999)
    spread = known.confidence_interval.high - known.confidence_interval.low
    assert every["low"] == pytest.approx(known.confidence_interval.low, abs=0.15 * spread)
    assert every["high"] == pytest.approx(known.confidence_interval.high, abs=0.15 * spread)
    same = st.compare(mine, mine).frame
    assert set(same["difference"]) == {0.0}
    assert set(same["p"]) == {1.0}
    assert st.compare(mine, theirs).frame.equals(found.frame), "the same samples each time"
    with pytest.raises(ConfigError, match="no request of the same id"):
        st.compare(mine, st.simulate(cell.workload.with_columns(pl.col("id") + 10**6), hosts, end=60))
    with pytest.raises(ConfigError, match="found 1 and 2 results"):
        st.compare([mine], [mine, theirs])
    with pytest.raises(ConfigError, match="between 0 and 1"):
        st.compare(mine, theirs, confidence=95)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("count", [2, 6, 10, 11, 300, 1500])
def test_chance_is_that_of_scipy(count: int) -> None:
    random = np.random.default_rng(count)
    differences = random.normal(1.2 / np.sqrt(count), 1.0, count)
    if count <= 10:
        known = stats.permutation_test(
            (differences,), lambda one, axis: one.mean(axis=axis), permutation_type="samples", vectorized=True
        ).pvalue
        assert chance(differences, random) == pytest.approx(known)
        return
    assert chance(differences, random) == pytest.approx(stats.ttest_1samp(differences, 0.0).pvalue, abs=0.035)


def test_differences_are_drawn(swept: st.Experiment) -> None:
    names = swept.runs["policy"].unique(maintain_order=True)
    found = swept.compare(names[0], names[5])
    figure = found.plot(width=85)
    assert isinstance(figure, Figure)
    assert [one.get_text() for one in figure.axes[0].get_yticklabels()] == ["all", "bronze", "silver", "gold"]
    given = Figure()
    axes = given.subplots()
    assert found.plot("preemptions", ax=axes) is given
    assert "preemptions" in axes.get_xlabel()
    with pytest.raises(ConfigError, match="expected fulfilment"):
        found.plot("x")
