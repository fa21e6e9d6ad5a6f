"""Every buffer grows when it has to, and nothing is lost or reordered by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.runs import compare, core, decisions_of, twin
from support.small import BRONZE, GOLD, SILVER, Request, Several, machines, small


def test_thousands_of_requests_of_no_size_share_one_host(tmp_path: Path) -> None:
    requests = [Request(SILVER, duration=50.0 + k % 7, size=0.0) for k in range(3000)]
    result = core(small(requests, machines(1.0)), tmp_path, events=True)
    assert (result.requests["completed"] == [50.0 + k % 7 for k in range(3000)]).all()
    assert result.events is not None
    assert len(result.events["time"]) == 9000


def test_more_than_sixteen_on_a_host_are_preempted_as_the_twin_says(tmp_path: Path) -> None:
    small_ones = [Request(BRONZE, size=0.02) for _ in range(50)]
    one = small([*small_ones, Request(GOLD, admission=200.0)], machines(1.0), end=230.0, cold=3.0)
    result = core(one, tmp_path)
    assert result.preemptions == 50
    assert compare(result, twin(one)) is None


def test_a_host_full_of_thousands_fails(tmp_path: Path) -> None:
    requests = [Request(SILVER, size=0.0) for _ in range(4500)]
    result = core(small(requests, machines(1.0, 0.0), end=90.0, events=[(60.0, 0, "fail")]), tmp_path, events=True)
    assert (result.requests["starts"] >= 1).all()
    assert result.events is not None
    kinds = np.bincount(result.events["kind"], minlength=8)
    assert kinds[0] == 4500
    assert kinds[1] == result.requests["starts"].sum()
    assert kinds[4] == kinds[1] - 4500


@pytest.mark.parametrize("recorded", [False, True])
def test_completions_come_before_a_failure_of_the_same_instant_however_many(recorded: bool, tmp_path: Path) -> None:
    requests = [Request(SILVER, duration=60.0)] * 30_000
    failing = [(60.0, host, "fail") for host in range(300)]
    one = small(requests, machines(*[100.0] * 300), end=90.0, events=failing)
    result = core(one, tmp_path, events=recorded)
    assert (result.requests["completed"] == 60.0).all()
    assert (result.requests["starts"] == 1).all()


def test_more_wait_than_the_queue_was_made_for(tmp_path: Path) -> None:
    waiting = 70_000
    requests = [Request(SILVER, duration=5.0, size=2.0)] * waiting
    result = core(small([*requests, Request(GOLD, duration=5.0)], machines(1.0)), tmp_path)
    assert np.isnan(result.requests["completed"]).sum() == waiting
    assert result.requests["completed"][-1] == 5.0
    assert result.passes is not None
    assert result.passes["queue"].tolist() == [waiting + 1, waiting]


def test_many_completions_of_one_instant_are_all_taken(tmp_path: Path) -> None:
    requests = [Request(SILVER, admission=float(k // 3000), duration=10.0 - k // 3000) for k in range(9000)]
    one = small(requests, machines(*[500.0] * 20))
    result = core(one, tmp_path)
    assert (result.requests["completed"] == 10.0).all()
    assert len(decisions_of(result)) == 9000


def test_more_restarts_on_other_hosts_than_the_set_of_visits_holds(tmp_path: Path) -> None:
    hosts = machines(*[1.0] * 40)
    order = np.random.default_rng(1).integers(40, size=1000).tolist()
    down = [(float(t), h, "fail") for t, h in enumerate(order)]
    up = [(t + 7.5, h, "repair") for t, h, _ in down]
    events = sorted(down + up, key=lambda event: event[0])
    one = small([Request(SILVER, size=0.02)] * 400, hosts, end=1000.0, cold=1.0, events=events)
    result = core(one, tmp_path)
    assert result.requests["hosts_used"].sum() > 4096
    assert (result.requests["hosts_used"] <= 40).all()
    again = core(one.naively(), tmp_path)
    assert decisions_of(result) == decisions_of(again)


def test_a_gang_takes_the_place_of_more_than_its_trial_had_steps_for(tmp_path: Path) -> None:
    there = [Request(BRONZE, size=0.02) for _ in range(150)]
    gang = [Request(GOLD, admission=200.0, size=0.04, of=0) for _ in range(75)]
    hosts, kinds = machines(1.0, 1.0, 1.0), [Several("concurrent")]
    one = small([*there, *gang], hosts, end=215.0, cold=3.0, several=kinds, policy={"gang": True})
    result = core(one, tmp_path)
    assert (result.preemptions, result.placements) == (150, 225)
    assert compare(result, twin(one)) is None


@pytest.mark.parametrize(("size", "running"), [(0.0, 5000), (0.4, 4)])
def test_one_scale_event_removes_thousands(size: float, running: int, tmp_path: Path) -> None:
    rows = [Request(SILVER, size=size, of=0)] * 5000
    hosts, kinds = machines(1.0, 1.0), [Several("aggregated")]
    one = small(rows, hosts, end=60.0, several=kinds, scales=[(30.0, 0, 3)])
    result = core(one, tmp_path, events=True)
    assert result.instances is not None
    assert result.events is not None
    stay = np.isnan(result.instances["removed"])
    assert stay.sum() == 3
    assert (result.instances["removed"][~stay] == 30.0).all()
    assert (result.placements, np.bincount(result.events["kind"])[-1]) == (running, 4997)
    expected = 30.0 * running + 30.0 * 3
    assert result.instances["running"].sum() == expected
    assert result.requests["availability_restart"][0] == expected / (30.0 * 5000 + 30.0 * 3)


def test_a_batch_request_releases_thousands_one_after_the_other(tmp_path: Path) -> None:
    rows = [Request(SILVER, duration=5.0, size=0.0, of=0)] * 3000
    result = core(small(rows, machines(1.0), several=[Several("batch", 100)]), tmp_path, events=True)
    assert result.instances is not None
    assert result.instances["completed"].tolist() == [5.0 * (row // 100 + 1) for row in range(3000)]
    assert result.requests["completed"].tolist() == [150.0]
    assert result.requests["availability_restart"].tolist() == [1.0]


def test_thousands_of_start_ups_of_a_request_end_at_one_instant(tmp_path: Path) -> None:
    rows = [Request(SILVER, size=0.0, of=0)] * 5000
    hosts, kinds = machines(1.0, 1.0), [Several("concurrent")]
    one = small(rows, hosts, end=100.0, cold=10.0, several=kinds, qos={"startup": "always"})
    result = core(one, tmp_path)
    found = [result.requests[f"availability_{name}"][0] for name in ("restart", "always", "never")]
    assert found == [1.0, 0.9, 1.0]


def test_more_requests_wait_than_fit_a_heap_of_a_hundred(tmp_path: Path) -> None:
    rows = [Request(SILVER, size=0.3, of=row // 2) for row in range(600)]
    one = small(rows, machines(1.0, 1.0), end=45.0, several=[Several("aggregated"), Several("concurrent")] * 150)
    result = core(one, tmp_path)
    assert compare(result, twin(one)) is None
