"""All that pods depend on: nodes, owners, classes, namespaces, budgets, volumes; and what the engine is told of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slacktide.config import Config
from slacktide.errors import StateError
from slacktide.kube.budgets import SEVERAL, Budgets
from slacktide.kube.classes import Classes, Promised
from slacktide.kube.edge import Edge
from slacktide.kube.hosts import NodeView, Ownership, view_of
from slacktide.kube.objects import Availability, Node, Pod
from slacktide.kube.owners import Owners, Target, controlling
from slacktide.kube.placements import Book
from slacktide.kube.storage import Storage
from slacktide.live.engine import Engine
from slacktide.model import APPROACHES

if TYPE_CHECKING:
    from slacktide.kube.entries import Entry
    from slacktide.kube.intake import Intake

LOG = logging.getLogger(__name__)

HARMLESS_OWNERS = ("DaemonSet", "Node")
"""Owners of pods that every node has; their scheduler is no rival."""


class World:
    """What is known besides pods. ``intake`` is told when something changes that pods depend on."""

    intake: Intake

    def __init__(self, config: Config) -> None:
        kube = config.kube
        self.config = config
        self.ownership = Ownership(kube.node_label, kube.node_taint, kube.all_nodes)
        self.nodes: dict[str, NodeView] = {}
        self.owners = Owners()
        self.classes = Classes(kube.priority_classes or "")
        self.budgets = Budgets(kube.disruption_budgets == "best-effort")
        self.storage = Storage()
        self.book = Book(kube.hard_pod_affinity_weight)
        self.edge = Edge(config)
        self.targets: dict[str, Target] = {}
        """Controllers that the engine knows, by key."""
        self.deleted: set[str] = set()
        """Keys of controllers that are no more but may have pods yet."""
        self.memories: dict[str, Availability] = {}
        """Ledgers of a former leader that nobody went on from yet, by the UID of their controllers."""
        self.rivals: dict[str, int] = {}
        """Schedulers whose pods were seen on our nodes, and how many."""
        self.restores = False
        """All pods are told at once to a new engine, which goes on from each ledger with the pods that it is about."""

    # -- nodes -----------------------------------------------------------------------------------------------------

    def see_node(self, node: Node) -> bool:
        """A node, new or changed; whether it differs for the engine."""
        view = view_of(node, self.ownership)
        self.edge.see_node(node, self.intake.engine)
        before = self.nodes.get(view.name)
        if before == view:
            return False
        if view.problem:
            LOG.warning("%s", view.problem)
        self.nodes[view.name] = view
        if (() if before is None else before.soft_taints) != view.soft_taints and self.book.see_soft_taints(
            taint for one in self.nodes.values() for taint in one.soft_taints
        ):
            self.intake.follow_book()
        engine = self.intake.engine
        if engine is not None:
            self.tell_node(engine, view)
            if before is None or before.ours != view.ours:
                self._strangers_on(view.name)
        return True

    def tell_node(self, engine: Engine, view: NodeView) -> None:
        """Tell the engine what a node is like; one that is not ours takes nobody, but who is there counts."""
        amounts = dict(self.edge.named(view.amounts.items()))
        engine.host(view.name, amounts, view.attributes, view.ours and view.ready and not view.problem)

    def is_ours(self, node: str) -> bool:
        """Whether a node was given to us."""
        view = self.nodes.get(node)
        return view is not None and view.ours

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        self.nodes.pop(name, None)
        self.edge.drop_node(name)
        engine = self.intake.engine
        if engine is not None and name in engine.hosts:
            engine.host_gone(name)

    def host_for(self, engine: Engine, node: str) -> None:
        """Make sure that the engine knows a node on which a pod of ours is, ours or not, or gone already."""
        if node not in engine.hosts:
            view = self.nodes.get(node)
            if view is not None:
                self.tell_node(engine, view)
            else:
                engine.host(node, {}, {}, False)

    def _strangers_on(self, node: str) -> None:
        here = [uid for uid, entry in self.intake.pods.items() if not entry.ours and entry.pod.spec.node_name == node]
        self.intake.reconsider(here)

    def warn_of(self, pod: Pod) -> None:
        """Say once of each scheduler that its pods are on our nodes: two that preempt there thrash."""
        owner = controlling(pod.metadata)
        if (owner is not None and owner.kind in HARMLESS_OWNERS) or not pod.spec.scheduler_name:
            return
        seen = self.rivals.get(pod.spec.scheduler_name, 0)
        self.rivals[pod.spec.scheduler_name] = seen + 1
        if not seen:
            LOG.warning(
                "pod %s/%s of scheduler %s is on node %s, which is ours: its room counts as used and it is never "
                "preempted; two schedulers that preempt on the same nodes fight each other",
                pod.metadata.namespace,
                pod.metadata.name,
                pod.spec.scheduler_name,
                pod.spec.node_name,
            )

    # -- controllers -----------------------------------------------------------------------------------------------

    def ensure(self, engine: Engine, target: Target, promised: Promised, batch: bool) -> None:
        """Make sure that the engine knows a controller and its class, which is that of its youngest pod."""
        key = target.key
        known = engine.controllers.get(key)
        memory = self.memories.get(target.uid) if known is None else None
        if known is None or known.service != promised.service:
            engine.controller(key, promised.service, _approach(memory, promised.approach), batch)
        if known is None:
            self.targets[key] = target
            self.intake.watcher.began(target)
            watched = self.owners.watched.get(target.uid)
            if target.kind == "Pod":
                engine.desired(key, 1, self.intake.clock())
            elif watched is not None and watched.desired >= 0:
                engine.desired(key, watched.desired, self.intake.clock())
        if memory is not None and not self.restores:
            self.go_on(engine, target, [])

    def go_on(self, engine: Engine, target: Target, pods: list[dict[str, Any]]) -> None:
        """Go on from a controller's ledger, where there is one that can be read, and from what its pods say."""
        memory = self.memories.pop(target.uid, None)
        books = dict(memory.status.accumulators) if memory is not None and memory.status.accumulators else None
        now = self.intake.clock()
        try:
            engine.restore(target.key, books, pods, now)
        except StateError as problem:
            LOG.warning("ledger %s/%s cannot be read and begins anew: %s", target.namespace, target.ledger, problem)
            engine.restore(target.key, None, pods, now)
        self.intake.watcher.changed(target.key)

    def wish(self, target: Target, desired: int, finished: bool) -> None:
        """How many instances a controller wants; ``finished``: it makes no more."""
        engine = self.intake.engine
        if engine is None or target.key not in engine.controllers:
            return
        if engine.controllers[target.key].desired != desired:
            engine.desired(target.key, desired, self.intake.clock())
            self.intake.watcher.changed(target.key)
        if finished and engine.controllers[target.key].vacant:
            engine.retire(target.key, self.intake.clock())
            self.intake.watcher.changed(target.key)

    def left(self, engine: Engine, target: Target) -> None:
        """A pod of a controller is over; so is the controller, where it was deleted and has no more of them.

        A bare pod that ran to its end keeps its ledger, of an instance that is no more, as long as somebody keeps it.
        """
        key = target.key
        controller = engine.controllers.get(key)
        if controller is None or len(controller.vacant) != len(controller.rows):
            return
        if target.kind == "Pod" and key not in self.deleted:
            engine.desired(key, 0, self.intake.clock())
        elif key in self.deleted:
            self.deleted.discard(key)
            self.targets.pop(key, None)
            engine.controller_gone(key, self.intake.clock())
            self.intake.succession.forget(key)
            self.intake.watcher.finished(key)

    def drop_target(self, uid: str) -> None:
        """A controller object is gone; its ledger goes with its last pod."""
        watched = self.owners.watched.pop(uid, None)
        engine = self.intake.engine
        if watched is None or engine is None:
            return
        key = watched.target.key
        if key in engine.controllers:
            self.deleted.add(key)
            engine.desired(key, 0, self.intake.clock())
            self.left(engine, watched.target)

    # -- budgets ---------------------------------------------------------------------------------------------------

    def tell_budgets(self, engine: Engine) -> None:
        """Tell a new engine all budgets."""
        engine.budget(SEVERAL, self.budgets.left(None))
        for (namespace, name), found in self.budgets.found.items():
            engine.budget(f"{namespace}/{name}", self.budgets.left(found))

    def follow_budgets(self, namespace: str) -> None:
        """Budgets of a namespace are about other pods than before."""
        engine = self.intake.engine
        if engine is None:
            return
        for entry in self.intake.pods.values():
            if entry.key and entry.pod.metadata.namespace == namespace:
                self._follow_budget(engine, entry)

    def _follow_budget(self, engine: Engine, entry: Entry) -> None:
        budget = self.budgets.of(entry.pod)
        if budget != entry.budget:
            entry.budget = budget
            engine.protect(entry.uid, budget)

    # -- classes ---------------------------------------------------------------------------------------------------

    def follow_classes(self, names: Sequence[str] = (), namespace: str = "") -> None:
        """Classes changed: pods of these (all, where none is named, and all that wait for one) are looked at again.

        With ``namespace`` only those in there: it has another default class.
        """
        concerned = [
            uid
            for uid, entry in self.intake.pods.items()
            if entry.ours
            and (not namespace or entry.pod.metadata.namespace == namespace)
            and (not names or entry.promised is None or entry.problem or entry.promised.class_name in names)
        ]
        engine = self.intake.engine
        if engine is not None:
            self._follow_promises(engine, concerned)
        self.intake.reconsider(concerned)

    def _follow_promises(self, engine: Engine, uids: Sequence[str]) -> None:
        for uid in uids:
            entry = self.intake.pods[uid]
            if entry.key:
                self.intake.respec(entry)
                if entry.target is not None and entry.promised is not None:
                    self.ensure(engine, entry.target, entry.promised, engine.controllers[entry.key].batch)

    def follow_pod(self, engine: Engine, entry: Entry) -> None:
        """A pod that runs was relabelled, resized or told to go."""
        self._follow_promises(engine, [entry.uid])
        self._follow_budget(engine, entry)


def _approach(memory: Availability | None, promised: int) -> int:
    """A controller is measured as it was at first, whatever its pods and its class say by now."""
    said = None if memory is None else memory.status.accumulators.get("approach")
    return APPROACHES.index(said) if isinstance(said, str) and said in APPROACHES else promised
