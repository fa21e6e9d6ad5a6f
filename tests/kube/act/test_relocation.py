"""Resizes that wait: who is known to wait, for how long, and who may be moved at all."""

from __future__ import annotations

from typing import Any

import pytest

from slacktide.kube.act.eviction import NOBODY_MAKES_IT_ANEW, ON_RESIZE, stays
from slacktide.kube.mirror.pod_record import PendingResizes, PodRecord
from slacktide.kube.resources.objects import POD, Pod
from slacktide.kube.translate.nodes import Demands, pending_resize, requests, wanted
from support.made_objects import container, decoded


def resized(reason: str, cpu: str = "4", owner: str = "ReplicaSet", said: str = "") -> Pod:
    """A pod on a node that was given 2 cores and is to have more; ``reason`` is why it has not."""
    metadata: dict[str, Any] = {"name": "p", "namespace": "n", "uid": "u"}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": True}
        metadata["ownerReferences"] = [reference]
    if said:
        metadata["annotations"] = {ON_RESIZE: said}
    condition = {"type": "PodResizePending", "status": "True", "reason": reason}
    given = {"name": "a", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
    status = {"conditions": [condition] if reason else [], "containerStatuses": [given]}
    spec = {"nodeName": "node", "containers": [container("a", cpu=cpu)]}
    return decoded(POD, {"metadata": metadata, "spec": spec, "status": status})


def test_a_deferred_pod_takes_what_it_waits_for_and_an_infeasible_one_what_it_has() -> None:
    assert requests(resized("Deferred"))["cpu"] == wanted(resized("Deferred"))["cpu"] == 4000
    assert (requests(resized("Infeasible"))["cpu"], wanted(resized("Infeasible"))["cpu"]) == (2000, 4000)
    assert [pending_resize(resized(reason)) for reason in ("", "Deferred")] == ["", "Deferred"]


def test_a_sidecar_that_starts_counts_before_there_are_containers() -> None:
    spec = {"initContainers": [container("s", "Always", cpu="1")], "containers": [container("a", cpu="1")]}
    status = {"initContainerStatuses": [{"name": "s", "resources": {"requests": {"cpu": "3"}}}]}
    pod = decoded(POD, {"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status})
    assert dict(Demands().of(pod))["cpu"] == 4000  # type: ignore[arg-type]


def test_what_a_running_pod_takes_is_worked_out_anew_when_only_the_verdict_changes() -> None:
    record = PodRecord(resized("Deferred"), ours=True)
    record.update(resized("Deferred"), 1.0)
    assert record.alterations == 0
    record.update(resized("Infeasible"), 2.0)
    assert record.alterations == 1


def test_patience_begins_when_a_resize_is_first_seen_to_wait_and_again_when_it_asks_for_something_else() -> None:
    known = PendingResizes()

    def seen(pod: Pod, now: float, ours: bool = True) -> None:
        known.see(PodRecord(pod, ours), now)

    def late(until: float) -> list[str]:
        return [uid for uid, _ in known.overdue(until)]

    seen(resized("Deferred"), 10.0)
    seen(resized("Infeasible"), 20.0)
    assert (late(9.0), late(10.0)) == ([], ["u"])
    seen(resized("Deferred", cpu="5"), 30.0)
    assert (late(10.0), late(30.0)) == ([], ["u"])
    seen(resized(""), 40.0)
    assert late(100.0) == []
    seen(resized("Deferred"), 50.0)
    known.drop("u")
    seen(resized("Deferred"), 60.0, ours=False)
    assert late(100.0) == []


@pytest.mark.parametrize(
    ("owner", "said", "why"),
    [
        ("ReplicaSet", "", ""),
        ("ReplicaSet", "move", ""),
        ("ReplicaSet", "stay", f"annotation {ON_RESIZE}: stay"),
        ("StatefulSet", "Move", f"annotation {ON_RESIZE}: found 'Move', expected move or stay"),
        ("", "", NOBODY_MAKES_IT_ANEW),
        ("", "move", ""),
        ("DaemonSet", "move", "its DaemonSet would create it again on the same node"),
    ],
)
def test_a_pod_is_moved_only_if_it_comes_back_elsewhere_and_nobody_objects(owner: str, said: str, why: str) -> None:
    assert stays(resized("Deferred", owner=owner, said=said)) == why
