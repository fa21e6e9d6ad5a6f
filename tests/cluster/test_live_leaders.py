"""Two replicas, one lease: one acts, the other takes over, and a leader that was away acts no more.

Real signals and sockets are met here; the exact instants, and all else: ``simulated/test_leaders.py``.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cluster.auditor import Auditor, seconds
from cluster.disturbing import BRONZE, REST, Disturbance, Load, watched
from cluster.installation import ACCOUNT
from cluster.labtools import HANG_SECONDS, until
from cluster.replaying import target
from cluster.running import Running, at
from cluster.stories import stories
from cluster.truth import courses, settled_ledger, together
from slacktide.lab import ApiError, Binaries, ControlPlane

LEASE_SECONDS = 12
"""A leader that cannot renew it for two thirds of that ends: of a busy machine this asks little enough."""
WATCH_SECONDS = 8
"""A watch that shows no sign of life for 9.2 s is dead."""
RETRY_SECONDS = LEASE_SECONDS / 7
"""A standby looks at the lease so often."""
SLOW = 5.0
"""As often an answer is waited for by a standby that takes the lease: it looks twice, and writes."""
LAST_WORDS_SECONDS = 10.0
"""An event that was not written so soon after its eviction may die with the leader; longer if the machine is late."""
UNDER_WAY_SECONDS = 2.0
"""Nor does one come of an eviction that the API server still had to carry out when the leader died."""
LOST = "no longer leads"
EPOLL_WAIT = frozenset({"232", "281", "441", "22"})
"""Where an event loop waits: ``epoll_wait``, ``epoll_pwait`` and ``epoll_pwait2`` of x86-64, and arm64's."""
UNTOLD = re.compile(r"^pod ([^/]+)/(\S+): evicted without an event$")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/slacktide-system/leases/slacktide"


@dataclass
class Pair:
    """Two replicas on a control plane."""

    plane: ControlPlane
    auditor: Auditor
    replicas: list[Running]
    ways: dict[str, Disturbance]
    """The way to the API server of each replica, by its name."""
    ends: list[tuple[float, str]] = field(default_factory=list)
    """When which leader was killed, frozen for so long that another one led, or told to stop; seconds since 1970."""
    loads: list[Load] = field(default_factory=list)
    removals: list[tuple[float, str]] = field(default_factory=list)
    """When the removal of which namespace began."""

    def history(self) -> list[tuple[float, str]]:
        """What happened, and when: ends of leaders, removals of namespaces, and what the replicas said."""
        found = [(at, f"the end of {name}") for at, name in self.ends]
        found += [(at, f"the removal of namespace {name} begins") for at, name in self.removals]
        return found + [(at, f"{one.component.name}: {line}") for one in self.replicas for at, line in one.said()]

    def quiet(self) -> None:
        """End the loads of tests that failed, and take them away: the next one needs the room."""
        removed = {name for _, name in self.removals}
        for load in self.loads:
            load.end()
            if load.namespace not in removed:
                self.remove(load)

    def freeze(self, leader: Running) -> None:
        """Freeze a leader while its event loop waits, so that whatever it has begun to send has left it."""
        pid = leader.component.pid
        while True:
            began = time.time()
            leader.component.signal(signal.SIGSTOP)
            until(lambda: "T (stopped)" in Path(f"/proc/{pid}/status").read_text(), "it is frozen")
            if Path(f"/proc/{pid}/syscall").read_text().split()[0] in EPOLL_WAIT:
                self.ends.append((began, leader.component.name))
                return
            leader.component.signal(signal.SIGCONT)
            time.sleep(0.001)  # it goes on a little

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

    def unready(self, replica: Running) -> str:
        """Why a replica says that it is not ready; empty where it is."""
        try:
            with urlopen(f"http://127.0.0.1:{replica.port}/readyz", timeout=HANG_SECONDS):
                return ""
        except HTTPError as refusal:
            return refusal.read().decode()
        except OSError as error:
            return str(error)  # it begins anew

    def both_run(self) -> Running:
        """Start whoever does not run; returns the leader once the other stands by."""
        for one in self.replicas:
            if not one.component.running:
                start(one)
        until(lambda: all("on standby as" in one.log for one in self.replicas), "both replicas stand by", 900)
        leader: Running = until(lambda: (found := self.leader()) and found.leads and found, "one of them leads")
        return leader

    def takes_over(self, leader: Running) -> None:
        """Wait until the standby leads: as soon as the lease has run out, and not before.

        By the instants that both wrote into the lease.
        """
        standby, old = self.other(leader), identity(leader)
        renewed, began = 0.0, time.time()

        def taken() -> dict[str, Any] | None:
            nonlocal renewed
            spec = dict(self.plane.api.get(LEASE)["spec"])
            if spec.get("holderIdentity") == identity(standby):
                return spec
            if spec.get("holderIdentity") == old:
                renewed = seconds(spec["renewTime"])
            return None

        spec = until(taken, "the standby takes the lease")
        took, late = seconds(spec["acquireTime"]), self.auditor.late(began - 1.0, time.time())
        if renewed:
            # It sees at one look that the lease was renewed, and at another that it has run out since.
            assert LEASE_SECONDS - 0.1 <= took - renewed <= LEASE_SECONDS + 2.0 * RETRY_SECONDS + 1.0 + SLOW * late
        until(lambda: standby.leads, "the standby leads")

    def wakes_and_ends(self, leader: Running) -> None:
        """A frozen leader is woken: it ends, and asks for nothing before it does.

        What its event loop had begun to write when it was frozen (``freeze``) would still come: nobody can take that
        back, as it is with what the network delays.
        """
        way = self.ways[leader.component.name]
        before = len(way.proxy.paths)
        leader.component.signal(signal.SIGCONT)
        until(lambda: not leader.component.running, "the deposed leader ends")
        assert writes(way, before) == []

    def check(self, load: Load, incidents: int) -> None:
        """All pods run in the end, and the ledger is right."""
        load.stop()
        until(load.is_settled, load)
        status = settled_ledger(self.plane.api, load.namespace, f"deployment-{BRONZE}", REST[BRONZE])
        self.auditor.catch_up()
        pods = courses(self.auditor, load.namespace, BRONZE)
        running, lived = together(pods, REST[BRONZE], at(status))
        error = status["deliveredAlways"] * lived - running
        allowed = REST[BRONZE] * (0.5 + 0.3 * incidents) + 2.0 * sum(pod.late for pod in pods)
        told = "\n".join(str(one) for one in [*pods, *sorted(self.ends), status])
        assert abs(error) <= allowed, f"{running:.1f} s run of {lived:.1f} s lived\n{told}"
        # A namespace that is being removed takes no events.
        until(lambda: not self.untold(load.namespace), "events tell of all evictions")
        self.remove(load)

    def remove(self, load: Load) -> None:
        self.removals.append((time.time(), load.namespace))
        self.plane.api.delete(f"/api/v1/namespaces/{load.namespace}")
        until(lambda: not self.plane.api.get(f"/api/v1/namespaces/{load.namespace}/pods")["items"], "the load is gone")

    def untold(self, namespace: str) -> list[str]:
        """Pods that were evicted without an event, though the leader that did it had the time to write one."""
        told = {one["regarding"].get("uid") for one in self.auditor.events(namespace, "Preempted")}
        acts = [act for act in self.auditor.evictions(namespace) if target(act) not in told]
        mute = [act for act in acts if not self.has_died(seconds(act["stageTimestamp"]))]
        return [f"{namespace}/{act['objectRef']['name']}" for act in mute]

    def is_untold(self, namespace: str, name: str) -> bool:
        """Whether an eviction of a pod has no event, though it must have one."""
        return f"{namespace}/{name}" in self.untold(namespace)

    def has_died(self, at: float) -> bool:
        """Whether the leader that did something at an instant ended so soon that its event may have died with it."""
        late = self.auditor.late(at, at + LAST_WORDS_SECONDS)
        least, most = -UNDER_WAY_SECONDS - late, LAST_WORDS_SECONDS + late
        return any(
            least <= end - at <= most for name in {self.led(at), self.led(at + least)} for end in self.ended(name)
        )

    def led(self, at: float) -> str:
        """Who was the last to begin to lead before an instant."""
        begun = [(term, one.component.name) for one in self.replicas for term in one.terms() if term <= at]
        return max(begun, default=(0.0, ""))[1]

    def ended(self, name: str) -> list[float]:
        """When a replica's terms ended, also those that ended by themselves: it could not renew the lease."""
        said = [at for one in self.replicas if one.component.name == name for at, line in one.said() if LOST in line]
        return said + [at for at, who in self.ends if who == name]


def identity(replica: Running) -> str:
    found = re.search(r"on standby as (\S+)", replica.log)
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
        settings["kube__watch_seconds"] = WATCH_SECONDS
        settings["kube__pass_budget"] = 0  # leases are lost between the parts of passes, too
        account = plane.service_account_kubeconfig(*ACCOUNT)
        with Disturbance(account) as first, Disturbance(account) as second:
            ways = {"one": first, "two": second}
            replicas = [way.running(plane, name=name, **settings) for name, way in ways.items()]
            yield Pair(plane, auditor, replicas, ways)
            for one in replicas:
                one.stop()


def begun(pair: Pair, name: str) -> Load:
    pair.quiet()
    load = Load(pair.plane.api, name, seed=len(name))
    pair.loads.append(load)
    load.begin()
    return load


def writes(disturbance: Disturbance, since: int) -> list[tuple[str, str]]:
    """What a replica asked to be changed after its first ``since`` requests, events and leases apart."""
    asked = disturbance.proxy.paths[since:]
    return [one for one in asked if one[0] != "GET" and not re.search("/events|/leases", one[1])]


def test_a_frozen_leader_is_replaced_and_ends_when_it_wakes(pair: Pair) -> None:
    leader = pair.both_run()
    standby = pair.other(leader)
    load = begun(pair, "frozen")
    time.sleep(4)
    pair.freeze(leader)
    pair.takes_over(leader)
    time.sleep(2)
    pair.wakes_and_ends(leader)
    assert "lost the lease" in leader.log
    assert pair.leader() is standby
    time.sleep(2)
    pair.check(load, 1)


def test_a_leader_whose_watch_falls_silent_gives_the_lease_back_and_lives_on(pair: Pair) -> None:
    leader = pair.both_run()
    standby, way = pair.other(leader), pair.ways[leader.component.name]
    mine, process = identity(leader), leader.component.pid
    way.stall_watches("^/api/v1/nodes$")
    until(lambda: pair.holder() not in ("", mine), "the other one takes the lease")
    until(lambda: standby.leads, "and leads")
    said = "released the lease and starts again: the watch of nodes has stopped"
    until(lambda: said in leader.log, "it says why")
    way.let_watches_flow()
    until(lambda: not pair.unready(leader), "it is ready again")
    assert leader.component.pid == process


def test_nothing_was_wrong_all_the_while(pair: Pair) -> None:
    pair.quiet()
    pair.auditor.stop()
    findings = pair.auditor.findings(term for one in pair.replicas for term in one.terms())
    # Of these each load has told already, but for those whose events died with a leader.
    untold = {one for one in findings if (found := UNTOLD.match(one)) and not pair.is_untold(found[1], found[2])}
    wrong = [one for one in findings if one not in untold]
    assert not wrong, f"{wrong}\n{stories(pair.auditor, wrong, pair.history())}"
    complaints = [
        f"{one.component.name}: {line}" for one in pair.replicas for _, line in one.said() if "Traceback" in line
    ]
    assert not complaints, "\n".join(complaints)
