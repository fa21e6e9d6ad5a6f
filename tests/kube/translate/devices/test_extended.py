"""Extended resources that device classes back, as requests of a claim; the live tests compare with kube-scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.kube.resources.objects import DEVICE_CLASS, RESOURCE_CLAIM
from slacktide.kube.translate.devices.claims import ExtendedAsk, asked_by, backed_by, made_for
from support import made_objects
from support.made_objects import container, decoded

GPU, FAST = "d.example/gpu", "d.example/fast"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
BACKED = {GPU: "gpu", FAST: "fast"}


def service(name: str, resource: str = "", created: str = "2026-01-01T00:00:00Z") -> Any:
    spec = {"extendedResourceName": resource} if resource else {}
    return decoded(DEVICE_CLASS, {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec})


def ask(*containers: Any, init: tuple[Any, ...] = ()) -> ExtendedAsk:
    found = asked_by(made_objects.pod(containers=list(containers), initContainers=list(init)), BACKED)
    assert found is not None
    return found


def asks(found: ExtendedAsk, *given: str) -> tuple[list[tuple[str, int]], list[tuple[str, str, str]]]:
    requests, mappings = found.requests(given)
    return [(one.name, one.exactly.count) for one in requests if one.exactly], [(*one,) for one in mappings]


def test_a_class_backs_the_resource_of_its_name_and_the_one_it_says() -> None:
    found = backed_by([service("a", GPU), service("b")])
    assert found == {GPU: "a", f"{IMPLICIT}a": "a", f"{IMPLICIT}b": "b"}


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_classes_of_one_resource_the_younger_one_counts_and_of_two_alike_the_first_by_name(turn: int) -> None:
    assert backed_by([service("a", GPU), service("b", GPU, "2026-01-02T00:00:00Z")][::turn])[GPU] == "b"
    assert backed_by([service("a", GPU), service("b", GPU)][::turn])[GPU] == "a"


def test_who_asks_for_nothing_that_a_class_backs_is_not_concerned() -> None:
    containers = [container("c", cpu="1", **{"other.example/gpu": "1", GPU: "0"})]
    assert asked_by(made_objects.pod(containers=containers), BACKED) is None
    assert asked_by(made_objects.pod(containers=[{"name": "bare"}]), BACKED) is None


def test_requests_are_named_by_container_and_place_among_all_that_it_asks_for() -> None:
    found = ask(container("x", cpu="1"), container("y", cpu="1", **{GPU: "2", FAST: "1"}))
    requests, mappings = asks(found)
    assert requests == [("container-1-request-1", 1), ("container-1-request-2", 2)]
    assert mappings == [("y", FAST, "container-1-request-1"), ("y", GPU, "container-1-request-2")]


def test_a_node_that_has_a_resource_itself_gets_no_request_for_it() -> None:
    found = ask(container("x", **{GPU: "2", FAST: "1"}))
    assert asks(found, GPU) == ([("container-0-request-0", 1)], [("x", FAST, "container-0-request-0")])
    assert asks(found, GPU, FAST) == ([], [])
    metadata = made_objects.pod().metadata
    assert found.claim(metadata, frozenset({GPU, FAST})) is None
    assert found.claim(metadata) is not None


def test_init_containers_use_what_later_containers_get_and_share_what_the_largest_needs_beyond() -> None:
    init = (
        container("small", **{GPU: "4"}),
        container("sidecar", "Always", **{GPU: "1"}),
        container("large", **{GPU: "5"}),
        container("content", **{GPU: "1"}),
    )
    requests, mappings = asks(ask(container("main", **{GPU: "2"}), init=init))
    # 'small' uses those of sidecar and main, 3, and needs one more; 'large' only those of main, and needs three more.
    assert requests == [("container-1-request-0", 1), ("container-2-request-0", 3), ("container-4-request-0", 2)]
    assert mappings == [
        ("sidecar", GPU, "container-1-request-0"),
        ("main", GPU, "container-4-request-0"),
        ("small", GPU, "container-1-request-0"),
        ("small", GPU, "container-4-request-0"),
        ("small", GPU, "container-2-request-0"),
        ("large", GPU, "container-4-request-0"),
        ("large", GPU, "container-2-request-0"),
        ("content", GPU, "container-4-request-0"),
    ]


def test_only_a_claim_that_a_scheduler_made_is_one_for_extended_resources() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    marks = {"resource.kubernetes.io/extended-resource-claim": "true"}
    metadata = {"name": "c", "namespace": "default", "uid": "c", "ownerReferences": [owner], "annotations": marks}
    assert made_for(decoded(RESOURCE_CLAIM, {"metadata": metadata})) == "u"
    assert made_for(decoded(RESOURCE_CLAIM, {"metadata": metadata | {"annotations": {}}})) == ""
    assert made_for(decoded(RESOURCE_CLAIM, {"metadata": metadata | {"ownerReferences": []}})) == ""
