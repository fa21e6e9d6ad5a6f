"""Ledgers out of a cluster, and into a restored one, whose workloads have the same names and other UIDs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slacktide.engine.ledger.checkpoint import NewerLedger, moved, read
from slacktide.errors import ConfigError, StateError
from slacktide.kube.client.http import APPLY_PATCH, FORBIDDEN, NOT_FOUND, ApiError, Connection
from slacktide.kube.client.kinds import Kind, Malformed, encode
from slacktide.kube.client.timestamps import rfc3339
from slacktide.kube.feed.takeover import by_owner, owner_of
from slacktide.kube.publish.availability import MANAGER
from slacktide.kube.publish.availability_document import metadata_of
from slacktide.kube.publish.ledger_file import Kept
from slacktide.kube.resources import objects
from slacktide.kube.resources.objects import API_VERSION, AVAILABILITY, LEASE, Availability
from slacktide.kube.translate.owners import Target

AT_ONCE = 8
STALE = ("target", "slackSeconds", "breaksAt", "message", "lost", "starving", "deletedAt")
"""Fields of a ledger that are about the instant at which it was written, or about the other cluster."""
KNOWN: tuple[Kind[Any], ...] = (
    objects.POD, objects.DEPLOYMENT, objects.REPLICA_SET, objects.STATEFUL_SET, objects.JOB, objects.CRON_JOB,
)  # fmt: skip


@dataclass
class Outcome:
    """Of an import: what was written; whose workload is not there; whose ledger counts already."""

    written: list[Kept] = field(default_factory=list)
    missing: list[Kept] = field(default_factory=list)
    counting: list[Kept] = field(default_factory=list)


async def kept_in(connection: Connection, namespace: str) -> tuple[list[Kept], list[str]]:
    """The ledgers of a namespace, or of all where it is empty; and what is said of those that cannot be read.

    One of a later release is kept as it is, for that release. Raises ``ApiError`` and ``Unreachable``.
    """
    found: list[Kept] = []
    broken: list[str] = []
    bodies = json.loads(await connection.get_list(AVAILABILITY.path(namespace)))["items"]
    listed = [AVAILABILITY.decode(encode(body)) for body in bodies]
    known = by_owner(one for one in listed if isinstance(one, Availability))
    for body, one in zip(bodies, listed, strict=True):
        name = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        if isinstance(one, Malformed):
            broken.append(f"{name}: {one.problem}")
            continue
        owner = owner_of(one)
        try:
            if owner is None or not one.status.accumulators:
                raise StateError("it names no workload, or has no books")
            read(one.status.accumulators)
        except NewerLedger:
            pass
        except StateError as error:
            broken.append(f"{name}: {error}")
            continue
        assert owner is not None  # noqa: S101  # asked before
        if known[owner.uid] is not one:
            continue  # it is the former one of a workload whose ledger has another name by now
        status = {key: value for key, value in body["status"].items() if key != "target"}
        found.append(Kept(owner.namespace, owner.api_version, owner.kind, owner.name, status))
    return sorted(found, key=lambda one: (one.namespace, one.kind, one.name)), broken


async def nobody_leads(connection: Connection, namespace: str, name: str, now: float) -> None:
    """Raises :class:`ConfigError` where a scheduler leads by this lease: it would write its own books over others'."""
    try:
        lease = LEASE.decode(await connection.get(LEASE.path(namespace, name)))
    except ApiError as error:
        if error.status in (NOT_FOUND, FORBIDDEN):
            return
        raise
    if isinstance(lease, Malformed) or not lease.spec.holder_identity or lease.spec.renew_time is None:
        return
    if now < lease.spec.renew_time + (lease.spec.lease_duration_seconds or 0):
        raise ConfigError(
            f"lease {namespace}/{name}: found held by {lease.spec.holder_identity}, expected held by nobody: a "
            "scheduler that leads writes its own books over these; stop it (kubectl -n slacktide-system scale "
            "deployment slacktide --replicas=0), import, and start it again"
        )


async def put(connection: Connection, kept: Sequence[Kept], now: float, replace: bool) -> Outcome:
    """Write ledgers of workloads that exist, as of ``now``: the time since the export counts neither way.

    One that counts already is written over only with ``replace``. Raises ``ApiError`` and ``Unreachable``.
    """
    transfer = _Transfer(connection, now, replace)
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(one: Kept) -> str:
        async with turns:
            return await transfer.put(one)

    found = await asyncio.gather(*map(in_turn, kept))
    became = {name: [one for one, what in zip(kept, found, strict=True) if what == name] for name in set(found)}
    return Outcome(**became)


class _Transfer:
    """Writes ledgers into one cluster."""

    def __init__(self, connection: Connection, now: float, replace: bool) -> None:
        self._connection, self._now, self._replace = connection, now, replace
        self._paths = {(kind.api_version, kind.kind): f"{kind.root}/namespaces/{{}}/{kind.plural}" for kind in KNOWN}
        self._asking = asyncio.Lock()

    async def put(self, one: Kept) -> str:
        """The field of :class:`Outcome` that tells what became of it."""
        workload = await self._found(await self._path(one))
        if workload is None:
            return "missing"
        target = Target(one.api_version, one.kind, one.namespace, one.name, workload["metadata"]["uid"])
        path = AVAILABILITY.path(target.namespace, target.ledger)
        there = await self._found(path)
        if there is not None and not self._replace and _counts(there, target):
            return "counting"
        body = self._document(one, target)
        if there is not None:  # whoever writes meanwhile makes this fail
            body["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        await self._connection.patch(path, encode(body), APPLY_PATCH, query=MANAGER)
        return "written"

    def _document(self, one: Kept, target: Target) -> dict[str, Any]:
        status = {key: value for key, value in one.status.items() if key not in STALE}
        workload = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name, "uid": target.uid}
        metadata = metadata_of(target)
        books = moved(status["accumulators"], self._now)
        status |= {"target": workload, "at": rfc3339(self._now), "accumulators": books}
        return {"apiVersion": API_VERSION, "kind": "Availability", "metadata": metadata, "status": status}

    async def _found(self, path: str) -> Any:
        if not path:
            return None
        try:
            return json.loads(await self._connection.get(path))
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def _path(self, one: Kept) -> str:
        """Where a workload lives; empty where the cluster has no such kind, in a namespace."""
        key = one.api_version, one.kind
        async with self._asking:
            if key not in self._paths:
                root = f"/apis/{one.api_version}" if "/" in one.api_version else f"/api/{one.api_version}"
                served = await self._found(root) or {"resources": ()}
                names = [
                    known["name"]
                    for known in served["resources"]
                    if known["kind"] == one.kind and known["namespaced"] and "/" not in known["name"]
                ]
                self._paths[key] = f"{root}/namespaces/{{}}/{names[0]}" if names else ""
        return f"{self._paths[key].format(one.namespace)}/{one.name}" if self._paths[key] else ""


def _counts(there: dict[str, Any], target: Target) -> bool:
    """Whether a ledger has books of this very workload."""
    found = AVAILABILITY.decode(encode(there))
    if not isinstance(found, Availability):
        return True  # of a form that is not known here: not ours to write over
    owner = owner_of(found)
    return bool(found.status.accumulators) and owner is not None and owner.uid == target.uid
