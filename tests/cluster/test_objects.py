"""What a real API server says becomes the same in our structures, and what we send is accepted by it."""

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kube.test_objects import NODE_TERM, SPEC, well_formed
from slacktide.kube.act.nomination_writer import managers_of
from slacktide.kube.client.credentials import Access, load_access
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH, ApiError, Connection
from slacktide.kube.client.kinds import Kind
from slacktide.kube.resources.objects import (
    DEPLOYMENT,
    JOB,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    STORAGE_CLASS,
    Condition,
    Instant,
    Pod,
    Requirement,
    encode_annotations,
    encode_binding,
    encode_eviction,
    encode_pod_status,
)
from slacktide.lab import ControlPlane

SIMPLE = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


def fresh(prefix: str = "o") -> str:
    return f"{prefix}{uuid.uuid4().hex[:10]}"


def with_connection(access: Access, play: Callable[[Connection], Any]) -> None:
    async def run() -> None:
        async with Connection(access) as connection:
            await play(connection)

    asyncio.run(run())


async def create(connection: Connection, kind: Kind[Any], body: dict[str, Any], namespace: str = "") -> Any:
    return well_formed(kind.decode(await connection.post(kind.path(namespace), json.dumps(body).encode())))


async def read_pod(connection: Connection, pod: Pod) -> Pod:
    found: Pod = well_formed(POD.decode(await connection.get(POD.path(pod.metadata.namespace, pod.metadata.name))))
    return found


def test_a_pod_with_everything_comes_back_whole(access: Access) -> None:
    async def play(connection: Connection) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u-1", "controller": True}
        metadata = {"name": fresh(), "labels": {"a": "b"}, "annotations": {"c": "d"}, "ownerReferences": [owner]}
        before = time.time()
        # Pods of the system's priority classes may only be in the system's namespace.
        pod: Pod = await create(connection, POD, {"metadata": metadata, "spec": SPEC}, "kube-system")
        spec = pod.spec
        assert (pod.metadata.labels, pod.metadata.annotations) == ({"a": "b"}, {"c": "d"})
        assert pod.metadata.creation_timestamp is not None
        assert int(before) <= pod.metadata.creation_timestamp <= time.time()
        assert pod.metadata.deletion_timestamp is None
        assert [(o.kind, o.name, o.uid, o.controller) for o in pod.metadata.owner_references] == [
            ("ReplicaSet", "r", "u-1", True)
        ]
        assert (spec.node_name, spec.scheduler_name, spec.priority) == ("", "nobody", 2000001000)
        assert (spec.priority_class_name, spec.preemption_policy) == ("system-node-critical", "PreemptLowerPriority")
        assert (spec.termination_grace_period_seconds, spec.host_network) == (7, True)
        assert spec.node_selector == {"disk": "ssd"}
        assert ("k", "Equal", "v", "NoExecute") in [(t.key, t.operator, t.value, t.effect) for t in spec.tolerations]
        assert [gate.name for gate in spec.scheduling_gates] == ["example.com/wait"]
        assert_volumes_and_containers(pod)
        assert_affinities(pod)
        assert pod.status.phase == "Pending"
        gated = next(c for c in pod.status.conditions if c.type == "PodScheduled")
        assert (gated.status, gated.reason) == ("False", "SchedulingGated")
        with contextlib.suppress(ApiError):  # the garbage collector may have been faster: it has no such owner
            await connection.delete(POD.path("kube-system", pod.metadata.name), b'{"gracePeriodSeconds":0}')

    with_connection(access, play)


def assert_volumes_and_containers(pod: Pod) -> None:
    claimed, made, scratch = pod.spec.volumes
    assert claimed.persistent_volume_claim is not None
    assert claimed.persistent_volume_claim.claim_name == "c1"
    assert (made.name, made.ephemeral is not None, scratch.ephemeral) == ("made", True, None)
    sidecar, main = pod.spec.init_containers[0], pod.spec.containers[0]
    assert sidecar.restart_policy == "Always"
    assert sidecar.resources is not None
    assert sidecar.resources.requests == {"cpu": "50m"}
    assert main.resources is not None
    assert main.resources.requests == {"cpu": "1500m", "memory": "1Gi"}
    assert main.resources.limits == {"memory": "2Gi"}
    assert [(p.host_port, p.protocol, p.host_ip) for p in main.ports] == [(8080, "UDP", "127.0.0.1")]


def assert_affinities(pod: Pod) -> None:
    affinity = pod.spec.affinity
    assert affinity is not None
    nodes, near, away = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    assert nodes is not None
    assert nodes.required is not None
    term = nodes.required.node_selector_terms[0]
    assert term.match_expressions == (Requirement("disk", "NotIn", ("hdd",)),)
    assert term.match_fields == (Requirement("metadata.name", "In", ("n1",)),)
    assert [(p.weight, p.preference) for p in nodes.preferred] == [(9, term)]
    assert near is not None
    assert away is not None
    required = near.required[0]
    assert required.topology_key == "topology.kubernetes.io/zone"
    assert required.label_selector is not None
    assert required.label_selector.match_labels == {"app": "web"}
    assert Requirement("tier", "In", ("a", "b")) in required.label_selector.match_expressions
    assert required.namespaces == ("one",)
    assert required.namespace_selector is not None, "an empty selector selects everything, an absent one nothing"
    assert required.match_label_keys == ("pod-template-hash",)
    assert (away.required, away.preferred[0].weight) == ((), 5)
    (spread,) = pod.spec.topology_spread_constraints
    assert (spread.max_skew, spread.when_unsatisfiable, spread.min_domains) == (2, "DoNotSchedule", 3)
    assert (spread.node_affinity_policy, spread.node_taints_policy) == ("Ignore", "Honor")
    assert spread.label_selector is not None
    assert spread.label_selector.match_labels == {"app": "web"}
    assert spread.match_label_keys == ("pod-template-hash",)


def nodes_and_priorities(access: Access) -> None:
    async def play(connection: Connection) -> None:
        name = fresh()
        taints = [{"key": "slacktide.io/only", "effect": "NoSchedule"}]
        node = await create(
            connection, NODE, {"metadata": {"name": name}, "spec": {"taints": taints, "unschedulable": True}}
        )
        assert ("slacktide.io/only", "NoSchedule", "") in [(t.key, t.effect, t.value) for t in node.spec.taints]
        assert node.spec.unschedulable
        status = {
            "status": {"allocatable": {"cpu": "4", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}
        }
        answer = await connection.patch(NODE.path(name=name, sub="status"), json.dumps(status).encode())
        node = well_formed(NODE.decode(answer))
        assert node.status.allocatable.items() >= {"cpu": "4", "pods": "110"}.items()
        assert ("Ready", "True") in [(c.type, c.status) for c in node.status.conditions]
        await connection.delete(NODE.path(name=name))

    with_connection(access, play)


def volumes_and_their_classes(access: Access) -> None:
    async def play(connection: Connection) -> None:
        name = fresh()
        terms = [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]
        storage = await create(
            connection,
            STORAGE_CLASS,
            {
                "metadata": {"name": name},
                "provisioner": "p",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": terms,
            },
        )
        assert (storage.provisioner, storage.volume_binding_mode) == ("p", "WaitForFirstConsumer")
        assert storage.allowed_topologies[0].match_label_expressions[0].values == ("a",)
        spec = {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": name,
            "csi": {"driver": "d.example.com", "volumeHandle": "h"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
        }
        volume = await create(connection, PERSISTENT_VOLUME, {"metadata": {"name": name}, "spec": spec})
        assert (volume.spec.capacity, volume.spec.access_modes) == ({"storage": "5Gi"}, ("ReadWriteOncePod",))
        assert volume.spec.claim_ref is None
        assert volume.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].key == "disk"
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
        claim = await create(connection, PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": spec}, "default")
        assert (claim.spec.storage_class_name, claim.spec.volume_name, claim.status.phase) == ("", "", "Pending")
        assert claim.spec.resources.requests == {"storage": "1Gi"}
        await connection.delete(PERSISTENT_VOLUME_CLAIM.path("default", name))
        await connection.delete(PERSISTENT_VOLUME.path(name=name))
        await connection.delete(STORAGE_CLASS.path(name=name))

    with_connection(access, play)


def controllers_and_budgets(access: Access) -> None:
    async def play(connection: Connection) -> None:
        name = fresh()
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        selector = {"matchLabels": {"app": name}}
        spec: dict[str, Any] = {"replicas": 0, "selector": selector, "template": template}
        deployment = await create(connection, DEPLOYMENT, {"metadata": {"name": name}, "spec": spec}, "default")
        assert (deployment.spec.replicas, deployment.spec.selector.match_labels) == (0, {"app": name})
        template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
        spec = {"parallelism": 2, "completions": 5, "suspend": True, "template": template}
        job = await create(connection, JOB, {"metadata": {"name": name}, "spec": spec}, "default")
        assert (job.spec.parallelism, job.spec.completions) == (2, 5)
        spec = {"selector": selector, "maxUnavailable": "20%"}
        budget = await create(connection, POD_DISRUPTION_BUDGET, {"metadata": {"name": name}, "spec": spec}, "default")
        assert (budget.spec.max_unavailable, budget.spec.min_available) == ("20%", None)
        assert budget.status.disruptions_allowed == 0
        for kind in (DEPLOYMENT, JOB, POD_DISRUPTION_BUDGET):
            await connection.delete(kind.path("default", name), b'{"propagationPolicy":"Background"}')

    with_connection(access, play)


def test_other_kinds_come_back_as_they_were_sent(access: Access) -> None:
    for one in (nodes_and_priorities, volumes_and_their_classes, controllers_and_budgets):
        one(access)


def a_binding(access: Access) -> None:
    async def play(connection: Connection) -> None:
        pod: Pod = await create(connection, POD, {"metadata": {"name": fresh()}, "spec": SIMPLE}, "default")
        metadata = pod.metadata
        path = POD.path("default", metadata.name, "binding")
        with pytest.raises(ApiError) as caught:
            await connection.post(path, encode_binding("default", metadata.name, str(uuid.uuid4()), "n1"))
        assert caught.value.status == 409
        await connection.post(path, encode_binding("default", metadata.name, metadata.uid, "n1"))
        assert (await read_pod(connection, pod)).spec.node_name == "n1"
        with pytest.raises(ApiError) as caught:
            await connection.post(path, encode_binding("default", metadata.name, metadata.uid, "n2"))
        assert caught.value.status == 409
        await connection.delete(POD.path("default", metadata.name), b'{"gracePeriodSeconds":0}')

    with_connection(access, play)


def an_eviction(access: Access) -> None:
    async def play(connection: Connection) -> None:
        pod: Pod = await create(connection, POD, {"metadata": {"name": fresh()}, "spec": SIMPLE}, "default")
        name, uid = pod.metadata.name, pod.metadata.uid
        path = POD.path("default", name, "eviction")
        version = pod.metadata.resource_version
        for wrong in (encode_eviction("default", name, str(uuid.uuid4()), resource_version=version),
                      encode_eviction("default", name, uid, resource_version="1")):  # fmt: skip
            with pytest.raises(ApiError) as caught:
                await connection.post(path, wrong)
            assert caught.value.status == 409
        await connection.post(path, encode_eviction("default", name, uid, dry_run=True))
        await connection.post(POD.path("default", name, "binding"), encode_binding("default", name, uid, "n1"))
        before = time.time()
        await connection.post(path, encode_eviction("default", name, uid, 4))
        found = await read_pod(connection, pod)
        assert found.metadata.deletion_timestamp is not None
        assert int(before) + 4 <= found.metadata.deletion_timestamp <= time.time() + 4
        await connection.delete(POD.path("default", name), b'{"gracePeriodSeconds":0}')

    with_connection(access, play)


def test_a_status_patch_adds_one_condition_and_a_nomination(access: Access) -> None:
    async def play(connection: Connection) -> None:
        pod: Pod = await create(connection, POD, {"metadata": {"name": fresh()}, "spec": SIMPLE}, "default")
        path = POD.path("default", pod.metadata.name, "status")
        now = Instant(1_800_000_000.0)

        async def patched(body: bytes) -> Pod:
            found: Pod = well_formed(POD.decode(await connection.patch(path, body, STRATEGIC_MERGE_PATCH)))
            return found

        condition = Condition(
            "PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu", now
        )
        await patched(encode_pod_status(pod.metadata.uid, Condition("Other", "True")))
        found = await patched(encode_pod_status(pod.metadata.uid, condition, "n7"))
        assert found.status.nominated_node_name == "n7"
        raw = await connection.get(POD.path("default", pod.metadata.name))
        assert managers_of(raw, "status", "nominatedNodeName") == {connection.agent}  # a new leader asks so
        assert {c.type: c.message for c in found.status.conditions} == {"Other": "", "PodScheduled": condition.message}
        assert next(c.last_transition_time for c in found.status.conditions if c.type == "PodScheduled") == now
        assert (await patched(encode_pod_status(pod.metadata.uid, condition))).status.nominated_node_name == "n7"
        assert (await patched(encode_pod_status(pod.metadata.uid, None, ""))).status.nominated_node_name == ""
        with pytest.raises(ApiError) as caught:
            await patched(encode_pod_status(str(uuid.uuid4()), condition))
        assert caught.value.status == 422
        await connection.delete(POD.path("default", pod.metadata.name), b'{"gracePeriodSeconds":0}')

    with_connection(access, play)


def annotations(access: Access) -> None:
    async def play(connection: Connection) -> None:
        pod: Pod = await create(connection, POD, {"metadata": {"name": fresh()}, "spec": SIMPLE}, "default")
        path = POD.path("default", pod.metadata.name)
        version = pod.metadata.resource_version
        await connection.patch(path, encode_annotations({"a/b": "1", "c": "2"}, resource_version=version))
        await connection.patch(path, encode_annotations({"c": None}, uid=pod.metadata.uid))
        assert (await read_pod(connection, pod)).metadata.annotations == {"a/b": "1"}
        for status, wrong in ((409, {"resource_version": version}), (422, {"uid": str(uuid.uuid4())})):
            with pytest.raises(ApiError) as caught:
                await connection.patch(path, encode_annotations({"a/b": "3"}, **wrong))
            assert caught.value.status == status
        await connection.delete(path, b'{"gracePeriodSeconds":0}')

    with_connection(access, play)


def test_what_is_written_of_a_pod_holds_for_that_one_only(access: Access) -> None:
    """By its UID, and where it is asked for by its version."""
    for one in (a_binding, an_eviction, annotations):
        one(access)
