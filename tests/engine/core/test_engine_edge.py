"""The live engine places by the delay of users as the simulator does, whatever is told to it meanwhile."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Decided, Operation
from slacktide.engine.journal import codec
from slacktide.engine.journal.replay import carry_out
from slacktide.kernels.builtin import AT_USERS
from slacktide.model import Access, ServiceClass
from slacktide.state.cluster import asks_for_users
from slacktide.state.compaction import compact
from slacktide.state.spec import Spec
from support.churning import BEGINNING, GI, live_config
from support.clusters import Cluster
from support.edges import edge
from support.following import Following, livable, simulated
from support.runs import first_difference

GOLD = ServiceClass("gold", 1.0, 1)


def at_the_edge(seed: int, **kind: Any) -> Cluster:
    """A random cluster whose score asks where users are. What memory is worth is given: the simulator sums up what
    hosts have in the units of files."""
    one = livable(edge(seed, **kind))
    if not asks_for_users(one.config):
        one = one.with_(policy={"name": "priority", "score": "delay-aware"})
    return one.with_(delay={"memory_per_cpu": 2.0})


class Disturbance:
    """Tells things that change nothing in the end, before each pass."""

    def __init__(self, following: Following, seed: int) -> None:
        self.following, self.engine = following, following.engine
        self.random = np.random.default_rng([seed, 0xD157])

    def __call__(self, _now: float) -> None:
        network, engine = self.following.one.hosts.network, self.engine
        if self.random.random() < 0.3:
            compact(engine.tables)
        if network is not None and self.random.random() < 0.5:
            engine.network(("elsewhere", *network.places), "", [(0, 1, 0.5), (1, 1, 0.7)])
            if self.random.random() < 0.5:
                engine.tables.settle()
            engine.network(network.places, network.site_key, [(0, 0, float(network.rtt[0, 0]))])
        if self.random.random() < 0.3:
            h = int(self.random.integers(len(self.following.one.hosts)))
            up = not engine.tables.tb["hosts"]["down"][h]
            engine.host(self.following.one.hosts.names[h], {"cpu": 7, "odd": 3}, {"zone": "q"}, up)
            engine.tables.settle()
            self.following.tell_host(h, up)


@pytest.mark.parametrize("kind", ["rows", "several", "neighbours"])
@pytest.mark.parametrize("disturbed", [False, True])
def test_the_engine_places_as_the_simulator_does(kind: str, disturbed: bool, tmp_path: Path) -> None:
    scores: Counter[str] = Counter()
    decisions = 0
    for seed in range(18):
        one = at_the_edge(seed, several=kind == "several", neighbours=kind == "neighbours")
        result, log = simulated(one, tmp_path)
        following = Following(one, result, Engine(one.config))
        if disturbed:
            following.between = Disturbance(following, seed)
        found = first_difference("decisions", log, following.run())
        assert found is None, f"seed {seed}: {found}"
        policy = one.config.policy
        scores[policy.name if policy.name in AT_USERS else policy.score] += 1
        decisions += len(log)
    assert len(set(scores) & set(AT_USERS)) >= 4
    assert decisions > 100


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    """Other round-trip times, told for good, do change decisions."""
    differ = 0
    for seed in range(120):
        one = at_the_edge(seed)
        network = one.hosts.network
        if network is None:
            continue
        result, log = simulated(one, tmp_path)
        farther = replace(network, rtt=np.triu(3.0 - network.rtt) + np.triu(3.0 - network.rtt, 1).T)
        changed = replace(one, hosts=replace(one.hosts, network=farther))
        differ += log != Following(changed, result, Engine(one.config)).run()
    assert differ > 2


def edge_engine(journal: Any = None, **delay: Any) -> Engine:
    """Three hosts of two cores, each a place of its own; master is a place without a host."""
    config = live_config(name="delay-aware")
    paper: dict[str, Any] = {"grants": True, "fetching": 1.0, "competition": 3e-6} | delay
    delays = replace(config.delay, alpha=0.25, tolerance=0.001, transfer=0.001, memory_per_cpu=2.0, **paper)
    engine = Engine(replace(config, delay=delays), journal=journal)
    for name in ("n1", "n2", "n3"):
        engine.host(name, {"cpu": 2000, "memory": 4 * GI, "pods": 10, "network": 100}, {}, True)
    rtt = {("master", "n1"): 0.2, ("master", "n2"): 0.15, ("master", "n3"): 0.16}
    rtt |= {("n1", "n2"): 0.05, ("n1", "n3"): 0.06, ("n2", "n3"): 0.01}
    places = ("master", "n1", "n2", "n3")
    engine.network(places, "", [(places.index(a), places.index(b), s) for (a, b), s in rtt.items()])
    engine.controller("c", GOLD, 0, False)
    return engine


def placed(engine: Engine, uid: str, at: float, *logins: tuple[str, float], image: str = "") -> str:
    """Where an instance goes whose users log in there."""
    spec = Spec((("cpu", 300), ("memory", GI // 2), ("network", 1)), GOLD, limit=(("cpu", 1000), ("memory", GI)))
    number = len(engine.pods)
    engine.spec(number, replace(spec, access=Access(0.4, image, logins)))
    engine.arrive(uid, uid, "c", number, at)
    engine.wake(uid)
    (decision,) = engine.run(at).decisions
    return decision.host


def test_a_round_trip_time_that_changes_moves_new_instances() -> None:
    engine = edge_engine()
    assert placed(engine, "a", BEGINNING, ("n3", 1.0)) == "n3"
    assert placed(engine, "b", BEGINNING + 1, ("master", 1.0)) == "n2"
    engine.network(("master", "n1", "n2", "n3"), "", [(0, 1, 0.001)])
    assert placed(engine, "c", BEGINNING + 2, ("master", 1.0)) == "n1"
    assert {one.host for one in engine.pods.values()} == {"n1", "n2", "n3"}  # nobody else moved


def test_users_at_a_name_that_nobody_knows_are_equally_far_from_all() -> None:
    engine = edge_engine()
    assert placed(engine, "a", BEGINNING, ("gone-away", 1.0)) in ("n1", "n2", "n3")


def test_an_image_draws_instances_to_the_hosts_that_have_it() -> None:
    engine = edge_engine()
    engine.image("large", 0.0, 50_000.0)
    engine.images("n1", ["large", "other"])
    assert placed(engine, "a", BEGINNING, ("n3", 1.0), image="large") == "n1"
    engine.images("n1", [])
    engine.images("n3", ["large"])
    assert placed(engine, "b", BEGINNING + 1, ("n3", 1.0), image="large") == "n3"


def test_an_instance_takes_what_it_is_granted_until_it_goes() -> None:
    engine = edge_engine(phi=0.3)
    for name in ("n1", "n2"):
        engine.host(name, {}, {}, False)
    host = placed(engine, "a", BEGINNING, ("n3", 1.0))
    assert engine.room(host)["cpu"] == 2000 - 600
    placed(engine, "b", BEGINNING + 1, ("n3", 1.0))
    assert engine.room(host)["cpu"] == 2000 - 600 - 420
    engine.gone("a", BEGINNING + 2)
    assert engine.room(host)["cpu"] == 2000 - 420


def test_where_no_score_asks_nothing_is_kept() -> None:
    engine = Engine(live_config())
    engine.host("n1", {"cpu": 2000, "memory": 4 * GI, "pods": 10}, {}, True)
    engine.network(("n1", "n2"), "", [(0, 1, 0.01)])
    tables = engine.tables
    tables.settle()
    for name in ("limit", "granted", "access", "logins", "places", "site_tree", "rtt", "omega"):
        assert len(tables.tb[name]) == 0, name


def test_operations_about_users_come_back_from_their_lines_and_decide_the_same() -> None:
    told: list[Operation] = []
    engine = edge_engine(journal=told.append)
    engine.image("large", 0.0, 500.0)
    engine.images("n2", ["large"])
    for number in range(8):
        place = ("n3", "n2", "master", "n1")[number % 4]
        placed(engine, f"p{number}", BEGINNING + number, (place, 0.5), ("n1" if place != "n1" else "n2", 0.5),
               image="large" if number % 3 else "")  # fmt: skip
    again = Engine(engine.config)
    outcome: Any = None
    passes = 0
    for operation in told:
        back = codec.decode(codec.encode(operation))
        assert type(back) is type(operation)
        if isinstance(back, Decided):
            assert outcome == back.outcome
            passes += 1
        else:
            outcome = carry_out(again, back)
    assert passes == 8
