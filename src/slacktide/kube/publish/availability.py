"""Availability objects: written when something happened to a controller or its state changed, else once a minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from slacktide.engine.core.disruptions import suffered
from slacktide.engine.core.types import Suffered
from slacktide.engine.ledger.overview import STATES, Overview
from slacktide.engine.ledger.slo_status import SloStatus, slo_status
from slacktide.kube.client.http import APPLY_PATCH, FORBIDDEN, NOT_FOUND, PERMANENT, ApiError, Connection, Unreachable
from slacktide.kube.client.pacing import Limiter, lacks_right
from slacktide.kube.client.reflector import pages
from slacktide.kube.feed.takeover import by_owner
from slacktide.kube.publish import write_plan
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.publish.state_events import document
from slacktide.kube.publish.write_plan import WritePlan
from slacktide.kube.resources.objects import AVAILABILITY, Availability, Malformed, Reference, encode
from slacktide.kube.translate.owners import Target

LOG = logging.getLogger(__name__)

WRITERS = 4
MANAGER = {"fieldManager": "slacktide", "force": "true"}
LOOK_SECONDS = 0.01
RETRY_SECONDS, COUNTED_SECONDS = 0.2, 10.0
"""Before an eviction that must be counted a ledger is tried so often, and for so long."""
LATER_SECONDS = 10.0
"""After this long a ledger is tried again that the API server would not take."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a ledger says that time alone may change: the state, how many are late, and how, and whether plans give it
    up."""

    state: str
    lost: int
    starving: int
    is_given_up: bool = False


@dataclass
class LedgerCounts:
    """What became of writes of ledgers, for the metrics."""

    written: int = 0
    failed: int = 0


class LedgerWriter(SessionPart):
    """Writes what changed, in the background; ``changed`` only notes it down.

    A controller's first ledger waits a moment, and longer while ``busy`` (so many bindings and evictions wait for their
    turn), so that it does not stand in the way of its pods' bindings; until then the pods' own timestamps tell all of
    it. Before one of them is evicted it is written.
    """

    def __init__(
        self, session: SessionContext, counts: LedgerCounts, busy: Callable[[], int], latest: Callable[[], float]
    ) -> None:
        super().__init__(session)
        self._counts, self._busy, self._latest = counts, busy, latest
        qps = session.settings.ledger_qps
        self._limiter = Limiter(qps, max(1, int(qps)))
        self._plan = WritePlan()
        self._others_from = 0.0
        """When the next ledger may be written to which nothing happened, where many bindings and evictions wait."""
        self._spare_pause, self._spare_from = write_plan.SPARE_PART / qps, 0.0
        """While there are decisions: between two ledgers to which nothing happened, and when the next one may be
        written."""
        self._taken: dict[str, None] = {}
        """Those that wait for their turn in the rate."""
        self._said: dict[str, Said] = {}
        """What the ledgers say that were written."""
        self._begun: set[str] = set()
        """Controllers whose first ledger is there, by this leader or a former one, or may not be written as things
        stand."""
        self._suffered: dict[str, Suffered | None] = {}
        """The accounts of disruptions that the ledgers have that were written."""
        self._unwritable: set[str] = set()
        """Controllers whose ledgers the API server would not take, and will not as they are."""
        self._under_way: set[str] = set()
        """Of one ledger there is one request at a time: the API server may carry two out in any order."""
        self._some = asyncio.Event()
        self._problem = ""
        self._burials: dict[str, tuple[Target, dict[str, Any], SloStatus]] = {}
        """Ledgers of workloads that were deleted, by the path of their objects."""

    def changed(self, key: str) -> None:
        """Something happened to a controller."""
        if key not in self._feed.controllers.targets:
            return  # it is no more
        self._plan.changed(key, self._clock())
        self._some.set()

    def knows(self, key: str) -> None:
        """A former leader wrote a controller's ledger. It does not wait as first ones do: pods that are gone since then
        cannot tell of themselves."""
        self._plan.knows(key)
        self._begun.add(key)
        self._some.set()

    def finished(self, key: str) -> None:
        """A controller is no more; the garbage collector removes its ledger."""
        self._plan.forget(key)
        self._said.pop(key, None)
        self._begun.discard(key)
        self._suffered.pop(key, None)
        self._unwritable.discard(key)

    def buried(self, target: Target, books: dict[str, Any], status: SloStatus) -> None:
        """A workload was deleted: its ledger stays as it was then."""
        self._burials[AVAILABILITY.path(target.namespace, target.ledger)] = target, books, status
        self._some.set()

    async def forget(self, target: Target) -> None:
        """The ledger of a workload that was deleted is kept no more."""
        path = AVAILABILITY.path(target.namespace, target.ledger)
        await self._limiter.take()
        if self._feed.controllers.is_anothers(target) or not self._leading():
            return  # by now: there may be a workload of the same name again
        try:
            await self._connection.delete(path, b"{}", permit=self._leading)
        except (ApiError, Unreachable) as error:
            LOG.debug("ledger %s/%s: %s", target.namespace, target.ledger, error)

    async def _bury_all(self) -> None:
        """Write the ledgers of workloads that were deleted."""
        while self._burials:
            await self._limiter.take()
            await self._gate.passed()
            path = next(iter(self._burials), None)
            if path is None:
                break  # another writer was faster
            target, books, status = self._burials.pop(path)
            if not self._leading() or self._feed.controllers.is_anothers(target):
                continue
            said = document(target, books, status, deleted=books["at"])
            await self._send(path, said, partial(self._bury_again, path, target, books, status))

    def _bury_again(self, path: str, target: Target, books: dict[str, Any], status: SloStatus) -> None:
        self._burials.setdefault(path, (target, books, status))
        self._some.set()

    async def _send(self, path: str, said: dict[str, Any], again: Callable[[], None]) -> None:
        try:
            body = encode(said)
            await self._connection.patch(path, body, APPLY_PATCH, query=MANAGER, timeout=10.0, permit=self._leading)
            self._counts.written += 1
        except (ApiError, Unreachable) as error:
            self._counts.failed += 1
            LOG.debug("ledger %s: %s", path, error)
            if isinstance(error, ApiError) and error.status in PERMANENT:
                LOG.warning("ledger %s of a deleted workload is not kept: %s", path, error)
            elif not isinstance(error, ApiError) or error.status not in (FORBIDDEN, NOT_FOUND):
                asyncio.get_running_loop().call_later(1.0, again)
            elif lacks_right(error.message):  # else its namespace ends
                asyncio.get_running_loop().call_later(LATER_SECONDS, again)

    def compare(self, found: Overview) -> None:
        """How controllers stand by now: ledgers are written whose state is another one, or whose count of those who are
        lost or starve, or whether plans give them up. All of it changes as time passes, which no event tells.

        One that could not be written is tried again as ever, and not because of this.
        """
        lost, starving, states = found.lost.tolist(), found.starving.tolist(), found.state.tolist()
        given_up = np.isfinite(found.given_up).tolist()
        for i, one in enumerate(found.controllers):
            said = self._said.get(one.key)
            if said is None or one.key in self._taken or one.key in self._under_way:
                continue
            if said.state != STATES[states[i]]:
                self._plan.turn(one.key)
            elif (said.lost, said.starving) != (lost[i], starving[i]):
                self._plan.changed(one.key, self._clock())
            elif said.is_given_up != given_up[i]:
                self._plan.turn(one.key)
        if self._plan or self._plan.refresh_due(self._clock()):
            self._some.set()

    @property
    def pending(self) -> int:
        """Ledgers that wait to be written."""
        return len(self._plan)

    async def run(self) -> None:
        """Writes until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write_all())

    async def first(self, key: str) -> None:
        """Write a controller's first ledger of this session at once, if it still waits: pods that go now cannot tell a
        new leader of themselves. One that cannot be written is tried again, as ever."""
        waits = key in self._taken or key in self._plan.dirty
        if key in self._plan.new or (waits and key not in self._said):
            self._taken.pop(key, None)
            self._plan.begins(key, self._clock())
            await self._write(key)
        while key in self._under_way and key not in self._said:
            await asyncio.sleep(LOOK_SECONDS)

    async def before_eviction(self, key: str) -> bool:
        """Make sure that a ledger tells a new leader of what is about to happen to a controller's pods.

        Its first ledger is written, and where disruptions of it are limited, a ledger that counts those decided on by
        now: it is tried until it has been. Whether there is one that does; else no pod may be disrupted. One that the
        API server will never take protects nobody: what it would say is kept in memory only.
        """
        await self.first(key)
        until = self._clock() + COUNTED_SECONDS
        while self._leading() and key in self._feed.engine.controllers:
            if key in self._feed.controllers.left_alone or key in self._unwritable or self._is_counted(key):
                return True
            if self._clock() > until:
                return False
            if key in self._under_way:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            self._taken.pop(key, None)
            self._plan.begins(key, self._clock())
            await self._write(key)
            if not self._is_counted(key):
                await asyncio.sleep(RETRY_SECONDS)
        return False

    def _is_counted(self, key: str) -> bool:
        """Whether there is a ledger, and it has every disruption that is counted; none is being written, which may not
        have the latest.

        Where there is only a cooldown, nobody keeps when disruptions began: how many recover tells of them, and who.
        """
        engine = self._feed.engine
        now = suffered(engine.instances, engine.controllers[key])
        return key in self._begun if now is None else key in self._suffered and self._suffered[key] == now

    async def _write_all(self) -> None:
        while True:
            await self._bury_all()
            key = self._next()
            if key is None:
                self._some.clear()
                if self.pending or self._plan.refresh_due(self._clock()):
                    await asyncio.sleep(write_plan.NEW_SECONDS)
                else:
                    await self._some.wait()
                continue
            self._taken[key] = None
            await self._limiter.take()
            if self._leading() and key in self._taken:
                del self._taken[key]
                await self._write(key)

    def _next(self) -> str | None:
        """The ledger whose turn it is, of those not written within the last second.

        First ledgers, of which pods' own timestamps tell, and numbers that only grow old stand back while many
        bindings and evictions wait for their turn, and the latter while there are any decisions: the API server has to
        take both.
        """
        now, busy, concerned = self._clock(), self._busy(), self._taken.keys() | self._under_way
        key = self._plan.take_urgent(now, concerned)
        if key is not None or (busy >= write_plan.CROWD and now < self._others_from):
            return key
        patience = write_plan.BUSY_SECONDS if busy else write_plan.NEW_SECONDS
        key = self._plan.take_new(now, patience, concerned)
        if key is None:
            key = self._take_oldest(now, concerned, is_busy=busy > 0 or now - self._latest() < write_plan.SPARE_SECONDS)
        if key is not None:
            self._others_from = now + write_plan.CROWDED_PAUSE
        return key

    def _take_oldest(self, now: float, concerned: Container[str], *, is_busy: bool) -> str | None:
        """The ledger with the oldest numbers, if it may be written now."""
        if is_busy and now < self._spare_from:
            return None
        key = self._plan.take_oldest(now, concerned)
        if is_busy and key is not None:  # what was missed since we asked last is made up for
            self._spare_from = max(self._spare_from, now - write_plan.NEW_SECONDS) + self._spare_pause
        return key

    async def flush(self) -> None:
        """Write all that is noted down, now, each once; for a clean stop."""
        await self._bury_all()
        due = list(self._taken | dict.fromkeys(self._plan.take_all()))
        self._taken = {}
        async with asyncio.TaskGroup() as group:
            for keys in (due[first::WRITERS] for first in range(WRITERS)):
                group.create_task(self._write_each(keys))

    async def _write_each(self, keys: list[str]) -> None:
        for key in keys:
            while key in self._under_way:
                await asyncio.sleep(LOOK_SECONDS)
            await self._write(key)

    async def _write(self, key: str) -> None:
        self._under_way.add(key)
        try:
            await self._gate.passed()
            await self._write_now(key)
        finally:
            self._under_way.discard(key)

    async def _write_now(self, key: str) -> None:
        engine, controllers, body = self._feed.engine, self._feed.controllers, b""
        target = controllers.targets.get(key)
        if target is None or key not in engine.controllers or key in controllers.deleted:
            return  # whose owner is gone, the garbage collector removes
        if key in controllers.left_alone:
            return  # a later release wrote it
        with self._feed.mirror.barrier.around(_about(target)):
            body, found, account = self._body(key, target)
        if not body:  # a defect, of which the log has a traceback
            self._unwritable.add(key)
            return
        self._said.pop(key, None)
        self._suffered.pop(key, None)  # until it is known what the ledger says
        path = AVAILABILITY.path(target.namespace, target.ledger)
        try:
            await self._connection.patch(path, body, APPLY_PATCH, query=MANAGER, timeout=10.0, permit=self._leading)
            self._counts.written += 1
            self._problem = ""
            self._unwritable.discard(key)
            self._suffered[key] = account
            if key in self._plan.written_at:  # else its controller went meanwhile
                self._begun.add(key)
                self._said[key] = Said(found.state, found.lost, found.starving, found.given_up is not None)
        except ApiError as error:
            self._counts.failed += 1
            self._refused(key, target, error)
        except Unreachable as error:
            self._counts.failed += 1
            LOG.debug("ledger %s/%s: %s", target.namespace, target.ledger, error)
            self.changed(key)

    def _body(self, key: str, target: Target) -> tuple[bytes, SloStatus, Suffered | None]:
        """What a ledger is to say now, and what it says then of the state and of disruptions."""
        engine, now = self._feed.engine, self._clock()
        found = slo_status(engine, key, now)
        books = self._feed.controllers.books(key, now)
        account = suffered(engine.instances, engine.controllers[key])
        lost = self._feed.mirror.classes.lost(engine.controllers[key].service, target.namespace)
        said = document(target, books, found, class_is_lost=lost)
        if beyond := self._feed.promise_quotas.beyond(target.key):
            more = f"pods without a promise: {beyond[1]} ({beyond[0]})"
            said["status"]["message"] = "; ".join(filter(None, (said["status"]["message"], more)))
        return encode(said), found, account

    def _refused(self, key: str, target: Target, error: ApiError) -> None:
        """Try again: at once what passes, later what a person must put right; never where the namespace goes."""
        namespace = self._feed.mirror.classes.namespaces.get(target.namespace)
        ends = namespace is None or namespace.metadata.deletion_timestamp is not None
        if error.status in (FORBIDDEN, NOT_FOUND):
            self._begun.add(key)
        if ends and error.status in (FORBIDDEN, NOT_FOUND):
            return
        if str(error) != self._problem:
            LOG.warning("ledger %s/%s is not written: %s", target.namespace, target.ledger, error)
        self._problem = str(error)
        if error.status in PERMANENT:
            self._unwritable.add(key)
        if error.status in (FORBIDDEN, NOT_FOUND, *PERMANENT):
            asyncio.get_running_loop().call_later(LATER_SECONDS, self.changed, key)
        else:
            self.changed(key)


def _about(target: Target) -> Reference:
    return Reference(AVAILABILITY.api_version, AVAILABILITY.kind, target.namespace, target.ledger)


async def load(connection: Connection) -> dict[str, Availability]:
    """All ledgers by the UID of their controllers, also of those that were deleted. Raises ``ApiError`` and
    ``Unreachable``."""
    found: list[Availability] = []
    async with aclosing(pages(connection, AVAILABILITY.path())) as every:
        async for page in every:
            if page.begins:
                found.clear()
            for one in map(AVAILABILITY.decode, page.items):
                if isinstance(one, Malformed):
                    LOG.warning("ledger %s/%s is malformed: %s", one.namespace, one.name, one.problem)
                else:
                    found.append(one)
    return by_owner(found)
