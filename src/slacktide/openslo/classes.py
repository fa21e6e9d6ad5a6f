"""ServiceClass objects as plain mappings: read from files, made from settings, and checked by the core's own rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from slacktide import settings, settings_file
from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.kube.resources.objects import API_VERSION, SERVICE_CLASS, Malformed
from slacktide.kube.translate.service_classes import promise_of
from slacktide.model import Window
from slacktide.model.durations import write_duration
from slacktide.model.window import WHOLE
from slacktide.openslo.windows import made
from slacktide.submit.manifests import class_object

KIND = "ServiceClass"
GROUP = "slacktide.io/"

Json = dict[str, Any]


def class_document(name: str, spec: Mapping[str, Any]) -> Json:
    """A ServiceClass object."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": dict(spec)}


def check(name: str, spec: Mapping[str, Any]) -> None:
    """Raises :class:`ConfigError` that names the field for a class that the scheduler would not take."""
    window = spec.get("window")
    try:
        if window is not None:
            if not isinstance(window, dict):
                raise ConfigError(f"window: found {window!r}, expected rolling or calendar in it")
            made(window)
    except ConfigError as error:
        raise ConfigError(f"service class {name!r}: {error}") from error
    found = SERVICE_CLASS.decode(msgspec.json.encode(class_document(name, spec)))
    if isinstance(found, Malformed):
        raise ConfigError(f"service class {name!r}: {found.problem}")
    promise_of(found)


def read_classes(paths: Iterable[Path]) -> list[Json]:
    """The ServiceClasses of manifests, or of settings files (those with ``classes:``), in their order.

    Other objects of a manifest are passed over. Raises :class:`ConfigError` with file and line.
    """
    found: list[Json] = []
    for path in paths:
        documents = settings_file.read_documents(path, "manifest") if path.suffix.lower() in (".yaml", ".yml") else []
        if any("apiVersion" in one.values for one in documents):
            objects = (node for one in documents for node in _objects(Node(one, (), one.values, index="[{}]")))
            found += [_of_manifest(node) for node in objects if node.value.get("kind") == KIND]
        else:
            found += [_of_settings(one) for one in settings.load(path).classes]
    return found


def _objects(node: Node) -> Iterator[Node]:
    """A document, or the items of one that is a list, as ``kubectl get -o yaml`` writes it."""
    items = node.value.get("items")
    if node.value.get("kind") == "List" and isinstance(items, list):
        listed = node.child("items")
        yield from (listed.child(index) for index, one in enumerate(items) if isinstance(one, dict))
    else:
        yield node


def _of_manifest(node: Node) -> Json:
    version, at = str(node.value.get("apiVersion")), node.file.at((*node.place, "spec"))
    if not version.startswith(GROUP):
        node.child("apiVersion").fail(API_VERSION)
    metadata, spec = node.value.get("metadata"), node.value.get("spec")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not name or not isinstance(spec, dict):
        raise ConfigError(f"{at}: expected a {KIND} with metadata.name and spec")
    try:
        check(name, spec)
    except ConfigError as error:
        raise ConfigError(f"{at}: {error}") from error
    return class_document(str(name), spec)


def _of_settings(promise: Any) -> Json:
    found = class_object(promise)
    if promise.window is not None and "window" not in found["spec"]:
        found["spec"]["window"] = _window(promise.window)
    return class_document(promise.name, found["spec"])


def _window(window: Window) -> Json:
    if window.rolling is not None:
        found: Json = {"rolling": write_duration(window.rolling)}
    else:
        found = {"calendar": window.calendar}
        if window.time_zone != "UTC":
            found["timeZone"] = window.time_zone
        if window.start is not None:
            found["start"] = window.start
    return found if window.budget == WHOLE else found | {"budget": window.budget}
