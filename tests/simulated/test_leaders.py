"""Two replicas, one lease: one acts, the other takes over, and a leader that was away acts no more.

That only who holds the lease writes is looked at with every request (``invariants.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from cluster.labtools import deployment, pod
from simulated.replica import Replica
from simulated.stage import Life, Stage, service_class, staged

LEASE_SECONDS = 12
RETRY_SECONDS = LEASE_SECONDS / 7
"""A standby looks at the lease so often."""
WAY = 0.1
"""Seconds that some requests and their answers take."""
BLIND = 1.0
"""Seconds by which a ledger may be off for each new leader and instance: since when pods run it reads off conditions,
which have whole seconds."""


@pytest.fixture
def place() -> Iterator[Stage]:
    """So few requests a second that some wait for their turn when a leader is frozen, between the parts of a pass."""
    classes = [service_class("gold", 0.99, 1), service_class("bronze", 0.3, 3, overheadLimit=1.0, default=True)]
    settings = {"kube__qps": 20, "kube__burst": 5, "kube__pass_budget": 0}
    with staged(classes, replicas=2, kube__lease_duration=LEASE_SECONDS, **settings) as stage:
        stage.nodes(3, cpu="4")
        stage.create("deployments", deployment("bronze", 10, cpu="1", labels={"slacktide.io/class": "bronze"}))
        stage.ready("bronze", 10)
        yield stage


def load(place: Stage, seconds: float) -> None:
    """Gold pods come and go, each in the place of a bronze one, for so long."""
    draw, until = place.world.chance.of("gold pods"), place.now + seconds
    while place.now < until:
        place.wait(draw.uniform(0.1, 1.0))
        names = place.names("gold")
        if len(names) < 4:
            body = pod(f"gold-{place.now:.3f}".replace(".", "-"), cpu="1", labels={"slacktide.io/class": "gold"})
            place.create("pods", body)
        else:
            place.delete("pods", names[draw.randrange(len(names))])


def other(place: Stage, leader: Replica) -> Replica:
    return next(one for one in place.world.replicas if one is not leader)


def lease(place: Stage) -> tuple[str, float, float]:
    """Who holds it, since when, and when it was renewed last."""
    found = place.world.store.get("leases", "slacktide-system", "slacktide")
    assert found is not None
    spec = found["spec"]
    return spec.get("holderIdentity") or "", place.instant(spec["acquireTime"]), place.instant(spec["renewTime"])


def takes_over(place: Stage, old: str) -> None:
    """The standby takes the lease when it has run out, and not before."""
    renewed = lease(place)[2]
    place.until(lambda: lease(place)[0] not in ("", old), "another one has the lease", 60.0)
    # It sees at one look that the lease was renewed, and at another that it has run out since.
    assert LEASE_SECONDS <= lease(place)[1] - renewed <= LEASE_SECONDS + 2 * RETRY_SECONDS + WAY


def check(place: Stage, leaders: int) -> None:
    """All that can run does in the end, and the ledger is right to what new leaders cannot know."""
    for name in place.names("gold"):
        place.delete("pods", name)
    place.ready("bronze", 10)
    status = place.status("deployment-bronze", lambda one: one["running"] == 10, "all run")
    at = place.instant(status["at"])
    lives = [one for one in place.lives("bronze-") if one.created <= at]
    good = sum(min(one, 10) * seconds for one, seconds in at_once(lives, at))
    assert status["goodSeconds"] == pytest.approx(good, abs=10 * (WAY + BLIND * leaders))
    evicted = [one.name for one in lives if one.evicted is not None]
    assert len(evicted) > 5
    told = " ".join(one["involvedObject"]["name"] for one in place.world.store.every("events")
                    if one["reason"] == "Preempted")  # fmt: skip
    assert sum(one not in told for one in evicted) <= leaders, "but for what died with a leader events tell of all"


def at_once(lives: list[Life], at: float) -> Iterator[tuple[int, float]]:
    """How many were ready, and for how long that was so."""
    edges = sorted({at, *(min(edge, at) for one in lives for span in one.up for edge in span)})
    for begin, end in pairwise(edges):
        yield sum(a <= begin < b for one in lives for a, b in one.up), end - begin


def test_a_killed_leader_is_replaced_within_its_lease(place: Stage) -> None:
    load(place, 10.0)
    old = place.leader.identity
    place.do(place.leader.kill)
    takes_over(place, old)
    load(place, 10.0)
    check(place, 1)


def test_a_leader_frozen_again_and_again_under_load_never_acts_beside_another(place: Stage) -> None:
    """When it wakes it ends, and writes nothing before it does."""
    for _ in range(4):
        load(place, 5.0)
        leader = place.leader
        old = leader.identity
        place.do(leader.freeze)
        takes_over(place, old)
        place.until(partial(lambda one: one.leading, other(place, leader)), "the standby leads")
        load(place, 2.0)
        place.do(leader.thaw)
        place.until(partial(lambda one, before: one.identity != before, leader, old), "it ends, and is started again")
        assert place.leader is not leader
        place.until(partial(lambda one: one.scheduler.synced, leader), "it stands by")
    check(place, 4)


def test_a_leader_that_stops_hands_over_at_once(place: Stage) -> None:
    load(place, 10.0)
    old, began = place.leader.identity, place.now
    place.do(place.leader.stop)
    place.until(lambda: lease(place)[0] not in ("", old), "another one has the lease")
    assert lease(place)[1] - began <= RETRY_SECONDS + 1.0 + WAY  # events and ledgers are written before, for a second
    check(place, 1)


def test_a_short_freeze_changes_nothing(place: Stage) -> None:
    load(place, 5.0)
    leader, old = place.leader, place.leader.identity
    place.do(leader.freeze)
    place.wait(LEASE_SECONDS / 3 - 0.5)
    place.do(leader.thaw)
    load(place, LEASE_SECONDS)
    assert place.leader.identity == old
    check(place, 0)
