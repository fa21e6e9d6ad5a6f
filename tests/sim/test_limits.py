"""What a workload may suffer in time, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.model import DisruptionLimits, Hours
from slacktide.policy.loader import load
from slacktide.sim import RunResult
from slacktide.sim.engine import prepare
from support.clusters import Cluster, cluster
from support.runs import compare, core, decisions_of, resizes_of, twin
from support.small import BRONZE, GOLD, Request, Several, machines, small

pytestmark = pytest.mark.uncompiled


def limited(one: Cluster, limits: DisruptionLimits) -> Cluster:
    """The same cluster with limits on what bronze may suffer."""
    classes = [replace(each, limits=limits if at == BRONZE else None) for at, each in enumerate(one.workload.classes)]
    return replace(one, workload=replace(one.workload, classes=tuple(classes)))


def shared(limits: DisruptionLimits, golden: Sequence[Request], **sections: Any) -> Cluster:
    """A bronze request on the only host from 0 s on, which golden ones may preempt; somebody looks every second."""
    asked: dict[str, Any] = {"policy": {"name": "priority"}, "scheduler": {"watchdog": 1.0}, "end": 200.0} | sections
    return limited(small([Request(BRONZE), *golden], machines(1.0), **asked), limits)


def checked(one: Cluster, folder: Path) -> RunResult:
    """The core's run, which is the twin's."""
    result = core(one, folder, events=True)
    difference = compare(result, twin(one))
    assert difference is None, str(difference)
    return result


def preempted_at(one: Cluster, folder: Path) -> list[float]:
    """When somebody had to go."""
    return [time for _, time, _, _, victims in decisions_of(checked(one, folder)) for _ in victims]


def test_no_window_has_more_disruptions_than_allowed(tmp_path: Path) -> None:
    golden = [Request(GOLD, at, 2.0) for at in (10.0, 12.0, 20.0, 30.0, 50.0)]
    assert preempted_at(shared(DisruptionLimits(), golden), tmp_path) == [
        10.0,
        20.0,
        30.0,
        50.0,
    ]  # 12 s: nobody is on it
    # The one of 20 s has its turn when that of 10 s is 30 s old, and those that wait beside it follow with no victim.
    assert preempted_at(shared(DisruptionLimits(1, 30.0), golden), tmp_path) == [10.0, 40.0, 70.0]
    assert preempted_at(shared(DisruptionLimits(2, 30.0), golden), tmp_path) == [10.0, 20.0, 40.0, 50.0]
    assert preempted_at(shared(DisruptionLimits(0, 1.0), golden), tmp_path) == []


def test_a_cooldown_begins_when_the_instance_is_ready_again(tmp_path: Path) -> None:
    # Ready at 13 s, the golden one is gone at 15 s. Bronze is ready again at 18 s.
    golden = [Request(GOLD, 10.0, 2.0), Request(GOLD, 24.0, 2.0)]
    cooling = shared(DisruptionLimits(cooldown=9.0), golden, hot=3.0, cold=3.0)
    assert preempted_at(cooling, tmp_path) == [10.0, 27.0]
    # Its host fails from 16 to 20 s: it is ready at 23 s only.
    failing = replace(cooling, events=((16.0, 0, "fail"), (20.0, 0, "repair")))
    assert preempted_at(failing, tmp_path) == [10.0, 32.0]


def test_hours_open_at_their_beginning_and_close_at_their_end(tmp_path: Path) -> None:
    # Second 0 is 21:59:30 in Berlin, so that the hours are open from 30 to 90 s.
    hours = (Hours(("Mon",), 22 * 60, 22 * 60 + 1, "Europe/Berlin"),)
    golden = [Request(GOLD, at, 2.0) for at in (10.0, 88.5, 95.0)]
    sections = {"simulation": {"epoch": "2026-07-06T19:59:30Z"}, "scheduler": {"watchdog": 0.5}}
    assert preempted_at(shared(DisruptionLimits(hours=hours), golden, **sections), tmp_path) == [30.0, 88.5]


def test_a_class_has_a_least_running_time_of_its_own(tmp_path: Path) -> None:
    golden = [Request(GOLD, 5.0, 2.0)]
    for setting, own, first in ((50.0, 12.0, 12.0), (3.0, 12.0, 12.0), (12.0, 0.0, 5.0), (12.0, None, 12.0)):
        one = shared(DisruptionLimits(min_running=own), golden, policy={"name": "priority", "min_running": setting})
        assert preempted_at(one, tmp_path) == [first]


def test_a_failing_host_disrupts_nobody(tmp_path: Path) -> None:
    one = shared(DisruptionLimits(1, 1e6, 50.0), [Request(GOLD, 10.0, 2.0)])
    assert preempted_at(replace(one, events=((5.0, 0, "fail"), (6.0, 0, "repair"))), tmp_path) == [10.0]


@pytest.mark.parametrize("approach", ["independent", "concurrent", "aggregated"])
@pytest.mark.parametrize(
    ("limits", "both"),
    [
        (DisruptionLimits(1, 1e6), False),
        (DisruptionLimits(2, 1e6), True),
        (DisruptionLimits(cooldown=1e6), False),
        (DisruptionLimits(), True),
    ],
)
def test_instances_of_a_request_count_together(
    limits: DisruptionLimits, both: bool, approach: str, tmp_path: Path
) -> None:
    rows = [Request(BRONZE, of=0), Request(BRONZE, of=0), Request(GOLD, 10.0), Request(GOLD, 20.0)]
    policy = {"name": "priority"}
    one = small(rows, machines(1.0, 1.0), end=100.0, several=[Several(approach)], policy=policy)
    assert len(preempted_at(limited(one, limits), tmp_path)) == 1 + both
    # And as victims of one placement.
    rows = [Request(BRONZE, of=0), Request(BRONZE, of=0), Request(GOLD, 10.0, size=2.0)]
    one = small(rows, machines(2.0), end=100.0, several=[Several(approach)], policy=policy)
    assert len(preempted_at(limited(one, limits), tmp_path)) == 2 * both


@pytest.mark.parametrize("name", ["priority", "qos-driven"])
def test_who_comes_next_in_a_pass_does_not_count_on_who_was_just_disrupted(name: str, tmp_path: Path) -> None:
    # Two golden ones at once: the second takes the host where two must go, as only one of the request may.
    rows = [Request(BRONZE, of=0), Request(BRONZE, of=0), *[Request(BRONZE, size=0.5)] * 2, *[Request(GOLD, 10.0)] * 2]
    policy = {"name": name, "preempt_when": "better", "overhead_scope": "none", "overload": "share"}
    one = small(rows, machines(1.0, 1.0, 1.0), end=100.0, several=[Several("independent")], policy=policy)
    found = [sorted(victims) for *_, victims in decisions_of(checked(limited(one, DisruptionLimits(1, 1e6)), tmp_path))]
    assert sorted(victims for victims in found if victims) in ([[0], [2, 3]], [[1], [2, 3]])


def test_requests_of_their_own_count_by_themselves(tmp_path: Path) -> None:
    rows = [Request(BRONZE), Request(BRONZE), Request(GOLD, 10.0, size=2.0)]
    one = small(rows, machines(2.0), end=100.0, policy={"name": "priority"})
    assert len(preempted_at(limited(one, DisruptionLimits(1, 1e6)), tmp_path)) == 2


@pytest.mark.parametrize(("most", "moves", "preempted"), [(0, 0, 0), (1, 1, 0), (2, 1, 1)])
def test_a_move_is_a_disruption(most: int, moves: int, preempted: int, tmp_path: Path) -> None:
    # Bronze outgrows its host of 4 at 10 s and moves to that of 6, where gold wants room at 20 s.
    rows = [Request(BRONZE, size=2.0), Request(GOLD, size=2.0), Request(GOLD, 20.0, size=5.5)]
    events = [(0.0, 1, "fail"), (5.0, 1, "repair")]
    one = small(rows, machines(4.0, 6.0), end=100.0, events=events, policy={"name": "priority"})
    wanted = (((10.0, (("cpu", 5.0), ("memory", 5.0))),),)
    work = replace(one.workload, resize=one.workload.service_class.astype("i4") // BRONZE, resizings=((), *wanted))
    one = limited(replace(one, workload=work), DisruptionLimits(most, 1e6))
    result = checked(one, tmp_path)
    what = [told for _, _, told, _ in resizes_of(result)]
    assert what.count("moved") == moves
    assert what[0] == ("moved" if moves else "deferred")
    assert sum(len(victims) for *_, victims in decisions_of(result)) == preempted


def test_a_gang_disrupts_nobody_beyond_a_limit_and_leaves_no_trace_where_it_cannot_start(tmp_path: Path) -> None:
    # Three of a gang would need three victims of one account; two are allowed. A single one that comes later finds
    # both left.
    rows = [
        *[Request(BRONZE, of=0)] * 3,
        *[Request(GOLD, 10.0, 30.0, of=1)] * 3,
        Request(GOLD, 20.0),
        Request(GOLD, 21.0),
    ]
    several = [Several("independent"), Several("concurrent")]
    policy = {"name": "priority", "gang": True}
    one = small(rows, machines(1.0, 1.0, 1.0), end=60.0, several=several, policy=policy)
    assert preempted_at(limited(one, DisruptionLimits(2, 1e6)), tmp_path) == [20.0, 21.0]
    assert preempted_at(limited(one, DisruptionLimits(3, 1e6)), tmp_path) == [10.0, 10.0, 10.0]


def test_a_workload_without_limits_has_no_account() -> None:
    one = shared(DisruptionLimits(min_running=5.0), [Request(GOLD, 5.0, 2.0)])
    tb = prepare(one.workload, one.hosts, one.config, load(one.config), 0)
    assert [len(tb[name]) for name in ("disruption_account", "disruption_accounts", "disruptions", "disrupted_at")] == [
        0,
        0,
        0,
        0,
    ]
    some = limited(one, DisruptionLimits(3, 10.0))
    tb = prepare(some.workload, some.hosts, some.config, load(some.config), 0)
    assert [len(tb[name]) for name in ("disruption_account", "disruption_accounts", "disruptions", "disrupted_at")] == [
        2,
        1,
        3,
        2,
    ]


@pytest.mark.parametrize("epoch", ["yesterday", "2026-01-05", "2026-01-05T00:00:00"])
def test_an_epoch_is_an_instant(epoch: str, tmp_path: Path) -> None:
    one = shared(DisruptionLimits(1, 1.0), [], simulation={"epoch": epoch})
    with pytest.raises(ConfigError, match=r"simulation.epoch: found .*, expected an instant with its offset"):
        core(one, tmp_path)


def test_a_class_of_its_own_changes_nothing_but_its_limits(tmp_path: Path) -> None:
    """A workload file says so that some requests are stricter: classes that are alike are told apart by nobody."""
    differs = 0
    for seed in range(3000, 3010):
        one = cluster(seed, requests=25, several=seed % 2 == 1)
        classes, code = one.workload.classes, one.workload.service_class.copy()
        odd = (one.workload.ids if one.workload.request is None else one.workload.request) % 2 == 1
        code[odd] += len(classes)

        def twice(limits: DisruptionLimits | None, base: Cluster = one, code: NDArray[np.int16] = code) -> Cluster:
            again = tuple(replace(each, name=f"{each.name}, strict", limits=limits) for each in base.workload.classes)
            every = (*base.workload.classes, *again)
            return replace(base, workload=replace(base.workload, classes=every, service_class=code))

        plain = decisions_of(core(one, tmp_path))
        assert decisions_of(core(twice(None), tmp_path)) == plain, f"cluster({seed}, requests=25)"
        strict = twice(DisruptionLimits(0, 1.0))
        found = checked(strict, tmp_path)
        gone = [row for *_, victims in decisions_of(found) for row in victims]
        assert not odd[gone].any()
        differs += decisions_of(found) != plain
    assert differs >= 2
