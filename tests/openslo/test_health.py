"""Alerts about slacktide itself, as a real Prometheus evaluates them; and that each alert has its section of a page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from slacktide.openslo import health
from slacktide.openslo.burn_rates import rules_of_any_class
from slacktide.openslo.documents import yaml_text
from support.repository import REPOSITORY

Json = dict[str, Any]
PROMTOOL = shutil.which("promtool")
REQUIRED = os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1"
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None and not REQUIRED, reason="promtool is not there: apt-get install prometheus"
)
PAGE = REPOSITORY / "docs" / "runbooks.md"
PARTS = ("What it means", "How to see it", "What to do", "If that does not help")
EVERY = [one for group in rules_of_any_class()["groups"] for one in group["rules"] if "alert" in one]

CALM = {
    "slacktide_leader": "1x60",
    'scheduler_pending_pods{queue="active"}': "0x60",
    "slacktide_pass_duration_seconds_count": "0+6x60",
    'slacktide_watch_dead{kind="Pod"}': "0x60",
    'slacktide_ledger_writes_total{result="written"}': "0+30x60",
    'slacktide_ledger_writes_total{result="failed"}': "0x60",
    "slacktide_ledger_pending": "3 0x60",
    "slacktide_pods_without_class": "0x60",
    "slacktide_objects_aside": "0x60",
    "slacktide_admission_policies_missing": "0x60",
    "slacktide_pods_bound_by_others_total": "0x60",
    "slacktide_certificate_expiry_timestamp_seconds": "31536000x60",
}
"""What the replica that leads tells, minute by minute, where all is well."""
STANDBY = CALM | {
    "slacktide_leader": "0x60",
    "slacktide_pass_duration_seconds_count": "0x60",
    'slacktide_ledger_writes_total{result="written"}': "0x60",
}
SILENT = dict.fromkeys(CALM, "stale _x60")
"""It is gone."""


def series(pod: str, told: dict[str, str], job: str = "slacktide") -> list[Json]:
    found = []
    for name, values in told.items():
        metric, _, labels = name.partition("{")
        own = f'pod="{pod}",job="{job}",namespace="slacktide-system"'
        found.append({"series": f"{metric}{{{own},{labels or '}'}".replace(",}", "}"), "values": values})
    return found


def firing(folder: Path, told: list[Json], minutes: int) -> set[str]:
    """Which alerts fire then; promtool says."""
    names = [one.name for one in health.ALERTS]
    (folder / "rules.yaml").write_text(yaml_text([{"groups": [health.group()]}]))
    tests = [
        {"expr": f'count(ALERTS{{alertstate="firing",alertname="{name}"}})', "eval_time": f"{minutes}m"}
        for name in names
    ]
    scene = {"interval": "1m", "input_series": told, "promql_expr_test": tests}
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [scene]}))
    done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0 or "FAILED" in said, said  # it fails where something fires: nothing was expected
    found = set(re.findall(r'alertname=\\"(\w+)\\"', said))
    assert len(re.findall("got:", said)) == len(found), said
    return found


SCENES: dict[str, tuple[list[Json], int, set[str]]] = {
    "one leads and one waits": (series("a", CALM) + series("b", STANDBY), 30, set()),
    "another takes over": (
        series("a", CALM | {"slacktide_leader": "1x20 0x40"})
        + series("b", STANDBY | {"slacktide_leader": "0x20 1x40"}),
        22,
        set(),
    ),
    "two releases of two names": (series("a", CALM) + series("b", CALM, job="other"), 30, set()),
    "both replicas are stopped": (
        series("a", {name: f"{values.partition('x')[0]}x10 stale _x60" for name, values in CALM.items()})
        + series("b", {name: f"{values.partition('x')[0]}x10 stale _x60" for name, values in STANDBY.items()}),
        14,
        {"SlacktideNobodyLeads"},
    ),
    "nobody takes over": (series("a", STANDBY) + series("b", STANDBY), 2, {"SlacktideNobodyLeads"}),
    "two lead": (series("a", CALM) + series("b", CALM), 2, {"SlacktideTwoLead"}),
    "pods wait and nobody looks": (
        series(
            "a",
            CALM
            | {
                'scheduler_pending_pods{queue="active"}': "0x9 4x50",
                "slacktide_pass_duration_seconds_count": "0+6x9 54x50",
            },
        ),
        16,
        {"SlacktideNoPass"},
    ),
    "nobody waits, so nobody looks": (series("a", CALM | {"slacktide_pass_duration_seconds_count": "9x60"}), 30, set()),
    "pods wait and are looked at": (series("a", CALM | {'scheduler_pending_pods{queue="active"}': "4x60"}), 30, set()),
    "a watch is dead": (
        series("a", CALM) + series("b", STANDBY | {'slacktide_watch_dead{kind="Pod"}': "0x9 1x50"}),
        12,
        {"SlacktideWatchStale"},
    ),
    "ledgers fail": (
        series("a", CALM | {'slacktide_ledger_writes_total{result="failed"}': "0+2x60"}),
        20,
        {"SlacktideLedgersNotWritten"},
    ),
    "a ledger failed once": (
        series("a", CALM | {'slacktide_ledger_writes_total{result="failed"}': "0x9 1x50"}),
        20,
        set(),
    ),
    "ledgers wait, and none is written": (
        series(
            "a", CALM | {'slacktide_ledger_writes_total{result="written"}': "9x60", "slacktide_ledger_pending": "5x60"}
        ),
        40,
        {"SlacktideLedgersNotWritten"},
    ),
    "a class is missing": (
        series("a", CALM | {"slacktide_pods_without_class": "0x5 2x50"}),
        12,
        {"SlacktidePodsWithoutClass"},
    ),
    "a class comes some seconds after its pods": (
        series("a", CALM | {"slacktide_pods_without_class": "0x5 2x1 0x50"}),
        12,
        set(),
    ),
    "an object is malformed": (
        series("a", CALM | {"slacktide_objects_aside": "0x5 1x50"}),
        12,
        {"SlacktideObjectsAside"},
    ),
    "an admission policy is gone": (
        series("a", CALM | {"slacktide_admission_policies_missing": "0x5 1x50"}),
        12,
        {"SlacktideAdmissionMissing"},
    ),
    "a certificate ends": (
        series("a", CALM | {"slacktide_certificate_expiry_timestamp_seconds": "600000x60"}),
        20,
        {"SlacktideCertificateEnds"},
    ),
    "two releases fight": (
        series("a", CALM | {"slacktide_pods_bound_by_others_total": "0x5 0+3x50"}),
        12,
        {"SlacktideReleasesFight"},
    ),
    "one binding of the last leader came late": (
        series("a", CALM | {"slacktide_pods_bound_by_others_total": "0x5 1x50"}),
        12,
        set(),
    ),
}


@needs_promtool
@pytest.mark.parametrize("name", SCENES)
def test_alerts_about_slacktide_fire_when_they_must_and_not_otherwise(tmp_path: Path, name: str) -> None:
    told, minutes, expected = SCENES[name]
    assert firing(tmp_path, told, minutes) == expected


def test_each_alert_about_slacktide_has_a_scene_in_which_it_fires() -> None:
    assert set().union(*(expected for _, _, expected in SCENES.values())) == {one.name for one in health.ALERTS}


@pytest.mark.parametrize("name", sorted({one["alert"] for one in EVERY}))
def test_each_alert_has_its_section_of_the_page_with_four_parts(name: str) -> None:
    (section,) = re.findall(rf"(?ms)^## {name}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"))
    assert tuple(re.findall(r"(?m)^\*\*([^*]+)\.\*\*", section)) == PARTS
    assert "```sh" in section, "commands by which it is seen"


def test_the_page_has_no_section_of_an_alert_that_is_not_there() -> None:
    names = re.findall(r"(?m)^## (Slacktide\w+)$", PAGE.read_text(encoding="utf-8"))
    assert sorted(names) == sorted({one["alert"] for one in EVERY})


def test_each_alert_leads_to_its_section() -> None:
    for one in EVERY:
        page, _, anchor = one["annotations"]["runbook_url"].partition("#")
        assert (page.rpartition("/")[2], anchor) == ("runbooks.html", one["alert"].lower())
