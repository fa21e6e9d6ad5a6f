"""The churn of :mod:`cluster.churning` for a long time, with everything that can happen to a scheduler's connection and
to its cluster, and with a record: then whether anything was wrong, and what memory was taken.

Both replicas reach the API server through a proxy that breaks, stalls and refuses. Their wall clocks are moved where
libfaketime is there. An auditor follows all objects from their beginning to their end.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster.audit_reading import audit_policy
from cluster.churning import MAINTENANCE, NAMESPACE, READER, Churn, Size, text
from cluster.disturbing import FAULTS, Disturbance
from cluster.installation import ACCOUNT
from cluster.judging import seconds
from cluster.labtools import condition, pods, set_ready, until
from cluster.running import Running, audit_log, prepared
from cluster.truth import PatientAuditor
from slacktide.kube.client.http import KubeError
from slacktide.lab import ApiError, Binaries, ControlPlane

FAULT_SECONDS = 3.0
"""For so long each fault lasts, watches say nothing, and the network is away."""
STEPS = (30.0, -30.0)
"""Seconds by which clocks are moved."""
DEAD_SECONDS = 6.0
MEMORY_SECONDS = 5.0
"""Between two looks at memory."""
NAME = re.compile(r"\S*/\S+|\b(gold|w)[\w-]*\d\S*|\d[\d.]*")


@dataclass(frozen=True)
class Soak:
    """``seconds`` of incidents, one each ``between`` seconds; of the last ``spared`` seconds none is a kill of a
    leader, so that one process lives for long."""

    workloads: int
    seconds: float
    between: float
    spared: float
    lease: int = 6
    faketime: Path | None = None

    @property
    def size(self) -> Size:
        return Size(self.workloads, 0, 0, between=self.between, lease=self.lease, pace=6.0)


@dataclass(kw_only=True)
class LongChurn(Churn):
    """The play, with more that can happen. ``memory``: replica, process, instant, resident MB."""

    disturbance: Disturbance
    auditor: PatientAuditor
    soak: Soak
    memory: list[tuple[str, int, float, float]] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)

    def _replica(self, name: str, *words: str, **how: Any) -> Running:
        path = self.disturbance.proxy.kubeconfig(self.plane.directory / f"kubeconfig-{name}")
        return super()._replica(
            name, f"--kubeconfig={path}", f"--record={self.record(name)}", *words, environment=self._moved(), **how
        )

    def record(self, name: str) -> Path:
        """Where a replica writes down what it is told and decides."""
        return self.plane.directory / f"record-{name}"

    # -- clocks ----------------------------------------------------------------------------------------------------

    @property
    def _clock(self) -> Path:
        return self.plane.directory / "clock"

    def _moved(self) -> dict[str, str]:
        """What lets a program see the wall clock that the test sets; none that runs evenly is moved."""
        if self.soak.faketime is None:
            return {}
        self._clock.write_text("+0")
        return {
            "LD_PRELOAD": str(self.soak.faketime),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def _step(self, by: float) -> None:
        self._clock.write_text(f"{by:+g}")
        time.sleep(FAULT_SECONDS)
        self._clock.write_text("+0")
        time.sleep(2.0)  # what is read of the file is kept for a second

    # -- incidents -------------------------------------------------------------------------------------------------

    def _incidents(self, chance: random.Random) -> Iterator[str]:
        kinds = ["leader", "server", "etcd", "expire", "cut", "stall", "fault", "outage", "node", "blink"]
        kinds += ["clock"] * (self.soak.faketime is not None)
        self._at_once(self._weigh)
        begin, left = time.time(), list[str]()
        while (since := time.time() - begin) < self.soak.seconds:
            if not left:
                left = chance.sample(kinds, len(kinds))
            kind = left.pop()
            if kind != "leader" or since < self.soak.seconds - self.soak.spared:
                self.happened[kind] += 1
                yield kind

    def _kill(self, whom: str) -> None:
        if whom in ("leader", "server"):
            super()._kill(whom)
            return
        what: dict[str, Callable[[], object]] = {
            "etcd": self._kill_etcd,
            "expire": self.disturbance.expire_watches,
            "cut": self.disturbance.cut_watches,
            "stall": self._stall,
            "fault": self._fault,
            "outage": lambda: self.disturbance.outage(FAULT_SECONDS),
            "node": self._lose_a_node,
            "blink": self._lose_a_node_for_a_moment,
            "clock": lambda: self._step(STEPS[self.happened["clock"] % len(STEPS)]),
        }
        what[whom]()
        self._recover()
        until(self.leader, "somebody leads", 300)

    def _kill_etcd(self) -> None:
        self.kills.append((time.time(), "etcd"))
        self.plane.restart("etcd", kill=True)
        until(lambda: self._tried(lambda: self.api.get("/readyz")), "the API server has its store again", 300)
        self.plane.restart_kwok()
        self._list_pods()

    def _stall(self) -> None:
        self.disturbance.stall_watches(".")
        time.sleep(FAULT_SECONDS)
        self.disturbance.let_watches_flow()

    def _fault(self) -> None:
        self.disturbance.add(watches=False, **FAULTS[(self.happened["fault"] - 1) % len(FAULTS)])
        time.sleep(FAULT_SECONDS)
        self.disturbance.heal()

    def _lose_a_node(self) -> None:
        """One is not Ready for a while, and nor are its pods."""
        node = self._node_to_lose()
        set_ready(self.api, node, False)
        time.sleep(1.0)  # a ledger may have the pod's news before the node's
        self._take_for_lost(node)
        time.sleep(DEAD_SECONDS)
        set_ready(self.api, node, True)
        time.sleep(1.0)

    def _lose_a_node_for_a_moment(self) -> None:
        """One is Ready again before the controller manager says that its pods are not."""
        node = self._node_to_lose()
        set_ready(self.api, node, False)
        set_ready(self.api, node, True)
        time.sleep(1.0)  # it comes to that later
        self._take_for_lost(node)
        time.sleep(FAULT_SECONDS)  # for so long its pods are unready

    def _node_to_lose(self) -> str:
        """One that no maintenance window is about."""
        now = time.time()
        windows = self.api.get(MAINTENANCE)["items"]
        ours = [one["spec"] for one in windows if seconds(one["spec"]["end"]) + DEAD_SECONDS > now]
        busy = {one["nodeSelector"]["matchLabels"]["name"] for one in ours}
        return next((one for one in self.nodes if one not in busy), self.nodes[0])

    def _take_for_lost(self, node: str) -> None:
        """As the controller manager does: it gives no reason, and says nothing of containers."""
        lost = {"type": "Ready", "status": "False", "lastTransitionTime": text(time.time())}
        for one in self._ready_on(node):
            with suppress(ApiError):  # it is gone
                self._write(one["metadata"]["name"], [lost])

    def _ready_on(self, node: str) -> list[dict[str, Any]]:
        return [
            one for one in pods(self.api, NAMESPACE, "Running")
            if one["spec"].get("nodeName") == node and "deletionTimestamp" not in one["metadata"]
            and condition(one, "Ready").get("status") == "True"
        ]  # fmt: skip

    # -- memory ----------------------------------------------------------------------------------------------------

    def _weigh(self) -> None:
        while not self._over.wait(MEMORY_SECONDS):
            for one in self.replicas:
                with suppress(OSError, StopIteration):
                    lines = Path(f"/proc/{one.component.pid}/status").read_text().splitlines()
                    held = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
                    self.memory.append((one.component.name, one.component.pid, time.time(), int(held) / 1024))

    def longest(self) -> list[tuple[float, float]]:
        """Of the process that lived longest: seconds since it was seen first, and resident MB."""
        lives: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for name, pid, at, held in self.memory:
            lives.setdefault((name, pid), []).append((at, held))
        life = max(lives.values(), key=lambda one: one[-1][0] - one[0][0], default=[])
        return [(at - life[0][0], held) for at, held in life]


@contextmanager
def soaked(binaries: Binaries, directory: Path, soak: Soak, seed: int = 0) -> Iterator[LongChurn]:
    """A control plane on which all workloads run, led by one of two replicas behind a proxy, and an auditor."""
    plane: ControlPlane = prepared(binaries, directory, audit_policy(READER))
    log = audit_log(directory)
    try:
        auditor = PatientAuditor(plane.url, plane.token, plane.ca_file, log)
        auditor.start()
        with Disturbance(plane.service_account_kubeconfig(*ACCOUNT), seed) as disturbance:
            churn = LongChurn(plane, log, soak.size, seed, disturbance=disturbance, auditor=auditor, soak=soak)
            try:
                yield churn
            finally:
                churn.pulse.stop()
                for one in churn.replicas:
                    with suppress(KubeError, OSError):
                        one.stop()
    finally:
        plane.kill()


def found(churn: LongChurn) -> dict[str, list[str]]:
    """What the auditor says was wrong, by kind."""
    churn.auditor.stop()
    kinds: dict[str, list[str]] = {}
    for one in churn.auditor.findings(term for replica in churn.replicas for term in replica.terms()):
        kinds.setdefault(NAME.sub("_", one), []).append(one)
    return kinds


def replayed(churn: LongChurn) -> dict[str, tuple[int, str]]:
    """Of each replica's record whether its decisions come out the same, and what ``slacktide replay`` says."""
    said = {}
    for one in churn.replicas:
        command = [sys.executable, "-m", "slacktide", "replay", str(churn.record(one.component.name))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said[one.component.name] = done.returncode, (done.stdout + done.stderr).strip()
    return said


def complaints(churn: LongChurn) -> list[str]:
    """Tracebacks in the logs of both."""
    return [line for one in churn.replicas for _, line in one.said() if "Traceback" in line]
