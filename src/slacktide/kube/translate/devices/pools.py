"""Pools of devices, from the slices that drivers write: which devices a node can use.

Of a pool the newest generation counts, and only when all its slices are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from slacktide.kube.client.metadata import NodeSelector
from slacktide.kube.client.quantities import nanos
from slacktide.kube.resources.devices import Device, ResourceSlice
from slacktide.kube.translate.selectors import NODE_NAME, node_conditions
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Term

_encode = msgspec.msgpack.Encoder().encode
PoolId = tuple[str, str]
"""Driver and name."""


class DeviceId(NamedTuple):
    """Which device it is."""

    driver: str
    pool: str
    device: str


Counters = dict[tuple[str, str], int]
"""Amounts by set and name of a counter, in nano-units."""


@dataclass(frozen=True, slots=True)
class PoolCounters:
    """What the devices of a pool share, and what each of them takes of it, on whatever node it can be used."""

    total: Counters
    takes: tuple[tuple[DeviceId, Counters], ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """A device that a node can use; ``selector`` says which others can too (none: all), unless it is ``local``.

    ``kind`` is equal for devices that nothing tells apart but their names. ``takes`` is of its pool's counters.
    ``meant`` remembers by which selectors it is meant.
    """

    id: DeviceId
    device: Device
    local: bool
    selector: NodeSelector | None
    kind: bytes = b""
    takes: Counters = field(default_factory=dict, compare=False)
    meant: dict[tuple[str, ...], bool] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices that a node can use, in the order in which they are tried; ``unready`` says of which pools it is not
    known as yet which devices they have, and why."""

    devices: tuple[Offered, ...] = ()
    unready: str = ""
    counters: Mapping[PoolId, PoolCounters] = field(default_factory=dict)


class Pools:
    """All slices, kept by events."""

    def __init__(self) -> None:
        self._slices: dict[str, ResourceSlice] = {}
        self._of_pool: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._on_node: dict[str, set[PoolId]] = {}
        self._shared: set[PoolId] = set()
        self._placed: dict[PoolId, frozenset[str]] = {}
        """The nodes among whose pools one is, where it is no pool of several."""
        self._terms: dict[NodeSelector, Term | None] = {}

    def see(self, found: ResourceSlice) -> frozenset[str] | None:
        """A slice, new or changed: the nodes whose devices may be others now, None where these may be all."""
        before, pool = self.drop(found.metadata.name), _pool_of(found)
        self._slices[found.metadata.name] = found
        self._of_pool.setdefault(pool, {})[found.metadata.name] = found
        return _either(before, self._place(pool))

    def drop(self, name: str) -> frozenset[str] | None:
        """A slice is gone; as :meth:`see`."""
        found = self._slices.pop(name, None)
        if found is None:
            return frozenset()
        pool = _pool_of(found)
        before = self.nodes_of(pool)
        del self._of_pool[pool][name]
        return _either(before, self._place(pool))

    def nodes_of(self, pool: PoolId) -> frozenset[str] | None:
        """The nodes that can use a pool's devices, None where these may be all."""
        slices = self._of_pool.get(pool, {}).values()
        with_devices = [one for one in slices if not one.spec.shared_counters]
        if any(not one.spec.node_name for one in with_devices):
            return None
        return frozenset(one.spec.node_name for one in with_devices)

    def _place(self, pool: PoolId) -> frozenset[str] | None:
        """Note where a pool is to be found."""
        for name in self._placed.pop(pool, ()):
            self._on_node[name].discard(pool)
            if not self._on_node[name]:
                del self._on_node[name]
        self._shared.discard(pool)
        nodes = self.nodes_of(pool)
        self._placed[pool] = nodes or frozenset()
        if nodes is None:
            self._shared.add(pool)
        for name in nodes or ():
            self._on_node.setdefault(name, set()).add(pool)
        if not self._of_pool.get(pool):
            self._of_pool.pop(pool, None)
            del self._placed[pool]
        return nodes

    def of(self, node: Mapping[str, str]) -> NodeDevices:
        """The devices that a node with these attributes can use. O(slices of its pools and of those of all nodes)."""
        found: list[Offered] = []
        counters: dict[PoolId, PoolCounters] = {}
        unready = ""
        for pool in sorted(self._on_node.get(node[NODE_NAME], set()) | self._shared):
            slices = self._of_pool[pool].values()
            newest = max(one.spec.pool.generation for one in slices)
            current = sorted(
                (one for one in slices if one.spec.pool.generation == newest), key=lambda one: one.metadata.name
            )
            try:
                shared = _counters(current)
                here = [one for each in current for one in self._offered(each, node)]
                problem = _problem(pool, current, here)
            except ValueError as error:
                here, problem = [], f"resource pool {'/'.join(pool)} is invalid: {error}"
            # Where none of the slices concerns the node, what is missing may.
            if problem and (here or any(self._concerns(one, node) for one in current)):
                unready = unready or problem
            elif not problem:
                found += here
                if shared.total:
                    counters[pool] = shared
        return NodeDevices(tuple(found), unready, counters)

    def _offered(self, found: ResourceSlice, node: Mapping[str, str]) -> Iterator[Offered]:
        spec, each = found.spec, found.spec.per_device_node_selection
        if not each and not self._matches(node, spec.node_name, spec.node_selector, spec.all_nodes):
            return
        for device in spec.devices:
            if each and not self._matches(node, device.node_name, device.node_selector, device.all_nodes):
                continue
            name, selector = (device.node_name, device.node_selector) if each else (spec.node_name, spec.node_selector)
            local = bool(name) or device.binds_to_node
            its, takes = DeviceId(spec.driver, spec.pool.name, device.name), _takes(device)
            kind = _encode((spec.driver, spec.pool.name if takes else "", replace(device, name="")))
            yield Offered(its, device, local, selector, kind, takes)

    def _concerns(self, found: ResourceSlice, node: Mapping[str, str]) -> bool:
        spec = found.spec
        return self._matches(node, spec.node_name, spec.node_selector, spec.all_nodes)

    def _matches(self, node: Mapping[str, str], name: str, selector: NodeSelector | None, all_nodes: bool) -> bool:
        if name:
            return node[NODE_NAME] == name
        if all_nodes or selector is None:
            return all_nodes
        if selector not in self._terms:
            try:
                self._terms[selector] = Term(node_conditions(selector, "ResourceSlice: spec.nodeSelector"))
            except Unschedulable:
                self._terms[selector] = None
        term = self._terms[selector]
        return term is not None and term.holds(node)


def _pool_of(found: ResourceSlice) -> PoolId:
    return found.spec.driver, found.spec.pool.name


def _either(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or other is None else one | other


def _problem(pool: PoolId, slices: Iterable[ResourceSlice], here: Iterable[Offered]) -> str:
    """Why a pool's devices cannot be given out as yet, or empty."""
    name, found = "/".join(pool), list(slices)
    wanted = found[0].spec.pool.resource_slice_count
    if len(found) != wanted:
        return f"resource pool {name} is being updated: {len(found)} of {wanted} slices are there"
    names = [one.id.device for one in here]
    return "" if len(set(names)) == len(names) else f"resource pool {name} is invalid: two devices have one name"


def _counters(slices: Iterable[ResourceSlice]) -> PoolCounters:
    """The counters of a pool. Raises :class:`ValueError` where a quantity or a name is wrong."""
    total: Counters = {}
    takes = []
    for one in slices:
        for shared in one.spec.shared_counters:
            for name, counter in shared.counters.items():
                if (shared.name, name) in total:
                    raise ValueError(f"counter {shared.name}/{name} is there twice")
                total[shared.name, name] = nanos(counter.value)
        takes += [
            (DeviceId(one.spec.driver, one.spec.pool.name, device.name), _takes(device))
            for device in one.spec.devices
            if device.consumes_counters
        ]
    for device, taken in takes:
        for key in taken:
            if key not in total:
                raise ValueError(f"device {device.device} takes of counter {'/'.join(key)}, which is not there")
    return PoolCounters(total, tuple(takes))


def _takes(device: Device) -> Counters:
    taken: Counters = {}
    for one in device.consumes_counters:
        for name, counter in one.counters.items():
            taken[one.counter_set, name] = taken.get((one.counter_set, name), 0) + nanos(counter.value)
    return taken
