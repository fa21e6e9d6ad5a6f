"""Whose promise it is, and how long it lasts: templates, youngest pods, classes that are gone."""

from __future__ import annotations

from typing import Any

import pytest

from kube.feed.test_blame import World, job, kept
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.resources.objects import POD, STATEFUL_SET, Pod, ServiceClass, ServiceClassSpec, StatefulSet
from slacktide.kube.translate.service_classes import CLASS_LABEL, SLO
from support import made_objects


@pytest.fixture
def world() -> World:
    found = World()
    found.owner()
    return found


def service(world: World) -> tuple[str, float]:
    one = world.engine.controllers[world.key].service
    return one.name, one.slo


# -- where no pod says it ----------------------------------------------------------------------------------------------


def test_a_workload_without_pods_is_of_its_templates_class(world: World) -> None:
    world.up("p")
    world.drop("p")
    world.owner(service="gold")
    assert service(world) == ("gold", 0.999)
    world.mirror.on_class_update(ServiceClass(Metadata("gold"), ServiceClassSpec(0.99, 1, namespaces=("*",))))
    assert service(world) == ("gold", 0.99)


def test_a_new_leader_takes_it_from_the_template_and_not_from_the_ledger(world: World) -> None:
    world.up("p")
    world.drop("p")
    ledgers = kept(world)
    world.mirror._followers.clear()  # nobody leads
    world.owner(service="gold")
    world.lead(ledgers)
    assert service(world) == ("gold", 0.999)


# -- owners that nobody watches ----------------------------------------------------------------------------------------


def test_the_youngest_pod_says_the_class_of_a_custom_resource() -> None:
    world = World()
    custom: dict[str, Any] = {"kind": "Thing"}
    world.pod("a", "a", created=0, **custom)
    world.pod("b", "a", created=10, **custom)
    world.pod("a", "a", created=0, service="gold", **custom)
    assert service(world)[0] == "silver"
    world.mirror.on_class_update(ServiceClass(Metadata("silver"), ServiceClassSpec(0.8, 2, namespaces=("*",))))
    assert service(world) == ("silver", 0.8)
    world.pod("c", "a", created=20, service="gold", **custom)
    assert service(world)[0] == "gold"
    world.pod("b", "a", created=10, going=True, **custom)  # it was there before
    assert service(world)[0] == "gold"
    for order in (("a", "b", "c"), ("c", "b", "a")):  # a new leader may see them in any order
        for name in order:
            world.mirror.pods[name] = world.mirror.pods.pop(name)
        world.lead()
        assert service(world)[0] == "gold"


def test_what_a_custom_resource_has_made_says_it_by_its_template() -> None:
    world = World()
    found = middle("silver")
    world.mirror.on_controller_update(found, "apps/v1", "StatefulSet", 1, template=found.spec.template)
    world.pod("p", "a", uid="set", kind="StatefulSet")
    world.pod("p", "a", uid="set", kind="StatefulSet", service="gold")
    assert world.key == "Thing/default/thing/thing"
    assert service(world)[0] == "silver"


def middle(name: str, slo: str = "") -> StatefulSet:
    """A StatefulSet that an operator's custom resource owns."""
    owner = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "thing", "uid": "thing", "controller": True}
    metadata = {"name": "web", "namespace": "default", "uid": "set", "ownerReferences": [owner]}
    annotations = {SLO: slo} if slo else {}
    template = {"metadata": {"labels": {CLASS_LABEL: name}, "annotations": annotations}}
    return made_objects.decoded(STATEFUL_SET, {"metadata": metadata, "spec": {"template": template}})


# -- a pod that goes and does not --------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [0, 1])
def test_a_new_leader_leaves_out_a_replaced_pod_of_a_job(others: int) -> None:
    """How many pods a Job should have nobody knows: whoever came since the other was told to go is in its place."""
    world = World()
    job(world, suspend=False)
    world.node("a", ready=False, since=50)
    world.t = 400.0
    world.pod("old", "a", unready=50, started=0, going=True, marked="DeletionByTaintManager", kind="Job")
    for i in range(others):
        world.pod(f"other-{i}", "b", created=0, started=5, ready=10, kind="Job")
    world.pod("new", "b", created=410, started=415, ready=420, kind="Job")
    world.lead()
    assert len(world.engine.controllers[world.key].rows) == 1 + others
    assert (world.status(1000).running, world.status(1000).waiting) == (1 + others, 0)
    assert "old" in world.engine.others


def test_without_a_replacement_it_counts() -> None:
    world = World()
    job(world, suspend=False)
    world.node("a", ready=False, since=50)
    world.pod("other", "b", created=0, started=5, ready=10, kind="Job")
    world.t = 400.0
    world.pod("old", "a", unready=50, started=0, going=True, marked="DeletionByTaintManager", kind="Job")
    world.lead()
    assert (world.status(1000).running, world.status(1000).waiting) == (1, 1)


# -- classes that are gone ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("anew", [False, True])
def test_a_class_that_is_gone_holds_on_for_who_has_it(world: World, broken: bool, anew: bool) -> None:
    """Also for pods that come later, and after a new leader has begun; for nobody else."""
    spec = ServiceClassSpec(
        0.95, 2, margin_seconds=7.0, counts="everything", cooldown="5m", tiers=(), namespaces=("*",)
    )
    world.mirror.on_class_update(ServiceClass(Metadata("silver"), spec))
    world.up("p")
    before = world.engine.controllers[world.key]
    limits = before.limits
    assert (before.everything, limits is not None) == (True, True)
    ledgers = kept(world)
    if broken:
        world.mirror.on_class_update(ServiceClass(Metadata("silver"), ServiceClassSpec(0.95, 0, namespaces=("*",))))
    else:
        world.mirror.on_class_delete("silver")
    if anew:
        world.lead(ledgers)
    world.drop("p")
    world.pod("q")
    after = world.engine.controllers[world.key]
    assert after.service == before.service
    assert (after.limits, after.everything) == (limits, True)
    assert list(world.engine.pods) == ["q"]
    world.pod("other", uid="another", kind="Thing")
    assert "service class 'silver'" in world.feed.pods["other"].problem
    assert list(world.engine.pods) == ["q"]
    world.mirror.on_class_update(ServiceClass(Metadata("silver"), ServiceClassSpec(0.7, 3, namespaces=("*",))))
    assert world.engine.controllers[world.feed.pods["q"].key].service.slo == 0.7
    assert set(world.engine.pods) == {"q", "other"}


def closed(name: str = "silver", slo: float = 0.9, *namespaces: str) -> ServiceClass:
    """A class that is for some namespaces only, and not for the one of these tests unless it is named."""
    return ServiceClass(Metadata(name), ServiceClassSpec(slo, 2, namespaces=namespaces or ("elsewhere",)))


@pytest.mark.parametrize("anew", [False, True])
def test_a_class_that_is_taken_from_a_namespace_holds_on_for_who_has_it(world: World, anew: bool) -> None:
    world.up("p")
    before, ledgers = world.engine.controllers[world.key].service, kept(world)
    told = "service class silver may no longer be used in namespace default; this workload keeps its promise"
    world.mirror.on_class_update(closed())
    assert [(target.key, why[: len(told)]) for target, why in world.heard.kept_ones] == [(world.key, told)]
    assert world.mirror.classes.lost(before, "default").startswith(told), "its ledger says so"
    assert world.mirror.classes.lost(before, "elsewhere") == ""
    world.mirror.on_class_update(closed())
    assert len(world.heard.kept_ones) == 1, "it is told once"
    if anew:
        world.lead(ledgers)
    world.drop("p")
    world.pod("q")
    assert world.engine.controllers[world.key].service == before
    assert list(world.engine.pods) == ["q"]
    world.pod("other", uid="another", kind="Thing")
    assert world.feed.pods["other"].problem == "service class 'silver': may not be used in namespace default"
    world.mirror.on_class_update(closed("silver", 0.7, "elsewhere", "default"))
    assert world.engine.controllers[world.feed.pods["q"].key].service.slo == 0.7
    assert set(world.engine.pods) == {"q", "other"}


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("kind", ["Deployment", "Thing"])
def test_nobody_has_the_promise_of_a_workload_of_another_namespace(world: World, kind: str, anew: bool) -> None:
    """Not even who knows its UID and says that it made his pod."""
    world.mirror.on_class_update(closed("silver", 0.9, "default"))
    world.up("p")
    before, ledgers = world.key, kept(world)

    def thief() -> Pod:
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "web", "controller": True}
        metadata = {"name": "thief", "namespace": "evil", "uid": "thief", "ownerReferences": [owner]}
        spec = {"schedulerName": "slacktide", "containers": [made_objects.container(cpu="1")]}
        labelled = metadata | {"labels": {CLASS_LABEL: "silver"}}
        return made_objects.decoded(POD, {"metadata": labelled, "spec": spec, "status": {"phase": "Pending"}})

    if anew:
        world.drop("p")
        world.mirror.on_pod_update(thief())
        world.lead(ledgers)
    else:
        world.mirror.on_pod_update(thief())
    assert world.feed.pods["thief"].problem == "service class 'silver': may not be used in namespace evil"
    assert "thief" not in world.engine.pods
    assert list(world.engine.controllers) == [before]
    assert len(world.engine.controllers[before].rows) == 1


def test_who_is_made_anew_has_no_promise_of_a_class_that_is_not_for_it_any_more(world: World) -> None:
    world.up("p")
    world.mirror.on_class_update(closed())
    world.drop("p")
    world.mirror.on_controller_delete("web")
    world.owner(uid="again")
    world.pod("q", uid="again")
    assert world.feed.pods["q"].problem == "service class 'silver': may not be used in namespace default"
    assert list(world.engine.pods) == []


def test_another_template_ends_a_promise_of_a_class_that_is_not_for_it_any_more(world: World) -> None:
    world.up("p")
    world.mirror.on_class_update(closed())
    world.owner(service="gold")
    assert service(world) == ("gold", 0.999)
    world.owner(service="silver")
    world.pod("q")
    assert world.feed.pods["q"].problem == "service class 'silver': may not be used in namespace default"


def test_its_own_slo_is_kept_too(world: World) -> None:
    found = middle("silver", "0.5")
    world.mirror.on_controller_update(found, "apps/v1", "StatefulSet", 1, template=found.spec.template)
    world.up("p", uid="set", kind="StatefulSet")
    assert service(world) == ("silver@0.5", 0.5)
    ledgers = kept(world)
    world.mirror.on_class_delete("silver")
    world.lead(ledgers)
    assert service(world) == ("silver@0.5", 0.5)


@pytest.mark.parametrize("deleted", [True, False])
def test_a_default_class_that_is_gone(deleted: bool) -> None:
    """It holds on for who had it by default; one that is only no default any more does not."""
    world = World()
    world.mirror.on_class_update(
        ServiceClass(Metadata("usual"), ServiceClassSpec(0.6, 3, default=True, namespaces=("*",)))
    )
    world.owner(service="")
    world.up("p", service="")
    assert service(world) == ("usual", 0.6)
    ledgers = kept(world)
    if deleted:
        world.mirror.on_class_delete("usual")
    else:
        world.mirror.on_class_update(ServiceClass(Metadata("usual"), ServiceClassSpec(0.6, 3, namespaces=("*",))))
    for leads in (False, True):
        if leads:
            world.lead(ledgers)
        world.pod("q", service="")
        assert ("default class" in world.feed.pods["q"].problem) != deleted
        assert ("q" in world.engine.pods) == deleted
        world.drop("q")
    assert ("p" in world.engine.pods) == deleted
    world.mirror.on_class_update(
        ServiceClass(Metadata("usual"), ServiceClassSpec(0.7, 3, default=True, namespaces=("*",)))
    )
    assert service(world) == ("usual", 0.7)


def test_who_has_no_pods_at_the_moment_keeps_it_as_well(world: World) -> None:
    world.up("p")
    world.drop("p")
    ledgers = kept(world)
    world.mirror.on_class_delete("silver")
    world.lead(ledgers)
    assert service(world) == ("silver", 0.9)


def test_another_class_of_the_template_ends_it(world: World) -> None:
    world.up("p")
    world.mirror.on_class_delete("silver")
    world.owner(service="gold")
    assert service(world) == ("gold", 0.999)
    world.owner(service="silver")
    world.pod("q")
    assert world.feed.pods["q"].problem == "service class 'silver': does not exist"
