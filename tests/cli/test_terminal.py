"""What a terminal shows: widths, colour, help, suggestions, completion, JSON, and errors that say what to type."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slacktide.cli import GROUPS, app, main
from slacktide.cli.cluster.top_rows import HEAD, Line, fitting
from slacktide.cli.plugin import COMMANDS
from slacktide.cli.plugin import main as plugin
from slacktide.cli.plugin.completing import FILES, NO_FILES
from slacktide.cli.plugin.completing import main as plugin_completing
from slacktide.cli.text import paint, table, width_of

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*words: str | Path) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, err

    return called


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("terminal") / "light"
    assert main(["generate", "light", "--set", "hosts=5", "--set", "requests=50", "--out", str(folder)]) == 0
    return folder / "workload.parquet", folder / "hosts.parquet"


# -- width and colour --------------------------------------------------------------------------------------------------


def test_a_table_that_is_too_wide_wraps_heads_then_gaps_then_its_widest_text() -> None:
    head, rows = ("name", "what it is", "number of things"), [("a", "b" * 5 + " " + "c" * 20, "1")]
    assert table(head, rows, left=2, width=80).splitlines()[0] == "name  what it is                  number of things"
    heads = table(head, rows, left=2, width=45).splitlines()[:-1]
    assert [line.split() for line in heads] == [["what", "number"], ["it", "of"], ["name", "is", "things"]]
    narrow = table(head, rows, left=2, width=32).splitlines()
    assert max(map(len, narrow)) <= 32
    assert "c" * 20 in "".join(line.strip() for line in narrow)


def test_in_a_pipe_a_row_is_a_line_however_long(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    head, rows = ("name", "what it is"), [("a", "b " * 80), ("c", "d")]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(table(head, rows, left=2).splitlines()) == 3
    assert next(line for line in run("policies")[1].splitlines() if line.startswith("hybrid")).count(" ") > 8
    monkeypatch.setenv("COLUMNS", "80")
    assert len(table(head, rows, left=2).splitlines()) > 3
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert len(table(head, rows, left=2).splitlines()) > 3


def test_colours_take_no_room_and_are_there_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paint("Missed", "bad") == "Missed"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    shown = paint("Missed", "bad")
    assert "\x1b[" in shown
    assert width_of(shown) == 6
    coloured = table(("state", "n"), [(shown, "1"), ("Kept", "12")]).splitlines()
    assert len({width_of(line) for line in coloured}) == 1
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as context:
            context.setenv(name, value)
            assert paint("Missed", "bad") == "Missed"


@pytest.mark.parametrize("words", [["simulate", "{w}", "{h}"], ["inspect", "{w}", "{h}"], ["policies"], ["settings"]])
def test_what_commands_print_fits_80_columns(
    words: list[str], inputs: tuple[Path, Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    filled = [word.format(w=inputs[0], h=inputs[1]) for word in words]
    code, out, _ = run(*filled)
    assert code == 0
    assert "\x1b" not in out
    wide = [line for line in out.splitlines() if len(line) > 80]
    assert [line for line in wide if "[" not in line] == []  # a setting's allowed values stay on a line, for grep


def test_top_leaves_out_what_is_least_urgent_until_it_fits() -> None:
    row = Line("team", "web", "gold", 0.9, 0.8, 12.0, "Kept", 3, 0, 1, 0, 0, (1.0, 2.0, 3.0)).cells()
    for width in (60, 80, 100, 400):
        places = fitting([row], width)
        shown = table([HEAD[at] for at in places], [[row[at] for at in places]], left=3, width=400)
        assert len(shown.splitlines()[0]) <= width
    assert [HEAD[at] for at in fitting([row], 400)] == list(HEAD)
    assert {"WORKLOAD", "DELIVERED", "SLACK", "STATE"} <= {HEAD[at] for at in fitting([row], 60)}


# -- help and completion -----------------------------------------------------------------------------------------------


def test_the_help_has_one_line_for_each_command_and_cuts_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = run("--help")[1]
    for lines in GROUPS.values():
        for name, text in lines.items():
            assert re.search(rf"^  {name} +{re.escape(text)}$", out, re.MULTILINE), name
    assert "..." not in out.partition("Simulate:")[2]
    assert max(map(len, out.splitlines())) <= 84
    for group in ("trace", "experiment", "lab", "openslo", "netprobe", "ledger", "edge"):
        assert "..." not in run(group, "--help")[1].partition("Commands:")[2], group


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulat"], "Did you mean simulate?"),
        (["trace", "smaple"], "Did you mean sample or scale?"),
        (["lab", "stauts"], "Did you mean status?"),
        (["simulate", "--polciy", "x"], "--policy"),
        (["generate", "cel", "--out", "x"], "did you mean 'cell'?"),
        (["lab", "qqqq"], "There are binaries, down, status, up."),
    ],
)
def test_a_mistyped_word_is_answered_with_the_right_one(words: list[str], said: str, run: Run) -> None:
    code, _, err = run(*words)
    assert code == 2
    assert said in err


def test_the_plugin_of_kubectl_answers_with_the_right_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert plugin(["qoute", "-f", "web.yaml"]) == 2
    assert "Did you mean quote?" in capsys.readouterr().err


def completed(line: str) -> list[str]:
    """What bash would be offered for the last word of a line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_SLACKTIDE_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", "from slacktide.cli import main; main()"], env={**os.environ, **asked},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return [one.partition(",")[2] for one in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("slacktide sim", ["simulate"]),
        ("slacktide simulate --policy pri", ["priority"]),
        ("slacktide plan --policy pub", ["published", "published-tuned"]),
        ("slacktide generate validation-", ["validation-1", "validation-2", "validation-3"]),
        ("slacktide generate cell --set hos", ["hosts="]),
        (
            "slacktide simulate --set policy.overload=",
            ["policy.overload=share", "policy.overload=triage", "policy.overload=plan"],
        ),
        ("slacktide simulate --set qos.sta", ["qos.startup="]),
        ("slacktide lab st", ["status"]),
        ("slacktide trace convert go", ["google2011", "google2019"]),
        ("slacktide trace convert openb --set cap", ["capacity="]),
    ],
)
def test_words_are_completed(line: str, some: list[str]) -> None:
    assert completed(line) == some


@pytest.mark.parametrize(
    ("words", "some", "directive"),
    [
        (["ex"], ["explain\tSays why a pod is where it is, waits, or was preempted."], NO_FILES),
        (["top", "--sort", "sl"], ["slack"], NO_FILES),
        (["top", "--on"], ["--once\tPrint the table once; so is it where the output is no terminal."], NO_FILES),
        (["quote", "-f", "web"], [], FILES),
        (["qoute", "x"], [], NO_FILES),
    ],
)
def test_words_behind_kubectl_slack_are_completed_as_cobra_wants_them(
    words: list[str], some: list[str], directive: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plugin_completing(words) == 0
    assert capsys.readouterr().out.splitlines() == [*some, f":{directive}"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on the PATH")
def test_kubectl_finds_what_completes_our_words(tmp_path: Path) -> None:
    """It looks for a program of a certain name, which the wheel has to install."""
    scripts = Path(sys.executable).parent
    asked = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "KUBECONFIG": str(tmp_path / "none")}
    done = subprocess.run(
        ["kubectl", "__complete", "slack", "wh"], env={**os.environ, **asked}, capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout.splitlines() == [f"why\t{COMMANDS['why']}", f":{NO_FILES}"]
    assert "ShellCompDirectiveNoFileComp" in done.stderr


def test_the_completion_of_each_shell_is_printed(run: Run) -> None:
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = run("completion", shell)
        assert code == 0
        assert "_SLACKTIDE_COMPLETE" in out


# -- JSON --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["simulate"], ["generate"], ["inspect"], ["plan"], ["report"], ["experiment", "run"], ["experiment", "status"],
        ["settings"], ["policies"], ["replay"], ["explain", "pod"], ["top"], ["verdict"], ["past", "audit"],
        ["lab", "up"], ["lab", "status"],
        ["lab", "binaries"], ["broker"], ["openslo", "import"], ["netprobe", "show"], ["edge", "replay"],
        *(["trace", one] for one in ("convert", "sample", "hosts", "admit", "thin", "window", "scale")),
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_that_print_a_result_print_it_as_json_too(words: list[str]) -> None:
    found: Any = app.imported(words[0])
    for word in words[1:]:
        found = found.commands[word]
    assert any("--json" in one.opts for one in found.params)


def test_json_is_all_that_stdout_has(inputs: tuple[Path, Path], run: Run, tmp_path: Path) -> None:
    assert {one["key"] for one in json.loads(run("settings", "--json")[1])} >= {"policy.patience"}
    made = json.loads(run("generate", "validation-1", "--out", tmp_path / "v", "--json")[1])
    assert {"hosts.parquet", "manifest.json", "workload.parquet"} <= {one.name for one in (tmp_path / "v").iterdir()}
    assert made["files"] == sorted(one.name for one in (tmp_path / "v").iterdir())
    grid = tmp_path / "grid.yaml"
    grid.write_text(
        f"workloads: {{few: '{inputs[0]}'}}\nhosts: {{some: '{inputs[1]}'}}\n"
        "policies: {priority: {policy: priority}, qos-driven: {policy: qos-driven}}\nend: 1m\n"
    )
    code, out, _ = run("experiment", "run", grid, "--out", tmp_path / "e", "--jobs", "1", "--json")
    assert code == 0
    rows = json.loads(out)
    places = [(one["hosts"], one["policy"], one["runs"]) for one in rows]
    assert places == [("some", "priority", 1), ("some", "qos-driven", 1)]
    assert all(0.0 <= share <= 1.0 for one in rows for share in one["kept"].values())
    code, out, _ = run("experiment", "run", grid, "--out", tmp_path / "e", "--jobs", "1")
    assert [line.split()[:3] for line in out.splitlines() if line.startswith("some")] == [
        ["some", "priority", "1"],
        ["some", "qos-driven", "1"],
    ]
    states = [one["state"] for one in json.loads(run("experiment", "status", tmp_path / "e", "--json")[1])]
    assert states == ["done", "done"]


# -- errors ------------------------------------------------------------------------------------------------------------

HOSTS = "id,name,cpu,memory\n1,a,1,1\n"
ENDLESS = "id,admission,duration,cpu,memory,class\n1,0,inf,1,1,gold\n"


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        (["simulate", "endless.csv", "h.csv"], "add --end 3600"),
        (["simulate", "h.csv", "endless.csv"], "looks like a hosts file; give the files as WORKLOAD HOSTS"),
        (["simulate", "endless.csv", "endless.csv", "--end", "1h"], "a workload; give the files as WORKLOAD HOSTS"),
        (["simulate", "semi.csv", "h.csv"], "the separator is ;: sed 'y/;,/,./' semi.csv > commas.csv"),
        (["trace", "hosts", "large.csv", "h.csv", "--out", "sets"], "--of hosts"),
        (["generate", "cell"], "such as --out cell"),
        (["plan", "endless.csv", "h.csv", "--out", "p"], "add --end 3600"),
        (["plan", "w.csv", "h.csv", "--out", "p", "--set", "failures.file=f.csv"], "an existing file"),
        (["plan", "w.csv", "h.csv", "--out", "p", "--set", "delay.network=none.yaml"], "an existing file"),
    ],
)
def test_errors_end_with_what_to_type(
    words: list[str], ends: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.csv").write_text(HOSTS)
    Path("endless.csv").write_text(ENDLESS)
    Path("w.csv").write_text(ENDLESS.replace("inf", "5"))
    Path("large.csv").write_text(ENDLESS.replace("inf,1,1", "5,7,1"))
    Path("semi.csv").write_text(ENDLESS.replace(",", ";"))
    code, _, err = run(*words)
    assert code in (2, 3)
    assert err.rstrip().endswith(ends), err
    assert "0 of" not in err, "a plan refuses before it runs anything"
    assert not Path("sets").exists()
    assert not Path("p").exists()


def test_durations_and_shares_are_taken_wherever_they_are_asked_for(
    inputs: tuple[Path, Path], run: Run, tmp_path: Path
) -> None:
    words = ["simulate", *inputs, "--json", "--end"]
    one, other = (json.loads(run(*words, end)[1]) for end in ("90", "1m30s"))
    assert one["end"] == other["end"] == 90.0
    admitted = tmp_path / "a.parquet"
    code, out, err = run("trace", "admit", *inputs, "--out", admitted, "--limit", "90%", "--json")
    assert (code, admitted.is_file()) == (0, True), err
    assert json.loads(out)["settings"]["limit"] == 0.9
    code, _, err = run("trace", "window", inputs[0], "--from", "0", "--to", "1x", "--out", tmp_path / "b.parquet")
    assert code == 2
    assert "or numbers with units w, d, h, m or s" in err
