"""Which devices a node can use, from the slices that drivers write."""

from __future__ import annotations

from typing import Any

from slacktide.kube.resources.objects import DEVICE_TAINT_RULE, RESOURCE_SLICE, DeviceTaintRule, ResourceSlice
from slacktide.kube.translate.devices.pools import Pools
from support.made_objects import decoded

NODES = {name: {"metadata.name": name, "zone": zone} for name, zone in (("n1", "z1"), ("n2", "z2"))}


def resource_slice(name: str, *devices: Any, generation: int = 1, count: int = 1, **more: Any) -> ResourceSlice:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    made = [{"name": one} if isinstance(one, str) else one for one in devices]
    return decoded(
        RESOURCE_SLICE,
        {"metadata": {"name": name}, "spec": {"driver": "d.example", "pool": pool, "devices": made, **more}},
    )


def zone(*names: str) -> Any:
    here = {"key": "zone", "operator": "In", "values": list(names)}
    return {"nodeSelectorTerms": [{"matchExpressions": [here]}]}


def names(pools: Pools, node: str) -> list[str]:
    return [one.id.device for one in pools.of(NODES[node]).devices]


def test_devices_of_one_node_of_some_and_of_all() -> None:
    pools = Pools()
    assert pools.see(resource_slice("a", "x", nodeName="n1")) == frozenset({"n1"})
    assert (names(pools, "n1"), names(pools, "n2")) == (["x"], [])
    assert pools.see(resource_slice("a", "x", nodeSelector=zone("z2"))) is None
    assert (names(pools, "n1"), names(pools, "n2")) == ([], ["x"])
    assert pools.see(resource_slice("a", "x", allNodes=True)) is None
    assert (names(pools, "n1"), names(pools, "n2")) == (["x"], ["x"])
    assert pools.drop("a") is None
    assert names(pools, "n1") == []
    assert pools.drop("a") == frozenset()


def test_a_pool_that_becomes_one_of_several_nodes_and_goes() -> None:
    pools = Pools()
    pools.see(resource_slice("a", "x", count=2, nodeName="n1"))
    assert pools.see(resource_slice("b", "y", count=2, allNodes=True)) is None
    assert (names(pools, "n1"), names(pools, "n2")) == (["x", "y"], ["y"])
    pools.drop("a")
    pools.see(resource_slice("b", "y", count=1, allNodes=True))
    assert (names(pools, "n1"), names(pools, "n2")) == (["y"], ["y"])
    pools.drop("b")
    assert (names(pools, "n1"), names(pools, "n2")) == ([], [])


def test_each_device_may_have_nodes_of_its_own() -> None:
    pools = Pools()
    devices = [
        {"name": "x", "nodeName": "n1"},
        {"name": "y", "allNodes": True},
        {"name": "z", "nodeSelector": zone("z2")},
    ]
    pools.see(resource_slice("a", *devices, perDeviceNodeSelection=True))
    assert (names(pools, "n1"), names(pools, "n2")) == (["x", "y"], ["y", "z"])
    assert [one.local for one in pools.of(NODES["n1"]).devices] == [True, False]


def test_the_newest_generation_counts_once_all_its_slices_are_there() -> None:
    pools = Pools()
    pools.see(resource_slice("old", "x", nodeName="n1"))
    pools.see(resource_slice("a", "y", generation=2, count=2, nodeName="n1"))
    assert names(pools, "n1") == []
    assert "resource pool d.example/p is incomplete: 1 of 2" in pools.of(NODES["n1"]).unready
    pools.see(resource_slice("b", "z", generation=2, count=2, nodeName="n1"))
    assert names(pools, "n1") == ["y", "z"]
    assert pools.of(NODES["n1"]).unready == ""
    pools.drop("b")
    assert names(pools, "n1") == []
    pools.drop("a")
    assert names(pools, "n1") == ["x"]


def test_a_pool_that_another_node_waits_for_concerns_only_that() -> None:
    pools = Pools()
    pools.see(resource_slice("a", "y", count=2, nodeName="n1"))
    assert pools.of(NODES["n2"]).unready == ""


def test_two_devices_of_one_name_make_a_pool_invalid() -> None:
    pools = Pools()
    pools.see(resource_slice("a", "x", count=2, nodeName="n1"))
    pools.see(resource_slice("b", "x", count=2, nodeName="n1"))
    assert names(pools, "n1") == []
    assert "invalid" in pools.of(NODES["n1"]).unready


def test_counters_of_a_pool() -> None:
    pools = Pools()
    memory = {"gpu": {"memory": {"value": "80Gi"}}}

    def taking(name: str, amount: str, counter: str = "memory") -> Any:
        return {"name": name, "consumesCounters": [{"counterSet": "gpu", "counters": {counter: {"value": amount}}}]}

    shared = [{"name": name, "counters": counters} for name, counters in memory.items()]
    pools.see(resource_slice("a", count=3, sharedCounters=shared, nodeName="n1"))
    pools.see(resource_slice("b", taking("x", "40Gi"), count=3, nodeName="n1"))
    concerned = pools.see(resource_slice("c", taking("y", "20Gi"), count=3, nodeName="n2"))
    assert concerned == frozenset({"n1", "n2"})
    found = pools.of(NODES["n1"])
    (counters,) = found.counters.values()
    gibibyte = 2**30 * 10**9
    assert counters.total == {("gpu", "memory"): 80 * gibibyte}
    assert {one.device: takes for one, takes in counters.takes} == {
        "x": {("gpu", "memory"): 40 * gibibyte},
        "y": {("gpu", "memory"): 20 * gibibyte},
    }
    assert [one.takes for one in found.devices] == [{("gpu", "memory"): 40 * gibibyte}]
    pools.see(resource_slice("c", taking("y", "20Gi", "cores"), count=3, nodeName="n2"))
    assert names(pools, "n1") == []
    assert "device y takes of counter gpu/cores, which is not defined" in pools.of(NODES["n1"]).unready
    pools.see(resource_slice("c", count=3, sharedCounters=shared, nodeName="n2"))
    assert "counter set gpu is defined twice" in pools.of(NODES["n1"]).unready


def test_devices_are_tried_in_the_order_of_pools_and_slices() -> None:
    pools = Pools()
    pools.see(resource_slice("b", "x", count=2, nodeName="n1"))
    pools.see(resource_slice("a", "y", "z", count=2, nodeName="n1"))
    assert names(pools, "n1") == ["y", "z", "x"]


def test_pools_with_devices_that_are_yet_to_be_attached_come_last() -> None:
    pools = Pools()
    attached = {"name": "x", "bindingConditions": ["attached"], "bindingFailureConditions": ["failed"]}
    pools.see(resource_slice("a", attached, "y", nodeName="n1"))
    pools.see(resource_slice("b", "z", nodeName="n1", pool={"name": "q", "generation": 1, "resourceSliceCount": 1}))
    assert names(pools, "n1") == ["z", "x", "y"]


def test_a_pool_of_several_nodes_is_read_once_for_all_of_them() -> None:
    """So what is known of a device, by which selectors it is meant, is known on each."""
    pools = Pools()
    pools.see(resource_slice("a", "x", {"name": "y"}, allNodes=True))
    first, second = (pools.of(NODES[name]).devices for name in ("n1", "n2"))
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, True]
    pools.see(resource_slice("a", "x", allNodes=True))
    assert names(pools, "n1") == ["x"]


def taint_rule(name: str, **selector: str) -> DeviceTaintRule:
    taint = {"key": name, "effect": "NoSchedule"}
    spec = {"taint": taint, **({"deviceSelector": selector} if selector else {})}
    return decoded(DEVICE_TAINT_RULE, {"metadata": {"name": name}, "spec": spec})


def taints(pools: Pools, node: str) -> list[list[str]]:
    return [[taint.key for taint in one.device.taints] for one in pools.of(NODES[node]).devices]


def test_rules_taint_devices_beside_their_drivers() -> None:
    pools = Pools()
    own = {"name": "x", "taints": [{"key": "own", "effect": "NoExecute"}]}
    pools.see(resource_slice("a", own, "y", nodeName="n1"))
    pools.see(resource_slice("b", "z", nodeName="n2", pool={"name": "q", "generation": 1, "resourceSliceCount": 1}))
    assert pools.on_rule_update(taint_rule("all")) == frozenset({"n1", "n2"})
    assert (taints(pools, "n1"), taints(pools, "n2")) == ([["own", "all"], ["all"]], [["all"]])
    assert pools.on_rule_update(taint_rule("one", driver="d.example", pool="p", device="y")) == frozenset({"n1"})
    assert pools.on_rule_update(taint_rule("none", driver="other.example")) == frozenset()
    assert (taints(pools, "n1"), taints(pools, "n2")) == ([["own", "all"], ["all", "one"]], [["all"]])
    assert pools.on_rule_update(taint_rule("all", pool="q")) == frozenset({"n1", "n2"}), "it is another one now"
    assert (taints(pools, "n1"), taints(pools, "n2")) == ([["own"], ["one"]], [["all"]])
    assert pools.on_rule_delete("one") == frozenset({"n1"})
    pools.see(
        resource_slice("b", "z", "w", nodeName="n2", pool={"name": "q", "generation": 1, "resourceSliceCount": 1})
    )
    assert (taints(pools, "n1"), taints(pools, "n2")) == ([["own"], []], [["all"], ["all"]])
    assert pools.on_rule_delete("one") == frozenset()
