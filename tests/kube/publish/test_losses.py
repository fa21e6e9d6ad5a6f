"""Seconds by cause, as metrics: bounded, exact, and never falling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from prometheus_client.core import Metric

from engine.workbench import BRONZE, T0, Workbench
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.checkpoint import moved
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.rest import at_rest
from slacktide.engine.ledger.restore import restore
from slacktide.kube.housekeeping import LossTotals
from slacktide.kube.observe.availability_metrics import by_class, by_workload
from slacktide.kube.translate.owners import Target
from slacktide.model import ServiceClass
from slacktide.model.causes import WORKLOAD
from slacktide.model.window import Window
from slacktide.state.spec import Spec

TARGET = Target("apps/v1", "Deployment", "shop", "web", "u1")
WHO = {"namespace": "shop", "kind": "Deployment", "name": "web", "class": "bronze"}


def ran() -> Engine:
    """Waits for 2 s, starts up for 8, runs from 10 to 40, fails its probe from then on."""
    bench = Workbench()
    bench.controller(TARGET.key, "independent")
    engine = bench.engine
    engine.arrive("p", "p", TARGET.key, 2, T0)
    engine.bound_elsewhere("p", "node-0", T0 + 2)
    engine.ready("p", T0 + 10)
    engine.blame("p", WORKLOAD, T0 + 40)
    engine.unready("p", T0 + 40)
    return engine


def samples(found: Iterable[Metric]) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("cause", "")): sample.value for family in found for sample in family.samples
    }


def test_a_workload_has_counters_by_cause_and_its_slack() -> None:
    found = overview(ran(), T0 + 100)
    families = list(by_workload(found, {TARGET.key: TARGET}, 1))
    assert samples(families) == {
        ("slacktide_workload_good_seconds_total", ""): 30.0,
        ("slacktide_workload_lost_seconds_total", "cluster"): 10.0,
        ("slacktide_workload_lost_seconds_total", "workload"): 60.0,
        ("slacktide_workload_lost_seconds_total", "operator"): 0.0,
        ("slacktide_workload_slack_seconds", ""): pytest.approx(90 / 0.5 - 100 - 10),
        ("slacktide_workload_budget_left_ratio", ""): pytest.approx(0.8),  # of 50 s ten are lost
        ("slacktide_workload_budget_seconds", ""): pytest.approx(0.5 * 30 * 86400),  # it promises a whole life
        ("slacktide_class_budget_seconds", ""): pytest.approx(0.5 * 30 * 86400),
        ("slacktide_class_window_seconds", ""): 30 * 86400,
        ("slacktide_class_workloads_unlisted", ""): 0.0,
    }
    of_it = [sample for family in families for sample in family.samples if "_class_" not in sample.name]
    assert all(WHO.items() <= sample.labels.items() for sample in of_it)
    unlisted = samples(by_workload(found, {TARGET.key: TARGET}, 0))
    assert unlisted == {  # more than wanted: by class only
        ("slacktide_class_workloads_unlisted", ""): 1.0,
        ("slacktide_class_budget_seconds", ""): pytest.approx(0.5 * 30 * 86400),
        ("slacktide_class_window_seconds", ""): 30 * 86400,
    }


def test_a_promise_of_ones_own_is_in_ones_own_budget_and_not_in_the_classs() -> None:
    """A pod that may be down half of the time leave the class no more to lose than it promises."""
    bench, targets = Workbench(), {}
    gold = ServiceClass("gold", 0.999, 1, window=Window(rolling=7 * 86400.0))
    for name, service in (("web", gold), ("low", replace(gold, name="gold@0.5", slo=0.5))):
        target = Target("apps/v1", "Deployment", "shop", name, name)
        targets[target.key] = target
        bench.engine.controller(target.key, service, 0, False)
        bench.engine.spec(len(targets) + 100, Spec((("cpu", 1),), service))
        bench.engine.arrive(name, name, target.key, len(targets) + 100, T0)
    families = {one.name: one for one in by_workload(overview(bench.engine, T0 + 10), targets, 2)}
    own = {one.labels["name"]: one.value for one in families["slacktide_workload_budget_seconds"].samples}
    assert own == {"web": pytest.approx(604.8), "low": pytest.approx(302_400.0)}
    (of_class,) = families["slacktide_class_budget_seconds"].samples
    assert of_class.labels == {"class": "gold"}
    assert of_class.value == pytest.approx(2 * 604.8)
    (window,) = families["slacktide_class_window_seconds"].samples
    assert window.value == 604_800.0


def test_beyond_so_many_workloads_the_excess_has_no_series_and_others_keep_theirs() -> None:
    """Whoever makes many takes them from nobody but himself."""
    bench = Workbench()
    targets = {}
    for namespace, count in (("crowd", 60), ("few", 3), ("some", 10)):
        for number in range(count):
            target = Target("apps/v1", "Deployment", namespace, f"w{number}", f"{namespace}-{number}")
            targets[target.key] = target
            bench.controller(target.key, "independent")
    found = overview(bench.engine, T0 + 100)

    def listed(most: int) -> dict[str, list[str]]:
        families = list(by_workload(found, targets, most))
        assert samples(families)["slacktide_class_workloads_unlisted", ""] == len(targets) - min(most, len(targets))
        slack = next(one for one in families if one.name == "slacktide_workload_slack_seconds")
        theirs: dict[str, list[str]] = {"crowd": [], "few": [], "some": []}
        for sample in slack.samples:
            theirs[sample.labels["namespace"]].append(sample.labels["name"])
        return theirs

    assert {name: len(names) for name, names in listed(30).items()} == {"crowd": 17, "few": 3, "some": 10}
    assert {name: len(names) for name, names in listed(6).items()} == {"crowd": 2, "few": 2, "some": 2}
    assert {name: len(names) for name, names in listed(100).items()} == {"crowd": 60, "few": 3, "some": 10}
    assert listed(30)["crowd"] == [f"w{number}" for number in range(17)], "those known for longest"


def test_counters_by_class_take_in_what_ledgers_gain_and_never_fall() -> None:
    engine, totals = ran(), LossTotals()
    totals.see(overview(engine, T0 + 50))
    assert sum(totals.good.values()) == 0.0  # that was before
    totals.see(overview(engine, T0 + 60))
    engine.ready("p", T0 + 70)
    totals.see(overview(engine, T0 + 100))
    expected = {
        ("slacktide_class_good_seconds_total", ""): 30.0,
        ("slacktide_class_lost_seconds_total", "cluster"): 0.0,
        ("slacktide_class_lost_seconds_total", "workload"): 20.0,
        ("slacktide_class_lost_seconds_total", "operator"): 0.0,
        ("slacktide_class_seconds_total", ""): 50.0,
    }
    assert samples(by_class(totals)) == expected
    rest = at_rest(export(engine, TARGET.key, T0 + 100))
    engine.desired(TARGET.key, 0, T0 + 100)
    engine.gone("p", T0 + 100)
    engine.controller_gone(TARGET.key, T0 + 100)
    totals.forget(TARGET.key)
    engine.controller("again", BRONZE, 0, False)  # one of its name goes on from its ledger
    restore(engine, "again", moved(rest, T0 + 200), [], T0 + 200)
    totals.see(overview(engine, T0 + 200))
    assert samples(by_class(totals)) == expected


def test_hundreds_of_workloads_come_and_go_and_each_gains_from_its_own_beginning() -> None:
    """Whoever comes takes the place of one that went, and nothing of what that had."""
    bench, totals = Workbench(), LossTotals()
    engine = bench.engine

    def come(number: int, at: float) -> None:
        engine.controller(f"c{number}", BRONZE, 0, False)
        engine.arrive(f"p{number}", "p", f"c{number}", 2, at)

    for number in range(150):
        come(number, T0)
    totals.see(overview(engine, T0 + 100))
    totals.see(overview(engine, T0 + 101))
    assert sum(totals.lost.values()) == 150.0
    for number in range(0, 150, 2):
        engine.gone(f"p{number}", T0 + 101)
        engine.controller_gone(f"c{number}", T0 + 101)
        totals.forget(f"c{number}")
    for number in range(150, 300):
        come(number, T0 + 101)
    totals.see(overview(engine, T0 + 111))  # of those that came, what they had was before
    assert sum(totals.lost.values()) == 150.0 + 75 * 10.0
    totals.see(overview(engine, T0 + 112))
    assert sum(totals.lost.values()) == 150.0 + 75 * 11.0 + 150.0
    assert sum(totals.good.values()) == 0.0
