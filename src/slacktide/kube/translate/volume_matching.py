"""Which volume a claim that waits for its first pod may have: the rule of Kubernetes' scheduler and volume controller.

Of the volumes of the claim's class that suffice the smallest is taken; a volume that names the claim goes before all
others. A pod's claims choose one after the other, the smallest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slacktide.kube.client.quantities import nanos
from slacktide.kube.resources.objects import PersistentVolume, PersistentVolumeClaim
from slacktide.kube.translate.selectors import compiled
from slacktide.kube.translate.unschedulable import Unschedulable

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
