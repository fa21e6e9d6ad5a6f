"""Objects that whoever may create pods and Jobs in one namespace could send: none of them ends or holds up anybody."""

from __future__ import annotations

from typing import Any

import pytest

from kube.feed.test_blame import T0, World, kept
from kube.feed.test_pod_groups import Town
from slacktide.engine.core.types import MOST_INSTANCES, MOST_SECONDS
from slacktide.engine.ledger.checkpoint import read
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.errors import StateError
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.resources.objects import JOB, POD, ServiceClass, ServiceClassSpec
from slacktide.kube.translate.owners import suspended
from slacktide.kube.translate.pod_groups import COSCHEDULING, KUBERNETES, KUEUE_LABEL, KUEUE_TOTAL, WORKLOADS
from support import made_objects

MANY_DIGITS = "9" * 4_301
"""Python makes no number of so many digits."""


@pytest.mark.parametrize("total", [str(2**63), MANY_DIGITS, str(2**63 - 1), "1000001", "٣", "", "-1", "1e3", "0"])
def test_a_group_of_kueue_that_says_no_number_of_pods_waits(town: Town, total: str) -> None:
    kueue: dict[str, Any] = {"schedulingGroup": None, "labels": {KUEUE_LABEL: "g"}}
    town.pod("bad", **kueue, annotations={KUEUE_TOTAL: total})
    town.pod("good", schedulingGroup=None)
    assert town.waiting() == {"good"}
    assert town.heard.reasons["bad"] == (
        f"annotation {KUEUE_TOTAL}: expected how many pods the group has, from 1 to 1000000, as in '3'"
    )
    town.lead()
    assert town.waiting() == {"good"}
    town.pod("bad", **kueue, annotations={KUEUE_TOTAL: "1"})
    assert town.waiting() == {"good", "bad"}
    assert not town.mirror.barrier.counts


@pytest.fixture
def town() -> Town:
    return Town()


def test_an_engine_is_told_of_no_group_that_its_tables_cannot_hold(town: Town) -> None:
    for least in (2**63, MOST_INSTANCES + 1, -1):
        with pytest.raises(StateError, match="expected 1000000 at most"):
            town.engine.pod_group("g", least)
    assert not town.engine.groups.numbers
    town.engine.pod_group("g", MOST_INSTANCES)
    assert town.engine.groups.least("g") == MOST_INSTANCES


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("disruptions", f"{MANY_DIGITS} per 1h"),
        ("disruptions", f"1 per {MANY_DIGITS}h"),
        ("disruptions", "1 per 1h" + " " * 2_000),
        ("cooldown", MANY_DIGITS),
        ("min-running", MANY_DIGITS + "w"),
        ("hours", f"Sun {MANY_DIGITS}:00-24:00"),
        ("hours", ";".join(["Sun 00:00-24:00"] * 100)),
        ("slo", "0." + MANY_DIGITS),
        ("approach", MANY_DIGITS),
    ],
)
def test_a_limit_of_its_own_that_no_number_can_say_is_refused_shortly(name: str, text: str) -> None:
    world = World()
    world.owner()
    metadata = {"annotations": {f"slacktide.io/{name}": text}}
    body = {
        "metadata": {"name": "bad", "namespace": "default", "uid": "bad", "labels": {"slacktide.io/class": "silver"}}
        | metadata,
        "spec": {"schedulerName": "slacktide", "containers": [made_objects.container(cpu="1")]},
    }
    world.mirror.on_pod_update(made_objects.decoded(POD, body))
    world.pod("good")
    assert world.engine.waiting() == ["good"]
    problem = world.feed.pods["bad"].problem
    assert problem.startswith(f"annotation slacktide.io/{name}: ")
    assert len(problem) < 400
    assert not world.mirror.barrier.counts


def job(world: World, parallelism: int, suspend: bool) -> None:
    body = {
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"parallelism": parallelism, "completions": parallelism, "suspend": suspend},
    }
    found = made_objects.decoded(JOB, body)
    world.mirror.on_controller_update(found, "batch/v1", "Job", -1, suspended=suspended(found))


@pytest.mark.parametrize("days", [0, 365])
def test_a_job_that_suspends_two_million_pods_and_is_deleted_is_buried(days: int) -> None:
    world = World()
    job(world, 1, suspend=False)
    world.up("p", kind="Job")
    job(world, 2_000_000, suspend=True)
    world.t = 86_400.0 * days
    (written,) = kept(world).values()
    read(written.status.accumulators)  # the next leader goes on from it
    world.drop("p")
    world.mirror.on_controller_delete("web")
    (buried,) = world.heard.buried_ones
    assert buried[1]["at"] == T0 + world.t
    assert read(buried[1]).suspended[0] <= MOST_SECONDS
    assert not world.engine.controllers


def test_a_workload_whose_ledger_cannot_be_laid_to_rest_is_gone_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    world.owner()
    world.up("p")
    monkeypatch.setattr("slacktide.kube.feed.controllers.export", lambda *args: export(*args) | {"at": None})
    world.mirror.on_controller_delete("web")
    world.drop("p")
    assert not world.engine.controllers
    assert not world.heard.buried_ones
    assert "is not kept: books: at: found None" in caplog.text


@pytest.mark.parametrize("seconds", [2**63 - 1, 2**33, 0])
def test_a_grace_period_of_any_length_is_a_number(seconds: int) -> None:
    world = World()
    world.owner(replicas=2)
    world.up("bad", terminationGracePeriodSeconds=seconds, cpu="4")
    world.up("worse", "b", terminationGracePeriodSeconds=seconds, cpu="4")
    world.pod("good", service="gold", uid="gold", created=0.0)
    world.t = 10_000.0
    assert world.engine.run(world.clock()).problem == ""
    world.pod("bad", "a", ready=0.0, started=0.0, going=True, terminationGracePeriodSeconds=seconds, cpu="4")
    world.lead(kept(world))
    assert not world.mirror.barrier.counts


@pytest.mark.parametrize("source", [KUBERNETES, WORKLOADS, COSCHEDULING])
def test_a_group_object_that_says_more_pods_than_a_group_can_have_holds_back_its_own(town: Town, source: str) -> None:
    """Which validation takes, up to 2^31 - 1; the fuzzer found it."""
    most = 2**31 - 1
    said: dict[str, dict[str, Any]] = {
        KUBERNETES: {"schedulingPolicy": {"gang": {"minCount": most}}},
        WORKLOADS: {"podGroups": [{"name": "m", "policy": {"gang": {"minCount": most}}}]},
        COSCHEDULING: {"minMember": most},
    }
    member: dict[str, dict[str, Any]] = {
        KUBERNETES: {},
        WORKLOADS: {"schedulingGroup": None, "workloadRef": {"name": "g", "podGroup": "m"}},
        COSCHEDULING: {"schedulingGroup": None, "labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    }
    town.pod("bad", **member[source])
    town.group(source, "g", **said[source])
    town.pod("good", schedulingGroup=None)
    assert town.waiting() == {"good"}
    assert town.heard.reasons["bad"].endswith(f"found {most} pods, expected 1000000 at most")
    town.lead()
    assert town.waiting() == {"good"}
    assert not town.mirror.barrier.counts


def test_who_was_a_stranger_on_a_node_that_is_gone_is_known_there() -> None:
    """Its class comes late, and the node was kept for this pod alone; the fuzzer found it."""
    world = World()
    world.owner(service="late")
    world.up("bad", "b", service="late")
    assert "bad" in world.engine.others
    world.mirror.on_node_delete("b")
    world.mirror.on_class_update(ServiceClass(Metadata("late"), ServiceClassSpec(0.9, 5, namespaces=("*",))))
    assert world.engine.pods["bad"].host == "b"
    assert not world.engine.others
    assert not world.mirror.barrier.counts
    world.drop("bad")
    assert set(world.engine.hosts) == {"a"}


@pytest.mark.parametrize("service", ["silver", "none"])
@pytest.mark.parametrize("leads", [False, True])
def test_a_node_that_somebody_made_up_is_forgotten_with_its_pod(service: str, leads: bool) -> None:
    world = World()
    world.owner(service=service)
    world.up("bad", "nowhere", service=service)
    if leads:
        world.lead()
    assert set(world.engine.hosts) == {"a", "b", "nowhere"}
    world.drop("bad")
    assert set(world.engine.hosts) == {"a", "b"}


def test_a_node_that_comes_after_its_pod_is_a_node_as_any() -> None:
    world = World()
    world.owner()
    world.up("early", "late")
    world.node("late", cpu="2")
    assert world.engine.room("late")["cpu"] == 1000
    world.drop("early")
    assert world.engine.room("late")["cpu"] == 2000


def test_a_time_zone_of_hundreds_of_parts_is_none() -> None:
    """Python looks for it in as deep a recursion; the fuzzer of parsers found it."""
    world = World()
    world.owner(annotations={"slacktide.io/hours": "Mon-Sun 00:00-24:00 " + "a/" * 470 + "a"})
    world.pod("bad")
    assert world.feed.pods["bad"].problem.startswith("annotation slacktide.io/hours: ")
    assert not world.mirror.barrier.counts
