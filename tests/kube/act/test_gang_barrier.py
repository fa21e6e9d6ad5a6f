"""Pods of a group that have their places wait for each other, so that none is bound alone."""

from __future__ import annotations

from engine.workbench import SILVER, T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.kube.act.reservations import GangBarrier
from slacktide.state.spec import Spec


class Scene:
    """Three pods of the group g, decided on in one pass; another pod is of none."""

    def __init__(self, least: int = 3) -> None:
        self.engine = Engine(settings())
        self.engine.host("node", {"cpu": 9, "pods": 9}, {}, True)
        self.engine.spec(0, Spec((("cpu", 1), ("pods", 1)), SILVER))
        self.engine.controller("c", SILVER, 0, False)
        self.engine.pod_group("g", least)
        for i in range(3):
            self.comes(f"p{i}", "g")
        self.comes("single")
        self.gangs = GangBarrier(self.engine)
        self.decisions = {one.uid: one for one in self.engine.run(T0 + 1.0).decisions}
        for uid in self.decisions:
            self.gangs.begins(uid)

    def comes(self, uid: str, group: str = "") -> None:
        self.engine.arrive(uid, uid, "c", 0, T0)
        self.engine.join_group(uid, group)
        self.engine.wake(uid)

    def is_free(self, uid: str) -> list[str]:
        """Nobody is in a pod's way any more; who is bound by that."""
        if not self.gangs.ready(self.decisions[uid]):
            return [uid]
        due = [one.uid for one in self.gangs.due("g")]
        for one in due:
            self.gangs.leaves(one)
        return due


def test_all_of_a_group_are_bound_when_the_last_place_is_free() -> None:
    scene = Scene()
    assert scene.is_free("p0") == []
    assert scene.is_free("single") == ["single"]
    assert scene.is_free("p2") == []
    assert list(scene.gangs.unshown) == ["p0", "p2"], "others are to be told where they wait"
    assert scene.is_free("p1") == ["p0", "p1", "p2"]
    assert (scene.gangs.groups(), scene.gangs.unshown) == ([], {})


def test_as_many_as_must_start_together_and_the_others_when_they_can() -> None:
    scene = Scene(least=2)
    assert scene.is_free("p0") == []
    assert scene.is_free("p1") == ["p0", "p1"]
    assert scene.is_free("p2") == ["p2"]


def test_a_place_that_is_lost_is_a_group_that_cannot_start() -> None:
    scene = Scene()
    scene.is_free("p0")
    assert scene.gangs.broken("g") == []
    scene.engine.refused("p1", T0 + 2.0)
    assert scene.gangs.leaves("p1") == ("g", None), "it waited for victims, not for others"
    assert scene.gangs.broken("g") == ["p0", "p2"]
    assert scene.gangs.leaves("p0") == ("g", scene.decisions["p0"])
    assert scene.gangs.leaves("single") == ("", None)


def test_a_place_that_is_lost_is_no_matter_where_enough_are_left() -> None:
    scene = Scene(least=2)
    scene.is_free("p0")
    scene.engine.refused("p1", T0 + 2.0)
    scene.gangs.leaves("p1")
    assert scene.gangs.broken("g") == []
    assert scene.is_free("p2") == ["p0", "p2"]


def test_a_group_that_is_not_known_any_more_is_not_bound() -> None:
    scene = Scene()
    scene.is_free("p0")
    scene.engine.pod_group_gone("g")
    assert scene.gangs.broken("g") == ["p0", "p1", "p2"]
    assert scene.gangs.due("g") == []


def test_those_that_run_count() -> None:
    """What is left of a group that was bound by half, adopted by a new leader."""
    scene = Scene()
    scene.engine.bound("p0", T0 + 2.0)
    scene.gangs.leaves("p0")
    assert scene.is_free("p1") == []
    assert scene.is_free("p2") == ["p1", "p2"]
    decision = Decision("unheard-of", "node", 0.0)
    assert not scene.gangs.ready(decision)
