"""``slacktide simulate --network``: what users saw, in the summary, as JSON and as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from slacktide.cli import app
from support.repository import REPOSITORY

SCENARIO = REPOSITORY / "examples" / "edge" / "scenario-1"
WORDS = [
    *("simulate", str(SCENARIO / "workload.csv"), str(SCENARIO / "hosts.csv"), "--end", "100"),
    *("--config", str(SCENARIO / "settings.yaml")),
]
NETWORK = ["--network", str(SCENARIO / "network.yaml")]


def told(*words: str) -> str:
    result = CliRunner().invoke(app, [*WORDS, *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_summary_has_a_line_per_class_only_where_users_are_somewhere() -> None:
    lines = told(*NETWORK).splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("users of"))
    assert [line.split()[0] for line in lines[head + 1 :]] == ["gold", "silver", "bronze", "all"]
    placed_where_users_matter = [*WORDS, "--set", "policy.name=priority"]
    result = CliRunner().invoke(app, placed_where_users_matter)
    assert "users of" not in result.stdout


def test_the_file_has_every_stay_and_means_are_those_of_json(tmp_path: Path) -> None:
    said = json.loads(told(*NETWORK, "--json", "--events", "--out", str(tmp_path / "out")))["delays"]
    stays = pq.read_table(tmp_path / "out" / "delays.parquet").to_pylist()
    assert len(stays) == 14
    weights = [one["end"] - one["begin"] for one in stays]
    mean = sum(one["delay"] * weight for one, weight in zip(stays, weights, strict=True)) / sum(weights)
    assert said["all"]["mean"] == pytest.approx(mean)
    assert said["gold"]["placements"] == 14
    assert said["silver"]["mean"] is None
    assert not (tmp_path / "without").exists()
    told(*NETWORK, "--out", str(tmp_path / "without"))
    assert not (tmp_path / "without" / "delays.parquet").exists(), "it goes with --events"
    assert not (tmp_path / "without" / "events.parquet").exists()
