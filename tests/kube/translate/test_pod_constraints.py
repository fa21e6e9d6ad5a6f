"""Marks, rules and preferences of pods, case by case; what changes for others when a pod comes."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate import pod_terms
from slacktide.kube.translate.nodes import NodeView, Ownership, view_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Constraint, Term
from slacktide.model.placement import CLUSTER, NO_NEIGHBOURS, Preference, Rule, Topology
from support.made_objects import index_of_labels, node, pod
from support.tallies import Scene

WEB = {"matchLabels": {"app": "web"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def apart(key: str = "host", selector: dict[str, Any] | None = None, **term: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": selector or WEB} | term]}}


def rather(weight: int, kind: str = "podAffinity", key: str = "zone") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": WEB}
    return {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}


def web(**spec: Any) -> Pod:
    return pod("web", labels={"app": "web"}, **spec)


def test_a_plain_pod_has_nothing_to_do_with_its_neighbours() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    assert not book.learn(plain := pod())
    assert book.constraints_of(plain).placement is NO_NEIGHBOURS


def test_anti_affinity_works_both_ways() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    victim, loner = web(), pod("loner", affinity=apart())
    book.learn(victim)
    assert book.constraints_of(victim).placement is NO_NEIGHBOURS
    assert book.learn(loner)
    assert book.outdated() == (victim.metadata.uid,)
    mark, avoids = "pods:default/app=web", "avoids:default/app=web @host"
    assert book.constraints_of(loner).placement.marks == (avoids,)
    assert book.constraints_of(loner).placement.rules == (Rule("away", mark, Topology("host")),)
    assert book.constraints_of(victim).placement.marks == (mark,)
    assert book.constraints_of(victim).placement.rules == (Rule("away", avoids, Topology("host")),)


def test_preferences_work_both_ways_and_required_affinity_attracts_a_little() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    liked, fond, bound = web(), pod("fond", affinity=rather(7)), pod("bound", affinity={
        "podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": WEB}]},
    })  # fmt: skip
    for one in (liked, fond, bound):
        book.learn(one)
    zone = Topology("zone")
    assert book.constraints_of(fond).placement.preferences == (Preference(7, "pods:default/app=web", zone),)
    assert sorted(book.constraints_of(liked).placement.preferences, key=lambda one: one.weight) == [
        Preference(1, "drawn+1:default/app=web @zone", zone),
        Preference(7, "drawn+7:default/app=web @zone", zone),
    ]
    assert book.constraints_of(bound).placement.marks == ("drawn+1:default/app=web @zone",)
    assert book.constraints_of(bound).placement.rules == (Rule("near", "pods:default/app=web", zone),)


def test_points_are_those_of_kubernetes() -> None:
    """Preferred terms of the pod and of those who run, each way, and node preferences, by hand."""
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    terms = [{"weight": 3, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}]
    new = web(affinity=rather(10, "podAntiAffinity") | {"nodeAffinity": {PREFERRED: terms}})
    fond, equal = pod("fond", affinity=rather(5)), web()
    for one in (new, fond, equal):
        book.learn(one)
    hosts = {name: view_of(node(name, {"zone": zone}), Ownership()).attributes for name, zone in
             (("n1", "a"), ("n2", "a"), ("n3", "b"))}  # fmt: skip
    placement = book.constraints_of(new).placement
    running = [(book.constraints_of(one).placement, on) for one, on in ((fond, "n2"), (equal, "n3"))]
    scene = Scene(hosts, running)
    assert [scene.points(placement, host) for host in hosts] == [3 + 5, 3 + 5, -10]


def test_spread_that_may_be_broken_becomes_points() -> None:
    def spread(skew: int) -> list[dict[str, Any]]:
        how = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": WEB}
        return [how | {"maxSkew": skew}]

    within = Topology("zone", Term((Constraint("zone", "exists"),)))
    for skew, weight in ((1, -100), (3, -33), (1000, -1)):
        book = index_of_labels("zone", "host", "kubernetes.io/hostname")
        book.learn(one := web(topologySpreadConstraints=spread(skew)))
        placed = book.constraints_of(one)
        assert placed.placement.preferences[0] == Preference(weight, "counted:default/app=web", within)
        assert placed.placement.rules == ()


def test_a_spread_counts_all_nodes_of_domains_in_which_some_are_ours() -> None:
    def seen(name: str, zone: str) -> NodeView:
        labels = {"zone": zone, "kubernetes.io/hostname": name} | ({"mine": "yes"} if name.startswith("our") else {})
        view = view_of(node(name, labels), Ownership(label="mine"))
        book.on_node_update(views.get(name), view)
        views[name] = view
        return view

    def counting() -> list[str]:
        (rule,) = book.constraints_of(one).placement.rules
        return [name for name, view in views.items() if rule.topology.within.holds(view.attributes)]

    views: dict[str, NodeView] = {}
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    book.learn(one := web(topologySpreadConstraints=[spread | {"labelSelector": {"matchLabels": {"app": "web"}}}]))
    seen("our-1", "a")
    seen("their-1", "b")
    assert counting() == ["our-1"]
    seen("their-2", "a")
    assert counting() == ["our-1", "their-2"]
    assert book.outdated()
    seen("our-2", "b")
    assert counting() == ["our-1", "their-1", "their-2", "our-2"]
    seen("our-2", "c")
    book.on_node_update(views.pop("our-1"), None)
    assert counting() == ["our-2"]


def test_soft_taints_are_points_against_whom_they_are_not_tolerated_by() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    book.learn(plain := pod())
    book.learn(stoic := pod(tolerations=[{"operator": "Exists"}]))
    assert book.see_soft_taints([("slow", "")])
    assert set(book.outdated()) == {plain.metadata.uid, stoic.metadata.uid}
    tainted = Term((Constraint("taint:PreferNoSchedule:slow", "==", ""),))
    assert book.constraints_of(plain).placement.preferences == (Preference(-100, term=tainted),)
    assert book.constraints_of(stoic).placement is NO_NEIGHBOURS
    assert not book.see_soft_taints([("slow", "")])


def test_a_claim_for_one_pod_keeps_others_away_from_the_whole_cluster() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    book.learn(one := pod(), ("data",))
    placement = book.constraints_of(one).placement
    assert placement.marks == ("claim:default/data",)
    assert placement.rules == (Rule("away", "claim:default/data", Topology(CLUSTER)),)
    book.learn(one)  # the claim allows more than one pod by now
    assert book.constraints_of(one).placement is NO_NEIGHBOURS


def test_pods_alike_share_one_placement_worked_out_once() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    alike = [web(affinity=apart()) for _ in range(100)]
    for one in alike:
        book.learn(one)
    first = book.constraints_of(alike[0])
    assert all(book.constraints_of(one) is first for one in alike)
    assert not book.outdated()


def test_a_changed_pod_is_another() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    book.learn(loner := pod("loner", affinity=apart()))
    book.learn(pod("p", uid="p"))
    changed = pod("p", uid="p", labels={"app": "web"})
    book.learn(changed)
    assert book.constraints_of(changed).placement.marks == ("pods:default/app=web",)
    book.forget(changed)
    book.forget(loner)
    assert (book._pods, book._groups) == ({}, {})
    book.forget(loner)


def test_a_pod_being_deleted_no_longer_counts_for_spread_but_for_all_else() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    hard = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB, "maxSkew": 1}
    book.learn(pod("even", topologySpreadConstraints=[hard], affinity=apart()))
    book.learn(one := web(uid="w"))
    assert book.constraints_of(one).placement.marks == ("counted:default/app=web", "pods:default/app=web")
    going = pod("web", labels={"app": "web"}, uid="w", deleting=True)
    book.learn(going)
    assert book.constraints_of(going).placement.marks == ("pods:default/app=web",)


def test_namespaces_are_selected_by_their_labels_as_they_are_now() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    book.learn(pod("loner", affinity=apart(namespaceSelector={"matchLabels": {"team": "one"}})))
    book.learn(other := pod("p", namespace="other", labels={"app": "web"}))
    assert book.constraints_of(other).placement is NO_NEIGHBOURS
    assert book.on_namespace_update("other", {"team": "one"})
    assert book.outdated() == (other.metadata.uid,)
    assert book.constraints_of(other).placement.marks == ("pods:(team=one)/app=web",)
    assert book.on_namespace_update("other", None)
    assert book.constraints_of(other).placement is NO_NEIGHBOURS
    assert not book.on_namespace_update("other", {})


def test_huge_selectors_make_short_marks_that_still_differ() -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    for last in ("x", "y"):
        values = [f"v{k}" for k in range(5000)] + [last]
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
        book.learn(pod(affinity=apart(selector=selector)))
    book.learn(one := pod(labels={"app": "v7"}))
    marks = book.constraints_of(one).placement.marks
    assert len(set(marks)) == 2
    assert all(len(mark) <= 200 for mark in marks)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"affinity": apart(selector={"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})},
         "required pod anti-affinity.labelSelector: key 'a': found operator 'Gt'"),
        ({"affinity": apart(key="")}, "required pod anti-affinity.topologyKey: found ''"),
        ({"tolerations": [{"key": "k", "operator": "Near", "value": "1"}]}, "toleration of k: found operator 'Near'"),
        ({"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}]},
         "topology spread over z: maxSkew: found 0, expected 1 or more"),
        ({"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1, "whenUnsatisfiable": "Perhaps"}]},
         "whenUnsatisfiable: found 'Perhaps', expected DoNotSchedule or ScheduleAnyway"),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["many"]}]}]}}}},
         r"required node affinity: key 'size': Gt: found \(many\), expected one whole number"),
    ],
)  # fmt: skip
def test_a_malformed_pod_waits_with_a_reason_and_nobody_else_notices(spec: dict[str, Any], reason: str) -> None:
    book = index_of_labels("zone", "host", "kubernetes.io/hostname")
    book.learn(other := web())
    book.learn(broken := web(**spec))
    with pytest.raises(Unschedulable, match=reason):
        book.constraints_of(broken)
    assert book.constraints_of(other).placement is NO_NEIGHBOURS
    running = web(**spec, nodeName="n1")
    book.learn(running)
    book.constraints_of(running)


def test_pods_share_a_translation_only_where_they_are_equal_in_all_that_is_read() -> None:
    read = {
        node.attr
        for node in ast.walk(ast.parse(inspect.getsource(pod_terms)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "spec"
    }
    assert read == set(pod_terms.READ)
