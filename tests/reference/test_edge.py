"""Delay-aware placement and its comparators, the slow references: each equation and rule by a hand computation."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import pytest

from reference.edge import delay_aware, elastic_fog, equations, kcss, least_requested, nas, tsra
from reference.edge.cluster import Cluster, Delay, Node, Pod


def first(count: int) -> int:
    assert count > 1, "nothing to draw"
    return 0


def last(count: int) -> int:
    return count - 1


def node(name: str, cpu: float = 2.0, memory: float = 4.0, network: float = 100.0) -> Node:
    return Node(name, {"cpu": cpu, "memory": memory, "network": network})


def pod(cpu: float = 0.3, memory: float = 0.3, network: float = 1.0, **fields: object) -> Pod:
    return Pod("p", {"cpu": cpu, "memory": memory, "network": network}, **fields)  # type: ignore[arg-type]


# --- equations -------------------------------------------------------------------------------------------------


def test_equation_8_divides_the_data_by_the_granted_cpu() -> None:
    assert equations.processing_delay(6.0, 1.5) == 4.0


@pytest.mark.parametrize(
    ("demand", "limit", "residual", "phi", "expected"),
    [(4, 8, 10, 0.5, 5), (4, 8, 6, 0.5, 4), (4, 8, 30, 0.5, 8), (4, 4, 30, 0.5, 4)],
)
def test_equation_9_grants_a_share_of_the_residual_between_demand_and_limit(
    demand: float, limit: float, residual: float, phi: float, expected: float
) -> None:
    assert equations.granted(demand, limit, residual, phi) == expected


def test_equation_10_adds_image_and_transmission() -> None:
    assert equations.local_delay(1.5, 6.0, 4.0) == 3.0


def test_equation_11_adds_half_of_round_trip_and_deviation() -> None:
    assert equations.remote_delay(1.5, 6.0, 4.0, 0.2, 0.05) == pytest.approx(3.125)


def test_equations_12_and_13_are_over_the_other_nodes() -> None:
    assert equations.mean_rtt([0.05, 0.06]) == pytest.approx(0.055)
    assert equations.rtt_deviation([0.05, 0.06]) == pytest.approx(0.005)
    cluster = Cluster(
        [node("n1"), node("n2"), node("n3")], {("n1", "n2"): 0.05, ("n1", "n3"): 0.06, ("n2", "n3"): 0.01}
    )
    assert [cluster.deviation(each) for each in cluster.nodes] == pytest.approx([0.005, 0.02, 0.025])


def test_equations_14_to_16_take_off_what_is_granted() -> None:
    assert equations.cpu_left(10.0, 4.0, 8.0, 0.5) == 5.0
    assert equations.cpu_left(6.0, 4.0, 8.0, 0.5) == 2.0
    assert equations.network_left(8.0, 3.0) == 5.0
    there = Node("n1", {"cpu": 10.0, "memory": 6.0, "network": 8.0})
    cluster = Cluster([there], {}, Delay(phi=0.5, grants=True))
    cluster.place(pod(4.0, 2.0, 3.0, limit={"cpu": 8.0, "memory": 2.5}), there)
    assert there.free == {"cpu": 5.0, "memory": 3.5, "network": 5.0}


def test_without_grants_demands_are_taken_off() -> None:
    there = Node("n1", {"cpu": 10.0, "memory": 6.0, "network": 8.0})
    Cluster([there], {}, Delay(phi=0.5)).place(pod(4.0, 2.0, 3.0, limit={"cpu": 8.0, "memory": 2.5}), there)
    assert there.free == {"cpu": 6.0, "memory": 4.0, "network": 5.0}


def test_equation_17_includes_its_bound() -> None:
    assert equations.acceptable(3.25, 3.0, 0.25)
    assert not equations.acceptable(3.26, 3.0, 0.25)


@pytest.mark.parametrize(("pods", "expected"), [(0, 0.0), (1, 0.75), (2, 1.25), (4, 4.25)])
def test_equation_18_doubles_competition_with_every_pod(pods: int, expected: float) -> None:
    assert equations.contention(pods, 0.25, 0.5) == expected


# --- the worked example ----------------------------------------------------------------------------------------


def test_the_worked_example_filters_n2_and_n4_and_chooses_n3() -> None:
    """Processing 5 and 3 s are given (no phi and limit yield them by equation 9); the rest is computed."""
    nodes = [
        Node(name, {"cpu": cpu, "memory": memory, "network": network})
        for name, cpu, memory, network in (("n1", 7, 8, 8), ("n2", 2, 5, 5), ("n3", 9, 7, 8), ("n4", 4, 3, 6))
    ]
    cluster = Cluster(nodes, {(a.name, b.name): 2.0 for a in nodes for b in nodes if a.name < b.name})
    cluster.delay = Delay(alpha=0.5, tolerance=0.05, context_switch=0.05, competition=0.05)
    wanted = pod(4.0, 5.0, 3.0, logins=(("n1", 1.0),), image="i", image_seconds=2.0)
    n1, _, n3, _ = nodes
    for each in nodes:
        each.pods.append(pod())
    assert [each for each in nodes if each.fits(wanted)] == [n1, n3]
    network = [delay_aware.network_delay(wanted, each, cluster) for each in (n1, n3)]
    assert network == [2.0, 3.0]
    gamma = equations.contention(len(n1.pods), 0.05, 0.05)
    omegas = [equations.omega(0.5, processing, delay, gamma) for processing, delay in zip((5, 3), network, strict=True)]
    assert omegas == pytest.approx([3.6, 3.1])
    assert delay_aware.rank(list(zip(omegas, (n1, n3), strict=True)), cluster, first) is n3


def test_equal_delays_are_drawn_when_residuals_are_equal_too() -> None:
    cluster = Cluster([node("a"), node("b")], {("a", "b"): 0.0})
    assert delay_aware.choose(pod(data=1.0), cluster.nodes, cluster, last) is cluster.nodes[1]


def test_among_nearly_equal_delays_the_larger_smaller_residual_wins() -> None:
    a, b = Node("a", {"cpu": 1.0, "memory": 9.0}), Node("b", {"cpu": 4.0, "memory": 5.0})
    cluster = Cluster([a, b], {("a", "b"): 0.01}, Delay(tolerance=0.1))
    wanted = Pod("p", {"cpu": 1.0, "memory": 2.0})
    assert delay_aware.choose(wanted, [a, b], cluster, first) is b
    assert min(b.free.values()) > min(a.free.values())
    assert sum(a.free.values()) > sum(b.free.values())


def test_a_pod_that_fits_nowhere_stays_pending_under_every_method() -> None:
    cluster = Cluster([node("n1"), node("n2")], {("n1", "n2"): 0.01})
    for method in (delay_aware, elastic_fog, kcss, least_requested, nas, tsra):
        assert method.choose(pod(cpu=3.0), cluster.nodes, cluster, first) is None


# --- comparators -----------------------------------------------------------------------------------------------


def run(choose: Callable[..., Node | None], cluster: Cluster, pods: list[Pod]) -> list[str]:
    names = []
    for each in pods:
        chosen = choose(each, cluster.nodes, cluster, first)
        assert chosen is not None
        cluster.place(each, chosen)
        names.append(chosen.name)
    return names


def test_least_requested_takes_the_emptiest_and_draws_among_equals() -> None:
    cluster = Cluster([node("n1"), node("n2"), node("n3")], {})
    cluster.place(pod(), cluster.nodes[0])
    chosen = least_requested.choose(pod(), cluster.nodes, cluster, last)
    assert chosen is cluster.nodes[2]
    assert least_requested.choose(pod(), cluster.nodes, cluster, first) is cluster.nodes[1]


def test_elastic_fog_follows_traffic_with_at_least_one_pod_each() -> None:
    cluster = Cluster([node("n1", 20), node("n2", 20), node("n3", 20)], {})
    pods = [pod(logins=(("n2" if i % 4 == 3 else "n1", 1.0),)) for i in range(12)]
    names = run(elastic_fog.choose, cluster, pods)
    assert sorted(names[:3]) == ["n1", "n2", "n3"]  # n3 has no traffic at all
    # 9 to 3 by traffic; the one on n3 is missing from either.
    assert [names.count(name) for name in ("n1", "n2", "n3")] in ([8, 3, 1], [9, 2, 1])


def test_traffic_of_a_place_without_a_node_enters_by_nearness() -> None:
    cluster = Cluster([node("n1"), node("n2")], {("master", "n1"): 0.1, ("master", "n2"): 0.3, ("n1", "n2"): 0.2})
    assert elastic_fog.entering("master", cluster) == pytest.approx({"n1": 0.75, "n2": 0.25})
    assert elastic_fog.entering("n2", cluster) == {"n2": 1.0}


def test_tsra_shares_the_cpu_and_keeps_to_local_data() -> None:
    cluster = Cluster([node("n1"), node("n2", 1.0)], {})
    mine = pod(limit={"cpu": 1.0}, data=2.0, logins=(("n2", 1.0),), network=4.0)
    n1, n2 = cluster.nodes
    assert tsra.task_time(mine, n1, 2, cluster) == pytest.approx(2.5)  # a vCPU, and 2 of data at 4
    assert tsra.task_time(mine, n1, 4, cluster) == pytest.approx(4.5)
    assert tsra.task_time(mine, n2, 1, cluster) == pytest.approx(2.0)
    assert run(tsra.choose, cluster, [mine, mine, mine, mine]) == ["n2", "n1", "n1", "n1"]


def test_tsra_puts_deadlines_before_speed() -> None:
    cluster = Cluster([node("n1", 2.0), node("n2", 1.0)], {})
    tight = pod(limit={"cpu": 1.0}, data=2.0, deadline=2.0, logins=(("n1", 1.0),))
    patient = pod(limit={"cpu": 1.0}, data=2.0, deadline=inf, logins=(("n2", 1.0),))
    n1, n2 = cluster.nodes
    cluster.place(tight, n1)
    cluster.place(tight, n1)
    cluster.place(patient, n2)
    # Shared by three, n1 takes 3 s + 2 s of sending, n2 by two 4 s and no sending: n1 would lose both tight ones.
    assert tsra.choose(patient, cluster.nodes, cluster, first) is n2


def test_nas_prefers_its_node_then_the_nearest_to_it() -> None:
    rtt = {("n1", "n2"): 0.05, ("n1", "n3"): 0.06, ("n2", "n3"): 0.01}
    cluster = Cluster([node("n1"), node("n2"), node("n3")], rtt)
    names = run(nas.choose, cluster, [pod(preferred="n1")] * 13)
    assert names == ["n1"] * 6 + ["n2"] * 6 + ["n3"]


def test_kcss_packs_and_topsis_agrees_with_a_hand_computation() -> None:
    cluster = Cluster([node("n1"), node("n2"), node("n3")], {})
    cluster.place(pod(), cluster.nodes[1])
    assert run(kcss.choose, cluster, [pod()] * 6) == ["n2"] * 5 + ["n1"]
    # Columns (3, 4) and (1, 0) have lengths 5 and 1; best (.8, 1), worst (.6, 0); rows are 1 and .2 from the best.
    assert kcss.topsis([(3.0, 1.0), (4.0, 0.0)]) == pytest.approx([1 / 1.2, 0.2 / 1.2])
