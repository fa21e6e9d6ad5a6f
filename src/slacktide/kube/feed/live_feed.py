"""The feed of the engine that decides where pods run: a pod is where the API server says."""

from __future__ import annotations

import logging

from slacktide.engine.core import types
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.feed import Feed
from slacktide.kube.translate.unschedulable import Unschedulable

LOG = logging.getLogger(__name__)


class LiveFeed(Feed):
    """Tells an engine where pods are in fact, whoever bound them."""

    def bound(self, pod: FedPod) -> None:
        self._bound(pod)
        self.hosts.let_go(pod.pod.spec.node_name)

    def _bound(self, pod: FedPod) -> None:
        engine, node = self.engine, pod.pod.spec.node_name
        if pod.replaced:
            self.hosts.stranger(pod)
            return
        if not pod.key and not self._find(pod):
            return
        one = engine.pods[pod.uid]
        if one.state == types.PLACED and one.host != node:
            if one.bound:
                said = about(pod.namespaced_name, node)
                LOG.error("pod %s/%s moved from node %s to %s", *pod.namespaced_name, one.host, node, extra=said)
                return
            engine.refused(pod.uid, self.clock())  # somebody else was faster
            self.listener.taken(pod.uid)
        elif one.state == types.WAITING:
            self.listener.taken(pod.uid)
        was_bound = one.bound
        if one.state in (types.ASLEEP, types.WAITING):
            self.hosts.ensure(node)
            engine.bound_elsewhere(pod.uid, node, self.clock())
        elif not one.bound:
            engine.bound(pod.uid, self.clock())
        if not was_bound:
            self.claim_again(pod)
            self.blame.bound(pod)
            self.controllers.starts.bound(pod)
        pod.queue, pod.problem = fed_pod.NOWHERE, ""
        self.listener.confirmed(pod.uid)
        self.reconsider(self.crowds.placed(pod.uid, pod.key, pod.spec))
        self.follow(pod)
        goes = pod.pod.metadata.deletion_timestamp is not None
        if goes:
            self.blame.goes(pod)
            self.replacements.goes(pod)
        self.follow_readiness(pod)
        if goes and not pod.doomed:
            pod.doomed = True
            engine.doomed(pod.uid)
        if goes:
            self.replacements.look(pod)

    def _find(self, pod: FedPod) -> bool:
        """A pod that runs already comes to the engine; one whose promise cannot be read takes room like a stranger."""
        engine = self.engine
        self.hosts.ensure(pod.pod.spec.node_name)
        try:
            number = self.number_of(pod)
        except Unschedulable as problem:
            if problem.reason != pod.problem:
                said, name = about(pod.namespaced_name), pod.namespaced_name
                LOG.warning("pod %s/%s is not counted in any Availability: %s", *name, problem.reason, extra=said)
            pod.problem = problem.reason
            self.hosts.stranger(pod)
            return False
        key = self.enter(pod)
        if not key:
            self.specs.unused(number)
            self.hosts.stranger(pod)  # until its owner is known it takes room like a stranger
            return False
        self.hosts.stranger_gone(pod)
        self.hosts.ensure(pod.pod.spec.node_name)  # a node that is gone is forgotten with its last stranger
        self.specs.take(pod, number)
        pod.key = key
        metadata = pod.pod.metadata
        since = min(self.clock(), metadata.creation_timestamp or self.clock())
        self.replacements.make_way(key)
        engine.found(pod.uid, metadata.name, key, number, pod.pod.spec.node_name, since, pod.budget)
        self.blame.arrived(pod, self.replacements.predecessor(pod))
        self.blame.bound(pod)
        self.listener.changed(key)
        return True
