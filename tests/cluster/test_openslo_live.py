"""OpenSLO on a real control plane: pods bound to classes by label, classes exported; events on the workload itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cluster.kubectl import Json
from cluster.labtools import pod, until
from cluster.running import CLASSES, Place, Stage, service_class, staged
from slacktide.cli import app
from slacktide.kube.client.http import ApiError
from slacktide.lab import Binaries
from support.repository import REPOSITORY

SHOP = REPOSITORY / "examples" / "openslo" / "shop.yaml"
CLASS = "slacktide.io/class"
STARTUP = "slacktide.io/startup-seconds"
LONG_ENOUGH = 5.0
"""Seconds: the margin below which a promise is AtRisk; the states of all controllers are looked at every second."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A fifth is promised: a workload that ran for some seconds keeps that for some more without a pod."""
    classes = [service_class("fifth", 0.2, 2, marginSeconds=LONG_ENOUGH)]
    yield from staged(binaries, tmp_path_factory.mktemp("openslo"), classes, qos__alpha=0, scheduler__watchdog=1)


def place_of(stage: Stage, name: str) -> Place:
    found = Place(stage, name)
    found.nodes(1, cpu="1")
    return found


@pytest.fixture(scope="module")
def imported(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    """What the example becomes, applied by kubectl."""
    out = tmp_path_factory.mktemp("imported") / "classes.yaml"
    done = CliRunner().invoke(app, ["openslo", "import", str(SHOP), "--out", str(out)])
    assert done.exit_code == 0, done.output
    objects = list(yaml.safe_load_all(out.read_text()))
    stage.kubectl.ok("apply", "-f", "-", stdin=objects)
    return objects


def labels_of(place: Place, name: str, **labels: str) -> str | None:
    """The class label that a new pod with these labels has."""
    body = pod(name, labels={key.replace("__", "/"): value for key, value in labels.items()}, schedulerName="nobody")
    made = place.api.post(place.kinds_path("pods"), body)
    place.delete("pods", name, 0)
    found = made["metadata"].get("labels", {}).get(CLASS)
    return None if found is None else str(found)


def test_pods_of_the_selector_get_the_class_and_others_do_not(stage: Stage, imported: list[Json]) -> None:
    assert [one["kind"] for one in imported if one["kind"] != "ServiceClass"] == [
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ] * 2
    shop, other = place_of(stage, "shop"), place_of(stage, "other")
    front = {"app.kubernetes.io__part-of": "shop", "app.kubernetes.io__component": "front"}
    numbers = iter(range(10_000))
    # A policy takes some seconds until it holds.
    until(lambda: labels_of(shop, f"a-{next(numbers)}", **front) == "shop-front", "the first policy holds")
    orders = {"app.kubernetes.io__name": "orders"}
    until(lambda: labels_of(other, f"b-{next(numbers)}", **orders) == "shop-orders", "the second policy holds")
    assert labels_of(other, "c", **front) is None  # the class is for one namespace
    assert labels_of(shop, "d", **front | {"app.kubernetes.io__component": "mail"}) is None
    assert labels_of(shop, "e") is None
    assert labels_of(shop, "f", **front | {"slacktide.io__class": "fifth"}) == "fifth"  # it names one itself


SHARES = """
version: prometheus/v1
service: shares
slos:
  - name: web
    objective: 99
    sli:
      events:
        error_query: sum(kube_deployment_status_replicas_unavailable{namespace="shares",deployment="web"})
        total_query: sum(kube_deployment_spec_replicas{namespace="shares",deployment="web"})
    alerting: {}
  - name: db
    objective: 99
    sli:
      raw:
        error_ratio_query: |
          1 - kube_statefulset_status_replicas_ready{namespace="shares",statefulset=~"db-.*"}
            / kube_statefulset_replicas{namespace="shares",statefulset=~"db-.*"}
    alerting: {}
  - name: queue
    objective: 99
    sli:
      raw: {error_ratio_query: '1 - avg(kube_pod_status_ready{condition="true",namespace="shares",pod=~"queue-.*"})'}
    alerting: {}
"""


def class_of_owned(place: Place, name: str, owner: tuple[str, str] | None, *, generated: bool = False) -> str | None:
    """The class label that a new pod of an owner (kind and name) has."""
    body = pod(name, schedulerName="nobody")
    if owner is not None:
        kind, of = owner
        body["metadata"]["labels"] = {"pod-template-hash": of.rpartition("-")[2]} if kind == "ReplicaSet" else {}
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": "00000000-0000-0000-0000-000000000001"}
        ]
    if generated:
        body["metadata"]["generateName"] = body["metadata"].pop("name")
    made = place.api.post(place.kinds_path("pods"), body)
    with suppress(ApiError):  # the garbage collector may be faster, as there is no such owner
        place.delete("pods", made["metadata"]["name"], 0)
    found = made["metadata"].get("labels", {}).get(CLASS)
    return None if found is None else str(found)


def test_pods_of_the_workload_that_a_share_of_replicas_names_get_its_class(stage: Stage, tmp_path: Path) -> None:
    file, out = tmp_path / "shares.yaml", tmp_path / "classes.yaml"
    file.write_text(SHARES)
    done = CliRunner().invoke(app, ["openslo", "import", "--rank", "3", str(file), "--out", str(out)])
    assert done.exit_code == 0, done.output
    stage.kubectl.ok("apply", "-f", "-", stdin=list(yaml.safe_load_all(out.read_text())))
    shares, other = place_of(stage, "shares"), place_of(stage, "elsewhere")
    web, db = ("ReplicaSet", "web-5d4f8c7b9"), ("StatefulSet", "db-main")
    numbers = iter(range(10_000))
    # A policy takes some seconds until it holds.
    until(lambda: class_of_owned(shares, f"web-5d4f8c7b9-{next(numbers)}", web) == "shares-web", "the first holds")
    until(lambda: class_of_owned(shares, f"db-main-{next(numbers)}", db) == "shares-db", "the second holds")
    until(lambda: class_of_owned(shares, f"queue-{next(numbers)}", None) == "shares-queue", "the third holds")
    assert class_of_owned(shares, "queue-", None, generated=True) == "shares-queue"
    assert class_of_owned(shares, "line-", None, generated=True) is None
    assert class_of_owned(shares, "a", ("ReplicaSet", "web-api-5d4f8c7b9")) is None
    assert class_of_owned(shares, "b", ("StatefulSet", "web")) is None
    assert class_of_owned(other, "c", web) is None


@pytest.mark.usefixtures("imported")
def test_classes_of_a_cluster_are_exported_and_imported_again(stage: Stage, tmp_path: Path) -> None:
    out = tmp_path / "slos.yaml"
    cluster = ["--kubeconfig", str(stage.plane.kubeconfig)]
    done = CliRunner().invoke(app, ["openslo", "export", *cluster, "--out", str(out)])
    assert done.exit_code == 0, done.output
    again = CliRunner().invoke(app, ["openslo", "import", str(out), "--json"])
    assert again.exit_code == 0, again.output
    found = {one["metadata"]["name"]: one["spec"] for one in json.loads(again.output)["classes"]}
    there = {one["metadata"]["name"]: one["spec"] for one in stage.plane.api.get(CLASSES)["items"]}
    assert {"fifth", "shop-front", "shop-orders"} <= set(found)
    assert found == there
