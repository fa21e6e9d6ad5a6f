"""The testbed with real work: namespaces, quotas, links with a delay, pods and users. Needs root; skipped otherwise."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from slacktide.cli import app, main
from slacktide.edge.emulation import quotas, spaces
from slacktide.edge.emulation.compare import Effort
from slacktide.edge.emulation.pod import compute, iterate
from slacktide.edge.emulation.run import Emulation
from slacktide.edge.testbed import Testbed, read_run, read_testbed
from slacktide.errors import ConfigError
from support.repository import REPOSITORY

EDGE = REPOSITORY / "examples" / "edge"
PATIENCE = 120.0
ATTEMPTS = 3
"""Other work on the machine can make a comparison fail by chance, never succeed."""


def why_not() -> str:
    """Why nothing can be emulated here; empty where it can."""
    if shutil.which("ip") is None and os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1":
        raise RuntimeError("needs the program 'ip' of iproute2, but SLACKTIDE_REQUIRE_SERVERS=1")
    return spaces.why_not() or quotas.why_not(f"slacktide-{os.getpid()}-probe")


needs_emulation = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it is there")


def left_behind(process: int) -> list[str]:
    """Namespaces and control groups that a process made and that are still there."""
    name = f"slacktide-{process}"
    named = Path("/run/netns")
    found = [str(one) for one in named.iterdir() if one.name.startswith(name)] if named.is_dir() else []
    groups = quotas.hierarchy(Path("/proc/mounts").read_text()).root / name
    return found + ([str(groups)] if groups.exists() else [])


def children(process: int) -> list[int]:
    """Processes that this one started and that have not ended."""
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(one) for one in found.read_text().split()]


def users_at(testbed: Testbed, place: str) -> list[str]:
    """The pods whose users log in there."""
    ids = testbed.workload.ids.tolist()
    return [str(ids[row]) for row in range(len(ids)) if testbed.access(row).logins == ((place, 1.0),)]


@pytest.mark.slow
@needs_emulation
def test_delay_aware_placement_is_done_before_kcss() -> None:
    words = ["edge", "emulate", str(EDGE), "--scenario", "2", "--requests", "5", "--repeats", "1", "--json"]
    mine = children(os.getpid())
    seen = []
    for _ in range(ATTEMPTS):
        result = CliRunner().invoke(app, [*words, "--method", "kcss", "--method", "delay-aware 0.25"])
        assert result.exit_code == 0, result.output
        (scenario,) = json.loads(result.stdout)["scenarios"]
        lines = {line["method"]: line for line in scenario["lines"]}
        assert list(lines) == ["kcss", "delay-aware 0.25"]
        assert [one["pods"] for one in lines["kcss"]["placements"]] == [{"n1": 0, "n2": 3, "n3": 3}]
        assert lines["delay-aware 0.25"]["simulated"] < lines["kcss"]["simulated"]
        assert left_behind(os.getpid()) == []
        assert children(os.getpid()) == mine
        seen.append(
            [lines[name][what] for what in ("completion", "processing") for name in ("delay-aware 0.25", "kcss")]
        )
        if seen[-1][0] < seen[-1][1] and seen[-1][2] < seen[-1][3]:
            return
    pytest.fail(f"completion and processing of delay-aware and kcss, seconds: {seen}")


@needs_emulation
def test_users_wait_for_their_link_and_pods_get_no_more_than_their_quotas() -> None:
    testbed = read_testbed(EDGE / "scenario-2")
    (far, *_), (own, *_), (near, *_), (one, two) = (users_at(testbed, place) for place in ("master", "n2", "n3", "n1"))
    placement = {far: "n3", own: "n2", near: "n3", one: "n2", two: "n2"}
    limit = {pod.limit for pod in testbed.placed(placement)}.pop()
    with Emulation(testbed) as emulation:
        measured = emulation.run(placement, work=0.1, requests=3)
        factor = emulation.factor
    assert left_behind(os.getpid()) == []
    pods = {pod.name: pod for pod in measured.pods}
    assert set(pods) == set(placement)
    assert {len(pod.delays) for pod in pods.values()} == {3}
    assert min(pods[far].delays) > 0.199, "its user is on the master, 200 ms away"
    assert min(pods[one].delays) > 0.159, "its user is on n1, 160 ms away"
    assert min(pods[own].delays) < 0.1, "its user is on its own node"
    assert all(pod.processing < pod.finished <= measured.completion for pod in pods.values())
    # Quotas are the kernel's: whatever else runs, nobody gets more; the rest is one period's rounding.
    for pod in pods.values():
        assert pod.cpu >= 0.1
        assert pod.iterations >= 1
        assert pod.cpu <= limit * factor * pod.processing * 1.1 + 0.02
    crowd = [pod for pod in pods.values() if pod.node == "n2"]
    # A busy machine lets them begin one after another: the quota holds from the first's beginning to the last's end.
    span = max(pod.began + pod.processing for pod in crowd) - min(pod.began for pod in crowd)
    assert sum(pod.cpu for pod in crowd) <= factor * span * 1.1 + 0.02


@needs_emulation
def test_answers_take_the_deviation_longer() -> None:
    testbed = read_testbed(EDGE / "scenario-2")
    assert testbed.deviation("n2") == pytest.approx(0.075), "of 160 and 10 ms"
    assert testbed.deviation("n1") == pytest.approx(0.005), "of 160 and 150 ms"
    with Emulation(testbed, deviation=True) as emulation:
        far, away, own = (users_at(testbed, place)[0] for place in ("master", "n1", "n2"))
        measured = emulation.run({far: "n3", away: "n2", own: "n2"}, work=0.0, requests=3)
    delays = {pod.name: pod.delays for pod in measured.pods}
    assert min(delays[far]) > 0.199 + 0.07, "n3's deviation, of 150 and 10 ms, is 70"
    assert min(delays[away]) > 0.159 + 0.075
    assert min(delays[own]) < 0.075, "its user is on its own node"


@needs_emulation
def test_the_deviation_can_be_left_out() -> None:
    words = ["edge", "emulate", str(EDGE), "--scenario", "2", "--iterations", "1", "--requests", "4", "--repeats", "1"]
    seen = []
    for _ in range(ATTEMPTS):
        waits = []
        for more in ([], ["--no-deviation"]):
            result = CliRunner().invoke(app, [*words, "--method", "kcss", "--json", *more])
            assert result.exit_code == 0, result.output
            (line,) = json.loads(result.stdout)["scenarios"][0]["lines"]
            assert 1 <= line["iterations"]["least"] <= line["iterations"]["most"]
            waits.append(line["network"])
        seen.append(waits)
        if waits[0] > waits[1]:
            return
    pytest.fail(f"seconds that users waited with and without the deviation: {seen}")


LONG_RUN = """
import sys
from pathlib import Path
from slacktide.edge.emulation.run import Emulation
from slacktide.edge.testbed import read_testbed
with Emulation(read_testbed(Path(sys.argv[1]))) as emulation:
    emulation.run({"101": "n3", "102": "n2"}, work=1e6, requests=3)
"""


@needs_emulation
@pytest.mark.parametrize("how", ["a pod is killed", "the forwarder is killed", "Ctrl-C", "SIGTERM"])
def test_nothing_is_left_after_an_end_in_the_middle(how: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", LONG_RUN, str(EDGE / "scenario-2")], stderr=subprocess.PIPE, text=True
    )
    try:
        group = quotas.hierarchy(Path("/proc/mounts").read_text()).root / f"slacktide-{program.pid}" / "n3" / "101"
        end = time.monotonic() + PATIENCE
        while not (group.is_dir() and (group / "cgroup.procs").read_text().split()):  # the pod is at work
            assert program.poll() is None, program.communicate()[1]
            assert time.monotonic() < end
            time.sleep(0.1)
        started = children(program.pid)
        assert len(started) == 5, "the forwarder, two pods, two users"
        assert len(left_behind(program.pid)) == 5, "four namespaces and the control groups"
        if how == "a pod is killed":
            os.kill(int((group / "cgroup.procs").read_text().split()[0]), signal.SIGKILL)
        elif how == "the forwarder is killed":
            os.kill(min(started), signal.SIGKILL)
        else:
            program.send_signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGTERM)
        said = program.communicate(timeout=PATIENCE)[1]
    finally:
        program.kill()
        program.wait()
    assert program.returncode != 0
    expected = {
        "a pod is killed": "RunsError: pod 101 has ended",
        "the forwarder is killed": "RunsError: forwarder has",
    }
    assert expected.get(how, "KeyboardInterrupt") in said
    assert left_behind(program.pid) == []
    assert [one for one in started if Path(f"/proc/{one}").exists()] == []


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "")
    assert main(["edge", "emulate", str(EDGE), "--method", "kcss"]) == 2
    assert "needs the program 'ip'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--method", "kscc"], "found 'kscc', expected one of least-requested"), (["--scenario", "7"], "scenario-7")],
)
def test_what_is_misspelt_is_said(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["edge", "emulate", str(EDGE), *words]) == 2
    assert said in capsys.readouterr().err


def test_either_version_of_control_groups_is_found(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    second = f"cgroup2 {tmp_path} cgroup2 rw 0 0\n"
    assert quotas.hierarchy(second) == quotas.Hierarchy(tmp_path, 2)
    first = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n"
    assert quotas.hierarchy(first) == quotas.Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), 1)
    (tmp_path / "cgroup.controllers").write_text("cpuset io\n")
    assert quotas.hierarchy(second + first).version == 1, "with both mounted, the one that has the controller"
    with pytest.raises(ConfigError, match="CPU controller"):
        quotas.hierarchy(second)


@needs_emulation
def test_daemons_leave_a_node_less_for_pods() -> None:
    testbed, behaviour = read_testbed(EDGE / "scenario-2"), read_run(EDGE / "run.yaml")
    whole, left = Emulation(testbed).vcpus, Emulation(testbed, behaviour).vcpus
    assert whole == {"n1": 2.0, "n2": 1.0, "n3": 1.0}
    taken = {name: behaviour.daemons + behaviour.own["scenario-2"][name] for name in whole}
    assert left == pytest.approx({name: whole[name] - taken[name] for name in whole})


def test_requests_are_half_of_the_loads() -> None:
    behaviour = read_run(EDGE / "run.yaml")
    low, high = behaviour.of("low"), behaviour.of("high")
    assert Effort("low").asked(low) == 8  # (.1 + .06746 * 250) / 2
    assert Effort("low", iterations=3000).asked(Effort("low", iterations=3000).of(behaviour).of("low")) == 101
    assert Effort("high").asked(high) == 101
    assert Effort("low", requests=5).asked(low) == 5


@needs_emulation
def test_a_node_on_which_nothing_is_left_is_refused() -> None:
    behaviour = replace(read_run(EDGE / "run.yaml"), daemons=1.1)
    with pytest.raises(ConfigError, match=r"scenario-2: daemons and own pods leave -.* vCPUs of n2"):
        Emulation(read_testbed(EDGE / "scenario-2"), behaviour)


def test_iterations_are_what_a_pod_has_the_work_of() -> None:
    behaviour = read_run(EDGE / "run.yaml")
    assert Effort("low", iterations=10).of(behaviour).iterations == {"low": 10, "high": 3000}
    assert Effort("high").of(behaviour).iterations == {"low": 250, "high": 3000}
    assert behaviour.of("low").cpu_seconds == pytest.approx(2.35655)  # .3653 + 250 * .007965


def test_pods_compute_for_a_processor_time() -> None:
    iterations, worked = compute(0.05)
    assert iterations > 1
    assert worked >= 0.05
    assert compute(0.0)[0] == 1
    assert iterate(2) < 1e-12, "transforms there and back leave a signal as it was"
