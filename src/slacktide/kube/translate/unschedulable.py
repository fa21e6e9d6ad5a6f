"""Why a pod cannot be scheduled by us, whatever the cluster looks like."""

from __future__ import annotations

from slacktide.errors import SlacktideError
from slacktide.kube.resources.objects import Pod

LACKS_NODE, FAILED, WAITING_FOR_VOLUME = "Unschedulable", "SchedulerError", "WaitingForVolume"
"""Reasons of the condition PodScheduled. The first two are kube-scheduler's: there is no node for it; it could not be
bound to the one that it had. The third says that it has a node, but not its volumes yet: another node would not help
it, so autoscalers, who look for the first, make none."""


class Unschedulable(SlacktideError):  # noqa: N818  # what a pod is, not a mistake of ours
    """A pod asks for something malformed, or that slacktide does not do; ``reason`` is for its owner to read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def gated(pod: Pod) -> bool:
    """Whether scheduling gates keep the pod from being scheduled yet; it waits without an event."""
    return bool(pod.spec.scheduling_gates)


def said_to_wait_for_volume(pod: Pod) -> float:
    """Since when a pod that has a place waits for its volumes, as its condition says, whoever led then; 0 where it does
    not."""
    for one in pod.status.conditions:
        if one.type == "PodScheduled" and one.status == "False" and one.reason == WAITING_FOR_VOLUME:
            return one.last_transition_time or 0.0
    return 0.0
