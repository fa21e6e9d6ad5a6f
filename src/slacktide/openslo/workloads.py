"""Workloads as the labels of kube-state-metrics name them, and which pods are theirs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

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
