"""Documents of OpenSLO v1alpha, the version that Sloth reads: SLOs and services, with ratios inside objectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from slacktide.conversion import Node, Strict
from slacktide.errors import ConfigError
from slacktide.openslo import windows
from slacktide.openslo.kinds import Anything, Calendar, Metadata, Promise, ServiceSpec, Target, Text, Words, Yes
from slacktide.openslo.openslo_documents import Form
from slacktide.openslo.slos import Indicator, Read

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


class Objective(Target, rename="camel"):
    """A target, and what it is of."""

    ratio_metrics: Ratio | UnsetType = UNSET
    ratio_metric: Ratio | UnsetType = UNSET


class SloSpec(Promise, kw_only=True, rename="camel"):
    """What is promised of a service."""

    service: Words
    budgeting_method: Literal["Occurrences", "Timeslices"]
    objectives: Annotated[
        list[Annotated[Objective, Meta(description="a mapping with target")]],
        Meta(min_length=1, description="a list of objectives"),
    ]
    indicator: Annotated[Threshold, Meta(description="a mapping with thresholdMetric")] | UnsetType | None = UNSET
    time_windows: (
        Annotated[
            list[Annotated[TimeWindow, Meta(description="a mapping with unit and count")]],
            Meta(max_length=1, description="a list of one window"),
        ]
        | UnsetType
    ) = UNSET


class Document(Strict, rename="camel"):
    """What all documents have."""

    api_version: Literal["openslo/v1alpha"]
    kind: Literal["Service", "SLO", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"]
    metadata: Annotated[Metadata, Meta(description="a mapping with name")]
    spec: Anything = None


SPECS: dict[str, type] = {"SLO": SloSpec, "Service": ServiceSpec}
"""Alerts were proposals in this version: they are not looked into."""


class _V1Alpha(Form):
    """Whose objectives have their ratios, and whose windows have unit and count."""

    def _indicator(self, node: Node, documents: Sequence[Read]) -> Indicator:  # noqa: ARG002
        objective = node.child("objectives").child(0)
        ratios = [one for one in RATIOS if one in objective.value]
        threshold = node.child("indicator").child("thresholdMetric") if node.value.get("indicator") else None
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
        return Indicator(ratio, tuple(self._queries(ratio)))

    def _window(self, node: Node) -> dict[str, Any]:
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


V1ALPHA = _V1Alpha(VERSION, Document, SPECS, "indicator", "indicatorRef", ("service",), ("query",), {}, "timeWindows")
