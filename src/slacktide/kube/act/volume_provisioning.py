"""Claims that wait for their first pod: volumes are reserved, or provisioners told its node; then it is bound."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from slacktide.engine.core import types
from slacktide.kube.client.http import MERGE_PATCH, ApiError, Unreachable
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.objects import Malformed, encode_annotations, encode_claim_reference
from slacktide.kube.resources.volumes import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    PersistentVolume,
    PersistentVolumeClaim,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.volume_matching import is_for
from slacktide.kube.translate.volumes import SELECTED_NODE

LOOK_AGAIN_SECONDS = 0.2
TOLD_SECONDS = 5.0
"""Whoever waits longer than this for volumes is told for which, and for whom; most are there before."""
AVOID_BACKOFFS = 1.5
"""So many times ``kube.backoff_longest`` a pod stays away from nodes for which no volume could be made: longer than it
waits between two attempts, so that the next goes elsewhere. kube-scheduler gets there because it draws among equals."""


class VolumeProvisioner(SessionPart):
    """Follows the annotation protocol of volume provisioning. ``leading`` is asked before every act."""

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._avoid_seconds = AVOID_BACKOFFS * session.settings.backoff_longest
        self._patience = session.settings.creation_allowance
        """For so long a place is kept for a pod that waits there for its volumes."""

    async def ready(self, pod: FedPod, host: str) -> str:
        """Wait until the volumes of a pod that is to be on ``host`` are there; else why they will not be."""
        try:
            return await self._ready(pod, host)
        finally:
            pod.awaited = ""

    async def _ready(self, pod: FedPod, host: str) -> str:
        told: dict[str, int] = {}
        reserved: dict[str, PersistentVolume] = {}
        storage = self._feed.mirror.storage
        try:
            plan = storage.plan(pod.pod, self._attributes(host))
            for name, volume in plan.bind.items():
                reserved[name] = await self._reserve(pod, name, volume)
            for name in plan.provision:
                told[name] = await self._select(pod, name, host)
        except (Unschedulable, _Hopeless, ApiError, Unreachable) as problem:
            return str(problem)
        return await self._wait(pod, host, told, reserved)

    async def _wait(
        self, pod: FedPod, host: str, told: Mapping[str, int], reserved: Mapping[str, PersistentVolume]
    ) -> str:
        """Until the volumes are there, or will not be, or not in time."""
        storage, since = self._feed.mirror.storage, pod.awaited_since or self._clock()
        while True:
            if pod.uid not in self._feed.pods:
                return "the pod was deleted"
            if not self._leading():
                return "another replica leads"
            needs = storage.needs(pod.pod)
            if not needs.provision and not needs.waits:
                fits = needs.term.holds(self._attributes(host))
                return "" if fits else f"its volumes are not available on node {host}"
            if undone := self._undone(pod, reserved) or self._refused(pod, host, told):
                return undone
            waited = self._clock() - since
            if waited >= self._patience:
                pod.awaited_since = since
                return f"its PersistentVolumeClaims were not bound within {self._patience:.0f} s"
            if waited >= TOLD_SECONDS:
                self._tell(pod, since, needs.waits or storage.awaited(pod.pod, needs.provision))
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    def _refused(self, pod: FedPod, host: str, told: Mapping[str, int]) -> str:
        """Why volumes will not be made that were asked for; empty as long as they may."""
        for name, version in told.items():
            claim = self._feed.mirror.storage.claim(pod.pod.metadata.namespace, name)
            if claim is None:
                return f"PersistentVolumeClaim {name} was deleted"
            if _version(claim) >= version and claim.metadata.annotations.get(SELECTED_NODE) != host:
                self._avoid(pod, host)
                return f"no volume could be provisioned for PersistentVolumeClaim {name} on node {host}"
        return ""

    def _tell(self, pod: FedPod, since: float, awaited: str) -> None:
        """A pod waits for others to see to its volumes: it is told for whom, and its seconds are counted so."""
        pod.awaited_since = since
        if awaited and pod.awaited != awaited and self._leading():
            pod.awaited = awaited
            self._feed.listener.waits(pod)

    def _avoid(self, pod: FedPod, host: str) -> None:
        """The provisioner took the node back: the pod goes elsewhere, until for a while no other node has failed."""
        pod.avoids |= {host}
        pod.awaited_since = 0.0
        self._forgive_later(pod, pod.avoids)

    def _forgive_later(self, pod: FedPod, avoided: frozenset[str]) -> None:
        forgive = partial(self._forgive, pod, avoided)
        asyncio.get_running_loop().call_later(self._avoid_seconds, self._gate.call, forgive)

    def _forgive(self, pod: FedPod, avoided: frozenset[str]) -> None:
        if self._feed.pods.get(pod.uid) is not pod or pod.avoids is not avoided:
            return  # it is gone, or another node has failed since
        if pod.key and self._feed.engine.pods[pod.uid].state == types.PLACED:
            self._forgive_later(pod, avoided)  # another node is being tried
            return
        pod.avoids = frozenset()
        self._feed.consider(pod)

    def _attributes(self, host: str) -> Mapping[str, str]:
        view = self._feed.mirror.nodes.get(host)
        return view.attributes if view is not None else {}

    def _undone(self, pod: FedPod, reserved: Mapping[str, PersistentVolume]) -> str:
        """Why volumes that were reserved will not be bound; empty as long as they may."""
        storage = self._feed.mirror.storage
        for name, volume in reserved.items():
            seen, claim = storage.volume(volume.metadata.name), storage.claim(pod.pod.metadata.namespace, name)
            if claim is None or seen is None:
                return f"claim {name} or its volume {volume.metadata.name} is gone"
            if _version(seen) >= _version(volume) and not is_for(seen, claim):
                return f"volume {volume.metadata.name} is not for claim {name} any more"
        return ""

    async def _reserve(self, pod: FedPod, name: str, volume: PersistentVolume) -> PersistentVolume:
        """Have a volume name a claim as the one it is for; the controller of volumes then binds both."""
        namespace = pod.pod.metadata.namespace
        claim, meta = self._feed.mirror.storage.claim(namespace, name), volume.metadata
        if claim is None:
            raise _Hopeless(f"PersistentVolumeClaim {name} was deleted")
        names_it = is_for(volume, claim)
        if names_it and volume.spec.claim_ref is not None and volume.spec.claim_ref.uid:
            return volume
        body = encode_claim_reference(
            namespace, name, claim.metadata.uid, meta.resource_version, chosen_by_us=not names_it
        )
        path = PERSISTENT_VOLUME.path(name=meta.name)
        found = PERSISTENT_VOLUME.decode(await self._connection.patch(path, body, MERGE_PATCH, permit=self._leading))
        if isinstance(found, Malformed):
            raise _Hopeless(f"volume {meta.name}: {found.problem}")
        return found

    async def _select(self, pod: FedPod, name: str, host: str) -> int:
        """Write the node onto a claim, unless it is there; since which of its versions it is."""
        namespace = pod.pod.metadata.namespace
        claim = self._feed.mirror.storage.claim(namespace, name)
        if claim is None:
            raise _Hopeless(f"PersistentVolumeClaim {name} was deleted")
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        if selected == host:
            return _version(claim)
        if selected:
            raise _Hopeless(f"a volume for PersistentVolumeClaim {name} is being provisioned on node {selected}")
        path, meta = PERSISTENT_VOLUME_CLAIM.path(namespace, name), claim.metadata
        body = encode_annotations({SELECTED_NODE: host}, uid=meta.uid, resource_version=meta.resource_version)
        answer = await self._connection.patch(path, body, MERGE_PATCH, permit=self._leading)
        found = PERSISTENT_VOLUME_CLAIM.decode(answer)
        if isinstance(found, Malformed):
            raise _Hopeless(f"claim {name}: {found.problem}")
        return _version(found)


class _Hopeless(Exception):  # noqa: N818  # it never leaves this module
    """Volumes will not be made."""


def _version(found: PersistentVolumeClaim | PersistentVolume) -> int:
    # Of one object they may be compared, as its watch delivers them in order.
    return int(found.metadata.resource_version)
