"""Documents of OpenSLO v1alpha, the version that Sloth reads: SLOs and services, with ratios inside objectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from slacktide.conversion import Node, Strict
from slacktide.errors import ConfigError
from slacktide.openslo import windows
from slacktide.openslo.kinds import Anything, Calendar, Metadata, Number, ServiceSpec, Text, Words, Yes
from slacktide.openslo.openslo_documents import target_of
from slacktide.openslo.slos import Budgeting, Indicator, Query, Read, Slo, annotations_of, key_at

VERSION = "openslo/v1alpha"
UNITS = {"second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w", "month": "M", "quarter": "Q", "year": "Y"}
RATIOS = ("ratioMetrics", "ratioMetric")
"""The specification's table says the one, its examples and all programs the other."""


class MetricSource(Strict, rename="camel"):
    """A query of a source."""

    query: Words
    source: Text | UnsetType = UNSET
    query_type: Text | UnsetType = UNSET
    metadata: Anything = None


Metric = Annotated[MetricSource, Meta(description="a mapping with source, queryType and query")]


class RatioMetrics(Strict, rename="camel"):
    """Good or bad of a total."""

    total: Metric
    good: Metric | UnsetType = UNSET
    bad: Metric | UnsetType = UNSET
    incremental: Yes | UnsetType = UNSET
    counter: Yes | UnsetType = UNSET


Ratio = Annotated[RatioMetrics, Meta(description="a mapping with good or bad, and total")]


class Threshold(Strict, rename="camel"):
    """Values that are compared with an objective's."""

    threshold_metric: Metric


class TimeWindow(Strict, rename="camel"):
    """A number of units."""

    unit: Words
    count: Annotated[int, Meta(ge=1, description="a whole number from 1")]
    is_rolling: Yes | UnsetType = UNSET
    calendar: Annotated[Calendar, Meta(description="a mapping with startTime and timeZone")] | UnsetType | None = UNSET


class Objective(Strict, rename="camel"):
    """A target, and what it is of."""

    display_name: Text | UnsetType = UNSET
    op: Literal["lte", "gte", "lt", "gt"] | UnsetType = UNSET
    value: Number | UnsetType = UNSET
    target: Number | UnsetType = UNSET
    time_slice_target: Number | UnsetType = UNSET
    ratio_metrics: Ratio | UnsetType = UNSET
    ratio_metric: Ratio | UnsetType = UNSET


class SloSpec(Strict, rename="camel"):
    """What is promised of a service."""

    service: Words
    budgeting_method: Literal["Occurrences", "Timeslices"]
    objectives: Annotated[
        list[Annotated[Objective, Meta(description="a mapping with target")]],
        Meta(min_length=1, description="a list of objectives"),
    ]
    description: Text | UnsetType = UNSET
    indicator: Annotated[Threshold, Meta(description="a mapping with thresholdMetric")] | UnsetType | None = UNSET
    time_windows: (
        Annotated[
            list[Annotated[TimeWindow, Meta(description="a mapping with unit and count")]],
            Meta(max_length=1, description="a list of one window"),
        ]
        | UnsetType
    ) = UNSET
    alert_policies: Annotated[list[Anything], Meta(description="a list of alert policies")] | UnsetType | None = UNSET


class Document(Strict, rename="camel"):
    """What all documents have."""

    api_version: Literal["openslo/v1alpha"]
    kind: Literal["Service", "SLO", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"]
    metadata: Annotated[Metadata, Meta(description="a mapping with name")]
    spec: Anything = None


SPECS: dict[str, type] = {"SLO": SloSpec, "Service": ServiceSpec}
"""Alerts were proposals in this version: they are not looked into."""


def read(node: Node) -> Read:
    """One document. Raises :class:`ConfigError` with file, line, field, value and what would be right."""
    plain = node.convert(Document)
    spec: Any = ServiceSpec()
    if plain.kind in SPECS and node.value.get("spec") is not None:
        spec = node.child("spec").convert(SPECS[plain.kind])
    elif plain.kind == "SLO":
        raise ConfigError(f"{key_at(node, 'kind')}: spec is missing, expected the spec of a document of kind SLO")
    name = str(plain.metadata.name)
    annotations = annotations_of(node.child("metadata"))
    return Read(node, plain.kind, name, annotations, spec, slos, (VERSION, plain.kind, name))


def slos(document: Read, documents: Sequence[Read]) -> list[Slo]:
    """Its SLO, if it is one. Raises :class:`ConfigError` for one that is about several things."""
    if document.kind != "SLO":
        return []
    node, metadata = document.node.child("spec"), document.node.child("metadata")
    objectives = node.child("objectives")
    if len(objectives.value) > 1:
        objectives.child(1).fail("one objective: a class promises one availability; make an SLO of each")
    objective, method = objectives.child(0), node.child("budgetingMethod")
    service = next((one for one in documents if one.key == (VERSION, "Service", node.value["service"])), None)
    window_at = node.child("timeWindows").child(0) if node.value.get("timeWindows") else None
    return [
        Slo(
            label=document.label,
            name=document.name,
            name_at=metadata.child("name"),
            metadata=metadata,
            annotations=document.annotations,
            objective=objective,
            target=target_of(objective),
            window=_window(window_at) if window_at is not None else None,
            window_at=window_at,
            indicator=_indicator(node, objective),
            budgeting=Budgeting(method, method.value == "Timeslices"),
            service=None if service is None else (service.annotations, service.node.child("metadata")),
        )
    ]


def _indicator(spec: Node, objective: Node) -> Indicator:
    ratios = [one for one in RATIOS if one in objective.value]
    threshold = spec.child("indicator").child("thresholdMetric") if spec.value.get("indicator") else None
    if len(ratios) + (threshold is not None) != 1:
        found = ", ".join(ratios + ["indicator.thresholdMetric"] * (threshold is not None)) or "neither"
        raise ConfigError(
            f"{objective.where}: found {found}, expected either ratioMetrics here or indicator.thresholdMetric"
        )
    if threshold is not None:
        return Indicator(threshold, (), threshold=True)
    ratio = objective.child(ratios[0])
    if ("good" in ratio.value) == ("bad" in ratio.value):
        raise ConfigError(f"{ratio.where}: good: expected either good or bad, and total")
    return Indicator(ratio, tuple(_queries(ratio)))


def _queries(ratio: Node) -> Iterator[Query]:
    for role in (one for one in ("good", "bad", "total") if one in ratio.value):
        query = ratio.child(role).child("query")
        yield Query(role, query.value, query)


def _window(node: Node) -> dict[str, Any]:
    """The window of a class: as of v1, which writes unit and count in one."""
    unit, count = node.child("unit"), int(node.value["count"])
    short = UNITS.get(str(unit.value).lower())
    if short is None:
        unit.fail(f"one of {', '.join(one.capitalize() for one in UNITS)}")
    if short == "s":
        if count % 60:
            node.child("count").fail("whole minutes")
        short, count = "m", count // 60
    said = {key: one for key, one in node.value.items() if key not in ("unit", "count") and one is not None}
    try:
        return windows.of_openslo(replace(node, value={"duration": f"{count}{short}", **said}))
    except ConfigError as error:
        if ".duration" not in str(error):
            raise
        unit.fail(f"of {count} such units {str(error).partition('expected ')[2]}")
