"""Passes at the instants at which slack meets the margin: the core and the twin have them at the same ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters import Cluster, cluster
from support.runs import agreed
from support.shortages import shortage

MADE: dict[str, Callable[[int], Cluster]] = {
    "rows": cluster,
    "requests": lambda seed: cluster(seed, several=True),
    "graces": lambda seed: cluster(seed, several=True, graces=True, spells=True),
    "windows": lambda seed: cluster(seed, several=True).windowed(),
    "shortages": shortage,
}


def crossing(one: Cluster) -> Cluster:
    return one.with_(scheduler={"crossings": True})


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE)
def test_core_and_twin_agree(made: str, tmp_path: Path) -> None:
    clusters = (crossing(MADE[made](seed)) for seed in range(15))
    assert agreed(clusters, f"crossings, {made}", tmp_path) >= 4, "clusters without victims prove little"


@pytest.mark.uncompiled
def test_core_and_twin_agree_on_a_few_small_clusters(tmp_path: Path) -> None:
    clusters = (cluster(seed, largest=3, requests=10, several=seed % 2 == 1) for seed in range(20))
    agreed((crossing(one) for one in clusters), "3, 10, crossings", tmp_path)
