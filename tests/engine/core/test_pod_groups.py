"""None of a pod group's instances starts before so many can; one that cannot takes nothing, and leaves no trace."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.workbench import BRONZE, GOLD, SILVER, T0, settings
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Decided
from slacktide.engine.core.types import Decision
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.journal import codec
from slacktide.engine.journal.replay import carry_out
from slacktide.model import APPROACHES
from slacktide.state.spec import Spec

CORE = 1000
CLASSES = (GOLD, SILVER, BRONZE)


class Yard:
    """An engine; hosts of four cores, specs by class and cores, and controllers of any approach."""

    def __init__(self, hosts: int = 2, **policy: Any) -> None:
        config = settings()
        self.lines: list[bytes] = []
        """Of a record."""
        journal = lambda operation: self.lines.append(codec.encode(operation))  # noqa: E731
        self.engine = Engine(replace(config, policy=replace(config.policy, **policy)), journal)
        for i in range(hosts):
            self.host(f"node-{i}")
        for c, service in enumerate(CLASSES):
            for cores in range(1, 5):
                self.engine.spec(10 * c + cores, Spec((("cpu", cores * CORE), ("pods", 1)), service))

    def host(self, name: str, cores: int = 4) -> None:
        self.engine.host(name, {"cpu": cores * CORE, "pods": 50}, {}, True)

    def controller(self, key: str, cls: int = 1, approach: str = "independent") -> None:
        self.engine.controller(key, CLASSES[cls], APPROACHES.index(approach), False)

    def waits(self, uid: str, key: str, cores: int = 1, cls: int = 1, group: str = "", at: float = 0.0) -> None:
        self.engine.arrive(uid, uid, key, 10 * cls + cores, T0 + at)
        if group:
            self.engine.join_group(uid, group)
        self.engine.wake(uid)

    def runs(self, uid: str, key: str, host: str, cores: int = 1, cls: int = 2, at: float = 0.0) -> None:
        self.engine.found(uid, uid, key, 10 * cls + cores, host, T0 + at)
        self.engine.ready(uid, T0 + at)

    def decide(self, at: float) -> list[tuple[str, str, tuple[str, ...]]]:
        return [_short(one) for one in self.engine.run(T0 + at).decisions]

    def counted(self, group: str) -> int:
        return int(self.engine.tables.tb["pod_groups"]["placed"][self.engine.groups.numbers[group]])


def _short(one: Decision) -> tuple[str, str, tuple[str, ...]]:
    return one.uid, one.host, tuple(victim.uid for victim in one.victims)


@pytest.mark.uncompiled
def test_a_group_of_several_owners_starts_when_enough_of_it_can() -> None:
    yard = Yard()
    yard.controller("leader")
    yard.controller("workers", approach="aggregated")
    yard.engine.pod_group("g", 3)
    yard.waits("l", "leader", cores=4, group="g")
    yard.waits("w0", "workers", cores=3, group="g")
    yard.waits("w1", "workers", cores=3, group="g")
    assert yard.decide(1.0) == []
    assert yard.counted("g") == 0
    reason = Explainer(yard.engine).reason("w0", T0 + 1.0)
    assert reason.startswith(
        "pod group g needs nodes for 3 pods at once, and 2 fit. 0/2 nodes are available: 2 node(s)"
    )
    yard.host("node-2")
    assert sorted(uid for uid, _, _ in yard.decide(2.0)) == ["l", "w0", "w1"]
    assert yard.counted("g") == 3
    yard.waits("w2", "workers", cores=1, group="g")
    assert [uid for uid, _, _ in yard.decide(3.0)] == ["w2"], "a group that has its least number grows one by one"


@pytest.mark.uncompiled
def test_more_than_its_least_number_wait_and_those_that_fit_start() -> None:
    yard = Yard(hosts=1)
    yard.controller("c")
    yard.engine.pod_group("g", 2)
    for i in range(3):
        yard.waits(f"p{i}", "c", cores=2, group="g")
    assert [uid for uid, _, _ in yard.decide(1.0)] == ["p0", "p1"]
    assert yard.engine.pods["p2"].state == types.WAITING


@pytest.mark.uncompiled
def test_victims_are_given_up_for_a_whole_group_only() -> None:
    yard = Yard(preempt_when="better")
    for i in range(2):
        yard.controller(f"low{i}", cls=2)
        yard.runs(f"low{i}", f"low{i}", f"node-{i}", cores=4)
    yard.controller("c", cls=0)
    yard.engine.pod_group("g", 3)
    for i in range(3):
        yard.waits(f"p{i}", "c", cores=3, cls=0, group="g", at=1000.0)
    assert yard.decide(1000.0) == [], "two of them could preempt: that would be in vain"
    assert {yard.engine.pods[f"low{i}"].state for i in range(2)} == {types.PLACED}
    yard.engine.pod_group("g", 2)
    found = yard.decide(1001.0)
    assert [uid for uid, _, _ in found] == ["p0", "p1"]
    assert sorted(victim for _, _, victims in found for victim in victims) == ["low0", "low1"]


@pytest.mark.uncompiled
@pytest.mark.parametrize("left", [1, 2])
def test_victims_of_a_group_on_several_hosts_count_together_in_their_budget(left: int) -> None:
    """A trial that spent one of a budget twice would start half of a group."""
    yard = Yard(preempt_when="better")
    yard.engine.budget("pdb", left)
    for i in range(2):
        yard.controller(f"low{i}", cls=2)
        yard.runs(f"low{i}", f"low{i}", f"node-{i}", cores=4)
        yard.engine.protect(f"low{i}", "pdb")
    yard.controller("c", cls=0)
    yard.engine.pod_group("g", 2)
    for i in range(2):
        yard.waits(f"p{i}", "c", cores=3, cls=0, group="g", at=1000.0)
    assert len(yard.decide(1000.0)) == (2 if left == 2 else 0)
    assert yard.engine.tables.tb["budgets"]["amount"].tolist() == [0 if left == 2 else 1]
    yard.engine.budget("pdb", 2)
    assert len(yard.decide(1001.0)) == (0 if left == 2 else 2), "what a trial spent is there again"


@pytest.mark.uncompiled
def test_a_group_that_lost_members_starts_them_again_together() -> None:
    """Half of it was bound before a leader was killed, say: the other half completes it, or waits as a whole."""
    yard = Yard(hosts=1)
    yard.controller("c")
    yard.engine.pod_group("g", 3)
    yard.runs("p0", "c", "node-0", cores=2, cls=1)
    yard.engine.join_group("p0", "g")
    for i in (1, 2):
        yard.waits(f"p{i}", "c", cores=2, group="g")
    assert yard.counted("g") == 1
    assert yard.decide(1.0) == [], "there is room for one of two"
    yard.host("node-1", 2)
    assert sorted(uid for uid, _, _ in yard.decide(2.0)) == ["p1", "p2"]
    yard.engine.gone("p1", T0 + 3.0)
    assert yard.counted("g") == 2
    yard.engine.pod_group_gone("g")
    yard.waits("p3", "c", cores=2, at=4.0)
    assert [uid for uid, _, _ in yard.decide(4.0)] == ["p3"], "of no group that is known"


def disturb(yard: Yard, draw: random.Random, at: float) -> None:
    """A pod joins or leaves a group, comes to its end, is refused, or stays after all."""
    engine = yard.engine
    if not engine.pods:
        return
    one = engine.pods[draw.choice(sorted(engine.pods))]
    if draw.random() < 0.5:
        engine.join_group(one.uid, draw.choice(["g", "h", ""]))
    elif one.state == types.LEAVING and draw.random() < 0.5:
        engine.spared(one.uid, T0 + at)
    elif one.state == types.PLACED and not one.bound:
        engine.refused(one.uid, T0 + at)
        engine.wake(one.uid)
    else:
        engine.gone(one.uid, T0 + at)


def check_pass(yard: Yard, at: float, draw: random.Random) -> int:
    """A pass leaves each group whose pods it placed with its least number, but for victims; how many it started."""
    engine, started = yard.engine, 0
    before = {group: yard.counted(group) for group in engine.groups.numbers}
    decisions = engine.run(T0 + at).decisions
    victims = [engine.pods[one.uid].group for decision in decisions for one in decision.victims]
    for group in {engine.pods[one.uid].group for one in decisions} & before.keys():
        assert yard.counted(group) + victims.count(group) >= engine.groups.least(group)
        started += before[group] < engine.groups.least(group)
    for decision in decisions:
        if draw.random() < 0.7:
            engine.bound(decision.uid, T0 + at)
    return started


def replayed(yard: Yard) -> None:
    """What was decided is decided again from the record."""
    again, outcome = Engine(yard.engine.config), None
    for line in yard.lines:
        operation = codec.decode(line)
        if isinstance(operation, Decided):
            assert operation.outcome == outcome
        outcome = carry_out(again, operation)


def test_counts_of_groups_follow_whatever_is_told() -> None:
    """Victims that go or stay, decisions that are refused, groups that are joined, left, removed and come again."""
    started = 0
    for seed in range(40):
        draw = random.Random(seed)
        yard = Yard(3, preempt_when="better", patience=1.0)
        engine, at = yard.engine, 0.0
        for name, approach in (("a", "independent"), ("b", "aggregated"), ("c", "concurrent")):
            yard.controller(name, approach=approach)
        for number in range(60):
            at += draw.choice([0.5, 20.0])
            what, name, group = draw.randrange(8), draw.choice("gh"), draw.choice(["g", "h", ""])
            if what < 3:
                yard.waits(f"p{number}", draw.choice("abc"), draw.randint(1, 2), draw.randrange(3), group, at)
            elif what == 3:
                engine.pod_group(name, draw.randint(2, 4))
            elif what == 4 and name in engine.groups.numbers and draw.random() < 0.3:
                engine.pod_group_gone(name)
            elif what in (5, 6):
                disturb(yard, draw, at)
            else:
                started += check_pass(yard, at, draw)
            for known in engine.groups.numbers:
                members = engine.groups.members.get(known, {}).values()
                placed = sum(one.state == types.PLACED for one in members)
                assert yard.counted(known) == engine.groups.placed(known) == placed, f"seed {seed}, step {number}"
        replayed(yard)
    assert started >= 20


def crowd(seed: int, grouped: bool, others: bool) -> tuple[Yard, list[str]]:
    """Pods that run and pods of a group that wait, of one approach; others that wait, or none; the group's, by UID."""
    draw = random.Random(seed)
    yard = Yard(draw.randint(2, 4), preempt_when="better", patience=1.0, overload="share")
    approach = draw.choice(["independent", "independent", "aggregated"])
    for i in range(draw.randint(0, 8)):
        yard.controller(f"low{i}", cls=2)
        host = f"node-{draw.randrange(len(yard.engine.hosts))}"
        cores = draw.randint(1, 2)
        if yard.engine.room(host)["cpu"] >= cores * CORE:
            yard.runs(f"low{i}", f"low{i}", host, cores, at=-draw.choice([0.0, 1000.0]))
    members = [f"p{i}" for i in range(draw.randint(2, 5))]
    least = draw.randint(2, len(members))
    yard.controller("c", cls=draw.randrange(3), approach=approach)
    if grouped:
        yard.engine.pod_group("g", least)
    cls = draw.randrange(3)
    for uid in members:
        yard.waits(uid, "c", draw.randint(1, 4), cls, "g" if grouped else "", at=draw.choice([0.0, 100.0]))
    if others:
        yard.controller("others", cls=1)
        for i in range(4):
            yard.waits(f"o{i}", "others", draw.randint(1, 3), at=50.0)
    return yard, [*members, str(least)]


def test_a_group_decides_as_its_pods_would_alone_or_nothing() -> None:
    """The twin: an engine that knows no groups. Where it finds enough places, the group has the same; else none."""
    starts, waits, preempting = 0, 0, 0
    for seed in range(100):
        alone, (*_, least) = crowd(seed, grouped=False, others=False)
        grouped, _ = crowd(seed, grouped=True, others=False)
        expected = alone.decide(200.0)
        found = grouped.decide(200.0)
        if len(expected) >= int(least):
            assert found == expected, f"seed {seed}"
            starts += 1
            preempting += any(victims for _, _, victims in found)
        else:
            assert found == [], f"seed {seed}"
            waits += bool(expected)
    assert min(starts, waits, preempting) >= 8, (starts, waits, preempting)


def test_a_group_that_cannot_start_changes_nothing_for_others() -> None:
    """Of two engines one has a group that waits in vain: all others are decided alike, also in later passes."""
    in_vain = 0
    for seed in range(100):
        with_group, (*members, _) = crowd(seed, grouped=True, others=True)
        without, _ = crowd(seed, grouped=True, others=True)
        for uid in members:
            without.engine.sleep(uid)
        for at in (200.0, 201.0, 260.0):
            found, expected = with_group.decide(at), without.decide(at)
            if any(uid in members for uid, _, _ in found):
                break
            assert found == expected, f"seed {seed}, at {at}"
            in_vain += 1
    assert in_vain >= 30, in_vain


def shown(yard: Yard, uids: Sequence[str]) -> list[str]:
    return [types.STATES[yard.engine.pods[uid].state] for uid in uids]


def test_a_group_has_its_turn_once_in_a_pass_whoever_else_waits() -> None:
    """Its members are of requests that stand in the heap and of pods with ledgers of their own."""
    yard = Yard(hosts=3)
    for i in range(3):
        yard.controller(f"a{i}", approach="aggregated")
        yard.controller(f"i{i}")
    yard.engine.pod_group("g", 4)
    for i in range(3):
        yard.waits(f"shared{i}", f"a{i}", 1, group="g" if i < 2 else "", at=float(i))
        yard.waits(f"own{i}", f"i{i}", 1, group="g" if i < 2 else "", at=float(i))
        yard.waits(f"more{i}", f"a{i}", 1, at=float(i))
    decided = [uid for uid, _, _ in yard.decide(10.0)]
    assert sorted(decided) == sorted(yard.engine.pods)
    assert len(set(decided)) == len(decided)
    first = min(decided.index(uid) for uid in ("shared0", "shared1", "own0", "own1"))
    assert set(decided[first : first + 4]) == {"shared0", "shared1", "own0", "own1"}, "one directly after the other"
    assert set(shown(yard, decided)) == {"placed"}
