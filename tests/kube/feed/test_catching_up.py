"""Terms of one pod that are about all others: it waits until all were looked at, and everybody else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kube.act.backstage import Backstage, played
from kube.feed.test_blame import World
from slacktide.engine.core.operations import Operation
from slacktide.kube.feed.crowds import BEHIND, FEW, CatchingUp
from slacktide.kube.resources.objects import NAMESPACE, POD
from support import made_objects

MANY = FEW + 20
both = pytest.mark.parametrize("in_turn", [False, True], ids=["at-once", "in-turn"])


def away(key: str = "kubernetes.io/hostname", absent: str = "x") -> dict[str, Any]:
    """Away from all pods without a label, which is everybody."""
    selector = {"matchExpressions": [{"key": absent, "operator": "DoesNotExist"}]}
    term = {"topologyKey": key, "namespaceSelector": {}, "labelSelector": selector}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


class Town(World):
    """A world of many pods on two nodes, each alone among its labels, and a free node."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("a", "b", "c"):
            self.big_node(name)
        for number in range(MANY):
            self.single(f"p{number}", "ab"[number % 2])
        self.told: list[Operation] = []
        self.engine.journal = self.told.append
        self.feed.catching_up.in_turn = True

    def big_node(self, name: str) -> None:
        labels = {"node-restriction.kubernetes.io/slacktide": "true", "kubernetes.io/hostname": name}
        amounts = {"cpu": "500", "memory": "8Gi", "pods": "500"}
        self.mirror.on_node_update(made_objects.node(name, labels=labels, allocatable=amounts))

    def single(self, name: str, node: str = "", scheduler: str = "slacktide", **spec: Any) -> None:
        labels = {"slacktide.io/class": "silver", "own": name}
        body = {
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
            "spec": {"schedulerName": scheduler, "nodeName": node, "containers": [made_objects.container(cpu="1")]}
            | spec,
            "status": {"phase": "Running" if node else "Pending"},
        }
        self.mirror.on_pod_update(made_objects.decoded(POD, body))

    def respecs(self) -> int:
        return sum(one.method in ("respec", "other") for one in self.told)

    def catch_up(self) -> int:
        turns = 0
        while not self.feed.catching_up.is_over:
            self.feed.catching_up.one()
            turns += 1
        return turns

    def places(self) -> dict[str, str]:
        return {one.uid: one.host for one in self.engine.run(self.clock()).decisions}


def test_who_is_about_all_pods_waits_for_them_and_others_do_not() -> None:
    town = Town()
    town.single("bad", **away())
    assert town.respecs() == 0, "nobody was looked at in the step that saw it"
    assert town.feed.pods["bad"].problem == BEHIND
    town.single("good")
    assert town.engine.waiting() == ["good"]
    assert town.places().keys() == {"good"}
    town.single("worse", **away(absent="y"))
    assert town.catch_up() <= 2 * MANY + 2
    assert town.feed.pods["bad"].problem == town.feed.pods["worse"].problem == ""
    assert set(town.engine.waiting()) == {"bad", "worse"}
    assert town.places().keys() <= {"bad", "worse"}


def test_what_comes_of_it_is_what_came_of_it_at_once() -> None:
    found = []
    for in_turn in (False, True):
        town = Town()
        town.feed.catching_up.in_turn = in_turn
        town.single("bad", **away())
        town.single("other", "a", scheduler="else", **away("kubernetes.io/hostname", "z"))
        town.catch_up()
        # Only the free node is free of all others; and who is away from all stays away from whoever comes.
        found.append((town.places(), {uid: town.engine.specs[one.spec] for uid, one in town.engine.pods.items()}))
    assert found[0] == found[1]
    assert found[0][0] == {"bad": "c"}


def test_what_others_put_behind_holds_nobody_else() -> None:
    """Also where that is a node's doing: running pods are behind, and who comes is about nobody who changed by it."""
    town = Town()
    town.single("bad", **away())
    town.single("away-from-few", **away(absent="slacktide.io/class"))
    assert "away-from-few" in town.engine.waiting()
    town.single("alike", **away())
    assert town.feed.pods["alike"].problem == town.feed.pods["bad"].problem == BEHIND, "whoever has the same terms"
    town.catch_up()
    assert set(town.engine.waiting()) == {"bad", "away-from-few", "alike"}


def test_few_are_looked_at_at_once() -> None:
    town = Town()
    own = {"matchExpressions": [{"key": "own", "operator": "In", "values": [f"p{one}" for one in range(FEW)]}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": own}
    few: dict[str, Any] = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    town.single("bad", **few)
    assert town.feed.catching_up.is_over
    assert town.engine.waiting() == ["bad"]


def test_who_goes_meanwhile_is_waited_for_no_more() -> None:
    town = Town()
    town.single("bad", **away())
    town.single("gone", **away(absent="y"))
    for number in range(MANY):
        town.drop(f"p{number}")
    town.drop("gone")
    town.feed.catching_up.one()
    assert town.feed.catching_up.is_over
    assert town.engine.waiting() == ["bad"]


def test_a_stream_of_them_starves_nobody() -> None:
    """Who came first waits for those who were behind then, not for all who are since."""
    looked: list[str] = []
    released: list[str] = []
    queue = CatchingUp(looked.append, released.extend, lambda: None)
    for number in range(10):
        queue.later([f"p{number}"])
    queue.put_behind(["a", "b"])
    assert queue.holds("first", ["a", "b"])
    assert not queue.holds("another", ["c"])
    for number in range(10):
        assert queue.holds(f"alike-{number}", ["a", "b"]), "as long as those are not looked at"
        queue.one()
        queue.later([f"p{number}"])
        queue.later([f"more-{number}"])
        queue.put_behind(["d"])
        assert queue.holds(f"later-{number}", ["d"])
    assert released == ["first", *(f"alike-{number}" for number in range(10))]
    assert not queue.holds("last", ["a", "b"])
    assert looked == [f"p{number}" for number in range(10)]
    assert not queue.is_over


@pytest.mark.parametrize("fails", [False, True])
def test_a_leader_looks_at_them_in_slices(fails: bool, monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    if fails:
        request.getfixturevalue("defects")

    async def play(house: Backstage) -> None:
        house.node("a", cores=400)
        house.node("b", cores=4)
        for number in range(MANY):
            house.pod(f"p{number}", "", "a", cores=1, labels={"own": str(number)})
        async with house.leading():
            engine = house.session.engine
            if fails:
                whole: Callable[..., None] = engine.respec
                monkeypatch.setattr(engine, "respec", lambda uid, spec: whole(uid, spec) if uid != "p7" else 1 // 0)
            house.pod("bad", **away())
            assert not engine.waiting()
            task = asyncio.create_task(house.session._catch_up())
            await asyncio.sleep(30.0)
            assert engine.waiting() == ["bad"]
            await house.decide()
            assert house.server.bindings == {"bad": "b"}
            assert not task.done()
            task.cancel()

    played(play)


ON_C: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": "c"}}


@both
def test_who_waits_is_not_placed_beside_one_that_runs_and_keeps_away_from_all(in_turn: bool) -> None:
    town = Town()
    town.feed.catching_up.in_turn = in_turn
    town.single("waits", **ON_C)
    town.single("foreign", "c", scheduler="else", **away())
    assert town.places() == {}


@both
@pytest.mark.parametrize("node", ["c", ""], ids=["runs", "waits"])
def test_terms_over_a_label_that_a_node_gets_hold_at_once(node: str, in_turn: bool) -> None:
    """Those of a pod on it, for who waits; and those of one that waits itself, about all who are on it."""
    town = Town()
    town.feed.catching_up.in_turn = False
    town.single("bad", node, **away(key="rack"))
    town.single("waits" if node else "runs", "" if node else "c", **ON_C)
    town.feed.catching_up.in_turn = in_turn
    labels = {"node-restriction.kubernetes.io/slacktide": "true", "kubernetes.io/hostname": "c", "rack": "r"}
    amounts = {"cpu": "500", "memory": "8Gi", "pods": "500"}
    town.mirror.on_node_update(made_objects.node("c", labels=labels, allocatable=amounts))
    assert "c" not in town.places().values()


@both
def test_terms_about_namespaces_hold_at_once_when_a_namespace_is_another(in_turn: bool) -> None:
    town = Town()
    town.feed.catching_up.in_turn = False
    near = away()
    [term] = near["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    term["namespaceSelector"] = {"matchLabels": {"team": "x"}}
    town.single("bad", "c", **near)
    town.single("waits", **ON_C)
    town.feed.catching_up.in_turn = in_turn
    body = {"metadata": {"name": "default", "labels": {"team": "x"}}}
    town.mirror.on_namespace_update(made_objects.decoded(NAMESPACE, body))
    assert town.places() == {}


def test_one_that_waits_and_gets_terms_about_all_waits_for_them() -> None:
    town = Town()
    town.single("bad", **ON_C)
    for number in range(5):
        town.single(f"q{number}", "c")
    assert town.engine.waiting() == ["bad"]
    town.single("bad", **away(), **ON_C)
    assert town.feed.pods["bad"].problem == BEHIND
    assert town.places() == {}
    town.catch_up()
    assert town.feed.pods["bad"].problem == ""
    assert town.engine.waiting() == ["bad"]
    assert town.places() == {}, "others are on that node"


def test_nobody_is_held_for_what_an_earlier_event_put_behind() -> None:
    town = Town()
    town.single("foreign", "c", scheduler="else", **away())
    assert not town.feed.catching_up.is_over
    town.single("next", **away("kubernetes.io/hostname", "own"))
    assert "next" in town.engine.waiting()
