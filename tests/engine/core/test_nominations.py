"""Pods that somebody else nominated for a node go there first, and those less important leave them the room."""

from __future__ import annotations

import random

import pytest

from engine.workbench import BRONZE, GOLD, SILVER, T0, settings
from reference.amounts import fits, minus
from reference.nominations import Pass
from slacktide.engine.core.engine import Engine
from slacktide.model import NO_NEIGHBOURS, Placement, Rule, ServiceClass, Term, Topology
from slacktide.model.placement import HOST
from slacktide.state.spec import Spec


def nodes(*cores: int) -> Engine:
    """Nodes a, b, ... of so many CPUs."""
    engine = Engine(settings())
    for name, count in zip("abcdefgh", cores, strict=False):
        engine.host(name, {"cpu": 1000 * count, "pods": 20}, {"name": name}, True)
    return engine


class Pods:
    """Pods that wait, each of a controller of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.at, self.specs = engine, 0.0, 0

    def come(
        self, uid: str, cores: int, service: ServiceClass, nominated: str = "", placement: Placement = NO_NEIGHBOURS
    ) -> None:
        spec = Spec((("cpu", 1000 * cores), ("pods", 1)), service, Term(), placement, never=True)
        self.engine.spec(self.specs, spec)
        self.engine.controller(uid, service, 0, False)
        self.engine.arrive(uid, uid, uid, self.specs, T0)
        self.engine.prefer(uid, nominated)
        self.engine.wake(uid)
        self.specs += 1

    def placed(self) -> dict[str, str]:
        """Who goes where in the next pass; it leaves nothing behind of what it kept for others."""
        self.at += 1.0
        before = {host: self.engine.room(host).get("cpu") for host in self.engine.hosts}
        found = self.engine.run(T0 + self.at).decisions
        for decision in found:
            before[decision.host] = (before[decision.host] or 0) - dict(
                self.engine.specs[self.engine.pods[decision.uid].spec].demand
            )["cpu"]
        assert before == {host: self.engine.room(host).get("cpu") for host in self.engine.hosts}
        return {one.uid: one.host for one in found}


@pytest.mark.uncompiled
@pytest.mark.parametrize("nominated", "abc")
def test_it_goes_there_first(nominated: str) -> None:
    pods = Pods(nodes(4, 4, 4))
    for uid in ("one", "two"):
        pods.come(uid, 1, BRONZE, nominated)
    assert pods.placed() == {"one": nominated, "two": nominated}


@pytest.mark.uncompiled
def test_it_goes_elsewhere_where_it_cannot_go_there() -> None:
    pods = Pods(nodes(1, 4))
    pods.come("large", 2, BRONZE, "a")
    assert pods.placed() == {"large": "b"}
    pods = Pods(nodes(4, 4))
    apart = Placement(("x",), (Rule("away", "x", Topology(HOST)),))
    pods.come("first", 1, GOLD, "a", apart)
    pods.come("second", 1, BRONZE, "a", apart)
    assert pods.placed() == {"first": "a", "second": "b"}
    pods.engine.host("a", {"cpu": 4000, "pods": 20}, {"name": "a"}, False)
    pods.come("late", 1, BRONZE, "a")
    assert pods.placed() == {"late": "b"}


@pytest.mark.uncompiled
def test_those_less_important_leave_it_the_room_and_others_do_not() -> None:
    pods = Pods(nodes(4))
    pods.engine.other("stranger", "a", {"cpu": 3000, "pods": 1}, ())
    for uid in ("twin-1", "twin-2"):
        pods.come(uid, 2, SILVER, "a")
    pods.come("low", 1, BRONZE)
    assert pods.placed() == {}
    pods.come("high", 1, GOLD)
    assert pods.placed() == {"high": "a"}
    pods.engine.gone("high", T0 + 2.0)
    pods.engine.other_gone("stranger")
    assert pods.placed() == {"twin-1": "a", "twin-2": "a"}


@pytest.mark.uncompiled
def test_room_is_kept_for_it_though_an_equal_without_a_nomination_failed_before_it() -> None:
    pods = Pods(nodes(4))
    pods.engine.other("stranger", "a", {"cpu": 3000, "pods": 1}, ())
    pods.come("plain", 2, SILVER)
    pods.come("nominated", 2, SILVER, "a")
    pods.come("low", 1, BRONZE)
    assert pods.placed() == {}
    pods.engine.prefer("nominated", "")
    assert pods.placed() == {"low": "a"}


@pytest.mark.uncompiled
def test_no_room_is_kept_for_a_pod_group_that_cannot_start() -> None:
    pods = Pods(nodes(4))
    pods.engine.pod_group("g", 2)
    for uid in ("one", "two"):
        pods.come(uid, 3, SILVER, "a")
        pods.engine.join_group(uid, "g")
    pods.come("low", 3, BRONZE)
    assert pods.placed() == {"low": "a"}


@pytest.mark.uncompiled
def test_a_pod_group_starts_with_all_for_whom_a_place_was_found() -> None:
    """One more than must start is nominated where the others go, and finds no place itself."""
    pods = Pods(nodes(4))
    pods.engine.other("stranger", "a", {"cpu": 2000, "pods": 1}, ())
    pods.engine.pod_group("g", 2)
    for uid, cores in (("large", 3), ("one", 1), ("two", 1)):
        pods.come(uid, cores, SILVER, "a" if uid == "large" else "")
        pods.engine.join_group(uid, "g")
    assert pods.placed() == {"one": "a", "two": "a"}


@pytest.mark.uncompiled
def test_a_pass_is_as_the_twin_has_it() -> None:
    kept = chosen = 0
    for seed in range(150):
        dice = random.Random(seed)
        count = dice.randint(1, 4)
        cores = [dice.randint(1, 6) for _ in range(count)]
        pods, names = Pods(nodes(*cores)), "abcd"[:count]
        waiting: list[tuple[str, tuple[int, ...], str]] = []
        for rank in range(1, dice.randint(3, 9)):
            uid, size, nominated = f"pod-{rank}", dice.randint(1, 5), dice.choice(["", *names, "unknown"])
            pods.come(uid, size, ServiceClass(f"class-{rank}", 0.9, rank), nominated)
            waiting.append((uid, (1000 * size, 1), nominated))
        free: dict[str, tuple[int, ...]] = {name: (1000 * size, 20) for name, size in zip(names, cores, strict=True)}
        twin, found = Pass(free), pods.placed()
        for uid, demand, nominated in waiting:
            first = twin.first_choice(demand, nominated)
            able = [first] if first else [name for name in names if fits(demand, twin.free[name])]
            assert (found.get(uid, "") in able) if able else uid not in found, (seed, uid)
            chosen += bool(first)
            if able:
                twin.free[found[uid]] = minus(twin.free[found[uid]], demand)
            else:
                twin.keep_room(demand, nominated)
                kept += nominated in names
    assert kept > 50
    assert chosen > 50
