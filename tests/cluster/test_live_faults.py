"""An API server that restarts: nothing is lost, nothing is bound twice, nobody is preempted for nobody, and the ledgers
are right to a second for each incident and instance. All else that may fail, ``simulated/story.py`` draws."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from cluster.auditor import Auditor, seconds
from cluster.disturbing import REST, Disturbance, Load, watched
from cluster.installation import ACCOUNT
from cluster.labtools import pods, until
from cluster.replaying import target
from cluster.running import Running, at
from cluster.stories import clock, stories
from cluster.truth import Course, courses, settled_ledger, together
from slacktide.lab import Binaries, ControlPlane

EXACT_SECONDS = 0.5
"""What test and scheduler may differ in when they saw what happened, for each instance."""
INCIDENT_SECONDS = 0.4
"""The promise is a second for each incident and instance; not every instance changes in each of them. On a quiet
machine .2 holds."""
BLIND_SECONDS = 4.0
"""For so long nobody watches while a scheduler is started anew on a quiet machine. Whoever goes meanwhile is missed
later: where it takes longer, an incident weighs more."""
LAST_WORDS_SECONDS = 15.0
"""An event that was not written so soon after its eviction may die with the scheduler."""

UNDER_WAY_SECONDS = 2.0
"""Nor does one come of an eviction that the API server still had to carry out when the scheduler died. And what the
API server did so soon before it was killed may be missing in its audit log."""
AWAY_SECONDS = 15.0
"""An event is tried again for a little longer than that, and given up where the API server stays away."""
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
    server_kills: list[float] = field(default_factory=list)
    server_away: list[tuple[float, float]] = field(default_factory=list)
    blind: dict[str, float] = field(default_factory=dict)
    """By namespace for how long nobody watched, all in all, seconds."""

    loads: list[Load] = field(default_factory=list)

    def history(self) -> list[tuple[float, str]]:
        """What happened, and when; of what the scheduler said only how it began and what it complained of."""
        found = [(begin, f"the API server goes, until {clock(end)}") for begin, end in self.server_away]
        said = [(at, line) for at, line in self.scheduler.said() if not line.startswith("D ")]
        return found + [(at, f"scheduler: {line}") for at, line in said]

    def quiet(self) -> None:
        """End the loads of tests that failed."""
        for load in self.loads:
            load.end()

    def load(self, name: str) -> Load:
        self.quiet()
        found = Load(self.plane.api, name, seed=len(name))
        self.loads.append(found)
        self.incidents[name] = 0
        found.begin()
        return found

    def happened(self, name: str, blind: float = 0.0) -> None:
        """One more incident; for ``blind`` seconds nobody watched."""
        self.incidents[name] += 1
        self.blind[name] = self.blind.get(name, 0.0) + blind

    def over(self, load: Load) -> None:
        """The load ends; all that it leaves runs in the end, and every ledger is right. Then it is removed."""
        load.stop()
        try:
            until(load.is_settled, load)
            self.check_ledgers(load.namespace)
            until(lambda: self.is_told(load.namespace), "events tell of all evictions that events can tell of")
        finally:
            self.plane.api.delete(f"/api/v1/namespaces/{load.namespace}")
            path = f"/api/v1/namespaces/{load.namespace}/pods"
            until(lambda: not self.plane.api.get(path)["items"], "the load is gone")

    def check_ledgers(self, namespace: str) -> None:
        # One that has ended on its way out is no part of the load any more, and its ledger goes with it.
        every = [one["metadata"] for one in pods(self.plane.api, namespace)]
        here = [one["name"] for one in every if "deletionTimestamp" not in one]
        names = {f"pod-{name}": 1 for name in here if name.startswith("gold-")} | {"deployment-bronze": REST["bronze"]}
        ledgers = {name: settled_ledger(self.plane.api, namespace, name, count) for name, count in names.items()}
        self.auditor.catch_up()
        wrong: list[str] = []
        gold = [one for one in courses(self.auditor, namespace, "gold-") if one.ended == float("inf")]
        assert len(gold) == REST["gold"]
        for pod in gold:
            wrong += self._differs(f"pod-{pod.name}", ledgers, [pod], 1, namespace)
        bronze = courses(self.auditor, namespace, "bronze-")
        wrong += self._differs("deployment-bronze", ledgers, bronze, REST["bronze"], namespace)
        assert wrong == []

    def is_told(self, namespace: str) -> bool:
        """Whether each eviction has its event, but for those whose events may have died: a namespace that ends takes no
        more."""
        told = {one["regarding"].get("uid") for one in self.auditor.events(namespace, "Preempted")}
        acts = [act for act in self.auditor.evictions(namespace) if target(act) not in told]
        return all(self.is_speechless(seconds(act["stageTimestamp"])) for act in acts)

    def is_speechless(self, at: float) -> bool:
        """Whether the event of an eviction at an instant may have died: with the scheduler, or for want of a server."""
        late = self.auditor.late(at - UNDER_WAY_SECONDS, at + LAST_WORDS_SECONDS)
        least, most = -UNDER_WAY_SECONDS - late, LAST_WORDS_SECONDS + late
        away = [begin for begin, end in self.server_away if end - begin >= AWAY_SECONDS]
        return any(least <= moment - at <= most for moment in away)

    def _differs(
        self, name: str, ledgers: dict[str, Any], every: list[Course], instances: int, namespace: str
    ) -> Iterator[str]:
        if name not in ledgers:
            yield f"{name}: there is no ledger"
            return
        status = ledgers[name]
        now = at(status)
        running, lived = together(every, instances, now)
        incidents = max(self.incidents[namespace], self.blind.get(namespace, 0.0) / BLIND_SECONDS)
        allowed = instances * (EXACT_SECONDS + INCIDENT_SECONDS * incidents) + 2.0 * sum(pod.late for pod in every)
        error = status["deliveredAlways"] * lived - running
        if abs(error) > allowed:
            yield (
                f"{name}: delivered {status['deliveredAlways']}, expected {running / lived:.4f}, off by {error:.1f} s, "
                f"{allowed:.1f} allowed"
            )


@pytest.fixture(scope="module")
def arena(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    with (
        watched(binaries, tmp_path_factory.mktemp("faults")) as (plane, auditor),
        Disturbance(plane.service_account_kubeconfig(*ACCOUNT)) as disturbance,
    ):
        scheduler = disturbance.running(plane, "--verbose", kube__leader_election=False)
        yield Arena(plane, disturbance, scheduler.wait_until_leading(), auditor)
        scheduler.stop()


def test_the_api_server_restarts(arena: Arena) -> None:
    load = arena.load("restarted")
    for kill, down in ((True, 0.0), (False, 2.0)):
        time.sleep(4)
        begin = time.time()
        if kill:
            arena.server_kills.append(begin)
        arena.plane.restart_api_server(kill=kill, down_seconds=down)
        arena.server_away.append((begin, time.time()))
        arena.happened("restarted", time.time() - begin)
    time.sleep(4)
    arena.over(load)


def test_nothing_was_wrong_all_the_while(arena: Arena) -> None:
    arena.quiet()
    arena.auditor.stop()
    findings = arena.auditor.findings(arena.scheduler.terms())
    wrong = [one for one in findings if not _excused(arena, one)]
    assert not wrong, f"{wrong}\n{stories(arena.auditor, wrong, arena.history())}"
    complaints = [line for _, line in arena.scheduler.said() if "Traceback" in line]
    assert not complaints, "\n".join(complaints)


def _excused(arena: Arena, finding: str) -> bool:
    """An event that died with the scheduler within a moment of the eviction that it was about, or a place that did; or
    a line of the audit log that died with the API server."""
    if (unlogged := re.search(UNLOGGED, finding)) is not None:
        bound, evicted = unlogged.groups()
        lives = [one for one in arena.auditor.lives("restarted") if one.name == (bound or evicted)]
        moments = [one.scheduled if bound else one.ended for one in lives]
        # The second of a binding; the end of a grace period.
        least, most = (-UNDER_WAY_SECONDS - 1, 0.0) if bound else (-UNDER_WAY_SECONDS, GONE_SECONDS)
        return any(
            at is not None and least - (late := arena.auditor.late(kill - 5.0, kill + 5.0)) <= at - kill <= most + late
            for at in moments
            for kill in arena.server_kills
        )
    if "evicted " not in finding:
        return False
    name = finding.removeprefix("pod ").split(":")[0]
    return any(
        f"{act['objectRef']['namespace']}/{act['objectRef']['name']}" == name
        and arena.is_speechless(seconds(act["stageTimestamp"]))
        for act in arena.auditor.evictions()
    )
