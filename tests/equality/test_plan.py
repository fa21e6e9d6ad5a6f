"""Under a plan core and twin decide alike, to the bit, and know the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference import planning
from reference.outcome import Outcome
from reference.planning import Member
from reference.simulator import Simulation
from slacktide.config import preset
from slacktide.kernels.plan import members, pools
from slacktide.kernels.plan.record import SAMPLES
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import callable_from_python
from slacktide.model import ServiceClass, Window
from slacktide.sim import RunResult
from support.clusters import Cluster, cluster
from support.runs import compare, core, everything, told_to_the_twin
from support.shortages import in_pools, shortage
from support.small import Request, machines, small
from support.standstill import Standstill, halted

slack_alone, slack_together = callable_from_python(members.slack_alone), callable_from_python(members.slack_together)
budget_of, lived_of = callable_from_python(members.budget_of), callable_from_python(members.lived_of)
may_be_away, decider_of = callable_from_python(members.may_be_away), callable_from_python(request_ledger.decider_of)


def twin_of(one: Cluster) -> Simulation:
    """The twin, which has not run yet."""
    return Simulation(one.workload, one.hosts, one.config, one.hot, one.cold, told_to_the_twin(one))


def agree(one: Cluster, made: str, seen: Counter[str], folder: Path) -> RunResult:
    """Core and twin decide alike; what is seen on the way is counted."""
    result, slow = core(one, folder), twin_of(one)
    difference = compare(result, slow.run())
    assert difference is None, f"{made}: {difference}"
    seen["preempts"] += result.preemptions > 0
    seen["gives up"] += slow.planner.gave_up > 0
    seen["takes turns"] += slow.planner.turns > 0
    if "in_pools" in made:
        seen["gives up for a pool"] += slow.planner.pooled > 0
    return result


@pytest.mark.parametrize("name", ["qos-driven", "hybrid"])
@pytest.mark.parametrize("victims", ["same-pass", "next-pass"])
def test_core_and_twin_agree_on_shortages(name: str, victims: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(10):
        one = shortage(seed).with_(policy={"name": name, "victims": victims})
        agree(one, f"shortage({seed}), {name}, {victims}", seen, tmp_path)
        one = in_pools(seed).with_(policy={"name": name, "victims": victims})
        agree(one, f"in_pools({seed}), {name}, {victims}", seen, tmp_path)
    assert min(seen.values()) >= 3, f"clusters without shortage prove little: {seen}"


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_small_shortages(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(200, 230):
        agree(shortage(seed, 8, 400.0), f"shortage({seed}, 8, 400.0)", seen, tmp_path)
        agree(in_pools(seed, 8, 400.0), f"in_pools({seed}, 8, 400.0)", seen, tmp_path)
    assert min(seen.values()) >= 5, f"clusters without shortage prove little: {seen}"


@pytest.mark.uncompiled
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_a_few_small_clusters(several: bool, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(24):
        one = cluster(seed, 3, 12, several=several, neighbours=seed % 2 == 0, graces=seed % 3 == 0).planned()
        agree(one, f"cluster({seed}, 3, 12, {several}, ...).planned()", seen, tmp_path)
    assert min(seen.values()) >= 2, f"clusters without shortage prove little: {seen}"


@pytest.mark.parametrize("kind", ["plain", "neighbours", "resizes", "amounts", "graces", "spells"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_random_clusters(several: bool, kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(1000, 1030):
        asked: dict[str, Any] = {} if kind == "plain" else {kind: True}
        one = cluster(seed, 4, 20, several=several, **asked).planned()
        agree(one, f"cluster({seed}, 4, 20, {several}, {kind}).planned()", seen, tmp_path)
    assert min(seen.values()) >= 2, f"clusters without shortage prove little: {seen}"


@pytest.mark.slow
def test_core_and_twin_agree_on_middle_clusters(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(10):
        agree(cluster(seed, 40, 150, several=seed % 2 == 0).planned(), f"cluster({seed}, 40, 150)", seen, tmp_path)
        agree(shortage(seed, 60), f"shortage({seed}, 60)", seen, tmp_path)
        agree(in_pools(seed, 60), f"in_pools({seed}, 60)", seen, tmp_path)
    assert min(seen.values()) >= 4, f"clusters without shortage prove little: {seen}"


def test_what_saves_work_changes_no_decision(tmp_path: Path) -> None:
    for made, one in drawn(range(3000, 3020)):
        assert everything(core(one, tmp_path)) == everything(core(one.naively(), tmp_path)), made


def test_stepwise_and_compiled_runs_are_the_same(tmp_path: Path) -> None:
    for made, one in drawn(range(3020, 3035)):
        stepwise = core(one.on("stepwise"), tmp_path)
        assert everything(core(one, tmp_path)) == everything(stepwise), made


def drawn(seeds: Iterable[int]) -> Iterable[tuple[str, Cluster]]:
    for seed in seeds:
        yield f"shortage({seed})", shortage(seed)
        yield f"in_pools({seed})", in_pools(seed)
        yield f"cluster({seed}, 12, 60).planned()", cluster(seed, 12, 60, several=seed % 2 == 0).planned()


def test_the_published_preset_has_no_plan(tmp_path: Path) -> None:
    published = preset("published")
    assert published.policy.overload == "share"
    differs = 0
    for seed in range(6):
        one = replace(shortage(seed), config=replace(published, simulation=shortage(seed).config.simulation))
        slow = twin_of(one)
        assert compare(core(one, tmp_path), slow.run()) is None
        assert slow.planner.made == 0
        differs += compare(core(shortage(seed), tmp_path), slow.outcome) is not None
    assert differs >= 3, "plans that change nothing prove little"


# What a plan knows


class Halted(Simulation):
    """The twin stopped at the end of its run: nothing is closed."""

    def close(self) -> Outcome:
        return self.outcome


@pytest.mark.uncompiled
def test_core_and_twin_know_the_same(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(400, 430):
        made = in_pools if seed % 2 else shortage
        one = made(seed, 10, float(np.random.default_rng(seed).integers(60, 260)) + 0.3)
        at, slow = stopped(one, tmp_path / f"{seed}")
        name = f"{made.__name__}({seed}, 10, ...) at {at.t} s"
        seen["pools"] += same_record(at, slow, name)
        seen["given up"] += same_classes(at, slow, name)
        same_members(at, slow, name, seen)
    assert seen.pop("pools") >= 5, seen
    assert min(seen.values()) >= 10, seen


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("windows", "step", "kept"),
    [((1200.0,), 1.0, SAMPLES), ((9000.0,), 4.0, 1250), ((1200.0, 9000.0), 4.0, 1250)],
    ids=["a ring", "coarser", "coarser for a class of which nobody is there yet"],
)
def test_a_record_that_is_full(windows: tuple[float, ...], step: float, kept: int, tmp_path: Path) -> None:
    """It forgets the oldest samples, or every other one where a window is longer than it: of the first class, or of one
    whose first service comes late."""
    classes = tuple(
        ServiceClass(f"{length}", 0.9, 1 + rank, window=Window(rolling=length, budget="whole"))
        for rank, length in enumerate(windows)
    )
    rows = [Request(0, float(at)) for at in (0, 0, 7, 20, 2500)] + [
        Request(len(windows) - 1, at) for at in (3000.0, 3900.0)
    ]
    events = [(1000.0, 0, "fail"), (1300.0, 0, "repair"), (4100.0, 1, "fail")]
    one = small(rows, machines(2.0, 1.0, 1.0), end=5000.0, cold=1.0, events=events, scheduler={"watchdog": 400.0})
    one = replace(one, workload=replace(one.workload, classes=classes))
    agree(one, "full", Counter(), tmp_path)
    at, slow = stopped(one, tmp_path / "halted")
    same_record(at, slow, "full")
    assert slow.planner.step == step
    record = slow.planner.cluster.record
    assert len(record) == pytest.approx(kept, abs=200)
    assert len({sample[0][0] for sample in record}) >= 2


def stopped(one: Cluster, folder: Path) -> tuple[Standstill, Halted]:
    folder.mkdir()
    end = one.config.simulation.end
    assert end is not None
    slow = Halted(one.workload, one.hosts, one.config, one.hot, one.cold, told_to_the_twin(one))
    slow.run()
    at = halted(one, end, folder)
    slow.planner.pass_time(
        float(at.tables.control["sample_at"]) - 2.0**-20, slow.last_pass
    )  # nothing has happened since
    return at, slow


def same_record(at: Standstill, slow: Halted, name: str) -> int:
    """The records of all pools are the same; how many there are beside the cluster's."""
    control, known, tables = at.tables.control, slow.planner, at.tables
    end = int(control["samples"])
    assert float(control["step"]) == known.step, name
    assert int(control["plans"]) == known.made, name
    assert [kind != pools.NONE for kind in tables["pools"]["kind"]] == [one is not None for one in known.places], name
    since = [0, *tables["pools"]["since"].tolist()]
    for pool, theirs in enumerate((known.cluster, *known.places)):
        if theirs is None:
            continue
        kept = min(end - since[pool], SAMPLES)
        assert kept == len(theirs.record), f"{name}, pool {pool}"
        for level in range(known.levels):
            for array, part in (("usable", 0), ("jobs_asked", 1)):
                found = [float(tables[array][pool, level, (end - kept + i) % SAMPLES]) for i in range(kept)]
                where = f"{name}, {array} of level {level} of pool {pool}"
                assert found == [sample[part][level] for sample in theirs.record], where
    return sum(one is not None for one in known.places)


def same_classes(at: Standstill, slow: Halted, name: str) -> bool:
    for theirs, kind in zip(at.tables["classes"], slow.planner.kinds, strict=True):
        for field in ("level", "alpha", "ended", "lived", "alive", "age", "oldest", "job", "planned"):
            assert theirs[field] == getattr(kind, field), f"{name}, {field}"
        patience = slow.config.policy.patience if kind.patience is None else kind.patience
        assert (theirs["patience"], theirs["urgent"]) == (patience, kind.urgent), name
        assert theirs["margin"] == (planning.FAR if kind.planned or kind.behind else kind.margin), name
        if kind.urgent > -np.inf:
            assert theirs["pressing"] == kind.pressing, name
    return bool((at.tables["classes"]["given_up"] > 0).any())


def same_members(at: Standstill, slow: Halted, name: str, seen: Counter[str]) -> None:
    tb, t, config = at.tables.state, at.t, slow.config
    ladder = np.array([1200.0, 300.0, 75.5, 1.0])
    found: set[object] = set()
    for j in slow.instances:
        if not j.admitted or j.gone is not None:
            continue
        m = Member(j, slow.planner.kind(j), {})
        if m.request in found:
            continue
        found |= set() if m.request is None else {m.request}
        q, cls, where = int(decider_of(tb, j.row)), j.service_class, f"{name}, row {j.row}"
        assert (q >= 0) == (m.request is not None), where
        m.slack, m.budget = m.slack_at(t, config), m.budget_at(t)
        slack = float(slack_alone(tb, j.row, cls, t)) if q < 0 else float(slack_together(tb, q, t))
        assert slack == m.slack, where
        assert budget_of(tb, cls, lived_of(tb, j.row, q, t), t) == m.budget, where
        out = np.empty(len(ladder))
        may_be_away(tb, j.row, q, cls, m.slack, m.budget, 0.25, t, ladder, out)
        assert out.tolist() == [m.away(horizon, 0.25, t, config) for horizon in ladder.tolist()], where
        shift = 4.0 * at.tables["instances"][j.row]["shift"] if q < 0 else at.tables["requests"][q]["shift"]
        assert shift == m.shift, where
        seen["of requests"] += q >= 0
        seen["of windows"] += m.kind.promise is not None
        seen["with outages"] += len(m.outages(t, config)) > 0
        seen["may be away"] += out[0] > 0.0
