"""Books go out and come back: exact at their instant, and within a second per instance whatever happened since."""

from __future__ import annotations

import base64
import json
import random
import uuid
import zlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

from engine.gaps import Gap, fresh
from engine.workbench import BRONZE, CLASSES, KINDS, SILVER, T0, Chaos, engine_with, settings
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Operation
from slacktide.engine.journal import codec
from slacktide.engine.journal.replay import carry_out
from slacktide.engine.ledger.checkpoint import RECORD, VERSION, read, squeeze
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import SUMS, accrue, slo_status, totals
from slacktide.errors import StateError
from support.calls import calls_of

SPANS = ("lifetime", "running", "startup_first", "startup_restarts", "discarded")


def pod(
    uid: str, created: float, since: float | None = None, ready: float | None = None, **more: Any
) -> dict[str, Any]:
    """A pod as it is now; offsets from T0. ``ready``: since then."""
    at = {
        name: None if t is None else T0 + t
        for name, t in (("created", created), ("since", since), ("ready_since", ready))
    }
    host = "" if since is None else "node-0"
    plain = {"uid": uid, "name": uid, "spec": 2, "host": host, "ready": ready is not None, "leaving": False}
    return {**plain, **at, **more}


def sums_at(engine: Engine, t: float, key: str = "c") -> dict[str, float]:
    controller = engine.controllers[key]
    return totals(controller, accrue(engine.tables.tb, controller.rows, len(controller.rows), T0 + t))


def by_uid(engine: Engine, t: float, key: str = "c") -> dict[str, dict[str, float]]:
    """The books of each instance that has a pod."""
    controller = engine.controllers[key]
    had = accrue(engine.tables.tb, controller.rows, len(controller.rows), T0 + t)
    books = {row: {name: float(had[name][i]) for name in SPANS} for i, row in enumerate(had.rows.tolist())}
    return {engine.uid_of_row[row]: books[row] for row in books if row in engine.uid_of_row}


def running(kind: str, *, at: float = 100.0) -> tuple[Engine, dict[str, Any]]:
    """Two pods, on hosts from 2 s on and ready from 5 and 6 s on; their books at 100 s."""
    engine = fresh(kind)
    for uid in ("a", "b"):
        engine.arrive(uid, uid, "c", 2, T0)
    for uid in ("a", "b"):
        engine.bound_elsewhere(uid, "node-0", T0 + 2)
    engine.ready("a", T0 + 5)
    engine.ready("b", T0 + 6)
    return engine, export(engine, "c", T0 + at)


def again(kind: str, books: dict[str, Any] | None, pods: list[dict[str, Any]], now: float, desired: int = -1) -> Engine:
    engine = fresh(kind)
    engine.desired("c", desired, T0)
    restore(engine, "c", books, pods, T0 + now)
    return engine


# -- hand-computed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_pods_that_ran_on_ran_on(kind: str) -> None:
    _, books = running(kind)
    engine = again(kind, books, [pod("a", 0, 2, 5), pod("b", 0, 2, 6)], 200)
    # Both live 200 s, wait 2, start up 3 and 4, and run 195 and 194.
    assert list(sums_at(engine, 200).values()) == [400, 389, 7, 0, 0]
    at = slo_status(engine, "c", T0 + 200)
    assert at.delivered == {"independent": 194 / 200, "concurrent": 2 * 194 / 400}.get(kind, 389 / 400)
    assert (at.running, at.waiting, at.starts) == (2, 0, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_vanished_ran_until_its_replacement_was_created(kind: str) -> None:
    _, books = running(kind)
    engine = again(kind, books, [pod("b", 0, 2, 6), pod("new", 130, 140, 150)], 200)
    # a runs from 5 to 130 (lost, of a batch), waits to 140, starts up to 150 and runs to 200.
    lost = 125 if kind == "batch" else 0
    assert list(sums_at(engine, 200).values()) == [400, 194 + 125 + 50 - lost, 7, 10, lost]
    if kind == "concurrent":  # both at once from 6 to 130 and from 150 on
        assert slo_status(engine, "c", T0 + 200).delivered == 2 * (124 + 50) / 400
    assert engine.pods["new"].state == types.PLACED


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_vanished_without_a_replacement_ran_until_now(kind: str) -> None:
    _, books = running(kind)
    engine = again(kind, books, [pod("b", 0, 2, 6)], 200)
    lost = 195 if kind == "batch" else 0
    assert list(sums_at(engine, 200).values()) == [400, 389 - lost, 7, 0, lost]
    assert len(engine.controllers["c"].vacant) == 1
    engine = again(kind, books, [pod("b", 0, 2, 6)], 200, desired=1)
    assert len(engine.controllers["c"].rows) == 1
    assert sums_at(engine, 250)["lifetime"] == 200 + 250


@pytest.mark.parametrize("kind", KINDS)
def test_what_pods_say_of_the_gap_is_booked(kind: str) -> None:
    engine, _ = running(kind)
    engine.arrive("c", "c", "c", 2, T0 + 90)
    books = export(engine, "c", T0 + 100)
    pods = [pod("a", 0, 2, 5), pod("b", 0, 2, 6, stopped=T0 + 120), pod("c", 90, 110, 115), pod("d", 150)]
    pods[0] |= {"ready": False, "ready_since": T0 + 160}
    pods[1] |= {"ready_since": T0 + 123}
    engine = again(kind, books, pods, 200)
    # a runs from 5 to 160 and starts up since; b runs from 6 to 120 and from 123 on; c waits from 90 to 110, is ready
    # at 115; d waits since 150.
    assert list(sums_at(engine, 200).values()) == [200 + 200 + 110 + 50, 155 + 114 + 77 + 85, 3 + 4 + 5, 40 + 3, 0]
    if kind != "concurrent":
        return
    # All at once: two from 6 to 90, three from 115 to 120 and from 123 to 150.
    assert slo_status(engine, "c", T0 + 200).delivered == (2 * 84 + 3 * (5 + 27)) / 560


def test_a_pod_that_completed_in_the_gap_keeps_what_it_did() -> None:
    _, books = running("batch")
    over = {"ended": T0 + 150, "completed": True}
    engine = again(
        "batch", books, [pod("a", 0, 2, 5, **over), pod("new", 110, 111, 120, **over), pod("b", 0, 2, 6)], 200
    )
    # a runs from 5 to 150, b from 6 to 200; a new one waits a second, starts up to 120 and runs to 150.
    assert list(sums_at(engine, 200).values()) == [150 + 200 + 40, 145 + 194 + 30, 3 + 4 + 9, 0, 0]
    assert len(engine.controllers["c"].rows) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_without_books_the_ledger_begins_with_the_pods(kind: str) -> None:
    engine = again(kind, None, [pod("a", 10, 20, 25), pod("b", 0, 2), pod("c", 50)], 100)
    assert list(sums_at(engine, 100).values()) == [90 + 100 + 50, 75, 5 + 98, 0, 0]
    at = slo_status(engine, "c", T0 + 100)
    assert (at.running, at.waiting, at.starts) == (1, 2, 2)
    assert {uid: one.state for uid, one in engine.pods.items()} == {
        "a": types.PLACED, "b": types.PLACED, "c": types.ASLEEP,
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_set_back_adds_nothing(kind: str) -> None:
    before, books = running(kind)
    engine = again(kind, books, [pod("a", 0, 2, 5), pod("b", 0, 2, 6), pod("new", 120, 121, 122)], -1000)
    assert sums_at(engine, -1000) == sums_at(before, 100)
    found, expected = slo_status(engine, "c", T0 - 1000), slo_status(before, "c", T0 + 100)
    # An independent one that is new counts as ready from its first instant on.
    assert found.delivered_always == expected.delivered_always or kind == "independent"
    after = sums_at(engine, -990)
    assert after["lifetime"] == 200 + 3 * 10
    assert after["running"] == 189 + 3 * 10


@pytest.mark.parametrize("kind", KINDS)
def test_timestamps_from_elsewhere_give_nobody_more_time_than_passed(kind: str) -> None:
    _, books = running(kind)
    odd = [pod("a", 0, 2, 5), pod("b", 0, 2, 6), pod("x", 5000, 6000, 7000), pod("y", -5000, -4000, -3000)]
    engine = again(kind, books, odd, 200)
    sums = sums_at(engine, 200)
    assert sums["lifetime"] <= 400 + 100
    assert sums["running"] <= 389 + 100
    for name, one in by_uid(engine, 200).items():
        assert min(one.values()) >= 0, name
        assert sum(one[span] for span in SPANS[1:]) <= one["lifetime"], name


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_set_forward_counts_as_time(kind: str) -> None:
    _, books = running(kind)
    engine = again(kind, books, [pod("a", 0, 2, 5), pod("b", 0, 2, 6)], 1_000_000)
    assert sums_at(engine, 1_000_000)["running"] == 2_000_000 - 11


def leaving(kind: str) -> dict[str, Any]:
    """Books at 110 s of a bronze pod, ready since 5 s, that was told to leave at 100 s."""
    engine = engine_with(hosts=1, cores=1)
    engine.controller("c", CLASSES[2], KINDS.index(kind), False)
    engine.controller("gold", CLASSES[0], 0, False)
    engine.arrive("a", "a", "c", 2, T0)
    engine.wake("a")
    engine.run(T0)
    engine.bound("a", T0)
    engine.ready("a", T0 + 5)
    engine.arrive("g", "g", "gold", 0, T0 + 100)
    engine.wake("g")
    assert engine.run(T0 + 100).decisions[0].victims[0].uid == "a"
    return export(engine, "c", T0 + 110)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_victim_goes_on_leaving_is_gone_or_was_spared(kind: str) -> None:
    books = leaving(kind)

    def overhead(engine: Engine) -> float:
        controller = engine.controllers["c"]
        if kind != "independent":
            return float(engine.tables.tb["requests"]["overhead"][controller.q])
        return float(engine.tables.tb["instances"]["overhead"][next(iter(controller.rows))])

    still = again(kind, books, [pod("a", 0, 0, 5, leaving=True)], 120)
    assert (slo_status(still, "c", T0 + 120).preemptions, overhead(still)) == (1, 0)
    row = still.pods["a"].row
    assert still.tables.tb["guard"][row] == np.inf  # nobody's victim again
    still.gone("a", T0 + 130)
    assert (sums_at(still, 140)["running"], overhead(still)) == (125, 5)
    gone = again(kind, books, [pod("new", 130)], 140)
    assert (slo_status(gone, "c", T0 + 140).preemptions, overhead(gone)) == (1, 5)
    assert sums_at(gone, 140)["running"] == 125
    spared = again(kind, books, [pod("a", 0, 0, 5)], 140)
    assert (slo_status(spared, "c", T0 + 140).preemptions, overhead(spared)) == (0, 0)
    assert sums_at(spared, 140)["running"] == 135


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_decision_that_was_never_bound_counts_as_waiting(kind: str) -> None:
    engine = fresh(kind)
    engine.arrive("a", "a", "c", 2, T0)
    engine.wake("a")
    engine.run(T0 + 10)
    books = export(engine, "c", T0 + 40)
    engine = again(kind, books, [pod("a", 0)], 100)
    assert list(sums_at(engine, 100).values()) == [100, 0, 0, 0, 0]
    assert (slo_status(engine, "c", T0 + 100).starts, engine.pods["a"].state) == (0, types.ASLEEP)


def test_a_stateful_sets_pods_find_their_ledgers_by_name() -> None:
    engine = fresh("independent")
    for i in range(3):
        engine.arrive(f"old-{i}", f"db-{i}", "c", 2, T0 + i)
        engine.bound_elsewhere(f"old-{i}", "node-0", T0 + 10)
        engine.ready(f"old-{i}", T0 + 20 * (i + 1))
    engine.gone("old-1", T0 + 90)
    books = export(engine, "c", T0 + 100)
    pods = [pod(f"new-{i}", 150 - 10 * i, name=f"db-{i}") for i in range(2)]  # db-1 first
    engine = again("independent", books, pods, 200)
    had = by_uid(engine, 200)
    assert (had["new-0"]["running"], had["new-1"]["running"]) == (150 - 20, 90 - 40)
    (row,) = engine.controllers["c"].vacant
    assert engine.controllers["c"].rows[row] == "db-2"


def test_surge_that_ended_in_the_gap_leaves_the_older_ledger() -> None:
    engine, _ = running("independent")
    engine.desired("c", 2, T0)
    engine.arrive("new", "new", "c", 2, T0 + 90)
    engine.bound_elsewhere("new", "node-0", T0 + 91)
    books = export(engine, "c", T0 + 100)
    engine = again("independent", books, [pod("b", 0, 2, 6), pod("new", 90, 91, 110)], 200, desired=2)
    had = by_uid(engine, 200)
    assert had["new"]["lifetime"] == 200  # a's
    assert had["new"]["running"] == 195
    assert len(engine.controllers["c"].rows) == 2


# -- random ------------------------------------------------------------------------------------------------------------


def seen_of(engine: Engine, key: str) -> list[dict[str, Any]]:
    """The pods of a controller with exact timestamps."""
    tb, pods = engine.tables.tb, []
    for one in engine.pods.values():
        if one.key != key:
            continue
        instance = tb["instances"][one.row]
        on = bool(one.host) and one.bound
        since = float(instance["since"]) if on else None
        pods.append(
            {
                "uid": one.uid, "name": one.name, "spec": one.spec, "created": float(tb["admission"][one.row]),
                "host": one.host if on else "", "since": since, "ready": one.ready,
                "ready_since": since + float(instance["startup"]) if since is not None and one.ready else since,
                "leaving": one.state == types.LEAVING,
            }
        )  # fmt: skip
    return pods


def test_books_restored_at_their_own_instant_are_the_same() -> None:
    seen: Counter[str] = Counter()
    for seed in range(100):
        chaos = Chaos(seed)
        for _ in range(chaos.random.randint(20, 150)):
            chaos.step()
        old, now = chaos.bench.engine, T0 + chaos.t
        for key in chaos.bench.books:
            controller = old.controllers[key]
            new = engine_with(hosts=1, cores=4)
            new.controller(key, controller.service, controller.approach, controller.batch)
            books = json.loads(json.dumps(export(old, key, now)))
            restore(new, key, books, seen_of(old, key), now)
            assumed = any(one.key == key and one.host and not one.bound for one in old.pods.values())
            for later in (0.0, 33.25):
                found, expected = sums_at(new, now - T0 + later, key), sums_at(old, now - T0 + later, key)
                same = SUMS if not assumed else ("lifetime", "running", "discarded")
                alone = controller.approach == 0
                if not alone and later:  # who is in a first start is known by number only
                    same = ("lifetime", "running", "discarded")
                assert all(found[name] == expected[name] for name in same), (seed, key)
                a, b = slo_status(new, key, now + later), slo_status(old, key, now + later)
                assert (a.delivered, a.running, a.waiting, a.preemptions) == (
                    b.delivered,
                    b.running,
                    b.waiting,
                    b.preemptions,
                )
                assert a.starts == b.starts or assumed
                assert a.slack == b.slack or later or any(one.state == types.LEAVING for one in old.pods.values())
                seen[a.state] += 1
            seen["leaving"] += any(one.state == types.LEAVING for one in old.pods.values())
            seen["assumed"] += assumed
            seen["vacant"] += bool(controller.vacant)
            again_out = export(new, key, now)
            if alone_and_certain(controller.approach, assumed):
                assert (
                    np.sort(read(again_out).records, order=RECORD.names).tolist()
                    == np.sort(read(books).records, order=RECORD.names).tolist()
                )
            elif not assumed:
                assert again_out["sums"] == books["sums"]
                assert again_out["together"] == books["together"]
                assert again_out["counts"]["up"] == books["counts"]["up"]
    assert min(seen[what] for what in ("Missed", "leaving", "assumed", "vacant")) >= 10, seen


def alone_and_certain(approach: int, assumed: bool) -> bool:
    return approach == 0 and not assumed


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_after_a_gap_every_instance_is_within_a_second(kind: str, named: bool) -> None:
    worst, changes = 0.0, 0
    for seed in range(50):
        gap = Gap(seed, kind, named)
        for _ in range(gap.random.randint(1, 60)):
            gap.step()
        books = gap.crash()
        for _ in range(gap.random.randint(0, 15)):
            gap.step()
        gap.t += gap.random.random() * 30
        engine = gap.restored(books)
        changes += len(gap.replaced) + sum(one.changes for one in gap.pods.values())
        number = len(engine.controllers["c"].rows) + len([one for one in gap.pods.values() if one.ended is not None])
        for t in (gap.t, gap.t + 100):
            found, expected = sums_at(engine, t), sums_at(gap.engine, t)
            for name in ("lifetime", "running", "discarded"):
                assert abs(found[name] - expected[name]) <= number, (seed, name, found, expected)
            starting = [sum(sums[name] for name in ("startup_first", "startup_restarts")) for sums in (found, expected)]
            assert abs(starting[0] - starting[1]) <= number, (seed, starting)
            a, b = slo_status(engine, "c", T0 + t), slo_status(gap.engine, "c", T0 + t)
            assert (a.running, a.waiting) == (b.running, b.waiting), seed
            if kind == "independent" and named:
                mine, theirs = by_uid(engine, t), by_uid(gap.engine, t)
                assert mine.keys() == theirs.keys()
                for uid in mine:
                    off = max(abs(mine[uid][name] - theirs[uid][name]) for name in SPANS)
                    worst = max(worst, off)
                    assert off <= 1, (seed, uid, mine[uid], theirs[uid])
    assert changes > 100
    assert worst > 0.5 or not (kind == "independent" and named)


def test_no_books_and_a_second_each() -> None:
    for seed in range(100):
        gap = Gap(seed, "independent", False)
        gap.crash()
        for _ in range(gap.random.randint(1, 20)):
            gap.step()
        engine = gap.restored(None)
        mine, theirs = by_uid(engine, gap.t), by_uid(gap.engine, gap.t)
        assert mine.keys() == theirs.keys()
        for uid, one in gap.pods.items():
            if not one.changes or one.ready:
                assert all(abs(mine[uid][name] - theirs[uid][name]) <= 1 for name in SPANS), (seed, uid)


# -- form --------------------------------------------------------------------------------------------------------------


def crowd(kind: str, count: int = 10_000) -> Engine:
    """Instances with histories that do not compress."""
    rng = random.Random(1)
    engine = engine_with(hosts=3, cores=10_000)
    engine.controller("c", CLASSES[2], KINDS.index(kind), False)
    tb = engine.tables
    for _ in range(count):
        uid = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        engine.arrive(uid, f"web-5d4f8c7b9-{uid[:5]}", "c", 2, T0 - 1e7)
        row = engine.pods[uid].row
        instance = tb.tb["instances"][row : row + 1]
        tb.tb["admission"][row] = T0 - round(rng.uniform(5e6, 1e7) * 2**20) / 2**20
        for name, most in (("running", 1e6), ("startup_first", 60), ("startup_restarts", 1e3), ("overhead", 1e3)):
            instance[name] = round(rng.uniform(0, most) * 2**20) / 2**20
        instance["preemptions"], instance["starts"] = rng.randrange(500), rng.randrange(2, 500)
    for i, uid in enumerate(list(engine.pods)):
        engine.bound_elsewhere(uid, f"node-{i % 3}", T0 + i / 2**10)
        if i % 3:
            engine.ready(uid, T0 + i / 2**10 + 0.25)
    return engine


def test_ten_thousand_instances_fit_into_a_megabyte_and_are_judged_all_at_once() -> None:
    engine = crowd("independent")
    text = json.dumps(export(engine, "c", T0 + 20))
    assert len(text) < 1_000_000
    assert calls_of(lambda: slo_status(engine, "c", T0 + 20)) < 300
    new = engine_with(hosts=3, cores=10_000)
    new.controller("c", CLASSES[2], 0, False)
    restore(new, "c", json.loads(text), seen_of(engine, "c"), T0 + 20)
    assert slo_status(new, "c", T0 + 100) == slo_status(engine, "c", T0 + 100)
    assert by_uid(new, 100) == by_uid(engine, 100)


@pytest.mark.parametrize("kind", ["concurrent", "aggregated"])
def test_books_of_several_together_are_of_constant_size(kind: str) -> None:
    assert len(json.dumps(export(crowd(kind, 2000), "c", T0 + 20))) < 1000


@pytest.mark.parametrize("kind", KINDS)
def test_a_restoration_is_one_operation_and_can_be_replayed(kind: str) -> None:
    gap = Gap(3, kind, False)
    for _ in range(40):
        gap.step()
    books = gap.crash()
    for _ in range(10):
        gap.step()
    told: list[Operation] = []
    first = fresh(kind)
    first.journal = told.append
    restore(first, "c", books, gap.seen(), T0 + gap.t)
    assert [one.method for one in told] == ["restore"]
    second = fresh(kind)
    for one in told:
        carry_out(second, codec.decode(codec.encode(one)))
    for table in ("instances", "requests", "admission", "guard"):
        assert first.tables.tb[table].tobytes() == second.tables.tb[table].tobytes()


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"version": VERSION + 1}, f"books: version: found {VERSION + 1}, expected at most {VERSION}: a later release"),
    ({"approach": "best"}, "books: approach: found 'best', expected one of independent"),
    ({"at": float("nan")}, "books: at: found nan, expected seconds"),
    ({"sums": {}}, "books: sums.lifetime: found None, expected seconds"),
    ({"counts": {"live": -1}}, "books: counts.live: found -1, expected a whole number"),
    ({"counts": {"live": 3, "preemptions": 0, "starts": 0}}, "books: records: found '.* bytes', expected 3 records"),
    ({"records": "!"}, "books: records: found '!', expected compressed data in base64"),
    ({"names": ""}, "books: names: found '', expected"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN)
def test_broken_books_are_refused_by_name_and_change_nothing(change: dict[str, Any], message: str) -> None:
    _, books = running("independent")
    engine = fresh("independent")
    with pytest.raises(StateError, match=message):
        restore(engine, "c", {**books, **change}, [pod("a", 0)], T0 + 200)
    assert not engine.controllers["c"].rows
    assert not engine.pods


def test_books_of_another_approach_are_refused() -> None:
    _, books = running("aggregated")
    with pytest.raises(StateError, match="controller c: books: approach: found aggregated, expected independent"):
        again("independent", books, [], 200)


def test_an_unknown_host_is_refused_before_anything_changes() -> None:
    engine = fresh("independent")
    with pytest.raises(StateError, match="incarnation b: host elsewhere: not known"):
        restore(engine, "c", None, [pod("a", 0), pod("b", 0, 1, host="elsewhere")], T0 + 200)
    assert not engine.pods


def test_a_restored_engine_decides_like_the_old_one() -> None:
    """Slack decides, so whoever restored it picks the same victims."""
    assert settings().qos.startup == "always"
    old = engine_with(hosts=1, cores=4)
    old.controller("c", SILVER, 0, False)
    old.controller("g", CLASSES[0], 0, False)
    old.controller("b", BRONZE, 0, False)
    for key, cls in (("c", 1), ("b", 2)):
        for i in range(2):
            old.arrive(f"{key}{i}", f"{key}{i}", key, cls, T0 + i)
            old.bound_elsewhere(f"{key}{i}", "node-0", T0 + 2)
            old.ready(f"{key}{i}", T0 + 5 + 20 * i)
    new = engine_with(hosts=1, cores=4)
    new.controller("g", CLASSES[0], 0, False)
    for key, service in (("c", SILVER), ("b", BRONZE)):
        new.controller(key, service, 0, False)
        restore(new, key, export(old, key, T0 + 100), seen_of(old, key), T0 + 100)
    for engine in (old, new):
        engine.arrive("gold", "gold", "g", 0, T0 + 120)
        engine.wake("gold")
    mine, theirs = (engine.run(T0 + 120).decisions for engine in (new, old))
    assert mine == theirs
    assert mine[0].victims[0].uid == "b0"


@pytest.mark.parametrize("size", [0, 1, 249, 250, 255, 256, 511, 512, 1000, 32_505, 32_506, 32_768, 100_000])
def test_what_is_squeezed_is_as_short_as_with_the_largest_window_and_comes_out_whole(size: int) -> None:
    half = random.Random(size).randbytes(size - size // 2)
    data = (half + half)[:size]  # what repeats lies as far apart as can be
    squeezed = base64.b64decode(squeeze(data))
    assert zlib.decompress(squeezed) == data
    assert len(squeezed) <= len(zlib.compress(data, 6)) * 1.01 + 8
