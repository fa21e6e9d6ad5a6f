"""Objects of a small cluster, and audit events about them, as an API server writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]
BEGIN = 1_790_000_000.0
"""2026-09-21T14:13:20Z."""
SECRET = "planted-secret"


def when(seconds: float, *, micro: bool = False) -> str:
    from slacktide.kube.client.metadata import rfc3339

    return rfc3339(BEGIN + seconds) if micro else rfc3339(float(int(BEGIN + seconds))).replace(".000000Z", "Z")


def node(name: str, cpu: str = "4", created: float = -1000.0, *, ready: bool = True, **labels: str) -> Json:
    has = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "lastTransitionTime": when(created)}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": when(created),
                     "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {}, "status": {"allocatable": has, "conditions": [condition]},
    }  # fmt: skip


def deployment(name: str, replicas: int, created: float = -500.0, namespace: str = "shop") -> list[Json]:
    """A Deployment and its ReplicaSet."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": []}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": f"uid-{name}", "controller": True}
    about = {"namespace": namespace, "resourceVersion": "2", "creationTimestamp": when(created)}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "uid": f"uid-{name}", **about},
         "spec": spec, "status": {}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet",
         "metadata": {"name": f"{name}-1", "uid": f"uid-{name}-1", **about, "ownerReferences": [owner]}, "spec": spec,
         "status": {}},
    ]  # fmt: skip


def pod(
    name: str, of: str = "", node: str = "", created: float = -400.0, *, cpu: str = "1", priority: int = 0,
    priority_class: str = "", ready: float | None = None, namespace: str = "shop", kind: str = "ReplicaSet",
    scheduler: str = "default-scheduler", **status: Any,
) -> Json:  # fmt: skip
    """A pod, of the ReplicaSet ``of``-1 where one is named; it is bound a second after it was created."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": f"{of}-1", "uid": f"uid-{of}-1", "controller": True}
    conditions = []
    if node:
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": when(created + 1)})
    if ready is not None:
        conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": when(ready)})
    container = {
        "name": "c", "image": "registry/app:1", "args": [SECRET], "env": [{"name": "PASSWORD", "value": SECRET}],
        "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
    }  # fmt: skip
    spec = {"schedulerName": scheduler, "priority": priority, "priorityClassName": priority_class,
            "terminationGracePeriodSeconds": 5, "containers": [container]}  # fmt: skip
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "3",
                     "creationTimestamp": when(created), "labels": {"app": of or name, "team": "payments"},
                     "annotations": {"note": SECRET}, "ownerReferences": [owner] if of else []},
        "spec": spec | ({"nodeName": node} if node else {}),
        "status": {"phase": "Running" if ready is not None else "Pending", "conditions": conditions, **status},
    }  # fmt: skip


def listed(*objects: Json) -> Json:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


PLURALS = {"Pod": "pods", "Node": "nodes", "Deployment": "deployments", "ReplicaSet": "replicasets", "Job": "jobs"}


class Log:
    """An audit log at a level, event by event; times are seconds from the beginning."""

    def __init__(self, level: str = "RequestResponse") -> None:
        self.level, self.lines, self._version = level, list[str](), 100

    def event(
        self, at: float, verb: str, about: Json, *, asked: Any = None, answer: Any = None, sub: str = "",
        code: int = 200, user: str = "system:admin", name: str | None = None,
    ) -> None:  # fmt: skip
        """An event about an object; an answer gets the next version."""
        group = about["apiVersion"].rpartition("/")[0]
        ref = {"resource": PLURALS[about["kind"]], "namespace": about["metadata"].get("namespace", ""),
               "name": about["metadata"]["name"] if name is None else name, "apiGroup": group, "apiVersion": "v1",
               "subresource": sub}  # fmt: skip
        event = {
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": self.level, "stage": "ResponseComplete",
            "verb": verb, "user": {"username": user}, "objectRef": {key: one for key, one in ref.items() if one},
            "responseStatus": {"code": code}, "stageTimestamp": when(at, micro=True),
        }  # fmt: skip
        if asked is not None and self.level != "Metadata":
            event["requestObject"] = asked
        if answer is not None and self.level == "RequestResponse":
            self._version += 1
            answer = json.loads(json.dumps(answer))
            if "metadata" in answer and "name" in answer["metadata"]:
                answer["metadata"]["resourceVersion"] = str(self._version)
            event["responseObject"] = answer
        self.lines.append(json.dumps(event))

    def creates(self, at: float, one: Json, **more: Any) -> None:
        asked = json.loads(json.dumps(one))
        for name in ("uid", "resourceVersion", "creationTimestamp"):
            asked["metadata"].pop(name)
        self.event(at, "create", one, asked=asked, answer=one, code=201, **more)

    def binds(self, at: float, one: Json, node: str) -> None:
        asked = {"metadata": {"name": one["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
        self.event(at, "create", one, asked=asked, answer={"kind": "Status"}, sub="binding", code=201)
        one["spec"]["nodeName"] = node

    def condition(self, at: float, one: Json, name: str, status: str, reason: str = "", phase: str = "") -> None:
        """A kubelet's patch of the status."""
        found = {"type": name, "status": status, "lastTransitionTime": when(at), "reason": reason}
        others = [old for old in one["status"]["conditions"] if old["type"] != name]
        one["status"] |= {"conditions": [*others, found]} | ({"phase": phase} if phase else {})
        asked = {"status": {"conditions": [found]} | ({"phase": phase} if phase else {})}
        self.event(at, "patch", one, asked=asked, answer=one, sub="status", user="system:node:a")

    def told_to_go(self, at: float, one: Json, grace: float = 5.0, user: str = "system:admin") -> None:
        one["metadata"] |= {"deletionTimestamp": when(at + grace), "deletionGracePeriodSeconds": int(grace)}
        self.event(at, "delete", one, asked={"kind": "DeleteOptions"}, answer=one, user=user)

    def gone(self, at: float, one: Json) -> None:
        one["metadata"] |= {"deletionTimestamp": when(at), "deletionGracePeriodSeconds": 0}
        asked = {"kind": "DeleteOptions", "gracePeriodSeconds": 0}
        self.event(at, "delete", one, asked=asked, answer=one, user="system:node:a")

    def write(self, path: Path) -> Path:
        path.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        return path


def short_log(level: str = "RequestResponse") -> Log:
    """A node, and a pod that comes, runs and goes."""
    log, one = Log(level), pod("p", created=1.0)
    log.creates(0.0, node("a", created=0.0))
    log.creates(1.0, one)
    log.binds(1.5, one, "a")
    log.condition(2.0, one, "Ready", "True", phase="Running")
    log.told_to_go(5.0, one)
    log.gone(6.0, one)
    return log
