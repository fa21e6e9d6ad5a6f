"""The examples run as their page says."""

from __future__ import annotations

import pytest

from slacktide.cli import main
from support.repository import REPOSITORY

EXAMPLES = REPOSITORY / "examples"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("inputs") / "run1"
    assert main(["generate", "validation-1", "--out", str(folder)]) == 0
    return [str(folder / "workload.parquet"), str(folder / "hosts.parquet"), "--end", "300"]


@pytest.mark.parametrize(
    "words",
    [
        ["--policy", f"{EXAMPLES / '01_own_policy.py'}:FirstFit"],
        ["--policy", f"{EXAMPLES / '05_priority_from_pieces.py'}:priority", "--set", "policy.score=mean"],
        ["--policy", f"{EXAMPLES / '06_qos_driven_from_pieces.py'}:qos_driven", "--preset", "published"],
        ["--policy", f"{EXAMPLES / '07_deadline.py'}:by_deadline"],
        ["--set", f"policy.score={EXAMPLES / '02_own_score.py'}:packed"],
        ["--set", f"policy.score={EXAMPLES / '04_host_numbers.py'}:reliable"],
        ["--set", f"policy.cost={EXAMPLES / '03_own_cost.py'}:gentle"],
    ],
    ids=["policy", "priority from pieces", "qos-driven from pieces", "deadline", "score", "numbers", "cost"],
)
def test_an_example_runs(words: list[str], inputs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["simulate", *inputs, *words]) == 0
    assert "bronze" in capsys.readouterr().out
