"""The dashboard for Grafana and the example Prometheus: every metric and label that they name is one that we export."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.test_http_server import two_on_one_core
from slacktide.kube.observe.availability_metrics import WHO
from support.repository import REPOSITORY

FILE = resources.files("slacktide.dashboard") / "grafana" / "slacktide.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
EXAMPLE = REPOSITORY / "examples" / "monitoring" / "prometheus.yaml"
MACROS = {"$__rate_interval": "5m", "$job": ".*", "$class": ".*", "$namespace": ".*"}
KINDS = {"row", "stat", "bargauge", "timeseries", "table"}
PROMTOOL = shutil.which("promtool")
REQUIRED = os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1"
needs_promtool = pytest.mark.skipif(PROMTOOL is None and not REQUIRED, reason="promtool: apt-get install prometheus")


def queries() -> list[str]:
    found = [target["expr"] for panel in PANELS for target in panel.get("targets", [])]
    variables = DASHBOARD["templating"]["list"]
    return found + [one["definition"].split("(")[1].split(",")[0] for one in variables if one["type"] == "query"]


@pytest.fixture(scope="module")
def exported() -> dict[str, set[str]]:
    """Samples by name with their labels, of a scheduler that has preempted."""
    found: dict[str, set[str]] = {}
    for family in two_on_one_core().families().values():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        for suffix in suffixes:
            found[family.name + suffix] = set()
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_every_metric_and_label_is_exported(exported: dict[str, set[str]]) -> None:
    named = set()
    for expr in queries():
        for name, matchers in re.findall(r"((?:slacktide|scheduler)_\w+)(?:\{([^}]*)\})?", expr):
            named.add(name)
            assert name in exported, expr
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) - {"job"}
            known = exported[name] | (set(WHO) if name.startswith("slacktide_workload_") else set())
            assert labels <= known or not known, (expr, known)
        for words in re.findall(r"by \(([^)]*)\)", expr):
            (metric, *_) = re.findall(r"(?:slacktide|scheduler)_\w+", expr)
            grouped = {one.strip() for one in words.split(",")}
            assert grouped <= exported[metric] | {"le"} or not exported[metric], (expr, exported[metric])
    assert len(named) > 15


def test_panels_have_what_grafana_wants() -> None:
    assert DASHBOARD["schemaVersion"] >= 39
    assert re.fullmatch(r"[-a-zA-Z0-9_]{1,40}", DASHBOARD["uid"])
    assert len({one["id"] for one in PANELS}) == len(PANELS)
    taken: dict[tuple[int, int], int] = {}
    for panel in PANELS:
        assert panel["type"] in KINDS
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])):  # fmt: skip
            assert cell not in taken, (panel["title"], taken[cell])
            taken[cell] = panel["id"]
        if panel["type"] == "row":
            continue
        assert panel["description"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [one["refId"] for one in panel["targets"]]
        assert len(set(refs)) == len(refs) > 0
        assert all(one["instant"] != one["range"] for one in panel["targets"])
        for override in panel["fieldConfig"]["overrides"]:
            assert {one["id"] for one in override["properties"]} == {"color"}
    names = [one["name"] for one in DASHBOARD["templating"]["list"]]
    used = set(re.findall(r"\$\{?(\w+)", json.dumps([PANELS, DASHBOARD["templating"]]))) - {"__rate_interval"}
    assert used <= set(names)


@needs_promtool
def test_every_query_is_one_to_prometheus(tmp_path: Path) -> None:
    rules = []
    for number, expr in enumerate(queries()):
        for macro, value in MACROS.items():
            expr = expr.replace(macro, value)  # noqa: PLW2901
        rules.append({"record": f"query:{number}", "expr": expr})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


@needs_promtool
def test_the_example_prometheus_finds_the_scheduler_of_the_manifests(tmp_path: Path) -> None:
    config = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    (job,) = config["scrape_configs"]
    manifests = resources.files("slacktide.kube") / "manifests" / "40-deployment.yaml"
    deployment = next(
        one for one in yaml.safe_load_all(manifests.read_text(encoding="utf-8")) if one["kind"] == "Deployment"
    )
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels, ports = pod["metadata"]["labels"], [one["name"] for one in container["ports"]]
    assert job["relabel_configs"][0]["regex"] == f"{labels['app.kubernetes.io/name']};{ports[0]}"
    assert job["scheme"] == "https"
    # Debian's promtool knows no clusters: all else is checked with an address in place of the cluster.
    (found,) = job.pop("kubernetes_sd_configs")
    assert found["namespaces"]["names"] == [deployment["metadata"]["namespace"]]
    job["static_configs"] = [{"targets": ["127.0.0.1:10359"]}]
    file = tmp_path / "prometheus.yaml"
    file.write_text(yaml.safe_dump(config))
    assert PROMTOOL is not None
    words = [PROMTOOL, "check", "config", "--syntax-only", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
