"""Classes, ledgers, budgets and nodes that make no sense, or go while in use: nobody but those concerned notices."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster.disturbing import brief, three_classes
from cluster.installation import MANIFESTS
from cluster.labtools import deployment, until
from cluster.running import CLASSES, heard, service_class
from cluster.ward import LEDGERS, SPACE, Ward, expressions, warded
from slacktide.kube.client.http import MERGE_PATCH as MERGE
from slacktide.lab import ApiError, Binaries

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def ward(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ward]:
    with warded(binaries, tmp_path_factory.mktemp("malformed")) as found:
        yield found


# -- classes and ledgers -----------------------------------------------------------------------------------------------


def bronze_deployment(ward: Ward, name: str, class_name: str) -> None:
    body = deployment(name, 2, cpu="10m", memory="1Mi", **brief(class_name))
    ward.plane.api.post(f"/apis/apps/v1/namespaces/{SPACE}/deployments", body)
    ward.has_ledger(f"deployment-{name}", 2)


def test_a_class_that_changes_and_goes_while_it_is_in_use(ward: Ward) -> None:
    ward.plane.api.post(CLASSES, service_class("fleeting", 0.5, 2, approach="independent"))
    bronze_deployment(ward, "fleeting", "fleeting")
    time.sleep(3)  # so that there is something to lose
    before = ward.ledger("deployment-fleeting")
    change = {"spec": {"slo": 0.25, "rank": 7, "approach": "aggregated", "marginSeconds": 0}}
    ward.plane.api.patch(f"{CLASSES}/fleeting", change, MERGE)
    ward.canary()
    ward.again()  # how it is measured stays as it was, and so does what was measured
    until(lambda: ward.ledger("deployment-fleeting").get("promised") == 0.25, "the ledger has the new promise")
    assert ward.ledger("deployment-fleeting")["accumulators"]["approach"] == "independent"
    ward.plane.api.delete(f"{CLASSES}/fleeting")
    heard(ward.plane)
    ward.create("late", "fleeting")
    ward.waits("late", "service class 'fleeting': does not exist")
    ward.canary()
    ward.again()  # and nobody knows the class
    ward.canary()
    ward.plane.api.post(CLASSES, service_class("fleeting", 0.5, 2))
    ward.bound("late")
    until(lambda: ward.ledger("deployment-fleeting").get("at", "") > before["at"], "its ledger goes on")
    ward.has_ledger("deployment-fleeting", 2)
    after = ward.ledger("deployment-fleeting")
    assert after["deliveredAlways"] >= before["deliveredAlways"] - 0.01
    ward.remove("late")
    ward.plane.api.delete(f"/apis/apps/v1/namespaces/{SPACE}/deployments/fleeting")


NONSENSE: dict[str, Any] = {
    "slo-text": {"slo": "much", "rank": 1},
    "slo-two": {"slo": 2.0, "rank": 1},
    "slo-none": {"rank": 1},
    "rank-text": {"slo": 0.5, "rank": "first"},
    "rank-less": {"slo": 0.5, "rank": -1},
    "margin": {"slo": 0.5, "rank": 1, "marginSeconds": -5},
    "approach": {"slo": 0.5, "rank": 1, "approach": "sideways"},
    "tiers": {"slo": 0.5, "rank": 1, "tiers": [{"boundary": 0.1, "bonus": 0.9}, {"boundary": 0.9, "bonus": 0.1}]},
    "tiers-text": {"slo": 0.5, "rank": 1, "tiers": "none"},
    "overhead": {"slo": 0.5, "rank": 1, "overheadLimit": 7},
    "spec-list": [1, 2],
    "slo-tiny": {"slo": 1e-300, "rank": 1},
    "slo-least": {"slo": 0.001, "rank": 2147483647, "marginSeconds": 8589934592},
}


HARMLESS = ("slo-least", "tiers")


def test_classes_that_promise_nonsense(ward: Ward) -> None:
    path = f"{DEFINITIONS}/serviceclasses.slacktide.io"
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = ward.plane.api.get(path)
    definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": open_schema}
    ward.plane.api.put(path, definition)
    body: dict[str, Any] = {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass"}

    def created(name: str) -> bool:
        spec = NONSENSE[name]
        said = {"namespaces": ["*"], **spec} if isinstance(spec, dict) else spec
        return ward.posted(CLASSES, body | {"metadata": {"name": name}, "spec": said})

    until(lambda: created("slo-text"), "the schema is open")
    assert all(created(name) for name in NONSENSE if name != "slo-text")
    for name in NONSENSE:
        ward.create(f"of-{name}", name)
    for name in NONSENSE:
        if name in HARMLESS:
            ward.bound(f"of-{name}")
        else:
            ward.waits(f"of-{name}", f"service class '{name}'.*(malformed|does not exist)")
    ward.canary()
    ward.again()
    ward.canary()
    ward.remove(*(f"of-{name}" for name in NONSENSE))
    for name in NONSENSE:
        ward.plane.api.delete(f"{CLASSES}/{name}")
    ward.kubectl.ok("replace", "-f", str(MANIFESTS / "00-serviceclasses.yaml"))
    ward.canary()


def scrawls(books: dict[str, Any]) -> list[dict[str, Any]]:
    """Books that somebody wrote into."""
    return [
        {"accumulators": None},
        {"accumulators": {**books, "version": 99}},
        {"accumulators": {**books, "version": "1"}},
        {"accumulators": {**books, "approach": ["independent"]}},
        {"accumulators": {**books, "at": 1e300}},
        {"accumulators": {**books, "at": "now"}},
        {"accumulators": {**books, "at": books["at"] + 1e9}},
        {"accumulators": {**books, "counts": {"live": 999999, "preemptions": -1, "starts": 0}}},
        {"accumulators": {**books, "records": "!!!"}},
        {"accumulators": {**books, "names": "eJw="}},
        {"accumulators": {**books, "sums": [1, 2, 3]}},
        {"accumulators": {"version": {"version": {}}}},
    ]


def goes_on(ward: Ward, name: str) -> bool:
    return 0.0 <= float(ward.ledger(name).get("deliveredAlways", -1)) <= 1.0


def test_ledgers_that_somebody_wrote_into(ward: Ward) -> None:
    kinds = len(scrawls({"at": 0.0}))
    for number in range(kinds):
        ward.create(f"scrawl-{number}")
    ward.create("untouched")
    names = [f"scrawl-{number}" for number in range(kinds)]
    for name in (*names, "untouched"):
        ward.has_ledger(f"pod-{name}")
    time.sleep(3)
    ward.scheduler.kill()
    before = ward.ledger("pod-untouched")
    for number, name in enumerate(names):
        status = scrawls(ward.ledger(f"pod-{name}")["accumulators"])[number]
        ward.plane.api.patch(f"{LEDGERS}/pod-{name}", {"status": {"accumulators": None}}, MERGE)
        ward.plane.api.patch(f"{LEDGERS}/pod-{name}", {"status": status}, MERGE)
    copy = ward.plane.api.get(f"{LEDGERS}/pod-untouched")
    copy["metadata"] = {"name": "a-copy"}
    copy["status"]["accumulators"]["version"] = 99
    ward.plane.api.post(LEDGERS, copy)
    ward.scheduler.restart()
    ward.canary()
    assert ward.scheduler.log.count("cannot be read and starts from zero") >= kinds - 3
    for name in names:
        until(partial(goes_on, ward, f"pod-{name}"), f"{name} goes on")
    until(lambda: ward.ledger("pod-untouched").get("at", "") > before["at"], "the untouched one goes on")
    assert ward.ledger("pod-untouched")["deliveredAlways"] >= before["deliveredAlways"]
    ward.remove(*names, "untouched")


def test_the_definitions_are_deleted_while_it_runs(ward: Ward) -> None:
    ward.create("keeper")
    ward.has_ledger("pod-keeper")
    ward.plane.api.delete(f"{DEFINITIONS}/availabilities.slacktide.io")
    until(lambda: ward.serves_not(LEDGERS), "ledgers are gone")
    ward.canary()
    ward.kubectl.ok("apply", "-f", str(MANIFESTS / "01-availabilities.yaml"))
    ward.create("writer")
    ward.has_ledger("pod-writer")
    ward.plane.api.delete(f"{DEFINITIONS}/serviceclasses.slacktide.io")
    until(lambda: ward.serves_not(CLASSES), "classes are gone")
    ward.create("classless")
    ward.waits("classless", "does not exist")
    assert ward.scheduler.component.running
    ward.kubectl.ok("apply", "-f", str(MANIFESTS / "00-serviceclasses.yaml"))
    until(lambda: _classes_exist(ward), "classes can be made again")
    ward.bound("classless")
    ward.canary()
    ward.remove("keeper", "writer", "classless")


def _classes_exist(ward: Ward) -> bool:
    try:
        three_classes(ward.plane.api)
    except ApiError as error:
        return error.status == 409
    return True


# -- budgets and nodes -------------------------------------------------------------------------------------------------


def test_budgets_with_odd_selectors(ward: Ward) -> None:
    path = f"/apis/policy/v1/namespaces/{SPACE}/poddisruptionbudgets"
    odd: list[dict[str, Any]] = [
        {"selector": {}, "maxUnavailable": "0%"},
        {"selector": {"matchExpressions": expressions(200, 50)}, "minAvailable": "100%"},
        {"selector": {"matchLabels": {"a": "b"}}, "minAvailable": 2147483647},
        {"maxUnavailable": 0},
        {"selector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, "maxUnavailable": 0},
    ]
    made = []
    for number, spec in enumerate(odd):
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        if ward.posted(path, {**kind, "metadata": {"name": f"odd-{number}"}, "spec": spec}):
            made.append(number)
    assert len(made) >= 3
    ward.canary()
    ward.again()
    ward.canary()
    for number in made:
        ward.plane.api.delete(f"{path}/odd-{number}")
    ward.canary()


def test_nodes_that_have_nothing_or_too_much(ward: Ward) -> None:
    odd: dict[str, dict[str, str]] = {
        "nothing": {"cpu": "0", "memory": "0", "pods": "0"},
        "no-pods": {"cpu": "4", "memory": "16Gi"},
        "too-much": {"cpu": "9223372036854775807", "memory": "9223372036854775807", "pods": "9223372036854775807"},
        "far-too-much": {"cpu": "1e30", "memory": "1e30", "pods": "1e30", "example.com/odd": "1e25"},
        "empty": {},
    }
    marks = {"node-restriction.kubernetes.io/slacktide": "true"}
    made = []
    for name, amounts in odd.items():
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
        metadata = {"name": f"odd-{name}", "labels": {**marks, "odd": name}}
        if ward.posted("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}):
            made.append(name)
    assert len(made) >= 3
    ward.canary()
    for name in ("nothing", "no-pods"):
        ward.create(f"on-{name}", nodeSelector={"odd": name})
        ward.waits(f"on-{name}", "Insufficient|Too many pods")
    ward.create("on-too-much", cpu="1000000", nodeSelector={"odd": "too-much"})
    ward.bound("on-too-much")
    ward.create("more", cpu="1e9", nodeSelector={"odd": "too-much"})
    ward.canary()
    ward.again()
    ward.canary()
    ward.remove("on-nothing", "on-no-pods", "on-too-much", "more")
    for name in made:
        ward.plane.api.delete(f"/api/v1/nodes/odd-{name}")
    ward.canary()


def test_all_this_left_no_mark(ward: Ward) -> None:
    assert json.dumps(ward.scheduler.complaints()) == "[]"
    ward.canary()
