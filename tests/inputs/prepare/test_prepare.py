"""Peaks, host sets, thinning, windows and scaling: worked out by hand, and what holds whatever is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.errors import ConfigError, InputError
from slacktide.inputs import read_workload, write_workload
from slacktide.inputs.prepare import (
    binding_resource,
    draw_hosts,
    host_sets,
    keep_share,
    peak,
    remove_hosts,
    scale,
    spans,
)
from slacktide.model import Constraint, Hosts, Term, Unreadiness, Workload
from support.preparing import thin, window
from support.small import BRONZE, FOREVER, GOLD, SILVER, Request, Several, workload


def hosts(capacity: list[tuple[float, float]]) -> Hosts:
    return Hosts(
        ids=np.arange(10, 10 + len(capacity)),
        names=tuple(f"h{number}" for number in range(len(capacity))),
        capacity=np.array(capacity, np.float64),
        attributes=tuple({"rack": str(number)} for number in range(len(capacity))),
    )


# The peak


def test_the_peak_is_the_most_that_is_active_at_once() -> None:
    # 0-10: 2; 5-15: 3; at 10 the first ends as 4 comes: 3 + 4 = 7; at 15 only 4.
    requests = workload([Request(GOLD, 0, 10, 2), Request(GOLD, 5, 10, 3), Request(GOLD, 10, 10, 4)])
    found = peak(requests)
    assert found.amount.tolist() == [7, 7]
    assert found.time.tolist() == [10, 10]
    assert found.of("memory") == 7


def test_what_never_completes_stays() -> None:
    requests = workload([Request(GOLD, 0, FOREVER, 2), Request(GOLD, 1e6, 1, 3)])
    assert peak(requests).of("cpu") == 5


def test_a_job_counts_only_as_many_instances_as_run_at_once() -> None:
    job = workload([Request(GOLD, 0, 10, 2, of=0)] * 5, [Several("batch", 2)])
    assert spans(job).start.tolist() == [0, 0, 10, 10, 20]
    assert peak(job).of("cpu") == 4


def test_a_scale_event_adds_and_removes() -> None:
    # Two instances of 1, at 10 four, at 20 one: the latest admitted go.
    scaled = workload(
        [Request(GOLD, 0, FOREVER, 1, of=0)] * 2 + [Request(GOLD, 10, FOREVER, 1, of=0)] * 2,
        [Several("independent")],
        [(10.0, 0, 4), (20.0, 0, 1)],
    )
    assert spans(scaled).end.tolist() == [FOREVER, 20, 20, 20]
    assert peak(scaled).of("cpu") == 4


times = st.integers(0, 30).map(float)
lengths = st.one_of(st.integers(1, 20).map(float), st.just(FOREVER))
sizes = st.integers(0, 8).map(float)
requests = st.lists(st.builds(Request, st.sampled_from([GOLD, SILVER, BRONZE]), times, lengths, sizes), min_size=1)


def ordered(rows: list[Request]) -> Workload:
    return workload(sorted(rows, key=lambda one: one.admission))


@given(requests)
def test_the_peak_is_that_of_looking_at_every_second(rows: list[Request]) -> None:
    looked_at = [
        sum(one.size for one in rows if one.admission <= second < one.admission + one.duration) for second in range(60)
    ]
    found = peak(ordered(rows))
    assert found.of("cpu") == max(looked_at)
    assert max(looked_at) == 0 or found.time[0] == looked_at.index(max(looked_at))


# Host sets


def test_the_binding_resource_is_the_one_that_the_population_has_least_of() -> None:
    found = peak(workload([Request(GOLD, 0, 10, 6)]))
    assert binding_resource(found, hosts([(8, 100), (8, 100)])) == "cpu"
    assert binding_resource(found, hosts([(80, 4), (8, 4)])) == "memory"


def test_hosts_are_drawn_until_they_reach_the_amount_and_removed_until_they_do_not_exceed_it() -> None:
    # Hosts of 4: 17 takes five of them (20); at most 15.3 leaves three (12), at most 13.6 as many.
    found = host_sets(workload([Request(GOLD, 0, 10, 17)]), hosts([(4, 40)] * 12), (1.0, 0.9, 0.8, 0.5))
    assert {share: len(one) for share, one in found.items()} == {1.0: 5, 0.9: 3, 0.8: 3, 0.5: 2}
    assert set(found[0.5].names) < set(found[0.8].names) == set(found[0.9].names) < set(found[1.0].names)
    assert len(set(found[1.0].names)) == 5
    row = found[1.0].names.index(found[0.5].names[0])
    assert found[0.5].attributes[0] == found[1.0].attributes[row] == {"rack": found[0.5].names[0][1:]}


def test_too_few_hosts_are_an_error_that_names_what_is_missing() -> None:
    with pytest.raises(InputError, match=r"hosts.csv: cpu: found '8 in 2 hosts', expected 17 or more \(9 more\)"):
        host_sets(workload([Request(GOLD, 0, 10, 17)]), hosts([(4, 40)] * 2), file="hosts.csv")
    with pytest.raises(InputError, match=r"hosts.csv: memory: found '0 in all', expected 17"):
        host_sets(workload([Request(GOLD, 0, 10, 17)]), hosts([(20, 0)]), file="hosts.csv")


def test_with_repetition_hosts_come_again_under_other_names() -> None:
    found = draw_hosts(hosts([(4, 40), (4, 40)]), 17, "cpu", 1, repeat=True)
    assert len(found) == 5
    assert len(set(found.names)) == len(set(found.ids.tolist())) == 5
    # Each round draws both; the third round's first is either.
    assert [sorted(found.names[:2]), sorted(found.names[2:4])] == [["h0", "h1"], ["h0.2", "h1.2"]]
    assert found.names[4] in ("h0.3", "h1.3")
    racks = [one["rack"] for one in found.attributes]
    assert racks == [name[1] for name in found.names]


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="share: found"):
        keep_share(hosts([(4, 4)]), share, 0)
    with pytest.raises(ConfigError, match="share: found"):
        thin(workload([Request(GOLD)]), share, 0)


def test_a_set_without_hosts_is_refused() -> None:
    with pytest.raises(ConfigError, match="as much as a host"):
        remove_hosts(hosts([(4, 4), (4, 4)]), 3, "cpu", 0)
    with pytest.raises(ConfigError, match="one of cpu, memory"):
        remove_hosts(hosts([(4, 4)]), 3, "gpu", 0)


capacities = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=40)


@given(capacities, st.floats(0.05, 1.0), st.integers(0, 5))
def test_a_drawn_set_reaches_the_amount_and_would_not_without_its_last(
    drawn: list[tuple[float, float]], share: float, seed: int
) -> None:
    population = hosts(drawn)
    amount = share * population.capacity[:, 0].sum()
    found = draw_hosts(population, amount, "cpu", seed)
    assert found.capacity[:, 0].sum() >= amount * (1 - 1e-9)
    assert found.capacity[:-1, 0].sum() < amount
    assert found.names == draw_hosts(population, amount, "cpu", seed).names


@given(capacities, st.floats(0.05, 1.0), st.integers(0, 5))
def test_what_is_left_has_at_most_the_amount_and_is_not_removed_for_nothing(
    drawn: list[tuple[float, float]], share: float, seed: int
) -> None:
    population = hosts(drawn)
    total, biggest = population.capacity[:, 0].sum(), population.capacity[:, 0].max()
    try:
        found = keep_share(population, share, seed)
    except ConfigError:
        assert share * total < biggest
        return
    kept = found.capacity[:, 0].sum()
    assert share * total - biggest < kept <= share * total * (1 + 1e-9)
    assert [population.names.index(name) for name in found.names] == sorted(
        population.names.index(name) for name in found.names
    )


# Thinning


@given(requests, st.floats(0.01, 1.0), st.integers(0, 5))
def test_thinning_keeps_the_order_and_is_repeated_by_its_seed(rows: list[Request], share: float, seed: int) -> None:
    whole = ordered(rows)
    found = thin(whole, share, seed)
    assert len(found) == max(round(len(rows) * share), 1)
    assert (np.diff(found.ids) > 0).all()
    assert found.ids.tolist() == thin(whole, share, seed).ids.tolist()
    assert set(thin(whole, share / 2, seed).ids.tolist()) <= set(found.ids.tolist())


def test_thinning_keeps_requests_of_several_instances_whole() -> None:
    rows = [Request(GOLD, place, 10, 1, of=place // 3) for place in range(30)]
    found = thin(workload(rows, [Several("concurrent")] * 10), 0.4, 3)
    assert found.requests is not None
    assert found.request is not None
    assert len(found.requests) == 4
    assert np.bincount(found.request).tolist() == [3, 3, 3, 3]


# Windows


def test_a_window_begins_with_what_runs_and_has_the_rest_of_its_duration() -> None:
    found = window(
        workload(
            [
                Request(GOLD, 0, 10, 1),  # over at 10: not in it
                Request(GOLD, 0, 15, 1),  # 5 s remain
                Request(SILVER, 5, FOREVER, 1),
                Request(GOLD, 10, 3, 1),
                Request(BRONZE, 19.5, 30, 1),  # runs on beyond the end
                Request(GOLD, 20, 3, 1),  # not in it any more
            ]
        ),
        10,
        20,
    )
    assert found.ids.tolist() == [1, 2, 3, 4]
    assert found.admission.tolist() == [0, 0, 0, 9.5]
    assert found.duration.tolist() == [5, FOREVER, 3, 30]
    assert found.service_class.tolist() == [GOLD, SILVER, GOLD, BRONZE]


def test_a_window_without_what_runs_has_only_arrivals() -> None:
    rows = workload([Request(GOLD, 0, 15, 1), Request(GOLD, 12, 3, 1)])
    assert window(rows, 10, 20, keep_running=False).admission.tolist() == [2]


def test_a_window_keeps_constraints_and_anti_affinity() -> None:
    term = Term((Constraint("disk", "==", "ssd"),))
    rows = workload([Request(GOLD), Request(GOLD, 5, 9, 1, job=4, anti_affinity=True, term=term)])
    found = window(rows, 5, 6, keep_running=False)
    assert found.terms[found.term[0]] == term
    assert found.anti_affinity.tolist() == [True]
    assert found.job.tolist() == rows.job[1:].tolist()


def test_a_scaled_service_goes_on_scaling_in_the_window(tmp_path: Path) -> None:
    scaled = workload(
        [Request(GOLD, 0, FOREVER, 1, of=0)] * 2
        + [Request(GOLD, 3, FOREVER, 1)]
        + [Request(GOLD, 10, FOREVER, 1, of=0)]
        + [Request(GOLD, 30, FOREVER, 1, of=0)] * 3
        + [Request(GOLD, 90, FOREVER, 1, of=0)],
        [Several("concurrent")],
        [(10.0, 0, 3), (20.0, 0, 2), (30.0, 0, 5), (90.0, 0, 6)],
    )
    found = window(scaled, 25, 80)
    # At 25 two of the three instances are left; at 30, five seconds into the window, they become five.
    assert found.admission.tolist() == [0, 0, 0, 5, 5, 5]
    assert found.requests is not None
    assert found.requests.scale_time.tolist() == [5]
    assert found.requests.scale_replicas.tolist() == [5]
    write_workload(with_ids(found), tmp_path / "window.parquet")
    again = read_workload(tmp_path / "window.parquet")
    assert again.admission.tolist() == found.admission.tolist()


def with_ids(found: Workload) -> Workload:
    """Rows have the number of their request, as a file's have."""
    from dataclasses import replace

    assert found.requests is not None
    return replace(found, ids=found.requests.ids[found.request], job=found.requests.ids[found.request])


def test_of_a_job_what_is_done_is_gone_and_what_waits_stays() -> None:
    job = workload([Request(GOLD, 0, 10, 1, of=0)] * 6, [Several("batch", 2)])
    found = window(job, 15, 100)
    assert found.admission.tolist() == [0, 0, 0, 0]
    assert found.duration.tolist() == [5, 5, 10, 10]
    assert found.requests is not None
    assert found.requests.parallelism.tolist() == [2]


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 5), (float("nan"), 5), (100, 200)])
def test_a_window_that_is_none_or_empty_is_refused(start: float, end: float) -> None:
    with pytest.raises(ConfigError, match="window: found"):
        window(workload([Request(GOLD, 0, 10)]), start, end)


@given(requests, st.integers(0, 30), st.integers(1, 30))
def test_in_a_window_as_much_is_active_as_before(rows: list[Request], start: int, length: int) -> None:
    whole = ordered(rows)
    try:
        found = window(whole, start, start + length)
    except ConfigError:
        assert not any(one.admission < start + length and one.admission + one.duration > start for one in rows)
        return
    for second in range(length):
        before = (whole.admission <= start + second) & (whole.admission + whole.duration > start + second)
        after = (found.admission <= second) & (found.admission + found.duration > second)
        assert found.ids[after].tolist() == whole.ids[before].tolist()


# Scaling


def test_time_demand_and_rate_are_multiplied() -> None:
    rows = workload(
        [Request(GOLD, 10, 20, 4, of=0), Request(GOLD, 30, FOREVER, 4, of=0)], [Several("concurrent")], [(30.0, 0, 2)]
    )
    found = scale(rows, time=2, demand=0.5)
    assert (found.admission.tolist(), found.duration.tolist()) == ([20, 60], [40, FOREVER])
    assert found.demand.tolist() == [[2, 2], [2, 2]]
    assert found.requests is not None
    assert found.requests.scale_time.tolist() == [60]
    denser = scale(rows, rate=2)
    assert (denser.admission.tolist(), denser.duration.tolist()) == ([5, 15], [20, FOREVER])


@pytest.mark.parametrize("factor", [0.0, -1.0, float("inf"), float("nan")])
def test_factors_are_above_zero(factor: float) -> None:
    for name in ("time", "demand", "rate"):
        with pytest.raises(ConfigError, match=f"{name}: found"):
            scale(workload([Request(GOLD)]), **{name: factor})


def test_grace_periods_and_spells_of_unreadiness_are_kept_and_moved() -> None:
    one = workload([Request(GOLD), Request(BRONZE)])
    spells = ((), ((50.0, 100.0), (200.0, 5.0), (400.0, 1.0)))
    one = replace(one, unready=np.array([1, 0], np.int32), spells=spells, grace=np.array([1.0, 2.0]))
    cut = window(one, 100.0, 300.0)
    assert cut.spells == ((), ((0.0, 50.0), (100.0, 5.0)))
    assert cut.grace is not None
    assert cut.grace.tolist() == [1.0, 2.0]
    longer = scale(one, time=2.0, rate=4.0)
    assert longer.spells[1] == ((25.0, 200.0), (100.0, 10.0), (200.0, 2.0))
    assert longer.grace is not None
    assert longer.grace[0] == 2.0


@pytest.mark.parametrize(
    ("spells", "expected"),
    [
        (((10.0, 100.0), (20.0, 100.0), (300.0, 5.0)), ((0.0, 60.0),)),
        (((10.0, 20.0), (20.0, 100.0), (40.0, 100.0), (60.0, 5.0)), ((0.0, 90.0), (10.0, 5.0))),
        (((50.0 - 1e-7, 3.0), (50.0 + 1e-7, 4.0)), ((0.0, 3.0),)),
        (((60.0, 1e-7), (70.0, 1.0)), ((20.0, 1.0),)),
    ],
)
def test_what_is_left_of_spells_in_a_window_can_be_written_and_read(
    spells: Unreadiness, expected: Unreadiness, tmp_path: Path
) -> None:
    """Who is not ready when another spell begins has no use for it."""
    one = replace(workload([Request(GOLD)]), unready=np.array([1], np.int32), spells=((), spells))
    cut = window(one, 50.0, 250.0)
    assert [[round(value, 6) for value in spell] for spell in cut.spells[1]] == [list(spell) for spell in expected]
    write_workload(cut, tmp_path / "w.csv")
    assert len(read_workload(tmp_path / "w.csv").spells[1]) == len(expected)


def test_of_spells_that_scaling_brings_together_the_first_stays(tmp_path: Path) -> None:
    spells = ((1.0, 2.0), (1.00001, 3.0), (5.0, 7.0))
    one = replace(workload([Request(GOLD)]), unready=np.array([1], np.int32), spells=((), spells))
    shorter = scale(one, rate=100.0)
    assert [seconds for _, seconds in shorter.spells[1]] == [2.0, 7.0]
    write_workload(shorter, tmp_path / "w.csv")
    assert read_workload(tmp_path / "w.csv").spells[1] == shorter.spells[1]
