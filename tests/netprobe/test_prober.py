"""Many probers on one machine, each with a socket of its own: samples, coordinates and peers that change."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from slacktide.netprobe.options import Options
from slacktide.netprobe.packets import identity
from slacktide.netprobe.peers import Peer
from slacktide.netprobe.prober import Prober
from slacktide.netprobe.sockets import open_socket

KEYS = (bytes(32),)
MANY = Options(interval=0.5, full_mesh=20, sample=8, near=2, rotate=1.0, seed=1)
SECONDS = 120.0


@contextmanager
def probers(count: int, options: Options) -> Iterator[list[Prober]]:
    """Probers n0, n1, ... that know each other."""
    sockets = [open_socket("127.0.0.1", 0) for _ in range(count)]
    try:
        peers = [Peer(f"n{i}", (("127.0.0.1", made.getsockname()[1]),)) for i, made in enumerate(sockets)]
        found = [Prober(peer.name, KEYS, made, options) for peer, made in zip(peers, sockets, strict=True)]
        for one in found:
            one.set_peers(peers)
        yield found
    finally:
        for made in sockets:
            made.close()


async def running(found: list[Prober], play: Callable[[], Awaitable[None]]) -> None:
    """Run the probers while something is played."""
    tasks = [asyncio.ensure_future(one.run()) for one in found]
    try:
        await play()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Callable[[], bool], what: str) -> None:
    end = asyncio.get_running_loop().time() + SECONDS
    while not condition():
        assert asyncio.get_running_loop().time() < end, what
        await asyncio.sleep(0.05)


def test_of_many_each_measures_a_sample_and_has_a_coordinate() -> None:
    with probers(40, MANY) as found:

        async def play() -> None:
            await until(lambda: all(one.position.error < 0.9 for one in found), "every node has a place")
            await until(lambda: all(len(one.measured()) >= 4 for one in found), "every node measures its sample")

        assert all(len(one.paths) == 8 for one in found)
        first = [set(one.paths) for one in found]
        asyncio.run(running(found, play))
        assert all(len(one.paths) == 8 for one in found)
        assert any(set(one.paths) != before for one, before in zip(found, first, strict=True)), "samples rotate"
        # What was heard of others by probes and answers is enough for an estimate to most of them.
        known = [math.isfinite(one.distance(f"n{i}")) for one in found for i in range(40) if one.name != f"n{i}"]
        assert sum(known) > 0.3 * len(known)


def test_a_node_probes_nobody_that_left_and_starts_with_who_came() -> None:
    with probers(3, Options(interval=0.1)) as found:
        first, everybody = found[0], list(found[0].peers.values())

        async def play() -> None:
            await until(lambda: len(first.measured()) == 2, "both others are measured")
            first.set_peers([one for one in everybody if one.name == "n1"])
            assert set(first.paths) == {"n1"}
            assert identity("n2") not in first.coordinates
            first.set_peers(everybody)
            assert set(first.measured()) == {"n1"}
            await until(lambda: set(first.measured()) == {"n1", "n2"}, "n2 is measured again")

        asyncio.run(running(found, play))


def test_a_peer_that_moves_is_found_at_its_new_address_and_measured_on() -> None:
    with probers(3, Options(interval=0.1, timeout=0.5)) as found:
        first, third = found[0], found[2]
        there = first.peers["n2"].addresses
        nowhere = (("127.0.0.1", 9),)
        first.set_peers([Peer("n2", nowhere)])

        async def play() -> None:
            await until(lambda: first.counts.probes["lost"] >= 3, "nobody answers there")
            first.set_peers([Peer("n2", there)])
            await until(lambda: first.counts.probes["answered"] >= 5, "it answers at its new address")

        asyncio.run(running(found, play))
        assert third.counts.answers >= 5
        assert 0.0 < first.measured()["n2"].lost < 1.0


def test_host_names_are_looked_up_and_addresses_of_the_other_family_passed_over() -> None:
    with probers(2, Options(interval=0.1)) as found:
        first, port = found[0], found[0].peers["n1"].addresses[0][1]
        # What can be no host's name, or an address with a zone where there are none, is passed over likewise.
        names = "a..b", "x" * 70, "10.0.0.1%a", "::1", "localhost"
        first.set_peers([Peer("n1", tuple((name, port) for name in names))])

        async def play() -> None:
            await until(lambda: first.counts.probes["answered"] >= 5, "it answers")

        asyncio.run(running(found, play))
        assert first.paths["n1"].address == "127.0.0.1"


def test_a_clock_that_is_set_makes_nobody_silent_and_nobody_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    true = time.time
    with probers(2, Options(interval=0.1, timeout=0.5, silent=2.0)) as found:
        first = found[0]

        async def play() -> None:
            await until(lambda: len(first.measured()) == 1, "n1 is measured")
            for ahead in (30.0, -30.0):  # within the skew, but beyond the silence
                monkeypatch.setattr(time, "time", lambda ahead=ahead: true() + ahead)
                assert math.isfinite(first.measured()["n1"].mean)
            first.set_peers([Peer("n1", (("127.0.0.1", 9),))])
            await until(lambda: math.isnan(first.measured()["n1"].mean), "n1 has fallen silent")

        asyncio.run(running(found, play))


def test_a_peer_that_moves_while_its_name_is_looked_up_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with probers(2, Options(interval=0.1)) as found:
        first, port = found[0], found[0].peers["n1"].addresses[0][1]

        async def play() -> None:
            loop, answer = asyncio.get_running_loop(), asyncio.Event()
            look_up = loop.getaddrinfo

            async def slowly(*words: Any, **settings: Any) -> Any:
                await answer.wait()
                return await look_up(*words, **settings)

            monkeypatch.setattr(loop, "getaddrinfo", slowly)
            first.set_peers([Peer("n1", (("localhost", 9),))])
            path = first.paths["n1"]
            await until(lambda: path.looking_up, "its name is looked up")
            first.set_peers([Peer("n1", (("localhost", port),))])
            await until(lambda: math.isfinite(path.resolved_at), "a probe is due meanwhile")
            answer.set()
            await until(lambda: first.counts.probes["answered"] >= 3, "it answers at its new address")

        asyncio.run(running(found, play))


def test_strangers_with_the_key_leave_nothing_behind() -> None:
    with probers(2, Options(interval=0.1)) as (first, second):
        first.set_peers([])

        async def play() -> None:
            await until(lambda: first.counts.answers >= 3, "a stranger is answered")

        asyncio.run(running([first, second], play))
        assert not first.coordinates


def test_one_that_is_told_to_end_just_when_peers_change_ends() -> None:
    with probers(2, Options(interval=600.0)) as found:
        first = found[0]

        async def ends(turns: int) -> bool:
            task = asyncio.ensure_future(first.run())
            for _ in range(5):
                await asyncio.sleep(0)
            first.set_peers(list(first.peers.values()))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=60.0)
            task.cancel()
            return task.cancelled()

        async def all_end() -> None:
            for turns in range(5):
                assert await ends(turns), turns

        asyncio.run(all_end())
