"""In which order waiting requests are served (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor

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
    """By (rank, when it is done backing off, number, admission, row); the second and third as kube-scheduler only."""
    return sorted(waiting, key=lambda j: (j.rank, j.backs_off, j.number, j.admission, j.row))


def as_kube(config: Config) -> bool:
    """Whether the order of equals is kube-scheduler's."""
    return config.policy.equals == "kube-scheduler" and config.policy.name == "priority"


class Turns:
    """Numbers by which equals have their turns, as kube-scheduler's queue gives them."""

    def __init__(self) -> None:
        self.given = 0
        self.left_before = 0
        self.all_tried = False

    def begin(self, waiting: Iterable[Instance], t: float, left: int) -> None:
        """A pass begins, ``left`` times somebody having left a host: if that is more than before, all are tried in it.

        Whoever is new comes behind all others.
        """
        self.all_tried, self.left_before = left != self.left_before, left
        for j in priority_order(j for j in waiting if j.number == 0):
            j.tries, j.again = 0, 0.0
            self.give(j)
        for j in waiting:
            j.backs_off = j.again if j.again >= floor(t) else 0.0

    def end(self, waiting: Iterable[Instance], t: float) -> None:
        """Those that were tried in vain back off for 1, 2, 4, 8, and from then on 10 seconds."""
        for j in priority_order(j for j in waiting if j.number > 0):
            if j.tries == 0 or self.all_tried:
                j.tries += 1
                j.again = float(floor(t + min(2.0 ** (min(j.tries, 10) - 1), 10.0)))
                self.give(j)

    def give(self, j: Instance) -> None:
        self.given += 1
        j.number = self.given
