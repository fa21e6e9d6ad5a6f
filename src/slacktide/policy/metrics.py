"""Metrics for policies from pieces: availability, as the built-in policies have it, and throughput up to a deadline."""

from __future__ import annotations

import numpy as np

from slacktide.policy.pieces import Metric

GRID = 2.0**20
"""Times are multiples of the 2^20th part of a second."""
LONGEST = 2.0**32
"""Seconds; a longer time counts as infinite."""


def _slack(received: float, lifetime: float, instances: int, others: int, slo: float, alpha: float) -> float:
    """Q of the equations of slacktide.kernels.qos.request_ledger: of one instance those of .metric."""
    ahead = float(np.rint(received / slo * GRID)) / GRID - lifetime
    if ahead < 0.0:
        return ahead - alpha
    loses = instances * slo - others
    if loses <= 0.0:
        return np.inf
    left = ahead * (slo / loses)
    return np.inf if left > LONGEST else float(np.rint(left * GRID)) / GRID - alpha


def _falls(instances: int, others: int, slo: float) -> float:
    """What those that wait fall behind a second, less what the others make up for."""
    behind = instances - others / slo
    return 0.0 if behind <= 0.0 else max(1.0, behind)


availability = Metric(_slack, _falls)
"""The share of its lifetime in which it ran, beside what it was promised, without windows."""


def throughput(deadline: float) -> Metric:
    """So much running in all, whenever it comes: the class's promise of the first ``deadline`` seconds.

    Slack is for how long an instance can wait and still receive ``slo * deadline`` seconds by the deadline; infinite
    once it has received them. Of a request of several instances it is their mean.
    """

    def slack(received: float, lifetime: float, instances: int, slo: float) -> float:
        count = max(1, instances)
        missing = slo * deadline - received / count
        if missing <= 0.0:
            return np.inf
        return (deadline - lifetime / count) - missing

    def falls() -> float:
        return 1.0

    return Metric(slack, falls)
