"""Spread of pods that ask for none: which pods count follows from services and controllers; no engine, no server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.kube.client.kinds import Identity, Kind
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import subscriptions
from slacktide.kube.resources.objects import POD, REPLICA_SET, REPLICATION_CONTROLLER, SERVICE, Pod
from slacktide.kube.translate.profiles import default_constraints, profiles_of
from slacktide.settings import load_live
from support.made_objects import decoded, node

HARD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]


def settings(spread: str) -> Config:
    found = load_live()
    return replace(found, kube=replace(found.kube, default_spread=spread))


class Told(Changes):
    def __init__(self) -> None:
        self.uids: list[str] = []

    def constraints(self, uids: Any, *, by: str = "", at_once: bool = False) -> None:  # noqa: ARG002
        self.uids += uids


class World:
    def __init__(self, spread: str) -> None:
        self.mirror = ClusterMirror(settings(spread), lambda: 0.0)
        self.told = Told()
        self.mirror.follow(self.told)
        labels = dict.fromkeys(("kubernetes.io/hostname", "topology.kubernetes.io/zone"), "a")
        self.mirror.on_node_update(node("a", labels | {"node-restriction.kubernetes.io/slacktide": "true"}))

    def pod(self, name: str, owner: str = "", **spec: Any) -> Pod:
        metadata: dict[str, Any] = {"name": name, "namespace": "n", "uid": name, "labels": {"app": "web", "tier": "x"}}
        if owner:
            reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
            metadata["ownerReferences"] = [reference | {"controller": True}]
        found = decoded(POD, {"metadata": metadata, "spec": {"schedulerName": "slacktide"} | spec})
        self.mirror.on_pod_update(found)
        return found

    def service(self, **selector: str) -> None:
        body = {"metadata": {"name": "s", "namespace": "n"}, "spec": {"selector": selector}}
        self.mirror.on_service_update(decoded(SERVICE, body))

    def replica_set(self, name: str, **labels: str) -> None:
        self.controller(REPLICA_SET, name, {"matchLabels": labels})

    def controller(self, kind: Kind[Any], name: str, selector: dict[str, Any]) -> None:
        """As a watch tells it."""
        body = {"metadata": {"name": name, "namespace": "n", "uid": name}, "spec": {"selector": selector}}
        dict(subscriptions(self.mirror))[kind].changed(decoded(kind, body))

    def spreads(self, pod: Pod) -> list[str]:
        """Marks that the pod is spread over."""
        return [one.mark for one in self.mirror.constraints.constraints_of(pod).placement.rules if one.kind == "spread"]


@pytest.fixture
def world() -> World:
    return World(json.dumps(HARD))


def test_a_pod_that_nothing_selects_is_not_spread(world: World) -> None:
    assert world.spreads(world.pod("p")) == []
    world.service(app="other")
    world.service()
    assert world.spreads(world.pod("p")) == []


def test_services_and_controllers_select_together(world: World) -> None:
    pod = world.pod("p", "rs")
    world.service(app="web")
    assert world.spreads(pod) == ["counted:n/app=web"]
    assert set(world.told.uids) == {"p"}
    world.replica_set("rs", tier="x")
    assert world.spreads(pod) == ["counted:n/app=web,tier=x"]
    world.mirror.on_service_delete("n", "s")
    assert world.spreads(pod) == ["counted:n/tier=x"]


def test_a_replication_controller_selects_by_labels_alone(world: World) -> None:
    pod = world.pod("p", "rc")
    world.controller(REPLICATION_CONTROLLER, "rc", {"tier": "x"})
    assert world.spreads(pod) == ["counted:n/tier=x"]
    gone = dict(subscriptions(world.mirror))[REPLICATION_CONTROLLER]
    gone.deleted(Identity("n", "rc", "rc", ""), None)
    assert world.spreads(world.pod("q", "rc")) == []


def test_a_pod_with_a_spread_of_its_own_has_no_other(world: World) -> None:
    own = HARD[0] | {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
    world.service(app="web")
    assert world.spreads(world.pod("p", topologySpreadConstraints=[own])) == ["counted:n/a=b"]


def test_what_kube_scheduler_has_by_default_are_preferences() -> None:
    world = World("system")
    world.service(app="web")
    placement = world.mirror.constraints.constraints_of(world.pod("p")).placement
    assert {one.topology.key for one in placement.preferences if one.mark} == {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    }
    assert placement.rules == ()


def test_without_the_setting_nothing_is_spread() -> None:
    world = World("")
    world.service(app="web")
    assert world.mirror.constraints.constraints_of(world.pod("p")).placement.rules == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("zone", "expected 'system', or a JSON list"),
        (json.dumps([HARD[0] | {"maxSkew": 0}]), "maxSkew: found 0"),
        (json.dumps([HARD[0] | {"labelSelector": {}}]), "has a selector"),
    ],
)
def test_constraints_that_are_none_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"kube.default_spread: .*{problem}"):
        default_constraints(text)


@pytest.mark.parametrize(
    ("scheduler", "spread", "count"),
    [("default-scheduler", None, 2), ("default-scheduler", "", 0), ("slacktide", None, 0), ("slacktide", "system", 2)],
)
def test_who_takes_the_place_of_kube_scheduler_spreads_as_it_does(
    scheduler: str, spread: str | None, count: int
) -> None:
    found = load_live()
    kube = replace(found.kube, scheduler_name=scheduler, default_spread=spread)
    assert len(profiles_of(kube)[scheduler].spread) == count
