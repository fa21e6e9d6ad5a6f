"""What a workload may suffer in time (docs/semantics.md, Limits on disruption); nothing is added up beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import floor
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from reference.times import on_grid
from slacktide.config import Config
from slacktide.model import DisruptionLimits, Hours, Workload

if TYPE_CHECKING:
    from reference.state import Instance

WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(eq=False)
class Disruption:
    """One preemption or move; ``starts`` is how often the instance had been started when it began."""

    instance: Instance
    begun: float
    starts: int
    over: float | None = None

    def end(self, t: float) -> float | None:
        """When it ended, if it has by ``t``."""
        k = self.instance
        if self.over is None and k.host is not None and k.starts > self.starts and t >= k.ready():
            return k.ready()
        return k.gone if self.over is None else self.over


@dataclass(eq=False)
class Account:
    """Whose disruptions count together: all that ever happened to them."""

    limits: DisruptionLimits
    epoch: datetime
    suffered: list[Disruption] = field(default_factory=list)

    def note(self, k: Instance, t: float) -> None:
        self.suffered.append(Disruption(k, t, k.starts))

    def come_to(self, t: float) -> None:
        """Keep what has ended, before anything happens at ``t``."""
        for one in self.suffered:
            one.over = one.end(t)

    def allows(self, t: float, besides: int) -> bool:
        """Whether one of its instances may be disrupted at ``t``, besides so many others."""
        limits, cooldown = self.limits, on_grid(self.limits.cooldown)
        if limits.most is not None:
            recent = [one for one in self.suffered if t < one.begun + on_grid(limits.per)]
            if len(recent) + besides >= limits.most:
                return False
        ends = [one.end(t) for one in self.suffered]
        if cooldown > 0.0 and (besides or any(end is None or t < end + cooldown for end in ends)):
            return False
        return limits.hours is None or any(self.shows(t, hours) for hours in limits.hours)

    def shows(self, t: float, hours: Hours) -> bool:
        """Whether the clock on the wall shows one of these times (around its changes: tests of hours)."""
        local = (self.epoch + timedelta(seconds=floor(t))).astimezone(ZoneInfo(hours.time_zone))
        minutes = local.hour * 60 + local.minute
        today, yesterday = WEEK[local.weekday()], WEEK[local.weekday() - 1]
        if hours.begin < hours.end:
            return today in hours.days and hours.begin <= minutes < hours.end
        return (today in hours.days and minutes >= hours.begin) or (yesterday in hours.days and minutes < hours.end)


def least_running(limits: DisruptionLimits | None, config: Config) -> float:
    """Seconds on a host before which an instance is no victim."""
    if limits is None or limits.min_running is None:
        return config.policy.min_running
    return on_grid(limits.min_running)


def permits(k: Instance, taken: Sequence[Instance], t: float) -> bool:
    """Whether limits and the least running time let ``k`` go besides those already ``taken`` for one placement."""
    if t - k.placed_at < k.min_running:
        return False
    return k.account is None or k.account.allows(t, sum(other.account is k.account for other in taken))


def open_accounts(workload: Workload, instances: Sequence[Instance], config: Config) -> list[Account]:
    """Tell the instances their accounts: one for a request, or for a row where all are requests of their own."""
    epoch = datetime.fromisoformat(config.simulation.epoch)
    found: dict[int, Account] = {}
    for k in instances:
        limits = workload.classes[k.service_class].limits
        k.min_running = least_running(limits, config)
        if limits is not None and limits.counts:
            of = k.row if workload.request is None else int(workload.request[k.row])
            k.account = found.setdefault(of, Account(limits, epoch))
    return list(found.values())
