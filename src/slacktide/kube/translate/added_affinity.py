"""Node affinity that an operator adds to all pods of this scheduler (kube-scheduler: ``addedAffinity``)."""

from __future__ import annotations

import msgspec

from slacktide.errors import ConfigError
from slacktide.kube.resources.objects import NodeAffinity
from slacktide.kube.translate.selectors import node_conditions, node_term
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Condition
from slacktide.model.placement import Preference

NAME = "kube.added_affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class _Given(NodeAffinity, frozen=True, forbid_unknown_fields=True):
    """A typing error is no affinity."""


Added = tuple[tuple[Condition, ...], tuple[Preference, ...]]
"""What pods ask of nodes, and would rather have."""
NOTHING_ADDED: Added = ((), ())


def added_affinity(text: str, name: str = NAME) -> Added:
    """What all pods ask of nodes, and would rather have, by the JSON of a setting; nothing where it is empty.

    Raises :class:`ConfigError` naming the setting and what is wrong.
    """
    if not text:
        return NOTHING_ADDED
    try:
        found = msgspec.json.decode(text.encode(), type=_Given)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{name}: found {text!r}: {error}; expected JSON of a node affinity, with {REQUIRED} or {PREFERRED}"
        ) from None
    try:
        required = node_conditions(found.required, "required") if found.required is not None else ()
        preferred = [(one.weight, node_term(one.preference, "preferred")) for one in found.preferred]
    except Unschedulable as error:
        raise ConfigError(f"{name}: {error.reason}") from None
    return required, tuple(Preference(weight, term=term) for weight, term in preferred if term is not None and weight)
