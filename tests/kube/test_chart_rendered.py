"""What the chart gives for values, by Helm itself and without a cluster."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from slacktide.lab import Binaries, LabError
from support.chart_files import CHART, REPOSITORY

Json = dict[str, Any]


@pytest.fixture(scope="module")
def helm() -> Path:
    """Helm, as a lab has it; the tests are skipped where a lab cannot have it, unless SLACKTIDE_REQUIRE_LAB=1."""
    try:
        return Binaries.find(["helm"])["helm"]
    except LabError as error:
        if os.environ.get("SLACKTIDE_REQUIRE_LAB") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture
def rendered(helm: Path, tmp_path: Path) -> Any:
    """Objects by kind and name for these values; or what Helm says where it refuses them."""

    def give(values: Json) -> dict[str, Json] | str:
        file = tmp_path / "values.json"
        file.write_text(json.dumps(values))
        words = [str(helm), "template", "slacktide", str(CHART), "--namespace=home", f"--values={file}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        found = [one for one in yaml.safe_load_all(done.stdout) if one]
        return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}

    return give


def test_the_dashboard_is_there_from_a_clone(rendered: Any) -> None:
    found = rendered({"metrics": {"dashboard": {"enabled": True}}})
    written = json.loads(found["ConfigMap/slacktide-dashboard"]["data"]["slacktide.json"])
    source = REPOSITORY / "src" / "slacktide" / "dashboard" / "grafana" / "slacktide.json"
    assert written == json.loads(source.read_text())


def test_the_pod_is_as_the_values_say(rendered: Any) -> None:
    spread = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    values = {
        "env": [{"name": "TZ", "value": "UTC"}],
        "extraEnv": [{"name": "LANG", "value": "C"}],
        "extraArgs": ["--record", "/var/lib/record"],
        "extraVolumes": [{"name": "tls", "secret": {"secretName": "tls"}}],
        "extraVolumeMounts": [{"name": "tls", "mountPath": "/etc/tls"}],
        "affinity": {"nodeAffinity": {"of": "mine"}},
        "topologySpreadConstraints": spread,
        "updateStrategy": {"type": "Recreate", "rollingUpdate": None},
        "serviceAccountAnnotations": {"eks.amazonaws.com/role-arn": "r"},
        "settings": {"kube": {"tls_certificate": "/etc/tls/tls.crt", "tls_key": "/etc/tls/tls.key"}},
    }
    found = rendered(values)
    deployment = found["Deployment/slacktide"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["run", "--config", "/etc/slacktide/config.yaml", "--record", "/var/lib/record"]
    assert container["env"][1:] == [*values["env"], *values["extraEnv"]]  # type: ignore[misc]
    assert container["volumeMounts"][3:] == values["extraVolumeMounts"]
    assert pod["volumes"][3:] == values["extraVolumes"]
    assert (pod["affinity"], pod["topologySpreadConstraints"]) == (values["affinity"], spread)
    assert deployment["strategy"] == {"type": "Recreate"}
    assert found["ServiceAccount/slacktide"]["metadata"]["annotations"] == values["serviceAccountAnnotations"]
    usual = rendered({})["Deployment/slacktide"]["spec"]
    assert usual["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert "podAntiAffinity" in usual["template"]["spec"]["affinity"]


EVERYTHING: Json = {
    "classes": {"gold": {"slo": 0.9, "rank": 1}},
    "metrics": {name: {"enabled": True} for name in ("podMonitor", "serviceMonitor", "prometheusRule", "dashboard")},
    "netprobe": {"enabled": True},
}


def test_every_object_says_which_release_it_is_of(rendered: Any) -> None:
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    found = rendered(EVERYTHING)
    assert len(found) > 25
    for name, one in found.items():
        labels = one["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "slacktide", name
        assert labels["helm.sh/chart"] == f"slacktide-{version}", name
    selector = found["Deployment/slacktide"]["spec"]["selector"]["matchLabels"]
    assert list(selector) == ["app.kubernetes.io/name"], "it cannot be changed by an upgrade"
    plain = rendered({**EVERYTHING, "releaseLabels": False})
    assert not [name for name, one in plain.items() if "helm.sh/chart" in one["metadata"]["labels"]]


def test_monitors_scrape_as_often_and_alerts_lead_where_the_values_say(rendered: Any) -> None:
    rule = {"enabled": True, "runbooks": "https://wiki.example/slacktide"}
    metrics = EVERYTHING["metrics"] | {"interval": "15s", "prometheusRule": rule}
    found = rendered({**EVERYTHING, "metrics": metrics})
    (one,) = found["PodMonitor/slacktide"]["spec"]["podMetricsEndpoints"]
    (two,) = found["ServiceMonitor/slacktide"]["spec"]["endpoints"]
    assert (one["interval"], two["interval"]) == ("15s", "15s")
    alerts = [each for group in found["PrometheusRule/slacktide"]["spec"]["groups"] for each in group["rules"]]
    links = [each["annotations"]["runbook_url"] for each in alerts if "alert" in each]
    assert len(links) > 10
    assert all(link.startswith("https://wiki.example/slacktide#slacktide") for link in links)


def test_what_outlives_or_holds_up_nobody(rendered: Any) -> None:
    found = rendered(EVERYTHING)
    kept = found["Namespace/slacktide-netprobe"]["metadata"]["annotations"]
    assert kept == {"helm.sh/resource-policy": "keep"}
    assert found["PodDisruptionBudget/slacktide"]["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_from_nobody_is_not_from_everybody(rendered: Any) -> None:
    policy = rendered({"networkPolicy": {"from": []}})["NetworkPolicy/slacktide"]["spec"]
    assert (policy["policyTypes"], policy["ingress"]) == (["Ingress"], [])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (
            {"classes": {name: {"slo": 0.9, "rank": 1, "default": True} for name in ("gold", "tin")}},
            "classes: found default: true in gold and tin, expected it in one at most",
        ),
        ({"settings": {"kube": {"profiles": "notjson"}}}, 'settings.kube.profiles: found "notjson", expected a JSON'),
        ({"settings": {"kube": {"profiles": '[{"name": "x"}]'}}}, 'found {"name":"x"} without schedulerName'),
        ({"settings": {"kube": {"profiles": "{}"}}}, 'settings.kube.profiles: found "{}", expected a JSON'),
        ({"metrics": {"interval": "often"}}, "/metrics/interval"),
        ({"settings": {"qos": {"alpha": "abc"}}}, "/settings/qos/alpha"),
        ({"settings": {"kube": {"all_nodes": "perhaps"}}}, "/settings/kube/all_nodes"),
    ],
)
def test_what_does_not_hang_together_is_refused_with_its_place(rendered: Any, values: Json, says: str) -> None:
    found = rendered(values)
    assert isinstance(found, str)
    assert says in found, found


def test_a_prometheus_without_the_operator_has_an_account_and_a_job(rendered: Any) -> None:
    found = rendered({"metrics": {"interval": "15s"}})
    (job,) = yaml.safe_load(found["ConfigMap/slacktide-scrape"]["data"]["scrape.yaml"])
    assert (job["scheme"], job["honor_labels"], job["scrape_interval"]) == ("https", True, "15s")
    assert job["tls_config"] == {"insecure_skip_verify": True}  # the token is good for /metrics and nothing else
    assert job["kubernetes_sd_configs"] == [{"role": "pod", "namespaces": {"names": ["home"]}}]
    secret = found["Secret/slacktide-metrics"]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert found["ClusterRoleBinding/slacktide-metrics"]["roleRef"]["name"] == "slacktide-metrics-reader"
    pod = found["Deployment/slacktide"]["spec"]["template"]["metadata"]
    assert not [name for name in pod["annotations"] if name.startswith("prometheus.io")]  # such a target would fail
    off = rendered({"metrics": {"scrapeConfig": {"enabled": False}}})
    assert not [name for name in off if name.endswith(("-metrics", "-scrape"))]


def test_a_number_that_is_set_by_words_is_one(rendered: Any) -> None:
    found = rendered({"classes": {"gold": {"slo": "0.95", "rank": 1, "marginSeconds": "2.5"}}})
    spec = found["ServiceClass/gold"]["spec"]
    assert (spec["slo"], spec["marginSeconds"], spec["rank"]) == (0.95, 2.5, 1)
    assert "/classes/gold/slo" in rendered({"classes": {"gold": {"slo": "much", "rank": 1}}})


def test_each_name_is_claimed_once_in_the_cluster(rendered: Any) -> None:
    profiles = json.dumps([{"schedulerName": "batch"}, {"schedulerName": "mine"}])
    found = rendered({"schedulerName": "mine", "settings": {"kube": {"profiles": profiles}}})
    claims = [name for name in found if name.startswith("ClusterRole/slacktide:scheduler:")]
    assert sorted(claims) == ["ClusterRole/slacktide:scheduler:batch", "ClusterRole/slacktide:scheduler:mine"]
    assert all(not found[name].get("rules") for name in claims)


def test_the_test_has_the_scheduler_place_a_pod(rendered: Any) -> None:
    gold, tin = {"slo": 0.99, "rank": 1, "namespaces": ["home"]}, {"slo": 0.5, "rank": 2, "namespaces": ["*"]}
    other = {"slo": 0.5, "rank": 3, "namespaces": ["shop"]}

    def labels(**values: Any) -> Json:
        pod = rendered(values)["Pod/slacktide-test"]
        assert pod["spec"]["schedulerName"] == "slacktide"
        assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
        return dict(pod["metadata"]["labels"])

    assert labels(classes={"a": other, "gold": gold, "tin": tin})["slacktide.io/class"] == "gold"
    assert labels(classes={"gold": gold, "tin": tin | {"default": True}})["slacktide.io/class"] == "tin"
    assert labels(classes={"gold": gold}, test={"class": "silver"})["slacktide.io/class"] == "silver"
    assert "slacktide.io/class" not in labels()
