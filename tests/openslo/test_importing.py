"""Which OpenSLO documents become service classes, what they become, and how all others are refused."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from slacktide.openslo.documents import read_files
from slacktide.openslo.importing import Imported, convert
from slacktide.openslo.windows import made
from support.repository import REPOSITORY

Json = dict[str, Any]
SHOP = REPOSITORY / "examples" / "openslo" / "shop.yaml"

SLO: Json = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "web", "annotations": {"slacktide.io/availability": "true", "slacktide.io/rank": "2"}},
    "spec": {
        "service": "shop",
        "indicator": {
            "metadata": {"name": "up"},
            "spec": {
                "ratioMetric": {
                    "good": {"metricSource": {"type": "Prometheus", "spec": {"query": "sum(up)"}}},
                    "total": {"metricSource": {"type": "Prometheus", "spec": {"query": "count(up)"}}},
                }
            },
        },
        "timeWindow": [{"duration": "30d", "isRolling": True}],
        "budgetingMethod": "Timeslices",
        "objectives": [{"target": 0.99, "timeSliceTarget": 0.9, "timeSliceWindow": "1m"}],
    },
}
CALENDAR = {"startTime": "2026-01-01 00:00:00", "timeZone": "Europe/Berlin"}


def changed(way: str, value: Any, document: Json = SLO) -> Json:
    """The document with another value at a place such as ``spec.objectives.0.target``; ``...`` takes it away."""
    found = deepcopy(document)
    at: Any = found
    *steps, last = [int(one) if one.isdigit() else one for one in way.split(".")]
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return found


def annotated(**annotations: Any) -> Json:
    known = SLO["metadata"]["annotations"]
    more = {f"slacktide.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return changed("metadata.annotations", {k: v for k, v in (known | more).items() if v is not ...})


def imported(tmp_path: Path, *documents: Json, rank: int | None = None) -> Imported:
    file = tmp_path / "slos.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    found, problems = read_files([file])
    made = convert(found, rank)
    made.refused = problems + made.refused
    return made


def class_of(tmp_path: Path, *documents: Json) -> Json:
    found = imported(tmp_path, *documents)
    assert found.refused == []
    (one,) = found.classes
    return one


def refusal(tmp_path: Path, *documents: Json) -> str:
    found = imported(tmp_path, *documents)
    assert found.classes == []
    (text,) = found.refused
    return text.replace(f"{tmp_path}/", "")


# -- what becomes a class ----------------------------------------------------------------------------------------------


def test_an_slo_about_time_becomes_a_class(tmp_path: Path) -> None:
    assert class_of(tmp_path, SLO) == {
        "apiVersion": "slacktide.io/v1beta1",
        "kind": "ServiceClass",
        "metadata": {"name": "web"},
        "spec": {"slo": 0.99, "rank": 2, "window": {"rolling": "30d"}},
    }


def test_percent_are_the_share_that_they_say(tmp_path: Path) -> None:
    for percent, share in ((99.9, 0.999), (99.95, 0.9995), (90, 0.9), (99.999, 0.99999)):
        document = changed("spec.objectives.0", {"targetPercent": percent, "timeSliceTarget": 0.9})
        assert class_of(tmp_path, document)["spec"]["slo"] == share


def test_without_a_window_it_is_over_a_whole_life(tmp_path: Path) -> None:
    assert "window" not in class_of(tmp_path, changed("spec.timeWindow", ...))["spec"]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"duration": "4w", "isRolling": True}, {"rolling": "4w"}),
        ({"duration": "12h", "isRolling": True}, {"rolling": "12h"}),
        ({"duration": "1M", "calendar": CALENDAR}, {"calendar": "1M", "timeZone": "Europe/Berlin"}),
        (
            {"duration": "1d", "isRolling": False, "calendar": CALENDAR | {"startTime": "2026-01-01 06:00:00"}},
            {"calendar": "1d", "timeZone": "Europe/Berlin", "start": "2026-01-01T06:00:00"},
        ),
        # 2026-01-01 is a Thursday; weeks begin on Monday unless something else is said.
        (
            {"duration": "1w", "calendar": CALENDAR | {"timeZone": "UTC"}},
            {"calendar": "1w", "start": "2026-01-01T00:00:00"},
        ),
        ({"duration": "1w", "calendar": {"startTime": "2026-01-05 00:00:00", "timeZone": "UTC"}}, {"calendar": "1w"}),
        ({"duration": "1Q", "calendar": {"startTime": "2026-04-01 00:00:00", "timeZone": "UTC"}}, {"calendar": "1Q"}),
        (
            {"duration": "1Q", "calendar": {"startTime": "2026-02-01 00:00:00", "timeZone": "UTC"}},
            {"calendar": "1Q", "start": "2026-02-01T00:00:00"},
        ),
        ({"duration": "1Y", "calendar": {"startTime": "2020-01-01T00:00:00", "timeZone": "UTC"}}, {"calendar": "1Y"}),
    ],
)
def test_windows(tmp_path: Path, window: Json, expected: Json) -> None:
    found = class_of(tmp_path, changed("spec.timeWindow", [window]))["spec"]["window"]
    assert found == expected
    assert made(found).budget == "whole"  # what a budget is in OpenSLO


def test_an_instant_without_quotes_is_the_text_it_is(tmp_path: Path) -> None:
    document = changed("spec.timeWindow", [{"duration": "1d", "calendar": CALENDAR | {"startTime": "AT"}}])
    file = tmp_path / "one.yaml"
    file.write_text(yaml.safe_dump(document).replace("startTime: AT", "startTime: 2026-01-01 06:00:00"))
    (one,) = convert(read_files([file])[0]).classes
    assert one["spec"]["window"]["start"] == "2026-01-01T06:00:00"


def test_name_rank_and_further_fields_come_from_annotations(tmp_path: Path) -> None:
    more = {"marginSeconds": 20, "disruptions": {"max": 2, "per": "1h"}, "window": {"budget": "whole"}}
    found = class_of(tmp_path, annotated(rank="1", service_class_spec=json.dumps(more)) | {})
    assert found["spec"] == {
        "slo": 0.99, "rank": 1, "window": {"rolling": "30d", "budget": "whole"},
        "marginSeconds": 20, "disruptions": {"max": 2, "per": "1h"},
    }  # fmt: skip
    assert class_of(tmp_path, annotated(**{"class": "gold"}))["metadata"]["name"] == "gold"


def test_the_rank_may_be_given_for_all(tmp_path: Path) -> None:
    found = imported(tmp_path, annotated(rank=...), rank=3)
    assert found.classes[0]["spec"]["rank"] == 3


def test_where_document_and_annotation_differ_the_windows_length_is_the_documents(tmp_path: Path) -> None:
    said = json.dumps({"window": {"rolling": "7d", "budget": "whole"}})
    found = class_of(tmp_path, annotated(service_class_spec=said))
    assert found["spec"]["window"] == {"rolling": "30d", "budget": "whole"}


def test_seconds_that_slacktide_counts_need_no_annotation(tmp_path: Path) -> None:
    def source(query: str) -> Json:
        return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}

    ratio = {
        "bad": source('sum(slacktide_class_lost_seconds_total{class="web",cause="cluster"})'),
        "total": source('sum(slacktide_class_seconds_total{class="web"})'),
    }
    plain = changed("metadata.annotations", {"slacktide.io/rank": "1"}, changed("spec.budgetingMethod", "Occurrences"))
    found = changed("spec.indicator.spec.ratioMetric", ratio, plain)
    assert class_of(tmp_path, found)["spec"]["slo"] == 0.99
    found = changed("spec.indicator.spec.ratioMetric.total", source("sum(requests)"), found)
    assert "spec.indicator.spec.ratioMetric" in refusal(tmp_path, found)


def test_a_threshold_from_below_may_be_about_what_is_up(tmp_path: Path) -> None:
    metric = {"metricSource": {"type": "Prometheus", "spec": {"query": "min(up)"}}}
    document = changed("spec.indicator.spec", {"thresholdMetric": metric})
    objective = {"op": "gte", "value": 1, "target": 0.99, "timeSliceTarget": 1.0, "timeSliceWindow": "1m"}
    assert class_of(tmp_path, changed("spec.objectives", [objective], document))["spec"]["slo"] == 0.99


@pytest.mark.parametrize("value", [..., 0, -0.5, 1.01, 90])
def test_a_slice_needs_a_target_above_0_and_at_most_1(tmp_path: Path, value: Any) -> None:
    said = refusal(tmp_path, changed("spec.objectives.0.timeSliceTarget", value))
    assert "timeSliceTarget: " in said
    assert "a number above 0 and at most 1" in said
    ratio = changed("spec.budgetingMethod", "RatioTimeslices", changed("spec.objectives.0.timeSliceTarget", ...))
    assert class_of(tmp_path, ratio)["spec"]["slo"] == 0.99


def test_documents_may_stand_in_a_list(tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    service = {"apiVersion": "openslo/v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {}}
    file.write_text(yaml.safe_dump([service, changed("spec.objectives.0.target", 2)], sort_keys=False))
    documents, problems = read_files([file])
    assert (len(documents), problems) == (2, [])
    (text,) = convert(documents).refused
    line = next(number for number, one in enumerate(file.read_text().splitlines(), 1) if "target: 2" in one)
    assert text.startswith(f"{file}:{line}: spec.objectives[0].target: found 2")


# -- workloads ---------------------------------------------------------------------------------------------------------


def test_the_selector_is_the_slos_else_its_services(tmp_path: Path) -> None:
    annotations = {"slacktide.io/selector": "app=shop"}
    metadata = {"name": "shop", "annotations": annotations}
    service = {"apiVersion": "openslo/v1", "kind": "Service", "metadata": metadata}
    assert [one.selector for one in imported(tmp_path, service, SLO).bindings] == ["app=shop"]
    found = imported(tmp_path, service, annotated(selector="app in (web, api),!canary,tier!=test"))
    (policy, binding) = found.bindings[0].objects()
    assert policy["spec"]["matchConstraints"]["objectSelector"] == {
        "matchExpressions": [
            {"key": "app", "operator": "In", "values": ["web", "api"]},
            {"key": "canary", "operator": "DoesNotExist"},
            {"key": "tier", "operator": "NotIn", "values": ["test"]},
        ]
    }
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert imported(tmp_path, SLO).bindings == []


@pytest.mark.parametrize("selector", ["", "app==", "!app", "app!=web", "a=b,,c", "app=web,app=api", "a b"])
def test_selectors_that_say_nothing_or_select_everybody_are_refused(tmp_path: Path, selector: str) -> None:
    if selector == "app==":  # the empty value is one
        assert imported(tmp_path, annotated(selector=selector)).bindings
        return
    assert "metadata.annotations.slacktide.io/selector: found" in refusal(tmp_path, annotated(selector=selector))


# -- what is refused ---------------------------------------------------------------------------------------------------

THRESHOLD = {"thresholdMetric": {"metricSource": {"type": "Any", "spec": {"query": "latency"}}}}
LATENCY = changed(
    "spec.objectives.0", {"op": "lt", "value": 500, "target": 0.99}, changed("spec.indicator.spec", THRESHOLD)
)
REFUSED: dict[str, tuple[Json, str, str]] = {
    "several objectives": (
        changed("spec.objectives", [{"target": 0.99}, {"target": 0.9}]),
        "spec.objectives[1]: found {'target': 0.9}",
        "one objective",
    ),
    "composite": (
        changed("spec.objectives.0.indicatorRef", "other"),
        "spec.objectives[0].indicatorRef: found 'other'",
        "no composite SLO",
    ),
    "weights": (
        changed("spec.objectives.0.compositeWeight", 2),
        "spec.objectives[0].compositeWeight: found 2",
        "no composite SLO",
    ),
    "latency": (LATENCY, "spec.objectives[0].op: found 'lt'", "a latency"),
    "a metric of the application": (
        annotated(availability=...),
        "spec.indicator.spec.ratioMetric: found",
        'annotation slacktide.io/availability: "true"',
    ),
    "values": (
        changed("metadata.annotations", {"slacktide.io/rank": "1"}, changed("spec.indicator.spec", THRESHOLD)),
        "spec.indicator.spec.thresholdMetric: found",
        "an indicator of availability",
    ),
    "said to be none": (
        annotated(availability="false"),
        "metadata.annotations.slacktide.io/availability: found 'false'",
        '"true"',
    ),
    "counts of requests": (
        changed("spec.budgetingMethod", "Occurrences"),
        "spec.budgetingMethod: found 'Occurrences'",
        "a share of time",
    ),
    "another method": (changed("spec.budgetingMethod", "Luck"), "spec.budgetingMethod: found 'Luck'", "one of Occ"),
    "no budget": (changed("spec.objectives.0.target", 1.0), "spec.objectives[0].target: found 1.0", "below 1"),
    "percent as share": (changed("spec.objectives.0.target", 99.9), "spec.objectives[0].target: found 99.9", "below 1"),
    "almost nothing": (
        changed("spec.objectives.0.target", 0.0),
        "spec.objectives[0]: service class 'web': slo: found 0.0",
        "0.001",
    ),
    "both targets": (
        changed("spec.objectives.0.targetPercent", 99),
        "spec.objectives[0]: target:",
        "either target or targetPercent",
    ),
    "no rank": (annotated(rank=...), "metadata.annotations: slacktide.io/rank is missing", "--rank"),
    "no number as rank": (annotated(rank="first"), "metadata.annotations.slacktide.io/rank: found 'first'", '"1"'),
    "an annotation that is no text": (annotated(rank=1), "metadata.annotations.slacktide.io/rank: found 1", "quotes"),
    "fields that are no JSON": (
        annotated(service_class_spec="marginSeconds: 3"),
        "metadata.annotations.slacktide.io/service-class-spec: found",
        "as JSON",
    ),
    "a window that is none": (
        annotated(service_class_spec='{"window": "30d"}'),
        "metadata.annotations.slacktide.io/service-class-spec: found",
        "fields of a ServiceClass",
    ),
    "a field of the class that cannot be": (
        annotated(service_class_spec='{"marginSeconds": -3}'),
        "spec.objectives[0]: service class 'web': margin: found -3",
        "0 or more",
    ),
    "a name that is no label": (
        annotated(**{"class": "Gold!"}),
        "metadata.annotations.slacktide.io/class: found 'Gold!'",
        "lower case letters",
    ),
    "months that roll": (
        changed("spec.timeWindow.0.duration", "1M"),
        "spec.timeWindow[0].duration: found '1M'",
        "a fixed length",
    ),
    "minutes of a calendar": (
        changed("spec.timeWindow", [{"duration": "1m", "calendar": CALENDAR}]),
        "spec.timeWindow[0].duration: found '1m'",
        "a small m means minutes",
    ),
    "two months": (
        changed("spec.timeWindow", [{"duration": "2M", "calendar": CALENDAR}]),
        "spec.timeWindow[0].duration: found '2M'",
        "one of 1d, 1w, 1M, 1Q, 1Y",
    ),
    "neither rolling nor a calendar": (
        changed("spec.timeWindow", [{"duration": "1M", "isRolling": False}]),
        "spec.timeWindow[0].isRolling: found False",
        "startTime and timeZone",
    ),
    "an unknown time zone": (
        changed("spec.timeWindow", [{"duration": "1M", "calendar": CALENDAR | {"timeZone": "Berlin"}}]),
        "spec.timeWindow[0].calendar.timeZone: window: time_zone: found 'Berlin'",
        "Europe/Berlin",
    ),
    "a day that is not there": (
        changed("spec.timeWindow", [{"duration": "1M", "calendar": CALENDAR | {"startTime": "2026-02-30 00:00:00"}}]),
        "spec.timeWindow[0].calendar.startTime: found '2026-02-30 00:00:00'",
        "a date and time",
    ),
    "a window that is too long": (
        changed("spec.timeWindow", [{"duration": "5000d", "isRolling": True}]),
        "spec.timeWindow[0].duration: window: rolling: found",
        "1m to 400d",
    ),
    "two windows": (
        changed("spec.timeWindow", [{"duration": "1d"}, {"duration": "1w"}]),
        "spec.timeWindow: found",
        "one window",
    ),
    "an SLI that is not there": (
        changed("spec.indicatorRef", "far", changed("spec.indicator", ...)),
        "spec.indicatorRef: found 'far'",
        "in these files",
    ),
    "no indicator": (changed("spec.indicator", ...), "spec: indicator:", "either indicator or indicatorRef"),
    "another version": (changed("apiVersion", "openslo/v3"), "apiVersion: found 'openslo/v3'", "openslo/v1"),
    "no version": (changed("apiVersion", ...), "apiVersion is missing", "openslo/v1"),
    "another kind": (changed("kind", "Slo"), "kind: found 'Slo'", "SLO"),
    "a field of another version": (
        changed("spec.timeWindows", []),
        "spec.timeWindows: unknown key",
        "did you mean 'timeWindow'",
    ),
    "no spec": (changed("spec", ...), "spec is missing", "the spec of a document of kind SLO"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_promised_is_refused_with_line_field_value_and_what_to_do(tmp_path: Path, name: str) -> None:
    document, found, expected = REFUSED[name]
    text = refusal(tmp_path, document)
    file, line, rest = text.split(":", 2)
    assert file == "slos.yaml"
    assert int(line) >= 1
    assert rest.lstrip().startswith(found), text
    assert expected in rest.partition("expected")[2], text


def test_the_line_is_that_of_the_field(tmp_path: Path) -> None:
    text = refusal(tmp_path, changed("spec.budgetingMethod", "Occurrences"))
    lines = (tmp_path / "slos.yaml").read_text().splitlines()
    assert lines[int(text.split(":")[1]) - 1].strip() == "budgetingMethod: Occurrences"


def test_one_class_of_two_slos_is_refused(tmp_path: Path) -> None:
    other = changed("metadata.name", "other", annotated(**{"class": "web"}))
    found = imported(tmp_path, SLO, other)
    assert [one["metadata"]["name"] for one in found.classes] == ["web"]
    assert "annotations.slacktide.io/class: found 'web'" in found.refused[0]
    found = imported(tmp_path, SLO, SLO)
    assert "metadata.name: found 'web', expected a name of its own" in found.refused[0]


# -- our example -------------------------------------------------------------------------------------------------------


def test_the_example_has_a_document_of_each_kind_and_all_of_it_is_read() -> None:
    documents, problems = read_files([SHOP])
    assert problems == []
    kinds = {"Service", "SLO", "SLI", "DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"}
    assert {one.kind for one in documents} == kinds
    found = convert(documents)
    assert found.refused == []
    assert [one["metadata"]["name"] for one in found.classes] == ["shop-front", "shop-orders"]
    assert [one.service_class for one in found.bindings] == ["shop-front", "shop-orders"]
    assert len(found.passed_over) == len(documents) - 2


BROKEN: dict[str, tuple[str, Any, str]] = {
    "SLI": ("spec.ratioMetric", {"good": {"metricSource": {}}}, "spec.ratioMetric: total: found good"),
    "DataSource": ("spec.type", ..., "spec: type is missing"),
    "AlertPolicy": ("spec.conditions", [], "spec.conditions: found []"),
    "AlertCondition": ("spec.condition.op", "is", "spec.condition.op: found 'is'"),
    "AlertNotificationTarget": ("spec.target", ..., "spec: target is missing"),
    "Service": ("spec.owner", "us", "spec.owner: unknown key"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_documents_of_other_kinds_are_checked_as_well(tmp_path: Path, kind: str) -> None:
    way, value, expected = BROKEN[kind]
    document = next(one for one in yaml.safe_load_all(SHOP.read_text()) if one["kind"] == kind)
    assert imported(tmp_path, document).refused == []
    assert expected in refusal(tmp_path, changed(way, value, document))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"conditions": [{"conditionRef": "a"}], "notificationTargets": [{"targetRef": "b"}]}, ""),
        ({"conditions": [{"spec": {"severity": "page"}}], "notificationTargets": []}, "[0].spec: condition is missing"),
        ({"conditions": [{"foo": 1}], "notificationTargets": []}, "[0]: found {'foo': 1}"),
        ({"conditions": [{"conditionRef": 3}], "notificationTargets": []}, "[0].conditionRef: found 3"),
        ({"conditions": [{"kind": "SLO", "spec": {}}], "notificationTargets": []}, "[0].kind: found 'SLO'"),
    ],
)
def test_policies_inside_an_slo_are_checked_to_the_last_field(tmp_path: Path, policy: Json, expected: str) -> None:
    document = changed("spec.alertPolicies", [{"kind": "AlertPolicy", "metadata": {"name": "p"}, "spec": policy}])
    if not expected:
        assert imported(tmp_path, document).refused == []
        return
    assert f"spec.alertPolicies[0].spec.conditions{expected}" in refusal(tmp_path, document)
