"""Leader election by a Lease: of several replicas at most one acts.

Safety does not hang on wall clocks. Whoever holds the lease may act until ``renew`` seconds after it *began* its last
renewal that succeeded; others take it only after they have seen no renewal for ``duration`` > ``renew`` seconds of own
time, which starts when they saw the last one, and so after it began. Each write names the resource version it builds
on, so that of two that want the lease one is refused.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from slacktide.kube.client.http import CONFLICT, NOT_FOUND, ApiError, Connection, Unreachable
from slacktide.kube.clock import steady_seconds, wall_seconds
from slacktide.kube.resources.objects import LEASE, Instant, Lease, LeaseSpec, Malformed, Metadata, encode

LOG = logging.getLogger(__name__)

RELEASE_SECONDS = 3.0
NEVER = float("-inf")


class LeaderElection:
    """Wants to hold the lease ``namespace/name`` as ``identity``, which must be this process's alone.

    ``duration``, ``renew`` and ``retry`` are seconds: how long others wait, how long we act without a renewal, and
    how often we try. Raises ``ValueError`` unless ``duration`` > ``renew`` > ``retry`` > 0 and ``duration`` is whole.
    ``holder`` is who held the lease when we last looked, ``term`` counts how often we came to lead. Who is not
    ``willing`` does not take it.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration: float = 15,
        renew: float = 10,
        retry: float = 2,
        willing: Callable[[], bool] = lambda: True,
    ) -> None:
        if not (duration > renew > retry > 0 and duration == int(duration)):
            raise ValueError(
                f"duration, renew, retry: found {duration}, {renew}, {retry}, expected whole seconds of duration, "
                "more than renew, more than retry, more than 0"
            )
        self.identity = identity
        self.holder = ""
        self.term = 0
        self.last_error = ""
        self._connection = connection
        self._namespace = namespace
        self._path = LEASE.path(namespace, name)
        self._name = name
        self._duration = int(duration)
        self._renew = renew
        self._retry = retry
        self._willing = willing
        self._lease: Lease | None = None
        self._seen_at = NEVER
        self._deadline = NEVER
        self._leads = asyncio.Event()
        self._stands_by = asyncio.Event()
        self._stands_by.set()

    def leading(self) -> bool:
        """Whether we may act now. Exact also right after the process was stopped and woken; ask before every act."""
        return steady_seconds() < self._deadline

    async def acquired(self) -> None:
        """Waits until we lead."""
        while not self.leading():
            await self._leads.wait()
            if not self.leading():
                await self._stands_by.wait()

    async def lost(self) -> None:
        """Waits until we do not lead."""
        while self.leading():
            await self._stands_by.wait()

    async def run(self) -> None:
        """Contends for the lease until cancelled, also after losing it; gives it back at the end."""
        try:
            while True:
                began = steady_seconds()
                try:
                    await self._try()
                    self.last_error = ""
                except (ApiError, Unreachable) as error:
                    if str(error) != self.last_error:
                        LOG.warning("lease %s/%s: %s", self._namespace, self._name, error)
                    self.last_error = str(error)
                self._settle()
                wait = self._retry - (steady_seconds() - began)
                if self._leads.is_set():
                    wait = min(wait, self._deadline - steady_seconds())
                await asyncio.sleep(max(wait, 0.0))
                self._settle()
        finally:
            await self.release()

    async def release(self) -> None:
        """Stops leading at once and, if the API server can be reached, lets the next one start without waiting.

        The lease is left to expire where the API server may still carry out a write of ours: a binding that arrives
        late would take room that the next leader gives to somebody else.
        """
        held = self._deadline != NEVER and self.holder == self.identity
        self._deadline = NEVER
        self._settle()
        if not held or self._lease is None:
            return
        if self._connection.leader_writes.within(self._duration):
            LOG.warning(
                "lease %s/%s is left to expire: the outcome of a write is not known", self._namespace, self._name
            )
            return
        spec = msgspec.structs.replace(
            self._lease.spec, holder_identity=None, lease_duration_seconds=1, renew_time=Instant(wall_seconds())
        )
        try:
            try:
                await self._write(spec, self._lease.metadata, RELEASE_SECONDS)
            except ApiError as error:
                # A renewal that was under way when we were stopped may have been carried out all the same.
                if error.status != CONFLICT or not await self._look(RELEASE_SECONDS) or self.holder != self.identity:
                    raise
                await self._write(spec, self._lease.metadata, RELEASE_SECONDS)
            self.holder = ""
        except (ApiError, Unreachable) as error:
            LOG.warning("lease %s/%s could not be released: %s", self._namespace, self._name, error)

    def _settle(self) -> None:
        """Makes the two events say what ``leading`` says."""
        leading = self.leading()
        if leading == self._leads.is_set():
            return
        if leading:
            self.term += 1
            self._leads.set()
            self._stands_by.clear()
            LOG.info("%s leads", self.identity)
        else:
            self._leads.clear()
            self._stands_by.set()
            LOG.warning("%s no longer leads; holder: %s", self.identity, self.holder or "nobody")

    async def _try(self) -> None:
        """One attempt to renew or to take the lease."""
        began = steady_seconds()
        patience = self._renew / 2.0  # Of a server that does not answer, there is time for a second attempt.
        if self._leads.is_set():
            patience = max(min(self._deadline - began, patience), 0.001)
            try:
                await self._take(began, patience)
                return
            except ApiError as error:
                if error.status not in (CONFLICT, NOT_FOUND):
                    raise
            # Somebody wrote to it, or it is gone: look who holds it now.
        there = await self._look(patience)
        if not self._willing():
            return
        if not there:
            await self._create(steady_seconds(), patience)
        elif self._free():
            try:
                await self._take(steady_seconds(), patience)
            except ApiError as error:
                if error.status != CONFLICT:
                    raise

    def _free(self) -> bool:
        if self._lease is None or not self.holder or self.holder == self.identity:
            return True
        theirs = self._lease.spec.lease_duration_seconds or self._duration
        return steady_seconds() - self._seen_at >= theirs

    async def _look(self, patience: float) -> bool:
        """Reads the lease; ``False`` where there is none."""
        try:
            body = await self._connection.get(self._path, timeout=patience, urgent=True, retries=0)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            self._lease = None
            return False
        self._read(body)
        return True

    async def _create(self, began: float, patience: float) -> None:
        spec = self._spec(LeaseSpec())
        metadata = Metadata(name=self._name, namespace=self._namespace)
        try:
            answer = await self._connection.post(
                LEASE.path(self._namespace), _body(spec, metadata), timeout=patience, urgent=True, retries=0
            )
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            return
        self._read(answer)
        self._deadline = began + self._renew

    async def _take(self, began: float, patience: float) -> None:
        lease = self._lease
        if lease is None:
            await self._create(began, patience)
            return
        await self._write(self._spec(lease.spec), lease.metadata, patience)
        if self._leads.is_set() and not self.leading():
            return  # a process that was stopped hears of it late: meanwhile it has let go of what only a leader may do
        self._deadline = began + self._renew

    async def _write(self, spec: LeaseSpec, metadata: Metadata, patience: float) -> None:
        answer = await self._connection.put(self._path, _body(spec, metadata), timeout=patience, urgent=True, retries=0)
        self._read(answer)

    def _spec(self, before: LeaseSpec) -> LeaseSpec:
        now = Instant(wall_seconds())
        ours = before.holder_identity == self.identity
        return msgspec.structs.replace(
            before,
            holder_identity=self.identity,
            lease_duration_seconds=self._duration,
            acquire_time=before.acquire_time if ours and before.acquire_time is not None else now,
            renew_time=now,
            lease_transitions=(before.lease_transitions or 0) + (0 if ours or before == LeaseSpec() else 1),
        )

    def _read(self, body: bytes) -> None:
        found = LEASE.decode(body)
        if isinstance(found, Malformed):
            raise Unreachable(f"lease {self._namespace}/{self._name}: {found.problem}")
        if self._lease is None or found.metadata.resource_version != self._lease.metadata.resource_version:
            self._seen_at = steady_seconds()
        self._lease = found
        self.holder = found.spec.holder_identity or ""
        if self.holder != self.identity:
            self._deadline = NEVER


def _body(spec: LeaseSpec, metadata: Metadata) -> bytes:
    return encode({"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec})
