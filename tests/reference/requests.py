"""Requests of several instances (docs/semantics.md, Requests of several instances).

Nothing is kept up to date here but the joint running time of concurrent requests:
whatever else a request has is summed over its instances whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from reference import metric, request_windows
from reference.metric import ACCOUNTINGS
from reference.windows import Promise
from slacktide.config import Accounting, Config
from slacktide.model import Workload

if TYPE_CHECKING:
    from reference.state import Instance

Approach = Literal["independent", "concurrent", "aggregated"]
APPROACHES: tuple[Approach, ...] = ("independent", "concurrent", "aggregated")


@dataclass(frozen=True)
class Totals:
    """A request's ledger in one accounting, seconds; ``lifetime`` is the sum of the other three."""

    lifetime: float
    running: float
    discarded: float
    pending: float


@dataclass(eq=False)
class Request:
    """One request and all the instances it will ever have, by row."""

    approach: Approach
    batch: bool = False
    parallelism: int = 0
    instances: list[Instance] = field(default_factory=list)
    together: dict[Accounting, float] = field(default_factory=lambda: dict.fromkeys(ACCOUNTINGS, 0.0))
    """Of a concurrent request: instance seconds up to ``counted_to`` in which all live instances were up."""
    counted_to: float = 0.0
    promise: Promise | None = None
    """Its window; ``None``: its whole life, or its instances are judged by their own ledgers."""
    account: request_windows.Account | None = None
    """What its window asks for, from its first admission on."""
    shift: float = 0.0
    """By which the plan moves the metric of its instances, where its ledger decides."""

    @property
    def decides(self) -> bool:
        """Whether its instances are judged by the request's ledger instead of their own."""
        return self.batch or self.approach != "independent"

    def had(self) -> list[Instance]:
        """Every instance that was admitted so far, gone or not."""
        return [j for j in self.instances if j.admitted]

    def live(self) -> list[Instance]:
        return [j for j in self.had() if j.gone is None]

    def waiting(self) -> list[Instance]:
        return [j for j in self.live() if j.host is None]

    def away(self) -> list[Instance]:
        """Those who wait, and those who go on until their grace period is over."""
        return [j for j in self.live() if j.host is None or j.leaving]

    def loses_work(self, config: Config) -> bool:
        """Whether a stopped instance starts from nothing again."""
        work = config.simulation.preempted_work
        return work == "lost" or (work == "by-kind" and self.batch)

    # The ledger at t

    def lifetime(self, t: float) -> float:
        """T: seconds from admission to now, completion or removal, of all instances."""
        return sum((j.lifetime(t) for j in self.had()), start=0.0)

    def up(self, t: float, accounting: Accounting) -> list[Instance]:
        """Live instances on a host whose running counts at ``t``."""
        return [j for j in self.live() if j.is_up(t, accounting)]

    def joint(self, t: float, accounting: Accounting) -> float:
        """Instance seconds in which all live instances were up; nobody may have moved since ``counted_to``."""
        live, earlier = self.live(), self.together[accounting]
        if self.waiting():
            return earlier
        begin = max([self.counted_to, *(j.up_from(accounting) for j in live)])
        return earlier + len(live) * max(0.0, t - begin)

    def count_to(self, t: float) -> None:
        """Book the joint time up to ``t``, before anything happens at ``t``."""
        self.together = {name: self.joint(t, name) for name in ACCOUNTINGS}
        self.counted_to = t

    def share(self, t: float, accounting: Accounting) -> tuple[int, int]:
        """How many count, and of how many, for a promise over a window; (1, 1) is all of it."""
        live, up = len(self.live()), len(self.up(t, accounting))
        if self.approach == "concurrent" or live == 0:
            return (1 if up == live else 0), 1
        return up, live

    def note_share(self, t: float, accounting: Accounting) -> None:
        """Tell its account what it got up to ``t``, before anything happens at ``t``; start-ups end on the way."""
        if self.account is None:
            return
        since = self.account.noted_to
        ends = {j.up_from(accounting) for j in self.live() if j.host is not None}
        instants = sorted({since, t} | {end for end in ends if since < end < t})
        for begin, end in pairwise(instants):
            self.account.note(end, *self.share(begin, accounting))

    def running(self, t: float, accounting: Accounting) -> float:
        """e of the request."""
        if self.approach == "concurrent":
            return self.joint(t, accounting)
        return sum((j.ledger_at(t, accounting).e for j in self.had()), start=0.0)

    def totals(self, t: float, accounting: Accounting) -> Totals:
        """The whole ledger; running time that does not count is discarded, be it lost or not joint."""
        ledgers = [j.ledger_at(t, accounting) for j in self.had()]
        lost = sum((j.lost for j in self.had()), start=0.0)
        ran = sum((ledger.e for ledger in ledgers), start=0.0) + lost
        waited = sum((ledger.p for ledger in ledgers), start=0.0) - lost
        e = self.running(t, accounting)
        return Totals(self.lifetime(t), e, ran - e, waited)

    # What decisions ask for

    def metric_of(self, j: Instance, t: float, config: Config, keeps_work: bool = False) -> float:
        """Q of its live instance ``j``, waiting or running, at ``t``; ``keeps_work``: as if stopping it lost none."""
        accounting = config.qos.startup
        e = self.running(t, accounting)
        if j.host is not None and self.batch and self.loses_work(config) and not keeps_work:
            e -= j.progress_at(t)  # all that it ran since it last lost anything
        contributing = 0
        if self.approach == "aggregated":
            up = [k for k in self.up(t, accounting) if not k.leaving]
            contributing = len(up) - 1 if j in up else len(up)
        if self.account is not None:
            return self.account.slack(contributing, len(self.live())) - j.alpha
        x = metric.earned(e, j.sigma) - self.lifetime(t)
        return metric.request_metric(x, len(self.live()), contributing, j.sigma, j.alpha)

    def overhead_at(self, t: float, config: Config) -> float:
        """Preemption overhead C, of all incarnations of all its instances."""
        spent = sum((j.spent for j in self.had()), start=0.0)
        return metric.overhead(spent, self.running(t, config.qos.startup))

    def excess(self, replicas: int, t: float) -> list[Instance]:
        """Whom it gives up to have ``replicas`` live instances, in this order."""

        def on_the_same_host(j: Instance) -> int:
            return sum(k.host is j.host and not k.leaving for k in self.live())

        waiting = sorted(self.away(), key=lambda j: (j.admission, j.row), reverse=True)
        on_hosts = sorted(
            (j for j in self.live() if j.host is not None and not j.leaving),
            key=lambda j: (t < j.ready(), on_the_same_host(j), j.ready(), j.row),
            reverse=True,
        )
        return [*waiting, *on_hosts][: max(0, len(self.live()) - replicas)]


def group(workload: Workload, instances: Sequence[Instance]) -> list[Request]:
    """The workload's requests with their instances; without any, one request for each row.

    A service that has one instance in all is independent.
    """
    kinds = workload.requests
    if kinds is None or workload.request is None:
        made = [Request("independent", instances=[j]) for j in instances]
    else:
        made = [
            Request(APPROACHES[int(kinds.approach[i])], bool(kinds.batch[i]), int(kinds.parallelism[i]))
            for i in range(len(kinds))
        ]
        for j in instances:
            made[int(workload.request[j.row])].instances.append(j)
    for request in made:
        if len(request.instances) == 1 and not request.batch:
            request.approach = "independent"
        for j in request.instances:
            j.request = request
    return made
