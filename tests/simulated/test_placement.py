"""What lets a waiting pod go: each time at once, by the event that makes it feasible, and not when a watchdog looks.

Which nodes are feasible kube-scheduler judges on real servers (``cluster/test_random_scenes.py``); single constraints,
one by one, are in ``kube/translate/test_pod_constraints.py`` and ``cluster/test_live_placement.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from cluster.labtools import deployment, job, pod
from simulated.alone import warnings_of
from simulated.crowding import HEARD_SECONDS
from simulated.pod_model import bind, is_true
from simulated.resources import BY_NAME, Json, Target
from simulated.stage import Stage, service_class, staged
from slacktide.kube.feed import hosts

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SELECTED = "volume.kubernetes.io/selected-node"
WATCHDOG = 90
SOON = 10 * HEARD_SECONDS
"""Seconds within which what was waited for is heard of, decided on and bound."""


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ROW, SHUNNED, SECOND = "example.com/row", "example.com/shunned", "second"


@pytest.fixture
def place() -> Iterator[Stage]:
    with staged([service_class("plain", 0.9, 2, default=True)], scheduler__watchdog=WATCHDOG) as stage:
        yield stage


def soon(place: Stage, name: str) -> str:
    """The node of a pod for which something has just made room."""
    began = place.now
    node = place.bound(name)
    assert place.now - began <= SOON
    return node


def left_of(place: Stage, prefix: str, count: int) -> str:
    """The only one of so many pods that found no node."""
    place.until(lambda: len(place.names(prefix)) == count, "all are made")
    place.wait(SOON)
    (left,) = [name for name in place.names(prefix) if not place.node_of(name)]
    return left


def test_the_count_of_pods_and_other_resources(place: Stage) -> None:
    place.nodes(1, pods=2)
    place.nodes(1, prefix="gpu", resources={"example.com/gpu": "2"})
    for number in range(3):
        place.create("pods", pod(f"small-{number}", nodeSelector={HOSTNAME: "node-0"}))
    left = left_of(place, "small", 3)
    place.waits(left, r"\b1 Too many pods\b")
    for number, gpus in enumerate(("1", "2")):
        body = pod(f"gpu-{number}")
        body["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": gpus}
        body["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = gpus
        place.create("pods", body)
        place.wait(SOON)
    assert place.node_of("gpu-0") == "gpu-0"
    place.waits("gpu-1", r"\b1 Insufficient example.com/gpu\b|\b2 Insufficient example.com/gpu\b")
    place.delete("pods", "gpu-0", 0)
    assert soon(place, "gpu-1") == "gpu-0"
    place.delete("pods", next(name for name in place.names("small") if name != left), 0)
    assert soon(place, left) == "node-0"


def test_host_ports(place: Stage) -> None:
    place.nodes(2)
    for number in range(3):
        body = pod(f"port-{number}")
        body["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        place.create("pods", body)
    left = left_of(place, "port", 3)
    place.waits(left, r"\b2 node\(s\) didn't have free ports for the requested pod ports\b")
    place.delete("pods", next(name for name in place.names("port") if name != left), 0)
    soon(place, left)


def rules(kind: str, label: dict[str, str], key: str) -> Json:
    terms = [{"labelSelector": {"matchLabels": label}, "topologyKey": key}]
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_affinity_and_anti_affinity_between_pods(place: Stage) -> None:
    nodes = place.nodes(4)
    for number, name in enumerate(nodes):
        place.patch("nodes", name, {"metadata": {"labels": {ZONE: f"zone-{number % 2}"}}})
    place.wait(HEARD_SECONDS)
    apart = rules("podAntiAffinity", {"app": "apart"}, ZONE)
    place.create("deployments", deployment("apart", 3, affinity=apart))
    left = left_of(place, "apart", 3)
    place.waits(left, r"\b4 node\(s\) didn't match pod anti-affinity rules\b")
    # Whom a running pod does not want near must stay away, too.
    away = rules("podAntiAffinity", {"app": "guest"}, HOSTNAME)
    place.create("pods", pod("hermit", labels={"app": "hermit"}, affinity=away))
    home = soon(place, "hermit")
    for number in range(3):
        place.create("pods", pod(f"guest-{number}", labels={"app": "guest"}))
    assert home not in [soon(place, f"guest-{number}") for number in range(3)]
    place.create("pods", pod("near", affinity=rules("podAffinity", {"app": "hermit"}, HOSTNAME)))
    assert soon(place, "near") == home
    place.create("pods", pod("lonely", affinity=rules("podAffinity", {"app": "nobody"}, HOSTNAME)))
    place.waits("lonely", r"\b4 node\(s\) didn't match pod affinity rules\b")
    place.create("pods", pod("somebody", labels={"app": "nobody"}))
    home = soon(place, "somebody")
    # In the pass that placed it the lonely one, which waits longer, had its turn before; a placement calls for no pass.
    place.create("pods", pod("calls"))
    assert soon(place, "lonely") == home
    place.delete("pods", next(name for name in place.names("apart") if name != left), 0)
    soon(place, left)


def test_topology_spread(place: Stage) -> None:
    place.nodes(3)  # a zone each
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "wide"}}}  # fmt: skip
    place.create("deployments", deployment("wide", 7, topologySpreadConstraints=[spread]))
    place.ready("wide", 7)

    def counts() -> list[int]:
        count = Counter(place.node_of(name) for name in place.names("wide"))
        return [count[f"node-{number}"] for number in range(3)]

    assert sorted(counts()) == [2, 2, 3]
    place.cordon("node-0")
    place.wait(HEARD_SECONDS)
    place.merge("deployments", "wide", {"spec": {"replicas": 12}})
    place.until(lambda: len(place.names("wide")) == 12, "all are made")
    place.wait(SOON)
    # The zone of the cordoned node counts: nodes with taints are not left out unless the rule says so.
    least = counts()[0]
    assert counts() == [least, least + 1, least + 1]
    left = next(name for name in place.names("wide") if not place.node_of(name))
    place.waits(left, r"\b2 node\(s\) didn't match pod topology spread constraints\b")
    place.cordon("node-0", False)
    place.wait(SOON)
    assert counts() == [4, 4, 4]


def test_a_provisioner_that_cannot_serve_a_node(place: Stage) -> None:
    both = set(place.nodes(2))
    spec = {"provisioner": "example.com/moody", "volumeBindingMode": "WaitForFirstConsumer"}
    place.create("storageclasses", {"metadata": {"name": "moody"}, **spec})
    sizes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "moody"}
    wanted = {**sizes, "resources": {"requests": {"storage": "1Gi"}}}
    made = place.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": wanted})
    place.create("pods", pod("pod", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))

    def selected() -> str:
        annotations = (place.get("persistentvolumeclaims", "data") or {})["metadata"].get("annotations", {})
        return str(annotations.get(SELECTED, ""))

    def refuse() -> None:
        """This is how a provisioner says no: it takes the annotation away."""
        place.merge("persistentvolumeclaims", "data", {"metadata": {"annotations": {SELECTED: None}}})

    first = place.until(selected, "the claim says for which node")
    refuse()
    (second,) = both - {first}
    assert place.until(selected, "another node is asked for") == second
    refuse()
    third = place.until(selected, "both have failed, and one of them is asked for again")
    here = [{"key": HOSTNAME, "operator": "In", "values": [third]}]
    place.create("persistentvolumes", {"metadata": {"name": "made"}, "spec": {
        **sizes, "capacity": {"storage": "1Gi"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}},
        "claimRef": {"namespace": place.namespace, "name": "data", "uid": made["metadata"]["uid"]},
    }})  # fmt: skip
    bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "made"}}
    place.merge("persistentvolumeclaims", "data", bound)
    assert soon(place, "pod") == third


def test_a_kubelet_that_refuses(place: Stage) -> None:
    """What was refused takes no room, and its ledger is over."""
    place.nodes(1)
    place.create("pods", pod("refused", cpu="3"))
    soon(place, "refused")
    place.patch("pods", "refused", {"status": {"phase": "Failed", "reason": "NodeAffinity"}}, sub="status")
    place.create("pods", pod("whole", cpu="3900m"))
    soon(place, "whole")
    status = place.status("pod-refused", lambda one: one["running"] + one["waiting"] == 0, "it is over")
    assert status["delivered"] == 0.0


def stranger(place: Stage, node: str) -> None:
    """Another scheduler's pod is on a node."""
    place.create("pods", pod("stranger", cpu="1500m", schedulerName="somebody-else"))
    target = Target(BY_NAME["pods"], place.namespace, "stranger", "binding")
    bind(place.world.store, target, {"target": {"name": node}})
    place.wait(HEARD_SECONDS)


def test_pods_and_nodes_of_other_schedulers(place: Stage) -> None:
    ours, other = place.nodes(2, cpu="2")
    (not_ours,) = place.nodes(1, prefix="foreign", managed=False)
    place.cordon(other)
    with warnings_of(hosts.__name__) as said:
        stranger(place, ours)
    (warning,) = said
    assert f"of scheduler somebody-else runs on node {ours}, which this scheduler manages" in warning
    place.create("pods", pod("beside", cpu="600m"))
    place.waits("beside", r"\b1 Insufficient cpu\b")
    place.create("pods", pod("there", nodeSelector={HOSTNAME: not_ours}))
    place.waits("there", r"not ready or not managed|didn't match")
    place.cordon(other, False)
    assert soon(place, "beside") == other
    place.ready("stranger")
    # A node that is given to us later counts from then on.
    place.patch("nodes", not_ours, {"metadata": {"labels": {"node-restriction.kubernetes.io/slacktide": "true"}}})
    assert soon(place, "there") == not_ours


def test_a_pod_that_is_deleted_while_it_waits_keeps_nothing_from_others(place: Stage) -> None:
    (node,) = place.nodes(1, cpu="1")
    place.create("pods", pod("big", cpu="900m"))
    place.ready("big")
    body = job("late", 600, cpu="500m")["spec"]["template"]
    place.create("pods", {"metadata": {"name": "late"}, "spec": body["spec"]})
    place.waits("late", r"\b1 Insufficient cpu\b")
    place.delete("pods", "late", 0)
    place.create("pods", pod("small", cpu="100m"))
    assert soon(place, "small") == node
    assert is_true(place.pod("big"), "Ready")


# -- what kube-scheduler does by its configuration, or for all nodes ---------------------------------------------------


@pytest.fixture
def configured() -> Iterator[Stage]:
    """A spread by default, an affinity that operators add, and another name without it."""
    not_shunned = {"key": SHUNNED, "operator": "DoesNotExist"}
    with staged(
        [service_class("plain", 0.9, 2, default=True)],
        scheduler__watchdog=WATCHDOG,
        kube__default_spread=json.dumps([{"maxSkew": 1, "topologyKey": ROW, "whenUnsatisfiable": "DoNotSchedule"}]),
        kube__profiles=json.dumps([{"schedulerName": SECOND}]),
        kube__added_affinity=json.dumps({REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [not_shunned]}]}}),
    ) as stage:
        yield stage


def test_an_affinity_that_operators_add_and_another_name_without_it(configured: Stage) -> None:
    place = configured
    (shunned,) = place.nodes(1, labels={SHUNNED: "yes"})
    place.create("pods", pod("first"))
    place.create("pods", pod("second", schedulerName=SECOND))
    assert soon(place, "second") == shunned
    place.waits("first", SHUNNED)
    place.patch("nodes", shunned, {"metadata": {"labels": {SHUNNED: None}}})
    assert soon(place, "first") == shunned


def test_a_spread_by_default(configured: Stage) -> None:
    place = configured
    place.nodes(1, prefix="wide", labels={ROW: "a"})
    place.nodes(1, prefix="narrow", labels={ROW: "b"}, pods=1)
    place.nodes(1, prefix="bare")
    on_bare = {HOSTNAME: "bare-0"}
    place.create("pods", pod("free", nodeSelector=on_bare))  # no service selects it
    soon(place, "free")
    selector = {"selector": {"app": "by-default"}, "ports": [{"port": 80}]}
    place.create("services", {"metadata": {"name": "web"}, "spec": selector})
    place.wait(HEARD_SECONDS)
    labels = {"app": "by-default"}
    place.create("pods", pod("nowhere", labels=labels, nodeSelector=on_bare))
    place.waits("nowhere", ROW)  # a node without that label lies in no row
    for number in range(4):
        place.create("pods", pod(f"web-{number}", labels=labels))
    # Two can be in the wide row while the narrow one has its only one.
    left = left_of(place, "web", 4)
    place.waits(left, r"\b1 node\(s\) didn't match pod topology spread constraints\b")


def test_pods_on_nodes_that_are_not_ours_count_in_a_spread(place: Stage) -> None:
    place.nodes(2)
    place.nodes(2, prefix="foreign", managed=False)
    zones = {"node-0": "a", "node-1": "b", "foreign-0": "a", "foreign-1": "c"}  # nobody of ours could go to zone c
    for name, zone in zones.items():
        place.patch("nodes", name, {"metadata": {"labels": {ZONE: zone}}})
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "wide"}}}  # fmt: skip
    for number in range(2):
        name = f"there-{number}"
        place.create("pods", pod(name, labels={"app": "wide"}, schedulerName="somebody-else"))
        target = Target(BY_NAME["pods"], place.namespace, name, "binding")
        bind(place.world.store, target, {"target": {"name": "foreign-0"}})
    place.wait(HEARD_SECONDS)
    nodes = []
    for name in ("one", "two", "three", "four"):
        place.create("pods", pod(name, labels={"app": "wide"}, topologySpreadConstraints=[spread]))
        nodes.append(soon(place, name))
    assert nodes[:2] == ["node-1", "node-1"]
    assert set(nodes[2:]) == {"node-0", "node-1"}
