"""Extended resources that device classes back: which they are, which pods ask for them, which nodes have them
themselves, and the claims that schedulers made for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.devices import DeviceClass, ResourceClaim
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.devices.extended import AMPLE, ExtendedAsk, asked_by, backed_by, made_for
from slacktide.kube.translate.devices.pod_claims import FINALIZER

NOTHING: frozenset[str] = frozenset()


class ExtendedResources:
    """A part of the mirror of devices; ``pods`` are the mirror's."""

    def __init__(self, pods: Mapping[str, PodRecord]) -> None:
        self._pods = pods
        self._backed: dict[str, str] = {}
        self._asks: dict[str, ExtendedAsk] = {}
        """Of pods of ours that have not ended, waiting or not."""
        self._asked: set[str] = set()
        """Resources that pods have ever asked for; nodes are told anew for each, so none is forgotten with its pod."""
        self._given: dict[str, frozenset[str]] = {}
        """Resources that classes back and nodes have themselves, by node."""
        self._claims: dict[str, dict[tuple[str, str], ResourceClaim]] = {}
        """By the pods for which they were made."""

    def ask_of(self, pod: Pod) -> ExtendedAsk | None:
        """What a pod asks for of such resources; None where nothing, or where it is not ours."""
        return self._asks.get(pod.metadata.uid)

    def on_pod_update(self, record: PodRecord) -> bool:
        """A pod, new or changed; whether it is the first that asks for a resource."""
        ask = asked_by(record.pod, self._backed) if self._backed and record.ours and not record.is_final else None
        if ask is None:
            self.on_pod_delete(record.uid)
            return False
        self._asks[record.uid] = ask
        is_first = not ask.resources <= self._asked
        self._asked |= ask.resources
        return is_first

    def on_pod_delete(self, uid: str) -> None:
        """A pod is gone."""
        self._asks.pop(uid, None)

    def see_classes(self, classes: Iterable[DeviceClass]) -> list[PodRecord] | None:
        """Classes, of which one is new, changed or gone: pods that ask for something else because of that; None where
        the same resources are backed as before."""
        backed = backed_by(classes)
        if backed == self._backed:
            return None
        self._backed, found = backed, []
        self._asked &= backed.keys()
        for record in self._pods.values():
            before = self._asks.get(record.uid)
            self.on_pod_update(record)
            if self._asks.get(record.uid) != before:
                found.append(record)
        return found

    # -- nodes -----------------------------------------------------------------------------------------------------

    def on_node_update(self, name: str, amounts: Mapping[str, int]) -> bool:
        """What a node has; whether it has other resources itself than before, of those that classes back."""
        given = frozenset(one for one in self._backed if amounts.get(one, 0) > 0) if self._backed else NOTHING
        is_news = given != self._given.get(name, NOTHING)
        self._given[name] = given
        return is_news

    def on_node_delete(self, name: str) -> None:
        """A node is gone."""
        self._given.pop(name, None)

    def given(self, node: str) -> frozenset[str]:
        """Resources that classes back and a node has itself."""
        return self._given.get(node, NOTHING)

    def ample(self, node: str) -> dict[str, int]:
        """Resources that a node does not have and gives by claims: of them nobody is refused anything there, as only
        free devices count."""
        return dict.fromkeys(sorted(self._asked - self.given(node)), AMPLE) if self._asked else {}

    # -- claims ----------------------------------------------------------------------------------------------------

    def on_claim_update(self, claim: ResourceClaim) -> None:
        """A claim, new or changed."""
        if uid := made_for(claim):
            self._claims.setdefault(uid, {})[claim.metadata.namespace, claim.metadata.name] = claim

    def on_claim_delete(self, claim: ResourceClaim) -> None:
        """A claim is gone."""
        uid = made_for(claim)
        if uid in self._claims:
            self._claims[uid].pop((claim.metadata.namespace, claim.metadata.name), None)
            if not self._claims[uid]:
                del self._claims[uid]

    def claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """Claims that were made for a pod's extended resources, by us or others, and that do not go yet.

        Who writes a claim in another namespace may name any pod as its owner: that means nothing.
        """
        found = self._claims.get(pod.metadata.uid, {})
        return [one for (namespace, _), one in found.items() if namespace == pod.metadata.namespace and _stays(one)]


def _stays(claim: ResourceClaim) -> bool:
    return claim.metadata.deletion_timestamp is None or FINALIZER in claim.metadata.finalizers
