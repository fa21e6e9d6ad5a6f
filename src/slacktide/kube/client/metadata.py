"""What all objects share: metadata, owners, selectors, references.

Field names follow Kubernetes in snake case; only fields in use are decoded. What is absent is ``None`` for an object,
``""`` for a string, ``{}`` for a dictionary and ``()`` for a list. Quantities, operators and other enumerations stay
strings: the code that uses one checks it, so that a wrong one concerns only its own object.
"""

from __future__ import annotations

import msgspec

from slacktide.kube.client.timestamps import Instant


class Part(msgspec.Struct, rename="camel", gc=False, frozen=True, omit_defaults=True):
    """Base of every decoded structure; these never form cycles, so the garbage collector need not look at them."""


class OwnerReference(Part, frozen=True):
    """Who owns an object; ``controller`` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Metadata(Part, frozen=True):
    """An object's metadata; ``namespace`` is empty for cluster-scoped objects."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class Requirement(Part, frozen=True):
    """One requirement on labels: ``key operator values`` (In, NotIn, Exists, DoesNotExist; for nodes also Gt, Lt)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Part, frozen=True):
    """Labels that must match and expressions that must hold; empty selects everything, absent nothing."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()


class NodeSelectorTerm(Part, frozen=True):
    """Requirements on a node's labels and fields that must all hold; an empty term matches no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Part, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class Condition(Part, frozen=True):
    """One condition of an object's status; ``status`` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None


class Reference(Part, frozen=True):
    """Points at an object: what an event regards, what a volume is claimed by."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
