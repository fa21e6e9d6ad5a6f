"""DeviceTaintRules, where an API server is told to serve them: what an administrator taints is given to nobody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.labtools import condition, new_namespace, pod, pods_path, until
from cluster.running import CLASSES, Running, service_class
from slacktide.lab import Binaries, ControlPlane

DEVICES = "/apis/resource.k8s.io/v1"
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
FLAGS = {
    "kube-apiserver": ["--runtime-config=resource.k8s.io/v1beta2=true", "--feature-gates=DRADeviceTaintRules=true"]
}
DRIVER = "rules.example"


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    plane = ControlPlane.create(tmp_path_factory.mktemp("plane") / "lab", binaries, flags=FLAGS)
    plane.start(guarded=True)
    yield plane
    plane.stop()


def test_a_device_that_a_rule_taints_is_given_to_nobody_until_the_rule_is_gone(plane: ControlPlane) -> None:
    api = plane.api
    plane.install()
    (node,) = plane.create_nodes(1, prefix="rules")
    namespace = new_namespace(api)
    api.post(CLASSES, service_class("rules", 0.9, 1, default=True))
    api.post(f"{DEVICES}/deviceclasses", {"metadata": {"name": "rules"}, "spec": {}})
    pool = {"name": "rules", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": [{"name": "one"}]}
    api.post(f"{DEVICES}/resourceslices", {"metadata": {"name": "rules"}, "spec": spec})
    taint = {"key": "example.com/bad", "effect": "NoSchedule"}
    rule = {"metadata": {"name": "bad"}, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}}
    api.post(RULES, rule)
    running = Running(plane).wait_until_leading()
    try:
        requests = [{"name": "r", "exactly": {"deviceClassName": "rules"}}]
        claims = f"{DEVICES}/namespaces/{namespace}/resourceclaims"
        api.post(claims, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})
        named = [{"name": "c", "resourceClaimName": "c"}]
        api.post(pods_path(namespace), pod("p", schedulerName="slacktide", resourceClaims=named))

        def reason() -> str:
            found = api.get(f"{pods_path(namespace)}/p")
            assert not found["spec"].get("nodeName")
            return str(condition(found, "PodScheduled").get("message", ""))

        until(lambda: "too few free devices of class rules" in reason(), "the pod waits for a device")
        api.delete(f"{RULES}/bad")
        until(lambda: api.get(f"{pods_path(namespace)}/p")["spec"].get("nodeName"), "it gets the device")
    finally:
        running.stop()
    assert not running.complaints()
