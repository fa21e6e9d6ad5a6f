"""Nodes, and pods of others on them, as the engine's hosts and strangers."""

from __future__ import annotations

import contextlib
import logging

from slacktide.engine.core.engine import Engine
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.listener import FeedListener
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.pod_resources import Demands
from slacktide.kube.translate.priorities import is_bound_to_its_node
from slacktide.kube.translate.unschedulable import Unschedulable

LOG = logging.getLogger(__name__)


class Hosts:
    """Tells an engine of nodes, and of pods that take room there without being ours."""

    def __init__(self, mirror: ClusterMirror, engine: Engine, listener: FeedListener, demands: Demands) -> None:
        self._mirror, self._engine, self._listener, self._demands = mirror, engine, listener, demands
        self._residents: dict[str, dict[str, dict[str, int]]] = {}
        """What pods take that come back to their node whatever happens, by node and UID."""
        self.closed: set[str] = set()
        """Nodes that take nobody, whatever else they say."""

    def tell(self, view: NodeView) -> None:
        """Tell what a node is like; one that is not ours takes nobody, but who is there counts."""
        amounts = dict(self._mirror.network.named(view.amounts.items()))
        self._engine.host(view.name, amounts, view.attributes, self._takes_pods(view))

    def _takes_pods(self, view: NodeView) -> bool:
        return view.ours and view.ready and not view.problem and view.name not in self.closed

    def ensure(self, node: str) -> None:
        """Make sure that the engine knows a node on which a pod of ours is, ours or not, or gone already."""
        if node not in self._engine.hosts:
            view = self._mirror.nodes.get(node)
            if view is not None:
                self.tell(view)
            else:
                self._engine.host(node, {}, {}, False)

    def let_go(self, node: str) -> None:
        """A node that is not there, though a pod says that it is on it, is forgotten with the last of its pods: else
        whoever makes up names of nodes would have all of them kept."""
        if node in self._engine.hosts and node not in self._mirror.nodes and node not in self._engine.going:
            self._engine.host_gone(node)

    def gone(self, node: str) -> None:
        """A node is gone."""
        if node in self._engine.hosts:
            self._engine.host_gone(node)

    def stranger(self, pod: FedPod) -> None:
        """A pod that is not scheduled by us, or has no ledger, takes room on a node that the engine knows."""
        node = pod.pod.spec.node_name
        if node not in self._engine.hosts:
            pod.stranger_on = ""
            return
        demand = self._demands.of(pod.pod)
        if isinstance(demand, str):
            LOG.warning(
                "the requests of pod %s/%s of another scheduler are not counted: %s",
                *pod.namespaced_name,
                demand,
                extra=about(pod.namespaced_name),
            )
            demand = ()
        demand = (*demand, *self._mirror.attachments.demand(pod.pod))
        if is_bound_to_its_node(pod.pod):
            self._residents.setdefault(node, {})[pod.uid] = dict(self._mirror.network.named(demand))
        found = (node, dict(self._mirror.network.named(demand)), self._marks(pod))
        if self._engine.others.get(pod.uid) != found:
            self._engine.other(pod.uid, *found)
            self._listener.work()
        if not pod.stranger_on:
            pod.stranger_on = node
            if not pod.ours and self._mirror.is_ours(node):
                self._listener.rival(pod)

    def stranger_gone(self, pod: FedPod) -> None:
        """A pod takes no room as a stranger any more."""
        if pod.stranger_on:
            self._residents.get(pod.stranger_on, {}).pop(pod.uid, None)
            self._engine.other_gone(pod.uid)
            pod.stranger_on = ""

    def residents(self, node: str) -> dict[str, int]:
        """Amounts that pods take on a node which nobody can send away: those of DaemonSets, and the node's own."""
        total: dict[str, int] = {}
        for taken in self._residents.get(node, {}).values():
            for name, amount in taken.items():
                total[name] = total.get(name, 0) + amount
        return total

    def _marks(self, pod: FedPod) -> tuple[str, ...]:
        if pod.record.malformed:
            return ()
        with contextlib.suppress(Unschedulable):
            return self._mirror.constraints.constraints_of(pod.pod).placement.marks
        return ()
