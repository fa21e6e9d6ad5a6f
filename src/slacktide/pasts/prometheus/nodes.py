"""Nodes, as series tell of them: they come, change, go, and may come back under their name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from slacktide.kube.client.kinds import Kind
from slacktide.kube.resources import objects
from slacktide.pasts.prometheus.chunk import Chunk
from slacktide.pasts.prometheus.names import label_key
from slacktide.pasts.prometheus.objects import NodeState

CREATED, READY, CORDON, TAINT, HAS, LABELS = (
    "kube_node_created", "kube_node_status_condition", "kube_node_spec_unschedulable", "kube_node_spec_taint",
    "kube_node_status_allocatable", "kube_node_labels",
)  # fmt: skip
Told = Iterator[tuple[Kind[Any], Any, bool]]
Update = tuple[str, tuple[str, ...], float | None, dict[str, str]]
"""Of which series, which labels, its value, and labels of the node."""


class Nodes:
    """``states`` of those that are there, by name; ``seen``: how many there were."""

    def __init__(self, interval: float, known: frozenset[str]) -> None:
        self._interval, self._dated = interval, CREATED in known
        self.states: dict[str, NodeState] = {}
        self.seen = 0

    def is_ready(self, name: str) -> bool:
        """Whether a node is there and ready."""
        one = self.states.get(name)
        return one is not None and one.ready is not False

    def read(self, chunk: Chunk) -> Iterator[tuple[float, Callable[[float], Told]]]:
        """What happened to nodes in a chunk, and when."""
        births: dict[str, list[float]] = {}
        updates: dict[tuple[float, str], list[Update]] = {}
        for key, at, value in chunk.nodes.get(CREATED, ()):
            if value is not None and at > chunk.begin:
                births.setdefault(key[0], []).append(value)
            since = value if value is not None and at > chunk.begin else at
            updates.setdefault((since, key[0]), []).append((CREATED, (), value, {}))
        for metric in (HAS, TAINT, CORDON, READY):
            for key, at, value in chunk.nodes.get(metric, ()):
                mine = births.get(key[0], []) if metric != READY and value is not None else []
                since = self._as_created(mine, at)
                updates.setdefault((since, key[0]), []).append((metric, tuple(key[1:]), value, {}))
        for labels, at in chunk.node_labels:
            name = labels["node"]
            said = {label_key(one.removeprefix("label_")): value for one, value in labels.items() if one != "node"}
            updates.setdefault((self._as_created(births.get(name, []), at), name), []).append((LABELS, (), None, said))
        for (at, name), some in updates.items():
            yield at, self._changed(name, some)

    def _as_created(self, births: list[float], at: float) -> float:
        """What a node has when it is seen first it has had since it was created."""
        return next((one for one in births if abs(at - one) <= 2 * self._interval), at)

    def _changed(self, name: str, updates: list[Update]) -> Callable[[float], Told]:
        def deed(at: float) -> Told:
            for metric, key, value, labels in updates:
                yield from self._take(name, at, metric, key, value, labels)
            if name in self.states:
                yield objects.NODE, self.states[name].built(), False

        return deed

    def _take(
        self, name: str, at: float, metric: str, key: tuple[str, ...], value: float | None, labels: dict[str, str]
    ) -> Told:
        one = self.states.get(name)
        if metric == CREATED:
            if one is not None and one.created != value:
                del self.states[name]
                yield objects.NODE, one.built(), True
            if value is not None and (one is None or one.created != value):
                new = self._new(name, value)
                if one is not None:  # made anew between two scrapes: what else is new comes as a change
                    new.allocatable, new.labels, new.taints = one.allocatable, one.labels, one.taints
                    new.ready, new.ready_at = one.ready, value
            return
        if one is None and not self._dated and metric == HAS and value is not None:
            one = self._new(name, at)
        if one is None:
            return
        _set(one, at, metric, key, value, labels)
        if not one.allocatable and not self._dated:
            del self.states[name]
            yield objects.NODE, one.built(), True

    def _new(self, name: str, created: float) -> NodeState:
        self.seen += 1
        one = self.states[name] = NodeState(name, created)
        return one


def _set(
    one: NodeState, at: float, metric: str, key: tuple[str, ...], value: float | None, labels: dict[str, str]
) -> None:
    if metric == READY:
        one.ready, one.ready_at = value == 1.0, at
    elif metric == CORDON:
        one.unschedulable = value == 1.0
    elif metric == LABELS:
        one.labels = labels
    elif metric == TAINT:
        taint = key[0], key[1], key[2]
        one.taints.pop(taint, None)
        if value is not None:
            one.taints[taint] = None
    elif value is None:
        one.allocatable.pop(key[0], None)
    else:
        one.allocatable[key[0]] = value
