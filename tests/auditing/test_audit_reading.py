"""The accountant that reads audit logs, on logs written by hand."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.audit_reading import CLUSTER, OPERATOR, SCHEDULER, WORKLOAD, AuditReading
from cluster.churning import COOLDOWN, PER, Verdict, judge
from slacktide.kube.client.metadata import rfc3339

T0 = 1_790_000_000.0
USER = "somebody"


def text(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(T0 + at))


class Log:
    """An audit log of one Deployment of one pod, and what happens to it, seconds from T0."""

    def __init__(self, service: str = "free") -> None:
        self.lines: list[str] = []
        self._count = 0
        template = {"metadata": {"labels": {"slacktide.io/class": service}}}
        spec = {"replicas": 1, "template": template}
        self.write(0.0, "deployments", {"kind": "Deployment", "metadata": {"name": "w0"}, "spec": spec}, verb="create")
        self.node(0.0, closed=False)

    def write(
        self, at: float, resource: str, body: dict[str, Any], *, verb: str = "patch", user: str = USER, **about: str
    ) -> None:
        said = {
            "kind": "Event", "stage": "ResponseComplete", "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource, **about}, "responseStatus": {"code": 201}, "responseObject": body,
            "requestReceivedTimestamp": rfc3339(T0 + at), "stageTimestamp": rfc3339(T0 + at),
        }  # fmt: skip
        self.lines.append(json.dumps(said, separators=(",", ":")))

    def node(self, at: float, *, closed: bool = False, ready: bool = True, version: int | None = None) -> None:
        version = len(self.lines) if version is None else version
        metadata = {"name": "n", "labels": {"name": "n"}, "resourceVersion": str(version)}
        status = {"type": "Ready", "status": str(ready)}
        body = {"metadata": metadata, "spec": {"unschedulable": closed}, "status": {"conditions": [status]}}
        self.write(at, "nodes", {"kind": "Node"} | body)

    def window(self, at: float, end: float) -> None:
        spec = {"start": text(at), "end": text(end), "nodeSelector": {"matchLabels": {"name": "n"}}}
        self.write(at, "maintenancewindows", {"spec": spec}, verb="create")

    def evicted(self, at: float, name: str, user: str = SCHEDULER) -> None:
        self.write(at, "pods", {"kind": "Status"}, verb="create", user=user, subresource="eviction", name=name)

    def pod(self, at: float, name: str, created: float, **now: Any) -> None:
        """A version of a pod: ``bound``, ``ready`` (since; False from ``unready`` on), ``told``, ``ended``."""
        conditions = []
        if "bound" in now:
            conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": text(now["bound"])})
        if "ready" in now:
            conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": text(now["ready"])})
        if "unready" in now:
            conditions.append({"type": "Ready", "status": "False", "lastTransitionTime": text(now["unready"])})
        metadata: dict[str, Any] = {"name": name, "uid": name, "labels": {"app": "w0"}}
        metadata |= {"creationTimestamp": text(created), "resourceVersion": str(len(self.lines))}
        if "told" in now:
            metadata |= {"deletionTimestamp": text(now["told"]), "deletionGracePeriodSeconds": 0}
        phase = "Failed" if now.get("ended") else "Running"
        spec = {"nodeName": "n"} if "bound" in now else {}
        body = {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": conditions}}
        self.write(at, "pods", body)

    def life(self, name: str, created: float, bound: float, ready: float) -> None:
        self.pod(created, name, created)
        self.pod(bound, name, created, bound=bound)
        self.pod(ready, name, created, bound=bound, ready=ready)

    def end(self, at: float, name: str, created: float) -> None:
        self.pod(at, name, created, bound=created, unready=at, told=at, ended=True)

    def read(self, folder: Path) -> AuditReading:
        (folder / "audit.log").write_text("\n".join(self.lines) + "\n")
        return AuditReading(folder / "audit.log")


def had(log: Log, folder: Path, until: float) -> dict[str, float]:
    account = log.read(folder).account("w0", T0 + until)
    return {"good": account.good} | account.lost


def test_whoever_is_preempted_waits_and_starts_by_the_clusters_doing(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 2.0, 4.0)
    log.evicted(10.0, "a")
    log.end(11.0, "a", 1.0)
    log.life("b", 10.0, 15.0, 17.0)
    assert had(log, tmp_path, 20.0) == pytest.approx({"good": 10.0, CLUSTER: 9.0, WORKLOAD: 0.0, OPERATOR: 0.0})
    assert log.read(tmp_path).disruptions("w0") == [pytest.approx((T0 + 10.0, T0 + 17.0))]


def test_a_probe_that_fails_and_a_deletion_are_the_workloads(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    log.pod(5.0, "a", 1.0, bound=1.0, unready=5.0)
    log.pod(8.0, "a", 1.0, bound=1.0, ready=8.0)
    log.end(10.0, "a", 1.0)
    log.life("b", 10.0, 12.0, 15.0)  # it waits for a node by the cluster's doing
    assert had(log, tmp_path, 16.0) == pytest.approx({"good": 6.0, CLUSTER: 3.0, WORKLOAD: 6.0, OPERATOR: 0.0})
    assert log.read(tmp_path).disruptions("w0") == []


def test_a_replacement_is_one_more_as_long_as_the_one_before_delivers(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    log.pod(10.0, "a", 1.0, bound=1.0, ready=2.0, told=10.0)
    log.pod(10.0, "b", 10.0)
    log.end(13.0, "a", 1.0)
    log.pod(14.0, "b", 10.0, bound=14.0)
    log.pod(16.0, "b", 10.0, bound=14.0, ready=16.0)
    # It waits from 10 on, beside the one before until 13, and starts by the workload's doing.
    assert had(log, tmp_path, 18.0) == pytest.approx({"good": 13.0, CLUSTER: 5.0, WORKLOAD: 2.0, OPERATOR: 0.0})


def test_a_replacement_that_is_ready_before_the_other_ends_delivers_as_well(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    log.pod(10.0, "a", 1.0, bound=1.0, ready=2.0, told=10.0)
    log.life("b", 10.0, 11.0, 12.0)
    log.end(13.0, "a", 1.0)
    assert had(log, tmp_path, 18.0) == pytest.approx({"good": 17.0, CLUSTER: 2.0, WORKLOAD: 1.0, OPERATOR: 0.0})


def test_what_a_lost_node_takes_is_the_clusters_until_the_pod_is_ready_again(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    log.node(5.0, ready=False)
    log.pod(6.0, "a", 1.0, bound=1.0, unready=6.0)
    log.node(9.0)
    log.node(9.5, ready=False, version=1)  # the line of an answer that took long
    log.pod(10.0, "a", 1.0, bound=1.0, ready=10.0)
    log.pod(11.0, "a", 1.0, bound=1.0, unready=11.0)
    assert had(log, tmp_path, 12.0) == pytest.approx({"good": 5.0, CLUSTER: 5.0, WORKLOAD: 1.0, OPERATOR: 0.0})


def test_a_node_that_is_lost_for_a_moment_takes_pods_that_are_said_to_be_unready_later(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    log.node(5.0, ready=False)
    log.node(5.1)
    log.pod(6.0, "a", 1.0, bound=1.0, unready=6.0)
    log.pod(10.0, "a", 1.0, bound=1.0, ready=10.0)
    assert had(log, tmp_path, 12.0) == pytest.approx({"good": 6.0, CLUSTER: 5.0, WORKLOAD: 0.0, OPERATOR: 0.0})


@pytest.mark.parametrize("declared", [True, False])
def test_a_drain_is_the_operators_within_a_window_and_as_long_as_that_lasts(tmp_path: Path, declared: bool) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    if declared:
        log.window(5.0, 16.0)
    log.node(8.0, closed=True)
    log.evicted(10.0, "a", USER)
    log.end(10.0, "a", 1.0)
    log.life("b", 10.0, 13.0, 20.0)
    operator = 6.0 if declared else 0.0
    expected = {"good": 13.0, CLUSTER: 11.0 - operator, WORKLOAD: 0.0, OPERATOR: operator}
    assert had(log, tmp_path, 25.0) == pytest.approx(expected)
    assert log.read(tmp_path).disruptions("w0") == []


def test_an_older_version_that_comes_late_says_nothing(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 2.0, 4.0)
    log.end(10.0, "a", 1.0)
    late = json.loads(log.lines[-2]) | {"stageTimestamp": rfc3339(T0 + 12.0)}
    log.lines.append(json.dumps(late))
    assert had(log, tmp_path, 20.0)["good"] == pytest.approx(6.0)


def test_a_line_in_which_a_server_was_killed_hides_nothing(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 2.0, 4.0)
    log.lines[-1] = log.lines[-1][:80] + log.lines[-1]
    assert had(log, tmp_path, 9.0)["good"] == pytest.approx(5.0)


def test_slack_is_until_too_little_of_the_window_is_left(tmp_path: Path) -> None:
    """Second by second: the first instant at which less than 5 s of the last 10 were received."""
    log = Log()
    log.life("a", 1.0, 1.0, 4.0)  # 3 s are lost
    log.evicted(8.0, "a")
    log.end(8.0, "a", 1.0)
    log.life("b", 8.0, 9.0, 10.0)  # and 2 s
    reading = log.read(tmp_path)

    def received(until: float, stop: float) -> float:
        """Seconds of the last ten, before the first pod came all of them, where everything stops at an instant."""
        return sum(
            0.01 for at in (until - 10.0 + 0.01 * k + 0.005 for k in range(1000))
            if at < stop and not 1.0 <= at < 4.0 and not 8.0 <= at < 10.0
        )  # fmt: skip

    for now in (4.0, 7.5, 8.0, 9.5, 10.5, 13.5, 30.0):
        breaks = next(at for at in (now + 0.01 * k for k in range(2000)) if received(at, now) < 5.0 - 0.015)
        assert reading.slack("w0", T0 + now, 10.0, 5.0) == pytest.approx(breaks - now, abs=0.05), now


def judged(log: Log, folder: Path, off: float) -> Verdict:
    """What is said of a ledger that has so many good seconds too many."""
    log.read(folder)
    account = AuditReading(folder / "audit.log").account("w0", T0 + 60.0)
    status = {"goodSeconds": account.good + off, "lostSeconds": account.lost, "slackSeconds": 30.0, "state": "Kept"}
    return judge(folder / "audit.log", {("w0", T0 + 60.0): status})


def test_a_ledger_that_is_off_is_told(tmp_path: Path) -> None:
    log = Log()
    log.life("a", 1.0, 1.0, 2.0)
    assert not judged(log, tmp_path, 0.9).apart
    (line,) = judged(log, tmp_path, 1.1).apart
    assert line.startswith("good off by +1.10 s: w0 (free) at ")


@pytest.mark.parametrize(
    ("service", "times", "wrong"),
    [
        ("calm", (10.0, 16.0 + COOLDOWN), False),
        ("calm", (10.0, 11.0 + COOLDOWN), True),
        ("often", (10.0, 20.0, 11.0 + PER), False),
        ("often", (10.0, 20.0, 8.0 + PER), True),
        ("never", (10.0,), True),
        ("free", (10.0, 13.0, 16.0), False),
    ],
)
def test_a_limit_that_is_exceeded_is_told(tmp_path: Path, service: str, times: tuple[float, ...], wrong: bool) -> None:
    """Each of a chain of pods is evicted, and the next one is ready after 2 s, or 5 where there is a cooldown."""
    log, created = Log(service), 1.0
    log.life("p0", 1.0, 1.0, 2.0)
    for i, at in enumerate(times):
        log.evicted(at, f"p{i}")
        log.end(at, f"p{i}", created)
        created = at
        log.life(f"p{i + 1}", at, at + 1.0, at + (5.0 if service == "calm" else 2.0))
    assert bool(judged(log, tmp_path, 0.0).exceeded) is wrong
