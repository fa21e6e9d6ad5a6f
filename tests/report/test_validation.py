"""Whether a simulation comes out as what was measured: the numbers by their definitions, from results and records."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from engine.workbench import BRONZE, GOLD, settings
from slacktide.cli import main
from slacktide.engine.core.engine import Engine
from slacktide.engine.journal.record import Recorder
from slacktide.errors import InputError
from slacktide.reporting.validation import Sample, compare, read, two_samples
from slacktide.state.spec import Spec

T0 = 1_790_000_000.0


def results(folder: Path, **by_class: list[float]) -> Path:
    folder.mkdir()
    rows = [(name, value, 2) for name, values in by_class.items() for value in values]
    table = pl.DataFrame(rows, schema=["class", "availability_always", "preemptions"], orient="row")
    table.with_columns(pl.col("class").cast(pl.Categorical)).write_parquet(folder / "requests.parquet")
    return folder


def record(folder: Path) -> Path:
    """Of two bronze workloads one waits half of its 20 s; the gold one waits for ever."""
    with Recorder(folder, settings()) as recorder:
        engine = Engine(settings(), journal=recorder)
        engine.host("n", {"cpu": 2000, "pods": 10}, {}, up=True)
        for number, service in enumerate((BRONZE, GOLD)):
            engine.spec(number, Spec((("cpu", 1000),), service))
        for name, service, number in (("a", BRONZE, 0), ("b", BRONZE, 0), ("g", GOLD, 1)):
            engine.controller(name, service, 0, batch=False)
            engine.arrive(name, name, name, number, T0)
        for name, bound in (("a", 0.0), ("b", 10.0)):
            engine.wake(name)
            [decision] = engine.run(T0 + bound).decisions
            engine.bound(decision.uid, T0 + bound)
            engine.ready(decision.uid, T0 + bound)
        engine.run(T0 + 20.0)
    return folder


def test_the_tests_are_those_of_their_definitions() -> None:
    first, second = np.array([0.90, 0.91, 0.93, 0.95]), np.array([0.94, 0.96, 0.97, 0.975])
    found = two_samples(first, second)
    pooled = (first.var(ddof=1) + second.var(ddof=1)) / 2
    assert found.difference == pytest.approx(second.mean() - first.mean())
    half = 2.446912 * np.sqrt(pooled / 2)  # t of 6 degrees of freedom, .975
    assert found.interval == pytest.approx((found.difference - half, found.difference + half), abs=1e-6)
    assert (found.t_test, found.normal) == ("student", True)
    assert found.t is not None
    assert found.differ == (found.t < 0.05) == (half < found.difference)
    both = np.concatenate([first, second])
    least = sum((one > other) for one in first for other in second)
    as_far = [
        min(wins := sum(both[i] > both[j] for i in chosen for j in set(range(8)) - set(chosen)), 16 - wins) <= least
        for chosen in itertools.combinations(range(8), 4)
    ]
    assert found.ranks == pytest.approx(np.mean(as_far))


def test_variances_that_differ_are_not_pooled_and_what_is_not_normal_goes_by_ranks() -> None:
    steady, wild = np.linspace(0.949, 0.951, 30), np.linspace(0.1, 1.0, 30)
    assert two_samples(steady, wild).t_test == "welch"
    at_one = np.array([1.0] * 40 + [0.2])
    lower = np.array([0.99] * 40 + [1.0])
    found = two_samples(at_one, lower)
    assert not found.normal
    assert found.t is not None
    assert found.ranks is not None
    assert found.t > 0.05 > found.ranks
    assert found.differ


@pytest.mark.parametrize("second", [[1.0, 1.0], [0.9, 0.9], [0.5]])
def test_what_cannot_be_tested_is_compared(second: list[float]) -> None:
    found = two_samples(np.ones(2), np.array(second))
    assert (found.t, found.ranks, found.interval) == (None, None, None)
    assert found.differ == (second != [1.0, 1.0])


def test_a_record_says_what_each_workload_was_delivered(tmp_path: Path) -> None:
    found = read(record(tmp_path / "record"))
    assert {name: values.tolist() for name, values in found.availability.items()} == {
        "bronze": [1.0, 0.5],
        "gold": [0.0],
    }
    assert read(tmp_path / "record", at=T0 + 40.0).availability["bronze"].tolist() == [1.0, 0.75]


def test_classes_that_both_have_are_compared(tmp_path: Path) -> None:
    first = read(results(tmp_path / "a", gold=[1.0, 0.9], bronze=[0.5, 0.4]))
    assert first.preemptions == 8
    assert list(compare(first, Sample({"bronze": np.array([0.4, 0.5]), "tin": np.ones(1)}, 0))) == ["bronze"]


def test_the_command_says_who_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = np.random.default_rng(3)
    gold, bronze = chance.normal(0.9, 0.01, 50).tolist(), chance.normal(0.5, 0.01, 50).tolist()
    other = chance.normal(0.52, 0.01, 50).tolist()
    one, two = results(tmp_path / "a", gold=gold, bronze=bronze), results(tmp_path / "b", gold=gold, bronze=other)
    assert main(["validate", str(one), str(two)]) == 0
    said = capsys.readouterr().out
    assert "gold: no difference is shown (t test, 5 %)" in said
    assert "bronze: the samples differ (t test, 5 %)" in said
    assert "preemptions: 200, simulated 200" in said
    assert main(["validate", str(one), str(two), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["differ"] for one in found["classes"].values()] == [False, True]


def test_what_is_neither_results_nor_a_record_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"requests\.parquet .* or a record"):
        read(tmp_path)
    (tmp_path / "requests.parquet").write_text("no")
    with pytest.raises(InputError, match="availability_never and preemptions"):
        read(tmp_path, "never")
    one, two = results(tmp_path / "a", gold=[1.0]), results(tmp_path / "b", tin=[1.0])
    assert main(["validate", str(one), str(two)]) == 2
    assert "no class is in both: found requests of gold and of tin" in capsys.readouterr().err
