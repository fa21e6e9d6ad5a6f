"""What can be said of the manifests and of their examples without an API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import slacktide
from cluster.installation import EXAMPLES, MANIFESTS
from slacktide.cli.cluster.netprobe import netprobe
from slacktide.kube.mirror.watches import POLICIES
from slacktide.kube.resources import custom_resources
from slacktide.model import APPROACHES, service_class
from slacktide.netprobe.options import HTTP_PORT, PORT


def objects(folder: Path) -> list[dict[str, Any]]:
    """All objects of a folder's files, in the order in which kubectl applies them."""
    found: list[dict[str, Any]] = []
    for file in sorted(folder.glob("*.yaml")):
        found += [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]
    return found


def one(kind: str, name: str, folder: Path = MANIFESTS) -> dict[str, Any]:
    """The object of a kind and a name; exactly one."""
    (found,) = [o for o in objects(folder) if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def schema(name: str) -> dict[str, Any]:
    """The schema of a custom resource's version that is stored."""
    (version,) = [version for version in versions(name) if version["storage"]]
    return dict(version["schema"]["openAPIV3Schema"]["properties"])


def versions(name: str) -> list[dict[str, Any]]:
    """The versions of a custom resource."""
    return list(one("CustomResourceDefinition", f"{name}.slacktide.io")["spec"]["versions"])


def described(properties: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Every field below, by its path, and its description."""
    for name, field in properties.items():
        yield f"{path}.{name}", field.get("description", "")
        yield from described(field.get("properties", {}), f"{path}.{name}")
        yield from described(field.get("items", {}).get("properties", {}), f"{path}.{name}[]")


def pod_template(workload: dict[str, Any]) -> dict[str, Any]:
    """The pod template of a Deployment, StatefulSet, Job or CronJob."""
    spec = workload["spec"]
    return dict(spec["jobTemplate"]["spec"]["template"] if workload["kind"] == "CronJob" else spec["template"])


def rules() -> list[dict[str, Any]]:
    """All rules of all roles."""
    return [rule for o in objects(MANIFESTS) if o["kind"] in ("Role", "ClusterRole") for rule in o.get("rules", [])]


@pytest.mark.parametrize("folder", [MANIFESTS, EXAMPLES], ids=["manifests", "examples"])
def test_no_object_stands_twice(folder: Path) -> None:
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects(folder)]
    assert len(names) > 5
    assert len(names) == len(set(names))


def test_files_are_applied_in_the_order_of_their_needs() -> None:
    kinds = [o["kind"] for o in objects(MANIFESTS)]
    assert kinds[:3] == ["CustomResourceDefinition"] * 3
    assert kinds.index("Namespace") < min(kinds.index(kind) for kind in ("ServiceAccount", "Role", "Deployment"))


def test_no_right_is_a_wildcard_or_reaches_secrets_or_deletes_but_ledgers_and_claims_on_devices() -> None:
    assert rules()
    for rule in rules():
        assert not any("*" in word for words in rule.values() for word in words), rule
        assert not {"secrets", "configmaps", "nodes/proxy", "pods/exec"} & set(rule.get("resources", ())), rule
        assert not {"deletecollection", "escalate", "bind", "impersonate"} & set(rule["verbs"]), rule
        assert "delete" not in rule["verbs"] or rule["resources"] in (["availabilities"], ["resourceclaims"]), rule
        assert rule["verbs"] == ["get"] or "nonResourceURLs" not in rule, rule


def test_single_objects_are_read_only_of_kinds_of_which_one_is_asked_for() -> None:
    """All others are listed and watched: who has the scheduler's token needs no object's name to begin with."""
    scheduler = one("ClusterRole", "slacktide-scheduler")
    reading = [rule for rule in scheduler["rules"] if "get" in rule["verbs"]]
    read = {name for rule in reading if "resourceNames" not in rule for name in rule["resources"]}
    assert read == {"pods", "resourceclaims", "availabilities"}
    (by_name,) = (rule for rule in reading if "resourceNames" in rule)
    assert by_name["verbs"] == ["get"]
    assert set(by_name["resourceNames"]) == {f"slacktide-{name}" for name in POLICIES}


FOR_PEOPLE = {"slacktide-view", "slacktide-metrics-reader", "slacktide-explain-reader"}
"""Roles that whoever runs the cluster binds, or that are part of the cluster's own."""
OF_THE_CLUSTER = "extension-apiserver-authentication-reader"
"""The cluster's own role to read by which authorities client certificates are known."""


def test_every_role_is_bound_to_the_service_account_and_to_nobody_else() -> None:
    bindings = [o for o in objects(MANIFESTS) if o["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    account = {"kind": "ServiceAccount", "name": "slacktide", "namespace": "slacktide-system"}
    assert all(binding["subjects"] == [account] for binding in bindings)
    roles = {
        o["metadata"]["name"] for o in objects(MANIFESTS) if o["kind"] in ("Role", "ClusterRole") and o.get("rules")
    }
    assert {binding["roleRef"]["name"] for binding in bindings} == (roles - FOR_PEOPLE) | {OF_THE_CLUSTER}


def test_each_page_that_asks_who_asks_is_in_a_role_for_people() -> None:
    pages = {path for rule in rules() for path in rule.get("nonResourceURLs", ())}
    assert pages == {"/metrics", "/explain", "/view", "/report", "/configz"}


@pytest.mark.parametrize("name", ["serviceclasses", "availabilities", "nodelatencies", "promisequotas"])
def test_every_field_is_described(name: str) -> None:
    fields = dict(described(schema(name)))
    assert len(fields) > 10
    bare = [path for path, text in fields.items() if not text.endswith(".")]
    assert bare == [".apiVersion", ".kind", ".metadata"]  # kubectl knows these
    assert max(map(len, fields.values())) < 400


def test_what_a_class_leaves_out_is_what_the_simulator_takes() -> None:
    properties = schema("serviceclasses")["spec"]["properties"]
    simple = service_class.ServiceClass("simple", 0.9, 1)
    assert properties["marginSeconds"]["default"] == simple.margin
    assert "default" not in properties["tiers"]  # it depends on the slo
    assert set(properties["approach"]["enum"]) == set(APPROACHES)
    assert properties["approach"]["default"] == "independent"
    assert properties["counts"]["default"] == custom_resources.ServiceClassSpec(0.9, 1).counts


def test_the_scheduler_reads_and_writes_the_fields_that_are_declared() -> None:
    def fields(type_: type) -> set[str]:
        return {field.encode_name for field in msgspec.structs.fields(type_)}

    spec = schema("serviceclasses")["spec"]["properties"]
    assert fields(custom_resources.ServiceClassSpec) == set(spec)
    assert fields(custom_resources.Tier) == set(spec["tiers"]["items"]["properties"])
    assert fields(custom_resources.WindowSpec) == set(spec["window"]["properties"])
    assert fields(custom_resources.DisruptionsSpec) == set(spec["disruptions"]["properties"])
    assert fields(custom_resources.PreemptionLimitSpec) == set(spec["preemptionLimit"]["properties"])
    assert fields(custom_resources.HoursSpec) == set(spec["hours"]["items"]["properties"])
    assert fields(custom_resources.AvailabilityStatus) <= set(schema("availabilities")["status"]["properties"])
    row = schema("nodelatencies")["status"]["properties"]
    assert fields(custom_resources.NodeLatencyStatus) == set(row)
    assert fields(custom_resources.PeerLatency) == set(row["peers"]["items"]["properties"])
    assert fields(custom_resources.CoordinateStatus) == set(row["coordinate"]["properties"])


def test_the_deployment_asks_for_no_privilege() -> None:
    deployment = one("Deployment", "slacktide")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 2
    assert pod["serviceAccountName"] == "slacktide"
    assert pod["schedulerName"] == "default-scheduler"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert {"requests", "limits"} <= set(container["resources"])


def test_the_deployment_reads_the_config_map_and_is_probed_where_it_listens() -> None:
    pod = one("Deployment", "slacktide")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command, option, path = container["args"]
    assert (command, option) == ("run", "--config")
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    folder, _, file = path.rpartition("/")
    name = volumes[mounts[folder]]["configMap"]["name"]
    settings = yaml.safe_load(one("ConfigMap", name)["data"][file])
    assert settings["kube"]["scheduler_name"] == "slacktide"
    assert settings["kube"]["leader_election"] is True
    (port,) = container["ports"]
    assert settings["kube"]["listen"] == f"0.0.0.0:{port['containerPort']}"
    probes = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startupProbe": "/livez",
        "livenessProbe": "/livez",
        "readinessProbe": "/readyz",
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}


def test_the_image_is_of_this_version() -> None:
    (container,) = one("Deployment", "slacktide")["spec"]["template"]["spec"]["containers"]
    assert container["image"].rpartition(":")[2] == slacktide.__version__


def test_both_policies_look_at_the_same_workloads_in_the_same_way() -> None:
    by_class, by_annotation = (
        one("ValidatingAdmissionPolicy", name)["spec"] for name in ("slacktide-class", "slacktide-annotations")
    )
    assert by_class["matchConstraints"] == by_annotation["matchConstraints"]
    first, second = ({v["name"]: v["expression"] for v in spec["variables"]} for spec in (by_class, by_annotation))
    shared = set(first) & set(second)
    assert {"schedulers", "template", "before", "checked", "slo", "isNumber"} <= shared
    assert all(first[name] == second[name] for name in shared)


def test_policies_with_parameters_never_stop_a_cluster() -> None:
    policies = [o["spec"] for o in objects(MANIFESTS) if o["kind"] == "ValidatingAdmissionPolicy"]
    assert {"paramKind" in spec: spec["failurePolicy"] for spec in policies} == {True: "Ignore", False: "Fail"}


def test_the_examples_use_the_classes_that_they_bring() -> None:
    classes = {o["metadata"]["name"]: o["spec"] for o in objects(EXAMPLES) if o["kind"] == "ServiceClass"}
    assert {name: (spec["slo"], spec["rank"]) for name, spec in classes.items()} == {
        "gold": (0.999, 1),
        "silver": (0.95, 2),
        "bronze": (0.5, 3),
    }
    assert [name for name, spec in classes.items() if spec.get("default")] == ["bronze"]
    workloads = [o for o in objects(EXAMPLES) if o["kind"] != "ServiceClass"]
    assert {o["kind"] for o in workloads} == {"Deployment", "StatefulSet", "Job", "CronJob"}
    named = set()
    for workload in workloads:
        template = pod_template(workload)
        assert template["spec"]["schedulerName"] == "slacktide"
        named.add(template.get("metadata", {}).get("labels", {}).get("slacktide.io/class"))
    assert named == {*classes, None}


# The agents that measure round-trip times: a folder of their own, which may be left out.

AGENTS = MANIFESTS / "netprobe"


def test_the_agents_are_not_applied_with_the_scheduler() -> None:
    assert not [o for o in objects(MANIFESTS) if o["kind"] == "DaemonSet"]
    kinds = [o["kind"] for o in objects(AGENTS)]
    assert kinds[0] == "Namespace"
    assert kinds.count("DaemonSet") == 1
    # Their resource comes with the scheduler's, which reads it.
    assert "CustomResourceDefinition" not in kinds


def test_an_agent_may_read_rows_and_a_node_and_write_rows() -> None:
    (role,) = [o for o in objects(AGENTS) if o["kind"] in ("Role", "ClusterRole")]
    assert role["rules"] == [
        {
            "apiGroups": ["slacktide.io"],
            "resources": ["nodelatencies"],
            "verbs": ["get", "list", "watch", "create", "patch"],
        },
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]
    (binding,) = [o for o in objects(AGENTS) if o["kind"] in ("RoleBinding", "ClusterRoleBinding")]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    name = "slacktide-netprobe"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": name}]


def test_the_policy_that_guards_rows_is_of_the_account_that_the_agents_have() -> None:
    policy = one("ValidatingAdmissionPolicy", "slacktide-netprobe", AGENTS)["spec"]
    pod = one("DaemonSet", "slacktide-netprobe", AGENTS)
    account = (
        f"system:serviceaccount:{pod['metadata']['namespace']}:{pod['spec']['template']['spec']['serviceAccountName']}"
    )
    assert f"'{account}'" in policy["matchConditions"][0]["expression"]
    assert policy["failurePolicy"] == "Fail"
    (binding,) = [o for o in objects(AGENTS) if o["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert binding["spec"]["policyName"] == "slacktide-netprobe"
    assert binding["spec"]["validationActions"] == ["Deny"]


def test_an_agent_shares_its_nodes_network_and_asks_for_no_other_privilege() -> None:
    pod = one("DaemonSet", "slacktide-netprobe", AGENTS)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["hostNetwork"] is True
    assert not {"hostPID", "hostIPC"} & set(pod)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [list(volume) for volume in pod["volumes"]] == [["name", "secret"]]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert container["image"].rpartition(":")[2] == slacktide.__version__


def test_an_agents_words_are_the_programs_and_its_ports_the_defaults() -> None:
    pod = one("DaemonSet", "slacktide-netprobe", AGENTS)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    context = netprobe.commands["run"].make_context("run", container["args"][2:])
    assert container["args"][:2] == ["netprobe", "run"]
    assert context.params["node"] == "$(NODE_NAME)"
    assert [env["name"] for env in container["env"]] == ["NODE_NAME"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert str(context.params["key_file"].parent) in mounted
    (port,) = container["ports"]
    assert context.params["bind"].endswith(f":{port['containerPort']}")
    assert port == {"name": "probes", "containerPort": PORT, "hostPort": PORT, "protocol": "UDP"}
    for probe, path in {"livenessProbe": "/livez", "readinessProbe": "/readyz"}.items():
        asked = container[probe]["httpGet"]
        assert asked == {"host": "127.0.0.1", "path": path, "port": HTTP_PORT}
        assert context.params["listen"] == f"{asked['host']}:{asked['port']}"
