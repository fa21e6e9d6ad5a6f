"""In which order waiting requests are served (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Iterable

from reference.state import Instance
from slacktide.config import Config


def qos_order(waiting: Iterable[Instance], t: float, config: Config) -> list[Instance]:
    """Those below their margin by (rank, key, row), then the others by (key, row); ``metric``: all by (key, row)."""
    by_key = sorted(waiting, key=lambda j: (j.key(config), j.row))
    if config.policy.queue_order == "metric":
        return by_key
    below = [j for j in by_key if j.metric_at(t, config) < j.margin]
    above = [j for j in by_key if not j.metric_at(t, config) < j.margin]
    return sorted(below, key=lambda j: (j.rank, j.key(config), j.row)) + above


def readiness(k: Instance, t: float, config: Config) -> tuple[bool, int, float]:
    """How readily running ``k`` is given up, larger first: the mirror of the queue order.

    At or above the margin by metric; below it by rank, the least important first, then by
    metric.  ``victim_order = metric``: all by metric.
    """
    q = k.metric_at(t, config)
    spare = q >= k.margin or config.policy.victim_order == "metric"
    return spare, 0 if spare else k.rank, q


def victim_order(running: Iterable[Instance], t: float, config: Config) -> list[Instance]:
    """The order in which a host gives up its instances; equal ones by the victim tie, larger first."""
    seed = config.simulation.seed
    return sorted(running, key=lambda k: (readiness(k, t, config), k.tie(seed)), reverse=True)


def priority_order(waiting: Iterable[Instance]) -> list[Instance]:
    """By (rank, admission, row)."""
    return sorted(waiting, key=lambda j: (j.rank, j.admission, j.row))
