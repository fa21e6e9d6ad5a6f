"""``--columns``: a table with columns of its own, wherever a workload is asked for; and ``columns=`` in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import slacktide as st
from slacktide.cli import main
from slacktide.errors import ConfigError
from slacktide.inputs import read_workload

EXPORT = """pod_uid,region,created_at,deleted_at,cpu_request_millicores,mem_request_bytes,tier,image
6f1c-aa,shop,1700000000000,1700000600000,500,1073741824,gold,x
6f1c-ab,shop,1700000060250,,250,536870912,bronze,y
6f1c-ac,bank,1700000030500,1700000090500,35,536870912,silver,z
"""
MAPPING = (
    "id=pod_uid, admission=created_at:ms, end=deleted_at:ms, cpu=cpu_request_millicores:m, memory=mem_request_bytes, "
    "class=tier"
)
EPOCH = "2023-11-14T22:13:20+00:00"
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    export, hosts = tmp_path / "export.csv", tmp_path / "hosts.csv"
    export.write_text(EXPORT)
    hosts.write_text("id,name,cpu,memory\n" + "".join(f"{number},n{number},1,1073741824\n" for number in range(4)))
    return export, hosts


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str | Path) -> tuple[str, str]:
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert code == 0, err
        return out, err

    return command


def test_a_table_is_simulated_and_its_first_instant_is_the_epoch(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    export, hosts = files
    words = ["--columns", MAPPING, "--end", "1h", "--out", tmp_path / "out", "--json"]
    out, err = run("simulate", export, hosts, *words)
    assert json.loads(out)["classes"]["gold"]["requests"] == 1
    assert f"slacktide: columns of {export}: {MAPPING}\n" in err
    assert err.count(": these columns stay behind: region, image\n") == 1
    assert f"second 0 is the first admission, {EPOCH}" in err
    settings = json.loads((tmp_path / "out" / "manifest.json").read_text())["configuration"]
    assert settings["simulation"]["epoch"] == EPOCH
    own = ["--set", "simulation.epoch=2020-01-01T00:00:00Z", "--out", tmp_path / "own"]
    run("simulate", export, hosts, "--columns", MAPPING, "--end", "1h", *own)
    settings = json.loads((tmp_path / "own" / "manifest.json").read_text())["configuration"]
    assert settings["simulation"]["epoch"] == "2020-01-01T00:00:00Z"


def test_a_plan_of_a_table_is_that_of_its_workload_file(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    export, hosts = files
    words = ["--end", "1h", "--no-curve", "--jobs", "1", "--json"]
    run("trace", "scale", export, "--columns", MAPPING, "--out", tmp_path / "ours.parquet")
    plain, _ = run("plan", tmp_path / "ours.parquet", hosts, *words, "--out", tmp_path / "plain")
    out, err = run("plan", export, hosts, "--columns", MAPPING, *words, "--out", tmp_path / "plan")
    assert f"columns of {export}: {MAPPING}" in err
    assert json.loads(out)["policies"] == json.loads(plain)["policies"]
    run("plan", export, hosts, "--columns", MAPPING, *words, "--out", tmp_path / "plan")  # its runs are done already
    assert len(list((tmp_path / "plan" / "inputs").glob("given-*.parquet"))) == 1
    with pytest.warns(UserWarning, match="stay behind"):
        found = st.plan(export, hosts, end="1h", curve=False, jobs=1, columns=MAPPING)
    assert found.hosts == {name: one["hosts"] for name, one in json.loads(out)["policies"].items()}


def test_a_mapping_that_is_guessed_is_shown_and_can_be_kept(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    export, hosts = files
    kept = tmp_path / "kept.yaml"
    out, err = run("inspect", export, hosts, "--columns", "guess", "--keep-columns", kept, "--json")
    assert f"{MAPPING} (guessed: id, admission, end, cpu, memory, class" in err
    again, err = run("inspect", export, hosts, "--columns", kept, "--json")
    assert (again, "(guessed:" in err) == (out, False)
    assert json.loads(again)["workload"]["requests"] == 3


def test_every_command_that_changes_a_workload_takes_it(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    export, hosts = files
    ours = tmp_path / "ours.parquet"
    _, err = run("trace", "scale", export, "--columns", MAPPING, "--out", ours)
    assert f"columns of {export}: {MAPPING}" in err
    whole = read_workload(ours)
    assert whole.admission.tolist() == [0.0, 30.5, 60.25]
    last = ["--columns", "guess", "--out", tmp_path / "made.parquet"]
    for command, count in (
        (["thin", export, "--share", "1"], 3),
        (["window", export, "--from", "60", "--to", "1h", "--drop-running"], 1),
        (["admit", export, hosts], 3),
    ):
        run("trace", *command, *last)
        assert len(read_workload(tmp_path / "made.parquet")) == count, command
    run("trace", "hosts", export, hosts, "--capacities", "1", "--columns", "guess", "--out", tmp_path / "sets")
    assert (tmp_path / "sets" / "hosts-1.0.parquet").exists()


def test_python_takes_the_same_of_files_and_frames(files: tuple[Path, Path]) -> None:
    export, hosts = files
    with pytest.warns(UserWarning, match="second 0 is the first admission"):
        of_file = st.simulate(export, hosts, end="1h", columns=MAPPING)
    assert of_file.settings["simulation"]["epoch"] == EPOCH
    pairs = dict(one.split("=") for one in MAPPING.split(", "))
    with pytest.warns(UserWarning, match="columns of workload"):
        of_frame = st.simulate(pl.read_csv(export), hosts, end="1h", columns=pairs)
    assert of_frame.requests.equals(of_file.requests)
    with pytest.raises(ConfigError, match="whose columns are known"):
        st.simulate(st.generate("light", hosts=2, requests=2), columns="guess")


def test_who_does_not_know_of_it_is_told(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[0].write_text("pod_uid,tier\n6f1c-aa,gold\n")
    for words in (["simulate", *files], ["inspect", files[0]]):
        assert main([str(one) for one in words]) != 0
        assert capsys.readouterr().err.count("--columns of simulate, inspect or trace scale says how") == 1


def test_mistakes_come_before_the_work(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    export, hosts = (str(one) for one in files)
    assert main(["simulate", export, hosts, "--columns", "id=uid"]) != 0
    assert "--columns: id: found 'uid', expected one of pod_uid" in capsys.readouterr().err
    assert main(["inspect", export, "--keep-columns", "kept.yaml"]) != 0
    assert "--keep-columns: keeps what --columns says" in capsys.readouterr().err
    assert main(["inspect", export, "--columns", "guess", "--keep-columns", "kept.csv"]) != 0
    assert "expected a name ending in .yaml" in capsys.readouterr().err
