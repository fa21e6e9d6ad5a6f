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

from slacktide.openslo.burn_rates import rules, rules_of_any_class
from slacktide.openslo.classes import class_document
from slacktide.openslo.documents import yaml_text

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
SLO = {one["metadata"]["name"]: one["spec"]["slo"] for one in CLASSES} | {"copper": 0.999}
DAYS = {"week": 7}
HOUR, DAY = 60, 1440
"""Minutes, which are the steps of the series."""
BEFORE = 2 * HOUR
CALM = (0.0, BEFORE)
GONE = -1.0
"""In place of a share: no sample."""


def steps(*parts: tuple[float, int], begins: float = 0.0) -> str:
    """A counter that grows by so much a minute for so many minutes, part by part; at GONE there is none."""
    value, said = begins, []
    for slope, minutes in parts:
        if slope == GONE:
            said.append(f"stale _x{minutes - 1}" if minutes > 1 else "stale")
            continue
        said.append(f"{value:.6f}+{slope:.6f}x{minutes - 1}")
        value += slope * minutes
    return " ".join(said)


def gauge(*parts: tuple[float, int]) -> str:
    """A gauge that has one value for so many minutes, part by part."""
    return " ".join(
        f"{value:.6f}x{minutes - 1}" if value != GONE else f"stale _x{minutes - 1}" for value, minutes in parts
    )


def workload(
    service: str,
    *lost: tuple[float, int],
    cause: str = "cluster",
    prefix: str = "workload",
    name: str = "web",
    slo: float | None = None,
    instances: list[tuple[int, int]] | None = None,
    pod: str = "a",
    begins: float = 0.0,
) -> list[Json]:
    """What the scheduler tells of a workload (or of a class): shares of an instance's time that were lost, each for so
    many minutes; ``instances`` for so many minutes, one where nothing is said."""
    labels = f'class="{service}",pod="{pod}"'
    own = labels + (f',namespace="shop",kind="Deployment",name="{name}"' if prefix == "workload" else "")
    found = []
    for one in ("cluster", "workload", "operator"):
        slopes = [(GONE if share == GONE else 60 * share if one == cause else 0.0, minutes) for share, minutes in lost]
        series = f'slacktide_{prefix}_lost_seconds_total{{{own},cause="{one}"}}'
        found.append({"series": series, "values": steps(*slopes, begins=begins if one == cause else 0.0)})
    seconds = 86400 * DAYS.get(service, 30)
    each = (1 - (SLO[service] if slo is None else slo)) * seconds
    presence = [(GONE if share == GONE else 1, minutes) for share, minutes in lost]
    budgets = [(GONE if count == GONE else count * each, minutes) for count, minutes in instances or presence]
    found.append({"series": f"slacktide_{prefix}_budget_seconds{{{own}}}", "values": gauge(*budgets)})
    windows = gauge(*((GONE if count == GONE else seconds, minutes) for count, minutes in presence))
    found.append({"series": f"slacktide_class_window_seconds{{{labels}}}", "values": windows})
    unlisted = gauge(*((GONE if count == GONE else prefix == "class", minutes) for count, minutes in presence))
    found.append({"series": f"slacktide_class_workloads_unlisted{{{labels}}}", "values": unlisted})
    return found


Alarms = set[tuple[str, str]]
Fire = Callable[[Json, list[Json], int, Alarms], None]


@pytest.fixture
def fire(tmp_path: Path) -> Fire:
    """Checks which alerts fire after so many minutes, by name and long window; promtool says."""

    def check(found: Json, series: list[Json], minutes: int, expected: Alarms) -> None:
        (tmp_path / "rules.yaml").write_text(yaml_text([found]))
        samples = [{"labels": f'{{alertname="{name}",window="{window}"}}', "value": 1} for name, window in expected]
        expr = 'count by (alertname, window) (ALERTS{alertstate="firing",window!=""})'
        test = {"expr": expr, "eval_time": f"{minutes}m", "exp_samples": samples}
        scene = {"interval": "1m", "input_series": series, "promql_expr_test": [test]}
        file = tmp_path / "test.yaml"
        every = "10m" if minutes > DAY else "2m"
        file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": every, "tests": [scene]}))
        done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return check


WORKLOAD, CLASS = "SlacktideBudgetBurns", "SlacktideClassBudgetBurns"


def own(series: list[Json]) -> list[Json]:
    """The classes that the series are of."""
    found = [one for one in CLASSES if f'class="{one["metadata"]["name"]}"' in series[0]["series"]]
    return found or CLASSES


def test_a_promise_of_everything_has_one_alert() -> None:
    groups = {one["name"]: one["rules"] for one in rules(CLASSES)["groups"]}
    found = [one["labels"]["window"] for one in groups["slacktide-workload-budgets-certain"] if "alert" in one]
    assert found == ["1h"]


@needs_promtool
def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    for number, found in enumerate((rules(CLASSES), rules_of_any_class())):
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml_text([found]))
        done = subprocess.run([str(PROMTOOL), "check", "rules", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "duplicate" not in done.stdout + done.stderr


HOURS, SIX, DAYS_3 = (WORKLOAD, "1h"), (WORKLOAD, "6h"), (WORKLOAD, "3d")
START = 12 / 60
"""A start-up of 12 s in a minute."""

SCENES: dict[str, tuple[list[Json], int, Alarms]] = {
    "nothing is lost": (workload("gold", (0.0, 2 * HOUR)), 2 * HOUR, set()),
    "2.5 % of the budget within an hour": (workload("gold", CALM, (0.018, 61)), BEFORE + HOUR, {HOURS}),
    "1.9 %": (workload("gold", CALM, (0.0137, 61)), BEFORE + HOUR, set()),
    "all that is lost at once": (workload("gold", CALM, (1.0, 9)), BEFORE + 4, {HOURS}),
    "it is over for half an hour": (workload("gold", CALM, (0.1, 30), (0.0, 35)), BEFORE + 62, set()),
    "6 times too much for six hours": (workload("gold", CALM, (0.0072, 6 * HOUR + 1)), BEFORE + 6 * HOUR, {SIX}),
    "more than the promise allows, for three days": (workload("gold", (0.0012, 3 * DAY + 1)), 3 * DAY, {DAYS_3}),
    "less than that": (workload("gold", (0.0009, 3 * DAY + 1)), 3 * DAY, set()),
    "evenly what a week allows": (workload("week", (0.0009, 3 * DAY + 1)), 3 * DAY, set()),
    "more than a week allows": (workload("week", (0.0012, 3 * DAY + 1)), 3 * DAY, {DAYS_3}),
    "the workload's own fault": (workload("gold", (0.5, 2 * HOUR), cause="workload"), 2 * HOUR - 10, set()),
    "the operator's": (workload("gold", (0.5, 2 * HOUR), cause="operator"), 2 * HOUR - 10, set()),
    "its own fault where everything counts": (
        workload("every", (0.5, 2 * HOUR), cause="workload"),
        2 * HOUR - 10,
        {HOURS, SIX, DAYS_3},
    ),
    "a promise of everything": (workload("certain", (0.0, HOUR), (0.2, 11)), HOUR + 10, {HOURS}),
    "a promise of everything, kept": (workload("certain", (0.0, 2 * HOUR)), 2 * HOUR - 10, set()),
    "a class whose workloads are not all listed": (
        workload("gold", CALM, (0.018, 61), prefix="class"),
        BEFORE + HOUR,
        {(CLASS, "1h")},
    ),
    "a class whose workloads are": (
        workload("gold", CALM, (0.018, 61), prefix="class")[:-1] + workload("gold", (0.0, BEFORE + 61)),
        BEFORE + HOUR,
        set(),
    ),
    "another class": (workload("copper", (0.9, 2 * HOUR)), 2 * HOUR - 10, set()),
    # -- what happens every day, and wakes nobody
    "a birth": (workload("gold", (START, 1), (0.0, 20)), 6, set()),
    "a birth where only seconds may be lost": (workload("gold", (START, 1), (0.0, 20), slo=0.99999), 6, set()),
    "a rollout of ten, each of which waits for 12 s": (
        workload("gold", CALM, (START, 10), (0.0, 60), instances=[(10, BEFORE + 70)]),
        BEFORE + 12,
        set(),
    ),
    "one that is deleted while it burns": (workload("gold", CALM, (1.0, 10), (GONE, 30)), BEFORE + 14, set()),
    "one that burns over a change of leader": (
        workload("gold", CALM, (1.0, 10), (GONE, 30))
        + workload("gold", (GONE, BEFORE + 12), (1.0, 30), pod="b", begins=12 * 60.0),
        BEFORE + 20,
        {HOURS, SIX},
    ),
    "a change of leader, in calm": (
        workload("gold", CALM, (GONE, 30), begins=9000.0)
        + workload("gold", (GONE, BEFORE + 1), (0.0, 30), pod="b", begins=9000.0),
        BEFORE + 20,
        set(),
    ),
    "a leader that starts again from a ledger of some seconds ago": (
        [
            one | {"values": f"9000x{BEFORE} 8995x30"} if 'cause="cluster"' in one["series"] else one
            for one in workload("gold", CALM, (0.0, 30), begins=9000.0)
        ],
        BEFORE + 5,
        set(),
    ),
    "two leaders for an hour, each with half of what would be too much": (
        workload("gold", CALM, (0.008, 61)) + workload("gold", CALM, (0.008, 61), pod="b"),
        BEFORE + HOUR,
        set(),
    ),
    "a silent scheduler": (workload("gold", CALM, (1.0, 10), (GONE, 60)), BEFORE + 30, set()),
    "a silent scheduler, by class": (
        workload("gold", CALM, (1.0, 10), (GONE, 60), prefix="class"),
        BEFORE + 13,
        set(),
    ),
    "scaled to 0 and up": (
        workload("gold", CALM, (0.0, 50), (3 * START, 1), (0.0, 20), instances=[(3, BEFORE), (0, 50), (3, 21)]),
        BEFORE + 55,
        set(),
    ),
    "scaled up from 0 for the first time": (
        workload("gold", (0.0, 50), (3 * START, 1), (0.0, 20), instances=[(0, 50), (3, 21)]),
        55,
        set(),
    ),
    "scaled down after what was little for many": (
        workload("gold", CALM, (1.0, 4), (0.0, 30), instances=[(100, BEFORE + 4), (1, 30)]),
        BEFORE + 6,
        set(),
    ),
}


@needs_promtool
@pytest.mark.parametrize("name", SCENES)
def test_alerts_fire_when_they_must_and_not_otherwise(fire: Fire, name: str) -> None:
    series, minutes, expected = SCENES[name]
    fire(rules(own(series)), series, minutes, expected)


OF_CERTAIN_CLASSES = {
    "its own fault where everything counts", "another class", "a promise of everything",
}  # fmt: skip


@needs_promtool
@pytest.mark.parametrize("name", [name for name in list(SCENES)[::3] if name not in OF_CERTAIN_CLASSES])
def test_so_do_those_for_any_class(fire: Fire, name: str) -> None:
    series, minutes, expected = SCENES[name]
    fire(rules_of_any_class(), series, minutes, expected)


@needs_promtool
def test_a_tenant_that_promises_little_switches_nobodys_pages_off(fire: Fire) -> None:
    low = workload("gold", (0.3, BEFORE + 61), name="low", slo=0.5)
    promised = {"series": 'slacktide_availability_promised{class="gold",pod="a"}', "values": f"0.8992x{BEFORE + 70}"}
    series = [*workload("gold", CALM, (0.1, 61)), *low[:-2], promised]
    fire(rules_of_any_class(), series, BEFORE + HOUR, {HOURS, SIX})


@needs_promtool
def test_what_the_scheduler_promises_less_burns_later(fire: Fire) -> None:
    series = workload("gold", CALM, (0.018, 61), slo=0.99)
    fire(rules_of_any_class(), series, BEFORE + HOUR, set())


@needs_promtool
def test_an_alert_says_whose_budget_and_how_much_was_lost_and_where_to_read_on(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml_text([rules(CLASSES[:1])]))
    who = "Deployment shop/web (class gold)"
    labels = {"class": "gold", "namespace": "shop", "kind": "Deployment", "name": "web"}
    expected = [
        {
            "exp_labels": labels | {"severity": "page", "window": "1h"},
            "exp_annotations": {
                "summary": f"{who} loses its error budget too fast.",
                "description": f"{who} lost 1m 12s of instance time within 1h, more than 2% of what may be lost in the "
                "promise's window, and still loses as fast.",
                "runbook_url": "https://slacktide.io/runbooks.html#slacktidebudgetburns",
            },
        }
    ]
    test = {"alertname": WORKLOAD, "eval_time": f"{HOUR}m", "exp_alerts": expected}
    series = workload("gold", (0.02, HOUR + 1))
    file = tmp_path / "test.yaml"
    scene = {"interval": "1m", "input_series": series, "alert_rule_test": [test]}
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [scene]}))
    done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
