"""``slacktide plan`` on workloads whose answer is known by counting."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from slacktide import drawing
from slacktide.cli import main
from slacktide.experiment import curve
from slacktide.experiment.goals import Goal
from slacktide.experiment.grid import FromFile, Grid, WorkloadEntry
from slacktide.experiment.planning import WORKLOAD, Answer, Question, _likely
from slacktide.results import experiment


def workload(folder: Path, *classes: tuple[str, int], cpu: float = 1.0) -> Path:
    """Endless requests of so many of each class, one a second, of one unit of CPU."""
    lines = ["id,admission,duration,cpu,memory,class"]
    for name, count in classes:
        lines += [f"{len(lines) + k},{len(lines) + k - 1},,{cpu},0,{name}" for k in range(count)]
    (folder / "w.csv").write_text("\n".join(lines) + "\n")
    return folder / "w.csv"


def hosts(folder: Path, *capacities: int) -> Path:
    lines = [f"{number},h{number},{cpu},1" for number, cpu in enumerate(capacities, 1)]
    (folder / "h.csv").write_text("\n".join(["id,name,cpu,memory", *lines]) + "\n")
    return folder / "h.csv"


def plan(folder: Path, *words: str, end: int = 600) -> dict[str, Any]:
    command = ["plan", str(folder / "w.csv"), str(folder / "h.csv"), "--out", str(folder / "plan"), "--end", str(end)]
    assert main([*command, "--jobs", "2", *words]) == 0
    found = json.loads((folder / "plan" / "plan.json").read_text())
    assert isinstance(found, dict)
    return found


@pytest.fixture
def undrawn(in_process: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    """For tests that ask for the numbers of a plan: to draw one takes ten times as long as its runs."""
    monkeypatch.setattr(curve, "drawn", lambda *_: None)
    for name, nothing in (("svg", ""), ("alone", ""), ("png", b""), ("pdf", b"")):
        monkeypatch.setattr(drawing, name, lambda *_, nothing=nothing, **__: nothing)


def test_23_endless_requests_of_which_a_host_takes_4_need_6_hosts(tmp_path: Path) -> None:
    workload(tmp_path, ("gold", 23))
    hosts(tmp_path, 4, 4)
    found = plan(tmp_path, "--policy", "priority", "--policy", "recommended")
    for one in found["policies"].values():
        assert (one["hosts"], one["fails"], one["scale"]) == (6, 5, 3.0)  # 23 / 4, rounded up
        assert one["capacity"]["cpu"] == 24
        assert {3, 4, 5, 6, 7, 8} <= set(one["tested"])  # its neighbours, and half of it for the curve

    table = pq.read_table(tmp_path / "plan" / "plan.parquet").to_pylist()
    curve = list(csv.DictReader((tmp_path / "plan" / "plan.csv").read_text().splitlines()))
    assert [(row["policy"], int(row["hosts"]), row["class"]) for row in curve] == [
        (row["policy"], row["hosts"], row["class"]) for row in table
    ]
    for row in table:
        assert row["meets"] == (row["hosts"] >= 6)
        if row["class"] == "all":
            assert (row["penalty"] == 0) == row["meets"]
        if row["policy"] == "priority" and row["class"] == "gold":
            # Whoever has a place keeps it: so many of 23 as there are places.
            assert row["fulfilment"] == pytest.approx(min(4 * row["hosts"], 23) / 23)
    for name, begins in (("plan.svg", b"<?xml"), ("plan.png", b"\x89PNG")):
        assert (tmp_path / "plan" / name).read_bytes().startswith(begins)

    # The same again does no run again, and a rougher question uses what is there.
    before = {one.name: one.stat().st_mtime for one in (tmp_path / "plan" / "runs").iterdir()}
    assert plan(tmp_path, "--policy", "priority", "--policy", "recommended")["policies"] == found["policies"]
    assert {one.name: one.stat().st_mtime for one in (tmp_path / "plan" / "runs").iterdir()} == before
    runs = experiment.read(tmp_path / "plan").runs
    assert {one.hosts for one in runs} >= {"5 hosts", "6 hosts"}
    assert all(one.folder is not None for one in runs)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("host", ["h2", "2"])
def test_one_host_more_is_needed_where_one_fails_in_every_size(tmp_path: Path, host: str) -> None:
    """N - 1: who lost his place finds another at once; without it nobody has one until the repair."""
    workload(tmp_path, ("gold", 23))
    hosts(tmp_path, 4, 4)
    (tmp_path / "events.csv").write_text(f"time,host,event\n120,{host},fail\n500,{host},repair\n")
    common = ("--policy", "priority", "--cold", "constant:0", "--target", "gold=1", "--no-curve")
    assert plan(tmp_path, *common)["policies"]["priority"]["hosts"] == 6
    found = plan(tmp_path, *common, "--host-events", str(tmp_path / "events.csv"))["policies"]["priority"]
    assert (found["hosts"], found["fails"]) == (7, 6)
    done = experiment.read(tmp_path / "plan").done
    assert {run.manifest()["totals"]["completed"] for run in done} == {0}
    (tmp_path / "events.csv").write_text("time,host,event\n120,h9,fail\n")
    words = ["--end", "600", "--out", str(tmp_path / "other"), "--host-events", str(tmp_path / "events.csv")]
    assert main(["plan", str(tmp_path / "w.csv"), str(tmp_path / "h.csv"), *words]) == 3


def test_a_target_below_1_needs_as_many_places_as_it_says(tmp_path: Path) -> None:
    # Half of 20 bronze requests are 10; with 10 gold ones that come first these are 20 places, 5 hosts of 4.
    workload(tmp_path, ("gold", 10), ("bronze", 20))
    hosts(tmp_path, 4)
    words = ("--policy", "priority", "--target", "bronze=0.5")
    one = plan(tmp_path, *words)["policies"]["priority"]
    assert (one["hosts"], one["fails"]) == (5, 4)


@pytest.mark.usefixtures("undrawn")
def test_a_budget_is_met_where_what_is_owed_is_no_more(tmp_path: Path) -> None:
    # Who does not run by the end of 100 s, admitted at t, is owed D (1 - t...) * 2 of its CPU: the last of 5 gold
    # requests (admitted at 4 s) on 4 places 1.0 * 96 s * (1 + 1.0) = 192 cpu-seconds.
    workload(tmp_path, ("gold", 5))
    hosts(tmp_path, 1)
    for budget, count in (("0", 5), ("191", 5), ("192", 4)):
        one = plan(tmp_path, "--policy", "priority", "--penalty", budget, end=100)["policies"]["priority"]
        assert (one["hosts"], one["fails"]) == (count, count - 1)


@pytest.mark.usefixtures("undrawn")
def test_a_mix_grows_in_proportion(tmp_path: Path) -> None:
    # Kinds of 1 and 3 cores stand in turn: 4 cores for every two hosts.
    workload(tmp_path, ("silver", 12))
    hosts(tmp_path, 1, 1, 3, 3)
    one = plan(tmp_path, "--policy", "priority")["policies"]["priority"]
    assert (one["hosts"], one["capacity"]["cpu"]) == (6, 12)


@pytest.mark.usefixtures("in_process")
def test_a_target_that_no_number_of_hosts_meets_is_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workload(tmp_path, ("gold", 2), cpu=5)
    hosts(tmp_path, 4, 4)
    command = ["plan", str(tmp_path / "w.csv"), str(tmp_path / "h.csv"), "--out", str(tmp_path / "p"), "--end", "60"]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "target gold=1: 2 of 2 requests of this class fit none of the hosts" in told
    assert "request 1 (asks for cpu 5, memory 0" in told
    assert "At most 0 can be reached" in told
    assert not (tmp_path / "p" / "experiment.json").exists()


@pytest.mark.usefixtures("undrawn")
def test_what_is_not_met_with_the_most_hosts_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload(tmp_path, ("gold", 9))
    hosts(tmp_path, 1)
    one = plan(tmp_path, "--policy", "priority", "--most", "4")["policies"]["priority"]
    assert (one["hosts"], one["fails"], one["tested"]) == (None, 4, [1, 2, 4])
    assert "not met with 4 hosts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--target", "golld=1"], "did you mean 'gold'"),
        (["--target", "gold=2"], "expected a share from 0 to 1"),
        (["--target", "gold=101%"], "found '101%', expected a share from 0 to 1, such as 0.9 or 90%"),
        (["--target", "gold=x"], "found 'x', expected a share from 0 to 1"),
        (["--target", "gold=1", "--penalty", "0"], "two goals"),
        (["--policy", "prority"], "prority"),
        (["--penalty", "inf"], "found inf, expected cpu-seconds"),
        (["--penalty", "nan"], "found nan, expected cpu-seconds"),
        (["--target", "gold=1", "--target", "gold=0.5"], "--target gold: given twice"),
        (["--approach", "aggregated"], "it needs --group-by job"),
    ],
)
def test_wrong_words_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    workload(tmp_path, ("gold", 1))
    hosts(tmp_path, 1)
    command = ["plan", str(tmp_path / "w.csv"), str(tmp_path / "h.csv"), "--out", str(tmp_path / "p"), "--end", "60"]
    assert main([*command, *words]) in (2, 4)
    assert told in capsys.readouterr().err


@pytest.mark.usefixtures("undrawn")
def test_rows_of_a_job_can_be_one_request(tmp_path: Path) -> None:
    # A job of four that is measured by all of its instances at once needs four places, as the rows alone do; its
    # fulfilment is that of one request.
    rows = [f"{k},0,,1,0,gold,7" for k in range(1, 5)]
    (tmp_path / "w.csv").write_text("\n".join(["id,admission,duration,cpu,memory,class,job", *rows]) + "\n")
    hosts(tmp_path, 1)
    words = ("--policy", "priority", "--group-by", "job", "--approach", "concurrent")
    assert plan(tmp_path, *words)["policies"]["priority"]["hosts"] == 4
    manifests = [one.manifest() for one in experiment.read(tmp_path / "plan").done]
    assert {one["totals"]["requests"] for one in manifests} == {1}
    path = experiment.read(tmp_path / "plan").done[0].folder
    assert path is not None
    plan(tmp_path, "--policy", "priority", "--config", str(path / "manifest.json"))  # groups them so again
    assert {one.manifest()["totals"]["requests"] for one in experiment.read(tmp_path / "plan").done} == {1}


@pytest.mark.usefixtures("in_process")
def test_equal_plans_leave_equal_files_and_no_grid_of_an_earlier_experiment(tmp_path: Path) -> None:
    workload(tmp_path, ("gold", 2))
    hosts(tmp_path, 2)
    names = ("plan.svg", "plan.png", "plan.csv", "plan.parquet")
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "grid.yaml").write_text("of an experiment")
    found = []
    for _ in range(2):
        plan(tmp_path, "--policy", "priority", "--no-curve")
        found.append([(tmp_path / "plan" / name).read_bytes() for name in names])
    assert found[0] == found[1]
    assert not (tmp_path / "plan" / "grid.yaml").exists()


def test_what_is_told_is_of_the_whole_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload(tmp_path, ("gold", 23))
    hosts(tmp_path, 4, 4)
    tested = len(plan(tmp_path, "--policy", "priority")["policies"]["priority"]["tested"])
    told = [line for line in capsys.readouterr().err.splitlines() if " runs" in line]
    assert told[0].startswith("slacktide: 0 of about ")
    assert told[-1].startswith(f"slacktide: {tested} of {tested} runs, took ")


def test_runs_to_come_are_those_of_an_answer_in_the_middle_of_what_is_left() -> None:
    origin = WorkloadEntry(FromFile(Path("w.csv")), None)
    grid = Grid(workloads={WORKLOAD: origin}, hosts={}, policies={}, seeds=2, base_seed=0, end=600.0)
    question = Question(grid, Goal({}), [], curve=False)
    # 8 hosts do not do, 16 are next. If 12 are the answer: 12, 10 and 11 are looked at, and two sizes above it.
    later = _likely(question, Answer("priority", does={8: False}), 8, 64)
    assert [one.hosts for one in later] == [f"{size} hosts" for size in (12, 10, 11, 13, 14) for _ in range(2)]
    assert _likely(question, Answer("priority", does={8: False, 9: True, 10: True, 7: False}), 8, 64) == []


@pytest.mark.slow
@pytest.mark.usefixtures("in_process")
def test_a_promise_over_windows_needs_hosts_by_its_worst_window(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bronze is away for 120 of 600 s: that keeps half of its life, and of no window of two minutes."""
    (tmp_path / "w.csv").write_text(
        "id,admission,duration,cpu,memory,class\n1,0,,1,0,bronze\n2,300,120,1,0,gold\n", encoding="utf-8"
    )
    hosts(tmp_path, 1)
    (tmp_path / "over.yaml").write_text(
        "classes:\n  - {name: gold, slo: 1.0, rank: 1}\n  - {name: bronze, slo: 0.5, rank: 2, window: {rolling: 2m}}\n",
        encoding="utf-8",
    )
    (tmp_path / "life.yaml").write_text((tmp_path / "over.yaml").read_text().replace(", window: {rolling: 2m}", ""))
    for goal in (("--target", "bronze=1"), ("--penalty", "0")):
        found = {}
        for name in ("life", "over"):
            folder = tmp_path / f"{name}{goal[0]}"
            folder.mkdir()
            for file in ("w.csv", "h.csv"):
                (folder / file).write_text((tmp_path / file).read_text())
            found[name] = plan(folder, "--policy", "priority", "--config", str(tmp_path / f"{name}.yaml"), *goal)
            said = "each request judged by its worst window: bronze (rolling 2m)." in capsys.readouterr().out
            assert said == (name == "over")
        assert {name: one["policies"]["priority"]["hosts"] for name, one in found.items()} == {"life": 1, "over": 2}
        assert found["over"]["windows"] == {"bronze": "rolling 2m"}
    rows = pq.read_table(folder / "plan" / "plan.parquet").to_pylist()
    assert {row["class"]: row["window"] for row in rows} == {"gold": None, "bronze": "rolling 2m", "all": None}
    assert "rolling 2m" in (folder / "plan" / "plan.svg").read_text()
