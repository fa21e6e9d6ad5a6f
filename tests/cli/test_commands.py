"""The commands as a user runs them: exit codes, one message, no traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import slacktide
from slacktide.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str | Path) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


@pytest.fixture
def small(run: Run, tmp_path: Path) -> Path:
    assert run("generate", "validation-1", "--out", tmp_path / "small")[0] == 0
    return tmp_path / "small"


def test_version_and_help(run: Run) -> None:
    assert run("--version")[1].strip() == f"slacktide, version {slacktide.__version__}"
    for command in ("simulate", "generate", "inspect", "policies", "settings"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"slacktide {command}" in out


def test_the_exit_codes_in_the_help_are_those_returned() -> None:
    from slacktide.cli import EXIT_CODES, INTERRUPTED, app

    for code in (*EXIT_CODES.values(), INTERRUPTED):
        assert f"\n  {code} " in (app.help or "").replace("      ", "  ").replace("    ", "  ")


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["simulate"], 2, "WORKLOAD"),
        (["simulat"], 2, "simulat"),
        (["simulate", "w.csv", "h.csv", "--set", "policy.patienec=3"], 2, "'patience'"),
        (["simulate", "w.csv", "h.csv", "--preset", "paper"], 2, "published"),
        (["simulate", "w.csv", "h.csv", "--end", "-3"], 2, "simulation.end"),
        (["simulate", "w.csv", "h.csv", "--seed", "x"], 2, "simulation.seed"),
        (["simulate", "w.csv", "h.csv", "--config", "none.yaml"], 2, "none.yaml"),
        (["plan", "w.csv", "none.csv", "--out", "p"], 3, "an existing file"),
        (["simulate", "none.csv", "h.csv"], 3, "an existing file"),
        (["openslo", "import", "none.yaml"], 3, "an existing file"),
        (["simulate", "w.csv", "h.csv", "--events"], 2, "--out"),
        (["simulate", "missing.csv", "h.csv"], 3, "missing.csv"),
        (["simulate", "missing.txt", "h.csv"], 3, "missing.txt"),
        (["inspect", "missing.parquet"], 3, "missing.parquet"),
        (["generate", "validation1", "--out", "x"], 2, "'validation-1'"),
        (["generate", "cell"], 2, "--out"),
        (["generate", "cell", "--out", "x", "--set", "host=3"], 2, "'hosts'"),
        (["generate", "cell", "--out", "x", "--set", "hosts"], 2, "KEY=VALUE"),
        (["generate", "cell", "--out", "x", "--seed", "-1"], 2, "seed"),
    ],
)
def test_mistakes_are_one_message_and_the_right_exit_code(run: Run, words: list[str], code: int, part: str) -> None:
    ended, out, err = run(*words)
    assert (ended, out) == (code, "")
    assert part in err


def test_a_foreign_directory_is_refused_before_anything_is_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = run("simulate", "missing.csv", "missing.csv", "--out", tmp_path)
    assert code == 5
    assert "mine.txt" in err
    assert run("generate", "cell", "--out", tmp_path)[0] == 5
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]


def test_generated_files_are_repeated_by_their_seed(run: Run, tmp_path: Path) -> None:
    for name, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        assert run("generate", "validation-1", "--seed", seed, "--out", tmp_path / name)[0] == 0
    first, same, other = ((tmp_path / name / "workload.parquet").read_bytes() for name in "abc")
    assert first == same != other
    assert json.loads((tmp_path / "c" / "manifest.json").read_text())["seed"] == 4


def test_generators_and_their_parameters_are_listed(run: Run) -> None:
    out = run("generate")[1]
    assert "validation-1:" in out
    assert "hosts=" in out


def test_inspect_knows_workloads_from_hosts(run: Run, small: Path) -> None:
    workload, hosts = small / "workload.parquet", small / "hosts.parquet"
    assert set(json.loads(run("inspect", workload, "--json")[1])) == {"workload"}
    assert set(json.loads(run("inspect", hosts, "--json")[1])) == {"hosts"}
    both = json.loads(run("inspect", hosts, workload, "--json", "--bins", "4")[1])
    assert both["workload"]["classes"]["bronze"]["requests"] == 96
    assert both["hosts"]["capacity"]["cpu"] == 75.0
    assert len(both["demand_over_time"]["start"]) == 4
    assert both["unsatisfiable"] == {"terms": [], "too_large": {"requests": 0, "first_ids": []}}


def test_inspect_tells_people_what_can_never_run(run: Run, tmp_path: Path) -> None:
    workload, hosts = tmp_path / "w.csv", tmp_path / "h.csv"
    workload.write_text(
        "id,admission,duration,cpu,memory,class,constraints\n1,0,10,1,1,gold,zone==b\n2,0,10,9,1,gold,\n3,5,10,1,1,gold,\n"
    )
    hosts.write_text("id,name,cpu,memory,attributes\n1,one,4,4,zone=a\n")
    code, out, err = run("inspect", workload, hosts)
    assert code == 0, err
    assert "No host satisfies the constraints of 1 request" in out
    assert "Larger than every host they may use: 1 request (ids 2)" in out
    assert run("inspect", workload, workload)[0] == 2
    workload.write_text("id,admission,duration,cpu,memory,class,namespace,name\n2,0,10,9,1,gold,shop,web\n")
    assert "1 request (ids 2 shop/web)" in run("inspect", workload, hosts)[1]


def test_requests_from_before_the_run_are_taken_and_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("id,admission,duration,cpu,memory,class\n1,-7200,,1,1,gold\n2,5,,1,1,silver\n")
    (tmp_path / "h.csv").write_text("id,name,cpu,memory\n1,a,8,8\n")
    files = tmp_path / "w.csv", tmp_path / "h.csv"
    told = "1 request was there before the run, for up to 2h (admissions below 0): all time since"
    said = run("inspect", *files)[1].replace("\n", " ")
    assert told in said
    assert "at 2 instants, 1 of them before or at 0" in said
    code, _, err = run("simulate", *files, "--end", "60")
    assert code == 0
    assert told in err.replace("\n", " ")


def test_one_of_a_thing_is_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("id,admission,duration,cpu,memory,class\n1,0,5,1,1,gold\n")
    (tmp_path / "h.csv").write_text("id,name,cpu,memory\n1,a,8,8\n")
    files = tmp_path / "w.csv", tmp_path / "h.csv"
    for out in (run("inspect", *files)[1], run("simulate", *files)[1]):
        assert not re.search(r"\b1 (request|host|job|instant|demand|term|placement|operation|passe|attribute)s\b", out)


def test_jobs_whose_instances_take_turns_are_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(
        "id,admission,duration,cpu,memory,class,kind,completions,parallelism\n"
        "1,0,5,1,1,gold,batch,4,\n2,0,5,1,1,gold,batch,1,\n3,0,5,1,1,gold,batch,4,2\n4,0,5,1,1,gold,batch,2,1\n"
    )
    (tmp_path / "h.csv").write_text("id,name,cpu,memory\n1,a,8,8\n")
    files = tmp_path / "w.csv", tmp_path / "h.csv"
    told = "2 batch requests run their instances one after the other: parallelism is 1"
    assert told in run("inspect", *files)[1].replace("\n", " ")
    assert told in run("simulate", *files)[2].replace("\n", " ")


def test_settings_lists_what_set_takes(run: Run) -> None:
    assert "policy.patience = 60  [seconds or duration, from 0 to 8,589,934,592]" in run("settings")[1]
    assert run("settings", "--markdown")[1].startswith("# Settings")


def test_a_reader_that_goes_away_is_no_error() -> None:
    words = [sys.executable, "-c", "import sys; from slacktide.cli import main; sys.exit(main())", "settings"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_generated_parquet_is_read_by_others(small: Path) -> None:
    assert pq.read_table(small / "workload.parquet").num_rows == 256
