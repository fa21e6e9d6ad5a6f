"""The series that rules and SLO documents ask for are those that the scheduler tells."""

from __future__ import annotations

import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import yaml
from prometheus_client.core import Metric

from slacktide.kube.observe.availability_metrics import by_class, by_workload
from slacktide.openslo.burn_rates import LABELS, rules_of_any_class
from slacktide.openslo.classes import class_document
from slacktide.openslo.exporting import FORMATS, export
from slacktide.openslo.series import CLASS, WORKLOAD, selector

GOLD = class_document("gold", {"slo": 0.999, "rank": 1, "window": {"rolling": "30d"}})
ASKED = re.compile(rf"\b(?:{WORKLOAD}|{CLASS})_\w+")


def asked() -> set[str]:
    """All series that anything here asks for."""
    texts = [yaml.safe_dump(rules_of_any_class())] + [yaml.safe_dump(export([GOLD], one).documents) for one in FORMATS]
    return {name for text in texts for name in ASKED.findall(text)}


def test_what_is_asked_for_is_known_here() -> None:
    assert asked() == {
        "slacktide_class_budget_seconds",
        "slacktide_class_good_seconds_total",
        "slacktide_class_lost_seconds_total",
        "slacktide_class_seconds_total",
        "slacktide_class_window_seconds",
        "slacktide_class_workloads_unlisted",
        "slacktide_workload_budget_seconds",
        "slacktide_workload_lost_seconds_total",
    }


def test_it_is_told_with_these_labels() -> None:
    totals: Any = SimpleNamespace(good={"gold": 1.0}, lost=Counter({("gold", "cluster"): 1.0}))
    nobody: Any = SimpleNamespace(controllers=(), losses=(), slack=())
    families: list[Metric] = [*by_class(totals), *by_workload(nobody, {}, 2000)]
    names = {f"{one.name}_total" if one.type == "counter" else one.name for one in families}
    assert asked() <= names
    labels = {one.name: set(one.samples[0].labels) for one in families if one.samples}
    assert set(LABELS[CLASS]) | {"cause"} == labels["slacktide_class_lost_seconds"]


def test_names_in_selectors_are_quoted() -> None:
    assert selector(class_='a"b\\', cause="") == '{class="a\\"b\\\\"}'
    assert selector() == ""
