"""Requests of several instances in the core: the metric means what it is defined to mean, whatever happened before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference import approaches
from reference.approaches import Standing
from reference.checks import in_requests
from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.qos import request_ledger
from slacktide.model import Constraint, Term
from slacktide.model.workload import AGGREGATED, CONCURRENT, INDEPENDENT
from slacktide.sim import EVENT_KINDS, RunResult
from support.auditor import faults_of
from support.clusters import Cluster, cluster
from support.repository import TESTS
from support.runs import compare, core, decisions_of, passes_of, twin
from support.small import BRONZE, GOLD, SILVER, Request, Several, machines, small
from support.standstill import Standstill, halted

HISTORIES = range(6000, 6150)
STEP = 2.0**-20  # seconds, of the grid of times
KINDS = ("concurrent", "aggregated", "batch")


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[Standstill]:
    """Random clusters at arbitrary instants; who lets something happen to one does so to a copy."""
    found, folder = [], tmp_path_factory.mktemp("histories")
    for seed in HISTORIES:
        one = cluster(seed, requests=25, several=True)
        found.append(halted(one, float(np.random.default_rng(seed).uniform(10.0, 140.0)), folder))
    return found


def promise(at: Standstill, row: int) -> float:
    """The SLO of a row's class."""
    return at.cluster.workload.classes[int(at.cluster.workload.service_class[row])].slo


def spared(at: Standstill, request: int, row: int, kind: str) -> float:
    """D: how much more of its promise the request uses up in a second, while this instance is stopped."""
    live = at.live(request)
    contributing = sum(at.counts(k) for k in live if k != row) if kind != "concurrent" else 0
    return len(live) * promise(at, row) - contributing


def test_the_metric_is_that_of_the_equations(histories: list[Standstill]) -> None:
    seen: Counter[str] = Counter()
    for at in histories:
        for request, kind in at.measured_together():
            had, live = at.had(request), at.live(request)
            up = sum(at.counts(row) for row in live)
            code = CONCURRENT if kind == "concurrent" else AGGREGATED
            for row in live:
                slo = promise(at, row)
                standing = Standing(had.e, 0.0, had.total - had.e, up, len(live) - up)
                expected = float(
                    approaches.metric(code, standing, slo, at.alpha(row), at.counts(row), at.to_lose(row)).item()
                )
                found = at.metric(row)
                falls = spared(at, request, row, kind)
                if abs(expected + at.alpha(row)) < 1e-5 * (1.0 + abs(1.0 / falls if falls else 0.0)):
                    continue  # which side of the promise it is on is a matter of rounding
                blur = STEP * (1.0 + abs(slo / falls if falls else 0.0))
                name = f"seed {at.cluster.seed}, at {at.t} s, row {row}"
                assert found == expected or abs(found - expected) <= blur + 1e-12 * abs(expected), name
                seen[kind] += 1
    assert min(seen[kind] for kind in KINDS) >= 100, seen


def test_a_promise_lasts_as_long_as_the_metric_says(histories: list[Standstill]) -> None:
    seen: Counter[str] = Counter()
    for at in histories:
        for request, kind in at.measured_together():
            if any(at.runs(row) and at.ready(row) > at.t for row in at.live(request)):
                continue  # the end of a start-up would be an event
            takes = kind != "batch" and at.cluster.config.simulation.preempted_work == "lost"
            for row in at.live(request):
                if takes and at.runs(row):
                    continue  # what a service would lose is no part of its metric
                q, then = at.metric(row), at.without(row)
                name = f"seed {at.cluster.seed}, at {at.t} s, row {row}"
                if q + at.alpha(row) < 0.0:
                    check_too_late(then, request, -(q + at.alpha(row)), promise(at, row), name)
                    seen[f"{kind}, too late"] += 1
                elif q == np.inf:
                    check_never(then, request, promise(at, row), name)
                    seen[f"{kind}, never"] += 1
                else:
                    falls = spared(at, request, row, kind)
                    check_until(then, request, q + at.alpha(row), promise(at, row), falls, name)
                    seen[f"{kind}, in time"] += 1
    wanted = [f"{kind}, {what}" for kind in KINDS for what in ("too late", "in time")]
    assert min(seen[what] for what in wanted) >= 30, seen
    assert min(seen[what] for what in ("aggregated, never", "batch, never")) >= 5, seen


def check_until(then: Standstill, request: int, seconds: float, slo: float, falls: float, name: str) -> None:
    """After so long without any event the request has exactly what it was promised, and less from then on."""
    had = then.had(request, seconds)
    assert abs(had.e - slo * had.total) <= STEP * (falls + slo) + 1e-15 * had.total, name
    later = then.had(request, seconds + 1.0)
    assert later.e < slo * later.total, name


def check_never(then: Standstill, request: int, slo: float, name: str) -> None:
    for seconds in (0.0, 7.25, 1e3, 1e6):
        had = then.had(request, seconds)
        assert had.e >= slo * had.total - STEP * slo, name


def check_too_late(then: Standstill, request: int, too_much: float, slo: float, name: str) -> None:
    """With so much less pending time it would have exactly what it was promised."""
    had = then.had(request)
    assert abs(had.e - slo * (had.total - too_much)) <= STEP * slo + 1e-15 * had.total, name


def test_every_second_of_a_request_is_running_discarded_or_pending(histories: list[Standstill]) -> None:
    names = ("running", "startup_first", "startup_restarts", "discarded", "pending")
    for at in histories:
        result = at.result()
        rows, found = result.instances, result.requests
        assert rows is not None
        ends = np.where(np.isnan(rows["completed"]), rows["removed"], rows["completed"])
        lifetime = np.where(np.isnan(ends), at.t, ends) - rows["admission"]
        of = at.cluster.workload.request
        assert of is not None
        assert np.array_equal(np.sum([rows[name] for name in names], axis=0), lifetime)
        assert min(rows[name].min(initial=0.0) for name in names) >= 0.0
        per_request = np.bincount(of[rows["row"]], weights=lifetime, minlength=int(of.max()) + 1)[found["row"]]
        assert np.array_equal(np.sum([found[name] for name in names], axis=0), per_request)
        on_hosts = np.sum([found[name] for name in names[:4]], axis=0)  # what is lost stays in joint time
        for name in ("restart", "always", "never"):
            e = found[f"availability_{name}"] * per_request
            assert (e <= on_hosts + 1e-9 * per_request).all()
            assert (e >= 0.0).all()


# One instance is a request of one instance


@pytest.mark.parametrize("gang", [False, True])
@pytest.mark.parametrize(
    ("batch", "approach"), [(False, CONCURRENT), (False, AGGREGATED), (True, AGGREGATED), (False, INDEPENDENT)]
)
def test_one_instance_decides_alike_by_whatever_ledger(batch: bool, approach: int, gang: bool, tmp_path: Path) -> None:
    for seed in range(6200, 6215):
        one = cluster(seed, requests=25).with_(simulation={"end": 140.0, "preempted_work": "kept"})
        alone = core(one, tmp_path)
        ganged = one.with_(policy={"gang": gang})
        for ghosts in (False, True):  # a second row that never comes puts the first into a ledger of the request's
            made = in_requests(ganged, batch, approach, ghosts)
            result = core(made, tmp_path)
            assert decisions_of(result) == decisions_of(alone), (seed, ghosts)
            assert passes_of(result) == passes_of(alone), (seed, ghosts)
            if ghosts and approach != INDEPENDENT:
                assert len(halted(made, 140.0, tmp_path).tables["requests"]) == len(one.workload)


# However many instances

EVENTS = ("admitted", "started", "ready", "stopped", "completed", "removed", "weighed")


def crowd(live: int, approach: str) -> Cluster:
    """A service of so many instances of no size on three hosts."""
    rows = [Request(SILVER, size=0.0, of=0)] * live
    return small(rows, machines(1.0, 1.0, 1.0), end=1e6, cold=5.0, several=[Several(approach)])


def lines_per_event(live: int, approach: str, folder: Path) -> dict[str, int]:
    """Lines of the request's ledger that each event takes, of ``live`` instances 30 on hosts; without compilation."""
    at = halted(crowd(live, approach), 0.0, folder)
    state = at.tables.state
    lines: Counter[str] = Counter()

    def trace(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(("qos/request_ledger.py", "qos/metric_dynamics.py")):
            return None if event == "call" and "slacktide" not in frame.f_code.co_filename else trace
        lines["all"] += event == "line"
        return trace

    def take(name: str, *calls: tuple[Any, ...]) -> None:
        lines["all"] = 0
        sys.settrace(trace)
        try:
            for function, *arguments in calls:
                function(*arguments)
        finally:
            sys.settrace(None)
        lines[name] = lines["all"]

    for row in range(live - 1):
        instance_ledger.admit(state, row, 0.0)
    for row in range(29):
        instance_ledger.start(state, row, row % 3, 1.0)
    take("admitted", (instance_ledger.admit, state, live - 1, 2.0))
    take("started", (instance_ledger.start, state, 29, 2, 3.0))
    take("ready", (request_ledger.became_ready, state, 0, 29, 8.0))
    take("stopped", (instance_ledger.stop, state, 10, 9.0, True))
    take("completed", (instance_ledger.complete, state, 11, 9.5))
    take("removed", (instance_ledger.remove, state, 12, 9.75))
    take("weighed", (at.metric, 13), (at.metric, 10))
    return {name: lines[name] for name in EVENTS}


@pytest.mark.parametrize("approach", ["aggregated", "concurrent"])
def test_an_event_costs_the_same_with_ten_thousand_instances(approach: str, tmp_path: Path) -> None:
    program = (
        "import json, pathlib, sys, equality.test_requests as t; print(json.dumps([t.lines_per_event(n, sys.argv[2], "
    )
    program += "pathlib.Path(sys.argv[1])) for n in (50, 10_000)]))"
    path = os.pathsep.join([str(TESTS), *sys.path])
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), approach],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    few, many = json.loads(done.stdout)
    assert few == many
    assert min(few.values()) > 0


def test_a_ledger_is_one_record_however_many_instances(tmp_path: Path) -> None:
    sizes = {}
    for live in (100, 10_000):
        tables = halted(crowd(live, "concurrent"), 60.0, tmp_path).tables
        assert (int(tables["requests"]["placed"][0]), len(tables["scalings"])) == (live, 0)
        sizes[live] = {name: tables[name].nbytes for name in ("requests", "stirred", "request_heap", "excess", "acts")}
    assert sizes[100] == sizes[10_000]
    assert sizes[100]["requests"] == halted(crowd(2, "concurrent"), 0.0, tmp_path).tables["requests"].dtype.itemsize


# By hand


def on(row: int) -> Term:
    """On that host only."""
    return Term((Constraint("row", "==", str(row)),))


def both(one: Cluster, folder: Path) -> RunResult:
    """The core's run, which is the twin's and breaks no invariant."""
    result = core(one, folder, events=True)
    assert compare(result, twin(one)) is None
    assert faults_of(one, result) == []
    return result


def removed_at(result: RunResult) -> list[float | None]:
    assert result.instances is not None
    return [None if np.isnan(time) else time for time in result.instances["removed"].tolist()]


def shrinking(scales: list[tuple[float, int, int]], approach: str) -> Cluster:
    """Two that wait, one in its start-up, two neighbours, one that came later, one alone; start-ups take 20 s."""
    rows = [
        Request(BRONZE, term=on(0), of=0),
        *[Request(BRONZE, term=on(1), of=0)] * 2,
        Request(BRONZE, size=9.0, of=0),
    ]
    rows += [Request(BRONZE, 10.0, size=9.0, of=0), Request(BRONZE, 30.0, term=on(2), of=0)]
    rows += [Request(BRONZE, 90.0, term=on(3), of=0)]
    hosts = machines(2.0, 2.0, 2.0, 2.0)
    return small(rows, hosts, end=120.0, cold=20.0, several=[Several(approach)], scales=scales)


@pytest.mark.uncompiled
@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
def test_scaling_down_takes_them_in_the_order_of_kubernetes(approach: str, tmp_path: Path) -> None:
    one_by_one = [(100.0 + k, 0, 6 - k) for k in range(7)]
    result = both(shrinking(one_by_one, approach), tmp_path)
    assert removed_at(result) == [106.0, 105.0, 103.0, 101.0, 100.0, 104.0, 102.0]
    assert (result.preemptions, result.placements) == (0, 5)
    assert result.events is not None
    kinds = [EVENT_KINDS[kind] for kind in result.events["kind"]]
    assert [row for row, kind in zip(result.events["row"].tolist(), kinds, strict=True) if kind == "removed"] == [
        *(4, 3, 6, 2, 5, 1, 0)
    ]


@pytest.mark.uncompiled
def test_neighbours_are_counted_before_anybody_is_removed(tmp_path: Path) -> None:
    result = both(shrinking([(103.0, 0, 2)], "aggregated"), tmp_path)
    assert removed_at(result) == [None, 103.0, 103.0, 103.0, 103.0, None, 103.0]


@pytest.mark.uncompiled
def test_scaling_down_makes_room_at_once_and_scaling_up_fills_it(tmp_path: Path) -> None:
    rows = [Request(GOLD, of=0), Request(GOLD, of=0), Request(BRONZE, 10.0), Request(GOLD, 70.0, of=0)]
    scales = [(50.0, 0, 1), (70.0, 0, 2)]
    one = small(rows, machines(2.0), end=100.0, cold=5.0, several=[Several("concurrent")], scales=scales)
    result = both(one, tmp_path)
    assert [(d[1], d[2], d[4]) for d in decisions_of(result)[2:]] == [(50.0, 2, ()), (70.0, 3, (2,))]
    assert removed_at(result) == [None, 50.0, None, None]
    assert result.requests["running"].tolist() == [95.0 + 45.0 + 25.0, 15.0]


@pytest.mark.uncompiled
def test_a_batch_request_works_on_as_many_as_it_may_until_all_are_done(tmp_path: Path) -> None:
    rows = [Request(BRONZE, duration=10.0 * (place + 1), of=0) for place in range(4)]
    result = both(small(rows, machines(9.0), cold=5.0, several=[Several("batch", 2)]), tmp_path)
    assert result.instances is not None
    assert result.instances["admission"].tolist() == [0.0, 0.0, 15.0, 25.0]
    assert result.instances["completed"].tolist() == [15.0, 25.0, 50.0, 70.0]
    assert result.requests["completed"].tolist() == [70.0]
    assert result.requests["count"].tolist() == [4]


@pytest.mark.uncompiled
@pytest.mark.parametrize("work", ["by-kind", "kept", "lost"])
@pytest.mark.parametrize("approach", ["batch", "aggregated"])
def test_work_is_lost_by_batch_requests_only(work: Any, approach: str, tmp_path: Path) -> None:
    # 5 s cold start, 20 s of work until the host fails, 5 s without host, 2 s hot start.
    rows = [Request(BRONZE, duration=60.0, of=0), Request(BRONZE, duration=60.0, of=0)]
    events = [(25.0, 0, "fail"), (30.0, 0, "repair")]
    one = small(rows, machines(2.0), end=200.0, cold=5.0, hot=2.0, events=events, several=[Several(approach)])
    result = both(one.with_(simulation={"preempted_work": work}), tmp_path)
    lost = 20.0 if work == "lost" or (work == "by-kind" and approach == "batch") else 0.0
    done = 32.0 + 40.0 + lost
    assert result.requests["completed"].tolist() == [done]
    assert (result.requests["discarded"][0], result.requests["running"][0]) == (2 * lost, 120.0)
    assert result.requests["availability_always"][0] == 60.0 / done


@pytest.mark.uncompiled
def test_a_batch_instance_is_weighed_as_if_its_work_were_gone(tmp_path: Path) -> None:
    # Rows 0 and 1 stand alike, but 0 has been at it for 300 s and 1, after a failure, for 40 s.
    rows = [Request(BRONZE, term=on(0), of=0), Request(BRONZE, term=on(1), of=0), Request(GOLD, 300.0)]
    events = [(250.0, 1, "fail"), (260.0, 1, "repair")]
    one = small(rows, machines(1.0, 1.0), end=301.0, events=events, several=[Several("batch")])
    one = one.with_(policy={"cost": "slack"})
    assert decisions_of(both(one, tmp_path))[-1][4] == (1,)
    at = halted(one, 300.0, tmp_path)
    # e = 300 + 40, T = 600; stopped, row 0 would take 300 s of e with it, and row 1 40 s, which leaves just enough.
    assert (at.metric(0), at.metric(1)) == (40.0 / 0.5 - 600.0 - at.alpha(0), np.inf)
    kept = halted(one.with_(simulation={"preempted_work": "kept"}), 300.0, tmp_path)
    assert (kept.metric(0), kept.metric(1)) == (np.inf, np.inf)


@pytest.mark.uncompiled
def test_a_concurrent_request_receives_nothing_while_one_of_its_instances_waits(tmp_path: Path) -> None:
    # Both run for 40 s, then the host of row 1 fails. At 60 s T = 120, and e = 80 for the concurrent request: it has
    # 80 / 0.5 - 120 = 40 s in hand, of which two waiting instances use up 2 a second.
    rows = [Request(BRONZE, term=on(0), of=0), Request(BRONZE, term=on(1), of=0)]
    one = small(rows, machines(1.0, 1.0), end=60.0, events=[(40.0, 1, "fail")], several=[Several("concurrent")])
    at = halted(one, 60.0, tmp_path)
    assert (at.metric(0), at.metric(1)) == (20.0 - at.alpha(0), 20.0 - at.alpha(1))
    # Of an aggregated one e = 100: 80 s in hand. While row 0 goes on, that is enough for ever.
    alike = small(rows, machines(1.0, 1.0), end=60.0, events=[(40.0, 1, "fail")], several=[Several("aggregated")])
    at = halted(alike, 60.0, tmp_path)
    assert (at.metric(0), at.metric(1)) == (40.0 - at.alpha(0), np.inf)


@pytest.mark.uncompiled
def test_idle_instances_are_preempted_first_and_at_no_cost(tmp_path: Path) -> None:
    # Row 1 is of no use, as its sibling finds no room; row 0 has more to spare.
    rows = [Request(BRONZE), Request(BRONZE, 1.0, of=0), Request(BRONZE, 1.0, size=5.0, of=0), Request(GOLD, 100.0)]
    for approach, victim in (("concurrent", 1), ("aggregated", 0), ("independent", 0)):
        one = small(rows, machines(2.0), end=101.0, several=[Several(approach)])
        assert decisions_of(both(one, tmp_path))[-1][4] == (victim,)


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", ["qos-driven", "priority"])
def test_a_gang_does_not_start_in_part(name: str, tmp_path: Path) -> None:
    rows = [Request(BRONZE, duration=20.0), *[Request(BRONZE, of=0)] * 2]
    logs = []
    for gang in (False, True):
        policy = {"name": name, "gang": gang}
        one = small(rows, machines(2.0), end=25.0, several=[Several("concurrent")], policy=policy)
        logs.append([d[1:3] for d in decisions_of(both(one, tmp_path))])
    assert logs == [[(0.0, 0), (0.0, 1), (20.0, 2)], [(0.0, 0), (20.0, 1), (20.0, 2)]]


@pytest.mark.uncompiled
def test_a_gang_preempts_for_all_or_for_nobody(tmp_path: Path) -> None:
    rows = [Request(BRONZE), Request(BRONZE), *[Request(GOLD, 30.0, of=0)] * 3]
    short = small(rows, machines(1.0, 1.0), end=45.0, several=[Several("concurrent")], policy={"gang": True})
    assert both(short, tmp_path).preemptions == 0
    enough = replace(short, hosts=machines(1.0, 1.0, 1.0))
    result = both(enough, tmp_path)
    assert (result.preemptions, [d[2] for d in decisions_of(result)[2:]]) == (2, [2, 3, 4])
