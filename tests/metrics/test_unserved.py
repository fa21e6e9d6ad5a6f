"""Who never had a host: counted, warned of, and never taken for kept."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from slacktide.cli import main

HOSTS = "id,name,cpu,memory,attributes\n1,a,4,8,zone=b\n2,b,2,8,\n"
HEAD = "id,admission,duration,cpu,memory,class,constraints\n"


def files(folder: Path, *rows: str) -> list[str]:
    (folder / "w.csv").write_text(HEAD + "\n".join(rows) + "\n")
    (folder / "h.csv").write_text(HOSTS)
    return [str(folder / "w.csv"), str(folder / "h.csv")]


@pytest.mark.parametrize("policy", ["qos-driven", "priority"])
def test_one_that_fits_no_host_is_not_kept(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone: the run ends at the instant at which it came."""
    words = [*files(tmp_path, "7,0,60,100,1,gold,"), "--policy", policy, "--out", str(tmp_path / "out"), "--json"]
    assert main(["simulate", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["end"] == 0.0
    assert found["classes"]["gold"]["fulfilment"] == {"restart": 0.0, "always": 0.0, "never": 0.0}
    assert found["classes"]["gold"]["availability"]["restart"]["mean"] == 0.0
    assert found["never_served"] == found["too_large"] == {"gold": 1}
    (row,) = pq.read_table(tmp_path / "out" / "requests.parquet").to_pylist()
    assert (row["availability_restart"], row["slo_met"]) == (0.0, False)


def test_a_warning_says_who_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large, elsewhere, fits = "1,0,60,5,1,gold,", "2,0,60,3,1,silver,zone /= b", "3,0,60,4,1,silver,zone == b"
    assert main(["simulate", *files(tmp_path, large, elsewhere, fits, "4,0,,4,1,silver,")]) == 2, "needs an end"
    capsys.readouterr()
    assert main(["simulate", *files(tmp_path, large, elsewhere, fits, "4,1,,4,1,silver,"), "--end", "50"]) == 0
    assert capsys.readouterr().err == (
        "slacktide: warning: 3 instances never had a host (gold 1, silver 2); 2 of them fit on no host of this set, "
        "even an empty one. Compare their demand and constraints with the hosts: slacktide inspect WORKLOAD HOSTS.\n"
    )


def test_nothing_is_said_where_everybody_was_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *files(tmp_path, "1,0,60,1,1,gold,")]) == 0
    assert capsys.readouterr().err == ""


def test_one_that_is_removed_as_it_comes_was_owed_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = HEAD.replace("constraints", "kind,instances,scale")
    (tmp_path / "w.csv").write_text(header + "1,0,,100,1,gold,service,1,5=0\n")
    (tmp_path / "h.csv").write_text(HOSTS)
    assert main(["simulate", str(tmp_path / "w.csv"), str(tmp_path / "h.csv"), "--end", "9", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["never_served"] == {}
    assert found["classes"]["gold"]["availability"]["restart"]["mean"] == 0.0, "it waited for 5 s"
