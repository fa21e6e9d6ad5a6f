"""Who may not be evicted, for a budget, is deleted for those who go before budgets, and for nobody else."""

from __future__ import annotations

import pytest

from kube.act.backstage import Backstage, played
from slacktide.kube.client.http import ApiError
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.resources.custom_resources import ServiceClass, ServiceClassSpec
from slacktide.kube.resources.objects import POD_DISRUPTION_BUDGET
from support import made_objects


def guarded(house: Backstage, left: int, before: bool = True) -> None:
    """A node that a low pod fills, and a budget that lets it go or not, of which the API server knows better."""
    spec = ServiceClassSpec(0.9, 1, namespaces=("*",), before_budgets=before)
    house.mirror.on_class_update(ServiceClass(Metadata("high"), spec))
    budget(house, left)
    house.node("a")
    house.pod("low", node="a", cls="low", labels={"app": "web"}, owner="web")
    refusal = ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    house.server.refuses = lambda kind, _name: refusal if kind == "eviction" else None


def budget(house: Backstage, left: int) -> None:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    body = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec, "status": {"disruptionsAllowed": left}}
    house.mirror.on_budget_update(made_objects.decoded(POD_DISRUPTION_BUDGET, body))


@pytest.mark.parametrize(
    ("setting", "before", "gone"), [("last-resort", True, True), ("last-resort", False, False), ("hard", True, False)]
)
def test_whom_a_budget_protects_is_deleted_at_last(setting: str, before: bool, gone: bool) -> None:
    async def play(house: Backstage) -> None:
        guarded(house, 0, before)
        async with house.leading():
            house.pod("high")
            await house.decide(2)
            assert house.server.deleted == (["low"] if gone else [])
            house.gone(*house.server.deleted)
            await house.decide()
            assert house.server.bindings == ({"high": "a"} if gone else {})

    played(play, disruption_budgets=setting)


def test_who_was_thought_to_be_unprotected_is_not_deleted_before_others_were_looked_for() -> None:
    async def play(house: Backstage) -> None:
        guarded(house, 1)
        house.node("b")
        house.low("free-1", "b", 1)
        house.low("free-2", "b", 3)
        async with house.leading():
            house.pod("high")
            await house.decide()  # one victim is less than two
            assert house.server.deleted == []
            house.server.refuses = lambda _kind, _name: None
            await house.decide()
            assert sorted(house.server.evicted) == ["free-1", "free-2"]
            assert house.server.deleted == []

    played(play, disruption_budgets="last-resort")
