"""Victims without whom there is room as well stay (``policy.reprieve``): the core and the twin agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.clusters import cluster
from support.runs import compare, core, twin
from support.small import BRONZE, GOLD, Request, machines, small

CLUSTERS = 14
KINDS: dict[str, dict[str, Any]] = {
    "rows": {},
    "requests": {"several": True},
    "neighbours": {"neighbours": True},
    "marks": {"neighbours": True, "marks": True, "amounts": True},
    "graces": {"graces": True, "resizes": True},
    "gangs": {"several": True, "neighbours": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_core_and_twin_agree(kind: str, tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(CLUSTERS):
        gang = {"gang": True} if kind == "gangs" else {}
        drawn = cluster(seed, **KINDS[kind])
        spares, takes_all = (drawn.with_(policy={"reprieve": yes} | gang) for yes in (True, False))
        for one in (spares, takes_all):
            difference = compare(core(one, tmp_path), twin(one))
            assert difference is None, f"cluster({seed}, {kind}), reprieve {one is spares}: {difference}"
        seen["spares"] += compare(core(spares, tmp_path), twin(takes_all)) is not None
    assert seen["spares"] >= 1, "clusters in which nobody is spared prove little"


@pytest.mark.uncompiled
@pytest.mark.parametrize("engine", ["compiled", "stepwise"])
def test_core_and_twin_agree_on_a_few_small_clusters(engine: str, tmp_path: Path) -> None:
    for seed in range(25):
        one = cluster(seed, largest=3, requests=10, several=seed % 3 == 1, neighbours=seed % 2 == 1)
        one = one.with_(policy={"reprieve": True}).on(engine)
        difference = compare(core(one, tmp_path), twin(one))
        assert difference is None, f"cluster({seed}, 3, 10, reprieve): {difference}"


@pytest.mark.parametrize("name", ["priority", "qos-driven"])
@pytest.mark.parametrize("reprieve", [False, True])
def test_a_small_one_that_came_before_a_large_one_stays(name: str, reprieve: bool, tmp_path: Path) -> None:
    """A small and a large bronze instance share a host; the small one is the first to go: by priority who came last,
    by metric who ran longest."""
    sizes = (3.0, 1.0) if name == "priority" else (1.0, 3.0)
    requests = (*(Request(BRONZE, size=size) for size in sizes), Request(GOLD, size=3.0, admission=60.0))
    requests = (requests[0], replace(requests[1], admission=5.0), requests[2])
    one = small(requests, machines(4.0), end=100.0, cold=1.0, hot=1.0)
    one = one.with_(policy={"name": name, "reprieve": reprieve, "victim_order": "metric", "overload": "share"})
    result = core(one, tmp_path)
    assert result.decisions is not None
    victims = [1, 0] if name == "priority" else [0, 1]
    assert result.decisions["victims"].tolist() == (victims[1:] if reprieve else victims)
