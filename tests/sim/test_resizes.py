"""Demands that change: in place, on another host, or later."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.metrics.intervals import IntervalRecorder
from slacktide.model import Budget, Placement, Resizing, Rule, Topology
from slacktide.model.placement import CLUSTER
from slacktide.sim import EVENT_KINDS, RunResult, run
from support.clusters import Cluster, cluster
from support.edges import edge
from support.own_policies import FIRST_FIT
from support.runs import compare, core, decisions_of, everything, resizes_of, settings_of, twin
from support.small import BRONZE, FOREVER, GOLD, Request, Several, machines, small

both = pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
by_hand = pytest.mark.uncompiled

IN_ORDER = {"name": "priority"}
"""Policy settings under which equals leave each other alone."""


def resizing(one: Cluster, *resizings: Resizing) -> Cluster:
    """The cluster with its first rows resized so."""
    codes = np.zeros(len(one.workload), np.int32)
    codes[: len(resizings)] = np.arange(1, len(resizings) + 1)
    return replace(one, workload=replace(one.workload, resize=codes, resizings=((), *resizings)))


def to(*steps: tuple[float, float]) -> Resizing:
    """So much of CPU and of memory, from then on."""
    return tuple((time, (("cpu", size), ("memory", size))) for time, size in steps)


def checked(one: Cluster, folder: Path) -> RunResult:
    """The core's run, which is the twin's, too."""
    result = core(one, folder, events=True)
    assert compare(result, twin(one)) is None
    return result


# -- worked out by hand ------------------------------------------------------------------------------------------------


@by_hand
def test_who_grows_stays_where_its_host_has_room(tmp_path: Path) -> None:
    # Of 4, 1 and 2 are taken: 1 is left, which is what growing from 1 to 2 needs; then somebody wants 1, in vain.
    rows = [Request(GOLD, size=1.0), Request(GOLD, size=2.0), Request(GOLD, 20.0, size=1.0)]
    one = small(rows, machines(4.0), end=100.0, policy=IN_ORDER)
    result = checked(resizing(one, to((10.0, 2.0))), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "resized", 0)]
    assert result.requests["starts"].tolist() == [1, 1, 0]
    assert result.requests["running"].tolist() == [100.0, 100.0, 0.0]


def outgrown(size: float = 5.0, **sections: Any) -> Cluster:
    """Two of size 2 on a host of 4, as one of 6 comes only at 5 s; at 10 s the first wants ``size``."""
    rows = [Request(GOLD, size=2.0, duration=50.0), Request(GOLD, size=2.0)]
    events = [(0.0, 1, "fail"), (5.0, 1, "repair")]
    one = small(rows, machines(4.0, 6.0), end=100.0, cold=3.0, events=events, **{"policy": IN_ORDER} | sections)
    return resizing(one, to((10.0, size)))


@by_hand
def test_who_has_outgrown_its_host_moves_and_starts_anew(tmp_path: Path) -> None:
    # Ready at 3 s it runs for 7 s; on the other host it is ready at 13 s and needs 50 - 7 = 43 s more, until 56 s.
    result = checked(outgrown(), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "moved", 1)]
    books = result.requests
    names = ("completed", "running", "pending", "startup_first", "startup_restarts", "wasted_startup", "discarded")
    assert [books[name][0] for name in names] == [56.0, 50.0, 0.0, 3.0, 3.0, 3.0, 0.0]
    assert [books[name][0] for name in ("starts", "preemptions", "hosts_used")] == [2, 0, 2]


@by_hand
def test_who_loses_its_work_by_stopping_loses_it_by_moving(tmp_path: Path) -> None:
    result = checked(outgrown(simulation={"preempted_work": "lost"}), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "moved", 1)]
    assert (result.requests["discarded"][0], result.requests["completed"][0]) == (7.0, 63.0)


@by_hand
@pytest.mark.parametrize(("bound", "moved"), [({"max_unavailable": 0}, False), ({"max_unavailable": 1}, True)])
def test_nobody_moves_whom_a_budget_protects(bound: dict[str, int], moved: bool, tmp_path: Path) -> None:
    one = outgrown()
    work = replace(one.workload, budget=np.array([0, -1], np.int32), budgets=(Budget("web", **bound),))
    result = checked(replace(one, workload=work), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "moved", 1) if moved else (10.0, 0, "deferred", 0)]


@by_hand
def test_nobody_moves_before_the_least_running_time(tmp_path: Path) -> None:
    # Nothing happens after 10 s, but the watchdog looks again 10 s later.
    result = checked(outgrown(policy={**IN_ORDER, "min_running": 15.0}), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "deferred", 0), (20.0, 0, "moved", 1)]


@by_hand
def test_who_keeps_away_from_its_like_is_not_in_its_own_way(tmp_path: Path) -> None:
    one = outgrown()
    alone = Placement(("web",), (Rule("away", "web", Topology(CLUSTER)),))
    work = replace(one.workload, placement=np.array([1, 0], np.int32), placements=(Placement(), alone))
    result = checked(replace(one, workload=work), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "moved", 1)]


@by_hand
def test_a_deferred_resize_takes_room_before_the_queue_does(tmp_path: Path) -> None:
    # At 20 s 2 of 4 become free: 1 is what the first waits for, and the 1 that is left is too little for the third.
    rows = [Request(GOLD, size=2.0), Request(GOLD, size=2.0, duration=20.0), Request(GOLD, 15.0, size=2.0)]
    one = small(rows, machines(4.0), end=100.0, policy=IN_ORDER)
    result = checked(resizing(one, to((10.0, 3.0))), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "deferred", 0), (20.0, 0, "resized", 0)]
    assert [d[2] for d in decisions_of(result)] == [0, 1]
    assert result.requests["running"].tolist() == [100.0, 20.0, 0.0]


@by_hand
def test_deferred_resizes_keep_their_order_and_the_latest_wish_counts(tmp_path: Path) -> None:
    # Both want 3 of 5 where each has 2. The first asks anew at 12 s and stands behind the second then, which gets the
    # 1 that is left as soon as somebody looks again; the first gets its 2.5 when the second is gone.
    rows = [Request(GOLD, size=2.0), Request(GOLD, size=2.0, duration=40.0)]
    one = small(rows, machines(5.0), end=100.0, policy=IN_ORDER)
    one = resizing(one, to((10.0, 4.0), (12.0, 4.5)), to((11.0, 3.5), (13.0, 3.0)))
    result = checked(one, tmp_path)
    first = [(10.0, 0, "deferred", 0), (11.0, 1, "deferred", 0), (12.0, 0, "deferred", 0)]
    assert resizes_of(result) == [*first, (13.0, 1, "resized", 0), (40.0, 0, "resized", 0)]


@by_hand
def test_who_is_preempted_with_a_deferred_resize_waits_with_the_new_demand(tmp_path: Path) -> None:
    # At 20 s there is room for 2 as before, at 30 s for the 3 that it wants now.
    rows = [Request(BRONZE, size=2.0), Request(GOLD, size=2.0, duration=20.0), Request(GOLD, 12.0, 18.0, 2.0)]
    one = small(rows, machines(4.0), end=100.0, policy=IN_ORDER)
    result = checked(resizing(one, to((10.0, 3.0))), tmp_path)
    assert resizes_of(result) == [(10.0, 0, "deferred", 0)]
    assert [(d[1], d[2], d[4]) for d in decisions_of(result)] == [
        (0.0, 1, ()),
        (0.0, 0, ()),
        (12.0, 2, (0,)),
        (30.0, 0, ()),
    ]


@by_hand
def test_who_shrinks_makes_room_for_who_waits(tmp_path: Path) -> None:
    rows = [Request(GOLD, size=4.0), Request(GOLD, 5.0, size=1.5)]
    one = small(rows, machines(4.0), end=100.0, policy=IN_ORDER)
    result = checked(resizing(one, to((10.0, 3.0), (30.0, 2.5))), tmp_path)
    assert [(d[1], d[2]) for d in decisions_of(result)] == [(0.0, 0), (30.0, 1)]


@by_hand
def test_who_waits_wants_the_new_demand_at_once(tmp_path: Path) -> None:
    rows = [Request(GOLD, size=3.0), Request(GOLD, 5.0, size=3.0)]
    one = small(rows, machines(4.0), end=100.0, policy=IN_ORDER)
    result = checked(resizing(one, (), to((10.0, 1.0))), tmp_path)
    assert resizes_of(result) == [(10.0, 1, "resized", -1)]
    assert [(d[1], d[2]) for d in decisions_of(result)] == [(0.0, 0), (10.0, 1)]


@by_hand
def test_instances_that_come_later_come_with_the_demand_of_then(tmp_path: Path) -> None:
    rows = [Request(GOLD, size=1.0, of=0), Request(GOLD, 20.0, size=1.0, of=0)]
    one = small(
        rows, machines(4.0), end=100.0, several=[Several("independent")], scales=[(20.0, 0, 2)], policy=IN_ORDER
    )
    result = checked(resizing(one, to((10.0, 3.0)), to((10.0, 3.0))), tmp_path)
    assert [(d[1], d[2]) for d in decisions_of(result)] == [(0.0, 0)]


@by_hand
def test_what_no_host_can_ever_give_is_deferred_for_ever_and_does_no_harm(tmp_path: Path) -> None:
    one = small([Request(GOLD, duration=50.0)], machines(4.0, 5.0))
    result = checked(resizing(one, to((10.0, 100.0))), tmp_path)
    assert [kind for _, _, kind, _ in resizes_of(result)] == ["deferred"]
    assert (result.requests["completed"].tolist(), result.end) == ([50.0], 50.0)


def test_twenty_thousand_resizes_at_once_are_all_recorded(tmp_path: Path) -> None:
    # More than the recorder holds, half of them in a round of trials and the others while they wait.
    count = 10_000
    rows = [*[Request(GOLD)] * count, *[Request(GOLD, size=1e9)] * count]
    one = small(rows, machines(2.0 * count), end=30.0, policy=IN_ORDER)
    one = resizing(one, *[to((10.0, 2.0))] * count, *[to((10.0, 2e9))] * count)
    result = core(one, tmp_path, events=True)
    found = resizes_of(result)
    assert Counter(found) == Counter(
        [
            *((10.0, row, "resized", 0) for row in range(count)),
            *((10.0, row, "resized", -1) for row in range(count, 2 * count)),
        ]
    )


def test_intervals_tell_what_is_demanded_at_the_time(tmp_path: Path) -> None:
    rows = [Request(GOLD, size=1.0), Request(GOLD, size=4.0)]
    one = resizing(small(rows, machines(4.0), end=40.0, policy=IN_ORDER), to((15.0, 3.0)), to((25.0, 9.0)))
    recorder = IntervalRecorder(one.workload)
    run(one.workload, one.hosts, settings_of(one, tmp_path), intervals=10.0, observe=recorder)
    gold = recorder.intervals()["class"] == GOLD
    assert recorder.intervals()["demanded_cpu"][gold].tolist() == pytest.approx([5.0, 7.0, 12.0, 12.0])
    assert recorder.intervals()["allocated_cpu"][gold].tolist() == pytest.approx([1.0, 3.0, 3.0, 3.0])


# -- core and twin -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", [False, True], ids=["alone", "neighbours"])
@both
def test_core_and_twin_agree_where_demands_change(several: bool, neighbours: bool, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(50):
        one = cluster(seed, several=several, neighbours=neighbours, resizes=True)
        result = core(one, tmp_path, events=True)
        difference = compare(result, twin(one))
        assert difference is None, (
            f"cluster({seed}, several={several}, neighbours={neighbours}, resizes=True): {difference}"
        )
        assert overfull(one, result) == []
        seen.update({what for _, _, what, _ in resizes_of(result)})
        seen["preempts"] += result.preemptions > 0
    assert min(seen[name] for name in ("resized", "moved", "deferred", "preempts")) >= 3, f"prove little: {seen}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours"])
def test_core_and_twin_agree_where_demands_change_at_the_edge(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        one = edge(seed, several=kind == "requests", neighbours=kind == "neighbours", resizes=True)
        result = core(one, tmp_path, events=True)
        difference = compare(result, twin(one))
        assert difference is None, f"edge({seed}, {kind}, resizes=True): {difference}"
        seen.update({what for _, _, what, _ in resizes_of(result)})
        seen["granted"] += one.workload.limit is not None and one.config.delay.grants and seen["moved"] > 0
    assert min(seen[name] for name in ("resized", "moved", "deferred", "granted")) >= 4, f"prove little: {seen}"


@pytest.mark.uncompiled
@both
def test_core_and_twin_agree_on_a_few_small_clusters_where_demands_change(several: bool, tmp_path: Path) -> None:
    for seed in range(20):
        one = cluster(seed, 3, 12, several, neighbours=seed % 2 == 1, resizes=True)
        difference = compare(core(one, tmp_path, events=True), twin(one))
        assert difference is None, f"cluster({seed}, 3, 12, {several}, {seed % 2 == 1}, True): {difference}"


@both
def test_what_saves_work_changes_no_decision_where_demands_change(several: bool, tmp_path: Path) -> None:
    for seed in range(2000, 2040):
        one = cluster(seed, several=several, neighbours=seed % 2 == 1, resizes=True)
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"cluster({seed}, several={several})"


@both
def test_stepwise_and_compiled_runs_are_the_same_where_demands_change(several: bool, tmp_path: Path) -> None:
    for seed in range(2200, 2212):
        one = cluster(seed, requests=25, several=several, resizes=True)
        stepwise = core(one.on("stepwise"), tmp_path, events=True)
        compiled = core(one, tmp_path, events=True)
        assert everything(compiled) == everything(stepwise), f"cluster({seed}, requests=25, several={several})"
        assert resizes_of(compiled) == resizes_of(stepwise)


def test_passes_at_given_instants_are_the_occasions_for_growing(tmp_path: Path) -> None:
    (tmp_path / "triggers.csv").write_text("seconds\n" + "".join(f"{at}\n" for at in (0.0, 31.0, 62.5, 90.0)))
    for seed in range(2300, 2320):
        one = cluster(seed, requests=25, resizes=True).with_(
            scheduler={"triggers": str(tmp_path / "triggers.csv")}, simulation={"end": 130.0}
        )
        assert compare(core(one, tmp_path, events=True), twin(one)) is None, f"cluster({seed}, requests=25)"


def test_no_host_gives_more_than_it_has_under_a_policy_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FIRST_FIT)
    seen: Counter[str] = Counter()
    for seed in range(2400, 2440):
        one = cluster(seed, requests=25, resizes=True).with_(policy={"name": f"{tmp_path / 'mine.py'}:FirstFit"})
        result = core(one, tmp_path, events=True)
        assert overfull(one, result) == [], f"cluster({seed}, requests=25)"
        seen.update({what for _, _, what, _ in resizes_of(result)})
    assert min(seen[name] for name in ("resized", "moved", "deferred")) >= 5, f"prove little: {seen}"


def overfull(one: Cluster, result: RunResult) -> list[str]:
    """Events after which a host gives more than it has, from the log alone."""
    assert result.events is not None
    work = one.workload
    assert work.resize is not None
    where: dict[int, int] = {}
    asked: dict[int, dict[str, float]] = {}
    found = []

    def demand_at(row: int, time: float) -> dict[str, float]:
        demand = dict(zip(work.resources, work.demand[row].tolist(), strict=True))
        for at, amounts in work.resizings[int(work.resize[row])]:  # type: ignore[index]
            if at <= time:
                demand |= dict(amounts)
        return demand

    columns = (result.events[name].tolist() for name in ("time", "kind", "row", "host"))
    for time, kind, row, host in zip(*columns, strict=True):
        what = EVENT_KINDS[kind]
        if what in ("preempted", "completed", "evicted", "removed"):
            where.pop(row, None)
        elif what in ("placed", "moved") or (what == "resized" and host >= 0):
            where[row], asked[row] = host, demand_at(row, time)
            for place, name in enumerate(work.resources):
                used = sum(asked[k][name] for k, h in where.items() if h == host)
                if used > one.hosts.capacity[host, place] * (1.0 + 1e-6):
                    found.append(f"{time} s: {what} {row}: host {host} gives {used} of {name}")
    return found


def test_forever_is_no_end(tmp_path: Path) -> None:
    """A resize of who never completes needs no end of its own; the run ends where it is told to."""
    one = resizing(small([Request(GOLD, duration=FOREVER)], machines(1.0), end=25.0), to((10.0, 2.0), (40.0, 1.0)))
    assert checked(one, tmp_path).end == 25.0
