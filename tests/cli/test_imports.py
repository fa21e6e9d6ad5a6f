"""Each command imports what it needs and no more: what is asked is which modules are there, not how long it took."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from slacktide.cli import GROUPS, app, main

LINES = {name: line for lines in GROUPS.values() for name, line in lines.items()}

COMPILER = ("numba", "llvmlite", "scipy", "yaml")
"""Numba looks for the last two when it is imported; nothing of ours needs them to simulate."""
FOR_SOME = (
    *("polars", "sklearn", "matplotlib", "jinja2", "aiohttp", "prometheus_client", "uvloop", "asyncio"),
    *("rich", "distributed", "dask", "pandas"),
    *("slacktide.kube", "slacktide.engine", "slacktide.edge", "slacktide.reporting", "slacktide.lab"),
)
"""Libraries, and parts of ours, that one command or another needs and most do not."""
SIMULATOR = ("slacktide.kernels", "slacktide.sim", "slacktide.policy", "slacktide.state")
HEAVY = (*COMPILER, *FOR_SOME, *SIMULATOR, "numpy", "pyarrow", "msgspec", "ssl", "slacktide.inputs", "slacktide.config")

PROGRAM = """
import json, sys
from slacktide.cli import main
for words in json.loads(sys.argv[1]):
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    assert code == 0, (words, code)
    there = [one for one in json.loads(sys.argv[2]) if one in sys.modules]
    assert not there, (words, there)
"""


def import_none(words: Sequence[Sequence[str | Path]], *forbidden: str) -> None:
    """Command lines, one after the other in a process of their own, which has none of these modules at the end."""
    lines = [[str(word) for word in one] for one in words]
    arguments = (json.dumps(lines), json.dumps(forbidden))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small workload and its hosts, as Parquet and CSV, and a grid."""
    folder = tmp_path_factory.mktemp("imports")
    assert main(["generate", "light", "--set", "hosts=5", "--set", "requests=50", "--out", str(folder / "light")]) == 0
    (folder / "w.csv").write_text("id,admission,duration,cpu,memory,class\n1,0,5,1,1,gold\n2,1,5,1,1,bronze\n")
    (folder / "h.csv").write_text("id,name,cpu,memory\n1,a,1,1\n")
    (folder / "grid.yaml").write_text(
        "workloads: {few: w.csv}\nhosts: {one: h.csv}\npolicies: {priority: {policy: priority}}\nend: 10\n"
    )
    return folder


def below(found: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
    """The words that lead to a command, and to all below it."""
    yield words
    if isinstance(found, click.Group):
        for name, one in found.commands.items():
            yield from below(one, *words, name)


def test_help_and_version_import_nothing_that_takes_time() -> None:
    asked = [
        ("--version",),
        ("--help",),
        *((*one, "--help") for name in LINES for one in below(app.imported(name), name)),
    ]
    assert ("netprobe", "run", "--help") in asked
    import_none(asked, *HEAVY)


@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_command_is_the_first_of_its_own_help(name: str) -> None:
    found = app.imported(name)
    assert found.name == name
    assert LINES[name] == found.get_short_help_str(limit=1000)
    assert not found.hidden
    assert not found.deprecated


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.split("\n"))) <= 120
    for title, lines in GROUPS.items():
        words = " ".join(shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0].split())
        for name, line in lines.items():
            assert f"{name} {line}" in words


def test_names_of_commands_are_completed_without_importing_them() -> None:
    completing = (
        "import os, sys\n"
        "os.environ |= {'_SLACKTIDE_COMPLETE': 'bash_complete', 'COMP_WORDS': 'slacktide s', 'COMP_CWORD': '1'}\n"
        "from slacktide.cli import app\n"
        "try:\n    app.main([], prog_name='slacktide')\n"
        "finally:\n    assert 'slacktide.cli.simulation.simulate' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", completing], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["plain,settings", "plain,simulate"], done.stderr


def test_options_of_a_command_are_completed() -> None:
    with app.make_context("slacktide", [], resilient_parsing=True) as context:
        _, found, _ = app.resolve_command(context, ["simulate"])
    assert found is not None
    assert "policy" in {one.name for one in found.params}


def test_a_name_nearly_right_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulat"]) == 2
    assert "No such command 'simulat'" in capsys.readouterr().err


def test_simulating_imports_nothing_of_other_commands(made: Path) -> None:
    workload, hosts = made / "light" / "workload.parquet", made / "light" / "hosts.parquet"
    run = ("simulate", workload, hosts, "--end", "10")
    import_none([run], *FOR_SOME, "pyarrow.compute", "slacktide.inputs.generators")
    import_none([(*run, "--out", made / "out", "--events", "--intervals", "5")], *FOR_SOME)
    import_none([("simulate", made / "w.csv", made / "h.csv", "--policy", "priority")], *FOR_SOME)


def test_only_the_compiler_imports_scipy_and_yaml_for_a_simulation(made: Path) -> None:
    hidden = (
        "import sys\n"
        "from slacktide.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "there = [one for one in ('scipy', 'yaml') if one in sys.modules]\n"
        "assert not there or 'numba' in sys.modules, there\n"
    )
    words = ["simulate", made / "w.csv", made / "h.csv"]
    subprocess.run([sys.executable, "-c", hidden, *map(str, words)], check=True, stdout=subprocess.DEVNULL, timeout=600)


WITHOUT_SIMULATOR = (
    ("generate",),
    ("generate", "light", "--set", "hosts=5", "--set", "requests=50", "--out", "again"),
    ("inspect", "light/workload.parquet", "light/hosts.parquet"),
    ("inspect", "w.csv"),
    ("settings",),
    ("settings", "--markdown"),
    ("trace", "window", "w.csv", "--from", "0", "--to", "9", "--out", "window.parquet"),
    ("trace", "thin", "w.csv", "--share", "1", "--out", "thin.csv"),
    ("trace", "scale", "w.csv", "--time", "2", "--out", "scaled.csv"),
    ("trace", "hosts", "w.csv", "h.csv", "--out", "sets", "--replace"),
)


def test_what_simulates_nothing_imports_no_simulator(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    import_none(WITHOUT_SIMULATOR, *COMPILER, *FOR_SOME, *SIMULATOR)


def test_traces_are_listed_with_polars_alone() -> None:
    import_none([("trace", "convert")], *COMPILER, *SIMULATOR, *(one for one in FOR_SOME if one != "polars"))


def test_experiments_import_no_cluster_and_reports_no_simulator(made: Path) -> None:
    folder = made / "experiment"
    run = ("experiment", "run", made / "grid.yaml", "--out", folder)
    import_none([(*run, "--dry-run")], *FOR_SOME, "pyarrow")
    import_none([(*run, "--jobs", "1")], "pandas", "polars", "matplotlib")
    import_none([("experiment", "status", folder)], *COMPILER, *FOR_SOME, *SIMULATOR, "pyarrow")
    drawing = ("matplotlib", "jinja2", "slacktide.reporting", "pandas")  # Arrow's tables of rows ask for the last
    others = [one for one in FOR_SOME if one not in drawing]
    import_none([("report", folder, "--out", made / "report.html")], *COMPILER, *SIMULATOR, *others)
