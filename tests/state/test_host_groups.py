"""Groups of hosts found from what changed are those found anew, to the last number."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from engine.workbench import BRONZE, GOLD, T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.model import Constraint, Placement, ServiceClass, Term
from slacktide.model.constraint import AnyOf, Tolerates, Toleration, taint_attribute
from slacktide.model.matching import HostMasks, matching_hosts
from slacktide.model.placement import Preference, Rule, Topology
from slacktide.state import layout
from slacktide.state.growth import Growing
from slacktide.state.host_groups import MANY_TERMS
from slacktide.state.spec import Spec

AMOUNTS = ({"cpu": 4000, "memory": 2**33, "pods": 10}, {"cpu": 8000, "memory": 2**33, "pods": 10})


def some_term(chance: random.Random) -> Term:
    either = AnyOf((Term((Constraint("zone", "not in", values=("z0",)),)), Term((Constraint("disk", "absent"),))))
    conditions: list[Constraint | AnyOf | Tolerates] = [
        Constraint("zone", "in", values=(f"z{chance.randrange(3)}", f"other-{chance.randrange(20)}")),
        Constraint("name", "in", values=(f"n{chance.randrange(30)}",)),
        Constraint("disk", "exists"),
        Tolerates((Toleration("only", "", str(chance.randrange(2))),)),
        Constraint("disk", "gt", str(chance.randrange(5))),
        either,
    ]
    return Term((chance.choice(conditions), *([Constraint("zone", "exists")] if chance.random() < 0.3 else [])))


def some_attributes(chance: random.Random, name: str) -> dict[str, str]:
    found = {"name": name, "zone": f"z{chance.randrange(3)}"}
    if chance.random() < 0.5:
        found["disk"] = str(chance.randrange(4))
    if chance.random() < 0.3:
        found[taint_attribute("NoSchedule", "only")] = str(chance.randrange(2))
    if chance.random() < 0.3:
        found[f"unheard-{chance.randrange(100)}"] = "x"
    return found


def assert_as_anew(tables: Growing) -> None:
    """The tables are what all hosts and all terms give."""
    hosts, tb = tables.hosts(), tables.tb
    found = layout.group_hosts(tb["capacity"], matching_hosts(list(tables.terms), hosts))
    np.testing.assert_array_equal(tb["hosts"]["group"], found.group)
    np.testing.assert_array_equal(tb["hosts"]["leaf"], found.leaf)
    for name in ("groups", "leaf_host", "allowed"):
        np.testing.assert_array_equal(tb[name], getattr(found, name))
    domain, counters = tb["domain"].copy(), tb["counters"].copy()
    tallies = tb["tallies"].copy()
    tables._count_anew()
    np.testing.assert_array_equal(tb["domain"], domain)
    np.testing.assert_array_equal(tb["counters"], counters)
    np.testing.assert_array_equal(tb["tallies"], tallies)


class Twins:
    """Two engines that are told the same; one of them finds everything anew before each pass."""

    def __init__(self) -> None:
        self.engines = (Engine(settings()), Engine(settings()))
        self.decided = 0

    def tell(self, how: Callable[[Engine], None]) -> None:
        for engine in self.engines:
            how(engine)

    def run(self, now: float) -> None:
        incremental, anew = self.engines
        anew.tables._regroup = anew.tables._resized = True
        found, expected = incremental.run(now), anew.run(now)
        assert (found.decisions, found.waiting) == (expected.decisions, expected.waiting)
        assert_as_anew(incremental.tables)
        self.decided += len(found.decisions)
        for engine in self.engines:
            for decision in found.decisions:
                engine.bound(decision.uid, now)
                for victim in decision.victims:
                    engine.gone(victim.uid, now)


def change_a_host(twins: Twins, chance: random.Random, alive: list[str], number: int) -> None:
    """A host comes, goes or is another one."""
    what = chance.random()
    if what < 0.2 and len(alive) > 3:
        name = alive.pop(chance.randrange(len(alive)))
        twins.tell(lambda engine: engine.host_gone(name))
        return
    name = f"n{number}"
    if what < 0.6 or not alive:
        alive.append(name)
    else:
        name = chance.choice(alive)
    amounts, attributes, up = chance.choice(AMOUNTS), some_attributes(chance, name), chance.random() < 0.9
    twins.tell(lambda engine: engine.host(name, amounts, attributes, up))


def let_one_arrive(twins: Twins, chance: random.Random, number: int, now: float) -> None:
    """A pod with a selector, perhaps a rule with one, and a preference with one."""
    rules = (Rule("spread", "app", Topology("zone", some_term(chance)), skew=chance.randrange(1, 4)),)
    liked = Preference(5, term=some_term(chance))
    near = Placement(("app",), rules if chance.random() < 0.4 else (), (liked,))
    demand = (("cpu", 1000 * chance.randrange(1, 4)), ("memory", 2**20), ("pods", 1))
    service = chance.choice((GOLD, BRONZE, ServiceClass(f"own-{number % 7}", 0.8, 1 + number % 7)))
    spec, uid = Spec(demand, service, some_term(chance), near), f"p{number}"

    def arrive(engine: Engine) -> None:
        engine.spec(number, spec)
        engine.controller(uid, spec.service, 0, False)
        engine.arrive(uid, uid, uid, number, now)
        engine.wake(uid)

    twins.tell(arrive)


@pytest.mark.parametrize("seed", range(4))
def test_hosts_and_selectors_that_come_and_change_give_the_groups_and_decisions_of_all_anew(seed: int) -> None:
    chance, twins, alive, pods = random.Random(seed), Twins(), list[str](), 0
    for step in range(40):
        for more in range(chance.randrange(1, 4)):
            change_a_host(twins, chance, alive, 10 * step + more)
        for _ in range(chance.randrange(3)):
            pods += 1
            let_one_arrive(twins, chance, pods, T0 + step)
        twins.run(T0 + step)
    assert twins.decided > 10


def test_a_selector_that_keeps_equal_hosts_equal_voids_nothing_that_was_found_out() -> None:
    engine = Engine(settings())
    for number in range(8):
        engine.host(f"n{number}", AMOUNTS[0], {"name": f"n{number}", "zone": f"z{number % 2}"}, True)
    demand = (("cpu", 9000), ("memory", 2**20), ("pods", 1))
    terms = [Term((Constraint("zone", "in", values=("z0", f"other-{number}")),)) for number in range(3)]
    splitting = Term((Constraint("name", "in", values=("n3",)),))
    found = []
    for number, term in enumerate([*terms, splitting]):
        engine.spec(number, Spec(demand, GOLD, term))
        engine.controller(f"p{number}", GOLD, 0, False)
        engine.arrive(f"p{number}", "p", f"p{number}", number, T0)
        engine.wake(f"p{number}")
        engine.run(T0)
        found.append(engine.tables.tb["shared"].ctypes.data)
    assert found[1] == found[2]  # the same array: nobody made it anew
    assert found[3] != found[2]
    shared = engine.tables.tb["shared"].ctypes.data
    engine.host("n0", AMOUNTS[0], {"name": "n0", "zone": "z0", "unheard": "x"}, True)
    engine.run(T0 + 1)
    assert engine.tables.tb["shared"].ctypes.data == shared
    engine.host("n0", AMOUNTS[0], {"name": "n0", "zone": "z1"}, True)
    engine.run(T0 + 2)
    assert engine.tables.tb["shared"].ctypes.data != shared


def test_many_selectors_at_once_are_those_one_by_one() -> None:
    engine = Engine(settings())
    for number in range(20):
        engine.host(f"n{number}", AMOUNTS[0], {"name": f"n{number}"}, True)
    engine.run(T0)
    for number in range(MANY_TERMS + 5):
        term = Term((Constraint("name", "not in", values=(f"n{number}",)),))
        engine.tables.kind_of(Spec((("cpu", 1000),), GOLD, term))
    engine.run(T0)
    assert_as_anew(engine.tables)


def test_values_that_no_host_has_any_more_are_forgotten() -> None:
    masks = HostMasks([{"a": "0"}, {"a": "1"}])
    wanted = Term((Constraint("a", "in", values=("1", "499")), Tolerates((Toleration("k", "", "499"),))))
    key = taint_attribute("NoSchedule", "k")
    for number in range(2, 500):
        masks.change(0, {"a": str(number), key: str(number)})
        assert masks.of(wanted).tolist() == [number == 499, True]
    taints = masks._taints
    assert taints is not None
    assert max(len(taints.numbers), len(masks._values["a"].numbers)) < 100
