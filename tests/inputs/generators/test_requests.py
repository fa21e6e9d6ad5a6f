"""Generated workloads of requests of several instances have the properties that their descriptions promise."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from slacktide import settings
from slacktide.cli import main
from slacktide.errors import ConfigError
from slacktide.inputs import join, read_hosts, read_workload
from slacktide.inputs.generators import registry
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.inputs.statistics import demand_over_time
from slacktide.model import AGGREGATED, APPROACHES, INDEPENDENT, Hosts, Requests, Workload


def generated(name: str, seed: int = 1, **values: object) -> tuple[Workload, Requests, Hosts]:
    workload, hosts = registry.generated(name, values, seed)
    assert workload.requests is not None
    return workload, workload.requests, hosts


def sizes(workload: Workload) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    assert workload.request is not None
    return np.bincount(workload.request)


@pytest.mark.parametrize("approach", APPROACHES)
def test_validation_3_has_53_services_of_two_instances(approach: str) -> None:
    workload, requests, hosts = generated("validation-3", approach=approach)
    assert workload.request is not None
    assert workload.request.tolist() == np.repeat(np.arange(53), 2).tolist()
    assert workload.admission.tolist() == np.repeat(np.arange(53.0), 2).tolist()
    assert workload.ids.tolist() == requests.ids[workload.request].tolist()
    assert sorted(requests.ids.tolist()) == list(range(1, 54))
    assert Counter(workload.service_class.tolist()) == {0: 40, 1: 32, 2: 34}
    assert [(one.name, one.slo, one.rank, one.margin) for one in workload.classes] == [
        ("first", 1.0, 1, 10.0),
        ("second", 0.95, 2, 10.0),
        ("third", 0.9, 3, 10.0),
    ]
    assert set(workload.demand.ravel()) == {0.187}
    assert np.isinf(workload.duration).all()
    assert hosts.capacity.tolist() == [[4.0, 3.75]] * 5
    assert set(requests.approach.tolist()) == {APPROACHES.index(approach)}
    assert not requests.batch.any()
    assert not len(requests.scale_time)


def test_validation_3_is_independent_unless_told_and_knows_its_words() -> None:
    assert set(generated("validation-3")[1].approach.tolist()) == {INDEPENDENT}
    with pytest.raises(ConfigError, match=r"found 'concurent', expected one of independent, concurrent, aggregated"):
        GENERATORS["validation-3"].generate({"approach": "concurent"}, 1)


def test_generated_classes_come_as_a_settings_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "v3"
    assert main(["generate", "validation-3", "--out", str(out), "--set", "approach=concurrent"]) == 0
    shown = capsys.readouterr().out
    assert "53 requests of 106 instances" in shown
    assert f"--config {out / 'settings.yaml'}" in shown
    config = settings.load(out / "settings.yaml")
    made, _, _ = generated("validation-3", seed=0, approach="concurrent")
    assert config.classes == made.classes
    assert config.policy == settings.load().policy
    workload = read_workload(out / "workload.parquet", classes=config.classes)
    assert workload.requests is not None
    assert np.array_equal(workload.request, made.request)  # type: ignore[arg-type]
    assert np.array_equal(workload.requests.approach, made.requests.approach)  # type: ignore[union-attr]
    words = ["inspect", str(out / "workload.parquet"), str(out / "hosts.parquet")]
    assert main([*words, "--config", str(out / "settings.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["workload"]["classes"]["second"]["requests"] == 16
    # A workload with the usual classes needs none, and takes the place of the other.
    assert main(["generate", "validation-1", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["hosts.parquet", "manifest.json", "workload.parquet"]


def test_sizes_of_jobs_are_those_of_the_sample() -> None:
    workload, requests, hosts = generated("jobs", requests=40_000, load=0.5)
    found = sizes(workload)
    assert len(requests) == len(found) == 40_000
    assert len(hosts) == 1000
    assert found.mean() == pytest.approx(10, rel=0.03)
    assert (found == 1).mean() == pytest.approx(0.65, abs=0.02)
    assert np.median(found) == 1
    assert np.quantile(found, 0.75) == pytest.approx(5, abs=1)
    assert np.quantile(found, 0.93) == pytest.approx(52, abs=2)
    assert 300 < found.max() < 700


@pytest.mark.parametrize(("mean", "hosts"), [(1, 20), (4, 50), (10, 100), (40, 1000)])
def test_mean_size_and_load_are_as_asked(mean: float, hosts: int) -> None:
    runs = []
    for seed in range(6):
        workload, _, machines = generated("jobs", seed, requests=6000, mean=mean, hosts=hosts, load=0.6, life=50)
        assert sizes(workload).max() <= hosts
        assert sizes(workload).mean() == pytest.approx(mean, rel=0.12)
        found = demand_over_time(workload, machines, 10)
        runs.append((found["cpu:all"] / found["cpu:capacity"])[1:].mean())
    assert np.mean(runs) == pytest.approx(0.6, rel=0.06)


def test_a_million_instances_in_ten_thousand_requests() -> None:
    workload, requests, hosts = generated("jobs", requests=10_000, size=100, batch=0, approach="independent")
    light, _ = GENERATORS["light"].generate({}, 1)
    end = max(float(piece.admission[-1]) for piece in light)
    assert len(workload) == 1_000_000
    assert (sizes(workload) == 100).all()
    assert len(hosts) == 1000
    assert workload.admission[-1] == pytest.approx(end, rel=0.05)
    assert set(requests.approach.tolist()) == {INDEPENDENT}
    assert not requests.batch.any()
    assert (np.diff(workload.admission) >= 0).all()


def test_kinds_and_approaches_of_jobs_are_as_asked() -> None:
    _, requests, _ = generated("jobs", requests=9000, size=4, batch=0.25, parallelism=3, classes="gold,bronze")
    assert requests.batch.mean() == pytest.approx(0.25, abs=0.02)
    assert set(requests.approach[requests.batch].tolist()) == {AGGREGATED}
    shares = np.bincount(requests.approach[~requests.batch]) / np.count_nonzero(~requests.batch)
    assert shares.tolist() == pytest.approx([1 / 3] * 3, abs=0.02)
    assert np.array_equal(requests.parallelism, np.where(requests.batch, 3, 0))
    _, requests, _ = generated("jobs", requests=100, size=3, batch=1, parallelism=3)
    assert requests.batch.all()
    assert not requests.parallelism.any()


def test_instances_of_a_job_are_alike_and_come_at_once() -> None:
    workload, requests, _ = generated("jobs", requests=3000, classes="gold,silver", hosts=300)
    assert workload.request is not None
    first = np.unique(workload.request, return_index=True)[1][workload.request]
    for name in ("ids", "admission", "duration", "demand", "service_class", "job"):
        column = getattr(workload, name)
        assert np.array_equal(column, column[first])
    assert np.array_equal(requests.ids, np.arange(1, 3001))


def test_bad_parameters_of_jobs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for values, word in (
        ({"batch": 1.5}, "at most 1"),
        ({"mean": 0.5}, "at least 1"),
        ({"mean": 9, "hosts": 10}, "with 10 hosts no request has more than 10 instances"),
        ({"approach": "mixd"}, "did you mean 'mixed'"),
        ({"size": -1}, "at least 0"),
        ({"size": 100_000, "requests": 2000}, "100,000,000 instances"),
        ({"classes": "tin"}, "gold, silver, bronze"),
    ):
        with pytest.raises(ConfigError, match=word):
            GENERATORS["jobs"].generate(values, 1)
    assert main(["generate", "validation-3", "--out", str(tmp_path / "x"), "--set", "approach=both"]) == 2
    assert "independent, concurrent, aggregated" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_jobs_are_written_piece_by_piece_and_read_back(tmp_path: Path) -> None:
    words = ["--set", "requests=20000", "--set", "size=60", "--set", "hosts=100"]
    assert main(["generate", "jobs", "--out", str(tmp_path / "j"), *words]) == 0
    pieces, _ = GENERATORS["jobs"].generate({"requests": 20_000, "size": 60, "hosts": 100}, 0)
    made = list(pieces)
    assert len(made) > 1
    workload = read_workload(tmp_path / "j" / "workload.parquet")
    assert len(workload) == 1_200_000
    assert np.array_equal(workload.admission, join(made).admission)
    assert np.array_equal(workload.request, join(made).request)  # type: ignore[arg-type]
    assert len(read_hosts(tmp_path / "j" / "hosts.parquet")) == 100
