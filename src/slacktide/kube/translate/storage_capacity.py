"""For which nodes a driver has storage enough, where drivers say so (CSIStorageCapacity)."""

from __future__ import annotations

from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.client.quantities import nanos
from slacktide.kube.resources.objects import CSIDriver, CSIStorageCapacity
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
