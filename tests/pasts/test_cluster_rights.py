"""What ``slacktide past cluster`` may list: the page gives a ClusterRole, and what is missing is said once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from slacktide.errors import InputError
from slacktide.kube.client.http import ApiError
from slacktide.kube.client.kinds import Kind
from slacktide.kube.resources import objects
from slacktide.pasts import cluster
from slacktide.pasts.kinds import TOLD
from slacktide.pasts.story import Story
from support.blocks import blocks
from support.repository import REPOSITORY


def test_the_cluster_role_of_the_page_is_what_is_listed() -> None:
    texts = [one.text for one in blocks(REPOSITORY / "docs/how-to-past.md") if one.language == "yaml"]
    (role,) = (found for one in texts if (found := yaml.safe_load(one)).get("kind") == "ClusterRole")
    given = [(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]]
    assert sorted(given) == sorted((one.api_version.rpartition("/")[0], one.plural) for one in TOLD)
    assert all(rule["verbs"] == ["list"] for rule in role["rules"])


def story(monkeypatch: pytest.MonkeyPatch, refused: dict[Kind[Any], int]) -> Story:
    """Of an empty cluster that refuses to list some kinds."""
    by_path = {kind.path(): code for kind, code in refused.items()}

    async def pages(_: object, path: str) -> AsyncIterator[Any]:
        if path in by_path:
            raise ApiError(by_path[path], "", "refused")
        yield SimpleNamespace(begins=True, items=[])

    monkeypatch.setattr(cluster, "pages", pages)
    connection: Any = SimpleNamespace(server="https://cluster")
    return asyncio.run(cluster.story(connection))


def test_kinds_that_may_not_be_listed_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """ServiceClasses are not there at all, which says nothing."""
    found = story(monkeypatch, {objects.CSI_NODE: 403, objects.STORAGE_CLASS: 403, objects.SERVICE_CLASS: 404})
    (note,) = found.findings.notes
    assert "may not be listed: storageclasses, csinodes. The ClusterRole in docs/how-to-past.md" in note


def test_nothing_goes_without_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"nodes: found '403', expected the right to list nodes. The ClusterRole in"):
        story(monkeypatch, {objects.NODE: 403})
