"""``st.Experiment``, ``st.plan`` and ``st.report``: what the commands of these names do, said in Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import slacktide as st
from slacktide.api import configuring
from slacktide.cli import main
from slacktide.errors import ConfigError, InputError, OutputError, RunsError
from support.example_policy import FILE, FirstFit

END = 600


def test_an_experiment_is_that_of_its_grid_file(cell: st.Generated, folder: Path, tmp_path: Path) -> None:
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        f"workloads: {{cell: {folder / 'workload.parquet'}}}\n"
        f"hosts:\n  all: {folder / 'hosts.parquet'}\n  few: {{of: all, share: 0.8}}\n"
        "policies: {priority: {policy: priority}, recommended: {preset: recommended}}\nseeds: 2\nend: 600\n"
        "settings: {qos: {startup: always}}\n"
    )
    by_words = st.Experiment(
        tmp_path / "by-words",
        {"cell": cell.workload},
        {"all": cell.hosts, "few": {"of": "all", "share": 0.8}},
        ["priority", "recommended"],
        seeds=2,
        end="10m",
        qos_startup="always",
    )
    assert "not begun" in repr(by_words)
    assert by_words.run(jobs=2) is by_words
    by_file = st.Experiment.from_file(grid, tmp_path / "by-file").run(jobs=2)
    assert repr(by_words).endswith("8 of 8 runs are done)")
    assert by_words.classes.equals(by_file.classes)
    assert by_words.requests.equals(by_file.requests)
    assert by_words.requests.height == sum(by_words.classes["requests"])
    assert by_words.runs["done"].all()
    assert by_words.runs.schema["error"] == pl.String
    opened = st.Experiment(tmp_path / "by-words")
    assert opened.classes.equals(by_words.classes)
    with pytest.raises(ConfigError, match="give workloads and policies"):
        opened.run()


def test_a_new_experiment_shows_nothing_of_an_old_one_in_its_folder(cell: st.Generated, tmp_path: Path) -> None:
    st.Experiment(tmp_path / "one", cell, policies=["priority"], end=60).run(jobs=1)
    other = st.Experiment(tmp_path / "one", cell, policies=["recommended"], end=60)
    assert "not begun" in repr(other)
    for table in ("runs", "classes", "requests"):
        with pytest.raises(ConfigError, match=r"need not be this one; call run\(\)"):
            getattr(other, table)
        assert not hasattr(other, table)
    with pytest.raises(ConfigError, match="need not be this one"):
        st.report(other, tmp_path / "report.html")
    assert other.run(jobs=1).runs["policy"].to_list() == ["recommended"]
    assert st.Experiment(tmp_path / "one").runs.equals(other.runs)


def test_tables_of_an_experiment_have_the_names_and_keys_of_all_others(cell: st.Generated, tmp_path: Path) -> None:
    done = st.Experiment(tmp_path / "one", cell, policies=["priority"], seeds=[7, 8], end=END).run(jobs=1)
    keys = ["workload", "hosts", "policy", "seed"]
    assert done.classes.join(done.runs, on=keys).height == done.classes.height
    joined = done.requests.group_by(*keys, "class").agg(pl.col("slo_met").mean(), pl.len())
    both = done.classes.join(joined, on=[*keys, "class"])
    assert both.height == done.classes.height == 6
    assert both["fulfilment"].to_list() == pytest.approx(both["slo_met"].to_list())
    alone = st.simulate(cell, policy="priority", seed=7, end=END).classes
    mine = done.classes.filter(pl.col("seed") == 7)
    for name in ("requests", "fulfilment", "availability_min", "preemptions", "wasted_startup"):
        assert mine[name].to_list() == alone[name].to_list(), name


@pytest.mark.parametrize("jobs", [0, 1.5, "2", True, float("nan")])
def test_jobs_that_are_no_number_of_runs_are_refused(jobs: Any, cell: st.Generated, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run: jobs: found .* -1 for all"):
        st.Experiment(tmp_path / "one", cell, end=END).run(jobs=jobs)
    with pytest.raises(ConfigError, match=r"plan: jobs: found"):
        st.plan(cell, target={"gold": 0.1}, jobs=jobs)


def test_jobs_are_counted_as_joblib_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuring, "cores", lambda: 8)
    counted = [(None, 8), (-1, 8), (-2, 7), (-8, 1), (-9, 1), (1, 1), (np.int64(20), 20)]
    assert [configuring.at_once("run", jobs) for jobs, _ in counted] == [number for _, number in counted]


def test_all_cores_do_all_runs(cell: st.Generated, tmp_path: Path) -> None:
    assert st.Experiment(tmp_path / "one", cell, policies=["priority"], end=60).run(jobs=-1).runs["done"].all()


def test_a_class_of_a_notebook_is_refused_in_words(
    cell: st.Generated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = types.ModuleType("__main__")
    exec("class Mine:\n    def decide(self, view, now):\n        return []\n", vars(notebook))
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    for policies in ({"mine": notebook.Mine}, [notebook.Mine]):
        with pytest.raises(ConfigError, match=r"found the class Mine, .*%%writefile mine.py, and give 'mine.py:Mine'"):
            st.Experiment(tmp_path / "one", cell, policies=policies)


CLASSES_OF_ITS_OWN = {"first": 0.1, "second": 0.1, "third": 0.1}


def test_classes_that_a_generator_brings_go_with_it(tmp_path: Path) -> None:
    made = st.generate("validation-3")
    by_grid = st.Experiment(tmp_path / "grid", made, policies=["priority"], seeds=[0], end=END).run(jobs=1)
    assert by_grid.classes["class"].to_list() == ["first", "second", "third"]
    assert by_grid.requests.drop("workload", "hosts", "policy", "seed").equals(
        st.simulate(made, policy="priority", end=END).requests
    )
    found = st.plan(made, policies=["priority"], target=CLASSES_OF_ITS_OWN, end=END, jobs=1, curve=False)
    assert found.hosts["priority"] is not None


@pytest.fixture(scope="module")
def edge() -> st.Generated:
    return st.generate("edge", nodes=50, sites=10, requests=1000)


@pytest.mark.parametrize("how", ["brought", "given"])
def test_the_network_that_a_generator_brings_goes_with_it(how: str, edge: st.Generated, tmp_path: Path) -> None:
    by_delay: dict[str, Any] = {"policy_score": "delay-aware", "end": END}
    workload: Any = edge
    hosts: Any = edge
    more: dict[str, Any] = {}
    if how == "given":
        workload, hosts, more = edge.workload, edge.hosts, {"delay_network": edge.network}
    one = st.simulate(workload, hosts, seed=0, **by_delay, **more)
    grid = st.Experiment(tmp_path / "grid", workload, hosts, ["recommended"], seeds=[0], **by_delay, **more)
    done = grid.run(jobs=1).requests
    assert done.drop("workload", "hosts", "policy", "seed").equals(one.requests)
    goal: dict[str, Any] = {"target": {"gold": 0.1}, "jobs": 1, "curve": False, "most": 50, "within": 50}
    plan = st.plan(workload, hosts, **goal, **by_delay, **more)
    assert plan.hosts["recommended"] == 50
    about = json.loads((one.save(tmp_path / "one") / "manifest.json").read_text())
    assert "network in memory" in about["inputs"]
    assert (tmp_path / "one" / "delays.parquet").exists()


@pytest.mark.slow
def test_what_is_done_is_not_run_again_and_a_class_in_a_file_is_a_policy(cell: st.Generated, tmp_path: Path) -> None:
    def experiment(*more: tuple[str, Any]) -> st.Experiment:
        return st.Experiment(tmp_path / "experiment", cell, policies=dict([("mine", FirstFit), *more]), end=END)

    first = experiment()
    for table in ("runs", "classes", "requests"):
        with pytest.raises(ConfigError, match=r"not begun; call run\(\)"):
            getattr(first, table)
    first.run(jobs=1)
    times = (first.folder / "times.jsonl").read_text()
    experiment().run(jobs=1)
    assert (first.folder / "times.jsonl").read_text() == times
    both = experiment(("published", {"preset": "published", "settings": {"policy": {"patience": 30}}})).run(jobs=1)
    assert both.runs["policy"].to_list() == ["mine", "published"]
    mine = both.requests.filter(pl.col("policy") == "mine").drop("workload", "hosts", "policy", "seed")
    seed = int(both.runs["seed"][0])
    assert mine.equals(st.simulate(cell, policy=FirstFit, end=END, seed=seed).requests)
    page = st.report(both, tmp_path / "report.html", export=tmp_path / "figures")
    assert "mine" in page.read_text()
    assert (tmp_path / "figures" / "availability.svg").exists()
    assert both.report(tmp_path / "again.html").read_bytes() == page.read_bytes()
    assert both.plot("penalties", width=180) is not None


class OfThisTest:
    def decide(self, view: object, now: float) -> None: ...


def test_a_mistake_is_told_before_the_first_run(cell: st.Generated, tmp_path: Path) -> None:
    class Local:
        def decide(self, view: object, now: float) -> None: ...

    def run(**asked: Any) -> None:
        st.Experiment(tmp_path / "experiment", **{"workloads": cell, "end": END, **asked}).run()

    with pytest.raises(ConfigError, match=r"expected one at the top of a \.py file"):
        run(policies={"mine": Local})
    with pytest.raises(ConfigError, match="expected its class"):
        run(policies={"mine": FirstFit()})
    with pytest.raises(ConfigError, match="did you mean 'priority'"):
        run(policies=["prioritty"])
    with pytest.raises(ConfigError, match="expected a list of names"):
        run(policies="priority")
    with pytest.raises(ConfigError, match="end: found 'soon'"):
        run(end="soon")
    with pytest.raises(ConfigError, match=r"end: found .*timedelta64\(1,'M'\), expected a length of time"):
        run(end=np.timedelta64(1, "M"))
    with pytest.raises(ConfigError, match=r"found two called 'FirstFit', expected different names; give a mapping"):
        run(policies=[FirstFit, type("FirstFit", (), {})])
    for seeds in (None, 1.5, True, 0, "3", [1.5], [True]):
        with pytest.raises(ConfigError, match="seeds: found"):
            run(seeds=seeds)
    for exclude in ("abc", ["abc"], {"policy": "priority"}, 5):
        with pytest.raises(ConfigError, match=r"exclude: found .*, expected a list of combinations"):
            run(exclude=exclude)
    with pytest.raises(ConfigError, match="under 'seeds' at the top"):
        run(simulation_seed=3)
    with pytest.raises(ConfigError, match="hosts: found none"):
        run(workloads={"one": cell, "two": cell})
    with pytest.raises(InputError, match=r"workload, row 0: cpu: found '-1\.0'"):
        run(workloads=cell.workload.with_columns(cpu=pl.lit(-1.0)), hosts=cell.hosts)
    with pytest.raises(InputError, match=r"experiment\.json"):
        st.Experiment(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="workloads: found none"):
        st.Experiment(tmp_path / "nothing", hosts=cell.hosts, end=60)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("")
    with pytest.raises(OutputError, match=r"chapter\.tex"):
        st.Experiment(tmp_path / "thesis", cell)


def test_policies_are_listed_as_classes_and_seeds_counted_by_numpy(cell: st.Generated, tmp_path: Path) -> None:
    seeds: list[Any] = [np.int64(2), np.arange(2)]
    asked = st.Experiment(tmp_path / "experiment", cell, policies=["priority", FirstFit], seeds=seeds[0], end=60)
    assert asked.run(jobs=1).runs["policy"].to_list() == ["priority", "FirstFit"] * 2
    ranged = st.Experiment(tmp_path / "ranged", cell, policies=["priority"], seeds=seeds[1], end=60)
    assert ranged.run(jobs=1).runs["seed"].to_list() == [0, 1]


PROGRAM = """
import slacktide as st
from slacktide.api import configuring
from own_policy import FirstFit
class Mine(FirstFit):
    pass
def main():
    made = st.Experiment("e", st.generate("cell", hosts=20, requests=300), policies={"mine": Mine}, end=60)
    print(made.run(jobs=1))
"""


def test_a_program_may_have_the_policy_of_its_experiment_in_it(tmp_path: Path) -> None:
    (tmp_path / "own_policy.py").write_text(Path(FILE).read_text())

    def told(ending: str) -> str:
        (tmp_path / "mine.py").write_text(PROGRAM + ending)
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        words = [sys.executable, "mine.py"]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    assert "belongs under: if __name__ == '__main__':" in told("main()\n")
    assert "1 of 1 runs are done" in told("if __name__ == '__main__':\n    main()\n")


def test_a_plan_takes_a_class_and_per_cent(cell: st.Generated) -> None:
    low: dict[str, float | str] = {"gold": "10%", "silver": 0.1, "bronze": np.float64(0.1)}
    found = st.plan(cell, policies=[FirstFit], target=low, end=60, within=10, most=40, curve=False, jobs=1)
    assert list(found.hosts) == ["FirstFit"]


def test_failed_runs_are_told_and_others_are_done(cell: st.Generated, tmp_path: Path) -> None:
    policies = {"priority": "priority", "broken": OfThisTest}
    asked = st.Experiment(tmp_path / "experiment", cell, policies=policies, end=END)  # type: ignore[arg-type]
    with pytest.raises(RunsError, match=r"1 of 2 runs failed, the others are done.*broken"):
        asked.run(jobs=1)
    alone = st.Experiment(tmp_path / "alone", cell, policies={"broken": OfThisTest}, end=END)  # type: ignore[dict-item]
    with pytest.raises(RunsError, match=r"1 of 1 runs failed\. The first"):
        alone.run(jobs=1)
    with pytest.raises(ConfigError, match="no run is finished"):
        alone.classes  # noqa: B018
    assert asked.runs["done"].to_list() == [True, False]
    assert asked.runs["error"][1]
    assert set(asked.classes["policy"]) == {"priority"}


def test_an_interrupted_experiment_goes_on(cell: st.Generated, tmp_path: Path) -> None:
    asked = st.Experiment(tmp_path / "experiment", cell, policies=["priority", "recommended"], seeds=20, end="1h")

    def interrupt() -> None:
        while not (over.is_set() or any((asked.folder / "runs").glob("[!.]*/manifest.json"))):
            time.sleep(0.01)
        while not over.is_set():  # an interrupt that comes while Python runs a finalizer is lost, and a user repeats it
            os.kill(os.getpid(), signal.SIGINT)
            over.wait(5.0)

    over, watching = threading.Event(), threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever another test has left
    watching.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            asked.run(jobs=2)
    finally:
        over.set()
        watching.join()
        signal.signal(signal.SIGINT, before)
    done = asked.runs["done"]
    assert 0 < done.sum() < len(done)
    kept = {one: one.stat().st_mtime_ns for one in (asked.folder / "runs").glob("[!.]*/manifest.json")}
    asked.run(jobs=2)
    assert asked.runs["done"].all()
    assert {one: one.stat().st_mtime_ns for one in kept} == kept
    assert not list(asked.folder.rglob("*.part*"))


@pytest.mark.slow
def test_a_plan_is_that_of_the_command_line(cell: st.Generated, folder: Path, tmp_path: Path) -> None:
    inputs = [str(folder / name) for name in ("workload.parquet", "hosts.parquet")]
    targets = {"gold": 0.9, "silver": 0.8, "bronze": 0.5}
    words = [word for name, share in targets.items() for word in ("--target", f"{name}={share}")]
    policies = ["--policy", "priority", "--policy", "recommended"]
    out = ["--end", "600", "--within", "3", "--out", str(tmp_path / "by-command")]
    assert main(["plan", *inputs, *words, *policies, *out]) == 0
    named = ("priority", "recommended")
    found = st.plan(cell.workload, cell.hosts, named, target=targets, end="10m", within=3, folder=tmp_path / "by-api")
    theirs = pl.read_parquet(tmp_path / "by-command" / "plan.parquet")
    assert found.curve.equals(theirs)
    said = json.loads((tmp_path / "by-command" / "plan.json").read_text())["policies"]
    assert found.hosts == {name: one["hosts"] for name, one in said.items()}
    assert (tmp_path / "by-api" / "plan.json").exists()
    assert "recommended" in repr(found)
    assert found.plot(width=85).get_size_inches()[0] == pytest.approx(85 / 25.4)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"target": {"golden": 1.0}}, "target: found 'golden', expected {CLASS: SHARE} with CLASS one of gold"),
        ({"target": {"gold": 1.5}}, "target gold: found 1.5, expected a share from 0 to 1"),
        ({"target": {"gold": 1.0}, "penalty": 3.0}, "two goals"),
        ({"penalty": -1.0}, "penalty: found -1.0"),
        ({"policies": ["prioritty"]}, "plan: prioritty"),
        ({"policies": []}, "plan: policies: found none"),
        ({"policies": "priority"}, "expected a list of names"),
        ({"policy_patience": "x"}, "plan: policy.patience: found 'x'"),
        ({"seeds": 0}, "plan: seeds: found 0, expected a whole number from 1 on"),
        ({"seeds": True}, "plan: seeds: found True"),
        ({"within": 0}, "plan: within: found 0"),
        ({"most": 0}, "plan: most: found 0"),
        ({"target": [1]}, "plan: target: found [1], expected shares by class"),
        ({"policies": [FirstFit, type("FirstFit", (), {})]}, "plan: policies: found two called 'FirstFit'"),
    ],
)
def test_a_plan_refuses_at_once_what_it_cannot_do(asked: dict[str, Any], told: str, cell: st.Generated) -> None:
    with pytest.raises(ConfigError) as error:
        st.plan(cell, end=60, **asked)
    assert told in str(error.value)
