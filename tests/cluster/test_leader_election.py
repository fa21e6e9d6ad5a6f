"""Leader election on a real API server: never two at once, and a deposed leader knows."""

import asyncio
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cluster.faulty import Fault, FaultyProxy
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import ApiError, Connection
from slacktide.kube.client.kinds import Malformed
from slacktide.kube.clock import steady_seconds
from slacktide.kube.leader_election import LeaderElection
from slacktide.kube.resources.objects import LEASE, Lease
from slacktide.lab import ControlPlane

DURATION, RENEW, RETRY = 9, 6.0, 0.3


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


def contender(connection: Connection, name: str, identity: str) -> LeaderElection:
    return LeaderElection(connection, "default", name, identity, duration=DURATION, renew=RENEW, retry=RETRY)


def fresh() -> str:
    return f"lease-{uuid.uuid4().hex[:10]}"


@asynccontextmanager
async def running(*elections: LeaderElection) -> AsyncIterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(election.run()) for election in elections]
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def read(connection: Connection, name: str) -> Lease:
    lease = LEASE.decode(await connection.get(LEASE.path("default", name)))
    assert not isinstance(lease, Malformed)
    return lease


async def is_missing(connection: Connection, name: str) -> bool:
    try:
        await read(connection, name)
    except ApiError as error:
        assert error.status == 404  # noqa: PT017
        return True
    return False


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.01)


async def within(seconds: float, waiting: "asyncio.Future[None] | asyncio.Task[None]") -> float:
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        await waiting
    return time.monotonic() - began


def test_one_leads_and_hands_over_when_it_stops(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            first, second = contender(connection, name, "first"), contender(connection, name, "second")
            async with running(first) as (task,):
                await within(60.0, asyncio.ensure_future(first.acquired()))
                async with running(second):
                    await asyncio.sleep(DURATION + 1.0)
                    assert (first.leading(), second.leading()) == (True, False)
                    assert (first.term, second.term, second.holder) == (1, 0, "first")
                    lease = await read(connection, name)
                    assert lease.spec.holder_identity == "first"
                    assert lease.spec.lease_duration_seconds == DURATION
                    task.cancel()
                    # Given back, the lease is taken at the next look instead of after its duration.
                    assert await within(DURATION, asyncio.ensure_future(second.acquired())) < DURATION / 2
                    assert not first.leading()
                    assert (await read(connection, name)).spec.lease_transitions == 1
            assert (await read(connection, name)).spec.holder_identity is None

    asyncio.run(run())


def test_of_many_that_start_together_one_leads(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            elections = [contender(connection, name, f"replica-{number}") for number in range(10)]
            async with running(*elections):

                def one_leads() -> bool:
                    count = sum(election.leading() for election in elections)
                    assert count <= 1
                    return count == 1

                await until(one_leads)
                for _ in range(300):
                    await asyncio.sleep(0.01)
                    one_leads()

    asyncio.run(run())


def test_a_leader_cut_off_stops_before_another_starts(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as cut, Connection(access) as connection:
            name = fresh()
            first, second = contender(cut, name, "first"), contender(connection, name, "second")
            async with running(first):
                await within(60.0, asyncio.ensure_future(first.acquired()))
                async with running(second):
                    await asyncio.sleep(1.0)
                    patient_until = time.monotonic() + 120.0
                    await proxy.go_down()
                    renewed = (await read(connection, name)).spec.renew_time
                    both = 0
                    while not second.leading() and time.monotonic() < patient_until:
                        await asyncio.sleep(0.005)
                        both += first.leading() and second.leading()
                    assert both == 0
                    assert second.leading()
                    assert not first.leading()
                    taken = (await read(connection, name)).spec.acquire_time
                    assert renewed is not None
                    assert taken is not None
                    assert taken - renewed >= DURATION
                    await within(60.0, asyncio.ensure_future(first.lost()))
                    # Back again, it stands by.
                    await proxy.come_up()
                    await until(lambda: first.holder == "second")
                    assert not first.leading()

    asyncio.run(run())


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(delay=30.0), Fault(reset=True), Fault(status=429, retry_after=60)]
)
def test_a_leader_that_cannot_renew_stops_in_time(access: Access, fault: Fault) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            election = contender(connection, fresh(), "only")
            async with running(election):
                await within(60.0, asyncio.ensure_future(election.acquired()))
                proxy.add(fault)
                waited = await within(DURATION, asyncio.ensure_future(election.lost()))
                assert RENEW / 2 <= waited < (RENEW + DURATION) / 2  # since its last renewal
                assert not election.leading()
                proxy.heal()
                await within(60.0, asyncio.ensure_future(election.acquired()))
                assert election.term == 2

    asyncio.run(run())


def test_single_failures_do_not_cost_the_lead(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access, seed=3) as proxy, Connection(proxy.access()) as connection:
            election = contender(connection, fresh(), "only")
            async with running(election):
                await within(60.0, asyncio.ensure_future(election.acquired()))
                proxy.add(Fault(status=500, chance=0.2))
                proxy.add(Fault(lose_answer=True, method="PUT", chance=0.3))
                began = time.monotonic()

                def enough() -> bool:
                    assert election.leading()
                    return time.monotonic() - began > RENEW and proxy.seen["PUT", "reset"] > 0

                await until(enough)
                assert election.term == 1

    asyncio.run(run())


def test_who_is_robbed_of_the_lease_stops_with_the_next_renewal(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            election = contender(connection, name, "first")
            async with running(election):
                await within(60.0, asyncio.ensure_future(election.acquired()))
                robbed = {"spec": {"holderIdentity": "robber", "leaseDurationSeconds": 60}}
                await connection.patch(LEASE.path("default", name), json.dumps(robbed).encode())
                await within(RENEW / 2, asyncio.ensure_future(election.lost()))
                assert (election.leading(), election.holder) == (False, "robber")

    asyncio.run(run())


def test_a_deleted_lease_is_made_again(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            election = contender(connection, name, "first")
            async with running(election):
                await within(60.0, asyncio.ensure_future(election.acquired()))
                await connection.delete(LEASE.path("default", name))
                async with asyncio.timeout(60):
                    while await is_missing(connection, name):
                        await asyncio.sleep(0.05)
                assert election.leading()
                assert (await read(connection, name)).spec.holder_identity == "first"

    asyncio.run(run())


def test_a_lease_that_was_written_to_meanwhile_is_given_back_all_the_same(access: Access) -> None:
    """As by a renewal that was under way when the leader was stopped, and of which it never heard."""

    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            election = contender(connection, name, "first")
            async with running(election) as (task,):
                await within(60.0, asyncio.ensure_future(election.acquired()))
                await connection.patch(LEASE.path("default", name), b'{"metadata":{"annotations":{"a":"b"}}}')
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            assert (await read(connection, name)).spec.holder_identity is None

    asyncio.run(run())


def test_foreign_marks_on_the_lease_survive(access: Access) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            name = fresh()
            body = {"metadata": {"name": name, "labels": {"kept": "yes"}, "annotations": {"also": "this"}}}
            await connection.post(LEASE.path("default"), json.dumps(body).encode())
            election = contender(connection, name, "first")
            async with running(election):
                await within(60.0, asyncio.ensure_future(election.acquired()))
                lease = await read(connection, name)
                assert (lease.metadata.labels, lease.metadata.annotations) == ({"kept": "yes"}, {"also": "this"})

    asyncio.run(run())


def test_without_the_right_to_leases_nobody_leads(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(status=403))
            election = contender(connection, fresh(), "first")
            async with running(election) as (task,):
                await until(lambda: "403" in election.last_error)
                await asyncio.sleep(1.0)
                assert not task.done()
                assert not election.leading()

    asyncio.run(run())


FROZEN = """
import asyncio, sys
from pathlib import Path
from slacktide.kube.client.http import connect
from slacktide.kube.clock import steady_seconds
from slacktide.kube.leader_election import LeaderElection

async def main(kubeconfig, name):
    async with await connect(Path(kubeconfig)) as connection:
        election = LeaderElection(connection, "default", name, "frozen", duration=3, renew=2, retry=0.3)
        task = asyncio.create_task(election.run())
        while True:
            # Asked right before what would be an act, without a turn of the event loop in between.
            print(steady_seconds(), int(election.leading()), flush=True)
            await asyncio.sleep(0.002)

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_frozen_leader_knows_when_it_wakes_that_it_is_deposed(
    access: Access, lab: ControlPlane, tmp_path: Path
) -> None:
    name = fresh()
    log = tmp_path / "log"

    async def leads() -> bool:
        lines = log.read_text().splitlines()[:-1]
        return bool(lines) and lines[-1].endswith(" 1")

    def told() -> list[tuple[float, bool]]:
        lines = log.read_text().splitlines()[:-1]
        return [(float(when), leading == "1") for when, leading in (line.split() for line in lines)]

    def after(moment: float) -> list[float]:
        return [when for when, _ in told() if when > moment]

    async def run() -> float:
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", FROZEN, str(lab.kubeconfig), name, stdout=file, env={**os.environ}
            )
        try:
            async with asyncio.timeout(120):
                while not await leads():
                    await asyncio.sleep(0.05)
            async with Connection(access) as connection:
                election = contender(connection, name, "standby")
                async with running(election):
                    process.send_signal(signal.SIGSTOP)
                    await within(60.0, asyncio.ensure_future(election.acquired()))
                    taken = steady_seconds()
                    await asyncio.sleep(0.5)
                    process.send_signal(signal.SIGCONT)
                    await until(lambda: bool(after(taken + 0.5)))
                    await asyncio.sleep(1.0)
                    assert election.leading()
                    return taken
        finally:
            process.kill()
            await process.wait()

    taken = asyncio.run(run())
    assert [when for when, leading in told() if leading]
    assert after(taken + 0.5), "the frozen one never woke"
    assert [when for when, leading in told() if leading and when > taken] == []


def test_a_lease_nobody_can_read_does_not_end_the_contention(access: Access) -> None:
    async def run() -> None:
        async with FaultyProxy(access) as proxy, Connection(proxy.access()) as connection:
            proxy.add(Fault(halve_answer=True, times=3))
            election = contender(connection, fresh(), "first")
            async with running(election):
                await within(60.0, asyncio.ensure_future(election.acquired()))
            with pytest.raises(ApiError):
                await connection.get(LEASE.path("default", "none-of-this-name"))

    asyncio.run(run())
