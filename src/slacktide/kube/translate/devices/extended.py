"""Extended resources that device classes back (``spec.extendedResourceName``, and the name that every class has): what
the containers of a pod ask for, as requests of a claim. As kube-scheduler 1.36 makes them, to the names.

A node that has the resource itself (of a device plugin) gives it itself; on all others the pod gets devices of the
class by a claim that the scheduler makes for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from slacktide.kube.client.quantities import quantity
from slacktide.kube.resources.devices import (
    ClaimMetadata,
    DeviceAsk,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from slacktide.kube.resources.objects import Container, Metadata, Pod
from slacktide.kube.translate.devices.claims import EXACT

ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Marks a claim that a scheduler made for a pod's extended resources."""
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""With the name of a class: the resource that it backs whatever it says."""
IN_MEMORY = "<extended-resources>"
"""Names the claim while it is not made. No object can have this name."""
AMPLE = 1_000_000
"""So much a node has of a resource that it gives by claims: free devices are counted apart."""


class RequestMapping(NamedTuple):
    """Which request of the claim serves a container's resource."""

    container: str
    resource: str
    request: str


class ContainerAsk(NamedTuple):
    """What a container asks for of resources that classes back: of each so many, and its place among all that the
    container asks for, in order of names. ``lasts``: not an init container that ends."""

    name: str
    lasts: bool
    amounts: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ExtendedAsk:
    """What a pod asks for of resources that classes back: init containers first, as their numbers are in names."""

    containers: tuple[ContainerAsk, ...]
    classes: tuple[tuple[str, str], ...]
    """Of each resource the name of its class, in order of resources."""

    @property
    def resources(self) -> frozenset[str]:
        """Names of the resources."""
        return frozenset(name for name, _ in self.classes)

    def requests(self, given: Collection[str] = ()) -> tuple[tuple[DeviceRequest, ...], tuple[RequestMapping, ...]]:
        """Requests of the claim on a node that has the resources ``given`` itself, and whom they serve."""
        requests: list[DeviceRequest] = []
        mappings: list[RequestMapping] = []
        for resource, service in self.classes:
            if resource not in given:
                found, served = self._of(resource, service)
                requests += found
                mappings += served
        return tuple(sorted(requests, key=lambda one: one.name)), tuple(mappings)

    def _of(self, resource: str, service: str) -> tuple[list[DeviceRequest], list[RequestMapping]]:
        """Of one resource. Init containers that end use what later containers get, and beyond that, one after the
        other, what the largest of them needs."""
        lasting: dict[int, DeviceRequest] = {}
        mappings: list[RequestMapping] = []
        largest: DeviceRequest | None = None
        for at, one in enumerate(self.containers):
            if one.lasts and resource in one.amounts:
                lasting[at] = _request(at, one, resource, service, one.amounts[resource][0])
                mappings.append(RequestMapping(one.name, resource, lasting[at].name))
        ending: list[RequestMapping] = []
        own: set[str] = set()
        for at, one in enumerate(self.containers):
            if one.lasts or resource not in one.amounts:
                continue
            missing = one.amounts[resource][0]
            for each in [lasting[later] for later in sorted(lasting) if later >= at]:
                if missing > 0:
                    missing -= _count(each)
                    ending.append(RequestMapping(one.name, resource, each.name))
            if missing > 0:
                request = _request(at, one, resource, service, missing)
                own.add(request.name)
                ending.append(RequestMapping(one.name, resource, request.name))
                if largest is None or _count(largest) < missing:
                    largest = request
        if largest is not None:
            name = largest.name
            ending = [one._replace(request=name) if one.request in own else one for one in ending]
        found = [*lasting.values()] if largest is None else [largest, *lasting.values()]
        return found, [*mappings, *ending]

    def claim(self, pod: Metadata, given: Collection[str] = ()) -> ResourceClaim | None:
        """The claim of a pod on such a node, not made yet; None where the node has all of it itself."""
        requests, _ = self.requests(given)
        if not requests:
            return None
        metadata = ClaimMetadata(name=IN_MEMORY, namespace=pod.namespace, uid=f"{IN_MEMORY}{pod.uid}")
        return ResourceClaim(metadata, ResourceClaimSpec(DeviceClaim(requests=requests)))


def backed_by(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Names of the classes by the resources that they back; of two that say the same name the younger one counts."""
    named = sorted(classes, key=lambda one: one.metadata.name, reverse=True)
    found: dict[str, str] = {}
    for one in sorted(named, key=lambda one: one.metadata.creation_timestamp or 0.0):
        if one.spec.extended_resource_name:
            found[one.spec.extended_resource_name] = one.metadata.name
    found.update({f"{IMPLICIT}{one.metadata.name}": one.metadata.name for one in named})
    return found


def asked_by(pod: Pod, backed: Mapping[str, str]) -> ExtendedAsk | None:
    """What a pod's containers ask for of resources that classes back; None where nothing."""
    spec = pod.spec
    first = [_asked(one, backed, one.restart_policy == "Always") for one in spec.init_containers]
    containers = (*first, *(_asked(one, backed, True) for one in spec.containers))
    names = sorted({name for one in containers for name in one.amounts})
    return ExtendedAsk(containers, tuple((name, backed[name]) for name in names)) if names else None


def made_for(claim: ResourceClaim) -> str:
    """The UID of the pod for whose extended resources a claim was made; empty: it is another claim."""
    metadata = claim.metadata
    if metadata.annotations.get(ANNOTATION) != "true":
        return ""
    return next((one.uid for one in metadata.owner_references if one.controller and one.kind == "Pod"), "")


def _asked(container: Container, backed: Mapping[str, str], lasts: bool) -> ContainerAsk:
    found: dict[str, tuple[int, int]] = {}
    requests = container.resources.requests if container.resources is not None else {}
    if not backed.keys().isdisjoint(requests):
        for at, name in enumerate(sorted(requests)):
            count = _whole(name, requests[name]) if name in backed else 0
            if count > 0:
                found[name] = count, at
    return ContainerAsk(container.name, lasts, found)


def _whole(name: str, text: str) -> int:
    """A number of devices; 0 where it cannot be read, which is then said of the container."""
    try:
        return quantity(name, text)
    except ValueError:
        return 0


def _request(at: int, container: ContainerAsk, resource: str, service: str, count: int) -> DeviceRequest:
    name = f"container-{at}-request-{container.amounts[resource][1]}"
    return DeviceRequest(name, DeviceAsk(device_class_name=service, allocation_mode=EXACT, count=count))


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def encoded(requests: Sequence[DeviceRequest]) -> list[dict[str, object]]:
    """Requests as the API server takes them."""
    return [
        {
            "name": one.name,
            "exactly": {
                "deviceClassName": one.exactly.device_class_name,
                "allocationMode": EXACT,
                "count": one.exactly.count,
            },
        }
        for one in requests
        if one.exactly is not None
    ]
