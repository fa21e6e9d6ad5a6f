"""What is recorded can be read, decides again as it did, and can be simulated."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from slacktide import settings
from slacktide.cli import main
from slacktide.engine.core import operations
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision, Outcome, Victim
from slacktide.engine.journal import codec
from slacktide.engine.journal.record import Recorder, sessions
from slacktide.engine.journal.replay import replay
from slacktide.engine.journal.to_workload import as_workload
from slacktide.engine.ledger.restore import restore
from slacktide.errors import InputError, OutputError, StateError
from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.rows import align
from slacktide.model import NO_CONSTRAINT, DisruptionLimits, Hours, ServiceClass, Term, Window
from slacktide.model.constraint import AnyOf, Constraint, Tolerates, Toleration
from slacktide.model.placement import Placement, Preference
from slacktide.sim import run
from slacktide.state.spec import Spec
from support.benches import loaded
from support.calls import calls_of
from support.churning import BEGINNING, Churn, live_config
from support.clusters import TERMS, Cluster, cluster
from support.following import followed, livable, simulated
from support.neighbourhoods import Neighbourhood
from support.repository import TESTS

GOLD = ServiceClass("gold", 1.0, 1, overhead_limit=0.25, window=Window(calendar="1M", time_zone="Europe/Berlin"))
ODD_TERMS = (
    Term((Tolerates((Toleration("k", "NoSchedule", "v"), Toleration(any_value=True)), ("NoExecute",)),)),
    Term(
        (
            AnyOf(()),
            AnyOf((TERMS[0], Term((Constraint("k", "in", values=("a", 'b"')), Tolerates())))),
        )
    ),
    Term((Constraint("k", "gt", "5"), Constraint("k", "not in", values=()), Constraint("\u00e9", "absent"))),
)
OPERATIONS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("begin", ()),
    ("host", ("n", {"cpu": 4000, "memory": 2**50}, {"zone": "a", "taint:NoSchedule:k": ""}, True)),
    ("host_gone", ("n",)),
    ("other", ("u", "n", {"cpu": 1}, ("port:80", "x y"))),
    ("other_gone", ("u",)),
    ("spec_gone", (7,)),
    ("budget", ("b", 0)),
    ("budget_gone", ("b",)),
    ("pod_group", ("ns/g", 3, True)),
    ("pod_group_gone", ("ns/g",)),
    ("join_group", ("u", "ns/g")),
    ("controller", ("ns/d", GOLD, 2, True, False, 1.79e9)),
    ("limits", ("ns/d", DisruptionLimits(2, 3600.0, 0.5, (Hours(("Mon",), 1320, 360, "Europe/Berlin"),)), 1.79e9)),
    ("limits", ("ns/d", None, 1.79e9)),
    ("displace", ("u", 1.0)),
    ("displaced", ("u", 1.0, False)),
    ("desired", ("ns/d", -1, 1.79e9 + 1 / 3)),
    ("retire", ("ns/d", 1.79e9, 60.0)),
    ("controller_gone", ("ns/d", 1.79e9)),
    ("arrive", ("u", "d-0", "ns/d", 7, 1.79e9, "")),
    ("found", ("u", "d-0", "ns/d", 7, "n", 0.1, "b")),
    ("bound_elsewhere", ("u", "n", 2.0**-20)),
    ("nominated", ("u", "n", 2.0**-20)),
    ("prefer", ("u", "n")),
    ("restore", ("ns/d", {"version": 1, "rows": [0.1, [2]]}, [{"uid": "u", "since": None, "ready": True}], 1.5)),
    ("restore", ("ns/d", None, [], 1.5)),
    ("network", (("a", "b"), "zone", [(0, 1, 0.0125)])),
    ("image", ("registry/name:1", 0.0, 12.5)),
    ("images", ("n", ["registry/name:1"])),
    ("respec", ("u", 8)),
    ("protect", ("u", "")),
    ("doomed", ("u",)),
    ("wake", ("u",)),
    ("sleep", ("u",)),
    ("ready", ("u", 1.0)),
    ("unready", ("u", 1.0)),
    ("bound", ("u", 1.0)),
    ("refused", ("u", 1.0)),
    ("spared", ("u", 1.0)),
    ("gone", ("u", 1.0, True, 2)),
    ("blame", ("u", 1, 1.0)),
    ("blame_vacant", ("ns/d", 2, 1, 1.0)),
    ("drained", ("ns/d", 900.0)),
    ("suspend", ("ns/d", 3, 1.0)),
    ("turn", (5.5,)),
    ("run", (1790000000.123456,)),
    ("decided", (Outcome(3, (Decision("u", "n", -22.37106990814209, (Victim("v", np.inf),)),), 2, 17),)),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one[0])
def test_an_operation_is_read_as_it_was_written(operation: tuple[str, tuple[Any, ...]]) -> None:
    name, arguments = operation
    line = codec.encode(operations.OPERATIONS[name](*arguments))
    if name != "decided":
        assert line == msgspec.json.encode([name, *arguments]) + b"\n"
    assert codec.decode(line) == operations.OPERATIONS[name](*arguments)


def test_lines_of_before_lack_what_was_added_since() -> None:
    assert codec.decode(b'["gone","u",1.0,true]') == operations.Gone("u", 1.0, True, 0)
    read = codec.decode(b'["controller","k",{"name":"g","slo":0.5,"rank":1},0,false]')
    assert isinstance(read, operations.Controller)
    assert (read.everything, read.at) == (False, 0.0)


def test_a_line_is_written_as_it_always_was() -> None:
    outcome = OPERATIONS[-1][1][0]
    assert codec.encode(operations.Decided(outcome)) == (
        b'["decided",3,2,17,[["u","n",-22.37106990814209,[["v","inf"]]]]]\n'
    )
    spec = Spec((("cpu", 1),), GOLD, TERMS[0])
    assert codec.encode(operations.Spec(4, spec)).startswith(
        b'["spec",4,{"demand":[["cpu",1]],"service":{"name":"gold"'
    )


def test_every_operation_of_the_engine_can_be_recorded() -> None:
    """The fields of an operation are the arguments of the engine's method, and the method tells the journal of it."""
    assert {name for name, _ in OPERATIONS} | {"spec"} == set(operations.OPERATIONS)
    methods = {name: getattr(Engine, name) for name in operations.OPERATIONS if hasattr(Engine, name)}
    assert set(operations.OPERATIONS) - set(methods) == {"begin", "restore", "decided"}
    for name, method in (*methods.items(), ("restore", restore)):
        struct = operations.OPERATIONS[name]
        assert list(struct.__struct_fields__) == list(inspect.signature(method).parameters)[1:]
        assert f"operations.{struct.__name__}(" in inspect.getsource(method)


def test_any_spec_is_read_as_it_was_written() -> None:
    for seed in range(100):
        drawn = Neighbourhood(np.random.default_rng(seed), (NO_CONSTRAINT, *TERMS, *ODD_TERMS))
        spec = Spec((("cpu", seed), ("example.com/gpu", 1)), GOLD, drawn.pick(*ODD_TERMS, *TERMS), drawn.placement())
        for one in (spec, replace(spec, never=True), Spec((), GOLD)):
            assert codec.decode(codec.encode(operations.Spec(seed, one))) == operations.Spec(seed, one)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"{}", "not a JSON list"),
        (b'["arrive","u"]', "arrive: "),
        (b'["wake",5]', "Expected `str`, got `int`"),
        (b'["explode"]', "found operation 'explode', expected one of begin, host"),
        (b'["controller","k",{"name":"g","slo":2.0,"rank":1},0,false]', "slo: found 2.0"),
        (b'["spec",1,{"demand":[],"service":{"name":"g","slo":1,"rank":1},"term":[{"what":"maybe"}]}]', "maybe"),
    ],
)
def test_a_line_that_is_none_is_refused(line: bytes, found: str) -> None:
    with pytest.raises(ValueError, match=re.escape(found)):
        codec.decode(line)


def recorded(folder: Path, steps: int, seed: int = 1, rotate_at: int = 64_000_000) -> Churn:
    config = live_config(preempt_when="better", patience=5.0)
    with Recorder(folder, config, rotate_at) as recorder:
        churn = Churn(Engine(config, journal=recorder), seed, load=1.5)
        for _ in range(steps):
            churn.step(1.0)
    return churn


@pytest.mark.slow
def test_ten_thousand_decisions_are_replayed_and_none_is_different(tmp_path: Path) -> None:
    with Recorder(tmp_path, live_config(preempt_when="better"), 500_000) as recorder:
        churn = Churn(Engine(live_config(preempt_when="better"), journal=recorder), 2, load=1.5)
        while len(churn.decisions) < 10_000:
            churn.step(1.0)
    parts = [one.name for one in tmp_path.iterdir() if one.name.startswith("0001-")]
    assert sum(name.endswith(".gz") for name in parts) == len(parts) - 1 > 3
    report = replay(tmp_path)
    assert report.equal
    assert not report.torn
    assert (report.decisions, report.victims) == (
        len(churn.decisions),
        sum(len(one.victims) for one in churn.decisions),
    )
    index = json.loads((tmp_path / "session-0001.json").read_text())
    assert sum(part["decisions"] for part in index["parts"]) == report.decisions
    assert sum(part["passes"] for part in index["parts"]) == report.passes
    assert index["parts"][0]["first_time"] == BEGINNING + 1.0


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_what_was_decided_otherwise_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    churn = recorded(tmp_path, 60)
    some = churn.decisions[20]
    part = tmp_path / "0001-000001.jsonl"
    changed(part, f'["{some.uid}","{some.host}",', f'["{some.uid}","elsewhere",')
    report = replay(tmp_path)
    [found] = report.differences
    assert report.decisions <= 20
    assert f"recorded  {some.uid} to elsewhere" in found.what
    assert f"replayed  {some.uid} to {some.host}" in found.what
    with pytest.raises(SystemExit, match="1"):
        main(["replay", str(tmp_path)])
    assert f"different: session 1, pass {found.number} at" in capsys.readouterr().out


def test_a_lost_operation_is_noticed(tmp_path: Path) -> None:
    churn = recorded(tmp_path, 60)
    part = tmp_path / "0001-000001.jsonl"
    changed(part, f'["wake","{churn.decisions[20].uid}"]\n', "")
    assert not replay(tmp_path).equal


def test_replay_says_that_none_is_different(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    churn = recorded(tmp_path, 20)
    recorded(tmp_path, 20, seed=5)
    assert main(["replay", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "of 2 sessions: none different" in out
    assert main(["replay", str(tmp_path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["equal"]
    assert report["decisions"] > len(churn.decisions)


@pytest.mark.parametrize("budget", ["whole", "accrued"])
def test_a_record_says_which_budget_its_windows_have_and_is_decided_again_by_it(budget: str, tmp_path: Path) -> None:
    """So one of a release in which another budget was the default means what it meant."""
    whole = ServiceClass("any", 0.5, 1, window=Window(rolling=300.0))
    service = whole if budget == "whole" else replace(whole, window=Window(rolling=300.0, budget=budget))
    with Recorder(tmp_path, live_config()) as recorder:
        one = Engine(live_config(), journal=recorder)
        one.host("n", {"cpu": 1000}, {}, True)
        one.spec(0, Spec((("cpu", 1000),), service))
        one.controller("c", service, 0, False)
        one.arrive("p", "p", "c", 0, BEGINNING)
        one.wake("p")
        (decision,) = one.run(BEGINNING + 20.0).decisions
    assert decision.metric == (120.0 if budget == "whole" else -30.0)  # less 10 s for the start-up
    assert replay(tmp_path).equal
    part = tmp_path / "0001-000001.jsonl"
    other = {"whole": "accrued", "accrued": "whole"}[budget]
    part.write_text(part.read_text().replace(f'"budget":"{budget}"', f'"budget":"{other}"'))
    assert not replay(tmp_path).equal


def test_another_engine_begins_another_session(tmp_path: Path) -> None:
    config = live_config()
    with Recorder(tmp_path, config) as recorder:
        for seed in (1, 2):
            churn = Churn(Engine(config, journal=recorder), seed)
            for _ in range(5):
                churn.step(1.0)
    assert [one.number for one in sessions(tmp_path)] == [1, 2]
    assert replay(tmp_path).passes == 10


def test_operations_that_were_refused_are_refused_again(tmp_path: Path) -> None:
    config = live_config()
    with Recorder(tmp_path, config) as recorder:
        churn = Churn(Engine(config, journal=recorder), 1)
        for _ in range(5):
            churn.step(1.0)
            with pytest.raises(StateError, match="not known"):
                churn.engine.wake("nobody")
    report = replay(tmp_path)
    assert report.equal
    assert report.refused == 5


# -- broken records ----------------------------------------------------------------------------------------------------


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    recorded(tmp_path, 30)
    part = tmp_path / "0001-000001.jsonl"
    lines = part.read_bytes().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if line.startswith(b'["decided"'))
    for kept in (0, 1, len(lines[last]) - 1):
        part.write_bytes(b"".join([*lines[:last], lines[last][:kept]]))
        report = replay(tmp_path)
        assert report.equal
        assert report.passes == 29
        assert report.torn == ([f"{part}:{last + 1}"] if kept else [])
    part.write_bytes(lines[0][:10])
    assert replay(tmp_path).operations == 0


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda one: (one / "0001-000002.jsonl.gz").unlink(), "expected 0001-000002.jsonl, without which"),
        (lambda one: (one / "session-0001.json").unlink(), "a record: session-0001.json"),
        (lambda one: changed(one / "session-0001.json", '"version": 1', '"version": 9'), "found 'version 9"),
        (lambda one: changed(one / "session-0001.json", '"slacktide-record"', '"other"'), "slacktide-record"),
        (lambda one: rewritten(one / "0001-000001.jsonl.gz", b'"version": 1', b'"version": 2'), "found 'version 2'"),
        (lambda one: rewritten(one / "0001-000001.jsonl.gz", b'"host"', b'"hostess"'), "jsonl.gz:3: "),
        (lambda one: rewritten(one / "0001-000002.jsonl.gz", b'"part": 2', b'"part": 3'), "expected session 1, part 2"),
    ],
)
def test_a_record_that_is_not_whole_is_refused(damage: Any, found: str, tmp_path: Path) -> None:
    recorded(tmp_path, 30, rotate_at=10_000)
    damage(tmp_path)
    with pytest.raises(InputError, match=re.escape(found)):
        replay(tmp_path)


def rewritten(path: Path, old: bytes, new: bytes) -> None:
    content = gzip.decompress(path.read_bytes())
    assert old in content
    path.write_bytes(gzip.compress(content.replace(old, new, 1)))


def test_where_nothing_was_recorded_nothing_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 3
    assert main(["replay", str(tmp_path)]) == 3
    assert "expected a record" in capsys.readouterr().err


KILLED = """
import os, sys
from support.churning import Churn, live_config
from slacktide.engine.core.engine import Engine
from slacktide.engine.journal.record import Recorder
config = live_config()
churn = Churn(Engine(config, journal=Recorder(sys.argv[1], config, 20_000)), 3)
while True:
    churn.step(1.0)
    print(len(churn.decisions), flush=True)
"""


def test_what_was_decided_before_a_kill_is_there(tmp_path: Path) -> None:
    path = os.pathsep.join([str(TESTS), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(80)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().splitlines(keepends=True)
    least = max(int(one) for one in said if one.endswith(b"\n"))
    report = replay(tmp_path)
    assert report.equal
    assert report.decisions >= least > 20


def test_a_full_disk_ends_the_record_and_nothing_else(tmp_path: Path) -> None:
    config = live_config()
    recorder = Recorder(tmp_path, config)
    churn = Churn(Engine(config, journal=recorder), 1)
    churn.step(1.0)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, recorder._file)
    for _ in range(5):
        churn.step(1.0)
    assert recorder.failed is not None
    assert "recording ends" in str(recorder.failed)
    recorder.close()
    os.close(full)
    assert replay(tmp_path).passes == 1


def test_a_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        Recorder(tmp_path / "file", live_config())


def test_recording_is_a_few_calls_for_each_operation(tmp_path: Path) -> None:
    told: list[operations.Operation] = []
    churn = Churn(Engine(live_config(), journal=told.append), 1)
    for _ in range(200):
        churn.step(1.0)
    with Recorder(tmp_path, live_config()) as recorder:

        def record() -> None:
            for one in told[1:]:
                recorder(one)

        assert calls_of(record) < 8 * len(told)


# -- as a workload -----------------------------------------------------------------------------------------------------


def delivered(out: Path) -> dict[str, float]:
    """By class, the share of instances' lives in which they ran, in a simulated run of what was written."""
    shares: dict[str, float] = loaded("record_again").simulated(out)[0]
    return shares


def error_of(one: Cluster, folder: Path) -> list[float]:
    result, _ = simulated(one, folder)
    with Recorder(folder / "record", one.config) as recorder:
        followed(one, result, journal=recorder)
    made = as_workload(sessions(folder / "record")[0], folder / "out")
    again = delivered(folder / "out")
    return [abs(again[name] - share) for name, share in made.delivered.items() if name in again]


@pytest.mark.parametrize(("several", "most"), [(False, 0.015), (True, 0.04)])
def test_a_simulated_record_delivers_what_was_delivered(several: bool, most: float, tmp_path: Path) -> None:
    """Start-up delays are drawn anew, so single decisions differ; and with them, now and then, a class's share."""
    errors = []
    for seed in range(14):
        (folder := tmp_path / str(seed)).mkdir()
        errors += error_of(livable(cluster(seed, requests=200, several=several)), folder)
    assert len(errors) > 30
    assert np.mean(errors) < most
    assert np.median(errors) < most / 4


def test_kubernetes_conditions_hold_in_the_simulation_too(tmp_path: Path) -> None:
    """Terms that a file cannot say come as attributes of the hosts that satisfy them."""
    recorded(tmp_path / "record", 120, seed=3)
    made = as_workload(sessions(tmp_path / "record")[0], tmp_path / "out")
    config = settings.load(tmp_path / "out" / "settings.json")
    workload = read_workload(tmp_path / "out" / "workload.parquet", classes=config.classes)
    hosts = read_hosts(tmp_path / "out" / "hosts.parquet")
    assert made.instances == len(workload)
    assert len(workload.terms) > 3
    made_up = [term for term in workload.terms if "slacktide.io/term" in str(term)]
    serving = [sum(term.holds(one) for one in hosts.attributes) for term in made_up]
    assert any(0 < count < len(hosts) for count in serving)
    assert config.simulation.end == 119.0
    assert config.policy.victims == "next-pass"
    assert config.simulation.recreation == 0.0  # victims take their time, and others come at once in their place
    assert workload.grace is not None
    assert 0.0 < workload.grace.mean() < 4.0
    assert len((tmp_path / "out" / "triggers.csv").read_text().splitlines()) == 121
    assert sum(delivered(tmp_path / "out").values()) > 0


def test_resizes_come_with_the_workload(tmp_path: Path) -> None:
    """From the record's beginning on, in cores; each pod of a request has its own."""
    config, start = live_config(), BEGINNING
    silver = ServiceClass("silver", 0.9, 2)
    with Recorder(tmp_path / "record", config) as recorder:
        one = Engine(config, journal=recorder)
        one.host("n", {"cpu": 8000, "memory": 2**33, "gpu": 2}, {}, True)
        amounts = [{"cpu": 1000}, {"cpu": 1500}, {"cpu": 2000, "gpu": 1}, {"cpu": 500}]
        for number, demand in enumerate(amounts):
            one.spec(number, Spec(tuple(sorted(demand.items())), silver, Term()))
        before = ("never", 0, "e"), ("alone", 0, "a"), ("together", 1, "bc"), ("job", 2, "h")
        for key, approach, pods in (*before, ("later", 0, "d")):
            one.controller(key, silver, approach, key == "job")
            if key == "later":
                one.run(start)
            for uid in pods:
                one.arrive(uid, uid, key, 0, start + (5 if key == "later" else -5))
                one.wake(uid)
                if key == "alone":
                    one.respec(uid, 1)  # before the first pass: it is what it begins with
                if key == "later":
                    one.respec(uid, 3)  # at once
        for at, uid, number in ((10, "a", 2), (30, "a", 0), (30, "a", 3), (40, "b", 1), (40, "c", 1), (50, "h", 1)):
            one.run(start + at)
            one.respec(uid, number)
        one.arrive("g", "g", "together", 0, start + 55)  # scaled up, by the template
        one.gone("d", start + 60)
        one.arrive("f", "f", "later", 2, start + 61)  # its successor asks for more
        one.run(start + 70)
    made = as_workload(sessions(tmp_path / "record")[0], tmp_path / "out")
    config = settings.load(tmp_path / "out" / "settings.json")
    workload = read_workload(tmp_path / "out" / "workload.parquet", classes=config.classes)
    assert workload.resize is not None
    cpu = workload.resources.index("cpu")
    found = sorted((workload.demand[i, cpu], workload.resizings[n]) for i, n in enumerate(workload.resize.tolist()))
    assert found == [
        (0.5, ((61.0, (("cpu", 2.0), ("gpu", 1.0))),)),
        *2 * [(1.0, ())],  # the one that was scaled up asks for what its template says
        *2 * [(1.0, ((40.001, (("cpu", 1.5),)),))],
        (1.0, ((50.001, (("cpu", 1.5),)),)),
        (1.5, ((10.001, (("cpu", 2.0), ("gpu", 1.0))), (30.001, (("cpu", 0.5), ("gpu", 0.0))))),
    ]
    assert made.resizes == 6
    assert sum(delivered(tmp_path / "out").values()) > 0


def test_what_stands_for_free_devices_does_not_come_with_the_workload(tmp_path: Path) -> None:
    """A pod asks for them while it waits, and nodes have as many as are free: as amounts nobody could be placed."""
    config, start = live_config(), BEGINNING
    with Recorder(tmp_path / "record", config) as recorder:
        one = Engine(config, journal=recorder)
        one.host("n", {"cpu": 8000, "devices/gpu": 1}, {"zone": "a", "devices/gpu": "2"}, True)
        service = ServiceClass("silver", 0.9, 2)
        better = Preference(25, term=Term((Constraint("devices/gpu", "==", "2"),)))
        one.spec(0, Spec((("cpu", 1000), ("devices/gpu", 1)), service, Term(), Placement(preferences=(better,))))
        one.spec(1, Spec((("cpu", 1000),), service, Term()))
        one.controller("k", service, 0, False)
        one.arrive("a", "a", "k", 0, start)
        one.wake("a")
        one.run(start + 1)
        one.bound("a", start + 2)
        one.host("n", {"cpu": 8000}, {"zone": "a", "devices/gpu": "1"}, True)
        one.respec("a", 1)
        one.run(start + 9)
    as_workload(sessions(tmp_path / "record")[0], tmp_path / "out")
    config = settings.load(tmp_path / "out" / "settings.json")
    workload = read_workload(tmp_path / "out" / "workload.parquet", classes=config.classes)
    assert workload.resources == ("cpu", "memory")
    assert workload.resize is None
    assert read_hosts(tmp_path / "out" / "hosts.parquet").attributes == ({"zone": "a"},)
    assert delivered(tmp_path / "out")["silver"] > 0.5


def test_the_past_comes_with_the_workload(tmp_path: Path) -> None:
    """What ledgers say when the record begins is what a simulation of it begins with."""
    config, start = live_config(), BEGINNING
    rolling = ServiceClass("rolling", 0.9, 2, window=Window(rolling=300.0))
    silver = ServiceClass("silver", 0.9, 2)
    with Recorder(tmp_path / "record", config) as recorder:
        one = Engine(config, journal=recorder)
        one.host("n", {"cpu": 8000, "memory": 2**33}, {}, True)
        for number, service in enumerate((silver, rolling)):
            one.spec(number, Spec((("cpu", 1000),), service, Term()))
        for key, service, approach in (("life", silver, 0), ("window", rolling, 0), ("both", silver, 2)):
            one.controller(key, service, approach, False)
        for uid, key, spec in (("a", "life", 0), ("b", "window", 1), ("c", "both", 0), ("d", "both", 0)):
            one.found(uid, uid, key, spec, "n", start - 1000)
            one.ready(uid, start - 1000)
        for uid, since, until in (("a", 900, 860), ("b", 900, 860), ("b", 200, 180), ("c", 500, 400)):
            one.unready(uid, start - since)
            one.ready(uid, start - until)
        one.unready("b", start - 5)
        for second in range(60):
            one.run(start + second)
    made = as_workload(sessions(tmp_path / "record")[0], tmp_path / "out")
    config = settings.load(tmp_path / "out" / "settings.json")
    workload = read_workload(tmp_path / "out" / "workload.parquet", classes=config.classes)
    assert workload.lost is not None
    assert workload.admission.tolist() == 4 * [-1000.0]
    job_of = dict(zip(workload.job.tolist(), [workload.losses[n] for n in workload.lost.tolist()], strict=True))
    assert sorted(job_of.values()) == [
        ((-960.0, 40.0), (-180.0, 20.0), (0.0, 5.0)),  # when the first was is not kept: it has left the window
        ((0.0, 40.0),),
        ((0.0, 50.0),),  # half of the 100 s of one of two
    ]
    result = run(*align(workload, read_hosts(tmp_path / "out" / "hosts.parquet")), config)
    assert result.requests["pending"].sum() == 40 + 65 + 100, "all are placed at once, and have been running"
    assert set(made.availability) == {"silver", "rolling"}


def test_a_record_is_written_as_a_workload_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path / "record", 60)
    out = tmp_path / "out"
    assert main(["replay", str(tmp_path / "record"), "--workload", str(out)]) == 0
    said = capsys.readouterr().out
    assert "delivered, as recorded: " in said
    assert main(said.splitlines()[-1].split()[1:]) == 0
    assert main(["replay", str(tmp_path / "record"), "--workload", str(out), "--session", "7"]) == 2
    assert main(["replay", str(tmp_path / "record"), "--session", "1"]) == 2


def test_numbers_out_of_arrays_are_recorded_as_numbers() -> None:
    told: tuple[tuple[operations.Operation, operations.Operation], ...] = (
        (operations.Run(np.float64(1.5)), operations.Run(1.5)),
        (operations.Budget("b", np.int64(3)), operations.Budget("b", 3)),  # type: ignore[arg-type]
        (
            operations.Restore("k", {"at": np.float64(2.25), "pods": [np.int64(4)]}, [{"since": np.float64(7.0)}], 8.0),
            operations.Restore("k", {"at": 2.25, "pods": [4]}, [{"since": 7.0}], 8.0),
        ),
    )
    for out_of_arrays, plain in told:
        assert codec.encode(out_of_arrays) == codec.encode(plain)
        assert codec.decode(codec.encode(out_of_arrays)) == plain
    with pytest.raises(NotImplementedError, match="object in a record"):
        codec.encode(operations.Restore("k", {"at": object()}, [], 8.0))


def test_what_cannot_be_written_ends_the_record_and_nothing_else(tmp_path: Path) -> None:
    config = live_config()
    with Recorder(tmp_path, config) as recorder:
        recorder(operations.Begin())
        recorder(operations.Restore("k", {"at": object()}, [], 8.0))
        assert "object in a record" in str(recorder.failed)
        recorder(operations.Run(9.0))
    (session,) = sessions(tmp_path)
    assert [one.operation for one in session.operations()] == [operations.Begin()]
