"""Objects that are valid by their schemas, drawn at random, told to the scheduler: nothing fails, whatever they say.

``make fuzz HOURS=1`` plays as many others as there is time for.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.mirror.barrier import UNUSABLE
from slacktide.kube.resources.objects import POD
from support import virtual_time
from support.fuzzed_cluster import STEPS, Fault, FuzzedCluster
from support.schemas import called, schemas, watched

SEEDS = 60
PARTS = 3


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Each object that is set aside is a line in the log; thousands are."""
    caplog.set_level(logging.ERROR, "slacktide")


def played(seed: int) -> FuzzedCluster:
    cluster = FuzzedCluster(seed)
    virtual_time.run(lambda: cluster.live(STEPS))
    return cluster


def some_are_played() -> None:
    for seed in range(10):
        played(seed)


def test_every_kind_that_is_watched_has_a_schema() -> None:
    assert {called(kind) for kind in watched()} <= set(schemas())


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.slow if part > 0 else ()) for part in range(PARTS)]
)
def test_whatever_objects_say_nothing_fails_and_a_pod_as_any_is_scheduled(part: int) -> None:
    kinds: set[str] = set()
    decided = refused = 0
    for seed in range(part, SEEDS, PARTS):
        try:
            found = played(seed)
        except Fault as fault:
            pytest.fail(f"seed {seed}: {fault}")
        kinds |= found.told
        decided += found.decided
        refused += sum(one.reason == UNUSABLE for one in found.aside)
    assert kinds >= {called(one) for one in found.kinds}, "of every kind something was told"
    assert decided > SEEDS / PARTS, "more than the pods as any"


def test_what_fails_is_found(monkeypatch: pytest.MonkeyPatch, defects: list[Any]) -> None:
    def ready(*_: object) -> None:
        raise LookupError("half way")

    monkeypatch.setattr(LiveFeed, "follow_readiness", ready)
    with pytest.raises(Fault, match=r"Pod .* is ignored until it changes: LookupError: half way"):
        some_are_played()
    assert defects


def test_a_watch_that_ends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(_: object) -> None:
        raise LookupError("half way")

    monkeypatch.setattr(POD, "decode", decode)
    with pytest.raises(Fault, match="a watch has ended: LookupError"):
        some_are_played()
