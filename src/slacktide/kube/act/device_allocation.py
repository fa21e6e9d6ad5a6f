"""Claims on devices: devices are kept when a pod is decided on, written down before it is bound, and given back.

As kube-scheduler does: a finalizer, then ``status.allocation`` and ``status.reservedFor``; where the pod is not bound
after all, it is taken out of ``reservedFor``. The devices stay with the claim then, and where the pod finds no place
because of that, they are taken away from it. Claims for extended resources that device classes back are
made before their pod is bound, with the pod as their owner, then the devices, then ``extendedResourceClaimStatus`` of
the pod, which tells the kubelet; they are deleted where it is not bound. A claim of an earlier attempt, or of a leader
before, is never used again.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar

from slacktide.kube.act.counts import ASK_AGAIN_SECONDS
from slacktide.kube.client.http import (
    CONFLICT,
    MERGE_PATCH,
    NOT_FOUND,
    STRATEGIC_MERGE_PATCH,
    TOO_MANY,
    ApiError,
    Unreachable,
)
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.device_reservations import Extended, Planned, Reservation
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.bodies import (
    encode_claim_given_back,
    encode_claim_status,
    encode_deletion,
    encode_extended_claim,
    encode_extended_claim_status,
    encode_finalizers,
    encode_not_reserved,
)
from slacktide.kube.resources.objects import POD, RESOURCE_CLAIM, Malformed, Pod, ResourceClaim, pod_reference
from slacktide.kube.translate.devices.claims import (
    ANNOTATION,
    FINALIZER,
    claims_of,
    encoded,
    is_reserved_for,
    made_for,
    may_give_back,
    names_of,
    usable_from,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Term

MOST_REFUSALS = 10
"""So often the API server may say that it cannot (429, 5xx) until a pod waits again."""
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Of which the API server makes names, too."""
LONGEST_BASE, DRAWN = 58, 5
"""Letters of a made name that are the pod's, and those that are drawn."""
T = TypeVar("T")


class Hopeless(Exception):  # noqa: N818  # no mistake
    """A claim will not be written, or its volume not be made."""


class ExtendedClaims(SessionPart):
    """Makes and deletes such claims. ``leading`` is asked before every act."""

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._mirror = session.feed.mirror.devices

    # -- made ------------------------------------------------------------------------------------------------------

    async def make(self, pod: Pod, extended: Extended) -> ResourceClaim:
        """The claim of a pod, which the mirror knows by then. What may have been made already is looked for.

        Raises :class:`Hopeless`, and :class:`ApiError` for the API server's last refusal.
        """
        namespace, uid = pod.metadata.namespace, pod.metadata.uid
        base = f"{pod.metadata.name}-extended-resources-"[:LONGEST_BASE]
        name = base + "".join(secrets.choice(LETTERS) for _ in range(DRAWN))
        requests = encoded(extended.claim.spec.devices.requests or ())
        body = encode_extended_claim(namespace, name, pod_reference(pod), requests, ANNOTATION)
        path = RESOURCE_CLAIM.path(namespace)
        try:
            answer = await self._tried(partial(self._connection.post, path, body, permit=self._leading))
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            answer = await self._tried(partial(self._connection.get, RESOURCE_CLAIM.path(namespace, name)))
        found = RESOURCE_CLAIM.decode(answer)
        if isinstance(found, Malformed):
            raise Hopeless(f"ResourceClaim {name}: {found.problem}")
        if made_for(found) != uid:
            raise Hopeless(f"ResourceClaim {name} belongs to another pod")
        self._mirror.on_claim_update(found)
        return found

    async def show(self, pod: Pod, claim: ResourceClaim, extended: Extended) -> None:
        """Write into the pod's status which claim it has, for its kubelet. Raises as :meth:`make`."""
        name = claim.metadata.name
        path = POD.path(pod.metadata.namespace, pod.metadata.name, "status")
        body = encode_extended_claim_status(pod.metadata.uid, name, extended.mappings)
        patch = partial(self._connection.patch, path, body, STRATEGIC_MERGE_PATCH, permit=self._leading)
        found = POD.decode(await self._tried(patch))
        said = None if isinstance(found, Malformed) else found.status.extended_resource_claim_status
        if said is None or said.resource_claim_name != name:
            raise Hopeless(
                "the API server does not keep status.extendedResourceClaimStatus: enable its feature gate "
                "DRAExtendedResource, or ask for the devices by a ResourceClaim"
            )

    # -- deleted ---------------------------------------------------------------------------------------------------

    async def delete_former(self, pod: Pod, but: str = "") -> None:
        """Delete claims that were made before for a pod that is not bound, whatever devices they have, ``but`` the one
        of this UID. Raises as :meth:`make`.

        A leader before may have bound it in its last moment: the pod is asked for first.
        """
        former = [one for one in self._mirror.extended.claims_of(pod) if one.metadata.uid != but]
        if not former:
            return
        path = POD.path(pod.metadata.namespace, pod.metadata.name)
        found = POD.decode(await self._tried(partial(self._connection.get, path)))
        if isinstance(found, Malformed) or found.metadata.uid != pod.metadata.uid or found.spec.node_name:
            raise Hopeless("the pod is bound already, or was deleted")
        for claim in former:
            try:
                await self._delete(claim)
            except ApiError as error:
                if error.status != NOT_FOUND:
                    raise

    async def _delete(self, claim: ResourceClaim) -> None:
        """Without its finalizer it goes at once; as its pod is not bound, no kubelet uses its devices."""
        uid, path = claim.metadata.uid, RESOURCE_CLAIM.path(claim.metadata.namespace, claim.metadata.name)
        while FINALIZER in claim.metadata.finalizers:
            left = [one for one in claim.metadata.finalizers if one != FINALIZER]
            body = encode_finalizers(left, uid, claim.metadata.resource_version)
            try:
                answer = await self._tried(partial(self._connection.patch, path, body, permit=self._leading))
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
                answer = await self._tried(partial(self._connection.get, path))
            found = RESOURCE_CLAIM.decode(answer)
            if isinstance(found, Malformed) or found.metadata.uid != uid:
                raise Hopeless(f"ResourceClaim {claim.metadata.name} was replaced by another one")
            claim = found
        await self._tried(partial(self._connection.delete, path, encode_deletion(uid), permit=self._leading))

    async def _tried(self, once: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Done until there is an answer, again also where it may have had its effect: each act here may be repeated."""
        refusals = 0
        while self._leading():
            try:
                return await self._gate.after(once())
            except ApiError as error:
                refusals += 1
                if error.status < TOO_MANY or refusals >= MOST_REFUSALS:
                    raise
                pause = error.retry_after or ASK_AGAIN_SECONDS
            except Unreachable:
                pause = ASK_AGAIN_SECONDS
            await asyncio.sleep(pause)
        raise Hopeless("another replica leads")


class DeviceAllocator(SessionPart):
    """Gives devices to claims. ``leading`` is asked before every act."""

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._mirror = session.feed.mirror.devices
        self._mirror.release_all()  # of a session before
        self._extended = ExtendedClaims(session)
        self._giving_up: dict[str, asyncio.Task[None]] = {}

    def concerns(self, pod: FedPod) -> bool:
        """Whether a pod is to get devices."""
        return pod.uid in self._mirror.in_use.reservations or self._mirror.concerns(pod.pod)

    # -- when it is decided, at once ---------------------------------------------------------------------------------

    def reserve(self, uid: str, host: str) -> str:
        """Keep devices for the claims of a pod that is to be on a node; why that cannot be, or empty."""
        pod, view = self._feed.pods.get(uid), self._feed.mirror.nodes.get(host)
        if pod is None or not self._mirror.concerns(pod.pod):
            return ""
        return self._mirror.reserve(pod.pod, view.attributes) if view is not None else f"node {host} was deleted"

    def release(self, uid: str) -> None:
        """A pod does not get there: the devices are free again, unless its claims have them already."""
        self._mirror.release(uid)

    # -- before it is bound ------------------------------------------------------------------------------------------

    async def ready(self, pod: FedPod) -> str:
        """Write down what was reserved for a pod, and that it uses its claims; why that failed, or empty."""
        while (before := self._giving_up.get(pod.uid)) is not None:  # of an attempt before: it must not come after this
            await asyncio.wait([before])
        reservation = self._mirror.in_use.reservations.get(pod.uid)
        if reservation is None:
            return "its ResourceClaims have no reserved devices"
        reservation.writing = True
        try:
            for claim in claims_of(pod.pod, self._mirror.claims):
                await self._write(claim, pod.pod, self._planned(claim, reservation), reservation.host)
            await self._write_extended(pod.pod, reservation)
        except (Unschedulable, Hopeless, ApiError) as problem:
            return str(problem)
        finally:
            reservation.writing = False
            if pod.uid not in self._feed.pods or pod.pod.spec.node_name:
                self._mirror.release(pod.uid)
        return ""

    async def _write_extended(self, pod: Pod, reservation: Reservation) -> None:
        """Make a claim for a pod's extended resources, with the devices that are reserved.

        Who was told to wait with the binding comes again, and has made it already.
        """
        made, extended = reservation.made, reservation.extended
        await self._extended.delete_former(pod, but="" if made is None else made.metadata.uid)
        if extended is None:
            return
        if made is None:
            made = reservation.made = await self._extended.make(pod, extended)
        known = self._mirror.claims.get((made.metadata.namespace, made.metadata.name), made)
        await self._write(known, pod, reservation.planned[extended.claim.metadata.uid], reservation.host)
        await self._extended.show(pod, made, extended)

    def _planned(self, claim: ResourceClaim, reservation: Reservation) -> Planned | None:
        """What a claim is to get for a pod, or for another one of its group that shares it."""
        uid = claim.metadata.uid
        return self._mirror.in_use.planned(uid) if uid in reservation.shared else reservation.planned.get(uid)

    async def _write(self, claim: ResourceClaim, pod: Pod, planned: Planned | None, host: str) -> None:
        async def step(latest: ResourceClaim) -> ResourceClaim:
            if planned is not None and FINALIZER not in latest.metadata.finalizers:
                return await self._finalized(latest)
            return await self._status(latest, pod, planned)

        await self._until(claim, lambda latest: self._is_written(latest, pod, planned, host), step)

    async def _until(
        self,
        claim: ResourceClaim,
        is_done: Callable[[ResourceClaim], bool],
        step: Callable[[ResourceClaim], Awaitable[ResourceClaim]],
    ) -> None:
        """Takes steps until it is known that a claim is as it should be. Each step has the version that it is about as
        precondition, so that none has an effect that comes late, after a later one.

        Raises :class:`ApiError` for the API server's last refusal.
        """
        refusals = 0
        while not is_done(claim):
            try:
                claim = await step(claim)
                continue
            except ApiError as error:
                refusals += error.status != CONFLICT
                if (error.status < TOO_MANY and error.status != CONFLICT) or refusals >= MOST_REFUSALS:
                    raise
                pause = 0.0 if error.status == CONFLICT else error.retry_after or ASK_AGAIN_SECONDS
            except Unreachable:
                pause = 0.0
            await asyncio.sleep(pause)
            claim = await self._as_it_is(claim)

    def _is_written(self, claim: ResourceClaim, pod: Pod, planned: Planned | None, host: str) -> bool:
        """Whether a claim is as it should be. Raises where it cannot come to that.

        A claim that had devices when the pod was decided on may have got others since, of another node: nobody used it
        then, and the pod may have waited for victims to go.
        """
        name, result = claim.metadata.name, claim.status.allocation
        if claim.metadata.deletion_timestamp is not None:
            raise Hopeless(f"ResourceClaim {name} is being deleted")
        if planned is None and result is None:
            raise Hopeless(f"ResourceClaim {name} is no longer allocated")
        is_reserved = is_reserved_for(claim, pod.metadata.uid)
        if not is_reserved and planned is not None and result is not None and not planned.is_in(result):
            raise Hopeless(f"ResourceClaim {name} was allocated by another scheduler")
        view = self._feed.mirror.nodes.get(host)
        if view is None or not Term(usable_from(claim, pod)).holds(view.attributes):
            raise Hopeless(f"the devices of ResourceClaim {name} are no longer available on node {host}")
        return is_reserved and result is not None

    async def _finalized(self, claim: ResourceClaim) -> ResourceClaim:
        meta = claim.metadata
        finalizers = (*meta.finalizers, FINALIZER)
        return await self._patch(claim, "", encode_finalizers(finalizers, meta.uid, meta.resource_version))

    async def _status(self, claim: ResourceClaim, pod: Pod, planned: Planned | None) -> ResourceClaim:
        meta = claim.metadata
        consumers = [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}]
        for one in claim.status.reserved_for:
            group = {"apiGroup": one.api_group} if one.api_group else {}
            consumers.insert(-1, {**group, "resource": one.resource, "name": one.name, "uid": one.uid})
        allocation = None if planned is None or claim.status.allocation is not None else planned.allocation
        body = encode_claim_status(meta.uid, meta.resource_version, consumers, allocation)
        return await self._patch(claim, "status", body)

    async def _patch(self, claim: ResourceClaim, sub: str, body: bytes, content: str = MERGE_PATCH) -> ResourceClaim:
        path = RESOURCE_CLAIM.path(claim.metadata.namespace, claim.metadata.name, sub)
        request = self._connection.patch(path, body, content, permit=self._leading)
        return self._seen(await self._gate.after(request), claim)

    async def _as_it_is(self, claim: ResourceClaim) -> ResourceClaim:
        """How a claim is now: asked until there is an answer, for who does not know must not give its devices away."""
        path = RESOURCE_CLAIM.path(claim.metadata.namespace, claim.metadata.name)
        while self._leading():
            try:
                return self._seen(await self._gate.after(self._connection.get(path)), claim)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    break
            except Unreachable:
                pass
            await asyncio.sleep(ASK_AGAIN_SECONDS)
        raise Hopeless(f"ResourceClaim {claim.metadata.name} was deleted, or another replica leads")

    def _seen(self, answer: bytes, before: ResourceClaim) -> ResourceClaim:
        """What the API server answered, which the mirror knows at once: before its watch says so."""
        found, meta = RESOURCE_CLAIM.decode(answer), before.metadata
        if isinstance(found, Malformed):
            raise Hopeless(f"ResourceClaim {meta.name}: {found.problem}")
        known = self._mirror.claims.get((meta.namespace, meta.name))
        if known is None or not known.metadata.uid == found.metadata.uid == meta.uid:
            raise Hopeless(f"ResourceClaim {meta.name} was deleted")
        self._mirror.on_claim_update(found)
        return found

    # -- where it is not bound ---------------------------------------------------------------------------------------

    def give_up(self, pod: FedPod, group: asyncio.TaskGroup | None) -> None:
        """A pod was not bound: its claims are not reserved for it any more, and one that was made for it is deleted."""
        known = (self._mirror.claims.get(key) for key in names_of(pod.pod))  # also where one of them cannot be used
        claims = [one for one in known if one is not None and is_reserved_for(one, pod.uid)]
        if (claims or self._mirror.extended.claims_of(pod.pod)) and group is not None:
            self._begin(pod, group, self._take_back(pod, claims))

    async def _take_back(self, pod: FedPod, claims: list[ResourceClaim]) -> None:
        await self._unreserve(pod, claims)
        await self._extended.delete_former(pod.pod)

    async def _unreserve(self, pod: FedPod, claims: Iterable[ResourceClaim]) -> None:
        async def step(latest: ResourceClaim) -> ResourceClaim:
            meta = latest.metadata
            body = encode_not_reserved(meta.uid, meta.resource_version, pod.uid)
            return await self._patch(latest, "status", body, STRATEGIC_MERGE_PATCH)

        for claim in claims:
            with contextlib.suppress(Hopeless, ApiError):  # one that is gone keeps nobody from the others
                await self._until(claim, lambda latest: not is_reserved_for(latest, pod.uid), step)

    def find_others(self, uids: Iterable[str], group: asyncio.TaskGroup | None) -> None:
        """Pods found no place: a claim of theirs that has devices on nodes where they cannot go gives these back."""
        for pod, claim in self._stuck(uids) if group is not None else ():
            assert group is not None  # noqa: S101  # for the type checker
            self._begin(pod, group, self._give_back(pod, claim) if claim else self._extended.delete_former(pod.pod))

    def _begin(self, pod: FedPod, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        """One such work at a time for a pod; it is not bound before that is over."""

        async def run() -> None:
            try:
                with contextlib.suppress(Hopeless, ApiError):  # who waits comes here again
                    await work
            except Exception as error:
                self._feed.mirror.barrier.failed(pod_reference(pod.pod), error)
            del self._giving_up[pod.uid]

        if pod.uid in self._giving_up:
            work.close()
        else:
            self._giving_up[pod.uid] = group.create_task(run())

    def _stuck(self, uids: Iterable[str]) -> list[tuple[FedPod, ResourceClaim | None]]:
        """Pods that found no place, each with a claim of its own whose devices keep it from some node, or with one that
        was made before for its extended resources (None)."""
        found: list[tuple[FedPod, ResourceClaim | None]] = []
        for uid in uids:
            pod = self._feed.pods.get(uid)
            if pod is None or not self._mirror.concerns(pod.pod) or uid in self._mirror.in_use.reservations:
                continue
            if self._mirror.extended.claims_of(pod.pod):
                found.append((pod, None))
                continue
            for claim in self._claims(pod):
                if may_give_back(claim, uid) and self._keeps_away(claim, pod.pod):
                    found.append((pod, claim))
                    break
        return found

    async def _give_back(self, pod: FedPod, claim: ResourceClaim) -> None:
        async def step(latest: ResourceClaim) -> ResourceClaim:
            meta = latest.metadata
            return await self._patch(latest, "status", encode_claim_given_back(meta.uid, meta.resource_version))

        await self._until(claim, lambda latest: not may_give_back(latest, pod.uid), step)

    def _keeps_away(self, claim: ResourceClaim, pod: Pod) -> bool:
        try:
            term = Term(usable_from(claim, pod))
        except Unschedulable:
            return True
        views = self._feed.mirror.nodes.values()
        return any(not term.holds(view.attributes) for view in views if view.ours)

    def _claims(self, pod: FedPod) -> list[ResourceClaim]:
        try:
            return claims_of(pod.pod, self._mirror.claims)
        except Unschedulable:
            return []
