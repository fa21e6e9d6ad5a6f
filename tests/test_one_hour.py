"""The first hour of the published trace: what each policy must achieve on both files."""

from __future__ import annotations

from functools import lru_cache

import pytest

from published import by_class, inputs, settings
from slacktide.metrics import ClassSummary
from slacktide.sim import RunResult, run

pytestmark = pytest.mark.slow

FILES = ("lower", "higher")


@lru_cache(maxsize=8)
def hour(file: str, preset: str, policy: str = "qos-driven") -> tuple[RunResult, dict[str, ClassSummary]]:
    workload, hosts = inputs("one-hour", f"workload-{file}-contention.erl", "hosts-620.erl")
    result = run(workload, hosts, settings(preset, name=policy))
    return result, by_class(workload, result)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("preset", ["published", "recommended"])
def test_every_class_is_fulfilled(file: str, preset: str) -> None:
    _, classes = hour(file, preset)
    assert {name: one.fulfilment["restart"] >= 0.999 for name, one in classes.items()} == dict.fromkeys(classes, True)


@pytest.mark.parametrize(("file", "times"), [("higher", 10), ("lower", 2)])
def test_preempting_only_when_needed_preempts_far_less(file: str, times: int) -> None:
    assert times * hour(file, "recommended")[0].preemptions <= hour(file, "published")[0].preemptions


@pytest.mark.parametrize("file", FILES)
def test_bronze_gets_nearly_as_much_as_by_priority(file: str) -> None:
    mine = hour(file, "recommended")[1]["bronze"].availability["restart"].mean
    theirs = hour(file, "recommended", "priority")[1]["bronze"].availability["restart"].mean
    assert mine >= 0.98 * theirs


def test_priority_lets_bronze_down_on_the_higher_file() -> None:
    result, classes = hour("higher", "recommended", "priority")
    assert 0.94 < classes["bronze"].fulfilment["restart"] < 0.98
    assert classes["bronze"].availability["restart"].mean == pytest.approx(0.920, abs=0.01)
    assert result.preemptions == pytest.approx(8138, rel=0.05)
