"""How much of each PromiseQuota is used, written into its status as that of a ResourceQuota is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from slacktide.kube.client.http import APPLY_PATCH, FORBIDDEN, NOT_FOUND, ApiError, Unreachable
from slacktide.kube.client.quantities import cpu_text, memory_text
from slacktide.kube.publish.availability import MANAGER
from slacktide.kube.publish.events import SessionContext
from slacktide.kube.resources.custom_resources import PROMISE_QUOTA, PromiseQuota, PromiseQuotaStatus, UsedAmounts
from slacktide.kube.resources.objects import Condition, Instant, encode
from slacktide.kube.translate.disruption_budgets import Quota

LOG = logging.getLogger(__name__)

TICK_SECONDS = 1.0
EVERY_TICKS = 30
"""After so many ticks all quotas are looked at, whether something happened to them or not: classes come and go."""
WRITE_SECONDS = 10.0

Name = tuple[str, str]


def status_of(
    found: PromiseQuota, quota: Quota, used: tuple[int, int, int], refused: int, *, has_class: bool
) -> PromiseQuotaStatus:
    """What a quota's status says; conditions without their instants. ``used`` and ``refused``: of its class there."""
    hard = {} if quota.cpu is None else {"cpu": cpu_text(quota.cpu)}
    hard |= {} if quota.memory is None else {"memory": memory_text(quota.memory)}
    hard |= {} if quota.workloads is None else {"workloads": f"{quota.workloads}"}
    amounts = UsedAmounts(cpu_text(used[0]), memory_text(used[1]), used[2])
    limits = zip(("cpu", "memory", "workloads"), used, (quota.cpu, quota.memory, quota.workloads), strict=True)
    above = [name for name, has, most in limits if most is not None and has > most]
    conditions = (_enforced(found, quota, has_class=has_class), _exhausted(above, refused))
    return PromiseQuotaStatus(found.metadata.generation, hard, amounts, refused, conditions)


def _enforced(found: PromiseQuota, quota: Quota, *, has_class: bool) -> Condition:
    if quota.problem:
        return Condition("Enforced", "False", "UnreadableLimit", f"{quota.problem}; the quota allows no pods")
    if not has_class:
        return Condition("Enforced", "False", "NoSuchClass", f"service class {found.spec.class_!r} does not exist")
    return Condition("Enforced", "True", "Enforced", f"pods of class {found.spec.class_!r} here are counted")


def _exhausted(above: list[str], refused: int) -> Condition:
    if refused:
        pods = "1 pod is waiting" if refused == 1 else f"{refused} pods are waiting"
        return Condition("Exhausted", "True", "PodsRefused", f"{pods} without a promise, as the quota is used up")
    if above:
        words = f"more {', '.join(above)} is used than the quota allows: running pods keep their promise"
        return Condition("Exhausted", "True", "AboveLimit", words)
    return Condition("Exhausted", "False", "WithinLimits", "all pods have their promise")


class QuotaStatusWriter:
    """Writes what changed, once a second at most."""

    def __init__(self, session: SessionContext) -> None:
        self._connection, self._feed, self._clock = session.connection, session.feed, session.clock
        self._leading, self._gate = session.leading, session.gate
        self._said: dict[Name, tuple[str, PromiseQuotaStatus]] = {}
        """What was written last, and for which state of the object."""
        self._problem = ""

    async def run(self) -> None:
        """Writes until cancelled."""
        tick = 0
        while True:
            await self._gate.passed()
            if self._leading():
                await self._write_all(self._due(everything=tick % EVERY_TICKS == 0))
            tick += 1
            await asyncio.sleep(TICK_SECONDS)

    def _due(self, *, everything: bool) -> list[Name]:
        """Quotas of which something else may be true than was written."""
        quotas, claims = self._feed.mirror.quotas, self._feed.promise_quotas
        touched, claims.touched = claims.touched, {}
        self._said = {name: said for name, said in self._said.items() if name in quotas.objects}
        return [
            name
            for name, found in quotas.objects.items()
            if everything or name not in self._said or (name[0], found.spec.class_) in touched
            or self._said[name][0] != found.metadata.resource_version
        ]  # fmt: skip

    async def _write_all(self, names: Iterable[Name]) -> None:
        for name in names:
            await self._gate.passed()
            found = self._feed.mirror.quotas.objects.get(name)
            if found is None or not self._leading():
                continue
            status = self._status(found)
            if _without_instants(found.status) == status:
                self._said[name] = found.metadata.resource_version, status
            elif self._said.get(name) != (found.metadata.resource_version, status):
                await self._write(found, status)

    def _status(self, found: PromiseQuota) -> PromiseQuotaStatus:
        namespace, service = found.metadata.namespace, found.spec.class_
        mirror, group = self._feed.mirror, self._feed.promise_quotas.groups.get((namespace, service))
        quota = next(one for one in mirror.quotas.of(namespace, service) if one.name == found.metadata.name)
        used, refused = ((0, 0, 0), 0) if group is None else (group.used, len(group.refused))
        return status_of(found, quota, used, refused, has_class=service in mirror.classes.classes)

    async def _write(self, found: PromiseQuota, status: PromiseQuotaStatus) -> None:
        before = {} if found.status is None else {one.type: one for one in found.status.conditions}
        conditions = tuple(_since(one, before.get(one.type), self._clock()) for one in status.conditions)
        namespace, name = found.metadata.namespace, found.metadata.name
        body = {
            "apiVersion": PROMISE_QUOTA.api_version,
            "kind": "PromiseQuota",
            "metadata": {"name": name, "namespace": namespace},
            "status": msgspec.structs.replace(status, conditions=conditions),
        }
        path = PROMISE_QUOTA.path(namespace, name, "status")
        try:
            await self._connection.patch(
                path, encode(body), APPLY_PATCH, query=MANAGER, timeout=WRITE_SECONDS, permit=self._leading
            )
            self._said[namespace, name] = found.metadata.resource_version, status
            self._problem = ""
        except ApiError as error:
            more = ": apply the manifests of this version" if error.status in (FORBIDDEN, NOT_FOUND) else ""
            if str(error) != self._problem:
                LOG.warning("the status of PromiseQuota %s/%s is not written: %s%s", namespace, name, error, more)
            self._problem = str(error)
            if more:  # until something changes, or all are looked at
                self._said[namespace, name] = found.metadata.resource_version, status
        except Unreachable as error:
            LOG.debug("the status of PromiseQuota %s/%s: %s", namespace, name, error)


def _without_instants(status: PromiseQuotaStatus | None) -> PromiseQuotaStatus | None:
    if status is None:
        return None
    bare = (msgspec.structs.replace(one, last_transition_time=None) for one in status.conditions)
    return msgspec.structs.replace(status, conditions=tuple(bare))


def _since(one: Condition, before: Condition | None, now: float) -> Condition:
    """A condition with the instant since when it is so."""
    same = before is not None and before.status == one.status and before.last_transition_time is not None
    at = before.last_transition_time if before is not None and same else Instant(now)
    return msgspec.structs.replace(one, last_transition_time=at)
