"""A control plane for measuring, and the schedulers on it, one at a time."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

from slacktide.kube.resources.objects import rfc3339
from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.api import Api
from slacktide.lab.binaries import NEEDED
from slacktide.lab.manifests import apply
from slacktide.lab.processes import Component

NAMESPACE = "bench"
TICKS = os.sysconf("SC_CLK_TCK")
KUBE = "kube-scheduler"
BINDER = "bare binder"
SETTLED_SECONDS, SETTLING_SECONDS = 5.0, 600.0
QPS, BURST = 5000, 10_000
"""Of kube-scheduler; slacktide has no limit unless told."""
FLAGS = {
    "kube-apiserver": ["--enable-priority-and-fairness=false", "--max-requests-inflight=4000",
                       "--max-mutating-requests-inflight=2000"],
    # Where nobody plays kubelets, nodes must not count as lost for it in the middle of a measurement.
    "kube-controller-manager": ["--node-monitor-grace-period=86400s"],
    KUBE: [f"--kube-api-qps={QPS}", f"--kube-api-burst={BURST}"],
}  # fmt: skip
CLASSES = {"high": (1.0, 1, 1000), "low": (0.5, 3, 10)}
"""Each a ServiceClass (slo, rank) and a PriorityClass (value) of that name."""


@dataclass(frozen=True)
class Usage:
    """What a process has taken: processor seconds, and memory at its peak, MB."""

    cpu: float
    peak: float


def usage(pid: int) -> Usage:
    """What a process has taken since it began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return Usage((int(fields[11]) + int(fields[12])) / TICKS, int(found[1]) / 1024 if found else 0.0)


@dataclass
class Running:
    """A scheduler at work."""

    name: str
    scheduler_name: str
    component: Component
    port: int = 0
    _longest: float = 0.0

    def usage(self) -> Usage:
        return usage(self.component.pid)

    def stall(self) -> float:
        """The longest stall of the event loop since this was last asked, ms; NaN for others than slacktide."""
        found, self._longest = max(self._scraped()[0], self._longest), 0.0
        return 1000 * found

    def pending(self) -> float:
        """Ledgers that wait to be written; NaN for others than slacktide."""
        longest, pending = self._scraped()
        self._longest = max(self._longest, longest)
        return pending

    def _scraped(self) -> tuple[float, float]:
        """The longest stall since the last scrape, seconds, and how many ledgers wait."""
        if not self.port:
            return nan, nan
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        names = ("slacktide_event_loop_stall_seconds", "slacktide_ledger_pending")
        stall, pending = (float(found[1]) if (found := re.search(rf"^{name} (\S+)", text, re.MULTILINE)) else nan
                          for name in names)  # fmt: skip
        return stall, pending


class Cluster:
    """A control plane with so many nodes. ``kubelets``: KWOK plays them, else bound pods stay Pending. ``fair``: the
    API server is fair among its clients, as by default, instead of taking all that comes."""

    def __init__(
        self,
        directory: Path,
        nodes: int,
        *,
        cpu: str,
        kubelets: bool,
        profile: Path | None = None,
        gates: str = "",
        fair: bool = False,
    ) -> None:
        flags = {name: own for name, own in FLAGS.items() if not fair or name != "kube-apiserver"}
        if gates:
            flags["kube-apiserver"] = [*flags.get("kube-apiserver", ()), f"--feature-gates={gates}"]
        programs = Binaries.find([*NEEDED, KUBE])
        self.plane = ControlPlane.create(directory, programs, with_kube_scheduler=True, flags=flags)
        self.plane.start(guarded=True)
        self.profile = profile
        self.plane.components[KUBE].stop()
        if not kubelets:
            self.plane.components["kwok"].stop()
        self.plane.install()
        self.nodes = self.plane.create_nodes(nodes, cpu=cpu, memory="64Gi")
        _classes(self.plane.api)
        self.plane.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        if not kubelets:  # they say from time to time how their nodes are
            self._settle()

    def _settle(self) -> None:
        """Wait until nobody changes nodes any more. The controller manager patches each new one: of 5,000 that takes
        about a minute."""
        before, end = dict[str, str](), time.monotonic() + SETTLING_SECONDS
        while (now := self._versions()) != before:
            if time.monotonic() > end:
                sys.exit(f"nodes are still being changed after {SETTLING_SECONDS:.0f} s, though nobody plays kubelets")
            before = now
            time.sleep(SETTLED_SECONDS)

    def _versions(self) -> dict[str, str]:
        found = (one["metadata"] for one in self.api.get("/api/v1/nodes")["items"])
        return {one["name"]: one["resourceVersion"] for one in found}

    def measure_zones(self) -> None:
        """Round-trip times between zones, as three of the nodes' agents would write them."""
        ends = self.nodes[:3]
        for number, name in enumerate(ends):
            peers = [{"node": other, "meanMs": 10.0 * (number + place), "deviationMs": 0.1, "lost": 0.0, "samples": 9}
                     for place, other in enumerate(ends) if other != name]  # fmt: skip
            status = {"at": rfc3339(time.time()), "measured": 2, "reached": 2, "error": 1.0, "peers": peers}
            apply(self.api, {"apiVersion": "slacktide.io/v1beta1", "kind": "NodeLatency",
                             "metadata": {"name": name}, "status": status})  # fmt: skip

    @property
    def api(self) -> Api:
        return self.plane.api

    def close(self) -> None:
        self.plane.stop()

    @contextmanager
    def scheduler(self, name: str) -> Iterator[Running]:
        """Start a scheduler by name (kube-scheduler, the bare binder, or a policy of slacktide's), and end it."""
        if name == KUBE:
            component = self.plane.components[KUBE]
            self.plane._start(KUBE)
            _until_said(component, 0, "Caches are synced|Starting scheduler|Starting Kubernetes Scheduler")
            time.sleep(3.0 + len(self.nodes) / 2000)  # it says nothing when it is ready; its caches fill in this time
            found = Running(name, "default-scheduler", component)
        elif name == BINDER:
            found = Running(name, "binder", self._start(name, self._binder(), "watching"))
        else:
            port = free_port()
            component = self._start(f"slacktide-{name.replace('+', '-')}", self._slacktide(name, port), "leading as")
            found = Running(name, "slacktide", component, port)
        try:
            yield found
        finally:
            found.component.stop()

    def _start(self, name: str, command: list[str], ready: str) -> Component:
        log = self.plane.layout.log(name.replace(" ", "-"))
        began = log.stat().st_size if log.exists() else 0
        component = self.plane.add(name.replace(" ", "-"), command)
        _until_said(component, began, ready)
        time.sleep(1.0)
        return component

    def _binder(self) -> list[str]:
        program = Path(__file__).with_name("binder.py")
        return [sys.executable, str(program), str(self.plane.kubeconfig)]

    def _slacktide(self, policy: str, port: int) -> list[str]:
        profiled = [] if self.profile is None else ["-m", "cProfile", "-o", str(self.profile)]
        name, _, score = policy.partition("+")
        scored = ["--set", f"policy.score={score}"] if score else []
        words = ["--policy", name, *scored, "--set", "kube.leader_election=false", "--set", "kube.qps=0"]
        return [sys.executable, *profiled, "-m", "slacktide", "run", "--kubeconfig", str(self.plane.kubeconfig), *words,
                "--set", f"kube.listen=127.0.0.1:{port}", "--set", "kube.http_access=loopback"]  # fmt: skip


def _classes(api: Api) -> None:
    for name, (slo, rank, value) in CLASSES.items():
        spec = {"slo": slo, "rank": rank, "namespaces": ["*"]}
        apply(api, {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name},
                    "spec": spec})  # fmt: skip
        apply(api, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                    "value": value})  # fmt: skip


def _said(component: Component, began: int) -> str:
    with component.log.open("rb") as log:
        log.seek(began)
        return log.read().decode(errors="replace")


def _until_said(component: Component, began: int, pattern: str, seconds: float = 180.0) -> None:
    """Wait until a program's log says what it says when it is ready."""
    end = time.monotonic() + seconds
    while not re.search(pattern, _said(component, began)):
        if not component.running or time.monotonic() > end:
            sys.exit(f"{component.name} does not start:\n{component.log_tail()}")
        time.sleep(0.1)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pod(name: str, scheduler: str, *, cpu: str = "100m", memory: str = "100Mi", service: str = "low",
        node: str = "") -> dict[str, Any]:  # fmt: skip
    """A pod that both schedulers read alike."""
    request = {"requests": {"cpu": cpu, "memory": memory}}
    spec: dict[str, Any] = {
        "schedulerName": scheduler,
        "priorityClassName": service,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "none", "resources": request}],
    }
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "labels": {"slacktide.io/class": service, "app": "bench"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
