"""Stories of some seeds, each twenty simulated minutes of faults and the time until all is healed.

``make soak`` runs as many more as one has time for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from simulated.story import Outcome, told
from slacktide.settings import load_live
from support.repository import REPOSITORY

SOAK = Path(__file__).with_name("soak.py")
SEEDS = (1, 2, 9, 10, 36)
"""Any would do. What they found at first has tests of its own, here and in ``tests/kube/act/test_reservations.py``."""


def soaked(*words: str, hashing: str = "0") -> str:
    """What the program prints, with one process; ``hashing`` decides the order of sets."""
    environment = os.environ | {"PYTHONHASHSEED": hashing}
    done = subprocess.run(
        [sys.executable, str(SOAK), "--processes=1", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_nothing_goes_wrong_whatever_fails_and_a_seed_repeats_to_the_byte() -> None:
    """In one process after others, and in one of its own whose sets have another order."""
    seeds = ",".join(map(str, SEEDS))
    *after, said = soaked(f"--seeds={seeds}", "--hashes").splitlines()
    assert said.endswith("0 found something"), [*after, said]
    assert said.startswith(f"{len(SEEDS)} seeds, "), said
    alone, _ = soaked(f"--seeds={SEEDS[-1]}", "--hashes", hashing="1").splitlines()
    assert alone == after[-1]
    assert alone.startswith(f"{SEEDS[-1]} ")


@pytest.mark.parametrize("seed", [1, 9])
def test_a_policy_from_pieces_does_the_same_as_the_built_in_one(seed: int) -> None:
    """Whatever fails; only what is said to those who find no victims names the policy's rule instead of priorities."""

    def under(policy: str) -> Outcome:
        outcome = told(seed, config=load_live(None, None, [f"policy.name={policy}", "policy.score=mean"]))
        return replace(outcome, digest="")

    found = under(f"{REPOSITORY}/examples/05_priority_from_pieces.py:priority")
    assert found == under("priority")
    assert found.evictions > 5
    assert found.findings == ()
