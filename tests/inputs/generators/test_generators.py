"""Generated workloads have the properties that their descriptions promise."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import ConfigError
from slacktide.inputs import WorkloadParquetWriter, join, read_hosts, read_workload, write_hosts
from slacktide.inputs.formats.network_file import network_text, read_network
from slacktide.inputs.generators import registry
from slacktide.inputs.generators.cell import _apportion, _Durations
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.inputs.rows import COLUMNS
from slacktide.inputs.statistics import demand_over_time, unsatisfiable
from slacktide.model import Hosts, Workload

SMALL = {
    "jobs": {"requests": 6_000, "hosts": 200},
    "light": {"requests": 60_000, "hosts": 200},
    "cell": {"hosts": 60, "requests": 6_000},
    "edge": {"nodes": 40, "sites": 8, "requests": 900},
}


def generated(name: str, seed: int = 1, **settings: object) -> tuple[Workload, Hosts]:
    return registry.generated(name, settings, seed)


def is_equal(one: Workload, other: Workload) -> bool:
    return len(one) == len(other) and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


@pytest.mark.parametrize("name", GENERATORS)
def test_output_is_a_valid_workload_that_reads_back(tmp_path: Path, name: str) -> None:
    pieces, hosts = GENERATORS[name].generate(SMALL.get(name, {}), 3)
    kept = []
    with WorkloadParquetWriter(tmp_path / "w.parquet") as writer:
        for piece in pieces:
            writer.append(piece)
            kept.append(piece)
    write_hosts(hosts, tmp_path / "h.parquet")
    made = join(kept)
    workload = read_workload(tmp_path / "w.parquet", classes=made.classes)
    assert all(np.array_equal(getattr(workload, name), getattr(made, name)) for name in COLUMNS if name != "term")
    assert [workload.terms[number] for number in workload.term] == [made.terms[number] for number in made.term]
    assert read_hosts(tmp_path / "h.parquet").attributes == hosts.attributes
    impossible = unsatisfiable(workload, hosts)
    assert not impossible.terms
    assert not len(impossible.too_large)


@pytest.mark.parametrize("name", GENERATORS)
def test_equal_seeds_give_equal_output_and_others_do_not(name: str) -> None:
    settings = SMALL.get(name, {})
    first, hosts = generated(name, 5, **settings)
    second, same_hosts = generated(name, 5, **settings)
    other, _ = generated(name, 6, **settings)
    assert is_equal(first, second)
    assert hosts.attributes == same_hosts.attributes
    assert not is_equal(first, other)


def test_unknown_parameters_and_bad_values_are_refused() -> None:
    for settings, word in (
        ({"host": 3}, "hosts"),
        ({"hosts": "many"}, "whole number"),
        ({"hosts": 0}, "at least 1"),
        ({"hosts": 1.5}, "whole number"),
        ({"load": "nan"}, "a number"),
        ({"standing": 2}, "0 to 1"),
        ({"requests": 10}, "expected more than"),
    ):
        with pytest.raises(ConfigError, match=word):
            GENERATORS["cell"].generate(settings, 1)
    with pytest.raises(ConfigError, match="did you mean 'bronze'"):
        GENERATORS["light"].generate({"classes": "gold,bronce"}, 1)
    with pytest.raises(ConfigError, match="seed"):
        GENERATORS["light"].generate({}, -1)
    with pytest.raises(ConfigError, match="unknown parameter"):
        GENERATORS["validation-1"].generate({"hosts": 3}, 1)


@pytest.mark.parametrize(("name", "counts"), [("validation-1", {0: 80, 1: 80, 2: 96}), ("validation-2", {1: 221})])
def test_validation_runs_have_the_published_requests(name: str, counts: dict[int, int]) -> None:
    workload, hosts = generated(name)
    assert Counter(workload.service_class.tolist()) == counts
    assert np.array_equal(workload.admission, np.arange(len(workload)))
    assert np.isinf(workload.duration).all()
    assert set(workload.demand.ravel()) == {0.375}
    assert hosts.capacity.tolist() == [[3.75, 3.75]] * 20


def test_light_load_is_poisson_exponential_and_as_high_as_asked() -> None:
    workload, hosts = generated("light", hosts=200, requests=100_000, load="0.7", life=1000, classes="gold, silver")
    gaps = np.diff(workload.admission)
    assert len(workload) == 100_000
    # The standard deviation of an exponential distribution is its mean.
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.02)
    assert workload.duration.mean() == pytest.approx(1000, rel=0.02)
    assert workload.duration.std() == pytest.approx(1000, rel=0.03)
    assert np.bincount(workload.demand[:, 0].astype(int))[1:].tolist() == pytest.approx([25_000] * 4, rel=0.05)
    assert np.bincount(workload.service_class).tolist() == pytest.approx([50_000] * 2, rel=0.03)
    found = demand_over_time(workload, hosts, 20)
    steady = (found["cpu:all"] / found["cpu:capacity"])[5:]
    assert steady.mean() == pytest.approx(0.7, rel=0.03)
    assert (found["memory:all"] / found["memory:capacity"])[5:].mean() < 0.6


@pytest.mark.parametrize("load", [0.6, 0.95])
def test_demand_of_a_cell_is_the_load_asked_for_from_beginning_to_end(load: float) -> None:
    # Single runs wander, as few large jobs make up much of the load; their mean must not, nor drift with time.
    runs = []
    for seed in range(10):
        workload, hosts = generated("cell", seed, hosts=1500, hours=24, requests=200_000, load=load)
        assert len(workload) == pytest.approx(200_000, rel=0.05)
        found = demand_over_time(workload, hosts, 4)
        shares = [found[f"{name}:all"] / found[f"{name}:capacity"] for name in hosts.resources]
        runs.append(np.maximum(*shares))
        assert runs[-1] == pytest.approx([load] * 4, rel=0.15)
    assert np.mean(runs) == pytest.approx(load, rel=0.01)
    assert np.mean(runs, axis=0) == pytest.approx([load] * 4, rel=0.03)


def test_a_cell_has_what_makes_such_cells_hard() -> None:
    workload, hosts = generated("cell", 1)
    standing = workload.admission == 0
    jobs, sizes = np.unique(workload.job, return_counts=True)
    assert len(workload) == pytest.approx(23_000, rel=0.1)
    assert np.array_equal(workload.admission, np.floor(workload.admission))
    assert set(workload.service_class[standing].tolist()) == {0, 1, 2}
    assert 0.5 < workload.anti_affinity.mean() < 0.85
    assert 0.03 < (workload.term > 0).mean() < 0.1
    assert np.bincount(np.unique(workload.demand, axis=0, return_inverse=True)[1].ravel()).max() > 0.3 * len(workload)
    assert 300 < len(np.unique(workload.demand, axis=0)) < 600
    assert np.median(sizes) == 1
    assert sizes.max() > 100
    assert len(np.unique(hosts.capacity, axis=0)) == 5
    finite = workload.duration[np.isfinite(workload.duration)]
    assert finite.max() > 100 * np.median(finite)
    # Every job is of one kind and comes at once.
    first = np.searchsorted(np.sort(workload.job), jobs)
    order = np.argsort(workload.job, kind="stable")
    for column in (workload.admission, workload.service_class, workload.term, workload.anti_affinity):
        assert np.array_equal(column[order], np.repeat(column[order][first], sizes))


def test_anti_affine_jobs_of_a_cell_find_enough_hosts() -> None:
    for size in (1, 4, 40):
        workload, hosts = generated("cell", 1, hosts=size, requests=3_000)
        _, sizes = np.unique(workload.job[workload.anti_affinity], return_counts=True)
        assert sizes.max(initial=1) <= max(len(hosts) // 2, 1)
        assert not len(unsatisfiable(workload, hosts).too_large)


def test_a_cell_is_streamed_in_pieces_with_running_numbers() -> None:
    pieces, _ = GENERATORS["cell"].generate({"hosts": 300, "hours": 48, "requests": 1_500_000}, 2)
    last_id = last_job = 0
    last_time = -1.0
    number = 0
    for number, piece in enumerate(pieces, 1):  # noqa: B007 - counted
        assert np.array_equal(piece.ids, np.arange(last_id + 1, last_id + 1 + len(piece)))
        assert piece.job.min() > last_job
        assert piece.admission[0] >= last_time
        assert (np.diff(piece.admission) >= 0).all()
        last_id, last_job, last_time = int(piece.ids[-1]), int(piece.job.max()), float(piece.admission[-1])
    assert number >= 4


def test_remaining_durations_are_those_of_the_equilibrium() -> None:
    durations = _Durations()
    rng = np.random.default_rng(1)
    whole = durations.whole(400_000, rng)
    assert whole.mean() == pytest.approx(durations.mean, rel=0.03)
    # The mean remaining time that an observer meets is E[D^2] / (2 E[D]).
    expected = (durations._values**2).mean() / (2 * durations.mean)
    assert durations.remaining(400_000, rng).mean() == pytest.approx(expected, rel=0.03)


def test_apportioned_numbers_have_the_expected_total_and_means() -> None:
    expected = np.array([0.3, 2.5, 0.0, 10.1])
    rng = np.random.default_rng(1)
    drawn = np.array([_apportion(expected, rng) for _ in range(4000)])
    assert (np.abs(drawn.sum(axis=1) - expected.sum()) < 1).all()
    assert drawn.mean(axis=0) == pytest.approx(expected, abs=0.05)


def users(workload: Workload) -> list[tuple[float, str, tuple[tuple[str, float], ...], str, float]]:
    """Of each row what it has to do with its users, whatever its number."""
    assert workload.access is not None
    listed = [workload.accesses[number] for number in workload.access.tolist()]
    return [(one.data, one.image, one.logins, one.preferred, one.deadline) for one in listed]


def test_an_edge_cluster_reads_back_with_its_users_and_its_network(tmp_path: Path) -> None:
    made, hosts = generated("edge", 3, **SMALL["edge"])
    with WorkloadParquetWriter(tmp_path / "w.parquet") as writer:
        writer.append(made)
    workload = read_workload(tmp_path / "w.parquet")
    assert hosts.network is not None
    (tmp_path / "network.yaml").write_text(network_text(hosts.network), encoding="utf-8")
    network = read_network(tmp_path / "network.yaml", hosts)
    assert (network.places, network.site_key, network.images) == (hosts.network.places, "site", hosts.network.images)
    assert np.allclose(network.rtt, hosts.network.rtt, rtol=0.0, atol=1e-12)
    assert made.limit is not None
    assert workload.limit is not None
    assert np.array_equal(workload.limit, made.limit)
    assert users(workload) == users(made)


def test_demand_at_the_edge_is_the_load_asked_for_from_beginning_to_end() -> None:
    runs = []
    for seed in range(10):
        workload, hosts = generated("edge", seed, nodes=200, sites=20, requests=5_000, load=0.8, bursts=0)
        found = demand_over_time(workload, hosts, 4)
        runs.append(found["cpu:all"] / found["cpu:capacity"])
        assert len(workload) == 5_000
    assert np.mean(runs, axis=0) == pytest.approx([0.8] * 4, rel=0.05)


def test_bursts_at_the_edge_come_in_a_minute_and_to_one_site() -> None:
    workload, _ = generated("edge", 2, nodes=100, sites=10, requests=4_000, load=0.5, bursts=1, burst_share=0.5)
    assert workload.access is not None
    later = workload.admission > 0
    minutes = np.bincount((workload.admission[later] // 30).astype(int), minlength=120)
    sudden = workload.admission[later]
    start = 30.0 * np.argmax(minutes)
    assert minutes[:].max() > 10 * np.median(minutes)
    inside = np.flatnonzero(later)[(sudden >= start) & (sudden < start + 30.0)]
    homes = Counter(workload.accesses[number].preferred for number in workload.access[inside].tolist())
    assert homes.most_common(1)[0][1] > 0.8 * len(inside)


def test_users_at_the_edge_are_mostly_near_and_sites_of_a_town_nearer_than_others() -> None:
    workload, hosts = generated("edge", 1, **SMALL["edge"])
    network = hosts.network
    assert network is not None
    assert set(hosts.names).isdisjoint(network.places)
    for access in workload.accesses:
        assert sum(share for _, share in access.logins) == pytest.approx(1.0)
        assert access.logins[0][0] in hosts.names
        assert dict(zip(hosts.names, hosts.attributes, strict=True))[access.logins[0][0]]["site"] == access.preferred
    off = network.rtt[~np.eye(len(network.places), dtype=bool)]
    assert (network.rtt.diagonal() == 0.0005).all()
    assert off.min() > 0.0015
    assert 0.02 < off.max() < 0.15


def test_an_edge_cluster_that_cannot_be_is_refused() -> None:
    for settings, word in (({"nodes": 3, "sites": 4}, "at most the 3 nodes"), ({"requests": 100}, "more than")):
        with pytest.raises(ConfigError, match=word):
            GENERATORS["edge"].generate(settings, 1)
