"""Objects that make no sense: whoever is concerned waits with a reason, nobody else notices, the scheduler goes on.

After each of them an ordinary pod is bound at once, under this leader and the next one. The model takes whatever is
sent; what a real API server lets in, and what becomes of definitions that are deleted, is asked in
``cluster/test_live_malformed.py``, and objects at random that are valid by their schemas in ``kube/test_fuzz.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster.labtools import deployment, pod
from simulated.crowding import HEARD_SECONDS
from simulated.resources import BY_NAME, Json
from simulated.stage import Stage, service_class, staged

CLASS, HOSTNAME = "slacktide.io/class", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
AT_ONCE = 1.0
"""Seconds within which an ordinary pod is bound."""
MALFORMED = "malformed|cannot be read"


@pytest.fixture
def place() -> Iterator[Stage]:
    classes = [service_class("gold", 0.99, 1), service_class("bronze", 0.5, 3, overheadLimit=1.0)]
    with staged(classes, scheduler__watchdog=15) as stage:
        stage.nodes(3, cpu="4", labels={"usual": "yes"})
        yield stage


def body(name: str, service: str = "bronze", cpu: str = "10m", **settings: Any) -> Json:
    labels = {CLASS: service, **settings.pop("labels", {})}
    return pod(name, cpu, "1Mi", labels=labels, terminationGracePeriodSeconds=0, **settings)


def create(place: Stage, name: str, service: str = "bronze", cpu: str = "10m", **settings: Any) -> None:
    place.create("pods", body(name, service, cpu, **settings))


def nobody_notices(place: Stage, kill: bool = True) -> None:
    """Neither under this leader, nor under the next one."""
    for turn in range(2 if kill else 1):
        if turn:
            place.kill()
        create(place, "canary", nodeSelector={"usual": "yes"})
        began = place.now
        place.bound("canary")
        assert place.now - began <= AT_ONCE
        place.delete("pods", "canary", 0)
        place.wait(HEARD_SECONDS)


# -- pods --------------------------------------------------------------------------------------------------------------

QUANTITIES = {
    "memory": ("9223372036854775807", "1e18", "8Ei", "9999999999999999999", "1e30", "0.5", "1m", "1e25"),
    "cpu": ("1e12", "9223372036854775807", "1n", "1e30", "0.000000001"),
    "example.com/thing": ("9223372036854775807", "1e18", "1"),
}
"""By resource; what is less than a node has is bound, all else waits."""
SMALL = {"0.5", "1m", "1n", "0.000000001"}


def test_impossible_quantities(place: Stage) -> None:
    made: list[tuple[str, str]] = []
    for resource, values in QUANTITIES.items():
        for value in values:
            name = f"quantity-{len(made)}"
            one = body(name, "gold", "1m")
            asked = {**one["spec"]["containers"][0]["resources"]["requests"], resource: value}
            resources = {"requests": asked, "limits": asked}
            one["spec"]["containers"] = [{"name": f"c{i}", "image": "none", "resources": resources} for i in range(3)]
            place.create("pods", one)
            made.append((name, value))
    for name, value in made:
        if value in SMALL:
            place.bound(name)
        else:
            place.waits(name, "Insufficient")
    nobody_notices(place)


def expressions(count: int, values: int) -> list[Json]:
    """So many expressions of a selector, each with so many values."""
    every = [(f"key-{i}", [f"value-{i}-{j}" for j in range(values)]) for i in range(count)]
    return [{"key": key, "operator": "NotIn", "values": listed} for key, listed in every]


def test_huge_selectors(place: Stage) -> None:
    peers = {"labelSelector": {"matchExpressions": expressions(300, 30)}, "topologyKey": HOSTNAME}
    terms = [{"matchExpressions": expressions(20, 20)} for _ in range(200)]
    spread = {"topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    greater = {"key": "size", "operator": "Gt", "values": ["99999999999999999999999"]}
    huge: dict[str, Json] = {
        "node-terms": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}},
        "node-labels": {"nodeSelector": {f"key-{i}": "value" for i in range(2000)}},
        "neighbours": {"affinity": {"podAntiAffinity": {REQUIRED: [peers]}}},
        "tolerations": {"tolerations": [{"key": f"key-{i}", "operator": "Exists"} for i in range(2000)]},
        "spread": {"topologySpreadConstraints": [{**spread, "maxSkew": 2**31 - 1, "minDomains": 2**31 - 1}]},
        "greater": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [greater]}]}}}},
    }
    for name, spec in huge.items():
        create(place, name, **spec)
    place.waits("node-labels", "labels of the node selector: found 2000, expected 100 at most")
    place.waits("node-terms", "terms of node affinity: found 200, expected 100 at most")
    place.waits("tolerations", "tolerations: found 2000, expected 100 at most")
    place.waits("greater", "didn't match|Gt")
    place.bound("spread")
    nobody_notices(place)


def test_labels_and_annotations_that_say_nothing(place: Stage) -> None:
    slo, approach = "slacktide.io/slo", "slacktide.io/approach"
    wrong: list[tuple[Json, str]] = [
        ({"labels": {CLASS: "platinum"}}, "service class 'platinum': does not exist"),
        ({"annotations": {approach: "sideways"}}, "annotation .*approach: found 'sideways'"),
    ]
    values = ("much", "nan", "-1", "0", "1.5", "inf", "1e-400", "1e-300", "")
    wrong += [({"annotations": {slo: value}}, f"annotation .*slo: found {value!r}") for value in values]
    for number, (settings, _) in enumerate(wrong):
        create(place, f"wrong-{number}", **settings)
    for number, (_, reason) in enumerate(wrong):
        place.waits(f"wrong-{number}", reason)
    nobody_notices(place)


def test_owners_that_do_not_exist(place: Stage) -> None:
    versions = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "Dragon": "example.com/v1"}
    for kind, version in versions.items():
        one = body(f"orphan-{kind.lower()}")
        owner = {"apiVersion": version, "kind": kind, "name": "nobody", "uid": f"of-{kind}", "controller": True}
        one["metadata"]["ownerReferences"] = [owner]
        place.create("pods", one)
    nobody_notices(place)
    assert place.bound("orphan-dragon"), "nobody watches such owners"
    for kind in ("replicaset", "statefulset", "job"):
        assert place.node_of(f"orphan-{kind}") == "", "it may be of a workload that is yet to be heard of"


def test_a_pod_that_leaves_for_ever(place: Stage) -> None:
    one = body("for-ever")
    one["spec"]["terminationGracePeriodSeconds"] = 3 * 10**9
    place.create("pods", one)
    place.bound("for-ever")
    place.delete("pods", "for-ever")
    nobody_notices(place)


def test_what_no_api_server_would_say(place: Stage) -> None:
    """Unknown operators, quantities and types: as a newer or a broken API server might send them."""
    lying = {"matchExpressions": [{"key": "a", "operator": "Nearby"}]}
    term = {"labelSelector": lying, "topologyKey": HOSTNAME}
    create(place, "operator", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [lying]}}})
    create(place, "neighbour", affinity={"podAntiAffinity": {REQUIRED: [term]}})
    create(place, "quantity", cpu="abcd")
    create(place, "kind", labels={"lie": 1234567})
    create(place, "null", labels={"lie": None})
    reasons = {"operator": "Nearby", "neighbour": "Nearby", "quantity": "abcd", "kind": MALFORMED, "null": MALFORMED}
    for name, reason in reasons.items():
        place.waits(name, reason)
    nobody_notices(place)
    for name, reason in reasons.items():
        place.waits(name, reason)
    for name in ("kind", "null"):
        found = json.loads(json.dumps(place.pod(name)))
        found["metadata"]["labels"]["lie"] = "no"
        place.world.store.write(BY_NAME["pods"], found)
        place.bound(name, AT_ONCE)


# -- classes and ledgers -----------------------------------------------------------------------------------------------


def test_a_class_that_changes_and_goes_while_it_is_in_use(place: Stage) -> None:
    place.create("serviceclasses", service_class("fleeting", 0.5, 2, approach="independent"))
    place.create("deployments", deployment("fleeting", 2, cpu="10m", labels={CLASS: "fleeting"}))
    place.ready("fleeting", 2)
    place.wait(60.0)  # so that there is something to lose
    before = place.status("deployment-fleeting", lambda one: one["running"] == 2)
    change = {"spec": {"slo": 0.25, "rank": 7, "approach": "aggregated", "marginSeconds": 0}}
    place.merge("serviceclasses", "fleeting", change)
    nobody_notices(place)  # how it is measured stays as it was, and so does what was measured
    status = place.status("deployment-fleeting", lambda one: one["promised"] == 0.25, "it has the new promise")
    assert status["accumulators"]["approach"] == "independent"
    place.delete("serviceclasses", "fleeting")
    place.wait(HEARD_SECONDS)
    create(place, "late", "fleeting")
    place.waits("late", "service class 'fleeting': does not exist")
    nobody_notices(place)  # the next leader has never known the class
    place.create("serviceclasses", service_class("fleeting", 0.5, 2))
    place.bound("late", AT_ONCE)
    after = place.status(
        "deployment-fleeting", lambda one: one["running"] == 2 and one["promised"] == 0.5, "it goes on"
    )
    assert after["goodSeconds"] > before["goodSeconds"]
    assert after["deliveredAlways"] >= before["deliveredAlways"]


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


def test_classes_that_promise_nonsense(place: Stage) -> None:
    """As they can be made while there is no schema."""
    for name, spec in NONSENSE.items():
        said = {"namespaces": ["*"], **spec} if isinstance(spec, dict) else spec
        place.create("serviceclasses", {"metadata": {"name": name}, "spec": said})
        create(place, f"of-{name}", name)
    for name in NONSENSE:
        if name in HARMLESS:
            place.bound(f"of-{name}")
        else:
            place.waits(f"of-{name}", f"service class '{name}'.*(malformed|does not exist)")
    nobody_notices(place)


def scrawls(books: Json) -> list[Json | None]:
    """Books that somebody wrote into."""
    return [
        None,
        {**books, "version": 99},
        {**books, "version": "1"},
        {**books, "approach": ["independent"]},
        {**books, "at": 1e300},
        {**books, "at": "now"},
        {**books, "at": books["at"] + 1e9},
        {**books, "counts": {"live": 999999, "preemptions": -1, "starts": 0}},
        {**books, "records": "!!!"},
        {**books, "names": "eJw="},
        {**books, "sums": [1, 2, 3]},
        {"version": {"version": {}}},
    ]


OF_A_LATER_RELEASE = 1
"""Nobody writes over it."""


def test_ledgers_that_somebody_wrote_into(place: Stage) -> None:
    names = [f"scrawl-{number}" for number in range(len(scrawls({"at": 0.0})))]
    for name in (*names, "untouched"):
        create(place, name)
    for name in (*names, "untouched"):
        place.status(f"pod-{name}", lambda one: one["running"] == 1, "it runs and has a ledger")
    place.wait(60.0)
    former = place.leader.identity
    place.do(place.leader.kill)
    before = (place.ledger("pod-untouched") or {})["status"]

    def rewrite(name: str, books: Json | None) -> None:
        found = json.loads(json.dumps(place.ledger(name)))
        found["status"]["accumulators"] = books
        place.world.store.write(BY_NAME["availabilities"], found)

    for number, name in enumerate(names):
        books = (place.ledger(f"pod-{name}") or {})["status"]["accumulators"]
        rewrite(f"pod-{name}", scrawls(books)[number])
    copy = json.loads(json.dumps(place.ledger("pod-untouched")))
    copy["metadata"] = {"name": "a-copy"}
    copy["status"]["accumulators"]["version"] = 99
    place.create("availabilities", copy)
    place.until(lambda: place.world.leader and place.leader.identity != former, "somebody leads again")
    nobody_notices(place, kill=False)

    def goes_on(before: float, status: Json) -> bool:
        return place.instant(status["at"]) > before and 0.0 <= float(status["deliveredAlways"]) <= 1.0

    since = place.now
    place.wait(120.0)
    for number, name in enumerate(names):
        status = (place.ledger(f"pod-{name}") or {})["status"]
        assert goes_on(since, status) == (number != OF_A_LATER_RELEASE), (number, status)
    status = place.status("pod-untouched", partial(goes_on, since), "the untouched one goes on")
    assert status["deliveredAlways"] >= before["deliveredAlways"]


# -- budgets and nodes -------------------------------------------------------------------------------------------------


def test_budgets_with_odd_selectors(place: Stage) -> None:
    odd: list[Json] = [
        {"selector": {}, "maxUnavailable": "0%"},
        {"selector": {}, "minAvailable": "100%"},
        {"selector": {"matchLabels": {"a": "b"}}, "minAvailable": 2147483647},
        {"maxUnavailable": 0},
        {"selector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, "maxUnavailable": 0},
        {"selector": {"matchExpressions": [{"key": "x", "operator": "Nearby"}]}, "maxUnavailable": 0},
        {"selector": {"matchExpressions": expressions(200, 50)}, "minAvailable": "100%"},
    ]
    for number, spec in enumerate(odd):
        place.create("poddisruptionbudgets", {"metadata": {"name": f"odd-{number}"}, "spec": spec})
    nobody_notices(place)


def test_nodes_that_have_nothing_or_too_much(place: Stage) -> None:
    odd: dict[str, dict[str, str]] = {
        "nothing": {"cpu": "0", "memory": "0", "pods": "0"},
        "no-pods": {"cpu": "4", "memory": "16Gi"},
        "too-much": {"cpu": "9223372036854775807", "memory": "9223372036854775807", "pods": "9223372036854775807"},
        "far-too-much": {"cpu": "1e30", "memory": "1e30", "pods": "1e30", "example.com/odd": "1e25"},
        "empty": {},
    }
    marks = {"node-restriction.kubernetes.io/slacktide": "true"}
    for name, amounts in odd.items():
        made = place.create(
            "nodes", {"metadata": {"name": f"odd-{name}", "labels": {**marks, "odd": name}}, "spec": {}}
        )
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
        place.world.store.write(BY_NAME["nodes"], {**made, "metadata": dict(made["metadata"]), "status": status})
    place.wait(HEARD_SECONDS)
    for name in ("nothing", "no-pods", "empty"):
        create(place, f"on-{name}", nodeSelector={"odd": name})
    create(place, "on-too-much", cpu="1000000", nodeSelector={"odd": "too-much"})
    create(place, "more", cpu="1e9", nodeSelector={"odd": "too-much"})
    for name in ("nothing", "no-pods", "empty"):
        place.waits(f"on-{name}", "Insufficient|Too many pods")
    place.bound("on-too-much")
    nobody_notices(place)
