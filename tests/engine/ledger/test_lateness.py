"""Who of those that wait is lost, and who starves: as slow books have it, and the same wherever it is asked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.workbench import GOLD, SILVER, T0, Chaos, settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.lateness import late
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.state.spec import Spec
from support.own_policies import FIRST_FIT


def expected(chaos: Chaos) -> dict[str, tuple[int, int]]:
    """By controller, from the slow books. Of one of which somebody is leaving decisions expect less than books say."""
    bench, found = chaos.bench, dict[str, tuple[int, int]]()
    uids = bench.engine.waiting()
    for key, books in bench.books.items():
        service = bench.engine.controllers[key].service
        mine = [uid for uid in uids if bench.key(uid) == key]
        counts = Counter(books.late(uid, chaos.t, service, bench.engine.config) for uid in mine)
        found[key] = counts["lost"], counts["starving"]
    return found


def comparable(chaos: Chaos, key: str) -> bool:
    books = chaos.bench.books[key]
    return books.approach == "independent" or not (books.leaving or books.refusals)


@pytest.mark.uncompiled
@pytest.mark.parametrize("seed", range(8))
def test_books_kept_the_slow_way_say_the_same(seed: int) -> None:
    chaos, seen = Chaos(seed, overload="triage"), Counter[str]()
    for _ in range(150):
        chaos.step()
        engine = chaos.bench.engine
        at = T0 + chaos.t
        found, stood = late(engine, at), overview(engine, at)
        for i, one in enumerate(stood.controllers):
            alone = slo_status(engine, one.key, at)
            here = alone.lost, alone.starving
            assert here == found.get(one.key, (0, 0)) == (stood.lost[i], stood.starving[i])
            if comparable(chaos, one.key):
                assert here == expected(chaos)[one.key], (seed, chaos.t, one.key)
                seen.update(lost=here[0], starving=here[1])
    assert seen.total()


def crowded(**policy: Any) -> Engine:
    """Silver ran for 100 s, and then gold took the only core; bronze never ran."""
    config = settings()
    engine = Engine(replace(config, policy=replace(config.policy, **policy)))
    engine.host("n", {"cpu": 1000, "pods": 10}, {}, True)
    for number, service in enumerate((SILVER, GOLD)):
        engine.spec(number, Spec((("cpu", 1000), ("pods", 1)), service))
        engine.controller(service.name, service, 0, False)
    engine.found("s", "s", "silver", 0, "n", T0)
    engine.ready("s", T0)
    engine.gone("s", T0 + 100)
    engine.found("g", "g", "gold", 1, "n", T0 + 100)
    engine.arrive("again", "s", "silver", 0, T0 + 100)
    return engine


def test_who_waits_becomes_late_and_starves_while_nothing_is_told() -> None:
    engine = crowded()
    assert late(engine, T0 + 1000) == {}, "who is asleep is in no pass"
    engine.wake("again")
    # Entitled to 111.1 s; alpha 10 s, savable 40 s; .05 of .9 is reached after 2222 s.
    told = [late(engine, T0 + at).get("silver", (0, 0)) for at in (100, 141, 142, 2222, 2223)]
    assert told == [(0, 0), (0, 0), (1, 0), (1, 0), (0, 1)]
    engine.arrive("fresh", "t", "silver", 0, T0 + 2000)
    engine.wake("fresh")
    assert late(engine, T0 + 2223) == {"silver": (0, 2)}
    engine.bound_elsewhere("again", "n", T0 + 2300)
    assert late(engine, T0 + 2300) == {"silver": (0, 1)}
    engine.gone("fresh", T0 + 2301)
    assert late(engine, T0 + 2301) == {}


@pytest.mark.parametrize("policy", [{"overload": "share"}, {"name": "priority"}, {"name": "own"}])
def test_where_nobody_is_given_up_nobody_is_late(policy: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(FIRST_FIT)
    engine = crowded(**{key: f"{own}:FirstFit" if value == "own" else value for key, value in policy.items()})
    engine.wake("again")
    engine.run(T0 + 1000)
    assert late(engine, T0 + 1000) == {}
    found = slo_status(engine, "silver", T0 + 1000)
    assert (found.waiting, found.lost, found.starving) == (1, 0, 0)


def test_asking_leaves_what_decisions_are_based_on_as_it_was() -> None:
    chaos = Chaos(7)
    for _ in range(80):
        chaos.step()
    tb, at = chaos.bench.engine.tables.tb, T0 + chaos.t
    names = ("instances", "slots", "hosts", "requests", "classes", "kinds", "queue", "incoming", "lendable")
    before = [tb[name].tobytes() for name in names], tb.control.tobytes()
    assert late(chaos.bench.engine, at + 100.0)
    overview(chaos.bench.engine, at + 100.0)
    assert before == ([tb[name].tobytes() for name in names], tb.control.tobytes())
