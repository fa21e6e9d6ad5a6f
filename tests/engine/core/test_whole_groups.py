"""All pods of a group that says so are preempted together, on whichever hosts, or none of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from engine.core.test_pod_groups import Yard, replayed
from engine.workbench import T0
from slacktide.engine.core import types
from slacktide.engine.explain.reasons import Explainer
from slacktide.model.placement import Placement, Rule

CONSTRAINED = 40
CLASS_OF = {"": 0, "g": 2, "h": 1, "i": 2}
"""By group: those of one class go as a whole."""
T_1000 = T0 + 1000.0


def pair(**policy: Any) -> Yard:
    """Two hosts full of the two pods of a group that goes as a whole."""
    yard = Yard(preempt_when="better", **policy)
    yard.controller("low", cls=2)
    yard.engine.pod_group("g", 2, True)
    for i in range(2):
        yard.runs(f"low{i}", "low", f"node-{i}", cores=4)
        yard.engine.join_group(f"low{i}", "g")
    yard.controller("high", cls=0)
    return yard


@pytest.mark.uncompiled
def test_all_of_a_group_go_from_all_hosts() -> None:
    yard = pair()
    yard.waits("p", "high", cores=3, cls=0, at=1000.0)
    ((_, host, victims),) = yard.decide(1000.0)
    assert sorted(victims) == ["low0", "low1"]
    assert yard.engine.pods[victims[0]].host == host, "those on its own host first"
    assert yard.counted("g") == 0
    yard.waits("q", "high", cores=3, cls=0, at=1001.0)
    ((_, other, victims),) = yard.decide(1001.0)
    assert (other != host, victims) == (True, ()), "the room of the others is free, too"
    replayed(yard)


@pytest.mark.uncompiled
@pytest.mark.parametrize("by", ["qos-driven", "priority"])
def test_where_one_may_not_go_none_does(by: str) -> None:
    yard = pair(name=by)
    yard.engine.budget("b", 1)
    for i in range(2):
        yard.engine.protect(f"low{i}", "b")
    yard.waits("p", "high", cores=3, cls=0, at=1000.0)
    assert yard.decide(1000.0) == [], "their budget lets one of them go"
    reason = Explainer(yard.engine).reason("p", T_1000)
    assert "2 node(s) with pods of a pod group that is preempted as a whole" in reason
    yard.engine.pod_group("g", 2, False)
    ((_, _, victims),) = yard.decide(1001.0)
    assert len(victims) == 1
    yard.engine.spared(victims[0], T_1000 + 1.0)
    yard.engine.refused("p", T_1000 + 1.0)
    yard.engine.wake("p")
    yard.engine.pod_group("g", 2, True)
    assert yard.decide(1002.0) == []
    yard.engine.budget("b", 2)
    ((_, _, victims),) = yard.decide(1003.0)
    assert len(victims) == 2
    replayed(yard)


@pytest.mark.uncompiled
def test_what_all_of_them_lose_is_compared() -> None:
    """A single pod goes where a group would lose more; without the group as a whole it is a matter of the score."""
    yard = pair(name="priority")
    yard.host("node-2", 5)
    yard.controller("single", cls=2)
    yard.runs("single", "single", "node-2", cores=4)
    yard.waits("p", "high", cores=3, cls=0, at=1000.0)
    assert yard.decide(1000.0) == [("p", "node-2", ("single",))]


@pytest.mark.uncompiled
def test_a_group_does_not_go_for_one_of_its_own() -> None:
    yard = pair()
    yard.waits("p", "high", cores=3, cls=0, group="g", at=1000.0)
    assert yard.decide(1000.0) == []
    yard.waits("q", "high", cores=3, cls=0, at=1000.0)
    ((uid, _, victims),) = yard.decide(1001.0)[:1]
    assert (uid, len(victims)) == ("q", 2), "it goes for others of the same kind"


@pytest.mark.uncompiled
def test_a_more_important_one_keeps_nobody() -> None:
    """Who may write PodGroups could keep many pods from ever being preempted by one of a better class."""
    yard = pair()
    yard.host("node-2")
    yard.controller("gold", cls=0)
    yard.runs("gold", "gold", "node-2", cores=4, cls=0)
    yard.engine.join_group("gold", "g")
    assert yard.engine.groups.is_mixed("g")
    yard.waits("p", "high", cores=3, cls=0, at=1000.0)
    ((_, _, victims),) = yard.decide(1000.0)
    assert victims in (("low0",), ("low1",))
    yard.engine.gone("gold", T_1000)
    assert not yard.engine.groups.is_mixed("g")
    replayed(yard)


@pytest.mark.uncompiled
def test_one_that_somebody_else_ends_keeps_nobody() -> None:
    """It may take its time: a pod with a finalizer that nobody removes would protect all of its group."""
    yard = pair()
    yard.engine.doomed("low0")
    yard.waits("p", "high", cores=3, cls=0, at=1000.0)
    assert yard.decide(1000.0) == [("p", "node-1", ("low1",))]
    yard.engine.gone("low0", T_1000)
    yard.engine.arrive("low2", "low2", "low", 24, T_1000)
    yard.engine.join_group("low2", "g")
    yard.engine.wake("low2")
    assert [uid for uid, _, _ in yard.decide(1001.0)] == [], "two would start together"
    yard.engine.pod_group("g", 0, True)
    assert [uid for uid, _, _ in yard.decide(1002.0)] == ["low2"]


def test_a_pod_with_rules_makes_no_group_go() -> None:
    """The rest of the group may leave a domain on whose pods its rules depend."""
    yard = pair()
    spread = Placement(marks=("m",), rules=(Rule("spread", "m"),))
    yard.engine.spec(CONSTRAINED, replace(yard.engine.specs[3], placement=spread))
    yard.engine.arrive("p", "p", "high", CONSTRAINED, T_1000)
    yard.engine.wake("p")
    assert yard.decide(1000.0) == []
    assert "of a pod group that is preempted as a whole" in Explainer(yard.engine).reason("p", T_1000)
    yard.engine.pod_group_gone("g")
    assert len(yard.decide(1001.0)) == 1


@pytest.mark.uncompiled
def test_a_group_that_starts_has_another_go_only_if_all_of_it_can() -> None:
    yard = pair()
    yard.engine.pod_group("h", 3)
    for i in range(3):
        yard.waits(f"p{i}", "high", cores=3, cls=0, group="h", at=1000.0)
    assert yard.decide(1000.0) == []
    assert yard.counted("g") == 2
    yard.host("node-2")
    found = yard.decide(1001.0)
    assert len(found) == 3
    assert sorted(uid for _, _, victims in found for uid in victims) == ["low0", "low1"]


def test_groups_go_whole_or_not_at_all_whatever_is_told() -> None:
    """Members come, end, are spared, refused and doomed; groups are whole or not, and come again."""
    whole, several = 0, 0
    for seed in range(60):
        draw = random.Random(seed)
        yard = Yard(4, preempt_when="better", patience=1.0, name=draw.choice(["qos-driven", "priority"]))
        engine, at = yard.engine, 0.0
        for name, approach in (("a", "independent"), ("b", "aggregated"), ("c", "concurrent")):
            yard.controller(name, approach=approach)
        for number in range(70):
            at += draw.choice([0.5, 20.0])
            what, group = draw.randrange(9), draw.choice("ghi")
            if what < 4:
                of = draw.choice(sorted(CLASS_OF))
                yard.waits(f"p{number}", draw.choice("abc"), draw.randint(1, 3), CLASS_OF[of], of, at)
            elif what == 4:
                engine.pod_group(group, draw.choice([0, 2]), draw.random() < 0.8)
            elif what == 5:
                _disturb(yard, draw, at)
            else:
                found = _pass(yard, at, draw)
                whole, several = whole + found[0], several + found[1]
        replayed(yard)
    assert whole >= 20
    assert several >= 10


def _disturb(yard: Yard, draw: random.Random, at: float) -> None:
    engine = yard.engine
    if not engine.pods:
        return
    one = engine.pods[draw.choice(sorted(engine.pods))]
    if draw.random() < 0.3:
        rank = engine.specs[one.spec].service.rank
        engine.join_group(
            one.uid, draw.choice(["", *(name for name, cls in CLASS_OF.items() if name and cls == rank - 1)])
        )
    elif one.state == types.LEAVING and draw.random() < 0.5:
        engine.spared(one.uid, T0 + at)
    elif one.state == types.PLACED and not one.bound:
        engine.refused(one.uid, T0 + at)
        engine.wake(one.uid)
    elif one.state == types.PLACED and draw.random() < 0.3:
        engine.doomed(one.uid)
    else:
        engine.gone(one.uid, T0 + at)


def _pass(yard: Yard, at: float, draw: random.Random) -> tuple[int, int]:
    """A pass, checked; how many groups went, and how many of them from several hosts."""
    engine, went, several = yard.engine, 0, 0
    there = {
        name: {uid: pod.host for uid, pod in engine.groups.members.get(name, {}).items() if _counts(pod)}
        for name in engine.groups.numbers
        if engine.groups.is_whole(name)
    }
    decisions = engine.run(T0 + at).decisions
    for decision in decisions:
        gone = {one.uid for one in decision.victims}
        for name, members in there.items():
            if gone & members.keys():
                assert members.keys() <= gone, f"{name}: some of it went"
                assert engine.pods[decision.uid].group != name
                went += len(members) > 1
                several += len(set(members.values())) > 1
                members.clear()
    for decision in decisions:
        if draw.random() < 0.8:
            engine.bound(decision.uid, T0 + at)
            engine.ready(decision.uid, T0 + at)
    return went, several


def _counts(pod: types.Pod) -> bool:
    return pod.state == types.PLACED and not pod.doomed
