"""Events about a workload itself: one for each change of its promise's state, and not too many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.workbench import T0, Workbench
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.slo_status import SloStatus, slo_status
from slacktide.kube.client.metadata import Reference
from slacktide.kube.publish import state_events
from slacktide.kube.publish.state_events import LEAST_SECONDS, MOST_A_SECOND, MOST_AT_ONCE, StateEvents
from slacktide.kube.translate.owners import Target

Told = tuple[str, str, str, str]


class Scene:
    """An engine, those who tell about it, and what they told: workload, reason, type, note."""

    def __init__(self, workloads: int = 1) -> None:
        self.bench = Workbench(hosts=max(3, workloads))
        self.now = 0.0
        self.told: list[Told] = []
        names = [f"c{i}" for i in range(workloads)]
        self.targets = {one: Target("apps/v1", "Deployment", "shop", one, f"uid-{one}") for one in names}
        for one in names:
            self.bench.controller(one, "independent")
        self.events = self.leader()

    def leader(self) -> StateEvents:
        return StateEvents(self.record, self.bench.engine, self.targets, lambda: T0 + self.now)

    def record(self, reference: Reference, reason: str, note: str, *, event_type: str, action: str) -> None:
        assert (reference.api_version, reference.kind, reference.namespace) == ("apps/v1", "Deployment", "shop")
        assert reference.uid == f"uid-{reference.name}"
        assert action == "Promising"
        self.told.append((reference.name, reason, event_type, note))

    def look(self, at: float) -> list[Told]:
        """What is told at ``at``, seconds since the beginning."""
        self.now = at
        before = len(self.told)
        self.events.compare(overview(self.bench.engine, T0 + at))
        return self.told[before:]

    def runs(self, name: str = "c0", since: float = 0.0, ready: float = 10.0) -> None:
        """A pod comes, waits, and is ready from then on."""
        self.bench.arrive(f"pod-{name}", name, since)
        self.bench.run(since)
        self.bench.engine.bound(f"pod-{name}", T0 + since)
        self.bench.ready(f"pod-{name}", ready)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_promise_is_missed_recovers_and_is_told_once_each(scene: Scene) -> None:
    """Half is promised: after 10 s without, it has half by second 20, and a margin of 10 s (alpha is another 10)."""
    scene.runs()
    (told,) = scene.look(15)
    assert told[:3] == ("c0", "Missed", "Warning")
    assert told[3].startswith("delivered 0.333333, promised 0.5 of class bronze; 1 of 1 pods ready")
    assert scene.look(16) == scene.look(18) == []
    (told,) = scene.look(26)
    assert told[:3] == ("c0", "AtRisk", "Warning")
    assert told[3].startswith("was Missed; ")
    assert "if all pods stopped now it would break in 6.0 s" in told[3]
    (told,) = scene.look(300)
    assert told[:3] == ("c0", "Recovered", "Normal")
    assert told[3].startswith("was AtRisk; delivered 0.966667")
    assert scene.look(400) == []


def test_a_workload_that_keeps_its_promise_from_the_first_on_is_not_told_about(scene: Scene) -> None:
    scene.runs(ready=0.0)
    assert scene.look(500) == []


def test_a_state_that_changes_again_at_once_is_told_as_it_stands_later(scene: Scene) -> None:
    scene.runs()
    assert [one[1] for one in scene.look(19.5)] == ["Missed"]
    scene.bench.gone("pod-c0", 21)  # kept for a second, and missed again
    assert scene.look(20.5) == []
    assert scene.look(22.5) == []
    assert scene.look(19.5 + LEAST_SECONDS) == []  # it is missed by then, as was told


def test_a_new_leader_repeats_nothing_and_tells_what_changed_meanwhile(scene: Scene) -> None:
    scene.runs()
    scene.look(15)
    scene.events = scene.leader()
    scene.events.knew([("c0", "Missed")])
    assert scene.look(16) == []
    (told,) = scene.look(300)
    assert told[1] == "Recovered"
    assert told[3].startswith("was Missed; ")


def test_a_state_that_nobody_knows_counts_as_none(scene: Scene) -> None:
    scene.runs()
    scene.events.knew([("c0", "Superb")])
    assert [one[1] for one in scene.look(15)] == ["Missed"]


def test_who_is_no_more_is_forgotten(scene: Scene) -> None:
    scene.runs()
    scene.look(15)
    scene.events.forget("c0")
    assert [one[1] for one in scene.look(16)] == ["Missed"]


def test_of_many_changes_at_once_all_are_told_in_time() -> None:
    count = int(MOST_AT_ONCE) + 50
    scene = Scene(count)
    for i in range(count):
        scene.runs(f"c{i}")
    assert len(scene.look(15)) == MOST_AT_ONCE
    assert len(scene.look(16)) == MOST_A_SECOND
    rest: list[Told] = []
    look: Callable[[float], list[Told]] = scene.look
    for at in (17, 18, 19):
        rest += look(at)
    assert len(rest) == count - MOST_AT_ONCE - MOST_A_SECOND
    assert len({one[0] for one in scene.told}) == count


def crowd(more: int) -> tuple[Scene, list[str]]:
    """More have missed their promises than may be told about at once; who waits, in order."""
    count = int(MOST_AT_ONCE) + more
    scene = Scene(count)
    for i in range(count):
        scene.runs(f"c{i}")
    scene.look(15)
    return scene, [f"c{i}" for i in range(int(MOST_AT_ONCE), count)]


def look_at_one(scene: Scene, at: float) -> list[tuple[str, str]]:
    """Who is told about though another one is looked at: of many only some are at a time."""
    before, scene.now = len(scene.told), at
    scene.events.compare(overview(scene.bench.engine, T0 + at, ["c0"]))
    return [(name, reason) for name, reason, *_ in scene.told[before:]]


def test_who_waits_longest_is_told_about_first_and_as_it_stands_then() -> None:
    scene, waiting = crowd(7)
    assert look_at_one(scene, 15.2) == [(name, "Missed") for name in waiting[:4]]
    assert look_at_one(scene, 26.0) == [(name, "AtRisk") for name in (*waiting[4:], "c0")]
    assert ["was Missed" in one[3] for one in scene.told[-2:]] == [False, True]
    assert look_at_one(scene, 27.0) == []


def test_who_keeps_its_promise_when_its_turn_comes_is_not_told_about_and_only_some_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, waiting = crowd(2 * int(MOST_AT_ONCE))
    looked: list[str] = []

    def status(engine: Engine, key: str, at: float) -> SloStatus:
        looked.append(key)
        return slo_status(engine, key, at)

    monkeypatch.setattr(state_events, "slo_status", status)
    told = look_at_one(scene, 300.0)
    assert told == []  # c0 has its turn after those
    assert looked == waiting[: int(MOST_AT_ONCE)]
    assert look_at_one(scene, 301.0) == []
    assert looked == waiting
    assert look_at_one(scene, 302.0) == [("c0", "Recovered")]


def test_who_is_no_more_is_not_told_about_at_its_turn() -> None:
    scene, (forgotten, untargeted, unknown, last) = crowd(4)
    scene.events.forget(forgotten)
    del scene.targets[untargeted]
    scene.bench.gone(f"pod-{unknown}", 15.0)
    scene.bench.engine.controller_gone(unknown, T0 + 15.0)
    assert look_at_one(scene, 16.0) == [(last, "Missed")]
