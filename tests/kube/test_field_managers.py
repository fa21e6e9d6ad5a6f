"""Who wrote a field, of an object as the API server sends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slacktide.kube.act.nomination_writer import managers_of

FIELD = "status", "nominatedNodeName"


def entry(manager: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


ALL = [
    entry("kubectl-run", {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}}),
    entry(
        "slacktide",
        {"f:status": {"f:conditions": {'k:{"type":"PodScheduled"}': {".": {}}}, "f:nominatedNodeName": {}}},
        subresource="status",
    ),
    entry("kubelet", {"f:status": {"f:phase": {}}}, subresource="status"),
    entry("odd", {"f:status": "all"}),
]


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        (ALL, {"slacktide"}),
        (ALL[2:], set()),
        ([], set()),
        ([*ALL, entry("other", ALL[1]["fieldsV1"])], {"slacktide", "other"}),
    ],
)
def test_each_manager_that_has_the_field_is_named(entries: list[dict[str, Any]], found: set[str]) -> None:
    assert managers_of(json.dumps({"metadata": {"name": "p", "managedFields": entries}}).encode(), *FIELD) == found


def test_an_object_without_notes_was_written_by_nobody() -> None:
    assert managers_of(b'{"metadata":{"name":"p"}}', *FIELD) == set()
