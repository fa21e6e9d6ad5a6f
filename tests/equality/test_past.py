"""Requests that were there before the run begins: core and twin decide alike, and files say them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.clusters import Cluster, cluster
from support.pasts import with_past
from support.runs import compare, core, everything, twin

LIFETIME, WINDOWED = False, True
windows = pytest.mark.parametrize("windowed", [LIFETIME, WINDOWED], ids=["lifetime", "windows"])


def forgotten(one: Cluster) -> Cluster:
    """The same, but nobody lost anything."""
    assert one.workload.lost is not None
    return replace(one, workload=replace(one.workload, lost=np.zeros_like(one.workload.lost)))


@pytest.mark.uncompiled
@windows
@pytest.mark.parametrize("several", [False, True], ids=["single", "several"])
@pytest.mark.parametrize("triage", [False, True], ids=["share", "triage"])
def test_core_and_twin_agree(triage: bool, several: bool, windowed: bool, tmp_path: Path) -> None:
    differs = 0
    for seed in range(7000, 7014):
        one = with_past(cluster(seed, largest=3, requests=14, several=several), seed)
        one = one.windowed() if windowed else one
        one = one.triaged() if triage else one
        outcome = twin(one)
        difference = compare(core(one, tmp_path), outcome)
        assert difference is None, f"cluster({seed}, 3, 14, several={several}): {difference}"
        differs += outcome.decisions != twin(forgotten(one)).decisions
    assert differs >= 1, "a past that changes nothing proves little"


@windows
def test_what_saves_work_changes_no_decision(windowed: bool, tmp_path: Path) -> None:
    for seed in range(7100, 7140):
        one = with_past(cluster(seed, several=seed % 2 == 1), seed)
        one = one.windowed() if windowed else one
        plain = everything(core(one.naively(), tmp_path))
        assert everything(core(one, tmp_path)) == plain, f"cluster({seed})"
