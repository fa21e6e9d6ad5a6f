"""An engine and slow books side by side: whatever is told to one is told to the other."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from engine.naive import ACCOUNTINGS, Naive
from slacktide.config import Accounting, Config
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.slo_status import SUMS, Accrued, accrue, not_before, slo_status, stand, totals
from slacktide.model import APPROACHES, ServiceClass
from slacktide.qos import availability
from slacktide.state.spec import Spec

Overload = Literal["share", "triage", "plan"]

T0 = 1_790_000_000.0
GOLD, SILVER, BRONZE = ServiceClass("gold", 1.0, 1), ServiceClass("silver", 0.9, 2), ServiceClass("bronze", 0.5, 3)
CLASSES = (GOLD, SILVER, BRONZE)
KINDS = ("independent", "concurrent", "aggregated", "batch")


def settings(
    accounting: Accounting = "always", alpha: float = 10.0, overload: Literal["triage", "plan"] = "plan"
) -> Config:
    config = Config()
    return replace(
        config,
        qos=replace(config.qos, startup=accounting, alpha=alpha),
        policy=replace(config.policy, overload=overload),
    )


def engine_with(
    hosts: int = 3,
    cores: int = 4,
    accounting: Accounting = "always",
    classes: Sequence[ServiceClass] = CLASSES,
    overload: Literal["triage", "plan"] = "plan",
) -> Engine:
    engine = Engine(settings(accounting, overload=overload))
    for i in range(hosts):
        engine.host(f"node-{i}", {"cpu": 1000 * cores, "memory": 2**33, "pods": 500}, {}, True)
    for number, service in enumerate(classes):
        engine.spec(number, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), service))
    return engine


def approach_of(kind: str) -> int:
    return APPROACHES.index("aggregated" if kind == "batch" else kind)


class Workbench:
    """``tell`` both; times are offsets from T0."""

    def __init__(
        self,
        hosts: int = 3,
        cores: int = 4,
        accounting: Accounting = "always",
        classes: Sequence[ServiceClass] = CLASSES,
        overload: Literal["triage", "plan"] = "plan",
    ) -> None:
        self.engine, self.classes = engine_with(hosts, cores, accounting, classes, overload), classes
        self.books: dict[str, Naive] = {}
        self.t = 0.0

    def controller(self, key: str, kind: str, cls: int = 2) -> None:
        self.engine.controller(key, self.classes[cls], approach_of(kind), kind == "batch")
        self.books[key] = Naive("aggregated" if kind == "batch" else kind, kind == "batch")

    def key(self, uid: str) -> str:
        return self.engine.pods[uid].key

    def arrive(self, uid: str, key: str, t: float, name: str = "") -> None:
        cls = self.classes.index(self.engine.controllers[key].service)
        self.engine.arrive(uid, name or uid, key, cls, T0 + t)
        self.engine.wake(uid)
        self.books[key].arrive(uid, name or uid, t)

    def run(self, t: float) -> list[tuple[str, list[str]]]:
        decided = []
        for decision in self.engine.run(T0 + t).decisions:
            self.books[self.key(decision.uid)].place(decision.uid, t)
            for victim in decision.victims:
                life = self.books[self.key(victim.uid)]
                life.of(victim.uid).preemptions += 1
                life.leaving.add(victim.uid)
            decided.append((decision.uid, [victim.uid for victim in decision.victims]))
        return decided

    def found_on(self, uid: str, host: str, t: float) -> None:
        self.engine.bound_elsewhere(uid, host, T0 + t)
        self.books[self.key(uid)].place(uid, t)

    def ready(self, uid: str, t: float) -> None:
        self.engine.ready(uid, T0 + t)
        self.books[self.key(uid)].ready(uid, t)

    def unready(self, uid: str, t: float) -> None:
        self.engine.unready(uid, T0 + t)
        self.books[self.key(uid)].unready(uid, t)

    def refused(self, uid: str, t: float) -> None:
        self.books[self.key(uid)].refused(uid)
        self.engine.refused(uid, T0 + t)

    def spared(self, uid: str, t: float) -> None:
        books = self.books[self.key(uid)]
        books.of(uid).preemptions -= 1
        books.leaving.remove(uid)
        self.engine.spared(uid, T0 + t)

    def gone(self, uid: str, t: float, completed: bool = False) -> None:
        self.books[self.key(uid)].gone(uid, t, completed)
        self.engine.gone(uid, T0 + t, completed)

    def want(self, key: str, count: int, t: float) -> None:
        self.engine.desired(key, count, T0 + t)
        self.books[key].want(count, t)

    def had(self, key: str, t: float) -> Accrued:
        rows = self.engine.controllers[key].rows
        return accrue(self.engine.tables.tb, rows, len(rows), T0 + t)

    def check(self, t: float) -> None:
        """Everything is equal, to the last bit."""
        assert self.engine.anybody_waits() == bool(self.engine.waiting())
        for key in self.books:
            self.check_instances(key, t)
            self.check_request(key, t)

    def check_instances(self, key: str, t: float) -> None:
        had, books, engine = self.had(key, t), self.books[key], self.engine
        lives = {one.uid: one for one in books.live() if one.uid is not None}
        vacant = iter(books.vacant)
        of_row = {row: next(vacant) for row in engine.controllers[key].vacant}
        of_row |= {row: lives[uid] for row, uid in engine.uid_of_row.items() if row in engine.controllers[key].rows}
        assert set(of_row) == set(engine.controllers[key].rows)
        for i, row in enumerate(had.rows.tolist()):
            one = of_row[row]
            assert had["lifetime"][i] == one.lifetime(t)
            assert had["running"][i] == one.sum(t, "run")
            assert had["startup_first"][i] == one.sum(t, "first")
            assert had["startup_restarts"][i] == one.sum(t, "again")
            assert had["discarded"][i] == one.discarded(t)
            assert (had.records["starts"][i], had.records["preemptions"][i]) == (one.starts, one.preemptions)
            assert had["up"][i] == (one.kind == "run")

    def check_request(self, key: str, t: float) -> None:
        books, controller = self.books[key], self.engine.controllers[key]
        had = self.had(key, t)
        sums = totals(controller, had)
        pending = sum(one.sum(t, "wait") for one in books.lives)
        assert sums["lifetime"] == books.lifetime(t)
        assert sums["lifetime"] == pending + sum(sums[name] for name in SUMS[1:])
        record = self.engine.tables.tb["requests"][controller.q]
        stands = slo_status(self.engine, key, T0 + t)
        if books.approach == "concurrent":
            found = stand(self.engine.tables.tb, (controller,), not_before(self.engine, controller, T0 + t)).together[0]
            for accounting, seconds in zip(availability.ACCOUNTINGS, found.tolist(), strict=True):
                assert seconds == books.together(t, accounting) or (books.refusals and accounting != "always")
        elif books.approach == "aggregated":
            passed = T0 + t - float(record["since"])
            assert float(record["total"]) + int(record["live"]) * passed == books.lifetime(t)
            decisive = self.engine.config.qos.startup
            up = int(record[f"up_{decisive}"]) + int(record[f"leaving_{decisive}"])
            assert float(record["received"]) + up * passed == books.received(t, decisive)
        for name in ACCOUNTINGS:
            share, expected = getattr(stands, f"delivered_{name}"), books.availability(t, name)
            skipped = books.refusals and books.approach == "concurrent" and name != "always"
            assert math.isclose(share, expected, rel_tol=1e-12) or skipped, (key, name, share, expected)
        assert stands.running == sum(one.kind == "run" for one in books.live())
        assert stands.running + stands.waiting == len(books.live())
        assert stands.preemptions == sum(one.preemptions for one in books.lives)


DEEDS = ("arrive", "arrive", "run", "run", "settle", "settle", "settle", "change", "change", "change", "end", "want")


class Chaos:
    """A random history; ``step`` does one more thing a while later."""

    def __init__(
        self,
        seed: int,
        accounting: Accounting = "always",
        classes: Sequence[ServiceClass] = CLASSES,
        overload: Literal["triage", "plan"] = "plan",
    ) -> None:
        self.random = random.Random(seed)
        self.bench = Workbench(hosts=1, cores=4, accounting=accounting, classes=classes, overload=overload)
        self.t = 0.0
        self.number = 0
        for i in range(self.random.randint(2, 5)):
            self.bench.controller(f"c{i}", self.random.choice(KINDS), self.random.randrange(3))

    def step(self) -> None:
        bench, rng = self.bench, self.random
        self.t += rng.randint(1, 2**14) / 2**10
        getattr(self, rng.choice(DEEDS))(list(bench.engine.pods.values()))

    def arrive(self, _pods: list[types.Pod]) -> None:
        key = self.random.choice(list(self.bench.books))
        if len(self.bench.engine.controllers[key].rows) - len(self.bench.engine.controllers[key].vacant) >= 5:
            return
        self.number += 1
        name = self.random.choice(["", "", f"{key}-{self.random.randrange(3)}"])
        self.bench.arrive(f"pod-{self.number}", key, self.t, name)

    def run(self, _pods: list[types.Pod]) -> None:
        self.bench.run(self.t)

    def settle(self, pods: list[types.Pod]) -> None:
        """A binding comes through or not."""
        for one in pods:
            if one.state == types.PLACED and not one.bound:
                if self.random.random() < 0.2:
                    self.bench.refused(one.uid, self.t)
                else:
                    self.bench.engine.bound(one.uid, T0 + self.t)
                return

    def change(self, pods: list[types.Pod]) -> None:
        """Readiness, or a victim is spared."""
        running = [one for one in pods if one.bound and one.state in (types.PLACED, types.LEAVING)]
        if not running:
            return
        one = self.random.choice(running)
        if one.state == types.LEAVING and self.random.random() < 0.3:
            self.bench.spared(one.uid, self.t)
        elif one.ready and self.random.random() < 0.4:
            self.bench.unready(one.uid, self.t)
        elif not one.ready:
            self.bench.ready(one.uid, self.t)

    def end(self, pods: list[types.Pod]) -> None:
        if pods:
            leaving = [one for one in pods if one.state == types.LEAVING]
            one = self.random.choice(leaving or pods)
            batch = self.bench.books[one.key].batch
            self.bench.gone(one.uid, self.t, batch and one.ready and self.random.random() < 0.5)

    def want(self, _pods: list[types.Pod]) -> None:
        key = self.random.choice(list(self.bench.books))
        self.bench.want(key, self.random.choice([-1, 2, 3, 5]), self.t)
