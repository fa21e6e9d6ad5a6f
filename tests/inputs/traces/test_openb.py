"""Alibaba's GPU cluster of 2023: the published files, end to end, and small ones made to their schema."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.config import preset
from slacktide.errors import ConfigError, InputError
from slacktide.inputs import align, read_hosts
from slacktide.inputs.prepare import peak
from slacktide.metrics import per_class
from slacktide.sim import run
from support.converting import convert, hosts, left_out, rows, workload
from support.published import need

CLASS = {"LS": "gold", "Guaranteed": "gold", "Burstable": "silver", "BE": "bronze"}
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,500,10
p1,6000,12288,1,460,V100M16,BE,Succeeded,20,80,20
p2,6000,1024,8,1000,T4|G2,Burstable,Running,20,90,30
p3,6000,1024,0,0,,Guaranteed,Failed,30,60,30
p4,6000,1024,0,0,,BE,Pending,30,60,
p5,6000,1024,0,0,,BE,Failed,30,40,40
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,32000,262144,0,
n1,96000,393216,8,G2
n2,64000,262144,2,T4
n3,64000,262144,2,V100M16
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "nodes.csv").write_text(NODES)
    return tmp_path


def test_pods_become_requests(small: Path) -> None:
    found = convert("openb", [small / "pods.csv", small / "nodes.csv"], small / "out", capacity="all")
    assert rows(small / "out") == [
        {"id": 0, "name": "p0", "admission": 0, "cpu": 12, "memory": 16, "resource:gpu": 1, "class": "gold"},
        {
            "id": 1,
            "name": "p1",
            "admission": 20,
            "duration": 60,
            "cpu": 6,
            "memory": 12,
            "resource:gpu": 0.46,
            "class": "bronze",
            "constraints": "model == V100M16",
        },
        {
            "id": 2,
            "name": "p2",
            "admission": 20,
            "duration": 60,
            "cpu": 6,
            "memory": 1,
            "resource:gpu": 8,
            "class": "silver",
            "constraints": "model /= V100M16",
        },
        {
            "id": 3,
            "name": "p3",
            "admission": 30,
            "duration": 30,
            "cpu": 6,
            "memory": 1,
            "resource:gpu": 0,
            "class": "gold",
        },
    ]
    assert left_out(found) == {
        "pods that never ran": 1,
        "pods that ran for less than a second, by which the list counts": 1,
    }
    assert hosts(small / "out").capacity.tolist() == [[32, 256, 0], [96, 384, 8], [64, 256, 2], [64, 256, 2]]
    assert hosts(small / "out").attributes[:2] == ({}, {"model": "G2"})
    convert("openb", [small], small / "late", admission="scheduled", capacity="all")
    assert [row["admission"] for row in rows(small / "late")] == [10, 20, 30, 30]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("p1,6000", "p1,6 cores", "pods.csv:3: cpu_milli: found '6 cores', expected a whole number, 0 or more"),
        ("1,460", "1,1460", "pods.csv:3: gpu_milli: found '1460'"),
        ("Running,0,500", "Running,,500", "pods.csv:2: creation_time: found 'nothing'"),
        ("num_gpu", "gpus", "pods.csv:1: num_gpu: expected this column"),
    ],
)
def test_a_broken_pod_is_named(small: Path, old: str, new: str, said: str) -> None:
    (small / "pods.csv").write_text(PODS.replace(old, new, 1))
    with pytest.raises(InputError, match=said):
        convert("openb", [small], small / "out")


def test_one_list_of_pods_and_one_of_nodes_are_read_under_either_name(small: Path) -> None:
    (small / "nodes.csv").rename(small / "openb_node_list_all_node.csv")
    assert convert("openb", [small], small / "out", capacity="all").hosts == 4
    (small / "openb_pod_list_default.csv").write_text(PODS)
    with pytest.raises(InputError, match="found '2 files', expected one file of pods"):
        convert("openb", [small], small / "other")
    with pytest.raises(InputError, match="found '0 files', expected one file of nodes"):
        convert("openb", [small / "pods.csv"], small / "other")
    (small / "empty.csv").write_text("")
    (small / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    with pytest.raises(InputError, match=r"nodes.csv: found 'none', expected at least one row"):
        convert("openb", [small / "pods.csv", small / "nodes.csv"], small / "other")


def test_a_node_that_is_there_twice_is_named(small: Path) -> None:
    (small / "nodes.csv").write_text(NODES + "n1,96000,393216,8,G2\n")
    with pytest.raises(InputError, match=r"nodes.csv:6: name: found 'n1', expected a name that no other host has"):
        convert("openb", [small], small / "out")


def test_a_class_without_a_rule_and_a_capacity_that_is_none_are_refused(small: Path) -> None:
    with pytest.raises(ConfigError, match=r"--map: no rule for qos BE \(1 times\), Burstable \(1 times\)"):
        convert("openb", [small], small / "out", "LS=gold,Guaranteed=gold")
    with pytest.raises(ConfigError, match="capacity: found 'half', expected a part of the peak"):
        convert("openb", [small], small / "out", capacity="half")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The published pods, and nodes of .8 of their peak."""
    folder = tmp_path_factory.mktemp("openb") / "out"
    convert("openb", [need("openb")], folder)
    return folder


def table(name: str) -> list[dict[str, str]]:
    with (need("openb") / name).open() as file:
        return list(csv.DictReader(file))


def test_published_pods_are_all_there_with_their_classes_and_gpus(published: Path) -> None:
    ran = [pod for pod in table("pods-default.csv") if pod["scheduled_time"]]
    found = workload(published)
    assert len(found) == len(ran)
    names = [one.name for one in found.classes]
    assert Counter(names[number] for number in found.service_class.tolist()) == Counter(CLASS[p["qos"]] for p in ran)
    gpus = [int(pod["num_gpu"]) * int(pod["gpu_milli"]) / 1000 for pod in ran]
    assert found.demand[:, found.resources.index("gpu")].sum() == pytest.approx(sum(gpus))
    last = max(float(pod["deletion_time"]) for pod in ran)
    ended = [pod for pod in ran if float(pod["deletion_time"]) < last]
    assert len(ran) - len(ended) == 34
    lasted = [float(pod["deletion_time"]) - float(pod["scheduled_time"]) for pod in ended]
    assert found.duration[np.isfinite(found.duration)].sum() == pytest.approx(sum(lasted))
    assert found.admission.tolist() == sorted(float(pod["creation_time"]) for pod in ran)
    nodes = read_hosts(published / "all-hosts.parquet")
    assert nodes.capacity[:, 2].sum() == sum(int(node["gpu"]) for node in table("nodes.csv"))


def test_the_nodes_drawn_have_at_most_the_part_of_the_peak_of_gpus(published: Path) -> None:
    needed = peak(workload(published)).of("gpu")
    drawn = hosts(published).capacity[:, 2].sum()
    assert needed * 0.8 - 8 <= drawn <= needed * 0.8
    assert set(hosts(published).names) <= set(read_hosts(published / "all-hosts.parquet").names)


@pytest.mark.parametrize("policy", ["priority", "qos-driven"])
def test_published_pods_compete_under_both_policies(published: Path, policy: str) -> None:
    requests, machines = align(workload(published), hosts(published))
    config = preset("recommended")
    config = replace(
        config,
        policy=replace(config.policy, name=policy),
        simulation=replace(config.simulation, end=13_000_000.0),
    )
    result = run(requests, machines, config)
    waited = result.requests["pending"] > 0
    assert np.count_nonzero(waited) > 0
    codes = requests.service_class[result.requests["row"]]
    classes = {one.name: one for one in per_class(result.requests, codes, requests.classes, "restart")}
    assert sum(one.requests for one in classes.values()) == len(requests)
    assert classes["silver"].fulfilment["restart"] < 1
