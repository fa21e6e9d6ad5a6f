"""The claims of a pod and what they ask for, read once: requests with their classes, from which nodes devices that they
have can be used, and what of them is refused by name."""

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
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceTaint,
    ResourceClaim,
    ResourceClaimSpec,
)
from slacktide.kube.resources.objects import Container, Metadata, Pod
from slacktide.kube.translate.selectors import node_conditions
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import NO_CONSTRAINT, Condition, Term
from slacktide.model.placement import Preference

MOST_DEVICES = 32
"""A claim gets no more, as Kubernetes writes no more down."""
EXACT, ALL = "ExactCount", "All"
KEEPS_AWAY = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing that is asked for; ``name`` is that of its request, or REQUEST/ALTERNATIVE. ``expressions`` are the
    selectors of class and request; all must hold."""

    name: str
    request: str
    body: DeviceAsk
    service: DeviceClass
    expressions: tuple[str, ...]

    @property
    def all(self) -> bool:
        """Whether all devices are asked for that the selectors mean."""
        return self.body.allocation_mode == ALL

    def tolerates(self, taints: tuple[DeviceTaint, ...]) -> bool:
        """Whether none of a device's taints keeps it away."""
        return all(one.effect not in KEEPS_AWAY or self._tolerates(one) for one in taints)

    def _tolerates(self, taint: DeviceTaint) -> bool:
        for one in self.body.tolerations:
            alike = one.effect in ("", taint.effect) and one.key in ("", taint.key)
            if alike and (one.operator == "Exists" or (one.operator in ("", "Equal") and one.value == taint.value)):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Wish:
    """What a claim asks for: of each request one alternative, the first that can be had."""

    choices: tuple[tuple[Ask, ...], ...]
    constraints: tuple[DeviceConstraint, ...]

    @property
    def steps(self) -> int:
        """How much worse than the first of all alternatives the last of them are."""
        return sum(len(asks) - 1 for asks in self.choices)

    def steps_down(self, names: Collection[str]) -> int:
        """How much worse than the first alternatives those of these names are."""
        ranks = (next((at for at, one in enumerate(asks) if one.name in names), 0) for asks in self.choices)
        return sum(ranks)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes that it asks for, each once."""
        return tuple(dict.fromkeys(one.service.metadata.name for asks in self.choices for one in asks))


def wish_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> Wish:
    """What a claim asks for. Raises :class:`Unschedulable` where a class is missing, and for what is not done here."""
    devices = claim.spec.devices
    where = f"claim {claim.metadata.name}"
    choices = []
    for at, request in enumerate(devices.requests or ()):
        field = f"{where}: spec.devices.requests[{at}]"
        if request.exactly is not None:
            asks = [_ask(request.name, request.name, request.exactly, classes, f"{field}.exactly")]
        else:
            asks = [
                _ask(f"{request.name}/{one.name}", request.name, one, classes, f"{field}.firstAvailable[{n}]")
                for n, one in enumerate(request.first_available)
            ]
        if not asks:
            raise Unschedulable(f"{field}: found neither exactly nor firstAvailable, expected one of them")
        choices.append(tuple(asks))
    for at, constraint in enumerate(devices.constraints):
        if not constraint.match_attribute and not constraint.distinct_attribute:
            expected = "matchAttribute or distinctAttribute"
            raise Unschedulable(f"{where}: spec.devices.constraints[{at}]: found neither, expected {expected}")
    return Wish(tuple(choices), devices.constraints)


def _ask(name: str, request: str, body: DeviceAsk, classes: Mapping[str, DeviceClass], field: str) -> Ask:
    service = classes.get(body.device_class_name)
    if service is None:
        raise Unschedulable(f"{field}.deviceClassName: device class {body.device_class_name} does not exist")
    if body.capacity is not None:
        raise Unschedulable(f"{field}.capacity: slacktide does not allocate shares of devices; request whole devices")
    if body.allocation_mode not in ("", EXACT, ALL):
        raise Unschedulable(f"{field}.allocationMode: found {body.allocation_mode}, expected {EXACT} or {ALL}")
    _check(body.selectors, f"{field}.selectors")
    _check(service.spec.selectors, f"device class {body.device_class_name}: spec.selectors")
    both = (*service.spec.selectors, *body.selectors)
    return Ask(name, request, body, service, tuple(one.cel.expression for one in both if one.cel is not None))


def _check(selectors: tuple[DeviceSelector, ...], field: str) -> None:
    for at, one in enumerate(selectors):
        if one.cel is None:
            raise Unschedulable(f"{field}[{at}]: found a selector of a kind that is not known, expected cel")


FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim from being deleted while it has devices."""
MOST_CONSUMERS = 256

Claims = Mapping[tuple[str, str], ResourceClaim]
"""By namespace and name."""
Amounts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ClaimNeeds:
    """What a pod's claims ask for.

    term    nodes from which the devices can be used that its claims have
    demand  of each resource that stands for devices of its other claims: one
    beside  marks of pods that share a claim without devices: they have to be on one node
    liked   nodes on which its claims would get better alternatives
    waits   why the pod cannot be placed as yet; empty where it can
    """

    term: Term = NO_CONSTRAINT
    demand: Amounts = ()
    beside: tuple[str, ...] = ()
    liked: tuple[Preference, ...] = ()
    waits: str = ""


NO_CLAIMS = ClaimNeeds()


def names_of(pod: Pod) -> list[tuple[str, str]]:
    """Namespaces and names of a pod's claims, as far as they are known."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    names = [one.resource_claim_name or made.get(one.name) for one in pod.spec.resource_claims]
    return [(pod.metadata.namespace, name) for name in names if name]


def claims_of(pod: Pod, known: Claims) -> list[ResourceClaim]:
    """A pod's claims, each once. Raises :class:`Unschedulable` where one cannot be used."""
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    found: dict[str, ResourceClaim] = {}
    for at, one in enumerate(pod.spec.resource_claims):
        name = one.resource_claim_name
        if name is None:
            if one.resource_claim_template_name is None:
                expected = "resourceClaimName or resourceClaimTemplateName"
                raise Unschedulable(f"spec.resourceClaims[{at}]: found neither, expected {expected}")
            if one.name not in made:
                template = one.resource_claim_template_name
                raise Unschedulable(
                    f"spec.resourceClaims[{at}]: no ResourceClaim has been created from template {template} yet"
                )
            name = made[one.name]
            if name is None:
                continue  # none is needed
        claim = known.get((pod.metadata.namespace, name))
        if claim is None:
            raise Unschedulable(f"ResourceClaim {name} not found")
        if claim.metadata.deletion_timestamp is not None:
            raise Unschedulable(f"ResourceClaim {name} is being deleted")
        is_for_it = any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)
        if one.resource_claim_name is None and not is_for_it:
            raise Unschedulable(f"ResourceClaim {name} was not created for this pod (pod is not owner)")
        found[name] = claim
    return list(found.values())


def usable_from(claim: ResourceClaim, pod: Pod) -> tuple[Condition, ...]:
    """From which nodes the devices of an allocated claim can be used by a pod.

    Raises :class:`Unschedulable` where from none.
    """
    result, name = claim.status.allocation, claim.metadata.name
    if result is None:
        return ()
    if not is_reserved_for(claim, pod.metadata.uid) and len(claim.status.reserved_for) >= MOST_CONSUMERS:
        raise Unschedulable(
            f"ResourceClaim {name} is reserved for {MOST_CONSUMERS} pods already, and no more may use it"
        )
    if any(one.binding_conditions for one in result.devices.results):
        where = "status.allocation.devices.results.bindingConditions"
        raise Unschedulable(
            f"ResourceClaim {name}: {where}: not supported: slacktide does not wait for devices to be attached"
        )
    if result.node_selector is None:
        return ()
    return node_conditions(result.node_selector, f"ResourceClaim {name}: status.allocation.nodeSelector")


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    """Whether a pod may use a claim already."""
    return any(one.uid == uid for one in claim.status.reserved_for)


def may_give_back(claim: ResourceClaim, uid: str) -> bool:
    """Whether an allocated claim may lose its devices for the sake of a pod: nobody else uses it."""
    return claim.status.allocation is not None and all(one.uid == uid for one in claim.status.reserved_for)


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
