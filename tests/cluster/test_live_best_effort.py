"""Disruption budgets where they are best effort, or protect up to a point: who may not be evicted is deleted."""

from __future__ import annotations

from pathlib import Path

from cluster.installation import ACCOUNT
from cluster.kubectl import Json
from cluster.labtools import condition, job, pod, until
from cluster.running import CLASSES, Running, prepared, service_class
from slacktide.lab import Binaries, ControlPlane

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def may_delete(plane: ControlPlane) -> None:
    """The right that docs/kubernetes.md tells to add."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]
    plane.api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "slacktide-deletes"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "slacktide-deletes"}
    subject = {"kind": "ServiceAccount", "namespace": ACCOUNT[0], "name": ACCOUNT[1]}
    body = {"metadata": {"name": "slacktide-deletes"}, "roleRef": role, "subjects": [subject]}
    plane.api.post(f"{RBAC}/clusterrolebindings", body)


def unharmed_by_disruptions(body: Json) -> Json:
    """A Job of ours that fails with its first pod, unless this is disrupted."""
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    body["spec"] |= {"backoffLimit": 0, "podFailurePolicy": {"rules": [ignored]}}
    body["spec"]["template"]["spec"]["schedulerName"] = "slacktide"
    return body


def guards(plane: ControlPlane) -> list[Json]:
    return list(plane.api.get(f"{PODS}?labelSelector=app=guarded")["items"])


def without(found: list[Json], former: Json) -> list[Json]:
    """What is there once the former one is not."""
    uids = [one["metadata"]["uid"] for one in found]
    return [] if former["metadata"]["uid"] in uids else found


def test_a_used_up_budget_protects_nobody_once_the_scheduler_may_delete(binaries: Binaries, tmp_path: Path) -> None:
    plane = prepared(binaries, tmp_path)
    try:
        plane.api.post(CLASSES, service_class("high", 0.999, 1))
        plane.api.post(CLASSES, service_class("low", 0.05, 3, marginSeconds=0.5, overheadLimit=1.0))
        plane.create_nodes(1, cpu="2")
        scheduler = Running(
            plane,
            kube__disruption_budgets="best-effort",
            kube__leader_election=False,
            qos__alpha=0.1,
            scheduler__watchdog=1,
        ).wait_until_leading()
        labels = {"app": "guarded", "slacktide.io/class": "low"}
        plane.api.post(JOBS, unharmed_by_disruptions(job("guarded", 3600, cpu="1500m", labels=labels)))
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
        path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
        plane.api.post(path, {"metadata": {"name": "one"}, "spec": budget})
        (guarded,) = until(lambda: [one for one in guards(plane) if one["spec"].get("nodeName")], "it is bound")
        until(lambda: condition(guards(plane)[0], "Ready").get("status") == "True", "it runs")
        labels = {"slacktide.io/class": "high"}
        plane.api.post(PODS, pod("needs", cpu="1500m", labels=labels, schedulerName="slacktide"))
        until(lambda: "is not evicted" in scheduler.log and "forbidden" in scheduler.log, "the log says why")
        marked = until(lambda: condition(guards(plane)[0], "DisruptionTarget"), "it was marked to go")
        until(lambda: condition(guards(plane)[0], "DisruptionTarget")["status"] == "False", f"it stays: {marked}")
        assert "deletionTimestamp" not in guards(plane)[0]["metadata"]
        may_delete(plane)
        until(lambda: plane.api.get(f"{PODS}/needs")["spec"].get("nodeName"), "whoever needs its place has it")
        (new,) = until(lambda: without(guards(plane), guarded), "another one waits, and the guarded one is gone")
        assert not new["spec"].get("nodeName")
        status = plane.api.get(f"{JOBS}/guarded")["status"]
        assert not condition({"status": status}, "Failed")
        assert not status.get("failed")
        assert [one for one in scheduler.complaints() if "Traceback" in one] == []
        scheduler.stop()
    finally:
        plane.kill()
