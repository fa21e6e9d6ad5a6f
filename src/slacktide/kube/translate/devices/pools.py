"""Pools of devices, from the slices that drivers write: which devices a node can use.

Of a pool the newest generation counts, and only when all its slices are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from slacktide.kube.client.quantities import nanos
from slacktide.kube.indexes import take_out
from slacktide.kube.resources.objects import Device, DeviceTaintRule, NodeSelector, ResourceSlice
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


@dataclass(frozen=True, slots=True)
class _Read:
    """The newest generation of a pool: its slices in order, each with its devices, what these share, and what is wrong
    with it for whatever node.

    ``last``: it is tried after other pools, as in kube-scheduler, where a device of it is yet to be attached.
    """

    slices: tuple[tuple[ResourceSlice, tuple[Offered, ...]], ...]
    counters: PoolCounters
    problem: str
    last: bool


class Pools:
    """All slices, kept by events. What is read of a pool is kept until one of its slices changes, for all nodes: a pool
    of all nodes may have a hundred devices, and there may be thousands of nodes."""

    def __init__(self) -> None:
        self._slices: dict[str, ResourceSlice] = {}
        self._of_pool: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._on_node: dict[str, set[PoolId]] = {}
        self._shared: set[PoolId] = set()
        self._placed: dict[PoolId, frozenset[str]] = {}
        """The nodes among whose pools one is, where it is no pool of several."""
        self._read: dict[PoolId, _Read] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
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

    def on_rule_update(self, found: DeviceTaintRule) -> frozenset[str] | None:
        """A rule that taints devices, new or changed; as :meth:`see`."""
        before = self.on_rule_delete(found.metadata.name)
        self._rules[found.metadata.name] = found
        return _either(before, self._tainted_by(found))

    def on_rule_delete(self, name: str) -> frozenset[str] | None:
        """A rule is gone; as :meth:`see`."""
        found = self._rules.pop(name, None)
        return frozenset() if found is None else self._tainted_by(found)

    def _tainted_by(self, rule: DeviceTaintRule) -> frozenset[str] | None:
        nodes: frozenset[str] | None = frozenset()
        for pool in [one for one in self._of_pool if _concerns_pool(rule, one)]:
            self._read.pop(pool, None)
            nodes = _either(nodes, self.nodes_of(pool))
        return nodes

    def nodes_of(self, pool: PoolId) -> frozenset[str] | None:
        """The nodes that can use a pool's devices, None where these may be all."""
        slices = self._of_pool.get(pool, {}).values()
        with_devices = [one for one in slices if not one.spec.shared_counters]
        if any(not one.spec.node_name for one in with_devices):
            return None
        return frozenset(one.spec.node_name for one in with_devices)

    def _place(self, pool: PoolId) -> frozenset[str] | None:
        """Note where a pool is to be found."""
        self._read.pop(pool, None)
        for name in self._placed.pop(pool, ()):
            take_out(self._on_node, name, pool)
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
        pools = [(pool, self._pool(pool)) for pool in self._on_node.get(node[NODE_NAME], set()) | self._shared]
        for pool, read in sorted(pools, key=lambda one: (one[1].last, one[0])):
            here = [one for each, devices in read.slices for one in self._usable(each, devices, node)]
            problem = read.problem or _names_twice(pool, here)
            # Where none of the slices concerns the node, what is missing may.
            if problem and (here or any(self._concerns(one, node) for one, _ in read.slices)):
                unready = unready or problem
            elif not problem:
                found += here
                if read.counters.total:
                    counters[pool] = read.counters
        return NodeDevices(tuple(found), unready, counters)

    def _pool(self, pool: PoolId) -> _Read:
        if pool not in self._read:
            slices = self._of_pool[pool].values()
            newest = max(one.spec.pool.generation for one in slices)
            current = (one for one in slices if one.spec.pool.generation == newest)
            rules = [rule for _, rule in sorted(self._rules.items()) if _concerns_pool(rule, pool)]
            self._read[pool] = _read(pool, sorted(current, key=lambda one: one.metadata.name), rules)
        return self._read[pool]

    def _usable(self, found: ResourceSlice, devices: Sequence[Offered], node: Mapping[str, str]) -> Iterable[Offered]:
        """Those of a slice's devices that a node can use."""
        if not found.spec.per_device_node_selection:
            return devices if self._concerns(found, node) else ()
        own = ((one, one.device) for one in devices)
        return [one for one, its in own if self._matches(node, its.node_name, its.node_selector, its.all_nodes)]

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


def _concerns_pool(rule: DeviceTaintRule, pool: PoolId) -> bool:
    selector = rule.spec.device_selector
    return selector.driver in ("", pool[0]) and selector.pool in ("", pool[1])


def _read(pool: PoolId, slices: Sequence[ResourceSlice], rules: Sequence[DeviceTaintRule]) -> _Read:
    name, wanted = "/".join(pool), slices[0].spec.pool.resource_slice_count
    problem = ""
    if len(slices) != wanted:
        problem = f"resource pool {name} is incomplete: {len(slices)} of {wanted} ResourceSlices exist"
    try:
        devices = [tuple(_offered(one, rules)) for one in slices]
        counters = _counters(slices)
    except ValueError as error:
        problem = problem or f"resource pool {name} is invalid: {error}"
        devices, counters = [() for _ in slices], PoolCounters({}, ())
    last = any(one.device.binding_conditions for each in devices for one in each)
    return _Read(tuple(zip(slices, devices, strict=True)), counters, problem, last)


def _offered(found: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> Iterator[Offered]:
    spec = found.spec
    for written in spec.devices:
        more = tuple(one.spec.taint for one in rules if one.spec.device_selector.device in ("", written.name))
        device = replace(written, taints=(*written.taints, *more)) if more else written
        each = device if spec.per_device_node_selection else spec
        local = bool(each.node_name) or device.binds_to_node
        its, takes = DeviceId(spec.driver, spec.pool.name, device.name), _takes(device)
        kind = _encode((spec.driver, spec.pool.name if takes else "", replace(device, name="")))
        yield Offered(its, device, local, each.node_selector, kind, takes)


def _names_twice(pool: PoolId, here: Sequence[Offered]) -> str:
    """That a pool is invalid because devices that a node can use have one name, or empty."""
    is_unique = len({one.id.device for one in here}) == len(here)
    return "" if is_unique else f"resource pool {'/'.join(pool)} is invalid: two devices have the same name"


def _counters(slices: Iterable[ResourceSlice]) -> PoolCounters:
    """The counters of a pool. Raises :class:`ValueError` where a quantity or a name is wrong."""
    total: Counters = {}
    takes = []
    sets: set[str] = set()
    for one in slices:
        for shared in one.spec.shared_counters:
            if shared.name in sets:
                raise ValueError(f"counter set {shared.name} is defined twice")
            sets.add(shared.name)
            for name, counter in shared.counters.items():
                total[shared.name, name] = nanos(counter.value)
        takes += [
            (DeviceId(one.spec.driver, one.spec.pool.name, device.name), _takes(device))
            for device in one.spec.devices
            if device.consumes_counters
        ]
    for device, taken in takes:
        for key in taken:
            if key not in total:
                raise ValueError(f"device {device.device} takes of counter {'/'.join(key)}, which is not defined")
    return PoolCounters(total, tuple(takes))


def _takes(device: Device) -> Counters:
    taken: Counters = {}
    for one in device.consumes_counters:
        for name, counter in one.counters.items():
            taken[one.counter_set, name] = taken.get((one.counter_set, name), 0) + nanos(counter.value)
    return taken
