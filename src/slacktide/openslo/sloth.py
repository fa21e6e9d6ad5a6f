"""SLOs of Sloth (https://sloth.dev): PrometheusServiceLevel objects, and files of ``version: prometheus/v1``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType

from slacktide.conversion import Node, Strict
from slacktide.errors import ConfigError
from slacktide.openslo.kinds import Anything, Number, Text, Words
from slacktide.openslo.slos import Indicator, Query, Read, Slo, annotations_of, percent

API_VERSION, KIND = "sloth.slok.dev/v1", "PrometheusServiceLevel"
WINDOWS = "AlertWindows"
"""Files beside those of SLOs: which alerts Sloth makes for a period."""
PARTS = ("spec", "metadata")
"""Of an object; a file is both by itself."""
FILE_VERSION = "prometheus/v1"
PERIOD = "30d"
"""What Sloth takes where nothing else is said, on its command line."""
E = TypeVar("E")
R = TypeVar("R")
S = TypeVar("S")
_NO_LETTER = re.compile(r"[^a-z0-9]+")


class Events(Strict, rename="camel"):
    """Errors of a total."""

    error_query: Words
    total_query: Words


class FileEvents(Strict):
    """The same, as a file has it."""

    error_query: Words
    total_query: Words


class Raw(Strict, rename="camel"):
    """A share as it is."""

    error_ratio_query: Words


class FileRaw(Strict):
    """The same, as a file has it."""

    error_ratio_query: Words


class Plugin(Strict):
    """A program that makes the queries."""

    id: Words
    options: Anything = None


class Sli(Strict, Generic[E, R]):
    """One of the three."""

    events: E | UnsetType | None = UNSET
    raw: R | UnsetType | None = UNSET
    plugin: Annotated[Plugin, Meta(description="a mapping with id")] | UnsetType | None = UNSET


OfObject = Sli[
    Annotated[Events, Meta(description="a mapping with errorQuery and totalQuery")],
    Annotated[Raw, Meta(description="a mapping with errorRatioQuery")],
]
OfFile = Sli[
    Annotated[FileEvents, Meta(description="a mapping with error_query and total_query")],
    Annotated[FileRaw, Meta(description="a mapping with error_ratio_query")],
]


class Item(Strict, Generic[S]):
    """An SLO; its alerts are Sloth's own affair."""

    name: Words
    objective: Number
    sli: Annotated[S, Meta(description="a mapping with events, raw or plugin")]
    description: Text | UnsetType = UNSET
    labels: Anything = None
    plugins: Anything = None
    alerting: Anything = None


ITEM = Meta(description="a mapping with name, objective and sli")


class Spec(Strict, rename="camel"):
    """SLOs of a service."""

    service: Words
    slos: Annotated[list[Annotated[Item[OfObject], ITEM]], Meta(min_length=1, description="a list of SLOs")]
    labels: Anything = None
    slo_plugins: Anything = None


class File(Strict):
    """The same, as a file has it."""

    version: Literal["prometheus/v1"]
    service: Words
    slos: Annotated[list[Annotated[Item[OfFile], ITEM]], Meta(min_length=1, description="a list of SLOs")]
    labels: Anything = None
    slo_plugins: Anything = None


def read_object(node: Node) -> Read:
    """An object of Kubernetes. Raises :class:`ConfigError` with file, line, field, value and what would be right."""
    if node.value.get("kind") == WINDOWS:
        return Read(node, WINDOWS, "of Sloth", {}, None, _none)
    metadata, name, namespace = object_of(node, KIND)
    spec = node.child("spec").convert(Spec)
    annotations = annotations_of(metadata)
    return Read(node, KIND, name, annotations, spec, _slos, (API_VERSION, namespace, name))


def read_file(node: Node) -> Read:
    """A file of ``version: prometheus/v1``, whose SLOs have no annotations."""
    spec = node.convert(File)
    return Read(node, "Sloth file of", str(spec.service), {}, spec, _slos)


def object_of(node: Node, kind: str) -> tuple[Node, str, str]:
    """Metadata, name and namespace of an object of Kubernetes of a ``kind``, which has a spec as well."""
    if node.value.get("kind") != kind:
        (node.child("kind") if "kind" in node.value else node).fail(f"kind: {kind}")
    for key, what in (("metadata", "name"), ("spec", "service")):
        if not isinstance(node.value.get(key), dict):
            raise ConfigError(
                f"{node.file.at(node.place)}: {key} is missing, expected a mapping with {what} and others"
            )
    metadata = node.child("metadata")
    name = metadata.value.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{metadata.where}: name is missing, expected that of the {kind}")
    return metadata, name, str(metadata.value.get("namespace", ""))


def _none(document: Read, documents: Sequence[Read]) -> list[Slo]:  # noqa: ARG001
    return []


def _slos(document: Read, documents: Sequence[Read]) -> list[Slo]:  # noqa: ARG001  # it names no other one
    spec, metadata = (document.node.child(key) if key in document.node.value else document.node for key in PARTS)
    items = spec.child("slos")
    ours = [key for key in document.annotations if key.startswith("slacktide.io/") and key != "slacktide.io/rank"]
    if len(items.value) > 1 and ours:
        metadata.child("annotations").child(ours[0]).fail(
            f"one SLO where an annotation says what it is about; this object has {len(items.value)}: make one of each"
        )
    return [_slo(document, spec, metadata, items.child(index)) for index in range(len(items.value))]


def _slo(document: Read, spec: Node, metadata: Node, item: Node) -> Slo:
    name = item.child("name")
    service = str(spec.value["service"])
    return Slo(
        label=f"{document.label}: {name.value}",
        name=class_name(f"{service}-{name.value}"),
        name_at=name,
        metadata=metadata,
        annotations=document.annotations,
        objective=item,
        target=percent(item.child("objective"), "Sloth"),
        window={"rolling": PERIOD},
        window_at=None,
        indicator=_indicator(item.child("sli")),
        note=f"window: {PERIOD}, Sloth's own period; --period where yours is another",
    )


def class_name(text: str) -> str:
    """A class's name from one that may have capitals, dots and underlines."""
    return _NO_LETTER.sub("-", text.lower()).strip("-")


def _indicator(sli: Node) -> Indicator:
    found: dict[str, Any] = {key: one for key, one in sli.value.items() if one is not None}
    if len(found) != 1:
        raise ConfigError(f"{sli.where}: found {', '.join(found) or 'none'}, expected one of events, raw and plugin")
    if "plugin" in found:
        sli.child("plugin").child("id").fail(
            "events or raw: a plugin makes queries that are not in the file; take those of sloth generate"
        )
    kind = sli.child(next(iter(found)))
    roles = {"errorQuery": "bad", "error_query": "bad", "totalQuery": "total", "total_query": "total"}
    queries = [Query(roles.get(key, "failure"), kind.value[key], kind.child(key)) for key in kind.value]
    return Indicator(kind, tuple(queries))
