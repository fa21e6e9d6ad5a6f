"""The published inputs, where they are, read once; tests that need them are skipped elsewhere."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.erlang import DATA
from slacktide.config import Config, StartupSettings, preset
from slacktide.inputs import read_hosts, read_workload
from slacktide.metrics import ClassSummary, per_class
from slacktide.model import Hosts, Workload
from slacktide.sim import RunResult

END = 3600.0
ALPHA = 22.37107  # seconds, of the published simulator


def need(folder: str) -> Path:
    """The folder of published files, or the test is skipped."""
    if not (DATA / folder).is_dir():
        pytest.skip(f"the published files are not at {DATA / folder}; SLACKTIDE_DATA names their folder")
    return DATA / folder


@lru_cache(maxsize=4)
def inputs(folder: str, workload: str, hosts: str) -> tuple[Workload, Hosts]:
    """A published workload and its hosts."""
    return read_workload(need(folder) / workload), read_hosts(need(folder) / hosts)


def settings(base: Any = "recommended", /, *, cold: str = "cold.erl", watchdog: float = 10.0, **policy: Any) -> Config:
    """The preset with the published alpha, start-up times and end."""
    config = preset(base)
    delays = need("overheads")
    return replace(
        config,
        policy=replace(config.policy, **policy),
        qos=replace(config.qos, alpha=ALPHA, margin=10.0, startup="restart"),
        scheduler=replace(config.scheduler, watchdog=watchdog),
        startup=StartupSettings(hot=str(delays / "hot.erl"), cold=str(delays / cold)),
        simulation=replace(config.simulation, end=END),
    )


def seeded(config: Config, seed: int) -> Config:
    """The same settings with another seed."""
    return replace(config, simulation=replace(config.simulation, seed=seed))


def by_class(workload: Workload, result: RunResult) -> dict[str, ClassSummary]:
    """What each class got, in the accounting ``restart``."""
    codes = workload.service_class[result.requests["row"]]
    return {one.name: one for one in per_class(result.requests, codes, workload.classes, "restart")}


def delays_of(path: str) -> list[float]:
    """Delays of a published file, as the twin wants them."""
    from slacktide.inputs import read_delays

    return [float(x) for x in np.asarray(read_delays(path))]
