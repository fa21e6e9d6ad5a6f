"""What pods ask for, as specs of the engine; ten thousand pods of one template share one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from slacktide.engine.core.engine import Engine
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import grace
from slacktide.kube.resources.objects import Metadata, Pod
from slacktide.kube.translate.devices.claims import NO_CLAIMS
from slacktide.kube.translate.nodes import Demands, NodeView, lasting
from slacktide.kube.translate.owners import Target, controlling, is_of_the_system
from slacktide.kube.translate.pod_constraints import PodConstraints
from slacktide.kube.translate.service_classes import ClassIsGone, Promised
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.user_access import NO_WANTS, Wants
from slacktide.kube.translate.volumes import away_from, both
from slacktide.model.constraint import NO_CONSTRAINT, Term
from slacktide.model.hosts import DEVICES
from slacktide.model.placement import CLUSTER, HOST, Placement, Preference, Rule
from slacktide.state.spec import Spec

NEVER = "Never"
MOST_REMEMBERED = 4096

SpecKey = tuple[
    tuple[tuple[str, int], ...], object, int, Term, tuple[str, ...], tuple[Preference, ...], bool, Wants, bool, float,
    bool,
]  # fmt: skip


def nothing_kept(_target: Target | None, problem: ClassIsGone) -> Promised:
    """Where nobody knows what was promised before."""
    raise problem


class SpecParts(NamedTuple):
    """What a spec is made of; ``term`` is the one of ``placed``, of the pod's volumes and of its devices; all with one
    of the marks ``beside`` have to be on one node; ``liked`` are nodes with better devices."""

    demand: tuple[tuple[str, int], ...]
    promised: Promised
    placed: PodConstraints
    term: Term
    beside: tuple[str, ...]
    liked: tuple[Preference, ...]
    never: bool
    wants: Wants
    spared: bool
    grace: float
    bare: bool

    def spec(self) -> Spec:
        wants = self.wants
        return Spec(self.demand, self.promised.service, self.term, self._placement(), self.never,
                    wants.limit, wants.access, wants.application, self.spared, self.grace, self.bare)  # fmt: skip

    def _placement(self) -> Placement:
        placement = self.placed.placement
        if not self.beside and not self.liked:
            return placement
        rules = (*placement.rules, *(Rule("near", one) for one in self.beside))
        return Placement((*placement.marks, *self.beside), rules, (*placement.preferences, *self.liked))


class Apart(NamedTuple):
    """Pods of a spec keep away from all with ``mark``, which they carry: at most ``most`` can be on nodes at a time."""

    mark: str
    most: float


@dataclass(slots=True)
class Interned:
    """A spec by its number, and how many pods have it."""

    number: int
    key: SpecKey
    placed: PodConstraints  # kept, because the key has its identity
    spec: Spec
    users: int = 0
    possible: bool = False
    """Some node could take it, once."""
    looked: int = -1
    """At this version of the nodes none could."""
    apart: Apart | None = None
    """Once it was counted, for how many nodes that could take it ever had places, and when that was counted."""
    counted: int = -1
    among_themselves: Sequence[Rule] | None = None
    """Once they were looked for: with hundreds of terms about a pod that takes long, and each pod of it asks."""

    @property
    def asks(self) -> tuple[object, ...]:
        """What it takes for a node to be able to take one (:meth:`Specs._could_take`)."""
        near = frozenset(one.topology.key for one in self.spec.placement.rules if one.kind == "near")
        return self.spec.demand, self.placed.term, near


class Specs:
    """Specs in use, numbered for the engine."""

    def __init__(self, mirror: ClusterMirror, engine: Engine) -> None:
        self.demands = Demands()
        self._mirror, self._engine = mirror, engine
        self._known: dict[SpecKey, Interned] = {}
        self._by_number: dict[int, Interned] = {}
        self._count = 0
        self._impossible: set[int] = set()
        self._once: OrderedDict[object, None] = OrderedDict()
        """What some node could take once, also where the last pod that asked for it went with that node."""
        self._nodes = 0
        self.residents: Callable[[str], Mapping[str, int]] = lambda _node: {}
        """What pods take on a node that nobody can send away."""
        self.promised_before: Callable[[Target | None, ClassIsGone], Promised] = nothing_kept
        """What a controller was promised by a class that is no more; raises where it was promised nothing by it."""
        self.held_back: Callable[[Metadata, Promised], Promised] = lambda _pod, promised: promised
        """What a pod is promised in place of what its class says: its workload's starts may take longer."""

    def __len__(self) -> int:
        return len(self._by_number)

    def of(self, pod: FedPod) -> int:
        """The number of a pod's spec now, which is then to be taken, or said to be unused.

        Raises :class:`Unschedulable` with the reason where it has none.
        """
        parts = self._read(pod)
        key = (parts.demand, parts.promised.service, id(parts.placed), parts.term, parts.beside, parts.liked,
               parts.never, parts.wants, parts.spared, parts.grace, parts.bare)  # fmt: skip
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Interned(self._count, key, parts.placed, parts.spec())
            self._by_number[self._count] = found
            self._count += 1
            self._engine.spec(found.number, found.spec)
        return found.number

    def check(self, pod: FedPod) -> None:
        """Raises :class:`Unschedulable` with the reason where a pod has no spec now."""
        self._read(pod)

    def _read(self, fed: FedPod) -> SpecParts:
        mirror, pod = self._mirror, fed.pod
        if fed.record.malformed:
            raise Unschedulable(fed.record.malformed)
        fed.promised = self.promised(pod)
        demand = self.demands.of(pod)
        if isinstance(demand, str):
            raise Unschedulable(demand)
        demand = (*demand, *mirror.attachments.demand(pod))
        placed = mirror.constraints.constraints_of(pod)
        if pod.spec.volumes and not pod.spec.node_name:
            fed.needs = mirror.storage.needs(pod)
            if fed.needs.waits:
                raise Unschedulable(fed.needs.waits)
        claims = NO_CLAIMS if pod.spec.node_name else mirror.devices.needs(pod)
        if claims.waits:
            raise Unschedulable(claims.waits)
        demand += claims.demand
        term = both(both(both(placed.term, fed.needs.term), claims.term), away_from(fed.avoids))
        never = pod.spec.preemption_policy == NEVER
        wants = self._wants(pod)
        kube = self._engine.config.kube
        spared = is_of_the_system(pod, kube.daemon_sets == "services") and not kube.preempt_system_pods
        named = mirror.network.named(demand)
        beside, liked = claims.beside, claims.liked
        bare = controlling(pod.metadata) is None
        return SpecParts(named, fed.promised, placed, term, beside, liked, never, wants, spared, grace(pod), bare)

    def _wants(self, pod: Pod) -> Wants:
        """Raises :class:`Unschedulable` of a pod that waits. One that is on its node needs none to be somebody's
        victim."""
        try:
            return self._mirror.network.wants_of(pod, self._mirror.owners)
        except Unschedulable:
            if not pod.spec.node_name:
                raise
            return NO_WANTS

    def promised(self, pod: Pod) -> Promised:
        """What a pod is promised; where its class is gone, what its controller was promised by that class before.

        Raises :class:`Unschedulable` with the reason where that cannot be told.
        """
        owners, metadata = self._mirror.owners, pod.metadata
        priority = self._mirror.pod_groups.priority_of(pod)
        try:
            found = self._mirror.classes.of(pod, owners.is_batch(metadata), owners.template_of(metadata), priority)
        except ClassIsGone as problem:
            return self.promised_before(owners.target_of(metadata), problem)
        return self.held_back(metadata, found)

    def _ours(self) -> Iterator[NodeView]:
        """Nodes of ours that can be used, one after the other."""
        return (view for view in self._mirror.nodes.values() if view.ours and not view.problem)

    def is_impossible(self, number: int) -> bool:
        """Whether no node of ours could ever take a pod of a spec, were it empty, ready and open.

        What some node could take once is possible, also when that node is gone; where we have no node everything is.
        """
        found = self._by_number[number]
        if found.possible or found.looked == self._nodes:
            return not found.possible
        # Most often the first node could take one: each pod that comes alone asks.
        able = found.asks in self._once or any(self._could_take(view, found) for view in self._ours())
        found.possible = able or next(self._ours(), None) is None
        if able:
            self._once[found.asks] = None
            self._once.move_to_end(found.asks)
            if len(self._once) > MOST_REMEMBERED:
                self._once.popitem(last=False)
        if found.possible:
            self._impossible.discard(number)
        else:
            found.looked = self._nodes
            self._impossible.add(number)
        return not found.possible

    def apart(self, number: int) -> Apart | None:
        """How many pods of a spec can be on nodes at a time, as they keep away from each other; None: they do not.

        Of the rule that lets the fewest. By the nodes that could take one, were they empty, ready and open, as many as
        there ever were; O(nodes) where these changed.
        """
        found = self._by_number[number]
        if found.among_themselves is None:
            found.among_themselves = _among_themselves(found.spec.placement)
        rules = found.among_themselves
        if not rules or found.counted == self._nodes:
            return found.apart
        found.counted = self._nodes
        views = list(self._ours())
        able = [view for view in views if self._could_take(view, found)]
        counts = [Apart(rule.mark, _places(rule.topology.key, able) if views else float("inf")) for rule in rules]
        fewest = min(counts, key=lambda one: one.most)
        before = found.apart
        if before is None or before.mark != fewest.mark or before.most < fewest.most:
            found.apart = fewest
        return found.apart

    def is_lonely(self, number: int) -> bool:
        """Whether pods of a spec must be near one that nobody is, not they themselves either."""
        placement = self._by_number[number].spec.placement
        return any(
            one.kind == "near" and one.mark not in placement.marks and not self._mirror.constraints.anybody(one.mark)
            for one in placement.rules
        )

    def _could_take(self, view: NodeView, found: Interned) -> bool:
        amounts, taken = dict(self._mirror.network.named(view.amounts.items())), self.residents(view.name)
        if any(
            amounts.get(name, 0) - taken.get(name, 0) < amount
            for name, amount in found.spec.demand
            if amount and not name.startswith(DEVICES)  # of which nodes have as many as are free
        ):
            return False
        keys = {one.topology.key for one in found.spec.placement.rules if one.kind == "near"}
        if any(key not in view.attributes for key in keys - {HOST, CLUSTER}):
            return False  # such a rule holds on nodes with a place only
        return found.placed.term.holds(lasting(view.attributes))

    def possible_now(self) -> set[int]:
        """Nodes are others than before: specs that some node can take now and none could."""
        self._nodes += 1
        return {number for number in tuple(self._impossible) if not self.is_impossible(number)}

    def take(self, pod: FedPod, number: int) -> None:
        """A pod has this spec now, and no more the one it had."""
        self._by_number[number].users += 1
        if pod.spec >= 0:
            self.release(pod.spec)
        pod.spec = number

    def alike(self, one: int, other: int) -> bool:
        """Whether two specs ask for the same."""
        return one == other or self._by_number[one].spec == self._by_number[other].spec

    def unused(self, number: int) -> None:
        """A pod did not take it after all: one that nobody has is forgotten."""
        self._by_number[number].users += 1
        self.release(number)

    @contextmanager
    def kept(self, number: int) -> Iterator[None]:
        """It is not forgotten meanwhile, though nobody may have it yet."""
        found = self._by_number[number]
        found.users += 1
        yield
        found.users -= 1

    def release(self, number: int) -> None:
        """One pod fewer has it; one that nobody has is forgotten."""
        found = self._by_number[number]
        found.users -= 1
        if found.users == 0:
            del self._known[found.key], self._by_number[number]
            self._impossible.discard(number)
            self._engine.spec_gone(number)


def _among_themselves(placement: Placement) -> list[Rule]:
    """Rules by which those who have them keep away from each other."""
    carried = frozenset(placement.marks)
    return [
        one
        for one in placement.rules
        if one.kind == "away" and one.mark in carried and one.topology.within == NO_CONSTRAINT
    ]


def _places(key: str, views: Sequence[NodeView]) -> float:
    """How many domains nodes lie in; on a node in none the rule holds always."""
    if key == CLUSTER:
        return 1.0
    if key != HOST and any(key not in view.attributes for view in views):
        return float("inf")
    return float(len(views) if key == HOST else len({view.attributes[key] for view in views}))
