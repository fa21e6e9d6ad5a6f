"""One replica of the live scheduler: it keeps the mirror, stands by, and works through a session once elected."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from slacktide.config import Config
from slacktide.engine.core.engine import Engine, Journal
from slacktide.engine.core.types import Decision
from slacktide.kube.act.counts import Counts
from slacktide.kube.act.reservations import Nomination
from slacktide.kube.client.http import ApiError, Connection, Unreachable
from slacktide.kube.clock import Clock, steady_seconds, work_seconds
from slacktide.kube.leader_election import LeaderElection
from slacktide.kube.leader_session import GaveWay, LeaderSession, LeadershipLost, ReplicaContext
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.network import LoginPoller
from slacktide.kube.mirror.watches import Installation, Watches
from slacktide.kube.publish.availability import LedgerCounts, load
from slacktide.kube.publish.events import EventRecorder
from slacktide.kube.resources.objects import Availability

LOG = logging.getLogger(__name__)

COMPONENT = "slacktide"
LOAD_AGAIN_SECONDS = 1.0
FLUSH_SECONDS = 5.0
DRAIN_SECONDS = 1.0


class Scheduler:
    """One replica. What it has before it leads is made here; what it has while it leads is its ``session``'s.

    It does not contend for the lease in its first ``yields`` seconds, nor while it could not decide if it led.
    """

    def __init__(self, connection: Connection, config: Config, identity: str, *, yields: float = 0.0) -> None:
        self.connection, self.config, self.identity = connection, config, identity
        self.clock = Clock()
        self.counts = Counts()
        self.ledgers = LedgerCounts()
        self.mirror = ClusterMirror(config, self.clock)
        self.watches = Watches(connection, self.mirror, config.kube.watch_seconds)
        self.installation = Installation(connection, config.kube.lease_name)
        self.recorder = EventRecorder(connection, COMPONENT, identity, qps=config.kube.event_qps)
        self._contends_at = steady_seconds() + yields
        self.election = _election(connection, config, identity, self._may_contend)
        self.session: LeaderSession | None = None
        self.on_decision: Callable[[Decision], None] = lambda _: None
        """Hears of each decision of a pass that is to be carried out; to be set before :meth:`run`."""
        self._login_poller = LoginPoller(config.kube, self.mirror.network)

    def leading(self) -> bool:
        """Whether this replica may act now."""
        return self.session is not None and (self.election is None or self.election.leading())

    # -- what is told of it ----------------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list."""
        return self.watches.synced

    @property
    def missing(self) -> str:
        """What is to be applied before anything can be placed, or empty."""
        return self.installation.missing

    def stale(self) -> str:
        """Why nothing can be decided: which watch is dead; or empty."""
        return self.watches.stale()

    def _may_contend(self) -> bool:
        return steady_seconds() >= self._contends_at and not self.watches.unfit()

    @property
    def engine(self) -> Engine | None:
        """The engine, once this replica leads."""
        return None if self.session is None else self.session.engine

    @property
    def nominations(self) -> Mapping[str, Nomination]:
        """Decisions that wait for somebody to leave, by the UID of the pod that is to come."""
        return {} if self.session is None else self.session.actor.nominations

    # -- running ---------------------------------------------------------------------------------------------------

    async def run(self, journal: Journal | None = None) -> None:
        """Watch; lead once elected; decide until cancelled or deposed. ``journal`` is told the engine's operations.

        Raises :class:`LeadershipLost` and :class:`GaveWay`, each in a group.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in self.watches.running()]
            tasks.append(group.create_task(self.installation.run()))
            tasks.append(group.create_task(self.recorder.run()))
            tasks.append(group.create_task(self._login_poller.run()))
            await self.watches.first_lists()
            if self.election is not None:  # who cannot watch must not hold the lease
                tasks.append(group.create_task(self.election.run()))
                LOG.info("on standby as %s", self.identity)
                await self.election.acquired()
                tasks.append(group.create_task(self._end_with_the_lease(self.election)))
                await self.watches.up_to_date()
            session = self.lead(journal, await self._load())
            tasks += [group.create_task(one) for one in session.running()]
            try:
                await session.decide()
            except (asyncio.CancelledError, GaveWay):
                await self._stop(session)  # while the lease is held, which is given back when the tasks end
                raise

    async def _end_with_the_lease(self, election: LeaderElection) -> None:
        await election.lost()
        raise LeadershipLost(f"{self.identity}: lost the lease")

    async def _load(self) -> dict[str, Availability]:
        said = ""
        while True:
            try:
                return await load(self.connection)
            except (ApiError, Unreachable) as error:
                if str(error) != said:
                    LOG.warning("Availability objects cannot be read: %s", error)
                said = str(error)
                await asyncio.sleep(LOAD_AGAIN_SECONDS)

    def lead(self, journal: Journal | None, ledgers: Mapping[str, Availability]) -> LeaderSession:
        """Begin a session from ``ledgers``, by the UID of their controllers; nothing runs as yet."""
        began = work_seconds()
        replica = ReplicaContext(
            self.connection, self.config, self.mirror, self.watches, self.recorder, self.clock, self.leading,
            self.counts, self.ledgers, self.on_decision,
        )  # fmt: skip
        engine = Engine(self.config, journal)
        self.session = LeaderSession(replica, engine)
        self.session.take_over(ledgers)
        nodes = sum(map(self.mirror.is_ours, engine.hosts))
        LOG.info(
            "leading as %s: read %d nodes, %d pods, %d Availability objects in %.2f s",
            self.identity, nodes, len(engine.pods), len(ledgers), work_seconds() - began,
        )  # fmt: skip
        return self.session

    async def _stop(self, session: LeaderSession) -> None:
        """Write what is noted down, in a few seconds at most."""
        if self.leading():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await session.ledger.flush()
            await self.recorder.drain(DRAIN_SECONDS)


def _election(
    connection: Connection, config: Config, identity: str, willing: Callable[[], bool]
) -> LeaderElection | None:
    kube = config.kube
    if not kube.leader_election:
        return None
    duration = int(kube.lease_duration)
    return LeaderElection(
        connection,
        kube.lease_namespace,
        kube.lease_name,
        identity,
        duration=duration,
        renew=duration * 2 / 3,
        retry=max(0.2, min(2.0, duration / 7)),
        willing=willing,
    )
