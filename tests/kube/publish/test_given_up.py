"""Where it is told that a plan gives a workload up: events, ledgers as top reads them, metrics, the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from engine.shortage import Shortage
from engine.workbench import T0
from slacktide.cli.cluster.top import Ledgers
from slacktide.dashboard.engine_rows import EngineRows
from slacktide.engine.core.plans import Carried
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kube.client.kinds import encode
from slacktide.kube.client.metadata import Reference
from slacktide.kube.observe.availability_metrics import CARRIED, GIVEN_UP, planned
from slacktide.kube.observe.dashboard import text_of
from slacktide.kube.publish.state_events import LEAST_SECONDS, StateEvents, document
from slacktide.kube.resources.objects import AVAILABILITY, Availability
from slacktide.kube.translate.owners import Target


class Planned(Collector):
    """What plans say, for a registry."""

    def __init__(self, classes: Mapping[str, Carried]) -> None:
        self._classes = classes

    def collect(self) -> Iterator[Metric]:
        yield from planned(self._classes)


class Told:
    """A scene, and the events that tell of it."""

    def __init__(self) -> None:
        self.scene = Shortage()
        self.targets = {
            key: Target("apps/v1", "Deployment", "shop", f"s{i}", f"uid-{i}") for i, key in enumerate(self.scene.keys)
        }
        self.told: list[tuple[str, str, str, str]] = []
        self.events = self.leader()

    def leader(self) -> StateEvents:
        return StateEvents(self.record, self.scene.engine, self.targets, lambda: self.scene.now)

    def record(self, reference: Reference, reason: str, note: str, *, event_type: str, action: str) -> None:
        assert action == "Promising"
        self.told.append((reference.name, reason, event_type, note))

    def run(self, seconds: int) -> list[tuple[str, str, str, str]]:
        """What plans make be told meanwhile; there is a look every second."""
        before = len(self.told)
        for _ in range(seconds):
            self.scene.run(1)
            self.events.compare(overview(self.scene.engine, self.scene.now))
        return [one for one in self.told[before:] if one[1] in ("GivenUp", "TakenBack")]


def test_who_is_given_up_is_told_once_and_once_that_it_is_taken_back() -> None:
    one = Told()
    (given_up,) = one.run(300)
    [key] = one.scene.given_up()
    assert given_up[:3] == (one.targets[key].name, "GivenUp", "Warning")
    assert "capacity carries 8 of the 9 promises of class gold; it takes free room; more room (cpu 1" in given_up[3]
    one.scene.add_host("one-more")
    (taken_back,) = one.run(300)
    assert taken_back[:3] == (one.targets[key].name, "TakenBack", "Normal")
    assert taken_back[3].startswith("no longer given up by the plan; delivered 0.")


def test_what_lasts_for_a_moment_is_not_told() -> None:
    one = Told()
    assert one.run(int(LEAST_SECONDS) - 1) == []
    assert len(one.scene.given_up()) == 1, "but it is not told yet"
    assert len(one.run(60)) == 1
    for given_up in (np.inf, one.scene.now):  # of everybody, as a plan might say that is soon replaced
        for _ in range(int(LEAST_SECONDS) - 1):
            one.scene.now += 1.0
            found = overview(one.scene.engine, one.scene.now)
            one.events.compare(replace(found, given_up=np.full(len(found.given_up), given_up)))
        assert one.run(60) == []


def test_a_new_leader_tells_it_again_only_where_it_changed() -> None:
    one = Told()
    one.run(300)
    [key] = one.scene.given_up()
    one.scene.lead_anew(2.0)
    one.events = one.leader()
    one.events.knew([(other, "Kept") for other in one.scene.keys if other != key], [key])
    assert one.run(120) == []
    one.scene.lead_anew(2.0)
    one.events = one.leader()
    one.events.knew([], [])
    assert [told[:2] for told in one.run(120)] == [(one.targets[key].name, "GivenUp")]


def ledger(one: Told, key: str) -> Availability:
    """The ledger as a program reads it that the API server has given it."""
    scene = one.scene
    said = document(one.targets[key], {"at": scene.now}, slo_status(scene.engine, key, scene.now))
    said["status"].pop("accumulators")
    found = AVAILABILITY.decode(encode(said))
    assert isinstance(found, Availability)
    return found


def test_top_says_whom_and_why() -> None:
    one = Told()
    one.run(300)
    [key] = one.scene.given_up()
    ledgers = Ledgers()
    for other in one.scene.keys:
        ledgers.changed(ledger(one, other))
    name = f"shop/{one.targets[key].ledger}"
    assert ledgers.given_up() == [f"capacity carries 8 of the 9 promises of class gold; given up: {name}"]
    marked = [line for line in ledgers.lines(one.scene.now) if line.given_up is not None]
    assert [line.name for line in marked] == [one.targets[key].ledger]
    assert marked[0].given_up is not None
    assert T0 <= marked[0].given_up <= one.scene.now
    assert "given up" in " ".join(marked[0].cells())


def test_metrics_count_promises_by_class() -> None:
    one = Told()
    one.run(300)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Planned(one.scene.engine.plans.classes))
    text = generate_latest(registry).decode()
    assert f'{CARRIED.name}{{class="gold"}} 8.0' in text
    assert f'{GIVEN_UP.name}{{class="gold"}} 1.0' in text


def test_the_row_of_the_page_has_the_instant() -> None:
    one = Told()
    one.run(300)
    [key] = one.scene.given_up()
    rows, _ = EngineRows(one.scene.engine).workload_rows(one.scene.keys, one.scene.now)
    since = one.scene.engine.plans.since[key]
    assert [row.given_up for row in rows] == [since if other == key else None for other in one.scene.keys]


def test_explain_has_a_line_for_it() -> None:
    ledger = {
        "kind": "Deployment", "name": "web", "class": "gold", "promised": 0.99, "delivered": 0.5, "slack": -3.0,
        "state": "Missed", "running": 0, "waiting": 1, "preemptions": 0, "given_up": "given up by the plan since noon",
    }  # fmt: skip
    found = {"namespace": "shop", "name": "web-1", "exists": False, "history": [], "ledger": ledger}
    assert text_of(found).splitlines()[2] == "  given up by the plan since noon"
    assert len(text_of(found | {"ledger": ledger | {"given_up": ""}}).splitlines()) == 2
