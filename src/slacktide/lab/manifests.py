"""Applies slacktide's own manifests to a lab."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from slacktide.kube.client.http import APPLY_PATCH, ApiError
from slacktide.lab.api import Api
from slacktide.lab.errors import LabError

MANIFESTS = Path(__file__).parent.parent / "kube" / "manifests"
CLASSES = Path(__file__).with_name("classes.yaml")
"""Gold, silver and bronze, as in ``examples/kubernetes``."""
LEFT_OUT = frozenset({"Deployment", "PodDisruptionBudget"})
"""In a lab the scheduler runs as a process: no kubelet here could start a container."""

ESTABLISHED_SECONDS = 30


def own_manifests() -> list[Path]:
    """The manifests that come with slacktide, in the order in which they are applied."""
    return sorted(MANIFESTS.glob("*.yaml"))


def apply_files(api: Api, files: Iterable[Path], left_out: frozenset[str] = LEFT_OUT) -> list[str]:
    """Applies every object in the files, server-side; returns their names as ``Kind name``.

    Kinds in ``left_out`` are skipped. After a CustomResourceDefinition it waits until that is served.

    Raises:
        LabError: naming file and object, if one is refused.
    """
    applied: list[str] = []
    for file in files:
        try:
            objects = [one for one in yaml.safe_load_all(file.read_text()) if one]
        except (OSError, yaml.YAMLError) as error:
            raise LabError(f"{file}: cannot be read: {error}") from error
        for one in objects:
            label = f"{one.get('kind')} {one.get('metadata', {}).get('name')}"
            if one.get("kind") in left_out:
                continue
            try:
                apply(api, one)
            except (ApiError, LabError) as error:
                raise LabError(f"{file}: {label}: {error}") from error
            applied.append(label)
    return applied


def apply(api: Api, one: dict[str, Any]) -> Any:
    """Applies one object, server-side, as field manager ``slacktide-lab``; returns what the server made of it."""
    path = f"{_collection(api, one)}/{quote(one['metadata']['name'])}"
    answer = api.patch(f"{path}?fieldManager=slacktide-lab&force=true", one, APPLY_PATCH)
    if one["kind"] == "CustomResourceDefinition":
        _wait_until_established(api, path)
    return answer


def _collection(api: Api, one: dict[str, Any]) -> str:
    version, kind = one["apiVersion"], one["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    for resource in api.get(base)["resources"]:
        if resource["kind"] == kind and "/" not in resource["name"]:
            if not resource["namespaced"]:
                return f"{base}/{resource['name']}"
            namespace = quote(one["metadata"].get("namespace", "default"))
            return f"{base}/namespaces/{namespace}/{resource['name']}"
    raise LabError(f"kind: found {kind!r}, expected one that {version} serves")


def _wait_until_established(api: Api, path: str) -> None:
    end = time.monotonic() + ESTABLISHED_SECONDS
    while True:
        definition = api.get(path)
        if _established(definition) and _served(api, definition):
            return
        if time.monotonic() > end:
            raise LabError(f"not established after {ESTABLISHED_SECONDS} s: {definition.get('status')}")
        time.sleep(0.05)


def _established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _served(api: Api, definition: dict[str, Any]) -> bool:
    # Discovery lags behind the condition for a moment.
    spec = definition["spec"]
    try:
        for version in spec["versions"]:
            served = api.get(f"/apis/{spec['group']}/{version['name']}")["resources"]
            if version["served"] and all(one["kind"] != spec["names"]["kind"] for one in served):
                return False
    except ApiError:
        return False
    return True
