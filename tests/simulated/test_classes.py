"""Which class a pod has and what it is owed by it: by default, by priority, while the class changes or goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.labtools import deployment, pod
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import set_condition
from simulated.resources import BY_NAME, Json
from simulated.stage import Stage, service_class, staged

CLASS, SILVER, ALPHA = "slacktide.io/class", 0.9, 1.0
GATES = [{"name": "example.com/wait"}]


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [
        service_class("silver", SILVER, 2, counts="everything"),
        service_class("gold", 0.999, 1),
        service_class("bronze", 0.05, 3, default=True),
        service_class("local", 0.8, 2),
        service_class("mapped", 0.7, 2),
        service_class("closing", 0.5, 2),
    ]
    with staged(classes, qos__alpha=ALPHA, kube__priority_classes="urgent=mapped") as stage:
        stage.nodes(1)
        yield stage


def web(service: str, name: str = "web") -> Json:
    return deployment(name, 1, labels={CLASS: service})


def running(place: Stage, name: str = "deployment-web") -> Json:
    return place.status(name, lambda one: (one["running"], one["waiting"]) == (1, 0), "it runs")


def replaced(place: Stage, name: str = "web") -> None:
    """Its pod is deleted, and another one runs in its stead."""
    (old,) = place.ready(name)
    place.delete("pods", old, 0)
    place.until(lambda: place.names(name) not in ([], [old]), "another pod comes")
    place.ready(name)


def test_classes_by_default_and_by_priority(place: Stage) -> None:
    labels = {"slacktide.io/default-class": "local"}
    place.create("pods", pod("before"))
    place.bound("before")
    place.merge("namespaces", place.namespace, {"metadata": {"labels": labels}})
    place.wait(HEARD_SECONDS)
    place.create("pods", pod("nothing"))
    place.create("pods", pod("label", labels={CLASS: "silver"}, priorityClassName="urgent"))
    place.create("pods", pod("priority", priorityClassName="urgent"))
    found = {name: running(place, f"pod-{name}") for name in ("before", "nothing", "label", "priority")}
    assert {name: (one["class"], one["promised"]) for name, one in found.items()} == {
        "before": ("local", 0.8), "nothing": ("local", 0.8), "label": ("silver", SILVER), "priority": ("mapped", 0.7),
    }  # fmt: skip


def test_a_class_that_the_namespace_may_not_use(place: Stage) -> None:
    place.merge("serviceclasses", "closing", {"spec": {"namespaces": ["elsewhere"]}})
    place.wait(HEARD_SECONDS)
    place.create("pods", pod("late", labels={CLASS: "closing"}))
    place.waits("late", f"service class 'closing': may not be used in namespace {place.namespace}")
    place.merge("serviceclasses", "closing", {"spec": {"namespaces": ["elsewhere", place.namespace]}})
    place.bound("late", 1.0)


@pytest.mark.parametrize("how", ["deleted", "taken from the namespace"])
def test_who_was_promised_a_class_keeps_it_while_others_cannot_use_it_any_more(place: Stage, how: str) -> None:
    """Through a rollout, with pods to come, and under the next leader; and it is told."""
    place.create("deployments", web("closing"))
    place.ready("web")
    running(place)
    if how == "deleted":
        place.delete("serviceclasses", "closing")
        words, why = "keeps its promise", "service class 'closing': does not exist"
    else:
        place.merge("serviceclasses", "closing", {"spec": {"namespaces": ["elsewhere"]}})
        words = f"service class closing may no longer be used in namespace {place.namespace}; this workload keeps its"
        why = f"service class 'closing': may not be used in namespace {place.namespace}"
    place.status("deployment-web", lambda one: words in one["message"], "its ledger says so")
    place.until(lambda: place.events("ClassUnavailable", "web"), "an event about it says so")
    replaced(place)
    place.kill()
    replaced(place)
    (old,) = place.names("web")
    place.patch("deployments", "web", {"spec": {"template": {"metadata": {"annotations": {"rollout": "2"}}}}})
    place.until(lambda: old not in place.names("web"), "the rollout is over")
    place.ready("web")
    status = running(place)
    assert (status["class"], status["promised"]) == ("closing", 0.5)
    place.create("deployments", web("closing", "late"))
    place.waits(place.until(lambda: next(iter(place.names("late")), "")), why)


def test_after_a_rollout_to_another_class_the_ledger_says_so(place: Stage) -> None:
    place.create("deployments", web("silver"))
    (old,) = place.ready("web")
    running(place)
    place.patch("deployments", "web", {"spec": {"template": {"metadata": {"labels": {CLASS: "gold"}}}}})
    place.until(lambda: old not in place.names("web"), "the old pod is gone")
    place.ready("web")
    status = place.status("deployment-web", lambda one: one["class"] == "gold" and one["running"] == 1, "the new class")
    assert status["promised"] == 0.999


def test_a_gated_pod_is_left_alone_and_owed_nothing(place: Stage) -> None:
    place.create("pods", pod("gate", labels={CLASS: "silver"}, schedulingGates=GATES))
    place.wait(60.0)  # which would be seen in the ledger
    assert place.node_of("gate") == ""
    assert place.ledger("pod-gate") is None
    assert "conditions" not in place.pod("gate")["status"], "what it says of gates is the API server's word"
    opened = place.now
    place.patch("pods", "gate", {"spec": {"schedulingGates": None}})
    place.bound("gate", 1.0)
    status = running(place, "pod-gate")
    at = place.instant(status["at"])
    # Owed since the gate was opened, not since it was created.
    slack = place.life("gate").ready_until(at) / SILVER - (at - opened) - ALPHA
    assert status["slackSeconds"] == pytest.approx(slack, abs=2 * HEARD_SECONDS)


def test_a_pod_that_its_maker_placed_has_a_ledger(place: Stage) -> None:
    place.create("pods", pod("placed", labels={CLASS: "silver"}, nodeName="node-0"))
    assert running(place, "pod-placed")["class"] == "silver"


def test_a_node_that_is_not_ready_takes_nobody(place: Stage) -> None:
    def ready(status: str) -> None:
        found = place.world.store.copy("nodes", "", "node-0")
        assert found is not None
        set_condition(found, place.world.store.now(), "Ready", status, "KubeletNotReady")
        place.world.store.write(BY_NAME["nodes"], found)
        place.wait(HEARD_SECONDS)

    ready("False")
    place.create("pods", pod("after"))
    place.waits("after", r"^0/1 nodes are available: .*\b1 node\(s\) were not ready")
    ready("True")
    place.bound("after", 1.0)
