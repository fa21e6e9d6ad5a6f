"""What is counted over domains is entered piece by piece; it is what counting all of it anew finds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.workbench import BRONZE, T0, settings
from slacktide.engine.core.engine import Engine
from slacktide.model.constraint import Term
from slacktide.model.placement import CLUSTER, HOST, Placement, Preference, Rule, Topology
from slacktide.state.growth import Growing
from slacktide.state.spec import Spec

KEYS = (HOST, CLUSTER, "zone", "rack", "nobody-has-this")
MARKS = tuple(f"m{number}" for number in range(8))


def drawn(chance: random.Random) -> Placement:
    """Some marks, rules and preferences."""
    topology = Topology(chance.choice(KEYS))
    marks = tuple(sorted(chance.sample(MARKS, chance.randrange(4))))
    rules = tuple(Rule("away", chance.choice(MARKS), topology) for _ in range(chance.randrange(3)))
    likings = tuple(Preference(5, chance.choice(MARKS), topology) for _ in range(chance.randrange(2)))
    return Placement(marks, tuple(dict.fromkeys(rules)), likings)


def counted(growing: Growing) -> dict[Any, Any]:
    """By mark and topology: the domain of each host, the tally of each domain, and all together."""
    tb, found = growing.tb, {}
    for (mark, topology), c in growing.counters.numbers.items():
        of, first, count, total = tb["counters"][c].tolist()
        domains, tallies = tb["domain"][of].tolist(), tb["tallies"][first : first + count].tolist()
        found[mark, topology] = domains, tallies, total
    return found


def asked(growing: Growing) -> list[Any]:
    """By kind, what it carries and asks for."""
    tb, found = growing.tb, []
    for kind in tb["kinds"][: growing.kinds]:
        rows = (tb[name][kind[f"{name}_at"] :][: kind[name]] for name in ("marks", "conditions", "preferences"))
        found.append([one.tolist() for one in rows])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_counters_that_come_one_by_one_count_what_counting_anew_counts(seed: int) -> None:
    chance = random.Random(seed)
    engine = Engine(settings())
    engine.controller("c", BRONZE, 0, batch=False)
    specs = hosts = pods = 0
    for step in range(120):
        what = chance.randrange(10)
        if what < 2 or not hosts:
            attributes = {"zone": f"z{hosts % 3}", "rack": f"r{hosts % 5}"}
            engine.host(f"n{hosts}", {"cpu": 64000, "pods": 500}, attributes, up=True)
            hosts += 1
        elif what < 5 or not specs:
            engine.spec(specs, Spec((("cpu", 100),), BRONZE, Term(), drawn(chance)))
            specs += 1
        elif what == 5:
            marks = tuple(chance.sample(MARKS, 2))
            engine.other(f"o{step}", f"n{chance.randrange(hosts)}", {"cpu": 1}, marks)
        elif what < 8 or not pods:
            spec = chance.randrange(specs)
            engine.found(f"p{pods}", f"p{pods}", "c", spec, f"n{chance.randrange(hosts)}", T0)
            pods += 1
        else:
            engine.respec(f"p{chance.randrange(pods)}", chance.randrange(specs))
        if step % 10 == 9:
            engine.tables.settle()
            before = counted(engine.tables), asked(engine.tables)
            engine.tables._count_anew()  # the slow way
            assert (counted(engine.tables), asked(engine.tables)) == before
    assert any(total for _, _, total in before[0].values())
