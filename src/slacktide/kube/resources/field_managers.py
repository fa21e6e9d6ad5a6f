"""Who wrote a field of an object, as the API server has noted it down (``metadata.managedFields``).

It is asked for of few objects; so it is not decoded with the rest of each.
"""

from __future__ import annotations

from typing import Any

import msgspec

from slacktide.kube.client.metadata import Part


class _Entry(Part, frozen=True):
    manager: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class _Metadata(Part, frozen=True):
    managed_fields: tuple[_Entry, ...] = ()


class _Object(Part, frozen=True):
    metadata: _Metadata


_decode = msgspec.json.Decoder(_Object).decode


def managers_of(data: bytes, *path: str) -> set[str]:
    """Who wrote the field at ``path`` of an encoded object. Raises ``msgspec.DecodeError``."""
    return {one.manager for one in _decode(data).metadata.managed_fields if _has(one.fields, path)}


def _has(fields: dict[str, Any], path: tuple[str, ...]) -> bool:
    for name in path:
        found = fields.get(f"f:{name}")
        if not isinstance(found, dict):
            return False
        fields = found
    return True
