"""While the gate is closed requests go out, and nobody goes on with what they brought."""

from __future__ import annotations

import asyncio

import pytest

from slacktide.kube.client.turns import Gate


async def settle() -> None:
    """Lets everybody run who can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_who_waits_goes_on_in_order_when_it_opens() -> None:
    async def scene() -> None:
        gate, seen, sent = Gate(), [], []

        async def ask(name: str, fails: bool) -> str:
            sent.append(name)
            await asyncio.sleep(0)
            if fails:
                raise ValueError(name)
            return name

        async def one(name: str, fails: bool) -> None:
            try:
                seen.append(await gate.after(ask(name, fails)))
            except ValueError as error:
                seen.append(f"not {error}")

        async with asyncio.TaskGroup() as group:
            with gate.closed():
                for name in "abc":
                    group.create_task(one(name, name == "b"))
                gate.call(lambda: seen.append("call"))
                await settle()
                assert (sent, seen) == (["a", "b", "c"], [])
        assert seen == ["call", "a", "not b", "c"]
        gate.call(lambda: seen.append("at once"))
        assert seen[-1] == "at once"

    asyncio.run(scene())


def test_who_comes_late_waits_for_the_next_opening() -> None:
    async def scene() -> None:
        gate, seen = Gate(), []

        async def pass_through() -> None:
            await gate.passed()
            assert not gate.is_closed
            seen.append(True)

        async with asyncio.TaskGroup() as group:
            with gate.closed():
                group.create_task(pass_through())
                await settle()
            with gate.closed():  # before the one that waits had its turn
                await settle()
                assert seen == []
        assert seen == [True]

    asyncio.run(scene())


def test_it_opens_whatever_happens() -> None:
    gate = Gate()
    with pytest.raises(ValueError, match="x"), gate.closed():
        raise ValueError("x")
    assert not gate.is_closed
    asyncio.run(gate.passed())
