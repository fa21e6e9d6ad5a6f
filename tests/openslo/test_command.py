"""``slacktide openslo`` as a user runs it: exit codes, files that are whole or not there, and what is shipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from cluster.installation import MANIFESTS
from slacktide.cli import EXIT_CODES, app, main
from slacktide.errors import OutputError, RefusedError
from slacktide.openslo.burn_rates import prometheus_rule, rules_of_any_class
from support.repository import REPOSITORY

EXAMPLES = REPOSITORY / "examples" / "openslo"
SHOP, CLASSES = EXAMPLES / "shop.yaml", EXAMPLES / "classes.yaml"
REFUSED = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: search}
spec:
  service: shop
  indicator:
    spec:
      thresholdMetric: {metricSource: {type: Any, spec: {query: latency}}}
  budgetingMethod: Occurrences
  objectives: [{op: lt, value: 500, target: 0.99}]
"""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["openslo", *(str(one) for one in words)])


def documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def test_import_prints_what_kubectl_applies_and_tells_what_it_passes_over() -> None:
    done = run("import", SHOP)
    assert done.exit_code == 0
    kinds = [one["kind"] for one in documents(done.stdout)]
    assert kinds == ["ServiceClass"] * 2 + ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"] * 2
    assert "passed over: AlertPolicy fast-burn: see slacktide openslo alerts" in done.stderr


def test_a_class_without_a_selector_is_told_by_which_label_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "plain.yaml"
    file.write_text(run("export", CLASSES).stdout)
    done = run("import", file)
    assert "gold: label pod templates with slacktide.io/class: gold" in done.stderr
    assert documents(done.stdout) == documents(CLASSES.read_text())


def test_what_is_refused_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, out = tmp_path / "broken.yaml", tmp_path / "out.yaml"
    broken.write_text(REFUSED)
    code = main(["openslo", "import", str(SHOP), str(broken), "--out", str(out)])
    said = capsys.readouterr()
    assert (code, said.out) == (EXIT_CODES[RefusedError.__base__], "")  # type: ignore[index]
    assert f"{broken}:11: spec.objectives[0].op: found 'lt'" in said.err
    assert not out.exists()
    done = run("import", SHOP, broken, "--skip-refused", "--out", out)
    assert (done.exit_code, done.stdout) == (0, "")
    assert f"refused: {broken}:11: spec.objectives[0].op" in done.stderr
    assert len(documents(out.read_text())) == 6


def test_all_refusals_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "many.yaml"
    file.write_text("---\n".join(REFUSED.replace("search", f"search-{number}") for number in range(30)))
    done = CliRunner().invoke(app, ["openslo", "import", str(file)])
    assert isinstance(done.exception, RefusedError)
    assert str(done.exception).count("spec.objectives[0].op") == done.exception.total == 30


def test_a_file_stays_as_it_was_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    done = run("import", SHOP, "--out", tmp_path / "there")
    assert isinstance(done.exception, OutputError)
    assert [one.name for one in tmp_path.iterdir()] == ["there"]
    assert isinstance(run("export", CLASSES, "--out", tmp_path / "no" / "where.yaml").exception, OutputError)


def test_import_says_as_json_what_it_did(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(REFUSED)
    found = json.loads(run("import", SHOP, broken, "--skip-refused", "--json").stdout)
    assert [one["metadata"]["name"] for one in found["classes"]] == ["shop-front", "shop-orders"]
    assert found["bindings"][0] == {
        "class": "shop-front",
        "selector": "app.kubernetes.io/part-of=shop,app.kubernetes.io/component in (front, search)",
        "namespaces": ["shop"],
    }
    assert len(found["refused"]) == 1
    assert len(found["passedOver"]) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found no document"),
        ("a: [", "not YAML"),
        ("- 3\n", "found 3, expected a document"),
        ("a: 1\na: 2\n", ":2: a: named twice"),
        ("a: &x {b: 1}\nc: *x\n", "repeated by an alias"),
    ],
)
def test_what_is_no_document_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    assert said in str(run("import", file).exception)


def test_export_leaves_out_what_cannot_be_said_and_tells(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("classes:\n- {name: all, slo: 1.0, rank: 1}\n- {name: most, slo: 0.9, rank: 2}\n")
    done = run("export", file)
    assert [one["metadata"]["name"] for one in documents(done.stdout)] == ["slacktide", "most"]
    assert "left out: all: slo: found 1" in done.stderr
    found = json.loads(run("export", file, "--json").stdout)
    assert [one["kind"] for one in found["documents"]] == ["Service", "SLO"]
    file.write_text("classes:\n- {name: all, slo: 1.0, rank: 1}\n")
    assert "no class can be exported\nall: slo: found 1" in str(run("export", file).exception)


def test_files_and_a_cluster_are_not_read_together(tmp_path: Path) -> None:
    assert run("export", CLASSES, "--context", "here").exit_code == 2
    assert run("alerts", CLASSES, "--any-class").exit_code == 2
    empty = tmp_path / "none.yaml"
    empty.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")
    assert "found no ServiceClass" in str(run("export", empty).exception)


def test_alerts_are_a_rules_file_or_an_object() -> None:
    plain = documents(run("alerts", CLASSES).stdout)[0]
    names = [f"slacktide-{prefix}-budgets-{one}" for one in ("gold", "silver") for prefix in ("workload", "class")]
    assert [one["name"] for one in plain["groups"]] == [*names, "slacktide-health"]
    whole = documents(run("alerts", CLASSES, "--format", "prometheusrule").stdout)[0]
    assert (whole["kind"], whole["spec"]) == ("PrometheusRule", plain)


def test_what_is_shipped_is_what_the_command_makes() -> None:
    shipped = (MANIFESTS / "monitoring" / "20-alerts.yaml").read_text()
    assert shipped == run("alerts", "--any-class", "--format", "prometheusrule").stdout
    assert documents(shipped) == [prometheus_rule(rules_of_any_class())]
    assert (EXAMPLES / "alerts.yaml").read_text() == run("alerts", "--any-class").stdout


def test_the_pod_monitor_finds_the_scheduler_and_keeps_the_labels_of_workloads() -> None:
    found = {one["kind"]: one for one in documents((MANIFESTS / "monitoring" / "10-podmonitor.yaml").read_text())}
    monitor = found["PodMonitor"]
    deployment = next(
        one for one in documents((MANIFESTS / "40-deployment.yaml").read_text()) if one["kind"] == "Deployment"
    )
    template = deployment["spec"]["template"]
    assert monitor["metadata"]["namespace"] == deployment["metadata"]["namespace"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    ports = [port["name"] for one in template["spec"]["containers"] for port in one["ports"]]
    assert endpoint["port"] in ports
    assert endpoint["honorLabels"] is True
    # It shows the token of an account that may read metrics and nothing else.
    secret, binding = found["Secret"]["metadata"], found["ClusterRoleBinding"]
    assert endpoint["authorization"]["credentials"]["name"] == secret["name"]
    assert secret["annotations"]["kubernetes.io/service-account.name"] == found["ServiceAccount"]["metadata"]["name"]
    assert [one["name"] for one in binding["subjects"]] == [found["ServiceAccount"]["metadata"]["name"]]
    assert (endpoint["scheme"], binding["roleRef"]["name"]) == ("https", "slacktide-metrics-reader")
