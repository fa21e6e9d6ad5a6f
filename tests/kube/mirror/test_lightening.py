"""Pods of one template are equal to what came, but for what nobody reads, and share what is equal in them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec

from slacktide.kube.mirror.pod_record import LARGE, MOST_BYTES, SHARED, Lightening
from slacktide.kube.resources.objects import POD, Pod


def decoded(name: str, cpu: str, node: str = "", *, app: str = "one", claim: str = "", **metadata: Any) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    volumes: list[dict[str, Any]] = [{"name": f"kube-api-access-{name}", "projected": {"sources": []}}]
    if claim:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim}})
    spec = {"containers": [container], "tolerations": [{"key": "a"}], "nodeName": node, "volumes": volumes}
    body = {"metadata": {"name": name, "uid": name, "labels": {"app": app}, **metadata}, "spec": spec}
    found = POD.decode(msgspec.json.encode(body))
    assert isinstance(found, Pod)
    return found


def without_volumes(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=()))


def test_pods_of_one_template_share_it_and_stay_what_they_are() -> None:
    lighten = Lightening()
    pods = [("a", "1", ""), ("b", "1", "node-1"), ("c", "2", "")]
    first, second, third = (lighten(decoded(*one)) for one in pods)
    assert [first, second, third] == [without_volumes(decoded(*one)) for one in pods]
    assert all(getattr(first.spec, name) is getattr(second.spec, name) for name in SHARED)
    assert first.metadata.labels is second.metadata.labels
    assert third.spec.containers is not first.spec.containers


def test_pods_with_labels_of_their_own_share_their_template_all_the_same() -> None:
    lighten = Lightening()
    first, second = lighten(decoded("a", "1", app="one")), lighten(decoded("b", "1", app="two"))
    assert (first.metadata.labels, second.metadata.labels) == ({"app": "one"}, {"app": "two"})
    assert first.spec.containers is second.spec.containers


def test_volumes_that_are_claims_and_annotations_that_are_ours_stay() -> None:
    said = {"slacktide.io/slo": "0.9", "kubectl.kubernetes.io/last-applied-configuration": "{...}"}
    found = Lightening()(decoded("a", "1", claim="data", annotations=said))
    assert found.metadata.annotations == {"slacktide.io/slo": "0.9"}
    assert [(one.name, one.persistent_volume_claim is not None) for one in found.spec.volumes] == [("data", True)]


def test_what_is_kept_to_be_shared_is_bounded_whatever_pods_say() -> None:
    """Pods of which each says hundreds of kilobytes that no other says."""
    lighten = Lightening()
    small, again = (lighten(decoded(name, "1", claim="data")) for name in "ab")
    assert small.spec.containers is again.spec.containers
    tracemalloc.start()
    try:
        for number in range(300):
            lighten(decoded("p", "1", claim="data", labels={f"l{number}": "v" * (LARGE - 100)}))
            lighten(decoded("p", "1", claim="data", labels={f"l{number}": "v" * 4 * LARGE}))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 2 * MOST_BYTES
