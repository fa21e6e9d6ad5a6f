"""A cluster's past on a real control plane: kube-scheduler and its users for a while, with everything that tells of it.

    PYTHONPATH=src python bench/past_lab.py DIR                       10 minutes, 200 workloads, 30 nodes
    PYTHONPATH=src python bench/past_lab.py DIR --minutes 2 --nodes 8 --workloads 40
    PYTHONPATH=src python bench/past_lab.py DIR --slo 0.9             the same under slacktide, with this promise

Deployments of three priorities come, scale, roll out and go, Jobs run to their ends, nodes are lost and come back, and
there is a little less room than is asked for, so that kube-scheduler preempts. KWOK plays the kubelets. DIR gets
``audit.log`` (level RequestResponse) and ``objects.json`` (what kubectl would print in the end). With ``--prometheus``
a Prometheus scrapes kube-scheduler and an exporter with kube-state-metrics' names, and what it tells of the past is
printed beside what the audit log does.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from live_parts.exporter import prometheus
from live_parts.validation import service_class

from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.binaries import NEEDED
from slacktide.lab.control_plane import free_ports
from slacktide.pasts import audit, outcome
from slacktide.pasts.kinds import TOLD
from slacktide.pasts.prometheus import source
from slacktide.pasts.story import Story

PRIORITIES = {"critical": 1000, "normal": 500, "low": 100}
NAMESPACES = ("shop", "data", "web")
RESOURCES = [
    {"group": "", "resources": [
        "pods", "pods/status", "pods/binding", "pods/eviction", "pods/resize", "nodes", "nodes/status", "services",
        "namespaces", "persistentvolumes", "persistentvolumeclaims",
    ]},
    {"group": "apps", "resources": ["deployments", "replicasets", "statefulsets", "deployments/scale"]},
    {"group": "batch", "resources": ["jobs", "cronjobs"]},
    {"group": "policy", "resources": ["poddisruptionbudgets"]},
]  # fmt: skip
WRITES = ["create", "update", "patch", "delete", "deletecollection"]


def policy(level: str) -> dict[str, Any]:
    """What the API server is to write down."""
    return {
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": level, "verbs": WRITES, "resources": RESOURCES}, {"level": "None"}],
    }  # fmt: skip


class Users:
    """What users of the cluster do, as a seed draws it."""

    def __init__(self, plane: ControlPlane, seed: int, scheduler: str, nodes: list[str], cpu: int) -> None:
        self.api, self.chance, self.scheduler = plane.api, random.Random(seed), scheduler
        self.nodes, self.cpu, self.number = nodes, cpu, 0
        self.deployments: dict[str, tuple[str, int]] = {}
        self.asked = 0
        self.down: dict[str, float] = {}

    def pod(self, name: str, priority: str, millis: int, run: float | None) -> dict[str, Any]:
        annotations = {"slacktide.io/startup-seconds": f"{self.chance.lognormvariate(0.8, 0.25):.3f}"}
        if run is not None:
            annotations["slacktide.io/run-seconds"] = f"{run:.3f}"
        resources = {"requests": {"cpu": f"{millis}m", "memory": "64Mi"}}
        return {
            "metadata": {"labels": {"app": name, "tier": priority}, "annotations": annotations},
            "spec": {
                "schedulerName": self.scheduler, "priorityClassName": priority, "terminationGracePeriodSeconds": 2,
                "containers": [{"name": "c", "image": "none", "resources": resources,
                                "env": [{"name": "PASSWORD", "value": "planted-secret"}]}],
            },
        }  # fmt: skip

    def deploy(self) -> None:
        self.number += 1
        name, namespace = f"app-{self.number}", self.chance.choice(NAMESPACES)
        priority = self.chance.choices(list(PRIORITIES), (2, 4, 4))[0]
        replicas, millis = self.chance.choice((1, 2, 2, 3, 5)), self.chance.choice((250, 500, 500, 1000))
        body = {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": self.pod(name, priority, millis, None)},
        }  # fmt: skip
        self.api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", body)
        self.deployments[name] = namespace, replicas * millis
        self.asked += replicas * millis

    def job(self) -> None:
        self.number += 1
        name, namespace = f"job-{self.number}", self.chance.choice(NAMESPACES)
        priority = self.chance.choices(list(PRIORITIES), (1, 3, 6))[0]
        template = self.pod(name, priority, self.chance.choice((250, 500)), self.chance.uniform(5.0, 60.0))
        template["spec"]["restartPolicy"] = "Never"
        parallel = self.chance.choice((1, 2, 4))
        body = {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"parallelism": parallel, "completions": parallel * self.chance.choice((1, 2)),
                     "backoffLimit": 50, "template": template},
        }  # fmt: skip
        self.api.post(f"/apis/batch/v1/namespaces/{namespace}/jobs", body)

    def disturb(self) -> None:
        """Somebody scales, rolls out or deletes a Deployment."""
        name, (namespace, _) = self.chance.choice(list(self.deployments.items()))
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        what = self.chance.choices(("scale", "roll out", "delete"), (4, 4, 1))[0]
        if what == "delete":
            self.api.delete(path)
            self.asked -= self.deployments.pop(name)[1]
        elif what == "scale":
            self.api.patch(path, {"spec": {"replicas": self.chance.choice((1, 2, 3, 4))}})
        else:
            self.api.patch(path, {"spec": {"template": {"metadata": {"labels": {"v": str(self.number)}}}}})
            self.number += 1

    def fail(self, seconds: float) -> None:
        """A node is not ready for a while, as the node controller would say it, with its taints."""
        name = self.chance.choice([one for one in self.nodes if one not in self.down])
        self.down[name] = time.time() + seconds
        self._ready(name, is_ready=False)

    def repair(self) -> None:
        for name in [one for one, until in self.down.items() if until <= time.time()]:
            del self.down[name]
            self._ready(name, is_ready=True)

    def _ready(self, name: str, *, is_ready: bool) -> None:
        self.api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None if is_ready else True}})


def play(plane: ControlPlane, arguments: argparse.Namespace) -> None:
    nodes = plane.create_nodes(arguments.nodes, cpu=arguments.cpu, memory="64Gi", pods=110)
    for namespace in NAMESPACES:
        plane.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for name, value in PRIORITIES.items():
        body = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        plane.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    scheduler = "default-scheduler" if arguments.slo is None else "slacktide"
    users = Users(plane, arguments.seed, scheduler, nodes, arguments.cpu)
    room, seconds = arguments.nodes * arguments.cpu * 1000, arguments.minutes * 60.0
    began = time.time()
    step = seconds / arguments.workloads
    for number in range(arguments.workloads):
        time.sleep(max(0.0, began + number * step - time.time()))
        full = users.asked >= arguments.load * room
        if users.chance.random() < (0.75 if full else 0.35):
            users.job()
        else:
            users.deploy()
            if full and users.deployments:
                users.disturb()
        if number > 10 and number % 5 == 0:
            users.disturb()
        if number % 20 == 19:
            users.fail(min(60.0, seconds / 8))
        users.repair()
    time.sleep(max(0.0, began + seconds - time.time()))


@contextlib.contextmanager
def slacktide(plane: ControlPlane, out: Path, slo: float) -> Iterator[None]:
    """slacktide beside kube-scheduler, for pods that name it."""
    plane.install()
    for rank, name in enumerate(PRIORITIES, 1):
        plane.api.post("/apis/slacktide.io/v1beta1/serviceclasses", service_class(name, slo, rank, "aggregated"))
    account = plane.service_account_kubeconfig("slacktide-system", "slacktide")
    by_priority = ",".join(f"{name}={name}" for name in PRIORITIES)
    words = [f"kube.priority_classes={by_priority}", "kube.all_nodes=true", "kube.listen=none",
             "kube.leader_election=false"]  # fmt: skip
    command = [sys.executable, "-m", "slacktide", "run", "--kubeconfig", str(account)]
    with (out / "slacktide.log").open("w") as log:
        process = subprocess.Popen([*command, *(part for word in words for part in ("--set", word))], stderr=log)
        try:
            while "leading as" not in (out / "slacktide.log").read_text():
                time.sleep(0.1)
                if process.poll() is not None:
                    raise SystemExit((out / "slacktide.log").read_text())
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def dump(plane: ControlPlane, path: Path) -> None:
    """What ``kubectl get ... -A -o json`` prints."""
    items = []
    for kind in TOLD:
        try:
            found = plane.api.get(kind.path())
        except Exception:
            continue
        items += [one | {"apiVersion": kind.api_version, "kind": kind.kind} for one in found["items"] or ()]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def compare(out: Path, told: Story) -> None:
    """What a Prometheus tells of the past, beside what the audit log does."""
    stories = {"audit log": audit.story([out / "audit.log"]), "Prometheus": told}
    for name, one in stories.items():
        folder = out / f"past-{name.split()[0].lower()}"
        found = outcome.write(one, folder)
        shares = {
            tier: round(statistics.mean(of), 4) for tier in PRIORITIES
            if (of := [w.delivered["always"] for w in found.workloads if w.priority_class == tier])
        }  # fmt: skip
        with (folder / outcome.PODS).open() as file:
            rows = list(csv.DictReader(file))
        waits = [float(row["bound"]) - float(row["created"]) for row in rows if row["bound"]]
        tenths = [round(one, 2) for one in statistics.quantiles(waits, n=10)]
        print(f"{name}: {len(found.workloads)} workloads, {len(rows)} pods, availability {shares}, preempted "
              f"{sum(w.preempted for w in found.workloads)}, waits p50 {tenths[4]} s, p90 {tenths[8]} s")  # fmt: skip
        for note in found.notes:
            print(f"  {note}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--workloads", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=30)
    parser.add_argument("--cpu", type=int, default=8)
    parser.add_argument("--load", type=float, default=1.05, help="of the nodes' cores that Deployments ask for")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", default="RequestResponse", choices=("Metadata", "Request", "RequestResponse"))
    parser.add_argument("--prometheus", type=float, help="A Prometheus scrapes every so many seconds")
    parser.add_argument("--slo", type=float, help="slacktide schedules, and promises so much to each priority")
    arguments = parser.parse_args()
    out = arguments.directory.absolute()
    out.mkdir(parents=True, exist_ok=True)
    rules = out / "audit-policy.json"
    rules.write_text(json.dumps(policy(arguments.level)))
    flags = {"kube-apiserver": [f"--audit-policy-file={rules}", f"--audit-log-path={out / 'audit.log'}",
                                "--audit-log-maxsize=100000"]}  # fmt: skip
    (port,) = free_ports(1)
    if arguments.prometheus:
        flags["kube-scheduler"] = [
            f"--secure-port={port}",
            "--authorization-always-allow-paths=/metrics,/metrics/resources",
        ]
    plane = ControlPlane.create(
        out / "lab", Binaries.find([*NEEDED, "kube-scheduler"]), with_kube_scheduler=True, flags=flags
    )
    plane.start(guarded=True)
    try:
        with contextlib.ExitStack() as stack:
            if arguments.slo is not None:
                stack.enter_context(slacktide(plane, out, arguments.slo))
            began = time.time()
            url = arguments.prometheus and stack.enter_context(prometheus(plane, out, port, arguments.prometheus))
            play(plane, arguments)
            if url:
                compare(out, source.story(url, began, time.time()))
        dump(plane, out / "objects.json")
    finally:
        plane.stop()


if __name__ == "__main__":
    main()
