"""Reasons for waiting: counts on clusters small enough to count by hand, and never in contradiction to a pass."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from engine.workbench import BRONZE, GOLD, SILVER, T0, Chaos, settings
from slacktide.config import Config
from slacktide.engine.core import disruptions, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain import preemption
from slacktide.engine.explain.reasons import Explainer, Explanation, until_needed
from slacktide.model import Constraint, DisruptionLimits, Hours, Placement, Rule, ServiceClass, Term
from slacktide.model.causes import WORKLOAD
from slacktide.model.constraint import AnyOf, Tolerates, Toleration, taint_attribute
from slacktide.model.placement import Topology
from slacktide.state.spec import Spec
from support.calls import calls_of
from support.repository import REPOSITORY

ROOM = {"cpu": 4000, "memory": 2**34, "pods": 10}
ZONE = Topology("zone")


class Cluster:
    """Hosts of four cores; ``put`` finds an instance on one, ``wait`` lets one wait through a pass."""

    def __init__(self, config: Config | None = None) -> None:
        self.engine = Engine(config or settings())
        self.count = 0

    def host(self, name: str, up: bool = True, amounts: dict[str, int] | None = None, **attributes: str) -> None:
        self.engine.host(name, amounts or ROOM, attributes, up)

    def tainted(self, name: str, effect: str, key: str, value: str = "", **attributes: str) -> None:
        self.engine.host(name, ROOM, {taint_attribute(effect, key): value, **attributes}, True)

    def _new(self, service: ServiceClass, cpu: int, fields: dict[str, Any]) -> tuple[str, str, int]:
        self.count += 1
        key, uid = f"c{self.count}", f"p{self.count}"
        fields.setdefault("term", Term((Tolerates(),)))
        demand = {"cpu": cpu, "memory": 2**20, "pods": 1, **fields.pop("more", {})}
        self.engine.spec(self.count, Spec(tuple(sorted(demand.items())), service, **fields))
        self.engine.controller(key, service, 0, False)
        return key, uid, self.count

    def put(self, host: str, service: ServiceClass, cpu: int, budget: str = "", **fields: Any) -> str:
        key, uid, number = self._new(service, cpu, fields)
        self.engine.found(uid, uid, key, number, host, T0, budget)
        self.engine.ready(uid, T0)
        return uid

    def wait(self, service: ServiceClass, cpu: int, at: float = 100.0, **fields: Any) -> Explanation:
        key, uid, number = self._new(service, cpu, fields)
        self.engine.arrive(uid, uid, key, number, T0 + at)
        self.engine.wake(uid)
        assert uid not in {one.uid for one in self.engine.run(T0 + at).decisions}
        found = Explainer(self.engine).explain(uid, T0 + at)
        assert found is not None
        return found


def test_a_policy_from_pieces_says_who_goes() -> None:
    config = settings()
    name = f"{REPOSITORY / 'examples' / '05_priority_from_pieces.py'}:priority"
    cluster = Cluster(replace(config, policy=replace(config.policy, name=name)))
    cluster.host("full")
    cluster.put("full", GOLD, 4000)
    assert dict(cluster.wait(SILVER, 1000).preemption) == {preemption.OWN_RULES: 1}


def test_the_sentence_of_the_issue() -> None:
    cluster = Cluster()
    for i in range(12):
        cluster.host(f"full-{i}")
        cluster.put(f"full-{i}", GOLD, 4000)
    for i in range(8):
        cluster.tainted(f"tainted-{i}", "NoSchedule", "x")
    found = cluster.wait(SILVER, 1000)
    assert str(found) == (
        "0/20 nodes are available: 12 Insufficient cpu, 8 node(s) had untolerated taint {x}. "
        "preemption: 0/20 nodes are available: 8 Preemption is not helpful for scheduling, 12 No preemption victims "
        "found for incoming pod (12 node(s) with pods that need to stay to keep their promise)."
    )


def test_hosts_count_under_the_first_thing_that_fails_and_under_every_resource_they_lack() -> None:
    cluster = Cluster()
    cluster.host("down", up=False)
    cluster.tainted("cordoned", "NoSchedule", "node.kubernetes.io/unschedulable")
    cluster.tainted("tainted", "NoExecute", "k", "v", disk="hdd")
    cluster.host("slow", disk="hdd")
    cluster.host("bare")
    cluster.host("small", amounts={"cpu": 500, "memory": 2**10, "pods": 10}, disk="ssd")
    cluster.host("crowded", amounts={"cpu": 500, "memory": 2**34, "pods": 0}, disk="ssd")
    cluster.host("no-gpu", disk="ssd")
    term = Term((Constraint("disk", "==", "ssd"), Tolerates((Toleration("other", any_value=True),))))
    found = cluster.wait(GOLD, 1000, term=term, more={"nvidia.com/gpu": 1})
    assert found.nodes == 8
    assert found.counts == {
        "node(s) were not ready or not managed by this scheduler": 1,
        "node(s) were unschedulable": 1,
        "node(s) had untolerated taint {k: v}": 1,
        "node(s) didn't match Pod's node affinity/selector (disk == ssd)": 2,
        "Insufficient cpu": 2,
        "Insufficient memory": 1,
        "Too many pods": 1,
        "Insufficient nvidia.com/gpu": 3,
    }
    assert found.preemption == {preemption.TOO_SMALL: 3}


def test_node_affinity_with_alternatives_counts_as_one_condition() -> None:
    cluster = Cluster()
    for name, zone in (("a", "1"), ("b", "2"), ("c", "3")):
        cluster.host(name, zone=zone)
    either = AnyOf((Term((Constraint("zone", "==", "8"),)), Term((Constraint("zone", "gt", "8"),))))
    found = cluster.wait(GOLD, 1000, term=Term((either,)))
    assert found.counts == {"node(s) didn't match Pod's node affinity/selector ((zone == 8) or (zone gt 8))": 3}
    assert str(found).endswith("preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")


def test_rules_about_neighbours_are_told_apart() -> None:
    cluster = Cluster()
    for i in range(4):
        cluster.host(f"h{i}", zone=f"z{i // 2}")
    cluster.put("h0", GOLD, 100, placement=Placement(marks=("web",)))
    cluster.put("h2", GOLD, 100, placement=Placement(marks=("port:TCP/80", "port:TCP/80@*")))
    rules = (Rule("away", "web"), Rule("away", "port:TCP/80"), Rule("near", "db", ZONE), Rule("spread", "web", ZONE))
    one = cluster.wait(GOLD, 100, placement=Placement((), rules[:3]))
    # h0 stands near web; h2's port is taken; h1 and h3 lie near no db.
    assert one.counts == {
        "node(s) had 'web' near": 1,
        "node(s) had 'port:TCP/80' near": 1,
        "node(s) had no 'db' near": 2,
    }
    assert one.preemption == {}, "being near nothing cannot be helped by preemption"
    spread = Placement(("web",), (Rule("spread", "web", ZONE), Rule("away", "web"), Rule("away", "port:TCP/80")))
    cluster.engine.host("h3", {**ROOM, "cpu": 50}, {"zone": "z1"}, True)
    two = cluster.wait(GOLD, 100, placement=spread)
    # One web in z0 already, none in z1: in z0 there would be one too many.
    assert two.counts == {
        "node(s) would have more than their share of 'web'": 2,
        "node(s) had 'port:TCP/80' near": 1,
        "Insufficient cpu": 1,
    }
    # On h0 the one web could go, on h2 the port's pod; on h1, whose web is on h0, nobody's going would help.
    assert two.preemption == {preemption.PROMISE: 2, preemption.TOO_SMALL: 1, preemption.CROWDED: 1}


def test_an_own_name_for_rules_is_used() -> None:
    cluster = Cluster()
    cluster.host("a")
    cluster.put("a", GOLD, 100, placement=Placement(marks=("web",)))
    cluster.wait(GOLD, 100, placement=Placement((), (Rule("away", "web"),)))
    explainer = Explainer(cluster.engine, lambda rule: f"{rule.kind} from {rule.mark}")
    assert explainer.reason("p2", T0 + 100).startswith(
        "0/1 nodes are available: 1 away from web. preemption: 0/1 nodes are available: 1 No preemption victims found"
    )


def test_carriers_elsewhere_in_the_domain_cannot_be_preempted_here() -> None:
    cluster = Cluster()
    cluster.host("a", zone="1")
    cluster.host("b", zone="1")
    cluster.put("a", BRONZE, 100, placement=Placement(marks=("web",)))
    cluster.put("b", BRONZE, 100, placement=Placement(marks=("web",)))
    found = cluster.wait(GOLD, 100, placement=Placement((), (Rule("away", "web", ZONE),)))
    assert found.counts == {"node(s) had 'web' near": 2}
    assert found.preemption == {preemption.CROWDED: 2}


def test_every_way_of_not_being_preempted_is_counted_apart() -> None:
    cluster = Cluster()
    for name in ("foreign", "budgeted", "guarded", "important", "half"):
        cluster.host(name)
    cluster.engine.other("x", "foreign", {"cpu": 3500, "memory": 0, "pods": 1}, ())
    cluster.engine.budget("none-left", 0)
    cluster.put("budgeted", BRONZE, 4000, budget="none-left")
    cluster.engine.doomed(cluster.put("guarded", BRONZE, 4000))
    cluster.put("important", GOLD, 4000)
    cluster.engine.budget("one-left", 1)
    for _ in range(2):
        cluster.put("half", BRONZE, 2000, budget="one-left")
    found = cluster.wait(SILVER, 3000)
    assert found.counts == {"Insufficient cpu": 5}
    apart = {preemption.TOO_SMALL: 1, preemption.PROTECTED: 2, preemption.GUARDED: 1, preemption.PROMISE: 1}
    assert found.preemption == apart


def test_whoever_was_preempted_too_often_is_counted_apart() -> None:
    cluster = Cluster()
    cluster.host("a")
    uid = cluster.put("a", SILVER, 4000)
    row = cluster.engine.pods[uid].row
    cluster.engine.tables.tb["slots"]["overhead"][0][0] = 1000.0
    assert cluster.engine.tables.tb["slots"]["row"][0][0] == row
    assert cluster.wait(SILVER, 4000).preemption == {preemption.OVERHEAD: 1}


def test_by_priority_ranks_decide() -> None:
    cluster = Cluster(priority())
    cluster.host("a")
    cluster.host("b")
    cluster.put("a", GOLD, 4000)
    cluster.put("b", SILVER, 4000)
    assert cluster.wait(SILVER, 1000).preemption == {preemption.PRIORITY_RULES: 2}


def priority() -> Config:
    config = settings()
    return replace(config, policy=replace(config.policy, name="priority"))


def test_one_that_can_still_wait_says_how_long() -> None:
    cluster = Cluster()
    cluster.host("a")
    cluster.put("a", BRONZE, 4000)
    uid = cluster.put("a", BRONZE, 0)
    cluster.engine.gone(uid, T0 + 100)
    cluster.engine.arrive("again", uid, "c2", 2, T0 + 100)
    cluster.engine.respec("again", 1)
    cluster.engine.wake("again")
    assert not cluster.engine.run(T0 + 100).decisions
    # Bronze (0.5) ran for 100 s: entitled to 200 s, alpha 10 s, margin 10 s.
    assert Explainer(cluster.engine).reason("again", T0 + 100) == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: may preempt in 80.0s if still pending."
    )
    # What is written to the pod stays the same while only time passes.
    for later in (100, 130):
        assert Explainer(cluster.engine).lasting_reason("again", T0 + later) == (
            "0/1 nodes are available: 1 Insufficient cpu. preemption: may preempt later if still pending."
        )
    assert Explainer(cluster.engine).lasting_reason("nobody", T0 + 130) == ""


def test_one_whose_promise_cannot_break_is_given_no_number_of_seconds() -> None:
    assert until_needed(math.inf, 10.0) == "may not preempt while its promise cannot break as things stand"
    assert until_needed(90.0, 10.0) == "may preempt in 80.0s if still pending"


def test_one_that_can_be_placed_nowhere_is_told_the_same_for_ever() -> None:
    """It takes no part in passes. Its slack grows, as nothing is the cluster's doing: did the reason go by that, each
    of thousands would be told anew after some minutes."""
    cluster = Cluster()
    cluster.host("a")
    cluster.put("a", GOLD, 1000)
    for cpu in (5000, 3500):  # one that no node can take, one that may not be where it could be
        cluster.wait(replace(SILVER, slo=0.5), cpu)
        uid = f"p{cluster.count}"
        cluster.engine.blame(uid, WORKLOAD, T0 + 100.0)
        for seconds in (100.0, 300.0, 3000.0):
            later = Explainer(cluster.engine).explain(uid, T0 + seconds)
            assert later is not None
            assert later.lasting() == (
                "0/1 nodes are available: 1 Insufficient cpu. "
                "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
            )


def test_whoever_is_late_says_that_its_class_is_overloaded() -> None:
    config = settings()
    cluster = Cluster(replace(config, policy=replace(config.policy, overload="triage")))
    cluster.host("a")
    uid = cluster.put("a", SILVER, 4000)
    cluster.put("a", GOLD, 0)
    explainer = Explainer(cluster.engine)

    def said(uid: str, at: float) -> str:
        cluster.engine.run(T0 + at)
        return explainer.reason(uid, T0 + at).split(". ", 2)[2]

    cluster.engine.unready(uid, T0 + 100)
    cluster.engine.gone(uid, T0 + 100)
    cluster.put("a", GOLD, 4000)
    cluster.engine.arrive("again", uid, "c1", 1, T0 + 100)
    cluster.engine.wake("again")
    cluster.engine.run(T0 + 140)
    # Silver (0.9) ran for 100 s: entitled to 111.1 s, alpha 10 s. It is late at 141.1 s, and below 0.045 at 2222 s.
    assert explainer.reason("again", T0 + 140).endswith("keep their promise).")
    assert said("again", 150) == "lost: its class is overloaded."
    assert said("again", 2200) == "lost: its class is overloaded."
    assert said("again", 2300) == "starving: its class is overloaded."
    never_ran, above = cluster.count + 1, cluster.count + 2
    cluster.wait(SILVER, 4000, at=2300)
    assert said(f"p{never_ran}", 2301) == "its class is overloaded."
    assert said(f"p{never_ran}", 2400) == "starving: its class is overloaded."
    cluster.wait(BRONZE, 4000, at=2400)
    assert not said_of_overload(explainer.reason(f"p{above}", T0 + 2400))


def said_of_overload(reason: str) -> bool:
    return "overloaded" in reason


def test_where_nobody_is_given_up_no_reason_speaks_of_it() -> None:
    config = settings()
    for other in (replace(config, policy=replace(config.policy, overload="share")), priority()):
        cluster = Cluster(other)
        cluster.host("a")
        cluster.put("a", GOLD, 4000)
        cluster.wait(SILVER, 4000)
        assert not said_of_overload(Explainer(cluster.engine).reason("p2", T0 + 1000))


def test_preemption_policy_never() -> None:
    cluster = Cluster()
    cluster.host("a")
    cluster.put("a", BRONZE, 4000)
    assert str(cluster.wait(GOLD, 1000, never=True)).endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_no_nodes_at_all() -> None:
    assert str(Cluster().wait(GOLD, 1)) == (
        "no nodes available to schedule pods. preemption: Preemption is not helpful for scheduling."
    )


def test_room_that_came_after_the_pass_is_said() -> None:
    cluster = Cluster()
    cluster.host("a")
    uid = cluster.put("a", GOLD, 4000)
    cluster.wait(SILVER, 1000)
    cluster.engine.gone(uid, T0 + 101)
    assert Explainer(cluster.engine).reason("p2", T0 + 101).startswith("0/1 nodes are available: 1 node(s) have become")


@pytest.mark.parametrize("seed", range(40))
def test_a_reason_never_contradicts_the_pass_before_it(seed: int) -> None:
    """Where a pass has just placed nobody, no host has room and on none the victims would suffice."""
    chaos, checked = Chaos(seed), 0
    for _ in range(120):
        chaos.step()
        engine = chaos.bench.engine
        if chaos.bench.run(chaos.t):
            continue  # who came to a host in this pass is no victim of the same pass
        explainer = Explainer(engine)
        for uid in engine.waiting():
            found = explainer.explain(uid, T0 + chaos.t)
            assert found is not None
            assert found.fits == 0
            assert preemption.BY_NOW not in found.preemption
            assert sum(found.preemption.values()) == (0 if found.held else 1)
            checked += 1
    assert checked > 3


def test_a_reason_leaves_what_decisions_are_based_on_as_it_was() -> None:
    chaos = Chaos(7)
    for _ in range(80):
        chaos.step()
    chaos.bench.run(chaos.t)
    engine = chaos.bench.engine
    engine.tables.settle()
    names = ("instances", "slots", "hosts", "ceilings", "requests", "kinds", "queue", "free", "tallies", "conditions")
    before = [engine.tables.tb[name].tobytes() for name in names], engine.tables.tb.control.tobytes()
    for uid in [uid for uid, one in engine.pods.items() if one.state == types.WAITING]:
        assert re.match(r"0/1 nodes are available: ", Explainer(engine).reason(uid, T0 + chaos.t))
    assert before == ([engine.tables.tb[name].tobytes() for name in names], engine.tables.tb.control.tobytes())


def test_a_kind_on_5000_nodes_takes_few_calls_and_once_one_for_each_taint() -> None:
    cluster = Cluster()
    engine = cluster.engine
    taint = {taint_attribute("NoSchedule", "dedicated"): "batch"}
    labels = {f"example.com/label-{i}": "value" for i in range(15)}
    for i in range(5000):
        attributes = {"metadata.name": f"n{i}", "zone": f"z{i % 3}", **labels, **(taint if i % 5 == 0 else {})}
        engine.host(f"n{i}", ROOM, attributes, True)
    engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20), ("pods", 1)), BRONZE, placement=Placement(marks=("b",))))
    engine.controller("many", BRONZE, 2, False)
    for i in range(20_000):
        engine.found(f"u{i}", f"u{i}", "many", 0, f"n{i // 4}", T0)
    rules = (Rule("spread", "b", ZONE), Rule("away", "b", ZONE), Rule("away", "port:TCP/80"))
    term = Term((Constraint("zone", "in", values=("z0", "z1")), Tolerates()))
    cluster.wait(GOLD, 1000, term=term, placement=Placement(("b",), rules))
    uid = f"p{cluster.count}"
    explainer = Explainer(engine)

    def explain(after: float) -> None:
        found = explainer.explain(uid, T0 + 100 + after)
        assert found is not None
        assert sum(found.counts.values()) == 5000

    assert calls_of(lambda: explain(0.0)) < 17 * 5000, "also the first time, when taints are read"
    assert calls_of(lambda: explain(2.0)) < 4 * 5000


@pytest.mark.parametrize(
    ("limits", "sentence", "words"),
    [
        (
            DisruptionLimits(1, 200.0),
            preemption.TOO_MANY,
            ["disrupted 1 times, at most 1 in 3m20s are allowed; the next one in 110 s at the earliest"],
        ),
        (
            DisruptionLimits(cooldown=300.0),
            preemption.COOLING,
            ["cooldown of 5m after a disruption: it starts when 1 of its pods are ready again"],
        ),
        (
            DisruptionLimits(hours=(Hours(("Mon",), 0, 1),)),
            preemption.CLOSED,
            ["may be disrupted at some hours only: from 2026-09-28T00:00:00Z on"],
        ),
        (
            DisruptionLimits(min_running=500.0),
            preemption.PROTECTED,
            ["no pod is preempted in its first 8m20s on a node"],
        ),
    ],
)
def test_which_limit_protects_a_pod_is_said(limits: DisruptionLimits, sentence: str, words: list[str]) -> None:
    cluster = Cluster(replace(settings(), policy=replace(settings().policy, name="priority")))
    cluster.host("node")
    victim = cluster.put("node", BRONZE, 4000)
    engine = cluster.engine
    controller = engine.controllers[engine.pods[victim].key]
    assert disruptions.standing(engine.instances, controller, T0) == []
    engine.limits(controller.key, limits, T0)
    engine.displace(victim, T0 + 10.0)
    engine.instances.bind(engine.pods[victim], T0)  # as if it had been bound with these limits
    found = cluster.wait(GOLD, 1000)
    assert found.preemption == {sentence: 1}
    assert disruptions.standing(engine.instances, controller, T0 + 100.0) == words
