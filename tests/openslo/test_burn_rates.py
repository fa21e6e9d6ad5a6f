"""Alerts on error budgets, as a real Prometheus evaluates them: series that must and that must not make them fire."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from slacktide.openslo.burn_rates import BURNS, USUAL_SECONDS, rules, rules_of_any_class
from slacktide.openslo.classes import class_document
from slacktide.openslo.texts import yaml_text

Json = dict[str, Any]
PROMTOOL = shutil.which("promtool")
REQUIRED = os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1"

needs_promtool = pytest.mark.skipif(
    PROMTOOL is None and not REQUIRED, reason="promtool is not there: apt-get install prometheus"
)

CLASSES = [
    class_document("gold", {"slo": 0.999, "rank": 1, "window": {"rolling": "30d"}}),
    class_document("silver", {"slo": 0.9, "rank": 2}),
    class_document("week", {"slo": 0.999, "rank": 2, "window": {"rolling": "7d"}}),
    class_document("certain", {"slo": 1.0, "rank": 1}),
    class_document("every", {"slo": 0.999, "rank": 1, "counts": "everything"}),
]
HOUR, DAY = 60, 1440
"""Minutes, which are the steps of the series."""
CALM = (0.0, 3 * DAY)
"""Before that something is lost: of a short history the long windows see only what there is."""


def steps(*parts: tuple[float, int]) -> str:
    """A counter that grows by so much a minute for so many minutes, part by part."""
    value, said = 0.0, []
    for slope, minutes in parts:
        said.append(f"{value:.6f}+{slope:.6f}x{minutes - 1}")
        value += slope * minutes
    return " ".join(said)


def workload(service: str, *lost: tuple[float, int], cause: str = "cluster", prefix: str = "workload") -> list[Json]:
    """The counters of a workload (or of a class): shares of time that were lost, each for so many minutes."""
    labels = f'class="{service}"'
    if prefix == "workload":
        labels += ',namespace="shop",kind="Deployment",name="web"'
    found = []
    for one in ("cluster", "workload", "operator"):
        slopes = [(60 * share if one == cause else 0.0, minutes) for share, minutes in lost]
        series = f'slacktide_{prefix}_lost_seconds_total{{{labels},cause="{one}"}}'
        found.append({"series": series, "values": steps(*slopes)})
    good = [(60 * (1 - share), minutes) for share, minutes in lost]
    found.append({"series": f"slacktide_{prefix}_good_seconds_total{{{labels}}}", "values": steps(*good)})
    return found


Alarms = set[tuple[str, str]]
Fire = Callable[[Json, list[Json], int, Alarms], None]


@pytest.fixture
def fire(tmp_path: Path) -> Fire:
    """Checks which alerts fire after so many minutes, by name and long window; promtool says."""

    def check(found: Json, series: list[Json], minutes: int, expected: Alarms) -> None:
        (tmp_path / "rules.yaml").write_text(yaml_text([found]))
        samples = [{"labels": f'{{alertname="{name}",window="{window}"}}', "value": 1} for name, window in expected]
        expr = 'count by (alertname, window) (ALERTS{alertstate="firing"})'
        test = {"expr": expr, "eval_time": f"{minutes}m", "exp_samples": samples}
        scene = {"interval": "1m", "input_series": series, "promql_expr_test": [test]}
        file = tmp_path / "test.yaml"
        file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "10m", "tests": [scene]}))
        done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return check


WORKLOAD, CLASS = "SlacktideBudgetBurns", "SlacktideClassBudgetBurns"


def test_the_burn_rates_are_those_of_the_workbook() -> None:
    assert [(one.rate(USUAL_SECONDS), one.long, one.short) for one in BURNS] == [
        (14.4, "1h", "5m"),
        (6.0, "6h", "30m"),
        (1.0, "3d", "6h"),
    ]
    week = USUAL_SECONDS * 7 / 30
    assert [round(one.rate(week), 2) for one in BURNS] == [3.36, 1.4, 1.0]  # as large a share of the budget
    assert [one.rate(86400.0) for one in BURNS] == [1.0, 1.0, 1.0]  # what the promise allows is no alarm


def alarms(service: str) -> dict[str, str]:
    """The thresholds of a class's alerts by their long window."""
    groups = {one["name"]: one["rules"] for one in rules(CLASSES)["groups"]}
    found = [one for one in groups[f"slacktide-workload-budgets-{service}"] if "alert" in one]
    return {one["labels"]["window"]: one["expr"].splitlines()[0].rpartition("> ")[2] for one in found}


def test_thresholds_follow_from_promise_and_window() -> None:
    assert alarms("gold") == {"1h": "0.0144", "6h": "0.006", "3d": "0.001"}
    assert alarms("week") == {"1h": "0.00336", "6h": "0.0014", "3d": "0.001"}
    assert alarms("silver") == {"6h": "0.6", "3d": "0.1"}  # 14.4 times a tenth never comes
    assert alarms("certain") == {"1h": "0"}  # there is no budget: whatever is lost is too much


@needs_promtool
def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    for number, found in enumerate((rules(CLASSES), rules_of_any_class())):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml_text([found]))
        done = subprocess.run([str(PROMTOOL), "check", "rules", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "duplicate" not in done.stdout + done.stderr


SCENES: dict[str, tuple[list[Json], int, Alarms]] = {
    "nothing is lost": (workload("gold", (0.0, 2 * HOUR)), 2 * HOUR, set()),
    "a little more than 14.4 times too much": (
        workload("gold", CALM, (0.0150, 61)),
        3 * DAY + 60,
        {(WORKLOAD, "1h")},
    ),
    "a little less": (workload("gold", CALM, (0.0140, 61)), 3 * DAY + 60, set()),
    "it is over for ten minutes": (
        workload("gold", CALM, (0.1, 30), (0.0, 11)),
        3 * DAY + 40,
        {(WORKLOAD, "6h")},  # its short window is half an hour
    ),
    "it is over for an hour": (workload("gold", CALM, (0.1, 30), (0.0, 61)), 3 * DAY + 90, set()),
    "6 times too much for six hours": (
        workload("gold", CALM, (0.0065, 6 * HOUR + 1)),
        3 * DAY + 6 * HOUR,
        {(WORKLOAD, "6h")},
    ),
    "more than the promise allows, for three days": (
        workload("gold", (0.0011, 3 * DAY + 1)),
        3 * DAY,
        {(WORKLOAD, "3d")},
    ),
    "less than that": (workload("gold", (0.0009, 3 * DAY + 1)), 3 * DAY, set()),
    "the workload's own fault": (workload("gold", (0.5, 2 * HOUR), cause="workload"), 2 * HOUR - 10, set()),
    "the operator's": (workload("gold", (0.5, 2 * HOUR), cause="operator"), 2 * HOUR - 10, set()),
    "its own fault where everything counts": (
        workload("every", (0.5, 2 * HOUR), cause="workload"),
        2 * HOUR - 10,
        {(WORKLOAD, "1h"), (WORKLOAD, "6h"), (WORKLOAD, "3d")},
    ),
    "a promise of everything": (workload("certain", (0.0, HOUR), (0.001, 11)), HOUR + 10, {(WORKLOAD, "1h")}),
    "a promise of everything, kept": (workload("certain", (0.0, 2 * HOUR)), 2 * HOUR - 10, set()),
    "a class without series of workloads": (
        workload("gold", CALM, (0.0150, 61), prefix="class"),
        3 * DAY + 60,
        {(CLASS, "1h")},
    ),
    "a class with series of workloads": (
        workload("gold", (0.0, 3 * DAY + 61)) + workload("gold", CALM, (0.0150, 61), prefix="class"),
        3 * DAY + 60,
        set(),
    ),
    "another class": (workload("copper", (0.9, 2 * HOUR)), 2 * HOUR - 10, set()),
}


@needs_promtool
@pytest.mark.parametrize("name", SCENES)
def test_alerts_fire_when_they_must_and_not_otherwise(fire: Fire, name: str) -> None:
    series, minutes, expected = SCENES[name]
    own = [one for one in CLASSES if f'class="{one["metadata"]["name"]}"' in series[0]["series"]]
    fire(rules(own or CLASSES), series, minutes, expected)


ANY: dict[str, tuple[list[Json], int, Alarms]] = {
    name: SCENES[name]
    for name in (
        "a little more than 14.4 times too much",
        "more than the promise allows, for three days",
        "a class without series of workloads",
        "a class with series of workloads",
    )
}


@needs_promtool
@pytest.mark.parametrize("name", ANY)
def test_rules_for_any_class_go_by_the_promise_that_is_told(fire: Fire, name: str) -> None:
    series, minutes, expected = ANY[name]
    promised = {"series": 'slacktide_availability_promised{class="gold"}', "values": f"0.999x{minutes + 10}"}
    fire(rules_of_any_class(), [*series, promised], minutes, expected)


@needs_promtool
def test_where_less_is_promised_the_rules_for_any_class_are_silent(fire: Fire) -> None:
    series, minutes, _ = SCENES["more than the promise allows, for three days"]
    promised = {"series": 'slacktide_availability_promised{class="gold"}', "values": f"0.99x{minutes + 10}"}
    fire(rules_of_any_class(), [*series, promised], minutes, set())


@needs_promtool
def test_an_alert_says_whose_budget_and_how_much_was_lost(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml_text([rules(CLASSES[:1])]))
    who = "Deployment shop/web (class gold)"
    labels = {"class": "gold", "namespace": "shop", "kind": "Deployment", "name": "web"}
    expected = [
        {
            "exp_labels": labels | {"severity": severity, "window": long},
            "exp_annotations": {
                "summary": f"{who} loses its error budget too fast.",
                "description": f"{who} lost 2% of the last {long}, and still loses as much in the last {short}. "
                "See slacktide top and slacktide explain.",
            },
        }
        for long, short, severity in (("1h", "5m", "page"), ("6h", "30m", "page"), ("3d", "6h", "ticket"))
    ]
    test = {"alertname": WORKLOAD, "eval_time": "1h", "exp_alerts": expected}
    series = workload("gold", (0.02, HOUR + 1))
    file = tmp_path / "test.yaml"
    scene = {"interval": "1m", "input_series": series, "alert_rule_test": [test]}
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [scene]}))
    done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
