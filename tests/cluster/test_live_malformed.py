"""What a real API server lets in though it makes no sense, and definitions that are deleted while the scheduler runs.

Nobody else notices: after each of them a canary, an ordinary pod, is created and must be bound within seconds. Whatever
else makes no sense: ``simulated/test_nonsense.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster.disturbing import brief, three_classes
from cluster.installation import MANIFESTS
from cluster.labtools import pod, until
from cluster.running import CLASSES
from cluster.ward import LEDGERS, NUMBERS, PODS, Ward, expressions, warded
from slacktide.lab import ApiError, Binaries

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


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


def impossible_quantities(ward: Ward) -> None:
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


def huge_selectors(ward: Ward) -> None:
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


def test_what_the_api_server_lets_in_makes_nobody_else_wait(ward: Ward) -> None:
    impossible_quantities(ward)
    huge_selectors(ward)


def test_the_definitions_are_deleted_while_it_runs(ward: Ward) -> None:
    ward.create("keeper")
    ward.has_ledger("pod-keeper")
    ward.plane.api.delete(f"{DEFINITIONS}/availabilities.slacktide.io")
    until(lambda: ward.serves_not(LEDGERS), "ledgers are gone")
    ward.canary()
    ward.kubectl.ok("apply", "-f", str(MANIFESTS / "01-availabilities.yaml"))
    ward.create("writer")
    ward.has_ledger("pod-writer")
    ward.plane.api.delete(f"{DEFINITIONS}/serviceclasses.slacktide.io")
    until(lambda: ward.serves_not(CLASSES), "classes are gone")
    ward.create("classless")
    ward.waits("classless", "does not exist")
    assert ward.scheduler.component.running
    ward.kubectl.ok("apply", "-f", str(MANIFESTS / "00-serviceclasses.yaml"))
    until(lambda: _classes_exist(ward), "classes can be made again")
    ward.bound("classless")
    ward.canary()
    ward.remove("keeper", "writer", "classless")


def _classes_exist(ward: Ward) -> bool:
    try:
        three_classes(ward.plane.api)
    except ApiError as error:
        return error.status == 409
    return True


def test_all_this_left_no_mark(ward: Ward) -> None:
    assert json.dumps(ward.scheduler.complaints()) == "[]"
    ward.canary()
