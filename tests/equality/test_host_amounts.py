"""Hosts that have more or less in the course of a run, and others that come and go: the core and the twin agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slacktide.errors import InputError
from slacktide.model import Hosts
from support.clusters import HostEvent, cluster
from support.runs import compare, core, twin
from support.small import BRONZE, GOLD, Request, machines, small

CLUSTERS, WITH_MARKS = 35, 15


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "neighbours", "resizes"])
def test_core_and_twin_agree_where_amounts_change(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(CLUSTERS):
        of = {"several": kind == "requests", "neighbours": kind == "neighbours", "resizes": kind == "resizes"}
        one = cluster(seed, amounts=True, **of)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, amounts, {kind}): {difference}"
        seen["preempts"] += result.preemptions > 0
        seen["places"] += result.placements > 5
    assert seen["preempts"] >= 3, "clusters without contention prove little"
    assert seen["places"] >= 12


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rows", "requests", "amounts", "graces"])
def test_core_and_twin_agree_where_others_with_marks_come_and_go(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(WITH_MARKS):
        of = {"several": kind == "requests", "amounts": kind == "amounts", "graces": kind == "graces"}
        one = cluster(seed, neighbours=True, marks=True, **of)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, neighbours, marks, {kind}): {difference}"
        without = replace(one, events=tuple(event for event in one.events if event[2] != "marks"))
        seen["decides"] += compare(core(without, tmp_path), twin(one)) is not None
    assert seen["decides"] >= WITH_MARKS / 5, "marks that make no difference prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_core_and_twin_agree_on_a_few_small_clusters(engine: str, tmp_path: Path) -> None:
    for seed in range(25):
        marks = seed % 2 == 1
        one = cluster(seed, largest=3, requests=10, amounts=True, several=seed % 3 == 1, neighbours=marks, marks=marks)
        one = one.on(engine)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"cluster({seed}, 3, 10, amounts): {difference}"


def decisions(
    hosts: Hosts, events: Sequence[HostEvent], *requests: Request, folder: Path
) -> list[tuple[float, int, int]]:
    result = core(small(requests, hosts, end=200.0, cold=1.0, hot=1.0, events=events), folder)
    assert result.decisions is not None
    return list(zip(*(result.decisions[name].tolist() for name in ("time", "row", "host")), strict=True))


def test_others_come_and_nobody_is_evicted_and_nobody_comes_until_they_go(tmp_path: Path) -> None:
    events: list[HostEvent] = [(10.0, 0, "others", {"cpu": 1.5}), (50.5, 0, "others", {"cpu": 0.0})]
    requests = (Request(BRONZE), Request(GOLD, admission=20.0))
    found = decisions(machines(2.0), events, *requests, folder=tmp_path)
    assert found == [(0.0, 0, 0), (50.5, 1, 0)]


def test_a_host_that_gets_larger_takes_who_fitted_nowhere(tmp_path: Path) -> None:
    events: list[HostEvent] = [(33.25, 1, "capacity", {"cpu": 4.0, "memory": 4.0})]
    found = decisions(machines(1.0, 1.0), events, Request(GOLD, size=3.0), folder=tmp_path)
    assert found == [(33.25, 0, 1)]


def test_a_host_that_gets_smaller_keeps_what_is_on_it(tmp_path: Path) -> None:
    events: list[HostEvent] = [(10.0, 0, "capacity", {"cpu": 0.0, "memory": 0.0})]
    requests = (Request(GOLD, duration=30.0), Request(GOLD, admission=20.0))
    assert decisions(machines(1.0), events, *requests, folder=tmp_path) == [(0.0, 0, 0)]
    result = core(small(requests, machines(1.0), end=200.0, cold=1.0, hot=1.0, events=events), tmp_path)
    assert result.requests["completed"].tolist()[0] == 31.0


def test_a_capacity_beside_which_a_demand_is_nothing_is_refused(tmp_path: Path) -> None:
    """Whole amounts are made for the largest capacity of a run: beside 1e15 half a processor would be none."""
    events: list[HostEvent] = [(100.0, 0, "capacity", {"cpu": 4.0}), (150.0, 0, "capacity", {"cpu": 1e15})]
    with pytest.raises(InputError) as caught:
        decisions(machines(2.0), events, Request(GOLD, size=0.5), folder=tmp_path)
    told = str(caught.value)
    assert "events.csv: amounts: found 'cpu=1e+15 of host host-0 at 150 s', expected at most 1e+14 of cpu" in told
    assert "a demand of 0.5 counts as none" in told
    assert decisions(machines(2.0), events, Request(GOLD, size=1.0), folder=tmp_path) == [(0.0, 0, 0)]
