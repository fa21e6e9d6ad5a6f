"""The simulator as a whole: repeatable, exact on cases worked out by hand, and unbounded in what it can hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reference.checks import in_requests
from slacktide.config import preset
from slacktide.errors import ConfigError
from slacktide.metrics import per_class
from slacktide.model import ServiceClass
from slacktide.model.workload import INDEPENDENT
from slacktide.sim import RunResult, run
from support.clusters import cluster
from support.compiled_policy import CompiledPolicy
from support.runs import compare, core, decisions_of, passes_of, twin
from support.small import BRONZE, FOREVER, GOLD, SILVER, Request, machines, small, workload

pytestmark = pytest.mark.uncompiled


def bits(result: RunResult) -> bytes:
    """All of a result that does not depend on the machine it was computed on."""
    parts = []
    for table in (result.requests, result.instances, result.passes, result.events, result.decisions):
        if table is not None:
            parts += [table[name].tobytes() for name in sorted(table) if name != "decision_seconds"]
    return b"".join(parts)


@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_equal_seeds_give_equal_bits(several: bool, tmp_path: Path) -> None:
    for seed in (3, 7, 11, 19):
        one = cluster(seed, largest=4, requests=15, several=several)
        first = core(one, tmp_path, events=True)
        assert bits(first) == bits(core(one, tmp_path, events=True)), f"cluster({seed}, 4, 15, {several})"
        assert first.operations == core(one, tmp_path).operations


def test_different_seeds_differ(tmp_path: Path) -> None:
    one = small([Request(GOLD)] * 8, machines(*[1.0] * 8), end=10.0)
    logs = [decisions_of(core(one.with_(simulation={"seed": seed}), tmp_path)) for seed in range(5)]
    assert len({tuple(log) for log in logs}) == 5
    assert all(sorted(d[3] for d in log) == list(range(8)) for log in logs)


def test_a_negative_seed_is_a_seed_like_any_other(tmp_path: Path) -> None:
    one = small([Request(GOLD)] * 8, machines(*[1.0] * 8), end=10.0, simulation={"seed": -5})
    assert compare(core(one, tmp_path), twin(one)) is None


def test_a_full_host_serves_the_next_when_the_first_completes(tmp_path: Path) -> None:
    requests = [Request(GOLD, duration=30.0), Request(GOLD, duration=20.0)]
    result = core(small(requests, machines(1.0), cold=5.0), tmp_path)
    assert decisions_of(result) == [(0, 0.0, 0, 0, ()), (4, 35.0, 1, 0, ())]
    assert result.requests["completed"].tolist() == [35.0, 60.0]
    assert result.requests["pending"].tolist() == [0.0, 35.0]


@pytest.mark.parametrize(
    ("accounting", "available"), [("restart", 205 / 262), ("always", 200 / 262), ("never", 207 / 262)]
)
def test_three_accountings_of_the_same_run(accounting: str, available: float, tmp_path: Path) -> None:
    # 5 s cold start, 95 s of work, preempted at 100 s for 55 s, 2 s hot start, 105 s of work.
    requests = [Request(BRONZE, duration=200.0), Request(GOLD, admission=100.0, duration=50.0)]
    one = small(requests, machines(1.0), hot=2.0, cold=5.0, qos={"startup": accounting})
    result = core(one, tmp_path)
    found = result.requests
    assert [found[name][0] for name in ("running", "pending", "startup_first", "startup_restarts")] == [200, 55, 5, 2]
    assert (found["completed"][0], found["wasted_startup"][0], found["preemptions"][0]) == (262.0, 5.0, 1)
    classes = per_class(found, one.workload.service_class, one.workload.classes, "restart")
    means = {str(key): value.mean for key, value in classes[BRONZE].availability.items()}
    assert means[accounting] == pytest.approx(available)


def test_the_watchdog_fires_only_while_somebody_waits(tmp_path: Path) -> None:
    requests = [Request(GOLD, duration=25.0), Request(SILVER, duration=40.0)]
    one = small(requests, machines(1.0))
    assert [time for time, *_ in passes_of(core(one, tmp_path))] == [0.0, 10.0, 20.0, 25.0]
    slower = one.with_(scheduler={"watchdog": 15.0})
    assert [time for time, *_ in passes_of(core(slower, tmp_path))] == [0.0, 15.0, 25.0]


def test_a_failed_host_gives_its_requests_back_and_takes_them_again(tmp_path: Path) -> None:
    events = [(10.0, 0, "fail"), (20.0, 0, "drain"), (50.0, 0, "repair"), (60.0, 0, "repair")]
    one = small([Request(SILVER, duration=100.0)], machines(1.0), hot=1.0, cold=5.0, events=events)
    result = core(one, tmp_path)
    assert [(d[1], d[3]) for d in decisions_of(result)] == [(0.0, 0), (50.0, 0)]
    assert result.requests["completed"][0] == 50.0 + 1.0 + 95.0
    assert (result.requests["preemptions"][0], result.preemptions, result.requests["starts"][0]) == (0, 0, 2)
    assert compare(result, twin(one)) is None


def test_a_drained_host_is_left_at_once(tmp_path: Path) -> None:
    one = small([Request(GOLD)], machines(2.0, 1.0), end=100.0, cold=5.0, events=[(3.0, 0, "drain")])
    one = one.with_(policy={"score": "mean"})  # the larger host first
    assert [(d[1], d[3]) for d in decisions_of(core(one, tmp_path))] == [(0.0, 0), (3.0, 1)]


def test_drawn_failures_repeat_with_the_seed_and_need_an_end(tmp_path: Path) -> None:
    failures = {"uptime": "exponential:50", "downtime": "constant:7"}
    one = small([Request(SILVER)] * 6, machines(2.0, 2.0), end=300.0, failures=failures)
    first, again = core(one, tmp_path, events=True), core(one, tmp_path, events=True)
    assert bits(first) == bits(again)
    assert first.requests["starts"].sum() > 12
    assert bits(first) != bits(core(one.with_(simulation={"seed": 9}), tmp_path, events=True))
    with pytest.raises(ConfigError, match="end"):
        core(one.with_(simulation={"end": None}), tmp_path)


def test_at_the_end_only_completions_happen(tmp_path: Path) -> None:
    requests = [Request(GOLD, duration=50.0), Request(GOLD, admission=1.0), Request(GOLD, admission=50.0)]
    result = core(small(requests, machines(1.0), end=50.0), tmp_path)
    assert result.requests["row"].tolist() == [0, 1]
    assert result.requests["completed"][0] == 50.0
    assert result.requests["pending"].tolist() == [0.0, 49.0]
    assert (result.passes is not None, result.end) == (True, 50.0)
    assert passes_of(result)[-1][0] == 41.0


def test_without_end_a_run_stops_when_nothing_can_change(tmp_path: Path) -> None:
    result = core(small([Request(GOLD, duration=10.0), Request(GOLD, duration=1.0, size=5.0)], machines(1.0)), tmp_path)
    assert [time for time, *_ in passes_of(result)] == [0.0, 10.0]
    assert (result.end, result.requests["pending"][1]) == (10.0, 10.0)


def test_requests_that_never_complete_need_an_end(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"simulation\.end"):
        core(small([Request(GOLD)], machines(1.0)), tmp_path)
    assert core(small([Request(GOLD)], machines(1.0), end=9.0), tmp_path).requests["running"].tolist() == [9.0]


def test_nothing_to_do_takes_no_pass(tmp_path: Path) -> None:
    for end in (None, 100.0):
        result = core(small([], machines(1.0), end=end), tmp_path)
        assert (result.pass_count, len(result.requests["row"])) == (0, 0)


def test_hybrid_follows_priority_above_its_queue_limit(tmp_path: Path) -> None:
    requests = [Request(SILVER), Request(BRONZE, admission=350.0)]
    for limit, swaps in ((1, 1), (0, 0)):
        one = small(requests, machines(1.0), end=360.0, policy={"name": "hybrid", "queue_limit": limit})
        assert core(one, tmp_path).preemptions == swaps


def test_the_papers_preempt_more_than_needed(tmp_path: Path) -> None:
    requests = [Request(BRONZE), Request(SILVER, admission=30.0)]
    one = small(requests, machines(1.0), end=31.0)
    assert core(one, tmp_path).preemptions == 1
    rich = [Request(BRONZE), Request(BRONZE), Request(BRONZE, admission=100.0)]
    eager = small(rich, machines(2.0), end=101.0, config=preset("published"), qos={"alpha": 0.0, "margin": 0.0})
    assert core(eager, tmp_path).preemptions == 1
    assert core(eager.with_(policy={"preempt_when": "needed"}), tmp_path).preemptions == 0


def test_who_is_at_its_margin_is_not_below_it(tmp_path: Path) -> None:
    # Row 0 runs for 50 s, until the small host fails, and is promised half: it can wait as long as it ran, until 100 s.
    # Row 1 is below its own margin all the time, and goes for nobody who is not.
    classes = (ServiceClass("first", 0.5, 1, 0.0), ServiceClass("second", 0.5, 2, 1000.0))
    events = [(0.0, 1, "fail"), (5.0, 1, "repair"), (50.0, 0, "fail")]
    one = small([Request(0), Request(1, size=2.0)], machines(1.0, 2.0), end=115.0, events=events, qos={"alpha": 0.0})
    one = replace(one, workload=replace(one.workload, classes=classes)).with_(
        policy={"preempt_when": "better", "overload": "triage"}
    )
    result = core(one, tmp_path)
    assert [(d[1], d[2], d[4]) for d in decisions_of(result)] == [(0.0, 0, ()), (5.0, 1, ()), (110.0, 0, (1,))]
    assert 100.0 in [time for time, *_ in passes_of(result)]
    assert compare(result, twin(one)) is None


@pytest.mark.parametrize(("alpha", "comes_back"), [(None, 1170.0), (180.0, 1020.0)])
def test_a_class_that_starts_slowly_comes_back_in_time(alpha: float | None, comes_back: float, tmp_path: Path) -> None:
    """It is promised half, ran for 600 s, gives way, and takes 180 s to start anew: after 1200 s it is behind. It is at
    its margin of 10 s at 1200 - alpha - 10 s; passes come every 30 s."""
    first, second = Request(0), Request(1, admission=600.0)
    one = small([first, second], machines(1.0), end=1400.0, hot=180.0, policy={"overload": "triage"})
    classes = (ServiceClass("slow", 0.5, 1, alpha=alpha), ServiceClass("other", 0.1, 1), ServiceClass("none", 0.1, 1))
    result = core(replace(one, workload=replace(one.workload, classes=classes)), tmp_path)
    (again,) = [at for _, at, row, _, _ in decisions_of(result) if row == 0 and at > 0.0]
    assert again == comes_back
    assert (600.0 / (again + 180.0) >= 0.5) == (alpha is not None)


def test_by_priority_the_youngest_of_a_class_goes_first(tmp_path: Path) -> None:
    rows = [*[Request(BRONZE, admission=5.0 * place) for place in range(3)], Request(GOLD, 20.0), Request(GOLD, 30.0)]
    one = small(rows, machines(3.0), end=40.0, policy={"name": "priority"})
    result = core(one, tmp_path)
    assert [(d[2], d[4]) for d in decisions_of(result)] == [(0, ()), (1, ()), (2, ()), (3, (2,)), (4, (1,))]
    assert compare(result, twin(one)) is None


@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_progress_is_reported_and_an_interrupt_gets_through(engine: str) -> None:
    one = small([Request(SILVER)] * 3, machines(1.0), end=100_000.0)
    own = CompiledPolicy() if engine == "stepwise" else None
    seen: list[tuple[float, int, int]] = []

    def interrupt(now: float, admitted: int, total: int) -> None:
        seen.append((now, admitted, total))
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(one.workload, one.hosts, one.config, own=own, progress=interrupt)
    assert seen[0][0] < seen[1][0] < seen[2][0] < 100_000.0
    assert {(admitted, total) for _, admitted, total in seen} == {(3, 3)}


def test_a_workload_that_names_other_resources_is_refused() -> None:
    hosts = machines(1.0)
    other = workload([Request(GOLD, duration=1.0)])
    object.__setattr__(other, "resources", ("cpu", "gpu"))
    with pytest.raises(ConfigError, match="resources"):
        run(other, hosts, small([], hosts).config)


def test_a_row_is_the_same_whether_or_not_it_is_called_a_request(tmp_path: Path) -> None:
    for seed in (3, 7, 11, 19):
        one = cluster(seed, largest=4, requests=15).with_(simulation={"end": 150.0})
        plain, called = core(one, tmp_path), core(in_requests(one, False, INDEPENDENT, ghosts=False), tmp_path)
        assert called.instances is not None
        assert decisions_of(called) == decisions_of(plain)
        for name, values in plain.requests.items():
            assert np.array_equal(called.requests[name], values, equal_nan=True), (seed, name)


def test_who_keeps_apart_does_so_from_all_of_his_job(tmp_path: Path) -> None:
    # Row 1 keeps apart from row 0, which does not care, and row 2 comes beside row 1; row 3 is of another job.
    rows = [Request(GOLD, job=1), Request(GOLD, 5.0, job=1, anti_affinity=True), Request(GOLD, 6.0, job=1)]
    one = small([*rows, Request(GOLD, 7.0, job=2, anti_affinity=True)], machines(2.0, 1.5), end=20.0)
    one = one.with_(policy={"score": "mean"})  # the larger host first
    result = core(one, tmp_path)
    assert [d[3] for d in decisions_of(result)] == [0, 1, 0]
    assert compare(result, twin(one)) is None
    alone = small(rows[:2], machines(5.0), end=20.0)
    assert [d[2] for d in decisions_of(core(alone, tmp_path))] == [0]


def test_amounts_are_exact_however_often_a_host_fills_and_empties(tmp_path: Path) -> None:
    tenths = [Request(GOLD, admission=float(10 * k), duration=9.0, size=0.1) for k in range(60) for _ in range(10)]
    result = core(small(tenths, machines(1.0)), tmp_path)
    assert np.array_equal(result.requests["pending"], np.zeros(len(tenths)))


@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_durations_are_invisible(several: bool, tmp_path: Path) -> None:
    for seed in range(23, 29):
        one = cluster(seed, largest=3, requests=12, several=several).with_(simulation={"end": 60.0})
        endless = one.workload.duration.copy()
        endless[endless >= 60.0] = FOREVER
        before = decisions_of(core(one, tmp_path))
        object.__setattr__(one.workload, "duration", endless)
        assert decisions_of(core(one, tmp_path)) == before, f"cluster({seed}, 3, 12, {several})"
