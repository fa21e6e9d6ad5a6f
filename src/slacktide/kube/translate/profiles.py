"""The scheduler names that one process answers to, each with what operators add to its pods.

kube-scheduler has them as ``profiles``. Here the pods of all of them wait in one queue and share the nodes; what
differs is ``addedAffinity`` (NodeAffinityArgs) and the default spread (PodTopologySpreadArgs).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from slacktide.config import KubeSettings
from slacktide.errors import ConfigError
from slacktide.kube.resources.objects import NodeAffinity, TopologySpreadConstraint
from slacktide.kube.translate import default_spread
from slacktide.kube.translate.selectors import node_conditions, node_term
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Condition
from slacktide.model.placement import Preference

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
        return default_spread.SYSTEM if kube.scheduler_name == KUBE_SCHEDULER else ""
    return kube.default_spread


def _given(text: str) -> list[_Given]:
    try:
        return msgspec.json.decode(text.encode(), type=list[_Given])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise ConfigError(f"{NAME}: found {text!r}: {error}; expected {EXPECTED}") from None


def _profile(added: str, spread: str, where: str = "") -> Profile:
    """``where``: of which profile, where it is not the settings' own."""
    names = (f"{where}.addedAffinity", f"{where}.defaultSpread") if where else (ADDED_AFFINITY, default_spread.NAME)
    return Profile(added_affinity(added, names[0]), default_spread.default_constraints(spread, names[1]))


def _text(given: msgspec.Raw) -> str:
    """As the setting of its own has it: a JSON string stands for what it says (``"system"``)."""
    text = bytes(given).decode()
    return str(msgspec.json.decode(text)) if text.startswith('"') else text
