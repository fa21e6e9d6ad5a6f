"""Claims, volumes and classes: from which nodes a pod's volumes can be used, and what must happen first.

A claim is bound (then its volume says from which nodes it can be used), or waits for its first pod: then
a provisioner makes a volume for the node that the scheduler writes onto the claim. Anything else makes the
pod wait, with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slacktide.kube.resources.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from slacktide.kube.translate.selectors import NODE_NAME, any_of, node_conditions, one_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import NO_CONSTRAINT, AnyOf, Condition, Constraint, Term

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation by which a scheduler tells a provisioner for which node a claim's volume shall be made."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim that is bound for good."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_CLASS = "volume.beta.kubernetes.io/storage-class"
_WAITS = "WaitForFirstConsumer"
_ONE_POD = "ReadWriteOncePod"
_ZONES = {
    "topology.kubernetes.io/zone": "",
    "topology.kubernetes.io/region": "",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod's claims ask for.

    term       nodes from which all volumes can be used, or on which they can be made
    exclusive  names of claims that one pod at a time may use (for ``ConstraintIndex.learn``)
    provision  names of claims to annotate with ``SELECTED_NODE``; the pod is bound when they are
    waits      why the pod cannot be placed as yet; empty where it can
    """

    term: Term = NO_CONSTRAINT
    exclusive: tuple[str, ...] = ()
    provision: tuple[str, ...] = ()
    waits: str = ""


NO_NEEDS = Needs()


def both(first: Term, second: Term) -> Term:
    """The term that holds where both do."""
    if not second.constraints:
        return first
    return Term(tuple(dict.fromkeys((*first.constraints, *second.constraints)))) if first.constraints else second


def away_from(nodes: frozenset[str]) -> Term:
    """The term that holds on all other nodes."""
    return Term((Constraint(NODE_NAME, "not in", values=tuple(sorted(nodes))),)) if nodes else NO_CONSTRAINT


@dataclass(slots=True)
class _Gathered:
    conditions: list[Condition] = field(default_factory=list)
    provision: list[str] = field(default_factory=list)


class Storage:
    """The claims, volumes and storage classes of a cluster, kept by events."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._of_class: dict[str, dict[str, PersistentVolume]] = {}
        self._conditions: dict[str, tuple[Condition, ...]] = {}
        self._classes: dict[str, StorageClass] = {}
        self.unknown = ""
        """Why nothing can be said of any claim now, or empty."""

    def see_claim(self, claim: PersistentVolumeClaim) -> None:
        """A claim, new or changed."""
        self._claims[claim.metadata.namespace, claim.metadata.name] = claim

    def drop_claim(self, namespace: str, name: str) -> None:
        """A claim is gone."""
        self._claims.pop((namespace, name), None)

    def see_volume(self, volume: PersistentVolume) -> None:
        """A volume, new or changed."""
        name = volume.metadata.name
        self.drop_volume(name)
        self._volumes[name] = volume
        self._of_class.setdefault(_volume_class(volume), {})[name] = volume

    def drop_volume(self, name: str) -> None:
        """A volume is gone."""
        volume = self._volumes.pop(name, None)
        self._conditions.pop(name, None)
        if volume is not None:
            among = self._of_class[_volume_class(volume)]
            del among[name]
            if not among:
                del self._of_class[_volume_class(volume)]

    def see_class(self, found: StorageClass) -> None:
        """A storage class, new or changed."""
        self._classes[found.metadata.name] = found

    def drop_class(self, name: str) -> None:
        """A storage class is gone."""
        self._classes.pop(name, None)

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """The claim as it was seen last."""
        return self._claims.get((namespace, name))

    def needs(self, pod: Pod) -> Needs:
        """What the pod's claims ask for as of now. Never raises: what is wrong makes the pod wait, with the reason."""
        if not any(claim_name(pod, volume) for volume in pod.spec.volumes):
            return NO_NEEDS
        gathered = _Gathered()
        exclusive = self.exclusive(pod)
        if self.unknown:
            return Needs(exclusive=exclusive, waits=self.unknown)
        try:
            for volume in pod.spec.volumes:
                name = claim_name(pod, volume)
                if name:
                    self._claim(pod, volume, name, gathered)
        except Unschedulable as error:
            return Needs(exclusive=exclusive, waits=error.reason)
        return Needs(
            term=Term(tuple(dict.fromkeys(gathered.conditions))),
            exclusive=exclusive,
            provision=tuple(gathered.provision),
        )

    def exclusive(self, pod: Pod) -> tuple[str, ...]:
        """Names of the pod's claims that one pod at a time may use; for running pods too, which hold them."""
        found = []
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            claim = self._claims.get((pod.metadata.namespace, source.claim_name)) if source is not None else None
            if claim is not None and _ONE_POD in claim.spec.access_modes:
                found.append(claim.metadata.name)
        return tuple(found)

    def _claim(self, pod: Pod, volume: Volume, name: str, gathered: _Gathered) -> None:
        claim = self._present(pod, volume, name)
        if claim.spec.volume_name and BIND_COMPLETED in claim.metadata.annotations:
            bound = self._volumes.get(claim.spec.volume_name)
            if bound is None:
                raise Unschedulable(f"claim {name} is bound to volume {claim.spec.volume_name}, which does not exist")
            gathered.conditions += self._usable_from(bound)
            if volume.persistent_volume_claim is not None:
                gathered.conditions += _zones(bound)
            return
        class_name = _claim_class(claim)
        found = self._classes.get(class_name)
        if claim.spec.volume_name:
            raise Unschedulable(f"claim {name} is being bound to volume {claim.spec.volume_name}")
        if found is None:
            known = f"its class {class_name} does not exist" if class_name else "it has no storage class"
            raise Unschedulable(f"claim {name} is not bound, and {known}")
        if found.volume_binding_mode != _WAITS:
            raise Unschedulable(f"claim {name} is not bound; class {class_name} binds at once, without the scheduler")
        for one in self._of_class.get(class_name, {}).values():
            if _is_for(one, claim):
                raise Unschedulable(f"claim {name} is about to be bound to volume {one.metadata.name}, which names it")
        if SELECTED_NODE in claim.metadata.annotations:
            gathered.conditions.append(Constraint(NODE_NAME, "==", claim.metadata.annotations[SELECTED_NODE]))
        if found.provisioner in ("", NO_PROVISIONER):
            raise Unschedulable(
                f"claim {name} is of class {class_name} without a provisioner, and slacktide chooses no volume; the "
                "claim's spec.volumeName may"
            )
        gathered.provision.append(name)
        gathered.conditions += _allowed(found)

    def _present(self, pod: Pod, volume: Volume, name: str) -> PersistentVolumeClaim:
        claim = self._claims.get((pod.metadata.namespace, name))
        if claim is None:
            if volume.ephemeral is not None:
                raise Unschedulable(f"claim {name} of the pod's ephemeral volume {volume.name} is yet to be made")
            raise Unschedulable(f"claim {name} does not exist")
        if claim.status.phase == "Lost":
            raise Unschedulable(f"claim {name} has lost its volume {claim.spec.volume_name}")
        if claim.metadata.deletion_timestamp is not None:
            raise Unschedulable(f"claim {name} is being deleted")
        if volume.ephemeral is not None and not any(
            owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
        ):
            raise Unschedulable(f"claim {name} has the name of an ephemeral volume, but is not the pod's own")
        return claim

    def _usable_from(self, volume: PersistentVolume) -> tuple[Condition, ...]:
        name = volume.metadata.name
        found = self._conditions.get(name)
        if found is None:
            affinity = volume.spec.node_affinity
            required = affinity.required if affinity is not None else None
            # Only labels are looked at, as kube-scheduler does.
            found = node_conditions(required, f"volume {name}: node affinity", fields=False) if required else ()
            self._conditions[name] = found
        return found


def claim_name(pod: Pod, volume: Volume) -> str:
    """Name of the claim behind a pod's volume, empty where there is none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def _claim_class(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(_CLASS, claim.spec.storage_class_name or "")


def _volume_class(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(_CLASS, volume.spec.storage_class_name)


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
        and reference.uid in ("", claim.metadata.uid)
    )


def _allowed(found: StorageClass) -> list[Condition]:
    """The nodes for which a class makes volumes."""
    if not found.allowed_topologies:
        return []
    terms = [
        Term(tuple(one_of(one.key, one.values) for one in term.match_label_expressions))
        for term in found.allowed_topologies
        if term.match_label_expressions and all(one.values for one in term.match_label_expressions)
    ]
    return [any_of(terms)]


def _zones(volume: PersistentVolume) -> list[Condition]:
    """Old volumes say by labels where they are; nodes without such a label can use them too."""
    unlabelled = Term(tuple(Constraint(key, "absent") for key in _ZONES))
    found: list[Condition] = []
    for key, newer in _ZONES.items():
        values = [one.strip() for one in volume.metadata.labels.get(key, "").split("__")]
        if all(values):
            terms = [unlabelled, Term((one_of(key, values),))]
            if newer:
                terms.append(Term((Constraint(key, "absent"), one_of(newer, values))))
            found.append(AnyOf(tuple(terms)))
    return found
