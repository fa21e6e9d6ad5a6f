"""Disruption budgets where they are best effort: who may not be evicted is deleted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from cluster.installation import ACCOUNT
from cluster.labtools import pod, until
from cluster.running import CLASSES, Running, prepared, service_class
from slacktide.lab import Binaries, ControlPlane

PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def may_delete(plane: ControlPlane) -> None:
    """The right that docs/kubernetes.md tells to add."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]
    plane.api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "slacktide-deletes"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "slacktide-deletes"}
    subject = {"kind": "ServiceAccount", "namespace": ACCOUNT[0], "name": ACCOUNT[1]}
    body = {"metadata": {"name": "slacktide-deletes"}, "roleRef": role, "subjects": [subject]}
    plane.api.post(f"{RBAC}/clusterrolebindings", body)


@pytest.mark.parametrize("right", [True, False])
def test_a_used_up_budget_protects_nobody(binaries: Binaries, tmp_path: Path, right: bool) -> None:
    plane = prepared(binaries, tmp_path)
    try:
        plane.api.post(CLASSES, service_class("high", 0.999, 1))
        plane.api.post(CLASSES, service_class("low", 0.05, 3, marginSeconds=0.5, overheadLimit=1.0))
        plane.create_nodes(1, cpu="2")
        if right:
            may_delete(plane)
        scheduler = Running(
            plane, kube__disruption_budgets="best-effort", kube__leader_election=False, qos__alpha=0.1
        ).wait_until_leading()
        labels = {"app": "guarded", "slacktide.io/class": "low"}
        plane.api.post(PODS, pod("guarded", cpu="1500m", labels=labels, schedulerName="slacktide"))
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        plane.api.post(path, {"metadata": {"name": "one"}, "spec": budget})
        until(lambda: plane.api.get(f"{PODS}/guarded")["spec"].get("nodeName"), "the guarded one is bound")
        time.sleep(2)
        labels = {"slacktide.io/class": "high"}
        plane.api.post(PODS, pod("needs", cpu="1500m", labels=labels, schedulerName="slacktide"))
        if right:
            until(lambda: plane.api.get(f"{PODS}/needs")["spec"].get("nodeName"), "whoever needs its place has it")
            until(
                lambda: [one["metadata"]["name"] for one in plane.api.get(PODS)["items"]] == ["needs"],
                "only it is left",
            )
        else:
            until(lambda: "is not evicted" in scheduler.log and "forbidden" in scheduler.log, "the log says why")
            assert "deletionTimestamp" not in plane.api.get(f"{PODS}/guarded")["metadata"]
        assert [one for one in scheduler.complaints() if "Traceback" in one] == []
        scheduler.stop()
    finally:
        plane.kill()
