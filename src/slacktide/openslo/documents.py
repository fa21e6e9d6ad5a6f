"""Documents of OpenSLO v1 as typed ones: each kind's fields, as https://github.com/OpenSLO/OpenSLO describes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from slacktide import settings_file
from slacktide.conversion import Node, Strict
from slacktide.errors import ConfigError
from slacktide.inputs.problems import check_readable

API_VERSION = "openslo/v1"
KINDS = ("Service", "SLO", "SLI", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget")

Words = Annotated[str, Meta(min_length=1, description="text")]
Text = Annotated[str, Meta(description="text")]
Number = Annotated[float, Meta(description="a number")]
Yes = Annotated[bool, Meta(description="true or false")]
Anything = Annotated[Any, Meta(description="any YAML")]
Shorthand = Annotated[str, Meta(pattern=r"^[1-9][0-9]*[mhdwMQY]$", description="a duration such as 5m, 12h, 30d or 1M")]


class Metadata(Strict, rename="camel"):
    """Of every document; values of labels may be lists."""

    name: Words
    display_name: Text | UnsetType = UNSET
    labels: Anything = None
    annotations: Anything = None


class MetricSource(Strict, rename="camel"):
    """Where a metric comes from; ``spec`` is the source's own."""

    metric_source_ref: Text | UnsetType = UNSET
    type: Text | UnsetType = UNSET
    spec: Anything = None


class Metric(Strict, rename="camel"):
    """A query."""

    metric_source: Annotated[MetricSource, Meta(description="a mapping with type or metricSourceRef, and spec")]


Query = Annotated[Metric, Meta(description="a mapping with metricSource")]


class RatioMetric(Strict, rename="camel"):
    """Good or bad of a total, or a ratio as it is."""

    counter: Yes | UnsetType = UNSET
    good: Query | UnsetType = UNSET
    bad: Query | UnsetType = UNSET
    total: Query | UnsetType = UNSET
    raw_type: Literal["success", "failure"] | UnsetType = UNSET
    raw: Query | UnsetType = UNSET


class SliSpec(Strict, rename="camel"):
    """An indicator."""

    description: Text | UnsetType = UNSET
    threshold_metric: Query | UnsetType = UNSET
    ratio_metric: Annotated[RatioMetric, Meta(description="a mapping with good or bad, and total")] | UnsetType = UNSET


class Indicator(Strict, rename="camel"):
    """An indicator inside an SLO."""

    spec: Annotated[SliSpec, Meta(description="a mapping with thresholdMetric or ratioMetric")]
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


class Objective(Strict, rename="camel"):
    """A target."""

    display_name: Text | UnsetType = UNSET
    op: Literal["lte", "gte", "lt", "gt"] | UnsetType = UNSET
    value: Number | UnsetType = UNSET
    target: Number | UnsetType = UNSET
    target_percent: Number | UnsetType = UNSET
    time_slice_target: Number | UnsetType = UNSET
    time_slice_window: Anything = None
    indicator: Inline | UnsetType = UNSET
    indicator_ref: Words | UnsetType = UNSET
    composite_weight: Number | UnsetType = UNSET


class SloSpec(Strict, rename="camel"):
    """What is promised of a service."""

    service: Words
    budgeting_method: Literal["Occurrences", "Timeslices", "RatioTimeslices"]
    objectives: Annotated[
        list[Annotated[Objective, Meta(description="a mapping with target")]],
        Meta(min_length=1, description="a list of objectives"),
    ]
    description: Text | UnsetType = UNSET
    indicator: Inline | UnsetType = UNSET
    indicator_ref: Words | UnsetType = UNSET
    time_window: (
        Annotated[
            list[Annotated[TimeWindow, Meta(description="a mapping with duration")]],
            Meta(min_length=1, max_length=1, description="a list of one window"),
        ]
        | UnsetType
    ) = UNSET
    alert_policies: Annotated[list[Anything], Meta(description="a list of alert policies")] | UnsetType | None = UNSET


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
    "SLI": SliSpec,
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
    api_version: Literal["openslo/v1"] | UnsetType = UNSET


class Document(Strict, rename="camel"):
    """What all documents have."""

    api_version: Literal["openslo/v1"]
    kind: Literal["Service", "SLO", "SLI", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"]
    metadata: Annotated[Metadata, Meta(description="a mapping with name")]
    spec: Anything = None


@dataclass(frozen=True, slots=True)
class Read:
    """A document that is as OpenSLO v1 has it; ``spec`` is the type of :data:`SPECS` for its kind."""

    node: Node
    kind: str
    name: str
    annotations: dict[str, str]
    spec: Any

    @property
    def label(self) -> str:
        """For people: kind and name."""
        return f"{self.kind} {self.name}"


def read_files(paths: Iterable[Path]) -> tuple[list[Read], list[str]]:
    """The documents of YAML files, and what is wrong with those that are not as OpenSLO v1 has them.

    Raises :class:`InputError` for a file that is not there, and :class:`ConfigError` for one that is no YAML at all.
    """
    found: list[Read] = []
    problems: list[str] = []
    for path in paths:
        check_readable(path)
        for one in settings_file.read_documents(path, "OpenSLO"):
            try:
                read = read_document(Node(one, (), one.values, index="[{}]"))
                twice = next((other for other in found if (other.kind, other.name) == (read.kind, read.name)), None)
                if twice is not None:
                    read.node.child("metadata").child("name").fail(f"a name of its own: {twice.node.where} has it, too")
                found.append(read)
            except ConfigError as error:
                problems.append(str(error))
    return found, problems


def read_document(node: Node) -> Read:
    """One document. Raises :class:`ConfigError` with file, line, field, value and what would be right."""
    if node.value.get("apiVersion") != API_VERSION:
        raise ConfigError(_other_version(node))
    plain = node.convert(Document)
    spec: Any = ServiceSpec()
    if node.value.get("spec") is not None:
        spec = node.child("spec").convert(SPECS[plain.kind])
    elif plain.kind != "Service":
        raise ConfigError(f"{_at(node, 'kind')}: spec is missing, expected the spec of a document of kind {plain.kind}")
    _check_parts(plain.kind, node)
    if plain.kind == "SLI":
        metric_of(node.child("spec"))
    annotations = _annotations(node.child("metadata"))
    return Read(node, plain.kind, str(plain.metadata.name), annotations, spec)


def metric_of(indicator: Node) -> Node:
    """The ``thresholdMetric`` or ``ratioMetric`` of an indicator. Raises :class:`ConfigError` where it is none."""
    said = indicator.value
    if ("thresholdMetric" in said) == ("ratioMetric" in said):
        raise ConfigError(f"{indicator.where}: ratioMetric: expected either thresholdMetric or ratioMetric")
    if "thresholdMetric" in said:
        return indicator.child("thresholdMetric")
    ratio = indicator.child("ratioMetric")
    of = {key for key in ("good", "bad", "total", "raw") if key in ratio.value}
    if of not in ({"good", "total"}, {"bad", "total"}, {"raw"}):
        raise ConfigError(f"{ratio.where}: total: found {', '.join(sorted(of)) or 'nothing'}, expected good and total, "
                          f"bad and total, or raw")  # fmt: skip
    if "raw" in of and "rawType" not in ratio.value:
        raise ConfigError(f"{ratio.where}: rawType is missing, expected success or failure")
    return ratio


def _check_parts(kind: str, document: Node) -> None:
    """What stands in lists of a document: whole documents, or the names of such, which may be in other files."""
    for key, reference, of in PARTS.get(kind, ()):
        if not document.child("spec").value.get(key):
            continue
        items = document.child("spec").child(key)
        for index in range(len(items.value)):
            item = items.child(index)
            if isinstance(item.value, str):  # as the schema of 2022 had it
                continue
            if not isinstance(item.value, dict) or (reference in item.value) == ("spec" in item.value):
                item.fail(f"a mapping with {reference}, or a whole {of}")
            if reference in item.value:
                if not isinstance(item.value[reference], str):
                    item.child(reference).fail(f"the name of an {of}")
                continue
            if item.convert(Part).kind not in (of, UNSET):
                item.child("kind").fail(of)
            item.child("spec").convert(SPECS[of])
            _check_parts(of, item)


def _other_version(node: Node) -> str:
    if "apiVersion" not in node.value:
        return f"{_at(node, 'apiVersion')}: apiVersion is missing, expected {API_VERSION}"
    found = node.value["apiVersion"]
    return f"{_at(node, 'apiVersion')}: apiVersion: found {found!r}, expected {API_VERSION}: write it in that version"


def _at(node: Node, key: str) -> str:
    return node.file.at((key,) if (key,) in node.file.lines else ())


def _annotations(metadata: Node) -> dict[str, str]:
    if metadata.value.get("annotations") is None:
        return {}
    node = metadata.child("annotations")
    if not isinstance(node.value, dict):
        node.fail("a mapping of texts")
    for key, value in node.value.items():
        if not isinstance(value, str):
            node.child(key).fail("text, in quotes")
    return dict(node.value)


def of_kind(documents: Sequence[Read], kind: str, name: str) -> Read | None:
    """The document of a kind and a name, if there is one."""
    return next((one for one in documents if (one.kind, one.name) == (kind, name)), None)
