"""What is held back for a start follows from the starts that were measured, and a new leader goes on with that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from kube.feed.test_blame import Heard, World, kept
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.journal.replay import carry_out
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.starts import ENOUGH, KEPT, Known, quantile
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.resources.objects import Availability, ServiceClass, ServiceClassSpec


class Starting(World):
    """Its pods come one after the other; each runs for ten seconds."""

    def __init__(self, service: dict[str, Any] | None = None, **kube: Any) -> None:
        self.made = 0
        self.settings = kube
        super().__init__()
        if service is not None:
            self.mirror.on_class_update(
                ServiceClass(Metadata("silver"), ServiceClassSpec(0.9, 2, namespaces=("*",), **service))
            )
        self.owner()

    def lead(self, ledgers: dict[str, Availability] | None = None) -> None:
        self.config = replace(self.config, kube=replace(self.config.kube, **self.settings))
        self.operations: list[Operation] = []
        self.engine, self.heard = Engine(self.config, self.operations.append), Heard()
        self.feed = LiveFeed(self.mirror, self.engine, self.heard, self.clock, lambda: 0.0)
        take_over(self.feed, ledgers or {}, lambda _decision, _leaving: None)
        self.mirror._followers[:] = [self.feed]

    def start(self, seconds: float, node: str = "a", **more: Any) -> str:
        """A pod comes, is bound at once, and is ready after so long; it stays."""
        self.made += 1
        name, created = f"p{self.made}", self.t
        self.pod(name, created=created, **more)
        self.pod(name, node, created=created, **more)
        self.t += seconds
        self.pod(name, node, created=created, bound=created, ready=self.t, started=created, **more)
        self.t += 10.0
        return name

    def starts(self, times: Iterable[float], node: str = "a") -> None:
        """One after the other: each pod is gone before the next comes."""
        for seconds in times:
            self.drop(self.start(seconds, node))

    @property
    def alpha(self) -> float | None:
        return self.engine.controllers[self.key].service.alpha

    def holds(self) -> float:
        return self.status().alpha


def test_from_a_few_starts_on_a_workload_holds_back_what_they_take() -> None:
    world = Starting()
    world.starts([70.0] * (ENOUGH - 1))
    assert world.alpha is None
    world.starts([70.0] * ENOUGH)  # the first was on a node that was cold
    assert world.alpha == world.holds() == 90.0
    assert world.engine.controllers[world.key].service.name == "silver"


def test_its_pods_are_of_that_class_and_their_slack_is_less_by_it() -> None:
    world = Starting()
    first = world.start(0.0)
    slack = world.status().slack
    assert slack is not None
    world.starts([100.0] * ENOUGH)
    engine = world.engine
    assert {engine.specs[one.spec].service.alpha for one in engine.pods.values()} == {120.0}
    cls = engine.tables.tb["kinds"]["cls"][engine.tables.tb["instances"]["kind"][engine.pods[first].row]]
    assert engine.tables.tb["classes"]["alpha"][cls] == 120.0
    assert engine.tables.tb["requests"]["cls"][engine.controllers[world.key].q] == cls


def test_what_the_class_holds_back_is_the_least() -> None:
    quick, sure = Starting(), Starting({"alpha": "4m"})
    for world in (quick, sure):
        world.starts([15.0 if world is quick else 150.0] * 2 * KEPT)
    assert (quick.alpha, sure.alpha) == (None, 240.0)
    assert quick.holds() == pytest.approx(quick.config.qos.alpha, abs=1e-6)


def test_what_a_start_may_take_at_the_clusters_expense_is_the_most() -> None:
    world = Starting(startup_allowance=100.0)
    world.starts([1000.0] * 2 * ENOUGH)
    assert world.alpha == 100.0


def test_what_a_workload_says_itself_holds() -> None:
    world = Starting({"alpha": "30s"})
    world.owner(annotations={"slacktide.io/alpha": "1m"})
    world.starts([200.0] * 2 * ENOUGH)
    assert world.alpha == 60.0
    world.owner()
    assert world.alpha == 240.0


def test_where_it_is_switched_off_nothing_is_learned_and_nothing_is_kept() -> None:
    learned, off = Starting(), Starting(learn_startup=False)
    for world in (learned, off):
        world.starts([200.0] * 2 * ENOUGH)
        world.start(200.0)
    assert (learned.alpha, off.alpha) == (240.0, None)
    assert "starts" not in off.feed.controllers.books(off.key, off.clock())
    off.lead(kept(learned))
    assert off.alpha is None


def test_starts_on_nodes_that_ran_it_before_do_not_hide_the_others() -> None:
    """Of twenty starts four were where the images were not."""
    world = Starting()
    world.starts([3.0] * KEPT)
    for number in range(ENOUGH):
        world.node(f"new-{number}")
        world.drop(world.start(110.0, f"new-{number}"))
    assert world.alpha == 120.0
    world.starts([3.0] * KEPT)
    assert world.alpha == 120.0


def test_one_start_in_ten_may_be_slower() -> None:
    assert quantile([5] * 4) == 5
    assert quantile([1, 2, 3, 4]) == 4
    assert quantile([1] * 9 + [50]) == 1
    assert quantile([1] * 14 + [50, 60]) == 50


def test_it_goes_up_at_once_and_down_when_it_is_clearly_less() -> None:
    known, held = Known(), []
    for seconds in (*[100.0] * 4, *[130.0] * 4, *[115.0] * 20, *[80.0] * 20, *[40.0] * 20):
        known.took(seconds, hot=True)
        held.append(known.step)
    steps = [step for place, step in enumerate(held) if place == 0 or held[place - 1] != step]
    assert steps == [0, 120, 180, 90, 45]


def test_a_pod_that_is_ready_again_has_not_started() -> None:
    world = Starting()
    name = world.start(5.0)
    for _ in range(2 * ENOUGH):
        world.t += 500.0
        world.pod(name, "a", created=0.0, unready=world.t, started=0.0)
        world.t += 500.0
        world.pod(name, "a", created=0.0, ready=world.t, started=0.0)
    assert world.alpha is None
    said = world.feed.controllers.books(world.key, world.clock())["starts"]
    assert said == {"hot": [], "cold": [5], "step": 0}


def test_a_new_leader_goes_on_with_what_its_predecessor_measured() -> None:
    world = Starting()
    world.starts([70.0] * 2 * ENOUGH)
    world.start(70.0)
    before = world.feed.controllers.books(world.key, world.clock())["starts"]
    world.lead(kept(world))
    assert world.alpha == 90.0
    assert {world.engine.specs[one.spec].service.alpha for one in world.engine.pods.values()} == {90.0}
    assert world.feed.controllers.books(world.key, world.clock())["starts"] == before
    world.drop("p9")
    world.starts([200.0] * ENOUGH)
    assert world.alpha == 240.0


@pytest.mark.parametrize(
    "starts", [None, 3, {}, {"hot": [1], "cold": ["2"], "step": 0}, {"hot": [1], "cold": [], "step": 7}, {"hot": [-1]}]
)
def test_what_a_ledger_says_of_starts_and_cannot_be_read_counts_for_nothing(starts: Any) -> None:
    world = Starting()
    world.starts([70.0] * 2 * ENOUGH)
    world.start(70.0)
    ledgers = kept(world)
    for one in ledgers.values():
        one.status.accumulators["starts"] = starts
    before = world.status()
    world.lead(ledgers)
    assert world.alpha is None
    assert world.status().delivered == before.delivered


def test_a_workload_that_is_created_anew_goes_on_with_it() -> None:
    world = Starting()
    world.starts([70.0] * 2 * ENOUGH)
    world.mirror.on_controller_delete("web")
    assert not world.engine.controllers
    world.owner(uid="web2")
    world.start(5.0, uid="web2")
    assert world.alpha == 90.0


def test_a_record_decides_the_same_again() -> None:
    """What was learned reaches the engine as an operation: whoever carries them out again needs no clock."""
    world = Starting()
    world.starts([100.0] * 2 * ENOUGH)
    world.start(100.0)
    again = Engine(world.config)
    for one in world.operations:
        carry_out(again, one)
    (controller,) = again.controllers.values()
    assert controller.service.alpha == world.alpha == 120.0
    assert again.tables.tb["classes"].tobytes() == world.engine.tables.tb["classes"].tobytes()
    assert again.latest == world.engine.latest
