"""A pod over which those stumble who carry out decisions, and tell of them, keeps nobody else waiting."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kube.act.backstage import Backstage, played
from slacktide.engine.core import types
from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.act.binder import Binder
from slacktide.kube.act.eviction import Evictor
from slacktide.kube.client.kinds import TOO_DEEP, Malformed
from slacktide.kube.mirror.barrier import DEFECT
from slacktide.kube.resources.objects import POD, RESOURCE_CLAIM


def stumbles(monkeypatch: pytest.MonkeyPatch, owner: type, method: str, uid: str) -> None:
    """A method fails for one pod."""
    whole = getattr(owner, method)

    def failing(self: Any, first: Any, *args: Any, **named: Any) -> Any:
        if getattr(first, "uid", first) == uid:
            raise ArithmeticError("nobody expected that")
        return whole(self, first, *args, **named)

    monkeypatch.setattr(owner, method, failing)


@pytest.mark.parametrize("method", ["_bind", "_prepare_and_bind"])
def test_who_cannot_be_bound_waits_and_others_are_bound(
    method: str, monkeypatch: pytest.MonkeyPatch, defects: list[logging.LogRecord]
) -> None:
    stumbles(monkeypatch, Binder, method, "bad")

    async def play(house: Backstage) -> None:
        house.node("a", cores=12)
        house.gpus("a", "one", "two")
        for name in ("bad", "good"):
            house.pod(name, **house.claim(f"of-{name}"))
        async with house.leading():
            await house.decide()
            assert house.server.bindings == {"good": "a"}
            assert house.session.engine.pods["bad"].state in (types.ASLEEP, types.WAITING)
            assert house.mirror.barrier.counts == {("Pod", DEFECT): 1}
            await house.decide(2)
            house.pod("later", cores=1)
            await house.decide()
            assert house.server.bindings.keys() == {"good", "later"}

    played(play)
    assert defects


def test_a_victim_that_cannot_be_evicted_stays_and_others_go(
    monkeypatch: pytest.MonkeyPatch, defects: list[logging.LogRecord]
) -> None:
    stumbles(monkeypatch, Evictor, "_evict", "low-bad")

    async def play(house: Backstage) -> None:
        for name in ("bad", "good"):
            house.node(name)
            house.low(f"low-{name}", name)
            house.pod(f"high-{name}")
        async with house.leading():
            await house.decide()
            assert house.server.evicted == ["low-good"]
            house.gone("low-good")
            await house.decide()
            assert "good" in house.server.bindings.values(), "who had to wait for it is bound"
            assert house.session.engine.pods["low-bad"].state == types.PLACED, "it stays"
            assert house.session.actor.counts.evictions_refused >= 1

    played(play)
    assert defects


def test_whose_reason_cannot_be_told_keeps_nobody_from_hearing_his(
    monkeypatch: pytest.MonkeyPatch, defects: list[logging.LogRecord]
) -> None:
    stumbles(monkeypatch, Explainer, "explain", "bad")

    async def play(house: Backstage) -> None:
        house.node("a", cores=1)
        for name in ("bad", "good", "better"):
            house.pod(name)
        async with house.leading(telling=True):
            await house.decide()
            told = {key[0].name for key in house.session._replica.recorder._known if key[1] == "FailedScheduling"}
            assert told == {"good", "better"}
            unusable = {key[0].name for key in house.session._replica.recorder._known if key[1] == "Unusable"}
            assert unusable == {"bad"}, "and an event says so"

    played(play)
    assert defects


def test_a_new_leader_tells_of_what_was_set_aside_while_nobody_led() -> None:
    async def play(house: Backstage) -> None:
        for name in ("deep", ""):  # of one without a name nobody can be told
            problem = Malformed("shop", name, name, "1", "found more levels than can be read", reason=TOO_DEEP)
            house.mirror.barrier.unreadable(RESOURCE_CLAIM, problem)
        async with house.leading():
            (told,) = house.session._replica.recorder._known.values()
            assert (told.reference.kind, told.reference.name, told.reason) == ("ResourceClaim", "deep", "Unusable")
            assert told.note == "ignored until it changes: found more levels than can be read"
            house.mirror.barrier.unreadable(POD, Malformed("shop", "p", "p", "1", "spec: no"))
            assert len(house.session._replica.recorder._known) == 2, "and of what is set aside later"

    played(play)
