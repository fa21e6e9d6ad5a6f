"""Pods that make no sense: each waits with a reason, nobody else notices, the scheduler goes on.

After each of them a canary, an ordinary pod, is created and must be bound within seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from cluster.disturbing import brief
from cluster.labtools import pod
from cluster.ward import NUMBERS, PODS, Ward, expressions, warded
from slacktide.lab import ApiError, Binaries


@pytest.fixture(scope="module")
def ward(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    with warded(binaries, tmp_path_factory.mktemp("malformed")) as found:
        yield found


QUANTITIES = {
    "memory": ("9223372036854775807", "1e18", "8Ei", "9999999999999999999", "1e30", "0.5", "1m", "1e25"),
    "cpu": ("1e12", "9223372036854775807", "1n", "1e30", "0.000000001"),
    "example.com/thing": ("9223372036854775807", "1e18", "1"),
}
"""By resource; what is less than a node has is bound, all else waits."""
SMALL = {"0.5", "1m", "1n", "0.000000001"}


def test_impossible_quantities(ward: Ward) -> None:
    names = []
    for resource, values in QUANTITIES.items():
        for value in values:
            name = f"quantity-{next(NUMBERS)}"
            body = pod(name, "1m", "1Mi", **brief("gold"))
            asked = {**body["spec"]["containers"][0]["resources"]["requests"], resource: value}
            resources = {"requests": asked, "limits": asked}
            body["spec"]["containers"] = [{"name": f"c{i}", "image": "none", "resources": resources} for i in range(3)]
            if ward.posted(PODS, body):
                names.append((name, value))
    assert len(names) >= 10
    for name, value in names:
        if value in SMALL:
            ward.bound(name)
        else:
            ward.waits(name, "Insufficient")
    ward.canary()
    ward.again()
    ward.canary()
    ward.remove(*(name for name, _ in names))


def test_huge_selectors(ward: Ward) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    peers = {"labelSelector": {"matchExpressions": expressions(300, 30)}, "topologyKey": "kubernetes.io/hostname"}
    terms = [{"matchExpressions": expressions(20, 20)} for _ in range(200)]
    spread = {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    huge: dict[str, dict[str, Any]] = {
        "node-terms": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}},
        "node-labels": {"nodeSelector": {f"key-{i}": "value" for i in range(2000)}},
        "neighbours": {"affinity": {"podAntiAffinity": {required: [peers]}}},
        "tolerations": {"tolerations": [{"key": f"key-{i}", "operator": "Exists"} for i in range(2000)]},
        "spread": {"topologySpreadConstraints": [{**spread, "maxSkew": 2**31 - 1, "minDomains": 2**31 - 1}]},
        "greater": {"nodeSelector": {}, "affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["99999999999999999999999"]}]}]}}}},
    }  # fmt: skip
    taken = [name for name, spec in huge.items() if ward.accepted(partial(ward.create, name, **spec))]
    assert len(taken) >= 5
    ward.canary()
    ward.waits("node-labels", "labels of the node selector: found 2000, expected 100 at most")
    ward.waits("node-terms", "terms of node affinity: found 200, expected 100 at most")
    ward.waits("tolerations", r"tolerations: found \d+, expected 100 at most")  # the API server adds some
    ward.bound("spread")
    if "greater" in taken:
        ward.waits("greater", "didn't match|Gt")
    ward.again()
    ward.canary()
    ward.remove(*huge)


def test_labels_and_annotations_that_say_nothing(ward: Ward) -> None:
    slo, approach, label = "slacktide.io/slo", "slacktide.io/approach", "slacktide.io/class"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"labels": {label: "platinum"}}, "service class 'platinum': does not exist"),
        ({"annotations": {approach: "sideways"}}, "annotation .*approach: found 'sideways'"),
        *(
            ({"annotations": {slo: value}}, f"annotation .*slo: found {value!r}")
            for value in ("much", "nan", "-1", "0", "1.5", "inf", "1e-400", "1e-300", "")
        ),
    ]
    names = []
    for settings, reason in wrong:
        names.append(f"says-nothing-{next(NUMBERS)}")
        with suppress(ApiError):  # the admission policy may refuse it at the door
            ward.create(names[-1], **settings)
            ward.waits(names[-1], reason)
    ward.canary()
    ward.again()
    ward.canary()
    ward.remove(*names)


def test_owners_that_do_not_exist_or_own_each_other(ward: Ward) -> None:
    for number, kind in enumerate(("ReplicaSet", "Job", "StatefulSet", "Dragon")):
        group = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}.get(kind, "example.com/v1")
        body = pod(f"orphan-{number}", "10m", **brief("bronze"))
        uid = f"00000000-0000-0000-0000-00000000000{number}"
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": group, "kind": kind, "name": "nobody", "uid": uid, "controller": True}
        ]
        ward.plane.api.post(PODS, body)
    ward.canary()
    ward.remove(*(f"orphan-{number}" for number in range(4)))


def test_a_pod_that_leaves_for_ever(ward: Ward) -> None:
    body = pod("for-ever", "10m", **{**brief("bronze"), "terminationGracePeriodSeconds": 3 * 10**11})
    body["metadata"]["annotations"]["slacktide.io/shutdown-seconds"] = "9999"
    if ward.posted(PODS, body):
        ward.bound("for-ever")
        with suppress(ApiError):
            ward.plane.api.delete(f"{PODS}/for-ever")
        ward.canary()
        ward.again()
        ward.canary()
        ward.remove("for-ever")


def test_what_no_api_server_would_say(ward: Ward) -> None:
    """Unknown operators, quantities and types: as a newer or a broken API server might send them."""
    ward.lies = {
        b'"key":"lie-operator","operator":"Exists"': b'"key":"lie-operator","operator":"Nearby"',
        b'"lie-kind":"12345"': b'"lie-kind":1234567',
        b'"cpu":"777m"': b'"cpu":"abcd"',
        b'"lie-null":"gone"': b'"lie-null":null  ',
    }
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    lying = {"matchExpressions": [{"key": "lie-operator", "operator": "Exists"}]}
    try:
        ward.create("operator", affinity={"nodeAffinity": {required: {"nodeSelectorTerms": [lying]}}})
        term = {"labelSelector": lying, "topologyKey": "kubernetes.io/hostname"}
        ward.create("neighbour", affinity={"podAntiAffinity": {required: [term]}})
        ward.create("quantity", cpu="777m")
        ward.create("kind", labels={"lie-kind": "12345"})
        ward.create("null", labels={"lie-null": "gone"})
        ward.waits("operator", "Nearby")
        ward.waits("neighbour", "Nearby")
        ward.waits("quantity", "abcd")
        for name in ("kind", "null"):
            ward.waits(name, "malformed|cannot be read")
        ward.canary()
        ward.again()
        ward.canary()
        for name in ("kind", "null"):
            ward.waits(name, "malformed|cannot be read")
    finally:
        ward.lies = {}
    ward.again()
    for name in ("kind", "null", "quantity"):
        ward.bound(name)
    ward.remove("operator", "neighbour", "quantity", "kind", "null")


def test_all_this_left_no_mark(ward: Ward) -> None:
    assert json.dumps(ward.scheduler.complaints()) == "[]"
    ward.canary()
