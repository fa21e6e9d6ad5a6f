"""Pods take less memory: those of one template share what is equal in them, and what nobody reads is left out."""

from __future__ import annotations

from hashlib import blake2b
from sys import intern

import msgspec
from msgspec.structs import force_setattr

from slacktide.kube.resources.objects import Pod, Volume
from slacktide.kube.translate.owners import bounded
from slacktide.kube.translate.pod_terms import READ

SHARED = (*READ, "containers", "init_containers", "overhead", "resources", "volumes")
"""Parts of a pod's spec that come from its template."""
MOST_KNOWN, MOST_BYTES = 4096, 2**24
"""Beyond so many, or so many bytes as they are encoded, sharing begins anew; what is shared already stays so."""
LARGE = 2**17
"""What takes more bytes is not shared: a template of that size is none that many pods have."""
ANNOTATIONS = ("slacktide.io/", "kueue.x-k8s.io/pod-group-")
"""Annotations that begin so are read; others, of up to 256 KiB a pod, are not kept."""

Parts = tuple[object, ...]


class Lightening:
    """Gives pods the parts and labels that they share with others, as there are few templates: half their memory."""

    def __init__(self) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._labels: dict[bytes, Parts] = {}
        self._specs: dict[bytes, Parts] = {}
        self._bytes = 0

    def __call__(self, pod: Pod) -> Pod:
        """The pod, which nobody else has seen yet."""
        metadata, spec = pod.metadata, pod.spec
        # Each pod has a volume with a name of its own, in which its token is: only what is said of a volume ties it.
        tied = tuple(one for one in spec.volumes if one != Volume(one.name))
        read = {key: value for key, value in metadata.annotations.items() if key.startswith(ANNOTATIONS)}
        force_setattr(metadata, "annotations", read)
        # A pod of a StatefulSet has labels of its own, and its template's spec.
        shorter = tuple(map(bounded, metadata.owner_references))
        labels, annotations, owners = self._shared(self._labels, (metadata.labels, read, shorter))
        force_setattr(metadata, "labels", labels)
        force_setattr(metadata, "annotations", annotations)
        force_setattr(metadata, "owner_references", owners)
        force_setattr(spec, "volumes", tied)
        parts = tuple(getattr(spec, name) for name in SHARED)
        for name, part in zip(SHARED, self._shared(self._specs, parts), strict=True):
            force_setattr(spec, name, part)
        for one in pod.status.conditions:
            force_setattr(one, "type", intern(one.type))
            force_setattr(one, "status", intern(one.status))
        return pod

    def _shared(self, known: dict[bytes, Parts], parts: Parts) -> Parts:
        """Parts that are equal to these."""
        encoded = self._encode(parts)
        if len(encoded) > LARGE:
            return parts
        key = blake2b(encoded, digest_size=16).digest()
        found = known.get(key)
        if found is not None:
            return found
        self._bytes += len(encoded)
        if len(known) >= MOST_KNOWN or self._bytes > MOST_BYTES:
            self._labels.clear()
            self._specs.clear()
            self._bytes = len(encoded)
        known[key] = parts
        return parts
