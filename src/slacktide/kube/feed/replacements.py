"""Pods that were told to go and whose replacement is there: that goes on with their instance.

However long a pod stays Terminating, on a node that is lost or with a finalizer, it takes its room and counts no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kube.feed.blame import BlameFeed
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.succession import Succession


class Replacements:
    """``replace`` has a pod of ``pods`` count no more."""

    def __init__(
        self,
        engine: Engine,
        pods: Mapping[str, FedPod],
        succession: Succession,
        blame: BlameFeed,
        replace: Callable[[FedPod], None],
    ) -> None:
        self._engine, self._pods, self._succession = engine, pods, succession
        self._blame, self._replace = blame, replace
        self._going: dict[str, dict[str, None]] = {}
        """Pods on nodes that were told to go and are not gone, by their controllers' key."""

    def goes(self, pod: FedPod) -> None:
        """A pod on a node was told to go."""
        self._going.setdefault(pod.key, {})[pod.uid] = None

    def going_from(self, node: str) -> list[FedPod]:
        """Pods on a node that were told to go and are not gone; O(all that go)."""
        every = (self._pods[uid] for going in self._going.values() for uid in going)
        return [one for one in every if one.pod.spec.node_name == node]

    def gone(self, key: str, uid: str) -> None:
        """A pod is gone, or replaced."""
        going = self._going.get(key, {})
        going.pop(uid, None)
        if not going:
            self._going.pop(key, None)

    def make_way(self, key: str) -> None:
        """A new pod of a controller comes: it goes on with the instance of one that was told to go and is not ready."""
        controller = self._engine.controllers[key]
        if controller.vacant or len(controller.rows) < controller.desired:
            return
        found = next((uid for uid in self._going.get(key, {}) if self._may_be_replaced(self._pods[uid])), None)
        if found is not None:
            self._replace(self._pods[found])

    def predecessor(self, pod: FedPod) -> FedPod | None:
        """The pod that a new one came for, where that was told to go and is still there; None where it ends a vacancy
        or comes besides."""
        controller = self._engine.controllers[pod.key]
        if not 0 <= controller.desired < len(controller.rows):
            return None
        going = (self._pods[uid] for uid in self._going.get(pod.key, {}))
        return next((one for one in going if not one.successor), None)

    def look(self, pod: FedPod) -> None:
        """A pod goes; where it is not ready any more and a replacement is there already, it counts no more."""
        controller = self._engine.controllers[pod.key]
        if self._may_be_replaced(pod) and 0 <= controller.desired < len(controller.rows):
            self._replace(pod)

    def _may_be_replaced(self, pod: FedPod) -> bool:
        """Whether a pod that goes is not ready, and not our victim: who continues that waits for it."""
        one = self._engine.pods[pod.uid]
        return not one.ready and one.state == types.PLACED and not one.preempted and not pod.evicted

    def replace_lost(self, key: str) -> None:
        """A pod that we told to go on a node that is lost may stay for ever; whoever continues it does not wait. One
        whose binding is not seen as yet may well have left its place to somebody who is bound once it is gone."""
        for uid in tuple(self._succession.leaving.get(key, ())):
            pod = self._pods.get(uid)
            is_seen = pod is not None and pod.pod.spec.node_name
            if pod is not None and pod.key and is_seen and not self._blame.setting(pod).healthy:
                self._replace(pod)
