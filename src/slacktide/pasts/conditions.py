"""Conditions of pods and nodes, as a story says that they turn."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from slacktide.kube.client.metadata import Condition, Instant
from slacktide.kube.resources.objects import Node, Pod

Turning = TypeVar("Turning", Pod, Node)


def with_condition(found: Turning, name: str, at: float, status: str = "True", reason: str = "") -> Turning:
    """A pod or a node that has this condition since then, in place of the one that it had."""
    before: tuple[Condition, ...] = found.status.conditions
    conditions = (*(one for one in before if one.type != name), Condition(name, status, reason, "", Instant(at)))
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, conditions=conditions))
