"""A cluster's made-up history, as kube-state-metrics shows it to Prometheus, and as an API server tells it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from slacktide.kube.client.kinds import Kind, encode
from slacktide.kube.client.metadata import rfc3339
from slacktide.kube.resources import objects
from slacktide.pasts.story import Change, Findings, Story

Json = dict[str, Any]
NEVER = float("inf")
MIB = 2**20


@dataclass
class MadeNode:
    name: str
    created: float
    gone: float = NEVER
    cpu: float = 8.0
    ready: list[tuple[float, bool]] = field(default_factory=list)
    cordoned: tuple[float, float] = (NEVER, NEVER)
    zone: str = "a"
    taint: tuple[str, str, str] | None = None
    gpus: int = 0


@dataclass
class MadePod:
    uid: str
    name: str
    owner: tuple[str, str] | None
    created: float
    bound: float = NEVER
    node: str = ""
    ready: list[tuple[float, bool]] = field(default_factory=list)
    going: float = NEVER
    gone: float = NEVER
    over: float = NEVER
    phase: str = "Succeeded"
    cpu: float = 0.5
    memory: int = 256 * MIB
    gpus: int = 0
    priority: int = 0
    priority_class: str = ""
    namespace: str = "shop"
    preempted: bool = False
    init_cpu: float = 0.0
    tolerates: tuple[str, str, str] | None = None

    @property
    def until(self) -> float:
        """Its deletionTimestamp."""
        return float(int(self.going + 30.0))


@dataclass
class MadeWish:
    kind: str
    name: str
    values: list[tuple[float, int]]
    gone: float = NEVER
    namespace: str = "shop"

    def at(self, when: float) -> int:
        return [value for since, value in self.values if since <= when][-1]


@dataclass
class MadeCluster:
    begin: float
    end: float
    nodes: list[MadeNode] = field(default_factory=list)
    pods: list[MadePod] = field(default_factory=list)
    wishes: list[MadeWish] = field(default_factory=list)
    sets: dict[str, str] = field(default_factory=dict)
    """Deployments by their ReplicaSets."""
    jobs: dict[str, tuple[str, float, float, float]] = field(default_factory=dict)
    """CronJob, creation, completion and deletion, by Job."""


def _state(spells: list[tuple[float, bool]], at: float) -> bool:
    return next((value for since, value in reversed(spells) if since <= at), False)


def _since(spells: list[tuple[float, bool]], at: float) -> float:
    return next(since for since, _ in reversed(spells) if since <= at)


Sample = tuple[str, tuple[tuple[str, str], ...], float]


def exposed(cluster: MadeCluster, at: float, left_out: Iterable[str] = ()) -> Iterator[Sample]:
    """What kube-state-metrics and kube-scheduler expose at an instant."""
    hidden = frozenset(left_out)
    for name, labels, value in _exposed(cluster, at):
        if name not in hidden:
            yield name, (*labels.items(),), value


def _exposed(cluster: MadeCluster, at: float) -> Iterator[tuple[str, Json, float]]:
    for node in cluster.nodes:
        if node.created <= at < node.gone:
            yield from _of_node(node, at)
    for pod in cluster.pods:
        if pod.created <= at < pod.gone:
            yield from _of_pod(pod, at)
    for wish in cluster.wishes:
        if wish.values[0][0] <= at < wish.gone:
            label = {"namespace": wish.namespace, wish.kind.lower(): wish.name}
            series = {"Deployment": "kube_deployment_spec_replicas", "StatefulSet": "kube_statefulset_replicas"}
            yield series[wish.kind], label, float(wish.at(at))
            yield f"kube_{wish.kind.lower()}_created", label, float(int(wish.values[0][0]))
    for name, deployment in cluster.sets.items():
        owner = {"owner_kind": "Deployment", "owner_name": deployment, "owner_is_controller": "true"}
        yield "kube_replicaset_owner", {"namespace": "shop", "replicaset": name} | owner, 1.0
    for name, (cron, created, completed, gone) in cluster.jobs.items():
        if created <= at < gone:
            job = {"namespace": "shop", "job_name": name}
            owner = {"owner_kind": "CronJob", "owner_name": cron, "owner_is_controller": "true"}
            yield "kube_job_owner", job | owner, 1.0
            yield "kube_job_created", job, float(int(created))
            yield "kube_job_spec_parallelism", job, 1.0
            if completed <= at:
                yield "kube_job_status_completion_time", job, float(int(completed))
    yield "scheduler_preemption_victims_sum", {}, float(sum(pod.preempted and pod.going <= at for pod in cluster.pods))


def _of_node(node: MadeNode, at: float) -> Iterator[tuple[str, Json, float]]:
    label = {"node": node.name}
    yield "kube_node_info", label | {"internal_ip": "192.0.2.7", "os_image": "secret-os"}, 1.0
    yield "kube_node_created", label, float(int(node.created))
    yield "kube_node_labels", label | {"label_topology_kubernetes_io_zone": node.zone}, 1.0
    ready = _state(node.ready, at)
    for status in ("true", "false", "unknown"):
        value = float((status == "true") == ready and status != "unknown")
        yield "kube_node_status_condition", label | {"condition": "Ready", "status": status}, value
    yield "kube_node_spec_unschedulable", label, float(node.cordoned[0] <= at < node.cordoned[1])
    amounts = {"cpu": node.cpu, "memory": 32768.0 * MIB, "pods": 110.0} | (
        {"nvidia_com_gpu": node.gpus} if node.gpus else {}
    )
    for resource, value in amounts.items():
        yield "kube_node_status_allocatable", label | {"resource": resource, "unit": "core"}, value
    if node.taint is not None:
        taint = dict(zip(("key", "value", "effect"), node.taint, strict=True))
        yield "kube_node_spec_taint", label | taint, 1.0


def _of_pod(pod: MadePod, at: float) -> Iterator[tuple[str, Json, float]]:
    who = {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid}
    kind, owner = pod.owner or ("", "")
    node = pod.node if pod.bound <= at else ""
    said = {"created_by_kind": kind, "created_by_name": owner, "priority_class": pod.priority_class}
    yield "kube_pod_info", who | said | {"node": node, "host_network": "false", "pod_ip": "192.0.2.9"}, 1.0
    yield "kube_pod_created", who, float(int(pod.created))
    control = str(pod.owner is not None).lower() if pod.owner else ""
    yield "kube_pod_owner", who | {"owner_kind": kind, "owner_name": owner, "owner_is_controller": control}, 1.0
    yield "kube_pod_labels", who | {"label_app": pod.name.split("-")[0]}, 1.0
    for resource, value in (("cpu", pod.cpu), ("memory", float(pod.memory)), ("nvidia_com_gpu", float(pod.gpus))):
        if value:
            asked = {"container": "main", "resource": resource, "unit": "core", "node": node}
            yield "kube_pod_container_resource_requests", who | asked, value
    if pod.init_cpu:
        init = {"container": "setup", "resource": "cpu", "unit": "core", "node": node}
        yield "kube_pod_init_container_resource_requests", who | init, pod.init_cpu
    if pod.tolerates is not None:
        taint = dict(zip(("key", "value", "effect"), pod.tolerates, strict=True))
        yield "kube_pod_tolerations", who | taint | {"operator": "Equal", "toleration_seconds": ""}, 1.0
    yield from _how_pod_is(pod, at, who, node)
    if pod.over > at:
        yield from _of_scheduler(pod, node)


def _how_pod_is(pod: MadePod, at: float, who: Json, node: str) -> Iterator[tuple[str, Json, float]]:
    over = pod.over <= at
    phase = pod.phase if over else "Running" if node else "Pending"
    for one in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
        yield "kube_pod_status_phase", who | {"phase": one}, float(one == phase)
    if node:
        yield "kube_pod_status_scheduled_time", who, float(int(pod.bound))
        ready = _state(pod.ready, at) and not over
        for status in ("true", "false", "unknown"):
            value = float((status == "true") == ready and status != "unknown")
            yield "kube_pod_status_ready", who | {"condition": status}, value
        if ready:
            yield "kube_pod_status_ready_time", who, float(int(_since(pod.ready, at)))
    if over:
        yield "kube_pod_completion_time", who, float(int(pod.over))
    if pod.going <= at:
        yield "kube_pod_deletion_timestamp", who, pod.until
        if pod.preempted:
            yield "kube_pod_status_reason", who | {"reason": "PreemptionByScheduler"}, 1.0


def _of_scheduler(pod: MadePod, node: str) -> Iterator[tuple[str, Json, float]]:
    amounts = {"cpu": max(pod.cpu, pod.init_cpu), "memory": float(pod.memory), "nvidia.com/gpu": float(pod.gpus)}
    units = {"cpu": "cores", "memory": "bytes", "nvidia.com/gpu": "integer"}
    for resource, value in amounts.items():
        if value:
            place = {"namespace": pod.namespace, "pod": pod.name, "resource": resource, "unit": units[resource]}
            said = {"node": node, "scheduler": "default-scheduler", "priority": f"{pod.priority or ''}"}
            yield "kube_pod_resource_request", place | said, value


def openmetrics(
    cluster: MadeCluster, interval: float, phase: float = 0.0, left_out: Iterable[str] = (), labels: Json | None = None,
    unseen: tuple[float, float] = (NEVER, NEVER), rename: Json | None = None,
) -> Iterator[str]:  # fmt: skip
    """The text of it that promtool makes blocks of: a sample of each series at each scrape, every ``interval``."""
    added = labels or {"job": "kube-state-metrics", "instance": "192.0.2.1:8080"}
    names = rename or {}
    series: dict[str, dict[str, list[str]]] = {}
    at = cluster.begin + phase - 2 * interval
    while at <= cluster.end:
        if not unseen[0] <= at < unseen[1]:
            for name, own, value in exposed(cluster, at, left_out):
                said = {names.get(label, label): text for label, text in own} | added
                text = ",".join(f'{label}="{value}"' for label, value in said.items())
                series.setdefault(name, {}).setdefault(text, []).append(f"{value!r} {at:.3f}")
        at += interval
    for name in sorted(series):
        yield f"# TYPE {name} gauge\n"
        for text, samples in series[name].items():
            for sample in samples:
                yield f"{name}{{{text}}} {sample}\n"
    yield "# EOF\n"


# -- as an API server tells it -----------------------------------------------------------------------------------------


def told(cluster: MadeCluster) -> Story:
    """The same history, each change when it happened."""
    found = sorted(_told(cluster), key=lambda one: one[0])
    begin, latest = cluster.begin, dict[tuple[str, str], Change]()
    later = []
    for at, _, kind, body, deleted in found:
        change = Change(max(at, begin), kind, kind.decode(encode(body)), deleted)
        key = kind.kind, change.found.metadata.uid
        if at > begin:
            if at <= cluster.end:
                later.append(change)
        elif deleted:
            latest.pop(key, None)
        else:
            latest[key] = change
    return Story("made up", begin, iter(latest.values()), iter(later), Findings(), until=cluster.end)


Told = tuple[float, int, Kind[Any], Json, bool]


def _told(cluster: MadeCluster) -> Iterator[Told]:
    for node in cluster.nodes:
        times = {node.created, *node.cordoned, *(at for at, _ in node.ready)}
        for at in sorted(one for one in times if one < node.gone):
            yield at, 0, objects.NODE, _node_body(node, at), False
        if node.gone < NEVER:
            yield node.gone, 0, objects.NODE, _node_body(node, node.gone), True
    for wish in cluster.wishes:
        kind = objects.DEPLOYMENT if wish.kind == "Deployment" else objects.STATEFUL_SET
        for at, _ in wish.values:
            yield at, 1, kind, _controller_body(wish.kind, wish.name, {"replicas": wish.at(at)}), False
        if wish.gone < NEVER:
            yield wish.gone, 1, kind, _controller_body(wish.kind, wish.name, {}), True
    for name, deployment in cluster.sets.items():
        first = min(pod.created for pod in cluster.pods if pod.owner == ("ReplicaSet", name))
        owner = ("Deployment", deployment)
        yield first, 2, objects.REPLICA_SET, _controller_body("ReplicaSet", name, {"replicas": 0}, owner), False
    for name, (cron, created, completed, gone) in cluster.jobs.items():
        yield created, 1, objects.CRON_JOB, _controller_body("CronJob", cron, {}), False
        body = _controller_body("Job", name, {"parallelism": 1}, ("CronJob", cron))
        yield created, 2, objects.JOB, body, False
        done = body | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        yield completed, 9, objects.JOB, done, False
        yield gone, 9, objects.JOB, done, True
    for pod in cluster.pods:
        times = {pod.created, pod.bound, pod.going, pod.over, *(at for at, _ in pod.ready)}
        for at in sorted(one for one in times if one < pod.gone):
            yield at, 3, objects.POD, _pod_body(pod, at), False
        if pod.gone < NEVER:
            yield pod.gone, 4, objects.POD, _pod_body(pod, pod.gone), True


def _node_body(node: MadeNode, at: float) -> Json:
    since = rfc3339(_since(node.ready, at))
    ready = {"type": "Ready", "status": str(_state(node.ready, at)), "lastTransitionTime": since}
    amounts = {"cpu": f"{node.cpu}", "memory": "32Gi", "pods": "110"} | (
        {"nvidia.com/gpu": f"{node.gpus}"} if node.gpus else {}
    )
    taints = [dict(zip(("key", "value", "effect"), node.taint, strict=True))] if node.taint else []
    labels = {"topology.kubernetes.io/zone": node.zone}
    return {
        "metadata": {"name": node.name, "uid": f"{node.name}-{node.created}", "labels": labels},
        "spec": {"unschedulable": node.cordoned[0] <= at < node.cordoned[1], "taints": taints},
        "status": {
            "allocatable": amounts,
            "conditions": [ready],
        },
    }


API = {"Job": "batch/v1", "CronJob": "batch/v1"}


def _reference(kind: str, name: str) -> Json:
    return {
        "apiVersion": API.get(kind, "apps/v1"),
        "kind": kind,
        "name": name,
        "uid": f"{kind}-{name}",
        "controller": True,
    }


def _controller_body(kind: str, name: str, spec: Json, owner: tuple[str, str] | None = None) -> Json:
    metadata: Json = {"name": name, "namespace": "shop", "uid": f"{kind}-{name}"}
    if owner is not None:
        metadata["ownerReferences"] = [_reference(*owner)]
    return {"metadata": metadata, "spec": spec}


def _pod_body(pod: MadePod, at: float) -> Json:
    asked: Json = {"cpu": f"{pod.cpu}", "memory": f"{pod.memory}"} | (
        {"nvidia.com/gpu": f"{pod.gpus}"} if pod.gpus else {}
    )
    metadata: Json = {
        "name": pod.name, "namespace": pod.namespace, "uid": pod.uid, "creationTimestamp": rfc3339(int(pod.created)),
        "labels": {"app": pod.name.split("-")[0]},
    }  # fmt: skip
    if pod.owner is not None:
        metadata["ownerReferences"] = [_reference(*pod.owner)]
    spec: Json = {
        "schedulerName": "default-scheduler",
        "containers": [{"name": "main", "resources": {"requests": asked}}],
    }
    if pod.init_cpu:
        spec["initContainers"] = [{"name": "setup", "resources": {"requests": {"cpu": f"{pod.init_cpu}"}}}]
    if pod.tolerates is not None:
        spec["tolerations"] = [dict(zip(("key", "value", "effect"), pod.tolerates, strict=True))]
    if pod.priority:
        spec |= {"priority": pod.priority, "priorityClassName": pod.priority_class}
    status: Json = {"phase": "Pending", "conditions": []}
    if pod.bound <= at:
        spec["nodeName"] = pod.node
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(int(pod.bound))}
        status = {"phase": "Running", "conditions": [scheduled]}
        if [one for one in pod.ready if one[0] <= at]:
            ready, since = str(_state(pod.ready, at)), rfc3339(int(_since(pod.ready, at)))
            more = {} if ready == "True" else {"reason": "ContainersNotReady"}
            both = [
                {"type": one, "status": ready, "lastTransitionTime": since} | more
                for one in ("ContainersReady", "Ready")
            ]
            status["conditions"] += both
    if pod.over <= at:
        status |= {"phase": pod.phase, "conditions": [{"type": "Ready", "status": "False"}]}
    if pod.going <= at:
        metadata["deletionTimestamp"] = rfc3339(pod.until)
        if pod.preempted:
            reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
            status["conditions"] = [*status["conditions"], reason]
    return {"metadata": metadata, "spec": spec, "status": status}


# -- as kubectl prints it ----------------------------------------------------------------------------------------------


def printed(cluster: MadeCluster) -> Json:
    """What ``kubectl get pods,nodes,deployments,... -A -o json`` prints at the end."""
    there: dict[tuple[str, str], Json] = {}
    for at, _, kind, body, deleted in sorted(_told(cluster), key=lambda one: one[:2]):
        key = kind.kind, body["metadata"]["uid"]
        if at <= cluster.end:
            there[key] = {"apiVersion": kind.api_version, "kind": kind.kind} | body
            if deleted:
                del there[key]
    return {"apiVersion": "v1", "kind": "List", "items": list(there.values())}


def events(cluster: MadeCluster) -> Json:
    """What ``kubectl get events -A -o json`` prints, where they are kept since the beginning."""
    items: list[Json] = []

    def say(at: float, reason: str, message: str, kind: str, name: str, uid: str, *, micro: bool = False) -> None:
        about = {"kind": kind, "namespace": "shop", "name": name, "uid": uid, "apiVersion": API.get(kind, "apps/v1")}
        whole = rfc3339(int(at))
        times = {"eventTime": rfc3339(at)} if micro else {"firstTimestamp": whole, "lastTimestamp": whole}
        if cluster.begin <= at <= cluster.end:
            items.append({"involvedObject": about, "reason": reason, "message": message} | times)

    for pod in cluster.pods:
        if pod.owner is not None:
            kind, owner = pod.owner
            say(pod.created, "SuccessfulCreate", f"Created pod: {pod.name}", kind, owner, f"{kind}-{owner}")
        if pod.bound < NEVER:
            text = f"Successfully assigned shop/{pod.name} to {pod.node}"
            say(pod.bound, "Scheduled", text, "Pod", pod.name, pod.uid, micro=True)
            say(pod.ready[1][0], "Started", "Started container main", "Pod", pod.name, pod.uid)
        if pod.preempted:
            text = "Preempted by pod 0badc0de on node n0"
            say(pod.going, "Preempted", text, "Pod", pod.name, pod.uid, micro=True)
        if pod.going < NEVER:
            say(pod.going, "Killing", "Stopping container main", "Pod", pod.name, pod.uid)
    for node in cluster.nodes:
        for at, ready in node.ready[1:]:
            said = "NodeReady" if ready else "NodeNotReady"
            say(at, said, f"Node {node.name} status is now: {said}", "Node", node.name, node.name)
    for wish in cluster.wishes:
        for (_, before), (at, after) in zip(wish.values, wish.values[1:], strict=False):
            way = "up" if after > before else "down"
            text = f"Scaled {way} replica set {wish.name}-5d8f to {after} from {before}"
            say(at, "ScalingReplicaSet", text, wish.kind, wish.name, f"{wish.kind}-{wish.name}")
    return {"apiVersion": "v1", "kind": "List", "items": items}


# -- a history ---------------------------------------------------------------------------------------------------------


class Maker:
    """Makes pods of a cluster; instants are seconds since the beginning."""

    def __init__(self, cluster: MadeCluster, seed: int = 1) -> None:
        self.cluster, self._chance = cluster, random.Random(seed)

    def pod(self, name: str, owner: tuple[str, str] | None, created: float, node: str, **more: Any) -> MadePod:
        """A pod that waits for seconds, and starts for some."""
        begin, chance = self.cluster.begin, self._chance
        uid = f"{chance.getrandbits(32):08x}-{chance.getrandbits(16):04x}-4000-8000-{len(self.cluster.pods):012x}"
        wait, start = more.pop("wait", chance.randint(1, 9)), more.pop("start", chance.randint(4, 40))
        pod = MadePod(uid, name, owner, begin + created)
        for key, value in more.items():
            setattr(pod, key, value + begin if key in ("going", "over", "gone") else value)
        if node:
            pod.bound, pod.node = pod.created + wait, node
            pod.ready = [(pod.bound, False), (pod.bound + start, True)]
        if pod.going < NEVER and pod.gone == NEVER:
            pod.gone = pod.going + 12
            pod.ready.append((pod.going + 9, False))
        self.cluster.pods.append(pod)
        return pod

    def unready(self, pod: MadePod, begin: float, end: float) -> None:
        """It is not ready for a while."""
        pod.ready = sorted([*pod.ready, (self.cluster.begin + begin, False), (self.cluster.begin + end, True)])


def small(begin: float) -> MadeCluster:
    """Two and a half hours of six nodes: what may happen happens once at least."""
    cluster = MadeCluster(begin, begin + 9000)
    old = begin - 90_000
    up = [(old, True)]
    zones = "aabbcc"
    cluster.nodes = [MadeNode(f"n{n}", old, ready=list(up), zone=zones[n]) for n in range(5)]
    cluster.nodes[1].ready += [(begin + 2400, False), (begin + 2790, True)]
    cluster.nodes[2].gone = begin + 4215
    cluster.nodes[3].cordoned = (begin + 3000, begin + 3600)
    cluster.nodes[4].gpus, cluster.nodes[4].taint = 2, ("gpu", "yes", "NoSchedule")
    again, fifth = begin + 4808, begin + 1811
    cluster.nodes += [
        MadeNode("n2", again, ready=[(again, False), (again + 20, True)], cpu=16.0, zone="b"),
        MadeNode("n5", fifth, ready=[(fifth, False), (fifth + 25, True)], zone="c"),
    ]
    made = Maker(cluster)
    cluster.sets = {"web-5d8f": "web", "api-77c9": "api"}
    web = ("ReplicaSet", "web-5d8f")
    cluster.wishes = [
        MadeWish("Deployment", "web", [(old, 4), (begin + 2712, 6), (begin + 6003, 3)]),
        MadeWish("Deployment", "api", [(begin + 1204, 2)], gone=begin + 6605),
        MadeWish("StatefulSet", "db", [(old, 2)]),
    ]
    pods = [
        made.pod(f"web-5d8f-{n}", web, -86_000 + n, f"n{n % 4}", priority=5, priority_class="high") for n in range(4)
    ]
    made.unready(pods[0], 1500, 1733)
    made.unready(pods[1], 2441, 2800)  # its node is lost
    made.pod("web-5d8f-4", web, 2713, "n5", priority=5, priority_class="high", going=6004)
    made.pod("web-5d8f-5", web, 2714, "n5", priority=5, priority_class="high", going=6004, wait=206)
    pods[3].going = begin + 6005
    pods[3].gone = begin + 6020
    pods[3].ready.append((begin + 6010, False))
    pods[2].gone = begin + 4231  # with its node
    made.pod("web-5d8f-6", web, 4232, "n5", priority=5, priority_class="high")
    for n in range(2):
        made.pod(f"api-77c9-{n}", ("ReplicaSet", "api-77c9"), 1205 + n, f"n{n}", going=6606, init_cpu=1.5)
    made.pod("db-0", ("StatefulSet", "db"), -50_000, "n2", gone=4233)
    made.pod("db-0", ("StatefulSet", "db"), 4240, "n3", start=75)
    made.pod("db-1", ("StatefulSet", "db"), -49_990, "n3")
    for n in range(4):
        at = 900 + n * 1800
        name = f"report-{n}"
        made.pod(f"{name}-x{n}", ("Job", name), at + 1, "n0", over=at + 428, gone=at + 1031, wait=3)
        cluster.jobs[name] = ("report", begin + at, begin + at + 430, begin + at + 1030)
    for n in range(2):
        made.pod(f"agent-{n}", ("DaemonSet", "agent"), -80_000, f"n{n}", cpu=0.1)
    made.pod("train-a", None, 300, "n4", gpus=2, tolerates=("gpu", "yes", "NoSchedule"))
    made.pod("victim", None, -7000, "n0", going=5250, gone=5275, preempted=True, cpu=2.0)
    made.pod("brief", None, 1780, "n1", going=1831, gone=1845, wait=2, start=5)  # around the end of a chunk
    made.pod("pending", None, 3333, "", cpu=100.0)
    cluster.pods[-1].gone = begin + 7110
    return cluster
