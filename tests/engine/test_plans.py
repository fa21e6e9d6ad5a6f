"""Whom plans give up, and what is said of it: an engine second by second, and whoever leads after it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import slacktide as st
from engine.shortage import DEMAND, MINUTES, STARTUP, Shortage, live_settings
from engine.workbench import T0
from slacktide.engine.core import relocation, types
from slacktide.engine.core.plans import Carried, GivenUp
from slacktide.engine.explain import giving_up, preemption
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.journal.record import Recorder
from slacktide.engine.journal.replay import replay
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.overview import overview
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kernels.plan.giving_up import AWAY
from slacktide.kube.publish.state_events import document, message
from slacktide.kube.translate.owners import Target
from slacktide.model import ServiceClass, Window
from slacktide.state.compaction import compact

pytestmark = pytest.mark.filterwarnings("ignore::slacktide.errors.ResultWarning")  # some are meant to wait for ever

LARGEST = 1e6
"""Seconds; what is shown of slacks is far below it, what plans add to them far above."""
HALF_AN_HOUR = 1800.0
overloads = pytest.mark.parametrize("overload", ["plan", "triage"])
TURNS = ServiceClass("gold", 0.8, 2, window=Window(rolling=120.0))
"""Nine on eight places take turns, and nobody is given up."""
RARE = ServiceClass("gold", 0.99, 2, window=Window(rolling=30 * 86_400.0))


def simulated(services: int, places: int, folder: Path) -> int:
    """How many promises a simulation of the same keeps to the end of half an hour."""
    rows = "".join(f"{i},{i / 10},,1,1,gold\n" for i in range(services))
    (folder / "w.csv").write_text("id,admission,duration,cpu,memory,class\n" + rows)
    (folder / "h.csv").write_text("id,name,cpu,memory\n" + "".join(f"{i},n{i},1,1\n" for i in range(places)))
    (folder / "c.yaml").write_text(
        f"classes:\n  - {{name: gold, slo: {MINUTES.slo}, rank: 2, window: {{rolling: 120}}}}\n"
        f"qos: {{alpha: {STARTUP}}}\nstartup: {{hot: 'constant:{STARTUP}', cold: 'constant:{STARTUP}'}}\n"
    )
    found = st.simulate(folder / "w.csv", folder / "h.csv", end=HALF_AN_HOUR, config=folder / "c.yaml", progress=False)
    return round(services * float(found.classes["fulfilment"][0]))


@pytest.mark.parametrize(("services", "places"), [(9, 8), (24, 20)])
def test_as_many_are_kept_as_in_a_simulation_and_nearly_at_all_times(
    services: int, places: int, tmp_path: Path
) -> None:
    scene, kept = Shortage(services, places), list[int]()
    scene.run(240)
    for _ in range(int(HALF_AN_HOUR / 60) - 4):
        scene.run(60)
        kept.append(services - scene.states().count("Missed"))
    assert min(kept) >= simulated(services, places, tmp_path) - 1
    assert min(kept) >= places
    assert len(scene.given_up()) == services - min(kept)


def test_of_nine_services_on_eight_places_one_is_given_up_and_waits() -> None:
    scene = Shortage()
    scene.run(600)
    [given_up] = scene.given_up()
    assert scene.waiting() == [given_up]
    assert scene.engine.plans.classes == {"gold": Carried(9, 8)}
    assert not any(one.victims for one in scene.decisions), "nobody takes turns, as budgets do not pay for the ninth"


def test_what_is_said_of_one_that_is_given_up() -> None:
    scene = Shortage()
    scene.run(300)
    [key] = scene.given_up()
    found = slo_status(scene.engine, key, scene.now)
    plan = found.given_up
    assert plan is not None
    assert (plan.service, plan.instances, plan.promises, plan.carried) == ("gold", 1, 9, 8)
    assert T0 < plan.since < scene.now <= plan.next_plan <= scene.now + 10.0
    said = (
        f"given up by the plan since {giving_up.instant(plan.since)}: capacity carries 8 of the 9 promises of class "
        "gold; it takes free room; "
    )
    change = "more room (cpu 1, memory 1Gi) or a lower promise would change that; "
    assert message(found) == f"{said}{change}next plan within 1 s"
    [uid] = scene.engine.waiting()
    reason = Explainer(scene.engine).reason(uid, scene.now)
    assert reason == (
        "0/8 nodes are available: 8 Insufficient cpu. preemption: 0/8 nodes are available: "
        f"8 No preemption victims found for incoming pod (8 {preemption.NOT_FOR_GIVEN_UP}). {said}next plan within 1 s."
    )
    target = Target("apps/v1", "Deployment", "shop", "s", "uid")
    status = document(target, {"at": scene.now}, found)["status"]["givenUp"]
    assert (status["instances"], status["promises"], status["carried"]) == (1, 9, 8)
    kept = next(key for key in scene.keys if key not in scene.given_up())
    assert slo_status(scene.engine, kept, scene.now).given_up is None
    assert document(target, {"at": scene.now}, slo_status(scene.engine, kept, scene.now))["status"]["givenUp"] is None


def test_since_when_is_kept_while_plans_agree_and_begins_anew_after_a_break() -> None:
    scene = Shortage()
    scene.run(300)
    [(key, since)] = scene.engine.plans.since.items()
    scene.run(120)
    assert scene.engine.plans.since == {key: since}
    scene.add_host("one-more")
    scene.run(600)
    assert scene.given_up() == []
    assert "Missed" not in scene.states()
    assert slo_status(scene.engine, key, scene.now).given_up is None
    assert np.isinf(overview(scene.engine, scene.now).given_up).all()
    assert scene.engine.plans.classes == {"gold": Carried(9, 9)}


def test_who_is_given_up_is_looked_at_again_though_nobody_waits() -> None:
    scene = Shortage(service=RARE)
    scene.run(800)
    assert len(scene.given_up()) == 1
    scene.add_host("one-more")
    while scene.engine.anybody_waits():
        scene.run(1)
    assert len(scene.given_up()) == 1, "it was not yet time for another plan"
    assert not scene.engine.is_to_plan(scene.now)
    assert scene.engine.is_to_plan(scene.now + 60.0)
    scene.run(60)
    assert scene.given_up() == []
    assert not scene.engine.is_to_plan(scene.now + 60.0)


def shown(scene: Shortage) -> list[float]:
    """All slacks that anybody is shown, and numbers in texts."""
    engine, now = scene.engine, scene.now
    found = overview(engine, now)
    numbers: list[float] = [one for one in found.slack.tolist() if one != float("inf")]
    texts = [str(Explainer(engine).explain(uid, now)) for uid in engine.waiting()]
    texts += [message(slo_status(engine, key, now)) for key in scene.keys]
    for decision in scene.decisions:
        numbers += [decision.metric, *(one.metric for one in decision.victims)]
    for one in engine.pods.values():
        if one.state == types.PLACED and one.bound:
            texts.append(relocation.obstacle(engine, one.uid, {"cpu": 2000}, now))
    without = [re.sub(r"\d{4}-\d\d-\d\d", "", text) for text in texts]
    return numbers + [float(one) for text in without for one in re.findall(r"\d+(?:\.\d+)?", text)]


@pytest.mark.parametrize("service", [MINUTES, RARE])
@pytest.mark.parametrize("bare", [(), (0, 1, 2)])
def test_what_a_plan_adds_to_slacks_and_margins_is_never_shown(service: ServiceClass, bare: tuple[int, ...]) -> None:
    scene = Shortage(service=service, bare=bare)
    for _ in range(20):
        scene.run(30)
        seconds = [abs(one) for one in shown(scene)]
        assert max(seconds) < LARGEST < AWAY / 2
    assert scene.engine.tables.tb["classes"]["margin"].max() > LARGEST


def test_whether_a_pod_may_move_goes_by_its_own_margin() -> None:
    scene = Shortage(service=TURNS)
    scene.run(300)
    scene.engine.host("spare", {"cpu": 4000, "memory": 2**33, "pods": 10}, {}, True)
    slacks = dict(zip(scene.keys, overview(scene.engine, scene.now, scene.keys).slack.tolist(), strict=True))
    found = {
        one.key: relocation.obstacle(scene.engine, one.uid, dict(DEMAND), scene.now)
        for one in scene.engine.pods.values()
        if one.ready
    }
    assert {relocation.NOT_ALL_READY} & set(found.values()) == set()
    for key, why in found.items():
        below = slacks[key] < TURNS.margin
        assert why == (f"its slack of {slacks[key]:.1f} s is below the 10 s margin of its class" if below else "")
    assert len(set(found.values())) > 1


def test_a_new_leader_plans_from_the_ledgers_at_once() -> None:
    scene = Shortage()
    scene.run(600)
    [given_up] = scene.given_up()
    scene.decisions.clear()
    scene.lead_anew(away=3.0)
    assert scene.given_up() == []
    scene.run(1)
    assert scene.given_up() == [given_up]
    assert scene.engine.plans.classes == {"gold": Carried(9, 8)}
    scene.run(600)
    assert scene.given_up() == [given_up]
    assert scene.states().count("Missed") == 1
    assert not any(one.victims for one in scene.decisions)


def test_a_leader_who_knows_ledgers_and_no_pod_yet_plans_for_nobody() -> None:
    scene = Shortage(services=3, places=2)
    scene.run(300)
    fresh = scene.new_engine()
    for key in scene.keys:
        restore(fresh, key, export(scene.engine, key, scene.now), [], scene.now)
    assert fresh.run(scene.now + 1.0).decisions == ()
    assert fresh.plans.since == {}
    assert fresh.plans.classes == {}
    scene.engine = fresh
    scene.make(scene.keys[0])
    scene.run(2)
    compact(fresh.tables)
    scene.run(1)
    assert fresh.plans.classes == {"gold": Carried(1, 1)}, "of the others nobody knows what they ask for"


def test_a_record_with_plans_is_decided_again_as_it_was(tmp_path: Path) -> None:
    with Recorder(tmp_path, live_settings()) as recorder:
        scene = Shortage(24, 20, bare=(0,), journal=recorder)
        scene.run(400)
        assert scene.given_up()
        assert any(one.victims for one in scene.decisions)
        scene.add_host("one-more")
        scene.run(200)
        scene.lead_anew(5.0, recorder)
        scene.run(200)
    report = replay(tmp_path)
    assert report.equal
    assert (report.sessions, report.refused) == (2, 0)
    assert report.decisions == len(scene.decisions)
    assert report.victims == sum(len(one.victims) for one in scene.decisions) > 10


# -- pods that nobody makes again --------------------------------------------------------------------------------------


def test_a_bare_pod_makes_no_room_for_an_equal() -> None:
    """Nine in turns on eight places: of each kind of pod some are there, and only the others take turns."""
    for bare, turned in (((), 9), (range(5), 4)):
        scene = Shortage(9, 8, TURNS, bare=bare)
        scene.run(900)
        assert sum(len(one.victims) for one in scene.decisions) > 20
        assert len(scene.displaced) == turned
        assert scene.lost == []


def test_it_makes_none_either_where_nothing_is_planned() -> None:
    for bare in ((), range(9)):
        scene = Shortage(9, 8, TURNS, bare=bare, overload="triage")
        scene.run(900)
        assert bool(scene.displaced) == (not bare)


@overloads
@pytest.mark.parametrize("before", [1, 60, 300])
def test_a_bare_pod_goes_last_of_its_rank_for_the_more_important(
    overload: Literal["plan", "triage"], before: int
) -> None:
    """Whether it has slack, as at first, or its class is overloaded, as five compete for four places."""
    scene = Shortage(5, 4, bare=(0, 1, 2), overload=overload)
    scene.run(before)
    there = {one.key for one in scene.engine.pods.values() if one.host}
    others = there & set(scene.keys[3:])
    for _ in others:
        scene.make_urgent()
    scene.run(40)
    assert others <= scene.displaced
    assert scene.lost == []
    scene.make_urgent()
    scene.run(40)
    [lost] = scene.lost
    assert lost in there
    assert all(abs(victim.metric) < LARGEST for one in scene.decisions for victim in one.victims)


@overloads
def test_a_bare_pod_that_somebody_adopts_is_one_as_others(overload: Literal["plan", "triage"]) -> None:
    scene = Shortage(9, 8, TURNS, bare=range(9), overload=overload)
    scene.run(20)
    assert not scene.displaced
    for one in list(scene.engine.pods.values()):
        scene.engine.respec(one.uid, 0)
    scene.bare.clear()
    scene.run(600)
    assert scene.displaced


@overloads
def test_explain_says_why_a_bare_pod_stays(overload: Literal["plan", "triage"]) -> None:
    scene = Shortage(5, 4, bare=range(5), overload=overload)
    scene.run(300)
    [uid] = scene.engine.waiting()
    assert f"4 {preemption.FOR_GOOD}" in Explainer(scene.engine).reason(uid, scene.now)


def test_words_for_when_and_why() -> None:
    plan = GivenUp("gold", T0, 1, 21, 20, T0 + 3600.0, 3600.0)
    assert giving_up.next_plan(plan) == f"next plan at {giving_up.instant(T0 + 3600.0)}"
    assert giving_up.instant(T0) == "2026-09-21 14:13 UTC"
    assert giving_up.why("gold", plan) == "capacity carries 20 of the 21 promises of class gold"
    assert giving_up.why("gold", Carried(1, 0)) == "capacity does not carry the only promise of class gold"
    assert giving_up.why("gold", Carried()) == "capacity does not carry all promises of class gold"
