"""Classes bound to workloads by label: an admission policy that gives pods of a selector the label of a class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.conversion import Node
from slacktide.kube.resources.custom_resources import EVERYBODY
from slacktide.kube.translate.service_classes import CLASS_LABEL
from slacktide.openslo.workloads import Workload

_NAME = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?"
_EQUAL = re.compile(rf"({_NAME})\s*==?\s*({_VALUE})")
_UNEQUAL = re.compile(rf"({_NAME})\s*!=\s*({_VALUE})")
_SET = re.compile(rf"({_NAME})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_THERE = re.compile(rf"(!?)\s*({_NAME})")
_TERM = re.compile(r"\s*((?:[^,()]|\([^()]*\))+?)\s*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Binding:
    """Pods of ``selector`` (as kubectl writes it), or those of ``workload``, in ``namespaces`` (none: all) are of a
    class."""

    service_class: str
    selector: str
    namespaces: tuple[str, ...] = ()
    workload: Workload | None = None

    def objects(self) -> list[dict[str, Any]]:
        """The policy and its binding, for Kubernetes 1.36 and later."""
        name = f"class-{self.service_class}.slacktide.io"
        matches: dict[str, Any] = {"objectSelector": parse(self.selector)} if self.selector else {}
        if self.namespaces:
            one = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(self.namespaces)}
            matches["namespaceSelector"] = {"matchExpressions": [one]}
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        label = f"'{CLASS_LABEL}'"
        named = f"{label} in object.metadata.labels"
        nameless = f"has(object.metadata.labels) && !({named})"  # a selector needs a label
        path = f'"/metadata/labels/" + jsonpatch.escapeKey("{CLASS_LABEL}")'
        patch = f'[JSONPatch{{op: "add", path: {path}, value: "{self.service_class}"}}]'
        if self.workload is not None:
            nameless = f"!has(object.metadata.labels) || !({named})"
            first = f'{{"{CLASS_LABEL}": "{self.service_class}"}}'
            alone = f'[JSONPatch{{op: "add", path: "/metadata/labels", value: {first}}}]'
            patch = f"has(object.metadata.labels) ? {patch} : {alone}"
        version = "admissionregistration.k8s.io/v1"
        return [
            {
                "apiVersion": version,
                "kind": "MutatingAdmissionPolicy",
                "metadata": {"name": name},
                "spec": {
                    "failurePolicy": "Fail",
                    "reinvocationPolicy": "Never",
                    "matchConstraints": {**matches, "resourceRules": [pods]},
                    "matchConditions": [
                        {"name": "names-no-class", "expression": nameless},
                        *(self.workload.conditions() or [] if self.workload else []),
                    ],
                    "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
                },
            },
            {
                "apiVersion": version,
                "kind": "MutatingAdmissionPolicyBinding",
                "metadata": {"name": name},
                "spec": {"policyName": name},
            },
        ]


def binding_of(name: str, spec: Mapping[str, Any], where: Node | None, selector: str) -> Binding | None:
    """The binding that a selector asks for; none where there is no selector.

    Raises :class:`~slacktide.errors.ConfigError` for one that cannot be read, or that needs no label.
    """
    if where is None:
        return None
    try:
        found = parse(selector)
    except ValueError as error:
        where.fail(str(error))
    needs = [one for one in found.get("matchExpressions", []) if one["operator"] in ("In", "Exists")]
    if not found.get("matchLabels") and not needs:
        where.fail("a selector that asks for a label, such as app=web; others would select pods of everybody")
    named = tuple(spec.get("namespaces", ()))
    return Binding(name, selector, () if EVERYBODY in named else named)


def parse(text: str) -> dict[str, Any]:
    """A LabelSelector from ``app=web,tier in (front, back),!canary``. Raises ``ValueError`` that says what is right."""
    labels: dict[str, str] = {}
    expressions: list[dict[str, Any]] = []
    at = 0
    while at < len(text):
        term = _TERM.match(text, at)
        if term is None:
            raise ValueError("a selector such as app=web,tier in (front, back),!canary")
        at = term.end()
        _read(term[1], labels, expressions)
    found: dict[str, Any] = {"matchLabels": labels} if labels else {}
    return found | ({"matchExpressions": expressions} if expressions else {})


def _read(term: str, labels: dict[str, str], expressions: list[dict[str, Any]]) -> None:
    if equal := _EQUAL.fullmatch(term):
        if labels.setdefault(equal[1], equal[2]) != equal[2]:
            raise ValueError(f"one value of {equal[1]}")
    elif unequal := _UNEQUAL.fullmatch(term):
        expressions.append({"key": unequal[1], "operator": "NotIn", "values": [unequal[2]]})
    elif among := _SET.fullmatch(term):
        operator = {"in": "In", "notin": "NotIn"}[among[2]]
        values = [one.strip() for one in among[3].split(",")]
        expressions.append({"key": among[1], "operator": operator, "values": values})
    elif there := _THERE.fullmatch(term):
        expressions.append({"key": there[2], "operator": "DoesNotExist" if there[1] else "Exists"})
    else:
        raise ValueError(f"a selector such as app=web,tier in (front, back),!canary; not {term!r}")
