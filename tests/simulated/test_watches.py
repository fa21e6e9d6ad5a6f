"""Watches that fall silent: who cannot decide without one gives the lease back, and what needs none of it goes on.

With real sockets, one of them: ``cluster/test_live_leaders.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from cluster.labtools import pod
from simulated.alone import Faults
from simulated.pod_model import condition
from simulated.replica import Replica
from simulated.stage import Stage, service_class, staged
from slacktide.kube.client.reflector import DEAD

WATCH_SECONDS = 8
LEASE_SECONDS = 9
AWAY = 100_000.0
CLASS = "slacktide.io/class"


@pytest.fixture
def place() -> Iterator[Stage]:
    settings = {"kube__watch_seconds": WATCH_SECONDS, "kube__lease_duration": LEASE_SECONDS}
    with staged([service_class("gold", 0.99, 1)], replicas=2, scheduler__watchdog=1, **settings) as stage:
        stage.nodes(2, cpu="4")
        stage.until(
            lambda: all(one.scheduler and one.scheduler.synced for one in stage.world.replicas), "both know all"
        )
        stage.wait(5.0)
        yield stage


def stall(replica: Replica, plural: str) -> Callable[[], None]:
    """Watches of a kind stay open and say nothing more, and new ones are not accepted; what ends that."""
    assert replica.wire is not None
    assert replica.connection is not None
    for one in replica.connection.watches():
        if one.resource.plural == plural:
            one.silent_until = AWAY
    fault = Faults(replica.wire).add(path=f"/{plural}$", watches=True, delay=AWAY)

    def let_flow() -> None:
        fault.times = 0

    return let_flow


def holder(place: Stage) -> str:
    """Who holds the lease, by the name of its process; empty where nobody does."""
    spec = (place.world.store.get("leases", "slacktide-system", "slacktide") or {"spec": {}})["spec"]
    return str(spec.get("holderIdentity") or "")


def create(place: Stage, name: str, claim: str = "") -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    place.create("pods", pod(name, labels={CLASS: "gold"}, volumes=volumes))


def is_dead(place: Stage, replica: Replica, kind: str) -> bool:
    """Whether a replica's metrics say that a watch is dead."""
    return f'slacktide_watch_dead{{kind="{kind}"}} 1.0\n' in place.asked("/metrics", replica)[1]


def unready(replica: Replica) -> str:
    """Why it would tell a probe that it is not ready (``SchedulerPages``); empty where it is."""
    scheduler = replica.scheduler
    assert scheduler is not None
    return scheduler.missing or ("" if scheduler.synced else "the first lists") or scheduler.stale()


def test_who_cannot_decide_gives_way_and_leads_again_once_its_watches_live(place: Stage) -> None:
    old = place.leader
    (new,) = (one for one in place.world.replicas if one is not old)
    create(place, "before")
    place.bound("before")
    flows, begun, process = stall(old, "nodes"), place.now, old.identity
    place.until(lambda: holder(place) == new.identity, "the other one leads")
    # Given back, the lease is taken at the next look: what a watch may be silent for, and not the lease's time beside.
    assert place.now - begun <= DEAD * WATCH_SECONDS + 1.1 + LEASE_SECONDS / 7 + 1.0
    place.until(partial(lambda one: one.leading, new), "it has begun to")
    create(place, "meanwhile")
    place.bound("meanwhile")
    assert old.identity == process, "its process goes on"
    # It has listed anew, but nothing tells it what happens since.
    place.until(lambda: "the watch of nodes has stopped" in unready(old), "it is not ready", DEAD * WATCH_SECONDS + 1.0)
    place.wait(1.0)  # it is looked at by the watchdog
    assert not unready(new)
    assert is_dead(place, old, "nodes")
    assert not is_dead(place, new, "nodes")
    place.loop.run_until_complete(new.end())
    create(place, "nobody")
    place.wait(10 * LEASE_SECONDS)
    assert place.world.leader is None, "it takes no lease that it cannot use"
    assert holder(place) != old.identity
    flows()
    place.until(lambda: holder(place) == old.identity, "it leads again")
    place.bound("nobody")


def test_without_word_of_volumes_only_pods_with_claims_wait(place: Stage) -> None:
    leader = place.leader
    flow = [stall(one, "persistentvolumes") for one in place.world.replicas]
    place.wait(DEAD * WATCH_SECONDS + 2.0)
    assert all(is_dead(place, one, "persistentvolumes") for one in place.world.replicas)
    sizes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "early"}
    place.create("storageclasses", {"metadata": {"name": "early"}, "provisioner": "kubernetes.io/no-provisioner"})
    wanted = {**sizes, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "there"}
    made = place.create("persistentvolumeclaims", {
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": wanted,
    })  # fmt: skip
    reference = {"namespace": place.namespace, "name": "data", "uid": made["metadata"]["uid"]}
    spec = {**sizes, "capacity": {"storage": "1Gi"}, "claimRef": reference}
    place.create("persistentvolumes", {"metadata": {"name": "there"}, "spec": spec})
    create(place, "claiming", "data")
    create(place, "simple")
    place.bound("simple", 1.0)

    def says() -> str:
        return str((condition(place.pod("claiming"), "PodScheduled") or {}).get("message", ""))

    place.until(lambda: "the watch of persistentvolumes has stopped" in says(), "it says why it waits")
    place.wait(60.0)
    assert place.leader is leader
    assert not unready(leader)
    for one in flow:
        one()
    assert place.bound("claiming", WATCH_SECONDS * DEAD + 10.0)
    assert place.leader is leader
