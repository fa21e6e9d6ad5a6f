"""Classes of several ranks, margins and start-up times wait in the order of the twin, which sorts them pair by pair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from slacktide.model import ServiceClass
from support.clusters import Cluster, cluster
from support.runs import compare, core, twin

SEVERAL = tuple(
    replace(
        ServiceClass(f"class-{n}", (1.0, 0.95, 0.9, 0.5, 0.3)[n % 5], 1 + n // 2, (10.0, 0.0, 25.0)[n % 3]),
        alpha=(None, 0.0, 60.0, 7.5)[n % 4],
    )
    for n in range(12)
)


def of_many_classes(seed: int, overload: Literal["share", "triage"]) -> Cluster:
    one = cluster(seed)
    classes = np.random.default_rng(seed).integers(0, len(SEVERAL), len(one.workload)).astype(np.int16)
    policy = replace(
        one.config.policy,
        name="qos-driven",
        queue_order="importance",
        victim_order="importance",
        overload=overload,
    )
    return replace(
        one,
        workload=replace(one.workload, service_class=classes, classes=SEVERAL),
        config=replace(one.config, policy=policy, qos=replace(one.config.qos, margin=None)),
    )


@pytest.mark.parametrize("overload", ["share", "triage"])
@pytest.mark.parametrize("first", [900, 915])
def test_core_and_twin_agree_on_many_classes(first: int, overload: Literal["share", "triage"], tmp_path: Path) -> None:
    preempting = 0
    for seed in range(first, first + 15):
        one = of_many_classes(seed, overload)
        result = core(one, tmp_path)
        difference = compare(result, twin(one))
        assert difference is None, f"of_many_classes({seed}, {overload}): {difference}"
        preempting += result.preemptions > 0
    assert preempting >= 4, "clusters without contention prove little"
