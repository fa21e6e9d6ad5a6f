"""The scheduler names that one process answers to, each with what operators add to its pods.

kube-scheduler has them as ``profiles``. Here the pods of all of them wait in one queue and share the nodes; what
differs is ``addedAffinity`` (NodeAffinityArgs) and the spread of pods that say none (PodTopologySpreadArgs:
``defaultConstraints``, or its own with ``defaultingType: System``). Whom a default constraint counts is not written in
it: those that the pod's services and its ReplicaSet, StatefulSet or ReplicationController select, all of them together.
A pod that none of these selects has no default spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from slacktide.config import KubeSettings
from slacktide.errors import ConfigError
from slacktide.kube.client.metadata import LabelSelector
from slacktide.kube.indexes import take_out
from slacktide.kube.resources.objects import NodeAffinity, Pod, Service, SystemSpread, TopologySpreadConstraint
from slacktide.kube.translate.owners import controlling
from slacktide.kube.translate.pod_terms import check_spread
from slacktide.kube.translate.selectors import node_conditions, node_term
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Condition
from slacktide.model.placement import Preference

DEFAULT_SPREAD = "kube.default_spread"
SYSTEM = "system"
EXPECTED_SPREAD = (
    "'system', or a JSON list of topology spread constraints with maxSkew, topologyKey and whenUnsatisfiable, and "
    "without labelSelector"
)
_SYSTEMS = (
    SystemSpread(3, "kubernetes.io/hostname", "ScheduleAnyway"),
    SystemSpread(5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
)


def default_constraints(text: str, name: str = DEFAULT_SPREAD) -> tuple[TopologySpreadConstraint, ...]:
    """The setting's constraints. Raises :class:`ConfigError` naming the setting and what is wrong."""
    if text in ("", SYSTEM):
        return _SYSTEMS if text else ()
    try:
        found = msgspec.json.decode(text.encode(), type=tuple[TopologySpreadConstraint, ...])
        for one in found:
            check_spread(one)
            if one.label_selector is not None or one.match_label_keys:
                raise ConfigError(
                    f"{name}: constraint over {one.topology_key} has a selector; expected {EXPECTED_SPREAD}"
                )
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ConfigError(f"{name}: found {text!r}: {error}; expected {EXPECTED_SPREAD}") from None
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
        take_out(self._services, namespace, name)

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


ADDED_AFFINITY = "kube.added_affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _Added(NodeAffinity, frozen=True, forbid_unknown_fields=True):
    """A typing error is no affinity."""


Added = tuple[tuple[Condition, ...], tuple[Preference, ...]]
"""What pods ask of nodes, and would rather have."""
NOTHING_ADDED: Added = ((), ())


def added_affinity(text: str, name: str = ADDED_AFFINITY) -> Added:
    """What all pods ask of nodes, and would rather have, by the JSON of a setting; nothing where it is empty.

    Raises :class:`ConfigError` naming the setting and what is wrong.
    """
    if not text:
        return NOTHING_ADDED
    try:
        found = msgspec.json.decode(text.encode(), type=_Added)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ConfigError(
            f"{name}: found {text!r}: {error}; expected JSON of a node affinity, with {REQUIRED} or {PREFERRED}"
        ) from None
    try:
        required = node_conditions(found.required, "required") if found.required is not None else ()
        preferred = [(one.weight, node_term(one.preference, "preferred")) for one in found.preferred]
    except Unschedulable as error:
        raise ConfigError(f"{name}: {error.reason}") from None
    return required, tuple(Preference(weight, term=term) for weight, term in preferred if term is not None and weight)


NAME = "kube.profiles"
EXPECTED = (
    'a JSON list such as [{"schedulerName": "batch", "addedAffinity": {...}, "defaultSpread": [...]}], in which '
    "schedulerName is required and used once"
)

KUBE_SCHEDULER = "default-scheduler"
"""The name that pods have which name no scheduler."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What pods of one scheduler name get beside what they say themselves."""

    added: Added
    spread: tuple[TopologySpreadConstraint, ...]


class _Given(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    scheduler_name: str
    added_affinity: msgspec.Raw = msgspec.Raw(b"")
    default_spread: msgspec.Raw = msgspec.Raw(b"")


def profiles_of(kube: KubeSettings) -> dict[str, Profile]:
    """All profiles by scheduler name, the settings' own first.

    Raises :class:`ConfigError` naming the setting and what is wrong.
    """
    found = {kube.scheduler_name: _profile(kube.added_affinity or "", _own_spread(kube))}
    for at, one in enumerate(_given(kube.profiles or "[]")):
        where = f"{NAME}[{at}]"
        if not one.scheduler_name or one.scheduler_name in found:
            raise ConfigError(f"{where}.schedulerName: found {one.scheduler_name!r}; expected {EXPECTED}")
        found[one.scheduler_name] = _profile(_text(one.added_affinity), _text(one.default_spread), where)
    return found


def _own_spread(kube: KubeSettings) -> str:
    """Pods that name no scheduler are spread as kube-scheduler spreads them, unless the setting says otherwise."""
    if kube.default_spread is None:
        return SYSTEM if kube.scheduler_name == KUBE_SCHEDULER else ""
    return kube.default_spread


def _given(text: str) -> list[_Given]:
    try:
        return msgspec.json.decode(text.encode(), type=list[_Given])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ConfigError(f"{NAME}: found {text!r}: {error}; expected {EXPECTED}") from None


def _profile(added: str, spread: str, where: str = "") -> Profile:
    """``where``: of which profile, where it is not the settings' own."""
    names = (f"{where}.addedAffinity", f"{where}.defaultSpread") if where else (ADDED_AFFINITY, DEFAULT_SPREAD)
    return Profile(added_affinity(added, names[0]), default_constraints(spread, names[1]))


def _text(given: msgspec.Raw) -> str:
    """As the setting of its own has it: a JSON string stands for what it says (``"system"``)."""
    text = bytes(given).decode()
    return str(msgspec.json.decode(text)) if text.startswith('"') else text
