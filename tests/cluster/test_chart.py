"""The chart: what it gives, every value of it on a real API server, and an installation's life from the plain
manifests over upgrades to its end, with promises kept.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml

from cluster.helm import Helm
from cluster.installation import ACCOUNT, MANIFESTS, alone, applied
from cluster.kubectl import Json, Kubectl
from cluster.labtools import deployment, until
from cluster.running import Running
from cluster.verdicts import each
from cluster.workloads import workload
from slacktide.lab import Binaries, ControlPlane
from support import chart_files
from support.chart_files import CHART, REPOSITORY

HOME = ACCOUNT[0]
BEFORE = REPOSITORY / "tests" / "recorded" / "charts" / "slacktide-0.1.0-dev.0.tgz"
"""The chart from which an upgrade must be possible: the last one released, here the first (``helm package``)."""
CLASSES: Json = {
    "gold": {"slo": 0.99, "rank": 1, "namespaces": ["*"], "window": {"rolling": "30d"}},
    "bronze": {"slo": 0.5, "rank": 3, "namespaces": ["*"], "default": True},
}
LABELS = {"release": "mine"}
AMOUNTS = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}}
EVERY: Json = {
    "schedulerName": "second",
    "fullnameOverride": "other",
    "replicas": 3,
    "settings": {
        "kube": {"all_nodes": True, "disruption_budgets": "best-effort", "ledger_qps": 2000000.0},
        "policy": {"patience": 30},
    },
    "image": {"repository": "r.example/slacktide", "tag": "1", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "resources": AMOUNTS,
    "priorityClassName": "",
    "nodeSelector": {"role": "control"},
    "tolerations": [{"key": "control", "operator": "Exists", "effect": "NoSchedule"}],
    "env": [{"name": "TZ", "value": "UTC"}],
    "extraEnv": [{"name": "LANG", "value": "C.UTF-8"}],
    "extraArgs": ["--verbose"],
    "extraVolumes": [{"name": "tls", "secret": {"secretName": "tls", "optional": True}}],
    "extraVolumeMounts": [{"name": "tls", "mountPath": "/etc/tls", "readOnly": True}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    ],
    "updateStrategy": {"type": "Recreate", "rollingUpdate": None},
    "serviceAccountAnnotations": {"note": "mine"},
    "releaseLabels": True,
    "podLabels": {"team": "platform"},
    "podAnnotations": {"note": "mine"},
    "namespace": {"create": False},
    "crds": {"check": False},
    "classes": {"tried": CLASSES["gold"] | {"marginSeconds": 20.5, "tiers": [{"boundary": 0.9, "bonus": 0.5}]}},
    "quotas": {"default": {"few": {"class": "tried", "hard": {"cpu": "20", "memory": "64Gi", "workloads": 5}}}},
    "admission": {"enabled": True},
    "networkPolicy": {"enabled": True, "from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
    "flowControl": {"enabled": True, "shares": 7},
    "metrics": {
        "interval": "30s",
        "scrapeConfig": {"enabled": True},
        "podMonitor": {"enabled": True, "labels": LABELS},
        "serviceMonitor": {"enabled": True, "labels": LABELS},
        "tlsConfig": {"serverName": "slacktide"},
        "prometheusRule": {"enabled": True, "labels": LABELS, "runbooks": "https://wiki.example/slacktide"},
        "dashboard": {"enabled": True, "labels": LABELS},
    },
    "test": {"class": "tried", "tolerations": [{"operator": "Exists"}]},
    "netprobe": {
        "enabled": True,
        "namespace": "probes",
        "createNamespace": True,
        "secretName": "shared",
        "listen": "0.0.0.0:10361",
        "resources": AMOUNTS,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "any", "operator": "Exists"}],
    },
}
"""Every value, those that switch something on in that position."""
SWITCHES = ("admission", "networkPolicy", "flowControl", "netprobe")
OPERATORS = {"podmonitors": "PodMonitor", "servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"}


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of this module's own."""
    yield from alone(binaries, tmp_path_factory.mktemp("plane"))


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    """An administrator on a cluster with the plain manifests."""
    return applied(plane, binaries)


@pytest.fixture(scope="module")
def helm(plane: ControlPlane, binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm as an administrator."""
    return Helm(binaries["helm"], plane.kubeconfig, tmp_path_factory.mktemp("helm") / "own")


# Without a cluster.


def test_the_plain_manifests_are_what_the_chart_gives(binaries: Binaries) -> None:
    found = [str(file) for file in chart_files.differing(chart_files.made(binaries["helm"]))]
    assert found == [], "make manifests"


def test_helm_finds_nothing_wrong_with_the_chart(helm: Helm) -> None:
    assert "[WARNING]" not in helm.ok("lint", "--strict", str(CHART))
    assert "0 chart(s) failed" in helm.ok("lint", "--strict", str(CHART), values=EVERY | {"metrics": {}})


@each(
    ("values", "says"),
    [
        ({"replicas": 0}, ["/replicas", "got 0, want 1"]),
        ({"replicaz": 3}, ["additional properties 'replicaz' not allowed"]),
        ({"classes": {"gold": {"slo": 0.9}}}, ["/classes/gold", "missing property 'rank'"]),
        ({"classes": {"gold": {"slo": "90%", "rank": 1}}}, ["/classes/gold/slo", "got string, want number"]),
        ({"classes": {"gold": {"slo": 0.9, "rank": 1, "approach": "mean"}}}, ["/approach", "'concurrent'"]),
        ({"classes": {"Gold": {"slo": 0.9, "rank": 1}}}, ["'Gold' does not match pattern"]),
        ({"quotas": {"shop": {"few": {"class": "gold"}}}}, ["/quotas/shop/few", "missing property 'hard'"]),
        ({"settings": {"kube": {"resize_patients": 3}}}, ["/settings/kube", "'resize_patients' not allowed"]),
        ({"settings": {"kube": {"listen": "0.0.0.0:1"}}}, ["/settings/kube", "'listen' not allowed"]),
        ({"schedulerName": "it's"}, ["/schedulerName", "does not match pattern"]),
        ({"image": {"digest": "sha256:1"}}, ["/image/digest", "does not match pattern"]),
        ({"netprobe": {"listen": "10361"}}, ["/netprobe/listen", "does not match pattern"]),
        ({"resources": {"requests": {"cpu": []}}}, ["/resources/requests/cpu", "got array"]),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(helm: Helm, values: Json, says: list[str]) -> None:
    answer = helm("template", "slacktide", str(CHART), values=values)
    assert answer.code != 0
    assert [words for words in says if words not in answer.error] == [], answer.error


def test_kustomize_gives_what_the_files_have(kubectl: Kubectl) -> None:
    for folder in (MANIFESTS, MANIFESTS / "netprobe", MANIFESTS / "monitoring"):
        built = list(yaml.safe_load_all(kubectl.ok("kustomize", str(folder))))
        read = [one for file in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]
        assert sorted(map(_key, built)) == sorted(map(_key, read))
        assert {_key(one): one for one in built} == {_key(one): one for one in read}
    overlay = list(yaml.safe_load_all(kubectl.ok("kustomize", str(REPOSITORY / "examples" / "kustomize"))))
    names = [
        one["spec"]["variables"][0]["expression"]
        for one in overlay
        if one["kind"] == "ValidatingAdmissionPolicy" and not one["metadata"]["name"].endswith("default-class")
    ]
    assert names == ["['promises']"] * 3
    taken = [one["metadata"]["name"] for one in overlay if one["metadata"]["name"].startswith("slacktide:scheduler:")]
    assert taken == ["slacktide:scheduler:promises"]


def _key(one: Json) -> str:
    return f"{one['kind']} {one['metadata'].get('namespace', '')} {one['metadata']['name']}"


# A second scheduler, with every value.


def test_a_second_scheduler_is_upgraded_with_every_value_and_then_with_none(helm: Helm, kubectl: Kubectl) -> None:
    upgraded_from_the_chart_before(helm, kubectl)
    policies_go_by_its_name(kubectl)
    left_out_by_an_upgrade(helm, kubectl)


def upgraded_from_the_chart_before(helm: Helm, kubectl: Kubectl) -> None:
    before = {"fullnameOverride": "other", "crds": {"check": False}}  # here are the definitions of this one
    where = ("-n", "elsewhere", "--create-namespace", "--skip-crds")
    helm.ok("install", "tried", str(BEFORE), *where, values=before)
    assert kubectl.json("-n", "elsewhere", "get", "deployment/other")["spec"]["replicas"] == 2
    stubs = [_stub(plural, kind) for plural, kind in OPERATORS.items()]
    kubectl.ok("apply", "-f", "-", stdin=stubs)
    for plural in OPERATORS:
        kubectl.ok("wait", "--for=condition=Established", f"crd/{plural}.monitoring.coreos.com")
    until(lambda: kubectl("get", ",".join(OPERATORS)).code == 0, "the operator's resources are served")
    said = helm.ok("upgrade", "tried", str(CHART), "-n", "elsewhere", values=EVERY)
    assert "The scheduler second is installed (3 replicas" in said
    made = kubectl.json("-n", "elsewhere", "get", "deployment/other")["spec"]
    pod = made["template"]["spec"]
    (container,) = pod["containers"]
    assert made["replicas"] == 3
    assert container["image"] == f"r.example/slacktide@sha256:{'0' * 64}"
    assert container["resources"] == AMOUNTS
    assert {"name": "TZ", "value": "UTC"} in container["env"]
    assert "priorityClassName" not in pod
    assert (pod["nodeSelector"], pod["tolerations"]) == (EVERY["nodeSelector"], EVERY["tolerations"])
    settings = yaml.safe_load(kubectl.json("-n", "elsewhere", "get", "configmap/other")["data"]["config.yaml"])
    assert settings["kube"]["ledger_qps"] == 2000000
    assert (settings["kube"]["scheduler_name"], settings["kube"]["lease_name"]) == ("second", "other")
    assert (settings["kube"]["lease_namespace"], settings["policy"]) == ("elsewhere", {"patience": 30})
    account = "--as=system:serviceaccount:elsewhere:other"
    assert kubectl.ok("auth", "can-i", "delete", "pods", account).strip() == "yes"
    assert kubectl.ok("-n", "elsewhere", "auth", "can-i", "update", "leases/other", account).strip() == "yes"
    assert kubectl.json("get", "flowschema/other")["spec"]["priorityLevelConfiguration"]["name"] == "other"
    assert kubectl.json("get", "svcclass/tried")["spec"]["marginSeconds"] == 20.5
    assert kubectl.json("get", "promisequota/few")["spec"]["hard"]["workloads"] == 5
    rule = kubectl.json("-n", "elsewhere", "get", "prometheusrule/other")
    assert rule["metadata"]["labels"]["release"] == "mine"
    assert rule["spec"]["groups"]
    (agent,) = kubectl.json("-n", "probes", "get", "ds/other-netprobe")["spec"]["template"]["spec"]["containers"]
    assert agent["args"][-2:] == ["--listen", "0.0.0.0:10361"]
    assert json.loads(kubectl.json("-n", "elsewhere", "get", "cm/other-dashboard")["data"]["slacktide.json"])["panels"]


def _stub(plural: str, kind: str) -> Json:
    """A resource of the Prometheus Operator, whose definitions are not here: any object is one."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    name = {"name": f"{plural}.monitoring.coreos.com"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": name, "spec": spec}


def policies_go_by_its_name(kubectl: Kubectl) -> None:
    wrong = partial(workload, "Pod", {"slacktide.io/approach": "none"})
    until(lambda: kubectl.refuses(wrong(scheduler="second")), "a policy refuses a pod of the second scheduler")
    until(lambda: kubectl.refuses(wrong()), "a policy of the manifests refuses a pod of the first")
    assert not kubectl.refuses(wrong(scheduler="third"))


def left_out_by_an_upgrade(helm: Helm, kubectl: Kubectl) -> None:
    """All that can be."""
    off: Json = {name: {"enabled": False} for name in SWITCHES} | {
        "metrics": {"scrapeConfig": {"enabled": False}},
        "schedulerName": "second",
        "replicas": 1,
        "fullnameOverride": "other",
    }
    helm.ok("upgrade", "tried", str(CHART), "-n", "elsewhere", "--reset-values", values=off)
    kinds = f"cm,pdb,networkpolicy,{','.join(OPERATORS)},secret,svc"
    names = kubectl.ok("-n", "elsewhere", "get", kinds, "-l", "app.kubernetes.io/name=other", "-o", "name").split()
    assert names == ["configmap/other"]
    policies = kubectl.ok("get", "validatingadmissionpolicies,flowschemas,ds", "-A", "-o", "name")
    assert "/other" not in policies
    assert kubectl("get", "svcclass/tried").code != 0
    assert kubectl.ok("auth", "can-i", "list", "pods", "--as=system:serviceaccount:elsewhere:other").strip() == "yes"
    helm.ok("uninstall", "tried", "-n", "elsewhere", "--wait")


# Two releases.


def test_a_second_release_with_the_same_scheduler_name_is_refused_and_the_first_passes_its_test(
    helm: Helm, kubectl: Kubectl
) -> None:
    values = {"schedulerName": "twin", "admission": {"enabled": False}}
    install = partial(helm, "install", "--create-namespace", "--skip-crds")
    answer = install("one-slacktide", str(CHART), "-n", "one", values=values)
    assert answer.code == 0, answer.error
    answer = install("two-slacktide", str(CHART), "-n", "two", values=values)
    assert answer.code != 0
    assert "schedulerName: found twin, which release one-slacktide in namespace one has" in answer.error
    assert "two-slacktide" not in kubectl.ok("get", "clusterroles,deployments", "-A", "-o", "name")
    answer = install("two-slacktide", str(CHART), "-n", "two", values=values | {"schedulerName": "other"})
    assert answer.code == 0, answer.error
    upgrade = helm("upgrade", "two-slacktide", str(CHART), "-n", "two", values=values)
    assert "schedulerName: found twin, which release one-slacktide" in upgrade.error
    helm.ok("uninstall", "two-slacktide", "-n", "two", "--wait")
    assert helm("upgrade", "one-slacktide", str(CHART), "-n", "one", values=values).code == 0
    # Its test waits for a pod that the scheduler places.
    with ThreadPoolExecutor(1) as pool:
        tested = pool.submit(helm, "test", "one-slacktide", "-n", "one", "--timeout=100s")
        until(lambda: kubectl("-n", "one", "get", "pod/one-slacktide-test").code == 0, "the test's pod is there")
        pod = kubectl.json("-n", "one", "get", "pod/one-slacktide-test")
        assert pod["spec"]["schedulerName"] == "twin"
        done = '{"status": {"phase": "Succeeded"}}'
        kubectl.ok("-n", "one", "patch", "pod/one-slacktide-test", "--subresource=status", "--type=merge", "-p", done)
        answer = tested.result()
    assert answer.code == 0, answer.error
    helm.ok("uninstall", "one-slacktide", "-n", "one", "--wait")


def test_a_quota_for_a_namespace_that_does_not_exist_installs_nothing(helm: Helm, kubectl: Kubectl) -> None:
    values = {"schedulerName": "third", "quotas": {"nowhere": {"few": {"class": "gold", "hard": {"workloads": 1}}}}}
    answer = helm("install", "third-slacktide", str(CHART), "-n", "third", "--create-namespace", values=values)
    assert answer.code != 0
    assert "quotas.nowhere: found a namespace that does not exist" in answer.error
    assert "third-slacktide" not in helm.ok("list", "-A")
    assert "third-slacktide" not in kubectl.ok("get", "clusterroles,deployments", "-A", "-o", "name")


# The life of an installation.


@pytest.fixture(scope="module")
def taken_over(helm: Helm, kubectl: Kubectl) -> str:
    """What Helm said when it took over what was installed with kubectl."""
    # What kubectl has applied belongs to kubectl, until somebody says so.
    assert kubectl.ok("-n", HOME, "get", "deploy/slacktide")
    answer = helm("install", "slacktide", str(CHART), "-n", HOME)
    assert answer.code != 0
    assert "cannot be imported into the current release" in answer.error
    words = ("--take-ownership", *helm.forces)
    return helm.ok("install", "slacktide", str(CHART), "-n", HOME, *words, values={"classes": CLASSES})


@pytest.fixture(scope="module")
def scheduler(
    plane: ControlPlane, kubectl: Kubectl, taken_over: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """The command of the image with the settings and the rights of the release; only its address is this machine's."""
    assert "gold" in taken_over
    (container,) = kubectl.json("-n", HOME, "get", "deploy/slacktide")["spec"]["template"]["spec"]["containers"]
    command, option, path = container["args"]
    assert (command, option) == ("run", "--config")
    file = tmp_path_factory.mktemp("settings") / Path(path).name
    file.write_text(kubectl.json("-n", HOME, "get", "cm/slacktide")["data"][file.name])
    plane.create_nodes(2, cpu="2", labels={"node-restriction.kubernetes.io/slacktide": "true"})
    running = Running(plane, option, str(file), kube__http_access="delegated").wait_until_leading()
    yield running
    running.stop()
    assert not running.complaints()


def kept(kubectl: Kubectl, name: str, running: int) -> Json | None:
    """A workload's ledger once so many of its pods run and its promise is kept."""
    answer = kubectl("get", "avail", f"deployment-{name}", "-o", "json")
    if answer.code:
        return None
    status: Json = json.loads(answer.out)["status"]
    return status if (status["state"], status["running"]) == ("Kept", running) else None


def test_an_installation_is_taken_over_from_the_plain_manifests(kubectl: Kubectl, taken_over: str) -> None:
    assert "Classes: bronze, gold" in taken_over
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    mine = {
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/name": "slacktide",
        "app.kubernetes.io/instance": "slacktide",
        "helm.sh/chart": f"slacktide-{version}",
    }
    for name in ("deploy/slacktide", "cm/slacktide", "role/slacktide-leader", "pdb/slacktide"):
        assert kubectl.json("-n", HOME, "get", name)["metadata"]["labels"] == mine, name
    assert kubectl.json("get", "validatingadmissionpolicy/slacktide-class")["metadata"]["labels"] == mine
    # The namespace is not the chart's: it stays when the release goes.
    assert "managed-by" not in kubectl.ok("get", "namespace", HOME, "--show-labels")


def test_the_images_command_keeps_a_promise_under_the_rights_of_the_release(
    kubectl: Kubectl, scheduler: Running
) -> None:
    labels = {"slacktide.io/class": "gold"}
    kubectl.ok("apply", "-f", "-", stdin=deployment("web", 2, labels=labels, schedulerName="slacktide"))
    status = until(lambda: kept(kubectl, "web", 2), "the promise is kept")
    assert (status["class"], status["promised"]) == ("gold", 0.99)
    lease = kubectl.json("-n", HOME, "get", "lease/slacktide")
    assert lease["spec"]["holderIdentity"]
    assert scheduler.leads


def test_an_upgrade_with_other_values_changes_what_they_say(helm: Helm, kubectl: Kubectl, scheduler: Running) -> None:
    before = kubectl.json("-n", HOME, "get", "deploy/slacktide")["spec"]["template"]["metadata"]["annotations"]
    values = {"replicas": 3, "settings": {"policy": {"patience": 30}}}
    changed = {"classes": {"gold": CLASSES["gold"] | {"slo": 0.9}}}
    # What came from kubectl is Helm's for good once Helm has been told to take it.
    words = ("--reuse-values", *helm.forces)
    helm.ok("upgrade", "slacktide", str(CHART), "-n", HOME, *words, values=values | changed)
    after = kubectl.json("-n", HOME, "get", "deploy/slacktide")["spec"]
    assert after["replicas"] == 3
    assert after["template"]["metadata"]["annotations"]["slacktide.io/settings"] != before["slacktide.io/settings"]
    assert kubectl.json("get", "svcclass/gold")["spec"]["slo"] == 0.9
    assert kubectl.json("get", "svcclass/bronze")["spec"]["default"] is True

    def promised() -> bool:
        status = kept(kubectl, "web", 2)
        return status is not None and status["promised"] == 0.9

    until(promised, "the scheduler has heard of the new promise")
    assert scheduler.leads


def test_an_upgrade_is_refused_while_definitions_are_of_another_release(helm: Helm, kubectl: Kubectl) -> None:
    definition = "crd/serviceclasses.slacktide.io"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/hours"
    kubectl.ok("patch", definition, "--type=json", "-p", json.dumps([{"op": "remove", "path": path}]))
    upgrade = partial(helm, "upgrade", "slacktide", str(CHART), "-n", HOME, "--reuse-values")
    answer = upgrade()
    assert answer.code != 0
    assert "definitions of serviceclasses.slacktide.io are not those of this chart" in answer.error
    assert upgrade("--set=crds.check=false", "--dry-run=server").code == 0
    definitions = [one for one in yaml.safe_load_all(helm.ok("show", "crds", str(CHART))) if one]
    kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=definitions)
    answer = upgrade()
    assert answer.code == 0, answer.error


def _of_an_earlier_release(definition: Json) -> Json:
    """It had other words for what a class promises."""
    made: Json = copy.deepcopy(definition)
    if made["spec"]["names"]["kind"] == "ServiceClass":
        spec = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["slo"]["description"] = "As it was said before."
    return made


def test_ledgers_and_definitions_outlive_the_release(
    plane: ControlPlane, helm: Helm, kubectl: Kubectl, scheduler: Running
) -> None:
    until(lambda: kept(kubectl, "web", 2), "there is a ledger")
    scheduler.stop()
    helm.ok("uninstall", "slacktide", "-n", HOME, "--wait")
    gone = ("deploy/slacktide", "sa/slacktide", "cm/slacktide", "networkpolicy/slacktide")
    assert [name for name in gone if kubectl("-n", HOME, "get", name).code == 0] == []
    assert "slacktide" not in kubectl.ok("get", "clusterroles,validatingadmissionpolicies,flowschemas", "-o", "name")
    assert kubectl.json("get", "avail/deployment-web")["status"]["running"] == 2
    assert len(kubectl.ok("get", "crds", "-o", "name").split("slacktide.io")) == 6
    assert kubectl.ok("get", "pods", "-l", "app=web", "--no-headers").count("Running") == 2
    # Installed anew on what is left, which is of an earlier release here and kubectl's.
    definitions = [one for one in yaml.safe_load_all(helm.ok("show", "crds", str(CHART))) if one]
    bring = partial(kubectl.ok, "apply", "--server-side", "--force-conflicts", "-f", "-")
    bring(stdin=[_of_an_earlier_release(one) for one in definitions])
    install = partial(helm, "install", "slacktide", str(CHART), "-n", HOME, "--create-namespace")
    answer = install(values={"classes": CLASSES})
    assert answer.code != 0, "definitions that kubectl has applied were overwritten"
    assert ('conflict with "kubectl"' if helm.forces else "the cluster's definition") in answer.error
    bring(stdin=definitions)
    answer = install(values={"classes": CLASSES})
    assert answer.code == 0, answer.error
    plane.service_account_kubeconfig(*ACCOUNT)  # another account of the same name: its token is another one
    scheduler.restart()
    status = until(lambda: kept(kubectl, "web", 2), "the ledger goes on")
    assert status["promised"] in (0.9, 0.99)
