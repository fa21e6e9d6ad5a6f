"""Nodes, the network between them, and pods of others on them, as the engine's hosts and strangers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.kube.client.log_fields import about
from slacktide.kube.feed.fed_pod import FedPod, FeedListener
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.network import NetworkMirror
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.nodes import Demands, NodeView
from slacktide.kube.translate.owners import is_bound_to_its_node
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.latency import latencies

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
        takes_pods = view.ours and view.ready and not view.problem and view.name not in self.closed
        self._engine.host(view.name, amounts, view.attributes, takes_pods)

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


MOST_PLACES = 1000
"""Of more places no round-trip times are kept: their number grows with the square."""
SOONEST_SECONDS = 1.0
LATEST_SECONDS = 30.0
"""Rows that changed are looked at after the first; so are all after the second, as rows grow stale by themselves."""


class NetworkFeed:
    """Tells an engine what the mirror knows of the network. Rows older than ``stale_after`` seconds do not count."""

    def __init__(self, mirror: NetworkMirror, engine: Engine, stale_after: float) -> None:
        self._mirror, self._engine, self._stale_after = mirror, engine, stale_after
        self._version = -1
        self._soonest = self._latest = float("-inf")
        self._told: tuple[tuple[str, ...], NDArray[np.float64]] = ((), np.zeros((0, 0)))
        self._too_many = False

    def tell_all(self, now: float) -> None:
        """Tell a new engine all."""
        mirror = self._mirror
        if not mirror.asked:
            return
        for one in mirror.file_images.values():
            self._engine.image(one.name, one.seconds, one.size)
        self.image_sizes(mirror.sizes)
        for node, listed in mirror.listed.items():
            self._engine.images(node, listed)
        if mirror.network is not None:
            self._tell(mirror.network.places, np.array(mirror.network.rtt), mirror.network.site_key)
        self.refresh(now)

    def image_sizes(self, names: Iterable[str]) -> None:
        """Tell the sizes of images. Without bandwidth nobody knows how long fetching takes: then it takes no time."""
        for name in names:
            self._engine.image(name, 0.0, self._mirror.sizes[name] if self._mirror.has_bandwidth else 0.0)

    def refresh(self, now: float) -> None:
        """Tell round-trip times that are others than before, if that is due; before a pass."""
        mirror = self._mirror
        changed = mirror.version != self._version
        if not mirror.watches or now < (self._soonest if changed else self._latest):
            return
        sites = {name: place for name, place in mirror.places.items() if place != name} or None
        found = latencies(mirror.rows.values(), now, self._stale_after, names=tuple(mirror.places), place_of=sites)
        self._version = mirror.version
        # As long again as this takes, many times over, it is left alone; a large cluster has news every second.
        self._soonest = now + max(SOONEST_SECONDS, len(mirror.places) * SOONEST_SECONDS / 200)
        self._latest = now + LATEST_SECONDS
        if len(found.names) > MOST_PLACES:
            if not self._too_many:
                LOG.warning(
                    "found %d places, expected at most %d: round-trip times are not used; set kube.site_label to a "
                    "label that nodes of one place share", len(found.names), MOST_PLACES,
                )  # fmt: skip
            self._too_many = True
            self._tell((), np.zeros((0, 0)), "")
            return
        self._too_many = False
        self._tell(found.names, np.round(found.rtt, 6), mirror.site_label if sites else "")

    def _tell(self, places: tuple[str, ...], rtt: NDArray[np.float64], site_key: str) -> None:
        before, old = self._told
        if places != before:
            known = {name: number for number, name in enumerate(before)}
            kept = [(i, known[name]) for i, name in enumerate(places) if name in known]
            now = np.zeros_like(rtt)
            if kept:
                i, j = np.array(kept).T
                now[np.ix_(i, i)] = old[np.ix_(j, j)]
            old = now
        differ = np.argwhere(np.triu(rtt != old))
        if len(differ) or places != before:
            self._engine.network(places, site_key, [(i, j, float(rtt[i, j])) for i, j in differ.tolist()])
            self._told = (places, rtt)


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
