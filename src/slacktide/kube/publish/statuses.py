"""What is written into the status of objects, once a second at most: how much of each PromiseQuota is used, as that of
a ResourceQuota is, and how Kubernetes' own PodGroups stand, as kube-scheduler 1.36 writes it.

The condition PodGroupScheduled is True once as many pods as start together are bound; that stays, whatever becomes of
them. It is False, Unschedulable, where they took part in a pass and found no place, and where the group asks for what
we do not do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Iterable
from typing import Any, NamedTuple

import msgspec

from slacktide.engine.explain.reasons import Explainer
from slacktide.kube.client.http import (
    APPLY_PATCH,
    FORBIDDEN,
    NOT_FOUND,
    OK,
    STRATEGIC_MERGE_PATCH,
    UNPROCESSABLE,
    ApiError,
    Unreachable,
)
from slacktide.kube.client.quantities import cpu_text, memory_text
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.availability import MANAGER
from slacktide.kube.publish.conditions import named_rule
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.custom_resources import PROMISE_QUOTA, PromiseQuota, PromiseQuotaStatus, UsedAmounts
from slacktide.kube.resources.objects import POD_GROUP, Condition, Instant, PodGroup, Reference, encode, rfc3339
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


class StatusWriter(SessionPart):
    """Writes what changed, once a second at most; a decision never waits for it."""

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._problem = ""

    async def _sent(self, what: str, name: Name, request: Awaitable[bytes], helped: Container[int]) -> int:
        """Send a status: the code of a refusal, 0 where no answer came. A person puts right what is ``helped`` by new
        manifests."""
        try:
            await request
        except ApiError as error:
            more = ": apply the manifests of this version" if error.status in helped else ""
            if str(error) != self._problem:
                LOG.warning("%s %s/%s is not written: %s%s", what, *name, error, more)
            self._problem = str(error)
            return error.status
        except Unreachable as error:
            LOG.debug("%s %s/%s: %s", what, *name, error)
            return 0
        self._problem = ""
        return OK


class QuotaStatusWriter(StatusWriter):
    """That of PromiseQuotas."""

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._said: dict[Name, tuple[str, PromiseQuotaStatus]] = {}
        """What was written last, and for which state of the object."""

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
        request = self._connection.patch(
            path, encode(body), APPLY_PATCH, query=MANAGER, timeout=WRITE_SECONDS, permit=self._leading
        )
        became = await self._sent("the status of PromiseQuota", (namespace, name), request, (FORBIDDEN, NOT_FOUND))
        if became in (OK, FORBIDDEN, NOT_FOUND):  # if refused until something changes, or all are looked at
            self._said[namespace, name] = found.metadata.resource_version, status


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


AGAIN_SECONDS = 60.0
"""Why a group waits is told again after this long, if it changed; so is what was refused."""
LASTING = (FORBIDDEN, NOT_FOUND, UNPROCESSABLE)
"""Refusals that the next second changes nothing about; after others it is tried again at once."""
SCHEDULED = "PodGroupScheduled"


class Standing(NamedTuple):
    """A condition: its status, reason and message."""

    status: str
    reason: str
    message: str = ""


class Reported(NamedTuple):
    """What was told last of the group with a UID, and when; ``refused``: to no avail."""

    uid: str
    standing: Standing
    at: float
    refused: bool = False


class GroupConditionWriter(StatusWriter):
    """That of PodGroups. ``awaits`` says whether a pod, by its UID, has a place that it waits for others to leave."""

    def __init__(self, session: SessionContext, awaits: Callable[[str], bool]) -> None:
        super().__init__(session)
        self._awaits = awaits
        self._explainer = Explainer(session.feed.engine, named_rule)
        self._reported: dict[Name, Reported] = {}
        """Of groups, by namespace and name."""
        self._warned: dict[str, None] = {}
        """UIDs of groups whose owners were told what is not done for them."""

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            await self._gate.passed()
            if self._leading():
                await self._look()

    async def _look(self) -> None:
        known = self._feed.mirror.pod_groups
        self._reported = {name: told for name, told in self._reported.items() if name in known.objects}
        uids = {one.metadata.uid for one in known.objects.values()}
        self._warned = {uid: None for uid in self._warned if uid in uids}
        for name, pods, least in list(self._feed.groups.of_kubernetes()):
            found = known.objects.get(name)
            if found is None:
                continue
            if pods and self._feed.engine.groups.is_mixed(self._feed.groups.key_of(pods[0].uid)):
                self._warn(found)
            said = _condition(found)
            if said is not None and said.status == "True":
                continue
            await self._gate.passed()
            standing = self._standing(found, pods, least)
            if standing is not None and self._leading():
                await self._write(found, standing)

    def _standing(self, found: PodGroup, pods: list[FedPod], least: int) -> Standing | None:
        """How a group stands; None where there is nothing to say, or nothing new."""
        if problem := self._feed.mirror.pod_groups.problem(found.metadata.namespace, found.metadata.name):
            return Standing("False", "Unschedulable", problem)
        gang = found.spec.scheduling_policy.gang
        enough = max(1, gang.min_count if gang is not None else 1)
        if sum(bool(one.pod.spec.node_name) for one in pods) >= enough:
            return Standing("True", "Scheduled")
        if gang is not None and gang.min_count > 1 and not least:
            return None  # too few of its pods are there, as yet
        if any(self._awaits(one.uid) for one in pods):
            return Standing("False", "Unschedulable", "waiting for the pods that it preempts to terminate")
        waits = next((one for one in pods if one.key and not one.problem and one.queue == fed_pod.UNSCHEDULABLE), None)
        if waits is None:
            return None
        told = self._reported.get((found.metadata.namespace, found.metadata.name))
        is_this = told is not None and told.uid == found.metadata.uid and told.standing.status == "False"
        if told is not None and is_this and self._clock() - told.at < AGAIN_SECONDS:
            return None
        return Standing("False", "Unschedulable", self._explainer.lasting_reason(waits.uid, self._clock()))

    def _warn(self, found: PodGroup) -> None:
        metadata = found.metadata
        if metadata.uid in self._warned:
            return
        self._warned[metadata.uid] = None
        reference = Reference(POD_GROUP.api_version, "PodGroup", metadata.namespace, metadata.name, metadata.uid)
        note = (
            "spec.disruptionMode: found PodGroup, but its pods differ in importance: they are preempted one at a time"
        )
        self._recorder.record(reference, "NotSupported", note, event_type="Warning", action="Preempting")

    async def _write(self, found: PodGroup, standing: Standing) -> None:
        metadata, now = found.metadata, self._clock()
        name = metadata.namespace, metadata.name
        told = self._reported.get(name)
        same = told is not None and (told.uid, told.standing) == (metadata.uid, standing)
        if told is not None and same and told.refused and now - told.at < AGAIN_SECONDS:
            return
        if _condition(found) == standing or (told is not None and same and not told.refused):
            self._reported[name] = Reported(metadata.uid, standing, now)
            return
        path, body = POD_GROUP.path(*name, "status"), encode(_body(found, standing, now))
        request = self._connection.patch(path, body, STRATEGIC_MERGE_PATCH, timeout=WRITE_SECONDS, permit=self._leading)
        became = await self._sent("the condition of pod group", name, request, (FORBIDDEN,))
        if became == OK or became in LASTING:
            self._reported[name] = Reported(metadata.uid, standing, now, refused=became != OK)


def _body(found: PodGroup, standing: Standing, now: float) -> dict[str, Any]:
    before = next((one for one in found.status.conditions if one.type == SCHEDULED), None)
    same = before is not None and before.status == standing.status
    since = before.last_transition_time if before is not None and same else None
    condition = {
        "type": SCHEDULED,
        **standing._asdict(),
        "observedGeneration": found.metadata.generation,
        "lastTransitionTime": rfc3339(now if since is None else since),
    }
    return {"metadata": {"uid": found.metadata.uid}, "status": {"conditions": [condition]}}


def _condition(found: PodGroup) -> Standing | None:
    one = next((one for one in found.status.conditions if one.type == SCHEDULED), None)
    return None if one is None else Standing(one.status, one.reason, one.message)
