"""A place is kept until its victims are gone, and taken only where there is room for it then."""

from __future__ import annotations

from kube.act.backstage import Backstage, played
from kube.act.test_second_look import CORE, LATER, Scene
from slacktide.engine.core import types


def crossing() -> tuple[Scene, str, str]:
    """A node of five cores, two victims of two. A large pod (three cores) waits for the first of them; a small one (one
    core) was to wait for the other, and goes at once where there is a core as yet."""
    scene = Scene(nodes=0)
    scene.node("node", 5)
    for name in ("low-0", "low-1"):
        scene.runs(name, "node", 2)
    scene.comes("large", 3)
    ((first,),) = [one.victims for one in scene.decide()]
    scene.comes("small", 1)
    ((other,),) = [one.victims for one in scene.decide(LATER + 1.0)]
    assert scene.look() == [("small", "node")]
    scene.engine.bound("small", LATER + 2.0)
    assert list(scene.reservations.nominations) == ["large"]
    return scene, first.uid, other.uid


def test_who_counted_on_room_that_another_one_took_at_once_waits_for_those_who_go_besides() -> None:
    scene, first, other = crossing()
    for uid in (first, other):
        scene.engine.desired(uid, 0, LATER + 2.0)
    scene.engine.gone(first, LATER + 3.0)
    assert scene.reservations.ended(first, scene.engine) == []  # five cores: two of the other, and a small one's
    scene.engine.gone(other, LATER + 4.0)
    assert [one.uid for one in scene.reservations.ended(other, scene.engine)] == ["large"]


def test_where_a_victim_stays_those_who_counted_on_what_it_would_have_left_give_way() -> None:
    scene, _, other = crossing()
    assert list(scene.reservations.beyond(scene.engine, other)) == []  # it still goes
    scene.reservations.stays(other)
    scene.engine.spared(other, LATER + 3.0)
    assert scene.engine.room("node")["cpu"] == -CORE
    given_up = []
    for uid in scene.reservations.beyond(scene.engine, other):
        given_up.append(uid)
        scene.reservations.drop(uid)
        scene.engine.refused(uid, LATER + 3.0)
    assert given_up == ["large"]
    assert scene.engine.room("node")["cpu"] == 2 * CORE
    assert scene.engine.pods["large"].state != types.PLACED


def test_room_of_victims_of_later_decisions_of_a_pass_is_not_free_yet() -> None:
    """The first pod's victim leaves room for the second, which has none. The third one's victim is there as well."""

    async def play(house: Backstage) -> None:
        house.node("a", 6)
        for name in ("low-a", "low-b"):
            house.pod(name, "", "a", cores=3, cls="low")
        for name, cores in (("high-1", 2), ("high-2", 1), ("high-3", 1)):
            house.pod(name, cores=cores)
        async with house.leading():
            await house.decide()
            assert sorted(house.server.evicted) == ["low-a", "low-b"]
            assert house.server.bindings == {}
            house.gone("low-a", "low-b")
            await house.decide()
            assert house.server.bindings.keys() == {"high-1", "high-2", "high-3"}

    played(play)
