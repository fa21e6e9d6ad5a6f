"""What a claim asks for, read once: its requests with their classes, and what of it is refused by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from slacktide.kube.resources.devices import (
    DeviceAsk,
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceTaint,
    ResourceClaim,
)
from slacktide.kube.translate.unschedulable import Unschedulable

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
