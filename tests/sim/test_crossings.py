"""Whoever waits may preempt once its slack meets its margin: there is a pass at that instant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.config import live, preset
from slacktide.model import ServiceClass, Window
from slacktide.sim import RunResult
from support.clusters import Cluster
from support.runs import compare, core, twin
from support.small import Request, machines, small

HOUR = Window(rolling=3600.0)
ALPHA, STEP = 22.37107, 2.0**-20
ARRIVAL, WATCHDOG = 5.0, 10.0


def waiting(*classes: tuple[float, float], at: float = ARRIVAL, apart: float = 0.0, **sections: Any) -> Cluster:
    """A host for each, full; then these (SLO, margin) wait, each for the place of one that can spare it."""
    high = [ServiceClass(f"high-{i}", slo, 1, margin, window=HOUR) for i, (slo, margin) in enumerate(classes)]
    count = len(high)
    rows = [Request(count) for _ in high] + [Request(i, admission=at + i * apart) for i in range(count)]
    one = small(rows, machines(*[1.0] * count), end=200.0, cold=1.0, hot=1.0)
    low = ServiceClass("low", 0.1, 3, window=HOUR)
    one = replace(one, workload=replace(one.workload, classes=(*high, low)))
    one = one.with_(qos={"alpha": ALPHA}, policy={"overload": "triage"}, scheduler={"crossings": True})
    return one.with_(**sections)


def decided(result: RunResult) -> list[float]:
    assert result.decisions is not None
    return [float(at) for at in result.decisions["time"][result.decisions["count"] > 0]]


@pytest.mark.parametrize(
    ("slo", "margin", "expected"), [(0.99, 20.0, 0.0), (0.99, 10.0, 3.63), (0.99, 0.0, 13.63), (0.985, 10.0, 21.63)]
)
def test_a_pass_comes_when_slack_meets_the_margin(slo: float, margin: float, expected: float, tmp_path: Path) -> None:
    one = waiting((slo, margin))
    [at] = decided(core(one, tmp_path))
    assert at - ARRIVAL == pytest.approx(expected, abs=0.005)
    assert at - ARRIVAL == pytest.approx(max(0.0, 3600.0 * (1.0 - slo) - ALPHA - margin), abs=2 * STEP)
    assert compare(core(one, tmp_path), twin(one)) is None


def test_without_such_passes_the_watchdog_finds_it(tmp_path: Path) -> None:
    [at] = decided(core(waiting((0.99, 0.0), scheduler={"crossings": False}), tmp_path))
    assert at - ARRIVAL == 2 * WATCHDOG


def test_nobody_falls_below_a_margin_of_nothing(tmp_path: Path) -> None:
    result = core(waiting((0.99, 0.0)), tmp_path)
    assert result.decisions is not None
    assert float(np.min(result.decisions["metric"])) == -STEP


@pytest.mark.parametrize(("margin", "pause"), [(10.0, 5.0), (4.0, 2.0), (0.0, 1.0), (12.0, 5.0)])
def test_of_many_in_a_row_one_pass_comes_in_half_of_the_margin(margin: float, pause: float, tmp_path: Path) -> None:
    """At least in a tenth of the watchdog's time, at most in half of it."""
    one = waiting(*[(0.99, margin)] * 5, apart=0.125)
    found = decided(core(one, tmp_path))
    assert compare(core(one, tmp_path), twin(one)) is None
    assert len(found) == 5
    assert found[1] - found[0] == pause
    assert found[1:] == [found[1]] * 4


def test_who_has_met_its_margin_in_vain_waits_for_the_watchdog(tmp_path: Path) -> None:
    """Nobody makes room for it: who is there is more important and has a promise of 1."""
    rows = [Request(1), Request(0, admission=ARRIVAL)]
    one = small(rows, machines(1.0), end=100.0, cold=1.0, hot=1.0)
    classes = ServiceClass("gold", 0.99, 2, 10.0, window=HOUR), ServiceClass("first", 1.0, 1, 10.0)
    one = replace(one, workload=replace(one.workload, classes=classes))
    one = one.with_(qos={"alpha": ALPHA}, policy={"overload": "triage"}, scheduler={"crossings": True})
    result = core(one, tmp_path)
    assert result.passes is not None
    times = result.passes["time"][result.passes["time"] > ARRIVAL]
    assert times[0] - ARRIVAL == pytest.approx(3.63, abs=0.005)
    assert set(np.diff(times).tolist()) == {WATCHDOG}


def test_only_a_cluster_has_such_passes_by_itself_and_not_with_the_published_settings() -> None:
    assert not preset("recommended").scheduler.crossings
    assert live(preset("recommended")).scheduler.crossings
    assert not live(preset("published")).scheduler.crossings
