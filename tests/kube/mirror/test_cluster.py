"""The mirror by itself: objects in, records and changes out; no engine, no server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from slacktide.kube.client.kinds import Malformed
from slacktide.kube.client.metadata import Metadata
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.resources.objects import (
    JOB,
    NAMESPACE,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    Identity,
    ServiceClass,
    ServiceClassSpec,
)
from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.owners import Target
from slacktide.settings import load_live
from support import made_objects

NOW = 1_790_000_000.0


class Heard(Changes):
    """Writes down what changed."""

    def __init__(self) -> None:
        self._said: list[tuple[Any, ...]] = []

    def said(self) -> list[tuple[Any, ...]]:
        """What was heard since this was last asked."""
        found, self._said = self._said, []
        return found

    def node(self, view: NodeView, before: NodeView | None) -> None:
        self._said.append(("node", view.name, view.ours, before is not None))

    def node_gone(self, name: str) -> None:
        self._said.append(("node_gone", name))

    def images_listed(self, node: str, images: tuple[str, ...]) -> None:
        self._said.append(("images_listed", node, images))

    def image_sizes(self, images: Iterable[str]) -> None:
        self._said.append(("image_sizes", *images))

    def replicas(self, target: Target, desired: int, finished: bool) -> None:
        self._said.append(("replicas", target.name, desired, finished))

    def owner_known(self, uid: str) -> None:
        self._said.append(("owner_known", uid))

    def controller_gone(self, target: Target) -> None:
        self._said.append(("controller_gone", target.name))

    def classes(self, names: Sequence[str], namespace: str) -> None:
        self._said.append(("classes", *names, namespace))

    def budget(self, name: str, left: int) -> None:
        self._said.append(("budget", name, left))

    def budget_gone(self, name: str) -> None:
        self._said.append(("budget_gone", name))

    def budgets_cover(self, namespace: str) -> None:
        self._said.append(("budgets_cover", namespace))

    def constraints(self, uids: Sequence[str], *, by: str = "", at_once: bool = False) -> None:  # noqa: ARG002
        self._said.append(("constraints", *uids))

    def pod(self, record: PodRecord) -> None:
        self._said.append(("pod", record.uid))

    def pod_gone(self, record: PodRecord, succeeded: bool) -> None:
        self._said.append(("pod_gone", record.uid, succeeded))


@pytest.fixture
def mirror() -> ClusterMirror:
    return ClusterMirror(load_live(), lambda: NOW)


@pytest.fixture
def heard(mirror: ClusterMirror) -> Heard:
    found = Heard()
    mirror.follow(found)
    return found


def pod(name: str, **more: Any) -> Any:
    return made_objects.pod(name, uid=name, schedulerName="slacktide", **more)


def test_pods_are_known_by_uid_and_by_name_until_they_are_gone(mirror: ClusterMirror, heard: Heard) -> None:
    mirror.on_pod_update(pod("p"))
    mirror.on_pod_update(made_objects.pod("s", uid="s", schedulerName="other", nodeName="a"))
    assert [(one.uid, one.ours, one.seen) for one in mirror.pods.values()] == [("p", True, NOW), ("s", False, NOW)]
    assert mirror.uids[("default", "p")] == "p"
    mirror.on_pod_delete(Identity("default", "p", "p", ""), pod("p", status={"phase": "Succeeded"}))
    assert list(mirror.pods) == ["s"]
    assert heard.said() == [("pod", "p"), ("pod", "s"), ("pod_gone", "p", True)]


def test_a_name_that_another_pod_has_by_now_stays_its(mirror: ClusterMirror) -> None:
    mirror.on_pod_update(pod("p"))
    mirror.on_pod_update(made_objects.pod("p", uid="later", schedulerName="slacktide"))
    mirror.on_pod_delete(Identity("default", "p", "p", ""), None)
    assert mirror.uids[("default", "p")] == "later"


def test_a_malformed_pod_keeps_what_was_known_of_it(mirror: ClusterMirror, heard: Heard) -> None:
    def malformed(name: str, scheduler: str, node: str = "") -> Malformed:
        return Malformed(name=name, namespace="default", uid=name, resource_version="1", problem="spec: no",
                         scheduler=scheduler, node=node)  # fmt: skip

    mirror.on_pod_update(pod("p", nodeName="a"))
    mirror.on_malformed_pod_update(malformed("p", "slacktide", "a"))
    assert mirror.pods["p"].pod.spec.node_name == "a"
    assert mirror.pods["p"].malformed == "the pod is malformed: spec: no"
    mirror.on_malformed_pod_update(malformed("q", "slacktide"))
    mirror.on_malformed_pod_update(malformed("s", "other"))
    mirror.on_malformed_pod_update(malformed("t", "slacktide", "a"))
    assert list(mirror.pods) == ["p", "q"]
    assert heard.said() == [("pod", "p"), ("pod", "p"), ("pod", "q")]
    mirror.on_pod_update(pod("p", nodeName="a"))
    assert mirror.pods["p"].malformed == ""


def test_terms_of_one_pod_change_the_constraints_of_others(mirror: ClusterMirror, heard: Heard) -> None:
    mirror.on_node_update(
        made_objects.node("n", labels={"zone": "z", "node-restriction.kubernetes.io/slacktide": "true"})
    )
    mirror.on_pod_update(pod("p", labels={"app": "web"}))
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    heard.said()
    mirror.on_pod_update(pod("q", affinity=alone))
    assert heard.said() == [("constraints", "p"), ("pod", "q")]
    mirror.on_pod_update(pod("q", affinity=alone))
    assert heard.said() == [("pod", "q")]


def test_a_pod_that_has_ended_has_no_terms_any_more(mirror: ClusterMirror) -> None:
    mirror.on_pod_update(pod("p"))
    assert len(mirror.constraints._pods) == 1
    mirror.on_pod_update(pod("p", status={"phase": "Failed"}))
    assert (len(mirror.constraints._pods), list(mirror.pods)) == (0, ["p"])


def test_nodes_are_told_when_they_differ(mirror: ClusterMirror, heard: Heard) -> None:
    ours = made_objects.node("a", labels={"node-restriction.kubernetes.io/slacktide": "true"}, allocatable={"cpu": "4"})
    mirror.on_node_update(ours)
    mirror.on_node_update(ours)
    mirror.on_node_update(made_objects.node("a", allocatable={"cpu": "4"}))
    assert not mirror.is_ours("a")
    mirror.on_node_delete("a")
    assert heard.said() == [("node", "a", True, False), ("node", "a", False, True), ("node_gone", "a")]
    assert mirror.nodes == {}


def test_a_job_that_is_finished_says_so_of_its_cron_job(mirror: ClusterMirror, heard: Heard) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "c", "controller": True}
    body = {"metadata": {"name": "j", "namespace": "default", "uid": "j", "ownerReferences": [owner]}}
    job = made_objects.decoded(JOB, body)
    mirror.on_controller_update(job, "batch/v1", "Job", -1, finished=True)
    assert heard.said() == [("owner_known", "j")]  # whose it is, is not known yet
    cron = made_objects.decoded(JOB, {"metadata": {"name": "nightly", "namespace": "default", "uid": "c"}})
    mirror.on_controller_update(cron, "batch/v1", "CronJob", -1)
    mirror.on_controller_update(job, "batch/v1", "Job", -1, finished=True)
    assert heard.said() == [
        ("replicas", "nightly", -1, False),
        ("owner_known", "c"),
        ("replicas", "nightly", -1, True),
        ("owner_known", "j"),
    ]
    mirror.on_controller_delete("c")
    mirror.on_controller_delete("c")
    assert heard.said() == [("controller_gone", "nightly")]


def test_classes_and_defaults_of_namespaces(mirror: ClusterMirror, heard: Heard) -> None:
    def namespace(**labels: str) -> Any:
        found = {key.replace("_", "-"): value for key, value in labels.items()}
        metadata = {"name": "n", "labels": {f"slacktide.io/{key}": value for key, value in found.items()}}
        return made_objects.decoded(NAMESPACE, {"metadata": metadata})

    mirror.on_class_update(ServiceClass(Metadata("gold"), ServiceClassSpec(0.999, 1, namespaces=("*",))))
    mirror.on_namespace_update(namespace(default_class="gold"))
    mirror.on_namespace_update(namespace(default_class="gold", team="x"))
    mirror.on_class_delete("gold")
    assert heard.said() == [("classes", "gold", ""), ("classes", "n"), ("classes", "gold", "")]


def test_budgets_are_told_with_what_is_left_and_whom_they_cover(mirror: ClusterMirror, heard: Heard) -> None:
    def budget(left: int, app: str) -> Any:
        spec = {"selector": {"matchLabels": {"app": app}}}
        body = {"metadata": {"name": "b", "namespace": "n"}, "spec": spec, "status": {"disruptionsAllowed": left}}
        return made_objects.decoded(POD_DISRUPTION_BUDGET, body)

    mirror.on_budget_update(budget(2, "web"))
    assert heard.said() == [("budget", "n/b", 2), ("budgets_cover", "n")]
    mirror.on_budget_update(budget(1, "web"))
    assert heard.said() == [("budget", "n/b", 1)]
    mirror.on_budget_delete("n", "b")
    assert heard.said() == [("budgets_cover", "n"), ("budget_gone", "n/b")]


def test_pods_with_volumes_that_wait_are_told_again_when_storage_changes(mirror: ClusterMirror, heard: Heard) -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    mirror.on_pod_update(pod("waits", volumes=claim))
    mirror.on_pod_update(pod("runs", volumes=claim, nodeName="a"))
    mirror.on_pod_update(pod("has-none"))
    heard.said()
    mirror.volumes.storage_changed()
    assert heard.said() == [("pod", "waits")]


def test_a_pod_with_volumes_that_was_malformed_at_first_is_told_again_as_well(
    mirror: ClusterMirror, heard: Heard
) -> None:
    mirror.on_malformed_pod_update(Malformed("default", "waits", "waits", "1", "spec: no", scheduler="slacktide"))
    mirror.on_pod_update(pod("waits", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    heard.said()
    mirror.volumes.storage_changed()
    assert heard.said() == [("pod", "waits")]


def test_a_claim_that_is_seen_late_concerns_pods_that_run_with_it(mirror: ClusterMirror, heard: Heard) -> None:
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    running = pod("runs", volumes=claim, nodeName="a")
    mirror.on_pod_update(running)
    assert mirror.constraints.constraints_of(running).placement.marks == ()
    body = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    mirror.volumes.on_claim_update(made_objects.decoded(PERSISTENT_VOLUME_CLAIM, body))
    assert mirror.constraints.constraints_of(running).placement.marks == ("claim:default/c",)
    mirror.volumes.on_claim_delete("default", "c")
    assert mirror.constraints.constraints_of(running).placement.marks == ()
    assert heard.said() == [("pod", "runs")]


def test_followers_hear_in_their_order_and_from_when_they_follow(mirror: ClusterMirror) -> None:
    order: list[str] = []

    class Named(Changes):
        def __init__(self, name: str) -> None:
            self.name = name

        def pod(self, record: PodRecord) -> None:
            order.append(f"{self.name}:{record.uid}")

    mirror.on_pod_update(pod("before"))
    mirror.follow(Named("one"))
    mirror.on_pod_update(pod("p"))
    mirror.follow(Named("two"))
    mirror.on_pod_update(pod("q"))
    assert order == ["one:p", "one:q", "two:q"]


def test_pods_of_others_that_have_ended_are_not_kept_and_ours_are() -> None:
    mirror = ClusterMirror(load_live(), lambda: NOW)
    heard = Heard()
    mirror.follow(heard)
    for name, scheduler in (("theirs", "default-scheduler"), ("ours", "slacktide")):
        for phase in ("Running", "Succeeded"):
            status = {"phase": phase}
            mirror.on_pod_update(made_objects.pod(name, uid=name, schedulerName=scheduler, nodeName="a", status=status))
    mirror.on_pod_update(
        made_objects.pod("late", uid="late", schedulerName="x", nodeName="a", status={"phase": "Failed"})
    )
    assert set(mirror.pods) == set(mirror.uids.values()) == {"ours"}
    assert [one for one in heard.said() if one[0] == "pod_gone"] == [("pod_gone", "theirs", True)]
