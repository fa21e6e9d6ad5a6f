"""Pods are bound to their nodes, once their volumes are made and their devices written down.

An act whose outcome is not known (no answer came) is looked up before anything else is done about that pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from slacktide.engine.core import types
from slacktide.engine.core.types import Decision
from slacktide.kube.act.counts import ASK_AGAIN_SECONDS, LONGEST_PAUSE_SECONDS, Counts
from slacktide.kube.act.device_allocation import DeviceAllocator
from slacktide.kube.act.volume_provisioning import VolumeProvisioner
from slacktide.kube.client.http import CONFLICT, NOT_FOUND, SERVER_ERROR, TOO_MANY, ApiError, Unreachable
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.publish.events import SessionContext, SessionPart
from slacktide.kube.resources.objects import POD, Malformed, encode_binding, pod_reference
from slacktide.model.hosts import DEVICES

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
