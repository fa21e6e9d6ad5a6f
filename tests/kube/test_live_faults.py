"""Whatever happens to the scheduler, the API server or the connection between them: nothing is lost, nothing is bound
twice, nobody is preempted for nobody, and the ledgers are right to a second for each incident and instance."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kube.auditor import Auditor, seconds
from kube.disturbing import REST, Disturbance, Load, watched
from kube.installation import ACCOUNT
from kube.labtools import until
from kube.running import Running, at
from kube.truth import Course, courses, together
from slacktide.kube.lab import Binaries, ControlPlane

KILLS = 20
SETTLED_SECONDS = 60
EXACT_SECONDS = 0.5
"""What test and scheduler may differ in when they saw what happened, for each instance."""
INCIDENT_SECONDS = 0.4
"""The promise is a second for each incident and instance; not every instance changes in each of them. On a quiet
machine .2 holds; tests run beside others."""
LAST_WORDS_SECONDS = 15.0
"""An event that was not written so soon after its eviction may die with the scheduler."""

UNDER_WAY_SECONDS = 2.0
"""Nor does one come of an eviction that the API server still had to carry out when the scheduler died. And what the
API server did so soon before it was killed may be missing in its audit log."""
UNLOGGED = r"pod restarted/(\S+): bound by somebody else|Preempted of restarted/(\S+), which we did not evict"
GONE_SECONDS = 35.0
"""Who is told to go is gone after so long."""


@dataclass
class Arena:
    """One control plane with one scheduler for the tests of this module, which come one after another."""

    plane: ControlPlane
    disturbance: Disturbance
    scheduler: Running
    auditor: Auditor
    incidents: dict[str, int] = field(default_factory=dict)
    """By namespace how many times the scheduler, or what it knew, was lost."""
    kills: list[float] = field(default_factory=list)
    server_kills: list[float] = field(default_factory=list)

    def load(self, name: str) -> Load:
        found = Load(self.plane.api, name, seed=len(name))
        self.incidents[name] = 0
        found.begin()
        return found

    def happened(self, name: str) -> None:
        self.incidents[name] += 1

    def over(self, load: Load) -> None:
        """The load ends; all that it leaves runs in the end, and every ledger is right. Then it is removed."""
        load.stop()
        try:
            until(load.is_settled, load, SETTLED_SECONDS)
            time.sleep(2.5)  # ledgers are written at most once a second
            self.check_ledgers(load.namespace)
        finally:
            self.plane.api.delete(f"/api/v1/namespaces/{load.namespace}")
            path = f"/api/v1/namespaces/{load.namespace}/pods"
            until(lambda: not self.plane.api.get(path)["items"], "the load is gone", 60)

    def check_ledgers(self, namespace: str) -> None:
        path = f"/apis/slacktide.io/v1alpha1/namespaces/{namespace}/availabilities"
        ledgers = {one["metadata"]["name"]: one["status"] for one in self.plane.api.get(path)["items"]}
        wrong: list[str] = []
        gold = [one for one in courses(self.auditor, namespace, "gold-") if one.ended == float("inf")]
        assert len(gold) == REST["gold"]
        for pod in gold:
            wrong += self._differs(f"pod-{pod.name}", ledgers, [pod], 1, namespace)
        bronze = courses(self.auditor, namespace, "bronze-")
        wrong += self._differs("deployment-bronze", ledgers, bronze, REST["bronze"], namespace)
        assert wrong == []

    def _differs(
        self, name: str, ledgers: dict[str, Any], pods: list[Course], instances: int, namespace: str
    ) -> Iterator[str]:
        if name not in ledgers:
            yield f"{name}: there is no ledger"
            return
        status = ledgers[name]
        now = at(status)
        running, lived = together(pods, instances, now)
        allowed = instances * (EXACT_SECONDS + INCIDENT_SECONDS * self.incidents[namespace])
        error = status["deliveredAlways"] * lived - running
        if abs(error) > allowed:
            yield f"{name}: delivered {status['deliveredAlways']}, expected {running / lived:.4f}, off by {error:.1f} s"


@pytest.fixture(scope="module")
def arena(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with (
        watched(binaries, tmp_path_factory.mktemp("faults")) as (plane, auditor),
        Disturbance(plane.service_account_kubeconfig(*ACCOUNT)) as disturbance,
    ):
        scheduler = disturbance.running(plane, "--verbose", kube__leader_election=False)
        yield Arena(plane, disturbance, scheduler.wait_until_leading(), auditor)
        scheduler.stop()


def test_killed_at_twenty_random_moments(arena: Arena) -> None:
    chance = random.Random(1)
    load = arena.load("killed")
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.1, 2.5))
        arena.scheduler.kill()
        arena.kills.append(time.time())
        arena.happened("killed")
        time.sleep(chance.uniform(0.0, 1.0))
        arena.scheduler.restart()
    arena.over(load)


def test_the_api_server_restarts(arena: Arena) -> None:
    load = arena.load("restarted")
    for kill, down in ((True, 0.0), (False, 2.0)):
        time.sleep(4)
        if kill:
            arena.server_kills.append(time.time())
        arena.plane.restart_api_server(kill=kill, down_seconds=down)
        arena.happened("restarted")
    time.sleep(4)
    arena.over(load)


def test_watches_expire_and_break(arena: Arena) -> None:
    load = arena.load("expired")
    for _ in range(4):
        time.sleep(2)
        assert until(arena.disturbance.expire_watches, "watches are open") >= 1
        time.sleep(1)
        assert until(arena.disturbance.cut_watches, "watches are open") >= 1
        arena.happened("expired")
    arena.over(load)


def test_answers_are_late_refused_lost_or_cut(arena: Arena) -> None:
    load = arena.load("faults")
    faults: list[dict[str, Any]] = [
        {"status": 429, "retry_after": 1, "chance": 0.3},
        {"status": 500, "chance": 0.3},
        {"status": 503, "chance": 0.3},
        {"delay": 0.5, "chance": 0.5},
        {"reset": True, "chance": 0.3},
        {"lose_answer": True, "chance": 0.3},
        {"halve_answer": True, "chance": 0.3},
    ]
    for fault in faults:
        arena.disturbance.add(watches=False, **fault)
        time.sleep(3)
        arena.disturbance.heal()
        arena.happened("faults")
    arena.disturbance.outage(3)
    arena.happened("faults")
    for fault in faults:
        arena.disturbance.add(**fault | {"chance": 0.05})
    time.sleep(5)
    arena.disturbance.heal()
    arena.happened("faults")
    arena.over(load)
    seen = arena.disturbance.proxy.seen
    assert all(sum(seen[method, what] for method in ("POST", "PATCH")) > 0 for what in ("429", "500", "503", "reset"))


def test_nothing_was_wrong_all_the_while(arena: Arena) -> None:
    arena.auditor.stop()
    wrong = [one for one in arena.auditor.findings() if not _excused(arena, one)]
    assert not wrong, "\n".join(wrong)
    assert [one for one in arena.scheduler.complaints() if "Traceback" in one] == []


def _excused(arena: Arena, finding: str) -> bool:
    """An event that died with the scheduler within a moment of the eviction that it was about, or a place that did; or
    a line of the audit log that died with the API server."""
    if (unlogged := re.search(UNLOGGED, finding)) is not None:
        bound, evicted = unlogged.groups()
        lives = [one for one in arena.auditor.lives("restarted") if one.name == (bound or evicted)]
        moments = [one.scheduled if bound else one.ended for one in lives]
        # The second of a binding; the end of a grace period.
        least, most = (-UNDER_WAY_SECONDS - 1, 0.0) if bound else (-UNDER_WAY_SECONDS, GONE_SECONDS)
        return any(at is not None and least <= at - kill <= most for at in moments for kill in arena.server_kills)
    if "evicted " not in finding:
        return False
    uids = {one.uid: one.name for one in arena.auditor.lives("killed")}
    name = finding.split("/")[1].split(":")[0]
    for act in arena.auditor.evictions("killed"):
        if act["objectRef"]["name"] == name and name in uids.values():
            moment = seconds(act["stageTimestamp"])
            return any(-UNDER_WAY_SECONDS <= kill - moment <= LAST_WORDS_SECONDS for kill in arena.kills)
    return False
