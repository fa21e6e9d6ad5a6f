"""Claims, volumes and classes: from which nodes a pod's volumes can be used, and what must happen first.

A claim is bound (then its volume says from which nodes it can be used), or waits for its first pod: then
the scheduler chooses a volume that can be used from the pod's node, or else writes that node onto the claim,
for a provisioner to make a volume there. Anything else makes the pod wait, with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slacktide.kube.client.metadata import Reference
from slacktide.kube.indexes import take_out
from slacktide.kube.resources.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume
from slacktide.kube.translate.selectors import NODE_NAME, any_of, node_conditions, one_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.volume_matching import StorageCapacities, by_size, candidates, is_for, matched, wanted
from slacktide.model.constraint import NO_CONSTRAINT, AnyOf, Condition, Constraint, Term

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation by which a scheduler tells a provisioner for which node a claim's volume shall be made."""
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim that is bound for good."""
NO_PROVISIONER = "kubernetes.io/no-provisioner"

_CLASS = "volume.beta.kubernetes.io/storage-class"
_WAITS = "WaitForFirstConsumer"
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_NOWHERE = AnyOf(())
_ONE_POD = "ReadWriteOncePod"
_ZONES = {
    "topology.kubernetes.io/zone": "",
    "topology.kubernetes.io/region": "",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}


Handle = tuple[str, str]
"""A volume to attach: its CSI driver, and what the driver calls it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod's claims ask for.

    term       nodes from which all volumes can be used, or on which they can be made
    provision  names of claims that get their volumes once the pod has a node (:meth:`Storage.plan`); it is bound when
               they are
    waits      why the pod cannot be placed as yet; empty where it can
    """

    term: Term = NO_CONSTRAINT
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
    waiting: dict[str, PersistentVolumeClaim] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What is to be done so that a pod's claims have volumes on a node: volumes to be bound, by claim, and claims for
    which volumes are to be made."""

    bind: Mapping[str, PersistentVolume]
    provision: tuple[str, ...]


class Storage:
    """The claims, volumes and storage classes of a cluster, kept by events."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._of_class: dict[str, dict[str, PersistentVolume]] = {}
        self._named: dict[tuple[str, str], dict[str, PersistentVolume]] = {}
        """Volumes by the claims that they name."""
        self._conditions: dict[str, tuple[Condition, ...]] = {}
        self._classes: dict[str, StorageClass] = {}
        self.unknown = ""
        """Why nothing can be said of any claim now, or empty."""
        self._places: dict[tuple[object, ...], tuple[Condition, ...]] = {}
        self._suitable: dict[tuple[object, ...], list[PersistentVolume]] = {}
        """Where claims that ask for this can have volumes, and which of those that are there; forgotten when volumes,
        classes or capacities change."""
        self.capacities = StorageCapacities()

    def on_claim_update(self, claim: PersistentVolumeClaim) -> None:
        """A claim, new or changed."""
        self._claims[claim.metadata.namespace, claim.metadata.name] = claim

    def on_claim_delete(self, namespace: str, name: str) -> None:
        """A claim is gone."""
        self._claims.pop((namespace, name), None)

    def on_volume_update(self, volume: PersistentVolume) -> None:
        """A volume, new or changed."""
        name = volume.metadata.name
        self.on_volume_delete(name)
        self._volumes[name] = volume
        self.reconsider()
        self._of_class.setdefault(_volume_class(volume), {})[name] = volume
        if volume.spec.claim_ref is not None:
            self._named.setdefault(_claimed_by(volume.spec.claim_ref), {})[name] = volume

    def on_volume_delete(self, name: str) -> None:
        """A volume is gone."""
        volume = self._volumes.pop(name, None)
        self._conditions.pop(name, None)
        self.reconsider()
        if volume is not None:
            take_out(self._of_class, _volume_class(volume), name)
            if volume.spec.claim_ref is not None:
                take_out(self._named, _claimed_by(volume.spec.claim_ref), name)

    def on_class_update(self, found: StorageClass) -> None:
        """A storage class, new or changed."""
        self.reconsider()
        self._classes[found.metadata.name] = found

    def on_class_delete(self, name: str) -> None:
        """A storage class is gone."""
        self.reconsider()
        self._classes.pop(name, None)

    def reconsider(self) -> None:
        """Volumes, classes or capacities are others than before."""
        self._places.clear()
        self._suitable.clear()

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """The claim as it was seen last."""
        return self._claims.get((namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        """The volume as it was seen last."""
        return self._volumes.get(name)

    def provisioner(self, class_name: str) -> str:
        """Who makes volumes of a class; empty where nobody does."""
        found = self._classes.get(class_name)
        return "" if found is None or found.provisioner == NO_PROVISIONER else found.provisioner

    def needs(self, pod: Pod) -> Needs:
        """What the pod's claims ask for as of now. Never raises: what is wrong makes the pod wait, with the reason."""
        if not any(claim_name(pod, volume) for volume in pod.spec.volumes):
            return NO_NEEDS
        if self.unknown:
            return Needs(waits=self.unknown)
        try:
            gathered = self._gather(pod)
            conditions = (*gathered.conditions, *self._places_of(list(gathered.waiting.values())))
        except Unschedulable as error:
            return Needs(waits=error.reason)
        return Needs(Term(tuple(dict.fromkeys(conditions))), tuple(gathered.waiting))

    def plan(self, pod: Pod, node: Mapping[str, str]) -> VolumePlan:
        """Which volumes the pod's claims get on a node with these attributes. O(volumes of the claims' classes).

        Raises :class:`Unschedulable` with the reason where they get none there.
        """
        order = by_size(self._gather(pod).waiting.values())
        offered = {
            claim.metadata.name: [one for one in volumes if Term(self._usable_from(one)).holds(node)]
            for claim, volumes in zip(order, map(self._candidates, order), strict=True)
        }
        chosen = matched(order, offered)
        rest = [claim for claim in order if claim.metadata.name not in chosen]
        if not all(Term(self._made(claim)).holds(node) for claim in rest):
            names = ", ".join(claim.metadata.name for claim in rest)
            raise Unschedulable(f"PersistentVolumeClaim {names} cannot be bound to a volume there any more")
        return VolumePlan(chosen, tuple(claim.metadata.name for claim in rest))

    def awaited(self, pod: Pod, names: Sequence[str]) -> str:
        """Who is to see to these claims of a pod, which has been given a node; empty where it is nobody's turn."""
        made: dict[tuple[str, str], list[str]] = {}
        for_whom: list[str] = []
        for name in names:
            claim = self._claims.get((pod.metadata.namespace, name))
            if claim is None:
                continue
            if node := claim.metadata.annotations.get(SELECTED_NODE, ""):
                made.setdefault((self.provisioner(class_of_claim(claim)), node), []).append(name)
            for volume in self._named.get((pod.metadata.namespace, name), {}).values() if not node else ():
                if is_for(volume, claim):
                    kept = f"volume {volume.metadata.name} to PersistentVolumeClaim {name}"
                    for_whom.append(f"kube-controller-manager to bind {kept}")
        for (provisioner, node), each in made.items():
            wanted_for = f"for PersistentVolumeClaim {', '.join(each)}"
            for_whom.append(f"provisioner {provisioner} to create a volume on node {node} {wanted_for}")
        return f"waiting for {' and for '.join(sorted(for_whom))}" if for_whom else ""

    def exclusive(self, pod: Pod) -> tuple[str, ...]:
        """Names of the pod's claims that one pod at a time may use; for running pods too, which hold them."""
        found = []
        for volume in pod.spec.volumes:
            source = volume.persistent_volume_claim
            claim = self._claims.get((pod.metadata.namespace, source.claim_name)) if source is not None else None
            if claim is not None and _ONE_POD in claim.spec.access_modes:
                found.append(claim.metadata.name)
        return tuple(found)

    def handles(self, pod: Pod) -> frozenset[Handle]:
        """The volumes to attach for a pod, as kube-scheduler counts them: those behind its claims, each once; of a
        claim without a volume the one that its class's driver will make. In-tree volumes are not counted, nor are
        volumes that CSI drivers make with the pod (``csi`` of a pod's volume)."""
        found = (self._handle(pod.metadata.namespace, claim_name(pod, volume)) for volume in pod.spec.volumes)
        return frozenset(one for one in found if one is not None)

    def _handle(self, namespace: str, name: str) -> Handle | None:
        claim = self._claims.get((namespace, name)) if name else None
        if claim is None:
            return None
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is not None:
            source = volume.spec.csi
            return None if source is None else (source.driver, source.volume_handle)
        driver = self.provisioner(class_of_claim(claim))
        return (driver, f"claim {namespace}/{name}") if driver else None

    def _gather(self, pod: Pod) -> _Gathered:
        gathered = _Gathered()
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name:
                self._claim(pod, volume, name, gathered)
        return gathered

    def _claim(self, pod: Pod, volume: Volume, name: str, gathered: _Gathered) -> None:
        claim = self._present(pod, volume, name)
        if is_bound(claim):
            bound = self._volumes.get(claim.spec.volume_name)
            if bound is None:
                raise Unschedulable(f"claim {name} is bound to volume {claim.spec.volume_name}, which does not exist")
            gathered.conditions += self._usable_from(bound)
            if volume.persistent_volume_claim is not None:
                gathered.conditions += _zones(bound)
            return
        class_name = class_of_claim(claim)
        found = self._classes.get(class_name)
        if claim.spec.volume_name:
            raise Unschedulable(f"{_UNBOUND}: claim {name} is being bound to volume {claim.spec.volume_name}")
        if found is None:
            known = f"its class {class_name} does not exist" if class_name else "it has no storage class"
            raise Unschedulable(f"{_UNBOUND}: claim {name} is not bound, and {known}")
        if found.volume_binding_mode != _WAITS:
            raise Unschedulable(f"{_UNBOUND}: claim {name} is not bound; class {class_name} binds at once")
        gathered.waiting[name] = claim

    def _places_of(self, claims: Sequence[PersistentVolumeClaim]) -> tuple[Condition, ...]:
        """The nodes on which all claims can have volumes, of those that are there or may be made.

        Raises :class:`Unschedulable` where there are none, whatever the nodes are like.
        """
        if not claims:
            return ()
        # What names a claim is for that one alone; of other claims that ask for the same the answer is the same.
        key = tuple(self._asks(claim) for claim in claims)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._work_out(by_size(claims))
        return found

    def _asks(self, claim: PersistentVolumeClaim) -> tuple[object, ...]:
        spec, meta = claim.spec, claim.metadata
        named = any(is_for(one, claim) for one in self._named.get((meta.namespace, meta.name), {}).values())
        selector = str(spec.selector) if spec.selector is not None else None
        return (
            class_of_claim(claim), wanted(claim), spec.access_modes, selector, spec.volume_mode,
            spec.volume_attributes_class_name, meta.annotations.get(SELECTED_NODE), meta.uid if named else "",
        )  # fmt: skip

    def _work_out(self, order: Sequence[PersistentVolumeClaim]) -> tuple[Condition, ...]:
        """Node affinities of volumes are looked at one by one, together with volumes that all nodes can use: what two
        affinities that overlap have together is not counted on."""
        groups: dict[tuple[Condition, ...], dict[str, list[tuple[int, PersistentVolume]]]] = {(): {}}
        for claim in order:
            for rank, volume in enumerate(self._candidates(claim)):
                group = groups.setdefault(self._usable_from(volume), {})
                group.setdefault(claim.metadata.name, []).append((rank, volume))
        anywhere = groups[()]
        terms, problem = [], ""
        for conditions, group in groups.items():
            offered = {}
            for name in (claim.metadata.name for claim in order):
                usable = [*group.get(name, ()), *(anywhere.get(name, ()) if conditions else ())]
                offered[name] = [volume for _, volume in sorted(usable, key=lambda one: one[0])]
            chosen = matched(order, offered)
            try:
                made = [one for claim in order if claim.metadata.name not in chosen for one in self._made(claim)]
                terms.append(Term((*conditions, *made)))
            except Unschedulable as error:
                problem = problem or error.reason
        if not terms:
            raise Unschedulable(problem)
        if any(not term.constraints for term in terms):
            return ()
        return terms[0].constraints if len(terms) == 1 else (any_of(terms),)

    def _candidates(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Volumes that a claim may have; none where a node has been told to a provisioner."""
        if SELECTED_NODE in claim.metadata.annotations:
            return []
        key = self._asks(claim)
        known = self._suitable.get(key)
        if known is None:
            found = candidates(claim, self._of_class.get(class_of_claim(claim), {}).values())
            known = self._suitable[key] = [volume for volume in found if self._is_readable(volume)]
        return known

    def _is_readable(self, volume: PersistentVolume) -> bool:
        try:
            self._usable_from(volume)
        except Unschedulable:
            return False
        return True

    def _made(self, claim: PersistentVolumeClaim) -> tuple[Condition, ...]:
        """The nodes for which a volume can be made for a claim. Raises :class:`Unschedulable` where for none."""
        name, class_name = claim.metadata.name, class_of_claim(claim)
        service = self._classes[class_name]
        if not self.provisioner(class_name):
            raise Unschedulable(
                f"claim {name}: no available persistent volume to bind, and class {class_name} has no provisioner"
            )
        conditions: list[Condition] = []
        if SELECTED_NODE in claim.metadata.annotations:
            conditions.append(Constraint(NODE_NAME, "==", claim.metadata.annotations[SELECTED_NODE]))
        enough = self.capacities.enough(service.provisioner, class_name, wanted(claim))
        if enough == _NOWHERE:
            raise Unschedulable(f"claim {name}: no node has enough free storage for a volume of class {class_name}")
        return (*conditions, *_allowed(service), *([enough] if enough is not None else ()))

    def _present(self, pod: Pod, volume: Volume, name: str) -> PersistentVolumeClaim:
        claim = self._claims.get((pod.metadata.namespace, name))
        if claim is None:
            if volume.ephemeral is not None:
                raise Unschedulable(
                    f"waiting for PersistentVolumeClaim {name} of ephemeral volume {volume.name} to be created"
                )
            raise Unschedulable(f"persistentvolumeclaim {name!r} not found")
        if claim.status.phase == "Lost":
            raise Unschedulable(
                f"persistentvolumeclaim {name!r} bound to non-existent persistentvolume {claim.spec.volume_name!r}"
            )
        if claim.metadata.deletion_timestamp is not None:
            raise Unschedulable(f"persistentvolumeclaim {name!r} is being deleted")
        if volume.ephemeral is not None and not any(
            owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
        ):
            raise Unschedulable(f"PersistentVolumeClaim {name} was not created for this pod (pod is not owner)")
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


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is bound for good."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Name of a claim's storage class, empty where it has none."""
    return claim.metadata.annotations.get(_CLASS, claim.spec.storage_class_name or "")


def _claimed_by(reference: Reference) -> tuple[str, str]:
    return reference.namespace, reference.name


def _volume_class(volume: PersistentVolume) -> str:
    return volume.metadata.annotations.get(_CLASS, volume.spec.storage_class_name)


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
