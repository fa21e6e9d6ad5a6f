"""Leader election: times that cannot be safe."""

import asyncio

import pytest

from slacktide.kube.client.credentials import Access
from slacktide.kube.client.http import Connection
from slacktide.kube.leader_election import LeaderElection


@pytest.mark.parametrize(("duration", "renew", "retry"), [(10, 10, 2), (15, 2, 2), (15, 10, 0), (2.5, 2, 1)])
def test_times_that_cannot_be_safe_are_refused(duration: float, renew: float, retry: float) -> None:
    async def run() -> None:
        async with Connection(Access("http://127.0.0.1:1", None)) as connection:  # type: ignore[arg-type] # never used
            with pytest.raises(ValueError, match="duration, renew, retry: found"):
                LeaderElection(connection, "default", "x", "y", duration=duration, renew=renew, retry=retry)

    asyncio.run(run())
