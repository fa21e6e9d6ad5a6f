"""Pods are bound to their nodes, once their volumes are made and their devices written down.

An act whose outcome is not known (no answer came) is looked up before anything else is done about that pod. Of claims
that wait for their first pod volumes are reserved, or provisioners told its node, by annotations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

from slacktide.engine.core import types
from slacktide.engine.core.types import Decision
from slacktide.kube.act.counts import ASK_AGAIN_SECONDS, LONGEST_PAUSE_SECONDS, Counts
from slacktide.kube.act.device_allocation import DeviceAllocator, Hopeless
from slacktide.kube.client.http import CONFLICT, MERGE_PATCH, NOT_FOUND, SERVER_ERROR, TOO_MANY, ApiError, Unreachable
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.bodies import encode_annotations, encode_binding, encode_claim_reference
from slacktide.kube.resources.objects import POD, Malformed, pod_reference
from slacktide.kube.resources.volumes import (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    PersistentVolume,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.volume_matching import is_for
from slacktide.kube.translate.volumes import SELECTED_NODE
from slacktide.model.hosts import DEVICES

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
        except (Unschedulable, Hopeless, ApiError, Unreachable) as problem:
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
            if claim.metadata.version >= version and claim.metadata.annotations.get(SELECTED_NODE) != host:
                # The provisioner took it back: the pod goes elsewhere, until for a while no other node has failed.
                pod.avoids |= {host}
                pod.awaited_since = 0.0
                self._forgive_later(pod, pod.avoids)
                return f"no volume could be provisioned for PersistentVolumeClaim {name} on node {host}"
        return ""

    def _tell(self, pod: FedPod, since: float, awaited: str) -> None:
        """A pod waits for others to see to its volumes: it is told for whom, and its seconds are counted so."""
        pod.awaited_since = since
        if awaited and pod.awaited != awaited and self._leading():
            pod.awaited = awaited
            self._feed.listener.waits(pod)

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
            if seen.metadata.version >= volume.metadata.version and not is_for(seen, claim):
                return f"volume {volume.metadata.name} is not for claim {name} any more"
        return ""

    async def _reserve(self, pod: FedPod, name: str, volume: PersistentVolume) -> PersistentVolume:
        """Have a volume name a claim as the one it is for; the controller of volumes then binds both."""
        namespace = pod.pod.metadata.namespace
        claim, meta = self._feed.mirror.storage.claim(namespace, name), volume.metadata
        if claim is None:
            raise Hopeless(f"PersistentVolumeClaim {name} was deleted")
        names_it = is_for(volume, claim)
        if names_it and volume.spec.claim_ref is not None and volume.spec.claim_ref.uid:
            return volume
        body = encode_claim_reference(
            namespace, name, claim.metadata.uid, meta.resource_version, chosen_by_us=not names_it
        )
        path = PERSISTENT_VOLUME.path(name=meta.name)
        found = PERSISTENT_VOLUME.decode(await self._connection.patch(path, body, MERGE_PATCH, permit=self._leading))
        if isinstance(found, Malformed):
            raise Hopeless(f"volume {meta.name}: {found.problem}")
        return found

    async def _select(self, pod: FedPod, name: str, host: str) -> int:
        """Write the node onto a claim, unless it is there; since which of its versions it is."""
        namespace = pod.pod.metadata.namespace
        claim = self._feed.mirror.storage.claim(namespace, name)
        if claim is None:
            raise Hopeless(f"PersistentVolumeClaim {name} was deleted")
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        if selected == host:
            return claim.metadata.version
        if selected:
            raise Hopeless(f"a volume for PersistentVolumeClaim {name} is being provisioned on node {selected}")
        path, meta = PERSISTENT_VOLUME_CLAIM.path(namespace, name), claim.metadata
        body = encode_annotations({SELECTED_NODE: host}, uid=meta.uid, resource_version=meta.resource_version)
        answer = await self._connection.patch(path, body, MERGE_PATCH, permit=self._leading)
        found = PERSISTENT_VOLUME_CLAIM.decode(answer)
        if isinstance(found, Malformed):
            raise Hopeless(f"claim {name}: {found.problem}")
        return found.metadata.version


CLOSED = "node {} is no longer schedulable for it"
FULL = "node {} has no room for it any more"
GOES = "it is being deleted"


class GiveUp(Protocol):
    """Who is told that a decision cannot be carried out, and why."""

    def __call__(self, uid: str, reason: str, *, at_once: bool = False) -> None: ...


class Binder(SessionPart):
    """Binds, one decision after the other for each :meth:`run`; ``leading`` is asked before every request."""

    def __init__(self, session: SessionContext, devices: DeviceAllocator, counts: Counts, give_up: GiveUp) -> None:
        super().__init__(session)
        self._volumes, self._devices = VolumeProvisioner(session), devices
        self._counts, self._give_up = counts, give_up
        self._waiting: asyncio.Queue[Decision] = asyncio.Queue()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self._waiting.qsize()

    def bind(self, decision: Decision) -> None:
        """A pod is to be bound, as soon as it has its turn."""
        self._waiting.put_nowait(decision)

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Works until cancelled; what takes long goes on in a task of its own."""
        while True:
            decision = await self._waiting.get()
            pod = self._feed.pods.get(decision.uid)
            if pod is None or not self._leading() or not self.stands(decision):
                continue
            if problem := self._obstacle(pod, decision):
                await self._gate.passed()
                self._give_up(decision.uid, problem, at_once=True)
            elif pod.needs.provision or self._devices.concerns(pod):
                group.create_task(self._guarded(self._prepare_and_bind, pod, decision))
            else:
                await self._guarded(self._bind, pod, decision)

    async def _guarded(
        self, work: Callable[[FedPod, Decision], Awaitable[None]], pod: FedPod, decision: Decision
    ) -> None:
        """A pod over which this stumbles is given up, and all others are bound."""
        barrier = self._feed.mirror.barrier
        try:
            await work(pod, decision)
        except Exception as error:
            found = barrier.failed(pod_reference(pod.pod), error)
            await self._gate.passed()
            with barrier.around(found.about):
                if self.stands(decision) and not self._feed.engine.pods[decision.uid].bound:
                    self._give_up(decision.uid, f"the pod is invalid: {found.problem}")

    def stands(self, decision: Decision) -> bool:
        """Whether a decision has not been given up since, for example with others of its group."""
        one = self._feed.engine.pods.get(decision.uid)
        return one is not None and one.state == types.PLACED and one.host == decision.host

    def is_open(self, pod: FedPod | None, decision: Decision) -> bool:
        """Whether the node still takes the pod: it may have been cordoned, tainted or lost since the decision."""
        return pod is not None and bool(pod.key) and self._feed.engine.is_open(pod.uid, decision.host)

    def _obstacle(self, pod: FedPod, decision: Decision) -> str:
        """Why a pod cannot be bound any more, or empty."""
        if pod.pod.metadata.deletion_timestamp is not None:
            return GOES
        if not self.is_open(pod, decision):
            return CLOSED.format(decision.host)
        return FULL.format(decision.host) if self._is_overfull(decision) else ""

    def _is_overfull(self, decision: Decision) -> bool:
        """Whether a node has not as much as the pods that count there, with this one: it may have become smaller since
        the decision, or another of its name, or somebody else may have bound pods there. Devices are reserved apart."""
        engine = self._feed.engine
        demand, room = engine.specs[engine.pods[decision.uid].spec].demand, engine.room(decision.host)
        return any(room.get(name, 0) < 0 for name, amount in demand if amount and not name.startswith(DEVICES))

    async def _prepare_and_bind(self, pod: FedPod, decision: Decision) -> None:
        """Making volumes takes long, and writing down which devices a pod gets; others go on meanwhile."""
        problem = ""
        if pod.needs.provision:
            problem = await self._gate.after(self._volumes.ready(pod, decision.host))
        if not problem and self._devices.concerns(pod):
            problem = await self._gate.after(self._devices.ready(pod))
        if problem := problem or self._obstacle(pod, decision):
            self._give_up(decision.uid, problem)
        else:
            await self._bind(pod, decision)

    async def _bind(self, pod: FedPod, decision: Decision) -> None:
        namespace, name = pod.namespaced_name
        path = POD.path(namespace, name, "binding")
        body = encode_binding(namespace, name, decision.uid, decision.host)
        try:
            await self._gate.after(self._connection.post(path, body, permit=self._leading))
        except ApiError as error:
            if error.status == TOO_MANY:
                self._again(decision, error.retry_after)
            elif error.status == CONFLICT or error.status >= SERVER_ERROR:
                # It may be bound: by an earlier request, or by this one.
                await self._look_up(pod, decision, str(error))
            elif error.status != NOT_FOUND:  # the watch will tell of one that is gone
                self._give_up(decision.uid, str(error))
            return
        except Unreachable as error:
            await self._look_up(pod, decision, str(error))
            return
        self._has_bound(pod, decision)

    def _again(self, decision: Decision, after: float | None) -> None:
        """The API server had no time for a binding: it is sent again after a pause, while others go on."""
        self._counts.retried += 1
        pause = min(after or ASK_AGAIN_SECONDS, LONGEST_PAUSE_SECONDS)
        asyncio.get_running_loop().call_later(pause, self._waiting.put_nowait, decision)

    async def _look_up(self, pod: FedPod, decision: Decision, problem: str) -> None:
        """A binding got no clear answer: ask until it is known whether it was carried out."""
        namespace, name = pod.namespaced_name
        pause = 0.0
        while self._leading() and pod.uid in self._feed.pods:
            await asyncio.sleep(pause)
            pause = ASK_AGAIN_SECONDS
            try:
                found = POD.decode(await self._gate.after(self._connection.get(POD.path(namespace, name))))
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return
                continue
            except Unreachable:
                continue
            if isinstance(found, Malformed) or found.metadata.uid != decision.uid:
                return
            if found.spec.node_name == decision.host:
                self._has_bound(pod, decision)
            elif found.spec.node_name:
                return  # the watch will tell
            else:
                self._give_up(decision.uid, problem, at_once=True)
            return

    def _has_bound(self, pod: FedPod, decision: Decision) -> None:
        engine = self._feed.engine
        self._counts.bound += 1
        pod.failures = 0
        pod.queue = fed_pod.NOWHERE
        if pod.key:
            one = engine.pods.get(decision.uid)
            if one is not None and one.state == types.PLACED and not one.bound:
                engine.bound(decision.uid, self._clock())
        namespace, name = pod.namespaced_name
        note = f"Successfully assigned {namespace}/{name} to {decision.host}"
        self._recorder.record(pod_reference(pod.pod), "Scheduled", note, action="Binding")
