"""Two replicas, one lease: one acts, the other takes over, and a leader that was away acts no more."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kube.auditor import Auditor
from kube.disturbing import BRONZE, REST, Disturbance, Load, watched
from kube.installation import ACCOUNT
from kube.labtools import until
from kube.running import Running, at
from kube.truth import courses, together
from slacktide.kube.lab import ApiError, Binaries, ControlPlane

LEASE_SECONDS = 7
TAKEOVER_SECONDS = LEASE_SECONDS + 6
LEASE = "/apis/coordination.k8s.io/v1/namespaces/slacktide-system/leases/slacktide"


@dataclass
class Pair:
    """Two replicas on a control plane."""

    plane: ControlPlane
    auditor: Auditor
    replicas: list[Running]
    ways: dict[str, Disturbance]
    """The way to the API server of each replica, by its name."""

    def holder(self) -> str:
        """Who holds the lease, by its own word."""
        try:
            return str(self.plane.api.get(LEASE)["spec"].get("holderIdentity") or "")
        except ApiError:
            return ""

    def leader(self) -> Running | None:
        holder = self.holder()
        running = [one for one in self.replicas if one.component.running]
        return next((one for one in running if holder and identity(one) == holder), None)

    def other(self, leader: Running) -> Running:
        return next(one for one in self.replicas if one is not leader)

    def both_run(self) -> Running:
        """Start whoever does not run; returns the leader once the other stands by."""
        for one in self.replicas:
            if not one.component.running:
                start(one)
        until(lambda: all("standing by as" in one.log for one in self.replicas), "both replicas stand by", 900)
        leader: Running = until(lambda: (found := self.leader()) and found.leads and found, "one of them leads", 30)
        return leader

    def takes_over(self, standby: Running, within: float) -> float:
        """Wait until the standby leads; the seconds it took."""
        began = time.monotonic()
        until(lambda: standby.leads, "the standby takes over", within)
        return time.monotonic() - began

    def wakes_and_ends(self, leader: Running) -> None:
        """A frozen leader is woken: it ends, and asks for nothing before it does."""
        way = self.ways[leader.component.name]
        before = len(way.proxy.paths)
        leader.component.signal(signal.SIGCONT)
        until(lambda: not leader.component.running, "the deposed leader ends", 20)
        assert writes(way, before) == []

    def check(self, load: Load, incidents: int) -> None:
        """All pods run in the end, and the ledger is right."""
        load.stop()
        until(load.is_settled, load, 60)
        time.sleep(2.5)
        path = f"/apis/slacktide.io/v1alpha1/namespaces/{load.namespace}/availabilities/deployment-{BRONZE}"
        status = self.plane.api.get(path)["status"]
        running, lived = together(courses(self.auditor, load.namespace, BRONZE), REST[BRONZE], at(status))
        error = status["deliveredAlways"] * lived - running
        assert abs(error) <= REST[BRONZE] * (0.5 + 0.3 * incidents)
        self.plane.api.delete(f"/api/v1/namespaces/{load.namespace}")
        until(lambda: not self.plane.api.get(f"/api/v1/namespaces/{load.namespace}/pods")["items"], "the load is gone")


def identity(replica: Running) -> str:
    found = re.search(r"standing by as (\S+)", replica.log)
    return found[1] if found else ""


def start(replica: Running) -> None:
    """Start it again without waiting for it to lead."""
    replica._from = len(replica.component.log.read_text(errors="replace"))
    replica.component.start()


@pytest.fixture(scope="module")
def pair(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with watched(binaries, tmp_path_factory.mktemp("leaders")) as (plane, auditor):
        # So few requests a second that some wait for their turn whenever a leader is frozen.
        settings: dict[str, Any] = {"kube__lease_duration": LEASE_SECONDS, "kube__qps": 20, "kube__burst": 5}
        account = plane.service_account_kubeconfig(*ACCOUNT)
        with Disturbance(account) as first, Disturbance(account) as second:
            ways = {"one": first, "two": second}
            replicas = [way.running(plane, name=name, **settings) for name, way in ways.items()]
            yield Pair(plane, auditor, replicas, ways)
            for one in replicas:
                one.stop()


def begun(pair: Pair, name: str) -> Load:
    load = Load(pair.plane.api, name, seed=len(name))
    load.begin()
    return load


def writes(disturbance: Disturbance, since: int) -> list[tuple[str, str]]:
    """What a replica asked to be changed after its first ``since`` requests, events and leases apart."""
    asked = disturbance.proxy.paths[since:]
    return [one for one in asked if one[0] != "GET" and not re.search("/events|/leases", one[1])]


def test_a_killed_leader_is_replaced_within_its_lease(pair: Pair) -> None:
    leader = pair.both_run()
    load = begun(pair, "killed")
    time.sleep(4)
    leader.kill()
    pair.takes_over(pair.other(leader), TAKEOVER_SECONDS)
    time.sleep(3)
    pair.check(load, 1)


def test_a_frozen_leader_is_replaced_and_ends_when_it_wakes(pair: Pair) -> None:
    leader = pair.both_run()
    standby = pair.other(leader)
    load = begun(pair, "frozen")
    time.sleep(4)
    leader.component.signal(signal.SIGSTOP)
    pair.takes_over(standby, TAKEOVER_SECONDS)
    time.sleep(2)
    pair.wakes_and_ends(leader)
    assert "the lease is lost" in leader.log
    assert pair.leader() is standby
    time.sleep(2)
    pair.check(load, 1)


def test_a_leader_frozen_again_and_again_under_load_never_acts_beside_another(pair: Pair) -> None:
    load = begun(pair, "again")
    for _ in range(3):
        leader = pair.both_run()
        time.sleep(1.5)
        leader.component.signal(signal.SIGSTOP)
        pair.takes_over(pair.other(leader), TAKEOVER_SECONDS)
        pair.wakes_and_ends(leader)
    pair.check(load, 3)


def test_a_leader_that_stops_hands_over_at_once(pair: Pair) -> None:
    leader = pair.both_run()
    standby = pair.other(leader)
    load = begun(pair, "stopped")
    time.sleep(4)
    mine = identity(leader)
    leader.component.signal(signal.SIGTERM)
    until(lambda: not leader.component.running, "the leader stops", 20)
    assert pair.holder() != mine, "it gave the lease back"
    pair.takes_over(standby, LEASE_SECONDS)
    assert "stopped" in leader.log
    pair.check(load, 0)


def test_a_short_freeze_changes_nothing(pair: Pair) -> None:
    leader = pair.both_run()
    leader.component.signal(signal.SIGSTOP)
    time.sleep(1)
    leader.component.signal(signal.SIGCONT)
    time.sleep(LEASE_SECONDS)
    assert leader.component.running
    assert pair.leader() is leader


def test_nothing_was_wrong_all_the_while(pair: Pair) -> None:
    pair.auditor.stop()
    findings = pair.auditor.findings()
    untold = [one for one in findings if one.endswith("evicted without an event")]  # it died with the leader
    assert [one for one in findings if one not in untold] == []
    assert len(untold) <= len(pair.auditor.evictions()) // 10
    assert [one for replica in pair.replicas for one in replica.complaints() if "Traceback" in one] == []
