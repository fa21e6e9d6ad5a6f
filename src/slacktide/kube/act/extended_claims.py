"""Claims for extended resources that device classes back: made before their pod is bound, and deleted where it is not.

As kube-scheduler 1.36 does: a claim with the pod as its owner, then the devices, then ``extendedResourceClaimStatus``
of the pod, which tells the kubelet. A claim of an earlier attempt, or of a leader before, is never used again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from slacktide.kube.act.counts import ASK_AGAIN_SECONDS
from slacktide.kube.client.http import CONFLICT, NOT_FOUND, STRATEGIC_MERGE_PATCH, TOO_MANY, ApiError, Unreachable
from slacktide.kube.mirror.device_reservations import Extended
from slacktide.kube.publish.events import SessionContext
from slacktide.kube.resources.bodies import (
    encode_deletion,
    encode_extended_claim,
    encode_extended_claim_status,
    encode_finalizers,
)
from slacktide.kube.resources.objects import POD, RESOURCE_CLAIM, Malformed, Pod, ResourceClaim, pod_reference
from slacktide.kube.translate.devices.claims import FINALIZER
from slacktide.kube.translate.devices.extended import ANNOTATION, encoded, made_for

MOST_REFUSALS = 10
"""So often the API server may say that it cannot (429, 5xx) until a pod waits again."""
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Of which the API server makes names, too."""
LONGEST_BASE, DRAWN = 58, 5
"""Letters of a made name that are the pod's, and those that are drawn."""
T = TypeVar("T")


class Hopeless(Exception):  # noqa: N818  # no mistake
    """A claim will not be written."""


class ExtendedClaims:
    """Makes and deletes such claims. ``leading`` is asked before every act."""

    def __init__(self, session: SessionContext) -> None:
        self._connection, self._leading, self._gate = session.connection, session.leading, session.gate
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
