"""Pods of a group that share one claim on devices: what one of them gets, the others use."""

from __future__ import annotations

from kube.act.backstage import Backstage, played
from slacktide.engine.core import types


def users(house: Backstage, claim: str) -> set[str]:
    return {one["uid"] for one in house.server.claims[claim]["status"].get("reservedFor", ())}


def devices(house: Backstage, claim: str) -> list[tuple[str, str]]:
    found = house.server.claims[claim]["status"].get("allocation", {}).get("devices", {}).get("results", ())
    return [(one["pool"], one["device"]) for one in found]


def test_a_gang_that_shares_a_claim_starts_on_the_node_whose_device_it_gets() -> None:
    async def play(house: Backstage) -> None:
        for name in "ab":
            house.node(name)
            house.gpus(name, "x")
        house.gang(least=3)
        async with house.leading():
            uses = house.claim("c")
            for name in ("p0", "p1", "p2"):
                house.pod(name, "g", cores=1, **uses)
            await house.decide()
            (node,) = set(house.server.bindings.values())
            assert house.server.bindings.keys() == {"p0", "p1", "p2"}
            assert devices(house, "c") == [(node, "x")]
            assert users(house, "c") == {"p0", "p1", "p2"}
            assert house.mirror.devices.in_use.promised == {}
            assert {one.spec for one in house.session.engine.pods.values()} <= house.session.engine.specs.keys()
            for one in house.session.engine.pods.values():
                spec = house.session.engine.specs[one.spec]
                assert not spec.placement.rules, "once it is bound it asks for nothing but what it takes"

    played(play)


def test_a_gang_that_shares_a_claim_and_fits_on_no_node_takes_nothing() -> None:
    """Where it fits later, it starts; others' claims are counted beside it."""

    async def play(house: Backstage) -> None:
        for name in "ab":
            house.node(name)
            house.gpus(name, "x")
        house.gang()
        async with house.leading():
            uses = house.claim("c")
            for name in ("p0", "p1"):
                house.pod(name, "g", cores=3, **uses)
            await house.decide(3)
            assert (house.server.bindings, devices(house, "c"), users(house, "c")) == ({}, [], set())
            house.node("large", 8)
            house.gpus("large", "x")
            house.pod("single", cores=1, **house.claim("own"), nodeSelector={"kubernetes.io/hostname": "a"})
            await house.decide(2)
            assert {house.server.bindings.get(name) for name in ("p0", "p1")} == {"large"}
            assert devices(house, "c") == [("large", "x")]

    played(play)


def test_a_claim_that_is_shared_waits_with_its_gang_for_victims() -> None:
    """The pod for which the devices were to be given is gone meanwhile: another one of the group has them given."""

    async def play(house: Backstage) -> None:
        house.node("a")
        house.gpus("a", "x")
        house.low("low", "a", cores=3)
        house.gang()
        async with house.leading():
            uses = house.claim("c")
            for name in ("p0", "p1", "p2"):
                house.pod(name, "g", cores=1, **uses)
            await house.decide()
            assert house.server.evicted == ["low"]
            assert house.session.engine.pods["low"].state == types.LEAVING
            assert house.server.bindings == {}
            owner = house.mirror.devices.in_use.promised["c"]
            house.gone(owner)
            assert house.mirror.devices.in_use.promised["c"] != owner
            house.gone("low")
            await house.decide(2)
            assert house.server.bindings.keys() == {"p0", "p1", "p2"} - {owner} == users(house, "c")
            assert devices(house, "c") == [("a", "x")]

    played(play)
