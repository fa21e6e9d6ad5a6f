"""Random clusters where a few large requests meet in one pass: many of their instances preempt or are preempted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slacktide.config import Config
from support.clusters import Cluster
from support.small import BRONZE, GOLD, SILVER, Request, Several, machines, small

Random = np.random.Generator


def crowd(seed: int, hosts: int = 9, size: int = 24) -> Cluster:
    """The cluster of this seed: requests of up to ``size`` instances, rows of their own, and too few hosts for them.

    They come at few instants, so that a pass has much to decide; some scale up, so that a metric rises in a pass.
    """
    random = np.random.default_rng([seed, 0xC0DE])
    capacity = [float(random.integers(2, 7)) for _ in range(int(random.integers(2, hosts + 1)))]
    kinds = (("aggregated",) * 3, ("concurrent",) * 2, ("independent", "batch"))
    several, rows, scales = [], [], []
    for of in range(int(random.integers(1, 4))):
        approach = str(random.choice(kinds[int(random.choice(3, p=[0.55, 0.3, 0.15]))]))
        several.append(Several(approach))
        kind, at = int(random.choice([GOLD, SILVER, SILVER, BRONZE, BRONZE])), _instant(random)
        count = int(random.integers(size // 4, size + 1))
        asked, lasts = float(random.choice([1.0, 1.0, 0.5, 2.0])), _lasting(random)
        late = float(random.choice([0.0, 0.0, 30.0]))
        rows += [Request(kind, at + late * (i % 2), lasts, asked, of=of) for i in range(count)]
        if approach != "batch" and random.random() < 0.5:
            at += late + float(random.choice([20.0, 55.5, 100.0]))
            more = int(random.integers(1, size))
            scales.append((at, of, count + more))
            rows += [Request(kind, at, lasts, asked, of=of) for _ in range(more)]
    for _ in range(int(random.integers(0, 2 * size))):
        kind, asked = int(random.integers(3)), float(random.choice([1.0, 1.0, 0.5, 2.0]))
        rows.append(Request(kind, _instant(random), _lasting(random), asked))
    rows.sort(key=lambda row: row.admission)
    return small(
        rows,
        machines(*capacity),
        end=160.0,
        hot=float(random.choice([0.0, 2.5])),
        cold=float(random.choice([0.0, 5.5])),
        config=_config(random, seed),
        several=several,
        scales=sorted(scales),
    )


def _instant(random: Random) -> float:
    return float(random.choice([0.0, 0.0, 30.0, 55.5, 100.0]))


def _lasting(random: Random) -> float:
    return float(random.choice([np.inf, np.inf, 40.0, 90.0]))


def _config(random: Random, seed: int) -> Config:
    """The recommended settings, at times with others that leave the requests their leeway."""
    policy: dict[str, Any] = {
        "patience": float(random.choice([60.0, 60.0, 7.25, 0.0])),
        "overload": str(random.choice(["triage", "triage", "share"])),
        "savable": float(random.choice([40.0, 12.5, 0.0])),
        "overload_patience": float(random.choice([400.0, 15.25])),
        "floor": float(random.choice([0.05, 0.0, 0.6])),
        "preempt_when": str(random.choice(["needed", "needed", "better"])),
        "victims": str(random.choice(["same-pass", "next-pass"])),
        "overhead_scope": str(random.choice(["same-or-more-important", "all", "none"])),
    }
    qos: dict[str, Any] = {
        "startup": str(random.choice(["restart", "always", "never"])),
        "alpha": float(random.choice([22.37107, 10.0])),
    }
    base = Config()
    return replace(
        base,
        policy=replace(base.policy, **policy),
        qos=replace(base.qos, **qos),
        simulation=replace(base.simulation, seed=seed),
    )
