"""Events beside objects tell of the last hour."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from slacktide.errors import InputError
from slacktide.pasts.events import story
from slacktide.pasts.outcome import Past, read_workloads, write
from support.past_series import MadeCluster, MadeNode, MadeWish, Maker, events, printed, told

BEGIN = 1_760_000_400.0


def hour() -> MadeCluster:
    """An hour of three nodes, of which one fails; pods come, are preempted, stopped and scaled."""
    cluster = MadeCluster(BEGIN, BEGIN + 3600)
    old = BEGIN - 90_000
    cluster.nodes = [MadeNode(f"n{n}", old, ready=[(old, True)]) for n in range(3)]
    cluster.nodes[1].ready += [(BEGIN + 1000, False), (BEGIN + 1300, True)]
    cluster.sets = {"web-5d8f": "web"}
    cluster.wishes = [MadeWish("Deployment", "web", [(old, 3), (BEGIN + 600, 5), (BEGIN + 2400, 4)])]
    made, web = Maker(cluster), ("ReplicaSet", "web-5d8f")
    for n in range(3):
        made.pod(f"web-5d8f-a{n}", web, -80_000 + n, f"n{n}", priority=5, priority_class="high")
    made.pod("web-5d8f-b", web, 602, "n2", priority=5, priority_class="high", going=1800, preempted=True, wait=7)
    made.pod("web-5d8f-c", web, 601, "n0", priority=5, priority_class="high", going=2401)
    made.pod("web-5d8f-d", web, 1801, "n1", priority=5, priority_class="high", wait=330)
    made.pod("lost", None, 2, "n0", going=900, wait=8)
    return cluster


def files(folder: Path, cluster: MadeCluster) -> tuple[list[Path], Path]:
    objects, happened = folder / "objects.json", folder / "events.json"
    objects.write_text(json.dumps(printed(cluster)))
    happened.write_text(json.dumps(events(cluster)))
    os.utime(happened, (cluster.end, cluster.end))
    return [objects], happened


def pods(folder: Path) -> list[dict[str, str]]:
    with (folder / "pods.csv").open() as file:
        return sorted(csv.DictReader(file), key=lambda row: float(row["created"]))


@pytest.fixture
def both(tmp_path: Path) -> tuple[Past, Past]:
    cluster = hour()
    truth = write(told(cluster), tmp_path / "truth")
    return write(story(*files(tmp_path, cluster)), tmp_path / "out"), truth


def test_pods_that_are_gone_come_out_as_they_were(both: tuple[Past, Past], tmp_path: Path) -> None:
    names = {one.request: one.full_name for one in read_workloads(tmp_path / "truth")}
    expected = [row for row in pods(tmp_path / "truth") if names[int(row["request"])] != "shop/Pod/lost"]
    found = pods(tmp_path / "out")
    begins = both[0].begin - both[1].begin
    assert begins == 10.0  # the first event
    assert [row["node"] for row in found] == [row["node"] for row in expected]
    for mine, its in zip(found, expected, strict=True):
        for column in ("created", "bound", "ready"):
            if float(its["created"]) > 0.0:
                assert float(mine[column]) + begins == pytest.approx(float(its[column]), abs=1.0), (column, mine, its)


def test_workloads_are_delivered_what_they_were(both: tuple[Past, Past]) -> None:
    mine = {one.full_name: one for one in both[0].workloads}["shop/Deployment/web"]
    its = {one.full_name: one for one in both[1].workloads}["shop/Deployment/web"]
    assert (mine.preempted, mine.priority) == (its.preempted, its.priority) == (1, 5)
    # How long a pod took to end is not told: who comes meanwhile is another instance for as long.
    assert abs(mine.instances - its.instances) <= 1
    assert mine.delivered["restart"] == pytest.approx(its.delivered["restart"], abs=0.01)
    assert mine.seconds == pytest.approx(its.seconds, abs=60.0)


def test_what_cannot_be_known_is_said(both: tuple[Past, Past]) -> None:
    assert both[0].counts["pods that are gone"] == 2
    assert any("left out: 1 pod of the past, as none" in note for note in both[0].notes)
    assert any("events tell of the time since 2025-10-09T09:00:10" in note for note in both[0].notes)


def test_one_event_a_line_and_gzip_are_read_alike(tmp_path: Path) -> None:
    objects, happened = files(tmp_path, hour())
    whole = [(one.at, one.kind.kind, one.found) for one in story(objects, happened).changes]
    lines = tmp_path / "events.jsonl.gz"
    with gzip.open(lines, "wt") as file:
        file.writelines(json.dumps(one) + "\n" for one in json.loads(happened.read_text())["items"])
    assert [(one.at, one.kind.kind, one.found) for one in story(objects, lines).changes] == whole
    assert len(whole) > 15


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "events.json: expected a whole list: kubectl get events"),
        ('{"items": [{"reason": "Sched', "expected a whole list"),
        ('{"items": []}', "found 'no event of a pod', expected events of pods"),
    ],
)
def test_files_without_events_are_refused(content: str, said: str, tmp_path: Path) -> None:
    objects, happened = files(tmp_path, hour())
    happened.write_text(content)
    with pytest.raises(InputError, match=said):
        story(objects, happened)


def test_an_event_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    objects, happened = files(tmp_path, hour())
    found: dict[str, Any] = json.loads(happened.read_text())
    found["items"] += [{"reason": 7}, {"reason": "Scheduled"}]
    happened.write_text(json.dumps(found))
    counts = story(objects, happened).findings.counts
    assert counts["events that cannot be read"] == 1
    assert counts["events without a time"] == 1
