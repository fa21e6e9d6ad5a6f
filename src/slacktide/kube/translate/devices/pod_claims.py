"""The claims of a pod: which they are, and to which nodes those bind it that have devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slacktide.kube.resources.devices import ResourceClaim
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.selectors import node_conditions
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import NO_CONSTRAINT, Condition, Term
from slacktide.model.placement import Preference

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
        if one.resource_claim_name is None and not _is_for(claim, pod):
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


def _is_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)
