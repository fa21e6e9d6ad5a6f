"""Series by the names of kube-state-metrics, made from the objects of a control plane, and a Prometheus that
scrapes them.

kube-state-metrics is a program of its own; names and labels are those of its documentation (v2), as far as a past asks
for them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from slacktide.kube.client.metadata import unix_seconds
from slacktide.kube.client.quantities import quantity
from slacktide.kube.resources import objects
from slacktide.lab import ControlPlane
from slacktide.lab.control_plane import free_ports

Json = dict[str, Any]
Sample = tuple[str, Json, float]
SCRAPED = (objects.NODE, objects.POD, objects.REPLICA_SET, objects.DEPLOYMENT, objects.JOB)
PHASES, STATES = ("Pending", "Running", "Succeeded", "Failed", "Unknown"), ("true", "false", "unknown")


def _condition(one: Json, name: str) -> Json:
    return next((found for found in one.get("status", {}).get("conditions", ()) if found["type"] == name), {})


def _states(name: str, who: Json, label: str, said: Json) -> Iterator[Sample]:
    for state in STATES:
        yield name, who | {label: state}, float(said.get("status", "False").lower() == state)


def _amount(resource: str, text: str) -> float:
    """Cores, bytes or a count."""
    return quantity(resource, text) / (1000.0 if resource == "cpu" else 1.0)


def _at(text: str) -> float:
    return float(unix_seconds(text))


def of_node(node: Json) -> Iterator[Sample]:
    who = {"node": node["metadata"]["name"]}
    yield "kube_node_info", who, 1.0
    yield "kube_node_created", who, _at(node["metadata"]["creationTimestamp"])
    yield "kube_node_spec_unschedulable", who, float(node["spec"].get("unschedulable", False))
    yield from _states("kube_node_status_condition", who | {"condition": "Ready"}, "status", _condition(node, "Ready"))
    for resource, amount in node["status"]["allocatable"].items():
        name = resource.replace("-", "_")
        yield "kube_node_status_allocatable", who | {"resource": name}, _amount(resource, amount)
    for taint in node["spec"].get("taints", ()):
        yield "kube_node_spec_taint", who | {key: taint.get(key, "") for key in ("key", "value", "effect")}, 1.0


def of_pod(pod: Json) -> Iterator[Sample]:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    who = {"namespace": metadata["namespace"], "pod": metadata["name"], "uid": metadata["uid"]}
    owner, node = (metadata.get("ownerReferences") or [{}])[0], spec.get("nodeName", "")
    kind, name = owner.get("kind", ""), owner.get("name", "")
    made = {"created_by_kind": kind, "created_by_name": name, "priority_class": spec.get("priorityClassName", "")}
    yield "kube_pod_info", who | made | {"node": node, "host_network": "false"}, 1.0
    yield "kube_pod_created", who, _at(metadata["creationTimestamp"])
    yield "kube_pod_owner", who | {"owner_kind": kind, "owner_name": name, "owner_is_controller": "true"}, 1.0
    yield "kube_pod_labels", who | {"label_tier": metadata["labels"].get("tier", "")}, 1.0
    for container in spec["containers"]:
        for resource, amount in container["resources"]["requests"].items():
            asked = {"container": container["name"], "resource": resource, "node": node}
            yield "kube_pod_container_resource_requests", who | asked, _amount(resource, amount)
    for phase in PHASES:
        yield "kube_pod_status_phase", who | {"phase": phase}, float(status.get("phase", "Pending") == phase)
    if (scheduled := _condition(pod, "PodScheduled")).get("status") == "True":
        yield "kube_pod_status_scheduled_time", who, _at(scheduled["lastTransitionTime"])
    if ready := _condition(pod, "Ready"):
        yield from _states("kube_pod_status_ready", who, "condition", ready)
        if ready["status"] == "True":
            yield "kube_pod_status_ready_time", who, _at(ready["lastTransitionTime"])
    ends = [one["state"]["terminated"].get("finishedAt") for one in status.get("containerStatuses", ())
            if "terminated" in one.get("state", {})]  # fmt: skip
    if ends and all(ends):
        yield "kube_pod_completion_time", who, max(map(_at, ends))
    if "deletionTimestamp" in metadata:
        yield "kube_pod_deletion_timestamp", who, _at(metadata["deletionTimestamp"])
    if reason := _condition(pod, "DisruptionTarget").get("reason"):
        yield "kube_pod_status_reason", who | {"reason": reason}, 1.0


def of_controller(one: Json, kind: str) -> Iterator[Sample]:
    metadata, spec = one["metadata"], one["spec"]
    who = {"namespace": metadata["namespace"], "job_name" if kind == "Job" else kind.lower(): metadata["name"]}
    yield f"kube_{kind.lower()}_created", who, _at(metadata["creationTimestamp"])
    if kind == "Deployment":
        yield "kube_deployment_spec_replicas", who, float(spec["replicas"])
    elif kind == "Job":
        yield "kube_job_spec_parallelism", who, float(spec["parallelism"])
        if done := one.get("status", {}).get("completionTime"):
            yield "kube_job_status_completion_time", who, _at(done)
    for owner in metadata.get("ownerReferences", ()) if kind == "ReplicaSet" else ():
        said = {"owner_kind": owner["kind"], "owner_name": owner["name"], "owner_is_controller": "true"}
        yield "kube_replicaset_owner", who | said, 1.0


def exposed(plane: ControlPlane) -> str:
    """The page that is scraped."""
    series: dict[str, list[str]] = {}
    for kind in SCRAPED:
        for one in plane.api.get(kind.path())["items"] or ():
            found = {"Node": of_node, "Pod": of_pod}.get(kind.kind)
            for name, labels, value in found(one) if found else of_controller(one, kind.kind):
                text = ",".join(f"{key}={json.dumps(said)}" for key, said in labels.items())
                series.setdefault(name, []).append(f"{name}{{{text}}} {value!r}\n")
    return "".join(f"# TYPE {name} gauge\n" + "".join(lines) for name, lines in series.items())


@contextlib.contextmanager
def prometheus(plane: ControlPlane, out: Path, scheduler: int, interval: float = 5.0) -> Iterator[str]:
    """A Prometheus that scrapes the exporter and kube-scheduler at its port, every so many seconds: its address."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = exposed(plane).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    page = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=page.serve_forever, daemon=True).start()
    (port,) = free_ports(1)
    secure = {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}
    here = [{"targets": [f"127.0.0.1:{page.server_port}"]}]
    jobs: list[Json] = [{"job_name": "kube-state-metrics", "static_configs": here}]
    jobs += [
        secure | {"job_name": name, "metrics_path": path, "static_configs": [{"targets": [f"127.0.0.1:{scheduler}"]}]}
        for name, path in (("kube-scheduler-resources", "/metrics/resources"), ("kube-scheduler", "/metrics"))
    ]
    times = {"scrape_interval": f"{interval:g}s", "scrape_timeout": f"{interval:g}s"}
    (out / "prometheus.json").write_text(json.dumps({"global": times, "scrape_configs": jobs}))
    command = [shutil.which("prometheus") or "prometheus", f"--config.file={out / 'prometheus.json'}",
               f"--storage.tsdb.path={out / 'prometheus'}", f"--web.listen-address=127.0.0.1:{port}"]  # fmt: skip
    with (out / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
                break
            if process.poll() is not None:
                raise SystemExit((out / "prometheus.log").read_text())
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()
        page.shutdown()
