"""SLO files of other projects, each in its own style: Sloth, Pyrra, OpenSLO v1alpha and v2alpha."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from slacktide.cli import app
from slacktide.openslo.documents import read_files
from slacktide.openslo.importing import Imported, convert

SLOTH = """
apiVersion: sloth.slok.dev/v1
kind: PrometheusServiceLevel
metadata:
  name: sloth-slo-shop
  namespace: monitoring
  creationTimestamp: "2026-03-01T10:00:00Z"
  labels: {prometheus: main, role: alert-rules}
spec:
  service: "shop"
  labels: {owner: "team-a", tier: "2"}
  slos:
    - name: "front_replicas"
      objective: 99.9
      description: "Share of front replicas that are available."
      sli:
        events:
          errorQuery: |
            sum_over_time(kube_deployment_status_replicas_unavailable{namespace="shop",deployment="front"}[{{.window}}])
          totalQuery: |
            sum_over_time(kube_deployment_spec_replicas{namespace="shop",deployment="front"}[{{.window}}])
      alerting:
        name: FrontDown
        labels: {category: "availability"}
        page_alert: {disable: true}
        ticketAlert: {labels: {severity: "slack"}}
    - name: "db"
      objective: 99
      sli:
        raw:
          errorRatioQuery: |
            1 - (
              sum(kube_statefulset_status_replicas_ready{namespace="shop",statefulset="db"})
              / sum(kube_statefulset_replicas{namespace="shop",statefulset="db"})
            )
      alerting: {pageAlert: {disable: true}, ticketAlert: {disable: true}}
status:
  observedGeneration: 1
  processedSLOs: 2
"""
SLOTH_FILE = """
version: "prometheus/v1"
service: "bank"
labels:
  owner: "team-b"
slos:
  - name: "ledger"
    objective: 99.95
    description: "Ready pods."
    sli:
      events:
        error_query: |
          sum(avg_over_time(kube_pod_status_ready{condition="false",namespace="bank",pod=~"ledger-.*"}[{{.window}}]))
        total_query: sum(avg_over_time(kube_pod_status_ready{namespace="bank",pod=~"ledger-.*"}[{{.window}}]))
    alerting:
      page_alert:
        disable: true
      ticket_alert:
        disable: true
"""
PYRRA = """
apiVersion: pyrra.dev/v1alpha1
kind: ServiceLevelObjective
metadata:
  name: queue-up
  namespace: monitoring
  labels:
    prometheus: k8s
    role: alert-rules
    pyrra.dev/team: operations
  annotations:
    slacktide.io/rank: "4"
spec:
  target: "99.5"
  window: 4w
  description: Share of the queue's pods that are ready.
  indicator:
    bool_gauge:
      metric: kube_pod_status_ready{condition="true",namespace="jobs",pod="queue-0"}
      grouping: [namespace]
  alerting:
    burnrates: true
    absent: false
  performanceOverAccuracy: true
status: {type: PrometheusRule}
"""
V1ALPHA = """
apiVersion: openslo/v1alpha
kind: SLO
metadata:
  name: sloth-slo-web
  displayName: Replicas of web
spec:
  service: web
  description: "Available replicas."
  budgetingMethod: Occurrences
  objectives:
    - displayName: good
      ratioMetrics:
        incremental: false
        good:
          source: prometheus
          queryType: promql
          query: sum(kube_deployment_status_replicas_available{namespace="shop",deployment="web"})
        total:
          source: prometheus
          queryType: promql
          query: sum(kube_deployment_spec_replicas{namespace="shop",deployment="web"})
      target: 0.999
      value: 1
  timeWindows:
    - count: 30
      unit: Day
"""
V2ALPHA = """
- apiVersion: openslo.com/v2alpha
  kind: SLO
  metadata:
    name: api-replicas
    labels: {env: prod, team: team-a}
    annotations: {slacktide.io/rank: "1"}
  spec:
    description: Available replicas of the API.
    serviceRef: api
    sliRef: api-share
    timeWindow:
      - duration: 1w
        isRolling: false
        calendar:
          startTime: 2022-01-01 12:00:00
          timeZone: America/New_York
    budgetingMethod: RatioTimeslices
    objectives:
      - displayName: Good
        targetPercent: 99.5
        timeSliceWindow: 1m
- apiVersion: openslo.com/v2alpha
  kind: SLI
  metadata:
    name: api-share
  spec:
    ratioMetric:
      counter: false
      good:
        dataSourceRef: my-prometheus
        spec:
          query: kube_deployment_status_replicas_ready{namespace="shop",deployment=~"api-.+"}
      total:
        dataSourceSpec:
          type: Prometheus
          connectionDetails: {url: "http://prometheus:9090"}
        spec:
          query: kube_deployment_spec_replicas{namespace="shop",deployment=~"api-.+"}
- apiVersion: openslo.com/v2alpha
  kind: Service
  metadata: {name: api, labels: {team: team-a}}
  spec: {description: The API.}
"""


def imported(tmp_path: Path, text: str, rank: int | None = 3, period: str | None = None) -> Imported:
    file = tmp_path / "slos.yaml"
    file.write_text(text.lstrip())
    found, problems = read_files([file])
    made = convert(found, rank, period)
    made.refused = [one.replace(f"{tmp_path}/", "") for one in problems + made.refused]
    return made


def specs(found: Imported) -> dict[str, Any]:
    assert found.refused == []
    return {one["metadata"]["name"]: one["spec"] for one in found.classes}


def workloads(found: Imported) -> dict[str, str]:
    return {name: str(one) for name, one in found.workloads.items()}


# -- Sloth -------------------------------------------------------------------------------------------------------------


def test_each_slo_of_a_sloth_object_becomes_a_class_of_its_workload(tmp_path: Path) -> None:
    found = imported(tmp_path, SLOTH)
    window = {"rolling": "30d"}
    assert specs(found) == {
        "shop-front-replicas": {"slo": 0.999, "rank": 3, "window": window, "namespaces": ["shop"]},
        "shop-db": {"slo": 0.99, "rank": 3, "window": window, "namespaces": ["shop"]},
    }
    assert workloads(found) == {"shop-front-replicas": "Deployment shop/front", "shop-db": "StatefulSet shop/db"}
    assert found.notes[0] == "shop-front-replicas: window: 30d, Sloth's own period; --period where yours is another"


def test_a_file_of_sloth_has_its_own_spelling_and_no_metadata(tmp_path: Path) -> None:
    found = imported(tmp_path, SLOTH_FILE, period="28d")
    assert specs(found)["bank-ledger"] == {
        "slo": 0.9995, "rank": 3, "window": {"rolling": "28d"}, "namespaces": ["bank"],
    }  # fmt: skip
    assert workloads(found) == {"bank-ledger": "Pod bank/~ledger-.*"}
    assert found.notes == []
    (text,) = imported(tmp_path, SLOTH_FILE, rank=None).refused
    assert "slacktide.io/rank is missing" in text
    assert "--rank" in text


# -- Pyrra -------------------------------------------------------------------------------------------------------------


def test_a_gauge_of_pyrra_becomes_a_class(tmp_path: Path) -> None:
    found = imported(tmp_path, PYRRA)
    assert specs(found) == {"queue-up": {"slo": 0.995, "rank": 4, "window": {"rolling": "4w"}, "namespaces": ["jobs"]}}
    assert (workloads(found), found.notes) == ({"queue-up": "Pod jobs/queue-0"}, [])


def test_a_ratio_of_gauges_is_imported_with_a_word_about_what_pyrra_makes_of_it(tmp_path: Path) -> None:
    ratio = """ratio:
      errors: {metric: 'kube_deployment_status_replicas_unavailable{namespace="jobs",deployment="queue"}'}
      total: {metric: 'kube_deployment_spec_replicas{namespace="jobs",deployment="queue"}'}
  alerting:"""
    head, tail = PYRRA.split("bool_gauge:")
    found = imported(tmp_path, head + ratio + tail.partition("  alerting:")[2])
    assert workloads(found) == {"queue-up": "Deployment jobs/queue"}
    assert found.notes == [
        "queue-up: Pyrra takes the increase of both metrics, which of gauges is no share; a class counts time"
    ]


@pytest.mark.parametrize(("window", "expected"), [("2w", "2w"), ("1w2d", "9d"), ("1d12h", "1d12h"), ("1y", "365d")])
def test_windows_are_prometheus_durations(tmp_path: Path, window: str, expected: str) -> None:
    found = imported(tmp_path, PYRRA.replace("window: 4w", f"window: {window}"))
    assert specs(found)["queue-up"]["window"] == {"rolling": expected}


def test_objects_may_come_in_the_list_that_kubectl_writes(tmp_path: Path) -> None:
    def items(text: str) -> str:
        first, *rest = text.strip().splitlines()
        return "\n".join([f"- {first}", *(f"  {one}" for one in rest)])

    text = f"apiVersion: v1\nkind: List\nitems:\n{items(PYRRA)}\n{items(SLOTH)}\n"
    assert list(specs(imported(tmp_path, text))) == ["queue-up", "shop-front-replicas", "shop-db"]
    (text,) = imported(tmp_path, text.replace('target: "99.5"', 'target: "0.995"')).refused
    _, line, rest = text.split(":", 2)
    lines = (tmp_path / "slos.yaml").read_text().splitlines()
    assert 'target: "0.995"' in lines[int(line) - 1]
    assert rest.startswith(" items[0].spec.target: found '0.995', expected per cent from 1 to below 100")


# -- OpenSLO -----------------------------------------------------------------------------------------------------------


def test_v1alpha_has_the_ratio_in_the_objective_and_units_of_windows(tmp_path: Path) -> None:
    found = imported(tmp_path, V1ALPHA)
    assert specs(found) == {
        "sloth-slo-web": {"slo": 0.999, "rank": 3, "window": {"rolling": "30d"}, "namespaces": ["shop"]}
    }
    assert workloads(found) == {"sloth-slo-web": "Deployment shop/web"}


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("{unit: Week, count: 4, isRolling: true}", {"rolling": "4w"}),
        ("{unit: Second, count: 3600, isRolling: true}", {"rolling": "60m"}),
        ("{unit: day, count: 7}", {"rolling": "7d"}),
        (
            "{unit: Month, count: 1, isRolling: false, calendar: {startTime: 2021-05-01 00:00:00, timeZone: UTC}}",
            {"calendar": "1M"},
        ),
        (
            "{unit: Week, count: 1, calendar: {startTime: 2022-01-01 12:00:00, timeZone: America/New_York}}",
            {"calendar": "1w", "timeZone": "America/New_York", "start": "2022-01-01T12:00:00"},
        ),
    ],
)
def test_windows_of_v1alpha(tmp_path: Path, window: str, expected: dict[str, str]) -> None:
    text = V1ALPHA.replace("- count: 30\n      unit: Day", f"- {window}")
    assert specs(imported(tmp_path, text))["sloth-slo-web"]["window"] == expected


def test_v2alpha_calls_indicators_slis_and_may_point_to_one(tmp_path: Path) -> None:
    found = imported(tmp_path, V2ALPHA)
    window = {"calendar": "1w", "timeZone": "America/New_York", "start": "2022-01-01T12:00:00"}
    assert specs(found) == {"api-replicas": {"slo": 0.995, "rank": 1, "window": window, "namespaces": ["shop"]}}
    assert workloads(found) == {"api-replicas": "Deployment shop/~api-.+"}
    assert [one.partition(":")[0] for one in found.passed_over] == ["SLI api-share", "Service api"]
    again = imported(tmp_path, V2ALPHA.replace("serviceRef: api", "service: api"))  # as its text has it
    assert list(specs(again)) == ["api-replicas"]


def test_annotations_and_selectors_of_services_count_in_every_version(tmp_path: Path) -> None:
    text = V2ALPHA.replace("labels: {team: team-a}", 'annotations: {slacktide.io/selector: "app=api"}')
    (binding,) = imported(tmp_path, text).bindings
    assert (binding.selector, binding.workload) == ("app=api", None)
    web = V1ALPHA.replace("  displayName: Replicas of web", '  annotations: {slacktide.io/selector: "app=web"}')
    assert [one.selector for one in imported(tmp_path, web).bindings] == ["app=web"]


def test_openslo_v1_needs_no_annotation_for_shares_of_replicas(tmp_path: Path) -> None:
    text = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: web}
spec:
  service: shop
  indicator:
    spec:
      ratioMetric:
        rawType: success
        raw:
          metricSource:
            type: Prometheus
            spec: {query: 'avg(avg_over_time(kube_pod_status_ready{condition="true",namespace="shop"}[1h]))'}
  budgetingMethod: Occurrences
  objectives: [{target: 0.99}]
"""
    found = imported(tmp_path, text)
    assert specs(found) == {"web": {"slo": 0.99, "rank": 3, "namespaces": ["shop"]}}
    assert workloads(found) == {"web": "Pod shop/*"}


# -- which pods get the class ------------------------------------------------------------------------------------------


def conditions(found: Imported) -> list[str]:
    (binding,) = found.bindings
    policy = binding.objects()[0]["spec"]
    assert policy["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]["values"]
    return [one["expression"] for one in policy["matchConditions"]]


def test_pods_of_a_deployment_are_told_by_their_replicaset(tmp_path: Path) -> None:
    expressions = conditions(imported(tmp_path, V1ALPHA))
    assert expressions[1:] == [
        'request.namespace == "shop"',
        (
            "has(object.metadata.labels) && 'pod-template-hash' in object.metadata.labels && "
            "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, "
            "o.kind == 'ReplicaSet' && o.name.endsWith('-' + object.metadata.labels['pod-template-hash']) && "
            'o.name.matches("^(?:web)-[a-z0-9]+$"))'
        ),
    ]


def test_pods_are_told_by_name_or_by_how_generated_names_begin(tmp_path: Path) -> None:
    assert conditions(imported(tmp_path, PYRRA))[-1] == (
        'has(object.metadata.name) && object.metadata.name == "queue-0"'
    )
    assert conditions(imported(tmp_path, SLOTH_FILE))[-1] == (
        '(has(object.metadata.name) && object.metadata.name.matches("^(?:ledger-.*)$")) || '
        '(has(object.metadata.generateName) && object.metadata.generateName.startsWith("ledger-"))'
    )


def test_pods_without_a_label_get_one_as_well(tmp_path: Path) -> None:
    (binding,) = imported(tmp_path, PYRRA).bindings
    policy = binding.objects()[0]["spec"]
    assert policy["matchConditions"][0]["expression"] == (
        "!has(object.metadata.labels) || !('slacktide.io/class' in object.metadata.labels)"
    )
    (patch,) = policy["mutations"]
    assert 'path: "/metadata/labels", value: {"slacktide.io/class": "queue-up"}' in patch["jsonPatch"]["expression"]


def test_where_nobody_can_tell_the_pods_the_class_is_bound_by_hand(tmp_path: Path) -> None:
    found = imported(tmp_path, SLOTH_FILE.replace("ledger-.*", "(a|b)-[0-9]+"))
    assert list(specs(found)) == ["bank-ledger"]
    assert found.bindings == []
    file = tmp_path / "slos.yaml"
    done = CliRunner().invoke(app, ["openslo", "import", "--rank", "1", str(file)])
    assert "bank-ledger: label pod templates with slacktide.io/class: bank-ledger" in done.stderr
    assert "bank-ledger: is of Pod bank/~(a|b)-[0-9]+" in done.stderr


def test_the_command_says_whose_a_class_is(tmp_path: Path) -> None:
    file = tmp_path / "slos.yaml"
    file.write_text(SLOTH)
    done = CliRunner().invoke(app, ["openslo", "import", "--rank", "2", "--period", "7d", "--json", str(file)])
    said = json.loads(done.stdout)
    assert said["workloads"] == {"shop-front-replicas": "Deployment shop/front", "shop-db": "StatefulSet shop/db"}
    assert said["bindings"][1] == {
        "class": "shop-db", "selector": "", "namespaces": ["shop"], "workload": "StatefulSet shop/db",
    }  # fmt: skip
    assert [one["spec"]["window"] for one in said["classes"]] == [{"rolling": "7d"}] * 2


# -- what is refused ---------------------------------------------------------------------------------------------------

LATENCY = """latency:
      success: {metric: 'http_request_duration_seconds_bucket{le="0.1"}'}
      total: {metric: http_request_duration_seconds_count}
  alerting:"""
BROKEN: dict[str, tuple[str, str, str]] = {
    "sloth: requests": (
        SLOTH_FILE.replace("avg_over_time(kube_pod_status_ready", "rate(http_requests_total"),
        "slos[0].sli.events: found",
        "a scheduler cannot promise what the application answers",
    ),
    "sloth: a plugin": (
        SLOTH_FILE.partition("      events:")[0] + '      plugin: {id: "getting_started_availability"}\n',
        "slos[0].sli.plugin.id: found 'getting_started_availability'",
        "sloth generate",
    ),
    "sloth: the spelling of objects": (
        SLOTH_FILE.replace("error_query", "errorQuery"),
        "slos[0].sli.events.errorQuery: unknown key",
        "did you mean 'error_query'",
    ),
    "sloth: a share as objective": (
        SLOTH_FILE.replace("99.95", "0.9995"),
        "slos[0].objective: found 0.9995",
        "99.9, not 0.999",
    ),
    "sloth: no budget": (SLOTH_FILE.replace("99.95", "100"), "slos[0].objective: found 100", "below 100"),
    "sloth: no slos": (SLOTH_FILE.partition("slos:")[0] + "slos: []\n", "slos: found []", "a list of SLOs"),
    "sloth: two indicators": (
        SLOTH_FILE.replace("      events:", "      raw: {error_ratio_query: x}\n      events:"),
        "slos[0].sli: found raw, events",
        "one of events, raw and plugin",
    ),
    "sloth: another version": (
        SLOTH_FILE.replace("prometheus/v1", "prometheus/v2"),
        "version: found 'prometheus/v2'",
        "prometheus/v1",
    ),
    "sloth: no name": (
        SLOTH_FILE.replace('name: "ledger"', 'title: "ledger"'), "slos[0].title: unknown key", "one of name"
    ),
    "sloth: no spec": (SLOTH.partition("spec:")[0], "spec is missing", "a mapping with service"),
    "sloth: another kind": (SLOTH.replace("PrometheusServiceLevel", "SLO"), "kind: found 'SLO'", "Prometheus"),
    "pyrra: a latency": (
        PYRRA.split("bool_gauge:")[0] + LATENCY + PYRRA.partition("  alerting:")[2],
        "spec.indicator.latency: found",
        "such as a latency",
    ),
    "pyrra: another gauge": (
        PYRRA.replace("kube_pod_status_ready", "probe_success"), "spec.indicator.bool_gauge: found", "annotation"
    ),
    "pyrra: a number as target": (PYRRA.replace('"99.5"', "99.5"), "spec.target: found 99.5", "text"),
    "pyrra: words as target": (PYRRA.replace('"99.5"', '"three nines"'), "spec.target: found 'three nines'", "99.9"),
    "pyrra: a window": (PYRRA.replace("4w", "a month"), "spec.window: found 'a month'", "such as 4w"),
    "pyrra: a window of seconds": (PYRRA.replace("4w", "30s"), "spec.window: window: rolling: found", "1m to 400d"),
    "pyrra: no indicator": (
        PYRRA.partition("    bool_gauge:")[0].replace("indicator:", "indicator: {}"),
        "spec.indicator: found none",
        "ratio",
    ),
    "pyrra: no name": (PYRRA.replace("name: queue-up", "generateName: queue-"), "metadata: name is missing", "that of"),
    "v1alpha: no ratio": (
        V1ALPHA.replace("ratioMetrics:", "ratioMetric:").replace("        good:", "        bad:", 1).replace(
            "replicas_available", "replicas_ready"),
        "spec.objectives[0].ratioMetric.bad.query: found",
        "it is the share that is up",
    ),
    "v1alpha: a threshold": (
        V1ALPHA.partition("  objectives:")[0]
        + "  indicator: {thresholdMetric: {source: prometheus, queryType: promql, query: latency}}\n"
        + "  objectives: [{op: lt, value: 200, target: 0.98}]\n",
        "spec.objectives[0].op: found 'lt'",
        "such as a latency",
    ),
    "v1alpha: neither": (
        V1ALPHA.partition("  objectives:")[0] + "  objectives: [{target: 0.98}]\n",
        "spec.objectives[0]: found neither",
        "ratioMetrics here or indicator.thresholdMetric",
    ),
    "v1alpha: a rolling month": (
        V1ALPHA.replace("unit: Day", "unit: Month"), "spec.timeWindows[0].unit: found 'Month'", "a fixed length"
    ),
    "v1alpha: two calendar weeks": (
        V1ALPHA.replace("unit: Day", "unit: Week\n      calendar: {startTime: 2021-05-01 00:00:00, timeZone: UTC}"),
        "spec.timeWindows[0].unit: found 'Week'",
        "of 30 such units one of 1d, 1w",
    ),
    "v1alpha: an unknown unit": (
        V1ALPHA.replace("unit: Day", "unit: Fortnight"), "spec.timeWindows[0].unit: found 'Fortnight'", "one of Second"
    ),
    "v1alpha: fields of v1": (
        V1ALPHA.replace("timeWindows", "timeWindow"), "spec.timeWindow: unknown key", "did you mean 'timeWindows'"
    ),
    "v2alpha: fields of v1": (V2ALPHA.replace("sliRef", "indicatorRef"), "spec.indicatorRef: unknown key", "sliRef"),
    "v2alpha: no service": (V2ALPHA.replace("    serviceRef: api\n", ""), "spec: service is missing", "a service"),
    "v2alpha: an sli of another version": (
        V2ALPHA.replace("openslo.com/v2alpha\n  kind: SLI", "openslo/v1\n  kind: SLI"),
        "spec.ratioMetric.good.dataSourceRef: unknown key",
        "metricSource",
    ),
    "v2alpha: months": (V2ALPHA.replace("n: 1w", "n: 1M"), "spec.timeWindow[0].duration: found '1M'", "4w"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_documents_and_other_promises_are_refused_with_line_field_and_value(tmp_path: Path, name: str) -> None:
    text, found, expected = BROKEN[name]
    refused = imported(tmp_path, text).refused[0]
    file, line, rest = refused.split(":", 2)
    assert (file, int(line) > 0) == ("slos.yaml", True)
    assert rest.lstrip().startswith(found), refused
    assert expected in rest, refused


def test_an_annotation_that_speaks_of_one_slo_is_refused_beside_several(tmp_path: Path) -> None:
    said = 'namespace: monitoring\n  annotations: {slacktide.io/availability: "true", slacktide.io/rank: "1"}'
    (text,) = imported(tmp_path, SLOTH.replace("namespace: monitoring", said)).refused
    assert "annotations.slacktide.io/availability: found 'true', expected one SLO" in text
    alone = SLOTH.replace("namespace: monitoring", said).partition('    - name: "db"')[0]
    found = imported(tmp_path, alone.replace("kube_deployment_status_replicas_unavailable", "probe_failed"))
    assert specs(found)["shop-front-replicas"]["rank"] == 1
    assert workloads(found) == {}


def test_the_same_object_twice_is_refused_and_one_of_another_namespace_is_not(tmp_path: Path) -> None:
    (text,) = imported(tmp_path, f"{PYRRA}---{PYRRA}").refused
    assert "metadata.name: found 'queue-up', expected a name of its own: slos.yaml:1 has it, too" in text
    other = PYRRA.replace("namespace: monitoring", "namespace: other").replace(
        'rank: "4"', 'rank: "4"\n    slacktide.io/class: other'
    )
    assert list(specs(imported(tmp_path, f"{PYRRA}---{other}"))) == ["queue-up", "other"]
