"""The live scheduler: watches feed the intake, passes decide while this replica leads, the actor carries out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass, field
from typing import Any

from slacktide.config import Config
from slacktide.kube import entries
from slacktide.kube.acting import Actor
from slacktide.kube.beginning import begin
from slacktide.kube.clock import Clock
from slacktide.kube.collecting import collect_when_idle
from slacktide.kube.connection import ApiError, Connection, KubeError, Unreachable
from slacktide.kube.counting import Counting
from slacktide.kube.entries import Entry
from slacktide.kube.handlers import probes, reflectors, wait_for_rows
from slacktide.kube.intake import Intake
from slacktide.kube.leases import LeaderElection
from slacktide.kube.ledger import LedgerWriter, load
from slacktide.kube.owners import Target
from slacktide.kube.recorder import Recorder
from slacktide.kube.reporting import Reporter
from slacktide.kube.resizing import Mover
from slacktide.kube.tending import Tender
from slacktide.kube.world import World
from slacktide.live import parts
from slacktide.live.engine import Engine, Journal
from slacktide.live.parts import Outcome

LOG = logging.getLogger(__name__)

COMPONENT = "slacktide"
STALE_SECONDS = 690.0
"""Watches that show no sign of life for so long are dead: who decides on what they said last decides on the past."""
LOAD_AGAIN_SECONDS = 1.0
FLUSH_SECONDS = 5.0
DRAIN_SECONDS = 1.0
TELLING_SECONDS = 0.005


class LeadershipLost(KubeError):  # noqa: N818  # an ordinary end, not a mistake
    """Another replica may lead now; this one must not act any more."""


@dataclass
class Passes:
    """What passes did, for the metrics."""

    count: int = 0
    decisions: int = 0
    preemptions: int = 0
    operations: int = 0
    seconds: list[float] = field(default_factory=list)
    longest: float = 0.0


class Scheduler:
    """One replica. ``run`` ends with :class:`LeadershipLost`, or when cancelled; ``journal`` is told all operations."""

    def __init__(self, connection: Connection, config: Config, identity: str, journal: Journal | None = None) -> None:
        self.connection, self.config, self.identity = connection, config, identity
        self.journal = journal
        self.clock = Clock()
        self.world = World(config)
        self.intake = Intake(config, self.world, self.clock, self)
        self.recorder = Recorder(connection, COMPONENT, identity, qps=config.kube.event_qps)
        self.actor = Actor(connection, config.kube, self.intake, self.recorder, self.clock, self.leading)
        self.ledger = LedgerWriter(
            connection, config.kube, self.intake, self.clock, self.leading, lambda: self.actor.under_way > 0
        )
        self.mover = Mover(connection, config.kube, self.intake, self.recorder, self.actor.counts, self.leading)
        self.reporter = Reporter(connection, config.kube, self.intake, self.recorder, self.clock, self.leading)
        self.tender = Tender(connection, self.intake, self.reporter, self.clock, self.leading)
        self.reflectors = reflectors(connection, self.world, self.intake)
        self.intake.away = self.reflectors[-1].away  # pods come last
        self.probes = probes(connection, self.world)
        self.counting = Counting(config.kube, self.world.edge)
        self.passes = Passes()
        self.engine_began = 0.0
        self._awake: set[str] = set()
        self._work = asyncio.Event()
        self.election: LeaderElection | None = None
        if config.kube.leader_election:
            kube = config.kube
            duration = int(kube.lease_duration)
            self.election = LeaderElection(
                connection,
                kube.lease_namespace,
                kube.lease_name,
                identity,
                duration=duration,
                renew=duration * 2 / 3,
                retry=max(0.2, min(2.0, duration / 7)),
            )

    def leading(self) -> bool:
        """Whether this replica may act now."""
        return self.intake.engine is not None and (self.election is None or self.election.leading())

    @property
    def synced(self) -> bool:
        """Whether every watch has told its first list."""
        return all(one.synced.is_set() for one in self.reflectors)

    def stale(self) -> str:
        """The kind whose watch is dead, or empty."""
        return next((one.kind.plural for one in self.reflectors if one.age() > STALE_SECONDS), "")

    # -- what the intake says --------------------------------------------------------------------------------------

    def work(self) -> None:
        self._work.set()

    def confirmed(self, uid: str) -> None:
        self.actor.places.drop(uid)  # where somebody else bound it
        self.reporter.forget(uid)

    def ended(self, uid: str) -> None:
        self.actor.ended(uid)
        self.reporter.forget(uid)

    def changed(self, key: str) -> None:
        self.ledger.changed(key)

    def began(self, target: Target) -> None:
        self.ledger.changed(target.key)

    def finished(self, key: str) -> None:
        self.ledger.finished(key)

    def waits(self, entry: Entry) -> None:
        self.reporter.report(entry)

    # -- running ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch; lead once elected; decide until cancelled or deposed."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run()) for one in self.reflectors]
            tasks += [group.create_task(one.run()) for one in self.probes]
            tasks.append(group.create_task(self.recorder.run()))
            tasks.append(group.create_task(self.counting.run()))
            for one in self.reflectors:
                await one.synced.wait()
            await wait_for_rows(self.probes)
            if self.election is not None:  # who cannot watch must not hold the lease
                tasks.append(group.create_task(self.election.run()))
                LOG.info("standing by as %s", self.identity)
                await self.election.acquired()
                tasks.append(group.create_task(self._end_with_the_lease(self.election)))
            await self._begin()
            tasks += [
                group.create_task(self.actor.run()),
                group.create_task(self.ledger.run()),
                group.create_task(self.reporter.run()),
                group.create_task(self.tender.run()),
                group.create_task(self.mover.run()),
                group.create_task(collect_when_idle(lambda: self.passes.count)),
            ]
            try:
                await self._decide()
            except asyncio.CancelledError:
                await self.stop()  # while the lease is held, which is given back when the tasks end
                raise

    async def _end_with_the_lease(self, election: LeaderElection) -> None:
        await election.lost()
        raise LeadershipLost(f"{self.identity}: the lease is lost")

    async def _begin(self) -> None:
        while True:
            try:
                ledgers = await load(self.connection)
                break
            except (ApiError, Unreachable) as error:
                LOG.warning("ledgers cannot be read: %s", error)
                await asyncio.sleep(LOAD_AGAIN_SECONDS)
        began = time.perf_counter()
        engine = Engine(self.config, self.journal)
        begin(self.intake, engine, ledgers, self.actor.adopt)
        self.engine_began = self.clock()
        nodes = sum(map(self.world.is_ours, engine.hosts))
        LOG.info(
            "leading as %s: %d nodes, %d pods, %d ledgers read, in %.2f s",
            self.identity, nodes, len(engine.incarnations), len(ledgers), time.perf_counter() - began,
        )  # fmt: skip
        self._work.set()

    async def _decide(self) -> None:
        loop, watchdog = asyncio.get_running_loop(), self.config.scheduler.watchdog
        while True:
            alarm = loop.call_later(watchdog, self._work.set)  # cheaper than a task that waits with a timeout
            await self._work.wait()
            alarm.cancel()
            self._work.clear()
            await asyncio.sleep(0)  # whatever arrived at the same time takes part
            while any(one.telling for one in self.reflectors):
                await asyncio.sleep(TELLING_SECONDS)  # half of a list would show room that is taken
            if not self.leading():
                raise LeadershipLost(f"{self.identity}: the lease is lost")
            if stale := self.stale():
                LOG.warning("no pass: the watch of %s is dead", stale)
                continue
            took = self._pass()
            if took > 0.01:
                await asyncio.sleep(min(took / 2, 0.1))  # events get their turn between long passes

    def _pass(self) -> float:
        """One pass, where anybody waits; the seconds it took."""
        engine = self.intake.engine
        assert engine is not None  # noqa: S101  # _begin made it
        if not engine.waiting():
            return 0.0
        began = time.perf_counter()
        self.world.edge.refresh(engine, self.clock())
        outcome = engine.run(self.clock())
        if outcome.problem:
            LOG.error("pass %d: %s", outcome.number, outcome.problem)
        for decision in outcome.decisions:
            entry = self.intake.pods[decision.uid]
            entry.queue = entries.NOWHERE
            self.actor.carry_out(decision)
            if decision.victims:
                self._told_to_leave(engine, decision.victims)
        took = time.perf_counter() - began
        self._count(outcome, took)
        if outcome.waiting:
            self.reporter.after_pass(engine)
        return took

    def _told_to_leave(self, engine: Engine, victims: tuple[parts.Victim, ...]) -> None:
        for victim in victims:
            key = engine.incarnations[victim.uid].key
            self.intake.succession.told(key, victim.uid)
            self.changed(key)

    def _count(self, outcome: Outcome, took: float) -> None:
        passes = self.passes
        passes.count += 1
        passes.decisions += len(outcome.decisions)
        passes.preemptions += sum(len(one.victims) for one in outcome.decisions)
        passes.operations += outcome.operations
        passes.longest = max(passes.longest, took)
        passes.seconds.append(took)
        if len(passes.seconds) > 10_000:
            del passes.seconds[:5000]

    async def stop(self) -> None:
        """Write what is noted down, in a few seconds at most."""
        if self.leading():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ledger.flush(), FLUSH_SECONDS)
            await self.recorder.drain(DRAIN_SECONDS)

    def state(self) -> dict[str, Any]:
        """Where pods wait, by queue."""
        found = dict.fromkeys((entries.ACTIVE, entries.BACKOFF, entries.UNSCHEDULABLE, entries.GATED), 0)
        for entry in self.intake.pods.values():
            if entry.queue in found:
                found[entry.queue] += 1
        return found
