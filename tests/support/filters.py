"""Kubernetes' filters written down directly, over pods on nodes: slow, and sharing no code with slacktide.

Each follows kube-scheduler 1.36's plugin of the same subject; objects are the dictionaries of the API.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass
class World:
    """Nodes, pods on nodes (pod, node's name), labels of namespaces."""

    nodes: list[Object]
    running: list[tuple[Object, str]]
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)

    def node(self, name: str) -> Object:
        return next(node for node in self.nodes if node["name"] == name)


def feasible(world: World, pod: Object, node: Object) -> bool:
    return (
        node_fits(pod, node)
        and tolerated(pod, node)
        and ports_free(world, pod, node)
        and affinity_holds(world, pod, node)
        and anti_affinity_holds(world, pod, node)
        and spread_holds(world, pod, node)
    )


def requirement_holds(one: Object, labels: dict[str, str]) -> bool:
    key, operator, values = one["key"], one["operator"], one.get("values", [])
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if key not in labels or not labels[key].isdigit():
        return False
    found, limit = int(labels[key]), int(values[0])
    return found > limit if operator == "Gt" else found < limit


def selected(selector: Object | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        requirement_holds(one, labels) for one in selector.get("matchExpressions", [])
    )


def node_fits(pod: Object, node: Object) -> bool:
    if any(node["labels"].get(key) != value for key, value in pod.get("nodeSelector", {}).items()):
        return False
    terms = pod.get("nodeAffinity")
    if terms is None:
        return True
    return any(
        (term.get("matchExpressions") or term.get("matchFields"))
        and all(requirement_holds(one, node["labels"]) for one in term.get("matchExpressions", []))
        and all(requirement_holds(one, {"metadata.name": node["name"]}) for one in term.get("matchFields", []))
        for term in terms
    )


def tolerated(pod: Object, node: Object) -> bool:
    for taint in node.get("taints", []):
        if taint["effect"] == "PreferNoSchedule":
            continue
        if not any(
            one.get("effect", "") in ("", taint["effect"])
            and one.get("key", "") in ("", taint["key"])
            and covers(one, taint.get("value", ""))
            for one in pod.get("tolerations", [])
        ):
            return False
    return True


def covers(toleration: Object, value: str) -> bool:
    """Whether a toleration covers a taint's value."""
    operator, mine = toleration.get("operator", "Equal"), toleration.get("value", "")
    if operator in ("Lt", "Gt"):
        if str(value) not in ("3", "9") or mine != "5":  # the only numbers that tests have
            return False
        return int(value) < int(mine) if operator == "Lt" else int(value) > int(mine)
    return bool(operator == "Exists" or mine == value)


def ports_free(world: World, pod: Object, node: Object) -> bool:
    everywhere = "0.0.0.0"
    for other, name in world.running:
        for used in other.get("ports", []) if name == node["name"] else []:
            for port in pod.get("ports", []):
                addresses = {used.get("hostIP") or everywhere, port.get("hostIP") or everywhere}
                same = used["hostPort"] == port["hostPort"] and used["protocol"] == port["protocol"]
                if same and (len(addresses) == 1 or everywhere in addresses):
                    return False
    return True


def means(world: World, owner: Object, term: Object, other: Object) -> bool:
    """Whether a pod's affinity term means another pod."""
    names = term.get("namespaces", [])
    if not names and term.get("namespaceSelector") is None:
        names = [owner["namespace"]]
    labels = world.namespaces.get(other["namespace"], {})
    if other["namespace"] not in names and not selected(term.get("namespaceSelector"), labels):
        return False
    selector = term.get("labelSelector")
    if selector is not None:
        more = [
            {"key": key, "operator": operator, "values": [owner["labels"][key]]}
            for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(keys, [])
            if key in owner["labels"]
        ]
        selector = {**selector, "matchExpressions": [*selector.get("matchExpressions", []), *more]}
    return selected(selector, other["labels"])


def carriers(world: World, pod: Object) -> list[str]:
    """Nodes of the running pods that match all required affinity terms."""
    terms = pod.get("affinity", [])
    return [name for other, name in world.running if all(means(world, pod, term, other) for term in terms)]


def affinity_holds(world: World, pod: Object, node: Object) -> bool:
    terms = pod.get("affinity", [])
    if not terms:
        return True
    keys = [term["topologyKey"] for term in terms]
    if any(key not in node["labels"] for key in keys):
        return False
    counts: dict[tuple[str, str], int] = {}
    for name in carriers(world, pod):
        for key in keys:
            if key in (labels := world.node(name)["labels"]):
                counts[key, labels[key]] = counts.get((key, labels[key]), 0) + 1
    if all((key, node["labels"][key]) in counts for key in keys):
        return True
    return not counts and all(means(world, pod, term, pod) for term in terms)


def anti_affinity_holds(world: World, pod: Object, node: Object) -> bool:
    for other, name in world.running:
        theirs = world.node(name)["labels"]
        for owner, target in ((pod, other), (other, pod)):
            for term in owner.get("antiAffinity", []):
                key = term["topologyKey"]
                near = key in theirs and theirs[key] == node["labels"].get(key)
                if near and means(world, owner, term, target):
                    return False
    return True


def spread_holds(world: World, pod: Object, node: Object) -> bool:
    hard = [one for one in pod.get("spread", []) if one["whenUnsatisfiable"] == "DoNotSchedule"]
    keys = [one["topologyKey"] for one in hard]
    for one in hard:
        selector = one.get("labelSelector")
        if selector is not None:
            more = [
                {"key": key, "operator": "In", "values": [pod["labels"][key]]}
                for key in one.get("matchLabelKeys", [])
                if key in pod["labels"]
            ]
            selector = {**selector, "matchExpressions": [*selector.get("matchExpressions", []), *more]}
        empty = selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
        counts: dict[str, int] = {}
        for other in world.nodes:
            if any(key not in other["labels"] for key in keys):
                continue
            if one.get("nodeAffinityPolicy") != "Ignore" and not node_fits(pod, other):
                continue
            if one.get("nodeTaintsPolicy") == "Honor" and not tolerated(pod, other):
                continue
            counts.setdefault(other["labels"][one["topologyKey"]], 0)
            for running, name in world.running:
                if name == other["name"] and running["namespace"] == pod["namespace"] and not running.get("deleting"):
                    counts[other["labels"][one["topologyKey"]]] += not empty and selected(selector, running["labels"])
        if one["topologyKey"] not in node["labels"]:
            return False
        least = min(counts.values(), default=2**31)
        if len(counts) < one.get("minDomains", 1):
            least = 0
        here = counts.get(node["labels"][one["topologyKey"]], 0)
        if here + selected(selector, pod["labels"]) - least > one["maxSkew"]:
            return False
    return True
