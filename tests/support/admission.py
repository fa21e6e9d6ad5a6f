"""The admission policies of the manifests, asked without an API server: their expressions, evaluated by another CEL.

Kubernetes adds functions to CEL; those that our policies use are here. What an API server says itself, and what its
type checker and its limits of cost say, tests/cluster asks.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import yaml
from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from support.repository import REPOSITORY

FILE = REPOSITORY / "src" / "slacktide" / "kube" / "manifests" / "30-admission.yaml"
GIVEN = ("object", "oldObject", "request", "params", "namespaceObject", "variables")

Json = dict[str, Any]


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


@lru_cache(maxsize=1)
def _environment() -> Any:
    kinds = cel.Type
    find = cel.Overload("string_find", kinds.STRING, [kinds.STRING, kinds.STRING], True, _find)
    total = cel.Overload("list_sum", kinds.DYN, [kinds.List(kinds.DYN)], True, sum)
    functions = [cel.FunctionDecl("find", [find]), cel.FunctionDecl("sum", [total])]
    extensions = [ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    return cel.NewEnv(variables=dict.fromkeys(GIVEN, kinds.DYN), extensions=extensions, functions=functions)


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


def _evaluated(expression: str, given: Json) -> Any:
    return _plain(_compiled(expression).eval(data=given))


def _plain(one: Any) -> Any:
    if isinstance(one, cel.Value):
        if "ERROR" in str(one.type()):
            raise ValueError(str(one.value()))
        one = one.value()
    if isinstance(one, list):
        return [_plain(each) for each in one]
    if isinstance(one, dict):
        return {_plain(key): _plain(value) for key, value in one.items()}
    return one


@lru_cache(maxsize=8)
def policy(name: str) -> Json:
    """The spec of a policy, by its name behind ``slacktide-``."""
    for found in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
        if found["kind"] == "ValidatingAdmissionPolicy" and found["metadata"]["name"] == f"slacktide-{name}":
            return dict(found["spec"])
    raise LookupError(name)


def refusals(name: str, made: Json, params: Json | None = None) -> list[str]:
    """The messages with which a policy refuses that a pod is created; where it has them one of these is ``params``."""
    given: Json = {
        "object": made,
        "oldObject": None,
        "request": {"kind": {"kind": "Pod"}, "operation": "CREATE", "namespace": "shop"},
        "params": params or {},
        "namespaceObject": {"metadata": {"labels": {}}},
        "variables": {},
    }
    spec = policy(name)
    for one in spec["variables"]:
        given["variables"][one["name"]] = _evaluated(one["expression"], given)
    refused = [one for one in spec["validations"] if not _evaluated(one["expression"], given)]
    return [_evaluated(one["messageExpression"], given) for one in refused]
