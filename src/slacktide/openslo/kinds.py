"""What documents of OpenSLO v1 may hold: each kind's fields, as https://github.com/OpenSLO/OpenSLO describes them."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import UNSET, Meta, UnsetType

from slacktide.conversion import Strict

API_VERSION = "openslo/v1"
KINDS = ("Service", "SLO", "SLI", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget")

Words = Annotated[str, Meta(min_length=1, description="text")]
Text = Annotated[str, Meta(description="text")]
Number = Annotated[float, Meta(description="a number")]
Yes = Annotated[bool, Meta(description="true or false")]
Anything = Annotated[Any, Meta(description="any YAML")]
Q = TypeVar("Q")
Shorthand = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[mhdwMQY]$", description="a duration such as 5m, 12h, 30d or 1M")]


class V2Metadata(Strict, rename="camel"):
    """Of every document, as Kubernetes has it; values of labels may be lists."""

    name: Words
    labels: Anything = None
    annotations: Anything = None


class Metadata(V2Metadata, rename="camel"):
    """With a name for people."""

    display_name: Text | UnsetType = UNSET


class MetricSource(Strict, rename="camel"):
    """Where a metric comes from; ``spec`` is the source's own."""

    metric_source_ref: Text | UnsetType = UNSET
    type: Text | UnsetType = UNSET
    spec: Anything = None


class Metric(Strict, rename="camel"):
    """A query."""

    metric_source: Annotated[MetricSource, Meta(description="a mapping with type or metricSourceRef, and spec")]


Query = Annotated[Metric, Meta(description="a mapping with metricSource")]


class RatioMetric(Strict, Generic[Q], rename="camel"):
    """Good or bad of a total, or a ratio as it is."""

    counter: Yes | UnsetType = UNSET
    good: Q | UnsetType = UNSET
    bad: Q | UnsetType = UNSET
    total: Q | UnsetType = UNSET
    raw_type: Literal["success", "failure"] | UnsetType = UNSET
    raw: Q | UnsetType = UNSET


class SliSpec(Strict, Generic[Q], rename="camel"):
    """An indicator."""

    description: Text | UnsetType = UNSET
    threshold_metric: Q | UnsetType = UNSET
    ratio_metric: Annotated[RatioMetric[Q], Meta(description="a mapping with good or bad, and total")] | UnsetType = (
        UNSET
    )


class Indicator(Strict, rename="camel"):
    """An indicator inside an SLO."""

    spec: Annotated[SliSpec[Query], Meta(description="a mapping with thresholdMetric or ratioMetric")]
    metadata: Annotated[Metadata, Meta(description="a mapping with name")] | UnsetType = UNSET
    kind: Literal["SLI"] | UnsetType = UNSET
    api_version: Literal["openslo/v1"] | UnsetType = UNSET


Inline = Annotated[Indicator, Meta(description="a mapping with metadata and spec")]


class Calendar(Strict, rename="camel"):
    """Where windows of a calendar begin."""

    start_time: Words
    time_zone: Words


class TimeWindow(Strict, rename="camel"):
    """A rolling window, or one of a calendar."""

    duration: Shorthand
    is_rolling: Yes | UnsetType = UNSET
    calendar: Annotated[Calendar, Meta(description="a mapping with startTime and timeZone")] | UnsetType = UNSET


class Target(Strict, rename="camel"):
    """What objectives of all versions have."""

    display_name: Text | UnsetType = UNSET
    op: Literal["lte", "gte", "lt", "gt"] | UnsetType = UNSET
    value: Number | UnsetType = UNSET
    target: Number | UnsetType = UNSET
    time_slice_target: Number | UnsetType = UNSET


class PartialTarget(Target, rename="camel"):
    """What came with v1: per cent, windows of slices, and weights of composite SLOs."""

    target_percent: Number | UnsetType = UNSET
    time_slice_window: Anything = None
    composite_weight: Number | UnsetType = UNSET


class Objective(PartialTarget, rename="camel"):
    """A target."""

    indicator: Inline | UnsetType = UNSET
    indicator_ref: Words | UnsetType = UNSET


class Promise(Strict, kw_only=True, rename="camel"):
    """What all versions say of SLOs in the same way."""

    budgeting_method: Literal["Occurrences", "Timeslices", "RatioTimeslices"]
    description: Text | UnsetType = UNSET
    alert_policies: Annotated[list[Anything], Meta(description="a list of alert policies")] | UnsetType | None = UNSET


class SloSpec(Promise, kw_only=True, rename="camel"):
    """What is promised of a service."""

    service: Words
    objectives: Annotated[
        list[Annotated[Objective, Meta(description="a mapping with target")]],
        Meta(min_length=1, description="a list of objectives"),
    ]
    indicator: Inline | UnsetType = UNSET
    indicator_ref: Words | UnsetType = UNSET
    time_window: (
        Annotated[
            list[Annotated[TimeWindow, Meta(description="a mapping with duration")]],
            Meta(min_length=1, max_length=1, description="a list of one window"),
        ]
        | UnsetType
    ) = UNSET


class ServiceSpec(Strict, rename="camel"):
    """What SLOs are of."""

    description: Text | UnsetType = UNSET


class DataSourceSpec(Strict, rename="camel"):
    """Where metrics are."""

    type: Words
    description: Text | UnsetType = UNSET
    connection_details: Anything = None


class Condition(Strict, rename="camel"):
    """When an alert is due."""

    op: Literal["lte", "gte", "lt", "gt"]
    threshold: Number
    lookback_window: Shorthand
    kind: Literal["burnrate"] | UnsetType = UNSET
    alert_after: Annotated[str, Meta(pattern=r"^[0-9]+[mhdwMQY]$", description="a duration such as 5m")] | UnsetType = (
        UNSET
    )


class AlertConditionSpec(Strict, rename="camel"):
    """A condition and how bad it is."""

    severity: Words
    condition: Annotated[Condition, Meta(description="a mapping with op, threshold, lookbackWindow")]
    description: Text | UnsetType = UNSET


class AlertPolicySpec(Strict, rename="camel"):
    """Which conditions alert whom."""

    conditions: Annotated[list[Anything], Meta(min_length=1, max_length=1, description="a list of one condition")]
    notification_targets: Annotated[list[Anything], Meta(description="a list of notification targets")]
    description: Text | UnsetType = UNSET
    alert_when_no_data: Yes | UnsetType = UNSET
    alert_when_resolved: Yes | UnsetType = UNSET
    alert_when_breaching: Yes | UnsetType = UNSET


class AlertNotificationTargetSpec(Strict, rename="camel"):
    """Who is alerted."""

    target: Words
    description: Text | UnsetType = UNSET


SPECS: dict[str, type] = {
    "Service": ServiceSpec,
    "SLO": SloSpec,
    "SLI": SliSpec[Query],
    "DataSource": DataSourceSpec,
    "AlertPolicy": AlertPolicySpec,
    "AlertCondition": AlertConditionSpec,
    "AlertNotificationTarget": AlertNotificationTargetSpec,
}


PARTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "SLO": (("alertPolicies", "alertPolicyRef", "AlertPolicy"),),
    "AlertPolicy": (
        ("conditions", "conditionRef", "AlertCondition"),
        ("notificationTargets", "targetRef", "AlertNotificationTarget"),
    ),
}
"""Lists of a kind's spec: their name, the key by which an item names a document, and the document's kind."""


class Part(Strict, rename="camel"):
    """A document inside another one."""

    spec: Annotated[dict[str, Any], Meta(description="a mapping")]
    metadata: Annotated[Metadata, Meta(description="a mapping with name")] | UnsetType = UNSET
    kind: Text | UnsetType = UNSET
    api_version: Text | UnsetType = UNSET


class Document(Strict, rename="camel"):
    """What all documents have."""

    api_version: Literal["openslo/v1"]
    kind: Literal["Service", "SLO", "SLI", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"]
    metadata: Annotated[Metadata, Meta(description="a mapping with name")]
    spec: Anything = None


# -- v2alpha: the same kinds, with other names in SLOs and SLIs, and no display names ---------------------------------

V2_API_VERSION = "openslo.com/v2alpha"
V2Duration = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[mhdw]$", description="a duration such as 5m, 12h, 30d or 4w")]


class V2Metric(Strict, rename="camel"):
    """A query, beside the source that it asks."""

    data_source_ref: Text | UnsetType = UNSET
    data_source_spec: Anything = None
    spec: Anything = None


V2Query = Annotated[V2Metric, Meta(description="a mapping with dataSourceRef or dataSourceSpec, and spec")]


class V2Indicator(Strict, rename="camel"):
    """An indicator inside an SLO."""

    spec: Annotated[SliSpec[V2Query], Meta(description="a mapping with thresholdMetric or ratioMetric")]
    metadata: Annotated[V2Metadata, Meta(description="a mapping with name")] | UnsetType = UNSET


V2Inline = Annotated[V2Indicator, Meta(description="a mapping with metadata and spec")]


class V2TimeWindow(TimeWindow, rename="camel"):
    """A rolling window, or one of a calendar; months and longer are gone."""

    duration: V2Duration


class V2Objective(PartialTarget, rename="camel"):
    """A target."""

    labels: Anything = None
    sli: V2Inline | UnsetType = UNSET
    sli_ref: Words | UnsetType = UNSET


class V2SloSpec(Promise, kw_only=True, rename="camel"):
    """What is promised of a service, which the text of v2alpha calls ``service`` and its Go SDK ``serviceRef``."""

    objectives: Annotated[
        list[Annotated[V2Objective, Meta(description="a mapping with target")]],
        Meta(min_length=1, description="a list of objectives"),
    ]
    service: Words | UnsetType = UNSET
    service_ref: Words | UnsetType = UNSET
    sli: V2Inline | UnsetType = UNSET
    sli_ref: Words | UnsetType = UNSET
    time_window: (
        Annotated[
            list[Annotated[V2TimeWindow, Meta(description="a mapping with duration")]],
            Meta(min_length=1, max_length=1, description="a list of one window"),
        ]
        | UnsetType
    ) = UNSET


V2_SPECS: dict[str, type] = SPECS | {"SLO": V2SloSpec, "SLI": SliSpec[V2Query]}


class V2Document(Strict, rename="camel"):
    """What all documents have."""

    api_version: Literal["openslo.com/v2alpha"]
    kind: Literal["Service", "SLO", "SLI", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"]
    metadata: Annotated[V2Metadata, Meta(description="a mapping with name")]
    spec: Anything = None
