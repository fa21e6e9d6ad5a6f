"""Results are there whole or not at all, and never in place of something else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from slacktide.errors import OutputError
from slacktide.results.directory import check_target, clear_abandoned, replaced_directory

OURS = frozenset({"a.txt", "b.txt"})


def put(target: Path, **files: str) -> None:
    with replaced_directory(target, OURS) as aside:
        for name, text in files.items():
            (aside / f"{name}.txt").write_text(text)


def content(target: Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in target.iterdir()}


def test_a_new_directory_and_its_parents_are_made(tmp_path: Path) -> None:
    put(tmp_path / "deep" / "out", a="1")
    assert content(tmp_path / "deep" / "out") == {"a.txt": "1"}
    assert os.listdir(tmp_path / "deep") == ["out"]


def test_earlier_results_are_replaced_as_a_whole(tmp_path: Path) -> None:
    put(tmp_path / "out", a="1", b="1")
    put(tmp_path / "out", a="2")
    assert content(tmp_path / "out") == {"a.txt": "2"}
    assert os.listdir(tmp_path) == ["out"]


def test_a_failure_leaves_earlier_results_and_nothing_else(tmp_path: Path) -> None:
    put(tmp_path / "out", a="1")

    def interrupted() -> None:
        with replaced_directory(tmp_path / "out", OURS) as aside:
            (aside / "a.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert content(tmp_path / "out") == {"a.txt": "1"}
    assert os.listdir(tmp_path) == ["out"]


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        put(tmp_path, a="1")
    with pytest.raises(OutputError, match="a file"):
        put(tmp_path / "thesis.tex", a="1")
    assert content(tmp_path) == {"thesis.tex": "years"}


def test_what_comes_in_between_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"

    def overtaken() -> None:
        with replaced_directory(target, OURS):
            target.mkdir()
            (target / "note").write_text("kept")

    with pytest.raises(OutputError, match="note"):
        overtaken()
    assert content(target) == {"note": "kept"}


def test_the_current_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError, match="the directory you are in"):
        check_target(Path(), OURS)


def test_a_parent_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        check_target(tmp_path / "file" / "out", OURS)


def test_without_an_exchange_in_one_step_the_result_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slacktide.results.directory.sys.platform", "other")
    put(tmp_path / "out", a="1")
    put(tmp_path / "out", b="2")
    assert content(tmp_path / "out") == {"b.txt": "2"}
    assert os.listdir(tmp_path) == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from slacktide.results.directory import replaced_directory
with replaced_directory(Path(sys.argv[1]), frozenset({"a.txt", "b.txt"})) as aside:
    (aside / "a.txt").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_earlier_results_and_the_next_one_clears_up(tmp_path: Path) -> None:
    put(tmp_path / "out", a="1")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert content(tmp_path / "out") == {"a.txt": "1"}
    assert len(os.listdir(tmp_path)) == 2
    put(tmp_path / "out", a="2")
    assert content(tmp_path / "out") == {"a.txt": "2"}
    assert os.listdir(tmp_path) == ["out"]


def test_what_a_killed_run_left_is_cleared_up_before_anybody_has_waited_for_it(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "out")])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its number is still taken
    assert len(os.listdir(tmp_path)) == 1
    put(tmp_path / "out", a="2")
    assert os.listdir(tmp_path) == ["out"]
    process.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc: processes of one number are not told apart")
def test_another_process_of_the_same_number_keeps_nothing_that_a_killed_run_left(tmp_path: Path) -> None:
    ours = f"{socket.gethostname()}-%s-{os.getppid()}"
    begun = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19]
    for ticks in ("1", begun):
        (tmp_path / f".out.partial-{ours % ticks}").mkdir()
    put(tmp_path / "out", a="1")
    assert sorted(os.listdir(tmp_path)) == [f".out.partial-{ours % begun}", "out"], "only that of who still runs stays"
    clear_abandoned(tmp_path)
    assert len(os.listdir(tmp_path)) == 2
