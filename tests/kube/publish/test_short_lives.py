"""Who lives much shorter than its promise's window is told so, once of each class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.workbench import BRONZE, GOLD, SILVER, T0, Workbench
from slacktide.kube.client.metadata import Reference
from slacktide.kube.publish.state_events import ShortLives
from slacktide.kube.translate.owners import Target
from slacktide.model import Window

HOUR, DAY = 3600.0, 86_400.0
MONTHLY = replace(SILVER, window=Window(rolling=30 * DAY))
WEEKLY = replace(BRONZE, window=Window(calendar="1w"))


class Scene:
    """An engine with promises over a life, rolling 30 days and calendar weeks, and what is told."""

    def __init__(self) -> None:
        self.bench = Workbench(classes=(GOLD, MONTHLY, WEEKLY))
        self.told: list[tuple[str, str]] = []
        self.lives = ShortLives(self.record, self.bench.engine)

    def record(self, reference: Reference, reason: str, note: str, *, event_type: str, action: str) -> None:
        assert (reason, event_type, action) == ("ShortLife", "Normal", "Promising")
        self.told.append((reference.name, note))

    def lived(self, name: str, cls: int, seconds: float, kind: str = "independent") -> list[str]:
        """A workload of one pod lives so long and is deleted; what is told of it."""
        target = Target("apps/v1", "Deployment", "shop", name, f"uid-{name}")
        self.bench.controller(target.key, kind, cls)
        self.bench.engine.arrive(name, name, target.key, cls, T0)
        before = len(self.told)
        self.lives.ends(target, T0 + seconds)
        return [note for one, note in self.told[before:] if one == name]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_life_of_less_than_a_tenth_of_the_window_is_told_once_of_each_class(scene: Scene) -> None:
    assert scene.lived("long", 1, 3.1 * DAY) == []
    (note,) = scene.lived("short", 1, 2 * HOUR)
    assert note.startswith("deleted after 2h, less than a tenth of the window of class silver (rolling 30d); ")
    assert "window: lifetime" in note
    assert scene.lived("again", 1, HOUR) == []
    (note,) = scene.lived("other", 2, 3 * HOUR)
    assert "class bronze (calendar 1w)" in note


def test_nobody_is_told_whose_promise_is_over_its_life_anyway(scene: Scene) -> None:
    assert scene.lived("life", 0, 1.0) == []
    assert scene.lived("job", 1, 1.0, "batch") == []


def test_instances_that_are_younger_than_their_workload_make_no_short_life(scene: Scene) -> None:
    """It was rolled out an hour ago."""
    target = Target("apps/v1", "Deployment", "shop", "old", "uid-old")
    engine = scene.bench.engine
    scene.bench.controller(target.key, "concurrent", 1)
    engine.arrive("first", "first", target.key, 1, T0)
    engine.desired(target.key, 0, T0 + 20 * DAY)
    engine.gone("first", T0 + 20 * DAY)
    engine.desired(target.key, 1, T0 + 20 * DAY)
    engine.arrive("second", "second", target.key, 1, T0 + 20 * DAY)
    scene.lives.ends(target, T0 + 20 * DAY + HOUR)
    assert scene.told == []


def test_a_class_with_an_slo_of_the_workloads_own_is_that_class(scene: Scene) -> None:
    own = replace(MONTHLY, name="silver@0.95", slo=0.95)
    target = Target("apps/v1", "Deployment", "shop", "own", "uid-own")
    scene.bench.engine.controller(target.key, own, 0, False)
    scene.bench.engine.arrive("own", "own", target.key, 1, T0)
    scene.lives.ends(target, T0 + HOUR)
    (told,) = scene.told
    assert "class silver (rolling 30d)" in told[1]
    assert scene.lived("short", 1, HOUR) == []
