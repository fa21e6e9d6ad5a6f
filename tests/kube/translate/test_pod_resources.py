"""Effective requests, host ports and allocatable amounts, by hand-computed tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.kube.translate.nodes import allocatable, host_ports, requests
from slacktide.kube.translate.unschedulable import Unschedulable, gated
from support.made_objects import container, node, pod

GI = 2**30


def test_a_pod_without_requests_takes_a_place_and_nothing_else() -> None:
    assert requests(pod(containers=[{"name": "c"}])) == {"pods": 1}


def test_containers_add_up_and_overhead_comes_on_top() -> None:
    one = pod(
        containers=[container("a", cpu="250m", memory="1Gi"), container("b", cpu="1", **{"example.com/gpu": "2"})],
        overhead={"cpu": "100m", "memory": "1Mi"},
    )
    assert requests(one) == {"cpu": 1350, "memory": GI + 2**20, "example.com/gpu": 2, "pods": 1}


def test_initialisation_counts_where_it_needs_more() -> None:
    one = pod(
        initContainers=[container("i", cpu="2", memory="1Gi"), container("j", cpu="3")],
        containers=[container("a", cpu="1", memory="2Gi"), container("b", cpu="500m")],
    )
    assert requests(one) == {"cpu": 3000, "memory": 2 * GI, "pods": 1}


def test_sidecars_run_beside_the_init_containers_that_follow_and_the_containers() -> None:
    one = pod(
        initContainers=[
            container("first", cpu="4"),
            container("sidecar", "Always", cpu="1", memory="1Gi"),
            container("second", cpu="3", memory="1Gi"),
            container("other", "Always", cpu="2"),
        ],
        containers=[container("a", cpu="500m")],
    )
    # first 4, then 1, 1 + 3, 1 + 2; running: 1 + 2 + 0.5
    assert requests(one) == {"cpu": 4000, "memory": 2 * GI, "pods": 1}


def test_resources_of_the_pod_replace_those_of_its_containers() -> None:
    one = pod(
        resources={"requests": {"cpu": "1", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"}},
        containers=[container("a", cpu="3", memory="1Gi"), container("b", **{"ephemeral-storage": "2Gi"})],
        overhead={"cpu": "1"},
    )
    expected = {"cpu": 2000, "memory": GI, "hugepages-2Mi": 4 * 2**20, "ephemeral-storage": 2 * GI, "pods": 1}
    assert requests(one) == expected


def resizing(reason: str) -> dict[str, Any]:
    return {
        "containerStatuses": [
            {"name": "a", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}},
        ],
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
    }


@pytest.mark.parametrize(("reason", "cpu"), [("Deferred", 4000), ("Infeasible", 3000)])
def test_while_a_container_is_resized_the_largest_counts_unless_it_cannot_be(reason: str, cpu: int) -> None:
    one = pod(containers=[container("a", cpu="4")], status=resizing(reason))
    assert requests(one) == {"cpu": cpu, "pods": 1}


def test_parts_of_a_millicore_are_rounded_once() -> None:
    assert requests(pod(containers=[container("a", cpu="400u"), container("b", cpu="400u")]))["cpu"] == 1


def test_an_impossible_quantity_names_container_resource_and_value() -> None:
    with pytest.raises(Unschedulable, match=r"container a: request for memory: found '1Gib', expected a Kubernetes"):
        requests(pod(containers=[container("a", memory="1Gib")]))
    with pytest.raises(Unschedulable, match=r"spec.overhead: request for cpu: found '-1'"):
        requests(pod(overhead={"cpu": "-1"}))


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "x.io/y"]), st.integers(0, 9).map(lambda n: f"{n}00m"))
CONTAINERS = st.lists(st.tuples(st.booleans(), AMOUNTS), max_size=4)


@given(CONTAINERS, CONTAINERS)
def test_a_pod_never_needs_more_at_any_moment_than_its_effective_request(
    before: list[tuple[bool, dict[str, str]]], after: list[tuple[bool, dict[str, str]]]
) -> None:
    one = pod(
        initContainers=[
            container(f"i{k}", "Always" if always else "", **some) for k, (always, some) in enumerate(before)
        ],
        containers=[container(f"c{k}", **some) for k, (_, some) in enumerate(after)],
    )
    for name in ("cpu", "memory", "x.io/y"):
        milli = [int(some.get(name, "0m")[:-1]) for _, some in before]
        moments, sidecars = [], 0
        for (always, _), need in zip(before, milli, strict=True):
            moments.append(sidecars + need)
            sidecars += need if always else 0
        moments.append(sidecars + sum(int(some.get(name, "0m")[:-1]) for _, some in after))
        most = max(moments)
        assert requests(one).get(name, 0) == (most if name == "cpu" else -(-most // 1000))


def test_host_ports_of_containers_and_sidecars_only() -> None:
    ports = [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]
    one = pod(
        containers=[{"name": "a", "ports": [*ports, {"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]}],
        initContainers=[
            {"name": "i", "ports": [{"hostPort": 81}]},
            {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 82}]},
        ],
    )
    assert host_ports(one) == (("TCP", "0.0.0.0", 80), ("TCP", "0.0.0.0", 82), ("UDP", "10.0.0.1", 53))


def test_allocatable_counts_pods_and_every_resource() -> None:
    one = node(allocatable={"cpu": "3920m", "memory": "32Gi", "pods": "110", "x.io/gpu": "4"})
    assert allocatable(one) == {"cpu": 3920, "memory": 32 * GI, "pods": 110, "x.io/gpu": 4}
    assert allocatable(node()) == {"pods": 0}
    with pytest.raises(ValueError, match=r"status.allocatable\[cpu\]: found 'many'"):
        allocatable(node(allocatable={"cpu": "many"}))


def test_pods_with_gates_are_not_to_be_scheduled_yet() -> None:
    assert gated(pod(schedulingGates=[{"name": "quota"}]))
    assert not gated(pod())
