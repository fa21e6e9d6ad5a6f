"""An SLO as the import looks at it, whichever project's document says it; each part with the place where it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from slacktide.conversion import Node
from slacktide.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Query:
    """``role``: good, bad or total; success or failure, a share as it is; or gauge, 1 of what is up and 0 of others."""

    role: str
    text: str
    node: Node


@dataclass(frozen=True, slots=True)
class Indicator:
    """``threshold``: values that are compared with an objective's, no ratio."""

    node: Node
    queries: tuple[Query, ...]
    threshold: bool = False


@dataclass(frozen=True, slots=True)
class Budgeting:
    """Where a document says how its budget is counted, and whether time is."""

    node: Node
    of_time: bool


@dataclass(frozen=True, slots=True)
class Slo:
    """What is promised.

    metadata   where annotations are; of a file that has none, where its name is
    objective  the mapping in which the target is
    budgeting  None of projects that have one way of counting
    service    annotations of the service that the SLO is of, and its metadata
    note       what a reader of the result should know
    """

    label: str
    name: str
    name_at: Node
    metadata: Node
    annotations: Mapping[str, str]
    objective: Node
    target: float
    window: Mapping[str, Any] | None
    window_at: Node | None
    indicator: Indicator
    budgeting: Budgeting | None = None
    service: tuple[Mapping[str, str], Node] | None = None
    note: str = ""

    def where(self, annotation: str) -> Node:
        """The place of an annotation; the name where it is not there."""
        if annotation not in self.annotations:
            return self.name_at
        return self.metadata.child("annotations").child(annotation)


@dataclass(frozen=True, slots=True)
class Read:
    """A document that is as its project has it; ``spec`` is typed, by kind.

    key  what no other document may be; empty where documents have no name
    """

    node: Node
    kind: str
    name: str
    annotations: Mapping[str, str]
    spec: Any
    slos: Callable[[Read, Sequence[Read]], list[Slo]]
    key: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """For people: kind and name."""
        return f"{self.kind} {self.name}"


def annotations_of(metadata: Node) -> dict[str, str]:
    """Of a document's metadata. Raises :class:`ConfigError` for what is no mapping of texts."""
    if metadata.value.get("annotations") is None:
        return {}
    node = metadata.child("annotations")
    if not isinstance(node.value, dict):
        node.fail("a mapping of texts")
    for key, value in node.value.items():
        if not isinstance(value, str):
            node.child(key).fail("text, in quotes")
    return dict(node.value)


def percent(node: Node, whose: str) -> float:
    """The share that per cent say, from 1 to below 100. Raises :class:`ConfigError` for others."""
    try:
        found = Decimal(str(node.value))
    except ArithmeticError:
        node.fail("a number of per cent, such as 99.9")
    if not 1 <= found < 100:
        node.fail(
            f"per cent from 1 to below 100, as {whose} has it: 99.9, not 0.999; nobody promises 100 with a budget"
        )
    return float(found / 100)


def key_at(node: Node, key: str) -> str:
    """``file:line`` of a key of a document, or of the document."""
    place = (*node.place, key)
    return node.file.at(place if place in node.file.lines else node.place)


def missing(node: Node, key: str, expected: str) -> ConfigError:
    """Says that a document lacks a key."""
    return ConfigError(f"{key_at(node, key)}: {key} is missing, expected {expected}")
