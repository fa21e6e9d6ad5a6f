"""What a record says of hosts, victims and readiness, as files of a simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slacktide import settings
from slacktide.engine.core.engine import Engine
from slacktide.engine.journal.record import Recorder, sessions
from slacktide.engine.journal.to_workload import as_workload
from slacktide.inputs import read_hosts, read_workload
from slacktide.model import AGGREGATED, INDEPENDENT, Placement, Rule, ServiceClass, Topology, Workload
from slacktide.sim import run
from slacktide.state.spec import Spec
from support.churning import BEGINNING, live_config

GOLD, BRONZE = ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 3)
HOST = {"cpu": 4000, "memory": 2**33}


class Told:
    """An engine whose operations are recorded, and what becomes of the record; times are seconds from its beginning."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recorder = Recorder(folder / "record", live_config())
        self.engine = Engine(live_config(), journal=self.recorder)
        self.engine.host("n", HOST, {}, True)

    def spec(self, number: int, service: ServiceClass, cpu: int, grace: float) -> None:
        self.engine.spec(number, Spec((("cpu", cpu), ("memory", 2**20)), service, grace=grace))

    def arrive(self, uid: str, spec: int, at: float, key: str = "", *, batch: bool = False) -> None:
        key = key or uid
        approach = AGGREGATED if batch else INDEPENDENT
        self.engine.controller(key, self.engine.specs[spec].service, approach, batch)
        self.engine.arrive(uid, uid, key, spec, BEGINNING + at)
        self.engine.wake(uid)

    def run(self, at: float) -> list[str]:
        return [one.uid for one in self.engine.run(BEGINNING + at).decisions]

    def starts(self, uid: str, bound: float, ready: float) -> None:
        self.engine.bound(uid, BEGINNING + bound)
        self.engine.ready(uid, BEGINNING + ready)

    def written(self) -> Workload:
        self.recorder.close()
        as_workload(sessions(self.folder / "record")[0], self.folder / "out")
        config = settings.load(self.folder / "out" / "settings.json")
        return read_workload(self.folder / "out" / "workload.parquet", classes=config.classes)

    def lines(self, name: str) -> list[str]:
        return (self.folder / "out" / name).read_text().splitlines()[1:]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    one = Told(tmp_path)
    one.spec(0, BRONZE, 3000, 30.0)
    one.spec(1, GOLD, 3000, 5.0)
    one.arrive("b", 0, 0.0)
    return one


def test_what_hosts_have_and_others_take_comes_and_goes(told: Told) -> None:
    engine = told.engine
    engine.other("daemon", "n", {"cpu": 500, "memory": 2**30}, ())
    told.run(0.0)
    engine.other("late", "n", {"cpu": 250}, ())
    told.run(10.0)
    engine.other_gone("late")
    engine.host("n", {**HOST, "cpu": 6000}, {}, True)
    told.run(20.0)
    engine.host("n", {**HOST, "cpu": 6000}, {}, False)  # closed with a pod on it
    told.run(30.0)
    engine.host("n", {**HOST, "cpu": 6000}, {}, True)
    told.run(40.0)
    told.written()
    assert told.lines("events.csv") == [
        "0.0,n,others,cpu=0.5 memory=1073741824,",
        "0.001,n,others,cpu=0.75,",
        "10.001,n,capacity,cpu=6,",
        "10.001,n,others,cpu=0.5,",
        "20.001,n,others,cpu=6 memory=8589934592,",
        "30.001,n,others,cpu=0.5 memory=1073741824,",
    ]


def test_marks_of_others_that_rules_are_about_come_and_go(tmp_path: Path) -> None:
    """A pod that needs a port waits until the stranger that has it goes, in the simulation of the record, too."""
    told = Told(tmp_path)
    rule = Placement(("port 80",), (Rule("away", "port 80", Topology("")),))
    told.engine.spec(0, Spec((("cpu", 1000), ("memory", 2**20)), BRONZE, placement=rule))
    told.engine.other("daemon", "n", {"cpu": 500}, ("port 80", "port 80", "app web"))
    told.engine.other("another", "n", {}, ("app web",))
    told.arrive("b", 0, 0.0)
    assert told.run(0.0) == told.run(49.0) == []
    told.engine.other("daemon", "n", {"cpu": 500}, ("app web",))
    assert told.run(50.0) == ["b"]
    told.starts("b", 50.0, 51.0)
    told.engine.other_gone("another")
    told.run(60.0)
    workload = told.written()
    assert told.lines("events.csv") == [
        '0.0,n,marks,,"1 ""port 80"""',
        "0.0,n,others,cpu=0.5,",
        '49.001,n,marks,,"0 ""port 80"""',
    ]
    config = settings.load(told.folder / "out" / "settings.json")
    hosts = read_hosts(told.folder / "out" / "hosts.parquet")
    result = run(workload, hosts, config, decisions=True)
    assert result.decisions is not None
    assert result.decisions["time"].tolist() == pytest.approx([49.001], abs=1e-5)


def test_victims_go_on_as_long_as_they_did_and_start_ups_begin_when_they_are_gone(told: Told) -> None:
    engine = told.engine
    assert told.run(0.0) == ["b"]
    told.starts("b", 0.1, 4.0)
    told.arrive("g", 1, 100.0)
    assert told.run(100.0) == ["g"]
    engine.gone("b", BEGINNING + 112.0)
    told.starts("g", 112.5, 120.0)
    told.arrive("b2", 0, 115.0, key="b")
    told.run(200.0)
    workload = told.written()
    assert workload.grace is not None
    assert dict(zip(workload.service_class.tolist(), workload.grace.tolist(), strict=True)) == {0: 12.0, 1: 5.0}
    assert [float(one) for one in told.lines("cold.csv")] == [4.0, 7.5]
    config = settings.load(told.folder / "out" / "settings.json")
    assert config.simulation.recreation == 3.0
    assert [float(one) for one in told.lines("grace.csv")] == [1.0], "over the mean of 12 s"
    assert config.simulation.grace == str((told.folder / "out" / "grace.csv").resolve())
    assert config.policy.victims == "next-pass"
    assert config.qos.startup == told.engine.config.qos.startup


def test_how_long_jobs_hold_their_next_pods_back_is_told_apart(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.spec(0, BRONZE, 3000, 30.0)
    told.spec(1, GOLD, 3000, 5.0)
    told.arrive("b", 0, 0.0, batch=True)
    assert told.run(0.0) == ["b"]
    told.starts("b", 0.1, 4.0)
    told.arrive("g", 1, 100.0)
    assert told.run(100.0) == ["g"]
    told.engine.gone("b", BEGINNING + 112.0)
    told.arrive("b2", 0, 120.0, key="b", batch=True)
    told.run(200.0)
    told.written()
    config = settings.load(told.folder / "out" / "settings.json")
    assert config.simulation.recreation == 0.0
    assert config.simulation.batch_recreation == str((told.folder / "out" / "batch-recreation.csv").resolve())
    assert [float(one) for one in told.lines("batch-recreation.csv")] == [8.0]


def test_unreadiness_is_replayed_where_it_counts(told: Told) -> None:
    engine = told.engine
    told.run(0.0)
    told.starts("b", 0.0, 4.0)
    for at, cause, until in ((50.0, 0, 65.0), (100.0, 1, 130.0)):
        engine.blame("b", cause, BEGINNING + at)
        engine.unready("b", BEGINNING + at)
        engine.ready("b", BEGINNING + until)
    engine.blame("b", 1, BEGINNING + 200.0)
    engine.unready("b", BEGINNING + 200.0)
    engine.blame("b", 0, BEGINNING + 210.0)  # from here on it is the cluster's
    engine.gone("b", BEGINNING + 230.0)
    told.run(250.0)
    workload = told.written()
    assert workload.unready is not None
    assert workload.spells[int(workload.unready[0])] == ((50.0, 15.0), (210.0, 20.0))


def controlled(told: Told, key: str, approach: int, batch: bool, count: int) -> None:
    told.engine.spec(9, Spec((("cpu", 500), ("memory", 2**20)), BRONZE))
    told.engine.controller(key, BRONZE, approach, batch, False)
    told.engine.desired(key, count, BEGINNING)


def came(told: Told, key: str, at: float, *uids: str) -> None:
    for uid in uids:
        told.engine.arrive(uid, uid, key, 9, BEGINNING + at)
        told.engine.wake(uid)


def of_request(workload: Workload, approach: int) -> list[int]:
    """The rows of the one request that is measured so."""
    assert workload.requests is not None
    assert workload.request is not None
    (number,) = (workload.requests.approach == approach).nonzero()[0].tolist()
    return [row for row, request in enumerate(workload.request.tolist()) if request == number]


def test_pods_of_a_job_are_one_request_and_each_does_its_own_work(told: Told) -> None:
    """The third comes a second after the first has completed, when its place may be somebody else's."""
    controlled(told, "job", 2, True, 2)
    came(told, "job", 0.0, "j1", "j2")
    told.run(0.0)
    for uid, ready in (("j1", 5.0), ("j2", 6.0)):
        told.starts(uid, 0.5, ready)
    told.engine.gone("j1", BEGINNING + 45.0, True)
    came(told, "job", 46.0, "j3")
    told.run(46.0)
    told.starts("j3", 46.5, 50.0)
    told.engine.gone("j2", BEGINNING + 66.0, True)
    told.engine.desired("job", 0, BEGINNING + 80.0)
    told.engine.gone("j3", BEGINNING + 80.0)
    told.run(90.0)
    workload = told.written()
    rows = of_request(workload, 2)
    requests = workload.requests
    assert requests is not None
    assert [workload.duration[row] for row in rows] == [40.0, 60.0, float("inf")]
    assert [workload.admission[row] for row in rows] == [0.0, 0.0, 46.0]
    assert requests.batch.tolist().count(True) == 1
    assert (requests.scale_time.tolist(), requests.scale_replicas.tolist()) == ([80.0], [0])


def test_unreadiness_of_pods_that_are_measured_together_is_that_of_each(told: Told) -> None:
    controlled(told, "both", 1, False, 2)
    came(told, "both", 0.0, "s1", "s2")
    told.run(0.0)
    for uid in ("s1", "s2"):
        told.starts(uid, 0.5, 5.0)
    told.engine.unready("s2", BEGINNING + 30.0)
    told.engine.ready("s2", BEGINNING + 42.0)
    told.run(60.0)
    workload = told.written()
    assert workload.unready is not None
    rows = of_request(workload, 1)
    assert [workload.spells[int(workload.unready[row])] for row in rows] == [(), ((30.0, 12.0),)]


def test_who_comes_for_one_that_was_told_to_go_needs_a_place_of_its_own(told: Told) -> None:
    """While the old one takes its grace period they are two; then one has to go."""
    controlled(told, "one", 2, False, 1)
    came(told, "one", 0.0, "s1")
    told.run(0.0)
    told.run(29.0)
    told.engine.doomed("s1")
    came(told, "one", 30.0, "s2")
    told.run(30.0)
    told.engine.gone("s1", BEGINNING + 60.0)
    told.run(90.0)
    workload = told.written()
    requests = workload.requests
    assert requests is not None
    assert [workload.admission[row] for row in of_request(workload, 2)] == [0.0, 30.0]
    assert (requests.scale_time.tolist(), requests.scale_replicas.tolist()) == ([60.0], [1])


def test_who_comes_at_once_for_one_that_is_gone_takes_its_place(told: Told) -> None:
    """One more is not there for longer than a moment; one that comes later, or stays, is an instance more."""
    controlled(told, "both", 2, False, 2)
    came(told, "both", 0.0, "s1", "s2")
    told.run(0.0)
    came(told, "both", 30.0, "s3")
    told.engine.gone("s1", BEGINNING + 30.5)
    told.run(31.0)
    told.engine.desired("both", 3, BEGINNING + 50.0)
    came(told, "both", 50.0, "s4")
    told.run(51.0)
    told.engine.desired("both", 1, BEGINNING + 70.0)
    told.engine.gone("s2", BEGINNING + 70.0)
    told.engine.gone("s3", BEGINNING + 70.0)
    told.run(90.0)
    workload = told.written()
    rows = of_request(workload, 2)
    assert [workload.admission[row] for row in rows] == [0.0, 0.0, 50.0]
    requests = workload.requests
    assert requests is not None
    assert (requests.scale_time.tolist(), requests.scale_replicas.tolist()) == ([70.0], [1])


def test_workloads_of_one_class_that_start_apart_are_told_apart(told: Told) -> None:
    """One learned to hold back three minutes; where all of a class hold back alike, it keeps its name."""
    slow = replace(BRONZE, alpha=180.0)
    told.spec(2, slow, 500, 5.0)
    told.arrive("slow", 2, 0.0)
    told.run(0.0)
    told.starts("b", 0.0, 5.0)
    told.starts("slow", 0.0, 100.0)
    told.run(200.0)
    workload = told.written()
    assert [(one.name, one.slo, one.alpha) for one in workload.classes] == [
        ("bronze", 0.5, None),
        ("bronze@alpha=3m", 0.5, 180.0),
    ]
    assert workload.service_class.tolist() == [0, 1]
