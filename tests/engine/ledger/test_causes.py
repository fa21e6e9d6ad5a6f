"""Whose doing a loss is: random histories beside books kept the slow way, and what follows for decisions."""

from __future__ import annotations

import json
import random
from dataclasses import astuple
from typing import Any

import pytest

from engine.workbench import BRONZE, GOLD, KINDS, SILVER, T0, approach_of, engine_with
from reference.causes import CLUSTER, OPERATOR, WORKLOAD, Instance, Workload
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint import moved, read
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.extrapolate import carry_on
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.rest import at_rest
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.errors import StateError
from slacktide.model import ServiceClass, Window
from slacktide.state.spec import Spec

CAUSED = (CLUSTER, WORKLOAD, OPERATOR)
SERVICES = {"gold": GOLD, "silver": SILVER, "bronze": BRONZE}


def told(kind: str, service: ServiceClass = BRONZE, everything: bool = False, **settings: Any) -> Engine:
    engine = engine_with(**settings)
    engine.controller("c", service, approach_of(kind), kind == "batch", everything)
    return engine


def placed(engine: Engine, uid: str, at: float, key: str = "c", spec: int = 2, node: str = "node-0") -> None:
    engine.arrive(uid, uid, key, spec, T0 + at)
    engine.bound_elsewhere(uid, node, T0 + at)


class Story:
    """Random things happen to a controller, and both books are told."""

    def __init__(self, kind: str, everything: bool, seed: int) -> None:
        self.engine, self.chance, self.t = told(kind, everything=everything), random.Random(seed), 0.0
        self.books, self.kind, self.count = Workload(everything), kind, 0
        self.of: dict[str, Instance] = {}
        self.vacant: list[Instance] = []

    def enters(self, uid: str) -> None:
        pod = self.engine.pods[uid]
        self.of[uid].enter(self.t, pod.ready, pod.cause)

    def step(self) -> None:
        self.t += self.chance.choice((0.0, 1.0, 2.5, 2.0**-20, 7.0))
        what = self.chance.choice(("come", "bind", "ready", "unready", "blame", "blame", "gone", "run", "sleep"))
        if what == "come":
            self._come()
        elif self.engine.pods:
            self._happens(what, self.chance.choice(list(self.engine.pods)), T0 + self.t)

    def _come(self) -> None:
        if len(self.engine.pods) >= 5:
            return
        self.count += 1
        uid = f"p{self.count}"
        self.engine.arrive(uid, uid, "c", 2, T0 + self.t)
        one = self.vacant.pop(0) if self.vacant else Instance()
        self.books.instances += [] if one in self.books.instances else [one]
        self.of[uid] = one
        self.enters(uid)
        if self.chance.random() < 0.7:
            self.engine.wake(uid)

    def _happens(self, what: str, uid: str, at: float) -> None:
        engine, state = self.engine, self.engine.pods[uid].state
        if what == "gone":
            self._gone(uid, at)
            return
        if what == "sleep":
            engine.sleep(uid)
            engine.wake(uid)
        elif what == "run":
            for decision in engine.run(at).decisions:
                engine.bound(decision.uid, at)
                self.enters(decision.uid)
        elif what == "blame":
            engine.blame(uid, self.chance.choice(CAUSED), at)
            self.enters(uid)
        elif what == "bind" and state in (types.ASLEEP, types.WAITING):
            engine.bound_elsewhere(uid, self.chance.choice(("node-0", "node-1")), at)
            self.enters(uid)
        elif what in ("ready", "unready") and state == types.PLACED:
            (engine.ready if what == "ready" else engine.unready)(uid, at)
            self.enters(uid)

    def _gone(self, uid: str, at: float) -> None:
        cause, placed = self.chance.choice(CAUSED), self.engine.pods[uid].state == types.PLACED
        self.engine.gone(uid, at, cause=cause)
        one = self.of.pop(uid)
        if placed and self.kind == "batch" and (cause == CLUSTER or self.books.everything):
            one.stop()
        one.enter(self.t, False, cause)
        self.vacant.append(one)

    def check(self, engine: Engine | None = None) -> None:
        engine = engine or self.engine
        t = self.t + 3.0
        found, books = slo_status(engine, "c", T0 + t), self.books
        losses = found.losses
        assert losses.good == books.good(t)
        assert losses.workload == books.lost(t, WORKLOAD)
        assert losses.operator == books.lost(t, OPERATOR)
        assert losses.cluster == books.lost(t, CLUSTER)
        assert overview(engine, T0 + t).losses.tolist() == [list(astuple(losses))]
        assert found.running == sum(one.spans(t)[-1][2].ready for one in books.instances)
        if self.kind == "independent":
            shares = [
                Workload(books.everything, [one]).received(t) / Workload(False, [one]).lifetime(t)
                for one in books.instances
            ]
            assert found.delivered == min(shares, default=1.0)
        else:
            lifetime = books.lifetime(t)
            received = books.together(t) if self.kind == "concurrent" else books.received(t)
            assert found.delivered == (received / lifetime if lifetime else 1.0)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_losses_by_cause_are_exact(kind: str, everything: bool, seed: int) -> None:
    story = Story(kind, everything, seed)
    for _ in range(150):
        story.step()
        story.check()


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_losses_by_cause_survive_a_new_leader(kind: str, everything: bool, seed: int) -> None:
    """The ledger goes out as JSON and comes back with the pods as they are, at the same instant."""
    story = Story(kind, everything, seed)
    for _ in range(60):
        story.step()
    # A second passes in which nothing happens: timestamps of pods are coarse, and this is not about that.
    story.t += 5.0
    old = story.engine
    saved = json.loads(json.dumps(export(old, "c", T0 + story.t)))
    new = told(kind, everything=everything)
    restore(new, "c", saved, [pod_now(old, story, uid) for uid in old.pods], T0 + story.t)
    for uid, pod in old.pods.items():
        assert (new.pods[uid].cause, new.pods[uid].ready) == (pod.cause if not pod.ready else 0, pod.ready)
    story.check(new)
    written = slo_status(old, "c", T0 + story.t)
    later = slo_status(old, "c", T0 + story.t + 3.0)
    carried = carry_on(read(saved), "always", written.promised, written.slack, T0 + story.t + 3.0)
    assert carried.delivered == pytest.approx(later.delivered, abs=1e-12)


def pod_now(engine: Engine, story: Story, uid: str) -> dict[str, Any]:
    pod, stretches = engine.pods[uid], story.of[uid].stretches
    created = T0 + stretches[0].begin
    on_host = pod.state == types.PLACED
    record = engine.tables.tb["instances"][pod.row]
    return {
        "uid": uid, "name": uid, "spec": 2, "created": created, "host": pod.host if on_host else "",
        "since": T0 + story.t - 4.0 if on_host else None, "ready": pod.ready,
        "ready_since": float(record["since"] + record["startup"]) if pod.ready else None, "leaving": False,
        "cause": 0 if pod.ready else pod.cause, "cause_since": T0 + story.t,
    }  # fmt: skip


# -- what somebody could want to forge ---------------------------------------------------------------------------------


def test_a_failing_probe_makes_an_ordinary_victim() -> None:
    """One core. Bronze runs and is never ready: it gains slack as if it were, and gold may have its place."""
    engine = told("independent", hosts=1, cores=1)
    engine.controller("honest", SILVER, approach_of("independent"), False)
    placed(engine, "b", 0)
    engine.ready("b", T0 + 2)
    engine.blame("b", WORKLOAD, T0 + 10)
    engine.unready("b", T0 + 10)
    slack = slo_status(engine, "c", T0 + 1000).slack
    assert slack == pytest.approx(998 / 0.5 - 1000 - 10)
    engine.arrive("s", "s", "honest", 1, T0 + 1000)
    engine.wake("s")
    assert [(one.uid, [v.uid for v in one.victims]) for one in engine.run(T0 + 1000).decisions] == [("s", ["b"])]


def test_a_failing_probe_drives_nobody_out() -> None:
    """Gold with a failing probe, gone from its node, comes back with the slack of one that ran."""
    engine = told("independent", SILVER, hosts=1, cores=1)
    engine.controller("honest", BRONZE, approach_of("independent"), False)
    placed(engine, "s", 0, spec=1)
    engine.blame("s", WORKLOAD, T0)
    engine.gone("s", T0 + 1000, cause=WORKLOAD)
    placed(engine, "b", 1000, "honest")
    engine.ready("b", T0 + 1000)
    engine.arrive("s2", "s2", "c", 1, T0 + 1005)
    engine.blame("s2", CLUSTER, T0 + 1005)
    engine.wake("s2")
    status = slo_status(engine, "c", T0 + 1005)
    assert status.state == "Kept"
    assert status.slack == pytest.approx(1005 / 0.9 - 1005 - 10, abs=1e-5)
    assert not engine.run(T0 + 1005).decisions


@pytest.mark.parametrize("kind", ["concurrent", "aggregated"])
def test_an_impossible_replica_breaks_nothing(kind: str) -> None:
    engine = told(kind, SILVER)
    for uid in ("a", "b"):
        placed(engine, uid, 0, spec=1)
        engine.ready(uid, T0)
    engine.arrive("x", "x", "c", 1, T0)
    engine.blame("x", WORKLOAD, T0)
    engine.wake("x")
    status = slo_status(engine, "c", T0 + 100)
    assert (status.delivered, status.running, status.waiting) == (1.0, 2, 1)
    assert status.losses.workload == 100
    assert not engine.anybody_waits()  # it takes no part in passes
    assert engine.waiting() == ["x"]
    outcome = engine.run(T0 + 100)
    assert (outcome.decisions, outcome.waiting) == ((), 0)
    engine.blame("x", CLUSTER, T0 + 110)  # a node came that can take it
    (decision,) = engine.run(T0 + 110).decisions
    assert decision.uid == "x"


@pytest.mark.parametrize("kind", ["independent", "concurrent", "aggregated"])
def test_who_is_drained_in_a_maintenance_window_waits_without_loss_and_takes_part(kind: str) -> None:
    engine = told(kind, SILVER, hosts=1, cores=1)
    placed(engine, "a", 0, spec=1)
    engine.ready("a", T0)
    placed(engine, "x", 0, spec=1)  # overcommitted: it stays in the way
    engine.ready("x", T0)
    engine.gone("a", T0 + 50, cause=OPERATOR)
    engine.arrive("a2", "a2", "c", 1, T0 + 51)
    engine.wake("a2")
    assert engine.anybody_waits()
    assert not engine.run(T0 + 60).decisions
    assert slo_status(engine, "c", T0 + 80).delivered == 1.0
    engine.gone("x", T0 + 90, completed=True)
    (decision,) = engine.run(T0 + 100).decisions
    engine.bound("a2", T0 + 101)
    engine.ready("a2", T0 + 110)
    status = slo_status(engine, "c", T0 + 120)
    assert (decision.uid, status.delivered, status.losses.operator) == ("a2", 1.0, 60.0)


@pytest.mark.parametrize("kind", ["independent", "concurrent", "aggregated"])
def test_a_window_that_ended_while_nobody_led_ends_the_excuse(kind: str) -> None:
    engine = told(kind, SILVER, hosts=1, cores=1)
    placed(engine, "a", 0, spec=1)
    engine.ready("a", T0)
    engine.drained("c", T0 + 70)
    engine.gone("a", T0 + 50, cause=OPERATOR)
    saved = json.loads(json.dumps(export(engine, "c", T0 + 60)))
    assert saved["drained"] == T0 + 70
    late = json.loads(json.dumps(export(engine, "c", T0 + 71)))  # before anybody saw to it that it is over
    engine.blame_vacant("c", 0, OPERATOR, T0 + 70)
    engine.drained("c", 0.0)
    assert "drained" not in export(engine, "c", T0 + 80)
    assert "drained" not in at_rest(saved)
    for ledger, by_operator in ((saved, 20.0), (late, 21.0)):
        new = told(kind, SILVER, hosts=1, cores=1)
        restore(new, "c", ledger, [], T0 + 100)
        losses = slo_status(new, "c", T0 + 100).losses
        assert (losses.operator, losses.cluster) == (by_operator, 50.0 - by_operator)
    with pytest.raises(StateError, match="drained: found 'soon', expected seconds"):
        read(saved | {"drained": "soon"})


def test_what_a_job_loses_by_its_own_doing_is_no_work_that_a_stop_discards() -> None:
    engine = told("batch", hosts=1)
    placed(engine, "a", 0)
    engine.ready("a", T0)
    engine.blame("a", WORKLOAD, T0 + 30)
    engine.unready("a", T0 + 30)
    engine.ready("a", T0 + 50)
    engine.gone("a", T0 + 60)
    status = slo_status(engine, "c", T0 + 60)
    assert status.delivered == 20 / 60
    assert (status.losses.workload, status.losses.cluster) == (20, 40)


def test_a_suspended_job_is_not_charged() -> None:
    engine = told("batch")
    engine.suspend("c", 3, T0)
    engine.suspend("c", 0, T0 + 100)
    engine.suspend("c", 0, T0 + 200)
    status = slo_status(engine, "c", T0 + 300)
    assert (status.delivered, status.losses.operator, status.losses.cluster) == (1.0, 300.0, 0.0)
    saved = json.loads(json.dumps(export(engine, "c", T0 + 300)))
    new = told("batch")
    restore(new, "c", saved, [], T0 + 300)
    assert slo_status(new, "c", T0 + 310).losses.operator == 300.0


def test_a_class_that_counts_everything_from_now_on_and_back() -> None:
    engine = told("aggregated")
    placed(engine, "a", 0)
    engine.blame("a", WORKLOAD, T0)
    assert slo_status(engine, "c", T0 + 10).delivered == 1.0
    engine.run(T0 + 10)  # time goes on
    engine.ready("a", T0 + 10)
    engine.unready("a", T0 + 10)
    engine.controller("c", BRONZE, approach_of("aggregated"), False, True)
    assert slo_status(engine, "c", T0 + 20).delivered == 0.5
    assert slo_status(engine, "c", T0 + 20).losses.workload == 20
    assert engine.pods["a"].cause == WORKLOAD


# -- promises over windows ---------------------------------------------------------------------------------------------

WINDOWS = (None, Window(rolling=1000.0), Window(rolling=1000.0, budget="whole"), Window(calendar="1d"))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_what_is_excused_counts_in_a_window_as_if_it_had_run(window: Window | None) -> None:
    """One pod fails its probe, is deleted, and comes again; the other runs on. The cluster treated both alike."""
    service = ServiceClass("over", 0.9, 2, window=window)
    engines = []
    for troubled in (True, False):
        engine = engine_with()
        engine.spec(9, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
        engine.controller("c", service, approach_of("independent"), False)
        placed(engine, "p", 0, spec=9)
        engine.ready("p", T0 + 20)
        if troubled:
            engine.blame("p", WORKLOAD, T0 + 300)
            engine.unready("p", T0 + 300)
            engine.gone("p", T0 + 800, cause=WORKLOAD)
            engine.arrive("q", "q", "c", 9, T0 + 1100)
            engine.bound_elsewhere("q", "node-1", T0 + 1100)
            engine.ready("q", T0 + 1150)
        engines.append(engine)
    forged, honest = engines
    for t in (1150.0, 1500.0):
        mine, other = (slo_status(engine, "c", T0 + t) for engine in (forged, honest))
        assert (mine.slack, mine.delivered, mine.state) == (other.slack, other.delivered, other.state), t
    saved = json.loads(json.dumps(export(forged, "c", T0 + 1500)))
    new = engine_with()
    new.spec(9, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
    new.controller("c", service, approach_of("independent"), False)
    pod = {
        "uid": "q", "name": "q", "spec": 9, "created": T0 + 1100, "host": "node-1", "since": T0 + 1100, "ready": True,
        "ready_since": T0 + 1150, "leaving": False,
    }  # fmt: skip
    restore(new, "c", saved, [pod], T0 + 1500)
    for t in (1500.0, 2500.0, 5000.0, 90_000.0):
        mine, other = (slo_status(engine, "c", T0 + t) for engine in (new, honest))
        assert (mine.slack, mine.delivered, mine.losses.workload) == (other.slack, other.delivered, 850.0)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_ledger_over_a_window_is_gone_on_from_after_a_deletion(window: Window | None) -> None:
    service = ServiceClass("over", 0.9, 2, window=window)
    engine = engine_with()
    engine.spec(9, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
    engine.controller("c", service, approach_of("independent"), False)
    placed(engine, "p", 0, spec=9)
    engine.ready("p", T0 + 20)
    before = slo_status(engine, "c", T0 + 500)
    rest = json.loads(json.dumps(at_rest(export(engine, "c", T0 + 500))))
    new = engine_with()
    new.controller("c", service, approach_of("independent"), False)
    restore(new, "c", moved(rest, T0 + 700), [], T0 + 700)
    after = slo_status(new, "c", T0 + 700)
    assert after.delivered == before.delivered
    assert after.slack == before.slack or (window is not None and window.calendar)  # whose day goes on meanwhile
