"""Workloads of every kind around one pod template, for live tests."""

from __future__ import annotations

from typing import Any

KINDS = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
CLASS = "slacktide.io/class"
SLO = "slacktide.io/slo"
APPROACH = "slacktide.io/approach"


def workload(
    kind: str,
    annotations: dict[str, str] | None = None,
    *,
    service_class: str | None = None,
    namespace: str = "default",
    name: str = "probe",
    scheduler: str = "slacktide",
    **spec: Any,
) -> dict[str, Any]:
    """A workload of a kind whose pods have these annotations, class label and further fields of their spec."""
    labels = {"app": name} | ({CLASS: service_class} if service_class is not None else {})
    restart = {"restartPolicy": "Never"} if kind in ("Job", "CronJob") else {}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    pod = {
        "metadata": {"labels": labels, "annotations": annotations or {}},
        "spec": {"schedulerName": scheduler, "containers": [container], **restart, **spec},
    }
    metadata = {"name": name, "namespace": namespace}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": pod["metadata"] | metadata, "spec": pod["spec"]}
    group = "batch" if kind in ("Job", "CronJob") else "apps"
    body: dict[str, Any] = {"template": pod}
    if group == "apps":
        body["selector"] = {"matchLabels": {"app": name}}
    if kind == "StatefulSet":
        body["serviceName"] = name
    if kind == "CronJob":
        body = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": body}}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": body}
