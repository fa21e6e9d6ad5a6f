"""The smallest object of any kind: what a type requires, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.metadata import Instant


def least(kind: Kind[Any], name: str, version: str) -> dict[str, Any]:
    """An object of a kind, as JSON has it."""
    body: dict[str, Any] = _least(inspect.type_info(kind.type))
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
    metadata |= {"namespace": "default"} if kind.namespaced else {}
    return body | {"metadata": body.get("metadata", {}) | metadata}


def _least(found: Any) -> Any:
    if isinstance(found, inspect.Metadata):
        return _least(found.type)
    if isinstance(found, inspect.StructType):
        return {one.encode_name: _least(one.type) for one in found.fields if one.required}
    if isinstance(found, inspect.UnionType):
        return _least(found.types[0])
    if isinstance(found, inspect.StrType):
        return "x"
    if isinstance(found, inspect.IntType | inspect.FloatType):
        return 1
    if isinstance(found, inspect.BoolType):
        return False
    if isinstance(found, inspect.DictType):
        return {}
    if isinstance(found, inspect.ListType | inspect.VarTupleType):
        return []
    if isinstance(found, inspect.CustomType) and found.cls is Instant:
        return "2026-01-01T00:00:00Z"
    raise msgspec.ValidationError(f"{found}: not known here")
