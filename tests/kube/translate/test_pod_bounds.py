"""How much one pod may ask: beyond a bound it is unschedulable, and costs nobody else anything."""

from __future__ import annotations

from typing import Any

import pytest

from kube.feed.test_blame import World
from slacktide.kube.resources.objects import POD
from slacktide.kube.translate.nodes import Ownership, view_of
from slacktide.kube.translate.pod_constraints import ConstraintIndex
from slacktide.kube.translate.pod_terms import MOST_ABOUT_PODS as MOST
from slacktide.kube.translate.pod_terms import MOST_KEYS, MOST_PORTS, MOST_TERMS, MOST_VALUES, NOWHERE
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.placement import NO_NEIGHBOURS
from support import made_objects

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Json = dict[str, Any]


def term(number: int = 0, requirements: int = 1, values: int = 1, **more: Any) -> Json:
    keys = [
        {"key": f"k{one}", "operator": "In", "values": [f"v{value}" for value in range(values)]}
        for one in range(requirements)
    ]
    return {"topologyKey": f"key-{number}", "namespaceSelector": {}, "labelSelector": {"matchExpressions": keys}} | more


def away(count: int, **more: Any) -> Json:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(one, **more) for one in range(count)]}}}


def rather(count: int) -> Json:
    near = [{"weight": 1, "podAffinityTerm": term(one)} for one in range(count)]
    return {"affinity": {"podAffinity": {PREFERRED: near}}}


def spread(count: int, **more: Any) -> Json:
    one = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}} | more
    return {"topologySpreadConstraints": [one | {"topologyKey": f"key-{number}"} for number in range(count)]}


def nodes(terms: int, requirements: int = 1) -> Json:
    keys = [{"key": f"k{one}", "operator": "Exists"} for one in range(requirements)]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": keys}] * terms}}}}


def ports(count: int) -> Json:
    return {"containers": [{"name": "c", "ports": [{"hostPort": one + 1, "containerPort": 1} for one in range(count)]}]}


ALLOWED_AND_ASKED: list[tuple[Json, Json, str]] = [
    (away(MOST), away(1_000), "terms of pod affinity and topology spread constraints: found 1000, expected 32"),
    (rather(MOST), rather(MOST + 1), "terms of pod affinity and topology spread constraints: found 33, expected 32"),
    (spread(MOST), spread(1_000), "terms of pod affinity and topology spread constraints: found 1000, expected"),
    (spread(16) | away(16), spread(16) | away(17), "terms of pod affinity and topology spread constraints: found 33"),
    (away(1, requirements=MOST_KEYS), away(1, requirements=101), "requirements of a selector of pods: found 101"),
    (
        away(1, namespaces=["a"] * MOST_KEYS),
        away(1, namespaces=["a"] * 101),
        "namespaces of a term of pod affinity: found",
    ),
    (
        away(1, matchLabelKeys=["a"] * 100),
        away(1, matchLabelKeys=["a"] * 101),
        "label keys of a term of pod affinity: f",
    ),
    (spread(1, matchLabelKeys=["a"] * 100), spread(1, matchLabelKeys=["a"] * 101), "label keys of a topology spread"),
    (
        away(10, values=MOST_VALUES // 10),
        away(10, values=1_001),
        "values of selectors of pods: found 10010, expected 10000",
    ),
    (nodes(MOST_TERMS), nodes(101), "terms of node affinity: found 101, expected 100 at most"),
    (nodes(1, MOST_KEYS), nodes(1, 101), "requirements of a term of node affinity: found 101"),
    (
        {"tolerations": [{"key": "a"}] * 100},
        {"tolerations": [{"key": "a"}] * 101},
        "tolerations: found 101, expected 100",
    ),
    (
        {"nodeSelector": {f"k{one}": "v" for one in range(100)}},
        {"nodeSelector": {f"k{one}": "v" for one in range(101)}},
        "labels of the node selector: found 101",
    ),
    (ports(MOST_PORTS), ports(257), "host ports: found 257, expected 256 at most"),
]


@pytest.mark.parametrize(("allowed", "asked", "problem"), ALLOWED_AND_ASKED, ids=[one[2] for one in ALLOWED_AND_ASKED])
def test_who_asks_for_more_than_the_bound_is_told_it(allowed: Json, asked: Json, problem: str) -> None:
    index = ConstraintIndex()
    index.constraints_of(made_objects.pod(**allowed))
    bad = made_objects.pod("bad", **asked)
    with pytest.raises(Unschedulable, match=problem):
        index.constraints_of(bad)


@pytest.mark.parametrize("asked", [away(1_000), spread(1_000)], ids=["away", "spread"])
@pytest.mark.parametrize("node", ["", "b"])
def test_it_costs_nobody_else_anything(asked: Json, node: str) -> None:
    """Neither one that waits nor one that named its node itself: no other pod is looked at again."""
    world = World()
    world.owner(replicas=3)
    for name in ("p", "q"):
        world.up(name)
    told: list[Any] = []
    world.engine.journal = told.append
    body = {
        "metadata": {"name": "bad", "namespace": "default", "uid": "bad", "labels": {"slacktide.io/class": "silver"}},
        "spec": {"schedulerName": "slacktide", "nodeName": node, "containers": [made_objects.container(cpu="1")]}
        | asked,
    }
    world.mirror.on_pod_update(made_objects.decoded(POD, body))
    assert not world.mirror.constraints._groups
    assert not [one for one in told if getattr(one, "uid", "") in ("p", "q")]
    if not node:
        assert world.feed.pods["bad"].problem == (
            "terms of pod affinity and topology spread constraints: found 1000, expected 32 at most"
        )
    else:
        assert world.engine.pods["bad"].bound, "it has its promise, and is a victim as any"


def test_a_namespace_that_is_called_as_all_of_them_are_leaves_with_its_pod() -> None:
    """No API server takes that name; two groups have one mark then. The fuzzer found it."""
    index = ConstraintIndex()
    term: dict[str, Any] = {"topologyKey": "zone", "labelSelector": {}}
    for name, more in (("a", {"namespaces": ["*"]}), ("b", {"namespaceSelector": {}})):
        affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term | more]}}
        index.learn(made_objects.pod(name, uid=name, affinity=affinity))
    for name in ("a", "b"):
        index.forget(made_objects.pod(name, uid=name))
    assert not index._pods
    assert not index._groups


def about(number: int, count: int, key: str) -> Json:
    """Away from pods without a label, by terms that nobody else has."""
    absent = [[{"key": f"k{number}-{n}", "operator": "DoesNotExist"}] for n in range(count)]
    more: Json = {"topologyKey": key, "namespaceSelector": {}}
    terms = [{"labelSelector": {"matchExpressions": one}} | more for one in absent]
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}


def named(name: str, namespace: str, **spec: Any) -> Any:
    return made_objects.pod(name, uid=name, namespace=namespace, **spec)


def test_a_term_over_a_label_that_no_node_has_is_about_nobody() -> None:
    index = made_objects.index_of_labels("zone")
    other = named("other", "shop")
    index.learn(other)
    pod = named("p", "lab", **about(0, 3, "made-up"))
    assert not index.learn(pod)
    assert not index._groups
    assert index.constraints_of(pod).placement == index.constraints_of(other).placement
    node = view_of(made_objects.node("m", {"made-up": "v"}), Ownership(all_nodes=True))
    assert index.on_node_update(None, node)
    assert set(index.outdated()) == {"p", "other"}
    assert len(index.constraints_of(other).placement.rules) == 3
    assert not index.on_node_update(node, None)
    index.forget(pod)
    assert not index._groups


def test_a_node_of_others_brings_no_label() -> None:
    index = made_objects.index_of_labels("zone")
    index.learn(named("p", "lab", **about(0, 1, "made-up")))
    view = view_of(made_objects.node("m", {"made-up": "v"}), Ownership(label="ours"))
    assert not view.ours
    assert not index.on_node_update(None, view)


def test_who_must_be_near_somebody_over_a_label_that_no_node_has_fits_nowhere_and_marks_nobody() -> None:
    index = made_objects.index_of_labels("zone")
    other = named("other", "shop")
    index.learn(other)
    terms = [{"topologyKey": f"made-up-{one}", "labelSelector": {}, "namespaceSelector": {}} for one in range(3)]
    pod = named("p", "lab", affinity={"podAffinity": {REQUIRED: terms}})
    assert not index.learn(pod)
    assert not index._groups
    assert index.constraints_of(other).placement == NO_NEIGHBOURS
    placement = index.constraints_of(pod).placement
    assert placement.rules == (NOWHERE,)
    assert NOWHERE.mark not in placement.marks
