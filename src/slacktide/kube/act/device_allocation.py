"""Claims on devices: devices are kept when a pod is decided on, written down before it is bound, and given back.

As kube-scheduler does: a finalizer, then ``status.allocation`` and ``status.reservedFor``; where the pod is not bound
after all, it is taken out of ``reservedFor``. The devices stay with the claim then, and where the pod finds no place
because of that, they are taken away from it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

from slacktide.kube.act.counts import ASK_AGAIN_SECONDS
from slacktide.kube.client.http import MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiError, Unreachable
from slacktide.kube.client.kinds import Malformed
from slacktide.kube.client.status_codes import CONFLICT, NOT_FOUND, SERVER_ERROR, TOO_MANY
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.device_reservations import Planned
from slacktide.kube.publish.term_context import TermContext
from slacktide.kube.resources.bodies import (
    encode_claim_given_back,
    encode_claim_status,
    encode_finalizers,
    encode_not_reserved,
)
from slacktide.kube.resources.devices import ResourceClaim
from slacktide.kube.resources.objects import RESOURCE_CLAIM, Pod
from slacktide.kube.translate.devices.pod_claims import (
    FINALIZER,
    claims_of,
    is_reserved_for,
    may_give_back,
    usable_from,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Term


class DeviceAllocator:
    """Gives devices to claims. ``leading`` is asked before every act."""

    def __init__(self, term: TermContext) -> None:
        self._connection, self._feed, self._leading, self._gate = term.connection, term.feed, term.leading, term.gate
        self._mirror = term.feed.mirror.devices
        self._mirror.release_all()  # of a term before

    # -- when it is decided, at once ---------------------------------------------------------------------------------

    def reserve(self, uid: str, host: str) -> str:
        """Keep devices for the claims of a pod that is to be on a node; why that cannot be, or empty."""
        pod, view = self._feed.pods.get(uid), self._feed.mirror.nodes.get(host)
        if pod is None or not pod.pod.spec.resource_claims:
            return ""
        return self._mirror.reserve(pod.pod, view.attributes) if view is not None else f"node {host} is gone"

    def release(self, uid: str) -> None:
        """A pod does not get there: the devices are free again, unless its claims have them already."""
        self._mirror.release(uid)

    # -- before it is bound ------------------------------------------------------------------------------------------

    async def ready(self, pod: FedPod) -> str:
        """Write down what was reserved for a pod, and that it uses its claims; why that failed, or empty."""
        reservation = self._mirror.in_use.reservations.get(pod.uid)
        if reservation is None:
            return "no devices are reserved for its claims"
        reservation.writing = True
        try:
            for claim in claims_of(pod.pod, self._mirror.claims):
                await self._write(claim, pod, reservation.planned.get(claim.metadata.uid))
        except (Unschedulable, _Hopeless, ApiError, Unreachable) as problem:
            return str(problem)
        finally:
            reservation.writing = False
            if pod.uid not in self._feed.pods or pod.pod.spec.node_name:
                self._mirror.release(pod.uid)
        return ""

    async def _write(self, claim: ResourceClaim, pod: FedPod, planned: Planned | None) -> None:
        """Repeated until it is known to be written; the API server compares versions, so nothing is written twice."""
        while True:
            if self._is_written(claim, pod.pod, planned):
                return
            try:
                if planned is not None and FINALIZER not in claim.metadata.finalizers:
                    claim = await self._finalized(claim)
                claim = await self._status(claim, pod.pod, planned)
            except ApiError as error:
                if error.status not in (CONFLICT, TOO_MANY) and error.status < SERVER_ERROR:
                    raise
                claim = await self._as_it_is(claim)
            except Unreachable:
                claim = await self._as_it_is(claim)

    def _is_written(self, claim: ResourceClaim, pod: Pod, planned: Planned | None) -> bool:
        """Whether a claim is as it should be. Raises where it cannot come to that."""
        name, result = claim.metadata.name, claim.status.allocation
        if claim.metadata.deletion_timestamp is not None:
            raise _Hopeless(f"resource claim {name} is being deleted")
        if planned is None and result is None:
            raise _Hopeless(f"resource claim {name} has lost its devices")
        if not is_reserved_for(claim, pod.metadata.uid):
            if planned is not None and result is not None:
                raise _Hopeless(f"resource claim {name} was given devices by somebody else")
            usable_from(claim, pod)
            return False
        return result is not None

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
        allocation = None if planned is None else planned.allocation
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
        raise _Hopeless(f"resource claim {claim.metadata.name} is gone, or another replica leads")

    def _seen(self, answer: bytes, before: ResourceClaim) -> ResourceClaim:
        """What the API server answered, which the mirror knows at once: before its watch says so."""
        found = RESOURCE_CLAIM.decode(answer)
        if isinstance(found, Malformed):
            raise _Hopeless(f"resource claim {before.metadata.name}: {found.problem}")
        if found.metadata.uid != before.metadata.uid:
            raise _Hopeless(f"resource claim {before.metadata.name} is gone")
        self._mirror.see_claim(found)
        return found

    # -- where it is not bound ---------------------------------------------------------------------------------------

    async def unreserve(self, pod: FedPod) -> None:
        """The claims of a pod that was not bound are not reserved for it any more."""
        for claim in self._claims(pod):
            if is_reserved_for(claim, pod.uid):
                await self._try(claim, encode_not_reserved(claim.metadata.uid, pod.uid), STRATEGIC_MERGE_PATCH)

    def stuck(self, uids: Iterable[str]) -> list[tuple[FedPod, ResourceClaim]]:
        """Pods that found no place, each with a claim of its own whose devices keep it from some node."""
        found = []
        for uid in uids:
            pod = self._feed.pods.get(uid)
            if pod is None or not pod.pod.spec.resource_claims or uid in self._mirror.in_use.reservations:
                continue
            for claim in self._claims(pod):
                if may_give_back(claim, uid) and self._keeps_away(claim, pod.pod):
                    found.append((pod, claim))
                    break
        return found

    async def give_back(self, pod: FedPod, claim: ResourceClaim) -> None:
        """Take a claim's devices away, for others to be found."""
        if pod.uid in self._feed.pods and pod.uid not in self._mirror.in_use.reservations:
            meta = claim.metadata
            await self._try(claim, encode_claim_given_back(meta.uid, meta.resource_version), MERGE_PATCH)

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

    async def _try(self, claim: ResourceClaim, body: bytes, content_type: str) -> None:
        with contextlib.suppress(
            _Hopeless, ApiError, Unreachable
        ):  # the pod comes here again when it is looked at again
            await self._patch(claim, "status", body, content_type)


class _Hopeless(Exception):  # noqa: N818  # it never leaves this module
    """A claim will not be written."""
