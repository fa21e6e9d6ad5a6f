"""Classes bound to workloads: an admission policy that gives their pods the label of a class."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slacktide.conversion import Node
from slacktide.kube.resources.custom_resources import EVERYBODY
from slacktide.kube.translate.service_classes import CLASS_LABEL
from slacktide.openslo.promql import Matcher

PLURAL = {"=": "", "!=": "not ", "=~": "~", "!~": "not ~"}
_PLAIN = re.compile(r"[-a-z0-9.]+(?:\|[-a-z0-9.]+)*")
"""A pattern that is names with | between them (a dot in one is meant as such: names have dots)."""
_PREFIX = re.compile(r"([-a-z0-9]+)\.[*+]")


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of ``kind`` (Deployment, StatefulSet, DaemonSet or Pod) in namespaces and of names that match; none: all."""

    kind: str
    namespaces: tuple[Matcher, ...]
    names: tuple[Matcher, ...]

    def __str__(self) -> str:
        where = ",".join(f"{PLURAL[one.operator]}{one.value}" for one in self.namespaces) or "*"
        which = ",".join(f"{PLURAL[one.operator]}{one.value}" for one in self.names) or "*"
        return f"{self.kind} {where}/{which}"

    @property
    def is_one(self) -> bool:
        """Whether the name is that of one object (or one in each of several namespaces)."""
        return any(one.operator == "=" for one in self.names)

    def in_namespaces(self) -> tuple[str, ...]:
        """The namespaces where they are given by name; none where a pattern, or nothing, gives them."""
        return next((names for one in self.namespaces if (names := _names(one))), ())

    def conditions(self) -> list[dict[str, str]] | None:
        """Which pods are meant, as match conditions of an admission policy (CEL); None where nobody can say.

        A Deployment's pods belong to a ReplicaSet that is called after it and the label pod-template-hash.
        """
        found = [_tests("request.namespace", self.namespaces)]
        if self.kind == "Pod":
            generated = [_prefix(one) for one in self.names]
            if any(one is None for one in generated):
                return None
            found += [_pod(self.names, [one for one in generated if one])]
        else:
            found += [_owned(self.kind, self.names)]
        texts = [one for one in found if one]
        return [{"name": f"workload-{number}", "expression": one} for number, one in enumerate(texts)]


def _names(one: Matcher) -> tuple[str, ...]:
    if one.operator == "=" or (one.operator == "=~" and _PLAIN.fullmatch(one.value)):
        return tuple(one.value.split("|"))
    return ()


def _tests(what: str, matchers: tuple[Matcher, ...], behind: str = "") -> str:
    """CEL: ``what`` is as the matchers say; ``behind`` is a pattern that follows."""
    parts = []
    for one in matchers:
        if one.operator in ("=", "!=") and not behind:
            parts.append(
                f"{what} {one.operator.replace('=', '==', 1) if one.operator == '=' else '!='} {_cel(one.value)}"
            )
            continue
        pattern = one.value if one.operator in ("=~", "!~") else re.escape(one.value)
        no = "!" if one.operator in ("!=", "!~") else ""
        parts.append(f"{no}{what}.matches({_cel(f'^(?:{pattern}){behind}$')})")
    return " && ".join(parts)


def _owned(kind: str, names: tuple[Matcher, ...]) -> str:
    metadata = "object.metadata"
    if kind != "Deployment":
        which = _tests("o.name", names)
        owner = f"o.kind == '{kind}'" + (f" && {which}" if which else "")
        return f"has({metadata}.ownerReferences) && {metadata}.ownerReferences.exists(o, {owner})"
    suffix = f"'-' + {metadata}.labels['pod-template-hash']"
    which = _tests("o.name", names, "-[a-z0-9]+")
    owner = f"o.kind == 'ReplicaSet' && o.name.endsWith({suffix})" + (f" && {which}" if which else "")
    return (
        f"has({metadata}.labels) && 'pod-template-hash' in {metadata}.labels && "
        f"has({metadata}.ownerReferences) && {metadata}.ownerReferences.exists(o, {owner})"
    )


def _pod(names: tuple[Matcher, ...], prefixes: list[str]) -> str:
    """Pods by name; those whose name the API server makes later, by what it begins with."""
    named = f"has(object.metadata.name) && {_tests('object.metadata.name', names)}" if names else ""
    if not prefixes:
        return named
    made = " && ".join(f"object.metadata.generateName.startsWith({_cel(one)})" for one in prefixes)
    return f"({named}) || (has(object.metadata.generateName) && {made})"


def _prefix(one: Matcher) -> str | None:
    """How generated names that match begin: empty where none can match, None where that cannot be told."""
    if one.operator == "=" or _names(one):
        return ""
    found = _PREFIX.fullmatch(one.value) if one.operator == "=~" else None
    return found[1] if found else None


def _cel(text: str) -> str:
    return json.dumps(text)


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
