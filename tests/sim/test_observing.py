"""Snapshots at the ends of intervals: they change nothing, and say what the twin says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.outcome import Outcome
from reference.requests import Request as Several
from reference.simulator import Simulation
from reference.state import Instance
from reference.windows import STEP
from slacktide.errors import ConfigError
from slacktide.metrics.intervals import IntervalRecorder
from slacktide.metrics.summary import achieved
from slacktide.sim import RunResult, Snapshot
from support.clusters import Cluster, cluster
from support.runs import core, everything, told_to_the_twin
from support.small import BRONZE, GOLD, Request, machines, outcome, small
from support.small import Several as Of

EVERY = 7.0

both = pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])


def watched(one: Cluster, folder: Path, every: float = EVERY, **asked: Any) -> tuple[RunResult, list[Snapshot]]:
    """A run and what it told every so many seconds."""
    seen: list[Snapshot] = []
    return core(one, folder, intervals=every, observe=seen.append, **asked), seen


Standing = dict[str, list[Any]]


class Slow(Simulation):
    """The twin, which tells how things stand before time goes on past a multiple of ``EVERY``."""

    seen: list[Standing]
    told = 0.0

    def go_to(self, instant: float) -> None:
        while self.told + EVERY < instant:
            self.told += EVERY
            self.tell(self.told)
        super().go_to(instant)

    def close(self) -> Outcome:
        if self.now > self.told:
            self.tell(self.now)
        return super().close()

    def tell(self, t: float) -> None:
        begun = self.seen[-1]["time"][0] if self.seen else 0.0
        active = [k for k, one in enumerate(self.requests) if self.is_active(one, begun)]
        here = [j for k in active for j in self.requests[k].live()]
        self.seen.append(
            {
                "time": [t],
                "request": active,
                "availability": [self.availability(self.requests[k], t) for k in active],
                "running": sorted(j.row for j in here if j.host is not None),
                "others": sorted(j.row for j in here if j.host is None),
                "hosts": [h.row for h in self.hosts if h.up],
                "counts": [len(self.waiting), len(self.outcome.passes), len(self.outcome.decisions)],
            }
        )

    def is_active(self, one: Several, begun: float) -> bool:
        """Whether an instance of it did not end before the interval; one that ended at its very beginning did."""
        return any(j.gone is None or j.gone > begun or (begun == 0.0 == j.gone) for j in one.had())

    def availability(self, one: Several, t: float) -> float:
        accounting = self.config.qos.startup
        if one.approach == "independent":
            books = [j.ledger_at(t, accounting) for j in one.had()]
            never = [is_new(j, t) for j in one.had()]
            return min(share(book.e, book.e + book.p + STEP * new) for book, new in zip(books, never, strict=True))
        totals = one.totals(t, accounting)
        return share(totals.running, totals.lifetime + STEP * sum(is_new(j, t) for j in one.had()))


def is_new(one: Instance, t: float) -> bool:
    """Whether it came just now, and has had no host: it was owed one step of the grid of times."""
    return one.starts == 0 and one.gone is None and one.admission == t


def share(received: float, owed: float) -> float:
    return 1.0 if owed == 0.0 else received / owed


def told_by_the_twin(one: Cluster) -> list[Standing]:
    events = told_to_the_twin(one)
    slow = Slow(one.workload, one.hosts, one.config, one.hot, one.cold, events)
    slow.seen = []
    slow.run()
    return slow.seen


def told(seen: Sequence[Snapshot]) -> list[Standing]:
    """The same of the core's snapshots."""
    return [
        {
            "time": [now.time],
            "request": now.request.tolist(),
            "availability": now.availability.tolist(),
            "running": sorted(now.row[now.running].tolist()),
            "others": sorted(now.row[~now.running].tolist()),
            "hosts": now.steps[-1].capacity.tolist(),
            "counts": [now.steps[-1].queue, now.steps[-1].passes, now.steps[-1].placements],
        }
        for now in seen
    ]


@both
@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_looking_changes_no_decision(engine: str, several: bool, tmp_path: Path) -> None:
    for seed in range(6000, 6003 if engine == "stepwise" else 6012):
        one = cluster(seed, requests=30, several=several).on(engine)
        plain = everything(core(one, tmp_path))
        for every in (EVERY, 0.9, 1000.0):
            result, _ = watched(one, tmp_path, every, passes=True)
            assert everything(result) == plain, f"cluster({seed}, requests=30, several={several}), {every} s"


@both
def test_core_and_twin_stand_alike_at_the_end_of_every_interval(several: bool, tmp_path: Path) -> None:
    intervals = 0
    for seed in range(6100, 6120):
        one = cluster(seed, several=several, neighbours=seed % 2 == 1)
        _, seen = watched(one, tmp_path, passes=False, decisions=False)
        mine, theirs = told(seen), told_by_the_twin(one)
        for now in theirs:
            now["hosts"] = one.hosts.capacity[now["hosts"]].sum(axis=0).tolist()
        assert [now["time"] for now in mine] == [now["time"] for now in theirs], f"cluster({seed}, several={several})"
        for a, b in zip(mine, theirs, strict=True):
            assert a == b, f"cluster({seed}, several={several})"
        intervals += len(mine)
    assert intervals > 200


@both
def test_the_last_look_says_what_the_results_say(several: bool, tmp_path: Path) -> None:
    compared = 0
    for seed in range(6300, 6340):
        one = cluster(seed, several=several)
        result, seen = watched(one, tmp_path)
        if not seen:
            continue
        rows = result.requests
        reached = achieved(rows, one.config.qos.startup)
        final = dict(zip(rows["row"].tolist(), reached.tolist(), strict=True))
        alive = set() if several else set(rows["row"][np.isnan(rows["completed"])].tolist())
        last = seen[-1]
        assert last.time == result.end
        assert last.availability.tolist() == [final[request] for request in last.request.tolist()]
        assert alive <= set(last.request.tolist())
        compared += len(last.request)
    assert compared > 200


def test_an_interval_by_hand(tmp_path: Path) -> None:
    # Host of size 1, no start-up. Gold runs 0 to 12; bronze waits 4 to 12, then runs.
    rows = [Request(GOLD, 0.0, 12.0), Request(BRONZE, 4.0)]
    one = small(rows, machines(1.0), end=20.0, policy={"name": "priority"})
    recorder = IntervalRecorder(one.workload)
    outcome(one, tmp_path, intervals=8.0, observe=recorder)
    table = recorder.intervals()
    assert table["time"].tolist() == [8.0] * 3 + [16.0] * 3 + [20.0] * 3
    gold, bronze = slice(0, None, 3), slice(2, None, 3)
    assert table["active"][gold].tolist() == [1, 1, 0]
    assert table["active"][1::3].tolist() == [0, 0, 0]
    assert table["running"][gold].tolist() == [1, 0, 0]
    assert table["availability_mean"][gold].tolist()[:2] == [1.0, 1.0]
    assert np.isnan(table["availability_mean"][gold][2])
    assert table["waiting"][bronze].tolist() == [1, 0, 0]
    # At 8 it has waited 4 of 4 s, at 16 run 4 of 12, at 20 run 8 of 16.
    assert table["availability_min"][bronze].tolist() == [0.0, 4 / 12, 0.5]
    assert table["fulfilment"][bronze].tolist() == [0.0, 0.0, 1.0]
    assert table["demanded_cpu"][bronze].tolist() == [1.0, 1.0, 1.0]
    assert table["allocated_cpu"][bronze].tolist() == [0.0, 1.0, 1.0]
    assert table["allocated_memory"][gold].tolist() == [1.0, 0.0, 0.0]
    progress = recorder.progress()
    ends = [9, 19, 24]  # ten steps an interval, five in its last half
    assert progress["time"].tolist() == pytest.approx([0.8 * step for step in range(1, 26)], abs=1e-6)
    assert progress["queue"][ends].tolist() == [1, 0, 0]
    assert progress["placements"][ends].tolist() == [1, 2, 2]
    assert progress["capacity_cpu"].tolist() == [1.0] * 25
    # The pass at 0 leaves nobody: who it serves does not wait. Bronze waits from the one at 4 to the one at 12.
    assert progress["longest_queue"].tolist() == [0] * 4 + [1] * 10 + [0] * 11


def test_a_host_that_is_down_is_no_capacity(tmp_path: Path) -> None:
    one = small([Request(GOLD)], machines(1.0, 2.0), end=30.0, events=[(5.0, 1, "fail"), (15.0, 1, "repair")])
    recorder = IntervalRecorder(one.workload)
    outcome(one, tmp_path, intervals=10.0, observe=recorder)
    assert recorder.progress()["capacity_cpu"].tolist() == [3.0] * 4 + [3.0 - 2.0] * 10 + [3.0] * 16


def test_a_request_that_ended_in_the_interval_counts_with_its_final_availability(tmp_path: Path) -> None:
    # Waits 0 to 2 for the first one to complete, runs 2 to 4, is gone at 10.
    rows = [Request(GOLD, 0.0, 2.0), Request(BRONZE, 0.0, 2.0)]
    one = small(rows, machines(1.0), end=20.0, policy={"name": "priority"})
    _, seen = watched(one, tmp_path, 10.0)
    assert [now.availability.tolist() for now in seen] == [[1.0, 0.5], []]
    assert seen[0].row.tolist() == []


def test_rows_that_wait_for_their_release_are_not_active(tmp_path: Path) -> None:
    # A batch request of three rows, one at a time, each 5 s: rows admitted at 0, 5 and 10.
    rows = [Request(BRONZE, 0.0, 5.0, of=0) for _ in range(3)]
    one = small(rows, machines(9.0), end=20.0, several=[Of("batch", 1)])
    _, seen = watched(one, tmp_path, 4.0)
    assert [now.row.tolist() for now in seen] == [[0], [1], [2], [], []]
    assert [now.request.tolist() for now in seen] == [[0], [0], [0], [0], []]


def test_a_service_scaled_to_nothing_is_active_again_when_it_grows(tmp_path: Path) -> None:
    rows = [Request(BRONZE, 0.0, of=0), Request(BRONZE, 12.0, of=0)]
    scales = [(3.0, 0, 0), (12.0, 0, 1)]
    one = small(rows, machines(9.0), end=20.0, several=[Of("aggregated")], scales=scales)
    _, seen = watched(one, tmp_path, 5.0)
    assert [now.request.tolist() for now in seen] == [[0], [], [0], [0]]
    assert [now.row.tolist() for now in seen] == [[0][:0], [], [1], [1]]


@pytest.mark.parametrize("every", [0.0, -5.0, float("inf"), float("nan")])
def test_an_interval_is_a_number_of_seconds(every: float, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected seconds"):
        watched(small([Request(GOLD)], machines(1.0), end=5.0), tmp_path, every)


def test_a_long_silence_is_told_interval_by_interval(tmp_path: Path) -> None:
    one = small([Request(GOLD, 0.0, 3.0), Request(GOLD, 95.0, 3.0)], machines(1.0), end=None)
    result, seen = watched(one, tmp_path, 10.0)
    assert [now.time for now in seen] == [*(10.0 * k for k in range(1, 10)), 98.0]
    assert result.end == 98.0
    assert [len(now.request) for now in seen] == [1, *[0] * 8, 1]


def test_only_open_requests_are_looked_at_again(tmp_path: Path) -> None:
    # One comes every second and runs for one: the one that comes at 10 is active in both intervals.
    one = small([Request(GOLD, float(k), 1.0) for k in range(50)], machines(5.0), end=60.0)
    _, seen = watched(one, tmp_path, 10.0)
    assert [len(now.request) for now in seen] == [11, 11, 11, 11, 10, 0]
