"""What tests do to a lab again and again: make workloads, wait, count, clean up."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Any

from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH
from slacktide.lab import Api, ApiError
from slacktide.lab.nodes import ready_condition

NUMBERS = itertools.count(1)
OWNERS = (
    ("/apis/apps/v1", ("deployments", "statefulsets", "daemonsets", "replicasets")),
    ("/apis/batch/v1", ("cronjobs", "jobs")),
    ("/api/v1", ("replicationcontrollers",)),
    ("/apis/policy/v1", ("poddisruptionbudgets",)),
)
HANG_SECONDS = 180.0
"""What has not come by then never comes: waits end with what they wait for, and this only ends a hang."""


def until(condition: Callable[[], Any], what: object = "", seconds: float = HANG_SECONDS) -> Any:
    """The condition's first true value; fails when there is none in time, and says ``what`` it is then."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds} s: {what or condition}"
        time.sleep(0.05)


def pod(name: str, cpu: str = "100m", memory: str = "64Mi", **settings: Any) -> dict[str, Any]:
    """A pod; ``labels``, ``annotations`` go to its metadata, everything else to its spec."""
    return {"apiVersion": "v1", "kind": "Pod", **_template(cpu, memory, {"name": name}, settings)}


def deployment(name: str, replicas: int, cpu: str = "100m", memory: str = "64Mi", **settings: Any) -> dict[str, Any]:
    """A Deployment whose pods have the label app=NAME; ``settings`` as of ``pod``."""
    settings["labels"] = {"app": name, **settings.get("labels", {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": _template(cpu, memory, {}, settings),
        },
    }


def job(name: str, run_seconds: float, cpu: str = "100m", memory: str = "64Mi", **settings: Any) -> dict[str, Any]:
    """A Job of one pod that ends well so long after it became ready; ``settings`` as of ``pod``."""
    settings["annotations"] = {"slacktide.io/run-seconds": str(run_seconds), **settings.get("annotations", {})}
    settings.setdefault("restartPolicy", "Never")
    template = _template(cpu, memory, {}, settings)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def _template(cpu: str, memory: str, metadata: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    metadata |= {key: settings.pop(key) for key in ("labels", "annotations") if key in settings}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **settings}}


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def pods(api: Api, namespace: str, phase: str = "") -> list[dict[str, Any]]:
    """The pods of a namespace, in one phase if it is named."""
    every: list[dict[str, Any]] = api.get(pods_path(namespace))["items"]
    return [one for one in every if not phase or one["status"].get("phase") == phase]


def bind(api: Api, namespace: str, name: str, node: str) -> None:
    """What a scheduler does in the end."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    api.post(f"{pods_path(namespace)}/{name}/binding", body)


def condition(one: dict[str, Any], kind: str) -> dict[str, Any]:
    """An object's condition of that type; empty if it has none."""
    found = (each for each in one.get("status", {}).get("conditions") or [] if each["type"] == kind)
    return next(found, {})


def readiness(is_ready: bool, at: str) -> list[dict[str, Any]]:
    """The conditions Ready and ContainersReady of a pod as its kubelet writes them, for a strategic merge."""
    said = {"status": str(is_ready), "reason": None if is_ready else "ContainersNotReady", "lastTransitionTime": at}
    return [{"type": kind, **said} for kind in ("Ready", "ContainersReady")]


def set_ready(api: Api, name: str, ready: bool) -> None:
    """Lets a node's kubelet say that it is (not) ready; the controllers then taint it, and in the end evict."""
    change = {"status": {"conditions": [ready_condition(ready)]}}
    api.patch(f"/api/v1/nodes/{name}/status", change, STRATEGIC_MERGE_PATCH)


def new_namespace(api: Api) -> str:
    name = f"test-{os.getpid()}-{next(NUMBERS)}"
    api.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def remove_namespace(api: Api, name: str) -> None:
    """Removes what a namespace holds and marks it for removal, without waiting for the latter."""
    _remove_objects(api, name)
    api.delete(f"/api/v1/namespaces/{name}")


def without_objects(api: Api) -> None:
    """Removes all nodes and pods, and whatever makes pods; returns when they are gone."""
    for space in api.get("/api/v1/namespaces")["items"]:
        if not space["metadata"]["name"].startswith("kube-"):
            _remove_objects(api, space["metadata"]["name"])
    until(lambda: not api.get("/api/v1/pods")["items"], "all pods are gone")
    api.delete("/api/v1/nodes")


def _remove_objects(api: Api, namespace: str) -> None:
    for group, kinds in OWNERS:
        for kind in kinds:
            path = f"{group}/namespaces/{namespace}/{kind}"
            if api.get(path)["items"]:
                api.delete(f"{path}?propagationPolicy=Background")
    for one in pods(api, namespace):
        try:
            api.delete(f"{pods_path(namespace)}/{one['metadata']['name']}", grace_seconds=0)
        except ApiError as error:
            if error.status != 404:
                raise
