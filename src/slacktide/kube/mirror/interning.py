"""Pods of one template share what is equal in them: in a cluster of thousands of pods there are few templates."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import force_setattr

from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.client.reflector import Handler
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.pod_terms import READ

SHARED = (*READ, "containers", "init_containers", "overhead", "resources", "volumes")
"""Parts of a pod's spec that come from its template."""
MOST_TEMPLATES = 4096
"""Beyond that sharing begins anew; what is shared already stays so."""

Parts = tuple[object, ...]


class TemplateInterning:
    """A handler that passes pods on with their templates' parts and labels shared: half the memory of a pod."""

    def __init__(self, handler: Handler[Pod]) -> None:
        self._handler = handler
        self._encode = msgspec.msgpack.Encoder().encode
        self._known: dict[bytes, Parts] = {}

    def replaced(self, objects: Sequence[Pod]) -> None:
        for pod in objects:
            self._share(pod)
        self._handler.replaced(objects)

    def changed(self, pod: Pod) -> None:
        self._share(pod)
        self._handler.changed(pod)

    def deleted(self, identity: Identity, last: Pod | None) -> None:
        self._handler.deleted(identity, last)

    def malformed(self, problem: Malformed) -> None:
        self._handler.malformed(problem)

    def _share(self, pod: Pod) -> None:
        spec = pod.spec
        parts: Parts = (pod.metadata.labels, *(getattr(spec, name) for name in SHARED))
        key = self._encode(parts)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_TEMPLATES:
                self._known.clear()
            self._known[key] = parts
            return
        # Nobody has seen this pod yet, and what takes the place of its parts is equal to them.
        force_setattr(pod.metadata, "labels", known[0])
        for name, part in zip(SHARED, known[1:], strict=True):
            force_setattr(spec, name, part)
