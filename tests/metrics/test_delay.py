"""What users saw of delays, against values computed by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.config import DelaySettings
from slacktide.kernels.tables import log_records
from slacktide.metrics import delay as module
from slacktide.metrics.delay import placement_delays, user_delay
from slacktide.model import DEFAULT_CLASSES, Access, Hosts, Image, Network, Workload
from support.edges import edge
from support.runs import core

SETTINGS = DelaySettings(phi=0.5, processing=2.0, transfer=1.0)
GRID = 1e-6  # seconds; round-trip times are rounded to the grid of times
BEGUN, PREEMPTED, COMPLETED = log_records.BEGUN, log_records.PREEMPTED, log_records.COMPLETED


def world() -> tuple[Workload, Hosts]:
    """Two hosts at sites of their own, two requests whose users are at a and in the cloud."""
    rtt = np.array([[0.001, 0.02, 0.04], [0.02, 0.001, 0.06], [0.04, 0.06, 0.0]])
    network = Network(("a", "b", "cloud"), rtt, "site", (Image("big", size=4.0), Image("slow", seconds=3.0)))
    capacity = np.array([[4.0, 8.0, 2.0], [4.0, 8.0, 1.0]])
    resources = ("cpu", "memory", "network")
    hosts = Hosts(np.arange(2), ("h1", "h2"), capacity, ({"site": "a"}, {"site": "b"}), resources, network)
    one = Access(data=0.1, image="big", logins=(("h1", 0.75), ("cloud", 0.25)))
    two = Access(data=0.2, image="slow", logins=(("a", 1.0),))
    workload = Workload(
        ids=np.array([7, 8]),
        admission=np.zeros(2),
        duration=np.full(2, 100.0),
        demand=np.array([[1.0, 1.0, 0.5], [2.0, 1.0, 0.0]]),
        service_class=np.array([0, 2], np.int16),
        job=np.array([1, 2]),
        anti_affinity=np.zeros(2, np.bool_),
        term=np.zeros(2, np.int32),
        resources=resources,
        classes=DEFAULT_CLASSES,
        limit=np.array([[1.8, 1.0, 0.5], [4.0, 1.0, 0.0]]),
        access=np.array([0, 1], np.int32),
        accesses=(one, two),
    )
    return workload, hosts


def events(*rows: tuple[float, int, int, int]) -> dict[str, np.ndarray]:
    time, kind, row, host = zip(*rows, strict=True)
    return {"time": np.array(time, float), "kind": np.array(kind), "row": np.array(row), "host": np.array(host)}


HISTORY = events((0, BEGUN, 0, 0), (10, BEGUN, 1, 0), (30, PREEMPTED, 1, 0), (35, BEGUN, 1, 1), (40, COMPLETED, 0, 0))


def test_delays_of_placements_by_hand() -> None:
    workload, hosts = world()
    first, second, third = placement_delays(HISTORY, workload, hosts, SETTINGS, 55.0).to_pylist()
    # 7 on h1, 0 to 40 s. Three quarters of its users are on h1 itself, a quarter in the cloud, 40 ms of round trip
    # away; 0.1 of data over 0.5 of bandwidth.
    assert first["network"] == pytest.approx(0.25 * 0.04 / 2 + 0.1 / 0.5, abs=GRID)
    # Half of 4 CPUs is above its limit of 1.8; from 10 to 30 s the other has 2 of the 4, and half of what is left is 1.
    assert first["processing"] == pytest.approx(2.0 * 0.1 * (20 / 1.8 + 20 / 1.0) / 40)
    assert first["delay"] == first["network"] + first["processing"]
    assert first["image"] == 4.0 / 2.0
    assert (first["request"], first["class"], first["host"], first["begin"], first["end"]) == (7, "gold", "h1", 0, 40)
    # 8 on h1: users at place a are nobody's node, the round trip between two nodes of the place remains. Its demand of
    # 2 is above half of the 3 that are left; it asks for no bandwidth.
    assert (second["begin"], second["end"], second["host"]) == (10, 30, "h1")
    assert second["network"] == pytest.approx(0.001 / 2, abs=GRID)
    assert second["processing"] == pytest.approx(2.0 * 0.2 / 2.0)
    # 8 on h2 until the end: alone there, half of 4 is 2.
    assert (third["request"], third["begin"], third["end"]) == (8, 35, 55)
    assert third["network"] == pytest.approx(0.02 / 2, abs=GRID)
    assert (second["image"], third["image"]) == (3.0, 3.0)


def test_an_image_is_paid_once_where_it_is_kept_and_not_where_it_is_present() -> None:
    workload, hosts = world()
    again = events((0, BEGUN, 1, 0), (10, PREEMPTED, 1, 0), (20, BEGUN, 1, 0), (30, COMPLETED, 1, 0))
    kept = placement_delays(again, workload, hosts, SETTINGS, 30.0)["image"].to_pylist()
    lost = placement_delays(again, workload, hosts, replace(SETTINGS, keep_images=False), 30.0)["image"].to_pylist()
    assert (kept, lost) == ([3.0, 0.0], [3.0, 3.0])
    assert hosts.network is not None
    present = replace(hosts, network=replace(hosts.network, images=(Image("slow", seconds=3.0, present=("h1",)),)))
    assert placement_delays(again, workload, present, SETTINGS, 30.0)["image"].to_pylist() == [0.0, 0.0]


def test_means_and_quantiles_weigh_placements_by_their_time() -> None:
    workload, hosts = world()
    delays = placement_delays(HISTORY, workload, hosts, SETTINGS, 55.0)
    gold, silver, bronze, everyone = user_delay(delays, DEFAULT_CLASSES).to_pylist()
    seen = delays["delay"].to_pylist()
    assert (gold["placements"], gold["mean"], gold["p95"]) == (1, pytest.approx(seen[0]), seen[0])
    assert silver["mean"] is None
    assert bronze["mean"] == pytest.approx((seen[1] + seen[2]) / 2)  # 20 s each
    assert bronze["p99"] == max(seen[1:])
    assert everyone["seconds"] == 80.0
    assert everyone["mean"] == pytest.approx((40 * seen[0] + 20 * seen[1] + 20 * seen[2]) / 80)
    assert everyone["image"] == pytest.approx((2.0 + 3.0 + 3.0) / 3)


def test_parts_of_any_size_give_the_same_delays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = edge(5, largest=6, requests=60)
    result = core(one, tmp_path, events=True)
    assert result.events is not None
    whole = placement_delays(result.events, one.workload, one.hosts, one.config.delay, result.end)
    assert whole.num_rows > 10
    monkeypatch.setattr(module, "SEGMENTS", 3)
    parts = placement_delays(result.events, one.workload, one.hosts, one.config.delay, result.end)
    assert whole.equals(parts)


def test_a_run_without_placements_has_no_delay() -> None:
    workload, hosts = world()
    nothing = {name: values[:0] for name, values in HISTORY.items()}
    found = user_delay(placement_delays(nothing, workload, hosts, SETTINGS, 10.0), DEFAULT_CLASSES)
    assert found["placements"].to_pylist() == [0, 0, 0, 0]
    assert found["mean"].null_count == 4
