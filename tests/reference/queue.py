"""In which order waiting requests are served (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Iterable

from reference import windows
from reference.state import Instance
from slacktide.config import Config


def overloaded_ranks(waiting: Iterable[Instance], t: float, config: Config) -> frozenset[int]:
    """The ranks of which somebody who waits is late; none where ``overload = share``."""
    if config.policy.overload == "share":
        return frozenset()
    return frozenset(j.rank for j in waiting if is_late(j, t, config))


def recovers(one: Instance, config: Config) -> bool:
    """Whether an instance of its class makes up for being late by running for ``recovery`` seconds at most."""
    return config.policy.savable <= (1.0 / one.sigma - 1.0) * config.policy.recovery


def is_lost(one: Instance, t: float, config: Config) -> bool:
    """Whether it is given up: it is late, and has ``floor`` of its promise; or its class does not recover."""
    if not recovers(one, config):
        return falls_behind(one, metric_keeping_work(one, t, config), config)
    floor = config.policy.floor
    starves = floor > 0.0 and one.metric_at(t, config) + one.alpha < (floor - 1.0) * decided_lifetime(one, t)
    return is_late(one, t, config) and not starves


def metric_keeping_work(one: Instance, t: float, config: Config) -> float:
    """Q as if stopping it discarded no work."""
    if one.request is not None and one.request.decides:
        return one.request.metric_of(one, t, config, keeps_work=True) + one.request.shift
    return one.metric_at(t, config)


def decided_lifetime(one: Instance, t: float) -> float:
    """T of the request whose ledger decides for it, or its own lifetime."""
    if one.request is not None and one.request.decides:
        account = one.request.account
        return one.request.lifetime(t) if account is None else account.owed_lifetime()
    return windows.owed_lifetime(one, t, one.lifetime(t))


def is_late(one: Instance, t: float, config: Config) -> bool:
    """Whether its promise does not count as one that can still be kept."""
    return falls_behind(one, one.metric_at(t, config), config)


def falls_behind(one: Instance, q: float, config: Config) -> bool:
    """Whether one with this metric is late; where there is a plan, that says who is served."""
    return not one.planned_for and q < one.margin and q + one.alpha < config.qos.alpha - config.policy.savable


def qos_order(
    waiting: Iterable[Instance], t: float, config: Config, overloaded: frozenset[int] = frozenset()
) -> list[Instance]:
    """Those below their margin by (rank, metric, row), then the others by (metric, row); ``metric``: all by that.

    Of an overloaded rank those below their margin go by decreasing metric. At one instant metrics order as the keys of
    the contract do; a request's instances have no key.
    """
    by_metric = sorted((j.metric_at(t, config), j.row, j) for j in waiting)
    if config.policy.queue_order == "metric":
        return [j for _, _, j in by_metric]
    below = [(j.rank, -q if j.rank in overloaded else q, row, j) for q, row, j in by_metric if q < j.margin]
    above = [j for q, _, j in by_metric if not q < j.margin]
    return [j for _, _, _, j in sorted(below)] + above


def readiness(
    k: Instance, t: float, config: Config, overloaded: frozenset[int] = frozenset()
) -> tuple[bool, bool, int, float]:
    """How readily running ``k`` is given up, larger first: idle ones, then the mirror of the queue order.

    At or above the margin by metric; below it by rank, the least important first, then by metric, of an overloaded
    rank the smallest first.  ``victim_order = metric``: all by metric.
    """
    q = k.metric_at(t, config)
    if k.is_idle():
        return True, True, 0, q
    spare = q >= k.margin or config.policy.victim_order == "metric"
    return False, spare, 0 if spare else k.rank, -q if not spare and k.rank in overloaded else q


def victim_order(
    running: Iterable[Instance], t: float, config: Config, overloaded: frozenset[int] = frozenset()
) -> list[Instance]:
    """The order in which a host gives up its instances; equal ones by the victim tie, larger first."""
    seed = config.simulation.seed
    return sorted(running, key=lambda k: (readiness(k, t, config, overloaded), k.tie(seed)), reverse=True)


def priority_order(waiting: Iterable[Instance]) -> list[Instance]:
    """By (rank, admission, row)."""
    return sorted(waiting, key=lambda j: (j.rank, j.admission, j.row))
