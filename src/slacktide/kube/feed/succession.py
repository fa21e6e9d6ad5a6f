"""Pods that come for others which are still being ended: who goes on with whose instance, and from when on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kube.feed.blame import BlameFeed
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.indexes import take_out


class Succession:
    """Who was preempted and is not gone, by controller, and who waits to continue them, the first come first."""

    def __init__(self) -> None:
        self.leaving: dict[str, dict[str, None]] = {}
        self.held: dict[str, dict[str, None]] = {}
        self._owed: dict[str, int] = {}
        """How many preempted pods of a controller have no replacement yet."""

    def told(self, key: str, uid: str) -> None:
        """A pod of a controller was told to go."""
        self.leaving.setdefault(key, {})[uid] = None
        self._owed[key] = self._owed.get(key, 0) + 1

    def stays(self, key: str) -> None:
        """A pod that was told to go stays after all: nobody will replace it."""
        self.replaces(key)

    def replaces(self, key: str) -> bool:
        """Whether a pod of the controller that comes now takes a preempted one's place; the next one may not."""
        owed = self._owed.pop(key, 0)
        if owed > 1:
            self._owed[key] = owed - 1
        return owed > 0

    def forget(self, key: str) -> None:
        """A controller is no more."""
        for known in (self.leaving, self.held, self._owed):
            known.pop(key, None)

    def must_wait(self, key: str, uid: str) -> bool:
        """Whether a new pod of the controller continues one that is not gone; it is then kept until that is."""
        waiting = self.held.get(key, {})
        if uid not in waiting and len(waiting) >= len(self.leaving.get(key, ())):
            return False
        self.held.setdefault(key, {})[uid] = None
        return True

    def ended(self, key: str, uid: str) -> str:
        """A pod of a controller is gone, or stays after all; the pod that needs not wait for it any more, if any."""
        take_out(self.held, key, uid)
        take_out(self.leaving, key, uid)
        released, waiting = "", self.held.get(key, {})
        if len(waiting) > len(self.leaving.get(key, ())):
            released = next(iter(waiting))
            take_out(self.held, key, released)
        return released


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
        take_out(self._going, key, uid)

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
