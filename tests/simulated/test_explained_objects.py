"""``slacktide explain KIND/NAME`` and ``kubectl slack why``, which ask the cluster and not the scheduler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from cluster.labtools import deployment, pod
from simulated.api_model import Request
from simulated.pod_model import condition, set_condition
from simulated.resources import BY_NAME, Json
from simulated.stage import Stage, service_class, staged
from slacktide.cli.cluster.explained_objects import explained
from slacktide.cli.plugin import why
from slacktide.errors import InputError
from slacktide.kube.client.http import ApiError

GOLD = {"slacktide.io/class": "gold"}


class Api:
    """The API server as a command's connection sees it. ``hidden`` kinds may not be read."""

    def __init__(self, place: Stage, *hidden: str) -> None:
        self._place, self._hidden = place, hidden

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        if any(f"/{kind}" in path for kind in self._hidden):
            raise ApiError(403, "Forbidden", f"{path} is forbidden")
        answer = self._place.world.api.answer(Request("GET", path, {}))
        if not answer.ok:
            raise ApiError(answer.code, "", answer.body.decode())
        if not query:
            return answer.body
        found = json.loads(answer.body)
        found["items"] = [one for one in found["items"] if _is_selected(one, query)]
        return json.dumps(found).encode()

    get_list = get


def _is_selected(one: Json, query: Mapping[str, str]) -> bool:
    labels = [term.partition("=") for term in query.get("labelSelector", "").split(",") if term]
    fields = [term.partition("=") for term in query.get("fieldSelector", "").split(",") if term]
    if any(one["metadata"].get("labels", {}).get(key) != value for key, _, value in labels):
        return False
    for key, _, value in fields:
        found: Any = one
        for part in key.split("."):
            found = found.get(part, {})
        if (found or "") != value:
            return False
    return True


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [service_class("bronze", 0.5, 3, default=True), service_class("gold", 0.999, 1)]
    with staged(classes) as stage:
        yield stage


def told(place: Stage, kind: str, name: str) -> str:
    return asyncio.run(explained(cast("Any", Api(place)), kind, place.namespace, name))


def why_of(place: Stage, name: str, *hidden: str) -> str:
    return asyncio.run(why._one(cast("Any", Api(place, *hidden)), place.namespace, name, "slacktide"))


def test_a_deployment_says_how_its_promise_stands_and_for_what_its_pods_wait(place: Stage) -> None:
    place.nodes(1, cpu="2")
    place.create("deployments", deployment("shop", 5, cpu="800m", labels=GOLD))
    place.until(lambda: sum(bool(one["spec"].get("nodeName")) for one in place.pods("shop")) == 2, "two have a node")
    place.status("deployment-shop", lambda one: (one["running"], one["waiting"]) == (2, 3), "its ledger says so")
    place.until(lambda: len(place.events("FailedScheduling")) >= 3, "they were told why they wait")
    text = told(place, "deployment", "shop")
    assert f"Deployment {place.namespace}/shop" in text
    assert "Deployment shop, class gold: promised 0.9990" in text
    assert "lost " in text
    assert "wants 5 pods; there are 2 ready, 3 waiting" in text
    waiting = sorted(one["metadata"]["name"] for one in place.pods("shop") if not one["spec"].get("nodeName"))
    assert ": waits: 0/1 nodes are available: 1 Insufficient cpu." in text
    assert all(name in text for name in waiting)
    assert f"Next: slacktide explain pod {waiting[0]} -n {place.namespace}" in text


def test_a_deployment_that_may_not_make_its_pods_says_so(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", deployment("shop", 1))
    place.ready("shop")
    body = json.loads(json.dumps(place.get("deployments", "shop")))
    set_condition(body, 0.0, "ReplicaFailure", "True", "FailedCreate", "exceeded quota: small")
    place.world.store.write(BY_NAME["deployments"], body)
    assert "ReplicaFailure: exceeded quota: small" in told(place, "deployment", "shop")


def test_who_is_not_scheduled_by_us_has_no_promise(place: Stage) -> None:
    body = deployment("other", 1)
    body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    place.create("deployments", body)
    assert "scheduled by the default scheduler: no promise is kept for it" in told(place, "deployment", "other")


def test_what_does_not_exist_is_named(place: Stage) -> None:
    for kind, name in (("deployment", "none"), ("node", "none"), ("class", "none")):
        with pytest.raises(InputError, match="none"):
            told(place, kind, name)
    with pytest.raises(InputError, match="bronze, gold"):
        told(place, "class", "none")


def test_a_pod_that_starts_says_what_its_kubelet_waits_for(place: Stage) -> None:
    (node,) = place.nodes(1)
    place.create("pods", pod("one", annotations={"slacktide.io/startup-seconds": "600"}, labels=GOLD))
    place.bound("one")
    body = json.loads(json.dumps(place.pod("one")))
    body["status"]["containerStatuses"] = [
        {
            "name": "main",
            "ready": False,
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
        }
    ]
    place.world.store.write(BY_NAME["pods"], body)
    wanted = f"on {node}: container main waits: ImagePullBackOff: no such image"
    assert wanted in why_of(place, "one")
    assert wanted in told(place, "node", node)
    assert "1 pod is on it: 1 of class gold" in told(place, "node", node)


def test_a_node_says_what_it_takes_and_who_waits_for_it(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="4")
    place.create("deployments", deployment("low", 1, cpu="3", terminationGracePeriodSeconds=30))
    (victim,) = place.ready("low")
    place.create("pods", pod("high", cpu="3", labels=GOLD))
    place.until(lambda: place.pod(victim)["metadata"].get("deletionTimestamp"), "its victim is told to go")
    text = told(place, "node", node)
    assert "has the label node-restriction.kubernetes.io/slacktide=true" in text
    assert "is ready" in text
    assert "cpu: 3 of 4 are asked for" in text
    assert f"{place.namespace}/high: waits: nominated to node {node}, waiting for {place.namespace}/{victim}" in text
    assert f"{place.namespace}/{victim}: is being deleted" in text
    place.cordon(node)
    assert f"is cordoned: it takes no pods (kubectl uncordon {node})" in told(place, "node", node)


def test_a_class_says_how_its_workloads_stand_the_worst_first(place: Stage) -> None:
    place.nodes(1, cpu="2")
    for name, count in (("good", 1), ("bad", 4)):
        place.create("deployments", deployment(name, count, cpu="800m", labels=GOLD))
        place.status(f"deployment-{name}", lambda one: one["running"] == 1, "it runs")
    place.status("deployment-bad", lambda one: one["waiting"] == 3 and one["slackSeconds"] < -5.0, "it is missed")
    text = told(place, "class", "gold")
    assert "promises 0.999 over a workload's lifetime, rank 1; all namespaces may use it" in text
    assert "2 workloads: " in text
    assert text.index("Deployment bad,") < text.index("Deployment good,")
    assert f"Next: slacktide explain deployment/bad -n {place.namespace}" in text


def test_a_scheduler_that_has_acted_is_not_blamed(place: Stage) -> None:
    """Nothing is on the pod; an event says it, or a claim that has been given a node."""
    place.cordon(place.nodes(1)[0])
    place.wait(1.0)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    place.create("pods", pod("one", volumes=volumes))
    place.until(lambda: place.events("FailedScheduling", "one"), "an event says why it waits")
    place.until(lambda: condition(place.pod("one"), "PodScheduled"), "its condition as well")
    assert ": persistentvolumeclaim 'data' not found" in why_of(place, "one")
    place.wait(why.LOOK_SECONDS)
    body = json.loads(json.dumps(place.pod("one")))
    body["status"].pop("conditions")
    place.world.store.write(BY_NAME["pods"], body)
    assert "FailedScheduling: persistentvolumeclaim 'data' not found" in why_of(place, "one")
    claim = {"name": "data", "annotations": {"volume.kubernetes.io/selected-node": "node-0"}}
    place.create("persistentvolumeclaims", {"metadata": claim, "spec": {}})
    asked = why_of(place, "one", "events")
    assert "has a node, node-0; a volume is to be created there for claim data" in asked
    unknown = why_of(place, "one", "events", "persistentvolumeclaims")
    assert "it may not run" not in unknown
    assert "slacktide explain pod one" in unknown


def test_a_pod_that_its_finalizers_keep_says_which(place: Stage) -> None:
    place.nodes(1)
    place.create("deployments", deployment("db", 1))
    (name,) = place.ready("db")
    place.patch("pods", name, {"metadata": {"finalizers": ["example.com/backup"]}})
    place.delete("pods", name)
    assert "it stays until example.com/backup has removed its finalizer" in why_of(place, name)
    place.patch("pods", name, {"metadata": {"finalizers": None}})
