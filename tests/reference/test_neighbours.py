"""Neighbours, preferences and budgets: the twin's rules against small cases worked out by hand, and what must hold
of its runs on any cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reference import neighbours
from reference.budgets import Guarded, spares
from reference.simulator import HostEvent, Simulation
from reference.state import Host, Instance
from slacktide.config import Config, QosSettings
from slacktide.model import (
    NO_NEIGHBOURS,
    Budget,
    Constraint,
    Hosts,
    Placement,
    Preference,
    Rule,
    Term,
    Topology,
)
from slacktide.model.placement import CLUSTER
from support.auditor import audit
from support.clusters import Cluster, cluster
from support.runs import twin
from support.small import BRONZE, GOLD, SILVER, machines, workload
from support.small import Request as Row

ZONE = Topology("zone")
FAST = Topology("zone", Term((Constraint("speed", "==", "fast"),)))


# Rules by hand


def houses(*zones: str) -> list[Host]:
    """Empty hosts in these zones; ``-`` stands for none."""
    return [Host(row, (9, 9), {} if zone == "-" else {"zone": zone}) for row, zone in enumerate(zones)]


def one(*marks: str, rules: Sequence[Rule] = (), preferences: Sequence[Preference] = ()) -> Instance:
    return Instance(0, 0.9, 2, 10.0, 0.1, 10.0, placement=Placement(marks, tuple(rules), tuple(preferences)))


def put(host: Host, *marks: str) -> Instance:
    made = one(*marks)
    made.host = host
    host.instances.append(made)
    return made


def where(rule: Rule, j: Instance, hosts: Sequence[Host]) -> list[int]:
    return [host.row for host in hosts if neighbours.holds(rule, j, host, hosts)]


def test_near_begins_with_itself_and_then_follows() -> None:
    hosts = houses("a", "a", "b", "-")
    near = Rule("near", "web", ZONE)
    # Nobody anywhere: who carries the mark may begin, in a domain; the last host is in none.
    assert where(near, one("web"), hosts) == [0, 1, 2]
    assert where(near, one("other"), hosts) == []
    # One on the host without a zone is in no domain: still nobody.
    put(hosts[3], "web")
    assert where(near, one("web"), hosts) == [0, 1, 2]
    put(hosts[1], "web", "more")
    assert where(near, one("web"), hosts) == where(near, one(), hosts) == [0, 1]


def test_the_first_of_its_kind_begins_where_none_of_its_topologies_has_one() -> None:
    hosts = houses("a", "b", "b", "-")
    for host, rack in zip(hosts, ("r1", "r1", "-", "r2"), strict=True):
        host.attributes = {**host.attributes, **({} if rack == "-" else {"rack": rack})}
    rules = [Rule("near", "web", ZONE), Rule("near", "web", Topology("rack"))]

    def welcome() -> list[int]:
        return [host.row for host in hosts if neighbours.welcomes(one("web", rules=rules), host, hosts)]

    assert welcome() == [0, 1], "those that lie in a domain of both"
    put(hosts[2], "web")  # it has a zone and no rack: nobody is the first any more
    assert welcome() == []
    # By itself the rule about racks finds nobody. Another one about another mark changes nothing.
    assert where(rules[1], one("web", rules=rules[1:]), hosts) == [0, 1, 3]
    other = Rule("near", "batch", Topology("rack"))
    assert where(other, one("web", "batch", rules=[*rules, other]), hosts) == [0, 1, 3]
    put(hosts[0], "web")
    assert welcome() == [0, 1], "one in rack r1, and one in each zone, though on no node both"


def test_away_minds_the_whole_domain_and_nothing_outside_of_any() -> None:
    hosts = houses("a", "a", "b", "-")
    put(hosts[1], "web")
    put(hosts[3], "web")
    assert where(Rule("away", "web", ZONE), one("web"), hosts) == [2, 3]
    assert where(Rule("away", "web"), one("web"), hosts) == [0, 2]
    assert where(Rule("away", "web", Topology(CLUSTER)), one(), hosts) == []
    assert where(Rule("away", "web", Topology("rack")), one(), hosts) == [0, 1, 2, 3]


def test_a_topology_may_leave_hosts_out() -> None:
    hosts = houses("a", "a", "b")
    hosts[0].attributes = {"zone": "a", "speed": "fast"}
    put(hosts[1], "web")
    # Only host 0 is in a domain, and the one on host 1 does not count there.
    assert where(Rule("away", "web", FAST), one(), hosts) == [0, 1, 2]
    assert where(Rule("near", "web", FAST), one("web"), hosts) == [0]
    assert where(Rule("spread", "web", FAST), one("web"), hosts) == [0]
    assert neighbours.tallies("web", FAST, hosts) == {"a": 0}


@pytest.mark.parametrize(
    ("carries", "skew", "least_domains", "rows"),
    [
        # Tallies: a 2, b 1, c 0. With itself: a 3, b 2, c 1; the least is 0.
        (True, 1, 1, [4]),
        (True, 2, 3, [3, 4]),
        (True, 3, 1, [0, 1, 3, 4]),
        (False, 1, 1, [3, 4]),
        (False, 0, 1, [4]),
        # Four domains wanted, three there: the least is 0 as before.
        (True, 1, 4, [4]),
    ],
)
def test_spread_by_hand(carries: bool, skew: int, least_domains: int, rows: list[int]) -> None:
    hosts = houses("a", "a", "-", "b", "c")
    for place in (0, 1, 3, 2):
        put(hosts[place], "web")
    rule = Rule("spread", "web", ZONE, skew, least_domains)
    assert where(rule, one("web") if carries else one(), hosts) == rows


def test_too_few_domains_make_the_least_zero() -> None:
    # Tallies 2 and 1. Of two domains the least is 1: b may have 2. Where three are wanted it is 0: none may.
    hosts = houses("a", "b")
    for place in (0, 0, 1):
        put(hosts[place], "web")
    assert [where(Rule("spread", "web", ZONE, 1, n), one("web"), hosts) for n in (1, 2, 3)] == [[1], [1], []]


def test_a_host_that_is_down_is_a_domain_with_nobody() -> None:
    hosts = houses("a", "b")
    put(hosts[0], "web")
    hosts[1].up = False
    assert where(Rule("spread", "web", ZONE), one("web"), hosts) == [1]


def test_who_stands_in_the_way() -> None:
    hosts = houses("a", "a", "b")
    web, both = put(hosts[0], "web"), put(hosts[0], "web", "port:80")
    put(hosts[0], "batch")
    j = one(rules=[Rule("away", "port:80"), Rule("away", "web", ZONE)])
    assert neighbours.in_the_way(j, hosts[0], hosts) == [both, web]
    assert neighbours.in_the_way(j, hosts[2], hosts) == []
    # On host 1 of the same zone they cannot be reached; nor on host 0 once there is one on host 1, too.
    assert neighbours.in_the_way(j, hosts[1], hosts) is None
    put(hosts[1], "web")
    assert neighbours.in_the_way(j, hosts[0], hosts) is None


# Preferences by hand


def test_points_are_scaled_to_ten() -> None:
    hosts = houses("a", "a", "b", "-")
    for place in (0, 1, 2):
        put(hosts[place], "web")
    fast = Term((Constraint("zone", "==", "b"),))
    liked = [Preference(3, "web", ZONE), Preference(-1, "web"), Preference(4, term=fast)]
    # 3 * 2 - 1, the same, 3 * 1 - 1 + 4, 0.
    j = one(preferences=liked)
    assert [sum(neighbours.worth(p, host, hosts) for p in liked) for host in hosts] == [5, 5, 6, 0]
    # 5/6 of 2^20 is 873813.33, rounded down.
    assert neighbours.extras(j, hosts, hosts, "mean") == [873813 * 2**22, 873813 * 2**22, 2**42, 0]
    assert neighbours.extras(j, hosts, hosts, "least-requested") == [873813 * 2**21, 873813 * 2**21, 2**41, 0]
    # Of hosts 0 to 2 the least is 5, so only host 2 gets any; of equal ones none does.
    assert neighbours.extras(j, hosts[:3], hosts, "balanced") == [0, 0, 2**40]
    assert (
        neighbours.extras(j, hosts[:2], hosts, "mean") == neighbours.extras(one(), hosts[:2], hosts, "mean") == [0] * 2
    )


def test_a_preference_with_a_mark_does_not_ask_its_term() -> None:
    hosts = houses("a", "b")
    put(hosts[0], "web")
    term = Term((Constraint("zone", "==", "b"),))
    assert [neighbours.worth(Preference(2, "web", term=term), host, hosts) for host in hosts] == [2, 0]


# Runs by hand

SETTINGS = Config(qos=QosSettings(alpha=10.0))


def played(
    rows: Sequence[tuple[Any, ...]],
    hosts: Hosts,
    end: float,
    cold: float = 0.0,
    events: Sequence[HostEvent] = (),
    **policy: Any,
) -> list[tuple[float, int, int, tuple[int, ...]]]:
    """Time, row, host and victims of each decision; alpha and all margins are 10 s, victims wait for the next pass.

    ``rows`` are pairs of a row and its placement, or triples with its budget.
    """
    found = workload([row[0] for row in rows])
    kinds = list(dict.fromkeys(row[1] for row in rows))
    budgets = list(dict.fromkeys(row[2] for row in rows if len(row) == 3))
    found = replace(
        found,
        placement=np.array([kinds.index(row[1]) for row in rows], np.int32),
        placements=tuple(kinds),
        budget=np.array([budgets.index(row[2]) if len(row) == 3 else -1 for row in rows], np.int32),
        budgets=tuple(budgets),
    )
    config = replace(
        SETTINGS,
        policy=replace(SETTINGS.policy, **({"victims": "next-pass"} | policy)),
        simulation=replace(SETTINGS.simulation, end=end),
    )
    simulation = Simulation(found, hosts, config, [0.0], [cold], events)
    return [decision[1:] for decision in simulation.run().decisions]


def zoned(*hosts: tuple[float, str]) -> Hosts:
    """Hosts of this capacity, in this zone."""
    made = machines(*(capacity for capacity, _ in hosts))
    attributes = tuple({"row": str(row), "zone": zone} for row, (_, zone) in enumerate(hosts))
    return replace(made, attributes=attributes)


def only(row: int) -> Term:
    return Term((Constraint("row", "==", str(row)),))


WEB = Placement(("web",))
AWAY = Placement(rules=(Rule("away", "web"),))
AWAY_BY_ZONE = Placement(rules=(Rule("away", "web", ZONE),))
both_modes = pytest.mark.parametrize("name", ["qos-driven", "priority"])


def test_the_second_follows_the_first() -> None:
    # Row 0 begins on host 1, row 1 may only follow although host 0 is emptier.
    near = Placement(("web",), (Rule("near", "web"),))
    rows = [(Row(BRONZE, term=only(1)), near), (Row(BRONZE, 1.0), near), (Row(BRONZE, 2.0), near)]
    assert played(rows, machines(9.0, 2.0), 5.0) == [(0.0, 0, 1, ()), (1.0, 1, 1, ())]


def test_nobody_is_moved_when_a_rule_ceases_to_hold() -> None:
    near = Placement(rules=(Rule("near", "web"),))
    rows = [(Row(BRONZE, duration=10.0), WEB), (Row(BRONZE, 5.0), near), (Row(BRONZE, 20.0), near)]
    assert played(rows, machines(9.0), 60.0) == [(0.0, 0, 0, ()), (5.0, 1, 0, ())]


def test_a_host_that_fails_takes_its_marks_with_it() -> None:
    rows = [(Row(GOLD, size=2.0), WEB), (Row(BRONZE, 1.0), AWAY_BY_ZONE)]
    hosts = zoned((2.0, "a"), (1.0, "a"))
    assert played(rows, hosts, 60.0) == [(0.0, 0, 0, ())]
    assert played(rows, hosts, 60.0, events=[(30.0, 0, "down")])[1:] == [(30.0, 1, 1, ())]


@both_modes
def test_carriers_are_victims_even_where_there_is_room(name: str) -> None:
    # Room for four. Row 0 is given up although row 1, more readily so, would be first; row 1 may stay.
    rows = [(Row(SILVER), WEB), (Row(BRONZE), NO_NEIGHBOURS), (Row(GOLD, 100.0), AWAY)]
    found = played(rows, machines(4.0), 101.0, name=name)
    assert found[2:3] == [(100.0, 2, 0, (0,))]


@both_modes
def test_carriers_come_first_and_others_after_them(name: str) -> None:
    # Two of three have to go for a gold of size 2: the carrier, then the bronze one.
    rows = [(Row(BRONZE), NO_NEIGHBOURS), (Row(SILVER), WEB), (Row(SILVER), NO_NEIGHBOURS)]
    found = played([*rows, (Row(GOLD, 100.0, size=2.0), AWAY)], machines(3.0), 101.0, name=name)
    assert found[-1] == (100.0, 3, 0, (1, 0))


@both_modes
def test_all_carriers_have_to_be_eligible(name: str) -> None:
    # The second carrier is gold: no mercy for a gold, none for a silver either.
    rows = [(Row(BRONZE), WEB), (Row(GOLD), WEB)]
    assert len(played([*rows, (Row(SILVER, 100.0), AWAY)], machines(4.0), 150.0, name=name)) == 2
    assert len(played([rows[0], (Row(SILVER, 100.0), AWAY)], machines(4.0), 100.5, name=name)) == 2


@both_modes
def test_carriers_elsewhere_cannot_be_preempted(name: str) -> None:
    # Both hosts of zone a have one: neither can be made free of both. Without that on host 1, host 0 can.
    rows = [(Row(BRONZE, term=only(0)), WEB), (Row(BRONZE, term=only(1)), WEB)]
    gold = (Row(GOLD, 100.0, term=only(0)), AWAY_BY_ZONE)
    hosts = zoned((2.0, "a"), (2.0, "a"))
    assert len(played([*rows, gold], hosts, 150.0, name=name)) == 2
    assert played([rows[0], gold], hosts, 100.5, name=name)[1] == (100.0, 1, 0, (0,))


def test_a_carrier_may_come_back_at_the_end_of_the_pass_if_its_own_rules_let_it() -> None:
    # Rules bind who asks for them: the web may come beside the gold one unless it wants to be away, too.
    for back, marks in ((True, ()), (False, ("mine",))):
        gold = Placement(marks, AWAY.rules)
        web = Placement(("web",), (Rule("away", "mine"),))
        found = played([(Row(BRONZE), web), (Row(GOLD, 100.0), gold)], machines(4.0), 101.0, victims="same-pass")
        assert found[1:] == [(100.0, 1, 0, (0,)), (100.0, 0, 0, ())][: 1 + back]


def test_what_was_placed_in_this_pass_stays() -> None:
    # Row 0 has its turn first, as gold, and is not given up for row 1 in the same pass, nor later.
    rows = [(Row(GOLD), WEB), (Row(SILVER), AWAY)]
    assert played(rows, machines(4.0), 50.0) == [(0.0, 0, 0, ())]


@both_modes
def test_preemption_must_not_take_what_it_needs_near(name: str) -> None:
    # The only web would have to go for somebody who needs one; who carries the mark may begin anew.
    stranger, alike = (Placement(marks, (Rule("near", "web"),)) for marks in ((), ("web",)))
    rows = [(Row(BRONZE), WEB)]
    assert len(played([*rows, (Row(GOLD, 100.0), stranger)], machines(1.0), 150.0, name=name)) == 1
    found = played([*rows, (Row(GOLD, 100.0), alike)], machines(1.0), 100.5, name=name)
    assert found[1] == (100.0, 1, 0, (0,))
    # With another web on the host the stranger finds one left.
    two = [(Row(BRONZE), WEB), (Row(SILVER), WEB), (Row(GOLD, 100.0), stranger)]
    assert played(two, machines(2.0), 100.5, name=name)[2] == (100.0, 2, 0, (0,))


@both_modes
def test_preemption_mends_a_spread_where_who_goes_makes_it_even(name: str) -> None:
    # Host 0 is full of web; a spread of 1 by host wants the new one on host 1, which is too small. Without who has to
    # go for room there is nobody.
    spread = Placement(("web",), (Rule("spread", "web"),))
    rows = [(Row(BRONZE), WEB), (Row(GOLD, 100.0), spread)]
    assert played(rows, machines(1.0, 0.5), 150.0, name=name)[1] == (100.0, 1, 0, (0,))
    # The least of one domain is its own: 1 + 1 - 1.
    assert played(rows, machines(1.0), 100.5, name=name)[1] == (100.0, 1, 0, (0,))


@pytest.mark.parametrize(("weight", "host"), [(1, 0), (-1, 1)])
@pytest.mark.parametrize("score", ["mean", "least-requested", "balanced"])
def test_ten_points_outweigh_any_difference_of_scores(weight: int, host: int, score: str) -> None:
    likes = Placement(preferences=(Preference(weight, "web"),))
    rows = [(Row(BRONZE, term=only(0)), WEB), (Row(BRONZE, 1.0), likes)]
    hosts = machines(4.0, 4.0) if weight > 0 else machines(99.0, 2.0)
    assert played(rows, hosts, 2.0, score=score)[1] == (1.0, 1, host, ())


def test_points_are_scaled_among_hosts_with_room() -> None:
    # least-requested = 5 (x + y), after the placement. Host 0 has 2 web of 4: 2.5; host 1 has 1 of 4: 5; host 2 none
    # of 8: 8.75; host 3 has 4 of 10: 5. Points 2, 1, 0, 4 are worth 5, 2.5, 0, 10: host 3 wins with 15.
    # Where host 3 is full (4 of 4) they are worth 10, 5, 0: host 0 has 12.5, host 1 10, host 2 8.75.
    # (Scaled with host 3 among them it would be 7.5, 7.5, 8.75.)
    likes = Placement(preferences=(Preference(1, "web"),))
    rows = [(Row(BRONZE, term=only(host)), WEB) for host in (0, 0, 1, 3, 3, 3, 3)] + [(Row(BRONZE, 1.0), likes)]
    for last, wanted in ((10.0, 3), (4.0, 0)):
        found = played(rows, machines(4.0, 4.0, 8.0, last), 2.0, score="least-requested")
        assert found[-1] == (1.0, 7, wanted, ())


def test_a_small_difference_of_points_does_not_outweigh_the_score() -> None:
    # Points 0, 1 and 20: worth 0, .5 and 10. Host 2, with 20, has 20 of 22 and scores 10 * 1/22: 10.45.
    # Host 1 has 1 of 2 and scores 0: .5. Host 0 is empty: 10 * (1 - 1/99) = 9.90.
    likes = Placement(preferences=(Preference(1, "web"),))
    rows = [(Row(BRONZE, term=only(host)), WEB) for host in (1, *(2 for _ in range(20)))]
    rows += [(Row(BRONZE, 1.0), likes), (Row(BRONZE, 2.0), likes), (Row(BRONZE, 3.0), likes)]
    found = played(rows, machines(99.0, 2.0, 22.0), 4.0, score="least-requested")
    # Then host 2 scores 0 and has 10; then it is full, and of 0 and 1 points host 1 gets all: 10 to 9.90.
    assert [host for _, row, host, _ in found if row > 20] == [2, 2, 1]


def test_preferences_say_nothing_about_where_to_preempt() -> None:
    # The silver one on host 0 is dearer; that host 0 is worth 10 more does not help it.
    likes = Placement(preferences=(Preference(100, term=only(0)),))
    rows = [(Row(SILVER, term=only(0)), WEB), (Row(BRONZE, term=only(1)), WEB), (Row(GOLD, 100.0), likes)]
    assert played(rows, machines(1.0, 1.0), 100.5)[2] == (100.0, 2, 1, (1,))


# Budgets by hand


def guarded(budget: Budget, *states: tuple[bool, float]) -> Guarded:
    """Instances on a host or not, with the end of their start-up; one more is gone, one not yet there."""
    found, host = Guarded(budget), Host(0, (9, 9))
    for on_host, ready in states:
        k = one()
        k.admitted, k.startup, k.host = True, ready, host if on_host else None
        found.instances.append(k)
    gone = one()
    gone.admitted, gone.gone = True, 3.0
    found.instances += [gone, one()]
    for k in found.instances:
        k.budget = found
    return found


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        # Of five, three are on a host and past their start-up at 10 s.
        (Budget("b", max_unavailable=0), 0),
        (Budget("b", max_unavailable=2), 0),
        (Budget("b", max_unavailable=3), 1),
        (Budget("b", max_unavailable=9), 7),
        (Budget("b", min_available=0), 3),
        (Budget("b", min_available=2), 1),
        (Budget("b", min_available=4), 0),
    ],
)
def test_what_is_left_of_a_budget(budget: Budget, left: int) -> None:
    found = guarded(budget, (True, 0.0), (True, 9.0), (True, 10.0), (True, 10.5), (False, 0.0))
    assert (len(found.expected()), len(found.healthy(10.0)), found.left(10.0)) == (5, 3, left)
    k = found.instances[0]
    assert [spares(k, found.instances[1 : 1 + taken], 10.0) for taken in range(3)] == [left > n for n in range(3)]


@both_modes
@pytest.mark.parametrize(
    ("budget", "victims"),
    [
        (Budget("b", max_unavailable=0), 0),
        (Budget("b", max_unavailable=1), 1),
        (Budget("b", max_unavailable=2), 2),
        (Budget("b", min_available=2), 1),
        (Budget("b", min_available=0), 3),
        (Budget("b", min_available=7), 0),
    ],
)
def test_a_pass_never_overdraws_a_budget(budget: Budget, victims: int, name: str) -> None:
    rows = [(Row(BRONZE), NO_NEIGHBOURS, budget)] * 3 + [(Row(GOLD, 100.0), NO_NEIGHBOURS)] * 3
    found = played(rows, machines(1.0, 1.0, 1.0), 100.5, name=name)
    assert [len(decision[3]) for decision in found[3:]] == [1] * victims


@both_modes
@pytest.mark.parametrize(("allowed", "placed"), [(1, 0), (2, 1)])
def test_victims_of_one_placement_count_together(allowed: int, placed: int, name: str) -> None:
    budget = Budget("b", max_unavailable=allowed)
    rows = [(Row(BRONZE), WEB, budget)] * 2
    for gold in ((Row(GOLD, 100.0, size=2.0), NO_NEIGHBOURS), (Row(GOLD, 100.0, size=0.5), AWAY)):
        assert len(played([*rows, gold], machines(2.0), 100.5, name=name)) == 2 + placed


def test_where_a_budget_is_spent_the_next_in_line_is_taken() -> None:
    # The bronze ones would go first, by the least of their metrics; only one of them may, then the silver one.
    rows = [(Row(BRONZE), NO_NEIGHBOURS, Budget("b", max_unavailable=1))] * 2
    found = played([*rows, (Row(SILVER), WEB), (Row(GOLD, 100.0, size=2.0), WEB)], machines(3.0), 100.5)
    assert sorted(found[-1][3])[1] == 2
    assert len(found[-1][3]) == 2


def test_an_end_of_startup_counts_but_calls_for_no_pass() -> None:
    # Ready at 30 s. The gold one comes at 25 s, when nobody is healthy; the watchdog calls at 35 s.
    guarded_row = (Row(BRONZE), NO_NEIGHBOURS, Budget("b", max_unavailable=1))
    rows = [guarded_row, guarded_row, (Row(GOLD, 25.0), NO_NEIGHBOURS)]
    assert [decision[:2] for decision in played(rows, machines(1.0, 1.0), 36.0, cold=30.0)[2:]] == [(35.0, 2)]
    rows[2] = (Row(GOLD, 30.0), NO_NEIGHBOURS)
    assert [decision[:2] for decision in played(rows, machines(1.0, 1.0), 36.0, cold=30.0)[2:]] == [(30.0, 2)]


def test_one_in_startup_needs_the_budget_too() -> None:
    # Nobody healthy, one expected, one may be unavailable: 0 - (1 - 1), none left, until it is ready at 30 s.
    rows = [(Row(BRONZE), WEB, Budget("b", max_unavailable=1)), (Row(GOLD, 25.0), NO_NEIGHBOURS)]
    assert played(rows, machines(1.0), 36.0, cold=30.0)[1:] == [(35.0, 1, 0, (0,))]


def test_completed_instances_are_expected_no_more() -> None:
    # With row 1 gone the other is all there should be: one less is one unavailable. Before, as well.
    budget = Budget("b", min_available=1)
    rows = [(Row(BRONZE, term=only(0)), WEB, budget), (Row(BRONZE, duration=50.0, term=only(1)), WEB, budget)]
    gold = (Row(GOLD, 60.0, term=only(0)), NO_NEIGHBOURS)
    assert len(played([*rows, gold], machines(1.0, 1.0), 90.0)) == 2
    earlier = (Row(GOLD, 40.0, term=only(0)), NO_NEIGHBOURS)
    assert len(played([rows[0], (*rows[1][:2], budget), earlier], machines(1.0, 1.0), 40.5)) == 3


# The least time on a host


@both_modes
@pytest.mark.parametrize(("least", "at"), [(0.0, 25.0), (25.0, 25.0), (25.5, 35.0), (40.0, 45.0)])
def test_nobody_is_preempted_too_early(least: float, at: float, name: str) -> None:
    rows = [(Row(BRONZE), NO_NEIGHBOURS), (Row(GOLD, 25.0), NO_NEIGHBOURS)]
    assert played(rows, machines(1.0), 46.0, cold=2.0, name=name, min_running=least)[1] == (at, 1, 0, (0,))


# Any cluster


def faults(true: Cluster, told: Cluster) -> list[str]:
    """What the auditor, told of one cluster, finds in the twin's run of another."""
    outcome = twin(true)
    completed = {row: r.completed for row, r in enumerate(outcome.requests) if r.completed is not None}
    removed = {row: r.removed for row, r in enumerate(outcome.requests) if r.removed is not None}
    return audit(told, outcome.decisions, completed, removed)


@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_the_twin_breaks_no_rule(several: bool) -> None:
    preempting = 0
    for seed in range(3000, 3040):
        drawn = cluster(seed, largest=6, requests=25, several=several, neighbours=True)
        assert faults(drawn, drawn) == [], f"cluster({seed}, 6, 25, {several}, neighbours=True)"
        preempting += any(decision[4] for decision in twin(drawn).decisions)
    assert preempting >= 6, "clusters without contention prove little"


@pytest.mark.parametrize(
    ("forgets", "text"),
    [
        ({"placement": None}, "rule broken"),
        ({"placement": None}, "preempts where"),
        ({"budget": None}, "budget overdrawn"),
        ({}, "had not run long enough"),
    ],
)
def test_the_auditor_finds_what_is_wrong_with_neighbours(forgets: dict[str, None], text: str) -> None:
    found: list[str] = []
    for seed in range(3000, 3030):
        told = cluster(seed, largest=6, requests=25, several=True, neighbours=True)
        true = replace(told, workload=replace(told.workload, **forgets))  # type: ignore[arg-type]
        found += faults(true if forgets else told.with_(policy={"min_running": 0.0}), told)
    assert any(text in fault for fault in found)


def plain(one: Cluster) -> Cluster:
    """The cluster without all that may be drawn for neighbours."""
    bare = replace(one.workload, placement=None, placements=(NO_NEIGHBOURS,), budget=None, budgets=())
    policy = replace(Config().policy, name=one.config.policy.name)
    return replace(one, workload=replace(bare, demand=np.zeros(0)), config=replace(one.config, policy=policy))


def test_random_neighbours_are_of_every_kind_and_change_nothing_else() -> None:
    seen: Counter[Any] = Counter()
    for seed in range(75):
        for several in (False, True):
            drawn = cluster(seed, largest=4, requests=20, several=several, neighbours=True)
            usual, mine = cluster(seed, largest=4, requests=20, several=several), drawn.workload
            seen["less demand"] += bool((mine.demand < usual.workload.demand).any())
            seen["readier"] += drawn.config.policy.preempt_when != usual.config.policy.preempt_when
            assert repr(plain(drawn)) == repr(plain(usual))
            seen["min_running"] += drawn.config.policy.min_running > 0.0
            if mine.budget is not None:
                assert mine.budget.dtype == np.int32
                assert -1 <= mine.budget.min() <= mine.budget.max() < len(mine.budgets)
                seen.update((b.max_unavailable, b.min_available) for b in mine.budgets)
            if mine.placement is not None:
                assert mine.placement.dtype == np.int32
                assert 0 <= mine.placement.min() <= mine.placement.max() < len(mine.placements)
                for made in mine.placements:
                    seen.update((r.kind, r.topology.key) for r in made.rules)
                    seen.update((r.kind, bool(r.topology.within.constraints)) for r in made.rules)
                    seen.update((p.weight > 0, bool(p.mark)) for p in made.preferences)
                if mine.request is not None:
                    pairs = set(zip(mine.request.tolist(), mine.placement.tolist(), strict=True))
                    seen["mixed"] += len(pairs) > len(set(mine.request.tolist()))
                    seen["alike"] += len(pairs) == len(set(mine.request.tolist()))
    assert min(seen[name] for name in ("min_running", "mixed", "alike", "less demand", "readier")) >= 5
    assert sum(isinstance(key[0], str) for key in seen if isinstance(key, tuple)) == 3 * (6 + 2)
    assert {
        (True, True),
        (True, False),
        (False, True),
        (False, False),
        (0, None),
        (None, 0),
        (3, None),
        (None, 5),
    } <= set(seen)
