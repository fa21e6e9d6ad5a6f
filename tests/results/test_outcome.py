"""What people read at the end of a run of requests of several instances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from slacktide import settings
from slacktide.cli.simulation import outcome
from slacktide.metrics import ApproachSummary, Availability, ClassSummary
from slacktide.qos.availability import ACCOUNTINGS

TOTALS = {
    "requests": 3,
    "completed": 1,
    "passes": 4,
    "placements": 5,
    "preemptions": 6,
    "resizes": 0,
    "moves": 0,
    "deferrals": 0,
    "operations": 7,
    "end": 60.0,
}
COSTS = {"compile_seconds": 0.0, "cpu_seconds": 1.0, "peak_rss_mb": 100.0, "wall_seconds": 1.0}
ALIKE = {one: Availability(0.9, 0.8, 0.85) for one in ACCOUNTINGS}
MET = dict.fromkeys(ACCOUNTINGS, 0.5)
GOLD = ClassSummary("gold", 0.95, 3, ALIKE, MET, 0.0, 6, 0.0)
SERVICE = ApproachSummary("gold", "service", "concurrent", 0.95, 2, 7, ALIKE, MET)
BATCH = replace(SERVICE, kind="batch", approach="aggregated", requests=1, instances=1200)


def text(totals: dict[str, Any], *approaches: ApproachSummary) -> str:
    config = settings.load(None, "recommended", [])
    return outcome.text([GOLD], ALIKE, config, totals, COSTS, 5, approaches)


def test_requests_of_one_instance_need_no_word() -> None:
    assert text(TOTALS) == text({**TOTALS, "instances": 3})
    assert "instances" not in text(TOTALS)
    assert "\n1 completed; 5 placements and 7 operations in 4 passes" in text(TOTALS)


def test_requests_and_their_instances_are_told_apart() -> None:
    assert "\n3 requests of 1,207 instances; 1 completed; " in text({**TOTALS, "instances": 1207})


def test_approaches_are_compared_where_there_are_several() -> None:
    assert text(TOTALS, SERVICE) == text(TOTALS)
    lines = text(TOTALS, SERVICE, BATCH).splitlines()
    at = next(number for number, line in enumerate(lines) if "approach" in line)
    assert " ".join(lines[at + 1].split()) == "gold service concurrent 2 7 0.95 0.9000 0.8000 50.00 %"
    assert " ".join(lines[at + 2].split()) == "gold batch aggregated 1 1,200 0.95 0.9000 0.8000 50.00 %"
    assert lines[at + 3] == ""
