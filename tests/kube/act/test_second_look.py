"""A pod whose place is kept until its victims are gone is looked at again: a node may be free for it by now."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from engine.workbench import BRONZE, GOLD, T0, settings
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import another_host
from slacktide.engine.core.types import Decision
from slacktide.kube.act.reservations import Nomination, Reservations
from slacktide.kube.act.second_look import take_free_nodes
from slacktide.model import Placement, Preference, Rule, ServiceClass, Topology
from slacktide.model.placement import HOST
from slacktide.state.spec import Spec

CORE = 1000
LATER = T0 + 600.0
FOREVER = T0 + 1e6

LOW = replace(BRONZE, name="low", rank=4)


class Scene:
    """Nodes of four cores; bronze pods of three run, a gold one of three comes, and waits for a victim to go."""

    def __init__(self, nodes: int = 1, placement: Placement | None = None) -> None:
        config = settings()
        self.engine = Engine(replace(config, policy=replace(config.policy, patience=1e6)))
        self.reservations = Reservations()
        self.number = 0
        self.placement = placement or Placement()
        for i in range(nodes):
            self.node(f"node-{i}")
            self.runs(f"low-{i}", f"node-{i}")

    def node(self, name: str, cores: int = 4) -> None:
        self.engine.host(name, {"cpu": cores * CORE, "pods": 10}, {"zone": name}, True)

    def _new(self, uid: str, cores: int, service: ServiceClass) -> int:
        self.number += 1
        self.engine.spec(self.number, Spec((("cpu", cores * CORE), ("pods", 1)), service, placement=self.placement))
        self.engine.controller(uid, service, 0, False)
        return self.number

    def runs(self, uid: str, node: str, cores: int = 3) -> None:
        self.engine.found(uid, uid, uid, self._new(uid, cores, LOW), node, T0)
        self.engine.ready(uid, T0)

    def comes(self, uid: str, cores: int = 3, service: ServiceClass = GOLD) -> None:
        self.engine.arrive(uid, uid, uid, self._new(uid, cores, service), LATER)
        self.engine.wake(uid)

    def decide(self, now: float = LATER) -> list[Decision]:
        """A pass; what the actor keeps of it. Those that need not wait are bound."""
        found = list(self.engine.run(now).decisions)
        for decision in found:
            for victim in decision.victims:
                self.reservations.goes(victim.uid, decision.host)
            outstanding = {victim.uid for victim in decision.victims}
            outstanding |= self.reservations.in_the_way(self.engine, decision)
            if outstanding:
                self.reservations.add(Nomination(decision, outstanding), FOREVER)
            else:
                self.engine.bound(decision.uid, now)
        return found

    def look(
        self,
        *,
        everybody: bool = True,
        now: float = LATER + 5.0,
        how: Callable[..., Iterator[Decision]] = take_free_nodes,
    ) -> list[tuple[str, str]]:
        return [(one.uid, one.host) for one in how(self.engine, self.reservations, now, everybody=everybody)]


def plain(engine: Engine, reservations: Reservations, now: float, *, everybody: bool) -> Iterator[Decision]:
    """The slow twin: of each place that is kept, whether it is free by now, and whether another node is."""
    tb = engine.tables.tb

    def rank_of(kind: int) -> int:
        return int(tb["classes"]["rank"][tb["kinds"]["cls"][kind]])

    waiting = [int(kind) for queue in ("queue", "incoming") for kind in tb[queue]["kind"][: int(tb.control[queue])]]
    limit = min((rank_of(kind) for kind in waiting), default=10**9) if not everybody else 10**9
    kind_of = {uid: int(tb["instances"]["kind"][engine.pods[uid].row]) for uid in reservations.nominations}
    hopeless = set[int]()
    for rank, uid in sorted((rank_of(kind), uid) for uid, kind in kind_of.items()):
        one, nomination = engine.pods[uid], reservations.nominations[uid]
        metric, here = nomination.decision.metric, one.host
        if rank > limit:
            continue

        def is_closed(name: str, uid: str = uid, metric: float = metric) -> bool:
            return bool(reservations.in_the_way(engine, Decision(uid, name, metric)))

        host = here if reservations.are_going(nomination) and not is_closed(here) else ""
        if not host and one.spec not in hopeless:
            host = another_host(engine, uid, is_closed)
            if not host:
                hopeless.add(one.spec)
        if not host:
            continue
        reservations.drop(uid)
        if host != here:
            engine.refused(uid, now)
            engine.nominated(uid, host, now)
        yield Decision(uid, host, metric)


def test_a_node_that_joins_takes_the_pod_at_once_and_its_reservation_is_given_back() -> None:
    scene = Scene()
    scene.comes("gold")
    (decision,) = scene.decide()
    assert [one.uid for one in decision.victims] == ["low-0"]
    assert scene.look() == []
    scene.node("new")
    assert scene.look() == [("gold", "new")]
    assert scene.reservations.nominations == {}
    # Nobody waits for the victim to go any more, and it may never go: it is given up at the same time.
    assert scene.reservations.overdue(FOREVER) == []
    assert scene.reservations.overdue(FOREVER + 1.0) == ["low-0"]
    assert scene.reservations.ended("low-0", scene.engine) == []
    assert scene.reservations.overdue(FOREVER + 1.0) == []
    one = scene.engine.pods["gold"]
    assert (one.host, types.STATES[one.state], one.bound) == ("new", "placed", False)
    assert scene.engine.room("new")["cpu"] == CORE
    assert scene.engine.room("node-0")["cpu"] == 4 * CORE  # the victim goes all the same
    assert scene.look() == []
    scene.engine.spared("low-0", LATER + 6.0)  # where it had not been told to go yet
    assert scene.engine.room("node-0")["cpu"] == CORE


def test_a_pod_whose_node_is_deleted_goes_to_another_one() -> None:
    scene = Scene()
    scene.comes("gold")
    assert len(scene.decide()) == 1
    scene.engine.host_gone("node-0")
    scene.node("new")
    assert scene.look() == [("gold", "new")]
    assert "node-0" not in scene.engine.hosts


def test_room_on_its_own_node_serves_it_though_nobody_has_gone() -> None:
    scene = Scene()
    scene.runs("beside", "node-0", 1)
    scene.comes("gold", 1)
    assert [len(one.victims) for one in scene.decide()] == [1]
    (gone,) = {"low-0", "beside"} - {uid for uid, one in scene.engine.pods.items() if one.state == types.LEAVING}
    assert scene.look() == []
    scene.engine.desired(gone, 0, LATER)
    scene.engine.gone(gone, LATER + 1.0)
    assert scene.look() == [("gold", "node-0")]
    assert scene.engine.pods["gold"].host == "node-0"


def test_a_place_of_a_former_leader_waits_for_its_victims_or_for_another_node() -> None:
    """To a new leader's engine they take their room until they are gone, and it does not know why they go."""
    scene = Scene()
    scene.comes("gold")
    scene.engine.nominated("gold", "node-0", LATER)
    scene.engine.doomed("low-0")
    scene.reservations.add(Nomination(Decision("gold", "node-0", 0.0), {"low-0"}), FOREVER)
    assert scene.look() == []
    scene.node("new")
    assert scene.look() == [("gold", "new")]


def test_room_that_another_victim_still_takes_is_no_room() -> None:
    scene = Scene(2)
    scene.comes("gold")
    scene.comes("second")
    assert len(scene.decide()) == 2
    # The second one's controller gives up: to the engine its node is free, but its victim is there.
    second = scene.engine.pods["second"]
    scene.reservations.drop("second")
    scene.engine.desired("second", 0, LATER)
    scene.engine.gone("second", LATER + 1.0)
    assert scene.look() == []
    scene.reservations.ended("low-0" if second.host == "node-0" else "low-1", scene.engine)
    assert scene.look() == [("gold", second.host)]


def test_the_most_important_of_those_that_wait_for_victims_is_served_first() -> None:
    scene = Scene(2)
    scene.comes("alpha", service=replace(GOLD, name="silver", rank=2))
    scene.comes("beta")
    assert len(scene.decide()) == 2
    scene.node("new")
    assert scene.look() == [("beta", "new")]


@pytest.mark.parametrize(("rank", "first"), [(1, True), (2, True), (3, False)])
def test_who_waits_without_a_place_goes_first_where_it_is_more_important(rank: int, first: bool) -> None:
    """The pod that waits is of rank 2; both need the only node that is free."""
    scene = Scene()
    scene.comes("kept", service=replace(GOLD, name="kept", rank=rank))
    assert len(scene.decide()) == 1
    scene.comes("waits", service=replace(GOLD, name="waits", rank=2))
    scene.node("new")
    assert scene.look(everybody=False) == ([("kept", "new")] if first else [])
    if not first:
        assert [(one.uid, one.host) for one in scene.decide(LATER + 6.0)] == [("waits", "new")]
        assert scene.look() == []


def test_rules_hold_as_if_the_pod_were_not_on_the_node_that_is_kept_for_it() -> None:
    apart = Placement(("web",), (Rule("away", "web", Topology(HOST)),))
    scene = Scene(placement=apart)
    scene.comes("gold")
    assert len(scene.decide()) == 1
    scene.node("new")
    scene.node("taken")
    scene.runs("other", "taken", 1)
    assert scene.look() == [("gold", "new")]


def test_preferences_and_the_score_choose_among_nodes_that_are_free() -> None:
    beside = Placement(("web",), (), (Preference(1, "web", Topology(HOST)),))
    scene = Scene(placement=beside)
    scene.comes("gold")
    assert len(scene.decide()) == 1
    scene.node("empty")
    scene.node("friendly")
    scene.runs("friend", "friendly", 1)
    assert scene.look() == [("gold", "friendly")]


class Play:
    """Random pods of a few sizes and classes on nodes that fill up; nodes join, pods and victims go."""

    def __init__(self, seed: int, how: Callable[..., Iterator[Decision]]) -> None:
        self.chance, self.how, self.scene = random.Random(seed), how, Scene(0)
        self.now, self.count, self.found = LATER, 0, list[tuple[str, str]]()
        self.moved = self.stayed = 0
        self.silver = replace(GOLD, name="silver", rank=2)
        for i in range(4):
            self.scene.node(f"node-{i}")
            for k in range(self.chance.randint(1, 4)):
                self.scene.runs(f"low-{i}-{k}", f"node-{i}", 1)

    def step(self) -> None:
        chance, engine, kept = self.chance, self.scene.engine, self.scene.reservations
        self.now += chance.uniform(0.1, 5.0)
        draw = chance.random()
        running = sorted(uid for uid, one in engine.pods.items() if one.bound and one.state == types.PLACED)
        leaving = sorted(uid for uid, one in engine.pods.items() if one.state == types.LEAVING)
        self.count += 1
        if draw < 0.4:
            service = chance.choice((GOLD, self.silver))
            self.scene.comes(f"pod-{self.count}", chance.randint(1, 3), service)
        elif draw < 0.5:
            self.scene.node(f"new-{self.count}", chance.randint(1, 4))
        elif draw < 0.7 and running:
            self._go(chance.choice(running))
        elif draw < 0.85 and leaving:
            self._go(chance.choice(leaving))
        for everybody in (False, True):
            before = {uid: engine.pods[uid].host for uid in kept.nominations}
            moved = self.scene.look(everybody=everybody, now=self.now, how=self.how)
            for uid, _ in moved:
                engine.bound(uid, self.now)
            self.found += moved
            self.moved += sum(before[uid] != host for uid, host in moved)
            self.stayed += sum(before[uid] == host for uid, host in moved)
            if not everybody:
                self.found += [(one.uid, one.host) for one in self.scene.decide(self.now)]
        self.found.append(("kept", ",".join(sorted(kept.nominations))))

    def _go(self, uid: str) -> None:
        self.scene.engine.desired(self.scene.engine.pods[uid].key, 0, self.now)
        self.scene.engine.gone(uid, self.now)
        for decision in self.scene.reservations.ended(uid, self.scene.engine):
            self.scene.engine.bound(decision.uid, self.now)


def test_it_finds_what_looking_at_each_place_finds() -> None:
    moved = stayed = 0
    for seed in range(60):
        fast, slow = Play(seed, take_free_nodes), Play(seed, plain)
        for _ in range(40):
            fast.step()
            slow.step()
            assert fast.found == slow.found, seed
        moved += fast.moved
        stayed += fast.stayed
    assert moved > 50
    assert stayed > 20
