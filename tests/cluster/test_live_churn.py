"""Under churn, kills of leaders and of the API server, ledgers say what the audit log says, and no limit is exceeded.

The full size is ``bench/churn.py``; its figures stand in docs/live-measured.md.
"""

from __future__ import annotations

import pytest

from cluster.audit_reading import CLUSTER, WORKLOAD
from cluster.churning import Size, churned, judge
from slacktide.lab import Binaries

OFF_SECONDS = 1.5
"""A second as in the full size. The rest: what a busy machine sees late counts late."""


def test_ledgers_and_limits_under_kills(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> None:
    size = Size(workloads=20, leader_kills=3, server_kills=1, between=3.0)
    with churned(binaries, tmp_path_factory.mktemp("churn"), size) as churn:
        churn.play()
        verdict = judge(churn.log, churn.samples, OFF_SECONDS, churn.pulse.late)
    assert not verdict.exceeded, (verdict.exceeded, churn.kills)
    assert not verdict.apart, (verdict.apart, churn.kills)
    assert verdict.samples > 2 * size.workloads
    assert sum(verdict.disruptions.values()) > 0
    assert min(verdict.seconds[cause] for cause in (CLUSTER, WORKLOAD)) > 0.0
    assert len(churn.kills) == size.leader_kills + size.server_kills
