"""Which volume a claim that waits for its first pod may have: the rule of Kubernetes' scheduler and volume controller.

Of the volumes of the claim's class that suffice the smallest is taken; a volume that names the claim goes before all
others. A pod's claims choose one after the other, the smallest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.client.quantities import nanos
from slacktide.kube.resources.objects import CSIDriver, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from slacktide.kube.translate.selectors import any_of, compiled, one_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Condition, Constraint, Term

_Offer = tuple[str, int, tuple[Condition, ...]]
"""Storage class, the largest volume in nano-bytes, and which nodes."""


class StorageCapacities:
    """Drivers, and what they say of their storage, kept by events."""

    def __init__(self) -> None:
        self._drivers: set[str] = set()
        self._offers: dict[tuple[str, str], _Offer] = {}
        self._of_class: dict[str, dict[tuple[str, str], _Offer]] = {}
        self._known: dict[tuple[str, int], Condition] = {}

    def on_driver_update(self, driver: CSIDriver) -> None:
        """A driver, new or changed."""
        self.on_driver_delete(driver.metadata.name)
        if driver.spec.storage_capacity:
            self._drivers.add(driver.metadata.name)

    def on_driver_delete(self, name: str) -> None:
        """A driver is gone."""
        self._drivers.discard(name)

    def see(self, found: CSIStorageCapacity) -> bool:
        """What a driver says, new or changed; whether that is news."""
        key = found.metadata.namespace, found.metadata.name
        offer = _offer(found)
        if offer == self._offers.get(key):
            return False
        self.drop(*key)
        if offer is not None:
            self._offers[key] = offer
            self._of_class.setdefault(offer[0], {})[key] = offer
        return True

    def drop(self, namespace: str, name: str) -> None:
        """A driver says this no more."""
        self._known.clear()
        offer = self._offers.pop((namespace, name), None)
        if offer is not None:
            del self._of_class[offer[0]][namespace, name]

    def enough(self, driver: str, class_name: str, size: int) -> Condition | None:
        """The nodes for which a volume of ``size`` nano-bytes can be made; ``None`` where the driver does not say, so
        that all count. A condition that never holds where there is none."""
        if driver not in self._drivers or not size:
            return None
        key = class_name, size
        found = self._known.get(key)
        if found is None:
            offers = self._of_class.get(class_name, {}).values()
            terms = [Term(conditions) for _, largest, conditions in offers if largest >= size]
            found = self._known[key] = any_of(terms)
        return found


def _offer(found: CSIStorageCapacity) -> _Offer | None:
    """What is offered; nothing to no node, and nothing where a quantity or selector cannot be read."""
    largest = found.maximum_volume_size or found.capacity
    if found.node_topology is None or not largest:
        return None
    try:
        return found.storage_class_name, nanos(largest), _nodes(found.node_topology)
    except (ValueError, Unschedulable):
        return None


def _nodes(selector: LabelSelector) -> tuple[Condition, ...]:
    """A selector of labels as conditions on nodes."""
    found: list[Condition] = []
    for key, operator, values in compiled(selector, "nodeTopology").requirements:
        if operator == "In":
            found.append(one_of(key, values))
        elif operator == "NotIn":
            found.append(Constraint(key, "not in", "", values))
        else:
            found.append(Constraint(key, "exists" if operator == "Exists" else "absent"))
    return tuple(found)


STORAGE = "storage"
FILESYSTEM = "Filesystem"


def is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume names this claim as the one it is for."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def wanted(claim: PersistentVolumeClaim) -> int:
    """How much a claim asks for, nano-bytes. Raises :class:`Unschedulable` where that is no quantity."""
    try:
        return nanos(claim.spec.resources.requests.get(STORAGE, "0"))
    except ValueError as error:
        raise Unschedulable(f"claim {claim.metadata.name}: request for {STORAGE}: {error}") from None


def by_size(claims: Iterable[PersistentVolumeClaim]) -> list[PersistentVolumeClaim]:
    """The claims in the order in which they choose."""
    return sorted(claims, key=wanted)


def candidates(claim: PersistentVolumeClaim, of_class: Iterable[PersistentVolume]) -> list[PersistentVolume]:
    """The volumes that a claim may have wherever its pod is, the first choice first; nodes are not looked at.

    A volume that names the claim is the only candidate.
    """
    size, selector = wanted(claim), claim.spec.selector
    labels = compiled(selector, f"claim {claim.metadata.name}: selector") if selector is not None else None
    found: list[tuple[int, str, PersistentVolume]] = []
    for volume in of_class:
        has = _capacity(volume)
        if has < size or not _suits(volume, claim):
            continue
        if volume.spec.claim_ref is not None:
            if is_for(volume, claim):
                return [volume]
        elif (
            volume.status.phase == "Available"
            and (labels is None or labels.matches(volume.metadata.labels))
            and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        ):
            found.append((has, volume.metadata.name, volume))
    return [volume for _, _, volume in sorted(found, key=lambda one: one[:2])]


def matched(
    claims: Sequence[PersistentVolumeClaim], offered: Mapping[str, Sequence[PersistentVolume]]
) -> dict[str, PersistentVolume]:
    """The volume of each claim, by its name, on a node from which those ``offered`` to it can be used; who gets none
    is not among them."""
    chosen: dict[str, PersistentVolume] = {}
    taken: set[str] = set()
    for claim in claims:
        for volume in offered[claim.metadata.name]:
            if volume.metadata.name not in taken:
                chosen[claim.metadata.name] = volume
                taken.add(volume.metadata.name)
                break
    return chosen


def _capacity(volume: PersistentVolume) -> int:
    try:
        return nanos(volume.spec.capacity.get(STORAGE, "0"))
    except ValueError:
        return -1  # nobody can say what it holds


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.metadata.deletion_timestamp is None
        and (volume.spec.volume_mode or FILESYSTEM) == (claim.spec.volume_mode or FILESYSTEM)
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
    )
