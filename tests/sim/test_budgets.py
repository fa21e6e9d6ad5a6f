"""How many of a budget are preempted at most, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.model import Budget
from support.clusters import Cluster
from support.runs import Decision, compare, core, decisions_of, twin
from support.small import BRONZE, GOLD, Request, machines, small

pytestmark = pytest.mark.uncompiled


def pair(bound: dict[str, int], golden: Sequence[Request], *capacities: float, cold: float = 0.0) -> Cluster:
    """Two bronze requests of one budget, then these golden ones, each of which may preempt any bronze one."""
    rows = [Request(BRONZE), Request(BRONZE), *golden]
    one = small(rows, machines(*capacities), end=100.0, cold=cold, policy={"name": "priority"})
    codes = np.array([0, 0, *[-1] * len(golden)], np.int32)
    return replace(one, workload=replace(one.workload, budget=codes, budgets=(Budget("web", **bound),)))


def golden_starts(one: Cluster, folder: Path) -> list[Decision]:
    """Decisions after the first two, which are those for the bronze requests; the core's are the twin's."""
    result = core(one, folder)
    assert compare(result, twin(one)) is None
    decisions = decisions_of(result)
    assert {row for _, _, row, _, _ in decisions[:2]} == {0, 1}
    return decisions[2:]


@pytest.mark.parametrize(
    ("bound", "enough"),
    [
        ({"max_unavailable": 1}, False),
        ({"max_unavailable": 2}, True),
        ({"min_available": 1}, False),
        ({"min_available": 0}, True),
    ],
)
def test_victims_of_one_placement_count_together(bound: dict[str, int], enough: bool, tmp_path: Path) -> None:
    # Both bronze ones would have to go for one golden request of size 2.
    found = golden_starts(pair(bound, [Request(GOLD, 10.0, size=2.0)], 2.0), tmp_path)
    assert [(time, row, sorted(victims)) for _, time, row, _, victims in found] == ([(10.0, 2, [0, 1])] * enough)


@pytest.mark.parametrize("bound", [{"max_unavailable": 1}, {"min_available": 1}])
@pytest.mark.parametrize(("cold", "first"), [(0.0, 10.0), (25.0, 30.0)])
def test_only_who_is_on_a_host_and_ready_is_healthy(
    bound: dict[str, int], cold: float, first: float, tmp_path: Path
) -> None:
    # One of two may go as soon as both are ready: at 25 s, of which the watchdog takes note at 30 s. None may go after
    # that, as the one that is left is all that is healthy.
    found = golden_starts(pair(bound, [Request(GOLD, 10.0), Request(GOLD, 40.0)], 1.0, 1.0, cold=cold), tmp_path)
    assert [(time, row, len(victims)) for _, time, row, _, victims in found] == [(first, 2, 1)]
