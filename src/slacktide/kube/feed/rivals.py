"""Schedulers that work on our nodes as well."""

from __future__ import annotations

import logging

from slacktide.kube.client.log_fields import about
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.priorities import is_bound_to_its_node

LOG = logging.getLogger(__name__)
RELEASE = "app.kubernetes.io/name"


class Rivals:
    """Says once of each scheduler that its pods are on our nodes: two that preempt there thrash.

    ``own`` is the namespace of this release, and what its pods have in the label ``app.kubernetes.io/name``: these are
    placed by another scheduler, and no rivals.
    """

    def __init__(self, own: tuple[str, str]) -> None:
        self._own = own
        self._known: set[str] = set()

    def see(self, pod: Pod) -> None:
        """A pod of another scheduler is on a node of ours."""
        name = pod.spec.scheduler_name
        if is_bound_to_its_node(pod) or not name or name in self._known:
            return
        if (pod.metadata.namespace, pod.metadata.labels.get(RELEASE, "")) == self._own:
            return
        self._known.add(name)
        LOG.warning(
            "pod %s/%s of scheduler %s runs on node %s, which this scheduler manages: its requests are counted, and it "
            "is never preempted; schedulers that share nodes preempt each other's pods: give each its own nodes",
            pod.metadata.namespace,
            pod.metadata.name,
            name,
            pod.spec.node_name,
            extra=about((pod.metadata.namespace, pod.metadata.name), pod.spec.node_name),
        )
