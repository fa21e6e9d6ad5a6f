"""Requests that are refused, delayed or not answered: when they are sent again, and when never.

What sockets do is asked in ``kube/client/test_http.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from simulated.alone import ONE_WAY, Client, plays
from simulated.world import NAMESPACE, World
from slacktide.kube.client.http import LONGEST_RETRY_SECONDS, RETRIES, ApiError, NotSent, Unreachable
from slacktide.kube.client.pacing import AGAIN_SECONDS
from slacktide.kube.resources.objects import NAMESPACE as SPACE

WAY = 2 * ONE_WAY + 0.005
"""Seconds that a request and its answer take, with the connection for it, at most."""
JITTER = 1.2
"""A pause is up to so many times as long as the server asks for, so that not all come back at once."""
READ = SPACE.path(name=NAMESPACE)
MAPS = f"/api/v1/namespaces/{NAMESPACE}/services"
MADE = b'{"metadata":{"name":"made"}}'


def with_client(play: Callable[[Client], Awaitable[None]], **options: Any) -> None:
    async def scene(world: World) -> None:
        client = Client(world, **options)
        await play(client)
        await client.connection.close()

    plays(scene)


def pauses(client: Client) -> list[float]:
    """Seconds between one request and the next."""
    times = [one.at for one in client.sent]
    return [b - a for a, b in pairwise(times)]


@pytest.mark.parametrize(("after", "least"), [(2, 2.0), (3600, LONGEST_RETRY_SECONDS), (0, 1.0)])
def test_reads_wait_as_long_as_the_server_asks_but_not_for_ever(after: int, least: float) -> None:
    async def play(client: Client) -> None:
        client.fails(code=429, after=after, times=2)
        await client.connection.get(READ)
        assert client.codes == [429, 429, 200]
        assert all(least <= one <= JITTER * least + WAY for one in pauses(client))

    with_client(play)


def test_reads_give_up_after_the_allowed_retries() -> None:
    async def play(client: Client) -> None:
        client.fails(code=503, after=3600)
        with pytest.raises(ApiError) as caught:
            await client.connection.get(READ)
        assert (caught.value.status, caught.value.retry_after) == (503, 3600.0)
        assert len(client.sent) == 1 + RETRIES
        with pytest.raises(ApiError):
            await client.connection.get(READ, retries=0)
        assert len(client.sent) == 2 + RETRIES

    with_client(play)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_post_is_never_sent_twice(code: int) -> None:
    async def play(client: Client) -> None:
        client.fails(code=code, after=1)
        with pytest.raises(ApiError) as caught:
            await client.connection.post(MAPS, MADE)
        assert (caught.value.status, caught.value.retry_after) == (code, 1.0)
        assert len(client.sent) == 1

    with_client(play)


def test_a_lost_answer_leaves_the_outcome_open() -> None:
    async def play(client: Client) -> None:
        client.fails(method="POST", unanswered=True, times=1)
        with pytest.raises(Unreachable):
            await client.connection.post(MAPS, MADE)
        assert len(client.sent) == 1
        await client.connection.get(f"{MAPS}/made")  # it was carried out all the same

    with_client(play)


def test_a_slow_answer_is_not_waited_for_longer_than_asked() -> None:
    async def play(client: Client) -> None:
        client.fails(delay=600.0)
        for seconds in (0.2, 30.0):
            began = client.now
            with pytest.raises(Unreachable, match="no answer in time"):
                await client.connection.get(READ, timeout=seconds)
            assert client.now - began == pytest.approx(seconds)

    with_client(play)


def test_urgent_requests_pass_the_rate_limit() -> None:
    async def play(client: Client) -> None:
        began = client.now
        for urgent in (False, True, False, True):
            await client.connection.get(READ, urgent=urgent)
        times = [one.at - began for one in client.sent]
        assert times == pytest.approx([0.0, 0.0, 1000.0, 1000.0], abs=2 * WAY)

    with_client(play, qps=0.001, burst=1)


def test_what_is_not_permitted_any_more_when_its_turn_comes_is_not_sent() -> None:
    async def play(client: Client) -> None:
        allowed = [True]
        await client.connection.get(READ)
        asyncio.get_running_loop().call_later(2.0, allowed.clear)
        with pytest.raises(NotSent, match="no longer needed"):
            await client.connection.post(MAPS, MADE, permit=lambda: bool(allowed))
        assert [one.method for one in client.sent] == ["GET"]

    with_client(play, qps=0.1, burst=1)


@pytest.mark.parametrize("comes", [True, False])
def test_a_right_that_the_server_does_not_know_of_yet_is_waited_for(comes: bool) -> None:
    """It answers as one that has just begun and has not read its bindings yet."""
    patience, after = 60.0, 10

    async def play(client: Client) -> None:
        said = 'services is forbidden: User "one" cannot create resource "services" in API group ""'
        client.fails(code=403, message=said, times=after if comes else float("inf"))
        began = client.now
        if comes:
            await client.connection.post(MAPS, MADE)
            assert client.codes == [403] * after + [201]
        else:
            with pytest.raises(ApiError, match="cannot create resource") as caught:
                await client.connection.post(MAPS, MADE)
            assert caught.value.status == 403
            assert patience <= client.now - began <= patience + AGAIN_SECONDS + 2 * WAY
        assert all(AGAIN_SECONDS <= one <= AGAIN_SECONDS + WAY for one in pauses(client))

    with_client(play, rights_patience=patience)
