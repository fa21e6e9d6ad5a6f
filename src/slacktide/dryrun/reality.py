"""What the other scheduler does, counted while its pods are watched."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from slacktide.kube.feed.feed import Feed
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.causes import BY_SCHEDULER, DISRUPTED


@dataclass
class Deeds:
    """Pods bound; pods preempted, by controller; and of ours its passes, the longest in seconds."""

    bound: int = 0
    preempted: Counter[str] = field(default_factory=Counter)
    passes: int = 0
    longest_pass: float = 0.0


def preempted_by_scheduler(pod: Pod) -> bool:
    """Whether another scheduler's preemption ends a pod."""
    return any(
        one.type == DISRUPTED and one.status == "True" and one.reason == BY_SCHEDULER for one in pod.status.conditions
    )


class RealityCounter(Changes):
    """Counts whom the other scheduler binds and preempts; follows the mirror before ``feed`` does."""

    def __init__(self, feed: Feed, deeds: Deeds) -> None:
        self._feed, self._deeds = feed, deeds
        self._victims: set[str] = set()

    def pod(self, record: PodRecord) -> None:
        known = self._feed.pods.get(record.uid)
        if known is None or not known.key:
            return
        if record.pod.spec.node_name and not self._feed.engine.pods[record.uid].bound:
            self._deeds.bound += 1
        if record.uid not in self._victims and preempted_by_scheduler(record.pod):
            self._victims.add(record.uid)
            self._deeds.preempted[known.key] += 1

    def pod_gone(self, record: PodRecord, succeeded: bool) -> None:  # noqa: ARG002
        self._victims.discard(record.uid)
