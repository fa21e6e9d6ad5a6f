"""Runs as threads of one process: the same results as by processes, and no run pays for what another one does."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from slacktide.cli import main
from slacktide.experiment import conduct, prepare, run, store
from slacktide.experiment import grid as grids
from slacktide.experiment.local import ATTEMPTS, Processes, Worker, leaves_lock
from slacktide.experiment.run import Outcome, Shared, Task, attempt, read_only
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.kernels.runtime.mode import Mode, mode
from support.experiments import GRID, alive, written
from support.libraries import needs_library

MORE = GRID.replace("small: small.csv", "small: {generator: light, with: {hosts: 20, requests: 800}}").replace(
    "all: hosts.csv", "all: {generator: light, with: {hosts: 17}}"
)
MINE = """
from slacktide.policy.api import Plan

class Mine:
    def decide(self, view, now):
        return Plan()
"""


class Collected:
    """An executor that carries out nothing, and keeps what it was to do."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def carry_out(self, tasks: Sequence[Task], *_: object) -> None:
        self.tasks += tasks


class Silent:
    """A watcher that says nothing."""

    def announce(self, text: str) -> None: ...
    def expect(self, later: object) -> None: ...
    def begin(self, todo: object, done: int) -> None: ...
    def told(self, point: object, outcome: object) -> None: ...
    def tick(self) -> None: ...


def tasks_of(folder: Path, text: str = MORE) -> list[Task]:
    """The runs of a grid, inputs prepared."""
    grid = grids.read(written(folder, text))
    collected = Collected()
    with store.opened(folder / "out") as kept:
        conduct.conduct(grid, conduct.listed(grid), kept, collected, Silent())
    return collected.tasks


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of every run, manifests too."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.glob("runs/*/*"))}


def done_by(processes: Processes, tasks: list[Task], tick: Callable[[], None] = lambda: None) -> list[Outcome]:
    outcomes: list[Outcome] = []
    processes.carry_out(tasks, outcomes.append, tick)
    return outcomes


@pytest.fixture
def deadly(tmp_path: Path) -> Callable[[Task], Task]:
    """Makes a task whose run never goes on: it waits to read a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "pipe")
    return lambda task: replace(task, files={str(tmp_path / "pipe"): ""})


@needs_library
def test_threads_leave_the_same_bytes_as_processes(tmp_path: Path) -> None:
    tasks = tasks_of(tmp_path)
    found = []
    for threads in (False, True):
        most = 0
        with Processes(2, threads=threads) as processes:

            def tick() -> None:
                nonlocal most
                most = max(most, len(processes.at_work))

            outcomes = done_by(processes, tasks, tick)
        assert {(one.key, one.error) for one in outcomes} == {(task.key, None) for task in tasks}
        assert most == (1 if threads else 2)
        found.append(contents(tmp_path / "out"))
        shutil.rmtree(tmp_path / "out" / "runs")
    assert len(found[0]) == 8 * 5  # manifest.json and tables of requests, classes, intervals and progress
    assert found[0] == found[1]


@needs_library
def test_a_plan_by_threads_leaves_the_same_bytes_as_by_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{number},{number},{300 if number % 3 else ''},1,0,silver" for number in range(60)]
    (tmp_path / "w.csv").write_text("\n".join(["id,admission,duration,cpu,memory,class", *lines]) + "\n")
    (tmp_path / "h.csv").write_text("id,name,cpu,memory\n1,a,4,1\n2,b,4,1\n")
    words = [str(tmp_path / "w.csv"), str(tmp_path / "h.csv"), "--out", str(tmp_path / "plan"), "--end", "600"]
    found = []
    for threads in (False, True):
        monkeypatch.setattr("slacktide.experiment.local.executor", lambda *_, t=threads: Processes(2, threads=t))
        assert main(["plan", *words, "--policy", "priority", "--policy", "recommended"]) == 0
        answers = {name: (tmp_path / "plan" / name).read_bytes() for name in ("plan.csv", "plan.parquet", "plan.svg")}
        found.append((contents(tmp_path / "plan"), answers))
        shutil.rmtree(tmp_path / "plan")
    assert len(found[0][0]) > 20
    assert found[0] == found[1]


@needs_library
def test_runs_of_a_process_that_is_killed_are_begun_again_each_by_itself(
    tmp_path: Path, deadly: Callable[[Task], Task]
) -> None:
    first, second, *_ = tasks_of(tmp_path)
    waiting = [deadly(first), deadly(second)]
    killed: list[int] = []
    seen: list[set[frozenset[str]]] = []
    with Processes(2) as processes:

        def tick() -> None:
            at_work = {pid: keys for pid, keys in processes.at_work.items() if pid not in killed}
            seen.append(set(at_work.values()))
            for pid in at_work:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        outcomes = done_by(processes, waiting, tick)
        assert not any(map(alive, killed))
    assert seen[0] == {frozenset({first.key, second.key})}
    assert all(len(keys) == 1 for some in seen[1:] for keys in some)
    assert len(killed) == 1 + 2 * ATTEMPTS  # what happened to both together is held against neither
    assert {one.key for one in outcomes} == {first.key, second.key}
    assert all("signal 9, 3 times over" in str(one.error) for one in outcomes)


@needs_library
def test_a_run_that_kills_its_process_costs_no_other_run(tmp_path: Path, deadly: Callable[[Task], Task]) -> None:
    bad, *good = tasks_of(tmp_path)
    with Processes(3) as processes:

        def tick() -> None:
            for pid, keys in processes.at_work.items():
                if bad.key in keys:
                    os.kill(pid, signal.SIGKILL)

        outcomes = done_by(processes, [good[0], deadly(bad), *good[1:]], tick)
    assert {one.key: one.error is None for one in outcomes} == {bad.key: False} | {one.key: True for one in good}
    assert len(outcomes) == 8  # of each one only


def test_own_policies_are_in_a_process_each(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    policies = """  mine: {policy: "mine.py:Mine"}
seeds:"""
    tasks = tasks_of(tmp_path, MORE.replace("seeds:", policies).replace("requests: 800", "requests: 60"))
    apart = {one.key for one in tasks if not leaves_lock(one.configuration)}
    library = mode() is Mode.LIBRARY
    assert len(apart) == (4 if library else 12)
    seen: set[frozenset[str]] = set()
    with Processes(3) as processes:

        def tick() -> None:
            assert sum(map(len, processes.at_work.values())) <= 3
            seen.update(processes.at_work.values())

        outcomes = done_by(processes, tasks, tick)
    assert {(one.key, one.error) for one in outcomes} == {(task.key, None) for task in tasks}
    assert all(len(keys) == 1 for keys in seen if keys & apart)


def test_a_thread_that_ends_takes_its_process_with_it() -> None:
    for threads in (1, 3):
        worker = Worker(threads)
        worker.give("neither a task nor to warm up")
        assert worker.heard() is None
        assert worker.process.wait() == 1
        worker.end()


def test_a_worker_whose_every_thread_is_busy_ends_with_who_started_it(
    tmp_path: Path, deadly: Callable[[Task], Task]
) -> None:
    task = deadly(tasks_of(tmp_path, GRID)[0])
    worker = Worker(2)
    for _ in range(2):
        worker.give(task.plain())
    assert worker.process.stdin is not None
    worker.process.stdin.close()  # as when the program is killed
    assert worker.heard() is None
    assert worker.process.wait() == 0
    worker.end()


def test_runs_at_once_read_their_workload_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = tasks_of(tmp_path, GRID)
    read: list[Path] = []
    load = prepare.load_workload

    def counted(folder: Path, *more: object) -> object:
        read.append(folder)
        return load(folder, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "load_workload", counted)
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda t=task: outcomes.append(attempt(t))) for task in tasks]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [one.error for one in outcomes] == [None] * 8
    assert len(read) == 1


def test_a_shared_value_is_made_once_and_held_while_it_is_used() -> None:
    shared: Shared[list[str]] = Shared(kept=1)
    inside, go_on = threading.Event(), threading.Event()
    made: list[str] = []

    def make(name: str) -> list[str]:
        made.append(name)
        inside.set()
        assert go_on.wait(60)
        return [name]

    found: list[list[str]] = []

    def use() -> None:
        with shared.use("a", lambda: make("a")) as value:
            found.append(value)

    threads = [threading.Thread(target=use) for _ in range(4)]
    threads[0].start()
    assert inside.wait(60)
    for one in threads[1:]:
        one.start()
    go_on.set()
    for one in threads:
        one.join()
    assert made == ["a"]
    assert all(one is found[0] for one in found)

    with shared.use("b", lambda: make("b")), shared.use("a", lambda: make("a")), shared.use("c", lambda: make("c")):
        assert len(shared) == 3  # those in use are held, however many
    assert len(shared) == 1
    assert made == ["a", "b", "a", "c"]  # "a" went for "b"


def test_what_cannot_be_made_is_tried_again_by_the_next() -> None:
    shared: Shared[int] = Shared()
    with pytest.raises(ZeroDivisionError), shared.use(1, lambda: 1 // 0):
        pass
    assert len(shared) == 0
    with shared.use(1, lambda: 7) as value:
        assert value == 7


def test_shared_arrays_refuse_writers() -> None:
    pieces, hosts = GENERATORS["jobs"].generate({"hosts": 5, "requests": 20, "size": 3})
    workload = read_only(next(iter(pieces)))
    assert workload.requests is not None
    for array in (workload.admission, workload.demand, workload.requests.ids, read_only(hosts).capacity):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


PROTECTED = """
import ctypes, json, mmap, sys
from dataclasses import fields, is_dataclass, replace
import numpy as np
from slacktide import settings
from slacktide.inputs import align
from slacktide.inputs.generators.registry import GENERATORS
from slacktide.sim import run

kept = []

def protected(value):
    if isinstance(value, np.ndarray) and value.nbytes:
        memory = mmap.mmap(-1, value.nbytes)
        copy = np.frombuffer(memory, value.dtype).reshape(value.shape)
        copy[...] = value
        kept.append(memory)
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(copy.ctypes.data), value.nbytes, mmap.PROT_READ) == 0
        return copy
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: protected(getattr(value, one.name)) for one in fields(value)})
    return value

name, parameters, words = json.loads(sys.argv[1])
pieces, hosts = GENERATORS[name].generate(parameters)
workload, hosts = align(next(iter(pieces)), hosts)
workload = replace(workload, admission=np.floor(workload.admission), duration=np.ceil(workload.duration))
workload, hosts = protected(workload), protected(hosts)
result = run(workload, hosts, settings.load(None, None, ["simulation.end=3000", *words]))
print(len(kept), result.placements, result.preemptions)
"""


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("light", {"hosts": 10, "requests": 400, "load": 1.5, "classes": "gold,bronze"}, []),
        ("jobs", {"hosts": 10, "requests": 60, "size": 4, "load": 1.5, "batch": 0.5, "parallelism": 2}, []),
        ("edge", {"nodes": 40, "sites": 5, "requests": 900}, ["policy.score=delay-aware", "delay.grants=true"]),
    ],
)
def test_a_run_writes_to_no_array_of_its_workload(name: str, parameters: dict[str, object], words: list[str]) -> None:
    """The system lets nobody write to these pages: machine code that did would end the process."""
    command = [sys.executable, "-c", PROTECTED, json.dumps([name, parameters, words])]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    arrays, placements, _ = map(int, found.stdout.split())
    assert arrays >= 8
    assert placements > 0
