"""The verdict on a past: that it proves itself first, what each scheduler keeps, and how many nodes that takes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import InputError
from slacktide.model import AGGREGATED, ServiceClass
from slacktide.pasts import audit, outcome, promises
from slacktide.verdict import cluster_past, judging, page
from slacktide.verdict.runs import KUBERNETES, SLACKTIDE, simulated, smallest
from support.made_past import Log, deployment, node, pod

END = 4000.0
NODES = ("a", "b")


def story(tmp_path: Path) -> Path:
    """Two nodes of four cores; three Deployments of one pod of three cores, of which the least important waits from its
    beginning, at 100 s, until the most important goes, at 3,000 s."""
    log = Log()
    for name in NODES:
        log.creates(0.0, node(name, created=0.0))
    found = {}
    for number, (name, at, place) in enumerate((("front", 50.0, "a"), ("back", 60.0, "b"), ("batch", 100.0, ""))):
        for one in deployment(name, 1, created=at):
            log.creates(at, one)
        one = pod(f"{name}-1-x", name, created=at, cpu="3", priority=100 - number, priority_class=name)
        log.creates(at, one)
        if place:
            log.binds(at + 0.25, one, place)
            log.condition(at + 2.0, one, "Ready", "True", phase="Running")
        found[name] = one
    log.event(3000.0, "delete", deployment("front", 1)[0], answer={"kind": "Status"})
    log.event(3000.0, "delete", deployment("front", 1)[1], answer={"kind": "Status"})
    log.told_to_go(3000.0, found["front"])
    log.gone(3001.0, found["front"])
    log.binds(3001.25, found["batch"], "a")
    log.condition(3003.0, found["batch"], "Ready", "True", phase="Running")
    log.condition(END, node("a"), "Ready", "True")
    made = outcome.write(audit.story([log.write(tmp_path / "audit.log")]), tmp_path / "past")
    promises.write(promises.propose(made.workloads), tmp_path / "past")
    return tmp_path / "past"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return story(tmp_path)


def test_the_simulation_of_what_was_comes_out_as_it_was(folder: Path) -> None:
    past = cluster_past.read(folder)
    found = judging.judged(past)
    assert found.believed, found.compared
    assert {one.what: round(one.truth, 3) for one in found.compared} == {
        "availability of back": 0.999, "availability of batch": 0.256, "availability of front": 0.999,
        "median of waiting times, s": 0.25, "90th percentile of waiting times, s": pytest.approx(2321.05, abs=1.0),
        "preemptions": 0.0,
    }  # fmt: skip
    assert "comes out as it was" in found.sentences()[0]
    whole = found.kept[-1]
    assert (whole.workloads, whole.truth) == (3, 2)
    # One more node has room for the third.
    assert found.sizes[KUBERNETES].nodes == found.sizes[SLACKTIDE].nodes == 3
    assert found.attainable == 3


def test_a_simulation_that_does_not_come_out_says_so_first(folder: Path) -> None:
    past = cluster_past.read(folder)
    for one in past.lines.values():
        one.delivered = dict.fromkeys(one.delivered, 0.5)
    found = judging.judged(past, seeds=1)
    assert not found.believed
    assert "does not come out as it was: availability of back" in found.sentences()[0]


def test_more_important_pods_come_first_under_kube_schedulers_rules_whatever_is_promised(folder: Path) -> None:
    """batch is promised the most here, and still waits."""
    rules = (promises.Rule(class_="most", name="batch"), promises.Rule(class_="least"))
    classes = (ServiceClass("most", 0.999, 1), ServiceClass("least", 0.5, 2))
    past = cluster_past.read(folder, promises.Promises(classes, rules))
    number = next(one.request for one in past.lines.values() if one.name == "batch")
    assert simulated(past, KUBERNETES).delivered[number] < 0.3
    assert simulated(past, SLACKTIDE).delivered[number] > 0.95


def test_who_preempts_waits_until_its_victims_are_gone_as_on_a_cluster(folder: Path) -> None:
    past = cluster_past.read(folder)
    past = replace(past, workload=replace(past.workload, grace=np.full(len(past.workload), 30.0)))
    of = {one.name: one.request for one in past.lines.values()}
    ranks = {of[name]: ServiceClass(name, 0.9, 1 if name == "batch" else 2) for name in of}
    waits = simulated(past, KUBERNETES, events=True, promised=ranks).waits.tolist()
    assert [seconds for number, seconds in waits if number == of["batch"]] == [30.0]
    assert next(seconds for number, seconds in waits if number == of["front"]) == 0.0


def test_the_next_pod_of_a_job_does_not_wait_before_it_is_there(folder: Path) -> None:
    """Of two Jobs one is preempted for 100 s. Its pod is gone after 30 s, and the next one comes 50 s later."""
    past = cluster_past.read(folder)
    of = {one.name: one.request for one in past.lines.values()}
    ranks = {of[name]: ServiceClass(name, 0.9, 1 if name == "batch" else 2) for name in of}
    count, requests = len(past.workload), past.workload.requests
    assert requests is not None
    duration = np.where([past.number_of(row) == of["batch"] for row in range(count)], 100.0, np.inf)
    jobs = replace(requests, batch=np.array([one != of["batch"] for one in requests.ids.tolist()]))
    workload = replace(past.workload, grace=np.full(count, 30.0), duration=duration, requests=jobs)
    waits = []
    for again in (None, "constant:50"):
        simulation = replace(past.config.simulation, batch_recreation=again, grace="constant:1")
        one = replace(past, workload=workload, config=replace(past.config, simulation=simulation))
        waits.append(simulated(one, KUBERNETES, events=True, promised=ranks).waits[:, 1].tolist())
    assert [len(one) for one in waits] == [4, 4]
    assert max(waits[0]) - max(waits[1]) == pytest.approx(80.0)


def test_what_all_pods_of_a_workload_got_together_is_promised_and_judged(tmp_path: Path) -> None:
    """Of two pods one has a place from second 10 on."""
    log = Log()
    log.creates(0.0, node("a", created=0.0))
    for one in deployment("pair", 2, created=10.0):
        log.creates(10.0, one)
    for name in "xy":
        one = pod(f"pair-1-{name}", "pair", created=10.0, cpu="3")
        log.creates(10.0, one)
        if name == "x":
            log.binds(10.25, one, "a")
            log.condition(12.0, one, "Ready", "True", phase="Running")
    log.condition(END, node("a"), "Ready", "True")
    made = outcome.write(audit.story([log.write(tmp_path / "audit.log")]), tmp_path / "past")
    promises.write(promises.propose(made.workloads), tmp_path / "past")
    past = cluster_past.read(tmp_path / "past")
    assert past.workload.requests is not None
    assert past.workload.requests.approach.tolist() == [AGGREGATED]
    for scheduler in (KUBERNETES, SLACKTIDE):
        assert simulated(past, scheduler).delivered[1] == pytest.approx(0.5, abs=0.001), scheduler
    assert made.workloads[0].delivered["always"] == pytest.approx(0.5, abs=0.001)


def test_workloads_without_a_promise_are_said(folder: Path) -> None:
    only = promises.Promises((ServiceClass("gold", 0.9, 1),), (promises.Rule(class_="gold", name="front"),))
    past = cluster_past.read(folder, only)
    assert past.unpromised == 2
    found = judging.judged(past, seeds=1)
    assert [one.workloads for one in found.kept] == [1, 1]
    assert "2 workloads are promised nothing" in page.page(found)


def test_one_of_a_kind_is_told_in_the_singular(folder: Path) -> None:
    """One promise, that a single node would keep; of two workloads nobody says anything."""
    one, rule = ServiceClass("gold", 0.9, 1), promises.Rule(class_="gold", name="front")
    found = judging.judged(cluster_past.read(folder, promises.Promises((one,), (rule,))), seeds=1)
    assert "kube-scheduler kept 1 of 1 promise; " in found.sentences()[1]
    found.nodes = found.workloads = found.unpromised = 1
    text = page.page(found)
    assert "1 workload, 1 node</p>" in text
    assert "1 workload is promised nothing and goes last." in text
    assert "on the same 1 node." in text


def test_promises_that_nothing_can_keep_are_told_apart(folder: Path) -> None:
    """Each start takes some seconds."""
    past = cluster_past.read(folder, promises.Promises((ServiceClass("all", 1.0, 1),), (promises.Rule(class_="all"),)))
    found = judging.judged(past, seeds=1)
    assert found.attainable == 0
    assert [(one.name, one.slo) for one in found.kept] == [("all", 1.0), ("all", None)], "of the class, and of all"
    assert "3 promises cannot be kept with any number of nodes" in " ".join(found.sentences())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_nodes_of_any_number_have_todays_shapes(folder: Path, size: int) -> None:
    past = cluster_past.read(folder)
    past.events.append({"time": "5.0", "host": "a", "event": "fail", "amounts": "", "marks": ""})
    past.events.append({"time": "0.0", "host": "a", "event": "others", "amounts": "cpu=1", "marks": ""})
    hosts, events = cluster_past.sized(past, size)
    assert len(hosts) == len(set(hosts.names)) == size
    assert set(hosts.capacity[:, 0].tolist()) == {4.0}
    assert {one["host"] for one in events} <= set(hosts.names)
    assert sum(one["event"] == "fail" for one in events) == ("a" in hosts.names), "a copy of a node does not fail"
    copies = [one for one in hosts.names if one.partition(".")[0] == "a"]
    assert sum(one["event"] == "others" for one in events) == len(copies), "a DaemonSet's pod is on each"


def test_the_smallest_number_is_looked_for_with_every_seed(folder: Path) -> None:
    past = cluster_past.read(folder)
    found = smallest(past, SLACKTIDE, set(past.promised), 2)
    assert found.nodes == 3
    assert found.shares[2] < 1.0 == found.shares[3]


def test_the_page_is_whole_and_escapes_names(folder: Path) -> None:
    past = cluster_past.read(folder)
    past.lines[1].name = "<script>alert(1)</script>"
    past.about["source"] = "<b>"
    text = page.page(judging.judged(past, seeds=1))
    assert "<script" not in text
    assert "&lt;b&gt;" in text
    assert "http" not in re.sub(r'http-equiv="', "", text), "nothing is fetched"


@pytest.mark.parametrize("name", ["past.json", "workloads.csv", "pods.csv", "promises.yaml"])
def test_a_folder_that_is_not_whole_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(InputError, match=name):
        cluster_past.read(folder)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("past.json", "{", "what slacktide past writes"),
        ("past.json", json.dumps({"format": "another"}), "format: found 'another'"),
        ("workloads.csv", "request,name\n1,a\n", "workloads.csv:2: "),
        ("pods.csv", "request,created\nx,1\n", "pods.csv"),
    ],
)
def test_a_broken_file_of_the_folder_is_named(folder: Path, name: str, content: str, expected: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=expected):
        cluster_past.read(folder)


def test_it_may_be_moved(folder: Path, tmp_path: Path) -> None:
    first = simulated(cluster_past.read(folder), KUBERNETES)
    folder.rename(tmp_path / "elsewhere")
    assert simulated(cluster_past.read(tmp_path / "elsewhere"), KUBERNETES).delivered == first.delivered
