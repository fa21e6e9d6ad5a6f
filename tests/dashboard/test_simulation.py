"""The results of a simulation at any instant, against what the run itself wrote down about intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from slacktide.cli import main
from slacktide.dashboard.simulated_tables import is_results
from slacktide.dashboard.simulation import KEPT, MISSED, Simulation
from slacktide.dashboard.view import NOT_PLACED, READY, WAITING
from slacktide.errors import InputError
from slacktide.experiment.run_folder import Asked, run_into
from slacktide.for_people import clock
from support import clusters, runs
from support.clusters import Cluster

INTERVAL = 7.0
EVERYTHING = Asked(events=True, intervals=INTERVAL)


def results(cluster: Cluster, folder: Path, asked: Asked = EVERYTHING) -> Path:
    """What a run of this cluster leaves behind."""
    one = replace(cluster, config=replace(cluster.config, classes=cluster.workload.classes))
    out = folder / "results"
    config = runs.settings_of(one, folder)
    run_into(out, one.workload, one.hosts, config, files=[], command=["slacktide"], asked=asked)
    return out


def intervals(out: Path) -> Iterator[dict[str, Any]]:
    yield from pq.read_table(out / "intervals.parquet").to_pylist()


@pytest.mark.parametrize("seed", [2, 10, 15, 22, 29, 34])
def test_what_everybody_got_at_any_instant_is_what_the_run_says(seed: int, tmp_path: Path) -> None:
    out = results(clusters.cluster(seed), tmp_path)
    shown, compared = Simulation(out), 0
    for row in intervals(out):
        at, since = row["time"], row["time"] - (row["time"] % INTERVAL or INTERVAL)
        view = shown.at(at)
        (cls,) = [one for one in view.classes if one.name == row["class"]]
        assert (cls.running, cls.waiting) == (row["running"], row["waiting"])
        mine = [one for one in view.workloads if one.cls == cls.number and shown.results.ended[one.number] > since]
        if not mine or any(shown.results.admission[one.number] == at for one in mine):
            continue  # to whom nothing was owed yet
        got = [one.delivered for one in mine if one.delivered is not None]
        assert len(got) == len(mine)
        assert min(got) == pytest.approx(row["availability_min"], abs=2e-6)
        assert np.mean(got) == pytest.approx(row["availability_mean"], abs=2e-6)
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("seed", [0, 3, 14, 23])
def test_instances_of_requests_are_where_the_run_says(seed: int, tmp_path: Path) -> None:
    out = results(clusters.cluster(seed, several=True, resizes=seed == 3), tmp_path)
    shown = Simulation(out)
    for row in intervals(out):
        view = shown.at(row["time"])
        (cls,) = [one for one in view.classes if one.name == row["class"]]
        assert (cls.running, cls.waiting) == (row["running"], row["waiting"])
        of_class = {one.number for one in view.workloads if one.cls == cls.number}
        states = Counter(one.state for one in view.pods if one.workload in of_class)
        assert (states[READY], states[WAITING]) == (row["running"], row["waiting"])


def test_the_end_says_what_the_table_of_requests_says(tmp_path: Path) -> None:
    out = results(clusters.cluster(34), tmp_path)
    rows = pq.read_table(out / "requests.parquet").to_pylist()
    view = Simulation(out).at(1e9)
    by_name = {one.name: one for one in view.workloads}
    accounting = Simulation(out).results.classes  # each class's promise
    assert {one.name for one in accounting} >= {row["class"] for row in rows}
    assert len(by_name) == len(rows)
    for row in rows:
        one = by_name[f"request {row['id']}"]
        assert (one.state == MISSED) == (not row["slo_met"])
        assert one.preempted == row["preemptions"]
    missed = Counter(row["class"] for row in rows if not row["slo_met"])
    assert {one.name: one.counts[MISSED] for one in view.classes if one.counts[MISSED]} == dict(missed)
    assert sum(missed.values()) > 0


def test_decisions_name_who_gained_and_who_made_room(tmp_path: Path) -> None:
    out = results(clusters.cluster(22), tmp_path)
    events = pq.read_table(out / "events.parquet").to_pylist()
    preempted = {(one["time"], one["by"], one["request"]) for one in events if one["event"] == "preempted"}
    shown = Simulation(out)
    view = shown.at(1e9)
    costly = [one for one in view.decisions if one.victims]
    assert costly
    for one in costly:
        for victim in one.victims:
            assert (one.at, int(one.pod), int(victim.pod)) in preempted
    assert sum(shown.head.marks) == sum(one["event"] == "preempted" for one in events)
    victim = costly[0].victims[0]
    story = shown.story("", victim.pod, 1e9)
    assert story is not None
    assert any(text.startswith(f"preempted on {costly[0].node}") and by == costly[0].workload for _, text, by in story)
    points, told = shown.history(victim.workload, 1e9, 50)
    assert any("preempted" in text for _, text, _ in told)
    assert points == sorted(points)


def test_slack_is_what_the_run_wrote_with_its_events(tmp_path: Path) -> None:
    """Also events that the page leaves out, held ones, say the metric of who waits."""
    out = results(clusters.cluster(22), tmp_path)
    shown = Simulation(out)
    held = [one for one in pq.read_table(out / "events.parquet").to_pylist() if one["event"] == "held"]
    place = {number: at for at, number in enumerate(shown.results.ids.tolist())}
    assert len(held) > 10
    for one in held[:200]:
        view = {row.number: row for row in shown.at(one["time"]).workloads}
        row = view[place[one["request"]]]
        assert row.slack == pytest.approx(one["qos"] + shown.results.alpha, abs=2e-3)


def test_without_events_only_the_end_is_shown_and_that_is_said(tmp_path: Path) -> None:
    view = Simulation(results(clusters.cluster(34), tmp_path, Asked())).at(3.0)
    assert view.head is not None
    assert view.head.span is not None
    assert view.head.span[0] == view.head.span[1] == view.at
    assert "--events" in view.head.remarks[0]
    assert (view.pods, view.decisions) == ([], [])
    assert {one.state for one in view.workloads} <= {KEPT, MISSED}


def test_a_folder_that_holds_no_results_is_refused_by_name(tmp_path: Path) -> None:
    assert not is_results(tmp_path)
    with pytest.raises(InputError, match=r"manifest\.json.*simulate --out"):
        Simulation(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "something else"}')
    with pytest.raises(InputError, match="expected slacktide-results"):
        Simulation(tmp_path)


def test_slack_of_several_instances_is_unknown_behind_their_last_event(tmp_path: Path) -> None:
    """Nothing happens to them after their start; a service of one instance has its instance's slack all the same."""
    (tmp_path / "workload.csv").write_text(
        "id,admission,duration,cpu,memory,class,kind,instances,approach\n"
        "1,0,,1,1,silver,service,3,aggregated\n2,0,,1,1,silver,service,1,aggregated\n"
        "3,0,,1,1,silver,service,2,concurrent\n"
    )
    (tmp_path / "hosts.csv").write_text("id,name,cpu,memory\n1,a,8,64\n")
    out, files = tmp_path / "out", [str(tmp_path / name) for name in ("workload.csv", "hosts.csv")]
    assert main(["simulate", *files, "--end", "600", "--events", "--out", str(out)]) == 0
    slack = {row.name: row.slack for row in Simulation(out).at(300.0).workloads}
    assert slack == {"request 1": None, "request 2": pytest.approx(300 / 0.9 - 300), "request 3": None}


def test_whoever_has_a_name_goes_by_it(tmp_path: Path) -> None:
    """Also in results; of two that are called alike the page says the number, too."""
    (tmp_path / "workload.csv").write_text(
        "id,admission,duration,cpu,memory,class,instances,namespace,name\n"
        "1,0,,1,1,bronze,2,shop,web-front\n2,0,,1,1,silver,1,shop,db\n3,0,,1,1,silver,1,,\n"
        "4,0,,1,1,silver,1,shop,db\n5,60,,6,6,gold,1,shop,batch\n"
    )
    (tmp_path / "hosts.csv").write_text("id,name,cpu,memory\n1,a,8,64\n")
    out, files = tmp_path / "out", [str(tmp_path / name) for name in ("workload.csv", "hosts.csv")]
    assert main(["simulate", *files, "--end", "600", "--events", "--out", str(out)]) == 0
    rows = pq.read_table(out / "requests.parquet").to_pylist()
    assert [(row["namespace"], row["name"]) for row in rows[2:4]] == [(None, None), ("shop", "db")]
    of_instances = pq.read_table(out / "instances.parquet").to_pylist()
    assert [row["name"] for row in of_instances[:3]] == ["web-front", "web-front", "db"]
    shown = Simulation(out)
    view = shown.at(300.0)
    assert {(row.namespace, row.name) for row in view.workloads} == {
        *(("shop", name) for name in ("web-front", "db (2)", "db (4)", "batch")), ("", "request 3"),
    }  # fmt: skip
    assert ("shop", "web-front-1") in {(pod.namespace, pod.name) for pod in view.pods}
    costly = next(one for one in view.decisions if one.victims)
    assert costly.pod == "batch-0"
    story = shown.story("shop", costly.victims[0].pod, 600.0)
    assert story is not None
    assert (60.0, "batch") in {(at, shown.results.title_of(by)) for at, _, by in story if by >= 0}
    assert len(shown.story("shop", "web-front", 600.0) or []) > 1
    assert shown.story("", "web-front", 600.0) is shown.story("shop", "web-front-9", 600.0) is None


def test_instances_of_one_request_share_what_they_are_all_called(tmp_path: Path) -> None:
    (tmp_path / "workload.csv").write_text(
        "id,admission,duration,cpu,memory,class,request,owner,name\n1,0,,1,1,gold,7,web,web-a\n2,0,,1,1,gold,7,web,web-b\n"
    )
    (tmp_path / "hosts.csv").write_text("id,name,cpu,memory\n1,a,8,64\n")
    out, files = tmp_path / "out", [str(tmp_path / name) for name in ("workload.csv", "hosts.csv")]
    assert main(["simulate", *files, "--end", "60", "--out", str(out)]) == 0
    (row,) = pq.read_table(out / "requests.parquet").to_pylist()
    assert (row["owner"], row["name"]) == ("web", None)
    assert [one["name"] for one in pq.read_table(out / "instances.parquet").to_pylist()] == ["web-a", "web-b"]
    assert [one.name for one in Simulation(out).at(60.0).workloads] == ["web"]


def simulated(folder: Path, workload: str) -> Simulation:
    """Ten minutes by priority on one host of 4 cores, of requests that each take all of it."""
    (folder / "workload.csv").write_text("id,admission,duration,class,kind,cpu,memory\n" + workload)
    (folder / "hosts.csv").write_text("id,name,cpu,memory\n1,a,4,8\n")
    out, files = folder / "out", [str(folder / name) for name in ("workload.csv", "hosts.csv")]
    assert main(["simulate", *files, "--policy", "priority", "--end", "600", "--events", "--out", str(out)]) == 0
    return Simulation(out)


def test_who_was_never_placed_is_told_who_was_instead(tmp_path: Path) -> None:
    shown = simulated(
        tmp_path,
        "1,0,100,gold,batch,4,8\n2,10,,bronze,service,4,8\n3,100,100,gold,batch,4,8\n4,200,,silver,service,4,8\n",
    )
    view = shown.at(600.0)
    last = {at: clock(shown.at(at).decisions[0].at, False) for at in (150.0, 600.0)}
    why = f"never placed: 2 placements went to more important classes, last {last[600.0]} (request 4, silver)"
    (waits,) = [one for one in view.pods if one.state == WAITING]
    assert (waits.name, waits.reason) == ("2-0", why)
    assert (shown.story("", "2", 600.0) or [])[-1] == (600.0, f"waits, {why}", -1)
    (earlier,) = [one.reason for one in shown.at(150.0).pods if one.state == WAITING]
    assert earlier == f"never placed: 1 placement went to more important classes, last {last[150.0]} (request 3, gold)"
    (before,) = [one.reason for one in shown.at(50.0).pods if one.state == WAITING]
    assert before == "never placed: nobody was placed since"
    (missed,) = [one for one in view.workloads if one.state == MISSED and one.name == "request 2"]
    assert missed.lost == ((NOT_PLACED, 590.0),)


def test_time_lost_is_told_with_the_class_that_gained_it(tmp_path: Path) -> None:
    shown = simulated(tmp_path, "1,0,,bronze,service,4,8\n2,60,120,gold,batch,4,8\n3,200,,silver,service,4,8\n")
    view = shown.at(600.0)
    number = {one.name: one.number for one in view.classes}
    rows = {one.name: one for one in view.workloads}
    ends = {one.name: shown.results.ended[one.number] for one in view.workloads}
    until_back = ends["request 2"] - 60.0
    (most, then) = rows["request 1"].lost
    assert most == (number["silver"], 400.0)
    assert then == (number["gold"], round(until_back, 1))
    (bronze,) = [one for one in view.classes if one.name == "bronze"]
    assert bronze.lost == rows["request 1"].lost
    (waits,) = [one for one in view.pods if one.state == WAITING]
    to_whom = "1 placement went to more important classes, last 00:03:20 (request 3, silver)"
    assert waits.reason == f"preempted by request 3, silver: {to_whom}"
    told = shown.history(rows["request 1"].number, 600.0, 2)[1]
    assert [by for _, text, by in told if text.startswith("preempted")] == [
        rows["request 2"].number,
        rows["request 3"].number,
    ]
    assert all(not one.lost for one in view.workloads if one.state != MISSED)
