"""A validation run of the papers on a real control plane: Deployments that come one a second, and what a record says.

KWOK plays the kubelets; each Deployment has one start-up delay. Every time is divided by a factor.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import astuple

from slacktide.lab import Binaries, ControlPlane

CPU, MEMORY = "375m", "384Mi"
"""Of a pod."""


@dataclass(frozen=True)
class Scene:
    """Nodes, classes (name, slo, rank), and Deployments in the order in which they come, one a second."""

    nodes: int
    classes: Sequence[tuple[str, float, int]]
    deployments: Sequence[dict[str, Any]]
    seconds: float = 3600.0
    node_cpu: str = "3750m"
    node_memory: str = "3840Mi"


def delays(count: int, seed: int, factor: float, median: float, sigma: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How long pods of each Deployment take to start, seconds."""
    return np.random.default_rng([seed, 1]).lognormal(np.log(median), sigma, count) / factor


def service_class(name: str, slo: float, rank: int, approach: str = "independent") -> dict[str, Any]:
    return {
        "apiVersion": "slacktide.io/v1beta1",
        "kind": "ServiceClass",
        "metadata": {"name": name},
        "spec": {"slo": slo, "rank": rank, "approach": approach, "namespaces": ["*"]},
    }


def deployment(number: int, name: str, delay: float, replicas: int = 1, approach: str = "") -> dict[str, Any]:
    labels = {"app": f"r{number}"}
    resources = {"requests": {"cpu": CPU, "memory": MEMORY}}
    annotations = {"slacktide.io/startup-seconds": f"{delay:.4f}"}
    if approach:
        annotations["slacktide.io/approach"] = approach
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"r{number}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels | {"slacktide.io/class": name},
                    "annotations": annotations,
                },
                "spec": {
                    "schedulerName": "slacktide",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "c", "image": "none", "resources": resources}],
                },
            },
        },
    }


def live(scene: Scene, words: Sequence[str], factor: float, folder: Path) -> dict[str, Any]:
    """Run it, with these further words for ``slacktide run``; when it began and ended, seconds since 1970."""
    plane = ControlPlane.create(folder / "lab", Binaries.find())
    plane.start(guarded=True)
    try:
        plane.install()
        plane.create_nodes(scene.nodes, cpu=scene.node_cpu, memory=scene.node_memory, pods=110)
        for one in scene.classes:
            plane.api.post("/apis/slacktide.io/v1beta1/serviceclasses", service_class(*one))
        account = plane.service_account_kubeconfig("slacktide-system", "slacktide")
        command = [sys.executable, "-m", "slacktide", "run", "--kubeconfig", str(account), *words,
                   "--record", str(folder / "record"), "--set", "kube.leader_election=false",
                   "--set", "kube.listen=none"]  # fmt: skip
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stderr=log)
            try:
                while "leading as" not in (folder / "log").read_text():
                    time.sleep(0.1)
                    if process.poll() is not None:
                        raise SystemExit((folder / "log").read_text())
                began = time.time()
                for at, body in enumerate(scene.deployments):
                    time.sleep(max(0.0, began + at / factor - time.time()))
                    plane.api.post("/apis/apps/v1/namespaces/default/deployments", body)
                time.sleep(max(0.0, began + scene.seconds / factor - time.time()))
                end = time.time()
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)
    finally:
        plane.stop()
    return {"began": began, "end": end}


@dataclass
class Seen:
    """What happened, of a record: when each request came first and when passes were (seconds since 1970), and seconds
    from decisions to the end of the victims, from then (or the decision) to readiness, and to the victims' next pods.

    A simulated victim is gone at once: the time that a real one takes is no start-up, because it runs on.
    """

    first: dict[str, float] = field(default_factory=dict)
    passes: list[float] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    free: dict[str, float] = field(default_factory=dict)
    leaving: dict[str, tuple[str, float]] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)

    def see(self, entry: Any, key_of: dict[str, str]) -> None:
        name, said = entry.operation.method, astuple(entry.operation)
        if name == "arrive":
            uid, _, key, _, at, _ = said
            key_of[uid] = key
            self.first.setdefault(key.split("/")[2], at)
            if key in self.gone:
                self.returns.append(at - self.gone.pop(key))
        elif name == "run":
            self.passes.append(said[0])
        elif name == "decided":
            now = self.passes[-1]
            for decision in said[0].decisions:
                self.free[decision.uid] = now
                self.leaving |= {victim.uid: (decision.uid, now) for victim in decision.victims}
        elif name == "gone" and said[0] in self.leaving:
            beneficiary, told = self.leaving.pop(said[0])
            self.leaves.append(said[1] - told)
            self.gone[key_of[said[0]]] = self.free[beneficiary] = said[1]
        elif name == "ready" and said[0] in self.free:
            self.delays.append(said[1] - self.free.pop(said[0]))


def recorded(record: Path, end: float, classes: Sequence[str]) -> tuple[dict[str, Any], Seen]:
    """What the record says at ``end`` of each class, and what happened."""
    from slacktide.engine.core.engine import Engine
    from slacktide.engine.journal.record import sessions
    from slacktide.engine.journal.replay import Report, carry_out, retrace

    session = list(sessions(record))[-1]
    engine = Engine(session.config)
    seen, key_of = Seen(), dict[str, str]()
    for entry, _ in retrace(partial(carry_out, engine), session, Report()):
        seen.see(entry, key_of)
    return summary(engine, end, classes), seen


def summary(engine: Any, end: float, classes: Sequence[str]) -> dict[str, Any]:
    from slacktide.engine.ledger.slo_status import slo_status

    found: dict[str, list[float]] = {name: [] for name in classes}
    preemptions = 0
    for key in engine.controllers:
        one = slo_status(engine, key, end)
        found[one.service].append(one.delivered_always)
        preemptions += one.preemptions
    return {
        "preemptions": preemptions,
        "passes": engine.passes,
        **{name: {"mean": float(np.mean(values)), "min": float(np.min(values)), "count": len(values)}
           for name, values in found.items()},
    }  # fmt: skip
