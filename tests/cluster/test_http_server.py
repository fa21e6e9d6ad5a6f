"""/metrics, /explain and health: names as kube-scheduler has them, numbers that can be counted, cheap to ask for."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from aiohttp.test_utils import make_mocked_request
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from cluster.labtools import until
from slacktide.config import Config
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Outcome
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.observe.http_server import SchedulerPages
from slacktide.kube.scheduler import Scheduler
from slacktide.lab import Binaries, ControlPlane
from slacktide.model import ServiceClass
from slacktide.settings import load_live
from slacktide.state.spec import Spec
from support import made_objects

GOLD, BRONZE = ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 3)

T0 = 1_790_000_000.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(**kube: Any) -> Config:
    config = load_live()
    kube = {"leader_election": False, "http_access": "loopback", **kube}
    return replace(config, kube=replace(config.kube, **kube))


class Shown:
    """A scheduler that was not started, with an engine; what it would serve."""

    def __init__(self, config: Config | None = None) -> None:
        self.scheduler = Scheduler(cast(Any, None), config or settings(), "me")
        self.window = SchedulerPages(self.scheduler)
        self.routes = self.window.routes()

    def begin(self) -> Engine:
        return self.scheduler.lead(self.window.journal, {}).engine

    def run(self, now: float) -> Outcome:
        """A pass, and what a term does after it: its decisions are told."""
        assert self.scheduler.engine is not None
        outcome = self.scheduler.engine.run(now)
        for one in outcome.decisions:
            self.scheduler.on_decision(one)
        return outcome

    def get(self, path: str, **query: str) -> tuple[int, str]:
        async def ask() -> tuple[int, str]:
            text = "&".join(f"{key}={value}" for key, value in query.items())
            answer: Any = await self.routes[path](make_mocked_request("GET", f"{path}?{text}"))
            return answer.status, answer.body.decode()

        return asyncio.run(ask())

    def families(self) -> dict[str, Metric]:
        return {one.name: one for one in text_string_to_metric_families(self.get("/metrics")[1])}

    def value(self, family: str, sample: str = "", **labels: str) -> float:
        found = [
            one.value
            for one in self.families()[family].samples
            if one.name == (sample or family) and labels.items() <= one.labels.items()
        ]
        assert len(found) == 1, (family, labels, found)
        return found[0]


def add_pod(shown: Shown, engine: Engine, uid: str, key: str, service: ServiceClass, at: float) -> None:
    record = PodRecord(made_objects.pod(uid, uid=uid), ours=True)
    shown.scheduler.mirror.pods[uid], shown.scheduler.mirror.uids["default", uid] = record, uid
    assert shown.scheduler.session is not None
    shown.scheduler.session.feed.pods[uid] = FedPod(record, key=key)
    engine.arrive(uid, uid, key, 0 if service is GOLD else 1, at)


def two_on_one_core(config: Config | None = None) -> Shown:
    """Bronze got the only core at T0, was ready 2 s later, and is preempted for gold at T0 + 100 s."""
    shown = Shown(config)
    engine = shown.begin()
    engine.host("n", {"cpu": 1000, "memory": 2**30, "pods": 10}, {}, True)
    for number, service in enumerate((GOLD, BRONZE)):
        engine.spec(number, Spec((("cpu", 1000), ("memory", 1), ("pods", 1)), service))
        engine.controller(service.name, service, 0, False)
    add_pod(shown, engine, "b", "bronze", BRONZE, T0)
    engine.wake("b")
    shown.run(T0)
    engine.bound("b", T0 + 0.5)
    engine.ready("b", T0 + 2.5)
    add_pod(shown, engine, "g", "gold", GOLD, T0 + 99)
    engine.wake("g")
    assert [one.uid for one in shown.run(T0 + 100).decisions[0].victims] == ["b"]
    return shown


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
