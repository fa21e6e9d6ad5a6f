"""What the scheduler's account may do on a real API server: what it needs, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus

import pytest

from cluster.installation import alone, as_scheduler, installed
from cluster.kubectl import Json, Kubectl
from cluster.labtools import until
from cluster.workloads import workload
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.kube.mirror.watches import POLICIES
from slacktide.lab import Api, ApiError, Binaries, ControlPlane

Right = tuple[str, str, str, str, str]
READ = ("get", "list", "watch")
WATCHED = ("list", "watch")
GROUP = "slacktide.io"
# Group, resource (with its subresource) and verbs, in all namespaces.
EVERYWHERE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): READ,
    ("", "nodes"): WATCHED,
    ("", "namespaces"): WATCHED,
    ("", "services"): WATCHED,
    ("", "replicationcontrollers"): WATCHED,
    ("", "persistentvolumes"): (*WATCHED, "patch"),
    ("", "persistentvolumeclaims"): (*WATCHED, "patch"),
    ("", "pods/binding"): ("create",),
    ("", "pods/eviction"): ("create",),
    ("", "pods/status"): ("patch",),
    ("", "events"): ("create", "patch"),
    ("authentication.k8s.io", "tokenreviews"): ("create",),
    ("authorization.k8s.io", "subjectaccessreviews"): ("create",),
    ("apps", "deployments"): WATCHED,
    ("apps", "replicasets"): WATCHED,
    ("apps", "statefulsets"): WATCHED,
    ("batch", "jobs"): WATCHED,
    ("batch", "cronjobs"): WATCHED,
    ("policy", "poddisruptionbudgets"): WATCHED,
    ("storage.k8s.io", "storageclasses"): WATCHED,
    ("storage.k8s.io", "csinodes"): WATCHED,
    ("storage.k8s.io", "csidrivers"): WATCHED,
    ("storage.k8s.io", "csistoragecapacities"): WATCHED,
    ("storage.k8s.io", "volumeattachments"): WATCHED,
    ("resource.k8s.io", "deviceclasses"): WATCHED,
    ("resource.k8s.io", "devicetaintrules"): WATCHED,
    ("resource.k8s.io", "resourceslices"): WATCHED,
    ("resource.k8s.io", "resourceclaims"): (*READ, "patch", "create", "delete"),
    ("resource.k8s.io", "resourceclaims/status"): ("patch",),
    ("resource.k8s.io", "resourceclaims/binding"): ("patch",),
    ("scheduling.k8s.io", "podgroups"): WATCHED,
    ("scheduling.k8s.io", "podgroups/status"): ("patch",),
    ("scheduling.k8s.io", "workloads"): WATCHED,
    ("scheduling.x-k8s.io", "podgroups"): WATCHED,
    (GROUP, "serviceclasses"): WATCHED,
    (GROUP, "nodelatencies"): WATCHED,
    (GROUP, "maintenancewindows"): WATCHED,
    (GROUP, "promisequotas"): WATCHED,
    (GROUP, "promisequotas/status"): ("patch",),
    (GROUP, "availabilities"): ("get", "list", "create", "patch", "delete"),
}
HOME = "slacktide-system"
DENIED: list[Right] = [
    ("", "secrets", "get", "default", ""),
    ("", "secrets", "list", HOME, ""),
    ("", "configmaps", "get", HOME, "slacktide"),
    ("", "configmaps", "get", "kube-system", "kube-root-ca.crt"),
    ("", "configmaps", "list", "kube-system", ""),
    ("", "configmaps", "patch", "kube-system", "extension-apiserver-authentication"),
    ("", "pods", "create", "default", ""),
    ("", "pods", "delete", "default", ""),
    ("", "pods", "update", "default", ""),
    ("", "pods", "patch", "default", ""),
    ("", "pods/exec", "create", "default", ""),
    ("", "pods/log", "get", "default", ""),
    ("", "nodes", "get", "", "a"),
    ("apps", "deployments", "get", "default", "web"),
    ("resource.k8s.io", "resourceslices", "get", "", "s"),
    (GROUP, "serviceclasses", "get", "", "gold"),
    ("", "nodes", "patch", "", ""),
    ("", "nodes/status", "patch", "", ""),
    ("", "nodes/proxy", "get", "", ""),
    ("", "namespaces", "patch", "", ""),
    ("", "serviceaccounts/token", "create", HOME, "slacktide"),
    ("", "persistentvolumes", "delete", "", ""),
    ("", "persistentvolumes", "create", "", ""),
    ("storage.k8s.io", "volumeattachments", "patch", "", ""),
    ("", "persistentvolumeclaims", "delete", "default", ""),
    ("resource.k8s.io", "resourceclaims", "update", "default", ""),
    ("resource.k8s.io", "resourceclaims", "deletecollection", "default", ""),
    ("resource.k8s.io", "resourceclaims/driver", "patch", "default", ""),
    ("resource.k8s.io", "resourceslices", "patch", "", ""),
    ("apps", "deployments", "patch", "default", ""),
    ("apps", "deployments/scale", "patch", "default", ""),
    ("batch", "jobs", "delete", "default", ""),
    ("policy", "poddisruptionbudgets", "patch", "default", ""),
    (GROUP, "serviceclasses", "patch", "", ""),
    (GROUP, "nodelatencies", "create", "", ""),
    (GROUP, "nodelatencies", "patch", "", ""),
    (GROUP, "availabilities", "watch", "default", ""),
    (GROUP, "maintenancewindows", "patch", "", ""),
    (GROUP, "promisequotas", "create", "default", ""),
    (GROUP, "promisequotas", "patch", "default", ""),
    (GROUP, "promisequotas", "delete", "default", ""),
    ("coordination.k8s.io", "leases", "create", "default", ""),
    ("coordination.k8s.io", "leases", "get", HOME, "another"),
    ("coordination.k8s.io", "leases", "update", HOME, "another"),
    ("coordination.k8s.io", "leases", "delete", HOME, "slacktide"),
    ("coordination.k8s.io", "leases", "update", "kube-system", "kube-scheduler"),
    ("rbac.authorization.k8s.io", "clusterroles", "create", "", ""),
    ("rbac.authorization.k8s.io", "clusterroles", "escalate", "", ""),
    ("apiextensions.k8s.io", "customresourcedefinitions", "get", "", ""),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "get", "", "another"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "patch", "", "slacktide-class"),
    ("example.com", "rollouts", "get", "default", ""),
]
POLICY_NAMES = tuple(f"slacktide-{name}" for name in POLICIES)
BY_NAME = [
    ("admissionregistration.k8s.io", plural, "get", POLICY_NAMES)
    for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
]
"""Rights to single objects of the whole cluster."""
ALLOWED_AT_HOME = [("create", ""), ("get", "slacktide"), ("update", "slacktide")]


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of this module's own."""
    yield from alone(binaries, tmp_path_factory.mktemp("plane"))


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    """An administrator on a cluster with our manifests."""
    return installed(plane, binaries)


@pytest.fixture(scope="module")
def administrator(plane: ControlPlane, kubectl: Kubectl) -> Api:
    """All rights, after the manifests were applied."""
    assert kubectl.ok("get", "clusterrole", "slacktide-scheduler")
    return plane.api


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, kubectl: Kubectl) -> Api:
    """The scheduler's own account, by a real token."""
    assert kubectl.ok("-n", HOME, "get", "serviceaccount", "slacktide")
    return as_scheduler(plane)


def account(plane: ControlPlane, namespace: str, name: str) -> Api:
    """A ServiceAccount of that name, made if there is none."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    with suppress(ApiError):
        plane.api.post(path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    return Api(plane.url, plane.service_account_token(namespace, name), plane.ca_file)


def may(user: Api, asked: list[Right]) -> list[bool]:
    """Whether a user may do each (group, resource, verb, namespace, name), as the API server says."""

    def review(group: str, resource: str, verb: str, namespace: str, name: str) -> Json:
        resource, _, sub = resource.partition("/")
        what = {"group": group, "resource": resource, "subresource": sub, "verb": verb, "namespace": namespace}
        spec = {"resourceAttributes": what | {"name": name}}
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}

    reviews = [review(*one) for one in asked]
    answers = user.create_all("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", reviews, concurrent=4)
    return [one["status"]["allowed"] for one in answers]


def rules(user: Api, namespace: str) -> set[tuple[str, str, str, tuple[str, ...]]]:
    """Every (group, resource, verb, names) a user may in a namespace, as the API server says."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    status = user.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)["status"]
    assert status["incomplete"] is False
    return {
        (group, resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in status["resourceRules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def refused(user: Api, method: str, path: str, body: Json | None = None) -> bool:
    """Whether an account is told that it may not do this."""
    with pytest.raises(ApiError) as refusal:
        user.request(method, path, body)
    return refusal.value.status == HTTPStatus.FORBIDDEN


def test_what_the_scheduler_needs_is_allowed(scheduler: Api) -> None:
    asked: list[Right] = [
        (group, resource, verb, "default", "") for (group, resource), verbs in EVERYWHERE.items() for verb in verbs
    ]
    asked += [("coordination.k8s.io", "leases", verb, HOME, name) for verb, name in ALLOWED_AT_HOME]
    assert [one for one, allowed in zip(asked, may(scheduler, asked), strict=True) if not allowed] == []


def test_what_it_does_not_need_is_denied(scheduler: Api) -> None:
    assert [one for one, allowed in zip(DENIED, may(scheduler, DENIED), strict=True) if allowed] == []


def test_its_rights_are_these_and_no_others(plane: ControlPlane, scheduler: Api) -> None:
    stranger = account(plane, "default", "stranger")
    expected = {(*what, verb, ()) for what, verbs in EVERYWHERE.items() for verb in verbs} | set(BY_NAME)
    assert rules(scheduler, "default") - rules(stranger, "default") == expected
    leases = {("coordination.k8s.io", "leases", verb, (name,) if name else ()) for verb, name in ALLOWED_AT_HOME}
    assert rules(scheduler, HOME) - rules(stranger, HOME) == expected | leases
    authorities = {("", "configmaps", verb, ("extension-apiserver-authentication",)) for verb in READ}
    assert rules(scheduler, "kube-system") - rules(stranger, "kube-system") == expected | authorities


def test_nobody_else_in_its_namespace_gets_a_right(plane: ControlPlane, scheduler: Api) -> None:
    asked: list[Right] = [("", "pods", "list", HOME, ""), (GROUP, "availabilities", "list", HOME, "")]
    assert may(scheduler, asked) == [True, True]
    assert may(account(plane, HOME, "other"), asked) == [False, False]


def test_who_may_view_a_namespace_sees_its_ledger_and_cannot_write_it(plane: ControlPlane, kubectl: Kubectl) -> None:
    viewer = account(plane, "default", "viewer")
    see: list[Right] = [(GROUP, "availabilities", "list", "default", "")]
    try:
        kubectl.ok("create", "rolebinding", "viewer", "--clusterrole=view", "--serviceaccount=default:viewer")
        until(lambda: may(viewer, see) == [True], "the role view sees the ledger")
        asked: list[Right] = [(GROUP, "availabilities", verb, "default", "") for verb in ("create", "patch", "delete")]
        assert may(viewer, [*asked, (GROUP, "availabilities", "list", HOME, "")]) == [False] * 4
    finally:
        kubectl.ok("delete", "rolebinding", "viewer", "--ignore-not-found")


def test_who_administers_a_namespace_sees_its_quotas_and_writes_none(plane: ControlPlane, kubectl: Kubectl) -> None:
    owner = account(plane, "default", "owner")
    see: list[Right] = [(GROUP, "promisequotas", "list", "default", "")]
    try:
        kubectl.ok("create", "rolebinding", "owner", "--clusterrole=admin", "--serviceaccount=default:owner")
        until(lambda: may(owner, see) == [True], "the role admin sees quotas")
        writes: list[Right] = [
            (GROUP, "promisequotas", verb, "default", "") for verb in ("create", "update", "patch", "delete")
        ]
        assert may(owner, writes) == [False] * 4
        assert may(owner, [("", "pods", "create", "default", "")]) == [True]
    finally:
        kubectl.ok("delete", "rolebinding", "owner", "--ignore-not-found")


# The same once more by doing it.


PODS = "/api/v1/namespaces/default/pods"
LEDGERS = "/apis/slacktide.io/v1beta1/namespaces/default/availabilities"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"


@pytest.fixture
def pod(administrator: Api) -> Iterator[Json]:
    """A waiting pod, and a node for it."""
    administrator.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "rights"}})
    item = workload("Pod", name="rights", service_class="silver", terminationGracePeriodSeconds=0)
    yield administrator.post(PODS, item)
    for path in (f"{PODS}/rights", "/api/v1/nodes/rights"):
        with suppress(ApiError):
            administrator.delete(path, 0)


def gone(user: Api, path: str) -> bool:
    """Whether there is nothing any more."""
    try:
        user.get(path)
    except ApiError as error:
        return error.status == HTTPStatus.NOT_FOUND
    return False


def keeps_events(scheduler: Api, administrator: Api, pod: Json) -> None:
    path = "/api/v1/namespaces/default/events"
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "rights", "uid": pod["metadata"]["uid"]}
    event: Json = {"metadata": {"name": "rights.1"}, "reason": "Scheduled", "type": "Normal"}
    event |= {"apiVersion": "v1", "kind": "Event", "involvedObject": about}
    again: Json = {"count": 2}
    try:
        scheduler.post(path, event)
        scheduler.patch(f"{path}/rights.1", again)
        assert refused(scheduler, "DELETE", f"{path}/rights.1")
    finally:
        administrator.delete(f"{path}/rights.1")


def leads_by_one_lease(scheduler: Api, administrator: Api) -> None:
    lease: Json = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "slacktide"}}
    try:
        held = scheduler.post(LEASES, lease | {"spec": {"holderIdentity": "one"}})
        held["spec"]["holderIdentity"] = "two"
        assert scheduler.put(f"{LEASES}/slacktide", held)["spec"]["holderIdentity"] == "two"
        assert refused(scheduler, "GET", f"{LEASES}/another")
        assert refused(scheduler, "POST", LEASES.replace(HOME, "default"), lease)
    finally:
        administrator.delete(f"{LEASES}/slacktide")


def marks_binds_and_evicts(scheduler: Api, pod: Json) -> None:
    """A pod whose ledger it keeps meanwhile, and forgets."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "rights", "uid": pod["metadata"]["uid"]}
    ledger = {
        "apiVersion": "slacktide.io/v1beta1",
        "kind": "Availability",
        "metadata": {"name": "rights", "ownerReferences": [owner | {"blockOwnerDeletion": False}]},
        "status": {"class": "silver", "state": "Kept", "running": 0},
    }
    scheduler.post(LEDGERS, ledger)
    status = scheduler.patch(f"{LEDGERS}/rights", {"status": {"running": 1}})["status"]
    assert (status["running"], status["class"]) == (1, "silver")
    path = f"{PODS}/rights"
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }
    said = {"conditions": [condition], "nominatedNodeName": "rights"}
    marked = scheduler.patch(f"{path}/status", {"status": said}, STRATEGIC)
    assert marked["status"]["nominatedNodeName"] == "rights"
    metadata = {"name": "rights", "uid": pod["metadata"]["uid"]}
    target = {"apiVersion": "v1", "kind": "Node", "name": "rights"}
    scheduler.post(f"{path}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
    assert scheduler.get(path)["spec"]["nodeName"] == "rights"
    assert refused(scheduler, "DELETE", path)
    scheduler.post(f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "rights"}})
    until(lambda: gone(scheduler, path), "the pod was deleted")
    scheduler.delete(f"{LEDGERS}/rights")
    assert gone(scheduler, f"{LEDGERS}/rights")


def test_the_scheduler_does_what_it_has_to_and_no_more(scheduler: Api, administrator: Api, pod: Json) -> None:
    keeps_events(scheduler, administrator, pod)
    leads_by_one_lease(scheduler, administrator)
    marks_binds_and_evicts(scheduler, pod)
