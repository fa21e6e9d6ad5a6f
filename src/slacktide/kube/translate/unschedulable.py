"""Why a pod cannot be scheduled by us, whatever the cluster looks like."""

from __future__ import annotations

from slacktide.errors import SlacktideError
from slacktide.kube.resources.objects import Pod


class Unschedulable(SlacktideError):  # noqa: N818  # what a pod is, not a mistake of ours
    """A pod asks for something malformed, or that slacktide does not do; ``reason`` is for its owner to read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def gated(pod: Pod) -> bool:
    """Whether scheduling gates keep the pod from being scheduled yet; it waits without an event."""
    return bool(pod.spec.scheduling_gates)
