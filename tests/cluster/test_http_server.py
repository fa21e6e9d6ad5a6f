"""/metrics, /explain and health: names as kube-scheduler has them, numbers that can be counted, cheap to ask for."""

from __future__ import annotations

import ssl
import subprocess
import urllib.request
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from cluster.labtools import until
from kube.test_http_server import free_port, two_on_one_core
from slacktide.lab import Binaries, ControlPlane
from slacktide.model import ServiceClass

GOLD, BRONZE = ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 3)


def families_of_kube_scheduler(plane: ControlPlane, program: Path, directory: Path) -> dict[str, Metric]:
    """What the real one serves once it has placed one pod and failed to place another."""
    port, namespace = free_port(), "default"
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    command = [
        str(program), f"--kubeconfig={plane.kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1",
        f"--secure-port={port}", f"--cert-dir={directory}", "--authorization-always-allow-paths=/metrics",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            for name, cpu in (("fits", "1"), ("large", "100")):
                container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpu}}}
                body = {"metadata": {"name": name}, "spec": {"containers": [container]}}
                until(lambda: plane.api.get(accounts)["items"], "the account")  # asked for by name it would be an error
                plane.api.post(f"/api/v1/namespaces/{namespace}/pods", body)

            def text() -> str:
                context = ssl._create_unverified_context()  # its own certificate, made a moment ago
                try:
                    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context) as answer:
                        said = str(answer.read().decode())
                except OSError:
                    return ""
                return said if 'result="scheduled"' in said and 'result="unschedulable"' in said else ""

            return {one.name: one for one in text_string_to_metric_families(str(until(text, "its metrics")))}
        finally:
            process.terminate()


def test_names_types_and_labels_are_kube_schedulers(lab: ControlPlane, binaries: Binaries, tmp_path: Path) -> None:
    lab.create_nodes(1)
    theirs = families_of_kube_scheduler(lab, binaries["kube-scheduler"], tmp_path)
    shown = two_on_one_core()
    ours = {name: one for name, one in shown.families().items() if name.startswith("scheduler_")}
    assert len(ours) >= 9
    for name, one in ours.items():
        assert name in theirs, name
        assert one.type == theirs[name].type, name
        labels = {frozenset(sample.labels) - {"le"} for sample in one.samples}
        expected = {frozenset(sample.labels) - {"le"} for sample in theirs[name].samples}
        assert not expected or labels <= expected, name
    for label, name in (("queue", "scheduler_pending_pods"), ("result", "scheduler_schedule_attempts")):
        found = {sample.labels[label] for sample in ours[name].samples}
        assert {sample.labels[label] for sample in theirs[name].samples} <= found
    events = {sample.labels["event"] for sample in theirs["scheduler_queue_incoming_pods"].samples}
    assert {"UnschedulablePodAdd", "ScheduleAttemptFailure"} <= events
