"""One contract for every policy: those built in, and a user's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from slacktide.errors import ConfigError, PluginError
from slacktide.kernels.drive import event_loop
from slacktide.kernels.runtime.mode import Mode, mode
from slacktide.kernels.tables import buffer_capacity
from slacktide.kernels.tables.arrays import ARRAYS
from slacktide.model import Budget, Constraint, Placement, Rule, Term
from slacktide.policy import Plan, View, available
from slacktide.policy.loader import load
from slacktide.sim.engine import Recorder, prepare
from slacktide.sim.stepwise import Stepper
from slacktide.state.growing_arrays import grow
from support.auditor import faults_of
from support.clusters import Cluster, cluster
from support.compiled_policy import CompiledPolicy
from support.own_policies import BAD_PLANS, FEWEST, FIRST_FIT, LEAST_REQUESTED, RANDOM_FIT, policy_returning
from support.runs import core, decisions_of, settings_of
from support.small import BRONZE, GOLD, Request, Several, machines, small

BUILT_IN = sorted(offer.name for offer in available() if offer.kind == "policies" and offer.source == "built in")
OWN = {"FirstFit": FIRST_FIT, "RandomFit": RANDOM_FIT}
EVERY = [*BUILT_IN, *OWN]
SEEDS = range(3000, 3012)

both = pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])


def on(row: int) -> Term:
    """On that host only."""
    return Term((Constraint("row", "==", str(row)),))


def named(name: str, folder: Path) -> str:
    """What ``policy.name`` must say; a user's own policy is written to a file first."""
    if name not in OWN:
        return name
    path = folder / f"{name.lower()}.py"
    path.write_text(OWN[name])
    return f"{path}:{name}"


def passes_due(one: Cluster, folder: Path) -> Iterator[Stepper]:
    """A stepper at every instant at which a pass is due; the policy's decisions are carried out in between."""
    config = settings_of(one, folder)
    own = load(config)
    tb = prepare(one.workload, one.hosts, config, own, record=0)
    recorder = Recorder()

    def serve(code: int) -> bool:
        return grow(tb, code, recorder.drain)

    stepper = Stepper(tb, one.workload, one.hosts, config, own.policy or CompiledPolicy(), serve)
    while (code := int(event_loop.advance(tb.state))) != buffer_capacity.OVER:
        if code != buffer_capacity.PASS_DUE:
            serve(code)
            continue
        yield stepper
        stepper.tb.control["due"] = 1  # asking took the occasion; the step below asks again
        while (code := stepper.step([])) != buffer_capacity.PAUSE:
            serve(code)


def contents(view: View) -> dict[str, bytes]:
    tables = view.tables
    found = {name: tables[name].tobytes() for name in ARRAYS}
    return found | {"rules": tables.rules.tobytes(), "control": tables.control.tobytes()}


IDLE = """
def cost(slack, rank, out):
    out[0] = 1.0 if slack.max() > 1e300 else 0.0


def opposite(slack, rank, out):
    out[0] = 0.0 if slack.max() > 1e300 else 1.0
"""


@both
@pytest.mark.parametrize("name", EVERY)
def test_a_run_keeps_capacity_constraints_and_anti_affinity(name: str, several: bool, tmp_path: Path) -> None:
    for seed in SEEDS:
        one = cluster(seed, requests=25, several=several).with_(policy={"name": named(name, tmp_path)})
        assert faults_of(one, core(one, tmp_path)) == [], f"cluster({seed}, requests=25, several={several})"


@both
@pytest.mark.parametrize("name", OWN)
def test_a_plan_speaks_of_everybody_who_waits_once_and_says_why(name: str, several: bool, tmp_path: Path) -> None:
    for seed in SEEDS:
        one = cluster(seed, requests=15, several=several).with_(policy={"name": named(name, tmp_path)})
        for stepper in passes_due(one, tmp_path):
            now = float(stepper.tb.control["now"])
            plan = stepper.policy.decide(stepper.view(now), now)
            check_plan(stepper.view(now), plan)
            was = contents(stepper.view(now))
            assert stepper.policy.decide(stepper.view(now), now) == plan, "same input, same plan"
            assert contents(stepper.view(now)) == was, "decide() changed what it was shown"


def allowed_anew(view: View, row: int) -> NDArray[np.bool_]:
    """What ``view.allowed`` says, host by host from what is on them, without the rules about neighbours."""
    tb = view.tables
    kind = tb["kinds"][tb["instances"]["kind"][row]]
    found = []
    for h, host in enumerate(tb["hosts"]):
        slots = tb["slots"][h][: host["count"]]
        siblings = slots["job"] == kind["job"] if kind["job"] >= 0 else np.zeros(1)
        found.append(tb["allowed"][kind["term"], host["group"]] and not host["down"] and not siblings.any())
    return np.array(found, np.bool_)


@pytest.mark.parametrize("seed", range(6))
def test_hosts_that_are_allowed_are_so_in_each_pass_and_nobody_writes_over_them(seed: int, tmp_path: Path) -> None:
    one = cluster(6000 + seed, requests=25).with_(policy={"name": named("FirstFit", tmp_path)})
    chance = np.random.default_rng(seed)  # some of a job keep away from all of it, others do not
    apart = one.workload.anti_affinity & (chance.random(len(one.workload)) < 0.5)
    one = replace(one, workload=replace(one.workload, anti_affinity=apart))
    hopeless = jobs = 0
    for stepper in passes_due(one, tmp_path):
        view = stepper.view(float(stepper.tb.control["now"]))
        free = view.free
        assert view.demands.tolist() == [view.demand(row).tolist() for row in view.waiting]
        for at, row in enumerate(view.waiting.tolist()):
            allowed = view.allowed(row)
            plain = allowed_anew(view, row)
            kind = view.tables["kinds"][view.kinds[at]]
            assert (allowed <= plain).all()
            assert kind["conditions"] or (allowed == plain).all()
            jobs += kind["job"] >= 0
            with pytest.raises(ValueError, match="read-only"):
                allowed[0] = True
            if not (allowed & (free >= view.demands[at]).all(axis=1)).any():
                others = view.waiting[view.as_hard(at, free)].tolist()
                assert row in others
                hopeless += len(others) > 1
                for other in others:
                    assert not (view.allowed(other) & (free >= view.demand(other)).all(axis=1)).any()
    assert hopeless or jobs


def check_plan(view: View, plan: Plan) -> None:
    waiting = set(view)
    running = {int(row) for host in range(len(view.hosts)) for row in view.running(host)}
    bound = [bind.row for bind in plan.binds]
    victims = [row for bind in plan.binds for row in bind.victims]
    held = [hold.row for hold in plan.holds]
    assert all(len(set(rows)) == len(rows) for rows in (bound, victims, held)), "nobody is decided on twice"
    assert set(victims) <= running, "only who ran before the pass can be preempted"
    assert set(bound) <= waiting | set(victims)
    assert not set(held) & set(bound)
    assert waiting <= set(bound) | set(held), "everybody gets an answer"
    assert all(len(reason) > 5 for reason in [b.reason for b in plan.binds] + [h.reason for h in plan.holds])


WRITES = [
    "view.workload.demand[:] = 0.01",
    "view.workload.requests.parallelism[0] = 1",
    "view.hosts.capacity[0] = 99.0",
    "view.hosts.attributes[0]['rack'] = 'mine'",
    "view.attributes(0)['rack'] = 'mine'",
    "view.tables['free'][:] = 99",
    "view.waiting.sort()",
    "view.demands[:] = 0.01",
    "view.kinds[0] = 0",
    "view.allowed(0)[:] = True",
    "view.tables.put('free', view.free)",
]


@pytest.mark.parametrize("statement", WRITES)
def test_a_policy_that_writes_to_its_view_is_told_so(statement: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        FIRST_FIT.replace("free = view.free\n", f"free = view.free\n        {statement}\n")
    )
    rows = [Request(GOLD, of=0)]
    one = small(rows, machines(2.0), end=10.0, several=[Several("concurrent")])
    one = one.with_(policy={"name": f"{tmp_path}/mine.py:FirstFit"})
    with pytest.raises(PluginError, match=r"mine\.py:9: (ValueError: .*read-only|TypeError: )"):
        core(one, tmp_path)


def test_counters_and_settings_that_a_policy_writes_to_are_its_own(tmp_path: Path) -> None:
    writing = "view.tables.control['now'] = 9e9; view.tables.rules['record'] = 0"
    (tmp_path / "mine.py").write_text(FIRST_FIT.replace("free = view.free\n", f"free = view.free\n        {writing}\n"))
    (tmp_path / "plain.py").write_text(FIRST_FIT)
    one = cluster(3001, requests=15)
    logs = [
        decisions_of(core(one.with_(policy={"name": f"{tmp_path}/{name}.py:FirstFit"}), tmp_path))
        for name in ("mine", "plain")
    ]
    assert logs[0] == logs[1] != []


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("score", "def score(capacity, free, demand):\n    free[0] = 9.0\n    return free[0]\n"),
        ("cost", "def cost(slack, rank, out):\n    slack[0] = 9.0\n    out[0] = 1.0\n"),
    ],
)
@pytest.mark.skipif(mode() is Mode.PLAIN, reason="what Numba compiles")
def test_a_score_or_cost_that_writes_to_what_it_is_shown_is_not_compiled(
    kind: str, source: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(source)
    one = small([Request(GOLD)], machines(2.0), end=10.0, policy={kind: f"{tmp_path}/mine.py:{kind}"})
    with pytest.raises(PluginError, match=r"mine\.py:2: found an array that is written to"):
        core(one, tmp_path)


@both
@pytest.mark.parametrize("name", BUILT_IN)
def test_no_duration_decides(name: str, several: bool, tmp_path: Path) -> None:
    for seed in SEEDS[:4]:
        one = cluster(seed, requests=15, several=several).with_(policy={"name": name})
        for stepper in passes_due(one, tmp_path):
            now = float(stepper.tb.control["now"])
            durations = stepper.tb["duration"]
            known = durations.copy()
            plan = stepper.policy.decide(stepper.view(now), now)
            durations[:] = 1e-3
            assert stepper.policy.decide(stepper.view(now), now) == plan, f"cluster({seed}, requests=15)"
            durations[:] = known


def test_a_view_weighs_whoever_waits_or_runs_and_nobody_else(tmp_path: Path) -> None:
    for seed in SEEDS:
        one = cluster(seed, requests=15, several=True)
        for stepper in passes_due(one, tmp_path):
            view = stepper.view(float(stepper.tb.control["now"]))
            running = {int(row) for host in range(len(view.hosts)) for row in view.running(host)}
            for row in range(len(one.workload)):
                if row in running | set(view):
                    assert not np.isnan(view.metric(row))
                else:
                    with pytest.raises(ValueError, match="neither waits nor runs"):
                        view.metric(row)


def test_first_fit_fills_the_first_host(tmp_path: Path) -> None:
    one = small([Request(GOLD)] * 5, machines(2.0, 2.0), end=10.0)
    log = decisions_of(core(one.with_(policy={"name": named("FirstFit", tmp_path)}), tmp_path))
    assert [d[2:4] for d in log] == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_a_policy_is_given_its_settings_where_it_wants_them(tmp_path: Path) -> None:
    source = FIRST_FIT + "\n    def __init__(self, config):\n        self.reach = config.policy.queue_limit\n"
    (tmp_path / "mine.py").write_text(source)
    one = small([Request(GOLD)], machines(2.0), end=10.0, policy={"name": f"{tmp_path}/mine.py:FirstFit"})
    assert core(one, tmp_path).placements == 1


def test_a_policy_of_ones_own_must_respect_rules_and_budgets(tmp_path: Path) -> None:
    rows = [Request(GOLD, admission=float(k)) for k in range(3)]
    one = small(rows, machines(4.0, 4.0), end=10.0, policy={"name": named("FirstFit", tmp_path)})
    apart = Placement(("web",), (Rule("away", "web"),))
    workload = replace(one.workload, placement=np.zeros(3, np.int32), placements=(apart,))
    log = decisions_of(core(replace(one, workload=workload), tmp_path))
    assert [d[2:4] for d in log] == [(0, 0), (1, 1)]

    row_1_for_row_0 = "Plan((Bind(view.waiting[0], 0, (0,) if view.waiting[0] else ()),))"
    (tmp_path / "bully.py").write_text(policy_returning(row_1_for_row_0))
    rows = [Request(BRONZE), Request(GOLD, admission=5.0)]
    two = small(rows, machines(1.0), end=10.0, cold=0.0, policy={"name": f"{tmp_path}/bully.py:Bad"})
    budget = replace(two.workload, budget=np.zeros(2, np.int32), budgets=(Budget("both", max_unavailable=0),))
    with pytest.raises(PluginError, match="victim 0, expected victims that their budgets"):
        core(replace(two, workload=budget), tmp_path)


def test_a_score_of_ones_own_decides_like_the_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LEAST_REQUESTED)
    for seed in range(3100, 3106):
        one = cluster(seed)
        own = one.with_(policy={"score": f"{tmp_path}/mine.py:score"})
        assert decisions_of(core(own, tmp_path)) == decisions_of(core(own.naively(), tmp_path))
    requests = [Request(GOLD, admission=float(k)) for k in range(6)]
    one = small(requests, machines(4.0, 2.0, 8.0), end=20.0, policy={"score": "least-requested"})
    own = one.with_(policy={"score": f"{tmp_path}/mine.py:score"})
    assert decisions_of(core(own, tmp_path)) == decisions_of(core(one, tmp_path))


def test_a_cost_of_ones_own_chooses_the_victims(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FEWEST)
    requests = [Request(BRONZE, size=1.0), Request(BRONZE, size=0.5), Request(BRONZE, size=0.5)]
    one = small([*requests, Request(GOLD, admission=300.0)], machines(1.0, 1.0), end=301.0)
    fewest = decisions_of(core(one.with_(policy={"cost": f"{tmp_path}/mine.py:cost"}), tmp_path))[-1]
    slack = decisions_of(core(one.with_(policy={"cost": f"{tmp_path}/mine.py:most_slack"}), tmp_path))[-1]
    assert fewest[4] == (0,)
    assert sorted(slack[4]) == [1, 2]


def test_a_cost_of_ones_own_is_told_of_idle_victims(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(IDLE)
    # On host 0 somebody who is idle, as his sibling finds no room; on host 1 somebody with 300 s to spare.
    kinds = [Several("concurrent")]
    rows = [Request(BRONZE, term=on(0), of=0), Request(BRONZE, size=5.0, of=0), Request(BRONZE, term=on(1))]
    one = small([*rows, Request(GOLD, admission=300.0)], machines(1.0, 1.0), end=301.0, several=kinds)
    logs = [
        decisions_of(core(one.with_(policy={"cost": f"{tmp_path}/mine.py:{name}"}), tmp_path))
        for name in ("cost", "opposite")
    ]
    assert [log[-1][4] for log in logs] == [(0,), (2,)]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of a user's own with entry points, on the path of this process."""
    (tmp_path / "harbour.py").write_text(FIRST_FIT + LEAST_REQUESTED + FEWEST)
    info = tmp_path / "harbour-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: harbour\nVersion: 1.0\n")
    lines = ["[slacktide.policies]", "quay = harbour:FirstFit", "broken = harbour:Missing"]
    lines += ["[slacktide.scores]", "berth = harbour:score", "[slacktide.costs]", "toll = harbour:cost"]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("harbour", None)
    return "harbour"


def test_entry_points_are_offered_and_used(installed: str, tmp_path: Path) -> None:
    offered = {offer.name: offer for offer in available()}
    assert {offered[name].source for name in ("quay", "berth", "toll")} == {installed}
    one = small([Request(GOLD)] * 3, machines(2.0, 2.0), end=10.0)
    own = one.with_(policy={"name": "quay", "score": "berth", "cost": "toll"})
    assert [d[3] for d in decisions_of(core(own, tmp_path))] == [0, 0, 1]
    with pytest.raises(PluginError, match="Missing"):
        core(one.with_(policy={"name": "broken"}), tmp_path)


@pytest.mark.parametrize("what", BAD_PLANS)
def test_an_illegal_plan_is_refused_in_words(what: str, tmp_path: Path) -> None:
    expression, text = BAD_PLANS[what]
    (tmp_path / "bad.py").write_text(policy_returning(expression))
    second = Term((Constraint("row", "==", "1"),))
    requests = [Request(GOLD), Request(GOLD), Request(GOLD, size=0.5, term=second)]
    one = small(requests, machines(1.0, 1.0), end=50.0, policy={"name": f"{tmp_path}/bad.py:Bad"})
    with pytest.raises(PluginError, match=text) as caught:
        core(one, tmp_path)
    assert "bad.py" in str(caught.value)


def test_a_plan_that_puts_two_that_repel_each_other_on_one_host_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(policy_returning("[Bind(0, 0), Bind(1, 0)]"))
    one = small([Request(GOLD), Request(GOLD)], machines(4.0), end=50.0, policy={"name": f"{tmp_path}/bad.py:Bad"})
    siblings = replace(one.workload, job=np.zeros(2, np.int64), anti_affinity=np.ones(2, np.bool_))
    said = r"row 1: host 0 not allowed: row 0, placed by this plan, is there, of the same job"
    with pytest.raises(PluginError, match=said):
        core(replace(one, workload=siblings), tmp_path)
    apart = (Placement(), Placement(marks=("web",), rules=(Rule("away", "web"),)))
    rules = replace(one.workload, placement=np.ones(2, np.int32), placements=apart)
    said = (
        r"row 1: host 0 not allowed: the rules of row 1 about its neighbours .* with row 0 on it, placed by this plan"
    )
    with pytest.raises(PluginError, match=said):
        core(replace(one, workload=rules), tmp_path)


@pytest.mark.parametrize(
    "answer", ["[Bind(0, 0), Bind(1, 1)]", "Plan([Bind(0, 0, []), Bind(1, 1)], [Hold([], 'nobody')])"]
)
def test_lists_are_taken_as_plans(answer: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(policy_returning(answer))
    rows = [Request(GOLD), Request(GOLD)]
    one = small(rows, machines(1.0, 1.0), end=10.0, policy={"name": f"{tmp_path}/mine.py:Bad"})
    assert [d[2:4] for d in decisions_of(core(one, tmp_path))] == [(0, 0), (1, 1)]


SHORTEST = """
from slacktide.policy import Bind


class Shortest:
    def decide(self, view, now):
        left = {row: view.workload.duration[row] - view.ran(row) for row in [*view, *view.running(0).tolist()]}
        shortest = min(left, key=left.get)
        there = view.running(0).tolist()
        return [Bind(shortest, 0, there)] if shortest in view.waiting else []
"""


@pytest.mark.parametrize("kept", [True, False])
def test_a_view_says_how_long_everybody_has_run(kept: bool, tmp_path: Path) -> None:
    """Shortest remaining time first: 40 s are left of the first when 50 s come, and 40 when 30 s come."""
    (tmp_path / "mine.py").write_text(SHORTEST)
    work = {"preempted_work": "kept" if kept else "lost"}
    rows = [Request(GOLD, duration=100.0), Request(GOLD, 60.0, duration=50.0), Request(GOLD, 65.0, duration=30.0)]
    one = small(rows, machines(1.0), end=400.0, cold=5.0, policy={"name": f"{tmp_path}/mine.py:Shortest"})
    log = decisions_of(core(one.with_(simulation=work), tmp_path))
    # 5 s of start-up are no running: at 60 s the first has run for 55 s.
    assert [(d[2], d[4]) for d in log][:2] == [(0, ()), (2, (0,))]
    assert [d[2] for d in log][2:] == ([0, 1] if kept else [1, 0])


@pytest.mark.parametrize(
    ("key", "source", "name", "text"),
    [
        ("name", "x = 1\n", "Mine", "has no 'Mine'"),
        ("name", "class Other:\n    pass\n", "Mine", "has no 'Mine', expected one of Other"),
        ("name", "1 / 0\n", "Mine", "ZeroDivisionError"),
        ("name", "def Mine(:\n", "Mine", "SyntaxError"),
        ("name", "class Mine:\n    pass\n", "Mine", "decide"),
        ("name", "class Mine:\n    def __init__(self):\n        1 / 0\n", "Mine", "cannot be created"),
        ("score", "def mine(free, demand):\n    return 0.0\n", "mine", "2 arguments"),
        ("score", "mine = 3\n", "mine", "int"),
        ("name", "class Mine:\n    x = {}['y']\n", "Mine", r"broken.py:2: KeyError"),
        (
            "score",
            "def mine(capacity, free, demand):\n    return free.foo\n",
            "mine",
            r"broken.py:2: Unknown attribute 'foo'",
        ),
        ("score", "def mine(capacity, free, demand):\n    return open('x')\n", "mine", "compile"),
        ("score", "def mine(capacity, free, demand):\n    return 'much'\n", "mine", "compile"),
        ("cost", "def mine(slack):\n    pass\n", "mine", "1 arguments"),
    ],
)
def test_a_broken_plugin_is_named(key: str, source: str, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(source)
    one = small([Request(GOLD)], machines(1.0), end=10.0, policy={key: f"{tmp_path}/broken.py:{name}"})
    with pytest.raises(PluginError, match=text):
        core(one, tmp_path)


@pytest.mark.parametrize("key", ["name", "score", "cost"])
def test_an_unknown_name_is_answered_with_the_known_ones(key: str, tmp_path: Path) -> None:
    one = small([Request(GOLD)], machines(1.0), end=10.0, policy={key: "quickest"})
    with pytest.raises(ConfigError, match=rf"policy\.{key}: found 'quickest'.*entry point"):
        core(one, tmp_path)


@pytest.mark.parametrize("key", ["name", "score", "cost"])
def test_a_file_that_is_not_there_is_a_wrong_setting_as_a_wrong_name_is(key: str, tmp_path: Path) -> None:
    one = small([Request(GOLD)], machines(1.0), end=10.0, policy={key: "missing.py:Mine"})
    with pytest.raises(ConfigError, match=rf"policy\.{key}: found 'missing.py:Mine', expected an existing file"):
        core(one, tmp_path)
