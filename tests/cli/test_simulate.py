"""``slacktide simulate`` from end to end, on the generated first validation run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from slacktide.cli import main
from support.program import PROGRAM, simulating

Simulate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    out = tmp_path_factory.mktemp("inputs") / "run1"
    assert main(["generate", "validation-1", "--seed", "3", "--out", str(out)]) == 0
    return out / "workload.parquet", out / "hosts.parquet"


@pytest.fixture
def simulate(inputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> Simulate:
    def command(*words: str | Path) -> dict[str, Any]:
        capsys.readouterr()
        code = main(["simulate", *map(str, inputs), *map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        found = json.loads(out)
        assert isinstance(found, dict)
        return found

    return command


@pytest.mark.uncompiled
def test_the_object_that_programs_rely_on(simulate: Simulate) -> None:
    found = simulate("--preset", "published", "--end", "330", "--seed", "1")
    assert set(found) >= {
        *("requests", "completed", "passes", "preemptions", "operations"),
        *("wall_seconds", "cpu_seconds", "peak_rss_mb", "availability", "classes"),
    }
    assert found["requests"] == 256
    assert found["completed"] == 0
    assert {name: one["requests"] for name, one in found["classes"].items()} == {"gold": 80, "silver": 80, "bronze": 96}
    assert found["preemptions"] == sum(one["preemptions"] for one in found["classes"].values())
    for one in (found, *found["classes"].values()):
        assert set(one["availability"]) == {"restart", "always", "never"}
        for stats in one["availability"].values():
            assert 0.0 <= stats["min"] <= stats["p05"] <= 1.0
            assert stats["min"] <= stats["mean"] <= 1.0
    assert found["classes"]["silver"]["slo"] == 0.9
    assert found["wall_seconds"] > 0.0
    assert found["peak_rss_mb"] > 10.0


def test_constraints_are_left_out_of_account(
    tmp_path: Path, inputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    workload = tmp_path / "apart.csv"
    rows = "".join(f"{number},0,,0.1,0.1,gold,disk == ssd\n" for number in range(4))
    workload.write_text("id,admission,duration,cpu,memory,class,constraints\n" + rows)
    found = []
    for words in ([], ["--ignore", "constraints"]):
        capsys.readouterr()
        assert main(["simulate", str(workload), str(inputs[1]), "--end", "60", "--json", *words]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert [one["placements"] for one in found] == [0, 4]
    assert [one["too_large"] for one in found] == [{"gold": 4}, {}]  # they fit once nothing is asked of hosts


def test_what_an_own_policy_prints_is_not_in_the_object(
    tmp_path: Path, inputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(
        "print('loaded')\nclass Mine:\n    def decide(self, view, now):\n        print('asked')\n        return ()\n"
    )
    words = ["simulate", *map(str, inputs), "--end", "30", "--policy", f"{tmp_path}/mine.py:Mine"]
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["placements"] == 0
    assert "loaded\nasked\n" in err
    assert main(words) == 0
    assert "asked" in capsys.readouterr().out


def test_tables_agree_with_the_summary(simulate: Simulate, tmp_path: Path) -> None:
    found = simulate("--end", "900", "--out", tmp_path / "out", "--passes", "--events")
    rows = pq.read_table(tmp_path / "out" / "requests.parquet")
    assert rows.num_rows == found["requests"]
    assert sum(rows["preemptions"].to_pylist()) == found["preemptions"]
    for name, one in found["classes"].items():
        kept = [row for row in rows.to_pylist() if row["class"] == name]
        for accounting in ("restart", "always", "never"):
            mean = sum(row[f"availability_{accounting}"] for row in kept) / len(kept)
            assert mean == pytest.approx(one["availability"][accounting]["mean"], abs=1e-12)
        met = sum(row["slo_met"] for row in kept) / len(kept)
        assert met == pytest.approx(one["fulfilment"]["restart"], abs=1e-12)
    passes = pq.read_table(tmp_path / "out" / "passes.parquet")
    assert passes.num_rows == found["passes"]
    assert sum(passes["operations"].to_pylist()) == found["operations"]
    events = pq.read_table(tmp_path / "out" / "events.parquet")["event"].to_pylist()
    assert events.count("preempted") == found["preemptions"]
    assert events.count("admitted") == found["requests"]


def test_intervals_tell_how_classes_fare_in_between(simulate: Simulate, tmp_path: Path) -> None:
    found = simulate("--end", "900", "--out", tmp_path / "out", "--intervals", "240")
    rows = pq.read_table(tmp_path / "out" / "intervals.parquet").to_pylist()
    assert [(row["time"], row["class"]) for row in rows[:4]] == [
        (240.0, "gold"),
        (240.0, "silver"),
        (240.0, "bronze"),
        (480.0, "gold"),
    ]
    assert [row["time"] for row in rows[::3]] == [240.0, 480.0, 720.0, 900.0]
    for row in rows[-3:]:  # nobody completes in this run
        one = found["classes"][row["class"]]
        assert row["active"] == one["requests"] == row["waiting"] + row["running"]
        assert row["availability_mean"] == pytest.approx(one["availability"]["restart"]["mean"], abs=1e-12)
        assert row["availability_min"] == one["availability"]["restart"]["min"]
        assert row["fulfilment"] == one["fulfilment"]["restart"]
        assert row["demanded_cpu"] == pytest.approx(0.375 * row["active"])
        assert row["allocated_cpu"] == pytest.approx(0.375 * row["running"])
    progress = pq.read_table(tmp_path / "out" / "progress.parquet").to_pylist()
    assert [row["time"] for row in progress] == [*(24.0 * step for step in range(1, 38)), 900.0]
    last = progress[-1]
    assert {name: last[name] for name in ("passes", "operations", "placements", "preemptions")} == {
        name: found[name] for name in ("passes", "operations", "placements", "preemptions")
    }
    assert last["queue"] == sum(row["waiting"] for row in rows[-3:])
    assert last["capacity_cpu"] == 75.0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["intervals"] == 240.0


def test_looking_at_intervals_leaves_the_same_requests(simulate: Simulate, tmp_path: Path) -> None:
    simulate("--end", "500", "--out", tmp_path / "plain")
    simulate("--end", "500", "--out", tmp_path / "watched", "--intervals", "60")
    plain, watched = ((tmp_path / one / "requests.parquet").read_bytes() for one in ("plain", "watched"))
    assert plain == watched


def test_an_interval_needs_seconds_and_a_folder(
    inputs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["simulate", *map(str, inputs), "--end", "9"]
    assert main([*words, "--intervals", "600"]) == 2
    assert "--out" in capsys.readouterr().err
    for wrong in ("0", "-1", "nan", "inf"):
        assert main([*words, "--out", str(tmp_path / "out"), "--intervals", wrong]) == 2
        assert "expected seconds" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_manifest_repeats_the_run_bit_for_bit(simulate: Simulate, tmp_path: Path) -> None:
    simulate("--policy", "priority", "--seed", "11", "--end", "600", "--out", tmp_path / "first")
    simulate("--config", tmp_path / "first" / "manifest.json", "--out", tmp_path / "again")
    simulate("--config", tmp_path / "first" / "manifest.json", "--seed", "12", "--out", tmp_path / "other")
    first, again, other = ((tmp_path / one / "requests.parquet").read_bytes() for one in ("first", "again", "other"))
    assert first == again != other


def test_options_are_settings_by_another_name(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "hot.csv").write_text("seconds\n7\n")
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"startup: {{hot: {tmp_path / 'hot.csv'}}}\nsimulation: {{end: 400}}\n")
    by_option = simulate("--hot", tmp_path / "hot.csv", "--end", "400")
    by_file = simulate("--config", settings)
    for found in (by_option, by_file):
        for key in ("wall_seconds", "cpu_seconds", "peak_rss_mb", "compile_seconds"):
            del found[key]
    assert by_option == by_file


def test_people_get_a_table(
    inputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of pytest have it from the terminal
    assert main(["simulate", *map(str, inputs), "--end", "400"]) == 0
    out = capsys.readouterr().out
    assert "promised  delivered" in out
    assert [line.split()[0] for line in out.splitlines()[3:7]] == ["gold", "silver", "bronze", "all"]


def test_an_unknown_policy_is_a_clear_error(inputs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *map(str, inputs), "--policy", "nonesuch"]) == 2
    assert "nonesuch" in capsys.readouterr().err
    assert main(["simulate", *map(str, inputs), "--policy", "missing.py:Mine"]) == 2
    assert "missing.py" in capsys.readouterr().err


def test_policies_lists_what_policy_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policies", "--json"]) == 0
    names = {(one["kind"], one["name"]) for one in json.loads(capsys.readouterr().out)}
    assert {("policies", "qos-driven"), ("policies", "priority"), ("policies", "hybrid")} <= names


def test_interrupting_leaves_earlier_results_whole(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["simulate", *map(str, inputs), "--out", str(out)]
    assert main([*words, "--end", "60"]) == 0
    before = {entry.name: entry.read_bytes() for entry in out.iterdir()}
    # Nobody completes and ten times more wait than fit: without an end this run would last for years.
    command = [*PROGRAM, *words, "--end", "1e9"]
    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    with simulating(command, tmp_path / ".simulates", 1000.0, **streams) as process:
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"Interrupted" in err
    assert b"Traceback" not in err
    assert {entry.name: entry.read_bytes() for entry in out.iterdir()} == before
    assert os.listdir(tmp_path) == ["out"]


def test_what_became_of_resizes_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The first grows where it is, the second there or on the other host; the last wants more than a host has.
    hosts = tmp_path / "hosts.csv"
    hosts.write_text("id,name,cpu,memory,attributes\n1,a,4,8,on=a\n2,b,6,8,on=b\n")
    workload = tmp_path / "workload.csv"
    rows = [
        "1,0,,1,1,gold,10: cpu=2,on == a",
        "2,0,,2,1,gold,20: cpu=4,",
        "3,0,,2,1,gold,,on == a",
        "4,0,,1,1,gold,30: cpu=9,",
    ]
    workload.write_text("id,admission,duration,cpu,memory,class,resize,constraints\n" + "\n".join(rows) + "\n")
    words = ["simulate", str(workload), str(hosts), "--policy", "priority", "--end", "100"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["deferrals"] == 1
    assert found["resizes"] + found["moves"] == 2
    assert main(words) == 0
    told = f"{found['resizes']} resizes in place, {found['moves']} by moving; 1 waited for room"
    assert told in capsys.readouterr().out
