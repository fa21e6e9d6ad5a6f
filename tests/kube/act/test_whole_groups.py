"""Evictions of pod groups that go as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from kube.act.backstage import Backstage, played
from slacktide.engine.core import types
from slacktide.kube.client.http import ApiError

WHOLE: dict[str, Any] = {"disruptionMode": "PodGroup"}


def full(house: Backstage, nodes: str) -> None:
    """Each node is full of a pod of the group g, which goes as a whole."""
    house.gang(**WHOLE)
    for name in nodes:
        house.node(name)
        house.low(f"low-{name}", name, group="g")


def states(house: Backstage) -> set[int]:
    return {one.state for uid, one in house.session.engine.pods.items() if uid.startswith("low")}


def test_all_of_a_group_are_evicted_wherever_they_are() -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            full(house, "abc")
            house.pod("p", cores=3)
            await house.decide()
            assert sorted(house.server.evicted) == ["low-a", "low-b", "low-c"]
            house.pod("q", cores=3)
            await house.decide()
            assert house.server.bindings == {}, "on other nodes, too, they are not gone yet"
            house.gone("low-a", "low-b")
            await house.decide()
            assert "p" not in house.server.bindings
            house.gone("low-c")
            await house.decide()
            assert house.server.bindings.keys() == {"p", "q"}

    played(play)


@pytest.mark.parametrize("source", ["basic", "gang"])
def test_groups_whose_pods_start_one_by_one_go_as_a_whole_too(source: str) -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            full(house, "ab")
            if source == "basic":
                house.gang(schedulingPolicy={"basic": {}}, **WHOLE)
            house.pod("p", cores=3)
            await house.decide()
            assert sorted(house.server.evicted) == ["low-a", "low-b"]

    played(play)


def test_where_one_eviction_is_refused_those_that_were_not_told_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            full(house, "abc")
            refused: list[str] = []

            def refuses(kind: str, name: str) -> Exception | None:
                if kind != "eviction" or refused:
                    return None
                refused.append(name)
                return ApiError(429, "TooManyRequests", "it would violate the pod's disruption budget")

            house.server.refuses = refuses
            said: list[str] = []
            monkeypatch.setattr(house.session.actor.recorder, "record", lambda _of, _why, note, **_: said.append(note))
            house.pod("p", cores=3)
            await house.decide()
            assert len(refused) == 1
            assert house.server.evicted == []
            assert states(house) == {types.PLACED}
            (why,) = [one for one in said if "is not evicted" in one]
            assert why.endswith(
                "of its pod group shop/g (podgroups.scheduling.k8s.io), 0 were evicted already, and 2 are not evicted"
            )
            await house.decide()
            assert len(house.server.evicted) == 3, "they go with another decision"

    played(play)


def test_a_mixed_group_goes_one_by_one() -> None:
    async def play(house: Backstage) -> None:
        async with house.leading():
            full(house, "ab")
            house.node("c")
            house.pod("better", "g", "c")
            house.pod("p", cores=3)
            await house.decide()
            assert len(house.server.evicted) == 1

    played(play)
