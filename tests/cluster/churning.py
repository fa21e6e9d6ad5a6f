"""Workloads under churn while leaders and the API server are killed, and their ledgers beside the audit log's reading.

Deployments with rolling windows and limits fill the nodes. Golden pods come and go and drive some of them out; probes
fail, pods are deleted by hand, nodes are drained, within a declared maintenance window and without one. Two replicas of
the scheduler stand by for each other. Ledgers are read all the while, and each is held against the log afterwards.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from cluster.audit_reading import CLUSTER, NEVER, OPERATOR, WORKLOAD, AuditReading, audit_policy
from cluster.disturbing import brief
from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, condition, deployment, pod, pods, pods_path, readiness, until
from cluster.pulse import Pulse
from cluster.running import CLASSES, Running, at, audit_log, prepared, service_class
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.kube.client.http import KubeError
from slacktide.lab import Api, ApiError, Binaries, ControlPlane

NAMESPACE, GOLD = "shop", "gold"
READER = "kube-scheduler"
"""A user with all rights that nobody is here: the log has its lists of pods."""
WINDOW, SLO, ALPHA = 60.0, 0.5, 0.0
PER, COOLDOWN = 30.0, 10.0
BLUR = 1.0
"""An eviction may reach the API server so long after it was decided, and the next one sooner."""
LIMITS: dict[str, Json] = {
    "often": {"disruptions": {"max": 2, "per": f"{PER:g}s"}},
    "calm": {"cooldown": f"{COOLDOWN:g}s"},
    "never": {"disruptions": {"max": 0, "per": "1h"}},
    "free": {},
}
MAINTENANCE_SECONDS = 20.0
LEDGERS = f"/apis/slacktide.io/v1beta1/namespaces/{NAMESPACE}/availabilities"
MAINTENANCE = "/apis/slacktide.io/v1beta1/maintenancewindows"
NODE_CORES = 10
Samples = dict[tuple[str, float], Json]
"""Status of ledgers by workload and instant."""


@dataclass(frozen=True)
class Size:
    """``workloads``, and kills of the leader and of the API server."""

    workloads: int
    leader_kills: int
    server_kills: int
    between: float = 6.0
    """Seconds from a new leader's beginning to the next kill."""
    lease: int = 6
    """``kube.lease_duration``: on a busy machine a leader loses a short one."""
    pace: float = 1.0
    """By how much the waits between what is done to workloads are longer."""

    @property
    def golden(self) -> int:
        return max(6, self.workloads // 5)


def replicas_of(number: int) -> int:
    return 2 if number % 4 == 3 else 1


def class_of(number: int) -> str:
    return list(LIMITS)[number // 2 % len(LIMITS)]


def text(instant: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instant))


@contextmanager
def churned(binaries: Binaries, directory: Path, size: Size, seed: int = 0) -> Iterator[Churn]:
    """A control plane on which all workloads run, led by one of two replicas."""
    plane = prepared(binaries, directory, audit_policy(READER))
    try:
        churn = Churn(plane, audit_log(directory), size, seed)
        try:
            yield churn
        finally:
            churn.pulse.stop()
    finally:
        plane.kill()


@dataclass
class Churn:
    """The play. What its threads were refused, because the API server was away, is tried again or left."""

    plane: ControlPlane
    log: Path
    size: Size
    seed: int
    samples: Samples = field(default_factory=dict)
    kills: list[tuple[float, str]] = field(default_factory=list)
    pulse: Pulse = field(default_factory=Pulse)

    def __post_init__(self) -> None:
        self.api: Api = self.plane.api
        self._over = threading.Event()
        self._quiet = threading.Lock()
        """Held by whoever disturbs workloads, and by whoever kills."""
        self._threads: list[threading.Thread] = []
        tokens = (row.split(",") for row in (self.plane.directory / "pki" / "tokens.csv").read_text().splitlines())
        token = next(token.strip('"') for token, user, *_ in tokens if user == READER)
        self._reader = Api(self.plane.url, token, self.plane.ca_file)
        self.replicas: list[Running] = []
        self._begin()

    def _at_once(self, *works: Callable[[], None]) -> None:
        for work in works:
            thread = threading.Thread(target=work, daemon=True, name=work.__name__)
            self._threads.append(thread)
            thread.start()

    def _begin(self) -> None:
        window = {"rolling": f"{WINDOW:g}s", "budget": "whole"}
        self.api.post(CLASSES, service_class(GOLD, 0.999, 1))
        for name, limits in LIMITS.items():
            spec = {"marginSeconds": 0.5, "overheadLimit": 1.0, "window": window, **limits}
            self.api.post(CLASSES, service_class(name, SLO, 3, **spec))
        self.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        count = sum(replicas_of(number) for number in range(self.size.workloads))
        nodes = -(-(count + self.size.golden // 3) // NODE_CORES)
        self.nodes = self.plane.create_nodes(nodes, cpu=str(NODE_CORES), labels={"churn": "yes"})
        for name in self.nodes:
            self.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"name": name}}})
        self.replicas = [self._replica(name) for name in ("first", "second")]
        until(self.leader, "one of them leads", 900)
        self._at_once(self._look_after)
        for number in range(self.size.workloads):
            body = deployment(f"w{number}", replicas_of(number), cpu="1", **brief(class_of(number)))
            self.api.post(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", body)
        until(lambda: len(pods(self.api, NAMESPACE, "Running")) == count, f"{count} pods run")

    def _replica(self, name: str, *words: str, **how: Any) -> Running:
        settings: dict[str, Any] = {"kube__lease_duration": self.size.lease, "qos__alpha": ALPHA}
        settings["scheduler__watchdog"] = 1
        return Running(self.plane, *words, name=name, **settings, **how)

    # -- the play --------------------------------------------------------------------------------------------------

    def play(self) -> None:
        """All kills, one after another, in random order; then everybody runs again, and ledgers say so."""
        self._at_once(self._golden_pods, self._disturb, self._sample)
        chance = random.Random(self.seed)
        for one in self._incidents(chance):
            self._over.wait(self.size.between * chance.uniform(0.5, 1.5))
            with self._quiet:
                self._kill(one)
        self._over.wait(self.size.between)
        self._over.set()
        for thread in self._threads:
            thread.join(HANG_SECONDS)
            assert not thread.is_alive(), f"{thread.name} goes on"
        self._over.clear()
        self._at_once(self._look_after)
        self._settle()
        self._over.set()

    def _incidents(self, chance: random.Random) -> Iterable[str]:
        """Who is to be killed, in order."""
        whom = ["leader"] * self.size.leader_kills + ["server"] * self.size.server_kills
        chance.shuffle(whom)
        return whom

    def leader(self) -> Running | None:
        """The replica that leads by its log, the last to begin where both seem to."""
        leading = [one for one in self.replicas if one.component.running and one.leads]
        return max(leading, key=lambda one: one.terms()[-1], default=None)

    def _kill(self, whom: str) -> None:
        if whom == "server":
            self.kills.append((time.time(), whom))
            self.plane.restart_api_server(kill=True, down_seconds=0.5)
            self._list_pods()
        else:
            leader: Running = until(self.leader, "somebody leads")
            self.kills.append((time.time(), whom))
            leader.kill()
            start(leader)
        until(self.leader, "somebody leads again", 300)

    def _list_pods(self) -> None:
        """So that what was written without a line in the log is in it."""
        until(lambda: self._tried(lambda: self._reader.get(pods_path(NAMESPACE))), "pods are listed")

    @staticmethod
    def _tried(what: Callable[[], Any]) -> Any:
        """What comes of it; None where the API server is away."""
        with suppress(KubeError, OSError, ApiError):
            return what()
        return None

    def _look_after(self) -> None:
        """A replica that lost its lease has ended, as it should, and is started again."""
        while not self._over.wait(0.2):
            for one in self.replicas:
                if not one.component.running:
                    time.sleep(0.3)
                    if not one.component.running:
                        start(one)

    def _golden_pods(self) -> None:
        chance, names, count = random.Random(self.seed + 1), list[str](), 0
        while not self._over.wait(self.size.pace * chance.uniform(0.05, 0.3)):
            with suppress(KubeError, OSError, ApiError):
                if len(names) < self.size.golden and chance.random() < 0.55:
                    count += 1
                    self.api.post(pods_path(NAMESPACE), pod(f"gold-{count}", cpu="1", **brief(GOLD)))
                    names.append(f"gold-{count}")
                elif names:
                    self.api.delete(f"{pods_path(NAMESPACE)}/{names.pop(chance.randrange(len(names)))}")

    def _disturb(self) -> None:
        """What workloads and operators do, one thing at a time, and never while nobody leads."""
        chance, turn = random.Random(self.seed + 2), 0
        what = (self._fail_a_probe, self._delete_a_pod, self._drain_a_node)
        while not self._over.wait(self.size.pace * chance.uniform(0.2, 1.0)):
            turn += 1
            with self._quiet, suppress(KubeError, OSError, ApiError):
                what[2 if turn % 5 == 0 else turn % 2](chance)

    def _ready_pod(self, chance: random.Random) -> str | None:
        up = [
            one["metadata"]["name"]
            for one in pods(self.api, NAMESPACE, "Running")
            if one["metadata"]["name"].startswith("w") and "deletionTimestamp" not in one["metadata"]
            and condition(one, "Ready").get("status") == "True"
        ]  # fmt: skip
        return str(chance.choice(up)) if up else None

    def _fail_a_probe(self, chance: random.Random) -> None:
        if (name := self._ready_pod(chance)) is None:
            return
        self._say(name, False)
        time.sleep(chance.uniform(0.5, 3.0))
        self._say(name, True)

    def _say(self, name: str, is_ready: bool) -> None:
        """As its kubelet does of a pod."""
        self._write(name, readiness(is_ready, text(time.time())))

    def _write(self, name: str, conditions: list[Json]) -> None:
        self.api.patch(f"{pods_path(NAMESPACE)}/{name}/status", {"status": {"conditions": conditions}}, STRATEGIC)

    def _recover(self) -> None:
        """Pods are ready again: whose probe was to succeed while nobody answered, and those of a node that was lost, or
        that the controller manager took for lost. A kubelet says so; KWOK does not."""
        for one in pods(self.api, NAMESPACE, "Running"):
            name, goes = one["metadata"]["name"], "deletionTimestamp" in one["metadata"]
            if name.startswith("w") and not goes and condition(one, "Ready").get("status") == "False":
                with suppress(ApiError):  # it is gone
                    self._say(name, True)

    def _delete_a_pod(self, chance: random.Random) -> None:
        if (name := self._ready_pod(chance)) is None:
            return
        self.api.delete(f"{pods_path(NAMESPACE)}/{name}")
        time.sleep(1.5)

    def _drain_a_node(self, chance: random.Random) -> None:
        """Within a maintenance window or not; some of its pods are evicted, and find it open again soon."""
        node = chance.choice(self.nodes)
        if chance.random() < 0.5:
            begin = time.time()
            spec: Json = {"start": text(begin - 5.0), "end": text(begin + MAINTENANCE_SECONDS)}
            spec["nodeSelector"] = {"matchLabels": {"name": node}}
            body: Json = {"apiVersion": "slacktide.io/v1beta1", "kind": "MaintenanceWindow", "spec": spec}
            self.api.post(MAINTENANCE, body | {"metadata": {"name": f"window-{begin:.0f}"}})
        self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
        time.sleep(1.5)  # watches of different kinds have no order
        there = [one for one in pods(self.api, NAMESPACE, "Running") if one["spec"].get("nodeName") == node]
        for one in there[:3]:
            name = one["metadata"]["name"]
            if name.startswith("w") and "deletionTimestamp" not in one["metadata"]:
                eviction: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
                self.api.post(f"{pods_path(NAMESPACE)}/{name}/eviction", eviction)
        time.sleep(2.0)
        self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": False}})

    def _sample(self) -> None:
        while not self._over.wait(1.0):
            with suppress(KubeError, OSError, ApiError):
                self._look()

    def _look(self) -> list[Json]:
        found: list[Json] = self.api.get(LEDGERS)["items"]
        for one in found:
            status, name = one.get("status", {}), one["metadata"]["name"].removeprefix("deployment-")
            if status and name.startswith("w"):
                self.samples[name, at(status)] = status
        return found

    def _no_golden_pods(self) -> bool:
        names = [one["metadata"]["name"] for one in pods(self.api, NAMESPACE)]
        golden = [name for name in names if name.startswith("gold-")]
        for name in golden:
            with suppress(ApiError):  # it is gone
                self.api.delete(f"{pods_path(NAMESPACE)}/{name}")
        return not golden

    def _settle(self) -> None:
        """Everybody runs, and all ledgers were written since."""
        self._recover()
        for node in self.nodes:
            self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": False}})
        until(self._no_golden_pods, "all golden pods are gone")
        wanted = {f"deployment-w{number}": replicas_of(number) for number in range(self.size.workloads)}
        others: list[str] = []

        def settled() -> bool:
            said = {one["metadata"]["name"]: one.get("status", {}) for one in self._look()}
            others[:] = [name for name, count in wanted.items() if said.get(name, {}).get("running") != count]
            return not others

        try:
            until(settled, "all ledgers say that all run")
        except AssertionError as error:
            raise AssertionError(f"{error}; not {others}") from None
        self._list_pods()


def start(replica: Running) -> None:
    """Start it again without waiting for it to lead."""
    replica._from = len(replica.component.log.read_text(errors="replace"))
    replica.component.start()


# -- judgement ---------------------------------------------------------------------------------------------------------


@dataclass
class Verdict:
    """What came of it: by how much ledgers differ from the reading, and limits that were exceeded."""

    samples: int = 0
    worst: dict[str, tuple[float, str]] = field(default_factory=dict)
    apart: list[str] = field(default_factory=list)
    """Each figure that is off by more than is allowed."""
    samples_apart: set[str] = field(default_factory=set)
    """Where that was."""
    exceeded: list[str] = field(default_factory=list)
    disruptions: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    missed: int = 0

    def off(self, what: str, by: float, where: str, most: float) -> None:
        if abs(by) > abs(self.worst.get(what, (0.0, ""))[0]):
            self.worst[what] = by, where
        if abs(by) > most:
            self.samples_apart.add(where)
            self.apart.append(f"{what} off by {by:+.2f} s: {where}")


def in_time(_begin: float, _end: float) -> float:
    """Nothing was late."""
    return 0.0


def judge(log: Path, samples: Samples, most: float = 1.0, late: Callable[[float, float], float] = in_time) -> Verdict:
    """Hold every ledger that was seen against the reading of the audit log.

    One may be off by ``most`` seconds, and by what the machine was ``late`` between two instants: the scheduler counts
    from when it sees something.
    """
    reading, verdict, allowed = AuditReading(log), Verdict(), most
    for (name, instant), status in sorted(samples.items(), key=lambda one: one[0][1]):
        verdict.samples += 1
        expected = reading.account(name, instant)
        where = f"{name} ({reading.workloads[name].service}) at {instant:.2f}"
        most = allowed + late(min(one.created for one in reading.workloads[name].pods), instant)
        verdict.off("good", status["goodSeconds"] - expected.good, where, most)
        for cause in (CLUSTER, WORKLOAD, OPERATOR):
            verdict.off(cause, status["lostSeconds"][cause] - expected.lost[cause], where, most)
        received = WINDOW * SLO
        low, high = (reading.slack(name, instant, WINDOW, received + shift) for shift in (most, -most))
        said = status["slackSeconds"]
        verdict.off("slack", min(0.0, said - low) + max(0.0, said - high), where, most)
        verdict.missed += status["state"] == "Missed"
    for name in reading.workloads:
        last = max(instant for one, instant in samples if one == name)
        account = reading.account(name, last)
        verdict.seconds.update({"good": account.good, **account.lost})
        _limits(reading, name, verdict)
    return verdict


def _limits(reading: AuditReading, name: str, verdict: Verdict) -> None:
    service, found = reading.workloads[name].service, reading.disruptions(name)
    verdict.disruptions[service] += len(found)
    times = [begun for begun, _ in found]
    limits = LIMITS[service]
    if "disruptions" in limits:
        count = limits["disruptions"]["max"]
        runs = [times[i : i + count + 1] for i in range(len(times) - count)]
        wrong = [run for run in runs if count == 0 or run[-1] - run[0] < PER - BLUR]
        verdict.exceeded += [f"{name}: {len(run)} disruptions within {run[-1] - run[0]:.1f} s" for run in wrong]
    if "cooldown" in limits:
        for (_, ended), (begun, _) in pairwise(found):
            if ended == NEVER or begun - ended < COOLDOWN - BLUR:
                verdict.exceeded.append(f"{name}: disrupted {begun - ended:.1f} s after the last one ended")
