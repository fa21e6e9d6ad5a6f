"""Persistent volumes, claims on them, their classes, and what drivers say of nodes and storage."""

from __future__ import annotations

import msgspec

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import LabelSelector, Metadata, NodeSelector, Part, Reference
from slacktide.kube.resources.pods import Resources


class VolumeNodeAffinity(Part, frozen=True):
    """From which nodes a volume can be used."""

    required: NodeSelector | None = None


class CSISource(Part, frozen=True):
    """A volume of a CSI driver; driver and handle say which one it is."""

    driver: str
    volume_handle: str


class PersistentVolumeSpec(Part, frozen=True):
    """What a volume is; ``capacity`` as quantities. No ``volume_mode`` means Filesystem."""

    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    claim_ref: Reference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    csi: CSISource | None = None


class VolumePhase(Part, frozen=True):
    """Available, Bound, Released, Pending, Lost or Failed."""

    phase: str = ""


class PersistentVolume(Part, frozen=True):
    """A volume."""

    metadata: Metadata
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class PersistentVolumeClaimSpec(Part, frozen=True):
    """What a claim asks for. No class (``None``) differs from the empty class: only the first gets the default one."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: Resources = Resources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None


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


class VolumeLimit(Part, frozen=True):
    """How many volumes of a driver a node can have attached; no count means no limit."""

    count: int | None = None


class NodeDriver(Part, frozen=True):
    """A driver that is installed on a node."""

    name: str
    allocatable: VolumeLimit | None = None


class CSINodeSpec(Part, frozen=True):
    """All drivers of a node."""

    drivers: tuple[NodeDriver, ...] | None = None


class CSINode(Part, frozen=True):
    """What CSI drivers say of the node of the same name."""

    metadata: Metadata
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Part, frozen=True):
    """What a driver asks of schedulers."""

    storage_capacity: bool = False


class CSIDriver(Part, frozen=True):
    """A driver."""

    metadata: Metadata
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Part, frozen=True):
    """How much storage of a class there is for the nodes that are selected; quantities, empty where unknown."""

    metadata: Metadata
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str = ""
    maximum_volume_size: str = ""


class AttachmentSource(Part, frozen=True):
    """What is attached; nothing is read of volumes that are no PersistentVolume."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Part, frozen=True):
    """Which driver attaches what to which node."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Part, frozen=True):
    """A volume that is attached to a node, or is about to be."""

    metadata: Metadata
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


PERSISTENT_VOLUME = Kind(PersistentVolume, "v1", "persistentvolumes", namespaced=False)
PERSISTENT_VOLUME_CLAIM = Kind(PersistentVolumeClaim, "v1", "persistentvolumeclaims", namespaced=True)
STORAGE_CLASS = Kind(StorageClass, "storage.k8s.io/v1", "storageclasses", namespaced=False)
CSI_NODE = Kind(CSINode, "storage.k8s.io/v1", "csinodes", namespaced=False)
CSI_DRIVER = Kind(CSIDriver, "storage.k8s.io/v1", "csidrivers", namespaced=False)
CSI_STORAGE_CAPACITY = Kind(CSIStorageCapacity, "storage.k8s.io/v1", "csistoragecapacities", namespaced=True)
VOLUME_ATTACHMENT = Kind(VolumeAttachment, "storage.k8s.io/v1", "volumeattachments", namespaced=False)
