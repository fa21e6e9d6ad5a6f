"""Pods that the engine cannot be told of: set aside, so that all others go on.

An exception may come half way. Then what the engine and the feed know of the pod is made whole again: who ran and was
known stays as it was known; who was about to enter is taken out, and waits with the problem as its reason, or takes
room on its node and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.hosts import Hosts
from slacktide.kube.feed.specs import Specs
from slacktide.kube.feed.succession import Replacements
from slacktide.kube.mirror.barrier import Barrier
from slacktide.kube.resources.objects import pod_reference
from slacktide.model.causes import WORKLOAD


class PodsAside:
    """Keeps exceptions of one of a feed's pods from all others. ``wait`` has one wait for a reason."""

    def __init__(
        self,
        barrier: Barrier,
        engine: Engine,
        parts: tuple[Hosts, Specs, Replacements],
        clock: Callable[[], float],
        wait: Callable[[FedPod, str], None],
    ) -> None:
        self._barrier, self._engine, self._clock, self._wait = barrier, engine, clock, wait
        self._hosts, self._specs, self._replacements = parts

    def guarded(self, call: Callable[[FedPod], object], pod: FedPod) -> None:
        """Call with the pod; where that fails it is set aside."""
        try:
            call(pod)
        except Exception as error:
            self.failed(pod, error)

    def failed(self, pod: FedPod, error: Exception) -> None:
        """Set a pod aside."""
        found = self._barrier.failed(pod_reference(pod.pod), error)
        reason = f"the pod is invalid: {found.problem}"
        try:
            self._set_aside(pod, reason)
        except Exception as further:
            self._barrier.failed(found.about, further)
            with self._barrier.around(found.about):
                self._take_out(pod)
            with self._barrier.around(found.about):
                self._set_aside(pod, reason)

    @contextmanager
    def leaving(self, pod: FedPod) -> Iterator[None]:
        """The pod is no more; where something fails it leaves the engine all the same."""
        try:
            yield
        except Exception as error:
            found = self._barrier.failed(pod_reference(pod.pod), error)
            with self._barrier.around(found.about):
                self._take_out(pod)

    def _set_aside(self, pod: FedPod, reason: str) -> None:
        known, runs = self._engine.pods.get(pod.uid), bool(pod.pod.spec.node_name) and not pod.record.is_final
        is_whole = bool(pod.key) and known is not None and (not runs or known.state in (types.PLACED, types.LEAVING))
        if is_whole and runs:
            return
        if not is_whole or pod.record.is_final:
            self._take_out(pod)
        pod.record.malformed = reason
        if runs:
            self._hosts.ensure(pod.pod.spec.node_name)
            self._hosts.stranger(pod)
            self._hosts.let_go(pod.pod.spec.node_name)
        elif pod.ours and not pod.record.is_final:
            self._wait(pod, reason)

    def _take_out(self, pod: FedPod) -> None:
        key = pod.key
        pod.key, pod.queue, pod.preferred = "", fed_pod.NOWHERE, ""
        if pod.stranger_on:
            self._hosts.stranger_gone(pod)
        if pod.uid in self._engine.pods:
            self._engine.gone(pod.uid, self._clock(), False, WORKLOAD)
        if key:
            self._replacements.gone(key, pod.uid)
        if pod.spec >= 0:
            number, pod.spec = pod.spec, -1
            self._specs.release(number)
