"""What controllers suffer is counted, and no limit is exceeded, whatever happens to pods and to the scheduler."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from engine.workbench import BRONZE, GOLD, T0, settings
from slacktide.engine.core import disruptions, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.journal import codec
from slacktide.engine.journal.replay import carry_out
from slacktide.engine.ledger.checkpoint import BrokenLedger, moved, read
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.restore import restore
from slacktide.kernels.feasible import disruption_limits
from slacktide.kernels.tables import limit_records
from slacktide.model import APPROACHES, DisruptionLimits, Hours
from slacktide.model.causes import CLUSTER, WORKLOAD
from slacktide.state.spec import Spec

ROOM = (("cpu", 1000), ("memory", 2**20), ("pods", 1))
WEB, ALSO = "web", "also"


def engine_of(hosts: int, journal: list[bytes] | None = None) -> Engine:
    config = settings()
    config = replace(config, policy=replace(config.policy, name="priority"))
    note = None if journal is None else lambda operation: journal.append(codec.encode(operation))
    engine = Engine(config, note)
    for i in range(hosts):
        engine.host(f"node-{i}", {"cpu": 1000, "memory": 2**33, "pods": 500}, {}, True)
    for number, service in enumerate((GOLD, BRONZE)):
        engine.spec(number, Spec(ROOM, service))
    return engine


@dataclass
class Suffering:
    """An account kept by the test: when disruptions began, and when each ended, by pod."""

    limits: DisruptionLimits
    began: list[float] = field(default_factory=list)
    open: dict[str, float] = field(default_factory=dict)
    ended: float = float("-inf")

    def check(self, uid: str, now: float) -> None:
        limits = self.limits
        recent = [at for at in self.began if now < at + limits.per]
        assert limits.most is None or len(recent) < limits.most, f"{uid} at {now - T0}: one too many"
        assert not limits.cooldown or not self.open, f"{uid} at {now - T0}: another one recovers"
        assert now >= self.ended + limits.cooldown or not limits.cooldown, f"{uid} at {now - T0}: too soon"
        hours = limits.intervals(now - 1.0, now + 1.0)
        assert hours is None or any(begin <= now < end for begin, end in hours), f"{uid} at {now - T0}: closed"
        self.began.append(now)


class Cluster:
    """A cluster that is played: bronze pods of two controllers, golden ones that come and go."""

    def __init__(self, seed: int, limits: dict[str, DisruptionLimits | None]) -> None:
        self.random = random.Random(seed)
        self.limits, self.t, self.count = limits, 0.0, 0
        self.journal: list[bytes] = []
        self.engine = engine_of(4, self.journal)
        self.books = {key: Suffering(one) for key, one in limits.items() if one is not None}
        self.pods: dict[str, dict[str, float | str | bool]] = {}
        self.seen: Counter[str] = Counter()
        for key in limits:
            self.controller(self.engine, key)
        self.controller(self.engine, "gold")
        for key in (WEB, WEB, WEB, ALSO):
            self.arrive(key)

    @property
    def now(self) -> float:
        return T0 + self.t

    def controller(self, engine: Engine, key: str) -> None:
        service = GOLD if key == "gold" else BRONZE
        engine.controller(key, service, APPROACHES.index("independent" if key != ALSO else "aggregated"), False)
        if self.limits.get(key) is not None:
            engine.limits(key, self.limits[key], self.now)

    def arrive(self, key: str) -> None:
        self.count += 1
        uid = f"{key}-{self.count}"
        self.pods[uid] = {"key": key, "created": self.now, "host": "", "since": 0.0, "ready": 0.0, "going": False}
        self.engine.arrive(uid, uid, key, int(key != "gold"), self.now)
        self.engine.wake(uid)

    def run(self) -> None:
        for decision in self.engine.run(self.now).decisions:
            self.pods[decision.uid] |= {"host": decision.host}
            spared = bool(decision.victims) and self.random.random() < 0.2
            for victim in decision.victims:
                key = str(self.pods[victim.uid]["key"])
                if key in self.books:
                    self.books[key].check(victim.uid, self.now)
                    if spared:
                        self.books[key].began.pop()
                self.seen["preempted"] += 1
                if spared:
                    self.engine.spared(victim.uid, self.now)
                    self.seen["spared"] += 1
                    continue
                if key in self.books:
                    self.books[key].open[victim.uid] = self.now
                self.pods[victim.uid]["going"] = True
            if spared:
                self.engine.refused(decision.uid, self.now)
                self.pods[decision.uid] |= {"host": ""}
                self.engine.wake(decision.uid)
                continue
            for victim in decision.victims:
                self.go(victim.uid)
            self.engine.bound(decision.uid, self.now)
            self.pods[decision.uid]["since"] = self.now

    def go(self, uid: str) -> None:
        """A pod is gone; its controller makes another one, which recovers in its place."""
        pod = self.pods.pop(uid)
        self.engine.gone(uid, self.now)
        key = str(pod["key"])
        if key == "gold":
            self.engine.retire(key, self.now)
            return
        self.arrive(key)
        book = self.books.get(key)
        if book is not None and uid in book.open:
            book.open[f"{key}-{self.count}"] = book.open.pop(uid)

    def be_ready(self) -> None:
        for uid, pod in self.pods.items():
            if pod["host"] and not pod["ready"] and self.random.random() < 0.5:
                pod["ready"] = self.now
                self.engine.ready(uid, self.now)
                book = self.books.get(str(pod["key"]))
                if book is not None and uid in book.open:
                    del book.open[uid]
                    book.ended = self.now

    def restart(self) -> None:
        """The scheduler dies; another one goes on from ledgers, written then, and from pods."""
        self.seen["restarts"] += 1
        saved = {key: json.loads(json.dumps(export(self.engine, key, self.now))) for key in self.engine.controllers}
        self.t += self.random.choice([0.0, 3.0])
        self.journal.clear()
        self.engine = engine_of(4, self.journal)
        for key, books in saved.items():
            self.controller(self.engine, key)
            pods = [self.seen_now(uid, pod) for uid, pod in self.pods.items() if pod["key"] == key]
            restore(self.engine, key, books, pods, self.now)
        for uid, pod in self.pods.items():
            if not pod["host"]:
                self.engine.wake(uid)

    def seen_now(self, uid: str, pod: dict[str, float | str | bool]) -> dict[str, object]:
        ready = float(pod["ready"])
        return {
            "uid": uid, "name": uid, "spec": int(pod["key"] != "gold"), "created": pod["created"],
            "host": pod["host"], "since": pod["since"] or None, "ready": bool(ready), "ready_since": ready or None,
            "leaving": False,
        }  # fmt: skip

    def play(self, steps: int, restarts: bool) -> None:
        for _ in range(steps):
            self.t += self.random.choice([0.25, 1.0, 1.0, 5.0])
            what = self.random.random()
            golden = [uid for uid, pod in self.pods.items() if pod["key"] == "gold" and pod["host"]]
            if what < 0.4 and len([1 for pod in self.pods.values() if pod["key"] == "gold"]) < 4:
                self.arrive("gold")
            elif what < 0.7 and golden:
                self.go(self.random.choice(golden))
            elif what > 0.95 and restarts:
                self.restart()
            self.run()
            self.be_ready()


def hours_at(*seconds: int) -> tuple[Hours, ...]:
    """A minute each, that begins so many seconds after the beginning of the play (on the minute)."""
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    minutes = [int((T0 + at) // 60) % 1440 for at in seconds]
    return tuple(Hours(days, minute, (minute + 1) % 1440) for minute in minutes)


CASES = {
    "often": DisruptionLimits(2, 30.0),
    "seldom": DisruptionLimits(1, 200.0),
    "never": DisruptionLimits(0, 1.0),
    "cooldown": DisruptionLimits(cooldown=20.0),
    "hours": DisruptionLimits(hours=hours_at(60, 180, 300)),
    "all": DisruptionLimits(3, 60.0, 5.0, hours_at(60, 120, 240, 300)),
}


@pytest.mark.parametrize("restarts", [False, True], ids=["one leader", "many leaders"])
@pytest.mark.parametrize("case", CASES)
def test_no_limit_is_exceeded(case: str, restarts: bool) -> None:
    seen: Counter[str] = Counter()
    for seed in range(5):
        cluster = Cluster(seed, {WEB: CASES[case], ALSO: None})
        cluster.play(150, restarts)
        seen += cluster.seen
        seen["web"] += len(cluster.books[WEB].began)
    assert seen["preempted"] > 8
    assert seen["web"] >= 4 or case == "never"
    assert seen["spared"] > 0
    assert seen["restarts"] > 0 or not restarts


@pytest.mark.uncompiled
def test_what_is_counted_is_what_happened() -> None:
    """Without limits that bind, an account says the same as the test's."""
    for seed in range(8):
        cluster = Cluster(seed, {WEB: DisruptionLimits(64, 1e6), ALSO: DisruptionLimits(3, 1e6)})
        cluster.play(100, restarts=True)
        for key, book in cluster.books.items():
            controller = cluster.engine.controllers[key]
            found = disruptions.suffered(cluster.engine.instances, controller)
            assert found is not None
            kept = 64 if key == WEB else 3
            assert list(found.begun) == book.began[-kept:]
            assert found.recovering == len(book.open)


def test_a_session_with_limits_is_decided_again_from_its_record() -> None:
    cluster = Cluster(3, {WEB: CASES["all"], ALSO: CASES["often"]})
    cluster.play(120, restarts=False)
    engine = Engine(cluster.engine.config)
    decided: list[str] = []
    told = [codec.decode(line) for line in cluster.journal]
    for operation in told[1:]:
        outcome = carry_out(engine, operation)
        if outcome is not None:
            decided.append(repr(outcome))
    assert decided == [repr(one.outcome) for one in told if one.method == "decided"]  # type: ignore[attr-defined]
    assert any("victims=(Victim" in one for one in decided)


def alone(limits: DisruptionLimits | None, batch: bool = False) -> Engine:
    """A bronze pod on the only node, ready."""
    engine = engine_of(1)
    engine.controller(WEB, BRONZE, 2 if batch else 0, batch)
    engine.controller("gold", GOLD, 0, False)
    engine.limits(WEB, limits, T0)
    engine.arrive("a", "a", WEB, 1, T0)
    engine.wake("a")
    assert [one.uid for one in engine.run(T0).decisions] == ["a"]
    engine.bound("a", T0)
    engine.ready("a", T0 + 1.0)
    return engine


def wants_room(engine: Engine, uid: str, at: float) -> list[str]:
    """Whom a golden pod would drive out that comes now."""
    engine.arrive(uid, uid, "gold", 0, T0 + at)
    engine.wake(uid)
    return [victim.uid for one in engine.run(T0 + at).decisions for victim in one.victims]


def in_force(engine: Engine, at: float) -> int:
    return int(disruption_limits.limit_in_force(engine.tables.tb.state, engine.pods["a"].row, T0 + at))


@pytest.mark.uncompiled
def test_a_move_is_a_disruption_until_it_is_refused() -> None:
    engine = alone(DisruptionLimits(1, 100.0))
    engine.displace("a", T0 + 10.0)
    assert in_force(engine, 10.0) == limit_records.TOO_MANY
    engine.displaced("a", T0 + 11.0, told=False)
    assert in_force(engine, 11.0) == limit_records.ALLOWED
    engine.displace("a", T0 + 20.0)
    engine.displaced("a", T0 + 20.5, told=True)
    assert wants_room(engine, "g", 119.0) == []
    assert [victim.uid for one in engine.run(T0 + 120.0).decisions for victim in one.victims] == ["a"]


def test_limits_change_and_what_was_suffered_counts_on() -> None:
    engine = alone(DisruptionLimits(3, 100.0))
    for at in (10.0, 20.0):
        engine.displace("a", T0 + at)
    engine.limits(WEB, DisruptionLimits(1, 50.0), T0 + 30.0)
    assert [in_force(engine, at) for at in (30.0, 69.0, 70.0)] == [1, 1, 0]
    engine.limits(WEB, DisruptionLimits(3, 100.0), T0 + 30.0)
    assert in_force(engine, 30.0) == limit_records.ALLOWED
    engine.limits(WEB, DisruptionLimits(0, 100.0), T0 + 30.0)
    assert in_force(engine, 1e6) == limit_records.TOO_MANY
    engine.limits(WEB, None, T0 + 30.0)
    assert in_force(engine, 30.0) == limit_records.ALLOWED


@pytest.mark.parametrize("batch", [False, True], ids=["service", "batch"])
def test_a_least_running_time_of_the_workload_is_that_of_its_binding(batch: bool) -> None:
    engine = alone(DisruptionLimits(min_running=60.0), batch)
    assert wants_room(engine, "g", 59.0) == []
    assert [victim.uid for one in engine.run(T0 + 60.0).decisions for victim in one.victims] == ["a"]


def test_hours_are_known_for_years() -> None:
    engine = alone(DisruptionLimits(hours=(Hours(("Sun",), 0, 1440),)))
    week = 7 * 86400.0
    sunday = (3 - int(T0 // 86400)) % 7 * 86400.0 - T0 % 86400  # 1970-01-01 was a Thursday
    sunday += week * (sunday < 0.0)
    for weeks in (0, 3, 60, 61, 500):
        for at, allowed in ((-1.0, False), (0.0, True), (86399.0, True), (86400.0, False)):
            now = sunday + weeks * week + at
            if now >= 1.0:
                engine.run(T0 + now)
                assert (in_force(engine, now) == limit_records.ALLOWED) is allowed, (weeks, at)


def test_an_account_of_a_controller_that_has_no_limits_yet_is_kept() -> None:
    engine = alone(DisruptionLimits(2, 100.0))
    engine.displace("a", T0 + 10.0)
    saved = export(engine, WEB, T0 + 11.0)
    assert saved["disruptions"] == {"begun": [T0 + 10.0], "recovering": 1, "since": T0 + 10.0, "told": ["a"]}
    later = engine_of(1)
    later.controller(WEB, BRONZE, 0, False)
    restore(later, WEB, saved, [], T0 + 12.0)
    assert export(later, WEB, T0 + 12.0)["disruptions"] == saved["disruptions"]
    later.limits(WEB, DisruptionLimits(1, 100.0), T0 + 12.0)
    found = disruptions.suffered(later.instances, later.controllers[WEB])
    assert found == types.Suffered((T0 + 10.0,), recovering=1, since=T0 + 10.0)
    assert moved(saved, T0 + 111.0)["disruptions"]["begun"] == [T0 + 110.0]


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"begun": [2.0, 1.0]}, "disruptions.begun"),
        ({"begun": [1.0] * 65}, "disruptions.begun"),
        ({"begun": ["soon"]}, "disruptions.begun"),
        ({"begun": 7}, "disruptions.begun"),
        ("never", "disruptions.begun"),
        ({"recovering": -1}, "disruptions.recovering"),
        ({"recovering": True}, "disruptions.recovering"),
        ({"ended": "soon"}, "disruptions.ended"),
        ({"since": "soon"}, "disruptions.since"),
        ({"recovering": 1, "told": ["a", "b"]}, "disruptions.told"),
        ({"recovering": 1, "told": [7]}, "disruptions.told"),
        ({"told": "a"}, "disruptions.told"),
    ],
)
def test_a_broken_account_is_refused_with_its_field(said: object, field: str) -> None:
    saved = export(alone(None), WEB, T0 + 2.0)
    with pytest.raises(BrokenLedger) as refused:
        read({**saved, "disruptions": said})
    assert refused.value.field == field


@pytest.mark.uncompiled
@pytest.mark.parametrize("on_host", [False, True])
def test_a_disruption_ends_at_the_latest_when_what_is_missing_is_the_workloads_own_doing(on_host: bool) -> None:
    """Else one pod that never gets ready, or that its owner holds back, would protect all others for good."""
    engine = alone(DisruptionLimits(cooldown=100.0))
    assert wants_room(engine, "g", 10.0) == ["a"]
    engine.gone("a", T0 + 12.0, False, CLUSTER)
    engine.gone("g", T0 + 13.0, False, WORKLOAD)
    web = engine.controllers[WEB]

    def had(what: str) -> float:
        found = disruptions.suffered(engine.instances, web)
        assert found is not None
        return float(getattr(found, what))

    if on_host:
        engine.arrive("b", "b", WEB, 1, T0 + 14.0)
        engine.wake("b")
        assert [one.uid for one in engine.run(T0 + 14.0).decisions] == ["b"]
        engine.bound("b", T0 + 14.0)
    assert had("recovering") == 1
    if on_host:
        engine.blame("b", WORKLOAD, T0 + 60.0)  # its start-up takes longer than it may
    else:
        engine.blame_vacant(WEB, 1, WORKLOAD, T0 + 60.0)  # its owner holds its pod back
    assert (had("recovering"), had("ended")) == (0, T0 + 60.0)
