"""``slacktide experiment run``: what it leaves, what it does again, what it does with what fails."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import time
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from slacktide.cli import main
from slacktide.config import Config, PolicySettings
from slacktide.errors import InputError
from slacktide.experiment import conduct, keys, local, prepare, store
from slacktide.experiment import grid as grids
from slacktide.inputs import read_hosts
from slacktide.model import Hosts
from slacktide.results import experiment
from support.calls import calls_of
from support.experiments import GRID, alive, children_of, run, started, written
from support.repository import REPOSITORY

LONGER = GRID.replace("small: small.csv", "small: {generator: light, with: {hosts: 20, requests: 4000}}").replace(
    "all: hosts.csv", "all: {generator: light, with: {hosts: 17}}"
)

FAILING = """
from slacktide.policy.api import Plan

class Mine:
    def decide(self, view, now):
        if now > 5:
            raise RuntimeError("out of ideas")
        return Plan()
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an experiment that ran through."""
    folder = tmp_path_factory.mktemp("finished")
    assert run(written(folder), folder / "out") == 0
    return folder / "out"


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def changed(out: Path, before: dict[str, float]) -> set[str]:
    """Keys of runs that were made since."""
    return {key for key, when in made(out).items() if before.get(key) != when}


def made(out: Path) -> dict[str, float]:
    """When each run's results were written."""
    return {one.name: (one / "manifest.json").stat().st_mtime for one in (out / "runs").iterdir()}


def test_the_folder_names_every_run_and_holds_its_results(finished: Path) -> None:
    found = experiment.read(finished)
    assert [(one.workload, one.hosts, one.policy) for one in found.runs] == [
        ("small", hosts, policy)
        for hosts in ("all", "fewer")
        for _ in range(2)
        for policy in ("priority", "qos-driven")
    ]
    assert found.done == found.runs
    assert {re.fullmatch("[0-9a-f]{64}", one.key) is not None for one in found.runs} == {True}
    assert found.grid["end"] == 600
    assert set(found.grid["policies"]) == {"priority", "qos-driven"}
    assert (finished / "grid.yaml").read_text() == GRID
    for one in found.runs:
        assert one.manifest()["seed"] == one.seed
        assert one.requests().num_rows == 7
        assert set(one.intervals()["time"].to_pylist()) == {100.0 * k for k in range(1, 7)}
        assert one.progress().num_rows == 60


def test_a_run_equals_simulate_with_the_same_settings(finished: Path, tmp_path: Path) -> None:
    for one in experiment.read(finished).runs[2:6]:
        hosts = finished / "inputs" / experiment.read(finished).grid["hosts"][one.hosts]["input"] / "hosts.parquet"
        words = ["--policy", one.policy, "--seed", one.seed, "--end", 600, "--intervals", 100]
        original = finished.parent / "small.csv"
        command = ["simulate", original, hosts, *words, "--out", tmp_path / one.key, "--json"]
        assert main([str(word) for word in command]) == 0
        assert one.folder is not None
        for name in ("requests", "intervals", "progress"):
            assert pq.read_table(tmp_path / one.key / f"{name}.parquet").equals(
                pq.read_table(one.folder / f"{name}.parquet")
            )


def test_runs_keep_their_passes_where_the_grid_says_so(finished: Path, tmp_path: Path) -> None:
    grid = written(tmp_path, GRID.replace("seeds: 2", "seeds: 1\npasses: true"))
    assert run(grid, tmp_path / "out") == 0
    found, usual = experiment.read(tmp_path / "out"), experiment.read(finished)
    assert found.grid["passes"] is True
    assert {one.key for one in found.runs}.isdisjoint(one.key for one in usual.runs)  # they are made anew
    for one in found.runs:
        assert one.folder is not None
        passes = pq.read_table(one.folder / "passes.parquet")
        assert passes.num_rows == one.manifest()["totals"]["passes"]
        assert one.manifest()["command"][-1] == "--passes"
    assert not any((one.folder / "passes.parquet").exists() for one in usual.runs if one.folder is not None)


def test_a_run_can_be_repeated_by_the_command_of_its_manifest(finished: Path, tmp_path: Path) -> None:
    one = experiment.read(finished).runs[-1]
    command = one.manifest()["command"]
    assert command[:2] == ["slacktide", "simulate"]
    assert main([*command[1:], "--out", str(tmp_path / "again"), "--json"]) == 0
    assert pq.read_table(tmp_path / "again" / "requests.parquet").equals(one.requests())


def test_three_quarters_of_the_hosts_are_a_subset(finished: Path) -> None:
    grid = experiment.read(finished).grid
    names = {
        name: set(pq.read_table(finished / "inputs" / one["input"] / "hosts.parquet")["name"].to_pylist())
        for name, one in grid["hosts"].items()
    }
    assert names["all"] == {"a", "b", "c"}
    assert names["fewer"] in ({"a", "b"}, {"a", "c"}, {"b", "c"})  # 6 of 8 cores; {b, c} where a went first


@pytest.mark.usefixtures("in_process")
def test_what_has_not_changed_is_not_run_again_and_what_has_is(tmp_path: Path) -> None:
    grid, out = written(tmp_path), tmp_path / "out"
    assert run(grid, out) == 0
    before = made(out)
    assert len(before) == 8
    assert run(grid, out) == 0
    assert changed(out, before) == set()

    one_more = GRID.replace("seeds: 2", "seeds: 3").replace("priority:", "renamed:").replace("small:", "called:")
    written(tmp_path, one_more.replace("called:", "small:"))
    assert run(grid, out) == 0  # a policy by another name is the same; of each pair one seed is new
    assert len(changed(out, before)) == 4

    written(tmp_path, GRID.replace("{policy: priority}", "{policy: priority, settings: {policy: {score: balanced}}}"))
    before = made(out)
    assert run(grid, out) == 0
    new = changed(out, before)
    assert {one.policy for one in experiment.read(out).runs if one.key in new} == {"priority"}
    assert len(new) == 4

    (tmp_path / "hosts.csv").write_text((tmp_path / "hosts.csv").read_text() + "4,d,1,1\n")
    before = made(out)
    assert run(grid, out) == 0
    assert len(changed(out, before)) == 8
    written(tmp_path)  # and back: all of it is still there
    before = made(out)
    assert run(grid, out) == 0
    assert changed(out, before) == set()


@pytest.mark.usefixtures("in_process")
def test_a_file_named_by_settings_counts_by_its_content(tmp_path: Path) -> None:
    text = GRID.replace("seeds: 2", "seeds: 1") + "settings:\n  startup: {hot: hot.csv}\n"
    grid, out = written(tmp_path, text), tmp_path / "out"
    (tmp_path / "hot.csv").write_text("3\n")
    assert run(grid, out) == 0
    before = made(out)
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "hot.csv", tmp_path / "other" / "same.csv")
    written(tmp_path, text.replace("hot.csv", "other/same.csv"))
    assert run(grid, out) == 0
    assert changed(out, before) == set()
    (tmp_path / "other" / "same.csv").write_text("4\n")
    assert run(grid, out) == 0
    assert len(changed(out, before)) == 4


@pytest.mark.usefixtures("in_process")
def test_a_run_that_fails_is_reported_and_the_others_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(FAILING)
    text = GRID.replace("seeds: 2", "seeds: 1").replace("seeds:", '  mine: {policy: "mine.py:Mine"}\nseeds:')
    grid, out = written(tmp_path, text), tmp_path / "out"
    assert run(grid, out) == 6
    told = capsys.readouterr().err
    assert "2 of 6 runs failed" in told
    assert "RuntimeError: out of ideas" in told
    found = experiment.read(out)
    assert {one.policy: one.folder is not None for one in found.runs} == {
        "priority": True,
        "qos-driven": True,
        "mine": False,
    }
    for one in found.runs:
        assert (one.error is not None) == (one.policy == "mine")
        if one.error is not None:
            assert json.loads((out / "failures" / f"{one.key}.json").read_text())["error"] == one.error
    assert main(["experiment", "status", str(out), "--failed"]) == 0
    assert "out of ideas" in capsys.readouterr().out

    (tmp_path / "mine.py").write_text(FAILING.replace("now > 5", "False"))
    assert run(grid, out) == 0  # the file has changed, so the run has another key
    assert all(one.error is None for one in experiment.read(out).runs)


@pytest.mark.usefixtures("in_process")
def test_a_dry_run_lists_what_is_done_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid, out = written(tmp_path), tmp_path / "out"
    assert run(grid, out, "--dry-run") == 0
    assert "8 runs; 8 to come, about" in capsys.readouterr().out
    assert not out.exists()
    assert run(grid, out) == 0
    written(tmp_path, GRID.replace("seeds: 2", "seeds: 3"))
    capsys.readouterr()
    assert run(grid, out, "--dry-run") == 0
    told = capsys.readouterr().out
    assert "12 runs; 4 to come, about" in told
    assert len(re.findall(r" done ", told)) == 8


def test_an_input_that_cannot_be_used_ends_it_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = written(tmp_path)
    (tmp_path / "small.csv").write_text("id,admission,duration,cpu,memory,class\n1,0,,2,1,golld\n")
    assert run(grid, tmp_path / "out") == 3
    assert "small.csv:2: class: found 'golld'" in capsys.readouterr().err


@pytest.mark.usefixtures("in_process")
def test_it_keeps_when_it_was_begun(tmp_path: Path) -> None:
    grid, out = written(tmp_path, GRID.replace("seeds: 2", "seeds: 1")), tmp_path / "out"
    before = datetime.now(UTC).replace(microsecond=0)
    assert run(grid, out) == 0
    begun = experiment.read(out).created
    assert begun is not None
    assert before <= datetime.fromisoformat(begun) <= datetime.now(UTC)
    about = json.loads((out / "experiment.json").read_text()) | {"created": "2020-01-02T03:04:05+00:00"}
    (out / "experiment.json").write_text(json.dumps(about))
    assert run(grid, out) == 0
    assert experiment.read(out).created == "2020-01-02T03:04:05+00:00"


@pytest.mark.usefixtures("in_process")
def test_what_a_kill_left_of_the_first_file_is_no_hindrance_and_goes(tmp_path: Path) -> None:
    grid, out = written(tmp_path, GRID.replace("seeds: 2", "seeds: 1")), tmp_path / "out"
    out.mkdir()
    for name in (".grid.yaml.99999.part", ".probe-0"):
        (out / name).write_text("half")
    assert run(grid, out) == 0
    assert [one.name for one in out.iterdir() if one.name.startswith(".")] == [".lock"]


@pytest.mark.usefixtures("in_process")
def test_what_is_prepared_and_broken_since_is_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, out = written(tmp_path), tmp_path / "out"
    assert run(grid, out) == 0
    for one in out.glob("inputs/*/about.json"):
        one.write_text("{}")
    shutil.rmtree(out / "runs")
    assert run(grid, out) == 5
    assert "about.json: cannot be read again; remove " in capsys.readouterr().err


def test_an_input_that_changes_while_it_is_read_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    grid = grids.read(tmp_path / "grid.yaml")

    def meanwhile(path: Path) -> Hosts:
        found = read_hosts(path)
        path.write_text(path.read_text() + "4,d,1,1\n")
        return found

    monkeypatch.setattr(prepare, "read_hosts", meanwhile)
    with pytest.raises(InputError, match=r"hosts all: .*stay as they are while they are read"):
        prepare.Inputs(grid, tmp_path / "inputs", print).hosts("all")
    assert list((tmp_path / "inputs").iterdir()) == []


def test_keys_of_very_many_runs_take_little_each(tmp_path: Path) -> None:
    text = GRID.replace("seeds: 2", "seeds: 20000")
    grid, runs = grids.read(written(tmp_path, text)), []
    assert calls_of(lambda: runs.extend(conduct.listed(grid))) < 17 * 80_000
    assert len({one.key for one in runs}) == 80_000


def test_a_policy_of_a_package_counts_by_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_of_a_package.py").write_text("class Mine: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("mine", "mine_of_a_package:Mine", "slacktide.policies")
    monkeypatch.setattr(
        keys, "entry_points", lambda group, name: [point] if (group, name) == (point.group, point.name) else []
    )
    config = Config(policy=PolicySettings(name="mine"))
    before = keys.installed(config)
    assert set(before) == {"name"}
    (tmp_path / "mine_of_a_package.py").write_text("class Mine: x = 1\n")
    assert keys.installed(config) != before
    assert keys.installed(Config()) == {}


def test_the_version_of_what_compiles_a_users_own_score_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has tested that every version of Numba compiles it to the same decisions."""
    own = [Config(policy=PolicySettings(score="mine.py:score")), Config(policy=PolicySettings(cost="mine.py:cost"))]
    assert [keys.installed(config) for config in own] == [{"numba": version("numba")}] * 2
    monkeypatch.setattr(keys, "version", lambda _: "another")
    assert [keys.installed(config) for config in own] == [{"numba": "another"}] * 2
    assert keys.installed(Config(policy=PolicySettings(score="balanced", cost="fewest-victims"))) == {}


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = written(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("")
    assert run(grid, tmp_path / "out") == 5
    assert "thesis.tex" in capsys.readouterr().err
    assert [one.name for one in (tmp_path / "out").iterdir()] == ["thesis.tex"]
    assert run(grid, grid) == 5


def test_two_cannot_work_on_one_folder_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with store.opened(tmp_path / "out"):
        assert run(written(tmp_path), tmp_path / "out") == 5
    assert "is at work there" in capsys.readouterr().err
    assert run(written(tmp_path), tmp_path / "out") == 0


def test_a_run_whose_process_is_killed_is_done_by_another(tmp_path: Path) -> None:
    grid = written(tmp_path, LONGER)
    process = started(grid, tmp_path / "out", "--jobs", "2")
    killed: list[int] = []
    while process.poll() is None and len(killed) < 2:
        for pid in children_of(process.pid):
            if pid not in killed and any((tmp_path / "out" / "runs").glob("*/manifest.json")):
                kill(pid)
                killed.append(pid)
                break
        time.sleep(0.01)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert len(killed) == 2
    assert len(experiment.read(tmp_path / "out").done) == 8
    assert not any(map(alive, killed))


def test_a_run_that_kills_its_process_has_failed_after_three(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    text = GRID.replace("seeds: 2", "seeds: 1").replace("seeds:", '  mine: {policy: "mine.py:Mine"}\nseeds:')
    text = text.replace("  fewer: {of: all, share: 0.75}\n", "").replace("  qos-driven: {policy: qos-driven}\n", "")
    assert run(written(tmp_path, text), tmp_path / "out") == 6
    assert "signal 9, 3 times over" in capsys.readouterr().err
    assert [one.policy for one in experiment.read(tmp_path / "out").done] == ["priority"]


def test_a_run_whose_process_answers_no_more_has_failed_after_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A policy that closes all files and stays: nobody hears of the process again, but it does not end."""
    monkeypatch.setattr(local, "GRACE", 0.2)
    before = children_of(os.getpid())
    (tmp_path / "mine.py").write_text("import os, time\nos.closerange(0, 1000)\ntime.sleep(1e6)\n")
    text = GRID.replace("seeds: 2", "seeds: 1").replace("seeds:", '  mine: {policy: "mine.py:Mine"}\nseeds:')
    text = text.replace("  fewer: {of: all, share: 0.75}\n", "").replace("  qos-driven: {policy: qos-driven}\n", "")
    assert run(written(tmp_path, text), tmp_path / "out") == 6
    assert "answered no more, 3 times over" in capsys.readouterr().err
    assert [one.policy for one in experiment.read(tmp_path / "out").done] == ["priority"]
    assert children_of(os.getpid()) == before


ODD = """
import sys
from slacktide.policy.api import Plan

class Mine:
    def decide(self, view, now):
        if sys.stdin.read():
            raise RuntimeError("words that were not for it")
        print('{"key": "x"}')
        return Plan()
"""


def test_a_policy_that_reads_and_prints_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ODD)
    text = GRID.replace("seeds: 2", "seeds: 1").replace("{policy: priority}", '{policy: "mine.py:Mine"}')
    grid = written(tmp_path, text.replace("  qos-driven: {policy: qos-driven}\n", ""))
    process = started(grid, tmp_path / "out", "--jobs", "1")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert len(experiment.read(tmp_path / "out").done) == 2


@pytest.mark.usefixtures("in_process")
def test_what_is_wrong_with_a_host_set_is_told_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(written(tmp_path, GRID.replace("0.75}", "0.75, resource: gpu}")), tmp_path / "out") == 2
    assert "hosts fewer: resource: found 'gpu', expected one of cpu, memory" in capsys.readouterr().err


def test_results_that_cannot_be_written_end_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid, out = written(tmp_path), tmp_path / "out"
    first = conduct.listed(grids.read(grid))[0]
    (out / "runs").mkdir(parents=True)
    (out / "runs" / first.key).write_text("in the way")
    assert run(grid, out) == 5
    assert f"{first.key}: a file; expected a new directory" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "runs"), [("cell", 27), ("one-hour", 120)])
def test_the_examples_can_be_read(name: str, runs: int, tmp_path: Path) -> None:
    example = REPOSITORY / "examples" / "experiments" / f"{name}.yaml"
    published = ("workload-lower-contention.erl", "workload-higher-contention.erl", "hosts-620.erl")
    for file in (*(f"one-hour/{one}" for one in published), "overheads/hot.erl", "overheads/cold.erl"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    given = {"data": str(tmp_path)} if name == "one-hour" else {}
    assert len(grids.read(example, given).points()) == runs
