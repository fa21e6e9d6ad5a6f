"""Nodes as hosts: attributes, taints, ownership."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.errors import ConfigError
from slacktide.kube.resources.objects import NODE
from slacktide.kube.translate.nodes import Ownership, view_of
from slacktide.kube.translate.pod_constraints import ConstraintIndex
from slacktide.kube.translate.profiles import added_affinity
from slacktide.model.constraint import Constraint, Term, Tolerates, Toleration
from slacktide.model.placement import Preference
from support.made_objects import decoded, node, pod

LIKES = '{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [%s]}]}}'
ANYBODY = Ownership(all_nodes=True)


def test_labels_name_and_taints_are_attributes() -> None:
    tainted = [{"key": "gpu", "value": "only", "effect": "NoSchedule"}, {"key": "slow", "effect": "PreferNoSchedule"}]
    found = view_of(node("n1", {"zone": "a"}, tainted, allocatable={"cpu": "4", "pods": "110"}), ANYBODY)
    assert found.attributes == {
        "zone": "a",
        "metadata.name": "n1",
        "taint:NoSchedule:gpu": "only",
        "taint:PreferNoSchedule:slow": "",
    }
    assert found.soft_taints == (("slow", ""),)
    assert found.amounts == {"cpu": 4000, "pods": 110}
    assert (found.ready, found.ours, found.problem) == (True, True, "")


def test_a_cordoned_node_takes_only_who_tolerates_that() -> None:
    cordoned = view_of(node(unschedulable=True), ANYBODY).attributes
    assert not Tolerates().holds(cordoned)
    assert Tolerates((Toleration("node.kubernetes.io/unschedulable", any_value=True),)).holds(cordoned)
    daemon = pod(
        tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
    )
    assert ConstraintIndex().constraints_of(daemon).term.holds(cordoned)
    assert not ConstraintIndex().constraints_of(pod()).term.holds(cordoned)


@pytest.mark.parametrize(
    ("toleration", "holds"),
    [
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_which_tolerations_cover_a_taint(toleration: dict[str, str], holds: bool) -> None:
    tainted = view_of(node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]), ANYBODY)
    assert ConstraintIndex().constraints_of(pod(tolerations=[toleration])).term.holds(tainted.attributes) == holds


@pytest.mark.parametrize(
    ("operator", "limit", "found", "holds"),
    [
        ("Gt", "950", "951", True),
        ("Gt", "950", "950", False),
        ("Lt", "950", "-3", True),
        ("Lt", "950", "950", False),
        ("Lt", "950", "0100", False),  # no number as Kubernetes writes them
        ("Lt", "950", "+1", False),
        ("Gt", "many", "951", False),
        ("Gt", "0", str(2**63), False),  # beyond 64 bits
    ],
)
def test_tolerations_that_compare_numbers(operator: str, limit: str, found: str, holds: bool) -> None:
    tainted = view_of(node(taints=[{"key": "sla", "value": found, "effect": "NoSchedule"}]), ANYBODY)
    toleration = {"key": "sla", "operator": operator, "value": limit, "effect": "NoSchedule"}
    assert ConstraintIndex().constraints_of(pod(tolerations=[toleration])).term.holds(tainted.attributes) == holds


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        ({"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
         "RestartAllContainersOnContainerExits"),
        ({"initContainers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
         "RestartAllContainersOnContainerExits"),
        ({"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, ""),
        ({"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport"),
        ({"hostNetwork": True, "hostUsers": True}, ""),
        ({"hostNetwork": True}, ""),
        ({"hostUsers": False}, ""),
    ],
)  # fmt: skip
def test_features_that_a_pod_needs_and_nodes_declare(spec: dict[str, Any], needs: str) -> None:
    found = node()
    declaring = decoded(NODE, {"metadata": {"name": "m"}, "status": {"declaredFeatures": [needs or "Another"]}})
    term = ConstraintIndex().constraints_of(pod(**spec)).term
    assert term.holds(view_of(declaring, ANYBODY).attributes)
    assert term.holds(view_of(found, ANYBODY).attributes) == (not needs)


def test_what_an_operator_adds_holds_for_all_pods() -> None:
    add = (
        '{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": '
        '[{"key": "pool", "operator": "In", "values": ["general"]}]}]}, '
        '"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": {"matchExpressions": '
        '[{"key": "disk", "operator": "Exists"}]}}]}'
    )
    found = ConstraintIndex(added={"ours": added_affinity(add)}).constraints_of(
        pod(nodeSelector={"zone": "a"}, schedulerName="ours")
    )
    assert found.term.holds({"pool": "general", "zone": "a"})
    assert not found.term.holds({"pool": "gpu", "zone": "a"})
    assert not found.term.holds({"pool": "general"})
    assert found.placement.preferences == (Preference(7, term=Term((Constraint("disk", "exists"),))),)


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("pool=general", "expected JSON of a node affinity"),
        ('{"required": {}}', "unknown field `required`"),
        (LIKES % '{"key": "a"}', "missing required field `operator`"),
        (LIKES % '{"key": "a", "operator": "Near"}', "found operator 'Near'"),
    ],
)
def test_an_added_affinity_that_is_none_is_refused(added: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"kube.added_affinity: .*{problem}"):
        added_affinity(added)


def test_who_tolerates_everything_asks_for_nothing() -> None:
    assert ConstraintIndex().constraints_of(pod(tolerations=[{"operator": "Exists"}])).term.constraints == ()


@pytest.mark.parametrize(
    ("ownership", "ours"),
    [
        (Ownership(), [True, False, False, False]),
        (Ownership(taint="slacktide.io/only"), [True, True, False, False]),
        (Ownership(label="", taint="slacktide.io/only"), [False, True, False, False]),
        (Ownership(label="node-restriction.kubernetes.io/slacktide"), [True, False, True, False]),
        (Ownership(label=""), [False, False, False, False]),
        (Ownership(all_nodes=True), [True, True, True, True]),
    ],
)
def test_a_node_is_ours_by_label_or_taint_or_all_are(ownership: Ownership, ours: list[bool]) -> None:
    candidates = [
        node(labels={"node-restriction.kubernetes.io/slacktide": "true"}),
        node(taints=[{"key": "slacktide.io/only", "effect": "NoSchedule"}]),
        node(labels={"node-restriction.kubernetes.io/slacktide": "false"}),
        node(labels={"slacktide.io/managed": "true"}),
    ]
    assert [view_of(one, ownership).ours for one in candidates] == ours


def test_a_node_with_an_impossible_amount_has_none_and_says_why() -> None:
    found = view_of(node("n1", allocatable={"memory": "lots"}, ready="Unknown"), ANYBODY)
    assert found.amounts == {}
    assert "node n1: status.allocatable[memory]: found 'lots'" in found.problem
    assert not found.ready


def test_a_node_affinity_for_a_name_sees_the_name() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    term = ConstraintIndex().constraints_of(pod(affinity={"nodeAffinity": required})).term
    assert Constraint("metadata.name", "==", "n1") in term.constraints
    assert term.holds(view_of(node("n1"), ANYBODY).attributes)
    assert not term.holds(view_of(node("n2"), ANYBODY).attributes)
