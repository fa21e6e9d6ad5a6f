"""Nobody makes himself untouchable: what a workload says of itself never keeps it from being somebody's victim."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube.feed.test_blame import World, kept
from slacktide.engine.core.types import Decision
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.resources.custom_resources import OwnLimitsSpec
from slacktide.kube.resources.objects import POD, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects

UNTOUCHABLE = {
    "disruptions": "0 per 1h",
    "hours": "Sun 03:00-03:01",
    "min-running": "99999w",
    "cooldown": "999999999999",
    "slo": "9",
    "approach": "none of them",
    "users": "nowhere:much",
    "deadline": "never",
    "data": "9" * 4_301,
}


class Town(World):
    """A world of one node whose scheduler goes by delays as well."""

    def __init__(self, **own_limits: Any) -> None:
        super().__init__()
        config = load_live()
        policy = replace(config.policy, score="delay-aware")
        self.config = replace(config, policy=policy)
        self.mirror = ClusterMirror(self.config, self.clock)
        for name, rank, slo in (("gold", 1, 0.999), ("bronze", 3, 0.001)):
            spec = ServiceClassSpec(slo, rank, namespaces=("*",), own_limits=OwnLimitsSpec(**own_limits))
            self.mirror.on_class_update(ServiceClass(Metadata(name), spec))
        self.node("a")
        self.lead()

    def bare(self, name: str, service: str, node: str = "", **annotations: str) -> None:
        said = {f"slacktide.io/{key}": text for key, text in annotations.items()}
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}] if node else []
        metadata = {
            "name": name, "namespace": "default", "uid": name, "labels": {"slacktide.io/class": service},
            "annotations": said, "creationTimestamp": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        spec = {"schedulerName": "slacktide", "nodeName": node, "containers": [made_objects.container(cpu="4")]}
        status = {"phase": "Running" if node else "Pending", "conditions": ready}
        self.mirror.on_pod_update(made_objects.decoded(POD, {"metadata": metadata, "spec": spec, "status": status}))

    def decide(self) -> list[Decision]:
        return list(self.engine.run(self.clock()).decisions)


@pytest.mark.parametrize("name", UNTOUCHABLE)
def test_who_says_that_he_is_untouchable_and_runs_is_a_victim_as_any(name: str) -> None:
    """As a pod that names its node itself, or that another scheduler's template brought past admission."""
    town = Town()
    town.bare("bad", "bronze", "a", **{name: UNTOUCHABLE[name]})
    town.t = 40_000_000.0
    town.bare("good", "gold")
    (decision,) = town.decide()
    assert [one.uid for one in decision.victims] == ["bad"]
    again = Town()
    again.mirror = town.mirror
    again.t = town.t
    again.lead(kept(town))
    assert "bad" in again.engine.pods, "the next leader says the same"
    (decision,) = again.decide()
    assert [one.uid for one in decision.victims] == ["bad"]


@pytest.mark.parametrize("name", UNTOUCHABLE)
def test_who_says_it_and_waits_is_told_what_is_right(name: str) -> None:
    town = Town()
    town.bare("bad", "bronze", **{name: UNTOUCHABLE[name]})
    assert not town.engine.anybody_waits()
    assert town.feed.pods["bad"].problem.startswith(f"annotation slacktide.io/{name}: ")


def test_a_class_may_let_its_workloads_be_untouchable() -> None:
    town = Town(untouchable=True)
    town.bare("safe", "bronze", "a", disruptions="0 per 1h")
    town.t = 40_000_000.0
    town.bare("good", "gold")
    assert not town.decide()


def test_who_runs_within_what_its_class_lets_it_keeps_its_own_limits() -> None:
    town = Town()
    town.bare("own", "bronze", "a", cooldown="1h")
    (controller,) = town.engine.controllers.values()
    assert controller.limits is not None
    assert controller.limits.cooldown == 3600.0
