"""Pods of one template are equal to what came, and share what is equal in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from slacktide.kube.client.kinds import Identity, Malformed
from slacktide.kube.mirror.interning import SHARED, TemplateInterning
from slacktide.kube.resources.objects import POD, Pod


class Seen:
    def __init__(self) -> None:
        self.pods: list[Pod] = []

    def replaced(self, objects: Sequence[Pod]) -> None:
        self.pods += objects

    def changed(self, pod: Pod) -> None:
        self.pods.append(pod)

    def deleted(self, identity: Identity, last: Pod | None) -> None: ...

    def malformed(self, problem: Malformed) -> None: ...


def decoded(name: str, cpu: str, node: str = "") -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    spec: dict[str, Any] = {"containers": [container], "tolerations": [{"key": "a"}], "nodeName": node}
    body = {"metadata": {"name": name, "uid": name, "labels": {"app": "one"}}, "spec": spec}
    found = POD.decode(msgspec.json.encode(body))
    assert isinstance(found, Pod)
    return found


def test_pods_of_one_template_share_it_and_stay_what_they_are() -> None:
    seen = Seen()
    sharing = TemplateInterning(seen)
    sharing.replaced([decoded("a", "1")])
    sharing.changed(decoded("b", "1", "node-1"))
    sharing.changed(decoded("c", "2"))
    first, second, third = seen.pods
    assert [first, second, third] == [decoded("a", "1"), decoded("b", "1", "node-1"), decoded("c", "2")]
    assert all(getattr(first.spec, name) is getattr(second.spec, name) for name in SHARED)
    assert first.metadata.labels is second.metadata.labels
    assert third.spec.containers is not first.spec.containers
