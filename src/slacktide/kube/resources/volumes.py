"""Persistent volumes, claims on them and their classes."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.metadata import LabelSelector, Metadata, NodeSelector, Part, Reference


class VolumeNodeAffinity(Part, frozen=True):
    """From which nodes a volume can be used."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Part, frozen=True):
    """What a volume is; ``capacity`` as quantities."""

    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    claim_ref: Reference | None = None
    node_affinity: VolumeNodeAffinity | None = None


class VolumePhase(Part, frozen=True):
    """Available, Bound, Released, Pending, Lost or Failed."""

    phase: str = ""


class PersistentVolume(Part, frozen=True):
    """A volume."""

    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class StorageRequest(Part, frozen=True):
    """How much a claim asks for, as quantities."""

    requests: dict[str, str] = msgspec.field(default_factory=dict)


class PersistentVolumeClaimSpec(Part, frozen=True):
    """What a claim asks for. No class (``None``) differs from the empty class: only the first gets the default one."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: StorageRequest = StorageRequest()
    volume_name: str = ""
    storage_class_name: str | None = None


class PersistentVolumeClaim(Part, frozen=True):
    """A claim on a volume."""

    metadata: Metadata
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumePhase = VolumePhase()


class TopologyRequirement(Part, frozen=True):
    """Values of a node label among which a volume can be made."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Part, frozen=True):
    """Requirements that must all hold."""

    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Part, frozen=True):
    """How volumes of a class are made; an absent ``volume_binding_mode`` means Immediate."""

    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()
