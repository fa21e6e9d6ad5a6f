"""Dynamic resources (resource.k8s.io/v1): devices that drivers offer, classes of them, and claims on them.

What only a driver reads (``opaque`` configuration) and what is refused by name where it is present stays undecoded.
"""

from __future__ import annotations

from typing import Any

import msgspec

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Metadata, NodeSelector, Part


class DeviceAttribute(Part, frozen=True):
    """A device's attribute: one of these, or of a sort that is not known here."""

    whole: int | None = msgspec.field(name="int", default=None)
    truth: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class Quantity(Part, frozen=True):
    """How much a device has of something, there is of a counter, or is taken of it, as a quantity."""

    value: str = ""


class DeviceTaint(Part, frozen=True):
    """Keeps claims without a toleration away from a device."""

    key: str
    value: str = ""
    effect: str = ""


class CounterSet(Part, frozen=True):
    """Counters that devices of a pool share, such as the memory of a GPU of which they are parts."""

    name: str
    counters: dict[str, Quantity] = msgspec.field(default_factory=dict)


class CounterConsumption(Part, frozen=True):
    """What a device takes of a set of counters."""

    counter_set: str
    counters: dict[str, Quantity] = msgspec.field(default_factory=dict)


class Device(Part, frozen=True):
    """A device. Node fields are set where its slice leaves them to each device."""

    name: str
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Part, frozen=True):
    """Which pool a slice is part of, in which generation, and of how many slices that consists."""

    name: str
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Part, frozen=True):
    """Devices of one pool, and from which nodes they can be used."""

    driver: str
    pool: ResourcePool
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Part, frozen=True):
    """What a driver offers."""

    metadata: Metadata
    spec: ResourceSliceSpec


class DeviceTaintSelector(Part, frozen=True):
    """Which devices a rule taints: of this driver, of pools of this name, of this name; what is empty means all."""

    driver: str = ""
    pool: str = ""
    device: str = ""


class DeviceTaintRuleSpec(Part, frozen=True):
    """A taint, and for which devices; without a selector for all."""

    taint: DeviceTaint
    device_selector: DeviceTaintSelector = DeviceTaintSelector()


class DeviceTaintRule(Part, frozen=True):
    """Taints devices beside their drivers, for an administrator."""

    metadata: Metadata
    spec: DeviceTaintRuleSpec


class CELExpression(Part, frozen=True):
    """An expression of CEL about ``device``."""

    expression: str


class DeviceSelector(Part, frozen=True):
    """Which devices are meant; without ``cel`` of a sort that is not known here."""

    cel: CELExpression | None = None


class DeviceToleration(Part, frozen=True):
    """Taints of devices that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceAsk(Part, frozen=True):
    """What a request, or one of its alternatives, asks for; only alternatives have a ``name``."""

    device_class_name: str = ""
    name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: Any = None


class DeviceRequest(Part, frozen=True):
    """A request: ``exactly`` one thing, or the first of several that can be had."""

    name: str
    exactly: DeviceAsk | None = None
    first_available: tuple[DeviceAsk, ...] = ()


class DeviceConstraint(Part, frozen=True):
    """What the devices of these requests (of all, where none is named) must have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceConfiguration(Part, frozen=True):
    """What a driver is told about the devices of these requests (of all, where none is named)."""

    requests: tuple[str, ...] = ()
    opaque: Any = None


class DeviceClaim(Part, frozen=True):
    """All that a claim asks for. The API server writes ``null`` where that is nothing."""

    requests: tuple[DeviceRequest, ...] | None = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Part, frozen=True):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Part, frozen=True):
    """A device that a claim got for a request."""

    driver: str
    pool: str
    device: str
    request: str = ""
    admin_access: bool = False
    binding_conditions: tuple[str, ...] = ()


class AllocatedDevices(Part, frozen=True):
    """All devices that a claim got."""

    results: tuple[AllocatedDevice, ...] = ()


class AllocationResult(Part, frozen=True):
    """What a claim got, and from which nodes it can be used (no selector: from all)."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(Part, frozen=True):
    """For whom a claim is reserved."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class ResourceClaimStatus(Part, frozen=True):
    """What a claim got, and who may use it."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ClaimMetadata(Metadata, frozen=True):
    """Metadata with the finalizers, to which one is added."""

    finalizers: tuple[str, ...] = ()


class ResourceClaim(Part, frozen=True):
    """A claim on devices."""

    metadata: ClaimMetadata
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class DeviceClassSpec(Part, frozen=True):
    """Which devices are of a class, and what drivers are told of them."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Part, frozen=True):
    """A class of devices."""

    metadata: Metadata
    spec: DeviceClassSpec = DeviceClassSpec()


DEVICE_CLASS = Kind(DeviceClass, "resource.k8s.io/v1", "deviceclasses", namespaced=False)
DEVICE_TAINT_RULE = Kind(DeviceTaintRule, "resource.k8s.io/v1beta2", "devicetaintrules", namespaced=False)
RESOURCE_SLICE = Kind(ResourceSlice, "resource.k8s.io/v1", "resourceslices", namespaced=False)
RESOURCE_CLAIM = Kind(ResourceClaim, "resource.k8s.io/v1", "resourceclaims", namespaced=True)
