"""Topology spread of pods that say none: an operator's constraints, over the pods of the same services and owner.

kube-scheduler has them as ``PodTopologySpreadArgs`` (``defaultConstraints``, or its own with ``defaultingType:
System``). Whom a constraint counts is not written in it: those that the pod's services and its ReplicaSet,
StatefulSet or ReplicationController select, all of them together. A pod that none of these selects has no default
spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from slacktide.errors import ConfigError
from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.resources.objects import Pod, Service, SystemSpread, TopologySpreadConstraint
from slacktide.kube.translate.owners import controlling
from slacktide.kube.translate.pod_terms import check_spread
from slacktide.kube.translate.unschedulable import Unschedulable

NAME = "kube.default_spread"
SYSTEM = "system"
EXPECTED = (
    "'system', or a JSON list of topology spread constraints with maxSkew, topologyKey and whenUnsatisfiable, and "
    "without labelSelector"
)
_SYSTEMS = (
    SystemSpread(3, "kubernetes.io/hostname", "ScheduleAnyway"),
    SystemSpread(5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
)


def default_constraints(text: str, name: str = NAME) -> tuple[TopologySpreadConstraint, ...]:
    """The setting's constraints. Raises :class:`ConfigError` naming the setting and what is wrong."""
    if text in ("", SYSTEM):
        return _SYSTEMS if text else ()
    try:
        found = msgspec.json.decode(text.encode(), type=tuple[TopologySpreadConstraint, ...])
        for one in found:
            check_spread(one)
            if one.label_selector is not None or one.match_label_keys:
                raise ConfigError(f"{name}: constraint over {one.topology_key} has a selector; expected {EXPECTED}")
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ConfigError(f"{name}: found {text!r}: {error}; expected {EXPECTED}") from None
    except Unschedulable as error:
        raise ConfigError(f"{name}: {error.reason}") from None
    return found


class DefaultSpread:
    """Services, and the selectors of controllers, kept by events.

    ``constraints``: those of pods that ask for none, by their scheduler's name.
    """

    def __init__(self, constraints: Mapping[str, tuple[TopologySpreadConstraint, ...]]) -> None:
        self._constraints = {name: one for name, one in constraints.items() if one}
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        self._selectors: dict[str, LabelSelector] = {}

    @property
    def used(self) -> bool:
        """Whether there are any constraints."""
        return bool(self._constraints)

    def on_service_update(self, service: Service) -> bool:
        """A service, new or changed; whether it selects others than before."""
        among = self._services.setdefault(service.metadata.namespace, {})
        before = among.get(service.metadata.name)
        among[service.metadata.name] = service.spec.selector
        return before != service.spec.selector

    def on_service_delete(self, namespace: str, name: str) -> None:
        """A service is gone."""
        among = self._services.get(namespace, {})
        among.pop(name, None)
        if not among:
            self._services.pop(namespace, None)

    def on_controller_update(self, uid: str, selector: LabelSelector) -> bool:
        """A ReplicaSet, StatefulSet or ReplicationController; whether it selects others than before."""
        before = self._selectors.get(uid)
        self._selectors[uid] = selector
        return before != selector

    def on_controller_delete(self, uid: str) -> None:
        """A controller is gone."""
        self._selectors.pop(uid, None)

    def applied(self, pod: Pod) -> Pod:
        """The pod as if it had asked for the default spread, where that concerns it; else the pod itself."""
        wanted = self._constraints.get(pod.spec.scheduler_name)
        if not wanted or pod.spec.topology_spread_constraints:
            return pod
        selector = self._selector_of(pod)
        if not selector.match_labels and not selector.match_expressions:
            return pod
        constraints = tuple(msgspec.structs.replace(one, label_selector=selector) for one in wanted)
        spec = msgspec.structs.replace(pod.spec, topology_spread_constraints=constraints)
        return msgspec.structs.replace(pod, spec=spec)

    def _selector_of(self, pod: Pod) -> LabelSelector:
        labels = dict[str, str]()
        for selected in self._services_of(pod):
            labels |= selected
        owner = controlling(pod.metadata)
        further = self._selectors.get(owner.uid) if owner is not None else None
        if further is None:
            return LabelSelector(labels)
        return LabelSelector(labels | further.match_labels, further.match_expressions)

    def _services_of(self, pod: Pod) -> Iterable[Mapping[str, str]]:
        """Selectors of the services that select the pod; a service without a selector selects nobody."""
        labels = pod.metadata.labels.items()
        return (one for one in self._services.get(pod.metadata.namespace, {}).values() if one and one.items() <= labels)
