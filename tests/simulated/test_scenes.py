"""Scenes on the simulated cluster, whose instants are exact."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from simulated.network import Weather
from simulated.pod_model import is_true
from simulated.resources import BY_NAME, Json
from simulated.store import Change
from simulated.world import NAMESPACE, World, deployment, played, template


def calm() -> Weather:
    weather = Weather()
    weather.clear()
    return weather


def bare(world: World, name: str, cpu: int, service: str = "gold") -> Json:
    made = template(service, name, cpu)
    made["metadata"]["name"] = name
    return world.make("pods", made, NAMESPACE)


def cordon(world: World, name: str, wanted: bool) -> None:
    found = world.store.copy("nodes", "", name)
    assert found is not None
    found["spec"] = {"unschedulable": True} if wanted else {}
    world.store.write(BY_NAME["nodes"], found)


def node_of(world: World, name: str) -> str:
    found = world.store.get("pods", NAMESPACE, name)
    return found["spec"].get("nodeName", "") if found else "gone"


def test_pods_of_a_deployment_are_bound_within_a_second_and_their_ledger_within_a_minute() -> None:
    async def play(world: World) -> None:
        for name in ("a", "b", "c"):
            world.make_node(name)
        world.start()
        await asyncio.sleep(5.0)
        world.make("deployments", deployment("web", "gold", 4, 500), NAMESPACE)
        await asyncio.sleep(1.0 + 2 * 0.5)  # for its controllers, which take half a second each at most
        assert world.invariants.bindings == 4
        await asyncio.sleep(60.0)
        ledger = world.store.get("availabilities", NAMESPACE, "deployment-web")
        assert ledger is not None
        assert (ledger["status"]["running"], ledger["status"]["class"]) == (4, "gold")

    world, _ = played(1, calm(), play)
    assert world.invariants.findings == []


def test_a_new_leader_whose_watch_is_behind_gives_no_room_away_twice() -> None:
    """The standby's watch of pods is silent while the leader binds a pod that fills the only node, and dies."""

    async def play(world: World) -> None:
        world.make_node("only", 1)
        cordon(world, "only", True)
        world.start()
        await asyncio.sleep(5.0)
        (standby,) = (one for one in world.replicas if not one.leading)
        leader = world.leader
        assert leader is not None
        assert standby.connection is not None
        bare(world, "first", 1000)
        bare(world, "second", 1000)
        await asyncio.sleep(1.0)  # both replicas know both
        (watch,) = (one for one in standby.connection.watches() if one.resource.plural == "pods")
        watch.silent_until = world.loop.time() + 300.0
        cordon(world, "only", False)
        await asyncio.sleep(5.0)
        assert sorted(node_of(world, name) for name in ("first", "second")) == ["", "only"]
        leader.kill()
        await asyncio.sleep(60.0)
        assert standby.leading
        assert sorted(node_of(world, name) for name in ("first", "second")) == ["", "only"]

    world, _ = played(2, calm(), play)
    assert world.invariants.findings == []
    assert world.invariants.bindings == 1


def test_a_new_leader_knows_a_node_that_came_back_smaller() -> None:
    """The standby's watch of nodes is silent while one goes and another comes under its name, and the leader dies."""

    async def play(world: World) -> None:
        world.make_node("only", 4)
        world.start()
        bare(world, "first", 1000)
        await asyncio.sleep(5.0)
        (standby,) = (one for one in world.replicas if not one.leading)
        leader = world.leader
        assert leader is not None
        assert standby.connection is not None
        (watch,) = (one for one in standby.connection.watches() if one.resource.plural == "nodes")
        watch.silent_until = world.loop.time() + 300.0
        world.store.remove(BY_NAME["nodes"], ("", "only"))
        world.make_node("only", 1)
        leader.kill()
        bare(world, "second", 1000)
        await asyncio.sleep(60.0)
        assert standby.leading
        assert [node_of(world, name) for name in ("first", "second")] == ["only", ""]

    world, _ = played(2, calm(), play)
    assert world.invariants.findings == []


def test_a_place_on_a_node_that_came_back_smaller_is_given_up() -> None:
    """While its victim goes the node is deleted, and a smaller one of its name joins."""

    async def play(world: World) -> None:
        world.make_node("only", 3)
        world.start()
        bare(world, "first", 3000, service="bronze")
        await asyncio.sleep(20.0)
        assert node_of(world, "first") == "only"
        bare(world, "second", 3000, service="gold")
        async with asyncio.timeout(120.0):
            while "deletionTimestamp" not in world.store.get("pods", NAMESPACE, "first")["metadata"]:  # type: ignore[index]
                await asyncio.sleep(0.1)
        world.store.remove(BY_NAME["nodes"], ("", "only"))
        world.make_node("only", 1)
        await asyncio.sleep(60.0)
        assert (node_of(world, "first"), node_of(world, "second")) == ("gone", "")

    world, _ = played(2, calm(), play)
    assert world.invariants.findings == []


def test_a_ledger_has_the_seconds_for_which_pods_were_ready() -> None:
    """By the instants at which kubelets said so, however often containers end and begin anew."""
    since: dict[str, float] = {}
    good: dict[str, float] = defaultdict(float)

    async def play(world: World) -> tuple[float, float, int]:
        turns = 0

        def follow(change: Change) -> None:
            nonlocal turns
            if change.resource.plural != "pods":
                return
            uid, now = change.body["metadata"]["uid"], world.loop.time()
            is_ready = change.type != "DELETED" and is_true(change.body, "Ready")
            if is_ready and uid not in since:
                since[uid] = now
                turns += 1
            elif not is_ready and uid in since:
                good[uid] += now - since.pop(uid)
                turns += 1

        world.store.followers.append(follow)
        for name in ("a", "b"):
            world.make_node(name)
        world.start()
        await asyncio.sleep(5.0)
        world.make("deployments", deployment("web", "silver", 4, 500), NAMESPACE)
        for turn in range(12):
            await asyncio.sleep(30.0)
            running = sorted(world.store.objects["pods"])
            found = world.store.get("pods", *running[turn % len(running)])
            assert found is not None
            world.kubelets.crash(found)
        await asyncio.sleep(90.0)
        ledger = world.store.get("availabilities", NAMESPACE, "deployment-web")
        assert ledger is not None
        at = float(ledger["status"]["accumulators"]["at"]) - world.store.now() + world.loop.time()
        ready = sum(good.values()) + sum(at - began for began in since.values())
        return ready, float(ledger["status"]["goodSeconds"]), turns

    world, (ready, said, turns) = played(3, calm(), play)
    assert world.invariants.findings == []
    assert turns > 20
    assert abs(ready - said) <= turns * 0.02  # what an event takes at most
