"""The live engine decides as the simulator does, whatever else is told to it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from engine.workbench import SILVER, T0, settings
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import has_room
from slacktide.errors import StateError
from slacktide.kernels.drive import apply_plan
from slacktide.model import NO_CONSTRAINT, Constraint, Placement, Rule, ServiceClass, Term
from slacktide.sim import RunResult
from slacktide.state.compaction import compact
from slacktide.state.spec import Spec
from support.churning import BEGINNING, GI, Churn, live_config
from support.clusters import POLICIES_WITH_RULES, TERMS, Cluster, cluster
from support.following import Following, Log, followed, livable, simulated
from support.neighbourhoods import Neighbourhood
from support.runs import first_difference

KINDS = [(several, neighbours) for several in (False, True) for neighbours in (False, True)]
GOLD, BRONZE = ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 3)


@pytest.mark.parametrize(("several", "neighbours"), KINDS)
@pytest.mark.parametrize("first", range(0, 100, 50))
def test_the_engine_decides_as_the_simulator_does(first: int, several: bool, neighbours: bool, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
        one = livable(cluster(seed, several=several, neighbours=neighbours))
        result, log = simulated(one, tmp_path)
        found = first_difference("decisions", log, followed(one, result).log)
        assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("budget", ["accrued", "whole"])
@pytest.mark.parametrize("first", range(7000, 7060, 30))
def test_the_engine_decides_as_the_simulator_does_by_promises_over_windows(
    first: int, budget: str, tmp_path: Path
) -> None:
    """Of requests of every approach; windows are full, or turn, while they live."""
    differs = 0
    for seed in range(first, first + 15):
        one = at_the_beginning(cluster(seed, several=True).windowed(), budget)
        result, log = simulated(one, tmp_path)
        found = first_difference("decisions", log, followed(one, result).log)
        assert found is None, f"seed {seed}: {found}"
        lifetime = tuple(replace(service, window=None) for service in one.workload.classes)
        plain = replace(one, workload=replace(one.workload, classes=lifetime))
        differs += log != simulated(plain, tmp_path)[1]
    assert differs >= 2, "windows that change nothing prove little"


@pytest.mark.parametrize("several", [False, True])
def test_the_engine_decides_as_the_simulator_does_where_classes_start_apart(several: bool, tmp_path: Path) -> None:
    differs = 0
    for seed in range(8700, 8730):
        one = livable(cluster(seed, several=several).starting_apart())
        result, log = simulated(one, tmp_path)
        found = first_difference("decisions", log, followed(one, result).log)
        assert found is None, f"seed {seed}: {found}"
        alike = tuple(replace(service, alpha=None) for service in one.workload.classes)
        plain = replace(one, workload=replace(one.workload, classes=alike))
        differs += [decision[:3] for decision in log] != [decision[:3] for decision in simulated(plain, tmp_path)[1]]
    assert differs >= 3, "start-up times that change nothing prove little"


def at_the_beginning(one: Cluster, budget: str) -> Cluster:
    """A cluster with windows, livable, at the instant at which a live one begins; jobs are services."""
    began = datetime.fromtimestamp(BEGINNING, UTC)
    classes = []
    for service in one.workload.classes:
        window = service.window and replace(service.window, budget=budget)
        if window is not None and window.start is not None:
            shift = datetime.fromisoformat(window.start) - datetime.fromisoformat("1970-01-01T00:00:00")
            window = replace(window, start=(began + shift).replace(tzinfo=None).isoformat())
        classes.append(replace(service, window=window))
    workload = replace(one.workload, classes=tuple(classes))
    if workload.requests is not None:
        services = np.zeros(len(workload.requests), np.bool_)
        workload = replace(workload, requests=replace(workload.requests, batch=services))
    epoch = began.isoformat().replace("+00:00", "Z")
    return livable(replace(one, workload=workload)).with_(simulation={"epoch": epoch})


class Disturbance:
    """Things told to an engine that change nothing, or nothing in the end; by name in ``kinds``."""

    def __init__(self, following: Following, seed: int, *kinds: str) -> None:
        self.following, self.engine = following, following.engine
        self.random = np.random.default_rng([seed, 0xD157])
        self.kinds: list[Callable[[float], None]] = [getattr(self, kind) for kind in kinds]
        self.number = 0

    def __call__(self, now: float) -> None:
        for disturb in self.kinds:
            if self.chance(0.4):
                disturb(now)

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def compacted(self, _now: float) -> None:
        compact(self.engine.tables)

    def relabelled(self, _now: float) -> None:
        """A host is told with other labels, amounts and resources, and then again as it is."""
        hosts = self.following.one.hosts
        h = int(self.random.integers(len(hosts)))
        self.number += 1
        up = not self.engine.tables.tb["hosts"]["down"][h]
        self.engine.host(hosts.names[h], {"cpu": 7, "odd": 3}, {"zone": "q", "x": str(self.number)}, up)
        if self.chance(0.5):
            self.engine.tables.settle()
        self.following.tell_host(h, up)

    def others_come(self, now: float) -> None:
        """New resources, classes, terms, marks and rules, of pods that sleep; some of them go again."""
        engine = self.engine
        self.number += 1
        name = f"other-{self.number}"
        drawn = Neighbourhood(self.random, (NO_CONSTRAINT, *TERMS))
        term = Term((Constraint(f"label-{self.number}", "==", "v"),)) if self.chance(0.7) else TERMS[0]
        service = self.following.one.workload.classes[0]
        if self.chance(0.5):
            service = ServiceClass(name, 0.77, int(self.random.integers(1, 12)))
        demand = (("cpu", 5 + self.number), (f"resource-{self.number % 3}", 1))
        engine.spec(10_000 + self.number, Spec(demand, service, term, drawn.placement()))
        engine.controller(name, service, int(self.random.integers(3)), False)
        engine.tables.free_rows.append(engine.tables.new_row())
        engine.arrive(name, name, name, 10_000 + self.number, now)
        if self.chance(0.7):
            engine.gone(name, now)
            engine.controller_gone(name, now)

    def specs_change(self, _now: float) -> None:
        """A pod, waiting or running, is of another spec for a while."""
        engine, tb = self.engine, self.engine.tables.tb
        ours = [one for uid, one in engine.pods.items() if not uid.startswith("other")]
        if ours:
            one = ours[int(self.random.integers(len(ours)))]
            was = one.spec
            engine.spec(20_000, replace(engine.specs[was], demand=(("cpu", 3),), term=TERMS[0]))
            h = engine.hosts.get(one.host, -1)
            version = int(tb["hosts"]["version"][h])
            engine.respec(one.uid, 20_000)
            engine.respec(one.uid, was)
            if h >= 0:  # its contents did change: what is random is drawn by how often
                tb["hosts"]["version"][h] = version - 1
                apply_plan.host_changed(tb.state, h)

    def naps(self, _now: float) -> None:
        for uid, one in list(self.engine.pods.items()):
            if one.state == types.WAITING and self.chance(0.3):
                self.engine.sleep(uid)
                self.engine.wake(uid)

    def promises_are_kept(self, _now: float) -> None:
        """Classes get the promises that they have in the simulated run."""
        right = {service.name: service for service in self.following.one.workload.classes}
        for controller in list(self.engine.controllers.values()):
            if controller.key.startswith("r"):
                service = right[controller.service.name]
                self.engine.controller(controller.key, service, controller.approach, controller.batch)


def others_than_promised(service: ServiceClass) -> ServiceClass:
    return replace(service, slo=service.slo * 0.6, rank=10 - service.rank, margin=3.0)


DISTURBANCES = ("compacted", "relabelled", "others_come", "specs_change", "naps")


def disturbed(seed: int, several: bool, folder: Path, *kinds: str) -> tuple[RunResult, Log, Following]:
    one = livable(cluster(seed, several=several, neighbours=bool(seed % 2)))
    result, log = simulated(one, folder)
    following = Following(one, result, Engine(one.config))
    following.between = Disturbance(following, seed, *kinds)
    return result, log, following


@pytest.mark.parametrize("kinds", [*((kind,) for kind in DISTURBANCES), DISTURBANCES], ids=lambda kinds: kinds[-1])
@pytest.mark.parametrize("several", [False, True])
def test_what_is_told_late_changes_no_decision(kinds: tuple[str, ...], several: bool, tmp_path: Path) -> None:
    for seed in range(14):
        _, log, following = disturbed(seed, several, tmp_path, *kinds)
        found = first_difference("decisions", log, following.run())
        assert found is None, f"seed {seed}: {found}"


@pytest.mark.parametrize("several", [False, True])
def test_promises_that_change_while_pods_wait_hold_from_then_on(several: bool, tmp_path: Path) -> None:
    for seed in range(30):
        _, log, following = disturbed(seed, several, tmp_path)
        following.promised = others_than_promised
        following.between = Disturbance(following, seed).promises_are_kept
        found = first_difference("decisions", log, following.run())
        assert found is None, f"seed {seed}: {found}"


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    """Wrong promises, wrong labels: told to an engine for good, they do change decisions."""
    differ = 0
    for seed in range(20):
        _, log, following = disturbed(seed, True, tmp_path)
        following.promised = others_than_promised
        differ += log != following.run()
    assert differ > 5


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
def test_a_cluster_that_keeps_changing_is_never_overbooked(seed: int, policy: str) -> None:
    """Checked by the books of the cluster itself, which fails on what is bound twice or evicted for nobody."""
    config = live_config(name=policy, preempt_when="better", patience=5.0, gang=bool(seed % 2), min_running=seed % 3)
    churn = Churn(Engine(config), seed)
    for _ in range(80):
        churn.step(float(churn.random.exponential(1.5)))
    assert len(churn.decisions) > 50
    assert any(decision.victims for decision in churn.decisions)


def test_the_same_operations_give_the_same_decisions() -> None:
    made = []
    for _ in range(2):
        operations: list[object] = []
        engine = Engine(live_config(preempt_when="better"), journal=operations.append)
        churn = Churn(engine, 3)
        for _ in range(100):
            churn.step(1.25)
        made.append((operations, churn.decisions))
    assert made[0] == made[1]


def size(engine: Engine) -> dict[str, int]:
    tables = engine.tables
    return {
        "kinds": tables.kinds,
        "terms": len(tables.terms),
        "counters": len(tables.counters.numbers),
        "classes": len(tables.classes),
        "budgets": len(tables.tb["budgets"]),
        "bytes": sum(tables.tb[name].nbytes for name in ("kinds", "demand", "counters", "tallies", "allowed", "marks")),
    }


@pytest.mark.slow
def test_a_day_of_churn_takes_no_more_memory_than_an_hour() -> None:
    engine = Engine(live_config(preempt_when="better", patience=5.0))
    churn = Churn(engine, 11)
    sizes = []
    for _ in range(24):
        for _ in range(120):
            churn.step(30.0)
        sizes.append(size(engine))
    assert len(engine.specs) < 100
    assert churn.made > 5000
    for name in sizes[0]:
        first, last = max(one[name] for one in sizes[:6]), max(one[name] for one in sizes[6:])
        assert last <= 2 * first, f"{name}: found {last} after a day, {first} after six hours"


def pair() -> Engine:
    """Two hosts of two cores; specs 0 (bronze) and 1 (gold) ask for one core."""
    engine = Engine(live_config())
    for name in ("a", "b"):
        engine.host(name, {"cpu": 2000, "memory": 8 * GI, "pods": 10}, {"zone": name}, True)
    engine.spec(0, Spec((("cpu", 1000),), BRONZE))
    engine.spec(1, Spec((("cpu", 1000),), GOLD))
    engine.controller("bronze", BRONZE, 0, False)
    engine.controller("gold", GOLD, 0, False)
    return engine


def full(engine: Engine) -> None:
    """Four bronze pods, ready for long enough to have slack."""
    for n in range(4):
        engine.arrive(f"b{n}", f"b{n}", "bronze", 0, BEGINNING)
        engine.wake(f"b{n}")
    for decision in engine.run(BEGINNING).decisions:
        engine.bound(decision.uid, BEGINNING)
        engine.ready(decision.uid, BEGINNING + 1.0)


def test_who_never_preempts_waits() -> None:
    engine = pair()
    full(engine)
    engine.spec(2, Spec((("cpu", 1000),), GOLD, never=True))
    engine.arrive("polite", "polite", "gold", 2, BEGINNING + 500.0)
    engine.wake("polite")
    outcome = engine.run(BEGINNING + 500.0)
    assert not outcome.decisions
    assert outcome.waiting == 1
    engine.respec("polite", 1)
    assert len(engine.run(BEGINNING + 501.0).decisions[0].victims) == 1


def test_a_budget_holds_for_pods_that_came_before_it() -> None:
    engine = pair()
    full(engine)
    for one in engine.pods.values():
        one.budget = "web"
    engine.budget("web", 0)
    engine.arrive("g", "g", "gold", 1, BEGINNING + 500.0)
    engine.wake("g")
    assert not engine.run(BEGINNING + 500.0).decisions
    engine.budget("web", 1)
    assert len(engine.run(BEGINNING + 501.0).decisions) == 1
    assert engine.tables.tb["budgets"]["amount"].tolist() == [0]
    engine.arrive("g2", "g2", "gold", 1, BEGINNING + 502.0)
    engine.wake("g2")
    assert not engine.run(BEGINNING + 502.0).decisions
    engine.budget_gone("web")
    assert len(engine.run(BEGINNING + 503.0).decisions) == 1


def test_a_running_pod_that_asks_for_less_makes_room() -> None:
    engine = pair()
    full(engine)
    engine.spec(2, Spec((("cpu", 1000),), GOLD, never=True))
    engine.spec(3, Spec((("cpu", 500),), BRONZE))
    engine.arrive("g", "g", "gold", 2, BEGINNING + 5.0)
    engine.wake("g")
    host = engine.pods["b0"].host
    for one in list(engine.pods.values()):
        if one.host == host:
            engine.respec(one.uid, 3)
    [decision] = engine.run(BEGINNING + 6.0).decisions
    assert (decision.uid, decision.host) == ("g", host)
    engine.gone("b0", BEGINNING + 7.0)
    used = [one for one in engine.pods.values() if one.host == host]
    assert engine.tables.tb["free"][engine.hosts[host], 0] == 2000 - 1000 - 500 * (len(used) - 1)


def test_marks_that_a_running_pod_gets_later_count() -> None:
    engine = pair()
    full(engine)
    away = Placement(("x",), (Rule("away", "x"),))
    engine.spec(2, Spec((("cpu", 0),), GOLD, placement=away, never=True))
    engine.spec(3, Spec((("cpu", 1000),), BRONZE, placement=Placement(("x",))))
    host = engine.pods["b0"].host
    engine.respec("b0", 3)
    engine.arrive("g", "g", "gold", 2, BEGINNING + 5.0)
    engine.wake("g")
    [decision] = engine.run(BEGINNING + 6.0).decisions
    assert decision.host != host


def test_operations_on_what_is_not_known_are_refused() -> None:
    engine = pair()
    with pytest.raises(StateError, match="incarnation x: not known"):
        engine.wake("x")
    engine.arrive("g", "g", "gold", 1, BEGINNING)
    with pytest.raises(StateError, match="found asleep, expected placed"):
        engine.refused("g", BEGINNING)
    with pytest.raises(StateError, match="found incarnations"):
        engine.controller_gone("gold", BEGINNING)


def test_room_is_seen_without_a_pass() -> None:
    engine = pair()
    full(engine)
    engine.spec(2, Spec((("cpu", 1000),), BRONZE))
    assert not has_room(engine, 2)
    engine.gone("b0", BEGINNING + 1.0)
    assert has_room(engine, 2)
    engine.spec(3, Spec((("cpu", 1001),), BRONZE))
    assert not has_room(engine, 3)
    for name in list(engine.hosts):
        engine.host(name, {"cpu": 2000, "memory": 8 * GI, "pods": 10}, {}, False)
    assert not has_room(engine, 2)


def test_one_that_is_lost_while_it_starts_gives_its_place_to_one_that_is_not() -> None:
    """Nobody knows when it will be ready, and its metric falls until then: a bound of its host does not hold on."""
    config = settings()
    engine = Engine(replace(config, policy=replace(config.policy, floor=0.0)))
    engine.host("n", {"cpu": 1000, "pods": 10}, {}, True)
    engine.spec(0, Spec((("cpu", 1000), ("pods", 1)), SILVER))
    for uid, at in (("lost", T0 - 10), ("starts", T0), ("savable", T0 + 20)):
        engine.controller(uid, SILVER, 0, False)
        if uid == "starts":
            engine.found(uid, uid, uid, 0, "n", at)
        else:
            engine.arrive(uid, uid, uid, 0, at)
            engine.wake(uid)
    assert not engine.run(T0 + 25).decisions  # alpha 10 s, savable 40 s: it is lost from T0 + 30 s on
    (decision,) = engine.run(T0 + 35).decisions
    assert (decision.uid, [victim.uid for victim in decision.victims]) == ("savable", ["starts"])


def test_workloads_that_come_and_go_between_passes_leave_nothing_behind() -> None:
    """Where nobody needs to preempt, nobody asks whose metrics have changed: each may be noted once, whatever becomes
    of its place. Kernels write beyond their arrays, else."""
    engine = Engine(settings())
    engine.host("n", {"cpu": 1000, "pods": 10}, {}, True)
    engine.spec(0, Spec((("cpu", 10), ("pods", 1)), SILVER))
    for number in range(2000):
        key, at = f"job-{number}", T0 + number
        engine.controller(key, SILVER, 2, True, at=at)
        engine.arrive(key, key, key, 0, at)
        engine.bound_elsewhere(key, "n", at)
        engine.ready(key, at)
        engine.gone(key, at + 0.5, True)
        engine.controller_gone(key, at + 0.5)
    tables = engine.tables.tb
    assert engine.tables.tb.control["stirred"] <= len(tables["requests"]) <= len(tables["stirred"])
