"""What Kubernetes' documentation says of pods and nodes, written down a second time for the auditor.

Takes objects as JSON; shares no code with the scheduler.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

Json = dict[str, Any]

SUFFIXES = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
SUFFIXES |= {letter: Fraction(1000) ** power for power, letter in enumerate("kMGTPE", 1)}
SUFFIXES |= {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
OURS, SECOND = "slacktide", "slacktide-second"
"""Names of the scheduler; the second one in scenes that have two."""
MANAGED = ("node-restriction.kubernetes.io/slacktide", "true")


def seconds(text: str) -> float:
    """A timestamp as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def number(text: str | float) -> Fraction:
    """A quantity."""
    found = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)", str(text))
    assert found, f"quantity {text!r}"
    return Fraction(found[1]) * SUFFIXES[found[2]]


def plus(*many: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The sum of amounts."""
    total: dict[str, Fraction] = {}
    for one in many:
        for name, value in one.items():
            total[name] = total.get(name, Fraction(0)) + value
    return total


def most(*many: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Of each resource the largest amount."""
    return {name: max(one.get(name, Fraction(0)) for one in many) for name in set().union(*many)}


def _asked(one: Json) -> dict[str, Fraction]:
    asked = one.get("resources", {})
    return {name: number(value) for name, value in {**asked.get("limits", {}), **asked.get("requests", {})}.items()}


def resize_waits(pod: Json) -> str:
    """Why a pod's resize was not carried out, as its kubelet says (Deferred, Infeasible)."""
    conditions = pod.get("status", {}).get("conditions") or []
    return next((str(one.get("reason", "")) for one in conditions if one["type"] == "PodResizePending"), "")


def _taken(pod: Json, one: Json) -> dict[str, Fraction]:
    """What a container takes: while it is resized the most of what is asked for, set aside and in force; what can never
    be does not count."""
    found = [each for each in pod.get("status", {}).get("containerStatuses") or [] if each["name"] == one["name"]]
    if not found or "resources" not in found[0]:
        return _asked(one)
    aside = {name: number(value) for name, value in found[0].get("allocatedResources", {}).items()}
    asked = {} if resize_waits(pod) == "Infeasible" else _asked(one)
    return most(asked, aside, _asked(found[0]))


def requests(pod: Json) -> dict[str, Fraction]:
    """What a pod takes of a node, itself included in the count of pods."""
    spec = pod["spec"]
    beside: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for one in spec.get("initContainers", ()):
        if one.get("restartPolicy") == "Always":
            beside = plus(beside, _asked(one))
            peak = most(peak, beside)
        else:
            peak = most(peak, plus(beside, _asked(one)))
    together = plus(beside, *(_taken(pod, one) for one in spec["containers"]))
    effective = most(peak, together)
    effective |= _asked(spec)  # of the whole pod, where it says so
    overhead = {name: number(value) for name, value in spec.get("overhead", {}).items()}
    return plus(effective, overhead, {"pods": Fraction(1)})


def is_over(pod: Json) -> bool:
    """Whether its containers have ended for good."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def told_by_us(event: Json) -> bool:
    """Whether an event is the scheduler's."""
    return str(event.get("reportingController", "")).startswith("slacktide")


def is_ours(pod: Json) -> bool:
    return bool(pod["spec"].get("schedulerName") in (OURS, SECOND))


def is_managed(node: Json) -> bool:
    """Whether a node was given to slacktide."""
    return bool(node["metadata"].get("labels", {}).get(MANAGED[0]) == MANAGED[1])


def taints(node: Json) -> list[Json]:
    return list(node.get("spec", {}).get("taints") or [])


def is_ready(one: Json) -> bool:
    """Whether a pod or node says that it is ready."""
    conditions = one.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; none at all matches nothing."""
    if selector is None:
        return False
    rules = [{"key": k, "operator": "In", "values": [v]} for k, v in selector.get("matchLabels", {}).items()]
    return all(_holds(rule, labels) for rule in [*rules, *selector.get("matchExpressions", ())])


def _holds(rule: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or []
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise AssertionError(f"operator {rule['operator']}")


def _tolerated(taint: Json, pod: Json) -> bool:
    for one in pod["spec"].get("tolerations", ()):
        key, effect = one.get("key", ""), one.get("effect", "")
        operator, mine, value = one.get("operator", "Equal"), one.get("value", ""), taint.get("value", "")
        if effect not in ("", taint["effect"]) or key not in ("", taint["key"]):
            continue
        if operator in ("Lt", "Gt"):
            numbers = all(re.fullmatch("0|-?[1-9][0-9]*", text) for text in (mine, value))
            if numbers and (int(value) < int(mine) if operator == "Lt" else int(value) > int(mine)):
                return True
        elif operator == "Exists" or (key and mine == value):
            return True
    return False


def wrong_node(pod: Json, node: Json) -> str:
    """Why a pod must not be on a node, whoever else is there; empty where it may."""
    if not is_managed(node):
        return "the node was not given to us"
    if not is_ready(node):
        return "the node is not ready"
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    every = [*taints(node), *([cordon] if node.get("spec", {}).get("unschedulable") else [])]
    for taint in every:
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(taint, pod):
            return f"taint {taint['key']} is not tolerated"
    return wrong_labels(pod, node)


def wrong_labels(pod: Json, node: Json) -> str:
    """Why a pod's selector or affinity keeps it from a node; empty where they do not."""
    spec, labels = pod["spec"], node["metadata"].get("labels", {})
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return "nodeSelector does not match"
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    named = {"metadata.name": node["metadata"]["name"]}
    if required is not None and not any(
        all(_holds(rule, labels) for rule in term.get("matchExpressions", ()))
        and all(_holds(rule, named) for rule in term.get("matchFields", ()))
        and (term.get("matchExpressions") or term.get("matchFields"))
        for term in required["nodeSelectorTerms"]
    ):
        return "required node affinity does not match"
    return ""


def ports(pod: Json) -> set[tuple[str, str, int]]:
    """Protocol, address and number of the ports it takes of its node."""
    return {
        (port.get("protocol", "TCP"), port.get("hostIP") or "0.0.0.0", port["hostPort"])
        for one in [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
        for port in one.get("ports", ())
        if port.get("hostPort")
    }


def ports_clash(one: Json, other: Json) -> bool:
    return any(
        (a[0], a[2]) == (b[0], b[2]) and (a[1] == b[1] or "0.0.0.0" in (a[1], b[1]))
        for a in ports(one)
        for b in ports(other)
    )


def _terms(pod: Json, kind: str) -> list[Json]:
    found = pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution") or []
    assert not any("namespaceSelector" in term for term in found), "the auditor does not know namespace selectors"
    return list(found)


def _about(term: Json, owner: Json, other: Json) -> bool:
    spaces = term.get("namespaces") or [owner["metadata"]["namespace"]]
    return other["metadata"]["namespace"] in spaces and selects(
        term.get("labelSelector"), other["metadata"].get("labels", {})
    )


Where = Iterable[tuple[Json, Json]]
"""Pods and the nodes they are on."""


def wrong_company(pod: Json, node: Json, others: Where) -> str:
    """Why a pod must not be on a node because of others; empty where it may."""
    others = list(others)
    labels = node["metadata"].get("labels", {})

    def together(term: Json, where: Json) -> bool:
        key = term["topologyKey"]
        return key in labels and labels[key] == where["metadata"].get("labels", {}).get(key)

    for other, where in others:
        if where["metadata"]["name"] == node["metadata"]["name"] and ports_clash(pod, other):
            return f"a host port is taken by {other['metadata']['name']}"
        for term in _terms(pod, "podAntiAffinity"):
            if _about(term, pod, other) and together(term, where):
                return f"anti-affinity against {other['metadata']['name']}"
        for term in _terms(other, "podAntiAffinity"):
            if _about(term, other, pod) and together(term, where):
                return f"anti-affinity of {other['metadata']['name']}"
    for term in _terms(pod, "podAffinity"):
        anywhere = [where for other, where in others if _about(term, pod, other)]
        first = not anywhere and _about(term, pod, pod) and term["topologyKey"] in labels
        if not first and not any(together(term, where) for where in anywhere):
            return f"nobody that its affinity asks for is in the same {term['topologyKey']}"
    return ""


def wrong_spread(pod: Json, node: Json, nodes: Iterable[Json], others: Where) -> str:
    """Why a pod on a node breaks its own topology spread; empty where it does not."""
    nodes, others = list(nodes), list(others)
    for rule in pod["spec"].get("topologySpreadConstraints", ()):
        if rule["whenUnsatisfiable"] != "DoNotSchedule":
            continue
        key, labels = rule["topologyKey"], pod["metadata"].get("labels", {})
        assert not rule.get("matchLabelKeys"), "the auditor does not know matchLabelKeys"
        ours = {one["metadata"].get("labels", {}).get(key) for one in nodes if is_managed(one)}
        eligible = {
            one["metadata"]["name"]: one["metadata"]["labels"][key]
            for one in nodes
            if one["metadata"].get("labels", {}).get(key) in ours - {None} and not wrong_labels(pod, one)
        }
        count = Counter(dict.fromkeys(eligible.values(), 0))
        for other, where in others:
            same = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            if same and selects(rule.get("labelSelector"), other["metadata"].get("labels", {})):
                domain = eligible.get(where["metadata"]["name"])
                if domain is not None and "deletionTimestamp" not in other["metadata"]:
                    count[domain] += 1
        mine = node["metadata"].get("labels", {}).get(key)
        least = 0 if len(count) < rule.get("minDomains", 1) else min(count.values(), default=0)
        if mine is None or count[mine] + selects(rule.get("labelSelector"), labels) - least > rule["maxSkew"]:
            return f"spread over {key}: {dict(count)}, and one more in {mine}"
    return ""
