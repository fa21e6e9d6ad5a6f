"""Runs that go on piece by piece: pauses and copies change nothing; settings changed in between hold from then on."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from slacktide.errors import ConfigError
from slacktide.settings import with_sections
from slacktide.settings_file import SettingsFile
from slacktide.sim import Run
from slacktide.state import cluster as state_of_cluster
from support.clusters import Cluster, cluster
from support.compiled_policy import CompiledPolicy
from support.runs import core, everything, settings_of

CHANGES: tuple[dict[str, Any], ...] = (
    {"policy": {"patience": 3.0, "savable": 2.0}},
    {"policy": {"overhead_limit": 0.05, "overhead_scope": "all"}},
    {"policy": {"floor": 0.4}, "scheduler": {"watchdog": 1.5}},
    {"policy": {"overhead_scope": "none", "reprieve": True}},
    {"policy": {"cost": "fewest-victims"}},
    {"policy": {"queue_limit": 3}},
    {"policy": {"name": "priority"}},
    {"policy": {"name": "qos-driven"}},
    {"policy": {"name": "hybrid", "victims": "same-pass"}},
    {"policy": {"queue_order": "metric", "victim_order": "metric", "overload": "share"}},
    {"policy": {"gang": True}},
)


def begun(one: Cluster, folder: Path) -> Run:
    own = CompiledPolicy() if one.engine == "stepwise" else None
    with patch.multiple(state_of_cluster, NAIVE=one.naive, LARGE_REQUEST=one.large):
        return Run(one.workload, one.hosts, settings_of(one, folder), own=own, decisions=True, passes=True)


@pytest.mark.parametrize("engine", ["core", "stepwise"])
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_pauses_and_copies_change_nothing(several: bool, engine: str, tmp_path: Path) -> None:
    for seed in range(25):
        one = cluster(seed, several=several, neighbours=engine == "core" and seed % 2 == 0).on(engine)
        whole = everything(core(one, tmp_path))
        run, cuts = begun(one, tmp_path), np.random.default_rng(seed).uniform(0.0, 200.0, 4)
        for at in (0.0, *sorted(cuts.tolist())):
            run.until(at)
            other = deepcopy(run)
            other.until(at + 50.0)
            other.result()
        run.until()
        assert everything(run.result()) == whole, f"cluster({seed}, several={several}), {engine}"


def changed(one: Cluster, folder: Path, at: float, change: dict[str, Any]) -> list[Any]:
    run = begun(one, folder)
    run.until(at)
    with patch.multiple(state_of_cluster, NAIVE=one.naive, LARGE_REQUEST=one.large):
        run.change(with_sections(run.config, change, SettingsFile("test", change)))
    run.until()
    return everything(run.result())


@pytest.mark.parametrize("change", CHANGES, ids=lambda one: "-".join(map(str, one["policy"])))
def test_what_was_found_out_by_other_settings_is_forgotten(change: dict[str, Any], tmp_path: Path) -> None:
    other = 0
    for seed in range(20):
        one = cluster(seed, 4, 60, several=seed % 3 == 0, neighbours=seed % 2 == 0)
        plain = everything(core(one, tmp_path))
        try:
            naive = changed(one.naively(), tmp_path, 40.0, change)
        except ConfigError:  # of some clusters it is about more than decisions
            continue
        assert changed(one, tmp_path, 40.0, change) == naive, f"cluster({seed}), {change}"
        other += naive != plain
    assert other


def test_what_holds_for_a_whole_run_is_refused_in_one(tmp_path: Path) -> None:
    one = cluster(3)
    for change in ({"qos": {"margin": 77.0}}, {"startup": {"cold": "constant:3"}}):
        with pytest.raises(ConfigError, match="holds for a whole run"):
            changed(one, tmp_path, 10.0, change)
