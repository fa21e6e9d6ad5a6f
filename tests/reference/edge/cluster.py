"""What a method sees: pods, nodes, the distances between them, and the settings of section ``delay``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

from reference.edge.equations import granted, rtt_deviation

Draw = Callable[[int], int]
T = TypeVar("T")

SAME = 1e-9
"""Scores closer than this are equal: they differ by rounding only."""


@dataclass(frozen=True)
class Delay:
    """The settings of section ``delay``; times in seconds."""

    alpha: float = 0.5
    phi: float = 0.3
    tolerance: float = 0.0
    context_switch: float = 0.0
    competition: float = 0.0
    grants: bool = False
    processing: float = 1.0
    transfer: float = 1.0
    memory_per_cpu: float = 1.0
    keep_images: bool = False


@dataclass(frozen=True)
class Pod:
    """Demands and limits by resource; ``logins`` are places of users with shares that sum to 1."""

    name: str
    demand: dict[str, float]
    limit: dict[str, float] = field(default_factory=dict)
    data: float = 0.0
    logins: tuple[tuple[str, float], ...] = ()
    image: str = ""
    image_seconds: float = 0.0
    preferred: str = ""
    deadline: float = inf
    application: str = ""
    replicas: int = 1

    def most(self, resource: str) -> float:
        """The limit, or the demand where there is none."""
        return self.limit.get(resource, self.demand.get(resource, 0.0))


@dataclass
class Node:
    name: str
    capacity: dict[str, float]
    place: str = ""  # of several nodes that are one place of the distances; otherwise the node's own name
    free: dict[str, float] = field(default_factory=dict)
    pods: list[Pod] = field(default_factory=list)
    images: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.free = self.free or dict(self.capacity)
        self.place = self.place or self.name

    def fits(self, pod: Pod) -> bool:
        """All demands are met (algorithm 1, lines 6 to 8)."""
        return all(self.free.get(resource, 0.0) >= amount - SAME for resource, amount in pod.demand.items())

    def used(self, resource: str) -> float:
        """Fraction of a resource that is reserved; 0 of one the node does not have."""
        capacity = self.capacity.get(resource, 0.0)
        return 1 - self.free[resource] / capacity if capacity else 0.0


@dataclass
class Cluster:
    """Nodes and the round-trip times between places, seconds; ``(a, b)`` and ``(b, a)`` are one entry."""

    nodes: list[Node]
    rtt: dict[tuple[str, str], float]
    delay: Delay = field(default_factory=Delay)

    def distance(self, a: str, b: str) -> float:
        """Round-trip time between two places; of one place with itself 0 where the table says nothing."""
        if a == b:
            return self.rtt.get((a, a), 0.0)
        return self.rtt[(a, b)] if (a, b) in self.rtt else self.rtt[(b, a)]

    def from_login(self, node: Node, login: str) -> float | None:
        """Round-trip time between a node and where a user logged in; None: on this very node."""
        if login == node.name:
            return None
        places = {other.name: other.place for other in self.nodes}
        return self.distance(node.place, places.get(login, login))

    def deviation(self, node: Node) -> float:
        """Equations 12 and 13: standard deviation of the round-trip times to all other nodes; alone: 0."""
        others = [self.distance(node.place, other.place) for other in self.nodes if other is not node]
        return rtt_deviation(others) if others else 0.0

    def image_time(self, pod: Pod, node: Node) -> float:
        return 0.0 if not pod.image or pod.image in node.images else pod.image_seconds

    def place(self, pod: Pod, node: Node) -> None:
        """Reserve demands, or with ``grants`` what equations 14 to 16 grant."""
        for resource, demand in pod.demand.items():
            if self.delay.grants and resource in ("cpu", "memory"):
                node.free[resource] -= granted(demand, pod.most(resource), node.free[resource], self.delay.phi)
            else:
                node.free[resource] -= demand
        node.pods.append(pod)
        if self.delay.keep_images and pod.image:
            node.images.add(pod.image)


def best(candidates: Iterable[T], value: Callable[[T], float], draw: Draw) -> T | None:
    """The candidate of largest value; one of several equal ones is drawn."""
    valued = [(value(candidate), candidate) for candidate in candidates]
    if not valued:
        return None
    top = max(score for score, _ in valued)
    equal = [candidate for score, candidate in valued if score >= top - SAME]
    return equal[0] if len(equal) == 1 else equal[draw(len(equal))]
