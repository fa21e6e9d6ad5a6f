"""SLOs of Pyrra (https://github.com/pyrra-dev/pyrra): ServiceLevelObjective objects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from slacktide.conversion import Node, Strict
from slacktide.errors import ConfigError
from slacktide.model.durations import SECONDS_OF, write_duration
from slacktide.openslo.kinds import Anything, Text, Words
from slacktide.openslo.replicas import KNOWN
from slacktide.openslo.slos import Indicator, Query, Read, Slo, annotations_of, percent
from slacktide.openslo.sloth import class_name, object_of

API_VERSION, KIND = "pyrra.dev/v1alpha1", "ServiceLevelObjective"
INDICATORS = ("ratio", "bool_gauge", "latency", "latencyNative")
_DURATION = re.compile(r"(?:\d+(?:ms|[smhdwy]))+")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = SECONDS_OF | {"y": 365 * SECONDS_OF["d"], "ms": 0.001}
"""Prometheus' units."""


class Metric(Strict):
    """A selector."""

    metric: Words


class Ratio(Strict):
    """Errors of a total: counters."""

    errors: Annotated[Metric, Meta(description="a mapping with metric")]
    total: Annotated[Metric, Meta(description="a mapping with metric")]
    grouping: Anything = None


class BoolGauge(Strict):
    """A gauge that is 1 where something is up, and 0 where it is not."""

    metric: Words
    grouping: Anything = None


class IndicatorSpec(Strict, rename={"latency_native": "latencyNative"}):
    """One of the four."""

    ratio: Annotated[Ratio, Meta(description="a mapping with errors and total")] | UnsetType | None = UNSET
    bool_gauge: Annotated[BoolGauge, Meta(description="a mapping with metric")] | UnsetType | None = UNSET
    latency: Anything = None
    latency_native: Anything = None


class Spec(Strict, rename={"service_level": "serviceLevel", "performance": "performanceOverAccuracy",
                           "output": "ruleOutput"}):  # fmt: skip
    """A promise; its alerts and rules are Pyrra's own affair."""

    target: Words
    window: Words
    indicator: Annotated[IndicatorSpec, Meta(description="a mapping with ratio or bool_gauge")]
    description: Text | UnsetType = UNSET
    alerting: Anything = None
    partial_response_strategy: Anything = None
    performance: Anything = None
    output: Anything = None


def read(node: Node) -> Read:
    """An object of Kubernetes. Raises :class:`ConfigError` with file, line, field, value and what would be right."""
    metadata, name, namespace = object_of(node, KIND)
    spec = node.child("spec").convert(Spec)
    return Read(node, KIND, name, annotations_of(metadata), spec, slos, (API_VERSION, namespace, name))


def slos(document: Read, documents: Sequence[Read]) -> list[Slo]:  # noqa: ARG001  # it names no other one
    """Its SLO."""
    spec, metadata = document.node.child("spec"), document.node.child("metadata")
    indicator = _indicator(spec.child("indicator"))
    gauges = len(indicator.queries) > 1 and any(KNOWN.search(one.text) for one in indicator.queries)
    return [
        Slo(
            label=document.label,
            name=class_name(document.name),
            name_at=metadata.child("name"),
            metadata=metadata,
            annotations=document.annotations,
            objective=spec,
            target=percent(spec.child("target"), "Pyrra"),
            window=_window(spec.child("window")),
            window_at=spec.child("window"),
            indicator=indicator,
            note="Pyrra takes the increase of both metrics, which of gauges is no share; a class counts time"
            if gauges
            else "",
        )
    ]


def _indicator(node: Node) -> Indicator:
    found: dict[str, Any] = {key: one for key, one in node.value.items() if one is not None}
    if len(found) != 1:
        raise ConfigError(f"{node.where}: found {', '.join(found) or 'none'}, expected one of {', '.join(INDICATORS)}")
    (which,) = found
    one = node.child(which)
    if which.startswith("latency"):
        one.fail("ratio or bool_gauge of what is up: a scheduler cannot promise an upper bound, such as a latency")
    if which == "bool_gauge":
        return Indicator(one, (Query("gauge", one.value["metric"], one.child("metric")),))
    parts = [(role, one.child(key).child("metric")) for role, key in (("bad", "errors"), ("total", "total"))]
    return Indicator(one, tuple(Query(role, part.value, part) for role, part in parts))


def _window(node: Node) -> dict[str, Any]:
    if not _DURATION.fullmatch(node.value):
        node.fail("a duration of Prometheus, such as 4w or 30d")
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(node.value))
    plain = re.fullmatch(r"\d+[mhdw]", node.value)
    return {"rolling": node.value if plain else write_duration(seconds)}
