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
