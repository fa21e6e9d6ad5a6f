"""Passes at given instants, as those of a live run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slacktide.config import SimulationSettings, preset
from slacktide.errors import ConfigError
from slacktide.inputs.generators.registry import generated
from slacktide.sim import run
from support.clusters import cluster
from support.runs import compare, core, twin


@pytest.mark.uncompiled
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_on_given_passes(several: bool, tmp_path: Path) -> None:
    placed = 0
    for seed in range(15):
        instants = np.round(np.sort(np.random.default_rng(seed).uniform(0.0, 150.0, 40)), int(seed % 3))
        (tmp_path / "passes.csv").write_text("seconds\n" + "".join(f"{at!r}\n" for at in instants.tolist()))
        one = cluster(seed, largest=4, requests=20, several=several)
        one = one.with_(scheduler={"triggers": str(tmp_path / "passes.csv")}, simulation={"end": 140.0})
        result = core(one, tmp_path)
        assert compare(result, twin(one)) is None, f"cluster({seed}, 4, 20, {several})"
        assert result.passes is not None
        assert set(result.passes["time"]) <= {round(at * 2**20) / 2**20 for at in instants}
        placed += result.placements
    assert placed > 100


@pytest.mark.uncompiled
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_core_and_twin_agree_where_incarnations_take_time_to_come_back(several: bool, tmp_path: Path) -> None:
    preempted = 0
    for seed in range(24):
        one = cluster(seed, largest=4, requests=25, several=several)
        one = one.with_(simulation={"recreation": (0.25, 3.0, 40.0)[seed % 3], "end": 150.0})
        result = core(one, tmp_path)
        assert compare(result, twin(one)) is None, f"cluster({seed}, 4, 25, {several})"
        preempted += result.preemptions
    assert preempted > 20


def test_the_return_of_a_preempted_one_calls_for_a_pass_only_where_there_is_room() -> None:
    """On a full cluster each preemption would else lead to a pass, and that to others."""
    workload, hosts = generated("validation-1")
    runs = {}
    for delay in (0.0, 1.0):
        config = replace(preset("published"), simulation=SimulationSettings(recreation=delay, end=3600.0))
        runs[delay] = run(workload, hosts, config)
    assert runs[0.0].preemptions > 4000
    assert 0.7 < runs[1.0].preemptions / runs[0.0].preemptions < 1.1
    assert runs[1.0].pass_count < 1.1 * runs[0.0].pass_count


def test_a_missing_file_of_passes_is_refused(tmp_path: Path) -> None:
    one = cluster(1).with_(scheduler={"triggers": str(tmp_path / "none.csv")})
    with pytest.raises(ConfigError, match=r"scheduler\.triggers: found '.*none\.csv', expected a file of seconds"):
        core(one, tmp_path)
