"""Leader election alone, on the model of the API server: never two at once, and a deposed leader knows, to the tenth of
a second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from simulated.alone import Client, plays
from simulated.loop import acted_by
from simulated.resources import BY_NAME, Json
from simulated.world import World
from slacktide.kube.leader_election import LeaderElection

DURATION, RENEW, RETRY = 9, 6.0, 0.3
NAME = "lease"
WAY = 0.1
"""Seconds that a request and its answer take, or two of each."""


class Contender:
    """A process that contends for the lease, with a connection of its own."""

    def __init__(self, world: World, name: str) -> None:
        self.world, client = world, Client(world, name)
        self.wire, self.weather, self.actor = client.wire, client.wire.weather, client.actor
        self.connection, self.faults = client.connection, client.faults
        with acted_by(self.actor):
            self.election = LeaderElection(
                self.connection, "default", NAME, name, duration=DURATION, renew=RENEW, retry=RETRY
            )
            self.task = asyncio.create_task(self.election.run())

    def leading(self) -> bool:
        """Whether it may act, by its own clock."""
        with acted_by(self.actor):
            return self.election.leading()

    async def takes(self, what: Callable[[], Awaitable[None]]) -> float:
        """How long it takes until something is so."""
        began = self.world.loop.time()
        async with asyncio.timeout(120.0):
            await what()
        return self.world.loop.time() - began

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def lease(world: World) -> Json:
    found = world.store.copy("leases", "default", NAME)
    assert found is not None
    return found


async def leads(world: World, name: str = "first") -> Contender:
    found = Contender(world, name)
    await found.takes(found.election.acquired)
    return found


def test_a_lease_that_is_given_back_is_taken_at_the_next_look() -> None:
    async def scene(world: World) -> None:
        first = await leads(world)
        second = Contender(world, "second")
        await asyncio.sleep(3 * DURATION)
        assert (first.leading(), second.leading()) == (True, False)
        await first.end()
        assert await second.takes(second.election.acquired) <= RETRY + WAY
        assert not first.leading()
        assert lease(world)["spec"]["leaseTransitions"] == 1
        await second.end()
        assert lease(world)["spec"].get("holderIdentity") is None

    plays(scene)


def test_of_many_that_start_together_one_leads() -> None:
    async def scene(world: World) -> None:
        every = [Contender(world, f"replica-{number}") for number in range(10)]
        for _ in range(6000):
            await asyncio.sleep(0.01)
            assert sum(one.leading() for one in every) == (1 if world.loop.time() > 1.0 else pytest.approx(0, abs=1))
        for one in every:
            await one.end()

    plays(scene)


def test_a_leader_cut_off_stops_before_another_starts() -> None:
    async def scene(world: World) -> None:
        first = await leads(world)
        second = Contender(world, "second")
        await asyncio.sleep(5.0)
        first.wire.cut_off()
        renewed = world.loop.time()
        while not second.leading():
            await asyncio.sleep(0.005)
            assert not (first.leading() and second.leading())
        spec = lease(world)["spec"]
        assert spec["holderIdentity"] == "second"
        assert DURATION - RETRY - RENEW / 3 <= world.loop.time() - renewed <= DURATION + 2 * RETRY + WAY
        assert not first.leading()
        await first.takes(first.election.lost)
        first.wire.mend()
        async with asyncio.timeout(120.0):
            while first.election.holder != "second":  # back again, it stands by
                await asyncio.sleep(0.1)
        assert not first.leading()
        await first.end()
        await second.end()

    plays(scene)


@pytest.mark.parametrize("kind", ["busy", "lost", "unanswered", "slow"])
def test_a_leader_that_cannot_renew_stops_in_time(kind: str) -> None:
    async def scene(world: World) -> None:
        only = await leads(world)
        setattr(only.weather, kind, 1.0)
        if kind == "slow":  # an answer within seconds would do
            only.wire.cut_off()
        waited = await only.takes(only.election.lost)
        assert RENEW / 2 <= waited <= RENEW + WAY, "since its last renewal"
        assert not only.leading()
        only.weather.clear()
        only.wire.mend()
        await only.takes(only.election.acquired)
        assert only.election.term == 2
        await only.end()

    plays(scene)


def test_a_renewal_that_is_heard_of_too_late_does_not_give_the_lead_back() -> None:
    """As where the process was stopped: what only a leader may do was let go of meanwhile, and nobody would notice."""

    async def scene(world: World) -> None:
        only = await leads(world)
        lost = asyncio.create_task(only.election.lost())
        write = only.election._write

        async def late(*asked: Any) -> None:
            await write(*asked)
            await asyncio.sleep(RENEW - RETRY / 2)  # after the deadline, and before the one that it would give

        only.election._write = late  # type: ignore[method-assign, assignment]
        await asyncio.sleep(2 * RENEW)
        assert lost.done()
        await only.end()

    plays(scene)


def test_single_failures_do_not_cost_the_lead() -> None:
    async def scene(world: World) -> None:
        only = await leads(world)
        only.weather.busy, only.weather.unanswered = 0.1, 0.1
        for _ in range(30_000):
            await asyncio.sleep(0.01)
            assert only.leading()
        assert only.election.term == 1
        await only.end()

    plays(scene)


def test_who_is_robbed_of_the_lease_stops_with_the_next_renewal() -> None:
    async def scene(world: World) -> None:
        first = await leads(world)
        found = lease(world)
        found["spec"] |= {"holderIdentity": "robber", "leaseDurationSeconds": 60}
        world.store.write(BY_NAME["leases"], found)
        await first.takes(first.election.lost)
        assert (first.leading(), first.election.holder) == (False, "robber")
        await first.end()

    plays(scene)


def test_a_deleted_lease_is_made_again() -> None:
    async def scene(world: World) -> None:
        first = await leads(world)
        world.store.remove(BY_NAME["leases"], ("default", NAME))
        await asyncio.sleep(RENEW)
        assert first.leading()
        assert lease(world)["spec"]["holderIdentity"] == "first"
        await first.end()

    plays(scene)


@pytest.mark.parametrize("how", ["answered", "reset", "under way"])
def test_a_lease_is_not_given_back_while_a_write_may_still_arrive(how: str) -> None:
    """A binding that arrives when the next one leads would take room that is given to somebody else by then."""

    async def scene(world: World) -> None:
        first = await leads(world)
        second = Contender(world, "second")
        first.weather.lost = float(how == "reset")
        path = "/api/v1/namespaces/default/pods/p/binding"
        with acted_by(first.actor):
            write = asyncio.create_task(first.connection.post(path, b"{}", permit=first.election.leading))
        if how == "under way":
            first.wire.cut_off()
            await asyncio.sleep(WAY)
            first.wire.mend()
        else:
            await asyncio.wait([write])
        first.weather.clear()
        await first.end()
        took = await second.takes(second.election.acquired)
        assert (took <= RETRY + WAY) == (how == "answered")
        assert took <= DURATION + 2 * RETRY + WAY
        write.cancel()
        await asyncio.gather(write, return_exceptions=True)
        await second.end()

    plays(scene)


def test_a_lease_that_was_written_to_meanwhile_is_given_back_all_the_same() -> None:
    """As by a renewal that was under way when the leader was stopped, and of which it never heard."""

    async def scene(world: World) -> None:
        first = await leads(world)
        found = lease(world)
        found["metadata"]["annotations"] = {"a": "b"}
        world.store.write(BY_NAME["leases"], json.loads(json.dumps(found)))
        await first.end()
        assert lease(world)["spec"].get("holderIdentity") is None

    plays(scene)


def test_foreign_marks_on_the_lease_survive() -> None:
    async def scene(world: World) -> None:
        body = {"metadata": {"name": NAME, "labels": {"kept": "yes"}, "annotations": {"also": "this"}}}
        world.make("leases", body, "default")
        only = await leads(world)
        await asyncio.sleep(3 * DURATION)
        metadata = lease(world)["metadata"]
        assert (metadata["labels"], metadata["annotations"]) == ({"kept": "yes"}, {"also": "this"})
        await only.end()

    plays(scene)


def test_without_the_right_to_leases_nobody_leads() -> None:
    async def scene(world: World) -> None:
        only = Contender(world, "only")
        forbidden = only.faults.add(code=403)
        await asyncio.sleep(10 * DURATION)
        assert "403" in only.election.last_error
        assert not only.task.done()
        assert not only.leading()
        forbidden.times = 0
        assert await only.takes(only.election.acquired) <= RETRY + WAY
        await only.end()

    plays(scene)


def test_an_answer_that_nobody_can_read_does_not_end_the_contention() -> None:
    async def scene(world: World) -> None:
        only = Contender(world, "only")
        garbled = only.faults.add(rewrite=lambda one: one._replace(body=one.body[: len(one.body) // 2]))
        await asyncio.sleep(DURATION)
        assert not only.leading()
        garbled.times = 0
        assert await only.takes(only.election.acquired) <= RETRY + WAY
        await only.end()

    plays(scene)
