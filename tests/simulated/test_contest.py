"""Somebody else binds our pods: for a while nobody is evicted for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.labtools import deployment, pod
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged
from slacktide.kube.act.counts import FEW, QUIET_SECONDS

GOLD = {"slacktide.io/class": "gold"}


@pytest.fixture
def place() -> Iterator[Stage]:
    with staged([service_class("bronze", 0.5, 3, default=True), service_class("gold", 0.999, 1)]) as stage:
        stage.wait(20.0)  # what is bound soon after somebody began to lead may be the last leader's doing
        yield stage


def bind(place: Stage, name: str, node: str) -> None:
    """What another scheduler of our name does."""
    binding: Json = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    place.send("POST", f"{place.path('pods', name)}/binding", binding)


def test_nobody_is_evicted_while_somebody_else_binds_our_pods(place: Stage) -> None:
    first, second = place.nodes(2, cpu="4")
    place.cordon(second)
    place.wait(1.0)
    place.create("deployments", deployment("low", 1, cpu="4"))
    (low,) = place.ready("low")
    for number in range(FEW):
        place.create("pods", pod(f"waits-{number}", cpu="1", nodeSelector={"kubernetes.io/hostname": second}))
    place.waits("waits-0", "were unschedulable")
    for number in range(FEW):
        bind(place, f"waits-{number}", second)
    last = place.now
    place.ready("waits", FEW)
    place.create("pods", pod("high", cpu="4", labels=GOLD))
    place.wait(QUIET_SECONDS - 10.0)
    assert place.life(low).evicted is None
    assert place.node_of("high") == ""
    assert place.bound("high") == first  # once that is over
    assert (place.life(low).told or 0.0) > last + QUIET_SECONDS - 1.0


def test_one_binding_by_a_person_changes_nothing(place: Stage) -> None:
    first, second = place.nodes(2, cpu="4")
    place.cordon(second)
    place.wait(1.0)
    place.create("deployments", deployment("low", 1, cpu="4"))
    place.ready("low")
    place.create("pods", pod("waits", cpu="1", nodeSelector={"kubernetes.io/hostname": second}))
    place.waits("waits", "were unschedulable")
    bind(place, "waits", second)
    place.ready("waits")
    place.create("pods", pod("high", cpu="4", labels=GOLD))
    assert place.bound("high", 40.0) == first
