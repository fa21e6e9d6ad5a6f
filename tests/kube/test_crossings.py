"""A pod that waits preempts at the instant at which its slack meets its margin: a leader, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kube.act.backstage import ANSWER_SECONDS, NOW, Backstage, Overload, played
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.resources.custom_resources import WindowSpec
from slacktide.kube.resources.objects import ServiceClass, ServiceClassSpec

HOUR = WindowSpec(rolling="1h")
ALPHA = 22.37107
ROUNDED = 0.05
"""Seconds, for what comes after a decision until the API server has heard of it."""


@pytest.fixture(autouse=True)
def _told_by_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a watch would tell is told by the test, so that no watch is dead."""
    monkeypatch.setattr(Watches, "stale", lambda _watches: "")


def preempted_after(
    *waiting: tuple[float, float], overload: Overload = "triage", arriving: Sequence[float] = ()
) -> list[float]:
    """Seconds from their arrivals until somebody has to leave for each of these pods: (SLO, margin) of their classes.

    They come ``arriving`` seconds after the start, one after the other. Every node is full of pods of a class that
    can spare them.
    """
    found: list[float] = []

    async def play(house: Backstage) -> None:
        loop = asyncio.get_running_loop()
        name, rank = "low", 3
        house.mirror.on_class_update(
            ServiceClass(Metadata(name), ServiceClassSpec(0.1, rank, namespaces=("*",), window=HOUR))
        )
        for i, (slo, margin) in enumerate(waiting):
            spec = ServiceClassSpec(slo, 1, margin, namespaces=("*",), window=HOUR)
            house.mirror.on_class_update(ServiceClass(Metadata(f"high-{i}"), spec))
            house.node(f"node-{i}")
            house.low(f"low-{i}", f"node-{i}")
        async with house.leading():
            deciding = asyncio.create_task(house.session.decide())
            begun = [*arriving, *[1.0] * (len(waiting) - len(arriving))]
            for i, at in enumerate(begun):
                loop.call_at(at, house.pod, f"high-{i}", "", "", 4, f"high-{i}")
            while len(house.server.evicted) < len(waiting):
                await asyncio.sleep(0.01)
                assert house.clock() < NOW + 300.0
                found.extend(loop.time() for _ in house.server.evicted[len(found) :])
            deciding.cancel()
        found[:] = [at - since for at, since in zip(found, begun, strict=True)]

    played(play, "qos-driven", overload)
    return found


@pytest.mark.parametrize(
    ("slo", "margin", "expected"),
    [(0.99, 20.0, 0.0), (0.99, 10.0, 3.63), (0.99, 0.0, 13.63), (0.985, 10.0, 21.63)],
)
def test_a_pod_preempts_when_its_slack_meets_its_margin(slo: float, margin: float, expected: float) -> None:
    [seconds] = preempted_after((slo, margin))
    assert expected <= seconds < expected + ANSWER_SECONDS + ROUNDED
    assert expected == pytest.approx(max(0.0, 3600.0 * (1.0 - slo) - ALPHA - margin), abs=0.005)
