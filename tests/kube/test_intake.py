"""Pods told to an engine by hand: what nobody has is forgotten, who has ended is said to have."""

from __future__ import annotations

from typing import Any

import pytest

from kube import made
from slacktide.kube.explaining import Memory, Teller, told
from slacktide.kube.intake import Intake
from slacktide.kube.metadata import Metadata
from slacktide.kube.objects import POD, Identity, ServiceClass, ServiceClassSpec
from slacktide.kube.owners import Target, Watched
from slacktide.kube.shadow import Quiet
from slacktide.kube.world import World
from slacktide.live.engine import Engine
from slacktide.settings import load_live

NOW = 1_790_000_000.0
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
TARGET = Target("apps/v1", "ReplicaSet", "default", "web", "web")


@pytest.fixture
def intake() -> Intake:
    config = load_live()
    world = World(config)
    found = Intake(config, world, lambda: NOW, Quiet())
    found.engine = Engine(config)
    world.classes.see(ServiceClass(Metadata("gold"), ServiceClassSpec(0.999, 1)))
    label = {"slacktide.io/managed": "true"}
    world.see_node(made.node("a", labels=label, allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}))
    return found


def see(intake: Intake, name: str, node: str = "", cpu: str = "1", phase: str = "") -> None:
    labels = {"slacktide.io/class": "gold"}
    body: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels, "ownerReferences": [OWNER]},
        "spec": {"schedulerName": "slacktide", "nodeName": node, "containers": [made.container(cpu=cpu)]},
        "status": {"phase": phase},
    }
    intake.changed(made.decoded(POD, body))


def drop(intake: Intake, name: str) -> None:
    intake.deleted(Identity("default", name, name, ""), None)


@pytest.mark.parametrize("node", ["", "a"])
def test_specs_of_pods_whose_owner_is_not_known_yet(intake: Intake, node: str) -> None:
    assert intake.engine is not None
    see(intake, "p", node)
    assert len(intake.specs) == 0
    assert (intake.engine.room("a")["cpu"] == 3000) == bool(node)  # it takes its room all the same
    intake.world.owners.watched["web"] = Watched(TARGET, None, 2)
    intake.reconsider(intake.orphans["web"])
    see(intake, "q", node)
    assert len(intake.specs) == 1  # they share it
    assert len(intake.engine.incarnations) == 2
    see(intake, "q", node, cpu="2")
    assert len(intake.specs) == 2
    drop(intake, "p")
    assert len(intake.specs) == 1
    drop(intake, "q")
    assert len(intake.specs) == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_explained_as_such(intake: Intake, phase: str) -> None:
    """It may stay listed for long, as a Job's does."""
    intake.world.owners.watched["web"] = Watched(TARGET, None, 1)
    teller = Teller(intake, Memory(), lambda: NOW)
    see(intake, "p", "a")
    running = teller.document("default", "p")
    assert running is not None
    assert "is starting on a" in told(running)
    see(intake, "p", "a", phase=phase)
    over = teller.document("default", "p")
    assert over is not None
    assert over["phase"] == phase
    assert told(over).splitlines()[:2] == ["Pod default/p", f"  has ended ({phase}) on a"]
